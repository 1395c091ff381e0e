/* SPDX-License-Identifier: BSD-3-Clause */
/* section.c - array sections that are not contiguous. */
#include "mpi/fortran/section.h"

#include <stdlib.h>
#include <string.h>

/* One argument whose elements were put side by side. */
struct weft_f_copy {
	struct weft_f_copy *next;
	bool out;
	char *memory;
	weft_f_section s; /* and its dimensions */
};

int weft_f_raise(int code)
{
	PMPI_Comm_call_errhandler(MPI_COMM_SELF, code);
	return code;
}

/* ---- typed ---------------------------------------------------------------------------------- */

void weft_f_typed_make(struct weft_f_typed *t, const weft_f_section *s, bool wide_count,
		       bool spaced)
{
	int64_t count = weft_f_value(t->count, wide_count || weft_f_wide);
	MPI_Datatype type = PMPI_Type_fromint((int)weft_f_value(t->datatype, weft_f_wide));
	int err = spaced ? weft_lang_section_spaced(s, type, &t->made)
			 : weft_lang_section_type(s, count, type, &t->made);
	if (err) {
		t->error = weft_f_raise(err);
		return;
	}
	if (t->made == MPI_DATATYPE_NULL)
		return;
	t->one = 1;
	t->handle = PMPI_Type_toint(t->made);
	if (!spaced)
		t->count = &t->one;
	t->datatype = &t->handle;
}

void weft_f_typed_free(struct weft_f_typed *t)
{
	PMPI_Type_free(&t->made);
}

/* ---- copied --------------------------------------------------------------------------------- */

/* Element by element of all dimensions but the first, in the order of the array. */
static void copy_elements(const struct weft_f_copy *c, bool in)
{
	const weft_f_section *s = &c->s;
	size_t elem = s->elem, row = (size_t)s->dim[0].extent, left = weft_lang_section_elements(s);
	bool dense = s->dim[0].stride == (ptrdiff_t)elem;
	ptrdiff_t index[15] = {0};
	char *memory = c->memory, *at = s->base;
	for (; left; left -= row) { /* left is a multiple of row */
		char *from = at;
		for (size_t i = 0; i < (dense ? 1 : row); i++, from += s->dim[0].stride) {
			size_t n = dense ? row * elem : elem;
			if (in)
				memcpy(memory, from, n);
			else
				memcpy(from, memory, n);
			memory += n;
		}
		for (int d = 1; d < s->rank; d++) {
			at += s->dim[d].stride;
			if (++index[d] < s->dim[d].extent)
				break;
			at -= index[d] * s->dim[d].stride;
			index[d] = 0;
		}
	}
}

static void copies_free(struct weft_f_copy *first)
{
	while (first) {
		struct weft_f_copy *next = first->next;
		free(first);
		first = next;
	}
}

static void copies_start(void *arg)
{
	for (const struct weft_f_copy *c = arg; c; c = c->next)
		copy_elements(c, true);
}

static void copies_over(void *arg)
{
	for (const struct weft_f_copy *c = arg; c; c = c->next)
		if (c->out)
			copy_elements(c, false);
}

static void copies_gone(void *arg)
{
	copies_free(arg);
}

static const struct weft_lang_hook copies_hook = {copies_start, copies_over, copies_gone};

void *weft_f_copy_make(struct weft_f_copies *k, const weft_f_section *s, bool out)
{
	size_t bytes = s->elem * weft_lang_section_elements(s), dims = s->rank * sizeof s->dim[0];
	size_t head = (sizeof(struct weft_f_copy) + dims + 63) & ~(size_t)63;
	struct weft_f_copy *c = bytes <= SIZE_MAX - head - 64 ? malloc(head + bytes) : NULL;
	if (!k->hook)
		k->hook = weft_lang_hook_new(&copies_hook);
	if (!c || !k->hook) {
		k->error = MPI_ERR_NO_MEM;
		free(c);
		return s->base;
	}
	memcpy(&c->s, s, sizeof c->s + dims);
	c->memory = (char *)c + head;
	c->out = out;
	c->next = k->first;
	k->first = c;
	/* What only comes back has holes, perhaps, that must be what they were. */
	copy_elements(c, true);
	return c->memory;
}

int weft_f_copies_fail(struct weft_f_copies *k)
{
	weft_lang_hook_drop(k->hook);
	copies_free(k->first);
	k->first = NULL;
	return weft_f_raise(MPI_ERR_NO_MEM);
}

void weft_f_copies_finish(struct weft_f_copies *k, const void *request, int64_t code)
{
	struct weft_f_copy *first = k->first;
	k->first = NULL;
	if (request && !(int32_t)code) {
		MPI_Request r = PMPI_Request_fromint((int)weft_f_value(request, weft_f_wide));
		weft_lang_hook_set(k->hook, r, first);
		return;
	}
	weft_lang_hook_drop(k->hook);
	if (!(int32_t)code)
		copies_over(first);
	copies_free(first);
}
