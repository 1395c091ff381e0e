/* SPDX-License-Identifier: BSD-3-Clause */
/* shm_cma.c - reads and writes a peer's memory directly, where the kernel lets us. */
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
#include "base/cancel.h"
#include "base/log.h"
#include "net/shm/shm_int.h"

#define PIECE (1u << 20) /* per system call: bounds how long a signal or a cancel waits */
#define PIECES_MAX 64

/* Where Yama restricts ptrace, lets one peer at us; the kernel remembers no more than one. */
static void allow_peer(struct weft_shm *s, pid_t pid)
{
	char mode = '0';
	if (s->n_local != 2)
		return;
	int fd = open("/proc/sys/kernel/yama/ptrace_scope", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	if (read(fd, &mode, 1) == 1 && mode == '1')
		(void)prctl(PR_SET_PTRACER, (unsigned long)pid, 0, 0, 0);
	close(fd);
}

bool weft_net_shm_cma_probe(struct weft_shm *s, struct weft_shm_link *k, uint64_t remote,
			    const uint8_t nonce[16])
{
	uint8_t got[16] = {0};
	struct iovec local = {.iov_base = got, .iov_len = sizeof got};
	struct iovec there = {.iov_base = (void *)(uintptr_t)remote, .iov_len = sizeof got};

	if (weft_net_shm_lacks.cma || k->pid <= 0)
		return false;
	allow_peer(s, k->pid);
	if (process_vm_readv(k->pid, &local, 1, &there, 1, 0) != (ssize_t)sizeof got) {
		weft_debug("shm: no cross-memory access to rank %d: %s", k->peer, strerror(errno));
		return false;
	}
	/* The right bytes prove that this pid is that peer. */
	return sodium_memcmp(got, nonce, sizeof got) == 0;
}

/* Is the process that we met still there?  A pid may have been given to another one. */
static bool still_there(const struct weft_shm_link *k)
{
	char c;
	int was = weft_cancel_off();
	ssize_t n = recv(k->fd, &c, 1, MSG_PEEK | MSG_DONTWAIT);
	weft_cancel_back(was);
	return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

/* One call's worth of a transfer: pieces here and there, neighbours joined. */
struct batch {
	struct iovec here[PIECES_MAX], there[PIECES_MAX];
	unsigned n_here, n_there;
	size_t bytes;
};

static void batch_add(struct iovec *list, unsigned *n_p, void *base, size_t len)
{
	struct iovec *last = *n_p ? &list[*n_p - 1] : NULL;
	if (last && (char *)last->iov_base + last->iov_len == base)
		last->iov_len += len;
	else
		list[(*n_p)++] = (struct iovec){base, len};
}

static void batch_fill(struct batch *b, struct weft_net_walk *w, const struct weft_net_transfer *t)
{
	uint64_t at;
	char *data;
	size_t len;
	b->n_here = b->n_there = 0;
	b->bytes = 0;
	/* Ends: with the pieces, or the room. */
	while (b->n_here < PIECES_MAX && b->n_there < PIECES_MAX &&
	       weft_net_walk_next(w, t, PIECE - b->bytes, &at, &data, &len)) {
		batch_add(b->here, &b->n_here, data, len);
		batch_add(b->there, &b->n_there, (char *)(uintptr_t)(t->there->addr + at), len);
		b->bytes += len;
	}
}

/* `done` bytes of the batch that began at *w. */
static void walk_by(struct weft_net_walk *w, const struct weft_net_transfer *t, size_t done)
{
	uint64_t at;
	char *data;
	size_t len = 0;
	for (; done; done -= len) { /* ends: there were as many */
		bool some = weft_net_walk_next(w, t, done, &at, &data, &len);
		weft_assert(some && len <= done);
		(void)some;
	}
}

static enum weft_post copy_refused(const struct weft_shm_link *k, bool write, size_t bytes)
{
	if (errno == ESRCH)
		return WEFT_POST_DOWN;
	weft_error("shm: cannot %s %zu bytes of rank %d's memory: %s", write ? "write" : "read",
		   bytes, k->peer, strerror(errno));
	return WEFT_POST_REFUSED;
}

static enum weft_post copy_all(struct weft_shm_link *k, const struct weft_net_transfer *t)
{
	struct weft_net_walk w = {0, 0, 0, 0};
	struct batch b;
	for (;;) { /* ends: each round copies at least a byte or ends */
		struct weft_net_walk from = w;
		batch_fill(&b, &w, t);
		if (!b.bytes)
			return WEFT_POST_DONE;
		weft_assert(b.bytes <= PIECE && b.n_here <= PIECES_MAX && b.n_there <= PIECES_MAX);
		ssize_t done =
			t->write
				? process_vm_writev(k->pid, b.here, b.n_here, b.there, b.n_there, 0)
				: process_vm_readv(k->pid, b.here, b.n_here, b.there, b.n_there, 0);
		if (done < 0 && errno != EINTR)
			return copy_refused(k, t->write, b.bytes);
		if (done == 0)
			return WEFT_POST_REFUSED;
		if (done == (ssize_t)b.bytes)
			continue;
		w = from;
		walk_by(&w, t, done < 0 ? 0 : (size_t)done);
	}
}

/* Is the region that the ticket names open in the peer, for this? */
static bool is_open(const struct weft_shm_link *k, const struct weft_net_transfer *t)
{
	const struct weft_shm_inbox *inbox = k->tx_inbox;
	return t->there->key == WEFT_NET_KEY_ANY ||
	       weft_net_region_shown_open(&inbox->regions, t->there->key,
					  t->write ? WEFT_NET_WRITE : WEFT_NET_READ);
}

enum weft_post weft_net_shm_transfer(struct weft_net *net, int peer,
				     const struct weft_net_transfer *t)
{
	struct weft_shm_link *k = &((struct weft_shm *)net)->link[peer];
	size_t bytes;
	if (!weft_net_shm_is_up(k))
		return WEFT_POST_DOWN;
	if (!k->can_copy || !weft_net_transfer_fits(t, &bytes) || !is_open(k, t))
		return WEFT_POST_REFUSED;
	/* Bytes that were read count only if the process and the region were there when they had
	 * been; none are written where they are not.  A peer that goes in between keeps none
	 * anyway. */
	if (t->write && !still_there(k))
		return WEFT_POST_DOWN;
	enum weft_post answer = copy_all(k, t);
	if (t->write || answer != WEFT_POST_DONE)
		return answer;
	if (!still_there(k))
		return WEFT_POST_DOWN;
	return is_open(k, t) ? WEFT_POST_DONE : WEFT_POST_REFUSED;
}

/* What was written is there when the call returns. */
enum weft_post weft_net_shm_flush(struct weft_net *net, int peer, void *cookie)
{
	return weft_net_shm_is_up(&((struct weft_shm *)net)->link[peer]) ? WEFT_POST_DONE
									 : WEFT_POST_DOWN;
}

/* ---- regions --------------------------------------------------------------------------------- */

weft_err weft_net_shm_region_open(struct weft_net *net, int peer, void *base, size_t len,
				  unsigned access, struct weft_net_region *region)
{
	struct weft_shm *s = (struct weft_shm *)net;
	if (access & ~s->card_copy.access)
		return WEFT_ERR_UNSUPPORTED;
	uint64_t key = weft_net_region_table_open(&s->regions, access);
	if (!key)
		return WEFT_ERR_LIMIT;
	region->ticket = (struct weft_net_ticket){(uint64_t)(uintptr_t)base, len, key};
	return WEFT_OK;
}

void weft_net_shm_region_close(struct weft_net *net, struct weft_net_region *region)
{
	weft_net_region_table_close(&((struct weft_shm *)net)->regions, region->ticket.key);
}
