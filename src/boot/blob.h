/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * blob.h - many (key, value) pairs as one text that every launcher carries unharmed.
 *
 * Callers   any thread, one per blob.
 * Owner     the blob owns its text until fini.
 * Trust     find and valid take any text: what is not a blob is WEFT_ERR_PROTO, never read beyond.
 */
#ifndef WEFT_BOOT_BLOB_H
#define WEFT_BOOT_BLOB_H

#include "base/base.h"

struct weft_boot_blob {
	char *text; /* NUL-terminated, only letters, digits and "-._~%," */
	size_t len, cap;
};

/* Appends a pair.  Any bytes but NUL. */
weft_err weft_boot_blob_add(struct weft_boot_blob *b, const char *key,
			    const char *value) weft_must_use;
/* The last value of key within text, unescaped into buf.
 * NOENT: no such key; TRUNC: buf is too small; PROTO: text is not a blob. */
weft_err weft_boot_blob_find(const char *text, const char *key, char *buf,
			     size_t size) weft_must_use;
/* Is text something that weft_boot_blob_add could have made? */
bool weft_boot_blob_valid(const char *text);
void weft_boot_blob_fini(struct weft_boot_blob *b);

#endif
