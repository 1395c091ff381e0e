/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ev_file.c - reading and writing of regular files as an event source: through io_uring, or where
 * there is none through the blocking calls of a few threads (ev_file_pool.c).
 *
 * At most `depth` requests are with the kernel; the rest wait here, by priority.  What was posted
 * together is submitted together.  A long request goes to the kernel's own threads at once: a copy
 * out of its cache would otherwise run here, under the mask.
 */
#include "base/assert.h"
#include "base/log.h"
#include "base/settings.h"
#include "task/event/ev_file.h"
#include "task/event/uring.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#define DEPTH 64
#define DEPTH_MAX 4096
#define LONG_BYTES 65536u /* copied in about 10 us */

struct files {
	struct weft_uring ring;
	unsigned depth, inflight;       /* M */
	struct weft_file_queue waiting; /* M */
};

static struct file_request *request_of(const struct weft_event *ev)
{
	return weft_task_file_request(ev);
}

/* ---- io_uring
 * -------------------------------------------------------------------------------------- */

static void fill_entry(struct io_uring_sqe *e, struct weft_event *ev)
{
	static const uint8_t code[] = {IORING_OP_READ, IORING_OP_WRITE, IORING_OP_FSYNC,
				       IORING_OP_READV, IORING_OP_WRITEV};
	struct file_request *r = request_of(ev);
	e->opcode = code[r->op];
	e->fd = r->fd;
	e->user_data = (uint64_t)(uintptr_t)ev;
	if (r->op == FILE_FSYNC)
		return;
	e->addr = (uint64_t)(uintptr_t)r->buffer;
	/* The kernel's own limit of one call; the rest is a short count. */
	e->len = r->pieces ? r->pieces : r->bytes > 0x7ffff000u ? 0x7ffff000u : (uint32_t)r->bytes;
	e->off = r->offset;
	if (r->bytes > LONG_BYTES)
		e->flags = IOSQE_ASYNC;
}

/* Hands on what may go; returns whether the kernel took all that was prepared. */
static bool feed_kernel(struct files *f)
{
	struct io_uring_sqe *e;
	while (f->waiting.first && f->inflight < f->depth &&
	       (e = weft_task_uring_entry(&f->ring))) {
		/* ends: none waits, or no room */
		struct weft_event *ev = f->waiting.first;
		weft_task_file_queue_cut(&f->waiting, NULL, ev);
		request_of(ev)->with_kernel = true;
		fill_entry(e, ev);
		f->inflight++;
	}
	return weft_task_uring_submit(&f->ring);
}

static bool file_attach(void *arg, struct weft_event *ev, int64_t *result_p)
{
	struct files *f = arg;
	weft_task_file_queue_add(&f->waiting, ev);
	return false; /* the look that follows feeds the kernel */
}

static bool file_detach(void *arg, struct weft_event *ev)
{
	struct files *f = arg;
	if (request_of(ev)->with_kernel) {
		request_of(ev)->withdrawn = true;
		struct io_uring_sqe *e = weft_task_uring_entry(&f->ring);
		if (e) {
			e->opcode = IORING_OP_ASYNC_CANCEL;
			e->addr = (uint64_t)(uintptr_t)ev;
			(void)weft_task_uring_submit(&f->ring);
		}
		return false;
	}
	(void)weft_task_file_queue_remove(&f->waiting, ev);
	return true;
}

static void file_poll_group(void *arg, struct weft_events *es)
{
	struct files *f = arg;
	(void)feed_kernel(f); /* what it does not take is offered again before a sleep */
	for (const struct io_uring_cqe *c; (c = weft_task_uring_peek(&f->ring));) {
		/* ends: none left */
		struct weft_event *ev = (void *)(uintptr_t)c->user_data;
		int64_t result = c->res;
		weft_task_uring_seen(&f->ring);
		if (!ev)
			continue; /* a cancel's own */
		weft_assert(f->inflight > 0 && request_of(ev)->with_kernel);
		f->inflight--;
		/* The kernel cancels what a thread has submitted when that thread ends; it was one that polled,
		 * not the owner of the request, which goes again. */
		if (result == -ECANCELED && !request_of(ev)->withdrawn) {
			request_of(ev)->with_kernel = false;
			(void)file_attach(f, ev, &result);
			continue;
		}
		weft_event_complete(ev, result);
	}
	if (f->waiting.first)
		(void)feed_kernel(f);
}

static weft_err file_arm(void *arg, struct weft_events *es)
{
	struct files *f = arg;
	bool all = feed_kernel(f);
	weft_task_uring_bell(&f->ring, true);
	return !all || weft_task_uring_peek(&f->ring) ? WEFT_AGAIN : WEFT_OK;
}

static void file_disarm(void *arg, struct weft_events *es)
{
	struct files *f = arg;
	weft_task_uring_bell(&f->ring, false);
}

static void file_free(void *arg)
{
	struct files *f = arg;
	weft_task_uring_close(&f->ring);
	free(f);
}

static weft_err open_uring(unsigned depth, struct weft_events **es_p)
{
	struct files *f = calloc(1, sizeof *f);
	if (!f)
		return WEFT_ERR_NOMEM;
	f->depth = depth;
	weft_err err = weft_task_uring_open(&f->ring, 2 * depth); /* cancels need room too */
	if (err) {
		free(f);
		return err;
	}
	struct weft_events_ops ops = {.name = "files (io_uring)",
				      .poll_group = file_poll_group,
				      .arm = file_arm,
				      .disarm = file_disarm,
				      .attach = file_attach,
				      .detach = file_detach,
				      .fd = f->ring.event_fd,
				      .has_fd = true};
	err = weft_events_open(&ops, f, es_p);
	if (err)
		file_free(f);
	else
		(*es_p)->free_arg = file_free;
	return err;
}

/* ---- both
 * -----------------------------------------------------------------------------------------------
 */

weft_err weft_events_open_files(unsigned depth, struct weft_events **es_p)
{
	if (!es_p || depth > DEPTH_MAX)
		return WEFT_ERR_ARG;
	if (weft_setting_bool(WEFT_SET_IO_URING)) {
		weft_err err = open_uring(depth ? depth : DEPTH, es_p);
		if (err != WEFT_ERR_UNSUPPORTED)
			return err;
	}
	return weft_task_file_pool_open(false, es_p);
}

weft_err weft_events_open_files_blocking(struct weft_events **es_p)
{
	return es_p ? weft_task_file_pool_open(true, es_p) : WEFT_ERR_ARG;
}

const char *weft_events_files_by(const struct weft_events *es)
{
	return es->ops.has_fd ? "io_uring" : "threads";
}

static weft_err post_file_request(struct weft_events *es, struct weft_event *ev,
				  struct file_request r)
{
	*request_of(ev) = r;
	return weft_event_post(es, ev);
}

weft_err weft_event_post_read(struct weft_events *es, struct weft_event *ev, int fd, void *buffer,
			      size_t bytes, uint64_t offset)
{
	return post_file_request(es, ev,
				 (struct file_request){.op = FILE_READ,
						       .fd = fd,
						       .buffer = buffer,
						       .bytes = bytes,
						       .offset = offset});
}

weft_err weft_event_post_write(struct weft_events *es, struct weft_event *ev, int fd,
			       const void *buffer, size_t bytes, uint64_t offset)
{
	return post_file_request(es, ev,
				 (struct file_request){.op = FILE_WRITE,
						       .fd = fd,
						       .buffer = (void *)(uintptr_t)buffer,
						       .bytes = bytes,
						       .offset = offset});
}

/* n pieces at iov as one request; a vector of none, or of more than the system takes, is no request. */
static weft_err post_vector(struct weft_events *es, struct weft_event *ev, struct file_request r,
			    const struct iovec *iov, unsigned n)
{
	if (!n || n > IOV_MAX)
		return WEFT_ERR_ARG;
	r.buffer = (void *)(uintptr_t)iov;
	r.pieces = n;
	for (unsigned i = 0; i < n; i++)
		r.bytes += iov[i].iov_len;
	return post_file_request(es, ev, r);
}

weft_err weft_event_post_readv(struct weft_events *es, struct weft_event *ev, int fd,
			       const struct iovec *iov, unsigned n, uint64_t offset)
{
	struct file_request r = {.op = FILE_READV, .fd = fd, .offset = offset};
	return post_vector(es, ev, r, iov, n);
}

weft_err weft_event_post_writev(struct weft_events *es, struct weft_event *ev, int fd,
				const struct iovec *iov, unsigned n, uint64_t offset)
{
	struct file_request r = {.op = FILE_WRITEV, .fd = fd, .offset = offset};
	return post_vector(es, ev, r, iov, n);
}

weft_err weft_event_post_fsync(struct weft_events *es, struct weft_event *ev, int fd)
{
	return post_file_request(es, ev, (struct file_request){.op = FILE_FSYNC, .fd = fd});
}
