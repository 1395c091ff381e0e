/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fake_source.h - a source that behaves like a network: messages come from other threads, a bell
 * rings once after it was armed, then not until it is armed again.
 */
#ifndef WEFT_TEST_FAKE_SOURCE_H
#define WEFT_TEST_FAKE_SOURCE_H

#include <sys/eventfd.h>
#include <unistd.h>
#include "check.h"
#include "queue/mpsc.h"
#include "task/task.h"

struct fake_msg {
	struct weft_mpsc_node node; /* first */
	void (*fn)(void *arg);      /* run from poll, as a handler */
	void *arg;
};

struct fake_source {
	struct weft_mpsc inbox;
	_Atomic int x_armed;
	_Atomic long x_polls, x_arms, x_rings, x_handled;
	_Atomic int x_inside; /* callbacks running: never two */
	int fd;
	struct weft_source source;
};

static inline void fake_enter(struct fake_source *f)
{
	CHECK_EQ(atomic_fetch_add(&f->x_inside, 1), 0);
}

static inline void fake_exit(struct fake_source *f)
{
	CHECK_EQ(atomic_fetch_sub(&f->x_inside, 1), 1);
}

static inline int fake_poll(void *arg)
{
	struct fake_source *f = arg;
	int found = 0;
	fake_enter(f);
	f->x_polls++;
	for (struct weft_mpsc_node *n; found < 16 && (n = weft_mpsc_pop(&f->inbox)); found++) {
		struct fake_msg *m = (struct fake_msg *)n;
		m->fn(m->arg);
	}
	f->x_handled += found;
	fake_exit(f);
	return found;
}

static inline void fake_disarm(void *arg)
{
	struct fake_source *f = arg;
	fake_enter(f);
	atomic_store(&f->x_armed, 0);
	fake_exit(f);
}

static inline weft_err fake_arm(void *arg, enum weft_arm_level level)
{
	struct fake_source *f = arg;
	weft_err err = WEFT_OK;
	if (level == WEFT_ARM_OFF) {
		fake_disarm(arg);
		return WEFT_OK;
	}
	fake_enter(f);
	f->x_arms++;
	atomic_exchange(&f->x_armed, 1);
	if (!weft_mpsc_empty(&f->inbox)) {
		atomic_store(&f->x_armed, 0);
		err = WEFT_AGAIN;
	}
	fake_exit(f);
	return err;
}

static inline void fake_send(struct fake_source *f, struct fake_msg *m)
{
	weft_mpsc_push(&f->inbox, &m->node); /* a seq_cst exchange */
	if (atomic_load(&f->x_armed) && atomic_exchange(&f->x_armed, 0)) {
		uint64_t one = 1;
		f->x_rings++;
		CHECK_EQ(write(f->fd, &one, 8), 8);
	}
}

static inline void fake_add(struct fake_source *f, const char *name, bool can_arm)
{
	weft_mpsc_init(&f->inbox);
	f->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	CHECK(f->fd >= 0);
	f->source = (struct weft_source){
		.name = name,
		.poll = fake_poll,
		.arm = can_arm ? fake_arm : NULL,
		.fd = can_arm ? f->fd : -1,
		.arg = f,
	};
	CHECK_EQ(weft_task_source_add(&f->source), WEFT_OK);
}

static inline void fake_remove(struct fake_source *f)
{
	weft_task_source_remove(&f->source);
	close(f->fd);
}

#endif
