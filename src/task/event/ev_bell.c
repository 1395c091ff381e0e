/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ev_bell.c - doorbells in shared memory as an event source.
 *
 * Polling reads the count and makes no system call.  Before a sleep the waiting side says so in the
 * bell and registers the eventfd; the ringer writes there only then.  Both sides use an exchange, so
 * neither needs to know whether the other has registered for membarrier:
 *
 *   waiter  exchange armed = 1, look at the count, sleep      ringer  add to the count, look at
 * armed
 *
 * One of the two sees the other, whatever the order.
 */
#include "base/log.h"
#include "task/event/event_int.h"
#include "task/event/late.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

struct bell {
	_Atomic uint64_t x_count;   /* ringers */
	_Atomic uint64_t x_rung_ns; /* ringer of a sleeper: when; CLOCK_MONOTONIC */
	_Atomic uint32_t x_armed;   /* the waiter sets, its ringer clears */
} __attribute__((may_alias));

_Static_assert(sizeof(struct bell) <= sizeof(struct weft_doorbell), "it fits");

struct bell_request {
	struct bell *bell;
	uint64_t seen;
	int fd;
	bool watched; /* the eventfd is in the set */
};

_Static_assert(sizeof(struct bell_request) <= sizeof(((struct weft_ev *)0)->of_source), "it fits");

struct bells {
	int epoll_fd;
};

static struct bell *bell_of(const struct weft_doorbell *bell)
{
	return (struct bell *)(void *)(uintptr_t)bell;
}

static struct bell_request *request_of(const struct weft_event *ev)
{
	return weft_task_event_data(ev);
}

void weft_doorbell_init(struct weft_doorbell *public)
{
	struct bell *b = bell_of(public);
	/* Relaxed: the memory is handed over by other means. */
	atomic_store_explicit(&b->x_count, 0, memory_order_relaxed);
	atomic_store_explicit(&b->x_rung_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&b->x_armed, 0, memory_order_relaxed);
}

uint64_t weft_doorbell_count(const struct weft_doorbell *public)
{
	/* RING: what the ringer wrote. */
	return atomic_load_explicit(&bell_of(public)->x_count, memory_order_acquire);
}

void weft_doorbell_ring(struct weft_doorbell *public, int fd)
{
	struct bell *b = bell_of(public);
	/* RING -> LOOK.  Carries: what the caller wrote.  seq_cst: comes before our look at armed.
	 */
	atomic_fetch_add_explicit(&b->x_count, 1, memory_order_seq_cst);
	if (weft_likely(!atomic_load_explicit(&b->x_armed, memory_order_seq_cst)))
		return;
	uint64_t one = 1;
	/* Relaxed: a statistic. */
	atomic_store_explicit(&b->x_rung_ns, weft_clock_ns(), memory_order_relaxed);
	if (atomic_exchange_explicit(&b->x_armed, 0, memory_order_seq_cst)) {
		ssize_t n = write(fd, &one, sizeof one);
		(void)n; /* EAGAIN: full, and readable */
	}
}

static void unwatch_bell(struct bells *s, struct bell_request *r)
{
	if (r->watched)
		(void)epoll_ctl(s->epoll_fd, EPOLL_CTL_DEL, r->fd, NULL); /* closed: as well */
	r->watched = false;
}

static void bell_poll_group(void *arg, struct weft_events *es)
{
	struct bells *s = arg;
	for (struct weft_event *ev = weft_events_first(es); ev; ev = weft_events_next(es)) {
		struct bell_request *r = request_of(ev);
		/* LOOK <- RING. */
		uint64_t count = atomic_load_explicit(&r->bell->x_count, memory_order_acquire);
		if (count <= r->seen)
			continue;
		uint64_t rung =
			atomic_exchange_explicit(&r->bell->x_rung_ns, 0, memory_order_relaxed);
		uint64_t now = rung ? weft_clock_ns() : 0;
		if (rung && rung < now) /* it is the other side's word */
			weft_task_late(now - rung);
		unwatch_bell(s, r);
		weft_event_complete(ev, (int64_t)(count & INT64_MAX));
	}
}

/* A ringer from now on writes the eventfd.  True: it was rung already. */
static bool arm_bell(struct bell *b, uint64_t seen)
{
	/* ARM <- RING.  seq_cst: comes before our look at the count. */
	(void)atomic_exchange_explicit(&b->x_armed, 1, memory_order_seq_cst);
	return atomic_load_explicit(&b->x_count, memory_order_seq_cst) > seen;
}

static weft_err bell_arm(void *arg, struct weft_events *es)
{
	struct bells *s = arg;
	weft_err err = WEFT_OK;
	for (struct weft_event *ev = weft_events_first(es); ev; ev = weft_events_next(es)) {
		struct bell_request *r = request_of(ev);
		struct epoll_event e = {.events = EPOLLIN | EPOLLET};
		if (!r->watched && epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, r->fd, &e) &&
		    errno != EEXIST) {
			weft_event_complete(ev, -errno);
			err = WEFT_AGAIN;
			continue;
		}
		r->watched = true;
		if (arm_bell(r->bell, r->seen))
			err = WEFT_AGAIN;
	}
	return err;
}

static void bell_disarm(void *arg, struct weft_events *es)
{
	for (struct weft_event *ev = weft_events_first(es); ev; ev = weft_events_next(es))
		/* Relaxed: a bell that rings all the same costs a wake-up. */
		atomic_store_explicit(&request_of(ev)->bell->x_armed, 0, memory_order_relaxed);
}

static bool bell_detach(void *arg, struct weft_event *ev)
{
	unwatch_bell(arg, request_of(ev));
	return true;
}

static void bell_free(void *arg)
{
	struct bells *s = arg;
	close(s->epoll_fd);
	free(s);
}

weft_err weft_events_open_doorbells(struct weft_events **es_p)
{
	struct bells *s = calloc(1, sizeof *s);
	if (!s || !es_p) {
		free(s);
		return es_p ? WEFT_ERR_NOMEM : WEFT_ERR_ARG;
	}
	s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (s->epoll_fd < 0) {
		weft_error("no descriptor for doorbells: %s", strerror(errno));
		free(s);
		return WEFT_ERR_LIMIT;
	}
	struct weft_events_ops ops = {.name = "doorbells",
				      .poll_group = bell_poll_group,
				      .arm = bell_arm,
				      .disarm = bell_disarm,
				      .detach = bell_detach,
				      .fd = s->epoll_fd,
				      .has_fd = true};
	weft_err err = weft_events_open(&ops, s, es_p);
	if (err)
		bell_free(s);
	else
		(*es_p)->free_arg = bell_free;
	return err;
}

weft_err weft_event_post_doorbell(struct weft_events *es, struct weft_event *ev,
				  struct weft_doorbell *bell, int fd, uint64_t seen)
{
	*request_of(ev) = (struct bell_request){.bell = bell_of(bell), .seen = seen, .fd = fd};
	return weft_event_post(es, ev);
}
