/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * either.h - user-level threads, or pthreads when a program is called with --pthreads: the same
 * program on both.
 */
#ifndef EITHER_H
#define EITHER_H

#include <mpi.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/ult.h>

static bool plain; /* --pthreads */
static bool rows;  /* --rows: print "case,metric,unit,value" */
static int rank, ranks;

static void fail(const char *what)
{
	fprintf(stderr, "rank %d: %s\n", rank, what);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static void *memory(size_t bytes)
{
	void *p = calloc(1, bytes ? bytes : 1);
	if (!p)
		fail("no memory");
	return p;
}

struct thread {
	weft_ult *ult;
	pthread_t plain;
};

static void thread_start(struct thread *t, void *(*fn)(void *), void *arg)
{
	if (plain) {
		pthread_attr_t attr;
		pthread_attr_init(&attr);
		pthread_attr_setstacksize(&attr, 256 << 10);
		if (pthread_create(&t->plain, &attr, fn, arg) != 0)
			fail("cannot start a pthread");
		pthread_attr_destroy(&attr);
	} else if (weft_ult_create(&t->ult, NULL, fn, arg) != WEFT_OK) {
		fail("cannot start a user-level thread");
	}
}

static void thread_end(struct thread *t)
{
	if (plain)
		pthread_join(t->plain, NULL);
	else if (weft_ult_join(t->ult, NULL) != WEFT_OK)
		fail("cannot join a user-level thread");
}

/* Lets others run; threads of the kernel do so unasked. */
static inline void thread_yield(void)
{
	if (!plain)
		weft_ult_yield();
}

struct lock {
	weft_ult_mutex ult;
	pthread_mutex_t plain;
};

struct event {
	weft_ult_cond ult;
	pthread_cond_t plain;
};

#define LOCK_INIT                                                                                  \
	{                                                                                          \
		WEFT_ULT_MUTEX_INIT, PTHREAD_MUTEX_INITIALIZER                                     \
	}
#define EVENT_INIT                                                                                 \
	{                                                                                          \
		WEFT_ULT_COND_INIT, PTHREAD_COND_INITIALIZER                                       \
	}

static inline void lock_take(struct lock *l)
{
	if (plain)
		pthread_mutex_lock(&l->plain);
	else if (weft_ult_mutex_lock(&l->ult) != WEFT_OK)
		fail("cannot lock");
}

static inline void lock_give(struct lock *l)
{
	if (plain)
		pthread_mutex_unlock(&l->plain);
	else if (weft_ult_mutex_unlock(&l->ult) != WEFT_OK)
		fail("cannot unlock");
}

static inline void event_wait(struct event *e, struct lock *l)
{
	if (plain)
		pthread_cond_wait(&e->plain, &l->plain);
	else if (weft_ult_cond_wait(&e->ult, &l->ult) != WEFT_OK)
		fail("cannot wait");
}

static inline void event_tell_one(struct event *e)
{
	if (plain)
		pthread_cond_signal(&e->plain);
	else
		weft_ult_cond_signal(&e->ult);
}

static inline void event_tell_all(struct event *e)
{
	if (plain)
		pthread_cond_broadcast(&e->plain);
	else
		weft_ult_cond_broadcast(&e->ult);
}

struct meeting {
	weft_ult_barrier ult;
	pthread_barrier_t plain;
};

static inline void meeting_init(struct meeting *m, unsigned n)
{
	m->ult = (weft_ult_barrier)WEFT_ULT_BARRIER_INIT(n);
	if (pthread_barrier_init(&m->plain, NULL, n) != 0)
		fail("cannot make a barrier");
}

/* True for one of them. */
static inline bool meeting_join(struct meeting *m)
{
	bool last = false;
	if (plain)
		return pthread_barrier_wait(&m->plain) == PTHREAD_BARRIER_SERIAL_THREAD;
	if (weft_ult_barrier_wait(&m->ult, &last) != WEFT_OK)
		fail("cannot wait for the others");
	return last;
}

/* Starts MPI, and the workers; the program's own options are numbers, read into *value. */
struct option {
	const char *name;
	long *value;
};

static void start(int *argc, char **argv, const struct option *options)
{
	int got;
	MPI_Init_thread(argc, &argv, MPI_THREAD_MULTIPLE, &got);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (got < MPI_THREAD_MULTIPLE)
		fail("this MPI does not let many threads call it");
	for (int i = 1; i < *argc; i++) {
		const struct option *o = options;
		while (o->name && strcmp(argv[i], o->name) != 0)
			o++;
		if (strcmp(argv[i], "--pthreads") == 0) {
			plain = true;
		} else if (strcmp(argv[i], "--rows") == 0) {
			rows = true;
		} else if (o->name && i + 1 < *argc && atol(argv[i + 1]) > 0) {
			*o->value = atol(argv[++i]);
		} else {
			if (rank == 0) {
				fprintf(stderr, "what is '%s'? options: --pthreads --rows",
					argv[i]);
				for (o = options; o->name; o++)
					fprintf(stderr, " %s N", o->name);
				fprintf(stderr, "\n");
			}
			MPI_Finalize();
			exit(2);
		}
	}
	if (!plain && weft_ult_start(0) != WEFT_OK)
		fail("cannot start the workers of user-level threads");
}

/* Rank 0 says it. */
static void result(const char *what, const char *metric, const char *unit, double value)
{
	if (rank != 0)
		return;
	if (rows)
		printf("%s,%s,%s,%.6g\n", what, metric, unit, value);
	else
		printf("%s on %s: %s %.6g %s\n", what, plain ? "pthreads" : "user-level threads",
		       metric, value, unit);
	fflush(stdout);
}

static int finish(void)
{
	MPI_Barrier(MPI_COMM_WORLD);
	if (!plain && weft_ult_stop() != WEFT_OK)
		fail("cannot stop the workers");
	MPI_Finalize();
	return 0;
}

#endif
