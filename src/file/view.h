/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * view.h - where in the file a view's data lies: a cursor over a layout, never a list of its pieces.
 *
 * A view is a layout that repeats from `disp` on.  Position p is the p-th byte of its data.  Data grows
 * with the offset in the file, which MPI asks of file types; for reading, pieces may overlap (goes_back).
 *
 * Callers   any thread, handlers included.  A view is immutable while operations use it.
 * Cost      a few steps per level of the layout and per range; no memory.
 */
#ifndef WEFT_FILE_VIEW_H
#define WEFT_FILE_VIEW_H

#include "data/type.h"

struct weft_file_view {
	uint64_t disp;
	const struct weft_type
		*type; /* referenced by the owner; NULL: the file's bytes from disp on */
	/* In a representation in which numbers are longer or shorter: file bytes per byte of the layout. */
	uint32_t num, den; /* 0: both are one */
	/* Data goes back within the type, which a view for reading may do: offsets do not cut it.  Said by the maker. */
	bool goes_back;
};

struct weft_file_range {
	uint64_t at, len; /* in the file */
};

/*
 * The ranges of data bytes [pos, pos + want), at most *n_p of them; *n_p becomes how many.  Returns how many data
 * bytes they hold (less than want: there was no room for more).
 */
uint64_t weft_file_view_ranges(const struct weft_file_view *v, uint64_t pos, uint64_t want,
			       struct weft_file_range *r, unsigned *n_p);
/* Where byte pos lies. */
uint64_t weft_file_view_offset(const struct weft_file_view *v, uint64_t pos);
/* How many data bytes lie before offset `at` of the file. */
uint64_t weft_file_view_position(const struct weft_file_view *v, uint64_t at);

#endif
