/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ofi_int.h - the ofi driver's own structures: one reliable, connectionless endpoint of libfabric.
 *
 * On the wire each packet is one message: struct weft_ofi_frame, then the payload.  The frame's
 * token proves, per direction, that the sender knows the job's secret; a message without it is
 * counted and dropped.  It does not hide the payload, nor keep a process that reads the wire from
 * sending a token again: ofi is for networks that the job has to itself.
 *
 * Large     what is longer than a buffer goes by a read of the receiver (ofi_large.c, ofi_rma.c),
 *           where the provider has reads.
 * Buffers   all other packets, both ways, lie in one slab that is registered once where the
 *           network asks for that.  A post copies; it answers FULL when the peer's share of them is
 *           under way.
 * Epochs    nothing is connected, so a link that broke and is used again is told from the old one
 *           by a number that goes with each frame.  The side that takes a link up again
 *           counts it up; a frame of a later epoch ends the link for its receiver, too, which then
 *           takes it up in that epoch.  Frames of an earlier epoch are dropped.
 * Ends      the side that ends a link says END; a packet for a link that has ended is answered with
 *           it, so that the other side learns of it although nothing below has broken.
 * Locks     x_free_lock guards the two lists of free buffers.  libfabric's own calls are made
 *           thread-safe by libfabric (FI_THREAD_SAFE).
 */
#ifndef WEFT_OFI_INT_H
#define WEFT_OFI_INT_H

#include "net/ofi/ofi.h"

#if __has_include(<rdma/fabric.h>)

#include <assert.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include "base/assert.h"
#include "net/driver.h"
#include "net/host.h"
#include "net/hub.h"

#define WEFT_OFI_VERSION FI_VERSION(1, 11)
#define WEFT_OFI_NAME_MAX 128
#define WEFT_OFI_MAX_PAYLOAD 16000u   /* with all heads within what providers send in one piece */
#define WEFT_OFI_MAX_LARGE (1u << 30) /* of a packet that is read out of the sender's memory */
#define WEFT_OFI_BEHIND 32u           /* packets behind one of these; fewer than SHARE */
#define WEFT_OFI_SMALL 512u           /* payload of a small buffer */
#define WEFT_OFI_N_SMALL 512
#define WEFT_OFI_N_LARGE 128
#define WEFT_OFI_N_RX 256
#define WEFT_OFI_SHARE 64  /* from a peer's oldest post that is under way to its latest */
#define WEFT_OFI_PARTS 16u /* of transfers with one peer, under way */
#define WEFT_OFI_PING_MS 1000u
#define WEFT_OFI_LET_GO_NS 3000000000u /* so long the network may hold on to a buffer, ... */
#define WEFT_OFI_LET_GO_ENDED_NS                                                                   \
	300000000u /* ... where the peer's process is known to have ended */

enum { WEFT_OFI_EV_PID = WEFT_HUB_DRIVER };

enum weft_ofi_kind {
	WEFT_OFI_PACKET = 1,
	WEFT_OFI_BYE, /* the sender leaves in order and will post no more */
	WEFT_OFI_HEARD /* answers BYE: all before it is here */,
	WEFT_OFI_PING,  /* finds out whether the peer is still there */
	WEFT_OFI_END,   /* the sender has given this link up */
	WEFT_OFI_LARGE, /* a packet whose payload is to be read: ofi_rma.c */
	WEFT_OFI_DONE,  /* that has happened, up to the one whose number is in the head */
	WEFT_OFI_FLUSH, /* asks for an answer, which comes behind what was written: ofi_transfer.c
			 */
	WEFT_OFI_FLUSHED,
};

struct weft_ofi_frame {
	uint64_t token;
	uint32_t rank;
	uint32_t sequence; /* counts this direction's packets */
	uint32_t len;      /* of the payload */
	uint32_t kind;     /* enum weft_ofi_kind; above it the epoch */
	uint8_t head[WEFT_NET_HEAD];
};
static_assert(sizeof(struct weft_ofi_frame) == 48, "no holes on the wire");

#define WEFT_OFI_EPOCH_SHIFT 8

static inline uint32_t weft_net_ofi_epoch(const struct weft_ofi_frame *f)
{
	return f->kind >> WEFT_OFI_EPOCH_SHIFT;
}

static inline enum weft_ofi_kind weft_net_ofi_kind(const struct weft_ofi_frame *f)
{
	return (enum weft_ofi_kind)(f->kind & ((1u << WEFT_OFI_EPOCH_SHIFT) - 1));
}

/* What LARGE carries: where the payload is. */
#define WEFT_OFI_PIECES 8 /* of a LARGE; more are gathered in one */

struct weft_ofi_piece {
	uint64_t addr, key, len;
};

struct weft_ofi_announce {
	uint64_t len;
	uint64_t n;
	struct weft_ofi_piece piece[WEFT_OFI_PIECES];
};

struct weft_ofi_buf {
	struct fi_context2 context; /* libfabric's while the operation runs */
	struct weft_ofi_buf *next;
	int peer; /* sends */
	bool is_rx, is_small, is_read, is_part;
	struct weft_ofi_frame frame;
	uint8_t payload[];
};

enum weft_ofi_state { WEFT_OFI_NONE, WEFT_OFI_REACHED, WEFT_OFI_DOWN };

struct weft_ofi_large;
struct weft_ofi_reading;
struct weft_ofi_transfer;
struct weft_ofi_region_end;

struct weft_ofi_peer {
	_Atomic int x_state;         /* poller writes after reach */
	_Atomic bool x_blocked;      /* poster sets, poller clears: owes a ready() */
	_Atomic unsigned x_under;    /* posts under way */
	uint32_t out_sequence;       /* poster */
	_Atomic uint32_t x_out_base; /* poller: what came before is out */
	uint64_t out_over;           /* poller: bit i: x_out_base + i is out, too */
	fi_addr_t addr;              /* I */
	uint64_t token_out, token_in;
	uint64_t refused_ns; /* poller: since when the network takes no ping; 0: it does */
	bool remote;         /* I: no pidfd tells of its end */
	int pid_fd;          /* poller */
	/* The poller's. */
	uint32_t in_sequence, bye_sequence;
	struct weft_ofi_buf *early; /* complete before their turn, by sequence */
	bool heard, bye_got, bye_answered, dead_already;
	uint32_t epoch;      /* poller writes while no thread posts */
	uint32_t epoch_next; /* the latest that was heard of */
	uint64_t gone_ns;    /* its process has ended: until then a new link is merely tried */
	bool gone;
	bool owes_heard; /* to a BYE of another epoch than ours */
	uint32_t owes_epoch;
	bool owes_end; /* poller: the peer is to hear that the link has ended, ... */
	bool end_got;  /* ... which it said itself */
	bool broke;    /* poller: DOWN with an error */
	uint64_t end_until_ns;
	_Atomic bool x_bye_sent;
	bool bye_heard;
	/* ofi_large.c, ofi_rma.c */
	_Atomic bool x_large_lock;
	_Atomic unsigned x_larges;        /* L x_large_lock; read without */
	struct weft_ofi_large *large;     /* L x_large_lock: under way, oldest first */
	bool large_full;                  /* L x_large_lock: a poster waits for DONE */
	struct weft_ofi_reading *reading; /* poller */
	bool owes_done;                   /* poller */
	uint32_t done_sequence;           /* poller */
	/* ofi_transfer.c, ofi_region.c */
	_Atomic unsigned x_parts;    /* under way: callers add, the poller takes */
	_Atomic unsigned x_partials; /* transfers of which parts are still to be given */
	_Atomic uint32_t x_writes, x_flushed, x_flush_number;
	struct weft_ofi_transfer *transfer;     /* L x_region_lock: not over */
	struct weft_ofi_transfer *partial;      /* L x_region_lock */
	struct weft_ofi_region_end *region_end; /* poller: its end is told later */
	bool owes_flushed;                      /* poller */
	uint8_t flush_head[WEFT_NET_HEAD];      /* poller */
};

struct weft_ofi {
	struct weft_net net;
	struct weft_net_events events;
	struct weft_net_job job;
	struct weft_hub hub;
	struct weft_net_card card;
	char provider[64];
	char host_key[WEFT_HOST_KEY_MAX];
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct fid_mr *mr;
	void *desc;
	bool rma;     /* I: large packets are read */
	bool put;     /* I: regions can be written */
	bool atomics; /* I: asked for */
	_Atomic bool x_region_lock;
	struct weft_net_region *region;          /* L x_region_lock */
	struct weft_ofi_transfer *lost_transfer; /* L: given up, but the network may look there */
	_Atomic unsigned x_partials;             /* of all peers */
	_Atomic uint64_t x_key;                  /* of the next memory that is registered */
	struct weft_ofi_reading *lost; /* poller: given up, but the network may still write there */
	int cq_fd;                     /* -1: this provider has none; then a timer polls */
	uint8_t *slab;
	size_t slab_bytes;
	_Atomic bool x_free_lock;
	struct weft_ofi_buf *free_small, *free_large;
	struct weft_ofi_buf *rx_idle; /* poller: could not be posted */
	bool armed;                   /* between arm and disarm */
	_Atomic bool x_armed;         /* poller sets, a ringing poster clears */
	_Atomic int x_blocked;        /* peers with x_blocked */
	int n_remote;                 /* peers that pings watch */
	uint64_t ping_ns;
	bool revived; /* poller: a link was taken up that may have early messages */
	bool owes;    /* poller: a peer has owes_heard, owes_end, owes_done, or a read to begin */
	int n_gone;   /* poller: peers tried though gone */
	struct weft_ofi_peer *peer;
};

/* ofi_lib.c: libfabric itself, loaded at the first open. */
weft_err weft_net_ofi_lib_open(struct weft_ofi *o) weft_must_use;
void weft_net_ofi_lib_close(struct weft_ofi *o);
const char *weft_net_ofi_lib_error(int code);

/* ofi_buf.c.  Any poster may take and give; the rx calls are the poller's.  NULL: none is left. */
weft_err weft_net_ofi_slab_make(struct weft_ofi *o) weft_must_use;
struct weft_ofi_buf *weft_net_ofi_buf_take(struct weft_ofi *o, size_t len);
void weft_net_ofi_buf_give(struct weft_ofi *o, struct weft_ofi_buf *b);
void weft_net_ofi_rx_give(struct weft_ofi *o, struct weft_ofi_buf *b);
void weft_net_ofi_rx_post(struct weft_ofi *o);

/* ofi_out.c.  Post: the poster, one at a time per peer.  Send: the poller, for frames that carry no
 * packet; false: not now.  Here and below, what returns a count may call back: it is the number of
 * upcalls made. */
enum weft_post weft_net_ofi_post(struct weft_net *net, int peer, const void *head,
				 const struct iovec *iov, unsigned n, size_t len, void *cookie);
/* There was no room: FULL, or DOWN. */
enum weft_post weft_net_ofi_full(struct weft_ofi *o, int peer);
bool weft_net_ofi_send_in_epoch(struct weft_ofi *o, int peer, enum weft_ofi_kind kind,
				uint32_t epoch, const void *head, const struct iovec *iov,
				unsigned n, size_t len);
bool weft_net_ofi_send(struct weft_ofi *o, int peer, enum weft_ofi_kind kind, const void *head,
		       const struct iovec *iov, unsigned n, size_t len);
/* Has the poller look, if it sleeps; after a flag that it sees was stored seq_cst. */
void weft_net_ofi_nudge(struct weft_ofi *o);
void weft_net_ofi_set_blocked(struct weft_ofi *o, struct weft_ofi_peer *p);
int weft_net_ofi_send_over(struct weft_ofi *o, struct weft_ofi_buf *b, int code);
int weft_net_ofi_tell_ready(struct weft_ofi *o);

/* ofi_in.c, the poller's. */
int weft_net_ofi_take(struct weft_ofi *o, bool *found_p);
int weft_net_ofi_deliver_early(struct weft_ofi *o, int peer);
bool weft_net_ofi_keep_early(struct weft_ofi_peer *p, struct weft_ofi_buf *b);
void weft_net_ofi_drop_early(struct weft_ofi *o, struct weft_ofi_peer *p);

/* ofi_peer.c, the poller's. */
weft_err weft_net_ofi_reach(struct weft_net *net, int peer, const char *address) weft_must_use;
void weft_net_ofi_peer_down(struct weft_ofi *o, int peer, weft_err err, const char *why);
int weft_net_ofi_answer_byes(struct weft_ofi *o);
int weft_net_ofi_on_pid(struct weft_ofi *o, int peer);
void weft_net_ofi_ping(struct weft_ofi *o);
weft_err weft_net_ofi_drain(struct weft_net *net) weft_must_use;

/* ofi_large.c.  Post, behind: the poster; the others: the poller.  behind: must a poster wait until
 * the peer has read? large_full: does one? */
enum weft_post weft_net_ofi_large_post(struct weft_ofi *o, int peer, const void *head,
				       const struct iovec *iov, unsigned n, size_t len,
				       void *cookie);
bool weft_net_ofi_behind(struct weft_ofi_peer *p, bool large);
bool weft_net_ofi_large_full(struct weft_ofi_peer *p);
int weft_net_ofi_on_done(struct weft_ofi *o, int peer, const struct weft_ofi_frame *f);
int weft_net_ofi_large_over(struct weft_ofi *o, int peer, bool all, uint32_t sequence,
			    weft_err err);
void weft_net_ofi_large_drop(struct weft_ofi_peer *p);

/* ofi_rma.c, the poller's. */
int weft_net_ofi_on_large(struct weft_ofi *o, struct weft_ofi_buf *b);
int weft_net_ofi_read_over(struct weft_ofi *o, struct weft_ofi_buf *b, int code);
bool weft_net_ofi_reads(const struct weft_ofi_peer *p);
void weft_net_ofi_rma_again(struct weft_ofi *o, int peer);
bool weft_net_ofi_rma_down(struct weft_ofi *o, int peer, weft_err err, const char *text);
void weft_net_ofi_rma_end(struct weft_ofi *o);
void weft_net_ofi_rma_close(struct weft_ofi *o);

/* ofi_region.c.  Open, close: any thread; the others: the poller. */
void weft_net_ofi_region_lock(struct weft_ofi *o);
void weft_net_ofi_region_unlock(struct weft_ofi *o);
weft_err weft_net_ofi_region_open(struct weft_net *net, int peer, void *base, size_t len,
				  unsigned access, struct weft_net_region *region) weft_must_use;
void weft_net_ofi_region_close(struct weft_net *net, struct weft_net_region *region);
bool weft_net_ofi_region_down(struct weft_ofi *o, int peer, weft_err err, const char *why);
bool weft_net_ofi_region_ends(const struct weft_ofi_peer *p);
void weft_net_ofi_region_again(struct weft_ofi *o, int peer);
void weft_net_ofi_regions_end(struct weft_ofi *o);
void weft_net_ofi_regions_close(struct weft_ofi *o);

/* ofi_transfer.c.  The first five: any thread; the others: the poller. */
enum weft_post weft_net_ofi_transfer(struct weft_net *net, int peer,
				     const struct weft_net_transfer *t);
enum weft_post weft_net_ofi_atomic(struct weft_net *net, int peer, const struct weft_net_atomic *a);
enum weft_post weft_net_ofi_flush(struct weft_net *net, int peer, void *cookie);
bool weft_net_ofi_is_reached(const struct weft_ofi_peer *p);
/* True: a transfer waits for room, and no packet may overtake it. */
bool weft_net_ofi_is_partial(const struct weft_ofi_peer *p);
unsigned weft_net_ofi_atomic_sizes(struct weft_ofi *o);
int weft_net_ofi_part_over(struct weft_ofi *o, struct weft_ofi_buf *b, int code);
int weft_net_ofi_transfers_go_on(struct weft_ofi *o);
void weft_net_ofi_on_flush(struct weft_ofi *o, int peer, const struct weft_ofi_frame *f);
int weft_net_ofi_on_flushed(struct weft_ofi *o, int peer, const struct weft_ofi_frame *f);
void weft_net_ofi_flush_answer(struct weft_ofi *o, int peer);
void weft_net_ofi_flushes_fail(struct weft_ofi *o, int peer);
void weft_net_ofi_transfers_give_up(struct weft_ofi *o, int peer);
void weft_net_ofi_transfers_end(struct weft_ofi *o);
void weft_net_ofi_transfers_close(struct weft_ofi *o);

/* ofi_epoch.c, the poller's. */
int weft_net_ofi_on_other_epoch(struct weft_ofi *o, struct weft_ofi_buf *b, bool whole);
int weft_net_ofi_deliver_revived(struct weft_ofi *o);
void weft_net_ofi_owe_end(struct weft_ofi *o, int peer);
void weft_net_ofi_end_lost(struct weft_ofi *o, int peer);
void weft_net_ofi_answer_strays(struct weft_ofi *o);
bool weft_net_ofi_ended(struct weft_net *net, int peer);
void weft_net_ofi_drop(struct weft_net *net, int peer, const char *why);
void weft_net_ofi_revive(struct weft_net *net, int peer);

#endif

#endif
