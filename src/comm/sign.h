/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sign.h - what a message consists of, told to its receiver where both sides check (WEFT_CHECK).
 *
 * A signature is 32 bits: 0, unknown; else the upper byte is 1 + the basic element that all of it
 * consists of, or WEFT_SIGN_MIXED, and the rest a hash of the whole.  The layer above leaves the
 * next send's and the next receive's in weft_comm_sign_next; the send carries it (wire.h), the
 * receive keeps it, and where the two meet they are compared.
 *
 * Callers   next: the thread that is about to send or receive.  check: wherever a match is made.
 * Cost      off: a load and a branch in sends and receives that do not take the shortest way.
 */
#ifndef WEFT_COMM_SIGN_H
#define WEFT_COMM_SIGN_H

#include "comm/comm.h"

#define WEFT_SIGN_MIXED 255u
#define WEFT_SIGN_HASH 0xffffffu

struct weft_comm_sign_next {
	uint32_t send, recv;
};

/* Set before messages go, by the layer above, and then constant. */
extern bool weft_comm_signing;
extern _Thread_local struct weft_comm_sign_next weft_comm_sign_next;
/* Two signatures differ.  Any thread, under a driver's lock: recv is not over yet. */
extern void (*weft_comm_sign_differs)(const struct weft_req *recv, const char *comm, int peer,
				      int tag, uint64_t bytes, uint32_t theirs, uint32_t ours);

static inline uint32_t weft_comm_sign_take(uint32_t *next)
{
	if (weft_likely(!weft_comm_signing))
		return 0;
	uint32_t s = *next;
	*next = 0;
	return s;
}

__attribute__((cold)) void weft_comm_sign_compare(const struct weft_req *recv, int peer, int tag,
						  uint64_t bytes, uint32_t theirs);

/* A message of `bytes` bytes has found its receive. */
static inline void weft_comm_sign_check(const struct weft_req *recv, int peer, int tag,
					uint64_t bytes, uint32_t theirs)
{
	if (weft_unlikely(theirs) && weft_comm_signing)
		weft_comm_sign_compare(recv, peer, tag, bytes, theirs);
}

#endif
