/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 2 */
/* Threads of a foreign runtime, all on one kernel thread, wait in MPI calls and block alone. */
#include <weft/hooks.h>
#include <weft/progress.h>

#include "mpitest.h"
#include "tiny.h"

enum { THREADS = 100, TURNS = 10, WORDS = 20000 };

static MPI_Comm comm[2];
static int ended;

static void talks(long me)
{
	int to = (rank + 1) % size, from = (rank + size - 1) % size, n = me % 10 ? 1 : WORDS;
	int *out = malloc(sizeof(*out) * (size_t)n), *in = malloc(sizeof(*in) * (size_t)n);
	MPI_Status st;

	CHECK(out && in);
	for (int turn = 0; turn < TURNS; turn++) {
		MPI_Request req[2];
		for (int i = 0; i < n; i++)
			out[i] = rank * 1000 + (int)me + turn;
		if (me % 2) {
			OK(MPI_Isend(out, n, MPI_INT, to, (int)me, MPI_COMM_WORLD, &req[0]));
			OK(MPI_Recv(in, n, MPI_INT, from, (int)me, MPI_COMM_WORLD, &st));
			OK(MPI_Wait(&req[0], &st));
		} else {
			OK(MPI_Irecv(in, n, MPI_INT, from, (int)me, MPI_COMM_WORLD, &req[0]));
			OK(MPI_Isend(out, n, MPI_INT, to, (int)me, MPI_COMM_WORLD, &req[1]));
			OK(MPI_Waitall(2, req, MPI_STATUSES_IGNORE));
		}
		CHECK_EQ(in[n - 1], from * 1000 + me + turn);
	}
	free(out);
	free(in);
	ended++;
}

static void reduces(long which)
{
	for (int turn = 0; turn < TURNS; turn++) {
		int sum = 0, mine = rank + turn;
		OK(MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm[which]));
		CHECK_EQ(sum, size * turn + size * (size - 1) / 2);
	}
	ended++;
}

static void all_of_it(void)
{
	ended = 0;
	for (long i = 0; i < 2; i++)
		tiny_start(reduces, i);
	for (long i = 0; i < THREADS; i++)
		tiny_start(talks, i);
	tiny_run();
	CHECK_EQ(ended, THREADS + 2);
	OK(MPI_Barrier(MPI_COMM_WORLD));
}

int main(int argc, char **argv)
{
	int got;

	OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &got));
	OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
	OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
	for (int i = 0; i < 2; i++)
		OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm[i]));
	CHECK_EQ(weft_plugin_set(&tiny_plugin), WEFT_OK);
	all_of_it(); /* the background sees to the messages */
	CHECK_EQ(tiny_unparks, tiny_parks);
	CHECK(tiny_parks > 0 || size == 1);
	tiny_idle = weft_hook_idle;
	all_of_it(); /* the runtime's idle loop does */
	weft_progress_set(false);
	all_of_it(); /* no thread but these */
	weft_progress_set(true);
	CHECK_EQ(weft_plugin_set(NULL), WEFT_OK);
	for (int i = 0; i < 2; i++)
		OK(MPI_Comm_free(&comm[i]));
	OK(MPI_Finalize());
	return 0;
}
