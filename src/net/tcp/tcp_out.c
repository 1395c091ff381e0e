/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp_out.c - the outgoing half of a connection: straight into the socket while it takes it, else
 * small packets copied into blocks that leave together, large ones kept until the socket has room.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/backoff.h"
#include "base/cancel.h"
#include "base/counters.h"
#include "net/shm/ring_tx.h"
#include "net/tcp/tcp_int.h"

#define PATIENCE 2000      /* tries for the lock, a few us, before a poster answers FULL */
#define BATCH (256u << 10) /* bytes per sendmsg while the lock is held: some 40 us */
#define PIECES 64

bool weft_net_tcp_out_lock(struct weft_tcp_conn *c, bool patient)
{
	unsigned turns = 0;
	for (int i = 0; i < PATIENCE || patient; i++) {
		/* LOCK <- UNLOCK.  Carries: out, fd, last_round. */
		if (!atomic_load_explicit(&c->x_lock, memory_order_relaxed) &&
		    !atomic_exchange_explicit(&c->x_lock, true, memory_order_acquire))
			return true;
		if (patient)
			weft_backoff(&turns);
		else
			weft_cpu_relax();
	}
	return false;
}

void weft_net_tcp_out_unlock(struct weft_tcp_conn *c)
{
	weft_assert_held(weft_net_tcp_out, c);
	weft_net_tcp_out_check(&c->out);
	/* UNLOCK -> LOCK. */
	atomic_store_explicit(&c->x_lock, false, memory_order_release);
}

void weft_net_tcp_out_init(struct weft_tcp_out *o)
{
	memset(o, 0, sizeof *o);
	o->done_end = &o->done;
}

void weft_net_tcp_out_mark_dirty(struct weft_tcp *t, struct weft_tcp_conn *c)
{
	/* DIRTY -> SERVE (tcp.c).  seq_cst: the caller looks at x_armed next. */
	if (!atomic_exchange_explicit(&c->x_dirty, true, memory_order_seq_cst))
		atomic_fetch_add_explicit(&t->x_dirty, 1, memory_order_seq_cst);
}

static void set_stuck(struct weft_tcp *t, struct weft_tcp_conn *c, bool stuck)
{
	weft_assert_held(weft_net_tcp_out, c);
	struct weft_tcp_out *o = &c->out;
	if (o->stuck == stuck)
		return;
	o->stuck = stuck;
	/* Relaxed: tells the poller to look at epoll; it also looks now and then by itself. */
	atomic_fetch_add_explicit(&t->x_stuck, stuck ? 1 : -1, memory_order_relaxed);
	weft_net_hub_change(&t->hub, c->fd, EPOLLIN | EPOLLRDHUP | (stuck ? EPOLLOUT : 0u),
			    weft_net_hub_data(WEFT_TCP_EV_CONN, (uint64_t)c->peer));
}

/* One sendmsg.  Bytes taken by the socket; 0: it is full; -1: it is broken. */
static ssize_t send_some(struct weft_tcp *t, struct weft_tcp_conn *c, struct iovec *iov, unsigned n)
{
	weft_assert_held(weft_net_tcp_out, c);
	weft_assert(n > 0 && n <= PIECES && c->fd >= 0);
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = n};
	for (;;) {
		int was = weft_cancel_off();
		ssize_t done = sendmsg(c->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
		weft_cancel_back(was);
		weft_count(WEFT_CNT_TCP_SENDS, 1);
		if (done >= 0)
			return done;
		if (errno == EINTR)
			continue;
		if (errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM) {
			set_stuck(t, c, true);
			return 0;
		}
		c->out.error = errno;
		/* The poller reads what is left to read and then says that the peer is down. */
		weft_net_tcp_out_mark_dirty(t, c);
		return -1;
	}
}

static void append_item(struct weft_tcp_out *o, struct weft_tcp_item *it)
{
	it->next = NULL;
	if (o->last)
		o->last->next = it;
	else
		o->first = it;
	o->last = it;
}

static struct weft_tcp_item *new_block(struct weft_tcp_out *o)
{
	struct weft_tcp_item *it = o->spare;
	o->spare = NULL;
	if (!it)
		it = malloc(sizeof *it + WEFT_TCP_BLOCK);
	if (!it)
		return NULL;
	it->is_block = true;
	it->begin = it->end = 0;
	o->n_blocks++;
	append_item(o, it);
	return it;
}

/* Steps over `skip` bytes; returns where the rest begins in the first piece that is left. */
static void step_over(struct iovec **iov, unsigned *n, size_t skip)
{
	while (*n && skip >= (*iov)->iov_len) {
		skip -= (*iov)->iov_len;
		(*iov)++;
		(*n)--;
	}
	if (*n) {
		(*iov)->iov_base = (char *)(*iov)->iov_base + skip;
		(*iov)->iov_len -= skip;
	}
}

/* Room for bytes at the end of the last block, or in a new one; NULL: enough is waiting. */
static uint8_t *block_room(struct weft_tcp_out *o, size_t bytes)
{
	struct weft_tcp_item *it = o->last;
	weft_net_tcp_out_close(o);
	if (!it || !it->is_block || it->end + bytes > WEFT_TCP_BLOCK) {
		if (o->n_blocks >= WEFT_TCP_BLOCKS_MAX)
			return NULL;
		it = new_block(o);
		if (!it)
			return NULL;
	}
	uint8_t *at = it->data + it->end;
	it->end += (uint32_t)bytes;
	return at;
}

/* Copies a packet, without its first `skip` bytes, behind what waits. */
static bool copy_in(struct weft_tcp_out *o, const uint8_t *frame, const struct iovec *iov,
		    unsigned n, size_t len, size_t skip)
{
	weft_assert(len <= WEFT_TCP_INLINE && skip < WEFT_TCP_FRAME + len);
	uint8_t packet[WEFT_TCP_FRAME + WEFT_TCP_INLINE];
	uint8_t *at = block_room(o, WEFT_TCP_FRAME + len - skip);
	if (!at)
		return false;
	if (!skip) {
		memcpy(at, frame, WEFT_TCP_FRAME);
		weft_net_ring_gather(at + WEFT_TCP_FRAME, iov, n, len);
		return true;
	}
	memcpy(packet, frame, WEFT_TCP_FRAME);
	weft_net_ring_gather(packet + WEFT_TCP_FRAME, iov, n, len);
	memcpy(at, packet + skip, WEFT_TCP_FRAME + len - skip);
	return true;
}

/* Copies the pieces up to len bytes; returns how many there are. */
static unsigned copy_pieces(struct iovec *to, const struct iovec *iov, unsigned n, size_t len)
{
	unsigned m = 0;
	for (unsigned i = 0; i < n && len; i++) {
		to[m] = iov[i];
		if (to[m].iov_len > len)
			to[m].iov_len = len;
		len -= to[m].iov_len;
		m += to[m].iov_len > 0;
	}
	return m;
}

/* An item that will send a large packet when its turn comes. */
static struct weft_tcp_item *new_kept(const uint8_t *frame, const struct iovec *iov, unsigned n,
				      size_t len, void *cookie)
{
	struct weft_tcp_item *it = malloc(sizeof *it + WEFT_TCP_FRAME);
	if (!it)
		return NULL;
	it->many = NULL;
	it->iov = it->few;
	if (n > weft_countof(it->few)) {
		it->many = it->iov = malloc(n * sizeof *iov);
		if (!it->many) {
			free(it);
			return NULL;
		}
	}
	it->is_block = false;
	it->begin = 0;
	it->end = WEFT_TCP_FRAME;
	it->n = copy_pieces(it->iov, iov, n, len);
	it->cookie = cookie;
	memcpy(it->data, frame, WEFT_TCP_FRAME);
	return it;
}

void weft_net_tcp_item_free(struct weft_tcp_item *it)
{
	if (!it->is_block)
		free(it->many);
	free(it);
}

static void keep_item(struct weft_tcp_out *o, struct weft_tcp_item *it)
{
	weft_net_tcp_out_close(o);
	append_item(o, it);
	o->n_kept++;
}

/* Advances the items by what the socket took. */
static void advance_items(struct weft_tcp *t, struct weft_tcp_conn *c, size_t done)
{
	struct weft_tcp_out *o = &c->out;
	while (o->first) {
		struct weft_tcp_item *it = o->first;
		weft_assert(it->begin <= it->end);
		size_t part = it->end - it->begin;
		part = part < done ? part : done;
		it->begin += (uint32_t)part;
		done -= part;
		if (!it->is_block && it->begin == it->end) {
			size_t before = 0, after = 0;
			for (unsigned i = 0; i < it->n; i++)
				before += it->iov[i].iov_len;
			step_over(&it->iov, &it->n, done < before ? done : before);
			for (unsigned i = 0; i < it->n; i++)
				after += it->iov[i].iov_len;
			done -= before - after;
			if (after)
				return;
		}
		if (it->begin < it->end)
			return;
		o->first = it->next;
		if (!o->first)
			o->last = NULL;
		if (!it->is_block) {
			it->next = NULL;
			*o->done_end = it;
			o->done_end = &it->next;
			weft_assert(o->n_kept > 0 && it->begin == it->end);
			o->n_kept--;
			weft_net_tcp_out_mark_dirty(t, c);
		} else {
			weft_assert(o->n_blocks > 0);
			o->n_blocks--;
			if (o->spare)
				free(it);
			else
				o->spare = it;
		}
	}
}

static unsigned collect_pieces(struct weft_tcp_out *o, struct iovec iov[PIECES], size_t *bytes_p)
{
	unsigned n = 0;
	size_t bytes = 0;
	for (struct weft_tcp_item *it = o->first; it && n < PIECES && bytes < BATCH;
	     it = it->next) {
		if (it->begin < it->end) {
			iov[n].iov_base = it->data + it->begin;
			iov[n].iov_len = it->end - it->begin;
			bytes += iov[n++].iov_len;
		}
		for (unsigned i = 0; !it->is_block && i < it->n && n < PIECES && bytes < BATCH;
		     i++) {
			size_t part = it->iov[i].iov_len;
			part = part < BATCH - bytes ? part : BATCH - bytes;
			iov[n].iov_base = it->iov[i].iov_base;
			iov[n].iov_len = part;
			bytes += part;
			n += part > 0;
			if (part < it->iov[i].iov_len) {
				*bytes_p = bytes;
				return n;
			}
		}
		/* The pieces of an item must be complete before the next one begins. */
		if (n == PIECES)
			break;
	}
	*bytes_p = bytes;
	return n;
}

bool weft_net_tcp_out_push(struct weft_tcp *t, struct weft_tcp_conn *c)
{
	weft_assert_held(weft_net_tcp_out, c);
	struct weft_tcp_out *o = &c->out;
	struct iovec iov[PIECES];
	size_t bytes;
	if (!o->first)
		return true;
	if (o->error)
		return false;
	weft_net_tcp_out_close(o);
	unsigned n = collect_pieces(o, iov, &bytes);
	ssize_t done = send_some(t, c, iov, n);
	if (done <= 0)
		return false;
	advance_items(t, c, (size_t)done);
	if (!o->first) {
		set_stuck(t, c, false);
		return true;
	}
	if ((size_t)done < bytes)
		set_stuck(t, c, true);
	return false;
}

/* Behind what waits already. */
static enum weft_post post_behind(struct weft_tcp *t, struct weft_tcp_conn *c, const uint8_t *frame,
				  const struct iovec *iov, unsigned n, size_t len, void *cookie)
{
	struct weft_tcp_out *o = &c->out;
	if (len <= WEFT_TCP_INLINE) {
		if (!copy_in(o, frame, iov, n, len, 0))
			return WEFT_POST_FULL;
		weft_net_tcp_run_begin(&o->run, o->last->data + o->last->end - len - WEFT_TCP_FRAME,
				       frame + 8, len);
		weft_count(WEFT_CNT_AGGREGATED, 1);
	} else {
		struct weft_tcp_item *it =
			o->n_kept < WEFT_TCP_KEPT_MAX ? new_kept(frame, iov, n, len, cookie) : NULL;
		if (!it)
			return WEFT_POST_FULL;
		keep_item(o, it);
	}
	/* A block is full: better now than later. */
	if (!o->stuck && o->n_blocks > 1)
		(void)weft_net_tcp_out_push(t, c);
	if (o->first && !o->stuck)
		weft_net_tcp_out_mark_dirty(t, c);
	return len <= WEFT_TCP_INLINE ? WEFT_POST_DONE : WEFT_POST_ACCEPTED;
}

/* One flat send is cheaper for the kernel than the same bytes in pieces. */
static ssize_t send_flat(struct weft_tcp *t, struct weft_tcp_conn *c, const uint8_t *frame,
			 const struct iovec *iov, unsigned n, size_t len)
{
	uint8_t flat[WEFT_TCP_FRAME + WEFT_TCP_CORK];
	memcpy(flat, frame, WEFT_TCP_FRAME);
	if (len)
		weft_net_ring_gather(flat + WEFT_TCP_FRAME, iov, n, len);
	int was = weft_cancel_off();
	ssize_t done = send(c->fd, flat, WEFT_TCP_FRAME + len, MSG_NOSIGNAL | MSG_DONTWAIT);
	weft_cancel_back(was);
	weft_count(WEFT_CNT_TCP_SENDS, 1);
	if (weft_likely(done >= 0))
		return done;
	/* Any trouble: the long way knows what to do. */
	struct iovec one = {.iov_base = flat, .iov_len = WEFT_TCP_FRAME + len};
	return send_some(t, c, &one, 1);
}

/* Nothing waits: into the socket, what it takes. */
static enum weft_post post_now(struct weft_tcp *t, struct weft_tcp_conn *c, const uint8_t *frame,
			       const struct iovec *iov, unsigned n, size_t len, void *cookie)
{
	struct weft_tcp_out *o = &c->out;
	struct iovec all[PIECES];
	if (n > PIECES - 1) {
		struct weft_tcp_item *it = new_kept(frame, iov, n, len, cookie);
		if (!it)
			return WEFT_POST_FULL;
		keep_item(o, it);
		(void)weft_net_tcp_out_push(t, c);
		weft_net_tcp_out_mark_dirty(t, c);
		return WEFT_POST_ACCEPTED;
	}
	ssize_t done;
	if (weft_likely(len <= WEFT_TCP_CORK)) {
		done = send_flat(t, c, frame, iov, n, len);
	} else {
		all[0].iov_base = (void *)(uintptr_t)frame;
		all[0].iov_len = WEFT_TCP_FRAME;
		done = send_some(t, c, all, 1 + copy_pieces(all + 1, iov, n, len));
	}
	if (done < 0)
		return WEFT_POST_DOWN;
	if ((size_t)done == WEFT_TCP_FRAME + len)
		return WEFT_POST_DONE;
	if (!done && len > WEFT_TCP_INLINE) {
		struct weft_tcp_item *it = new_kept(frame, iov, n, len, cookie);
		if (!it)
			return WEFT_POST_FULL;
		keep_item(o, it);
		return WEFT_POST_ACCEPTED;
	}
	/* From here on the packet must go out: part of it may have. */
	set_stuck(t, c, true);
	if (len <= WEFT_TCP_INLINE) {
		if (copy_in(o, frame, iov, n, len, (size_t)done))
			return WEFT_POST_DONE;
		if (!done)
			return WEFT_POST_FULL;
	} else {
		struct weft_tcp_item *it = new_kept(frame, iov, n, len, cookie);
		if (it) {
			keep_item(o, it);
			advance_items(t, c, (size_t)done);
			return WEFT_POST_ACCEPTED;
		}
	}
	/* No memory for the rest of a packet that has begun: the stream cannot go on. */
	o->error = ENOMEM;
	weft_net_tcp_out_mark_dirty(t, c);
	return WEFT_POST_DOWN;
}

enum weft_post weft_net_tcp_out_post(struct weft_tcp *t, struct weft_tcp_conn *c, const void *head,
				     const struct iovec *iov, unsigned n, size_t len, void *cookie,
				     bool cork)
{
	weft_assert_held(weft_net_tcp_out, c);
	weft_assert(len <= WEFT_TCP_MAX_PAYLOAD);
	uint8_t frame[WEFT_TCP_FRAME];
	if (weft_unlikely(c->out.error))
		return WEFT_POST_DOWN;
	if (c->out.run.at && weft_net_tcp_out_join(&c->out, head, iov, n, len))
		return WEFT_POST_DONE;
	weft_net_tcp_frame_write(frame, (uint32_t)len, head);
	if (c->out.first || (cork && len <= WEFT_TCP_CORK))
		return post_behind(t, c, frame, iov, n, len, cookie);
	return post_now(t, c, frame, iov, n, len, cookie);
}

static bool out_last_word(struct weft_tcp *t, struct weft_tcp_conn *c, uint32_t word)
{
	uint8_t frame[WEFT_TCP_FRAME], head[WEFT_NET_HEAD] = {0};
	weft_net_tcp_frame_write(frame, word, head);
	if (!copy_in(&c->out, frame, NULL, 0, 0, 0))
		return false;
	(void)weft_net_tcp_out_push(t, c);
	return true;
}

bool weft_net_tcp_out_bye(struct weft_tcp *t, struct weft_tcp_conn *c)
{
	return out_last_word(t, c, WEFT_TCP_BYE);
}

bool weft_net_tcp_out_rest(struct weft_tcp *t, struct weft_tcp_conn *c)
{
	return out_last_word(t, c, WEFT_TCP_REST);
}

struct weft_tcp_item *weft_net_tcp_out_take_done(struct weft_tcp_conn *c, bool all)
{
	struct weft_tcp_out *o = &c->out;
	struct weft_tcp_item *list = o->done;
	struct weft_tcp_item **end = o->done_end;
	o->run.at = all ? NULL : o->run.at;
	o->done = NULL;
	o->done_end = &o->done;
	if (!all)
		return list;
	if (!list)
		end = &list;
	/* Blocks have no poster to tell. */
	while (o->first) {
		struct weft_tcp_item *it = o->first;
		o->first = it->next;
		if (it->is_block) {
			free(it);
			continue;
		}
		it->next = NULL;
		*end = it;
		end = &it->next;
	}
	o->last = NULL;
	o->n_blocks = o->n_kept = 0;
	return list;
}

void weft_net_tcp_out_free(struct weft_tcp_out *o)
{
	o->run.at = NULL;
	while (o->first) {
		struct weft_tcp_item *it = o->first;
		o->first = it->next;
		weft_net_tcp_item_free(it);
	}
	free(o->spare);
	o->spare = NULL;
}
