/* SPDX-License-Identifier: BSD-3-Clause */
/* sig.c - type signatures: making them, counting elements in them. */
#include "data/sig.h"

#include <stdlib.h>

const struct weft_sig weft_data_sig_basic[WEFT_BASIC_COUNT] = {
#define WEFT_BASIC(id, ctype, cls_, ext)                                                           \
	[WEFT_B_##id] = {.kind = WEFT_SIG_BASIC,                                                   \
			 .is_static = 1,                                                           \
			 .basic = WEFT_B_##id,                                                     \
			 .n = 1,                                                                   \
			 .bytes = sizeof(ctype),                                                   \
			 .elems = 1,                                                               \
			 .external = ext * (WEFT_CLASS_##cls_ == WEFT_CLASS_COMPLEX ? 2 : 1)},
#include "data/basic_table.h"
#undef WEFT_BASIC
};

const struct weft_sig weft_data_sig_empty = {.kind = WEFT_SIG_BASIC, .is_static = 1};

const struct weft_sig *weft_data_sig_ref(const struct weft_sig *s)
{
	/* Relaxed: the caller holds a reference.  The cast adds to a count, nothing else. */
	if (!s->is_static)
		atomic_fetch_add_explicit(&((struct weft_sig *)(uintptr_t)s)->x_refs, 1,
					  memory_order_relaxed);
	return s;
}

void weft_data_sig_unref(const struct weft_sig *cs)
{
	struct weft_sig *s = (struct weft_sig *)(uintptr_t)cs;
	if (!s || s->is_static)
		return;
	/* LAST -> itself.  Carries: every owner's reads; without it we could free under them. */
	if (atomic_fetch_sub_explicit(&s->x_refs, 1, memory_order_acq_rel) != 1)
		return;
	size_t children = s->kind == WEFT_SIG_BASIC ? 0 : s->kind == WEFT_SIG_REP ? 1 : s->n;
	for (size_t i = 0; i < children; i++)
		weft_data_sig_unref(s->child[i]);
	free(s);
}

static struct weft_sig *sig_alloc(enum weft_sig_kind kind, size_t n, size_t children)
{
	if (children > PTRDIFF_MAX / sizeof(void *) - sizeof(struct weft_sig))
		return NULL;
	struct weft_sig *s = calloc(1, sizeof *s + children * sizeof(void *));
	if (!s)
		return NULL;
	atomic_init(&s->x_refs, 1);
	s->kind = (uint8_t)kind;
	s->n = n;
	s->child = s->own;
	return s;
}

weft_err weft_data_sig_rep(size_t n, const struct weft_sig *child, const struct weft_sig **sig_p)
{
	size_t bytes, elems, external;
	if (n == 1) {
		*sig_p = weft_data_sig_ref(child);
		return WEFT_OK;
	}
	if (!n || !child->elems) {
		*sig_p = &weft_data_sig_empty;
		return WEFT_OK;
	}
	if (__builtin_mul_overflow(n, child->bytes, &bytes) ||
	    __builtin_mul_overflow(n, child->elems, &elems) ||
	    __builtin_mul_overflow(n, child->external, &external) || bytes > PTRDIFF_MAX ||
	    external > PTRDIFF_MAX)
		return WEFT_ERR_LIMIT;
	bool flat = child->kind == WEFT_SIG_BASIC;
	struct weft_sig *s = sig_alloc(flat ? WEFT_SIG_BASIC : WEFT_SIG_REP, n, flat ? 0 : 1);
	if (!s)
		return WEFT_ERR_NOMEM;
	if (flat) {
		s->n = n * child->n;
		s->basic = child->basic;
	} else if (child->kind == WEFT_SIG_REP) {
		s->n = n * child->n;
		s->own[0] = weft_data_sig_ref(child->child[0]);
	} else {
		s->own[0] = weft_data_sig_ref(child);
	}
	s->bytes = bytes;
	s->elems = elems;
	s->external = external;
	*sig_p = s;
	return WEFT_OK;
}

/* Adds child to list s, merged with the last one where both are the same basic element. */
static weft_err list_add(struct weft_sig *s, size_t times, const struct weft_sig *c)
{
	const struct weft_sig *r;
	weft_err err = weft_data_sig_rep(times, c, &r);
	if (err)
		return err;
	if (__builtin_add_overflow(s->bytes, r->bytes, &s->bytes) ||
	    __builtin_add_overflow(s->external, r->external, &s->external) ||
	    s->bytes > PTRDIFF_MAX || s->external > PTRDIFF_MAX) {
		weft_data_sig_unref(r);
		return WEFT_ERR_LIMIT;
	}
	s->elems += r->elems;
	const struct weft_sig *last = s->n ? s->own[s->n - 1] : NULL;
	if (last && last->kind == WEFT_SIG_BASIC && r->kind == WEFT_SIG_BASIC &&
	    last->basic == r->basic) {
		const struct weft_sig *m;
		err = weft_data_sig_rep(last->n + r->n, &weft_data_sig_basic[r->basic], &m);
		weft_data_sig_unref(r);
		if (err)
			return err;
		weft_data_sig_unref(last);
		s->own[s->n - 1] = m;
		return WEFT_OK;
	}
	s->own[s->n++] = r;
	return WEFT_OK;
}

weft_err weft_data_sig_list(size_t n, const size_t *times, const struct weft_sig *const *c,
			    const struct weft_sig **sig_p)
{
	struct weft_sig *s = sig_alloc(WEFT_SIG_LIST, 0, n);
	if (!s)
		return WEFT_ERR_NOMEM;
	for (size_t i = 0; i < n; i++) {
		if (!times[i] || !c[i]->elems)
			continue;
		weft_err err = list_add(s, times[i], c[i]);
		if (err) {
			weft_data_sig_unref(s);
			return err;
		}
	}
	if (s->n <= 1) {
		*sig_p = s->n ? weft_data_sig_ref(s->own[0]) : &weft_data_sig_empty;
		weft_data_sig_unref(s);
		return WEFT_OK;
	}
	*sig_p = s;
	return WEFT_OK;
}

size_t weft_data_sig_elements(const struct weft_sig *s, size_t bytes, size_t *rest_p)
{
	if (bytes >= s->bytes) {
		*rest_p = bytes - s->bytes;
		return s->elems;
	}
	const struct weft_sig *c;
	size_t i, n = 0;
	switch (s->kind) {
	case WEFT_SIG_BASIC:
		*rest_p = bytes % weft_data_basic_info[s->basic].size;
		return bytes / weft_data_basic_info[s->basic].size;
	case WEFT_SIG_REP:
		c = s->child[0];
		return bytes / c->bytes * c->elems +
		       weft_data_sig_elements(c, bytes % c->bytes, rest_p);
	default:
		for (i = 0; bytes >= s->child[i]->bytes; i++) {
			bytes -= s->child[i]->bytes;
			n += s->child[i]->elems;
		}
		return n + weft_data_sig_elements(s->child[i], bytes, rest_p);
	}
}

size_t weft_data_sig_bytes(const struct weft_sig *s, size_t elems)
{
	if (elems >= s->elems)
		return s->bytes;
	const struct weft_sig *c;
	size_t i, n = 0;
	switch (s->kind) {
	case WEFT_SIG_BASIC:
		return elems * weft_data_basic_info[s->basic].size;
	case WEFT_SIG_REP:
		c = s->child[0];
		return elems / c->elems * c->bytes + weft_data_sig_bytes(c, elems % c->elems);
	default:
		for (i = 0; elems >= s->child[i]->elems; i++) {
			elems -= s->child[i]->elems;
			n += s->child[i]->bytes;
		}
		return n + weft_data_sig_bytes(s->child[i], elems);
	}
}

void weft_data_sig_walk(const struct weft_sig *s,
			void (*fn)(void *arg, enum weft_basic basic, size_t n), void *arg)
{
	switch (s->kind) {
	case WEFT_SIG_BASIC:
		if (s->n)
			fn(arg, (enum weft_basic)s->basic, s->n);
		break;
	case WEFT_SIG_REP:
		for (size_t i = 0; i < s->n; i++)
			weft_data_sig_walk(s->child[0], fn, arg);
		break;
	default:
		for (size_t i = 0; i < s->n; i++)
			weft_data_sig_walk(s->child[i], fn, arg);
	}
}
