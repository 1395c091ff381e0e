/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * huge.c - messages beyond 2^31 bytes arrive whole: by a count that is large, and by an int count
 *of a large type.
 *
 *	huge shm|tcp    two ranks; 77 where memory is short
 */
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "../mpi/mpitest.h"

#define BLOCK (1 << 20)
#define BLOCKS 2049
#define BYTES ((size_t)BLOCK * BLOCKS)
#define ODD (BYTES - 5)

static uint64_t *buf;

static uint64_t word(size_t i, uint64_t seed)
{
	return (i + seed) * 0x9e3779b97f4a7c15u;
}

static void fill(uint64_t seed)
{
	for (size_t i = 0; i < BYTES / 8; i++)
		buf[i] = word(i, seed);
}

/* The first n bytes; what follows is as it was. */
static void check(size_t n, uint64_t seed)
{
	for (size_t i = 0; i < n / 8; i++)
		CHECK(buf[i] == word(i, seed));
	for (size_t i = n / 8 * 8; i < BYTES; i++) {
		uint64_t w = word(i / 8, seed);
		CHECK(((unsigned char *)buf)[i] == (i < n ? ((unsigned char *)&w)[i % 8] : 0));
	}
}

int main(int argc, char **argv)
{
	MPI_Datatype block;
	MPI_Status st;
	MPI_Count n;

	if (argc > 1 && !strcmp(argv[1], "tcp"))
		setenv("WEFT_DRIVERS", "tcp,self", 1);
	test_start(&argc, &argv, MPI_THREAD_SINGLE);
	CHECK_EQ(size, 2);
	int enough = sysconf(_SC_AVPHYS_PAGES) / 1024 * sysconf(_SC_PAGESIZE) / 1024 > 6000;
	OK(MPI_Bcast(&enough, 1, MPI_INT, 0, MPI_COMM_WORLD));
	if (!enough) {
		test_end();
		SKIP("less than 6 GB of memory are free");
	}
	buf = calloc(BYTES, 1);
	CHECK(buf);
	OK(MPI_Type_contiguous(BLOCK, MPI_BYTE, &block));
	OK(MPI_Type_commit(&block));
	if (rank == 0) {
		fill(1);
		OK(MPI_Send_c(buf, (MPI_Count)ODD, MPI_BYTE, 1, 7, MPI_COMM_WORLD));
		fill(2);
		OK(MPI_Send(buf, BLOCKS, block, 1, 7, MPI_COMM_WORLD));
	} else {
		OK(MPI_Recv_c(buf, (MPI_Count)BYTES, MPI_BYTE, 0, 7, MPI_COMM_WORLD, &st));
		OK(MPI_Get_count_c(&st, MPI_BYTE, &n));
		CHECK_EQ(n, ODD);
		check(ODD, 1);
		OK(MPI_Recv(buf, BLOCKS, block, 0, 7, MPI_COMM_WORLD, &st));
		OK(MPI_Get_count_c(&st, block, &n));
		CHECK_EQ(n, BLOCKS);
		OK(MPI_Get_elements_c(&st, MPI_BYTE, &n));
		CHECK_EQ(n, BYTES);
		check(BYTES, 2);
	}
	OK(MPI_Type_free(&block));
	free(buf);
	return test_end();
}
