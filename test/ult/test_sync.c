/* SPDX-License-Identifier: BSD-3-Clause */
/* Mutex, condition, semaphore, barrier, read-write lock, once, keys: between both kinds of threads.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <weft/ult.h>
#include "check.h"

#define ULTS 6
#define PLAIN 2
#define ALL (ULTS + PLAIN)
#define TURNS 200

#define NS_LONG 60000000000ull /* never reached */
#define NS_SHORT 200000ull

/* Runs fn in ULTS user-level threads and PLAIN plain ones at once. */
static void *ult_of(void *(*fn)(void *))
{
	weft_ult *t[ULTS];
	pthread_t p[PLAIN];
	for (long i = 0; i < ULTS; i++)
		CHECK_EQ(weft_ult_create(&t[i], NULL, fn, (void *)i), WEFT_OK);
	for (long i = 0; i < PLAIN; i++)
		CHECK_EQ(pthread_create(&p[i], NULL, fn, (void *)(ULTS + i)), 0);
	for (int i = 0; i < ULTS; i++)
		CHECK_EQ(weft_ult_join(t[i], NULL), WEFT_OK);
	for (int i = 0; i < PLAIN; i++)
		CHECK_EQ(pthread_join(p[i], NULL), 0);
	return NULL;
}

static weft_ult_mutex mutex = WEFT_ULT_MUTEX_INIT;
static weft_ult_cond cond = WEFT_ULT_COND_INIT;
static long counter, turn;

static void *counts(void *arg)
{
	for (int i = 0; i < TURNS; i++) {
		if (i % 3 == 0)
			CHECK_EQ(weft_ult_mutex_lock_for(&mutex, NS_LONG), WEFT_OK);
		else
			CHECK_EQ(weft_ult_mutex_lock(&mutex), WEFT_OK);
		long seen = counter;
		if (i % 7 == 0)
			weft_ult_yield();
		counter = seen + 1;
		CHECK_EQ(weft_ult_mutex_unlock(&mutex), WEFT_OK);
	}
	return NULL;
}

/* One after the other, by a condition. */
static void *in_turn(void *arg)
{
	for (int i = 0; i < TURNS / 10; i++) {
		CHECK_EQ(weft_ult_mutex_lock(&mutex), WEFT_OK);
		while (turn % ALL != (long)arg)
			CHECK_EQ(weft_ult_cond_wait_for(&cond, &mutex, NS_LONG), WEFT_OK);
		turn++;
		weft_ult_cond_broadcast(&cond);
		CHECK_EQ(weft_ult_mutex_unlock(&mutex), WEFT_OK);
	}
	return NULL;
}

static weft_ult_sem empty = WEFT_ULT_SEM_INIT(3), full = WEFT_ULT_SEM_INIT(0);
static _Atomic long x_made, x_taken;

static void *produces_and_takes(void *arg)
{
	for (int i = 0; i < TURNS; i++) {
		if ((long)arg % 2) {
			CHECK_EQ(weft_ult_sem_wait(&empty), WEFT_OK);
			atomic_fetch_add(&x_made, 1);
			weft_ult_sem_post(&full);
		} else {
			CHECK_EQ(weft_ult_sem_wait_for(&full, NS_LONG), WEFT_OK);
			CHECK(atomic_fetch_add(&x_taken, 1) < atomic_load(&x_made));
			weft_ult_sem_post(&empty);
		}
	}
	return NULL;
}

static weft_ult_barrier barrier = WEFT_ULT_BARRIER_INIT(ALL);
static _Atomic long x_arrived, x_lasts;

static void *meets(void *arg)
{
	for (long i = 0; i < TURNS / 4; i++) {
		bool last;
		atomic_fetch_add(&x_arrived, 1);
		CHECK_EQ(weft_ult_barrier_wait(&barrier, &last), WEFT_OK);
		CHECK(atomic_load(&x_arrived) >= ALL * (i + 1));
		if (last)
			atomic_fetch_add(&x_lasts, 1);
	}
	return NULL;
}

static weft_ult_rwlock rw = WEFT_ULT_RWLOCK_INIT;
static long book[2];
static _Atomic int x_writers;

static void *reads_and_writes(void *arg)
{
	for (int i = 0; i < TURNS; i++) {
		if ((i + (long)arg) % 4 == 0) {
			CHECK_EQ(weft_ult_rwlock_write(&rw), WEFT_OK);
			CHECK_EQ(atomic_fetch_add(&x_writers, 1), 0);
			book[0]++;
			weft_ult_yield();
			book[1]++;
			CHECK_EQ(atomic_fetch_sub(&x_writers, 1), 1);
		} else {
			CHECK_EQ(weft_ult_rwlock_read_for(&rw, NS_LONG), WEFT_OK);
			CHECK_EQ(atomic_load(&x_writers), 0);
			CHECK_EQ(book[0], book[1]);
		}
		CHECK_EQ(weft_ult_rwlock_unlock(&rw), WEFT_OK);
	}
	return NULL;
}

static weft_ult_once once = WEFT_ULT_ONCE_INIT;
static int onces;

static void count_once(void)
{
	weft_ult_yield();
	onces++;
}

static void *runs_once(void *arg)
{
	CHECK_EQ(weft_ult_once_run(&once, count_once), WEFT_OK);
	CHECK_EQ(onces, 1);
	return NULL;
}

static weft_ult_key key;
static _Atomic long x_ended;

static void ends(void *value)
{
	atomic_fetch_add(&x_ended, (long)value);
}

static void *has_values(void *arg)
{
	CHECK(weft_ult_key_get(key) == NULL);
	CHECK_EQ(weft_ult_key_set(key, (void *)((long)arg + 1)), WEFT_OK);
	weft_ult_yield();
	CHECK_EQ((long)weft_ult_key_get(key), (long)arg + 1);
	return NULL;
}

/* Each timed form gives up, and leaves nothing behind. */
static void *gives_up(void *arg)
{
	weft_ult_mutex m = WEFT_ULT_MUTEX_INIT;
	weft_ult_cond c = WEFT_ULT_COND_INIT;
	weft_ult_sem s = WEFT_ULT_SEM_INIT(0);
	CHECK_EQ(weft_ult_mutex_lock(&m), WEFT_OK);
	CHECK_EQ(weft_ult_cond_wait_for(&c, &m, NS_SHORT), WEFT_ERR_TIMEOUT);
	weft_ult_cond_signal(&c);
	CHECK_EQ(weft_ult_sem_wait_for(&s, NS_SHORT), WEFT_ERR_TIMEOUT);
	CHECK_EQ(weft_ult_sem_try(&s), WEFT_AGAIN);
	weft_ult_sem_post(&s);
	CHECK_EQ(weft_ult_sem_try(&s), WEFT_OK);
	CHECK_EQ(weft_ult_mutex_try(&m), WEFT_AGAIN);
	CHECK_EQ(weft_ult_mutex_lock(&m), WEFT_ERR_DEADLOCK);
	CHECK_EQ(weft_ult_mutex_unlock(&m), WEFT_OK);
	CHECK_EQ(weft_ult_mutex_unlock(&m), WEFT_ERR_STATE);
	return NULL;
}

static void *mutex_of_another(void *arg)
{
	weft_ult_mutex *m = arg;
	weft_ult_cond c = WEFT_ULT_COND_INIT;
	CHECK_EQ(weft_ult_cond_wait(&c, m), WEFT_ERR_STATE);
	CHECK_EQ(weft_ult_mutex_unlock(m), WEFT_ERR_STATE);
	CHECK_EQ(weft_ult_mutex_lock_for(m, NS_SHORT), WEFT_ERR_TIMEOUT);
	CHECK_EQ(weft_ult_rwlock_write_for(&rw, NS_SHORT), WEFT_ERR_TIMEOUT);
	return NULL;
}

static void others(void)
{
	weft_ult_mutex m = WEFT_ULT_MUTEX_INIT;
	weft_ult *t;
	CHECK_EQ(weft_ult_mutex_lock(&m), WEFT_OK);
	CHECK_EQ(weft_ult_rwlock_read(&rw), WEFT_OK);
	CHECK_EQ(weft_ult_create(&t, NULL, mutex_of_another, &m), WEFT_OK);
	CHECK_EQ(weft_ult_join(t, NULL), WEFT_OK);
	CHECK_EQ(weft_ult_mutex_unlock(&m), WEFT_OK);
	CHECK_EQ(weft_ult_rwlock_read(&rw), WEFT_OK); /* the writer that gave up left no trace */
	CHECK_EQ(weft_ult_rwlock_unlock(&rw), WEFT_OK);
	CHECK_EQ(weft_ult_rwlock_unlock(&rw), WEFT_OK);
	CHECK_EQ(weft_ult_rwlock_unlock(&rw), WEFT_ERR_STATE);
}

/* A waiter for a mutex is passed a bounded number of times, even by one that never lets it run. */
static weft_ult_mutex wanted = WEFT_ULT_MUTEX_INIT;
static bool waiter_had_it;

static void *wants(void *arg)
{
	CHECK_EQ(weft_ult_mutex_lock(&wanted), WEFT_OK);
	waiter_had_it = true;
	CHECK_EQ(weft_ult_mutex_unlock(&wanted), WEFT_OK);
	return NULL;
}

static void *keeps_coming(void *arg)
{
	struct weft_ult_attr a = WEFT_ULT_ATTR_INIT;
	weft_ult *t;
	int turns = 0;
	a.worker = 0;
	waiter_had_it = false;
	CHECK_EQ(weft_ult_mutex_lock(&wanted), WEFT_OK);
	CHECK_EQ(weft_ult_create(&t, &a, wants, NULL), WEFT_OK);
	weft_ult_yield(); /* the other one waits now */
	for (bool had = false; !had; turns++) {
		CHECK_EQ(weft_ult_mutex_unlock(&wanted), WEFT_OK);
		CHECK_EQ(weft_ult_mutex_lock(&wanted), WEFT_OK);
		had = waiter_had_it;
		CHECK(turns <= 64);
	}
	CHECK(turns > 1); /* it goes on while the other one is on its way */
	CHECK_EQ(weft_ult_mutex_unlock(&wanted), WEFT_OK);
	CHECK_EQ(weft_ult_join(t, NULL), WEFT_OK);
	return NULL;
}

static void bounded(void)
{
	struct weft_ult_attr a = WEFT_ULT_ATTR_INIT;
	weft_ult *t;
	a.worker = 0;
	CHECK_EQ(weft_ult_create(&t, &a, keeps_coming, NULL), WEFT_OK);
	CHECK_EQ(weft_ult_join(t, NULL), WEFT_OK);
}

int main(void)
{
	CHECK_EQ(weft_ult_key_create(&key, ends), WEFT_OK);
	for (int workers = 1; workers <= 2; workers++) {
		CHECK_EQ(weft_ult_start(workers), WEFT_OK);
		counter = 0;
		ult_of(counts);
		CHECK_EQ(counter, ALL * TURNS);
		turn = 0;
		ult_of(in_turn);
		CHECK_EQ(turn, ALL * TURNS / 10);
		ult_of(produces_and_takes);
		CHECK_EQ(atomic_load(&x_made), atomic_load(&x_taken));
		atomic_store(&x_arrived, 0);
		atomic_store(&x_lasts, 0);
		ult_of(meets);
		CHECK_EQ(atomic_load(&x_lasts), TURNS / 4);
		ult_of(reads_and_writes);
		CHECK_EQ(book[0], book[1]);
		ult_of(runs_once);
		atomic_store(&x_ended, 0);
		ult_of(has_values);
		CHECK_EQ(atomic_load(&x_ended), ALL * (ALL + 1) / 2);
		ult_of(gives_up);
		others();
		bounded();
		CHECK_EQ(weft_ult_stop(), WEFT_OK);
	}
	return 0;
}
