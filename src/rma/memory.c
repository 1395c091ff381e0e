/* SPDX-License-Identifier: BSD-3-Clause */
/* memory.c - reads and writes of memory that a target's process need not serve. */
#include "rma/memory.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include "base/assert.h"
#include "base/log.h"

#define PIECES 16
#define CALL_MOST ((size_t)1 << 20) /* bytes of a system call: bounds how long a signal waits */

/* Cuts the list to `len` bytes; returns how many pieces are left. */
static unsigned cut_iovec(struct iovec *iov, unsigned n, size_t len)
{
	unsigned i = 0;
	for (; i < n && len; i++) {
		if (iov[i].iov_len > len)
			iov[i].iov_len = len;
		len -= iov[i].iov_len;
	}
	return i;
}

static weft_err kernel_copy(pid_t pid, bool write, const struct weft_buf *there, size_t there_at,
			    const struct weft_buf *here, size_t here_at, size_t len)
{
	/* Ends: each turn copies a byte at least, or returns. */
	for (size_t done = 0; done < len;) {
		struct iovec far[PIECES], near[PIECES];
		unsigned n_far = PIECES, n_near = PIECES;
		size_t most = len - done < CALL_MOST ? len - done : CALL_MOST;
		size_t f = weft_data_iov(there, there_at + done, far, &n_far);
		size_t n = weft_data_iov(here, here_at + done, near, &n_near);
		most = f < most ? f : most;
		most = n < most ? n : most;
		n_far = cut_iovec(far, n_far, most);
		n_near = cut_iovec(near, n_near, most);
		ssize_t got = write ? process_vm_writev(pid, near, n_near, far, n_far, 0)
				    : process_vm_readv(pid, near, n_near, far, n_far, 0);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0) {
			weft_debug("window: the kernel's copy with process %d: %s", (int)pid,
				   got < 0 ? strerror(errno) : "nothing copied");
			return got < 0 && errno == ESRCH ? WEFT_ERR_PEER : WEFT_ERR_ARG;
		}
		done += (size_t)got;
	}
	return WEFT_OK;
}

static void pieces_copy(const struct weft_rma_memory *m, bool write, size_t at, char *here,
			size_t len)
{
	for (unsigned i = 0; i < m->n_pieces && len; i++) {
		const struct iovec *p = &m->piece[i];
		if (at >= p->iov_len) {
			at -= p->iov_len;
			continue;
		}
		char *there = (char *)p->iov_base + at;
		size_t n = p->iov_len - at < len ? p->iov_len - at : len;
		memcpy(write ? there : here, write ? here : there, n);
		here += n;
		len -= n;
		at = 0;
	}
}

weft_err weft_rma_memory_read(const struct weft_rma_memory *m, size_t at, void *to, size_t len)
{
	struct weft_buf here = weft_data_buf_flat(to, len);
	if (m->pid)
		return kernel_copy(m->pid, false, &m->buf, at, &here, 0, len);
	if (m->n_pieces)
		pieces_copy(m, false, at, to, len);
	else
		weft_data_pack(&m->buf, at, to, len);
	return WEFT_OK;
}

weft_err weft_rma_memory_write(const struct weft_rma_memory *m, size_t at, const void *from,
			       size_t len)
{
	struct weft_buf here = weft_data_buf_flat(from, len);
	if (m->pid)
		return kernel_copy(m->pid, true, &m->buf, at, &here, 0, len);
	if (m->n_pieces)
		pieces_copy(m, true, at, (char *)(uintptr_t)from, len);
	else
		weft_data_unpack(&m->buf, at, from, len);
	return WEFT_OK;
}

weft_err weft_rma_memory_copy(const struct weft_rma_memory *m, bool write,
			      const struct weft_buf *here)
{
	weft_assert(!m->n_pieces);
	if (m->pid)
		return kernel_copy(m->pid, write, &m->buf, 0, here, 0, here->bytes);
	if (write)
		weft_data_copy(&m->buf, here);
	else
		weft_data_copy(here, &m->buf);
	return WEFT_OK;
}

bool weft_rma_memory_probe(pid_t pid, uint64_t canary_at, uint64_t canary)
{
	uint64_t got = 0;
	struct iovec near = {&got, sizeof got};
	struct iovec far = {(void *)(uintptr_t)canary_at, sizeof got};
	/* The right number proves that this pid is that member. */
	return process_vm_readv(pid, &near, 1, &far, 1, 0) == (ssize_t)sizeof got && got == canary;
}
