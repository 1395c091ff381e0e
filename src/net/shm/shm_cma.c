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
	int fd = open("/proc/sys/kernel/yama/ptrace_scope", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	if (read(fd, &mode, 1) == 1 && mode == '1' && s->n_local == 2)
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

/* Takes up to PIECE bytes from the pieces, starting `skip` bytes into *iov. */
static unsigned next_piece(struct iovec *out, const struct iovec *iov, unsigned n, size_t skip,
			   size_t left, size_t *bytes_p)
{
	unsigned m = 0;
	size_t bytes = 0;
	size_t room = left < PIECE ? left : PIECE;
	for (unsigned i = 0; i < n && m < PIECES_MAX && bytes < room; i++) {
		size_t part = iov[i].iov_len - skip;
		if (part > room - bytes)
			part = room - bytes;
		out[m].iov_base = (char *)iov[i].iov_base + skip;
		out[m].iov_len = part;
		skip = 0;
		m += part > 0;
		bytes += part;
	}
	*bytes_p = bytes;
	return m;
}

static weft_err copy_pieces(struct weft_shm_link *k, uint64_t remote, const struct iovec *iov,
			    unsigned n, size_t len, bool get)
{
	size_t skip = 0;
	/* Bytes that were read count only if the peer was there when they had been; none are
	 * written where it is not.  A peer that goes in between keeps none anyway. */
	if (!get && !still_there(k))
		return WEFT_ERR_PEER;
	/* Each round copies at least a byte or ends. */
	while (len) {
		struct iovec local[PIECES_MAX];
		size_t bytes;
		/* Pass by pieces that are done. */
		while (n && skip >= iov->iov_len) {
			skip -= iov->iov_len;
			iov++;
			n--;
		}
		unsigned m = next_piece(local, iov, n, skip, len, &bytes);
		if (!m)
			return WEFT_ERR_ARG;
		struct iovec there = {.iov_base = (void *)(uintptr_t)remote, .iov_len = bytes};
		ssize_t done = get ? process_vm_readv(k->pid, local, m, &there, 1, 0)
				   : process_vm_writev(k->pid, local, m, &there, 1, 0);
		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0) {
			weft_err err = errno == ESRCH ? WEFT_ERR_PEER : WEFT_ERR_SYS;
			if (err == WEFT_ERR_SYS)
				weft_error("shm: cannot %s %zu bytes of rank %d's memory: %s",
					   get ? "read" : "write", bytes, k->peer, strerror(errno));
			return err;
		}
		remote += (uint64_t)done;
		skip += (size_t)done;
		len -= (size_t)done;
	}
	return !get || still_there(k) ? WEFT_OK : WEFT_ERR_PEER;
}

static weft_err copy(struct weft_net *net, int peer, uint64_t remote, const struct iovec *iov,
		     unsigned n, size_t len, bool get)
{
	struct weft_shm_link *k = &((struct weft_shm *)net)->link[peer];
	if (!weft_net_shm_is_up(k))
		return WEFT_ERR_PEER;
	if (!k->can_get)
		return WEFT_ERR_UNSUPPORTED;
	return copy_pieces(k, remote, iov, n, len, get);
}

weft_err weft_net_shm_get(struct weft_net *net, int peer, uint64_t remote, const struct iovec *iov,
			  unsigned n, size_t len)
{
	return copy(net, peer, remote, iov, n, len, true);
}

weft_err weft_net_shm_put(struct weft_net *net, int peer, uint64_t remote, const struct iovec *iov,
			  unsigned n, size_t len)
{
	return copy(net, peer, remote, iov, n, len, false);
}
