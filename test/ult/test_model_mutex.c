/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A mutex in every order, from the production header: no thread beside the owner is inside, none
 * sleeps for ever, the mutex may be freed by the last one, and a waiter called too often in vain
 * gets it handed over.
 */
#include "model/explore.h"
#define WEFT_MUTEX_LOOKS 0
#define WEFT_MUTEX_PASSES 2
/* The production sources, compiled against the explorer's atomics. */
#include "ult/sync/mutex.h"

static weft_ult_mutex mutex;
static struct weft_parker parker[3];
static int inside, given_up;

bool weft_ult_may_run_elsewhere(const struct weft_parker *p)
{
	return p != NULL;
}

struct weft_parker *weft_wait_parker_self(void)
{
	return &parker[mx.now];
}

static bool not_called(void *arg)
{
	uint32_t word;
	memcpy(&word, arg, sizeof word);
	return word == 0;
}

/* A sleep of which only this matters: a call is never lost, and carries what was written before. */
bool weft_wait_park(struct weft_parker *p, uint64_t deadline_ns)
{
	model_block(not_called, (void *)&p->x_word);
	(void)atomic_exchange_explicit(&p->x_word, 0, memory_order_acquire);
	return deadline_ns == WEFT_NEVER;
}

void weft_wait_unpark(struct weft_parker *p)
{
	atomic_store_explicit(&p->x_word, 1, memory_order_release);
}

weft_err weft_ult_waiters_sleep(struct weft_ult_waiters *q, struct weft_ult_node *n,
				uint64_t deadline_ns, const char *what, const void *object)
{
	(void)what, (void)object;
	while (!atomic_load_explicit(&n->x_go, memory_order_acquire)) { /* ends: called, late */
		if (deadline_ns == WEFT_NEVER) {
			(void)weft_wait_park(n->parker, deadline_ns);
			continue;
		}
		deadline_ns = WEFT_NEVER;
		weft_ult_waiters_lock(q);
		bool in = false;
		for (struct weft_ult_node *at = q->first; at && !in; at = at->next)
			in = at == n;
		if (in)
			weft_ult_waiters_remove_locked(q, n);
		weft_ult_waiters_unlock(q);
		if (in)
			return WEFT_ERR_TIMEOUT;
	}
	return WEFT_OK;
}

static void setup(void)
{
	memset(&mutex, 0, sizeof mutex);
	memset(parker, 0, sizeof parker);
	inside = given_up = 0;
}

static bool lock(uint64_t deadline_ns)
{
	struct weft_parker *self = weft_wait_parker_self();
	struct weft_ult_node n;
	if (weft_ult_mutex_take(&mutex, self))
		return true;
	MODEL_CHECK(weft_ult_waiters_node(&n, 0) == WEFT_OK);
	return weft_ult_mutex_wait(&mutex, &n, deadline_ns) == WEFT_OK;
}

static void work(void)
{
	model_write(&inside, model_read(&inside) + 1);
	MODEL_CHECK(weft_ult_mutex_release(&mutex, weft_wait_parker_self()) == WEFT_OK);
}

static void once(void)
{
	MODEL_CHECK(lock(WEFT_NEVER));
	work();
}

static void twice(void)
{
	once();
	once();
}

/* The second unlock goes past a waiter that was called, the third hands over. */
static void four_times(void)
{
	twice();
	twice();
}

static void in_time(void)
{
	if (lock(1))
		work();
	else
		given_up++;
}

/* The last of two ends the mutex's life: no thread may look at it from then on. */
static void and_free(void)
{
	bool last;
	MODEL_CHECK(lock(WEFT_NEVER));
	model_write(&inside, model_read(&inside) + 1);
	last = model_read(&inside) == 2;
	MODEL_CHECK(weft_ult_mutex_release(&mutex, weft_wait_parker_self()) == WEFT_OK);
	if (last)
		model_free(&mutex, sizeof mutex);
}

static void all_inside(void)
{
	MODEL_CHECK(inside + given_up == 3);
	MODEL_CHECK(mutex.owner == 0 || !weft_ult_mutex_owner(mutex.owner));
	MODEL_CHECK(!mutex.waiters.first);
}

static void all_five(void)
{
	MODEL_CHECK(inside == 5 && !mutex.waiters.first);
}

/* An unlock that forgets the queue when no waiter was called. */
static void forgets(void)
{
	MODEL_CHECK(lock(WEFT_NEVER));
	model_write(&inside, model_read(&inside) + 1);
	uintptr_t seen = atomic_load_explicit(WEFT_SHAREDPTR(mutex.owner), memory_order_relaxed);
	while (!atomic_compare_exchange_strong_explicit(WEFT_SHAREDPTR(mutex.owner), &seen,
							seen & WEFT_MUTEX_FLAGS,
							memory_order_release, memory_order_relaxed))
		;
}

int main(void)
{
	static const struct model models[] = {
		{"two threads, three times", setup, {twice, once}, all_inside, 4},
		{"two threads, five times",
		 setup,
		 {four_times, once},
		 all_five,
		 3,
		 .must = {"weft_ult_mutex_take c", "weft_ult_mutex_release c",
			  "weft_ult_mutex_pass s", "weft_ult_mutex_enlist c",
			  "weft_ult_mutex_take_or_mark_locked c", "weft_ult_waiters_let_go s",
			  "weft_ult_mutex_wait l"}},
		{"three threads", setup, {once, once, once}, all_inside, 2},
		{"one that gives up", setup, {once, in_time, once}, all_inside, 2},
		{"freed by the last", setup, {and_free, and_free}, NULL, 4},
		{"no waiter is called", setup, {forgets, once}, NULL, 3, .broken = true},
	};
	return explore_all(models, sizeof models / sizeof *models);
}
