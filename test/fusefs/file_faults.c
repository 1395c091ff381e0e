/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a file system refuses reaches the program as the right class: every rank of a collective call learns it, what
 * was written before is there, and the file stays usable.
 *
 *	file_faults FOLDER     on faultfs.c, whose keys it sets
 */
#include "mpitest.h"

#include <errno.h>
#include <limits.h>
#include <sys/xattr.h>
#include <unistd.h>

#define BYTES 24000

static const char *mount_point;
static char path[PATH_MAX], *buf;
static MPI_File file;

static void faults(const char *keys)
{
	test_barrier();
	if (rank == 0)
		CHECK_EQ(setxattr(mount_point, "user.faults", keys, strlen(keys), 0), 0);
	test_barrier();
}

static void open_file(int mode)
{
	OK(MPI_File_open(MPI_COMM_WORLD, path, mode, MPI_INFO_NULL, &file));
}

static int class_of(int code)
{
	int class = -1;

	OK(MPI_Error_class(code, &class));
	return class;
}

/* The first byte that each rank of a call writes or reads. */
static MPI_Offset mine(void)
{
	return (MPI_Offset)rank * BYTES;
}

/* Every rank writes its part; the view is in one piece, or in elements of 8 bytes in turn. */
static int write_parts(int in_turn, int nonblocking)
{
	MPI_Datatype filetype;
	MPI_Request req;
	MPI_Status st;
	int code;

	if (in_turn) {
		OK(MPI_Type_vector(BYTES / 8, 8, 8 * size, MPI_BYTE, &filetype));
		OK(MPI_Type_commit(&filetype));
		OK(MPI_File_set_view(file, rank * 8, MPI_BYTE, filetype, "native", MPI_INFO_NULL));
		OK(MPI_Type_free(&filetype));
	} else {
		OK(MPI_File_set_view(file, mine(), MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
	}
	if (nonblocking) {
		OK(MPI_File_iwrite_at_all(file, 0, buf, BYTES / 8 * 8, MPI_BYTE, &req));
		return MPI_Wait(&req, &st);
	}
	code = MPI_File_write_at_all(file, 0, buf, BYTES / 8 * 8, MPI_BYTE, &st);
	return code;
}

/* Disk full in the midst of a collective write. */
static void full(const char *key, int want)
{
	char keys[64];

	for (int how = 0; how < 4; how++) {
		MPI_Offset end = BYTES + BYTES / 2;
		int code, class, least, most;
		snprintf(keys, sizeof keys, "%s=%lld", key, (long long)end);
		faults(keys);
		open_file(MPI_MODE_CREATE | MPI_MODE_RDWR);
		memset(buf, 'a' + rank, BYTES);
		code = write_parts(how & 1, how & 2);
		class = class_of(code);
		OK(MPI_Allreduce(&class, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD));
		OK(MPI_Allreduce(&class, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
		CHECK_EQ(least, want);
		CHECK_EQ(most, want);
		/* What had room is there. */
		if (!(how & 1) && rank == 0) { /* all of rank 0's part lies before the end */
			OK(MPI_File_read_at(file, 0, buf, BYTES / 8 * 8, MPI_BYTE,
					    MPI_STATUS_IGNORE));
			for (int i = 0; i < BYTES / 8 * 8; i++)
				CHECK_EQ(buf[i], 'a');
		}
		snprintf(keys, sizeof keys, "%s=0", key);
		faults(keys);
		OK(write_parts(how & 1, how & 2));
		OK(MPI_File_close(&file));
		if (rank == 0)
			OK(MPI_File_delete(path, MPI_INFO_NULL));
	}
}

/* One write fails, once: the class, and afterwards all is well. */
static void once(void)
{
	open_file(MPI_MODE_CREATE | MPI_MODE_RDWR);
	for (int how = 0; how < 4; how++) {
		int class, most;
		faults("eio_write=2");
		class = class_of(write_parts(how & 1, how & 2));
		OK(MPI_Allreduce(&class, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
		CHECK_EQ(most, MPI_ERR_IO);
		CHECK_EQ(class, MPI_ERR_IO); /* every rank */
		faults("eio_write=0");
		OK(write_parts(how & 1, how & 2));
	}
	faults("eio_read=1");
	OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
	if (rank == 0) {
		FAILS(MPI_File_read_at(file, 0, buf, 100, MPI_BYTE, MPI_STATUS_IGNORE), MPI_ERR_IO);
		OK(MPI_File_read_at(file, 0, buf, 100, MPI_BYTE, MPI_STATUS_IGNORE));
	}
	faults("estale_from=1");
	if (rank == 0)
		FAILS(MPI_File_write_at(file, 0, buf, 100, MPI_BYTE, MPI_STATUS_IGNORE),
		      MPI_ERR_FILE);
	faults("estale_from=0");
	faults("eio_fsync=1");
	CHECK_EQ(class_of(MPI_File_sync(file)), MPI_ERR_IO);
	OK(MPI_File_sync(file));
	OK(MPI_File_close(&file));
}

static void refused(void)
{
	faults("erofs=1");
	FAILS(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR, MPI_INFO_NULL, &file),
	      MPI_ERR_READ_ONLY);
	faults("erofs=0");
	FAILS(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_EXCL,
			    MPI_INFO_NULL, &file),
	      MPI_ERR_FILE_EXISTS);
	faults("eio_open=1");
	FAILS(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR, MPI_INFO_NULL, &file), MPI_ERR_IO);
	faults("eio_open=0");
}

/* The file system has no locks: the atomic mode works all the same. */
static void no_locks(void)
{
	faults("enolck=1");
	open_file(MPI_MODE_RDWR);
	OK(MPI_File_set_atomicity(file, 1));
	memset(buf, 'A' + rank, BYTES);
	OK(MPI_File_write_at(file, 0, buf, BYTES, MPI_BYTE, MPI_STATUS_IGNORE));
	test_barrier();
	OK(MPI_File_read_at(file, 0, buf, BYTES, MPI_BYTE, MPI_STATUS_IGNORE));
	for (int i = 1; i < BYTES; i++)
		CHECK_EQ(buf[i], buf[0]);
	OK(MPI_File_close(&file));
	faults("enolck=0");
}

int main(int argc, char **argv)
{
	test_start(&argc, &argv, MPI_THREAD_SINGLE);
	if (argc < 2)
		SKIP("wants the mount point of a faultfs");
	mount_point = argv[1];
	snprintf(path, sizeof path, "%s/file-faults", mount_point);
	buf = malloc(BYTES);
	CHECK(buf);
	full("enospc", MPI_ERR_NO_SPACE);
	full("edquot", MPI_ERR_QUOTA);
	once();
	refused();
	no_locks();
	test_barrier();
	if (rank == 0)
		OK(MPI_File_delete(path, MPI_INFO_NULL));
	free(buf);
	return test_end();
}
