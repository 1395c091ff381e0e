/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * event.c - what does an event of MPI_T cost the message that it tells of?
 *
 * Unit      us, half of there and back of 8 bytes; ns per event: what the message takes longer, for each event that was told.
 * Bound     one call of a function and a copy of 40 bytes, some 10 ns.
 * Method    MPI_Send and MPI_Recv in turn, in blocks: without a tool, with one that listens to what is sent and received and
 *           only counts, told where it happens ("in place") or at the end of calls ("later"), and after it has left.  The
 *           four take turns, median of blocks.  A tool's messages take the longer way that a trace takes: that counts.
 */
#include "bench_mpi.h"

static long told;

static void count(MPI_T_event_instance event, MPI_T_event_registration r, MPI_T_cb_safety safety,
		  void *data)
{
	(void)event, (void)r, (void)safety, (void)data;
	told++;
}

static double pingpong(int n)
{
	char b[8] = {0};
	int other = !bench_rank;

	MPI_Barrier(MPI_COMM_WORLD);
	double begin = bench_now_us();
	for (int i = 0; i < n; i++) {
		if (bench_rank == 0)
			MPI_Send(b, 8, MPI_CHAR, other, 0, MPI_COMM_WORLD);
		MPI_Recv(b, 8, MPI_CHAR, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (bench_rank == 1)
			MPI_Send(b, 8, MPI_CHAR, other, 0, MPI_COMM_WORLD);
	}
	return (bench_now_us() - begin) / n / 2;
}

/* Registrations for the events of a message; -1: none. */
static void listen_to(int safety, MPI_T_event_registration r[2])
{
	static const char *const name[] = {"weft_send", "weft_arrive"};

	for (int i = 0; i < 2 && safety >= 0; i++) {
		int index;
		if (MPI_T_event_get_index(name[i], &index) ||
		    MPI_T_event_handle_alloc(index, NULL, MPI_INFO_NULL, &r[i]) ||
		    MPI_T_event_register_callback(r[i], (MPI_T_cb_safety)safety, MPI_INFO_NULL,
						  NULL, count)) {
			fprintf(stderr, "event: %s cannot be listened to\n", name[i]);
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
	}
}

static void leave(int safety, MPI_T_event_registration r[2])
{
	for (int i = 0; i < 2 && safety >= 0; i++)
		MPI_T_event_handle_free(r[i], NULL, NULL);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int safety;
	} cases[] = {{"no tool", -1},
		     {"in place", MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE},
		     {"later", MPI_T_CB_REQUIRE_NONE},
		     {"tool has left", -1}};
	enum { CASES = 4 };
	double us[CASES][BENCH_BLOCKS_MAX], events[CASES] = {0};
	int blocks, n, level;

	MPI_T_init_thread(MPI_THREAD_SINGLE, &level);
	bench_start(&argc, &argv, MPI_THREAD_SINGLE);
	if (bench_ranks != 2)
		MPI_Abort(MPI_COMM_WORLD, 1);
	blocks = bench_quick ? 9 : 31;
	n = bench_quick ? 3000 : 20000;
	pingpong(n);
	for (int b = 0; b < blocks; b++)
		for (int c = 0; c < CASES; c++) {
			MPI_T_event_registration r[2];
			listen_to(cases[c].safety, r);
			pingpong(n / 10);
			told = 0;
			us[c][b] = pingpong(n);
			events[c] = (double)told / n / 2;
			leave(cases[c].safety, r);
		}
	double off = bench_median(us[0], blocks);
	for (int c = 0; c < CASES && bench_rank == 0; c++) {
		double t = bench_median(us[c], blocks);
		bench_row(cases[c].name, "time", "us", t);
		/* Half of there and back: a send here and a receive there, and each tells its own. */
		if (cases[c].safety >= 0)
			bench_row(cases[c].name, "event", "ns", (t - off) * 1e3 / (2 * events[c]));
	}
	MPI_Finalize();
	MPI_T_finalize();
	return 0;
}
