/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The route of a large message follows from the facts alone, row by row of a table; which side copies
 * first, from the load; and states and routes change only as the card of route.h says.
 */
#include "check.h"
#include "comm/large/route.h"

#include <string.h>

#define M ((uint64_t)1 << 20)

static void routes_follow_from_facts(void)
{
	static const struct {
		const char *when;
		struct weft_comm_route_facts f;
		enum weft_comm_route route;
	} table[] = {
		{"nothing is wanted",
		 {.bytes = 0, .flat = true, .readable = true, .writable = true, .opens = true},
		 WEFT_ROUTE_NONE},
		{"no memory can be reached", {.bytes = M, .flat = true}, WEFT_ROUTE_PACKETS},
		{"the network writes", {.bytes = M, .flat = true, .opens = true}, WEFT_ROUTE_RDMA},
		{"it would fit one packet",
		 {.bytes = 4096, .flat = true, .opens = true, .one_packet = 4096},
		 WEFT_ROUTE_PACKETS},
		{"a byte more does not",
		 {.bytes = 4097, .flat = true, .opens = true, .one_packet = 4096},
		 WEFT_ROUTE_RDMA},
		{"the buffer has holes", {.bytes = M, .opens = true}, WEFT_ROUTE_PACKETS},
		{"the sender computes",
		 {.bytes = M, .flat = true, .readable = true, .writable = true, .opens = true},
		 WEFT_ROUTE_FETCH},
		{"it computes, holes", {.bytes = M, .readable = true}, WEFT_ROUTE_FETCH},
		{"it computes, and may come to help",
		 {.bytes = M, .flat = true, .readable = true, .writable = true, .may_help = true},
		 WEFT_ROUTE_BOTH},
		{"it may, but its memory cannot be read",
		 {.bytes = M, .flat = true, .writable = true, .may_help = true},
		 WEFT_ROUTE_PACKETS},
		{"it waits, and is long enough",
		 {.bytes = M,
		  .flat = true,
		  .readable = true,
		  .writable = true,
		  .sender_waits = true,
		  .both_least = M},
		 WEFT_ROUTE_BOTH},
		{"it waits, and is a byte too short",
		 {.bytes = M - 1,
		  .flat = true,
		  .readable = true,
		  .writable = true,
		  .sender_waits = true,
		  .both_least = M},
		 WEFT_ROUTE_FETCH},
		{"it waits, holes: nothing to write into",
		 {.bytes = M, .readable = true, .writable = true, .sender_waits = true},
		 WEFT_ROUTE_FETCH},
		{"packets cost less",
		 {.bytes = M,
		  .flat = true,
		  .readable = true,
		  .writable = true,
		  .sender_waits = true,
		  .sent_sooner = true},
		 WEFT_ROUTE_REST},
		{"it waits, small pieces: packets, whatever they cost",
		 {.bytes = M,
		  .fine = true,
		  .readable = true,
		  .writable = true,
		  .sender_waits = true},
		 WEFT_ROUTE_REST},
		{"it computes, small pieces",
		 {.bytes = M, .fine = true, .readable = true},
		 WEFT_ROUTE_FETCH},
		{"packets cost less, holes",
		 {.bytes = M,
		  .readable = true,
		  .writable = true,
		  .sender_waits = true,
		  .sent_sooner = true},
		 WEFT_ROUTE_REST},
		{"they do, but the sender computes",
		 {.bytes = M,
		  .flat = true,
		  .readable = true,
		  .writable = true,
		  .sent_sooner = true},
		 WEFT_ROUTE_FETCH},
		{"it waits, but its memory cannot be read",
		 {.bytes = M, .flat = true, .writable = true, .sender_waits = true},
		 WEFT_ROUTE_PACKETS},
		{"offer first",
		 {.bytes = M, .flat = true, .readable = true, .writable = true, .offers = true},
		 WEFT_ROUTE_PUSH},
		{"offer first, holes",
		 {.bytes = M, .readable = true, .writable = true, .offers = true},
		 WEFT_ROUTE_FETCH},
		{"offer first, but it cannot be written",
		 {.bytes = M, .flat = true, .offers = true},
		 WEFT_ROUTE_PACKETS},
	};
	for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
		struct weft_comm_route_facts f = table[i].f;
		if (weft_comm_route_choose(&f) != table[i].route)
			fprintf(stderr, "%s:\n", table[i].when);
		CHECK_EQ(weft_comm_route_choose(&f), table[i].route);
		CHECK(memcmp(&f, &table[i].f, sizeof f) == 0);
		CHECK(weft_comm_route_may_follow(WEFT_ROUTE_NONE, table[i].route) ||
		      table[i].route == WEFT_ROUTE_NONE);
	}
}

/* All 32 loads. */
static void the_load_says_who_copies(void)
{
	for (unsigned i = 0; i < 32; i++) {
		struct weft_comm_route_load l = {.behind = i & 1,
						 .sender_computes = i & 2,
						 .no_core_spare = i & 4,
						 .may_leave = i & 8,
						 .may_offer = i & 16};
		enum weft_comm_route_turn turn = weft_comm_route_before_copy(&l);
		/* Left only if all three lack a core, offered only to a sender that waits, and
		 * neither where a thread waits here. */
		CHECK_EQ(turn == WEFT_ROUTE_LEAVE, (i & 15) == 15);
		CHECK_EQ(turn == WEFT_ROUTE_OFFER, l.behind && !l.sender_computes && l.may_offer);
	}
}

/* From each state its end can be reached, and none follows OVER. */
static void states_lead_to_the_end(void)
{
	bool reaches[WEFT_LARGE_STATES] = {[WEFT_LARGE_OVER] = true};
	for (int round = 0; round < WEFT_LARGE_STATES; round++)
		for (int from = 0; from < WEFT_LARGE_STATES; from++)
			for (int to = 0; to < WEFT_LARGE_STATES; to++)
				if (weft_comm_large_may_follow((enum weft_comm_large_state)from,
							       (enum weft_comm_large_state)to) &&
				    reaches[to])
					reaches[from] = true;
	for (int s = 0; s < WEFT_LARGE_STATES; s++) {
		enum weft_comm_large_state state = (enum weft_comm_large_state)s;
		CHECK_EQ(reaches[s], s != WEFT_LARGE_NONE);
		CHECK(!weft_comm_large_may_follow(WEFT_LARGE_OVER, state));
		CHECK(!weft_comm_large_may_follow(state, WEFT_LARGE_NONE));
	}
	CHECK(!weft_comm_large_may_follow(WEFT_LARGE_ASKED, WEFT_LARGE_COPYING));
	CHECK(!weft_comm_large_may_follow(WEFT_LARGE_POSTING, WEFT_LARGE_OVER));
}

/* What was asked of the sender is not fetched; what was shared can be fetched or asked for. */
static void routes_change_as_the_card_says(void)
{
	CHECK(weft_comm_route_may_follow(WEFT_ROUTE_FETCH, WEFT_ROUTE_BOTH));
	CHECK(weft_comm_route_may_follow(WEFT_ROUTE_FETCH, WEFT_ROUTE_PUSH));
	CHECK(weft_comm_route_may_follow(WEFT_ROUTE_BOTH, WEFT_ROUTE_FETCH));
	CHECK(weft_comm_route_may_follow(WEFT_ROUTE_REST, WEFT_ROUTE_FETCH));
	CHECK(weft_comm_route_may_follow(WEFT_ROUTE_RDMA, WEFT_ROUTE_PACKETS));
	CHECK(weft_comm_route_may_follow(WEFT_ROUTE_PUSH, WEFT_ROUTE_PACKETS));
	for (int to = 0; to < WEFT_ROUTES; to++)
		CHECK(!weft_comm_route_may_follow(WEFT_ROUTE_PACKETS, (enum weft_comm_route)to));
	CHECK(!weft_comm_route_may_follow(WEFT_ROUTE_PUSH, WEFT_ROUTE_FETCH));
	CHECK(!weft_comm_route_may_follow(WEFT_ROUTE_RDMA, WEFT_ROUTE_FETCH));
	CHECK(!weft_comm_route_may_follow(WEFT_ROUTE_BOTH, WEFT_ROUTE_REST));
}

int main(void)
{
	routes_follow_from_facts();
	the_load_says_who_copies();
	states_lead_to_the_end();
	routes_change_as_the_card_says();
	return 0;
}
