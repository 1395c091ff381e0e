/* SPDX-License-Identifier: BSD-3-Clause */
/* share_int.h - what share.c and share_help.c have in common. */
#ifndef WEFT_COMM_SHARE_INT_H
#define WEFT_COMM_SHARE_INT_H

#include "comm/send/gate.h"

#define WEFT_SHARE_PIECE_MAX ((size_t)256 * 1024) /* as in rndv.c */
#define WEFT_SHARE_SMALL ((size_t)128 * 1024)     /* copied on the spot */
#define WEFT_SHARE_REST_PIECE ((size_t)64 * 1024) /* fetched before the rest is likely taken */

/* What the sender is told besides the CTS's head; the tag is the number of the word. */
struct weft_share_offer {
	uint64_t addr, number, piece;
};
_Static_assert(sizeof(struct weft_share_offer) <= WEFT_CONTROL_MAX,
	       "an offer comes as a control packet");

#endif
