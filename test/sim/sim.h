/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sim.h - several ranks in one process, one thread and virtual time, over a network that a seed
 * makes late, full, cut, dead and out of step.
 *
 *   net.c      the driver `sim`: lanes, back-pressure, streams in pieces, death, memory access
 *   traffic.c  what the ranks do, and the oracle that says what must come of it
 *   sched.c    who moves next; the end of a schedule: all done, or a hang
 *   cover.c    which states of the protocols a run has met
 *   main.c     the command line
 *
 * Everything in a schedule follows from its seed: `sim --seed S --verbose` shows it again.
 *
 * Other threads.  There are none; a post of the driver may instead, before it returns, let others
 * move: its own rank's poll, another call of the application on the same rank, other ranks.  This
 * is what threads could do at that moment, and it is repeatable.
 */
#ifndef WEFT_TEST_SIM_H
#define WEFT_TEST_SIM_H

#include <string.h>
#include "check.h"
#include "comm/comm_int.h"

#define SIM_RANKS 5
#define SIM_RAILS 2
#define SIM_CTXS 3
#define SIM_TAGS 4
#define SIM_PAYLOAD 65536

/* ---- the plan of a schedule, drawn from its seed -------------------------------------------- */

struct sim_plan {
	int ranks, rails;
	unsigned ops;                        /* calls of the application, all ranks together */
	unsigned full, accept, stream, nest; /* chances of 100 */
	unsigned window;                     /* packets that a lane takes */
	uint64_t delay_ns;                   /* longest on the way */
	size_t eager_max, inline_max, max_payload;
	uint64_t credit;
	bool can_get, get_fails, put_fails, offer, share;
	bool large;       /* some messages of several pieces */
	int victim;       /* dies after kill_at calls; -1: nobody */
	int cut_a, cut_b; /* the link between them breaks after kill_at calls; -1: none */
	int frozen;       /* does nothing for a minute from freeze_at calls on; -1: nobody */
	unsigned kill_at, freeze_at;
	uint64_t notice_ns; /* from death to the survivors' driver knowing */
	bool close_last;    /* the last context is closed with messages in it */
};

/* ---- the world ---------------------------------------------------------------------------- */

struct sim_packet {
	struct sim_packet *next;
	char head[WEFT_NET_HEAD];
	size_t len;
	char *data;
	uint64_t due_ns;
	bool pending; /* accepted: its bytes are still the sender's */
	struct iovec iov[WEFT_IOV_MAX];
	unsigned n;
	void *cookie;
};

struct sim_lane { /* from one rank to another over one rail */
	struct sim_packet *first, **last;
	unsigned queued;
	bool want_ready;
	uint64_t due_ns;
	struct sim_packet *placing; /* the receiver's payload that is half there */
	struct weft_net_sink sink;
	size_t placed;
};

struct sim_net {
	struct weft_net base;
	int rank, rail;
	struct weft_net_events ev;
	struct weft_net_card card;
	bool polling;
	bool told_down[SIM_RANKS];
};

struct sim_rank {
	struct weft_core *core;
	struct weft_ctx *ctx[SIM_CTXS];
	struct sim_net *net[SIM_RAILS];
	bool dead;
	uint64_t frozen_until_ns;
	_Atomic uint64_t x_word[WEFT_NET_WORDS];
	unsigned posting[SIM_RANKS]; /* frames of post to that peer on the stack */
};

struct sim {
	uint64_t seed, rnd;
	uint64_t now_ns;
	struct sim_plan plan;
	struct sim_rank rank[SIM_RANKS];
	struct sim_lane lane[SIM_RANKS][SIM_RANKS][SIM_RAILS];
	uint64_t broken_ns[SIM_RANKS][SIM_RANKS]; /* when the link broke; 0: it works */
	unsigned depth;                           /* of posts that let others move */
	unsigned calls;                           /* of the application so far */
	bool ending;                              /* the cores are being taken down */
	bool verbose;
};

extern struct sim sim;

static inline unsigned sim_pick(unsigned n)
{
	return (unsigned)(weft_rand_next(&sim.rnd) % n);
}

static inline bool sim_chance(unsigned of_100)
{
	return sim_pick(100) < of_100;
}

static inline bool sim_broken(int a, int b)
{
	return sim.broken_ns[a][b] != 0;
}

/* A line of the schedule's story. */
#define SIM_SAY(...)                                                                               \
	do {                                                                                       \
		if (weft_unlikely(sim.verbose))                                                    \
			sim_say(__VA_ARGS__);                                                      \
	} while (0)
void sim_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* net.c */
extern const struct weft_driver sim_driver;
void sim_net_begin(void);
void sim_net_end(void);
/* The rail between two ranks. */
int sim_rail_of(int a, int b);
/* Breaks the link; what is under way is lost from a random point on. */
void sim_net_break(int a, int b);
/* The next moment at which something arrives or becomes known; UINT64_MAX: never. */
uint64_t sim_net_next(void);

/* traffic.c */
void sim_traffic_begin(void);
/* One call of the application on that rank. */
void sim_traffic_call(int rank);
/* A moment of the calls' order; and: rank's core has heard that peer is gone, after `since`. */
unsigned sim_traffic_now(void);
void sim_traffic_down(int rank, int peer, unsigned since);
/* Checks what has completed.  Memory bounds, too. */
void sim_traffic_look(void);
/* Nothing moves any more: receives what is left, cancels what is over.  False: nothing was left. */
bool sim_traffic_finish(void);
/* Everything must be accounted for. */
void sim_traffic_end(void);
/* Gives back what dead ranks still hold; the cores are gone. */
void sim_traffic_free(void);

/* sched.c */
/* One move of somebody. */
void sim_move(void);
void sim_run(uint64_t seed);

/* cover.c */
enum sim_state {
#define SIM_STATE(id, text) SIM_##id,
#include "sim_states.h"
#undef SIM_STATE
	SIM_STATES
};
extern uint64_t *sim_covered; /* SIM_STATES of them */
static inline void sim_cover(enum sim_state s)
{
	sim_covered[s]++;
}
/* A packet of that kind was posted, with that outcome. */
void sim_cover_post(const struct weft_wire *h, enum weft_post p);
void sim_cover_lost(const struct weft_wire *h);
/* Prints the table; returns how many states were never met. */
unsigned sim_cover_print(FILE *out, bool all);

#endif
