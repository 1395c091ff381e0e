/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * comm_id.c - ids for communicators.
 *
 * An id is (process that made it, counter): processes hand out ids without asking each other, from
 * any thread, and no two are the same.  A freed id rests until REST younger ones were freed, so
 * that members who are late with their own free do not meet its successor.
 */
#include "mpi/comm_int.h"

#include <stdlib.h>

#define ID_BITS 31 /* contexts are 2 id and 2 id + 1 in 32 bits */
#define REST 4096

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t base;  /* our process in the upper bits */
static uint32_t limit; /* of the counter */
static uint32_t next;  /* under lock: the first counter never used */
static uint32_t *rest; /* under lock: ring of freed ids, oldest at rest_at */
static uint32_t rest_at, rest_count, rest_cap;

void weft_mpi_ids_init(int rank, int size)
{
	int bits = 0;

	while (bits < ID_BITS - 8 && (1L << bits) < size)
		bits++;
	base = (uint32_t)rank << (ID_BITS - bits);
	limit = 1u << (ID_BITS - bits);
	/* The first two of process 0 are the predefined communicators; others skip them as well. */
	next = 2;
}

void weft_mpi_ids_fini(void)
{
	free(rest);
	rest = NULL;
	rest_at = rest_count = rest_cap = 0;
}

int weft_mpi_id_take(uint32_t *id_p)
{
	int err = MPI_SUCCESS;

	pthread_mutex_lock(&lock);
	if (rest_count > REST || (next == limit && rest_count)) {
		*id_p = rest[rest_at];
		rest_at = (rest_at + 1) % rest_cap;
		rest_count--;
	} else if (next < limit) {
		*id_p = base + next++;
	} else {
		err = weft_mpi_err(MPI_ERR_OTHER,
				   "out of communicator ids: %u communicators are alive", limit);
	}
	pthread_mutex_unlock(&lock);
	return err;
}

static bool grow_locked(void)
{
	uint32_t more = rest_cap ? 2 * rest_cap : 64;
	uint32_t *ring = malloc(more * sizeof(*ring));

	if (!ring)
		return false;
	for (uint32_t i = 0; i < rest_count; i++)
		ring[i] = rest[(rest_at + i) % rest_cap];
	free(rest);
	rest = ring;
	rest_at = 0;
	rest_cap = more;
	return true;
}

void weft_mpi_id_give(uint32_t id)
{
	pthread_mutex_lock(&lock);
	/* Without memory to remember it the id is not used again; nothing else is lost. */
	if (rest_count < rest_cap || grow_locked())
		rest[(rest_at + rest_count++) % rest_cap] = id;
	pthread_mutex_unlock(&lock);
}
