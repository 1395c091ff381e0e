/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 2 4 */
/*
 * Puts that notify: data of every size are there when the count is, in order behind earlier puts and
 * accumulates; the waiting rank sleeps; threads and user-level threads wait; and how each target is reached is
 * said as it is.
 */
#include <mpi-ext.h>
#include "mpitest.h"
#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>
#include <weft/ult.h>

enum { ELEMENTS = 40000, ROUNDS = 200, WAITERS = 4 };

static MPI_Win win;
static long *mine;
static int to, from;

static void sizes_of_data(void)
{
	static const int n[] = {0, 1, 200, 1000, 3000, ELEMENTS};
	static long data[ELEMENTS];
	MPI_Datatype odd;
	OK(MPI_Win_lock_all(0, win));
	for (int s = 0; s < 6; s++) {
		for (int i = 0; i < n[s]; i++)
			data[i] = rank * 1000000L + s * 100000 + i;
		OK(MPIX_Put_notify(data, n[s], MPI_LONG, to, 0, n[s], MPI_LONG, s, win));
		OK(MPIX_Win_notify_wait(win, s, 1, from));
		for (int i = 0; i < n[s]; i++)
			CHECK_EQ(mine[i], from * 1000000L + s * 100000 + i);
		OK(MPI_Win_flush(to, win));
		test_barrier();
	}
	/* With holes on the target's side. */
	OK(MPI_Type_vector(3000, 1, 3, MPI_LONG, &odd));
	OK(MPI_Type_commit(&odd));
	for (int i = 0; i < 9000; i++)
		mine[i] = -1;
	test_barrier();
	OK(MPIX_Put_notify(data, 3000, MPI_LONG, to, 0, 1, odd, 63, win));
	OK(MPIX_Win_notify_wait(win, 63, 1, MPI_ANY_SOURCE));
	for (int i = 0; i < 8998; i++)
		CHECK_EQ(mine[i], i % 3 ? -1 : from * 1000000L + 500000 + i / 3);
	OK(MPI_Type_free(&odd));
	OK(MPI_Win_unlock_all(win));
	test_barrier();
}

/* Behind a large put and an accumulate that nothing has flushed. */
static void order(void)
{
	static long data[ELEMENTS];
	long one = 1;
	mine[ELEMENTS - 1] = 0;
	test_barrier();
	OK(MPI_Win_lock_all(MPI_MODE_NOCHECK, win));
	for (long i = 1; i <= ROUNDS; i++) {
		for (int k = 0; k < ELEMENTS - 1; k += 999)
			data[k] = i;
		OK(MPI_Put(data, ELEMENTS - 1, MPI_LONG, to, 0, ELEMENTS - 1, MPI_LONG, win));
		OK(MPI_Accumulate(&one, 1, MPI_LONG, to, ELEMENTS - 1, 1, MPI_LONG, MPI_SUM, win));
		OK(MPIX_Put_notify(NULL, 0, MPI_LONG, to, 0, 0, MPI_LONG, 1, win));
		OK(MPIX_Win_notify_wait(win, 1, 1, from));
		for (int k = 0; k < ELEMENTS - 1; k += 999)
			CHECK_EQ(mine[k], i);
		CHECK_EQ(mine[ELEMENTS - 1], i);
		OK(MPI_Win_flush_local(to, win));
		/* The rank before may go on. */
		OK(MPIX_Put_notify(NULL, 0, MPI_LONG, from, 0, 0, MPI_LONG, 2, win));
		OK(MPIX_Win_notify_wait(win, 2, 1, to));
	}
	OK(MPI_Win_unlock_all(win));
	test_barrier();
}

static double cpu(void)
{
	struct rusage u;
	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static void *waiter(void *arg)
{
	(void)arg;
	for (int i = 0; i < ROUNDS / 4; i++)
		OK(MPIX_Win_notify_wait(win, 9, 1, MPI_ANY_SOURCE));
	return NULL;
}

static void notify_waiters(void)
{
	OK(MPI_Win_lock(MPI_LOCK_SHARED, to, 0, win));
	for (int i = 0; i < WAITERS * ROUNDS / 4; i++)
		OK(MPIX_Put_notify(&i, 1, MPI_INT, to, 0, 1, MPI_INT, 9, win));
	OK(MPI_Win_unlock(to, win));
}

static void threads(void)
{
	pthread_t t[WAITERS];
	for (int i = 0; i < WAITERS; i++)
		CHECK(!pthread_create(&t[i], NULL, waiter, NULL));
	notify_waiters();
	for (int i = 0; i < WAITERS; i++)
		pthread_join(t[i], NULL);
	test_barrier();
}

static void ults(void)
{
	weft_ult *u[WAITERS];
	for (int i = 0; i < WAITERS; i++)
		CHECK(!weft_ult_create(&u[i], NULL, waiter, NULL));
	notify_waiters();
	for (int i = 0; i < WAITERS; i++)
		CHECK(!weft_ult_join(u[i], NULL));
	test_barrier();
}

/* Rank 0 waits while its peers sleep. */
static void asleep(void)
{
	test_barrier();
	if (rank == 0) {
		double began = cpu();
		OK(MPIX_Win_notify_wait(win, 3, size > 1 ? size - 1 : 0, MPI_ANY_SOURCE));
		CHECK(cpu() - began < 0.1);
	} else {
		usleep(300000);
		OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
		OK(MPIX_Put_notify(NULL, 0, MPI_LONG, 0, 0, 0, MPI_LONG, 3, win));
		OK(MPI_Win_unlock(0, win));
	}
	test_barrier();
}

static void refused(void)
{
	int flag = 7;
	long one = 1;
	OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
	FAILS(MPIX_Put_notify(&one, 1, MPI_LONG, to, 0, 1, MPI_LONG, 0, win), MPI_ERR_RMA_SYNC);
	OK(MPI_Win_lock(MPI_LOCK_SHARED, to, 0, win));
	FAILS(MPIX_Put_notify(&one, 1, MPI_LONG, to, 0, 1, MPI_LONG, 64, win), MPI_ERR_ARG);
	FAILS(MPIX_Put_notify(&one, 1, MPI_LONG, to, 0, 1, MPI_LONG, -1, win), MPI_ERR_ARG);
	FAILS(MPIX_Put_notify(&one, 1, MPI_LONG, to, ELEMENTS, 1, MPI_LONG, 0, win),
	      MPI_ERR_RMA_RANGE);
	FAILS(MPIX_Put_notify(&one, -1, MPI_LONG, to, 0, 1, MPI_LONG, 0, win), MPI_ERR_COUNT);
	FAILS(MPIX_Put_notify(&one, 1, MPI_DATATYPE_NULL, to, 0, 1, MPI_LONG, 0, win),
	      MPI_ERR_TYPE);
	OK(MPIX_Put_notify(&one, 1, MPI_LONG, MPI_PROC_NULL, 0, 1, MPI_LONG, 0, win));
	OK(MPI_Win_unlock(to, win));
	FAILS(MPIX_Win_notify_wait(win, 64, 1, to), MPI_ERR_ARG);
	FAILS(MPIX_Win_notify_wait(win, 0, 1, size), MPI_ERR_RANK);
	FAILS(MPIX_Win_notify_test(win, 0, -1, &flag), MPI_ERR_COUNT);
	test_barrier();
	OK(MPIX_Win_notify_test(win, 0, 1, &flag));
	CHECK(!flag);
	OK(MPI_Win_set_errhandler(win, MPI_ERRORS_ARE_FATAL));
}

static void paths(int own, int others, const char *progress)
{
	int *path, flag = 0;
	char text[MPI_MAX_INFO_VAL];
	int len = sizeof text;
	MPI_Info info;
	OK(MPI_Win_get_attr(win, MPIX_WIN_PATHS, &path, &flag));
	CHECK(flag);
	for (int r = 0; r < size; r++)
		CHECK_EQ(path[r], r == rank ? own : others);
	OK(MPI_Win_get_info(win, &info));
	OK(MPI_Info_get_string(info, "weft_target_progress", &len, text, &flag));
	CHECK(flag && !strcmp(text, progress));
	len = sizeof text;
	OK(MPI_Info_get_string(info, "weft_paths", &len, text, &flag));
	CHECK(flag && strchr(text, ':'));
	len = sizeof text;
	OK(MPI_Info_get_string(info, "weft_accumulate", &len, text, &flag));
	CHECK(flag && (!strcmp(text, "processor") || !strcmp(text, "lock")));
	OK(MPI_Info_free(&info));
}

static void all(void)
{
	sizes_of_data();
	order();
	threads();
	ults();
	asleep();
	refused();
}

int main(int argc, char **argv)
{
	test_start(&argc, &argv, MPI_THREAD_MULTIPLE);
	const char *narrowed = getenv("WEFT_RMA_PATH");
	bool load = !narrowed, engine = narrowed && !strcmp(narrowed, "owed");
	int copy = engine ? MPIX_WIN_PATH_ENGINE : MPIX_WIN_PATH_COPY;
	const char *progress = engine && size > 1 ? "engine" : "none";
	to = (rank + 1) % size;
	from = (rank + size - 1) % size;
	OK(MPI_Win_allocate(ELEMENTS * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD,
			    &mine, &win));
	paths(MPIX_WIN_PATH_LOAD, load ? MPIX_WIN_PATH_LOAD : copy, progress);
	all();
	OK(MPI_Win_free(&win));
	mine = calloc(ELEMENTS, sizeof(long));
	OK(MPI_Win_create(mine, ELEMENTS * sizeof(long), sizeof(long), MPI_INFO_NULL,
			  MPI_COMM_WORLD, &win));
	paths(MPIX_WIN_PATH_LOAD, copy, progress);
	all();
	OK(MPI_Win_free(&win));
	free(mine);
	return test_end();
}
