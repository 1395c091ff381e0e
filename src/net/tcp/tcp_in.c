/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp_in.c - the incoming half of a connection: many small packets per recv, large payloads
 * straight from the socket into their place.
 */
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "base/log.h"
#include "net/tcp/tcp_int.h"

#define PACKETS_PER_POLL 128         /* bounds how long the source's mask is held */
#define BYTES_PER_POLL (1024u << 10) /* the same, for payload that goes straight to its place */
#define PIECES 16
#define LIMIT_MIN                                                                                  \
	4096u /* what one recv brings into the buffer: little where long payloads come,            \
		 since that part of them is copied again; all of it where packets are              \
		 small and many */

static uint32_t frame_check(uint32_t len, const uint8_t head[WEFT_NET_HEAD])
{
	/* Against broken middle boxes and software, not against forgers. */
	uint64_t h = 0x9e3779b97f4a7c15u ^ len;
	for (unsigned i = 0; i < WEFT_NET_HEAD; i += 8) {
		uint64_t w;
		memcpy(&w, head + i, sizeof w);
		h = (h ^ w) * 0xbf58476d1ce4e5b9u;
		h ^= h >> 29;
	}
	return (uint32_t)(h ^ h >> 32);
}

void weft_net_tcp_frame_stamp(uint8_t frame[WEFT_TCP_FRAME], uint32_t len)
{
	uint32_t word[2] = {htole32(len), htole32(frame_check(len, frame + 8))};
	memcpy(frame, word, sizeof word);
}

void weft_net_tcp_frame_write(uint8_t frame[WEFT_TCP_FRAME], uint32_t len, const void *head)
{
	memcpy(frame + 8, head, WEFT_NET_HEAD);
	weft_net_tcp_frame_stamp(frame, len);
}

/* How many packets, of which length; BYE: as the length of one.  False: this is not a frame. */
static bool frame_read(const uint8_t *frame, uint32_t *n_p, uint32_t *len_p)
{
	uint32_t word[2];
	memcpy(word, frame, sizeof word);
	*len_p = le32toh(word[0]);
	*n_p = 1;
	return le32toh(word[1]) == frame_check(*len_p, frame + 8) &&
	       (*len_p <= WEFT_TCP_MAX_PAYLOAD || *len_p == WEFT_TCP_BYE ||
		weft_net_tcp_run_read(*len_p, n_p, len_p));
}

/* Drops from the sink what lies beyond its room or its pieces; steps over bytes that are filled. */
static void sink_step(struct weft_net_sink *s, size_t bytes)
{
	s->room -= bytes < s->room ? bytes : s->room;
	while (s->n && bytes >= s->iov->iov_len) {
		bytes -= s->iov->iov_len;
		s->iov++;
		s->n--;
	}
	if (s->n) {
		s->iov->iov_base = (char *)s->iov->iov_base + bytes;
		s->iov->iov_len -= bytes;
	}
	if (!s->room)
		s->n = 0;
}

/* Copies len bytes to the sink; what does not fit is dropped. */
static void sink_copy(struct weft_net_sink *s, const uint8_t *from, size_t len)
{
	while (len && s->n) {
		size_t part = s->iov->iov_len < len ? s->iov->iov_len : len;
		if (part > s->room)
			part = s->room;
		if (part)
			memcpy(s->iov->iov_base, from, part);
		from += part;
		len -= part;
		sink_step(s, part);
	}
}

/*
 * Of a long payload a sleeper need not hear piece by piece: each wake-up takes the core from a
 * thread that computes there.  Less than that is left, or something else comes: as ever.
 */
static void set_batched(struct weft_tcp_conn *c)
{
	bool want = c->in.placing && c->in.left >= WEFT_TCP_BATCH;
	int least = want ? (int)WEFT_TCP_BATCH : 1;
	if (weft_likely(want == c->in.batched))
		return;
	if (setsockopt(c->fd, SOL_SOCKET, SO_RCVLOWAT, &least, sizeof least) == 0)
		c->in.batched = want;
}

static void end_place(struct weft_tcp *t, struct weft_tcp_conn *c, weft_err err)
{
	weft_assert(c->in.placing && (err || !c->in.left));
	void *cookie = c->in.sink.cookie;
	c->in.placing = false;
	t->events.placed(t->events.arg, c->peer, cookie, err);
}

void weft_net_tcp_in_abandon(struct weft_tcp *t, struct weft_tcp_conn *c, weft_err err)
{
	if (c->in.placing)
		end_place(t, c, err);
}

/* A long payload begins; `have` bytes of it are in the buffer. */
static void begin_place(struct weft_tcp *t, struct weft_tcp_conn *c, const uint8_t *head,
			uint32_t len, uint32_t have)
{
	struct weft_tcp_in *in = &c->in;
	weft_assert(!in->placing && have < len && len > WEFT_TCP_WHOLE);
	in->sink = (struct weft_net_sink){0};
	t->events.place(t->events.arg, c->peer, head, len, &in->sink);
	in->placing = true;
	in->limit = LIMIT_MIN;
	sink_copy(&in->sink, in->buf + in->begin + WEFT_TCP_FRAME, have);
	in->left = len - have;
	in->begin = in->end = 0;
}

static void set_more(struct weft_tcp *t, struct weft_tcp_conn *c, bool more)
{
	if (c->in.more == more)
		return;
	c->in.more = more;
	weft_assert(more || t->n_more > 0);
	t->n_more += more ? 1 : -1;
}

/* Several packets of one frame, which are all there. */
static void deliver_run(struct weft_tcp *t, int peer, const uint8_t *frame, uint32_t n,
			uint32_t len)
{
	const uint8_t *payload = frame + WEFT_TCP_FRAME;
	const size_t apart = weft_net_run_apart(len);
	uint64_t head[WEFT_NET_HEAD / sizeof(uint64_t)];
	memcpy(head, frame + 8, sizeof head);
	if (weft_unlikely(!t->events.run)) {
		for (uint32_t i = 0; i < n; i++) {
			t->events.packet(t->events.arg, peer, head, payload + i * apart, len);
			head[0] += WEFT_NET_RUN_STEP;
		}
		return;
	}
	while (n) {
		uint32_t part = n < WEFT_NET_RUN_MAX ? n : WEFT_NET_RUN_MAX;
		t->events.run(t->events.arg, peer, head, payload, len, part);
		head[0] += part * WEFT_NET_RUN_STEP;
		payload += part * apart;
		n -= part;
	}
}

/* Delivers what is whole in the buffer; returns the upcalls made, -1: the stream is damaged. */
static int parse(struct weft_tcp *t, struct weft_tcp_conn *c, int max)
{
	struct weft_tcp_in *in = &c->in;
	int n = 0;
	while (in->end - in->begin >= WEFT_TCP_FRAME && !in->bye) {
		const uint8_t *frame = in->buf + in->begin;
		uint32_t have = in->end - in->begin - WEFT_TCP_FRAME, len, run;
		if (n >= max) {
			set_more(t, c, true);
			return n;
		}
		if (!frame_read(frame, &run, &len))
			return -1;
		if (run > 1) {
			uint32_t bytes = run * (uint32_t)weft_net_run_apart(len);
			if (bytes > have)
				break;
			in->begin += WEFT_TCP_FRAME + bytes;
			deliver_run(t, c->peer, frame, run, len);
			n += (int)run;
			continue;
		}
		if (len == WEFT_TCP_BYE) {
			in->bye = true;
			in->begin += WEFT_TCP_FRAME;
			break;
		}
		if (len <= have) {
			in->begin += WEFT_TCP_FRAME + len;
			t->events.packet(t->events.arg, c->peer, frame + 8, frame + WEFT_TCP_FRAME,
					 len);
			n++;
			continue;
		}
		if (len <= WEFT_TCP_WHOLE)
			break;
		begin_place(t, c, frame + 8, len, have);
		n++;
		break;
	}
	weft_assert(in->begin <= in->end && in->end <= WEFT_TCP_IN_BUFFER);
	set_more(t, c, false);
	if (in->begin == in->end) {
		in->begin = in->end = 0;
	} else if (in->begin > WEFT_TCP_IN_BUFFER / 2) {
		memmove(in->buf, in->buf + in->begin, in->end - in->begin);
		in->end -= in->begin;
		in->begin = 0;
	}
	return n;
}

/* One readv: the rest of a payload into its pieces, and what follows into the buffer. */
static ssize_t read_some(struct weft_tcp_conn *c, size_t *asked_p)
{
	struct weft_tcp_in *in = &c->in;
	struct iovec iov[PIECES + 1];
	int n = 0;
	size_t asked = 0, direct = 0;
	bool all = true;

	if (in->placing && in->sink.n) {
		size_t room = in->left < in->sink.room ? in->left : in->sink.room;
		for (unsigned i = 0; i < in->sink.n && n < PIECES && direct < room; i++) {
			iov[n] = in->sink.iov[i];
			if (iov[n].iov_len > room - direct)
				iov[n].iov_len = room - direct;
			direct += iov[n].iov_len;
			n += iov[n].iov_len > 0;
		}
		all = direct == in->left;
	} else if (in->placing) {
		all = false; /* dropped: read into the buffer, never more than is left */
	}
	asked = direct;
	if (all || !direct) {
		size_t room = WEFT_TCP_IN_BUFFER - in->end;
		weft_assert(room > 0); /* a frame that waits for its rest leaves room for it */
		if (room > in->limit)
			room = in->limit;
		if (in->placing && !all && in->left < room)
			room = in->left;
		iov[n].iov_base = in->buf + in->end;
		iov[n].iov_len = room;
		asked += room;
		n++;
	}
	*asked_p = asked;
	ssize_t got = n == 1 ? recv(c->fd, iov[0].iov_base, iov[0].iov_len, MSG_DONTWAIT)
			     : readv(c->fd, iov, n);
	if (got <= 0)
		return got;
	weft_assert((size_t)got <= asked);
	if (!in->placing) {
		in->end += (uint32_t)got;
	} else if (!direct) {
		in->left -= (size_t)got; /* dropped */
	} else {
		size_t part = (size_t)got < direct ? (size_t)got : direct;
		sink_step(&in->sink, part);
		in->left -= part;
		in->end += (uint32_t)((size_t)got - part);
	}
	return got;
}

static void say_lost(struct weft_tcp *t, struct weft_tcp_conn *c, ssize_t got, int error)
{
	char why[96];
	bool inside = c->in.placing || c->in.end != c->in.begin;
	if (c->in.bye || (c->bye_queued && !inside)) {
		weft_net_tcp_conn_down(t, c, WEFT_OK, "");
		return;
	}
	snprintf(why, sizeof why, "%s%s", got == 0 ? "its connection ended" : strerror(error),
		 inside ? ", in the middle of a packet" : "");
	weft_net_tcp_conn_down(t, c, WEFT_ERR_PEER, why);
}

/* True: the connection is no more. */
static bool after_parse(struct weft_tcp *t, struct weft_tcp_conn *c, int n)
{
	if (n < 0) {
		weft_net_tcp_conn_down(t, c, WEFT_ERR_PROTO, "it sent bytes that are no packet");
		return true;
	}
	if (c->in.bye) {
		weft_net_tcp_conn_down(t, c, WEFT_OK, "");
		return true;
	}
	return false;
}

int weft_net_tcp_in_read(struct weft_tcp *t, struct weft_tcp_conn *c)
{
	struct weft_tcp_in *in = &c->in;
	int upcalls = 0;
	size_t bytes = 0;

	if (in->more) {
		int n = parse(t, c, PACKETS_PER_POLL);
		if (after_parse(t, c, n))
			return 1;
		upcalls += n;
	}
	/* Ends when the socket is empty or the budget is used up. */
	while (upcalls < PACKETS_PER_POLL && bytes < BYTES_PER_POLL && !in->more) {
		size_t asked;
		ssize_t got = read_some(c, &asked);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 && (errno == EAGAIN || errno == ENOMEM || errno == ENOBUFS))
			break;
		if (got <= 0) {
			say_lost(t, c, got, errno);
			return upcalls + 1;
		}
		bytes += (size_t)got;
		if (in->placing && !in->left) {
			end_place(t, c, WEFT_OK);
			upcalls++;
		}
		if (!in->placing) {
			int n = parse(t, c, PACKETS_PER_POLL - upcalls);
			if (after_parse(t, c, n))
				return upcalls + 1;
			upcalls += n;
			/* Full of packets: take more of them at a time. */
			if ((size_t)got == asked && !in->placing)
				in->limit = WEFT_TCP_IN_BUFFER;
		}
		if ((size_t)got < asked)
			break;
	}
	set_batched(c);
	return upcalls;
}
