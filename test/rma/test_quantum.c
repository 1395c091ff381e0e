/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Quanta of a lock (src/rma/quantum.h), members at random: those that wait have had the same number of quanta but for one, whichever
 * come and go; a member that is alone is never held up; a waiter that does not move is passed over.
 */
#include <string.h>
#include "check.h"
#include "rma/quantum.h"

#define MEMBERS 7

static struct weft_rma_quanta quanta[MEMBERS];
static _Atomic uint32_t x_marked;
static struct weft_rma_queue q[MEMBERS];
static unsigned long locks[MEMBERS];
static bool waits[MEMBERS];

static void setup(void)
{
	memset(quanta, 0, sizeof quanta);
	memset(locks, 0, sizeof locks);
	memset(waits, 0, sizeof waits);
	atomic_store_explicit(&x_marked, 0, memory_order_relaxed);
	for (int i = 0; i < MEMBERS; i++)
		q[i] = (struct weft_rma_queue){&x_marked, quanta, i, MEMBERS, 0};
}

/* A lock that is free whenever it is looked at. */
static bool look(int i)
{
	if (waits[i])
		weft_rma_quantum_want(&q[i]);
	bool mine = weft_rma_quantum_mine(&q[i]);
	if (mine) {
		weft_rma_quantum_used(&q[i]);
		weft_rma_quantum_unwant(&q[i]);
		locks[i]++;
	} else if (!waits[i]) {
		weft_rma_quantum_join(&q[i]);
		weft_rma_quantum_want(&q[i]);
	}
	waits[i] = !mine;
	return mine;
}

/* It found the lock taken, and waits. */
static void wait_for(int i)
{
	if (!waits[i])
		weft_rma_quantum_join(&q[i]);
	weft_rma_quantum_want(&q[i]);
	waits[i] = true;
}

/* All want it all the time; the order in which they look is random, and one looks ten times as often. */
static void test_shares(void)
{
	setup();
	for (int i = 0; i < MEMBERS; i++)
		wait_for(i);
	for (int n = 0; n < 200000; n++) {
		int i = rand() % (MEMBERS + 10);
		i = i < MEMBERS ? i : 0;
		if (look(i))
			wait_for(i);
		for (int k = 0; k < MEMBERS; k++) {
			int32_t ahead = (int32_t)(weft_rma_quantum_count(&q[i], i) -
						  weft_rma_quantum_count(&q[i], k));
			CHECK(ahead >= -1 && ahead <= 1);
		}
	}
	for (int i = 1; i < MEMBERS; i++)
		CHECK(locks[i] + 2 * WEFT_RMA_QUANTUM > locks[0] &&
		      locks[0] + 2 * WEFT_RMA_QUANTUM > locks[i]);
}

/* The others come now and then: what they missed is no claim, and the first one never waits for long. */
static void test_newcomers(void)
{
	setup();
	for (int n = 0; n < 100000; n++) {
		unsigned vain = 0;
		while (!look(0)) {
			for (int k = 1; k < MEMBERS; k++)
				if (waits[k])
					(void)look(k);
			CHECK(++vain <= 2 * WEFT_RMA_QUANTUM);
		}
		if (rand() % 500 == 0)
			wait_for(1 + rand() % (MEMBERS - 1));
	}
	CHECK(locks[0] == 100000);
}

static void test_alone(void)
{
	setup();
	wait_for(1);
	CHECK(atomic_load_explicit(&x_marked, memory_order_relaxed) == 1);
	CHECK(look(1)); /* no other waits: the mark goes */
	for (int n = 0; n < 2 * WEFT_RMA_QUANTUM; n++)
		CHECK(look(2));
	CHECK(atomic_load_explicit(&x_marked, memory_order_relaxed) == 0);
	CHECK(weft_rma_quantum_count(&q[2], 2) == 0);
}

/* Member 3 is stopped while it waits. */
static void test_skip(void)
{
	setup();
	wait_for(3);
	for (int n = 0; n < WEFT_RMA_QUANTUM; n++)
		CHECK(look(4));
	CHECK(!look(4) && !look(4));
	weft_rma_quantum_skip(&q[4]);
	for (int n = 0; n < 3 * WEFT_RMA_QUANTUM; n++)
		CHECK(look(4));
	/* It goes on: it comes first. */
	weft_rma_quantum_want(&q[3]);
	q[4].left = 0;
	CHECK(!look(4) && look(3));
}

int main(int argc, char **argv)
{
	srand(argc > 1 ? (unsigned)atoi(argv[1]) : 22);
	test_shares();
	test_newcomers();
	test_alone();
	test_skip();
	return 0;
}
