/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * link.h - frames between mpiexec and an agent, or an agent and the agents that it has started.
 *
 * Down go commands, up goes what ranks say.  A frame names the host that it is for or comes from; an
 * agent passes on what is not its own (down: to the child whose share of the hosts holds it).
 *
 * Hello     the agent's first line names its version; what a login shell printed before is skipped.
 * Full      a link takes every frame; what a rank writes is bounded by windows (FRAME_TAKEN).
 * Secret    buffers are wiped as they empty: a frame may hold the job's secret.
 * Callers   the main thread only.
 */
#ifndef MPIEXEC_LINK_H
#define MPIEXEC_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "events.h"

#define LINK_PROTOCOL 1
#define LINK_ALL_HOSTS -1

enum frame_kind {
	/* down */
	FRAME_SETUP = 1, /* body: see agent_setup.h; the ranks start */
	FRAME_COMMAND,   /* rank: enum keeper_op; body: its value */
	FRAME_STDIN,     /* for rank 0; an empty one is its end */
	FRAME_TAKEN,     /* rank, body: which end, how many bytes went on */
	FRAME_PING,
	FRAME_PAUSE, /* no PING for a while: mpiexec is stopped */
	/* up */
	FRAME_READY,   /* the agent runs and waits for its SETUP */
	FRAME_KEEPER,  /* body: struct keeper_msg */
	FRAME_OUT,     /* rank, body: what it wrote */
	FRAME_ERR,     /* the same of stderr */
	FRAME_CLOSED,  /* rank, body: which end */
	FRAME_SPEAKER, /* rank, body: wait status of the process that said init, or -1 */
	FRAME_SAY,     /* body: a line of the agent's own */
	FRAME_EATEN,   /* body: how many bytes of stdin rank 0 has been given */
	FRAME_PONG,
	FRAME_LOST, /* the host's agent is gone; body: why */
	/* both ways */
	FRAME_PMI, /* rank, body: lines */
};

struct frame {
	uint32_t len; /* of the body that follows */
	uint32_t kind;
	int32_t host, rank;
};

struct link {
	struct event_source in_source, out_source;
	int in, out; /* -1: closed */
	bool greeted, wants_out;
	char *in_text, *out_text;
	size_t in_len, in_cap, out_len, out_cap;
	uint64_t heard_at; /* ns */
	void (*greet)(struct link *l);
	void (*frame)(struct link *l, const struct frame *f, const char *body);
	void (*lost)(struct link *l, const char *why); /* once; the link is closed */
};

/* Takes both descriptors.  parent: wait for the agent's hello first.  False: errno says why. */
bool link_open(struct link *l, int in, int out, bool parent);
void link_close(struct link *l);

/* The agent's first words. */
void link_say_hello(struct link *l);

void link_send(struct link *l, uint32_t kind, int host, int rank, const void *body, size_t len);
void link_send_int(struct link *l, uint32_t kind, int host, int rank, int value);
/* Bytes that wait to go out. */
size_t link_waiting(const struct link *l);

/* Body of a frame with one number. */
int link_int(const struct frame *f, const char *body);

/* Nothing more is sent; waits a moment for the other side to end. */
void link_part(struct link *l);

#endif
