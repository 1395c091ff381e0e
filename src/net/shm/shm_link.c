/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shm_link.c - a connection to one peer: the greeting that hands over memory and bell, the packets
 * that come in, and the end, orderly or not.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/counters.h"
#include "base/log.h"
#include "net/shm/shm_int.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

#define GREETING_MAGIC 0x77736d33u
#define GREETING_FDS 3 /* ring, inbox, bell */
#define FLAG_REGISTERED 1u

struct greeting {
	uint32_t magic, flags;
	uint32_t slots, data;
	uint32_t max_payload, inbox_bytes;
	uint32_t narrow, none;
	uint64_t nonce_addr;
	uint8_t nonce[16];
};

static struct weft_ring_shape shape_for(const struct weft_shm *s)
{
	/* 163 KiB per direction; 81 KiB when many ranks would make that hundreds of MiB. */
	if (s->n_local <= 16)
		return (struct weft_ring_shape){
			.slots = 256, .data = 8 * WEFT_SHM_MAX_PAYLOAD, .narrow = 16384};
	return (struct weft_ring_shape){
		.slots = 128, .data = 4 * WEFT_SHM_MAX_PAYLOAD, .narrow = 8192};
}

/* Membarriers interrupt every registered process that runs: no good with more ranks than cores. */
static bool wants_plain(const struct weft_shm *s)
{
	return s->registered && s->n_local <= sysconf(_SC_NPROCESSORS_ONLN);
}

static bool send_greeting(struct weft_shm *s, struct weft_shm_link *k, int ring_fd)
{
	k->offers_plain = wants_plain(s);
	struct greeting g = {
		.magic = GREETING_MAGIC,
		.flags = k->offers_plain ? FLAG_REGISTERED : 0,
		.slots = k->rx_shape.slots,
		.data = k->rx_shape.data,
		.max_payload = WEFT_SHM_MAX_PAYLOAD,
		.inbox_bytes = sizeof(struct weft_shm_inbox),
		.narrow = k->rx_shape.narrow,
		.nonce_addr = (uint64_t)(uintptr_t)s->nonce,
	};
	int fds[GREETING_FDS] = {ring_fd, s->inbox_fd, s->hub.wake_fd};
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof fds)];
	} control;
	struct iovec iov = {.iov_base = &g, .iov_len = sizeof g};
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.buf,
		.msg_controllen = sizeof control.buf,
	};
	memcpy(g.nonce, s->nonce, sizeof g.nonce);
	memset(&control, 0, sizeof control);
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof fds);
	memcpy(CMSG_DATA(c), fds, sizeof fds);

	ssize_t n;
	do {
		n = sendmsg(k->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	return n == (ssize_t)sizeof g;
}

static int open_pidfd(int fd, pid_t pid)
{
	int pid_fd = -1;
	socklen_t len = sizeof pid_fd;
	if (weft_net_shm_lacks.pidfd)
		return -1;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pid_fd, &len) != 0)
		pid_fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (pid_fd >= 0)
		(void)fcntl(pid_fd, F_SETFD, FD_CLOEXEC);
	return pid_fd;
}

void weft_net_shm_link_greet(struct weft_shm *s, int peer, int fd)
{
	struct weft_shm_link *k = &s->link[peer];
	int ring_fd = -1;

	weft_assert(peer != s->job.rank && k->fd < 0 && !k->rx_memory && !k->tx_memory);
	k->fd = fd;
	if (!weft_net_shm_socket_owner(fd, &k->pid)) {
		weft_net_shm_link_down(s, k, WEFT_ERR_AUTH, "it belongs to another user");
		return;
	}
	k->rx_shape = shape_for(s);
	k->rx_bytes = weft_net_ring_bytes(k->rx_shape);
	weft_err err = weft_net_shm_memory_create(k->rx_bytes, &ring_fd, &k->rx_memory);
	if (err) {
		weft_net_shm_link_down(s, k, err, "no shared memory for it");
		return;
	}
	weft_net_ring_rx_attach(&k->rx, k->rx_memory, k->rx_shape, WEFT_SHM_MAX_PAYLOAD);
	bool sent = send_greeting(s, k, ring_fd);
	int error = errno;
	close(ring_fd);
	if (!sent) {
		weft_net_shm_link_down(s, k, WEFT_ERR_PEER, strerror(error));
		return;
	}
	/* Relaxed: posters treat it like NONE. */
	atomic_store_explicit(&k->x_state, WEFT_SHM_GREETING, memory_order_relaxed);
	s->n_greeting++;
	/* The socket tells the end too, but a child that the peer forked may hold it open. */
	k->pid_fd = open_pidfd(fd, k->pid);
	err = weft_net_hub_add(&s->hub, fd, EPOLLIN | EPOLLRDHUP,
			       weft_net_hub_data(WEFT_SHM_EV_SOCKET, (uint64_t)peer));
	if (!err && k->pid_fd >= 0)
		err = weft_net_hub_add(&s->hub, k->pid_fd, EPOLLIN,
				       weft_net_hub_data(WEFT_SHM_EV_PID, (uint64_t)peer));
	if (err)
		weft_net_shm_link_down(s, k, err, "cannot watch it");
}

/* Reads the greeting; AGAIN: not there yet. */
static weft_err read_greeting(struct weft_shm_link *k, struct greeting *g, int fds[GREETING_FDS])
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(int) * GREETING_FDS)];
	} control;
	struct iovec iov = {.iov_base = g, .iov_len = sizeof *g};
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.buf,
		.msg_controllen = sizeof control.buf,
	};
	int n_fds = 0;
	ssize_t n = recvmsg(k->fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return WEFT_AGAIN;
	for (struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&msg) : NULL; c; c = CMSG_NXTHDR(&msg, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		size_t bytes = c->cmsg_len - CMSG_LEN(0);
		for (size_t at = 0; at + sizeof(int) <= bytes; at += sizeof(int)) {
			int fd;
			memcpy(&fd, CMSG_DATA(c) + at, sizeof fd);
			if (n_fds < GREETING_FDS)
				fds[n_fds++] = fd;
			else
				close(fd);
		}
	}
	if (n == (ssize_t)sizeof *g && n_fds == GREETING_FDS && !(msg.msg_flags & MSG_CTRUNC) &&
	    g->magic == GREETING_MAGIC)
		return WEFT_OK;
	while (n_fds)
		close(fds[--n_fds]);
	/* Descriptors get lost on the way when we may open no more of them. */
	if (n > 0 && (msg.msg_flags & MSG_CTRUNC))
		return WEFT_ERR_LIMIT;
	return n > 0 ? WEFT_ERR_PROTO : WEFT_ERR_PEER;
}

/*
 * Does it look like our own doorbell?  A pipe in its place would block us when it is full, or kill
 * us when it has no reader.
 */
static bool is_bell(int fd, int ours)
{
	struct stat a, b;
	int flags = fcntl(fd, F_GETFL);
	return fstat(fd, &a) == 0 && fstat(ours, &b) == 0 && a.st_dev == b.st_dev &&
	       (a.st_mode & S_IFMT) == (b.st_mode & S_IFMT) && flags >= 0 && flags & O_NONBLOCK;
}

static weft_err map_peer(struct weft_shm_link *k, const struct greeting *g, const int *fds)
{
	struct weft_ring_shape shape = {.slots = g->slots, .data = g->data, .narrow = g->narrow};
	if (!weft_net_ring_shape_ok(shape, WEFT_SHM_MAX_PAYLOAD) ||
	    g->max_payload != WEFT_SHM_MAX_PAYLOAD ||
	    g->inbox_bytes != sizeof(struct weft_shm_inbox))
		return WEFT_ERR_PROTO;
	k->tx_bytes = weft_net_ring_bytes(shape);
	weft_err err = weft_net_shm_memory_map(fds[0], k->tx_bytes, &k->tx_memory);
	if (!err)
		err = weft_net_shm_memory_map(fds[1], sizeof(struct weft_shm_inbox), &k->tx_inbox);
	if (err)
		return err;
	weft_net_ring_tx_attach(&k->tx, k->tx_memory, shape, &k->rx.back);
	k->bell = &((struct weft_shm_inbox *)k->tx_inbox)->bell;
	return WEFT_OK;
}

void weft_net_shm_link_ready(struct weft_shm *s, struct weft_shm_link *k)
{
	/* READY <- BLOCK (set_blocked): the poster's second look comes after it, or this sees it.
	 */
	if (!atomic_exchange_explicit(&k->x_blocked, false, memory_order_seq_cst))
		return;
	/* Relaxed: a hint for the poller, which is us. */
	atomic_fetch_sub_explicit(&s->x_blocked, 1, memory_order_relaxed);
	s->events.ready(s->events.arg, k->peer);
}

static void link_up(struct weft_shm *s, struct weft_shm_link *k, const struct greeting *g)
{
	weft_assert(s->n_greeting > 0 && s->n_scan < s->job.size);
	weft_assert(k->bell && k->bell_fd >= 0 && k->rx_memory && k->tx_memory && k->tx_inbox);
	k->plain = k->offers_plain && (g->flags & FLAG_REGISTERED);
	s->fence |= k->plain;
	k->can_copy = weft_net_shm_cma_probe(s, k, g->nonce_addr, g->nonce);
	s->scan[s->n_scan++] = k->peer;
	s->n_greeting--;
	s->n_up++;
	weft_debug("shm: rank %d is connected%s%s", k->peer, k->can_copy ? ", cross-memory" : "",
		   k->plain ? "" : ", fenced");
	/* UP -> USE (posters).  Carries: tx, bell, plain.  seq_cst: pairs with x_blocked, so that a
	 * poster either sees UP or has left the flag that ready() takes. */
	atomic_store_explicit(&k->x_state, WEFT_SHM_UP, memory_order_seq_cst);
	weft_net_shm_link_ready(s, k);
}

static void on_greeting(struct weft_shm *s, struct weft_shm_link *k)
{
	struct greeting g;
	int fds[GREETING_FDS];
	weft_err err = read_greeting(k, &g, fds);
	if (err == WEFT_AGAIN)
		return;
	if (err == WEFT_ERR_LIMIT) {
		weft_net_shm_link_down(s, k, err, "no descriptor is free for it (raise ulimit -n)");
		return;
	}
	if (err) {
		weft_net_shm_link_down(s, k, err, "the connection ended before it was set up");
		return;
	}
	err = map_peer(k, &g, fds);
	close(fds[0]);
	close(fds[1]);
	if (!err && !is_bell(fds[2], s->hub.wake_fd)) {
		close(fds[2]);
		weft_net_shm_link_down(s, k, WEFT_ERR_PROTO, "its doorbell is none");
		return;
	}
	if (err) {
		close(fds[2]);
		weft_net_shm_link_down(s, k, err, "its shared memory is not what it should be");
		return;
	}
	k->bell_fd = fds[2];
	link_up(s, k, &g);
}

/* The peer has ended: take what it had published, then say so. */
static void on_end(struct weft_shm *s, struct weft_shm_link *k)
{
	/* Ends: a ring holds so many.  A peer that still writes there lies. */
	int left = (int)((k->rx.slot_mask + 1) * WEFT_RING_CELLS), n = 1;
	while (left > 0 && n > 0 &&
	       atomic_load_explicit(&k->x_state, memory_order_relaxed) == WEFT_SHM_UP) {
		n = weft_net_shm_link_take(s, k, left < 64 ? left : 64);
		left -= n;
	}
	char why[96];
	snprintf(why, sizeof why, "process %d ended without leaving the job", (int)k->pid);
	weft_net_shm_link_down(s, k, WEFT_ERR_PEER, why);
}

void weft_net_shm_link_event(struct weft_shm *s, int peer, unsigned kind)
{
	struct weft_shm_link *k = &s->link[peer];
	/* Relaxed: only the poller, we, writes it. */
	int state = atomic_load_explicit(&k->x_state, memory_order_relaxed);
	if (state == WEFT_SHM_GREETING) {
		on_greeting(s, k);
		state = atomic_load_explicit(&k->x_state, memory_order_relaxed);
		if (kind == WEFT_SHM_EV_SOCKET || state != WEFT_SHM_UP)
			return;
	}
	if (state != WEFT_SHM_UP)
		return;
	char c;
	if (kind == WEFT_SHM_EV_SOCKET) {
		ssize_t n = recv(k->fd, &c, 1, MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
	}
	on_end(s, k);
}

void weft_net_shm_link_down(struct weft_shm *s, struct weft_shm_link *k, weft_err err,
			    const char *why)
{
	char text[192];
	/* Relaxed: only the poller, we, writes it. */
	int state = atomic_load_explicit(&k->x_state, memory_order_relaxed);
	if (state == WEFT_SHM_DOWN)
		return;
	if (k->fd >= 0)
		weft_net_hub_remove(&s->hub, k->fd);
	if (k->pid_fd >= 0)
		weft_net_hub_remove(&s->hub, k->pid_fd);
	if (state == WEFT_SHM_GREETING)
		s->n_greeting--;
	if (state == WEFT_SHM_UP)
		s->n_up--;
	for (int i = 0; i < s->n_scan; i++)
		if (s->scan[i] == k->peer)
			s->scan[i--] = s->scan[--s->n_scan];
	weft_net_shm_check(s);
	weft_net_lobby_forget(&s->lobby, k->peer);
	/* seq_cst: a poster sees DOWN, or we see its x_blocked.  The memory and the descriptors
	 * stay until close(): a post or a get may be using them. */
	atomic_store_explicit(&k->x_state, WEFT_SHM_DOWN, memory_order_seq_cst);
	if (atomic_exchange_explicit(&k->x_blocked, false, memory_order_seq_cst))
		atomic_fetch_sub_explicit(&s->x_blocked, 1, memory_order_relaxed);
	if (k->fd >= 0)
		(void)shutdown(k->fd, SHUT_RDWR);
	if (err)
		snprintf(text, sizeof text, "lost rank %d (shm): %s", k->peer, why);
	else
		snprintf(text, sizeof text, "rank %d left (shm)", k->peer);
	s->events.down(s->events.arg, k->peer, err, text);
}

/* The receiver's word was told, and the sender waits for it. */
static __attribute__((noinline)) void told_waiting(struct weft_shm_link *k)
{
	if (weft_net_bell_urgent(k->bell))
		weft_net_bell_ring(k->bell, k->bell_fd);
}

/* One that is not short: its payload lies in the other ring, or it is none.  False: the end. */
static bool take_long(struct weft_shm *s, struct weft_shm_link *k,
		      const struct weft_ring_slot *slot, uint64_t word)
{
	struct weft_ring_packet p;
	weft_err err = weft_net_ring_take_found(&k->rx, &p, slot, word);
	if (weft_unlikely(err)) {
		if (err == WEFT_AGAIN)
			weft_net_shm_link_down(s, k, WEFT_OK, "");
		else
			weft_net_shm_link_down(s, k, err, "a packet of impossible length came");
		return false;
	}
	s->events.packet(s->events.arg, k->peer, p.head, p.payload, p.len);
	if (weft_unlikely(weft_net_ring_consume(&k->rx, &p)))
		told_waiting(k);
	return true;
}

int weft_net_shm_link_take(struct weft_shm *s, struct weft_shm_link *k, int max)
{
	alignas(8) uint8_t head[WEFT_NET_HEAD];
	const struct weft_ring_slot *slot;
	uint64_t word;
	int n = 0;
	weft_assert(max > 0);
	while (n < max && (slot = weft_net_ring_find(&k->rx, &word)) != NULL) {
		uint32_t run = weft_net_ring_run(&k->rx, word), len = weft_net_ring_word_len(word);
		weft_assert(run <= WEFT_RING_CELLS);
		if (!run) {
			n++;
			if (!take_long(s, k, slot, word))
				break;
			continue;
		}
		const void *payload = weft_net_ring_open(&k->rx, slot, head);
		if (run > 1 && s->events.run) {
			s->events.run(s->events.arg, k->peer, head, payload, len, run);
		} else {
			run = 1;
			s->events.packet(s->events.arg, k->peer, head, payload, len);
		}
		n += (int)run;
		if (weft_unlikely(weft_net_ring_consume_inline(&k->rx, len, run)))
			told_waiting(k);
	}
	return n;
}

void weft_net_shm_link_free(struct weft_shm_link *k)
{
	int *fds[] = {&k->fd, &k->pid_fd, &k->bell_fd};
	for (size_t i = 0; i < weft_countof(fds); i++) {
		if (*fds[i] >= 0)
			close(*fds[i]);
		*fds[i] = -1;
	}
	weft_net_shm_memory_unmap(k->rx_memory, k->rx_bytes);
	weft_net_shm_memory_unmap(k->tx_memory, k->tx_bytes);
	weft_net_shm_memory_unmap(k->tx_inbox, sizeof(struct weft_shm_inbox));
}

void weft_net_shm_link_reset(struct weft_shm *s, struct weft_shm_link *k)
{
	/* Relaxed: only the poller, we, writes it. */
	if (atomic_load_explicit(&k->x_state, memory_order_relaxed) != WEFT_SHM_DOWN)
		return;
	weft_net_shm_link_free(k);
	k->bell = NULL;
	weft_assert(k->fd < 0 && k->pid_fd < 0 && k->bell_fd < 0);
	k->rx_memory = k->tx_memory = k->tx_inbox = NULL;
	k->plain = k->bye_sent = k->offers_plain = k->can_copy = false;
	memset(&k->rx, 0, sizeof k->rx);
	memset(&k->tx, 0, sizeof k->tx);
	weft_net_lobby_revive(&s->lobby, k->peer);
	/* seq_cst: as the store of DOWN. */
	atomic_store_explicit(&k->x_state, WEFT_SHM_NONE, memory_order_seq_cst);
}
