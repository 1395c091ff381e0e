/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp_in.c - the incoming half of a connection: many small packets per recv, large payloads
 * straight from the socket into their place.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "net/tcp/tcp_int.h"

#define PACKETS_PER_POLL 128         /* bounds how long the source's mask is held */
#define BYTES_PER_POLL (1024u << 10) /* the same, for payload that goes straight to its place */
#define PIECES 16
#define LIMIT_MIN                                                                                  \
	4096u /* what one recv brings into the buffer: little where long payloads come,            \
		 since that part of them is copied again; all of it where packets are              \
		 small and many */

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
static int deliver_whole(struct weft_tcp *t, struct weft_tcp_conn *c, int max)
{
	struct weft_tcp_in *in = &c->in;
	int n = 0;
	while (in->end - in->begin >= WEFT_TCP_FRAME && !in->bye && !in->rest) {
		const uint8_t *frame = in->buf + in->begin;
		uint32_t have = in->end - in->begin - WEFT_TCP_FRAME, len, run;
		if (n >= max) {
			set_more(t, c, true);
			return n;
		}
		if (!weft_net_tcp_frame_read(frame, &run, &len))
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
		if (len == WEFT_TCP_REST) {
			in->rest = true;
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

static void end_by_socket(struct weft_tcp_conn *c, ssize_t got, int error, struct weft_tcp_end *end)
{
	bool inside = c->in.placing || c->in.end != c->in.begin;
	end->over = true;
	end->err = c->in.bye || (c->bye_queued && !inside) ? WEFT_OK : WEFT_ERR_PEER;
	snprintf(end->why, sizeof end->why, "%s%s",
		 got == 0 ? "its connection ended" : strerror(error),
		 inside ? ", in the middle of a packet" : "");
}

/* True: the connection is over. */
static bool end_by_parse(const struct weft_tcp_conn *c, int n, struct weft_tcp_end *end)
{
	if (n >= 0 && !c->in.bye)
		return false;
	end->over = true;
	end->err = n < 0 ? WEFT_ERR_PROTO : WEFT_OK;
	snprintf(end->why, sizeof end->why, "it sent bytes that are no packet");
	return true;
}

int weft_net_tcp_in_read(struct weft_tcp *t, struct weft_tcp_conn *c, struct weft_tcp_end *end)
{
	struct weft_tcp_in *in = &c->in;
	int upcalls = 0;
	size_t bytes = 0;

	if (in->more) {
		int n = deliver_whole(t, c, PACKETS_PER_POLL);
		if (end_by_parse(c, n, end))
			return 0;
		upcalls += n;
	}
	/* Ends when the socket is empty or the budget is used up. */
	while (upcalls < PACKETS_PER_POLL && bytes < BYTES_PER_POLL && !in->more && !in->rest) {
		size_t asked;
		ssize_t got = read_some(c, &asked);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 && (errno == EAGAIN || errno == ENOMEM || errno == ENOBUFS))
			break;
		if (got <= 0) {
			end_by_socket(c, got, errno, end);
			return upcalls;
		}
		bytes += (size_t)got;
		if (in->placing && !in->left) {
			end_place(t, c, WEFT_OK);
			upcalls++;
		}
		if (!in->placing) {
			int n = deliver_whole(t, c, PACKETS_PER_POLL - upcalls);
			if (end_by_parse(c, n, end))
				return upcalls;
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
