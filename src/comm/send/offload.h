/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * offload.h - small sends that an idle core posts, while the sender goes on computing.
 *
 * A sender that does not wait pays for the post: over tcp a system call, which on this host carries
 * the message up to the peer's socket.  Where a core of ours is idle and awake, it is enough to queue
 * the packet at the gate and to hand that core a task, which kicks the gate there.  If the sender
 * waits before the task has begun, its wait runs the task, so a message is out at the latest in the
 * wait.  Order is the gate's: the next send finds the queue not empty and goes behind.
 *
 * It pays if the post costs more than the handover.  Both are measured: the post by size on one send
 * of 64 that goes at once, the handover on each.  A decision is regretted if the sender had to run
 * the task itself, or if the task began late; then so many sends go at once before the next try,
 * twice as many each time in a row, up to 256.  Where no core is idle all of it is a load that says
 * so.
 *
 * Callers   pays, samples, learn, send: the sender, any thread.  open, close: the starting thread,
 *           while no thread sends.
 * Owner     the gate owns its struct weft_comm_offload from open to close; close waits for the task.
 * Order     what the sender wrote before is visible to the poster: the push is a release.
 */
#ifndef WEFT_COMM_OFFLOAD_H
#define WEFT_COMM_OFFLOAD_H

#include "comm/core.h"
#include "comm/request.h"

#define WEFT_AWAY_CLASSES 24 /* sizes by their highest bit */
#define WEFT_AWAY_SAMPLE 64
#define WEFT_AWAY_REST_MAX 256u
#define WEFT_AWAY_LATE_NS 50000u /* a start later than this is regretted */

/* What it costs, and how it went; numbers that each stand by themselves, so relaxed throughout: a
 * lost update is a sample less. */
struct weft_comm_offload_costs {
	_Atomic uint32_t x_post_ns[WEFT_AWAY_CLASSES]; /* smoothed; 0: not known */
	_Atomic uint32_t x_word_ns;                    /* smoothed: to leave it */
	_Atomic uint32_t x_turn[WEFT_AWAY_CLASSES];
	_Atomic uint32_t x_rest;      /* sends that go at once before the next try */
	_Atomic uint32_t x_rest_next; /* after the next regret */
};

struct weft_comm_offload {
	struct weft_gate *gate; /* I */
	struct weft_comm_offload_costs costs;
	_Atomic uint32_t x_left;     /* decisions since the task ran last */
	_Atomic uint64_t x_since_ns; /* of the latest */
	_Atomic uint32_t x_by;       /* of the thread: weft_wait_owner_self */
	struct weft_task task;
};

static inline unsigned weft_comm_offload_class(size_t bytes)
{
	unsigned c = bytes ? 64u - (unsigned)__builtin_clzll(bytes) : 0;
	return c < WEFT_AWAY_CLASSES ? c : WEFT_AWAY_CLASSES - 1;
}

/* Gives the gate one, if its network costs enough and the engine says which cores are idle. */
void weft_comm_offload_open(struct weft_gate *g, double latency_us);
void weft_comm_offload_close(struct weft_gate *g);

/* Does it pay to leave a send of so many bytes to an idle core? */
bool weft_comm_offload_pays(struct weft_gate *g, size_t bytes);
/* Leaves r, prepared, to an idle core; false: the caller sends.  After true r may be over. */
bool weft_comm_offload_send(struct weft_gate *g, struct weft_req *r);

/* Is this send, which goes at once, to be measured? */
bool weft_comm_offload_samples(struct weft_comm_offload *a, size_t bytes);
void weft_comm_offload_learn(struct weft_comm_offload *a, size_t bytes, uint64_t ns);

/* The decision itself, and what came of n of them; without a gate, for tests. */
bool weft_comm_offload_costs_say(struct weft_comm_offload_costs *c, size_t bytes);
void weft_comm_offload_costs_over(struct weft_comm_offload_costs *c, uint32_t n, bool regret);

#endif
