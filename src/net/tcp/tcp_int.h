/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp_int.h - the tcp driver's own structures.
 *
 * On the wire each packet is a frame: payload length (4 bytes), check (4 bytes, over length and
 * head), head (24 bytes), payload.  Small ones in a row may share one (tcp_run.h).
 *
 * A connection's two halves have different owners.  In: the poller.  Out: the holder of x_lock,
 * which is held over at most one sendmsg of OUT_BATCH bytes at a time by the poller; a poster that
 * cannot have it soon answers FULL and hears ready() later.
 */
#ifndef WEFT_TCP_INT_H
#define WEFT_TCP_INT_H

#include <netinet/in.h>
#include <sys/socket.h>
#include "base/assert.h"
#include "net/driver.h"
#include "net/host.h"
#include "net/hub.h"
#include "net/lobby.h"
#include "net/tcp/tcp_run.h"

#define WEFT_TCP_FRAME 32
#define WEFT_TCP_BYE 0xffffffffu  /* in place of a length */
#define WEFT_TCP_REST 0xfffffffeu /* likewise */
#define WEFT_TCP_MAX_PAYLOAD (1u << 30)
#define WEFT_TCP_INLINE 4096u      /* copied when the socket is full */
#define WEFT_TCP_CORK 1024u        /* packets up to this wait for each other in a burst */
#define WEFT_TCP_BLOCK (16u << 10) /* of copied packets */
#define WEFT_TCP_BLOCKS_MAX 32
#define WEFT_TCP_KEPT_MAX 64 /* accepted posts per connection */
#define WEFT_TCP_IN_BUFFER (64u << 10)
#define WEFT_TCP_BATCH (128u << 10) /* of a long payload: worth a wake-up */
#define WEFT_TCP_WHOLE 8192u        /* a payload up to this is put together in the buffer */
#define WEFT_TCP_ADDRESSES 16

enum { WEFT_TCP_EV_CONN = WEFT_HUB_DRIVER };

enum weft_tcp_state { WEFT_TCP_NONE, WEFT_TCP_UP, WEFT_TCP_DOWN };

union weft_tcp_sockaddr {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

struct weft_tcp_address {
	union weft_tcp_sockaddr name; /* with port */
	unsigned prefix;              /* bits of its subnet */
	bool loopback;
};

/* What waits to go out: a block of copied frames, or an accepted post. */
struct weft_tcp_item {
	struct weft_tcp_item *next;
	bool is_block;
	uint32_t begin, end; /* block: bytes in data; post: of the frame's 32 */
	struct iovec *iov;   /* post: pieces that are left; steps through few[] or many[] */
	struct iovec *many;  /* post: allocated when few[] is too small */
	unsigned n;
	void *cookie;
	struct iovec few[8];
	uint8_t data[]; /* block: WEFT_TCP_BLOCK; post: the frame's 32 */
};

struct weft_tcp_out {
	struct weft_tcp_item *first, *last;
	struct weft_tcp_item *done, **done_end; /* accepted posts that are out; sent() is due */
	struct weft_tcp_item *spare;            /* one block kept for later */
	struct weft_tcp_run run;                /* the end of the last block, if it may grow */
	unsigned n_blocks, n_kept;
	bool stuck; /* the socket is full: waiting for EPOLLOUT */
	int error;  /* errno of a broken connection */
};

struct weft_tcp_in {
	uint8_t *buf;
	uint32_t begin, end;
	uint32_t limit; /* bytes of one recv into buf */
	bool more;      /* a whole frame may be left in buf */
	bool bye;
	bool rest; /* the peer sends no more on this connection, see tcp_rest.c */
	/* A payload that goes straight into its place. */
	bool placing;
	struct weft_net_sink sink;
	size_t left;  /* payload bytes still to come */
	bool batched; /* the socket wakes us for WEFT_TCP_BATCH bytes, not for the first one */
};

struct weft_tcp_conn {
	alignas(WEFT_CACHELINE) _Atomic int x_state; /* poller writes */
	_Atomic bool x_lock;
	_Atomic bool x_dirty;    /* out has something that the poller shall push or report */
	_Atomic bool x_blocked;  /* poster sets, poller clears: owes a ready() */
	uint64_t last_round;     /* under x_lock: the poll round of the last post */
	unsigned burst;          /* under x_lock: posts since that poll, less 1 */
	unsigned streak;         /* under x_lock: long bursts before this one, with none between */
	unsigned doubts, right;  /* under x_lock: see judge_lead() */
	bool led;                /* under x_lock: the first of this burst was held back */
	bool rest;               /* under x_lock: we send no more on this connection */
	uint64_t used_round;     /* under x_lock: the poll round of the last post of any length */
	uint64_t heard_round;    /* poller: that of the last packet */
	struct weft_tcp_out out; /* under x_lock */
	int fd;                  /* under x_lock to change */
	int peer;                /* I */
	bool bye_queued;         /* starting thread */
	struct weft_tcp_in in;   /* poller */
	uint64_t unacked_since_ns; /* watchdog; 0: all was acknowledged */
	bool later;            /* I: job.find tells the candidates when this process dials first */
	unsigned n_candidates; /* if later: the poller's alone */
	struct weft_tcp_address candidate[WEFT_TCP_ADDRESSES]; /* in the order to try */
};

struct weft_tcp {
	struct weft_net net;
	struct weft_net_events events;
	struct weft_net_job job;
	struct weft_hub hub;
	struct weft_lobby lobby;
	bool listening;
	bool armed; /* between arm and disarm */
	unsigned n_mine;
	struct weft_tcp_address mine[WEFT_TCP_ADDRESSES]; /* listener n belongs to mine[n] */
	unsigned n_reached, n_same_network;
	char network_key[WEFT_HOST_KEY_MAX];
	int *up; /* connections that are up */
	int n_up;
	_Atomic uint64_t x_round; /* polls so far */
	_Atomic int x_dirty;      /* connections with x_dirty */
	_Atomic int x_blocked;    /* connections with x_blocked */
	_Atomic bool x_armed;     /* poller sets, a ringing poster clears */
	_Atomic int x_stuck;      /* connections whose socket is full */
	_Atomic bool x_sent;      /* something since the watchdog's last look */
	int n_more;               /* connections with in.more */
	int fd_crowded;           /* I: descriptors from here on are few; 0: no connection rests */
	unsigned watchdog_ms;     /* how often */
	uint64_t watchdog_ns;     /* next look at what is not acknowledged */
	struct weft_net_card card;
	struct weft_tcp_conn *conn;
};

/* tcp_addr.c */
weft_err weft_net_tcp_addr_listen(struct weft_tcp *t) weft_must_use;
weft_err weft_net_tcp_addr_print(const struct weft_tcp *t, char *buf, size_t size) weft_must_use;
/* Parses a peer's line and puts what can be reached into its candidates, best first. */
weft_err weft_net_tcp_addr_learn(struct weft_tcp *t, int peer, const char *line) weft_must_use;
int weft_net_tcp_addr_dial(void *arg, int peer, unsigned n, char *where, size_t size);

/* tcp_out.c; all but take_done with the lock held */
bool weft_net_tcp_out_lock(struct weft_tcp_conn *c, bool patient);
void weft_net_tcp_out_unlock(struct weft_tcp_conn *c);
/* For weft_assert_held: a thread holds it. */
static inline bool weft_net_tcp_out_held(const struct weft_tcp_conn *c)
{
	/* Relaxed: asked by the holder. */
	return atomic_load_explicit(&c->x_lock, memory_order_relaxed);
}
/* What holds of what waits, between two operations. */
static inline void weft_net_tcp_out_check(const struct weft_tcp_out *o)
{
	weft_assert(!o->first == !o->last && (o->first || (!o->n_blocks && !o->n_kept)));
	weft_assert(o->n_blocks <= WEFT_TCP_BLOCKS_MAX && o->n_kept <= WEFT_TCP_KEPT_MAX);
	/* A frame that may grow is the end of what waits. */
	weft_assert(!o->run.at || (o->last && o->last->is_block && o->run.at >= o->last->data &&
				   o->run.at < o->last->data + o->last->end));
}
void weft_net_tcp_out_init(struct weft_tcp_out *o);
enum weft_post weft_net_tcp_out_post(struct weft_tcp *t, struct weft_tcp_conn *c, const void *head,
				     const struct iovec *iov, unsigned n, size_t len, void *cookie,
				     bool cork);
/* Into the frame that is open behind what waits; false: it does not fit there. */
bool weft_net_tcp_out_join(struct weft_tcp_out *o, const void *head, const struct iovec *iov,
			   unsigned n, size_t len);
/* From here on nothing joins it. */
void weft_net_tcp_out_close(struct weft_tcp_out *o);
/* Pushes what waits into the socket, at most one batch; true: all is out. */
bool weft_net_tcp_out_push(struct weft_tcp *t, struct weft_tcp_conn *c);
bool weft_net_tcp_out_bye(struct weft_tcp *t, struct weft_tcp_conn *c);
/* Likewise: this connection's last word, after which another may be made. */
bool weft_net_tcp_out_rest(struct weft_tcp *t, struct weft_tcp_conn *c);
static inline bool weft_net_tcp_out_empty(const struct weft_tcp_out *o)
{
	return !o->first;
}
static inline bool weft_net_tcp_out_roomy(const struct weft_tcp_out *o)
{
	return o->n_blocks < WEFT_TCP_BLOCKS_MAX / 2 && o->n_kept < WEFT_TCP_KEPT_MAX / 2;
}
/* Takes the accepted posts that are over (all of them with all set). */
struct weft_tcp_item *weft_net_tcp_out_take_done(struct weft_tcp_conn *c, bool all);
void weft_net_tcp_out_free(struct weft_tcp_out *o);
void weft_net_tcp_item_free(struct weft_tcp_item *it);
void weft_net_tcp_out_mark_dirty(struct weft_tcp *t, struct weft_tcp_conn *c);

/* tcp_post.c; as driver.h says */
void weft_net_tcp_died(struct weft_net *net, int peer);
void weft_net_tcp_expect(struct weft_net *net, int peer);
enum weft_post weft_net_tcp_post(struct weft_net *net, int peer, const void *head,
				 const struct iovec *iov, unsigned n, size_t len, void *cookie);
enum weft_post weft_net_tcp_join_plain(struct weft_net *net, int peer, uint64_t w0, uint64_t w1,
				       const void *data, size_t len);

/* tcp_frame.c */
void weft_net_tcp_frame_write(uint8_t frame[WEFT_TCP_FRAME], uint32_t len, const void *head);
/* The same for a frame that has its head. */
void weft_net_tcp_frame_stamp(uint8_t frame[WEFT_TCP_FRAME], uint32_t len);
/* How many packets, of which length; BYE: as the length of one.  False: this is not a frame. */
bool weft_net_tcp_frame_read(const uint8_t *frame, uint32_t *n_p, uint32_t *len_p);

/* tcp_in.c */
/* How a connection has ended: WEFT_OK, the peer left in order; why: for the user. */
struct weft_tcp_end {
	bool over;
	weft_err err;
	char why[96];
};
/* Reads and delivers; returns the upcalls made.  *end: set if the connection is over. */
int weft_net_tcp_in_read(struct weft_tcp *t, struct weft_tcp_conn *c, struct weft_tcp_end *end);
/* Ends an unfinished delivery. */
void weft_net_tcp_in_abandon(struct weft_tcp *t, struct weft_tcp_conn *c, weft_err err);

/* tcp_conn.c */
/* Of a socket that dials: ends when the host it has reached falls silent. */
void weft_net_tcp_conn_dialing(int fd);
void weft_net_tcp_conn_up(struct weft_tcp *t, int peer, int fd);
void weft_net_tcp_conn_down(struct weft_tcp *t, struct weft_tcp_conn *c, weft_err err,
			    const char *why);
/* The poller looks at it no more. */
void weft_net_tcp_conn_unlist(struct weft_tcp *t, struct weft_tcp_conn *c);
/* tcp_rest.c */
void weft_net_tcp_rest_init(struct weft_tcp *t);
/* A connection has got a descriptor: if few are left, another one is asked to rest.  NULL: there was none for it. */
void weft_net_tcp_rest_make_room(struct weft_tcp *t, const struct weft_tcp_conn *fresh);
/* Goes on with a connection that is to rest, if that is so; returns the upcalls made. */
int weft_net_tcp_rest_step(struct weft_tcp *t, struct weft_tcp_conn *c);

/* tcp_serve.c */
/* Reads and delivers, and ends the connection where that is over; returns the upcalls made. */
int weft_net_tcp_serve_read(struct weft_tcp *t, struct weft_tcp_conn *c);
/* Pushes and reports for a connection that asked for it; returns the upcalls made. */
int weft_net_tcp_serve_push(struct weft_tcp *t, struct weft_tcp_conn *c);
/* A peer dials whose connection may be one that rests: what it has said last is read first. */
bool weft_net_tcp_serve_resting(void *arg, int peer);

/* tcp_conn.c */
/* As a connection that has never been, but for what it has learned; x_lock held, its descriptor closed. */
void weft_net_tcp_conn_clear_locked(struct weft_tcp *t, struct weft_tcp_conn *c);
/* Tells of accepted posts that are out; returns how many. */
int weft_net_tcp_conn_report(struct weft_tcp *t, struct weft_tcp_conn *c,
			     struct weft_tcp_item *list);
void weft_net_tcp_conn_ready(struct weft_tcp *t, struct weft_tcp_conn *c);
struct tcp_info;
/* For how long the other host owes us an answer, by what the kernel knows of a connection with
 * unacknowledged data. */
uint64_t weft_net_tcp_silent_ms(const struct tcp_info *info);
/* Looks whether the peer has stopped acknowledging; true: there is something to watch. */
bool weft_net_tcp_conn_watch(struct weft_tcp *t, struct weft_tcp_conn *c, uint64_t now);
/* After its end: as if there had been none. */
void weft_net_tcp_conn_reset(struct weft_tcp *t, struct weft_tcp_conn *c);

#endif
