/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * driver.h - what a network must be able to do, and what it reports.
 *
 * A driver moves packets between this process and its peers, in order per peer, each packet once.
 * It knows no tags, no tasks and no matching.  A packet is a head of WEFT_NET_HEAD bytes, which the
 * driver carries but does not read, and a payload of 0..max bytes.
 *
 * Callers    open, close: the starting thread.
 *            address: the starting thread, before boot's fence.  reach: after it.
 *            post: any thread; the caller holds the gate's mask, so one at a time per peer.
 *            regions, transfer, atomic, flush: any thread (region.h).
 *            poll: one thread at a time per driver instance (the caller holds the source's mask);
 *                  it runs beside posts.
 *            arm: the thread that is about to sleep or leave, or has woken.  Same mask as poll.
 * Blocking   nothing here blocks except open and close.  The small-message path of post and poll
 *            allocates nothing and calls the kernel only where the network is the kernel (tcp).
 * Upcalls    struct weft_net_events; made from poll, but for `hold`, which is made from post.
 *            ready() may come while the post that answers FULL is still returning.  No driver
 *            lock is held during an upcall; an upcall may post, to any peer, but not poll.
 */
#ifndef WEFT_DRIVER_H
#define WEFT_DRIVER_H

#include "base/arm_level.h"
#include "net/board.h"
#include "net/region.h"

#define WEFT_NET_HEAD 24
#define WEFT_NET_FDS 16 /* at most, that a driver sleeps on */
#define WEFT_NET_RUN_BYTES 8
#define WEFT_NET_RUN_MAX 16 /* packets of a run */
#define WEFT_NET_RUN_STEP ((uint64_t)1 << 32)

/* How far the payloads of a run lie apart. */
static inline size_t weft_net_run_apart(size_t len)
{
	return len <= WEFT_NET_RUN_BYTES ? WEFT_NET_RUN_BYTES
					 : weft_align_up(len, WEFT_NET_RUN_BYTES);
}

/* Where the driver shall write a payload that it has not read yet. */
struct weft_net_sink {
	struct iovec *iov; /* pieces; the driver may modify the array while it fills them */
	unsigned n;        /* 0: drop the payload */
	size_t room;       /* bytes the pieces hold together; what is beyond is dropped */
	void *cookie;      /* given back by placed() */
};

struct weft_net_events {
	void *arg; /* first argument of each */

	/* A whole packet in memory, payload included; valid during the call only. */
	void (*packet)(void *arg, int peer, const void *head, const void *payload, size_t len);

	/*
	 * May be NULL; then each comes by packet().  n packets of len bytes, WEFT_NET_RUN_MAX at
	 * most; the i-th one's payload begins i * weft_net_run_apart(len) behind `payload`, and
	 * its head is `head` with i * WEFT_NET_RUN_STEP added to the first 8 bytes, taken as a
	 * number.
	 */
	void (*run)(void *arg, int peer, const void *head, const void *payload, size_t len,
		    unsigned n);

	/*
	 * A head is there and `len` payload bytes follow from a stream.  The answer says where to
	 * put them; then placed() is called once, with err 0 when all bytes are there.
	 */
	void (*place)(void *arg, int peer, const void *head, size_t len,
		      struct weft_net_sink *sink);
	void (*placed)(void *arg, int peer, void *cookie, weft_err err);

	/* A post that had answered ACCEPTED is over: its pieces are free.  So is what region.h says
	 * of a transfer, an atomic, a flush. */
	void (*sent)(void *arg, int peer, void *cookie, weft_err err);

	/* A post to peer that answered FULL may be tried again, or an operation of region.h. */
	void (*ready)(void *arg, int peer);

	/*
	 * The connection has ended, once per peer; `why` is one line for the user.  WEFT_OK: the
	 * peer left in order.
	 */
	void (*down)(void *arg, int peer, weft_err err, const char *why);

	/*
	 * May be NULL.  The connection has been closed for a while, by both sides, and is made anew when either needs
	 * it.  From here on the peer's end is not noticed unless expect() is called again.
	 */
	void (*rests)(void *arg, int peer);

	/*
	 * May be NULL; then nothing is held back.  Asked from post, when small packets come right
	 * after one another: may they be kept, though their posts say DONE, to travel together?
	 * True: the next poll or arm sends them, and one of these comes soon whatever happens.
	 * first: none came right before this one, it is only likely that others follow.
	 * Asked until the answer is yes, then not again in this burst; must be short and must not
	 * call the driver.
	 */
	bool (*hold)(void *arg, int peer, bool first);
};

/* What a post did. */
enum weft_post {
	WEFT_POST_DONE,     /* the pieces may be used again at once */
	WEFT_POST_ACCEPTED, /* kept; sent() will say when the pieces are free */
	WEFT_POST_FULL,     /* nothing was kept; ready() will say when to try again */
	WEFT_POST_DOWN,     /* the peer is gone */
	WEFT_POST_REFUSED,  /* transfer, atomic: no such access to that region; nothing was kept */
};

/* Capability card, valid after open. */
struct weft_net_card {
	size_t max_payload;    /* of one packet */
	size_t inline_max;     /* payloads up to this are always DONE or FULL */
	size_t eager_max;      /* above this comm asks first (setting or measured) */
	unsigned access;       /* what this peer's regions allow: enum weft_net_access; 0: none */
	unsigned atomic_sizes; /* bytes that atomic() takes, or'ed; 0: there is none */
	bool atomic_cpu;       /* atomics are atomic against the owner's CPU */
	bool copies;           /* transfer() copies on the caller's CPU, and is DONE; a region costs
				* nothing; WEFT_NET_KEY_ANY works */
	bool gathers;          /* small packets that follow each other share a system call anyway */
	bool streams;          /* large payloads come by place(), else always by packet() */
	double latency_us;     /* estimate; sampled later */
	double bandwidth_mbs;
};

struct weft_net_job {
	int rank, size;
	const char *jobid;
	const uint8_t *secret; /* WEFT_SECRET_BYTES */
	const char *interface; /* to use, where that means something; NULL: as the settings say */
	bool revivable;        /* a peer that connects anew is believed that the old one is gone */
	/* The address of a peer that was reached by WEFT_NET_LATER, for the poller that dials first.  Never
	 * waits: AGAIN until it is known.  NULL: there are no such peers. */
	weft_err (*find)(void *arg, int peer, char *buf, size_t size);
	void *find_arg;
	bool callers; /* peers have no numbers: each that connects gets a free one above 0 */
};

#define WEFT_NET_LATER "later"

/* What upcalls() does.  Relaxed: both functions are right at any time. */
static inline void weft_net_events_take(struct weft_net_events *to,
					const struct weft_net_events *from)
{
	__atomic_store_n(&to->packet, from->packet, __ATOMIC_RELAXED);
	__atomic_store_n(&to->run, from->run, __ATOMIC_RELAXED);
}

struct weft_net; /* an open driver instance; first member is const struct weft_driver * */

struct weft_driver {
	const char *name;

	/* Opens the driver for a job of size ranks.  WEFT_ERR_UNSUPPORTED: not on this machine. */
	weft_err (*open)(const struct weft_net_job *job, const struct weft_net_events *events,
			 struct weft_net **net_p);
	void (*close)(struct weft_net *net);
	/* May be NULL.  From now on, or soon, packet and run of events are called instead: any thread, while another may be in
	 * poll, which calls the old ones or the new. */
	void (*upcalls)(struct weft_net *net, const struct weft_net_events *events);

	/* One line of text (an address, a host key) that peers need; goes through boot's put. */
	weft_err (*address)(struct weft_net *net, char *buf, size_t size);

	/*
	 * May this driver talk to the peer with that address?  WEFT_ERR_UNSUPPORTED: no (other
	 * host). Remembers the address; the connection itself is made at the first post or by the
	 * peer.  WEFT_NET_LATER (tcp): job->find tells the address when it is needed.
	 */
	weft_err (*reach)(struct weft_net *net, int peer, const char *address);

	enum weft_post (*post)(struct weft_net *net, int peer, const void *head,
			       const struct iovec *iov, unsigned n, size_t len, void *cookie);

	/*
	 * May be NULL.  post() of one contiguous piece without a cookie, whose head is the numbers
	 * w0, w1 and len, in this order: for the smallest messages, in registers all the way.
	 */
	enum weft_post (*post_plain)(struct weft_net *net, int peer, uint64_t w0, uint64_t w1,
				     const void *data, size_t len);

	/*
	 * May be NULL: every post() does.  What has been posted to peer needs an answer: it rings
	 * there at each level.  late: a thread of this process will poll soon, so the ring may wait for
	 * a poll some 50 us from now.  True: it does, and had it not been for late, it would not.
	 */
	bool (*urge)(struct weft_net *net, int peer, bool late);

	/*
	 * May be NULL.  As post_plain, but only into what waits for the next poll already; FULL:
	 * nothing does, or it does not fit there.  Never calls the kernel.
	 */
	enum weft_post (*join_plain)(struct weft_net *net, int peer, uint64_t w0, uint64_t w1,
				     const void *data, size_t len);

	/* Looks once for events; returns how many upcalls it made (0: nothing there). */
	int (*poll)(struct weft_net *net);
	/* May be NULL.  The same, but may look up to `turns` times, a few cycles apart, where
	 * messages come without the kernel; ends as soon as it finds something. */
	int (*spin)(struct weft_net *net, unsigned turns);

	/*
	 * The caller will sleep on fd, or go to compute: from here on each arrival that the level
	 * names makes fd readable (base/arm_level.h).  WEFT_AGAIN: there is something already, and
	 * the driver is off; poll instead.  OFF disarms; after waking: arm(OFF), then poll.  A poll
	 * while armed is right, too: what it finds is delivered, and when it returns 0 the driver
	 * is armed as before; it costs a system call.  May be called while armed, for another
	 * level.
	 * Below ALL_UNCHECKED an arrival is what is followed by urge().
	 */
	weft_err (*arm)(struct weft_net *net, enum weft_arm_level level);
	bool arms_levels; /* else each level but OFF is ALL to it */
	/*
	 * Writes the descriptors to sleep on, the same for the driver's life, and returns how many.
	 * All of them are to be watched: none is an epoll set of another driver's, since the kernel
	 * bounds how deep sets nest, and the library below may nest its own.
	 */
	unsigned (*fds)(struct weft_net *net, int fd[WEFT_NET_FDS]);

	/*
	 * All may be NULL: the network has none.  region.h says what they promise.
	 * region_open: to one peer, or WEFT_NET_ANY_PEER, for `access`.  WEFT_ERR_UNSUPPORTED: not
	 * here; WEFT_ERR_LIMIT, WEFT_ERR_NOMEM: too many.
	 * flush: DONE, or sent() later: all that this process has written to peer's regions, by
	 * calls that have returned, has arrived.
	 */
	weft_err (*region_open)(struct weft_net *net, int peer, void *base, size_t len,
				unsigned access, struct weft_net_region *region);
	void (*region_close)(struct weft_net *net, struct weft_net_region *region);
	enum weft_post (*transfer)(struct weft_net *net, int peer,
				   const struct weft_net_transfer *t);
	enum weft_post (*atomic)(struct weft_net *net, int peer, const struct weft_net_atomic *a);
	enum weft_post (*flush)(struct weft_net *net, int peer, void *cookie);

	/* Tells every connected peer that we leave in order (their down() is then not an error),
	 * and waits until all accepted posts are out.  Called by polling until it returns WEFT_OK.
	 */
	weft_err (*drain)(struct weft_net *net);

	const struct weft_net_card *(*card)(struct weft_net *net, int peer);

	/*
	 * May be NULL.  WEFT_NET_BOARD_BYTES that `peer`, or this process itself, shows to all its
	 * connected peers, zero at first; all may write there.  NULL: not connected, or no such
	 * memory.  It stays until close.  Any thread.
	 */
	void *(*board)(struct weft_net *net, int peer);

	/*
	 * Both may be NULL, and are safe in any thread.  word: the i-th of WEFT_NET_WORDS that
	 * `peer`, or this process itself, shows like the board; NULL: as there.  awake: does
	 * a thread of peer look for messages at this moment, as far as a load can tell?
	 */
	_Atomic uint64_t *(*word)(struct weft_net *net, int peer, unsigned i);
	bool (*awake)(struct weft_net *net, int peer);

	/* May be NULL; as awake: is peer armed for replies only? */
	bool (*computes)(struct weft_net *net, int peer);

	/*
	 * Both may be NULL; the poller calls them, not within an upcall of this instance.
	 * drop: ends the connection to peer as if it had broken; placed(), sent() and down() follow
	 * at once.  revive: after down(), with no post under way: from now on a post, or the peer,
	 * may connect anew.
	 */
	void (*drop)(struct weft_net *net, int peer, const char *why);
	void (*revive)(struct weft_net *net, int peer);
	/* May be NULL.  In down(): does no process listen any more where the peer did? */
	bool (*ended)(struct weft_net *net, int peer);
	/*
	 * May be NULL; the poller calls it.  Is the peer's process there, though it may not have
	 * answered: has its host taken our connection, does a pidfd say so?  A process that is
	 * stopped, or computes and does not poll, is there.
	 */
	bool (*lives)(struct weft_net *net, int peer);
	/*
	 * May be NULL; any thread.  The launcher says that the peer's process has ended.  If there is no
	 * connection yet, down() comes soon; one that is up tells its end by itself.
	 */
	void (*died)(struct weft_net *net, int peer);
	/*
	 * May be NULL; any thread, once per peer, and once more after each rests().  A receive waits for peer: if it does
	 * not connect by itself in a while, we do, so that its end comes as down().
	 */
	void (*expect)(struct weft_net *net, int peer);
};
#define WEFT_NET_WORDS 64

extern const struct weft_driver weft_net_driver_self;
extern const struct weft_driver weft_net_driver_shm;
extern const struct weft_driver weft_net_driver_tcp;
extern const struct weft_driver weft_net_driver_ofi;
extern const struct weft_driver weft_net_driver_bundle;

struct weft_net {
	const struct weft_driver *driver;
};

#endif
