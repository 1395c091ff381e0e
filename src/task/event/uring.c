/* SPDX-License-Identifier: BSD-3-Clause */
/* uring.c - sets up an io_uring, fills its rings, reads them. */
#include "base/assert.h"
#include "task/event/uring.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/log.h"

static int uring_enter(struct weft_uring *u, unsigned n)
{
	return (int)syscall(SYS_io_uring_enter, u->fd, n, 0, 0, NULL, 0);
}

static weft_err map_rings(struct weft_uring *u, const struct io_uring_params *p)
{
	size_t sq = p->sq_off.array + p->sq_entries * sizeof(unsigned);
	size_t cq = p->cq_off.cqes + p->cq_entries * sizeof(struct io_uring_cqe);
	u->ring_bytes = sq > cq ? sq : cq;
	u->sqe_bytes = p->sq_entries * sizeof(struct io_uring_sqe);
	char *ring = mmap(NULL, u->ring_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
			  u->fd, IORING_OFF_SQ_RING);
	if (ring == MAP_FAILED)
		return WEFT_ERR_NOMEM;
	void *sqe = mmap(NULL, u->sqe_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
			 u->fd, IORING_OFF_SQES);
	if (sqe == MAP_FAILED) {
		munmap(ring, u->ring_bytes);
		return WEFT_ERR_NOMEM;
	}
	u->ring = ring;
	u->sqe = sqe;
	u->x_sq_head = (void *)(ring + p->sq_off.head);
	u->x_sq_tail = (void *)(ring + p->sq_off.tail);
	u->sq_array = (void *)(ring + p->sq_off.array);
	u->sq_entries = p->sq_entries;
	u->sq_mask = p->sq_entries - 1;
	u->x_cq_head = (void *)(ring + p->cq_off.head);
	u->x_cq_tail = (void *)(ring + p->cq_off.tail);
	u->x_cq_flags = p->cq_off.flags ? (void *)(ring + p->cq_off.flags) : NULL;
	u->cqe = (void *)(ring + p->cq_off.cqes);
	u->cq_mask = p->cq_entries - 1;
	return WEFT_OK;
}

weft_err weft_task_uring_open(struct weft_uring *u, unsigned entries)
{
	struct io_uring_params p;
	memset(u, 0, sizeof *u);
	memset(&p, 0, sizeof p);
	p.flags = IORING_SETUP_CLAMP;
	u->fd = (int)syscall(SYS_io_uring_setup, entries, &p);
	if (u->fd < 0) {
		weft_debug("no io_uring here (%s): files are read and written by a thread",
			   strerror(errno));
		return WEFT_ERR_UNSUPPORTED;
	}
	weft_err err =
		p.features & IORING_FEAT_SINGLE_MMAP ? map_rings(u, &p) : WEFT_ERR_UNSUPPORTED;
	if (err)
		goto failed;
	u->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (u->event_fd < 0) {
		err = WEFT_ERR_LIMIT;
		goto failed_event;
	}
	if (syscall(SYS_io_uring_register, u->fd, IORING_REGISTER_EVENTFD, &u->event_fd, 1)) {
		err = WEFT_ERR_UNSUPPORTED;
		goto failed_register;
	}
	return WEFT_OK;
failed_register:
	close(u->event_fd);
failed_event:
	munmap(u->sqe, u->sqe_bytes);
	munmap(u->ring, u->ring_bytes);
failed:
	close(u->fd);
	return err;
}

void weft_task_uring_close(struct weft_uring *u)
{
	munmap(u->sqe, u->sqe_bytes);
	munmap(u->ring, u->ring_bytes);
	close(u->event_fd);
	close(u->fd);
}

struct io_uring_sqe *weft_task_uring_entry(struct weft_uring *u)
{
	/* PLACE <- kernel.  Without it we could overwrite an entry that is still being read. */
	unsigned head = atomic_load_explicit(u->x_sq_head, memory_order_acquire);
	if (u->tail - head >= u->sq_entries)
		return NULL;
	unsigned at = u->tail++ & u->sq_mask;
	u->sq_array[at] = at;
	u->prepared++;
	memset(&u->sqe[at], 0, sizeof u->sqe[at]);
	return &u->sqe[at];
}

bool weft_task_uring_submit(struct weft_uring *u)
{
	/* ENTRY -> kernel.  Carries: the entries. */
	atomic_store_explicit(u->x_sq_tail, u->tail, memory_order_release);
	while (u->prepared) { /* ends: all taken, or the kernel has no room now */
		int n = uring_enter(u, u->prepared);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		weft_assert((unsigned)n <= u->prepared);
		u->prepared -= (unsigned)n;
	}
	return true;
}

const struct io_uring_cqe *weft_task_uring_peek(struct weft_uring *u)
{
	unsigned head = atomic_load_explicit(u->x_cq_head, memory_order_relaxed); /* ours alone */
	/* DONE <- kernel.  Carries: the completion, and what was read into the buffer. */
	if (head == atomic_load_explicit(u->x_cq_tail, memory_order_acquire))
		return NULL;
	return &u->cqe[head & u->cq_mask];
}

void weft_task_uring_seen(struct weft_uring *u)
{
	unsigned head = atomic_load_explicit(u->x_cq_head, memory_order_relaxed);
	/* ROOM -> kernel.  Carries: our reading of the completion is over. */
	atomic_store_explicit(u->x_cq_head, head + 1, memory_order_release);
}

void weft_task_uring_bell(struct weft_uring *u, bool on)
{
	if (!u->x_cq_flags)
		return; /* an old kernel rings always */
	/* BELL.  seq_cst exchange: comes before the caller's look at the completions. */
	atomic_exchange_explicit(u->x_cq_flags, on ? 0u : IORING_CQ_EVENTFD_DISABLED,
				 memory_order_seq_cst);
}
