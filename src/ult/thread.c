/* SPDX-License-Identifier: BSD-3-Clause */
/* thread.c - create, join, detach, end. */
#include "base/assert.h"
#include "ult/ult_int.h"

#include <errno.h>
#include <string.h>
#include "base/log.h"
#include "ult/watch.h"

#define STACK_DEFAULT (16u << 10)

/* The first code of every thread, on its own stack. */
void weft_ult_begin(void *worker)
{
	struct weft_ult_worker *w = worker;
#ifdef WEFT_ASAN
	__sanitizer_finish_switch_fiber(NULL, NULL, NULL);
#endif
	weft_ult_arrive(w);
	struct weft_ult *t = w->current;
	*w->errno_p = 0;
	if (w->cxx_p)
		w->cxx_p[0] = w->cxx_p[1] = NULL;
	weft_ult_exit(t->fn(t->arg));
}

_Noreturn void weft_ult_exit(void *result)
{
	struct weft_ult_worker *w = weft_ult_worker_here();
	if (!w || !w->current)
		weft_panic("weft_ult_exit: not in a user-level thread");
	struct weft_ult *t = w->current;
	t->arg = result;
	if (weft_unlikely(t->keys != NULL)) {
		weft_ult_keys_end(t);
		w = weft_ult_worker_here(); /* destructors may have blocked */
	}
	atomic_store_explicit(&t->x_flags, 0, memory_order_relaxed);
	weft_ult_leave_for_good(w, t);
}

/* ---- create ---------------------------------------------------------------------------------- */

static void count_created(struct weft_ult_worker *home, struct weft_ult_worker *self)
{
	if (weft_likely(home == self))
		atomic_store_explicit(&home->x_created,
				      atomic_load_explicit(&home->x_created, memory_order_relaxed) +
					      1,
				      memory_order_relaxed); /* a count with one writer */
	else
		atomic_fetch_add_explicit(&home->x_created_out, 1, memory_order_relaxed);
}

static void prepare_thread(struct weft_ult *t, const struct weft_ult_attr *a, void *(*fn)(void *),
			   void *arg)
{
	char *top = t->stack + weft_ult_stack_bytes(t->class);
	weft_assert(!weft_ult_is(t, WEFT_ULT_ALIVE) && !t->keys && !t->deep);
	/* Relaxed, all: published by make_ready. */
	atomic_store_explicit(&t->parker.x_word, WEFT_PARKER_EMPTY, memory_order_relaxed);
	atomic_store_explicit(&t->x_join, a->detached ? WEFT_ULT_IS_DETACHED : WEFT_ULT_RUNNING,
			      memory_order_relaxed);
	atomic_store_explicit(&t->x_waits_for, NULL, memory_order_relaxed);
	uint8_t flags = WEFT_ULT_ALIVE;
	if (a->worker != WEFT_ULT_ANY_WORKER)
		flags |= WEFT_ULT_PINNED;
	if (a->priority > 0)
		flags |= WEFT_ULT_URGENT;
	t->fn = fn;
	t->arg = arg;
	t->err = 0;
	t->name[0] = 0;
	if (weft_unlikely(a->name != NULL)) {
		strncpy(t->name, a->name, WEFT_ULT_NAME - 1);
		t->name[WEFT_ULT_NAME - 1] = 0;
	}
#ifdef WEFT_ASAN
	__asan_unpoison_memory_region(t->stack, weft_ult_stack_bytes(t->class));
#endif
	/* Relaxed: set while this very stack, or an earlier one, was made. */
	if (weft_unlikely(atomic_load_explicit(&weft_ult_x_canaries, memory_order_relaxed))) {
		weft_ult_stack_mark(t);
		flags |= WEFT_ULT_CANARY;
	}
	/* NAMED -> report. */
	atomic_store_explicit(&t->x_flags, flags, memory_order_release);
#ifdef WEFT_TSAN
	t->fiber = __tsan_create_fiber(0);
#endif
#ifdef WEFT_CTX_FIRST
	t->sp = weft_ult_ctx_first_make(&t->first, &t->go, top);
#else
	t->sp = weft_ult_ctx_make(top, weft_ult_begin);
#endif
}

/* The worker into whose vector a new thread goes. */
static weft_err choose_home(const struct weft_ult_attr *a, struct weft_ult_worker *self,
			    struct weft_ult_worker **home_p)
{
	int n = weft_ult_count();
	if (weft_unlikely(n == 0)) {
		weft_err err = weft_ult_start(0);
		if (err && err != WEFT_ERR_STATE)
			return err;
		n = weft_ult_count();
	}
	if (a->worker != WEFT_ULT_ANY_WORKER) {
		if (a->worker < 0 || a->worker >= n) {
			weft_error("weft_ult_create: worker %d of %d", a->worker, n);
			return WEFT_ERR_ARG;
		}
		*home_p = weft_ult_all.worker[a->worker];
	} else if (weft_likely(self != NULL)) {
		*home_p = self;
	} else {
		/* Relaxed: any fair order. */
		*home_p = weft_ult_all.worker[atomic_fetch_add_explicit(&weft_ult_all.x_turn, 1,
									memory_order_relaxed) %
					      (unsigned)n];
	}
	return WEFT_OK;
}

weft_err weft_ult_create(weft_ult **t_p, const struct weft_ult_attr *attr, void *(*fn)(void *),
			 void *arg)
{
	struct weft_ult_attr a = WEFT_ULT_ATTR_INIT;
	struct weft_ult_worker *self = weft_ult_worker_here(), *home;
	struct weft_ult *t;
	if (attr)
		a = *attr;
	if (!t_p)
		a.detached = true;
	int class = weft_ult_stack_class(a.stack_size ? a.stack_size : STACK_DEFAULT);
	if (class < 0 || !fn) {
		weft_error("weft_ult_create: %s",
			   fn ? "a stack of more than 8 MiB" : "no function");
		return WEFT_ERR_ARG;
	}
	weft_err err = choose_home(&a, self, &home);
	if (err)
		return err;
	err = weft_ult_take(home, self, class, &t);
	if (err)
		return err;
	prepare_thread(t, &a, fn, arg);
	count_created(home, self);
	if (t_p)
		*t_p = t;
	if (weft_trace_on())
		weft_ult_trace_created(t, self);
	weft_ult_make_ready(t);
	return WEFT_OK;
}

/* ---- join ------------------------------------------------------------------------------------ */

/* Until t has ended; its end unparks us. */
static void wait_for_end(struct weft_ult_worker *w, struct weft_ult *self, struct weft_ult *t,
			 struct weft_parker *me)
{
	if (!self) {
		while (!weft_ult_ended(&t->x_join)) /* ends: it has ended; sleeps between */
			weft_ult_plain_park(me);
		return;
	}
	weft_ult_waits(self, "the end of thread", t);
	weft_wait_entry();
	while (!weft_ult_ended(&t->x_join)) { /* ends: as above */
		(void)weft_ult_park_until(w, WEFT_NEVER);
		w = weft_ult_worker_here();
	}
	weft_ult_waits(self, NULL, NULL);
}

weft_err weft_ult_join(weft_ult *t, void **result_p)
{
	struct weft_ult_worker *w = weft_ult_worker_here();
	struct weft_ult *self = w && !w->on_own_stack ? w->current : NULL;
	struct weft_parker *me = self ? &self->parker : weft_wait_parker_self();
	char who[WEFT_ULT_WHO];
	if (!t) {
		weft_error("weft_ult_join: no thread");
		return WEFT_ERR_ARG;
	}
	if (weft_ult_self() == t) { /* between blocking_begin and _end, too */
		weft_error("%s joins itself", weft_ult_who(&t->parker, who));
		return WEFT_ERR_DEADLOCK;
	}
	if (!me)
		return WEFT_ERR_NOMEM;
	weft_err err = weft_ult_join_begin(&t->x_join, me);
	if (err == WEFT_ERR_STATE) {
		weft_error("weft_ult_join: the thread is detached or being joined already");
		return err;
	}
	if (err == WEFT_OK)
		wait_for_end(w, self, t, me);
	weft_assert(weft_ult_ended(&t->x_join));
	if (result_p)
		*result_p = t->arg;
	weft_ult_give(t, weft_ult_worker_here());
	return WEFT_OK;
}

weft_err weft_ult_detach(weft_ult *t)
{
	if (!t) {
		weft_error("weft_ult_detach: no thread");
		return WEFT_ERR_ARG;
	}
	weft_err err = weft_ult_detach_begin(&t->x_join);
	if (err == WEFT_AGAIN) {
		weft_ult_give(t, weft_ult_worker_here());
		return WEFT_OK;
	}
	if (err)
		weft_error("weft_ult_detach: the thread is detached or being joined already");
	return err;
}

/* ---- self --------------------------------------------------------------------------------------
 */

weft_ult *weft_ult_self(void)
{
	struct weft_ult_worker *w = weft_ult_worker_here();
	if (w)
		return w->current;
	return weft_ult_carrier_self ? weft_ult_carrier_self->blocking : NULL;
}

const char *weft_ult_name(const weft_ult *t)
{
	return t ? t->name : "";
}

int weft_ult_worker(void)
{
	struct weft_ult_worker *w = weft_ult_worker_here();
	return w ? w->id : -1;
}

int weft_ult_workers(void)
{
	return weft_ult_count();
}
