/* SPDX-License-Identifier: BSD-3-Clause */
/* external.c - converts data to and from external32, element by element along the signature. */
#include "data/external.h"

#include <string.h>

/* Numbers are converted through a buffer of this many native bytes. */
#define CHUNK 4096

struct convert {
	const struct weft_buf *buf;
	size_t offset; /* data bytes done */
	uint8_t *ext;  /* where we are in external32; read only when unpacking */
	bool packing;
};

/* Copies a number of n bytes, least significant byte first on this machine, in reverse. */
static void copy_swapped(uint8_t *to, const uint8_t *from, size_t n)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	for (size_t i = 0; i < n; i++)
		to[i] = from[n - 1 - i];
#else
	memcpy(to, from, n);
#endif
}

/* long double to binary128 and back, big-endian. */
static void quad_out(uint8_t *ext, const void *native)
{
#if defined(__SIZEOF_FLOAT128__)
	long double v;
	memcpy(&v, native, sizeof v);
	__float128 q = v;
	copy_swapped(ext, (const uint8_t *)&q, 16);
#else
	copy_swapped(ext, native, 16);
#endif
}

static void quad_in(void *native, const uint8_t *ext)
{
#if defined(__SIZEOF_FLOAT128__)
	__float128 q;
	copy_swapped((uint8_t *)&q, ext, 16);
	long double v = (long double)q;
	/* The padding of the native format gets defined bytes. */
	memset(native, 0, sizeof v);
	memcpy(native, &v, 10);
#else
	copy_swapped(native, ext, 16);
#endif
}

/* One number of a basic element: native size `size`, external size `ext`. */
static void number_out(uint8_t *out, const uint8_t *in, const struct weft_basic_info *b,
		       size_t size)
{
	uint8_t tmp[16];
	if (b->external == 16) {
		quad_out(out, in);
		return;
	}
	copy_swapped(tmp, in, size);
	/* The low bytes are last in big-endian order. */
	memcpy(out, tmp + size - b->external, b->external);
}

static void number_in(uint8_t *out, const uint8_t *in, const struct weft_basic_info *b, size_t size)
{
	uint8_t tmp[16];
	if (b->external == 16) {
		quad_in(out, in);
		return;
	}
	bool negative = b->cls == WEFT_CLASS_INT && (in[0] & 0x80);
	memset(tmp, negative ? 0xff : 0, size);
	memcpy(tmp + size - b->external, in, b->external);
	copy_swapped(out, tmp, size);
}

static void convert_run(void *arg, enum weft_basic basic, size_t n)
{
	struct convert *c = arg;
	const struct weft_basic_info *b = &weft_data_basic_info[basic];
	size_t parts = b->cls == WEFT_CLASS_COMPLEX ? 2 : 1;
	size_t size = b->size / parts;
	size_t left = n * parts;
	uint8_t mem[CHUNK];
	while (left) {
		size_t now = left < CHUNK / size ? left : CHUNK / size;
		if (c->packing)
			weft_data_pack(c->buf, c->offset, mem, now * size);
		for (size_t i = 0; i < now; i++, c->ext += b->external) {
			if (c->packing)
				number_out(c->ext, mem + i * size, b, size);
			else
				number_in(mem + i * size, c->ext, b, size);
		}
		if (!c->packing)
			weft_data_unpack(c->buf, c->offset, mem, now * size);
		c->offset += now * size;
		left -= now;
	}
}

weft_err weft_data_external_size(const struct weft_type *t, size_t count, size_t *size_p)
{
	if (__builtin_mul_overflow(t->sig->external, count, size_p) || *size_p > PTRDIFF_MAX)
		return WEFT_ERR_LIMIT;
	return WEFT_OK;
}

static void convert_all(struct convert *c, const struct weft_type *t, size_t count)
{
	for (size_t i = 0; i < count; i++)
		weft_data_sig_walk(t->sig, convert_run, c);
}

void weft_data_external_pack(const struct weft_buf *buf, const struct weft_type *t, size_t count,
			     void *out)
{
	struct convert c = {.buf = buf, .ext = out, .packing = true};
	convert_all(&c, t, count);
}

void weft_data_external_unpack(const struct weft_buf *buf, const struct weft_type *t, size_t count,
			       const void *in)
{
	struct convert c = {.buf = buf, .ext = (uint8_t *)(uintptr_t)in};
	convert_all(&c, t, count);
}
