/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ranks: 1 3
 *
 * file_limit.c - a write beyond RLIMIT_FSIZE (ulimit -f) fails with MPI_ERR_NO_SPACE in every kind of call, and no signal ends the
 * program: what lies before the limit is there, and the file stays usable.
 */
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>
#include "mpitest.h"

enum { LIMIT = 1 << 20, PART = 3 << 18 };

static MPI_File f;
static char out[PART], in[PART];

/* Each rank's part crosses the limit, or, far, lies behind it; in turn: in runs of 16 bytes. */
static void place(int in_turn, int far)
{
	MPI_Datatype type;
	MPI_Offset begin = (far ? 2 * LIMIT : LIMIT) - (in_turn ? size * PART : PART) / 2;
	OK(MPI_Type_vector(PART / 16, 16, in_turn ? 16 * size : 16, MPI_BYTE, &type));
	OK(MPI_Type_commit(&type));
	if (begin < 0)
		begin = 0;
	OK(MPI_File_set_view(f, far ? 2 * LIMIT : begin + (in_turn ? 16 * rank : 0), MPI_BYTE,
			     in_turn ? type : MPI_BYTE, "native", MPI_INFO_NULL));
	OK(MPI_Type_free(&type));
}

static int write_part(int how)
{
	MPI_Request r;
	int err;
	switch (how) {
	case 0:
		return MPI_File_write_at(f, 0, out, PART, MPI_BYTE, MPI_STATUS_IGNORE);
	case 1:
		err = MPI_File_iwrite_at(f, 0, out, PART, MPI_BYTE, &r);
		return err ? err : MPI_Wait(&r, MPI_STATUS_IGNORE);
	case 2:
		return MPI_File_write_at_all(f, 0, out, PART, MPI_BYTE, MPI_STATUS_IGNORE);
	default:
		err = MPI_File_iwrite_at_all(f, 0, out, PART, MPI_BYTE, &r);
		return err ? err : MPI_Wait(&r, MPI_STATUS_IGNORE);
	}
}

int main(int argc, char **argv)
{
	char name[128];
	struct rlimit most;
	MPI_Offset bytes;
	test_start(&argc, &argv, MPI_THREAD_SINGLE);
	snprintf(name, sizeof name, "/tmp/test-file-limit-%d", (int)getpid());
	OK(MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD));
	CHECK_EQ(getrlimit(RLIMIT_FSIZE, &most), 0);
	if (most.rlim_max != RLIM_INFINITY && most.rlim_max < LIMIT)
		SKIP("the limit is lower already");
	most.rlim_cur = LIMIT;
	CHECK_EQ(setrlimit(RLIMIT_FSIZE, &most), 0);
	memset(out, 'a' + rank, sizeof out);
	OK(MPI_File_open(MPI_COMM_WORLD, name,
			 MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
			 &f));
	for (int how = 0; how < 16; how++) {
		place(how & 4, how & 8);
		FAILS(write_part(how & 3), MPI_ERR_NO_SPACE);
		test_barrier();
	}
	FAILS(MPI_File_set_size(f, LIMIT + 1), MPI_ERR_NO_SPACE);
	FAILS(MPI_File_preallocate(f, LIMIT + 1), MPI_ERR_NO_SPACE);
	OK(MPI_File_get_size(f, &bytes));
	CHECK(bytes <= LIMIT);
	OK(MPI_File_set_size(f, LIMIT));
	/* All up to the limit. */
	OK(MPI_File_set_view(f, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
	OK(MPI_File_write_at_all(f, LIMIT - PART, out, rank ? 0 : PART, MPI_BYTE,
				 MPI_STATUS_IGNORE));
	OK(MPI_File_sync(f));
	test_barrier();
	OK(MPI_File_read_at(f, LIMIT - PART, in, PART, MPI_BYTE, MPI_STATUS_IGNORE));
	for (int i = 0; i < PART; i++)
		CHECK_EQ(in[i], 'a');
	OK(MPI_File_close(&f));
	return test_end();
}
