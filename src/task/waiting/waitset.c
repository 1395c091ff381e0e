/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * waitset.c - completions that an event loop of others waits for, behind one descriptor.
 *
 * Each entry waits as a thread would: a node in the completion's list, and a parker whose wake-up
 * puts the entry into `ready` and rings.  So a completion that is in no set pays nothing.
 * The waker's last access to an entry is that push; after the pop it is ours alone.
 */
#include <weft/pollable.h>
#include "base/assert.h"
#include "base/cancel.h"
#include "base/log.h"
#include "task/engine_int.h"
#include "task/event/event_int.h"
#include "task/queue/weft_task.h"
#include "task/waiting/waitset.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct entry {
	struct weft_parker parker; /* first: cache line */
	struct weft_mpsc_node ready;
	struct weft_link link;
	struct weft_wait_node node;
	struct weft_waiter waiter;
	struct weft_completion *done;
	struct weft_waitset *set;
	void *key;
};

struct weft_waitset {
	struct weft_mpsc ready; /* wakers push, the user pops */
	struct weft_list in;    /* U: entries whose completion was pending */
	int fd, bell_fd;        /* I */
	bool engine;            /* U: the engine's descriptor is in it */
	_Atomic bool x_armed;   /* U sets, wakers clear */
	_Atomic int x_ringing;  /* wakers between their push and their last access to the set */
};

static void wake_entry(struct weft_parker *p)
{
	struct entry *en = p->ops_arg;
	struct weft_waitset *s = en->set;
	atomic_fetch_add_explicit(&s->x_ringing, 1, memory_order_relaxed);
	weft_mpsc_push(&s->ready,
		       &en->ready); /* READY -> take; seq_cst, before our look at armed */
	if (atomic_exchange_explicit(&s->x_armed, false, memory_order_seq_cst)) {
		uint64_t one = 1;
		int was = weft_cancel_off();
		ssize_t n = write(s->bell_fd, &one, sizeof one);
		weft_cancel_back(was);
		(void)n; /* EAGAIN: readable as well */
	}
	/* GONE -> destroy. */
	atomic_fetch_sub_explicit(&s->x_ringing, 1, memory_order_release);
}

static void never_sleeps(struct weft_parker *p, uint64_t deadline_ns)
{
}

static const struct weft_parker_ops set_ops = {
	.name = "wait set", .sleep = never_sleeps, .wake = wake_entry};

weft_err weft_waitset_create(struct weft_waitset **set_p)
{
	struct epoll_event ev = {.events = EPOLLIN};
	if (!set_p)
		return WEFT_ERR_ARG;
	struct weft_waitset *s =
		aligned_alloc(WEFT_CACHELINE, weft_align_up(sizeof *s, WEFT_CACHELINE));
	if (!s)
		return WEFT_ERR_NOMEM;
	memset((void *)s, 0, sizeof *s);
	weft_mpsc_init(&s->ready);
	weft_list_init(&s->in);
	s->fd = epoll_create1(EPOLL_CLOEXEC);
	s->bell_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->fd < 0 || s->bell_fd < 0 || epoll_ctl(s->fd, EPOLL_CTL_ADD, s->bell_fd, &ev)) {
		weft_error("no descriptor for a wait set: %s", strerror(errno));
		if (s->fd >= 0)
			close(s->fd);
		if (s->bell_fd >= 0)
			close(s->bell_fd);
		free(s);
		return WEFT_ERR_LIMIT;
	}
	*set_p = s;
	return WEFT_OK;
}

weft_err weft_task_waitset_add(struct weft_waitset *s, struct weft_completion *c, void *key)
{
	struct entry *en = aligned_alloc(WEFT_CACHELINE, weft_align_up(sizeof *en, WEFT_CACHELINE));
	if (!en)
		return WEFT_ERR_NOMEM;
	memset((void *)en, 0, sizeof *en);
	en->done = c;
	en->set = s;
	en->key = key;
	weft_wait_parker_init(&en->parker, &set_ops, en);
	/* Relaxed, both: published with the node. */
	atomic_store_explicit(&en->parker.x_word, WEFT_PARKER_PARKED, memory_order_relaxed);
	en->waiter.parker = &en->parker;
	atomic_store_explicit(&en->waiter.x_need, 1, memory_order_relaxed);
	weft_wait_node_init(&en->node, &en->waiter);
	weft_list_push_back(&s->in, &en->link);
	if (!weft_wait_completion_enlist(c, &en->node))
		wake_entry(&en->parker); /* done already */
	return WEFT_OK;
}

weft_err weft_waitset_add_event(struct weft_waitset *s, struct weft_event *ev, void *key)
{
	return s && ev ? weft_task_waitset_add(s, &weft_task_event_of(ev)->done, key)
		       : WEFT_ERR_ARG;
}

weft_err weft_waitset_add_task(struct weft_waitset *s, struct weft_task *t, void *key)
{
	return s && t ? weft_task_waitset_add(s, &weft_task_core(t)->done, key) : WEFT_ERR_ARG;
}

static size_t take_entries(struct weft_waitset *s, void **key, size_t n)
{
	size_t taken = 0;
	struct weft_mpsc_node *r;
	while (taken < n && (r = weft_mpsc_pop(&s->ready))) { /* ends: n, or none is ready */
		struct entry *en = weft_container_of(r, struct entry, ready);
		weft_assert(en->set == s);
		weft_list_remove(&en->link);
		key[taken++] = en->key;
		free(en);
	}
	return taken;
}

size_t weft_waitset_take(struct weft_waitset *s, void **key, size_t n)
{
	size_t taken = take_entries(s, key, n);
	if (!taken && n && weft_engine_poll())
		taken = take_entries(s, key, n);
	return taken;
}

int weft_waitset_fd(const struct weft_waitset *s)
{
	return s->fd;
}

/* While no thread of ours polls, the loop must: the engine's descriptor tells when. */
static weft_err join_engine(struct weft_waitset *s, bool on)
{
	struct epoll_event ev = {.events = EPOLLIN};
	int fd = weft_engine_fd();
	if (s->engine != on && fd >= 0 &&
	    epoll_ctl(s->fd, on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, fd, &ev) == 0)
		s->engine = on;
	return on ? weft_engine_fd_arm() : WEFT_OK;
}

weft_err weft_waitset_arm(struct weft_waitset *s)
{
	uint64_t count;
	int was = weft_cancel_off();
	ssize_t n = read(s->bell_fd, &count, sizeof count);
	weft_cancel_back(was);
	(void)n; /* EAGAIN: it was not rung */
	/* ARMED -> wake.  seq_cst: comes before our look. */
	atomic_exchange_explicit(&s->x_armed, true, memory_order_seq_cst);
	if (!weft_mpsc_empty(&s->ready))
		return WEFT_AGAIN;
	bool alone = atomic_load_explicit(&weft_task_engine.baton.x_watcher,
					  memory_order_seq_cst) == WEFT_WATCHER_OFF;
	weft_err err = join_engine(s, alone);
	return err || weft_mpsc_empty(&s->ready) ? err : WEFT_AGAIN;
}

void weft_waitset_destroy(struct weft_waitset *s)
{
	if (!s)
		return;
	struct weft_link *l, *after;
	unsigned turns = 0;
	void *key;
	weft_list_for_each(&s->in, l, after)
	{
		struct entry *en = weft_container_of(l, struct entry, link);
		if (weft_wait_completion_done(en->done) ||
		    !weft_wait_completion_delist(en->done, &en->node))
			continue; /* its waker pushes it */
		weft_list_remove(&en->link);
		free(en);
	}
	while (!weft_list_empty(&s->in)) /* ends: each waker is a few instructions from its push */
		if (!take_entries(s, &key, 1))
			weft_backoff(&turns);
	/* GONE: the wakers are done with the set. */
	while (atomic_load_explicit(&s->x_ringing, memory_order_acquire))
		weft_backoff(&turns);
	close(s->bell_fd);
	close(s->fd);
	free(s);
}
