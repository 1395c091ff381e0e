/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every collective gives what MPI defines, for many sizes of groups, layouts and orders of
 * delivery. All ranks live in this process (ranks.h); what a collective gives is checked in
 * cases.h.
 */
#include "base/settings.h"
#include "cases.h"

static void test_kinds(void)
{
	static const int sizes[] = {1, 2, 3, 4, 5, 7, 8, 9, 13, 16, 17};
	static const size_t counts[] = {0, 1, 3, 64, 5000};
	for (int kind = 0; kind <= WEFT_COLL_EXSCAN; kind++) {
		for (size_t s = 0; s < weft_countof(sizes); s++) {
			for (size_t i = 0; i < weft_countof(counts); i++) {
				uint64_t bits = rnd(16);
				struct weft_case k = {.kind = (enum weft_coll_kind)kind,
						      .n = sizes[s],
						      .root = (int)rnd((uint64_t)sizes[s]),
						      .count = counts[i],
						      .in_place = bits & 1,
						      .crowded = bits & 2,
						      .user = bits & 4,
						      .holes = bits & 8};
				/* Keep it short: large data in small groups only. */
				if (k.n > 8 && k.count > 64)
					k.count = 200;
				one_case(&k);
			}
		}
	}
	/* Sizes that take the algorithms for many ranks and for large data. */
	static const enum weft_coll_kind many[] = {
		WEFT_COLL_ALLTOALL,  WEFT_COLL_ALLGATHER, WEFT_COLL_ALLGATHERV, WEFT_COLL_ALLREDUCE,
		WEFT_COLL_ALLTOALLV, WEFT_COLL_GATHER,    WEFT_COLL_BARRIER,    WEFT_COLL_SCATTER};
	for (size_t i = 0; i < weft_countof(many); i++) {
		struct weft_case k = {.kind = many[i], .n = 39, .count = 5, .in_place = i % 2};
		one_case(&k);
		k.in_place = !k.in_place;
		one_case(&k);
	}
	/* Through a root, where ranks share cores: in place or not, side by side or with holes. */
	static const enum weft_coll_kind rooted[] = {WEFT_COLL_ALLTOALL, WEFT_COLL_ALLGATHER,
						     WEFT_COLL_ALLGATHERV};
	for (unsigned bits = 0; bits < 8 * weft_countof(rooted); bits++) {
		struct weft_case k = {.kind = rooted[bits / 8],
				      .n = bits & 1 ? 5 : 17,
				      .count = bits & 1 ? 40 : 3,
				      .in_place = bits & 2,
				      .holes = bits & 4,
				      .crowded = true};
		one_case(&k);
	}
	/* Too large for that: from neighbour to neighbour, if they are an even number and all have
	 * as much. */
	for (unsigned bits = 0; bits < 8 * weft_countof(rooted); bits++) {
		struct weft_case k = {.kind = rooted[bits / 8],
				      .n = 6 + (int)(bits & 1) * 2,
				      .count = 9000,
				      .in_place = bits & 2,
				      .holes = bits & 4,
				      .crowded = true,
				      .apart = true};
		one_case(&k);
		k.n += 1 + (int)rnd(6);
		one_case(&k);
	}
	for (int holes = 0; holes < 2; holes++) {
		struct weft_case k = {
			.kind = WEFT_COLL_BCAST, .n = 5, .root = 3, .count = 70000, .holes = holes};
		one_case(&k);
	}
	/* Each reduction combines in the result's place where it may: every way to lie. */
	static const enum weft_coll_kind reductions[] = {WEFT_COLL_REDUCE, WEFT_COLL_ALLREDUCE,
							 WEFT_COLL_REDUCE_SCATTER,
							 WEFT_COLL_REDUCE_SCATTER_BLOCK};
	for (unsigned bits = 0; bits < 128 * weft_countof(reductions); bits++) {
		struct weft_case k = {.kind = reductions[bits / 128],
				      .n = 2 + (int)(bits >> 4 & 3),
				      .root = bits & 8 ? 1 + (int)(bits >> 4 & 3) : 0,
				      .count = bits & 64 ? 5000 : 3,
				      .in_place = bits & 1,
				      .user = bits & 2,
				      .crowded = bits & 4,
				      .holes = rnd(2)};
		one_case(&k);
	}
	/* Work that does not fit in a handler. */
	static const enum weft_coll_kind heavy[] = {WEFT_COLL_ALLREDUCE, WEFT_COLL_REDUCE,
						    WEFT_COLL_SCAN, WEFT_COLL_REDUCE_SCATTER};
	for (size_t i = 0; i < weft_countof(heavy); i++) {
		struct weft_case k = {.kind = heavy[i], .n = 3, .count = 60000, .crowded = i % 2};
		one_case(&k);
	}
	CHECK(tasks_run > 0);
	CHECK(calls_in_advance > 0);
}

/* Algorithms for long data, from sizes on that tests can afford. */
static void test_long(void)
{
	static const int sizes[] = {2, 3, 4, 5, 6, 7, 8, 11, 16, 19};
	static const enum weft_coll_kind kinds[] = {WEFT_COLL_BCAST, WEFT_COLL_REDUCE,
						    WEFT_COLL_ALLREDUCE};
	CHECK(!weft_setting_set(WEFT_SET_COLL_SHARE, "64"));
	CHECK(!weft_setting_set(WEFT_SET_COLL_SHARE_CROWDED, "64"));
	CHECK(!weft_setting_set(WEFT_SET_COLL_SPLIT, "64"));
	for (size_t i = 0; i < weft_countof(sizes) * weft_countof(kinds) * 4; i++) {
		uint64_t bits = rnd(16);
		int n = sizes[i / 4 % weft_countof(sizes)];
		struct weft_case k = {.kind = kinds[i % weft_countof(kinds)],
				      .n = n,
				      .root = (int)rnd((uint64_t)n),
				      .count = i % 2 ? (size_t)n + rnd(4) : 100 + rnd(100),
				      .in_place = bits & 1,
				      .crowded = bits & 2,
				      .user = bits & 4,
				      .holes = bits & 8};
		one_case(&k);
	}
	/* Parts of several packets. */
	struct weft_case k = {.kind = WEFT_COLL_BCAST, .n = 4, .root = 1, .count = 120000};
	one_case(&k);
	CHECK(!weft_setting_set(WEFT_SET_COLL_SHARE, "16k"));
	CHECK(!weft_setting_set(WEFT_SET_COLL_SHARE_CROWDED, "256k"));
	CHECK(!weft_setting_set(WEFT_SET_COLL_SPLIT, "256k"));
}

/* ---- other properties --------------------------------------------------------------------- */

/* A schedule may be started again and again, as persistent collectives do. */
static void test_again(void)
{
	enum { N = 6 };
	int in[N], out[N];
	make_groups(N, false, false);
	for (int r = 0; r < N; r++) {
		struct weft_coll_args a = {.kind = WEFT_COLL_ALLREDUCE,
					   .sbuf = &in[r],
					   .rbuf = &out[r],
					   .rcount = 1,
					   .rtype = &weft_data_type_elem[WEFT_B_I32],
					   .op = {.fn = add_int, .commutative = true}};
		colls[r] = weft_coll_new();
		CHECK_EQ(weft_coll_build(colls[r], &groups[r], &a), WEFT_OK);
	}
	for (int k = 0; k < 20; k++) {
		int sum = 0;
		for (int r = 0; r < N; r++)
			sum += in[r] = (int)rnd(1000);
		run_all(N);
		for (int r = 0; r < N; r++)
			CHECK_EQ(out[r], sum);
	}
	for (int r = 0; r < N; r++)
		weft_coll_free(colls[r]);
}

/* A member that cannot send: each other one finishes, and knows if it was owed something. */
static void test_failure(void)
{
	static const enum weft_coll_kind kinds[] = {WEFT_COLL_BARRIER, WEFT_COLL_ALLREDUCE,
						    WEFT_COLL_ALLTOALL, WEFT_COLL_ALLGATHER};
	enum { N = 7 };
	static int in[N][N], out[N][N];
	for (size_t i = 0; i < weft_countof(kinds); i++) {
		make_groups(N, false, false);
		for (int r = 0; r < N; r++) {
			struct weft_coll_args a = {.kind = kinds[i],
						   .sbuf = in[r],
						   .rbuf = out[r],
						   .rcount = 1,
						   .scount = 1,
						   .stype = &weft_data_type_elem[WEFT_B_I32],
						   .rtype = &weft_data_type_elem[WEFT_B_I32],
						   .op = {.fn = add_int, .commutative = true}};
			colls[r] = weft_coll_new();
			CHECK_EQ(weft_coll_build(colls[r], &groups[r], &a), WEFT_OK);
		}
		int dead = peers[2], failed = 0;
		fail_rank = dead;
		for (int r = 0; r < N; r++)
			weft_coll_start(colls[r]);
		bool left = true;
		while (left) {
			left = deliver();
			/* What waits for the dead process fails, as comm/ does it. */
			for (struct posted **pp = &receives; *pp;) {
				struct posted *p = *pp;
				if (p->from != dead && p->to != dead) {
					pp = &p->next;
					continue;
				}
				*pp = p->next;
				complete(p->req, WEFT_ERR_PEER, 0);
				free(p);
				left = true;
				pp = &receives;
			}
			for (struct packet **kp = &packets; *kp;) {
				struct packet *k = *kp;
				if (k->to != dead) {
					kp = &k->next;
					continue;
				}
				*kp = k->next;
				if (k->req)
					complete(k->req, WEFT_ERR_PEER, 0);
				free(k);
				left = true;
				kp = &packets;
			}
		}
		for (int r = 0; r < N; r++) {
			CHECK(weft_coll_advance(colls[r]));
			failed += weft_coll_result(colls[r]) != WEFT_OK;
			weft_coll_free(colls[r]);
		}
		CHECK_EQ(failed, N);
		fail_rank = -1;
		CHECK(!packets && !receives);
	}
}

int main(int argc, char **argv)
{
	seed = test_seed(argc, argv);
	int64_t zero = 0;
	const struct weft_type *m;
	CHECK_EQ(weft_data_type_contiguous(4, &weft_data_type_elem[WEFT_B_U32], &m), WEFT_OK);
	CHECK_EQ(weft_data_type_resized(m, 0, MAT_EXTENT, &mat_type), WEFT_OK);
	weft_data_type_unref(m);
	CHECK_EQ(weft_data_type_indexed(1, NULL, 1, &zero, 1, &weft_data_type_elem[WEFT_B_I32], &m),
		 WEFT_OK);
	CHECK_EQ(weft_data_type_resized(m, 0, 12, &holey), WEFT_OK);
	weft_data_type_unref(m);
	test_kinds();
	test_long();
	test_again();
	test_failure();
	weft_data_type_unref(mat_type);
	weft_data_type_unref(holey);
	return 0;
}
