/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * type.h - layouts: what MPI calls a datatype, without its name and handle.
 *
 * A layout is made from others, is immutable from then on and counted by references.  Its packing
 * form is normalised when it is made.  Bounds follow MPI: lb and ub set by resized are sticky;
 * without them the extent is rounded up to the largest alignment.
 *
 * Callers   any thread.
 * Errors    WEFT_ERR_LIMIT: a size or displacement does not fit in 63 bits.  WEFT_ERR_ARG: a
 *           negative count or block length, or an array outside its bounds.
 * Owner     makers give one reference to the caller and take their own of what they are made from.
 */
#ifndef WEFT_DATA_TYPE_H
#define WEFT_DATA_TYPE_H

#include "data/basic.h"
#include "data/data.h"
#include "data/node.h"
#include "data/sig.h"

struct weft_type {
	_Atomic unsigned x_refs;
	bool is_static;
	bool flat;   /* any count of it is one run of bytes, starting at true_lb */
	bool lb_set; /* by resized, here or in a part */
	bool ub_set;
	bool empty;   /* no data and no bounds: contributes nothing */
	uint8_t elem; /* enum weft_basic: the element if this is a predefined one, else NONE */
	unsigned align;
	size_t size; /* data bytes */
	ptrdiff_t lb, ub, true_lb, true_ub;
	const struct weft_sig *sig;
	struct weft_node node;
};

/* Predefined ones: basic elements and pairs; static, need no reference. */
extern const struct weft_type weft_data_type_elem[WEFT_ELEM_COUNT];

const struct weft_type *weft_data_type_ref(const struct weft_type *t);
void weft_data_type_unref(const struct weft_type *t);

static inline ptrdiff_t weft_data_type_extent(const struct weft_type *t)
{
	return t->ub - t->lb;
}

weft_err weft_data_type_contiguous(int64_t count, const struct weft_type *old,
				   const struct weft_type **new_p) weft_must_use;
/* stride in bytes */
weft_err weft_data_type_hvector(int64_t count, int64_t blocklength, int64_t stride,
				const struct weft_type *old,
				const struct weft_type **new_p) weft_must_use;
/* Displacements in units of `unit` bytes.  blocklengths NULL: all are `blocklength`. */
weft_err weft_data_type_indexed(int64_t count, const int64_t *blocklengths, int64_t blocklength,
				const int64_t *disps, ptrdiff_t unit, const struct weft_type *old,
				const struct weft_type **new_p) weft_must_use;
weft_err weft_data_type_struct(int64_t count, const int64_t *blocklengths, const int64_t *disps,
			       const struct weft_type *const *types,
			       const struct weft_type **new_p) weft_must_use;
weft_err weft_data_type_resized(const struct weft_type *old, int64_t lb, int64_t extent,
				const struct weft_type **new_p) weft_must_use;

/* The places of old, but with `count` times the signature sig, which is as many bytes: the same data as that, spread otherwise.
 * A basic element may lie in several pieces. */
weft_err weft_data_type_signed(const struct weft_type *old, size_t count,
			       const struct weft_sig *sig,
			       const struct weft_type **new_p) weft_must_use;

/* order_c: the last dimension runs fastest. */
weft_err weft_data_type_subarray(int ndims, const int64_t *sizes, const int64_t *subsizes,
				 const int64_t *starts, bool order_c, const struct weft_type *old,
				 const struct weft_type **new_p) weft_must_use;

enum weft_dist { WEFT_DIST_NONE, WEFT_DIST_BLOCK, WEFT_DIST_CYCLIC };
/* args[i] < 0: the default. */
weft_err weft_data_type_darray(int size, int rank, int ndims, const int64_t *gsizes,
			       const enum weft_dist *dists, const int64_t *args,
			       const int64_t *psizes, bool order_c, const struct weft_type *old,
			       const struct weft_type **new_p) weft_must_use;

/* count elements of t at base as a buffer; no overflow check: the caller has checked. */
static inline struct weft_buf weft_data_buf_typed(const void *base, size_t count,
						  const struct weft_type *t)
{
	if (weft_likely(t->flat))
		return weft_data_buf_flat((const char *)base + t->true_lb, count * t->size);
	return (struct weft_buf){.base = (void *)(uintptr_t)base,
				 .bytes = count * t->size,
				 .type = t,
				 .count = count};
}

/* The bytes from the first to the last that count elements touch: *first_p from base, and length.
 */
static inline size_t weft_data_type_span(const struct weft_type *t, size_t count,
					 ptrdiff_t *first_p)
{
	if (!count || !t->size) {
		*first_p = 0;
		return 0;
	}
	ptrdiff_t step = weft_data_type_extent(t) * (ptrdiff_t)(count - 1);
	*first_p = t->true_lb + (step < 0 ? step : 0);
	return (size_t)(t->true_ub - t->true_lb) + (size_t)(step < 0 ? -step : step);
}

/* Copies len = min(both sizes) data bytes; the buffers do not overlap. */
void weft_data_copy(const struct weft_buf *to, const struct weft_buf *from);

#endif
