/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lang_hook.c - a hook at the ends of a request.
 *
 * The request gets operations of its own, which call the binding's functions and then those that it had.
 */
#include <stdlib.h>

#include "base/assert.h"
#include "mpi/lang_section.h"
#include "mpi/p2p/request.h"

struct hooked {
	struct weft_mpi_request_ops ops; /* first: a request's ops lead back here */
	const struct weft_mpi_request_ops *below;
	const struct weft_lang_hook *hook;
	void *arg;
	bool running; /* started, and over() not called */
};

static struct hooked *hooked_of(const struct weft_mpi_request *r)
{
	return (struct hooked *)(uintptr_t)r->ops;
}

static void hook_over(struct hooked *h)
{
	if (!h->running)
		return;
	h->running = false;
	h->hook->over(h->arg);
}

static int hooked_finish(struct weft_mpi_request *r, MPI_Status *st)
{
	struct hooked *h = hooked_of(r);
	int err = h->below->finish(r, st);
	hook_over(h);
	return err;
}

static int hooked_start(struct weft_mpi_request *r)
{
	struct hooked *h = hooked_of(r);
	h->hook->start(h->arg);
	int err = h->below->start(r);
	h->running = !err;
	return err;
}

static void hooked_free(struct weft_mpi_request *r)
{
	struct hooked *h = hooked_of(r);
	r->ops = h->below;
	hook_over(h); /* freed while it was active, and over now */
	if (r->ops->free)
		r->ops->free(r);
	h->hook->gone(h->arg);
	free(h);
}

void *weft_lang_hook_new(const struct weft_lang_hook *hook)
{
	struct hooked *h = calloc(1, sizeof *h);
	if (h)
		h->hook = hook;
	return h;
}

void weft_lang_hook_drop(void *hook)
{
	free(hook);
}

void weft_lang_hook_set(void *hook, MPI_Request request, void *arg)
{
	struct hooked *h = hook;
	h->arg = arg;
	struct weft_mpi_request *r = NULL;
	if (request == MPI_REQUEST_NULL || weft_mpi_request_named(request, &r) ||
	    r->ops == &weft_mpi_over_ops) {
		if (r)
			h->hook->over(h->arg);
		h->hook->gone(h->arg);
		free(h);
		return;
	}
	weft_assert(!r->ops->by_core && r->ops->finish);
	h->below = r->ops;
	h->ops = *r->ops;
	h->ops.finish = hooked_finish;
	h->ops.free = hooked_free;
	if (h->ops.start)
		h->ops.start = hooked_start;
	h->running = !r->persistent;
	r->ops = &h->ops;
}
