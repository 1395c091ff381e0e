/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ult_sync.h - what threads wait for each other with: mutex, condition, semaphore, barrier,
 * read-write lock, once, keys.  Included by <weft/ult.h>.
 *
 * Callers   user-level and plain threads alike, mixed as you like; no signal handler.  A user-level
 *           thread blocks alone, a plain one as plain threads do.
 * Owner     the memory is yours; it moves nowhere while in use.  All zero bytes, or the macro, is
 *           an object ready for use (a barrier needs its count).
 * Order     what was written before unlock, signal, post is visible to the thread that gets
 *           through.
 * Fairness  first come, first served.  An unlock wakes the mutex's first waiter; until that thread
 *           runs, another may take the mutex, at most 64 times: then it is handed over.
 * Timed     _for: relative nanoseconds; WEFT_ERR_TIMEOUT.
 * Errors    WEFT_ERR_STATE: not the owner.  WEFT_ERR_DEADLOCK: it is yours already.
 *           WEFT_ERR_NOMEM: no memory to wait with.
 */
#ifndef WEFT_ULT_SYNC_H
#define WEFT_ULT_SYNC_H

#include <weft/ult_api.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Not to be touched from outside. */
struct weft_ult_waiters {
	uint32_t lock, count;
	void *first, *last;
};

typedef struct weft_ult_mutex {
	uintptr_t owner;
	struct weft_ult_waiters waiters;
} weft_ult_mutex;

typedef struct weft_ult_cond {
	struct weft_ult_waiters waiters;
} weft_ult_cond;

typedef struct weft_ult_sem {
	uint64_t count;
	struct weft_ult_waiters waiters;
} weft_ult_sem;

typedef struct weft_ult_barrier {
	uint32_t need, here;
	struct weft_ult_waiters waiters;
} weft_ult_barrier;

typedef struct weft_ult_rwlock {
	uintptr_t writer;
	uint64_t readers;
	struct weft_ult_waiters waiters;
} weft_ult_rwlock;

typedef struct weft_ult_once {
	uint32_t state;
	struct weft_ult_waiters waiters;
} weft_ult_once;

/* clang-format off */
#define WEFT_ULT_WAITERS_INIT {0, 0, NULL, NULL}
#define WEFT_ULT_MUTEX_INIT {0, WEFT_ULT_WAITERS_INIT}
#define WEFT_ULT_COND_INIT {WEFT_ULT_WAITERS_INIT}
#define WEFT_ULT_SEM_INIT(n) {(n), WEFT_ULT_WAITERS_INIT}
#define WEFT_ULT_BARRIER_INIT(n) {(n), 0, WEFT_ULT_WAITERS_INIT}
#define WEFT_ULT_RWLOCK_INIT {0, 0, WEFT_ULT_WAITERS_INIT}
#define WEFT_ULT_ONCE_INIT {0, WEFT_ULT_WAITERS_INIT}
/* clang-format on */

WEFT_ULT_API weft_err weft_ult_mutex_lock(weft_ult_mutex *m);
WEFT_ULT_API weft_err weft_ult_mutex_lock_for(weft_ult_mutex *m, uint64_t ns);
WEFT_ULT_API weft_err weft_ult_mutex_try(weft_ult_mutex *m); /* WEFT_AGAIN: taken */
WEFT_ULT_API weft_err weft_ult_mutex_unlock(weft_ult_mutex *m);

/* m is the caller's; it is when they return, too.  Never for no reason. */
WEFT_ULT_API weft_err weft_ult_cond_wait(weft_ult_cond *c, weft_ult_mutex *m);
WEFT_ULT_API weft_err weft_ult_cond_wait_for(weft_ult_cond *c, weft_ult_mutex *m, uint64_t ns);
WEFT_ULT_API void weft_ult_cond_signal(weft_ult_cond *c);
WEFT_ULT_API void weft_ult_cond_broadcast(weft_ult_cond *c);

WEFT_ULT_API weft_err weft_ult_sem_wait(weft_ult_sem *s);
WEFT_ULT_API weft_err weft_ult_sem_wait_for(weft_ult_sem *s, uint64_t ns);
WEFT_ULT_API weft_err weft_ult_sem_try(weft_ult_sem *s); /* WEFT_AGAIN: none left */
WEFT_ULT_API void weft_ult_sem_post(weft_ult_sem *s);

/* *last_p, if not NULL: true for the thread that completed the barrier.  It is ready for the next
 * round at once. */
WEFT_ULT_API weft_err weft_ult_barrier_wait(weft_ult_barrier *b, bool *last_p);

WEFT_ULT_API weft_err weft_ult_rwlock_read(weft_ult_rwlock *l);
WEFT_ULT_API weft_err weft_ult_rwlock_read_for(weft_ult_rwlock *l, uint64_t ns);
WEFT_ULT_API weft_err weft_ult_rwlock_write(weft_ult_rwlock *l);
WEFT_ULT_API weft_err weft_ult_rwlock_write_for(weft_ult_rwlock *l, uint64_t ns);
WEFT_ULT_API weft_err weft_ult_rwlock_unlock(weft_ult_rwlock *l);

/* fn runs once; a thread that comes meanwhile waits for its end. */
WEFT_ULT_API weft_err weft_ult_once_run(weft_ult_once *o, void (*fn)(void));

/* A value of each thread's own.  end, if not NULL, gets the value of a thread that ends with one.
 * WEFT_ERR_LIMIT: 64 keys are there already. */
typedef int weft_ult_key;
WEFT_ULT_API weft_err weft_ult_key_create(weft_ult_key *key_p, void (*end)(void *value));
WEFT_ULT_API weft_err weft_ult_key_set(weft_ult_key key, void *value);
WEFT_ULT_API void *weft_ult_key_get(weft_ult_key key);

#ifdef __cplusplus
}
#endif
#endif
