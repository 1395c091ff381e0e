/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads as members of a ring, many laps: random phases down, up and meetings with roots that
 * change, meetings by signs between them, each with the data of its phase and of no other; the ring's invariants before each phase;
 * and a mismatch that ends the ring for all while they wait.  Seed as argument.
 */
#ifndef WEFT_CHECKED
#define WEFT_CHECKED /* the ring is all in its header */
#endif

#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "check.h"
#include "coll/shm/ring.h"

#define PHASES 8000u
#define MEMBERS_MOST 4

static struct weft_coll_ring ring;
static unsigned n;
static uint64_t seed;

struct member {
	unsigned me;
	uint32_t phase, heads, meets, signs;
	uint64_t rnd;   /* the same on all members: what comes next */
	uint64_t mine;  /* and its own: whether it is late */
	weft_err ended; /* why its last wait ended */
};

static bool wait_for(struct member *m, _Atomic uint64_t *x_ec, uint32_t number)
{
	while (!weft_coll_ec_reached(x_ec, number)) /* ends: another member posts it or aborts */
		sched_yield();
	m->ended = weft_coll_ec_failed(x_ec);
	return !m->ended;
}

static void post(_Atomic uint64_t *x_ec, uint32_t number)
{
	uint32_t sleepers = 0;
	CHECK(weft_coll_ec_post(x_ec, number, &sleepers) || weft_coll_ec_failed(x_ec));
	CHECK(weft_coll_ec_failed(x_ec) || !sleepers);
}

static uint64_t value(uint32_t phase, unsigned r)
{
	return phase * 1000003ull + r;
}

static struct weft_coll_ring_place *begin(struct member *m)
{
	if (!wait_for(m, &ring.x_floor, weft_coll_ring_floor(m->phase)))
		return NULL;
	return weft_coll_ring_at(&ring, m->phase);
}

static bool down(struct member *m, unsigned root)
{
	struct weft_coll_ring_place *p = weft_coll_ring_at(&ring, m->phase);
	uint32_t head = weft_coll_ec_next(m->heads);
	uint64_t got;
	if (m->me == root) {
		if (!begin(m))
			return false;
		got = value(m->phase, root);
		memcpy(p->data, &got, sizeof got);
		p->number = m->phase;
		post(&ring.x_head, head);
	} else {
		if (!wait_for(m, &ring.x_head, head))
			return false;
		memcpy(&got, p->data, sizeof got);
		CHECK_EQ(got, value(m->phase, root));
		CHECK_EQ(p->number, m->phase);
	}
	m->heads = head;
	return true;
}

static char *share_of(struct weft_coll_ring_place *p, unsigned r)
{
	return p->data + r * weft_coll_ring_share(n);
}

static bool up(struct member *m, unsigned root)
{
	struct weft_coll_ring_place *p = begin(m);
	uint64_t v = value(m->phase, m->me);
	if (!p)
		return false;
	if (m->me != root) {
		memcpy(share_of(p, m->me), &v, sizeof v);
		p->gave[m->me] = m->phase;
		CHECK_EQ(weft_coll_ring_come(p, n - 1), 0);
		return true;
	}
	if (!wait_for(m, &p->x_came, n - 1))
		return false;
	for (unsigned r = 0; r < n; r++) {
		memcpy(&v, share_of(p, r), sizeof v);
		CHECK(r == root || (v == value(m->phase, r) && p->gave[r] == m->phase));
	}
	weft_coll_ring_clear(p);
	return true;
}

/* Sums the shares, which lie in the place or in one of the areas. */
static bool meet(struct member *m, bool in_area)
{
	struct weft_coll_ring_place *p = begin(m);
	uint32_t head = weft_coll_ec_next(m->heads);
	uint64_t v = value(m->phase, m->me), sum = 0;
	if (!p)
		return false;
	char *base = in_area ? ring.area[m->meets & 1] : p->data;
	size_t apart = in_area ? weft_coll_ring_area_share(n) : weft_coll_ring_share(n);
	memcpy(base + m->me * apart, &v, sizeof v);
	if (weft_coll_ring_arrive(p, n)) {
		weft_coll_ring_clear(p);
		p->number = m->phase;
		post(&ring.x_head, head);
	} else if (!wait_for(m, &ring.x_head, head)) {
		return false;
	}
	for (unsigned r = 0; r < n; r++) {
		memcpy(&v, base + r * apart, sizeof v);
		sum += v;
	}
	CHECK_EQ(sum, n * value(m->phase, 0) + n * (n - 1) / 2);
	CHECK_EQ(p->number, m->phase);
	m->heads = head;
	m->meets++;
	return true;
}

/* A meeting by signs takes no phase.  Each sees the sum of all in an area. */
static bool by_signs(struct member *m)
{
	uint32_t number = weft_coll_ec_next(m->signs), sleepers;
	char *base = ring.area[m->meets & 1];
	uint64_t v = value(number, m->me);
	memcpy(base + m->me * weft_coll_ring_area_share(n), &v, sizeof v);
	for (unsigned step = 1, k = 0; step < n; step *= 2, k++) {
		struct weft_coll_ring_sign *out =
			weft_coll_ring_sign_at(&ring, (m->me + step) % n, k, number);
		struct weft_coll_ring_sign *in = weft_coll_ring_sign_at(&ring, m->me, k, number);
		out->number = m->phase;
		CHECK(weft_coll_ec_post_once(&out->x_sign, number, &sleepers) ||
		      weft_coll_ec_failed(&out->x_sign));
		if (!wait_for(m, &in->x_sign, number))
			return false;
		CHECK_EQ(in->number, m->phase);
	}
	for (unsigned r = 0; r < n; r++) {
		memcpy(&v, base + r * weft_coll_ring_area_share(n), sizeof v);
		CHECK_EQ(v, value(number, r));
	}
	m->signs = number;
	m->meets++;
	return true;
}

static bool next_phase(struct member *m)
{
	uint64_t what = weft_rand_next(&m->rnd), mine = weft_rand_next(&m->mine);
	unsigned root = (unsigned)(what >> 8) % n;
	weft_coll_ring_check(&ring, m->phase, m->heads, n);
	for (unsigned i = 0; mine % 64 == 0 && i < (mine >> 8) % 50; i++)
		sched_yield();
	for (unsigned i = 0; i < (what >> 16) % 4; i++)
		if (!by_signs(m))
			return false;
	/* Runs of a kind, so that roots get ahead, and all of them between. */
	unsigned kind = (unsigned)(m->phase / 50 % 4 == 3 ? what % 3 : m->phase / 50 % 4);
	bool well = kind == 0 ? down(m, root) : kind == 1 ? up(m, root) : meet(m, what & 16);
	if (!well)
		return false;
	if (weft_coll_ring_pass(&ring, m->phase, n))
		post(&ring.x_floor, weft_coll_ec_next(m->phase));
	m->phase = weft_coll_ec_next(m->phase);
	return true;
}

static void *all_phases(void *arg)
{
	struct member *m = arg;
	while (m->phase < PHASES)
		CHECK(next_phase(m));
	return NULL;
}

/* The last member aborts in its midst, and each other one ends for that reason. */
static void *until_aborted(void *arg)
{
	struct member *m = arg;
	while (next_phase(m)) {
		if (m->me != n - 1 || m->phase < 500)
			continue;
		(void)weft_coll_ec_abort(&ring.x_head, WEFT_COLL_EC_MISMATCH);
		(void)weft_coll_ec_abort(&ring.x_floor, WEFT_COLL_EC_MISMATCH);
		for (unsigned i = 0; i < WEFT_COLL_RING_PLACES; i++)
			(void)weft_coll_ec_abort(&ring.place[i].x_came, WEFT_COLL_EC_MISMATCH);
		(void)weft_coll_ring_abort_signs(&ring, n, WEFT_COLL_EC_MISMATCH);
		m->ended = WEFT_ERR_TRUNC;
		return NULL;
	}
	return NULL;
}

static void run(unsigned members, void *(*body)(void *), struct member *m)
{
	pthread_t t[MEMBERS_MOST];
	n = members;
	weft_coll_ring_reset(&ring);
	for (unsigned r = 0; r < n; r++) {
		m[r] = (struct member){.me = r, .rnd = seed, .mine = seed + r + 1};
		CHECK(!pthread_create(&t[r], NULL, body, &m[r]));
	}
	for (unsigned r = 0; r < n; r++)
		CHECK(!pthread_join(t[r], NULL));
}

int main(int argc, char **argv)
{
	struct member m[MEMBERS_MOST];
	seed = test_seed(argc, argv);
	for (unsigned members = 2; members <= MEMBERS_MOST; members++) {
		run(members, all_phases, m);
		for (unsigned r = 0; r < members; r++)
			CHECK(m[r].phase == PHASES && m[r].heads == m[0].heads);
		weft_coll_ring_check(&ring, PHASES, m[0].heads, members);
		run(members, until_aborted, m);
		for (unsigned r = 0; r < members; r++)
			CHECK_EQ(m[r].ended, WEFT_ERR_TRUNC);
	}
	return 0;
}
