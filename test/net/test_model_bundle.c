/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rails' protocol (net/bundle/bundle_proto.h) in every order of sending, arriving, confirming,
 * breaking and coming back: each unit is taken once, in order, and none is missing when rails stay
 * up.
 *
 * The model is the production header with a network around it that holds what is under way, in
 * order per link, and loses it all when the link breaks.  Two rails, three units, each rail breaks
 * at most twice.  Every state that can be reached is visited once.  Then each rule of the header is
 * broken in turn, and the checks must notice.
 */
#include <stdio.h>
#include <stdlib.h>
#include "check.h"
#include "net/bundle/bundle_proto.h"

enum { RAILS = 2, UNITS = 3, BREAKS = 2, HELD = 8, FIRST = -2 }; /* numbers wrap on the way */

static enum mutant {
	NONE,
	FORGET_WHEN_LOST, /* what a broken link had under way does not go again */
	KEEP_COUNT,       /* the receiver's count goes on over a new link */
	TAKE_AGAIN,       /* a number is not looked up */
	CONFIRM_EARLY,    /* units count as got when they are sent */
	OLD_IS_FRESH,     /* the window forgets what lies below it */
	CONFIRM_ONE_MORE, /* an off by one in the count */
	MUTANTS,
} mutant;

static const char *const name[MUTANTS] = {"as it is",
					  "forget what was under way",
					  "keep the count over a new link",
					  "take what is here already",
					  "confirm what is merely sent",
					  "forget what was taken",
					  "confirm one too many"};

struct unit {
	struct weft_bundle_link link; /* first */
	uint32_t number;
};

struct state {
	/* sender */
	struct unit unit[UNITS];
	struct weft_bundle_fifo queue;
	struct weft_bundle_lane lane[RAILS];
	/* network: numbers on their way, counts on their way back */
	uint8_t n_out[RAILS], n_back[RAILS], up[RAILS], breaks[RAILS];
	uint32_t out[RAILS][HELD], back[RAILS][HELD];
	/* receiver */
	struct weft_bundle_window window;
	uint32_t got[RAILS];
	uint8_t taken[UNITS], n_taken;
	const char *wrong;
};

/* ---- states: copied, compared, kept -------------------------------------------------------- */

static void *move(void *p, const struct state *from, struct state *to)
{
	return p ? (char *)to + ((char *)p - (const char *)from) : NULL;
}

static void move_fifo(struct weft_bundle_fifo *f, const struct state *from, struct state *to)
{
	f->first = move(f->first, from, to);
	f->last = move(f->last, from, to);
}

static struct state *copy(const struct state *from)
{
	struct state *to = malloc(sizeof *to);
	CHECK(to);
	memcpy(to, from, sizeof *to);
	move_fifo(&to->queue, from, to);
	for (int r = 0; r < RAILS; r++)
		move_fifo(&to->lane[r].under, from, to);
	for (int i = 0; i < UNITS; i++)
		to->unit[i].link.next = move(to->unit[i].link.next, from, to);
	return to;
}

/* Everything that decides the future, as bytes. */
static size_t key_of(const struct state *s, uint8_t *key)
{
	size_t n = 0;
	for (int f = 0; f <= RAILS; f++) {
		const struct weft_bundle_fifo *q = f < RAILS ? &s->lane[f].under : &s->queue;
		for (const struct weft_bundle_link *l = q->first; l; l = l->next)
			key[n++] = (uint8_t)((const struct unit *)l - s->unit);
		key[n++] = 0xff;
	}
	for (int r = 0; r < RAILS; r++) {
		key[n++] = s->up[r];
		key[n++] = s->breaks[r];
		key[n++] = (uint8_t)s->lane[r].sent;
		key[n++] = (uint8_t)s->lane[r].confirmed;
		key[n++] = (uint8_t)s->got[r];
		key[n++] = s->n_out[r];
		for (int i = 0; i < s->n_out[r]; i++)
			key[n++] = (uint8_t)s->out[r][i];
		key[n++] = s->n_back[r];
		for (int i = 0; i < s->n_back[r]; i++)
			key[n++] = (uint8_t)s->back[r][i];
	}
	for (int i = 0; i < UNITS; i++)
		key[n++] = (uint8_t)(s->taken[i] |
				     weft_net_bundle_has(&s->window, s->unit[i].number) << 4);
	key[n++] = (uint8_t)s->window.next;
	return n;
}

enum { SEEN_BITS = 22 };
static uint64_t *seen;
static size_t n_seen;

static bool is_new(const struct state *s)
{
	uint8_t key[256];
	size_t n = key_of(s, key);
	uint64_t h = 0x9e3779b97f4a7c15u;
	for (size_t i = 0; i < n; i++) {
		h = (h ^ key[i]) * 0xbf58476d1ce4e5b9u;
		h ^= h >> 29;
	}
	h |= 1;
	for (size_t at = h >> (64 - SEEN_BITS);; at = (at + 1) % ((size_t)1 << SEEN_BITS)) {
		if (seen[at] == h)
			return false;
		if (!seen[at]) {
			seen[at] = h;
			CHECK(++n_seen < (size_t)1 << (SEEN_BITS - 1));
			return true;
		}
	}
}

/* ---- steps --------------------------------------------------------------------------------- */

static bool do_send(struct state *s, int r)
{
	if (!s->up[r] || s->n_out[r] == HELD || !s->queue.first)
		return false;
	struct unit *u = (struct unit *)weft_net_bundle_fifo_take(&s->queue);
	weft_net_bundle_lane_sent(&s->lane[r], &u->link);
	s->out[r][s->n_out[r]++] = u->number;
	return true;
}

static void take_in_order(struct state *s)
{
	while (weft_net_bundle_has(&s->window, s->window.next)) {
		uint32_t i = s->window.next - (uint32_t)FIRST;
		if (i != s->n_taken)
			s->wrong = "out of order";
		if (i < UNITS)
			s->taken[i]++;
		s->n_taken++;
		weft_net_bundle_advance(&s->window);
	}
}

/* The oldest unit on a link arrives; the receiver says how many came. */
static bool do_arrive(struct state *s, int r)
{
	if (!s->n_out[r] || s->n_back[r] == HELD)
		return false;
	uint32_t number = s->out[r][0];
	memmove(s->out[r], s->out[r] + 1, --s->n_out[r] * sizeof number);
	s->got[r]++;
	enum weft_bundle_seen look = weft_net_bundle_look(&s->window, number);
	if (mutant == OLD_IS_FRESH && number - s->window.next >= UINT32_MAX / 2)
		look = WEFT_BUNDLE_FRESH;
	uint32_t i = number - (uint32_t)FIRST;
	if (look == WEFT_BUNDLE_FRESH || mutant == TAKE_AGAIN) {
		if (i < UNITS && (s->taken[i] || weft_net_bundle_has(&s->window, number)))
			s->wrong = "doubled";
		weft_net_bundle_mark(&s->window, number);
		take_in_order(s);
	} else if (look == WEFT_BUNDLE_WILD) {
		s->wrong = "beyond the window";
	}
	s->back[r][s->n_back[r]++] = s->got[r] + (mutant == CONFIRM_ONE_MORE);
	return true;
}

static bool do_confirm(struct state *s, int r)
{
	if (!s->n_back[r])
		return false;
	uint32_t got = s->back[r][0];
	memmove(s->back[r], s->back[r] + 1, --s->n_back[r] * sizeof got);
	if (mutant == CONFIRM_EARLY)
		got = s->lane[r].sent;
	if (!weft_net_bundle_lane_sane(&s->lane[r], got)) {
		s->wrong = "a count that makes no sense";
		return true;
	}
	while (weft_net_bundle_lane_confirm(&s->lane[r], got))
		;
	return true;
}

static bool do_break(struct state *s, int r)
{
	if (!s->up[r] || s->breaks[r] == BREAKS)
		return false;
	s->up[r] = 0;
	s->breaks[r]++;
	s->n_out[r] = s->n_back[r] = 0;
	if (mutant == FORGET_WHEN_LOST)
		weft_net_bundle_lane_init(&s->lane[r]);
	weft_net_bundle_lane_lost(&s->lane[r], &s->queue);
	if (mutant != KEEP_COUNT)
		s->got[r] = 0;
	return true;
}

static bool do_revive(struct state *s, int r)
{
	if (s->up[r])
		return false;
	s->up[r] = 1;
	return true;
}

static bool (*const step[])(struct state *, int) = {do_send, do_arrive, do_confirm, do_break,
						    do_revive};

static const char *why;

/* Nothing is under way, nothing waits: then everything must be there. */
static void at_rest(const struct state *s)
{
	for (int i = 0; i < UNITS && !why; i++)
		if (s->taken[i] != 1)
			why = s->taken[i] ? "doubled" : "lost";
}

static void visit(const struct state *from)
{
	bool rest = true;
	for (unsigned k = 0; k < weft_countof(step) && !why; k++) {
		for (int r = 0; r < RAILS && !why; r++) {
			struct state *s = copy(from);
			if (step[k](s, r)) {
				rest = rest && step[k] == do_break;
				why = s->wrong;
				if (!why && is_new(s))
					visit(s);
			}
			free(s);
		}
	}
	if (rest && !why)
		at_rest(from);
}

static void explore_all(void)
{
	struct state *s = calloc(1, sizeof *s);
	CHECK(s);
	memset(seen, 0, sizeof *seen << SEEN_BITS);
	n_seen = 0;
	why = NULL;
	weft_net_bundle_fifo_init(&s->queue);
	s->window.next = (uint32_t)FIRST;
	for (int r = 0; r < RAILS; r++) {
		weft_net_bundle_lane_init(&s->lane[r]);
		s->up[r] = 1;
	}
	for (int i = 0; i < UNITS; i++) {
		s->unit[i].number = (uint32_t)(FIRST + i);
		weft_net_bundle_fifo_put(&s->queue, &s->unit[i].link);
	}
	visit(s);
	free(s);
}

int main(void)
{
	seen = calloc((size_t)1 << SEEN_BITS, sizeof *seen);
	CHECK(seen);
	for (int m = 0; m < MUTANTS; m++) {
		mutant = (enum mutant)m;
		explore_all();
		printf("%-32s %8zu states: %s\n", name[m], n_seen, why ? why : "each unit once");
		CHECK((why != NULL) == (m != NONE));
	}
	free(seen);
	return 0;
}
