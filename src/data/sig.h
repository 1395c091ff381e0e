/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sig.h - a type signature: which basic elements a layout consists of, in order, run-length coded.
 *
 *   BASIC   n elements of `basic`
 *   REP     n times child
 *   LIST    n children one after the other
 *
 * Callers   any thread.  Immutable once made, counted by references.
 */
#ifndef WEFT_DATA_SIG_H
#define WEFT_DATA_SIG_H

#include "data/basic.h"

enum weft_sig_kind { WEFT_SIG_BASIC, WEFT_SIG_REP, WEFT_SIG_LIST };

struct weft_sig {
	_Atomic unsigned x_refs;
	uint8_t kind;
	uint8_t is_static; /* never counted, never freed */
	uint8_t basic;
	size_t n;
	size_t bytes, elems; /* of the whole */
	size_t external;     /* bytes in external32 */
	const struct weft_sig *const *child;
	const struct weft_sig *own[]; /* where child points, if not static */
};

extern const struct weft_sig weft_data_sig_basic[WEFT_BASIC_COUNT];
extern const struct weft_sig weft_data_sig_empty;

const struct weft_sig *weft_data_sig_ref(const struct weft_sig *s);
void weft_data_sig_unref(const struct weft_sig *s);

/* n times child; takes a reference of its own. */
weft_err weft_data_sig_rep(size_t n, const struct weft_sig *child,
			   const struct weft_sig **sig_p) weft_must_use;
/* The children of c[0..n) one after the other, c[i] repeated times[i]. */
weft_err weft_data_sig_list(size_t n, const size_t *times, const struct weft_sig *const *c,
			    const struct weft_sig **sig_p) weft_must_use;

/* How many whole elements the first `bytes` bytes hold; *rest_p: bytes beyond the last whole one.
 */
size_t weft_data_sig_elements(const struct weft_sig *s, size_t bytes, size_t *rest_p);
/* The reverse: how many bytes the first `elems` elements take. */
size_t weft_data_sig_bytes(const struct weft_sig *s, size_t elems);

/* Calls fn for each run of equal elements, in order. */
void weft_data_sig_walk(const struct weft_sig *s,
			void (*fn)(void *arg, enum weft_basic basic, size_t n), void *arg);

#endif
