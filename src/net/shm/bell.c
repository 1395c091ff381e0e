/* SPDX-License-Identifier: BSD-3-Clause */
/* bell.c - arming by membarrier, ringing by eventfd. */
#include "base/assert.h"
#include "base/cancel.h"
#include "net/shm/bell.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>
#include "base/counters.h"
#include "base/log.h"
#include "base/membarrier.h"

bool weft_net_bell_register(void)
{
	if (weft_membarrier_global_register())
		return true;
	weft_debug("shm: no membarrier here (%s): senders fence each message instead",
		   strerror(errno));
	return false;
}

static void write_bell(int fd)
{
	uint64_t one = 1;
	weft_count(WEFT_CNT_DOORBELLS, 1);
	int was = weft_cancel_off();
	/* EAGAIN: the count is full, so the eventfd is readable already. */
	while (write(fd, &one, sizeof one) < 0 && errno == EINTR)
		;
	weft_cancel_back(was);
}

void weft_net_bell_ring(struct weft_bell *b, int fd)
{
	weft_assert(fd >= 0);
	/* Relaxed would do for the receiver, which looks again anyway; the exchange makes one of
	 * several senders pay for the write. */
	if (atomic_exchange_explicit(&b->x_armed, 0, memory_order_relaxed))
		write_bell(fd);
}

void weft_net_bell_ring_still(struct weft_bell *b, uint32_t word, int fd)
{
	weft_assert(fd >= 0 && weft_net_bell_level_of(word) != WEFT_ARM_OFF);
	/* Relaxed, both: as in ring. */
	if (atomic_compare_exchange_strong_explicit(&b->x_armed, &word, 0, memory_order_relaxed,
						    memory_order_relaxed))
		write_bell(fd);
}

/* The loads of the second look are acquire only; the exchange before alone does not hold them back
 * on every machine.  (ThreadSanitizer does not know fences, and nothing is carried here.) */
static void fence_own(void)
{
#ifndef __SANITIZE_THREAD__
	/* ARM -> ASK, URGE. */
	atomic_thread_fence(memory_order_seq_cst);
#endif
}

void weft_net_bell_arm(struct weft_bell *b, enum weft_arm_level level, bool fence)
{
	weft_assert(level != WEFT_ARM_OFF && level <= WEFT_ARM_ALL);
	/* ARM -> ASK (weft_net_bell_armed), URGE (weft_net_bell_urgent).  Without the order that
	 * follows, the second look at the packets could be done before the store is seen: a packet
	 * published between would neither be found nor rung for. */
	(void)atomic_exchange_explicit(&b->x_armed, ++b->count << WEFT_BELL_BITS | (uint32_t)level,
				       memory_order_seq_cst);
	fence_own();
	if (fence && level == WEFT_ARM_ALL)
		weft_membarrier_global();
}

void weft_net_bell_disarm(struct weft_bell *b)
{
	/* Relaxed: a sender that still sees the 1 rings once in vain. */
	atomic_store_explicit(&b->x_armed, 0, memory_order_relaxed);
}
