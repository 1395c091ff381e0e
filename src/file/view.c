/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * view.c - positions of a view: the walk over a layout in memory (data/), with the file for memory.
 */
#include "file/view.h"

#include "base/assert.h"

/* The layout is laid at an address that is not null, so that arithmetic on it is defined. */
#define ORIGIN ((uintptr_t)1 << 20)
#define LIST 16

static inline uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Ranges in bytes of the layout, from disp 0 on; as weft_data_iov. */
static uint64_t layout_ranges(const struct weft_type *t, uint64_t pos, uint64_t want,
			      struct iovec *iov, unsigned *n_p)
{
	struct weft_buf all = {.base = (void *)ORIGIN,
			       .type = t,
			       .count = PTRDIFF_MAX / t->size,
			       .bytes = pos + want};
	return weft_data_iov(&all, pos, iov, n_p);
}

static uint64_t scaled_bytes(const struct weft_file_view *v, uint64_t bytes)
{
	return v->num ? (uint64_t)((unsigned __int128)bytes * v->num / v->den) : bytes;
}

static uint64_t unscaled_bytes(const struct weft_file_view *v, uint64_t bytes)
{
	return v->num ? (uint64_t)((unsigned __int128)bytes * v->den / v->num) : bytes;
}

uint64_t weft_file_view_ranges(const struct weft_file_view *v, uint64_t pos, uint64_t want,
			       struct weft_file_range *r, unsigned *n_p)
{
	unsigned room = *n_p;
	uint64_t held = 0;
	*n_p = 0;
	if (!want || !room)
		return 0;
	if (!v->type) {
		r[0] = (struct weft_file_range){.at = v->disp + pos, .len = want};
		*n_p = 1;
		return want;
	}
	weft_assert(v->type->size);
	/* Numbers are not cut where they change their size: a position within one counts from its beginning. */
	uint64_t from = unscaled_bytes(v, pos), skip = pos - scaled_bytes(v, from);
	uint64_t left = unscaled_bytes(v, want + skip) + (v->num ? v->den : 0);
	while (*n_p < room && held < want) { /* ends: no room, or all is listed */
		struct iovec iov[LIST];
		unsigned n = room - *n_p < LIST ? room - *n_p : LIST;
		uint64_t some = layout_ranges(v->type, from, left, iov, &n);
		for (unsigned i = 0; i < n && held < want; i++) {
			uint64_t at = scaled_bytes(v, (uintptr_t)iov[i].iov_base - ORIGIN) + skip;
			uint64_t len = min_u64(scaled_bytes(v, iov[i].iov_len) - skip, want - held);
			skip = 0;
			held += len;
			r[(*n_p)++] = (struct weft_file_range){.at = v->disp + at, .len = len};
		}
		from += some;
		left -= some;
		if (!some)
			break;
	}
	return held;
}

uint64_t weft_file_view_offset(const struct weft_file_view *v, uint64_t pos)
{
	struct weft_file_range r = {.at = v->disp};
	unsigned n = 1;
	(void)weft_file_view_ranges(v, pos, 1, &r, &n);
	return r.at;
}

uint64_t weft_file_view_position(const struct weft_file_view *v, uint64_t at)
{
	if (at <= v->disp)
		return 0;
	at -= v->disp;
	if (!v->type)
		return at;
	uint64_t extent = scaled_bytes(v, (uint64_t)weft_data_type_extent(v->type));
	uint64_t size = scaled_bytes(v, v->type->size);
	uint64_t first = scaled_bytes(v, (uint64_t)v->type->true_lb);
	uint64_t end = scaled_bytes(v, (uint64_t)v->type->true_ub);
	if (at <= first)
		return 0;
	/* Tile i lies in [i * extent + first, i * extent + end): those that end before `at`, and those that begin there. */
	uint64_t whole = extent && at >= end ? (at - end) / extent + 1 : 0;
	uint64_t begun = extent ? (at - first - 1) / extent + 1 : 1;
	uint64_t low = whole * size, high = begun * size;
	/* The first position in [low, high) that lies at or behind `at`. */
	while (low < high) { /* ends: the interval halves */
		uint64_t mid = low + (high - low) / 2;
		if (weft_file_view_offset(v, mid) - v->disp < at)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}
