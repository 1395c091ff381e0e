/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rma_victim.c - rank 1 is killed at some step of what all ranks do with a window, in the way WHERE.
 *
 *	rma_victim WHERE created|allocated SEED DIR
 *
 * WHERE     exclusive, shared: locks of every rank in turn, and accesses under them; accumulate: large and
 *           small ones, locks around them; fence, pscw: such epochs; notify: puts that notify, all to all.
 * After a call has failed the survivors lock and change each other's
 * memory, which must work and lose no update; then they write DIR/ok.RANK.
 */
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <mpi-ext.h>
#include "../mpi/mpitest.h"

enum { LONGS = 4096, MINE = 64, AFTER = 100 };

static const char *where;
static long *base, big[LONGS], added[3]; /* what this rank has added to the first word of each */
static MPI_Win win;

static void *dies(void *arg)
{
	usleep(*(unsigned *)arg);
	kill(getpid(), SIGKILL);
	return NULL;
}

static void may_fail(int code, int *lost)
{
	if (code)
		FAILS(code, MPI_ERR_PROC_ABORTED);
	*lost |= code != MPI_SUCCESS;
}

/* Adds 1 to the word that is the survivors' or the victim's, as a lock must allow. */
static int count(int target, int exclusive)
{
	long was = 0, one = 1, at = rank == 1 ? 1 : 0;
	int code = MPI_Win_lock(exclusive ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, target, 0, win);

	if (code)
		return code;
	if (exclusive) {
		code = MPI_Get(&was, 1, MPI_LONG, target, at, 1, MPI_LONG, win);
		if (!code)
			code = MPI_Win_flush(target, win);
		was++;
		if (!code)
			code = MPI_Put(&was, 1, MPI_LONG, target, at, 1, MPI_LONG, win);
	} else {
		code = MPI_Accumulate(&one, 1, MPI_LONG, target, at, 1, MPI_LONG, MPI_SUM, win);
	}
	int late = MPI_Win_unlock(target, win);
	code = code ? code : late;
	added[target] += !code;
	return code;
}

static int accumulate(int target)
{
	long was, one = 1;
	int code = MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win);

	if (code)
		return code;
	code = MPI_Accumulate(big, LONGS - MINE, MPI_LONG, target, MINE, LONGS - MINE, MPI_LONG,
			      MPI_SUM, win);
	if (!code)
		code = MPI_Fetch_and_op(&one, &was, MPI_LONG, target, rank == 1, MPI_SUM, win);
	int late = MPI_Win_unlock(target, win);
	code = code ? code : late;
	added[target] += !code;
	return code;
}

static int pscw(MPI_Group all)
{
	long v = rank;
	int code = MPI_Win_post(all, 0, win);

	if (!code)
		code = MPI_Win_start(all, 0, win);
	for (int t = 0; !code && t < 3; t++)
		code = MPI_Put(&v, 1, MPI_LONG, t, 8 + rank, 1, MPI_LONG, win);
	if (!code)
		code = MPI_Win_complete(win);
	return code ? code : MPI_Win_wait(win);
}

static int fence(void)
{
	long v = rank;
	int code = MPI_Win_fence(0, win);

	for (int t = 0; !code && t < 3; t++)
		code = MPI_Put(&v, 1, MPI_LONG, t, 8 + rank, 1, MPI_LONG, win);
	return code ? code : MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
}

/* A wait ends when a member of the window dies, with an error. */
static int notify(void)
{
	long v = rank;
	int code = MPI_Win_lock_all(MPI_MODE_NOCHECK, win);

	for (int t = 0; !code && t < 3; t++)
		code = MPIX_Put_notify(&v, 1, MPI_LONG, t, 8 + rank, 1, MPI_LONG, rank, win);
	int late = code ? code : MPI_Win_unlock_all(win);
	for (int t = 0; !late && t < 3; t++)
		late = MPIX_Win_notify_wait(win, t, 1, MPI_ANY_SOURCE);
	return late;
}

static int turn(int i, MPI_Group all)
{
	if (!strcmp(where, "notify"))
		return notify();

	if (!strcmp(where, "exclusive") || !strcmp(where, "shared"))
		return count(i % 3, where[0] == 'e' || i % 4 == 0);
	if (!strcmp(where, "accumulate"))
		return accumulate(i % 3);
	return !strcmp(where, "fence") ? fence() : pscw(all);
}

static void go_on(void)
{
	int peer = 2 - rank;
	long all[3], total[3];

	FAILS(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win), MPI_ERR_PROC_ABORTED);
	for (int i = 0; i < AFTER; i++) {
		OK(count(0, i % 2));
		OK(count(2, i % 2));
	}
	OK(MPI_Sendrecv(added, 3, MPI_LONG, peer, 5, all, 3, MPI_LONG, peer, 5, MPI_COMM_WORLD,
			MPI_STATUS_IGNORE));
	for (int t = 0; t < 3; t++)
		total[t] = added[t] + all[t];
	OK(MPI_Win_lock(MPI_LOCK_SHARED, peer, 0, win));
	OK(MPI_Get(&all[0], 1, MPI_LONG, peer, 0, 1, MPI_LONG, win));
	OK(MPI_Win_unlock(peer, win));
	CHECK_EQ(all[0], total[peer]);
}

int main(int argc, char **argv)
{
	MPI_Group all;
	pthread_t t;
	char name[4096];
	unsigned us;
	int lost = 0;

	if (argc < 5)
		SKIP("run by test_rma.py");
	where = argv[1];
	int locks = strcmp(where, "fence") && strcmp(where, "pscw") && strcmp(where, "notify");
	test_start(&argc, &argv, MPI_THREAD_SERIALIZED);
	OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
	if (!strcmp(argv[2], "allocated")) {
		OK(MPI_Win_allocate(LONGS * 8, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
	} else {
		base = malloc(LONGS * 8);
		OK(MPI_Win_create(base, LONGS * 8, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
	}
	OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
	OK(MPI_Win_get_group(win, &all));
	memset(base, 0, LONGS * 8);
	test_barrier();
	snprintf(name, sizeof name, "%s/ready", argv[4]);
	if (rank == 1)
		fclose(fopen(name, "w"));
	snprintf(name, sizeof name, "%s/go", argv[4]);
	/* Ends when the driver says so; its own time limit bounds this. */
	while (access(name, F_OK))
		usleep(1000);
	us = 1000 + (unsigned)atoi(argv[3]) % 20000;
	if (rank == 1)
		CHECK_EQ(pthread_create(&t, NULL, dies, &us), 0);
	/* Ends when rank 1 is gone. */
	for (int i = rank; !lost; i++)
		may_fail(turn(i, all), &lost);
	if (rank == 1)
		pause();
	if (locks)
		go_on();
	snprintf(name, sizeof name, "%s/ok.%d", argv[4], rank);
	fclose(fopen(name, "w"));
	for (;;)
		pause(); /* the launcher ends us, because of rank 1 */
}
