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

static const char *reason_of(int code)
{
	switch (code) {
	case MPI_ERR_COUNT:
		return "the array section holds less than the count says";
	case MPI_ERR_BUFFER:
		return "a section of partitions has one dimension and elements of the datatype's "
		       "extent";
	default:
		return "no memory for an array section";
	}
}

int weft_f_raise(int code, enum weft_lang_object kind, const void *handle, const char *routine)
{
	int number = handle ? (int)weft_f_value(handle, weft_f_wide) : 0;
	return weft_lang_raise(code, reason_of(code), kind, number, routine);
}

bool weft_f_contiguous_all(const weft_f_section *s)
{
	ptrdiff_t next = (ptrdiff_t)s->elem;
	for (int d = 0; d < s->rank; d++) {
		/* The last extent of an assumed-size array is -1. */
		if (s->dim[d].extent == -1)
			return true;
		if (s->dim[d].extent != 1 && s->dim[d].stride != next)
			return s->dim[d].extent == 0;
		next *= s->dim[d].extent;
	}
	return true;
}

void weft_f_error_out(void *ierror, int64_t code)
{
	if (!ierror)
		return;
	if (weft_f_wide)
		*(int64_t *)ierror = (int32_t)code;
	else
		*(int32_t *)ierror = (int32_t)code;
}

/* ---- typed ---------------------------------------------------------------------------------- */

int weft_f_typed_open(struct weft_f_typed *t, const weft_f_section *s, const void *count,
		      const void *datatype, bool wide_count, bool spaced)
{
	*t = (struct weft_f_typed){
		.count = count, .datatype = datatype, .buf = s->base, .made = MPI_DATATYPE_NULL};
	if (weft_f_contiguous(s))
		return MPI_SUCCESS;
	int64_t n = weft_f_value(count, wide_count || weft_f_wide);
	MPI_Datatype type = PMPI_Type_fromint((int)weft_f_value(datatype, weft_f_wide));
	int err = spaced ? weft_lang_section_spaced(s, type, &t->made)
			 : weft_lang_section_type(s, n, type, &t->made);
	if (err || t->made == MPI_DATATYPE_NULL)
		return err;
	t->one = 1;
	t->handle = PMPI_Type_toint(t->made);
	if (!spaced)
		t->count = &t->one;
	t->datatype = &t->handle;
	return MPI_SUCCESS;
}

void weft_f_typed_close(struct weft_f_typed *t)
{
	if (t->made != MPI_DATATYPE_NULL)
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

void *weft_f_copy(struct weft_f_copies *k, const weft_f_section *s, bool out)
{
	if (weft_f_contiguous(s))
		return s->base;
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

int weft_f_copies_fail(struct weft_f_copies *k, enum weft_lang_object kind, const void *handle,
		       const char *routine)
{
	weft_lang_hook_drop(k->hook);
	copies_free(k->first);
	k->first = NULL;
	return weft_f_raise(MPI_ERR_NO_MEM, kind, handle, routine);
}

void weft_f_copies_end(struct weft_f_copies *k, const void *request, int64_t code)
{
	struct weft_f_copy *first = k->first;
	if (!first)
		return;
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
