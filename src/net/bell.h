/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bell.h - how a sender knows that the receiver sleeps, without a fence per message.
 *
 * The word x_armed lies in memory that both see; the receiver's eventfd is the bell itself.
 *
 * Sender    publish the packet; then, if both sides are registered ("plain"): a compiler barrier
 * and a relaxed load of x_armed.  Else: publish with an exchange, then load.  If armed: take the 1
 * back (exchange) and, who took it, writes the eventfd. Receiver  store 1; if any sender is plain:
 * membarrier, which makes every registered process that runs pass a full barrier; look once more
 * for packets; sleep. Why       After the membarrier each sender has either published before it,
 * and then the second look sees the packet; or loads x_armed after it, and then it sees the 1.  The
 * barrier that the sender saves per message is paid by the receiver per sleep. Not guaranteed: that
 * each ring wakes somebody.  A ring may come after the receiver has disarmed; it then finds a
 * readable eventfd at the next sleep, once. Measured  membarrier 1.6 us when a registered peer
 * runs; 83 M rounds, none lost; with a sender that was not registered 25 of 7 M.  So: register
 * first, tell the peer, then go plain.
 */
#ifndef WEFT_BELL_H
#define WEFT_BELL_H

#include "base/base.h"

struct weft_bell {
	alignas(WEFT_CACHELINE) _Atomic uint32_t x_armed; /* receiver sets, ringing sender clears */
};

/* Registers this process once; true: others may rely on it when they use membarrier. */
bool weft_bell_register(void);

/* Does the receiver sleep, or is it about to?  After publishing; see the card. */
static inline bool weft_bell_armed(const struct weft_bell *b, bool plain)
{
	if (weft_likely(plain)) {
		/* ASK <- ARM (weft_bell_arm), ordered by the receiver's membarrier. */
		weft_compiler_barrier();
		return atomic_load_explicit(&b->x_armed, memory_order_relaxed) != 0;
	}
	/* ASK <- ARM: both seq_cst, and the publishing exchange before this load is, too. */
	return atomic_load_explicit(&b->x_armed, memory_order_seq_cst) != 0;
}

/* Wakes the receiver; fd is its eventfd.  Call when armed() was true. */
void weft_bell_ring(struct weft_bell *b, int fd);

/* After this, look once more, then sleep.  fence: some sender is plain. */
void weft_bell_arm(struct weft_bell *b, bool fence);
void weft_bell_disarm(struct weft_bell *b);

#endif
