/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sim.h - several ranks in one process, one thread and virtual time, over a network that a seed
 * makes late, full, cut, dead and out of step.
 *
 *   net.c      the driver `sim`: lanes, back-pressure, streams in pieces, memory access
 *   link.c     its connections: made, broken, noticed, dropped, made again
 *   rails.c    the driver `bundle` over several rails of it; sleep and waking
 *   traffic.c  what the ranks do
 *   oracle.c   what must come of it
 *   sched.c    which rank moves next; the end of a schedule: all done, or a hang
 *   strategy.c which strategy a schedule has, and what it may then do
 *   cover.c    which states of the protocols a run has met
 *   rma.c      one-sided traffic beside it; rma_oracle.c what must come of that; co.c its threads
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
#include "base/counters.h"
#include "base/log.h"
#include "comm/core.h"
#include "task/task.h"

#define SIM_RANKS 5
#define SIM_RAILS 3
#define SIM_CTXS 3
#define SIM_TAGS 4
#define SIM_PAYLOAD 65536
#define SIM_RMA_CTX 16u /* a window's contexts: this, and with WEFT_CTX_COUNTED */
#define SIM_WHOLE 4200  /* what the bundle needs a rail to carry */

/* ---- the plan of a schedule, drawn from its seed -------------------------------------------- */

struct sim_plan {
	int ranks, rails;
	unsigned ops;                        /* calls of the application, all ranks together */
	unsigned full, accept, stream, nest; /* chances of 100 */
	unsigned window;                     /* packets that a lane takes */
	uint64_t delay_ns;                   /* longest on the way */
	size_t eager_max, inline_max, max_payload;
	uint64_t credit;
	bool can_get, get_fails, put_fails, offer, share, rdma;
	bool large;       /* some messages of several pieces */
	int victim;       /* dies after kill_at calls; -1: none */
	int cut_a, cut_b; /* the link between them breaks after kill_at calls; -1: none */
	int frozen;       /* does nothing for a minute from freeze_at calls on; -1: none */
	unsigned kill_at, freeze_at;
	uint64_t notice_ns; /* from death to the survivors' driver knowing */
	bool close_last;    /* the last context is closed with messages in it */
	bool bundle;        /* all rails go to each peer, under the driver `bundle` */
	int once;           /* the rail that does not come back once it broke; -1: none */
	unsigned cuts;      /* chance of 100 that a call finds a rail cut */
	bool rtr;           /* receives that are posted early tell their sender */
	bool tasks;         /* large copies are tasks of the engine */
	/* Which packets go first, which together; NULL: fifo.  See strategy.c. */
	const struct weft_strategy *strategy;
	double latency_us; /* what the networks' cards say, for strategies that choose by it */
	unsigned hold;     /* chance of 100 that the engine says that a thread polls soon */
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
	bool is_write; /* its head: key, offset and length of the region */
};

/* In driver_private. */
struct sim_region {
	struct weft_net_region *next;
	char *base;
	int peer;
} __attribute__((may_alias));

struct sim_lane { /* from one rank to another over one rail */
	struct sim_packet *first, **last;
	unsigned queued;
	bool want_ready;
	uint64_t due_ns;
	struct sim_packet *placing; /* the receiver's payload that is half there */
	struct weft_net_sink sink;
	size_t placed;
};

enum sim_end_state { SIM_LINKED, SIM_IDLE, SIM_DIALING, SIM_ENDED };

struct sim_end { /* one rank's end of a connection */
	enum sim_end_state state;
	bool broken;               /* LINKED: but nothing gets through any more */
	uint64_t known_ns;         /* broken: when this end notices */
	uint64_t try_ns, until_ns; /* DIALING: the next try, the last one */
};

struct sim_net {
	struct weft_net base;
	int rank, rail;
	struct weft_net_events ev;
	struct weft_net_card card;
	bool polling, once;
	struct weft_net_region *region;
	uint64_t regions; /* there were */
	struct sim_end end[SIM_RANKS];
};

struct sim_rank {
	struct weft_core *core;
	struct weft_ctx *ctx[SIM_CTXS];
	struct sim_net *net[SIM_RAILS];
	bool dead;
	uint64_t frozen_until_ns;
	_Atomic uint64_t x_word[WEFT_NET_WORDS];
	unsigned posting[SIM_RANKS]; /* frames of post to that peer on the stack */
	bool at_poll[SIM_RAILS];
	/* With a bundle. */
	struct weft_net *bundle;
	struct weft_net_events up;
	struct weft_net_card card;
	unsigned locked; /* posts of its rails on the stack, that is, its lock is held */
	bool armed;
};

struct sim {
	uint64_t seed, rnd;
	uint64_t now_ns;
	struct sim_plan plan;
	struct sim_rank rank[SIM_RANKS];
	struct sim_lane lane[SIM_RANKS][SIM_RANKS][SIM_RAILS];
	uint64_t broken_ns[SIM_RANKS][SIM_RANKS];           /* for good; 0: they reach each other */
	uint64_t cable_ns[SIM_RANKS][SIM_RANKS][SIM_RAILS]; /* cut until then */
	/* No cable was whole between them: until then, and how long in all. */
	uint64_t dark_until_ns[SIM_RANKS][SIM_RANKS], dark_ns[SIM_RANKS][SIM_RANKS];
	unsigned depth; /* of posts that let others move */
	unsigned calls; /* of the application so far */
	bool polling_engine;
	bool ending; /* the cores are being taken down */
	bool verbose;
	bool fifo; /* no schedule has a strategy */
	bool rma;  /* with one-sided traffic */
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

static inline void sim_mark_broken(int a, int b)
{
	/* 0 means that they reach each other. */
	sim.broken_ns[a][b] = sim.broken_ns[b][a] = sim.now_ns + 1;
}

static inline struct sim_lane *sim_lane_of(int from, int to, int rail)
{
	return &sim.lane[from][to][rail];
}

/* net.c */
extern const struct weft_driver sim_driver, sim_driver_once;
/* The rail between two ranks, without a bundle; does this rail serve that peer? */
int sim_rail_of(int a, int b);
bool sim_uses(const struct sim_net *f, int peer);
/* What other threads could do while a post is under way. */
void sim_others(void);

/* lane.c */
void sim_lanes_begin(void);
void sim_lanes_end(void);
struct sim_packet *sim_packet_make(const void *head, const struct iovec *iov, unsigned n,
				   size_t len, void *cookie);
void sim_packet_free(struct sim_packet *p);
void sim_packet_gather(struct sim_packet *p);
struct weft_wire sim_head_of(const struct sim_packet *p);
void sim_lane_append(struct sim_lane *l, struct sim_packet *p);
struct sim_packet *sim_lane_pop(struct sim_lane *l);
void sim_lane_clear(struct sim_lane *l);

/* link.c */
/* Breaks every link of the two for good; what is under way is lost from a random point on. */
void sim_net_break(int a, int b);
void sim_link_cut(int a, int b, int rail, uint64_t for_ns, bool silent);
void sim_link_dial(struct sim_net *f, int peer);
int sim_link_poll(struct sim_net *f, int peer);
void sim_link_drop(struct weft_net *net, int peer, const char *why);
void sim_link_revive(struct weft_net *net, int peer);
bool sim_link_ended(struct weft_net *net, int peer);
bool sim_link_lives(struct weft_net *net, int peer);
void sim_link_bury(struct sim_net *f, int peer);
/* The next moment at which a poll finds something; UINT64_MAX: never. */
uint64_t sim_net_next(struct sim_net *f);
bool sim_net_news(struct sim_net *f);

/* rails.c */
extern const struct weft_driver sim_driver_rails;
void sim_rails_fate(void);
bool sim_rails_streams(const void *head);
void sim_rails_cover_stream(const void *head);
void sim_rails_arrives(int rank, int from, const void *head);
void sim_rails_bury(int rank);
/* What a peer can make a rank hold is bounded. */
void sim_rails_look(void);
void sim_rails_end(void);
uint64_t sim_rails_next(int rank);
/* Would a poll of that rank not look at its rails now? */
bool sim_rails_busy(int rank);

/* traffic.c, and oracle.c: down, look, end */
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

/* rma.c */
void sim_rma_draw(struct sim_plan *p);
void sim_rma_begin(void);
/* A thread of that rank goes on, or does something new. */
void sim_rma_call(int rank);
/* Threads that are awake go on until they wait, or have done; how often. */
int sim_rma_step(int rank);
void sim_rma_dies(int rank);
/* The core has lost peer. */
void sim_rma_lost(struct weft_core *core, int peer);
/* As sim_traffic_finish. */
bool sim_rma_finish(void);
/* Checks; frees the windows of ranks that live. */
void sim_rma_end(void);
/* Frees the window of a dead rank, as if all its peers were gone; its driver holds nothing any more. */
void sim_rma_bury(int rank);

/* strategy.c */
void sim_strategy_draw(uint64_t seed);
bool sim_strategy_hold(void);
/* A packet is about to be posted. */
void sim_strategy_posts(const struct weft_gate *g, const struct weft_wire *h);
void sim_strategy_look(void);

/* sched.c */
/* Tells the core that peer is gone, and the oracle. */
void sim_tell_down(const struct weft_net_events *ev, int rank, int peer, weft_err err,
		   const char *why);
void sim_say_post(int rank, int peer, const struct weft_wire *h, size_t len, enum weft_post p);
/* One move of a rank. */
void sim_move(void);
void sim_run(uint64_t seed);

/* cover.c */
enum sim_state {
/* A group has the number of the first state that it holds. */
#define SIM_GROUP(id, text) SIM_GROUP_##id, SIM_BEFORE_##id = SIM_GROUP_##id - 1,
#define SIM_STATE(id, text) SIM_##id,
#include "sim_states.h"
#undef SIM_STATE
#undef SIM_GROUP
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
