/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fake_rail.h - two rails without a network under the bundle driver: the test is the peer, rank 1,
 * says what each rail delivers, and sees what is posted, dropped and given up.
 *
 * One thread; for one program, since all is static.
 */
#ifndef WEFT_TEST_NET_FAKE_RAIL_H
#define WEFT_TEST_NET_FAKE_RAIL_H

#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "check.h"
#include "net/bundle/bundle_int.h"

enum { FAKE_RAILS = 2, FAKE_PEER = 1, FAKE_OTHER = 2, FAKE_ROOM = 1 << 20, FAKE_KEPT = 32 };

struct fake_rail {
	struct weft_net net;
	struct weft_net_events up; /* the bundle's */
	int fd;
	bool full, gone, refuses;  /* what a post finds; refuses: no process listens there */
	bool lives;                /* the peer's process is there, answering or not */
	bool streams;              /* within a payload */
	struct weft_net_sink sink; /* of that payload */
	struct iovec iov[WEFT_BUNDLE_PIECES];
	unsigned drops, revives, hellos, acks, polls;
	unsigned finds;      /* polls that will; until then it cannot be armed */
	uint32_t units, got; /* posted over this link; what the peer has confirmed of them */
	struct weft_bundle_head last; /* posted */
	bool keeps;                   /* a post with a cookie is accepted */
	void *kept[FAKE_KEPT];        /* such cookies */
	unsigned n_kept;
};

static struct fake_rail fake_rail[FAKE_RAILS];

/* What came out above. */
static struct {
	unsigned packets, places, placed, placed_bad, downs, sent, readies;
	uint8_t last; /* first byte of the last small packet */
	weft_err down_err;
	void (*then)(void); /* what the upper layer does at the next down */
	struct iovec iov;
	uint8_t room[FAKE_ROOM];
} fake_up;

static weft_err fake_open(const struct weft_net_job *job, const struct weft_net_events *ev,
			  struct weft_net **net_p);

static void fake_close(struct weft_net *net)
{
	close(((struct fake_rail *)net)->fd);
}

static weft_err fake_address(struct weft_net *net, char *buf, size_t size)
{
	snprintf(buf, size, "fake");
	return WEFT_OK;
}

static weft_err fake_reach(struct weft_net *net, int peer, const char *address)
{
	return WEFT_OK;
}

static enum weft_post fake_post(struct weft_net *net, int peer, const void *head,
				const struct iovec *iov, unsigned n, size_t len, void *cookie)
{
	struct fake_rail *r = (struct fake_rail *)net;
	struct weft_bundle_head h;
	memcpy(&h, head, sizeof h);
	if (r->gone)
		return WEFT_POST_DOWN;
	bool keep = cookie && r->keeps;
	if (r->full || (keep && r->n_kept == FAKE_KEPT))
		return WEFT_POST_FULL;
	r->last = h;
	r->hellos += h.kind == WEFT_BUNDLE_HELLO;
	r->acks += h.kind == WEFT_BUNDLE_ACK;
	r->units += h.kind >= WEFT_BUNDLE_WHOLE;
	if (keep)
		r->kept[r->n_kept++] = cookie;
	return keep ? WEFT_POST_ACCEPTED : WEFT_POST_DONE;
}

static int fake_poll(struct weft_net *net)
{
	struct fake_rail *r = (struct fake_rail *)net;
	r->polls++;
	return r->finds ? (r->finds--, 1) : 0;
}

static weft_err fake_arm(struct weft_net *net, enum weft_arm_level level)
{
	bool off = level == WEFT_ARM_OFF;
	return !off && ((struct fake_rail *)net)->finds ? WEFT_AGAIN : WEFT_OK;
}

static unsigned fake_fds(struct weft_net *net, int fd[WEFT_NET_FDS])
{
	fd[0] = ((struct fake_rail *)net)->fd;
	return 1;
}

static const struct weft_net_card *fake_card(struct weft_net *net, int peer)
{
	static const struct weft_net_card card = {
		.max_payload = WEFT_BUNDLE_MAX_PAYLOAD, .inline_max = 4096, .streams = true};
	return &card;
}

/* The posts that were kept are over. */
static void fake_sent(struct fake_rail *r, weft_err err)
{
	for (unsigned i = 0; i < r->n_kept; i++)
		r->up.sent(r->up.arg, FAKE_PEER, r->kept[i], err);
	r->n_kept = 0;
}

/* The link breaks: what it is in the middle of ends first. */
static void fake_break(struct fake_rail *r, weft_err err)
{
	if (r->gone)
		return;
	r->gone = true;
	r->units = r->got = 0;
	if (r->streams) {
		r->streams = false;
		r->up.placed(r->up.arg, FAKE_PEER, r->sink.cookie, WEFT_ERR_PEER);
	}
	fake_sent(r, WEFT_ERR_PEER);
	r->up.down(r->up.arg, FAKE_PEER, err, "the test breaks it");
}

static void fake_drop(struct weft_net *net, int peer, const char *why)
{
	struct fake_rail *r = (struct fake_rail *)net;
	r->drops++;
	fake_break(r, WEFT_ERR_PEER);
}

static void fake_revive(struct weft_net *net, int peer)
{
	struct fake_rail *r = (struct fake_rail *)net;
	r->revives++;
	r->gone = false;
}

static bool fake_ended(struct weft_net *net, int peer)
{
	return ((struct fake_rail *)net)->refuses;
}

static bool fake_lives(struct weft_net *net, int peer)
{
	return ((struct fake_rail *)net)->lives;
}

static const struct weft_driver fake_driver = {.name = "fake",
					       .open = fake_open,
					       .close = fake_close,
					       .address = fake_address,
					       .reach = fake_reach,
					       .post = fake_post,
					       .poll = fake_poll,
					       .arm = fake_arm,
					       .fds = fake_fds,
					       .card = fake_card,
					       .drop = fake_drop,
					       .revive = fake_revive,
					       .ended = fake_ended,
					       .lives = fake_lives};

static weft_err fake_open(const struct weft_net_job *job, const struct weft_net_events *ev,
			  struct weft_net **net_p)
{
	for (int i = 0; i < FAKE_RAILS; i++)
		if (!fake_rail[i].net.driver) {
			fake_rail[i] = (struct fake_rail){.net.driver = &fake_driver, .up = *ev};
			fake_rail[i].fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
			*net_p = &fake_rail[i].net;
			return WEFT_OK;
		}
	return WEFT_ERR_LIMIT;
}

/* ---- above --------------------------------------------------------------------------------- */

static void fake_on_packet(void *arg, int peer, const void *head, const void *payload, size_t len)
{
	fake_up.packets++;
	fake_up.last = len ? *(const uint8_t *)payload : 0;
}

static void fake_on_place(void *arg, int peer, const void *head, size_t len,
			  struct weft_net_sink *sink)
{
	fake_up.places++;
	size_t room = len < FAKE_ROOM ? len : FAKE_ROOM;
	fake_up.iov = (struct iovec){fake_up.room, room};
	*sink = (struct weft_net_sink){.iov = &fake_up.iov, .n = 1, .room = room};
}

static void fake_on_placed(void *arg, int peer, void *cookie, weft_err err)
{
	fake_up.placed += !err;
	fake_up.placed_bad += err != 0;
}

static void fake_on_sent(void *arg, int peer, void *cookie, weft_err err)
{
	fake_up.sent++;
}

static void fake_on_ready(void *arg, int peer)
{
	fake_up.readies++;
}

static void fake_on_down(void *arg, int peer, weft_err err, const char *why)
{
	void (*then)(void) = fake_up.then;
	fake_up.downs++;
	fake_up.down_err = err;
	fake_up.then = NULL;
	if (then)
		then();
}

/* Rank 0 of three, over both rails; the last one is reached by the cases that want it. */
static struct weft_net *fake_begin(void)
{
	static const struct weft_net_events events = {.packet = fake_on_packet,
						      .place = fake_on_place,
						      .placed = fake_on_placed,
						      .sent = fake_on_sent,
						      .ready = fake_on_ready,
						      .down = fake_on_down};
	struct weft_bundle_rail plan[FAKE_RAILS] = {{0}};
	struct weft_net_job job = {.size = 3, .jobid = "fake"};
	struct weft_net *net;
	memset(fake_rail, 0, sizeof fake_rail);
	memset(&fake_up, 0, sizeof fake_up);
	for (int r = 0; r < FAKE_RAILS; r++)
		plan[r].driver = &fake_driver;
	weft_net_bundle_plan(plan, FAKE_RAILS);
	CHECK_EQ(weft_net_driver_bundle.open(&job, &events, &net), WEFT_OK);
	CHECK_EQ(weft_net_driver_bundle.reach(net, FAKE_PEER, "bundle2|fake|fake"), WEFT_OK);
	return net;
}

/* ---- what the peer says --------------------------------------------------------------------- */

static struct weft_bundle_head fake_head(int rail, enum weft_bundle_kind kind, uint32_t number)
{
	return (struct weft_bundle_head){
		.kind = (uint8_t)kind, .number = number, .got = fake_rail[rail].got};
}

static void fake_say(int rail, const struct weft_bundle_head *h, const void *payload, size_t len)
{
	struct fake_rail *r = &fake_rail[rail];
	r->up.packet(r->up.arg, FAKE_PEER, h, payload, len);
}

static void fake_hello(int rail)
{
	struct weft_bundle_head h = fake_head(rail, WEFT_BUNDLE_HELLO, 0);
	fake_say(rail, &h, NULL, 0);
}

static inline void fake_whole(int rail, uint32_t number, uint8_t what)
{
	uint8_t unit[WEFT_NET_HEAD + 1] = {0};
	struct weft_bundle_head h = fake_head(rail, WEFT_BUNDLE_WHOLE, number);
	unit[WEFT_NET_HEAD] = what;
	fake_say(rail, &h, unit, sizeof unit);
}

/* A large packet of len bytes begins. */
static inline void fake_large(int rail, uint32_t number, size_t len)
{
	struct weft_bundle_begin begin = {.len = len};
	struct weft_bundle_head h = fake_head(rail, WEFT_BUNDLE_BEGIN, number);
	fake_say(rail, &h, &begin, sizeof begin);
}

static inline struct weft_bundle_head fake_piece(int rail, uint32_t number, uint32_t begin,
						 uint32_t offset)
{
	struct weft_bundle_head h = fake_head(rail, WEFT_BUNDLE_PART, number);
	h.begin = begin;
	h.offset = offset;
	return h;
}

/* A payload comes as a stream; how much of it the bundle wants. */
static inline size_t fake_stream(int rail, const struct weft_bundle_head *h, size_t len)
{
	struct fake_rail *r = &fake_rail[rail];
	memset(&r->sink, 0, sizeof r->sink);
	r->up.place(r->up.arg, FAKE_PEER, h, len, &r->sink);
	r->streams = true;
	return r->sink.n ? r->sink.room : 0;
}

/* The whole payload is there, `what` in each byte. */
static inline void fake_stream_end(int rail, uint8_t what)
{
	struct fake_rail *r = &fake_rail[rail];
	for (unsigned i = 0; i < r->sink.n; i++)
		memset(r->sink.iov[i].iov_base, what, r->sink.iov[i].iov_len);
	r->streams = false;
	r->up.placed(r->up.arg, FAKE_PEER, r->sink.cookie, WEFT_OK);
}

#endif
