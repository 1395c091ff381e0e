/* SPDX-License-Identifier: BSD-3-Clause */
/* type_array.c - subarray and darray: pieces of arrays, as loops over loops. */
#include "data/type.h"

/* Replaces *t, which we own, by what `make` gave; on an error *t is gone. */
static weft_err replace_type(const struct weft_type **t, weft_err err,
			     const struct weft_type *const *made)
{
	weft_data_type_unref(*t);
	*t = err ? NULL : *made;
	return err;
}

/* Puts the piece t at byte `offset` of an array of `bytes` bytes. */
static weft_err place_block(const struct weft_type **t, int64_t offset, int64_t bytes)
{
	const struct weft_type *moved, *sized;
	weft_err err =
		replace_type(t, weft_data_type_indexed(1, NULL, 1, &offset, 1, *t, &moved), &moved);
	if (err)
		return err;
	return replace_type(t, weft_data_type_resized(*t, 0, bytes, &sized), &sized);
}

weft_err weft_data_type_subarray(int ndims, const int64_t *sizes, const int64_t *subsizes,
				 const int64_t *starts, bool order_c, const struct weft_type *old,
				 const struct weft_type **new_p)
{
	if (ndims < 1)
		return WEFT_ERR_ARG;
	for (int i = 0; i < ndims; i++)
		if (sizes[i] < 1 || subsizes[i] < 1 || subsizes[i] > sizes[i] || starts[i] < 0 ||
		    starts[i] > sizes[i] - subsizes[i])
			return WEFT_ERR_ARG;
	const struct weft_type *t = weft_data_type_ref(old), *made = NULL;
	int64_t step = weft_data_type_extent(old), offset = 0;
	for (int k = 0; k < ndims; k++) {
		int i = order_c ? ndims - 1 - k : k;
		int64_t skip;
		weft_err err = replace_type(
			&t, weft_data_type_hvector(subsizes[i], 1, step, t, &made), &made);
		if (err)
			return err;
		if (__builtin_mul_overflow(starts[i], step, &skip) ||
		    __builtin_add_overflow(offset, skip, &offset) ||
		    __builtin_mul_overflow(step, sizes[i], &step)) {
			weft_data_type_unref(t);
			return WEFT_ERR_LIMIT;
		}
	}
	weft_err err = place_block(&t, offset, step);
	if (!err)
		*new_p = t;
	return err;
}

/* One dimension of a darray: what process `p` of `np` owns of `gsize` entries that are `step`
 * apart.
 */
static weft_err distribute_dim(const struct weft_type **t, enum weft_dist dist, int64_t arg,
			       int64_t gsize, int64_t np, int64_t p, int64_t step,
			       int64_t *offset_p)
{
	const struct weft_type *made = NULL;
	int64_t block = arg, mine, disp[2], bl[2];
	switch (dist) {
	case WEFT_DIST_NONE:
		*offset_p = 0;
		return replace_type(t, weft_data_type_hvector(gsize, 1, step, *t, &made), &made);
	case WEFT_DIST_BLOCK:
		if (block < 0)
			block = (gsize + np - 1) / np;
		if (block < 1 || block < (gsize + np - 1) / np) {
			weft_data_type_unref(*t);
			return WEFT_ERR_ARG;
		}
		mine = gsize - p * block;
		mine = mine < 0 ? 0 : mine > block ? block : mine;
		*offset_p = mine ? p * block * step : 0;
		return replace_type(t, weft_data_type_hvector(mine, 1, step, *t, &made), &made);
	default:
		break;
	}
	if (block < 0)
		block = 1;
	if (block < 1) {
		weft_data_type_unref(*t);
		return WEFT_ERR_ARG;
	}
	/* Whole blocks first, then perhaps a short one. */
	int64_t rest = gsize - p * block;
	int64_t cycle = np * block;
	int64_t whole = rest > 0 ? rest / cycle : 0;
	int64_t tail = rest > 0 ? rest % cycle : 0;
	if (tail >= block) {
		whole++;
		tail = 0;
	}
	*offset_p = p * block * step;
	if (rest <= 0)
		*offset_p = 0;
	const struct weft_type *row;
	weft_err err = weft_data_type_hvector(block, 1, step, *t, &row);
	if (err)
		return replace_type(t, err, NULL);
	const struct weft_type *parts[2] = {NULL, NULL};
	err = weft_data_type_hvector(whole, 1, cycle * step, row, &parts[0]);
	weft_data_type_unref(row);
	if (!err)
		err = weft_data_type_hvector(tail, 1, step, *t, &parts[1]);
	if (!err) {
		bl[0] = bl[1] = 1;
		disp[0] = 0;
		disp[1] = whole * cycle * step;
		err = weft_data_type_struct(2, bl, disp, parts, &made);
	}
	weft_data_type_unref(parts[0]);
	weft_data_type_unref(parts[1]);
	return replace_type(t, err, &made);
}

weft_err weft_data_type_darray(int size, int rank, int ndims, const int64_t *gsizes,
			       const enum weft_dist *dists, const int64_t *args,
			       const int64_t *psizes, bool order_c, const struct weft_type *old,
			       const struct weft_type **new_p)
{
	if (ndims < 1 || size < 1 || rank < 0 || rank >= size)
		return WEFT_ERR_ARG;
	int64_t procs = 1, whole = weft_data_type_extent(old), offset = 0;
	for (int i = 0; i < ndims; i++) {
		if (gsizes[i] < 1 || psizes[i] < 1 || args[i] == 0 ||
		    (dists[i] == WEFT_DIST_NONE && psizes[i] != 1))
			return WEFT_ERR_ARG;
		if (__builtin_mul_overflow(procs, psizes[i], &procs) ||
		    __builtin_mul_overflow(whole, gsizes[i], &whole))
			return WEFT_ERR_LIMIT;
	}
	if (procs != size)
		return WEFT_ERR_ARG;
	const struct weft_type *t = weft_data_type_ref(old);
	int64_t step = weft_data_type_extent(old);
	for (int k = 0; k < ndims; k++) {
		int i = order_c ? ndims - 1 - k : k;
		/* The process grid is in C order whatever the array's order is. */
		int64_t below = 1, off;
		for (int j = i + 1; j < ndims; j++)
			below *= psizes[j];
		weft_err err = distribute_dim(&t, dists[i], args[i], gsizes[i], psizes[i],
					      rank / below % psizes[i], step, &off);
		if (err)
			return err;
		offset += off;
		step *= gsizes[i];
	}
	weft_err err = place_block(&t, offset, whole);
	if (!err)
		*new_p = t;
	return err;
}
