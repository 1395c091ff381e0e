/* SPDX-License-Identifier: BSD-3-Clause */
/* Packing, unpacking, listing and copying of random layouts agree with a naive walk of the type
 * map. */
#include <string.h>

#include "base/base.h"
#include "check.h"
#include "data/external.h"
#include "data/type.h"

/* The naive reference: a type map as a plain list of single basic elements. */
struct ref {
	size_t n;
	struct {
		ptrdiff_t at;
		enum weft_basic basic;
	} * e;
	ptrdiff_t lb, ub;
	bool sticky_lb, sticky_ub, any;
	unsigned align;
};

static uint64_t seed;

static int64_t rnd(int64_t lo, int64_t hi)
{
	return lo + (int64_t)(weft_rand_next(&seed) % (uint64_t)(hi - lo + 1));
}

static void ref_add(struct ref *r, const struct ref *o, ptrdiff_t disp, int64_t bl)
{
	for (int64_t k = 0; k < bl; k++) {
		ptrdiff_t d = disp + k * (o->ub - o->lb);
		r->e = realloc(r->e, (r->n + o->n + 1) * sizeof *r->e);
		for (size_t i = 0; i < o->n; i++) {
			r->e[r->n].at = d + o->e[i].at;
			r->e[r->n++].basic = o->e[i].basic;
		}
		if (!o->any)
			continue;
		if (o->sticky_lb && !r->sticky_lb) {
			r->lb = d + o->lb;
			r->sticky_lb = true;
		} else if (o->sticky_lb == r->sticky_lb) {
			if (!r->any || d + o->lb < r->lb)
				r->lb = d + o->lb;
		}
		if (o->sticky_ub && !r->sticky_ub) {
			r->ub = d + o->ub;
			r->sticky_ub = true;
		} else if (o->sticky_ub == r->sticky_ub) {
			if (!r->any || d + o->ub > r->ub)
				r->ub = d + o->ub;
		}
		if (o->align > r->align)
			r->align = o->align;
		r->any = true;
	}
}

static void ref_end(struct ref *r)
{
	while (r->any && !r->sticky_ub && r->ub > r->lb && (r->ub - r->lb) % (int)r->align)
		r->ub++;
}

struct pair {
	const struct weft_type *t;
	struct ref r;
};

static void pair_free(struct pair *p)
{
	weft_data_type_unref(p->t);
	free(p->r.e);
}

static struct pair make(int depth);

static struct pair make_basic(void)
{
	static const enum weft_basic some[] = {WEFT_B_I8,  WEFT_B_I16, WEFT_B_I32,
					       WEFT_B_F64, WEFT_B_C64, WEFT_B_BYTE};
	enum weft_basic b = some[rnd(0, weft_countof(some) - 1)];
	struct pair p = {.t = &weft_data_type_elem[b]};
	p.r.e = malloc(sizeof *p.r.e);
	p.r.e[0].at = 0;
	p.r.e[0].basic = b;
	p.r.n = 1;
	p.r.ub = weft_data_basic_info[b].size;
	p.r.align = weft_data_basic_info[b].align;
	p.r.any = true;
	return p;
}

static struct pair make_vector(int depth)
{
	struct pair o = make(depth - 1), p = {0};
	int64_t n = rnd(0, 5), bl = rnd(0, 4), stride = rnd(-3, 9) * rnd(1, 16);
	CHECK_EQ(weft_data_type_hvector(n, bl, stride, o.t, &p.t), WEFT_OK);
	for (int64_t i = 0; i < n; i++)
		ref_add(&p.r, &o.r, i * stride, bl);
	ref_end(&p.r);
	pair_free(&o);
	return p;
}

static struct pair make_indexed(int depth)
{
	struct pair o = make(depth - 1), p = {0};
	int64_t n = rnd(0, 9), bl[9], disp[9];
	bool block = rnd(0, 1);
	for (int64_t i = 0; i < n; i++) {
		bl[i] = block ? 2 : rnd(0, 3);
		disp[i] = rnd(0, 3) ? i * rnd(1, 3) : rnd(-20, 60);
	}
	CHECK_EQ(weft_data_type_indexed(n, block ? NULL : bl, 2, disp, 8, o.t, &p.t), WEFT_OK);
	for (int64_t i = 0; i < n; i++)
		ref_add(&p.r, &o.r, 8 * disp[i], bl[i]);
	ref_end(&p.r);
	pair_free(&o);
	return p;
}

static struct pair make_struct(int depth)
{
	int64_t n = rnd(0, 4), bl[4] = {0}, disp[4] = {0};
	struct pair o[4], p = {0};
	const struct weft_type *t[4] = {0};
	for (int64_t i = 0; i < n; i++) {
		o[i] = make(depth - 1);
		t[i] = o[i].t;
		bl[i] = rnd(0, 3);
		disp[i] = rnd(-50, 200);
	}
	CHECK_EQ(weft_data_type_struct(n, bl, disp, t, &p.t), WEFT_OK);
	for (int64_t i = 0; i < n; i++) {
		ref_add(&p.r, &o[i].r, disp[i], bl[i]);
		pair_free(&o[i]);
	}
	ref_end(&p.r);
	return p;
}

static struct pair make_resized(int depth)
{
	struct pair o = make(depth - 1), p = {0};
	int64_t lb = rnd(-16, 16), extent = rnd(-64, 128);
	CHECK_EQ(weft_data_type_resized(o.t, lb, extent, &p.t), WEFT_OK);
	ref_add(&p.r, &o.r, 0, 1);
	p.r.lb = lb;
	p.r.ub = lb + extent;
	p.r.sticky_lb = p.r.sticky_ub = p.r.any = true;
	if (!p.r.align)
		p.r.align = 1;
	pair_free(&o);
	return p;
}

static struct pair make_subarray(int depth)
{
	struct pair o = make(depth - 1), p = {0};
	int64_t sizes[3], sub[3], start[3];
	int nd = (int)rnd(1, 3);
	bool c = rnd(0, 1);
	int64_t total = 1;
	for (int i = 0; i < nd; i++) {
		sizes[i] = rnd(1, 4);
		sub[i] = rnd(1, sizes[i]);
		start[i] = rnd(0, sizes[i] - sub[i]);
		total *= sizes[i];
	}
	CHECK_EQ(weft_data_type_subarray(nd, sizes, sub, start, c, o.t, &p.t), WEFT_OK);
	ptrdiff_t extent = o.r.ub - o.r.lb;
	for (int64_t k = 0; k < total; k++) {
		/* Entry k of the array in memory order; is it inside? */
		int64_t rest = k;
		bool in = true;
		for (int j = 0; j < nd; j++) {
			int i = c ? nd - 1 - j : j;
			int64_t x = rest % sizes[i];
			rest /= sizes[i];
			in = in && x >= start[i] && x < start[i] + sub[i];
		}
		if (in)
			ref_add(&p.r, &o.r, k * extent, 1);
	}
	p.r.lb = 0;
	p.r.ub = total * extent;
	p.r.sticky_lb = p.r.sticky_ub = p.r.any = true;
	if (!p.r.align)
		p.r.align = 1;
	pair_free(&o);
	return p;
}

static struct pair make(int depth)
{
	if (depth <= 0)
		return make_basic();
	switch (rnd(0, 5)) {
	case 0:
		return make_indexed(depth);
	case 1:
		return make_struct(depth);
	case 2:
		return make_resized(depth);
	case 3:
		return make_subarray(depth);
	default:
		return make_vector(depth);
	}
}

static size_t ref_bytes(const struct ref *r)
{
	size_t n = 0;
	for (size_t i = 0; i < r->n; i++)
		n += weft_data_basic_info[r->e[i].basic].size;
	return n;
}

static void check_bounds(const struct pair *p)
{
	CHECK_EQ(p->t->size, ref_bytes(&p->r));
	CHECK_EQ(p->t->lb, p->r.lb);
	CHECK_EQ(p->t->ub, p->r.ub);
	CHECK_EQ(p->t->sig->elems, p->r.n);
	ptrdiff_t lo = 0, hi = 0;
	for (size_t i = 0; i < p->r.n; i++) {
		ptrdiff_t a = p->r.e[i].at, b = a + weft_data_basic_info[p->r.e[i].basic].size;
		lo = !i || a < lo ? a : lo;
		hi = !i || b > hi ? b : hi;
	}
	CHECK_EQ(p->t->true_lb, lo);
	CHECK_EQ(p->t->true_ub, hi);
	size_t bytes = 0;
	for (size_t i = 0; i < p->r.n && i < 50; i++) {
		size_t rest;
		CHECK_EQ(weft_data_sig_elements(p->t->sig, bytes, &rest), i);
		CHECK_EQ(rest, 0);
		CHECK_EQ(weft_data_sig_bytes(p->t->sig, i), bytes);
		bytes += weft_data_basic_info[p->r.e[i].basic].size;
	}
}

static void check_pack(const struct pair *p, size_t count)
{
	ptrdiff_t first;
	size_t span = weft_data_type_span(p->t, count, &first);
	char *mem = malloc(span + 1), *mem2 = malloc(span + 1);
	for (size_t i = 0; i < span; i++)
		mem[i] = (char)weft_rand_next(&seed);
	struct weft_buf buf = weft_data_buf_typed(mem - first, count, p->t);
	struct weft_buf buf2 = weft_data_buf_typed(mem2 - first, count, p->t);
	size_t len = count * p->t->size, n = 0;
	CHECK_EQ(buf.bytes, len);
	char *want = malloc(len + 1), *got = malloc(len + 1);
	for (size_t c = 0; c < count; c++)
		for (size_t i = 0; i < p->r.n; i++) {
			size_t s = weft_data_basic_info[p->r.e[i].basic].size;
			memcpy(want + n,
			       mem - first + (ptrdiff_t)c * (p->r.ub - p->r.lb) + p->r.e[i].at, s);
			n += s;
		}
	weft_data_pack(&buf, 0, got, len);
	CHECK(!memcmp(want, got, len));
	for (int k = 0; k < 6; k++) {
		size_t off = (size_t)rnd(0, (int64_t)len),
		       part = (size_t)rnd(0, (int64_t)(len - off));
		memset(got, 0, len);
		weft_data_pack(&buf, off, got, part);
		CHECK(!memcmp(want + off, got, part));
	}
	/* In pieces of random number. */
	for (size_t off = 0; off < len;) {
		struct iovec iov[7];
		unsigned m = (unsigned)rnd(1, 7);
		size_t sum = 0, did = weft_data_iov(&buf, off, iov, &m);
		CHECK(did > 0 && m >= 1);
		for (unsigned i = 0; i < m; i++) {
			CHECK(!memcmp(iov[i].iov_base, want + off + sum, iov[i].iov_len));
			sum += iov[i].iov_len;
		}
		CHECK_EQ(sum, did);
		off += did;
	}
	/* Unpack in two parts; bytes in holes must not change.  Overlapping maps are no receive
	 * types: there, only the bounds of the writes are checked (by the sanitizer). */
	memset(mem2, 0x5a, span);
	size_t cut = (size_t)rnd(0, (int64_t)len);
	weft_data_unpack(&buf2, cut, want + cut, len - cut);
	weft_data_unpack(&buf2, 0, want, cut);
	char *hit = calloc(1, span + 1);
	bool overlap = false;
	for (size_t c = 0; c < count; c++)
		for (size_t i = 0; i < p->r.n; i++)
			for (size_t k = 0; k < weft_data_basic_info[p->r.e[i].basic].size; k++) {
				ptrdiff_t at = (ptrdiff_t)c * (p->r.ub - p->r.lb) + p->r.e[i].at +
					       (ptrdiff_t)k - first;
				overlap = overlap || hit[at];
				hit[at] = 1;
			}
	for (size_t i = 0; i < span && !overlap; i++)
		CHECK_EQ(mem2[i], hit[i] ? mem[i] : 0x5a);
	if (!overlap) {
		memset(mem2, 0x5a, span);
		weft_data_copy(&buf2, &buf);
		for (size_t i = 0; i < span; i++)
			CHECK_EQ(mem2[i], hit[i] ? mem[i] : 0x5a);
	}
	free(hit);
	free(want);
	free(got);
	free(mem);
	free(mem2);
}

static void test_random(void)
{
	for (int k = 0; k < 4000; k++) {
		struct pair p = make((int)rnd(0, 3));
		if (p.r.n < 20000) {
			check_bounds(&p);
			check_pack(&p, 1);
			check_pack(&p, (size_t)rnd(0, 4));
		}
		pair_free(&p);
	}
}

static void test_forms(void)
{
	const struct weft_type *d = &weft_data_type_elem[WEFT_B_F64], *a, *b;
	/* Whatever is contiguous becomes one run. */
	CHECK_EQ(weft_data_type_hvector(10, 4, 32, d, &a), WEFT_OK);
	CHECK(a->flat && a->node.kind == WEFT_NODE_RUN && a->size == 320);
	weft_data_type_unref(a);
	int64_t disp[3] = {0, 8, 16};
	CHECK_EQ(weft_data_type_indexed(3, NULL, 1, disp, 1, d, &a), WEFT_OK);
	CHECK(a->flat && a->size == 24);
	/* Equal distances become a loop. */
	int64_t far[3] = {0, 100, 200};
	CHECK_EQ(weft_data_type_indexed(3, NULL, 2, far, 1, d, &b), WEFT_OK);
	CHECK(b->node.kind == WEFT_NODE_LOOP && b->node.n == 3 && b->node.stride == 100);
	weft_data_type_unref(a);
	weft_data_type_unref(b);
}

/* A layout of bytes that takes the signature of data which lies elsewhere. */
static void test_signed(void)
{
	const struct weft_type *bytes, *pair = &weft_data_type_elem[WEFT_B_I16_I32], *t;
	int64_t len[3] = {5, 1, 6}, disp[3] = {20, 9, 0};
	CHECK_EQ(weft_data_type_indexed(3, len, 0, disp, 1, &weft_data_type_elem[WEFT_B_BYTE],
					&bytes),
		 WEFT_OK);
	CHECK_EQ(weft_data_type_signed(bytes, 2, pair->sig, &t), WEFT_OK);
	CHECK_EQ(t->size, 12);
	CHECK_EQ(t->sig->elems, 4);
	CHECK_EQ(t->sig->external, 12);
	CHECK_EQ(t->lb, bytes->lb);
	CHECK_EQ(t->true_ub, 25);
	char mem[32], out[12];
	for (int i = 0; i < 32; i++)
		mem[i] = (char)i;
	struct weft_buf buf = weft_data_buf_typed(mem, 1, t);
	weft_data_type_unref(bytes); /* the layout has what it needs */
	weft_data_external_pack(&buf, t, 1, out);
	/* Native bytes 20 to 24, 9, 0 to 5, as numbers of 2, 4, 2 and 4 bytes. */
	static const char want[12] = {21, 20, 9, 24, 23, 22, 1, 0, 5, 4, 3, 2};
	CHECK(!memcmp(out, want, 12));
	weft_data_type_unref(t);
}

static void test_overflow(void)
{
	const struct weft_type *d = &weft_data_type_elem[WEFT_B_F64], *a;
	CHECK_EQ(weft_data_type_contiguous(INT64_MAX, d, &a), WEFT_ERR_LIMIT);
	CHECK_EQ(weft_data_type_contiguous(INT64_MAX / 4, d, &a), WEFT_ERR_LIMIT);
	CHECK_EQ(weft_data_type_hvector(2, 1, INT64_MAX, d, &a), WEFT_ERR_LIMIT);
	CHECK_EQ(weft_data_type_hvector(3, 1, INT64_MIN / 8, d, &a), WEFT_OK);
	weft_data_type_unref(a);
	CHECK_EQ(weft_data_type_hvector(-1, 1, 1, d, &a), WEFT_ERR_ARG);
	int64_t disp[2] = {INT64_MIN, INT64_MAX};
	CHECK_EQ(weft_data_type_indexed(2, NULL, 1, disp, 1, d, &a), WEFT_ERR_LIMIT);
	CHECK_EQ(weft_data_type_indexed(2, NULL, 1, disp, 16, d, &a), WEFT_ERR_LIMIT);
	CHECK_EQ(weft_data_type_resized(d, INT64_MAX, 1, &a), WEFT_ERR_LIMIT);
	CHECK_EQ(weft_data_type_contiguous(INT64_MAX / 8, d, &a), WEFT_OK);
	CHECK_EQ(a->size, INT64_MAX / 8 * 8);
	weft_data_type_unref(a);
}

/* All processes' pieces of a darray together cover the array exactly once. */
static void test_darray(void)
{
	for (int k = 0; k < 300; k++) {
		int nd = (int)rnd(1, 3), size = 1;
		int64_t g[3], ps[3], args[3], total = 1;
		enum weft_dist dist[3];
		bool c = rnd(0, 1);
		for (int i = 0; i < nd; i++) {
			g[i] = rnd(1, 9);
			dist[i] = (enum weft_dist)rnd(0, 2);
			ps[i] = dist[i] == WEFT_DIST_NONE ? 1 : rnd(1, 3);
			args[i] = dist[i] == WEFT_DIST_CYCLIC && rnd(0, 1) ? rnd(1, 3) : -1;
			size *= (int)ps[i];
			total *= g[i];
		}
		int32_t array[729] = {0}, one[729];
		for (int i = 0; i < 729; i++)
			one[i] = 1 + i;
		size_t sum = 0;
		for (int r = 0; r < size; r++) {
			const struct weft_type *t;
			CHECK_EQ(weft_data_type_darray(size, r, nd, g, dist, args, ps, c,
						       &weft_data_type_elem[WEFT_B_I32], &t),
				 WEFT_OK);
			CHECK_EQ(weft_data_type_extent(t), 4 * total);
			struct weft_buf buf = weft_data_buf_typed(array, 1, t);
			int32_t was[729];
			weft_data_pack(&buf, 0, was, t->size);
			for (size_t i = 0; i < t->size / 4; i++)
				CHECK_EQ(was[i], 0);
			weft_data_unpack(&buf, 0, one, t->size);
			sum += t->size / 4;
			weft_data_type_unref(t);
		}
		CHECK_EQ(sum, total);
		for (int i = 0; i < total; i++)
			CHECK(array[i] != 0);
	}
}

int main(int argc, char **argv)
{
	seed = test_seed(argc, argv);
	test_forms();
	test_signed();
	test_overflow();
	test_darray();
	test_random();
	return 0;
}
