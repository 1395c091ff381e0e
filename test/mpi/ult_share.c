/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks of one host that are not bound share its cores: no two bind a worker to the same one.
 * ranks: 1 2 3 */
#include <sched.h>
#include <weft/ult.h>
#include "mpitest.h"

static cpu_set_t mine;

/* Where this worker may run. */
static void *looks(void *arg)
{
	(void)arg;
	CHECK(sched_getaffinity(0, sizeof(mine), &mine) == 0);
	return NULL;
}

int main(int argc, char **argv)
{
	int workers;
	cpu_set_t whole, set[16], *theirs = set;
	CHECK(sched_getaffinity(0, sizeof(whole), &whole) == 0);
	test_start(&argc, &argv, MPI_THREAD_MULTIPLE);
	CHECK(size <= 16);
	CHECK(weft_ult_start(0) == WEFT_OK);
	workers = weft_ult_workers();
	int cpus = CPU_COUNT(&whole), most = (cpus + size - 1) / size;
	CHECK(workers >= 1 && workers <= (most > 1 ? most : 1));
	CPU_ZERO(&mine);
	for (int w = 0; w < workers; w++) {
		struct weft_ult_attr a = WEFT_ULT_ATTR_INIT;
		weft_ult *t;
		cpu_set_t before = mine, both;
		a.worker = w;
		CHECK(weft_ult_create(&t, &a, looks, NULL) == WEFT_OK);
		CHECK(weft_ult_join(t, NULL) == WEFT_OK);
		if (size > cpus) {
			CHECK(CPU_EQUAL(&mine, &whole)); /* none is its own */
			continue;
		}
		CHECK(CPU_COUNT(&mine) == 1);
		CPU_AND(&both, &mine, &before);
		CHECK(CPU_COUNT(&both) == 0);
		CPU_OR(&mine, &mine, &before);
	}
	MPI_Allgather(&mine, sizeof(mine), MPI_BYTE, theirs, sizeof(mine), MPI_BYTE,
		      MPI_COMM_WORLD);
	for (int r = 0; r < size && size <= cpus; r++) {
		cpu_set_t both;
		CPU_AND(&both, &mine, &theirs[r]);
		CHECK(r == rank || CPU_COUNT(&both) == 0);
	}
	CHECK(weft_ult_stop() == WEFT_OK);
	return test_end();
}
