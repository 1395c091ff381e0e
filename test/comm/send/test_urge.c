/* SPDX-License-Identifier: BSD-3-Clause */
/* A place whose sends are followed by a poll, time after time, is rung for late, and no other is. */
#include "comm/send/urge.h"
#include "check.h"

#define SHORT 1000u

static struct weft_comm_urge u;
static uint64_t now = 1;

static bool rts(int tag, uint64_t length)
{
	struct weft_wire h = {.kind = WEFT_WIRE_RTS, .context = 3, .tag = tag, .length = length};
	now += 10;
	return weft_comm_urge_late(&u, &h, now);
}

static void polls_after(uint64_t gap)
{
	now += gap;
	weft_comm_urge_back(&u, now, SHORT);
}

/* One more send than it takes to be sure. */
static void prove(int tag)
{
	for (int i = 0; i < WEFT_URGE_SURE; i++) {
		CHECK(!rts(tag, 16384));
		CHECK(weft_comm_urge_open(&u));
		polls_after(SHORT - 1);
		CHECK(!weft_comm_urge_open(&u));
	}
	CHECK(rts(tag, 16384));
	polls_after(SHORT - 1);
}

static void learns(void)
{
	prove(1);
	CHECK(rts(1, 16384));
	polls_after(SHORT); /* it computed: no more */
	prove(1);
}

static void apart(void)
{
	CHECK(!rts(2, 16384)); /* another place has not proved itself */
	polls_after(1);
	CHECK(rts(1, WEFT_URGE_MOST));
	polls_after(1);
	CHECK(!rts(1, WEFT_URGE_MOST + 1));
	CHECK(!weft_comm_urge_open(&u)); /* nor is anything learned from it */
	struct weft_wire eager = {.kind = WEFT_WIRE_EAGER, .context = 3, .tag = 1, .length = 8};
	CHECK(!weft_comm_urge_late(&u, &eager, now));
	CHECK(!weft_comm_urge_open(&u));
}

/* Several sends, then one poll: all their places learn. */
static void several(void)
{
	for (int i = 0; i < WEFT_URGE_SURE; i++) {
		CHECK(!rts(5, 16384));
		CHECK(!rts(6, 16384));
		polls_after(SHORT / 2);
		polls_after(1); /* no send came before it */
	}
	CHECK(rts(5, 16384));
	CHECK(rts(6, 16384));
	polls_after(SHORT);
	CHECK(!rts(5, 16384));
	CHECK(!rts(6, 16384));
}

int main(void)
{
	learns();
	apart();
	several();
	return 0;
}
