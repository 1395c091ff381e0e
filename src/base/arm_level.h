/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * arm_level.h - how much of what arrives rings a sleeper: one scale from the baton down through
 * slot, source and driver to the bell.
 *
 * Each level rings for all that the levels below it ring for.  An unchecked level is cheaper to
 * take: it may overlook what is published in the moment of arming, and a descriptor that was readable
 * before, so that a later call for the checked level above it (weft_arm_checked) has to look once more.
 *
 * Callers   arm(level), under the source's mask: the thread that is about to sleep, to leave, or has
 *           woken.  OFF disarms and never fails.
 * Answer    WEFT_OK: from here on arrivals of that level make the descriptor readable, and nothing
 *           lay there.  WEFT_AGAIN: something is there, and the level is OFF: poll.  A source may
 *           arm for more than it is asked for, never for less.
 * Thread    that sleeps relies on ALL and on nothing below.
 */
#ifndef WEFT_ARM_LEVEL_H
#define WEFT_ARM_LEVEL_H

#include "base/base.h"

enum weft_arm_level {
	WEFT_ARM_OFF,  /* nothing rings: a thread polls */
	WEFT_ARM_SOON, /* REPLIES, but a ring may come some 50 us late, or only after the
				     * check: the thread is likely to poll again before */
	WEFT_ARM_REPLIES_UNCHECKED, /* no thread waits: what needs an answer rings, the rest lies */
	WEFT_ARM_REPLIES,
	WEFT_ARM_ALL_UNCHECKED, /* all rings, but for what came in the moment of arming */
	WEFT_ARM_ALL,
};

/* Must arm() be called again, with weft_arm_checked(), within some ms? */
static inline bool weft_arm_is_unchecked(enum weft_arm_level level)
{
	return level == WEFT_ARM_SOON || level == WEFT_ARM_REPLIES_UNCHECKED ||
	       level == WEFT_ARM_ALL_UNCHECKED;
}

static inline enum weft_arm_level weft_arm_checked(enum weft_arm_level level)
{
	switch (level) {
	case WEFT_ARM_SOON:
	case WEFT_ARM_REPLIES_UNCHECKED:
		return WEFT_ARM_REPLIES;
	case WEFT_ARM_ALL_UNCHECKED:
		return WEFT_ARM_ALL;
	default:
		return level;
	}
}

/* Armed, but what needs no answer lies until the next look. */
static inline bool weft_arm_is_for_replies(enum weft_arm_level level)
{
	return level != WEFT_ARM_OFF && level < WEFT_ARM_ALL_UNCHECKED;
}

#endif
