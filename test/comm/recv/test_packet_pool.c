/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_packet_pool.c - pools of packets: hot first, cold away in batches, refilled, robbed; what a core
 * gives back it gets again, counted; no item is ever with two owners, none is lost, and the bound
 * holds.
 */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include "base/counters.h"
#include "check.h"
#include "comm/recv/packet_pool.h"

#define BATCH 4u
#define MOST 16u

struct item {
	struct weft_comm_packet_pool_item link;
	_Atomic int x_owners;
};

static struct weft_comm_packet_pool stash;
static _Atomic unsigned x_made;

static struct item *make(void)
{
	struct item *i = calloc(1, sizeof *i);
	CHECK(i);
	atomic_fetch_add(&x_made, 1);
	return i;
}

static void drop(struct weft_comm_packet_pool_item *list)
{
	while (list) {
		struct weft_comm_packet_pool_item *next = list->next;
		free(list);
		atomic_fetch_sub(&x_made, 1);
		list = next;
	}
}

static struct item *take(void)
{
	return (struct item *)weft_comm_packet_pool_take(&stash);
}

static void give(struct item *i)
{
	drop(weft_comm_packet_pool_give(&stash, &i->link));
}

/* On one core: false where that is not allowed. */
static bool stay_on(int core)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(core, &set);
	return sched_setaffinity(0, sizeof set, &set) == 0;
}

static void ends(void)
{
	struct item *i[64];
	CHECK(!weft_comm_packet_pool_init(&stash, BATCH, MOST));
	CHECK(!take());
	for (unsigned k = 0; k < 64; k++)
		give(i[k] = make());
	/* Two batches here, four shared, the rest was freed. */
	long kept = weft_comm_packet_pool_check(&stash);
	CHECK(kept <= (long)(2 * BATCH + MOST) && kept > (long)(BATCH + MOST));
	CHECK_EQ(atomic_load(&x_made), kept);
	CHECK(take() == i[63]); /* the hottest */
	CHECK(take() == i[62]);
	uint64_t before = weft_counter_sum(WEFT_CNT_POOL_REFILLED);
	for (long k = 2; k < kept; k++) {
		struct item *t = take();
		CHECK(t);
		drop(&(t->link.next = NULL, t)->link);
	}
	CHECK(!take());
	CHECK_EQ(weft_counter_sum(WEFT_CNT_POOL_REFILLED) - before, MOST / BATCH);
	free(i[62]);
	free(i[63]);
	atomic_store(&x_made, 0);
	drop(weft_comm_packet_pool_fini(&stash));
}

/* Another core's pool is robbed from its cold end, once nothing else is left. */
static void robbed(int here, int there)
{
	struct item *i[3];
	if (!stay_on(there))
		return;
	CHECK(!weft_comm_packet_pool_init(&stash, BATCH, MOST));
	for (unsigned k = 0; k < 3; k++)
		give(i[k] = make());
	CHECK(stay_on(here));
	uint64_t before = weft_counter_sum(WEFT_CNT_POOL_STOLEN);
	CHECK(take() == i[0]);
	CHECK(take() == i[1]);
	CHECK_EQ(weft_counter_sum(WEFT_CNT_POOL_STOLEN) - before, 2);
	CHECK_EQ(weft_comm_packet_pool_check(&stash), 1);
	give(i[0]);
	give(i[1]);
	drop(weft_comm_packet_pool_fini(&stash));
	CHECK_EQ(atomic_load(&x_made), 0);
}

/* ---- a core keeps its own ----------------------------------------------------------------- */

enum { TAKES = 100000 };
static pthread_barrier_t begin;

/* Takes and gives at random on one core, at most what its pool holds: each take is what was given
 * last.  Returns how many were not. */
static void *at_home(void *core)
{
	struct item *in[2 * BATCH], *out[2 * BATCH]; /* the pool, hottest last; ours */
	unsigned here = 2 * BATCH, taken = 0;
	uint64_t seed = (uintptr_t)core + 1, others = 0;

	CHECK(stay_on((int)(uintptr_t)core));
	for (unsigned k = 0; k < here; k++)
		give(in[k] = make());
	CHECK(pthread_barrier_wait(&begin) <= 0);
	for (int n = 0; n < TAKES;) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		if (here && (!taken || seed >> 63)) {
			struct item *i = take();
			others += i != in[--here];
			out[taken++] = i;
			n++;
		} else {
			give(in[here++] = out[--taken]);
		}
	}
	while (taken)
		give(out[--taken]);
	return (void *)(uintptr_t)others;
}

static void kept(const int core[2])
{
	pthread_t t[2];
	uint64_t refilled = weft_counter_sum(WEFT_CNT_POOL_REFILLED);
	uint64_t stolen = weft_counter_sum(WEFT_CNT_POOL_STOLEN);
	CHECK(!weft_comm_packet_pool_init(&stash, BATCH, MOST));
	CHECK(!pthread_barrier_init(&begin, NULL, 2));
	for (int k = 0; k < 2; k++)
		CHECK(!pthread_create(&t[k], NULL, at_home, (void *)(uintptr_t)core[k]));
	for (int k = 0; k < 2; k++) {
		void *others;
		CHECK(!pthread_join(t[k], &others));
		printf("core %d: %d packets taken, %u of them not the last one given there\n",
		       core[k], TAKES, (unsigned)(uintptr_t)others);
		CHECK(!others);
	}
	CHECK_EQ(weft_counter_sum(WEFT_CNT_POOL_REFILLED), refilled);
	CHECK_EQ(weft_counter_sum(WEFT_CNT_POOL_STOLEN), stolen);
	drop(weft_comm_packet_pool_fini(&stash));
	CHECK_EQ(atomic_load(&x_made), 0);
}

/* ------------------------------------------------------------------------------------------- */

static void *churn(void *arg)
{
	struct item *mine[24];
	uint64_t seed = (uintptr_t)arg * 2654435761u + 1;
	unsigned n = 0;
	for (int round = 0; round < 20000; round++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		if (n < 24 && (!n || seed >> 63)) {
			struct item *i = take();
			if (!i)
				i = make();
			CHECK_EQ(atomic_fetch_add(&i->x_owners, 1), 0);
			mine[n++] = i;
		} else {
			struct item *i = mine[--n];
			CHECK_EQ(atomic_fetch_sub(&i->x_owners, 1), 1);
			give(i);
		}
	}
	while (n) {
		atomic_fetch_sub(&mine[--n]->x_owners, 1);
		give(mine[n]);
	}
	return NULL;
}

static void together(void)
{
	pthread_t t[4];
	CHECK(!weft_comm_packet_pool_init(&stash, BATCH, MOST));
	for (uintptr_t k = 0; k < 4; k++)
		CHECK_EQ(pthread_create(&t[k], NULL, churn, (void *)k), 0);
	for (int k = 0; k < 4; k++)
		CHECK_EQ(pthread_join(t[k], NULL), 0);
	CHECK_EQ(weft_comm_packet_pool_check(&stash), atomic_load(&x_made));
	drop(weft_comm_packet_pool_fini(&stash));
	CHECK_EQ(atomic_load(&x_made), 0);
}

int main(void)
{
	cpu_set_t all;
	CHECK_EQ(sched_getaffinity(0, sizeof all, &all), 0);
	int core[2], n = 0;
	for (int c = 0; c < CPU_SETSIZE && n < 2; c++)
		if (CPU_ISSET(c, &all))
			core[n++] = c;
	together();
	if (n == 2) {
		robbed(core[0], core[1]);
		kept(core);
	}
	CHECK(stay_on(core[0]));
	ends();
	return 0;
}
