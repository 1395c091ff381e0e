/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bell.h - how a sender knows that the receiver sleeps, without a fence per message.
 *
 * The word x_armed lies in memory that both see; the receiver's eventfd is the bell itself.
 *
 * Sender    publish the packet; then, if both sides are registered ("plain"): a compiler
 *           barrier and a relaxed load of x_armed.  Else: publish with an exchange, then load.
 *           If the level asks for it: take the level back by an exchange; of several senders the
 *           one that took it writes the eventfd.
 * Receiver  store the level; for ALL, if any sender is plain: membarrier, which makes every
 *           registered process that runs pass a full barrier; look once more for packets; sleep.
 * Why       After the membarrier each sender has either published before it, and then the
 *           second look sees the packet; or loads x_armed after it, and then it sees the level.
 *           The barrier that the sender saves per message is paid by the receiver per sleep.
 * Levels    base/arm_level.h.  ALL alone needs the membarrier, which takes 20 to 40 us where the
 *           peer's core is busy.  A packet that needs an answer is followed by urgent(), a fence
 *           of the sender's: it rings at each level.  Any other packet lies below ALL_UNCHECKED,
 *           and may be overlooked in the moment of arming ALL_UNCHECKED, until arm(ALL) has run
 *           the membarrier and the receiver has looked once more.
 * Soon      the sender of a packet that needs an answer delays the ring, if it goes on polling
 *           (delayed_ring.h); if not, the packet lies until arm(REPLIES) and a look.  So does, at
 *           REPLIES, a sender that is known to poll soon (comm/send/urge.h).
 * Not guaranteed  that each ring wakes a thread.  A ring may come after the receiver has
 *           disarmed; it then finds a readable eventfd at the next sleep, once.
 * Measured  membarrier 1.6 us when no registered peer runs; 83 M rounds, none lost; with a
 *           sender that was not registered 25 of 7 M.  So: register first, tell the peer, then
 *           go plain.
 * Checked   test/net/test_model_bell.c.
 */
#ifndef WEFT_BELL_H
#define WEFT_BELL_H

#include "base/arm_level.h"
#include "base/assert.h"
#include "base/base.h"

#define WEFT_BELL_BITS 3 /* of the level; above it a count, which tells one arming from another */

struct weft_bell {
	/* The level and the count; receiver sets, ringing sender clears. */
	alignas(WEFT_CACHELINE) _Atomic uint32_t x_armed;
	uint32_t count; /* receiver */
};

static inline enum weft_arm_level weft_net_bell_level_of(uint32_t word)
{
	return (enum weft_arm_level)(word & ((1u << WEFT_BELL_BITS) - 1));
}

static inline bool weft_net_bell_is_for_all(uint32_t word)
{
	return weft_net_bell_level_of(word) >= WEFT_ARM_ALL_UNCHECKED;
}

/* Registers this process once; true: others may rely on it when they use membarrier. */
bool weft_net_bell_register(void);

/* Does the receiver sleep, or is it about to, and wants to be rung?  After publishing; see the
 * card. */
static inline bool weft_net_bell_armed(const struct weft_bell *b, bool plain)
{
	if (weft_likely(plain)) {
		/* ASK <- ARM (weft_net_bell_arm), ordered by the receiver's membarrier. */
		weft_compiler_barrier();
		return weft_net_bell_is_for_all(
			atomic_load_explicit(&b->x_armed, memory_order_relaxed));
	}
	/* ASK <- ARM: both seq_cst, and the publishing exchange before this load is, too. */
	return weft_net_bell_is_for_all(atomic_load_explicit(&b->x_armed, memory_order_seq_cst));
}

/* The same for a packet that needs an answer, which the sender pays a fence for: the word, right
 * even where the receiver has not run its membarrier yet. */
static inline uint32_t weft_net_bell_urgent(const struct weft_bell *b)
{
	/* URGE <- ARM.  A full barrier, as the receiver's between arming and its look: that look
	 * finds the packet, or we find it armed.  Without it our load could come before the packet
	 * is seen.  (Nothing is carried, so ThreadSanitizer need not follow.) */
	atomic_thread_fence(memory_order_seq_cst);
	return atomic_load_explicit(&b->x_armed, memory_order_relaxed);
}

/* Wakes the receiver; fd is its eventfd.  Call when armed() or urgent() said that it sleeps. */
void weft_net_bell_ring(struct weft_bell *b, int fd);
/* The same, if it is still armed as when its word was this one: it was not back since. */
void weft_net_bell_ring_still(struct weft_bell *b, uint32_t word, int fd);

/* The receiver, or a hint for others: which level? */
static inline enum weft_arm_level weft_net_bell_level(const struct weft_bell *b)
{
	return weft_net_bell_level_of(atomic_load_explicit(&b->x_armed, memory_order_relaxed));
}

/* The receiver, between two of its operations, where no peer writes to the word but to ring. */
static inline void weft_net_bell_check(const struct weft_bell *b)
{
	/* Relaxed: its own word, or taken back. */
	uint32_t word = atomic_load_explicit(&b->x_armed, memory_order_relaxed);
	enum weft_arm_level level = weft_net_bell_level_of(word);
	weft_assert(!word || (level != WEFT_ARM_OFF && level <= WEFT_ARM_ALL));
	/* Armed as of its latest arming: a ring of an earlier one would take nothing back. */
	weft_assert(!word || word == (b->count << WEFT_BELL_BITS | (uint32_t)level));
}

/* After this, look once more, then sleep.  Also while armed, to another level or after a ring: each
 * arming is told from the one before.  fence: some sender is plain. */
void weft_net_bell_arm(struct weft_bell *b, enum weft_arm_level level, bool fence);
void weft_net_bell_disarm(struct weft_bell *b);

#endif
