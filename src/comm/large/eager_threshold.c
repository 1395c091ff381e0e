/* SPDX-License-Identifier: BSD-3-Clause */
/* eager_threshold.c - the switch point of a host, moved by what was measured. */
#include "base/counters.h"
#include "base/log.h"
#include "comm/large/eager_threshold.h"

#define COPY_PS_MIN 8 /* no memory is quicker, and smoothing by eighths works from here */

void weft_comm_eager_threshold_init(struct weft_comm_eager_threshold *l, size_t start,
				    size_t highest)
{
	*l = (struct weft_comm_eager_threshold){.least = start / 4, .round_ns = UINT64_MAX};
	l->most = start < highest / 4 ? start * 4 : highest;
	/* Relaxed: no other thread knows it yet. */
	atomic_store_explicit(&l->x_point, start, memory_order_relaxed);
}

/* True: it has moved. */
static bool move_locked(struct weft_comm_eager_threshold *l)
{
	weft_assert_held(weft_comm_spin, &l->lock);
	if (!l->ask_ns || !l->copy_ps)
		return false;
	size_t now = weft_comm_eager_threshold_point(l);
	uint64_t best = l->ask_ns * 1000 / l->copy_ps;
	if (best < l->least)
		best = l->least;
	if (best > l->most)
		best = l->most;
	if (best <= now + now / 4 && best >= now - now / 4)
		return false;
	atomic_store_explicit(&l->x_point, (size_t)best, memory_order_relaxed);
	l->moves++;
	return true;
}

static void unlock(struct weft_comm_eager_threshold *l, bool moved)
{
	size_t point = weft_comm_eager_threshold_point(l);
	weft_comm_spin_unlock(&l->lock);
	if (weft_likely(!moved))
		return;
	weft_count(WEFT_CNT_SWITCH_MOVED, 1);
	weft_info("messages beyond %zu bytes ask first from now on, as measured", point);
}

void weft_comm_eager_threshold_asked(struct weft_comm_eager_threshold *l, uint64_t ns)
{
	bool moved = false;
	if (!weft_comm_spin_try(&l->lock))
		return;
	if (ns < l->round_ns)
		l->round_ns = ns;
	if (++l->asked == WEFT_EAGER_THRESHOLD_ASKED) {
		/* Up to a second: the product in move_locked stays within a word. */
		l->ask_ns = l->round_ns < 1000000000u ? l->round_ns + 1 : 1000000000u;
		l->asked = 0;
		l->round_ns = UINT64_MAX;
		moved = move_locked(l);
	}
	unlock(l, moved);
}

void weft_comm_eager_threshold_copied(struct weft_comm_eager_threshold *l, size_t bytes,
				      uint64_t ns)
{
	if (!weft_comm_spin_try(&l->lock))
		return;
	/* One that was interrupted counts as four times the usual, no more. */
	uint64_t ps = (ns < 1000000000u ? ns : 1000000000u) * 1000 / bytes + 1;
	if (ps < COPY_PS_MIN)
		ps = COPY_PS_MIN;
	if (!l->copy_ps)
		l->copy_ps = ps;
	else
		l->copy_ps = (l->copy_ps * 7 + (ps < 4 * l->copy_ps ? ps : 4 * l->copy_ps) + 4) / 8;
	unlock(l, move_locked(l));
}

struct weft_comm_eager_threshold_state
weft_comm_eager_threshold_read(struct weft_comm_eager_threshold *l)
{
	weft_comm_spin_lock(&l->lock);
	struct weft_comm_eager_threshold_state s = {l->ask_ns, l->copy_ps,
						    weft_comm_eager_threshold_point(l), l->moves};
	weft_comm_spin_unlock(&l->lock);
	return s;
}
