/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ranks: 1 3
 *
 * file_atomic.c - non-blocking and split accesses in atomic mode: the call that starts one returns though its lock is
 * taken, the access goes on when it is free, and of overlapping writes one is there as a whole.
 */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
#include "mpitest.h"

enum { BYTES = 1 << 18, EACH = 4 };

static char name[128];
static char out[EACH][BYTES], in[BYTES];

static MPI_File open_file(const char *locks)
{
	MPI_File f;
	MPI_Info info;
	OK(MPI_Info_create(&info));
	OK(MPI_Info_set(info, "weft_file_locks", locks));
	OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | MPI_MODE_CREATE, info, &f));
	OK(MPI_Info_free(&info));
	OK(MPI_File_set_atomicity(f, 1));
	return f;
}

/* A lock that only the test gives back: a call that waited for it would not return. */
static void test_starts_at_once(void)
{
	MPI_File f = open_file("on");
	MPI_Request r[2];
	MPI_Status st;
	int over = 1, n, fd = open(name, O_RDWR);
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = rank, .l_len = 1};
	CHECK(fd >= 0);
	CHECK_EQ(fcntl(fd, F_OFD_SETLKW, &lock), 0);
	out[0][0] = (char)('a' + rank);
	OK(MPI_File_iwrite_at(f, rank, out[0], 1, MPI_CHAR, &r[0]));
	OK(MPI_File_iread_at(f, rank, in, 1, MPI_CHAR, &r[1]));
	OK(MPI_Test(&r[0], &over, MPI_STATUS_IGNORE));
	CHECK(!over);
	lock.l_type = F_UNLCK;
	CHECK_EQ(fcntl(fd, F_OFD_SETLK, &lock), 0);
	OK(MPI_Wait(&r[0], &st));
	OK(MPI_Get_count(&st, MPI_CHAR, &n));
	CHECK_EQ(n, 1);
	OK(MPI_Wait(&r[1], MPI_STATUS_IGNORE));
	CHECK_EQ(in[0], out[0][0]);
	close(fd);
	OK(MPI_File_close(&f));
}

static void check_whole(void)
{
	for (int i = 1; i < BYTES; i++)
		CHECK_EQ(in[i], in[0]);
}

static void test_whole(const char *locks)
{
	MPI_File f = open_file(locks);
	MPI_Request r[EACH + 1];
	for (int i = 0; i < EACH; i++)
		memset(out[i], 'A' + rank * EACH + i, BYTES);
	OK(MPI_File_write_at_all(f, 0, out[0], BYTES, MPI_CHAR, MPI_STATUS_IGNORE));
	OK(MPI_Barrier(MPI_COMM_WORLD));
	for (int i = 0; i < EACH; i++)
		OK(MPI_File_iwrite_at(f, 0, out[i], BYTES, MPI_CHAR, &r[i]));
	OK(MPI_File_iread_at(f, 0, in, BYTES, MPI_CHAR, &r[EACH]));
	OK(MPI_Waitall(EACH + 1, r, MPI_STATUSES_IGNORE));
	check_whole();
	OK(MPI_File_write_at_all_begin(f, 0, out[1], BYTES, MPI_CHAR));
	OK(MPI_File_write_at_all_end(f, out[1], MPI_STATUS_IGNORE));
	OK(MPI_File_read_at(f, 0, in, BYTES, MPI_CHAR, MPI_STATUS_IGNORE));
	check_whole();
	/* Closed, and only then waited for. */
	OK(MPI_File_iwrite_at(f, 0, out[2], BYTES, MPI_CHAR, &r[0]));
	OK(MPI_File_close(&f));
	OK(MPI_Wait(&r[0], MPI_STATUS_IGNORE));
}

int main(int argc, char **argv)
{
	test_start(&argc, &argv, MPI_THREAD_SINGLE);
	snprintf(name, sizeof name, "/tmp/test-file-atomic-%d", (int)getpid());
	OK(MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD));
	test_starts_at_once();
	test_whole("off");
	test_whole("on");
	if (!rank)
		unlink(name);
	return test_end();
}
