/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 2 */
/* A thousand user-level threads with a bit of everything that a trace shows;
 * test/cmd/trace_check.py looks at theirs. */
#include <stdatomic.h>
#include <stdlib.h>
#include <weft/ult.h>
#include <weft/ult_sync.h>

#include "mpitest.h"

enum { MANY = 500, LARGE = 100000 };

static weft_ult_mutex mutex = WEFT_ULT_MUTEX_INIT;
static int inside;

/* Of each pair of threads with a tag, one on each rank: there and back, some of it large. */
static void *talks(void *arg)
{
	int tag = (int)(long)arg, other = 1 - rank, n = tag % 50 ? 4 : LARGE;
	char *data = malloc((size_t)n);

	CHECK(data != NULL);
	memset(data, tag, (size_t)n);
	if (rank == 0) {
		OK(MPI_Send(data, n, MPI_CHAR, other, tag, MPI_COMM_WORLD));
		OK(MPI_Recv(data, n, MPI_CHAR, other, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
	} else {
		OK(MPI_Recv(data, n, MPI_CHAR, other, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
		OK(MPI_Send(data, n, MPI_CHAR, other, tag, MPI_COMM_WORLD));
	}
	CHECK_EQ(data[n - 1], (char)tag);
	free(data);
	return NULL;
}

/* A mutex whose holder yields, a call that blocks, a little sleep. */
static void *stays(void *arg)
{
	long i = (long)arg;

	CHECK_EQ(weft_ult_mutex_lock(&mutex), WEFT_OK);
	inside++;
	weft_ult_yield();
	CHECK_EQ(weft_ult_mutex_unlock(&mutex), WEFT_OK);
	if (i % 100 == 0) {
		weft_ult_blocking_begin();
		weft_ult_blocking_end();
	}
	if (i % 10 == 0)
		weft_ult_sleep_ns(1000);
	return NULL;
}

/* To itself: found by a receive that waits, and before its receive. */
static void talks_to_itself(void)
{
	static char small = 7, got;
	static char large[2][LARGE];
	MPI_Request r;

	OK(MPI_Irecv(&got, 1, MPI_CHAR, rank, 7000, MPI_COMM_WORLD, &r));
	OK(MPI_Send(&small, 1, MPI_CHAR, rank, 7000, MPI_COMM_WORLD));
	OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
	CHECK_EQ(got, small);
	/* Not in MPI_COMM_WORLD: the other rank's threads may be sending already. */
	OK(MPI_Isend(large[0], LARGE, MPI_CHAR, 0, 7001, MPI_COMM_SELF, &r));
	OK(MPI_Recv(large[1], LARGE, MPI_CHAR, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF,
		    MPI_STATUS_IGNORE));
	OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
}

int main(int argc, char **argv)
{
	static weft_ult *t[2 * MANY];
	struct weft_ult_attr a = WEFT_ULT_ATTR_INIT;

	test_start(&argc, &argv, MPI_THREAD_MULTIPLE);
	if (size != 2)
		SKIP("for two ranks");
	talks_to_itself();
	a.name = "\"odd\\ \xff\n<n>";
	for (long i = 0; i < MANY; i++) {
		CHECK_EQ(weft_ult_create(&t[2 * i], i ? NULL : &a, talks, (void *)i), WEFT_OK);
		CHECK_EQ(weft_ult_create(&t[2 * i + 1], NULL, stays, (void *)i), WEFT_OK);
	}
	for (int i = 0; i < 2 * MANY; i++)
		CHECK_EQ(weft_ult_join(t[i], NULL), WEFT_OK);
	CHECK_EQ(inside, MANY);
	CHECK_EQ(weft_ult_stop(), WEFT_OK);
	return test_end();
}
