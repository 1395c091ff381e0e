/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bundle_int.h - the bundle driver's own structures.
 *
 * On the wire a unit is one packet of a rail: struct weft_bundle_head in the rail's head, then
 *
 *   HELLO   nothing; the first on each link.  A rail is up once each side has sent and got one.
 *   WHOLE   the upper head, then the payload of a packet that the sender has copied
 *   BEGIN   the upper head and the length of a large packet
 *   PART    a part of a large packet, named by the number of its BEGIN and an offset
 *   ACK     nothing
 *
 * Every head says how many units came over this link so far and from which number on we wait, and
 * how soon its sender wants to hear that: what is copied can wait, so it asks as rarely as keeps
 * what is not confirmed far below its bound; pieces are read where the upper layer has them.
 *
 *   rail    idle -> wanted -> up -> lost -> idle ...      gone: the peer left, or cannot be reached
 *
 * Letters   L: x_lock of the peer; P: the poller; I: at init.
 * Locks     x_lock is held over a rail's post, never over an upcall.
 */
#ifndef WEFT_BUNDLE_INT_H
#define WEFT_BUNDLE_INT_H

#include <assert.h>
#include "base/assert.h"
#include "net/bundle/bundle.h"
#include "net/bundle/bundle_proto.h"
#include "net/hub.h"

#define WEFT_BUNDLE_INLINE 4096u           /* a packet up to this goes whole over any rail */
#define WEFT_BUNDLE_WHOLE_MAX (64u << 10)  /* one up to this is copied and goes whole */
#define WEFT_BUNDLE_UNIT_MIN 256u          /* room for data in the shortest units */
#define WEFT_BUNDLE_CLASSES 9              /* of units, each twice as long */
#define WEFT_BUNDLE_MAX_PAYLOAD (4u << 20) /* of an upper packet */
#define WEFT_BUNDLE_PIECE (256u << 10)     /* most of a large packet that one unit carries */
#define WEFT_BUNDLE_AHEAD (1u << 20)       /* bytes that one rail may have unconfirmed */
#define WEFT_BUNDLE_RESERVE 320u           /* numbers kept back for pieces */
#define WEFT_BUNDLE_PIECES 64              /* of memory, in one upper packet */
#define WEFT_BUNDLE_ACK_UNITS 16u          /* that ask SOON */
#define WEFT_BUNDLE_ACK_BYTES (128u << 10)
#define WEFT_BUNDLE_ACK_LATER_NS 10000000u /* what does not ask is confirmed after so long */
#define WEFT_BUNDLE_ASK_UNITS 512u         /* over one rail, of which none has asked */
#define WEFT_BUNDLE_ASK_BYTES (WEFT_BUNDLE_AHEAD / 4)
#define WEFT_BUNDLE_BEHIND 512u /* numbers taken in order that the peer is not told of */
#define WEFT_BUNDLE_TICK_MS 50u

#define WEFT_BUNDLE_FDS 3u /* of one rail */
static_assert(1 + WEFT_BUNDLE_RAILS * WEFT_BUNDLE_FDS <= WEFT_NET_FDS, "all are handed up");

enum weft_bundle_kind {
	WEFT_BUNDLE_HELLO = 1,
	WEFT_BUNDLE_ACK,
	WEFT_BUNDLE_WHOLE,
	WEFT_BUNDLE_BEGIN,
	WEFT_BUNDLE_PART,
};

/* When the receiver shall say what came. */
enum weft_bundle_ask {
	WEFT_BUNDLE_LATER, /* with what it sends anyway, or after ACK_LATER_NS */
	WEFT_BUNDLE_SOON,  /* when nothing more comes, or enough that asks so has come */
	WEFT_BUNDLE_NOW,
};

struct weft_bundle_head {
	uint8_t kind, ask, pad[2];
	uint32_t number;
	uint32_t got;  /* units that came over this link */
	uint32_t next; /* the first number that was not taken in order */
	uint32_t begin, offset;
};
static_assert(sizeof(struct weft_bundle_head) == WEFT_NET_HEAD, "it is a rail's head");

struct weft_bundle_begin {
	uint8_t head[WEFT_NET_HEAD];
	uint64_t len;
};

/* A large packet on its way out. */
struct weft_bundle_large {
	struct weft_bundle_large *next;
	void *cookie;
	size_t len, given; /* given: bytes that have a unit */
	uint32_t begin;
	unsigned n_iov, n_units; /* units that are not over */
	struct iovec iov[];
};

/* What the sender keeps of a unit until it is confirmed. */
struct weft_bundle_unit {
	struct weft_bundle_link link; /* first */
	struct weft_bundle_head head;
	struct weft_bundle_large *large; /* PART */
	uint32_t len;
	uint8_t order;  /* how long its data may be */
	bool held;      /* a rail still reads it */
	bool confirmed; /* but held */
	uint8_t data[];
};

/* A unit that came before its turn. */
struct weft_bundle_slot {
	uint8_t kind; /* 0: none */
	uint32_t len, begin, offset;
	void *data;
};

enum weft_bundle_state {
	WEFT_BUNDLE_IDLE,
	WEFT_BUNDLE_WANTED,
	WEFT_BUNDLE_UP,
	WEFT_BUNDLE_LOST,
	WEFT_BUNDLE_GONE,
};

/* One rail to one peer. */
struct weft_bundle_way {
	uint8_t state;                /* L, P writes */
	bool hello_sent, hello_got;   /* L */
	bool full;                    /* L: until its ready() */
	bool left;                    /* P: the peer said goodbye here */
	bool was_up;                  /* P: ever */
	bool refused;                 /* P: an attempt to come back has failed */
	bool drop;                    /* P: to be ended after this round of polls */
	struct weft_bundle_lane lane; /* L */
	size_t under_bytes;           /* L: not confirmed */
	unsigned silent_units;        /* L: sent since one that asks */
	size_t silent_bytes;          /* L */
	unsigned pieces;              /* L: that are not confirmed */
	uint32_t got, told_got;       /* L */
	unsigned asked;               /* L: units since the last word that ask SOON */
	size_t asked_bytes;           /* L */
	bool asked_now;               /* L */
	uint64_t owed_ns;             /* L: the first since the last word came */
	uint64_t heard_ns;            /* P: last arrival */
	uint64_t since_ns; /* L: the oldest unconfirmed unit was sent, or progress made */
	uint64_t retry_ns, backoff_ns; /* P */
	bool revive;                   /* P: the driver has yet to be told */
	double bytes_per_ns;           /* L: measured while busy; 0: not yet */
	uint64_t busy_ns, busy_bytes;  /* L: of the measurement */
	/* P: what a stream delivers right now. */
	struct weft_bundle_head in;
	uint32_t in_len;
	enum {
		WEFT_BUNDLE_IN_NONE,
		WEFT_BUNDLE_IN_ASIDE,
		WEFT_BUNDLE_IN_PLACE,
		WEFT_BUNDLE_IN_DROP
	} in_what;
	void *aside;
	struct iovec in_iov[WEFT_BUNDLE_PIECES];
};

struct weft_bundle_peer {
	alignas(WEFT_CACHELINE) _Atomic bool x_lock;
	_Atomic bool x_blocked;             /* poster sets, P clears: owes a ready() */
	_Atomic bool x_down;                /* P */
	bool reached;                       /* I */
	bool awake;                         /* L: rails are wanted */
	size_t max_piece;                   /* I: what each of its rails can carry */
	uint32_t number;                    /* L: of the next unit */
	uint32_t peer_next;                 /* L: what the peer said */
	struct weft_bundle_fifo queue;      /* L: units that wait for a rail */
	struct weft_bundle_large *large;    /* L: not all of it has units */
	struct weft_bundle_link *lingering; /* L: units that are confirmed, but held */
	struct weft_bundle_link *spare[WEFT_BUNDLE_CLASSES]; /* L */
	size_t spare_bytes;                                  /* L */
	size_t kept_bytes;                                   /* L: copied, and not over */
	struct weft_bundle_way way[WEFT_BUNDLE_RAILS];
	/* The way in, P. */
	struct weft_bundle_window window;
	struct weft_bundle_slot *slot; /* WINDOW of them */
	_Atomic uint32_t x_in_next;    /* P: window.next */
	uint32_t told_next;            /* L: what of it the peer knows */
	unsigned n_aside;              /* pieces in slots */
	bool listed;                   /* in `active` */
	bool placing;                  /* a large packet is being put together */
	uint32_t placing_begin;
	size_t placing_len, placing_got;
	struct weft_net_sink sink; /* of it; iov is ours */
	struct iovec sink_iov[WEFT_BUNDLE_PIECES];
	uint64_t dying_ns; /* no rail is up since; 0: one is, or none ever was */
	bool ending;       /* x_down is set, the next housekeeping does the rest */
	char why[200];
	weft_err why_err;
};

struct weft_bundle;

struct weft_bundle_net {
	struct weft_bundle *bundle;
	unsigned index;
	const struct weft_driver *driver;
	struct weft_net *net;
	char interface[64];
	int fd[WEFT_BUNDLE_FDS]; /* I: that it sleeps on */
	unsigned n_fds;
	_Atomic uint64_t x_units, x_bytes, x_again, x_lost, x_revived;
	_Atomic unsigned x_up;
	_Atomic uint32_t x_mbs;    /* measured last */
	_Atomic uint32_t x_cut_ms; /* tests: 0: no */
	uint64_t cut_until_ns;     /* P */
};

struct weft_bundle {
	struct weft_net net;
	struct weft_net_events events;
	struct weft_net_job job;
	struct weft_hub hub;
	struct weft_net_card card_plain, card_copy;
	unsigned n_rails;
	struct weft_bundle_net rail[WEFT_BUNDLE_RAILS];
	int *active; /* P: peers that were ever heard or wanted */
	int n_active;
	_Atomic bool x_cut;   /* tests: a rail's x_cut_ms was set */
	_Atomic bool x_new;   /* a poster has woken a peer that is not active yet */
	_Atomic bool x_quiet; /* armed without a timer: a poster rings */
	bool armed;
	uint64_t heard_ns; /* P: the clock in this round of polls, 0: not read yet */
	unsigned found;    /* P: rails whose last poll found something, a bit for each */
	bool stirred;      /* P: housekeeping is due now */
	uint64_t patience_ns, silence_ns;
	uint64_t looked_ns; /* P: the last housekeeping */
	/* The setting rail_cut; P. */
	unsigned cut_rail, cut_at_ms, cut_for_ms; /* cut_for_ms 0: none, or done */
	uint64_t first_up_ns;
	struct weft_bundle_peer *peer;
};

/* bundle_peer.c */
void weft_net_bundle_lock(struct weft_bundle_peer *p);
void weft_net_bundle_unlock(struct weft_bundle_peer *p);
/* For weft_assert_held: a thread holds it. */
static inline bool weft_net_bundle_held(const struct weft_bundle_peer *p)
{
	/* Relaxed: asked by the holder. */
	return atomic_load_explicit(&p->x_lock, memory_order_relaxed);
}
/* What holds of the way out to a peer between two operations. */
void weft_net_bundle_out_check_locked(const struct weft_bundle *b,
				      const struct weft_bundle_peer *p);
/* From now on each poll looks at this peer; the poller calls it. */
void weft_net_bundle_list(struct weft_bundle *b, int peer);

/* How much a call of weft_net_bundle_tell says. */
enum weft_bundle_say {
	WEFT_BUNDLE_SAY_URGENT, /* more may come: what asks NOW, or enough of what asks SOON */
	WEFT_BUNDLE_SAY_ASKED,
	WEFT_BUNDLE_SAY_ALL,
};

/* bundle_poll.c; as driver.h says.  tell: peers hear what came; posters that waited, that there is
 * room; returns the upcalls made. */
int weft_net_bundle_poll(struct weft_net *net);
weft_err weft_net_bundle_arm(struct weft_net *net, enum weft_arm_level level) weft_must_use;
int weft_net_bundle_tell(struct weft_bundle *b, enum weft_bundle_say say);
/* Is there room for the posters that were told FULL? */
bool weft_net_bundle_roomy_locked(const struct weft_bundle *b, const struct weft_bundle_peer *p);

/* bundle_unit.c; with the peer's lock.  new: with the next number and room for so many bytes, NULL:
 * no memory. */
struct weft_bundle_unit *weft_net_bundle_unit_new(struct weft_bundle_peer *p, size_t bytes);
void weft_net_bundle_unit_free(struct weft_bundle_peer *p, struct weft_bundle_unit *u);
void weft_net_bundle_spares_free(struct weft_bundle_peer *p);

/* bundle_out.c; _locked: with the peer's lock */
enum weft_post weft_net_bundle_post_locked(struct weft_bundle *b, int peer, const void *head,
					   const struct iovec *iov, unsigned n, size_t len,
					   void *cookie);
/* Sends what waits over the rails that have room. */
void weft_net_bundle_pump_locked(struct weft_bundle *b, int peer);
/* Says hello where that is due. */
void weft_net_bundle_greet_locked(struct weft_bundle *b, int peer);
/* Tells the peer what came over this rail. */
void weft_net_bundle_ack_locked(struct weft_bundle *b, int peer, unsigned rail);
/* What the peer said about this rail.  Large packets that are over are put on *over. */
bool weft_net_bundle_confirm_locked(struct weft_bundle *b, int peer, unsigned rail,
				    const struct weft_bundle_head *h,
				    struct weft_bundle_large **over);
void weft_net_bundle_unit_released(struct weft_bundle_peer *p, struct weft_bundle_unit *u,
				   struct weft_bundle_large **over);
/* Fails everything that waits. */
void weft_net_bundle_out_end(struct weft_bundle *b, int peer, bool tell);
int weft_net_bundle_tell_over(struct weft_bundle *b, int peer, struct weft_bundle_large *over,
			      weft_err err);

/* bundle_in.c */
struct weft_net_events weft_net_bundle_rail_events(struct weft_bundle_net *r);
void weft_net_bundle_in_end(struct weft_bundle *b, int peer);

/* bundle_life.c */
void weft_net_bundle_way_down(struct weft_bundle *b, int peer, unsigned rail, weft_err err,
			      const char *why);
void weft_net_bundle_way_up(struct weft_bundle *b, int peer, unsigned rail);
/* From here on nothing goes to the peer; the upper layer hears of it at the end of this poll. */
void weft_net_bundle_peer_down(struct weft_bundle *b, int peer, weft_err err, const char *why);
/* What has deadlines; true: some are left. */
bool weft_net_bundle_housekeep(struct weft_bundle *b, int *upcalls_p);

#endif
