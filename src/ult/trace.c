/* SPDX-License-Identifier: BSD-3-Clause */
/* trace.c - the records of a thread's life: its number, what it waits for, its waker. */
#include "ult/ult_int.h"

static uint32_t thread_number(const struct weft_ult *t)
{
	return t ? (uint32_t)t->home->id << 24 | t->slot : WEFT_TRACE_NOBODY;
}

static uint32_t running_number(const struct weft_ult_worker *w)
{
	return thread_number(w && !w->on_own_stack ? w->current : NULL);
}

static void learn_code(void *fn)
{
	(void)weft_trace_code(fn);
}

void weft_ult_trace_created(struct weft_ult *t, const struct weft_ult_worker *self)
{
	void *fn = (void *)(uintptr_t)t->fn;
	if (!weft_trace_code_known(fn))
		weft_ult_on_big_stack(learn_code, fn);
	weft_trace_put(WEFT_TRACE_ULT_CREATE, weft_trace_code(fn), thread_number(t),
		       running_number(self), 0);
	if (t->name[0])
		weft_trace_put_name(WEFT_TRACE_ULT_NAME, thread_number(t), t->name);
}

void weft_ult_trace_block(struct weft_ult *t, bool token)
{
	/* Relaxed: its own. */
	const char *what = atomic_load_explicit(&t->x_waits_for, memory_order_relaxed);
	const void *on = atomic_load_explicit(&t->x_waits_on, memory_order_relaxed);
	if (!what)
		what = token ? "weft_ult_unpark" : "a message, a task or another event";
	weft_trace_put(WEFT_TRACE_ULT_BLOCK, weft_trace_static(what), thread_number(t),
		       (uint64_t)(uintptr_t)on, 0);
}

void weft_ult_trace_put(enum weft_trace_kind kind, const struct weft_ult *t)
{
	weft_trace_put(kind, 0, thread_number(t),
		       kind == WEFT_TRACE_ULT_WAKE ? running_number(weft_ult_worker_here()) : 0, 0);
}
