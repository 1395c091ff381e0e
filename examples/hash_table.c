/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hash_table.c - a hash table that lies in the memory of all ranks: each inserts and looks up words of its own
 * choice, and no rank takes part in another one's accesses.
 *
 *   mpicc -O2 examples/hash_table.c -o hash_table && mpiexec -n 4 ./hash_table [KEYS]
 *
 * A place is a key and a value.  An insertion takes a place by compare-and-swap of its key from 0, then adds to
 * the value; when another key lies there, the next place is tried.  A key is never taken out.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static MPI_Win table;
static long places; /* of each rank */
static int rank, ranks;

static unsigned long hash(long key)
{
	unsigned long h = (unsigned long)key * 0x9e3779b97f4a7c15u;
	return h ^ h >> 29;
}

/* Where the i-th try for a key is. */
static void place_of(long key, long i, int *owner, MPI_Aint *at)
{
	unsigned long place = (hash(key) + (unsigned long)i) % (unsigned long)(places * ranks);
	*owner = (int)(place / (unsigned long)places);
	*at = (MPI_Aint)(place % (unsigned long)places) * 2;
}

/* Adds to the value of a key, which is not 0; inserts it if it is new. */
static void add(long key, long value)
{
	long none = 0, was;
	int owner;
	MPI_Aint at;
	for (long i = 0; i < places * ranks; i++) {
		place_of(key, i, &owner, &at);
		MPI_Compare_and_swap(&key, &none, &was, MPI_LONG, owner, at, table);
		MPI_Win_flush(owner, table);
		if (was != 0 && was != key)
			continue;
		MPI_Accumulate(&value, 1, MPI_LONG, owner, at + 1, 1, MPI_LONG, MPI_SUM, table);
		return;
	}
	fprintf(stderr, "the table is full\n");
	MPI_Abort(MPI_COMM_WORLD, 1);
}

/* The value of a key, 0 if it is not there. */
static long look_up(long key)
{
	long found[2];
	int owner;
	MPI_Aint at;
	for (long i = 0; i < places * ranks; i++) {
		place_of(key, i, &owner, &at);
		MPI_Get(found, 2, MPI_LONG, owner, at, 2, MPI_LONG, table);
		MPI_Win_flush(owner, table);
		if (found[0] == key)
			return found[1];
		if (found[0] == 0)
			return 0;
	}
	return 0;
}

int main(int argc, char **argv)
{
	long *mine, keys = argc > 1 ? atol(argv[1]) : 1000, wrong = 0, all_wrong;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	places = 2 * keys / ranks + 1;
	MPI_Win_allocate(places * 2 * (MPI_Aint)sizeof(long), sizeof(long), MPI_INFO_NULL,
			 MPI_COMM_WORLD, &mine, &table);
	MPI_Win_lock_all(0, table);
	for (long i = 0; i < places * 2; i++)
		mine[i] = 0;
	MPI_Win_sync(table);
	MPI_Barrier(MPI_COMM_WORLD);

	/* All ranks add to the same keys, each beginning elsewhere. */
	double begin = MPI_Wtime();
	for (long i = 0; i < keys; i++)
		add((i + rank * keys / ranks) % keys + 1, rank + 1);
	MPI_Win_flush_all(table);
	MPI_Barrier(MPI_COMM_WORLD);
	double middle = MPI_Wtime();
	for (long key = 1; key <= keys; key++)
		wrong += look_up(key) != ranks * (ranks + 1L) / 2;
	wrong += look_up(keys + 1) != 0;
	double end = MPI_Wtime();
	MPI_Win_unlock_all(table);

	MPI_Allreduce(&wrong, &all_wrong, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
	if (rank == 0)
		printf("%ld keys in %d ranks: %.2f us per addition, %.2f us per look-up, %ld "
		       "wrong\n",
		       keys, ranks, (middle - begin) * 1e6 / (double)keys,
		       (end - middle) * 1e6 / (double)keys, all_wrong);
	MPI_Win_free(&table);
	MPI_Finalize();
	return all_wrong != 0;
}
