/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * continue.c - how soon does a continuation's callback run once its operation is complete?
 *
 * Unit      ns from the completion to the callback's first line on the same core; us from MPI_Send to the callback in a rank
 *           that computes, and beside it to the return of MPI_Recv in a rank that waits.
 * Bound     same core: a call of a function; from the background: waking a thread (4 to 5 us on a core that computes) and
 *           the message itself.
 *           The row "wake-up beside a computation" is that bound here and now: a thread of the receiving rank sleeps in a
 *           futex, with the short slice that weft's threads ask for, and the sender wakes it by the kernel alone.
 * Method    Same core: generalized requests, each completed by the thread itself; the callback runs in the call that completes
 *           it.  Two looks at the clock are taken off.  Background: the sender writes the clock into its message;
 *           the receiver makes no MPI call until the callback has run.  Medians.
 */
#include "bench_mpi.h"
#include <mpi-ext.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { MANY = 4000 };

static double ran_us;
static _Atomic int x_ran;

static int arrived(int rc, void *data)
{
	(void)rc, (void)data;
	ran_us = bench_now_us();
	/* Carries: ran_us. */
	atomic_store_explicit(&x_ran, 1, memory_order_release);
	return MPI_SUCCESS;
}

static int query(void *extra, MPI_Status *status)
{
	(void)extra;
	MPI_Status_set_elements(status, MPI_BYTE, 0);
	MPI_Status_set_cancelled(status, 0);
	return MPI_SUCCESS;
}

static int done(void *extra)
{
	(void)extra;
	return MPI_SUCCESS;
}

static int cancel(void *extra, int complete)
{
	(void)extra, (void)complete;
	return MPI_SUCCESS;
}

/* Sorts. */
static double median_of(double *v, int n)
{
	qsort(v, (size_t)n, sizeof *v, bench_compare);
	return v[n / 2];
}

static void same_core(MPI_Request cont, int n)
{
	static double ns[MANY], look[MANY];

	for (int i = -100; i < n; i++) {
		MPI_Request r, handle;
		MPI_Grequest_start(query, done, cancel, NULL, &r);
		handle = r;
		MPI_Start(&cont);
		MPIX_Continue(&r, arrived, NULL, 0, MPI_STATUS_IGNORE, cont);
		double begin = bench_now_us();
		MPI_Grequest_complete(handle);
		MPI_Wait(&cont, MPI_STATUS_IGNORE);
		double a = bench_now_us(), b = bench_now_us();
		if (i < 0)
			continue;
		ns[i] = (ran_us - begin) * 1e3;
		look[i] = (b - a) * 1e3;
	}
	bench_row("same core", "own delay", "ns", median_of(ns, n) - median_of(look, n));
}

static void rest(double us)
{
	for (double end = bench_now_us() + us; bench_now_us() < end;)
		;
}

/* Rank 0 sends the time; cont: to a callback beside a computation, else to a receive that waits. */
static void background(MPI_Request *cont, int n)
{
	static double us[MANY];
	double sent;

	for (int i = -20; i < n; i++) {
		MPI_Request r;
		if (bench_rank == 1 && cont) {
			atomic_store_explicit(&x_ran, 0, memory_order_relaxed);
			MPI_Irecv(&sent, 1, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD, &r);
			MPI_Start(cont);
			MPIX_Continue(&r, arrived, NULL, 0, MPI_STATUS_IGNORE, *cont);
		}
		MPI_Barrier(MPI_COMM_WORLD);
		if (bench_rank == 0) {
			rest(300);
			sent = bench_now_us();
			MPI_Send(&sent, 1, MPI_DOUBLE, 1, 1, MPI_COMM_WORLD);
			continue;
		}
		if (cont) {
			/* Ends with the callback. */
			while (!atomic_load_explicit(&x_ran, memory_order_acquire))
				bench_compute(100);
			MPI_Wait(cont, MPI_STATUS_IGNORE);
		} else {
			MPI_Recv(&sent, 1, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			ran_us = bench_now_us();
		}
		if (i >= 0)
			us[i] = ran_us - sent;
	}
	double t = bench_rank ? median_of(us, n) : 0;
	MPI_Bcast(&t, 1, MPI_DOUBLE, 1, MPI_COMM_WORLD);
	if (bench_rank == 0)
		bench_row(cont ? "callback beside a computation" : "MPI_Recv", "delay", "us", t);
}

/* ---- what the kernel takes ---------------------------------------------------------------- */

struct mailbox {
	_Atomic uint32_t x_word; /* sender adds; the sleeper waits for it to change */
	double sent;
};

static int floor_rounds;

static void *sleep_in_kernel(void *arg)
{
	struct mailbox *box = arg;

	bench_ask_short_slice();
	for (uint32_t seen = 0; seen < (uint32_t)floor_rounds;) { /* ends: so many messages */
		(void)syscall(SYS_futex, &box->x_word, FUTEX_WAIT, seen, NULL, NULL, 0);
		uint32_t now = atomic_load_explicit(&box->x_word, memory_order_acquire);
		if (now == seen)
			continue;
		seen = now;
		arrived(0, NULL);
	}
	return NULL;
}

/* As background(), without a message: the sender's store, FUTEX_WAKE, the sleeper's first line. */
static void kernel_floor(int n)
{
	static double us[MANY];
	struct mailbox *box;
	pthread_t sleeper;
	MPI_Aint bytes;
	MPI_Win win;
	int unit;

	MPI_Win_allocate_shared(bench_rank ? 0 : 4096, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &box,
				&win);
	MPI_Win_shared_query(win, 0, &bytes, &unit, &box);
	if (bench_rank == 0)
		atomic_store_explicit(&box->x_word, 0, memory_order_relaxed);
	floor_rounds = n;
	MPI_Barrier(MPI_COMM_WORLD);
	if (bench_rank == 1 && pthread_create(&sleeper, NULL, sleep_in_kernel, box))
		MPI_Abort(MPI_COMM_WORLD, 1);
	for (int i = 0; i < n; i++) {
		if (bench_rank == 1)
			atomic_store_explicit(&x_ran, 0, memory_order_relaxed);
		MPI_Barrier(MPI_COMM_WORLD);
		if (bench_rank == 0) {
			rest(300);
			box->sent = bench_now_us();
			atomic_fetch_add_explicit(&box->x_word, 1, memory_order_release);
			(void)syscall(SYS_futex, &box->x_word, FUTEX_WAKE, 1, NULL, NULL, 0);
			continue;
		}
		/* Ends with the wake-up. */
		while (!atomic_load_explicit(&x_ran, memory_order_acquire))
			bench_compute(100);
		us[i] = ran_us - box->sent;
	}
	if (bench_rank == 1)
		pthread_join(sleeper, NULL);
	double t = bench_rank ? median_of(us, n) : 0;
	MPI_Bcast(&t, 1, MPI_DOUBLE, 1, MPI_COMM_WORLD);
	MPI_Win_free(&win);
	if (bench_rank == 0)
		bench_row("wake-up beside a computation", "delay", "us", t);
}

int main(int argc, char **argv)
{
	MPI_Request here, any;
	MPI_Info info;

	bench_start(&argc, &argv, MPI_THREAD_MULTIPLE);
	if (bench_ranks != 2)
		MPI_Abort(MPI_COMM_WORLD, 1);
	MPI_Info_create(&info);
	MPI_Info_set(info, "mpi_continue_thread", "all");
	MPIX_Continue_init(0, 0, MPI_INFO_NULL, &here);
	MPIX_Continue_init(0, 0, info, &any);
	MPI_Info_free(&info);
	if (bench_rank == 0)
		same_core(here, bench_quick ? 500 : MANY);
	background(NULL, bench_quick ? 100 : 1000);
	kernel_floor(bench_quick ? 100 : 1000);
	background(&any, bench_quick ? 100 : 1000);
	MPI_Request_free(&here);
	MPI_Request_free(&any);
	MPI_Finalize();
	return 0;
}
