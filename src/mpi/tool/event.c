/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * event.c - registrations for events, and their callbacks.
 *
 * A registration's memory is never given back, so that a thread that is about to call a callback may
 * look at it: x_calls holds it while that lasts, and its place in `x_at` says whether it still counts.
 */
#include "mpi/tool/event.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "base/assert.h"
#include "comm/comm.h"
#include "mpi/aid/check.h"
#include "mpi/entry.h"
#include "mpi/info.h"
#include "mpi/tool/event_queue.h"
#include "wait/stack.h"

#define PER_KIND 16 /* registrations for one event type */
#define LEVELS 4    /* of safety */
#define ANYWHERE 3  /* the highest: may run where the event happens */

struct callback {
	MPI_T_event_cb_function *fn; /* NULL: none any more */
	void *data;
	struct callback *older; /* may still be running */
};

struct registration {
	struct registration *next; /* of all that were ever made */
	bool live;                 /* under lock: the tool has its handle */
	bool dying;                /* under lock: free_cb is to come */
	enum weft_trace_kind kind; /* under lock while it is not live */
	uint64_t since;            /* the same: when it was made */
	struct callback *_Atomic x_callback[LEVELS];
	MPI_T_event_dropped_cb_function *_Atomic x_dropped_fn;
	_Atomic uint64_t x_dropped;
	_Atomic uint32_t x_calls; /* threads that look at it now */
	MPI_T_event_free_cb_function *free_fn;
	void *free_data;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct registration *all;                                           /* under lock */
static struct registration *_Atomic x_at[WEFT_TRACE_KIND_COUNT][PER_KIND]; /* written under lock */
static _Atomic unsigned x_most[WEFT_TRACE_KIND_COUNT]; /* places of x_at that were ever used */
static struct weft_event_queue *_Atomic x_queue;       /* made with the first registration */
static _Atomic bool x_delivering;                      /* a thread is at the queue */
static _Atomic bool x_some_dropped, x_some_dying;      /* deliver has more to do */
static _Thread_local const struct weft_event *now;     /* whose callback runs on this thread */

/* ---- levels ------------------------------------------------------------------------------------ */

static const MPI_T_cb_safety safety[LEVELS] = {
	MPI_T_CB_REQUIRE_NONE,
	MPI_T_CB_REQUIRE_MPI_RESTRICTED,
	MPI_T_CB_REQUIRE_THREAD_SAFE,
	MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE,
};

static int level_of(MPI_T_cb_safety s)
{
	for (int i = 0; i < LEVELS; i++)
		if (safety[i] == s)
			return i;
	return -1;
}

static struct callback *callback_at(struct registration *r, int level)
{
	/* SEE <- SET (register_callback).  Carries: the callback's fields. */
	struct callback *c = atomic_load_explicit(&r->x_callback[level], memory_order_acquire);
	return c && c->fn ? c : NULL;
}

/* The least demanding one will do. */
static struct callback *callback_any(struct registration *r)
{
	struct callback *c = NULL;

	for (int i = 0; i < LEVELS && !c; i++)
		c = callback_at(r, i);
	return c;
}

/* ---- a registration is looked at ----------------------------------------------------------------- */

/* Relaxed: a place that has just been used for the first time may miss an event. */
static int count_places(enum weft_trace_kind kind)
{
	return (int)atomic_load_explicit(&x_most[kind], memory_order_relaxed);
}

static struct registration *hold_registration(enum weft_trace_kind kind, int i)
{
	/* Relaxed: looked at again below. */
	struct registration *r = atomic_load_explicit(&x_at[kind][i], memory_order_relaxed);
	if (!r)
		return NULL;
	/* HOLD, then look <-> UNPLACE, then look at x_calls (handle_free).  seq_cst, all: one of the
	 * two sees the other. */
	atomic_fetch_add_explicit(&r->x_calls, 1, memory_order_seq_cst);
	if (atomic_load_explicit(&x_at[kind][i], memory_order_seq_cst) == r)
		return r;
	atomic_fetch_sub_explicit(&r->x_calls, 1, memory_order_release);
	return NULL;
}

static void let_go(struct registration *r)
{
	/* LAST -> OVER (finish_dying).  Carries: our reads of r are over. */
	atomic_fetch_sub_explicit(&r->x_calls, 1, memory_order_release);
}

static void call_program(struct registration *r, struct callback *c, const struct weft_event *e,
			 MPI_T_cb_safety s)
{
	const struct weft_event *before = now;

	now = e;
	c->fn((MPI_T_event_instance)(uintptr_t)e, (MPI_T_event_registration)(void *)r, s, c->data);
	now = before;
}

/* ---- where an event happens ---------------------------------------------------------------------- */

static void count_dropped(struct registration *r)
{
	/* Relaxed: counts. */
	atomic_fetch_add_explicit(&r->x_dropped, 1, memory_order_relaxed);
	atomic_store_explicit(&x_some_dropped, true, memory_order_relaxed);
}

/* The listener of base/trace.h. */
static void offer_event(enum weft_trace_kind kind, uint64_t time, unsigned small, uint32_t id,
			uint64_t a, uint64_t b)
{
	struct weft_event e = {.time = time,
			       .a = a,
			       .b = b,
			       .id = id,
			       .small = (uint16_t)small,
			       .kind = (uint8_t)kind,
			       .told_at_once = weft_event_source_of(kind) != WEFT_EVENT_ULT &&
					       !weft_wait_stack_may_be_small()};
	bool wanted = false;
	struct registration *r;

	for (int i = 0; i < count_places(kind); i++) {
		if (!(r = hold_registration(kind, i)))
			continue;
		struct callback *c = e.told_at_once ? callback_at(r, ANYWHERE) : NULL;
		if (c)
			call_program(r, c, &e, MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE);
		else
			wanted = true;
		let_go(r);
	}
	/* Acquire: made before the first registration was placed. */
	struct weft_event_queue *q = atomic_load_explicit(&x_queue, memory_order_acquire);
	if (!wanted || !q || weft_event_queue_put(q, &e))
		return;
	for (int i = 0; i < count_places(kind); i++) {
		if (!(r = hold_registration(kind, i)))
			continue;
		if (!e.told_at_once || !callback_at(r, ANYWHERE))
			count_dropped(r);
		let_go(r);
	}
}

/* ---- at the end of an MPI call ------------------------------------------------------------------- */

static void deliver_one(const struct weft_event *e)
{
	struct registration *r;

	for (int i = 0; i < count_places((enum weft_trace_kind)e->kind); i++) {
		if (!(r = hold_registration((enum weft_trace_kind)e->kind, i)))
			continue;
		bool told = e->told_at_once && callback_at(r, ANYWHERE);
		struct callback *c = told ? NULL : callback_any(r);
		if (c && r->since <= e->time)
			call_program(r, c, e, MPI_T_CB_REQUIRE_NONE);
		let_go(r);
	}
}

static void tell_dropped(enum weft_trace_kind kind)
{
	struct registration *r;

	for (int i = 0; i < count_places(kind); i++) {
		if (!(r = hold_registration(kind, i)))
			continue;
		/* SEE <- SET (set_dropped_handler): a function. */
		MPI_T_event_dropped_cb_function *fn =
			atomic_load_explicit(&r->x_dropped_fn, memory_order_acquire);
		struct callback *c = callback_any(r);
		/* Relaxed: a count. */
		uint64_t n =
			fn ? atomic_exchange_explicit(&r->x_dropped, 0, memory_order_relaxed) : 0;
		if (n)
			fn((MPI_Count)n, (MPI_T_event_registration)(void *)r,
			   weft_event_source_of(kind) - 1, MPI_T_CB_REQUIRE_NONE,
			   c ? c->data : NULL);
		let_go(r);
	}
}

/* Nothing looks at r any more: it can be used again, and free_cb is called.  Without the lock. */
static void finish_freeing(struct registration *r)
{
	MPI_T_event_free_cb_function *fn = r->free_fn;
	void *data = r->free_data;

	for (int i = 0; i < LEVELS; i++) {
		/* Relaxed: this thread's alone. */
		struct callback *c = atomic_load_explicit(&r->x_callback[i], memory_order_relaxed);
		atomic_store_explicit(&r->x_callback[i], NULL, memory_order_relaxed);
		for (struct callback *older; c; c = older) {
			older = c->older;
			free(c);
		}
	}
	if (fn)
		fn((MPI_T_event_registration)(void *)r, MPI_T_CB_REQUIRE_NONE, data);
	pthread_mutex_lock(&lock);
	r->dying = false;
	pthread_mutex_unlock(&lock);
}

/* One that is dying and that no thread looks at; marked as finish_freeing()'s by its fields. */
static struct registration *take_dead(void)
{
	struct registration *found = NULL;
	bool more = false;

	pthread_mutex_lock(&lock);
	for (struct registration *r = all; r; r = r->next) {
		if (!r->dying || r->kind == WEFT_TRACE_NONE)
			continue;
		/* OVER <- LAST (let_go). */
		if (found || atomic_load_explicit(&r->x_calls, memory_order_seq_cst)) {
			more = true;
			continue;
		}
		r->kind = WEFT_TRACE_NONE;
		found = r;
	}
	/* Relaxed: a hint for the next MPI call. */
	atomic_store_explicit(&x_some_dying, more, memory_order_relaxed);
	pthread_mutex_unlock(&lock);
	return found;
}

void weft_event_deliver(void)
{
	/* Acquire: as in offer. */
	struct weft_event_queue *q = atomic_load_explicit(&x_queue, memory_order_acquire);
	struct weft_event e;
	struct registration *r;

	/* Relaxed: hints; the next call looks again. */
	if (!q || (weft_event_queue_empty(q) &&
		   !atomic_load_explicit(&x_some_dropped, memory_order_relaxed) &&
		   !atomic_load_explicit(&x_some_dying, memory_order_relaxed)))
		return;
	/* A callback that calls MPI comes by here, too, and goes on.
	 * TAKER <- TAKER.  Carries: the queue's taking end. */
	if (atomic_exchange_explicit(&x_delivering, true, memory_order_acquire))
		return;
	/* Bound: what callbacks make happen is for the next call. */
	for (unsigned n = 0; n < WEFT_EVENT_QUEUE && weft_event_queue_take(q, &e); n++)
		deliver_one(&e);
	if (atomic_exchange_explicit(&x_some_dropped, false, memory_order_relaxed))
		for (int k = 1; k < WEFT_TRACE_KIND_COUNT; k++)
			tell_dropped((enum weft_trace_kind)k);
	/* Ends: each leaves the list. */
	while (atomic_load_explicit(&x_some_dying, memory_order_relaxed) && (r = take_dead()))
		finish_freeing(r);
	/* TAKER -> TAKER. */
	atomic_store_explicit(&x_delivering, false, memory_order_release);
}

/* ---- registrations ------------------------------------------------------------------------------- */

/* Which kinds have a callback: no other event is made. */
static void listen_locked(void)
{
	weft_assert_held(weft_mutex, &lock);
	uint64_t kinds = 0;

	for (int k = 1; k < WEFT_TRACE_KIND_COUNT; k++)
		for (int i = 0; i < PER_KIND; i++) {
			/* Relaxed: under the lock. */
			struct registration *r =
				atomic_load_explicit(&x_at[k][i], memory_order_relaxed);
			if (r && callback_any(r))
				kinds |= (uint64_t)1 << k;
		}
	weft_trace_listen(offer_event, kinds);
	weft_mpi_hook();
	weft_comm_trace_changed();
}

static struct registration *find_locked(MPI_T_event_registration handle)
{
	weft_assert_held(weft_mutex, &lock);
	for (struct registration *r = all; r; r = r->next)
		if ((void *)r == (void *)handle)
			return r->live ? r : NULL;
	return NULL;
}

static struct registration *make_locked(void)
{
	weft_assert_held(weft_mutex, &lock);
	for (struct registration *r = all; r; r = r->next)
		if (!r->live && !r->dying)
			return r;
	struct registration *r = calloc(1, sizeof *r);
	if (!r)
		return NULL;
	r->next = all;
	all = r;
	return r;
}

static int queue_make_locked(void)
{
	weft_assert_held(weft_mutex, &lock);
	/* Relaxed: under the lock. */
	if (atomic_load_explicit(&x_queue, memory_order_relaxed))
		return MPI_SUCCESS;
	struct weft_event_queue *q =
		aligned_alloc(WEFT_CACHELINE, weft_align_up(sizeof *q, WEFT_CACHELINE));
	if (!q)
		return MPI_T_ERR_MEMORY;
	weft_event_queue_init(q);
	/* Release: threads that find it see it made. */
	atomic_store_explicit(&x_queue, q, memory_order_release);
	return MPI_SUCCESS;
}

static int alloc_locked(enum weft_trace_kind kind, struct registration **r_p)
{
	weft_assert_held(weft_mutex, &lock);
	int place = 0;

	/* Relaxed: written under the lock. */
	while (place < PER_KIND && atomic_load_explicit(&x_at[kind][place], memory_order_relaxed))
		place++;
	if (place == PER_KIND)
		return MPI_T_ERR_OUT_OF_HANDLES;
	struct registration *r = queue_make_locked() ? NULL : make_locked();
	if (!r)
		return MPI_T_ERR_MEMORY;
	r->live = true;
	r->kind = kind;
	r->since = weft_clock_ns();
	r->free_fn = NULL;
	/* Relaxed, both: placed below. */
	atomic_store_explicit(&r->x_dropped, 0, memory_order_relaxed);
	atomic_store_explicit(&r->x_dropped_fn, NULL, memory_order_relaxed);
	/* PLACE -> HOLD.  Carries: r's fields. */
	atomic_store_explicit(&x_at[kind][place], r, memory_order_seq_cst);
	if (place >= count_places(kind))
		atomic_store_explicit(&x_most[kind], (unsigned)place + 1, memory_order_relaxed);
	*r_p = r;
	return MPI_SUCCESS;
}

static void unplace_locked(struct registration *r)
{
	weft_assert_held(weft_mutex, &lock);
	for (int i = 0; i < PER_KIND; i++)
		if (atomic_load_explicit(&x_at[r->kind][i], memory_order_relaxed) == r)
			/* UNPLACE: see hold_registration(). */
			atomic_store_explicit(&x_at[r->kind][i], NULL, memory_order_seq_cst);
	r->live = false;
	r->dying = true;
	/* Relaxed: a hint for deliver. */
	atomic_store_explicit(&x_some_dying, true, memory_order_relaxed);
}

int weft_mpi_T_event_handle_alloc(int event_index, void *obj_handle, MPI_Info info,
				  MPI_T_event_registration *event_registration)
{
	struct registration *r;

	(void)obj_handle; /* none is bound to an object */
	(void)info;       /* no hints are known */
	if (!weft_tool_running())
		return MPI_T_ERR_NOT_INITIALIZED;
	enum weft_trace_kind kind =
		event_index < 0 ? WEFT_TRACE_NONE : weft_event_kind(event_index);
	if (kind == WEFT_TRACE_NONE)
		return MPI_T_ERR_INVALID_INDEX;
	if (!event_registration)
		return MPI_T_ERR_INVALID;
	pthread_mutex_lock(&lock);
	int err = alloc_locked(kind, &r);
	pthread_mutex_unlock(&lock);
	if (!err)
		*event_registration = (MPI_T_event_registration)(void *)r;
	return err;
}

/* Within a callback of its own, or where another thread runs one, free_cb waits for the next call. */
int weft_mpi_T_event_handle_free(MPI_T_event_registration event_registration, void *user_data,
				 MPI_T_event_free_cb_function free_cb_function)
{
	if (!weft_tool_running())
		return MPI_T_ERR_NOT_INITIALIZED;
	pthread_mutex_lock(&lock);
	struct registration *r = find_locked(event_registration);
	if (r) {
		r->free_fn = free_cb_function;
		r->free_data = user_data;
		unplace_locked(r);
		listen_locked();
	}
	pthread_mutex_unlock(&lock);
	if (!r)
		return MPI_T_ERR_INVALID_HANDLE;
	weft_event_deliver();
	return MPI_SUCCESS;
}

void weft_event_forget_all(void)
{
	pthread_mutex_lock(&lock);
	for (struct registration *r = all; r; r = r->next)
		if (r->live)
			unplace_locked(r);
	if (all)
		listen_locked();
	pthread_mutex_unlock(&lock);
	weft_event_deliver();
}

int weft_mpi_T_event_register_callback(MPI_T_event_registration event_registration,
				       MPI_T_cb_safety cb_safety, MPI_Info info, void *user_data,
				       MPI_T_event_cb_function event_cb_function)
{
	int level = level_of(cb_safety);

	(void)info; /* no hints are known */
	if (!weft_tool_running())
		return MPI_T_ERR_NOT_INITIALIZED;
	if (level < 0)
		return MPI_T_ERR_INVALID;
	struct callback *c = calloc(1, sizeof *c);
	if (!c)
		return MPI_T_ERR_MEMORY;
	*c = (struct callback){.fn = event_cb_function, .data = user_data};
	pthread_mutex_lock(&lock);
	struct registration *r = find_locked(event_registration);
	if (r) {
		/* Relaxed: written under the lock. */
		c->older = atomic_load_explicit(&r->x_callback[level], memory_order_relaxed);
		/* SET -> SEE (callback_at).  Carries: *c. */
		atomic_store_explicit(&r->x_callback[level], c, memory_order_release);
		listen_locked();
	}
	pthread_mutex_unlock(&lock);
	if (!r)
		free(c);
	return r ? MPI_SUCCESS : MPI_T_ERR_INVALID_HANDLE;
}

int weft_mpi_T_event_set_dropped_handler(MPI_T_event_registration event_registration,
					 MPI_T_event_dropped_cb_function dropped_cb_function)
{
	if (!weft_tool_running())
		return MPI_T_ERR_NOT_INITIALIZED;
	pthread_mutex_lock(&lock);
	struct registration *r = find_locked(event_registration);
	if (r)
		/* SET -> SEE (tell_dropped). */
		atomic_store_explicit(&r->x_dropped_fn, dropped_cb_function, memory_order_release);
	pthread_mutex_unlock(&lock);
	return r ? MPI_SUCCESS : MPI_T_ERR_INVALID_HANDLE;
}

/* ---- hints: none are known, so none are in use ----------------------------------------------------- */

static int check_handle(MPI_T_event_registration handle)
{
	if (!weft_tool_running())
		return MPI_T_ERR_NOT_INITIALIZED;
	pthread_mutex_lock(&lock);
	bool known = find_locked(handle) != NULL;
	pthread_mutex_unlock(&lock);
	return known ? MPI_SUCCESS : MPI_T_ERR_INVALID_HANDLE;
}

static int no_hints(MPI_T_event_registration handle, MPI_Info *info_used)
{
	int err = check_handle(handle);

	if (err)
		return err;
	if (!info_used)
		return MPI_T_ERR_INVALID;
	return weft_mpi_info_name(weft_mpi_info_make(), info_used) ? MPI_T_ERR_MEMORY : MPI_SUCCESS;
}

int weft_mpi_T_event_handle_get_info(MPI_T_event_registration event_registration,
				     MPI_Info *info_used)
{
	return no_hints(event_registration, info_used);
}

int weft_mpi_T_event_handle_set_info(MPI_T_event_registration event_registration, MPI_Info info)
{
	(void)info;
	return check_handle(event_registration);
}

static int check_level(MPI_T_event_registration handle, MPI_T_cb_safety cb_safety)
{
	int err = check_handle(handle);

	return err ? err : level_of(cb_safety) < 0 ? MPI_T_ERR_INVALID : MPI_SUCCESS;
}

int weft_mpi_T_event_callback_get_info(MPI_T_event_registration event_registration,
				       MPI_T_cb_safety cb_safety, MPI_Info *info_used)
{
	int err = check_level(event_registration, cb_safety);

	return err ? err : no_hints(event_registration, info_used);
}

int weft_mpi_T_event_callback_set_info(MPI_T_event_registration event_registration,
				       MPI_T_cb_safety cb_safety, MPI_Info info)
{
	(void)info;
	return check_level(event_registration, cb_safety);
}

/* ---- in a callback: safe in signal handlers -------------------------------------------------------- */

/* The event of the callback that runs on this thread is the only one there is. */
static const struct weft_event *event_of(MPI_T_event_instance instance)
{
	return (const void *)instance == (const void *)now ? now : NULL;
}

int weft_mpi_T_event_read(MPI_T_event_instance event_instance, int element_index, void *buffer)
{
	const struct weft_event *e = event_of(event_instance);

	if (!e)
		return MPI_T_ERR_INVALID_HANDLE;
	if (!buffer)
		return MPI_T_ERR_INVALID;
	return weft_event_element(e, element_index, buffer) ? MPI_SUCCESS : MPI_T_ERR_INVALID_ITEM;
}

int weft_mpi_T_event_copy(MPI_T_event_instance event_instance, void *buffer)
{
	const struct weft_event *e = event_of(event_instance);

	if (!e)
		return MPI_T_ERR_INVALID_HANDLE;
	if (!buffer)
		return MPI_T_ERR_INVALID;
	/* Each element at a multiple of eight, as MPI_T_event_get_info says. */
	for (int i = 0; i < WEFT_EVENT_ELEMENTS; i++)
		if (!weft_event_element(e, i, (char *)buffer + (size_t)8 * (size_t)i))
			break;
	return MPI_SUCCESS;
}

int weft_mpi_T_event_get_source(MPI_T_event_instance event_instance, int *source_index)
{
	const struct weft_event *e = event_of(event_instance);

	if (!e)
		return MPI_T_ERR_INVALID_HANDLE;
	if (!source_index)
		return MPI_T_ERR_INVALID;
	*source_index = weft_event_source_of((enum weft_trace_kind)e->kind) - 1;
	return MPI_SUCCESS;
}

int weft_mpi_T_event_get_timestamp(MPI_T_event_instance event_instance, MPI_Count *event_timestamp)
{
	const struct weft_event *e = event_of(event_instance);

	if (!e)
		return MPI_T_ERR_INVALID_HANDLE;
	if (!event_timestamp)
		return MPI_T_ERR_INVALID;
	*event_timestamp = (MPI_Count)e->time;
	return MPI_SUCCESS;
}
