/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of request ids in every order: of two takers of an id one gets the request, and sees
 * what its giver wrote; an id whose slot was given again finds nothing.
 */
#include "model/explore.h"
/* The production sources, compiled against the explorer's atomics. */
#include "comm/lock.c"
#include "comm/match/ids.c"

#define PEER 3

static struct weft_ids ids;
static int request[2]; /* plain: the giver's until it has an id, then the taker's */
static int wins[2];
static _Atomic uint32_t x_wire; /* the id on its way; it orders nothing */
static uint32_t first;

static void setup(void)
{
	weft_comm_ids_fini(&ids);
	memset((void *)&ids, 0, sizeof ids);
	memset(request, 0, sizeof request);
	memset(wins, 0, sizeof wins);
	memset((void *)&x_wire, 0, sizeof x_wire);
	/* A chunk of slots, and a slot that has been in use. */
	uint32_t id = weft_comm_ids_give(&ids, &request[0], PEER);
	MODEL_CHECK(weft_comm_ids_take(&ids, id, PEER) == &request[0]);
}

static void setup_given(void)
{
	setup();
	request[0] = 1;
	first = weft_comm_ids_give(&ids, &request[0], PEER);
}

static void won(const void *owner)
{
	int i = owner == &request[1];
	MODEL_CHECK(owner == &request[i]);
	MODEL_CHECK(model_read(&request[i]) == 1);
	model_write(&request[i], 2); /* its memory may be used for anything now */
	wins[i]++;
}

static void gives(void)
{
	model_write(&request[0], 1);
	atomic_store_explicit(&x_wire, weft_comm_ids_give(&ids, &request[0], PEER),
			      memory_order_relaxed);
}

/* The handler of the answer: looks at the request, then ends its id. */
static void answers(void)
{
	uint32_t id = atomic_load_explicit(&x_wire, memory_order_relaxed);
	void *owner = id ? weft_comm_ids_peek(&ids, id, PEER) : NULL;
	if (!owner)
		return;
	MODEL_CHECK(model_read(&request[0]) == 1);
	MODEL_CHECK(weft_comm_ids_take(&ids, id, PEER) == owner);
	won(owner);
}

static void takes_first(void)
{
	void *owner = weft_comm_ids_take(&ids, first, PEER);
	if (owner)
		won(owner);
}

/* Ends the first and gives its slot again, to another request. */
static void takes_and_gives(void)
{
	takes_first();
	model_write(&request[1], 1);
	MODEL_CHECK(weft_comm_ids_give(&ids, &request[1], PEER) != first);
}

/* Trusts the slot alone. */
static void takes_by_slot(void)
{
	struct weft_ids_slot *s = slot_find(&ids, first & SLOT_MASK);
	uint64_t owner = atomic_exchange_explicit(&s->x_owner, 0, memory_order_acq_rel);
	if (owner)
		won((void *)(uintptr_t)owner);
}

static void at_most_once(void)
{
	MODEL_CHECK(wins[0] <= 1 && wins[1] == 0);
	weft_comm_ids_check(&ids);
}

static void once(void)
{
	MODEL_CHECK(wins[0] == 1 && wins[1] == 0);
	weft_comm_ids_check(&ids);
}

int main(void)
{
	static const struct model models[] = {
		{"ids, given and answered",
		 setup,
		 {gives, answers},
		 at_most_once,
		 5,
		 .must = {"weft_comm_ids_give s", "weft_comm_ids_peek l"}},
		{"ids, two takers", setup_given, {takes_first, takes_first}, once, 4},
		{"ids, a stale id", setup_given, {takes_and_gives, takes_first}, once, 3},
		{"ids, a stale id by its slot",
		 setup_given,
		 {takes_and_gives, takes_by_slot},
		 once,
		 5,
		 .broken = true},
	};
	return explore_all(models, weft_countof(models));
}
