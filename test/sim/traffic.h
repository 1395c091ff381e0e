/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * traffic.h - what the ranks have sent and received so far: traffic.c writes it down, oracle.c says
 * what must come of it.
 */
#ifndef WEFT_TEST_SIM_TRAFFIC_H
#define WEFT_TEST_SIM_TRAFFIC_H

#include "data/type.h"
#include "sim.h"

#define MESSAGES 512

struct message {
	int from, to, ctx, tag;
	size_t bytes;
	unsigned number; /* order of sending: over all, so also within a sender */
	struct weft_req *req;
	char *buf; /* what the send call was given */
	const struct weft_type *type;
	unsigned began, ended;    /* the call; see check_order */
	bool done, refused, over; /* over: no receive will take it, and that is right */
	struct receive *to_recv;
};

struct receive {
	int rank, ctx, peer, tag;
	size_t room;
	unsigned number; /* order of posting, or of being taken by a probe */
	struct weft_req *req;
	char *buf;
	const struct weft_type *type;
	unsigned began, ended;
	bool done, cancelled, refused;
	struct message *got;
};

/* Of this schedule. */
extern struct traffic {
	struct message message[MESSAGES];
	struct receive receive[2 * MESSAGES];
	unsigned n_messages, n_receives, ticks;
	bool open_ctx[SIM_RANKS][SIM_CTXS];
} traffic;

/* Data bytes and the bytes that they are spread over. */
#define BLOCK 48
#define STRIDE 64

static inline size_t span(size_t bytes)
{
	return bytes / BLOCK * STRIDE + STRIDE;
}

static inline char byte_of(unsigned number, size_t i)
{
	return (char)(number * 31 + i * 7 + (i >> 8));
}

/* The first bytes name the message. */
static inline void fill(char *p, unsigned number, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		p[i] = byte_of(number, i);
	if (bytes >= sizeof number)
		memcpy(p, &number, sizeof number);
}

static inline struct weft_buf buffer(char *p, size_t bytes, const struct weft_type *t)
{
	return t ? weft_data_buf_typed(p, 1, t) : weft_data_buf_flat(p, bytes);
}

/* oracle.c */
/* A send is over, a receive is over, as req says: may they be, and with these bytes? */
void sim_oracle_sent(struct message *m, const struct weft_req *req);
void sim_oracle_received(struct receive *r, const struct weft_req *req);
bool sim_oracle_anybody_broken(int rank);
/* Messages that lie in a context, in lists or not. */
unsigned sim_oracle_lying(struct weft_ctx *ctx);

#endif
