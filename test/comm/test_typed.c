/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_typed.c - buffers with holes on either side arrive in type-map order by every protocol:
 * eager, fetched, asked for, its rest sent while its front is fetched, to ourselves; what lies in
 * the holes and behind the end stays.
 */
#include <string.h>
#include "base/counters.h"
#include "comm/core.h"
#include "comm/fake_net.h"
#include "comm/large/large.h"
#include "comm/large/path_cost.h"
#include "data/type.h"
#include "payload.h"

#define SPAN 400000

static struct weft_req *receiving;
static struct weft_core *core[2];
static struct weft_ctx *ctx[2];
static char from[SPAN], to[SPAN], before[SPAN], sent[SPAN], got[SPAN];
static uint64_t seed;

struct shape {
	int64_t block, stride;
};

static const struct shape shapes[] = {{0, 0}, {1, 3}, {7, 24}, {64, 96}, {600, 1000}, {3000, 4096}};

/* `bytes` data bytes (rounded up to whole blocks) laid out as s. */
static struct weft_buf layout(const struct shape *s, char *base, size_t bytes,
			      const struct weft_type **type_p)
{
	*type_p = NULL;
	if (!s->block)
		return weft_data_buf_flat(base, bytes);
	int64_t n = (int64_t)((bytes + (size_t)s->block - 1) / (size_t)s->block);
	CHECK(!weft_data_type_hvector(n, s->block, s->stride, &weft_data_type_elem[WEFT_B_BYTE],
				      type_p));
	return weft_data_buf_typed(base, 1, *type_p);
}

static void wait_both(struct weft_req *a, struct weft_req *b)
{
	while (!weft_comm_req_done(a) || !weft_comm_req_done(b)) {
		(void)weft_comm_core_poll(core[0]);
		(void)weft_comm_core_poll(core[1]);
	}
}

static void transfer(const struct shape *a, const struct shape *b, size_t bytes, int receiver,
		     bool late, bool fitting)
{
	const struct weft_type *ta, *tb;
	struct weft_buf sb = layout(a, from, bytes, &ta), rb = layout(b, to, bytes, &tb);
	struct weft_req s, r;

	if (!fitting)
		rb = weft_data_buf_flat(to, bytes / 2);
	/* What the layouts can reach, and a page behind it. */
	size_t span = 4 * bytes + 3 * 4096 < SPAN ? 4 * bytes + 3 * 4096 : SPAN;
	payload_fill(from, span, weft_rand_next(&seed));
	memset(to, 0x77, span);
	memcpy(before, to, span);
	weft_comm_req_init(&s, NULL, NULL);
	weft_comm_req_init(&r, NULL, NULL);
	if (!late)
		CHECK(!weft_comm_core_irecv(&r, ctx[receiver], 0, 5, &rb));
	CHECK(!weft_comm_core_isend(&s, ctx[0], receiver, 5, &sb, WEFT_SEND_STANDARD));
	receiving = &r;
	for (int i = 0; i < 20; i++) {
		(void)weft_comm_core_poll(core[0]);
		(void)weft_comm_core_poll(core[1]);
	}
	if (late)
		CHECK(!weft_comm_core_irecv(&r, ctx[receiver], WEFT_ANY_PEER, 5, &rb));
	wait_both(&s, &r);
	size_t n = sb.bytes < rb.bytes ? sb.bytes : rb.bytes;
	CHECK_EQ(s.status.err, WEFT_OK);
	CHECK_EQ(r.status.err, n < sb.bytes ? WEFT_ERR_TRUNC : WEFT_OK);
	CHECK_EQ(r.status.bytes, n);
	weft_data_pack(&sb, 0, sent, n);
	weft_data_pack(&rb, 0, got, n);
	CHECK(!memcmp(sent, got, n));
	/* Put back what was written: all else must be as before. */
	weft_data_pack(&rb, 0, got, rb.bytes);
	memset(got, 0x77, n);
	weft_data_unpack(&rb, 0, got, rb.bytes);
	CHECK(!memcmp(to, before, span));
	if (ta)
		weft_data_type_unref(ta);
	if (tb)
		weft_data_type_unref(tb);
}

static void all_pairs(void)
{
	static const size_t sizes[] = {0, 5, 900, 1024, 4000, 90000};
	for (unsigned a = 0; a < weft_countof(shapes); a++)
		for (unsigned b = 0; b < weft_countof(shapes); b++)
			for (unsigned k = 0; k < weft_countof(sizes); k++) {
				uint64_t x = weft_rand_next(&seed);
				if (x / 128 % TEST_ALONE)
					continue;
				transfer(&shapes[a], &shapes[b], sizes[k], x % 4 != 0, x & 16,
					 x & 96);
			}
}

/* The sender looks at its network while its memory is read, often enough to find the offer. */
static bool failing;
static void sender_looks(int peer)
{
	for (int i = 0; i < 200; i++)
		(void)weft_comm_core_poll(core[peer]);
	fake.get_fails = failing;
}

/* A fetch that was left for a while begins once more: what was offered is not offered again, or the
 * sender would have two offers of one message. */
static void begins_again(int peer)
{
	weft_comm_large_choose_again(receiving);
	CHECK_EQ(__builtin_popcountll(core[1]->x_shares), 1);
	sender_looks(peer);
}

/* The front is fetched, the rest sent, into any layout; all is asked for if the fetch then fails.
 */
static void rest_is_sent(void)
{
	static const size_t sizes[] = {3000, 90000};
	uint64_t shared = weft_counter_sum(WEFT_CNT_RNDV_SHARED);
	uint64_t fetched = weft_counter_sum(WEFT_CNT_RNDV_FETCHED);

	fake.gets = NULL;
	core[1]->share_min = 1;
	transfer(&shapes[0], &shapes[3], 3000, 1, false, true); /* the first is fetched alone */
	CHECK_EQ(weft_counter_sum(WEFT_CNT_RNDV_FETCHED) - fetched, 1);
	fake.gets = sender_looks;
	for (unsigned b = 0; b < 4; b++)
		for (unsigned k = 0; k < weft_countof(sizes); k++) {
			weft_comm_path_cost_close(
				&core[1]->gate[0].x_path_cost); /* sending is tried first */
			transfer(&shapes[0], &shapes[b], sizes[k], 1, k, true);
		}
	CHECK_EQ(weft_counter_sum(WEFT_CNT_RNDV_SHARED) - shared, 8);
	CHECK_EQ(weft_counter_sum(WEFT_CNT_RNDV_FETCHED) - fetched, 1);
	/* Into small pieces every one is sent; into large ones, once fetching is tried, it is fetched
	 * alone. */
	for (int i = 0; i < 2; i++)
		transfer(&shapes[0], &shapes[3], 90000, 1, false, true);
	CHECK_EQ(weft_counter_sum(WEFT_CNT_RNDV_SHARED) - shared, 10);
	CHECK_EQ(weft_counter_sum(WEFT_CNT_RNDV_FETCHED) - fetched, 1);
	weft_comm_path_cost_close(&core[1]->gate[0].x_path_cost);
	for (int i = 0; i < 2; i++)
		transfer(&shapes[0], &shapes[5], 90000, 1, false, true);
	CHECK_EQ(weft_counter_sum(WEFT_CNT_RNDV_SHARED) - shared, 11);
	CHECK_EQ(weft_counter_sum(WEFT_CNT_RNDV_FETCHED) - fetched, 2);
	weft_comm_path_cost_close(&core[1]->gate[0].x_path_cost);
	fake.gets = begins_again;
	transfer(&shapes[0], &shapes[3], 90000, 1, false, true);
	CHECK_EQ(weft_counter_sum(WEFT_CNT_RNDV_SHARED) - shared, 12);
	fake.gets = sender_looks;
	weft_comm_path_cost_close(&core[1]->gate[0].x_path_cost);
	failing = true;
	transfer(&shapes[0], &shapes[5], 90000, 1, false, true);
	failing = fake.get_fails = false;
	/* Asked for, because the fetch fails, it is not under way as a fetch for ever. */
	weft_comm_path_cost_close(&core[1]->gate[0].x_path_cost);
	core[1]->gate[0].x_get_failed = false;
	transfer(&shapes[0], &shapes[5], 90000, 1, false, true);
	CHECK_EQ(weft_counter_sum(WEFT_CNT_RNDV_SHARED) - shared, 13);
	fake.gets = NULL;
	fake.get_fails = true;
	transfer(&shapes[0], &shapes[5], 90000, 1, false, true);
	CHECK(core[1]->gate[0].x_get_failed && !core[1]->gate[0].x_path_cost->begun);
	fake.get_fails = false;
}

static void shared_copies(void)
{
	fake_init(seed);
	fake.can_get = true;
	fake.offer = false;
	fake.chance_full = 0; /* an offer goes at once or not at all */
	fake_cores(core, 2);
	for (int r = 0; r < 2; r++)
		CHECK(!weft_comm_core_ctx_open(core[r], 1, &ctx[r]));
	rest_is_sent();
	fake_end(core, 2);
	fake.chance_full = 10;
}

int main(int argc, char **argv)
{
	seed = test_seed(argc, argv);
	shared_copies();
	for (int mode = 0; mode < 16; mode++) {
		fake_init(seed + (uint64_t)mode);
		fake.can_get = mode & 1;
		fake.offer = mode & 4;
		fake.rdma = mode & 8;
		fake.chance_place = mode & 2 ? 100 : 20;
		fake_cores(core, 2);
		for (int r = 0; r < 2; r++)
			CHECK(!weft_comm_core_ctx_open(core[r], 1, &ctx[r]));
		all_pairs();
		fake_end(core, 2);
	}
	return 0;
}
