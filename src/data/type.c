/* SPDX-License-Identifier: BSD-3-Clause */
/* type.c - makes layouts: bounds, signature and packing form of each constructor. */
#include "data/type.h"

#include <stdlib.h>

#include "base/assert.h"

/* ---- predefined ones ---------------------------------------------------------------------- */

#define PAIR_SIG(name, v, i)                                                                       \
	static const struct weft_sig *const pair_children_##name[2] = {                            \
		&weft_data_sig_basic[WEFT_B_##v], &weft_data_sig_basic[WEFT_B_##i]};               \
	static const struct weft_sig pair_sig_##name = {                                           \
		.kind = WEFT_SIG_LIST,                                                             \
		.is_static = 1,                                                                    \
		.n = 2,                                                                            \
		.bytes = sizeof(((struct weft_pair_##name *)0)->value) +                           \
			 sizeof(((struct weft_pair_##name *)0)->index),                            \
		.elems = 2,                                                                        \
		.external = EXT_##v + EXT_##i,                                                     \
		.child = pair_children_##name};

enum {
#define WEFT_BASIC(id, ctype, cls, ext) EXT_##id = ext,
#include "data/basic_table.h"
#undef WEFT_BASIC
};

#define WEFT_PAIR(id, v, vt, i, it) PAIR_SIG(id, v, i)
#include "data/pair_table.h"
#undef WEFT_PAIR

/* Where value and index lie, for pairs with a hole between them. */
#define WEFT_PAIR(id, v, vt, i, it)                                                                \
	static const struct weft_block pair_blocks_##id[3] = {                                     \
		{.at = 0, .off = 0},                                                               \
		{.at = offsetof(struct weft_pair_##id, index), .off = sizeof(vt)},                 \
		{.at = 0, .off = sizeof(vt) + sizeof(it)},                                         \
	};
#include "data/pair_table.h"
#undef WEFT_PAIR

#define PAIR_HOLE(name, vt) (offsetof(struct weft_pair_##name, index) > sizeof(vt))
#define PAIR_TYPE(name, vt, it)                                                                    \
	[WEFT_B_##                                                                                 \
		name] = {.is_static = true,                                                        \
			 .elem = WEFT_B_##name,                                                    \
			 .align = alignof(struct weft_pair_##name),                                \
			 .size = sizeof(vt) + sizeof(it),                                          \
			 .ub = sizeof(struct weft_pair_##name),                                    \
			 .true_ub = offsetof(struct weft_pair_##name, index) + sizeof(it),         \
			 .sig = &pair_sig_##name,                                                  \
			 .flat = sizeof(struct weft_pair_##name) == sizeof(vt) + sizeof(it),       \
			 .node = {.kind = PAIR_HOLE(name, vt) ? WEFT_NODE_BLOCKS : WEFT_NODE_RUN,  \
				  .size = sizeof(vt) + sizeof(it),                                 \
				  .n = PAIR_HOLE(name, vt) ? 2 : 0,                                \
				  .blocks = PAIR_HOLE(name, vt) ? pair_blocks_##name : NULL}},

const struct weft_type weft_data_type_elem[WEFT_ELEM_COUNT] = {
#define WEFT_BASIC(id, ctype, cls, ext)                                                            \
	[WEFT_B_##id] = {.is_static = true,                                                        \
			 .flat = true,                                                             \
			 .elem = WEFT_B_##id,                                                      \
			 .align = alignof(ctype),                                                  \
			 .size = sizeof(ctype),                                                    \
			 .ub = sizeof(ctype),                                                      \
			 .true_ub = sizeof(ctype),                                                 \
			 .sig = &weft_data_sig_basic[WEFT_B_##id],                                 \
			 .node = {.kind = WEFT_NODE_RUN, .size = sizeof(ctype)}},
#include "data/basic_table.h"
#undef WEFT_BASIC
#define WEFT_PAIR(id, v, vt, i, it) PAIR_TYPE(id, vt, it)
#include "data/pair_table.h"
#undef WEFT_PAIR
};

/* ---- references --------------------------------------------------------------------------- */

const struct weft_type *weft_data_type_ref(const struct weft_type *t)
{
	/* Relaxed: the caller holds a reference.  The cast adds to a count, nothing else. */
	if (!t->is_static)
		atomic_fetch_add_explicit(&((struct weft_type *)(uintptr_t)t)->x_refs, 1,
					  memory_order_relaxed);
	return t;
}

void weft_data_type_unref(const struct weft_type *ct)
{
	struct weft_type *t = (struct weft_type *)(uintptr_t)ct;
	if (!t || t->is_static)
		return;
	/* LAST -> itself.  Carries: every owner's reads; without it we could free under them. */
	if (atomic_fetch_sub_explicit(&t->x_refs, 1, memory_order_acq_rel) != 1)
		return;
	weft_data_node_unref(&t->node);
	weft_data_sig_unref(t->sig);
	free(t);
}

static struct weft_type *type_alloc(void)
{
	struct weft_type *t = calloc(1, sizeof *t);
	if (!t)
		return NULL;
	atomic_init(&t->x_refs, 1);
	t->align = 1;
	t->empty = true;
	t->elem = WEFT_B_NONE;
	t->sig = &weft_data_sig_empty;
	return t;
}

/* ---- bounds ------------------------------------------------------------------------------- */

struct bounds {
	bool any, lb_set, ub_set, any_data;
	unsigned align;
	ptrdiff_t lb, ub, true_lb, true_ub;
};

static void take_low(ptrdiff_t v, bool first, ptrdiff_t *low)
{
	if (first || v < *low)
		*low = v;
}

static void take_high(ptrdiff_t v, bool first, ptrdiff_t *high)
{
	if (first || v > *high)
		*high = v;
}

/* Adds n copies of old, the first at disp, the others one extent further each. */
static weft_err bounds_add(struct bounds *b, ptrdiff_t disp, int64_t n, ptrdiff_t step,
			   const struct weft_type *old)
{
	ptrdiff_t last, lo, hi, v[4];
	if (!n || old->empty)
		return WEFT_OK;
	if (__builtin_mul_overflow((ptrdiff_t)(n - 1), step, &last) ||
	    __builtin_add_overflow(disp, last, &last))
		return WEFT_ERR_LIMIT;
	lo = last < disp ? last : disp;
	hi = last < disp ? disp : last;
	if (__builtin_add_overflow(lo, old->lb, &v[0]) ||
	    __builtin_add_overflow(hi, old->ub, &v[1]) ||
	    __builtin_add_overflow(lo, old->true_lb, &v[2]) ||
	    __builtin_add_overflow(hi, old->true_ub, &v[3]))
		return WEFT_ERR_LIMIT;
	/* An explicit bound drops all implicit ones, whichever came first. */
	if (old->lb_set && !b->lb_set) {
		b->lb = v[0];
		b->lb_set = true;
	} else if (old->lb_set || !b->lb_set) {
		take_low(v[0], !b->any, &b->lb);
	}
	if (old->ub_set && !b->ub_set) {
		b->ub = v[1];
		b->ub_set = true;
	} else if (old->ub_set || !b->ub_set) {
		take_high(v[1], !b->any, &b->ub);
	}
	if (old->size) {
		take_low(v[2], !b->any_data, &b->true_lb);
		take_high(v[3], !b->any_data, &b->true_ub);
		b->any_data = true;
	}
	if (old->align > b->align)
		b->align = old->align;
	b->any = true;
	return WEFT_OK;
}

/* Moves the bounds into t, rounding an implicit upper bound up. */
static weft_err bounds_end(const struct bounds *b, struct weft_type *t)
{
	if (!b->any)
		return WEFT_OK;
	t->empty = false;
	t->lb_set = b->lb_set;
	t->ub_set = b->ub_set;
	t->align = b->align ? b->align : 1;
	t->lb = b->lb;
	t->ub = b->ub;
	t->true_lb = b->true_lb;
	t->true_ub = b->true_ub;
	ptrdiff_t extent;
	if (__builtin_sub_overflow(t->ub, t->lb, &extent))
		return WEFT_ERR_LIMIT;
	if (!t->ub_set && extent > 0) {
		ptrdiff_t pad = (ptrdiff_t)t->align - 1;
		pad -= (extent + pad) % (ptrdiff_t)t->align;
		if (pad < 0)
			pad = 0;
		if (__builtin_add_overflow(t->ub, pad, &t->ub))
			return WEFT_ERR_LIMIT;
	}
	return WEFT_OK;
}

/* ---- makers ------------------------------------------------------------------------------- */

/* Common end: t has sig, node and bounds. */
static weft_err type_finish(struct weft_type *t, const struct bounds *b,
			    const struct weft_type **new_p)
{
	weft_err err = bounds_end(b, t);
	if (err) {
		weft_data_type_unref(t);
		return err;
	}
	t->size = t->sig->bytes;
	t->flat = t->node.kind == WEFT_NODE_RUN && (!t->size || (size_t)(t->ub - t->lb) == t->size);
	if (!t->size)
		t->node = weft_data_node_run(0, 0);
	*new_p = t;
	return WEFT_OK;
}

weft_err weft_data_type_hvector(int64_t count, int64_t blocklength, int64_t stride,
				const struct weft_type *old, const struct weft_type **new_p)
{
	if (count < 0 || blocklength < 0)
		return WEFT_ERR_ARG;
	struct weft_type *t = type_alloc();
	if (!t)
		return WEFT_ERR_NOMEM;
	int64_t total;
	ptrdiff_t last, extent = weft_data_type_extent(old);
	struct bounds b = {0};
	struct weft_node block;
	weft_err err = WEFT_ERR_LIMIT;
	if (__builtin_mul_overflow(count, blocklength, &total))
		goto undo;
	if (total) {
		if (__builtin_mul_overflow((ptrdiff_t)(count - 1), (ptrdiff_t)stride, &last))
			goto undo;
		/* The extreme copies are in the first and the last block. */
		err = bounds_add(&b, 0, blocklength, extent, old);
		if (!err)
			err = bounds_add(&b, last, blocklength, extent, old);
		if (err)
			goto undo;
	}
	const struct weft_sig *sig;
	err = weft_data_sig_rep((size_t)total, old->sig, &sig);
	if (err)
		goto undo;
	t->sig = sig;
	if (sig->bytes) {
		err = weft_data_node_loop((size_t)blocklength, extent, &old->node, &block);
		if (err)
			goto undo;
		err = weft_data_node_loop((size_t)count, stride, &block, &t->node);
		weft_data_node_unref(&block);
		if (err)
			goto undo;
	}
	return type_finish(t, &b, new_p);
undo:
	weft_data_type_unref(t);
	return err;
}

weft_err weft_data_type_contiguous(int64_t count, const struct weft_type *old,
				   const struct weft_type **new_p)
{
	return weft_data_type_hvector(1, count, 0, old, new_p);
}

/* Adds one block of bl copies of old at disp to bounds and node. */
static weft_err add_block(struct bounds *b, struct weft_node_builder *nb, ptrdiff_t disp,
			  int64_t bl, const struct weft_type *old)
{
	ptrdiff_t extent = weft_data_type_extent(old);
	weft_err err = bounds_add(b, disp, bl, extent, old);
	if (err)
		return err;
	struct weft_node block;
	err = weft_data_node_loop((size_t)bl, extent, &old->node, &block);
	if (err)
		return err;
	err = weft_data_node_builder_add(nb, disp, &block);
	weft_data_node_unref(&block);
	return err;
}

weft_err weft_data_type_indexed(int64_t count, const int64_t *blocklengths, int64_t blocklength,
				const int64_t *disps, ptrdiff_t unit, const struct weft_type *old,
				const struct weft_type **new_p)
{
	if (count < 0 || (!blocklengths && blocklength < 0))
		return WEFT_ERR_ARG;
	struct weft_type *t = type_alloc();
	if (!t)
		return WEFT_ERR_NOMEM;
	struct bounds b = {0};
	struct weft_node_builder nb;
	int64_t total = 0;
	weft_err err = weft_data_node_builder_init(&nb, (size_t)count);
	if (err)
		goto undo;
	for (int64_t i = 0; i < count; i++) {
		int64_t bl = blocklengths ? blocklengths[i] : blocklength;
		ptrdiff_t disp;
		err = WEFT_ERR_ARG;
		if (bl < 0)
			goto drop;
		if (!bl)
			continue;
		err = WEFT_ERR_LIMIT;
		if (__builtin_mul_overflow((ptrdiff_t)disps[i], unit, &disp) ||
		    __builtin_add_overflow(total, bl, &total))
			goto drop;
		err = add_block(&b, &nb, disp, bl, old);
		if (err)
			goto drop;
	}
	const struct weft_sig *sig;
	err = weft_data_sig_rep((size_t)total, old->sig, &sig);
	if (err)
		goto drop;
	t->sig = sig;
	err = weft_data_node_builder_end(&nb, &t->node);
	if (err)
		goto undo;
	return type_finish(t, &b, new_p);
drop:
	weft_data_node_builder_drop(&nb);
undo:
	weft_data_type_unref(t);
	return err;
}

/* The signature of a struct: its parts' signatures in order. */
static weft_err struct_sig(size_t count, const int64_t *bl, const struct weft_type *const *types,
			   const struct weft_sig **sig_p)
{
	size_t n = count ? count : 1;
	if (n > PTRDIFF_MAX / 2 / sizeof(size_t))
		return WEFT_ERR_LIMIT;
	size_t *times = malloc(n * sizeof *times);
	const struct weft_sig **parts = malloc(n * sizeof *parts);
	weft_err err = WEFT_ERR_NOMEM;
	if (times && parts) {
		for (size_t i = 0; i < count; i++) {
			times[i] = (size_t)bl[i];
			parts[i] = types[i]->sig;
		}
		err = weft_data_sig_list(count, times, parts, sig_p);
	}
	free(times);
	free(parts);
	return err;
}

weft_err weft_data_type_struct(int64_t count, const int64_t *blocklengths, const int64_t *disps,
			       const struct weft_type *const *types, const struct weft_type **new_p)
{
	if (count < 0)
		return WEFT_ERR_ARG;
	struct weft_type *t = type_alloc();
	if (!t)
		return WEFT_ERR_NOMEM;
	struct bounds b = {0};
	struct weft_node_builder nb;
	weft_err err = weft_data_node_builder_init(&nb, (size_t)count);
	if (err)
		goto undo;
	for (int64_t i = 0; i < count; i++) {
		err = WEFT_ERR_ARG;
		if (blocklengths[i] < 0)
			goto drop;
		if (!blocklengths[i])
			continue;
		err = add_block(&b, &nb, disps[i], blocklengths[i], types[i]);
		if (err)
			goto drop;
	}
	const struct weft_sig *sig;
	err = struct_sig((size_t)count, blocklengths, types, &sig);
	if (err)
		goto drop;
	t->sig = sig;
	err = weft_data_node_builder_end(&nb, &t->node);
	if (err)
		goto undo;
	return type_finish(t, &b, new_p);
drop:
	weft_data_node_builder_drop(&nb);
undo:
	weft_data_type_unref(t);
	return err;
}

/* A new layout with the places and bounds of old; the caller sets its signature. */
static struct weft_type *same_places(const struct weft_type *old)
{
	struct weft_type *t = type_alloc();
	if (!t)
		return NULL;
	t->node = old->node;
	weft_data_node_ref(&t->node);
	t->size = old->size;
	t->lb = old->lb;
	t->ub = old->ub;
	t->lb_set = old->lb_set;
	t->ub_set = old->ub_set;
	t->true_lb = old->true_lb;
	t->true_ub = old->true_ub;
	t->align = old->align;
	t->empty = old->empty;
	t->flat = old->flat;
	return t;
}

weft_err weft_data_type_signed(const struct weft_type *old, size_t count,
			       const struct weft_sig *sig, const struct weft_type **new_p)
{
	struct weft_type *t = same_places(old);
	if (!t)
		return WEFT_ERR_NOMEM;
	const struct weft_sig *whole;
	weft_err err = weft_data_sig_rep(count, sig, &whole);
	if (err) {
		weft_data_type_unref(t);
		return err;
	}
	t->sig = whole;
	weft_assert(t->sig->bytes == t->size);
	*new_p = t;
	return WEFT_OK;
}

weft_err weft_data_type_resized(const struct weft_type *old, int64_t lb, int64_t extent,
				const struct weft_type **new_p)
{
	ptrdiff_t ub;
	if (__builtin_add_overflow((ptrdiff_t)lb, (ptrdiff_t)extent, &ub))
		return WEFT_ERR_LIMIT;
	struct weft_type *t = same_places(old);
	if (!t)
		return WEFT_ERR_NOMEM;
	t->sig = weft_data_sig_ref(old->sig);
	t->lb = lb;
	t->ub = ub;
	t->lb_set = t->ub_set = true;
	t->empty = false;
	t->flat = t->node.kind == WEFT_NODE_RUN && (!t->size || extent == (int64_t)t->size);
	*new_p = t;
	return WEFT_OK;
}
