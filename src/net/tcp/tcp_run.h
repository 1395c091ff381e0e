/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp_run.h - small packets that differ in nothing but their number share a frame.
 *
 * The frame's length word says WEFT_TCP_RUN, how many packets it holds, and the length of each; its
 * head is the first one's, the i-th one's has i * WEFT_NET_RUN_STEP added to the first 8 bytes. The
 * payloads lie weft_net_run_apart(len) apart.
 *
 * A sender keeps the last frame of what waits open: the next packet joins it if it fits, and the
 * frame's first words are written when it is closed, which is before anything is put behind it or
 * sent.
 *
 * Callers   the holder of the connection's x_lock.
 * Owner     the block of copied frames in which it lies.
 */
#ifndef WEFT_TCP_RUN_H
#define WEFT_TCP_RUN_H

#include <string.h>
#include "base/mechanism.h"
#include "net/driver.h"

#define WEFT_TCP_RUN 0x80000000u
#define WEFT_TCP_RUN_PACKETS 128u /* of a frame: bounds what one look delivers */
#define WEFT_TCP_RUN_LEN 1024u    /* of a packet in it */
#define WEFT_TCP_RUN_BYTES 16384u /* of a frame, without its first words and head */
#define WEFT_TCP_RUN_SHIFT 16

/* The frame that may grow. */
struct weft_tcp_run {
	uint8_t *at; /* NULL: none */
	uint64_t next_w0, w1, w2;
	uint32_t len, n;
};

static inline uint32_t weft_net_tcp_run_word(uint32_t n, uint32_t len)
{
	return WEFT_TCP_RUN | n << WEFT_TCP_RUN_SHIFT | len;
}

/* False: no sender makes such a frame. */
static inline bool weft_net_tcp_run_read(uint32_t word, uint32_t *n_p, uint32_t *len_p)
{
	*n_p = (word & ~WEFT_TCP_RUN) >> WEFT_TCP_RUN_SHIFT;
	*len_p = word & ((1u << WEFT_TCP_RUN_SHIFT) - 1);
	return word & WEFT_TCP_RUN && *n_p >= 2 && *n_p <= WEFT_TCP_RUN_PACKETS &&
	       *len_p <= WEFT_TCP_RUN_LEN &&
	       *n_p * weft_net_run_apart(*len_p) <= WEFT_TCP_RUN_BYTES;
}

/* The first 8 bytes of a head as a number, so that steps can be added. */
static inline uint64_t weft_net_tcp_run_number(const void *head)
{
	uint64_t w;
	memcpy(&w, head, sizeof w);
	return w;
}

static inline bool weft_net_tcp_run_fits(const struct weft_tcp_run *r, const void *head, size_t len)
{
	uint64_t w[2];
	memcpy(w, (const char *)head + 8, sizeof w);
	return r->at && len == r->len && r->n < WEFT_TCP_RUN_PACKETS &&
	       weft_net_tcp_run_number(head) == r->next_w0 && w[0] == r->w1 && w[1] == r->w2;
}

/* A frame of one packet has been copied to `at`. */
static inline void weft_net_tcp_run_begin(struct weft_tcp_run *r, uint8_t *at, const void *head,
					  size_t len)
{
	if (len > WEFT_TCP_RUN_LEN || !weft_mechanism_on(WEFT_MECH_TCP_RUNS))
		return;
	r->at = at;
	r->len = (uint32_t)len;
	r->n = 1;
	r->next_w0 = weft_net_tcp_run_number(head) + WEFT_NET_RUN_STEP;
	memcpy(&r->w1, (const char *)head + 8, sizeof r->w1);
	memcpy(&r->w2, (const char *)head + 16, sizeof r->w2);
}

#endif
