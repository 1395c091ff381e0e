/* SPDX-License-Identifier: BSD-3-Clause */
/* test_view_wire.c - a view that went through bytes has the same ranges; bytes that were cut are refused. */
#include "check.h"
#include "file/view_wire.h"

static void same_ranges(const struct weft_file_view *a, const struct weft_file_view *b,
			uint64_t bytes)
{
	uint64_t pos = 0;

	while (pos < bytes) {
		struct weft_file_range x[3], y[3];
		unsigned n = 3, m = 3;
		uint64_t got = weft_file_view_ranges(a, pos, bytes - pos, x, &n);
		CHECK_EQ(weft_file_view_ranges(b, pos, bytes - pos, y, &m), got);
		CHECK_EQ(m, n);
		for (unsigned i = 0; i < n; i++) {
			CHECK_EQ(y[i].at, x[i].at);
			CHECK_EQ(y[i].len, x[i].len);
		}
		pos += got;
	}
}

static void through(const struct weft_type *t, uint64_t disp)
{
	struct weft_file_view v = {.disp = disp, .type = t};
	struct weft_file_view_copy copy;
	size_t bytes = weft_file_view_encode(&v, NULL);
	char *wire = malloc(bytes);

	CHECK(wire);
	CHECK_EQ(weft_file_view_encode(&v, wire), bytes);
	CHECK_EQ(weft_file_view_decode(wire, bytes, &copy), WEFT_OK);
	same_ranges(&v, &copy.view, t ? 5 * t->size + 3 : 100);
	weft_file_view_copy_drop(&copy);
	for (size_t cut = 0; cut < bytes; cut += 8)
		CHECK(weft_file_view_decode(wire, cut, &copy) != WEFT_OK);
	free(wire);
}

int main(void)
{
	const struct weft_type *byte = &weft_data_type_elem[0], *a, *b, *c;
	const int64_t sizes[] = {5, 7, 9}, sub[] = {2, 3, 4}, starts[] = {1, 2, 3};
	const int64_t len[] = {3, 1, 7}, at[] = {2, 9, 40};

	while (byte->size != 1)
		byte++;
	through(NULL, 77);
	CHECK_EQ(weft_data_type_subarray(3, sizes, sub, starts, true, byte, &a), WEFT_OK);
	through(a, 11);
	CHECK_EQ(weft_data_type_indexed(3, len, 0, at, 1, byte, &b), WEFT_OK);
	through(b, 0);
	CHECK_EQ(weft_data_type_indexed(3, len, 0, at, 400, a, &c), WEFT_OK);
	through(c, 5);
	weft_data_type_unref(a);
	weft_data_type_unref(b);
	weft_data_type_unref(c);
	return 0;
}
