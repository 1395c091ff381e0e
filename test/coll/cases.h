/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cases.h - for test_schedule.c: one collective over ranks.h, and the check that each rank got what
 * MPI defines.
 */
#ifndef WEFT_TEST_COLL_CASES_H
#define WEFT_TEST_COLL_CASES_H

#include "ranks.h"

/* ---- operations --------------------------------------------------------------------------- */

static void add_int(const void *in, void *inout, size_t n)
{
	const int *a = in;
	int *b = inout;
	for (size_t i = 0; i < n; i++)
		b[i] += a[i];
}

/* 2x2 matrices modulo a prime: associative, not commutative. */
struct mat {
	uint32_t m[4];
};

static struct mat mul(struct mat a, struct mat b)
{
	struct mat r;
	for (int i = 0; i < 2; i++)
		for (int j = 0; j < 2; j++)
			r.m[2 * i + j] = (uint32_t)(((uint64_t)a.m[2 * i] * b.m[j] +
						     (uint64_t)a.m[2 * i + 1] * b.m[2 + j]) %
						    1000003);
	return r;
}

/* The user's datatype: a matrix with a hole behind it. */
#define MAT_EXTENT 20
static const struct weft_type *mat_type;

static void mul_mats(const struct weft_coll_op *op, const void *in, void *inout, size_t n)
{
	CHECK(may_call_user);
	calls_in_advance++;
	for (size_t i = 0; i < n; i++) {
		struct mat a, b;
		memcpy(&a, (const char *)in + i * MAT_EXTENT, sizeof a);
		memcpy(&b, (char *)inout + i * MAT_EXTENT, sizeof b);
		b = mul(a, b);
		memcpy((char *)inout + i * MAT_EXTENT, &b, sizeof b);
	}
}

/* ---- a case ------------------------------------------------------------------------------- */

struct weft_case {
	enum weft_coll_kind kind;
	int n, root;
	size_t count;
	bool in_place, crowded, user, holes, apart;
};

static struct weft_coll_group groups[MAX_RANKS];
static int peers[MAX_RANKS];
static int tag;

static void make_groups(int n, bool crowded, bool apart)
{
	/* Ranks are not processes: a permutation. */
	for (int i = 0; i < n; i++)
		peers[i] = i;
	for (int i = n - 1; i > 0; i--) {
		int j = (int)rnd((uint64_t)i + 1), t = peers[i];
		peers[i] = peers[j];
		peers[j] = t;
	}
	tag += WEFT_COLL_TAGS;
	for (int r = 0; r < n; r++) {
		ctxs[peers[r]].rank = peers[r];
		groups[r] = (struct weft_coll_group){.rank = r,
						     .size = n,
						     .peer = peers,
						     .ctx = &ctxs[peers[r]],
						     .tag = tag,
						     .crowded = crowded,
						     .apart = apart || n % 2};
	}
}

/* Data: element i of what rank r has for rank to. */
static int value(int r, int to, size_t i)
{
	return (int)((uint32_t)r * 1000003u + (uint32_t)to * 10007u + (uint32_t)i * 31u + 7u);
}

static const struct weft_type *holey; /* one int every 12 bytes */

static size_t step_of(const struct weft_case *k)
{
	return k->holes ? 12 : 4;
}

static void put(const struct weft_case *k, char *base, size_t i, int v)
{
	memcpy(base + i * step_of(k), &v, 4);
}

static int get(const struct weft_case *k, const char *base, size_t i)
{
	int v;
	memcpy(&v, base + i * step_of(k), 4);
	return v;
}

static bool rooted(enum weft_coll_kind kind)
{
	return kind == WEFT_COLL_BCAST || kind == WEFT_COLL_REDUCE ||
	       (kind >= WEFT_COLL_GATHER && kind <= WEFT_COLL_SCATTERV);
}

/* v forms: rank r's block (for `to`) has so many elements. */
static int64_t vcount(const struct weft_case *k, int r, int to)
{
	return (int64_t)((k->count * (size_t)(r + 2 * to)) % 7 + (size_t)(r % 2) * k->count);
}

static void start_case(const struct weft_case *k, struct weft_coll_args *args)
{
	for (int r = 0; r < k->n; r++) {
		colls[r] = weft_coll_new();
		args[r].kind = k->kind;
		args[r].root = k->root;
		CHECK_EQ(weft_coll_build(colls[r], &groups[r], &args[r]), WEFT_OK);
	}
	/* Twice, as persistent ones do; the arguments' data is made for it to give the same. */
	run_all(k->n);
	for (int r = 0; r < k->n; r++)
		CHECK_EQ(weft_coll_result(colls[r]), WEFT_OK);
}

static void end_case(const struct weft_case *k)
{
	for (int r = 0; r < k->n; r++)
		weft_coll_free(colls[r]);
}

#define EACH(r) for (int r = 0; r < k->n; r++)

/* Barrier: no rank leaves before all have come. */
static void case_barrier(const struct weft_case *k)
{
	make_groups(k->n, k->crowded, k->apart);
	struct weft_coll_args a = {.kind = WEFT_COLL_BARRIER};
	EACH(r)
	{
		colls[r] = weft_coll_new();
		CHECK_EQ(weft_coll_build(colls[r], &groups[r], &a), WEFT_OK);
	}
	int late = (int)rnd((uint64_t)k->n);
	EACH(r)
	if (r != late)
		weft_coll_start(colls[r]);
	while (deliver())
		;
	EACH(r)
	CHECK(r == late || !weft_coll_advance(colls[r]));
	weft_coll_start(colls[late]);
	while (deliver())
		;
	EACH(r)
	CHECK(weft_coll_advance(colls[r]));
	CHECK(!packets && !receives);
	end_case(k);
}

static void *room(const struct weft_case *k, size_t n)
{
	return calloc(n + 1, step_of(k));
}

/* All kinds that only move data: fills what is sent, runs, checks what came. */
static void case_move(const struct weft_case *k)
{
	const struct weft_type *t = k->holes ? holey : &weft_data_type_elem[WEFT_B_I32];
	const struct weft_type *st = t;
	struct weft_coll_args args[MAX_RANKS] = {0};
	bool v = k->kind == WEFT_COLL_GATHERV || k->kind == WEFT_COLL_SCATTERV ||
		 k->kind == WEFT_COLL_ALLGATHERV || k->kind == WEFT_COLL_ALLTOALLV ||
		 k->kind == WEFT_COLL_ALLTOALLW;
	bool w = k->kind == WEFT_COLL_ALLTOALLW;
	make_groups(k->n, k->crowded, k->apart);
	size_t n = (size_t)k->n, most = k->count + 8;
	char *sbuf[MAX_RANKS], *rbuf[MAX_RANKS];
	int64_t scounts[MAX_RANKS][MAX_RANKS], rcounts[MAX_RANKS][MAX_RANKS];
	intptr_t sdispls[MAX_RANKS][MAX_RANKS], rdispls[MAX_RANKS][MAX_RANKS];
	const struct weft_type *types[MAX_RANKS];
	bool sends_all = k->kind == WEFT_COLL_SCATTER || k->kind == WEFT_COLL_SCATTERV ||
			 k->kind >= WEFT_COLL_ALLTOALL;
	bool bcast = k->kind == WEFT_COLL_BCAST;
	/* In-place alltoallv needs equal counts in both directions. */
#define VCOUNT(r, to)                                                                              \
	(k->kind == WEFT_COLL_ALLTOALLV || k->kind == WEFT_COLL_ALLTOALLW                          \
		 ? vcount(k, (r) + (to), (r) * (to))                                               \
	 : sends_all ? vcount(k, to, 0)                                                            \
		     : vcount(k, r, 0))
	EACH(r)
	{
		sbuf[r] = room(k, n * 2 * most);
		rbuf[r] = room(k, n * 2 * most);
		types[r] = t;
	}
	EACH(r)
	{
		struct weft_coll_args *a = &args[r];
		a->stype = st;
		a->rtype = t;
		a->scount = a->rcount = k->count;
		bool here = !rooted(k->kind) || r == k->root;
		a->in_place = k->in_place && here && !bcast;
		a->sbuf = sbuf[r];
		a->rbuf = rbuf[r];
		if (v) {
			EACH(o)
			{
				scounts[r][o] = VCOUNT(r, o);
				rcounts[r][o] = VCOUNT(o, r);
				sdispls[r][o] = rdispls[r][o] = (intptr_t)((size_t)o * 2 * most);
				if (w)
					sdispls[r][o] = rdispls[r][o] *= (intptr_t)step_of(k);
			}
			if (sends_all)
				a->scounts = scounts[r], a->sdispls = sdispls[r];
			else
				a->scount = (size_t)VCOUNT(r, 0);
			if (k->kind != WEFT_COLL_SCATTERV)
				a->rcounts = rcounts[r], a->rdispls = rdispls[r];
			else
				a->rcount = (size_t)VCOUNT(0, r);
			if (w)
				a->stypes = a->rtypes = types;
		}
		/* What is sent. */
		EACH(o)
		{
			size_t len = v ? (size_t)VCOUNT(r, o) : k->count;
			size_t at = (size_t)o * (v ? 2 * most : k->count);
			if (bcast) {
				for (size_t i = 0; i < len && r == k->root; i++)
					put(k, rbuf[r], i, value(r, 0, i));
				continue;
			}
			if (!sends_all) {
				/* One block: in place it lies at our place of the result. */
				char *b = a->in_place ? rbuf[r] : sbuf[r];
				size_t off =
					a->in_place ? (size_t)r * (v ? 2 * most : k->count) : 0;
				for (size_t i = 0; i < len; i++)
					put(k, b, off + i, value(r, 0, i));
				continue;
			}
			char *b = a->in_place && k->kind >= WEFT_COLL_ALLTOALL ? rbuf[r] : sbuf[r];
			for (size_t i = 0; i < len; i++)
				put(k, b, at + i, value(r, o, i));
		}
	}
	start_case(k, args);
	EACH(r)
	{
		if (bcast) {
			for (size_t i = 0; i < k->count; i++)
				CHECK_EQ(get(k, rbuf[r], i), value(k->root, 0, i));
			continue;
		}
		if (k->kind == WEFT_COLL_SCATTER || k->kind == WEFT_COLL_SCATTERV) {
			size_t len = v ? (size_t)VCOUNT(0, r) : k->count;
			for (size_t i = 0; i < len && !args[r].in_place; i++)
				CHECK_EQ(get(k, rbuf[r], i), value(k->root, r, i));
			continue;
		}
		if (rooted(k->kind) && r != k->root)
			continue;
		EACH(o)
		{
			size_t len = v ? (size_t)VCOUNT(o, r) : k->count;
			size_t at = (size_t)o * (v ? 2 * most : k->count);
			for (size_t i = 0; i < len; i++)
				CHECK_EQ(get(k, rbuf[r], at + i), value(o, sends_all ? r : 0, i));
		}
	}
	end_case(k);
	EACH(r)
	{
		free(sbuf[r]);
		free(rbuf[r]);
	}
}

/* ---- reductions --------------------------------------------------------------------------- */

static struct mat mat_value(int r, size_t i)
{
	struct mat m;
	for (int j = 0; j < 4; j++)
		m.m[j] = (uint32_t)value(r, j, i) % 1000003;
	return m;
}

/* Element i of the combination of ranks lo..hi. */
static struct mat mat_want(int lo, int hi, size_t i)
{
	struct mat m = mat_value(lo, i);
	for (int r = lo + 1; r <= hi; r++)
		m = mul(m, mat_value(r, i));
	return m;
}

static int int_want(int lo, int hi, size_t i)
{
	uint32_t s = 0;
	for (int r = lo; r <= hi; r++)
		s += (uint32_t)(value(r, 0, i) & 0xfffff);
	return (int)s;
}

static void check_reduced(const struct weft_case *k, const char *buf, size_t first, size_t n,
			  int lo, int hi)
{
	for (size_t i = 0; i < n; i++) {
		if (k->user) {
			struct mat want = mat_want(lo, hi, first + i);
			CHECK(!memcmp(buf + i * MAT_EXTENT, &want, sizeof want));
		} else {
			int v;
			memcpy(&v, buf + 4 * i, 4);
			CHECK_EQ(v, int_want(lo, hi, first + i));
		}
	}
}

static void case_reduce(const struct weft_case *k)
{
	struct weft_coll_args args[MAX_RANKS] = {0};
	size_t extent = k->user ? MAT_EXTENT : 4;
	int64_t counts[MAX_RANKS];
	size_t total = k->count;
	make_groups(k->n, k->crowded, k->apart);
	if (k->kind == WEFT_COLL_REDUCE_SCATTER_BLOCK)
		total *= (size_t)k->n;
	if (k->kind == WEFT_COLL_REDUCE_SCATTER) {
		total = 0;
		EACH(r)
		{
			counts[r] = (int64_t)(k->count * (size_t)(r % 3));
			total += (size_t)counts[r];
		}
	}
	char *sbuf[MAX_RANKS], *rbuf[MAX_RANKS], *keep[MAX_RANKS];
	EACH(r)
	{
		struct weft_coll_args *a = &args[r];
		sbuf[r] = calloc(total + 1, extent);
		rbuf[r] = calloc(total + 1, extent);
		keep[r] = calloc(total + 1, extent);
		bool here = k->kind != WEFT_COLL_REDUCE || r == k->root;
		a->in_place = k->in_place && here;
		char *b = a->in_place ? rbuf[r] : sbuf[r];
		for (size_t i = 0; i < total; i++) {
			if (k->user) {
				struct mat m = mat_value(r, i);
				memcpy(b + i * extent, &m, sizeof m);
			} else {
				int v = value(r, 0, i) & 0xfffff;
				memcpy(b + i * extent, &v, 4);
			}
		}
		memcpy(keep[r], sbuf[r], total * extent);
		a->sbuf = sbuf[r];
		a->rbuf = rbuf[r];
		a->rcount = k->count;
		a->rcounts = k->kind == WEFT_COLL_REDUCE_SCATTER ? counts : NULL;
		a->rtype = k->user ? mat_type : &weft_data_type_elem[WEFT_B_I32];
		a->op = k->user ? (struct weft_coll_op){.user = mul_mats}
				: (struct weft_coll_op){.fn = add_int, .commutative = true};
	}
	start_case(k, args);
	size_t at = 0;
	EACH(r)
	{
		/* Sources stay as they were. */
		CHECK(!memcmp(keep[r], sbuf[r], total * extent));
		switch (k->kind) {
		case WEFT_COLL_REDUCE:
			if (r == k->root)
				check_reduced(k, rbuf[r], 0, total, 0, k->n - 1);
			break;
		case WEFT_COLL_ALLREDUCE:
			check_reduced(k, rbuf[r], 0, total, 0, k->n - 1);
			break;
		case WEFT_COLL_SCAN:
			check_reduced(k, rbuf[r], 0, total, 0, r);
			break;
		case WEFT_COLL_EXSCAN:
			if (r)
				check_reduced(k, rbuf[r], 0, total, 0, r - 1);
			break;
		default: {
			size_t n =
				k->kind == WEFT_COLL_REDUCE_SCATTER ? (size_t)counts[r] : k->count;
			check_reduced(k, rbuf[r], at, n, 0, k->n - 1);
			at += n;
		}
		}
	}
	end_case(k);
	EACH(r)
	{
		free(sbuf[r]);
		free(rbuf[r]);
		free(keep[r]);
	}
}

static void one_case(const struct weft_case *k)
{
	if (TEST_ALONE > 1 && (size_t)k->n * k->count < 100000 && rnd(TEST_ALONE))
		return;
	if (k->kind == WEFT_COLL_BARRIER)
		case_barrier(k);
	else if (k->kind < WEFT_COLL_REDUCE)
		case_move(k);
	else
		case_reduce(k);
}

#endif
