/* SPDX-License-Identifier: BSD-3-Clause */
/* lang_section.c - datatypes for data in array sections. */
#include "mpi/lang_section.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/assert.h"
#include "gen/mpi_impl.h"
#include "mpi/mpi_int.h"
#include "mpi/type/type.h"

#define RANK_MOST 15 /* of Fortran */

size_t weft_lang_section_elements(const struct weft_lang_section *s)
{
	size_t n = 1;
	for (int d = 0; d < s->rank; d++)
		n *= s->dim[d].extent > 0 ? (size_t)s->dim[d].extent : 0;
	return n;
}

/* ---- data without gaps ---------------------------------------------------------------------- */

/* Parts of a datatype under construction. */
struct parts {
	MPI_Datatype type[RANK_MOST + 2];
	MPI_Count at[RANK_MOST + 2];
	int n;
};

/* The datatype of one element of the section, of which `type` fills a part, or the reverse. */
static int element_type(const struct weft_lang_section *s, MPI_Count size, MPI_Datatype type,
			MPI_Datatype *made_p)
{
	MPI_Count elem = (MPI_Count)s->elem;
	if (size == elem)
		return weft_mpi_Type_dup(type, made_p);
	if (size && elem % size == 0)
		return weft_mpi_Type_contiguous(elem / size, type, made_p);
	return weft_mpi_Type_contiguous(elem, MPI_BYTE, made_p);
}

/* Replaces *type_p by n of it, `stride` bytes apart. */
static int row_type(MPI_Count n, MPI_Count stride, MPI_Datatype *type_p)
{
	MPI_Datatype row;
	int err = weft_mpi_Type_create_hvector(n, 1, stride, *type_p, &row);
	if (err)
		return err;
	(void)weft_mpi_Type_free(type_p); /* it is ours and valid */
	*type_p = row;
	return MPI_SUCCESS;
}

/* n elements from the section's first on: of each dimension, from the last one down, as many whole rows as fit. */
static int dense_parts(const struct weft_lang_section *s, MPI_Count n, MPI_Datatype elem,
		       struct parts *parts)
{
	MPI_Count row[RANK_MOST + 1], at = 0;
	row[0] = 1;
	for (int d = 0; d < s->rank; d++)
		row[d + 1] = row[d] * (MPI_Count)s->dim[d].extent;
	for (int d = s->rank - 1; d >= 0 && n; d--) {
		MPI_Count rows = n / row[d];
		if (!rows)
			continue;
		MPI_Datatype t;
		int err = weft_mpi_Type_dup(elem, &t);
		for (int k = 0; !err && k < d; k++)
			err = row_type((MPI_Count)s->dim[k].extent, s->dim[k].stride, &t);
		if (!err)
			err = row_type(rows, s->dim[d].stride, &t);
		if (err)
			return err;
		parts->type[parts->n] = t;
		parts->at[parts->n++] = at;
		at += rows * s->dim[d].stride;
		n -= rows * row[d];
	}
	parts->at[parts->n] = at; /* where the next element would be */
	return MPI_SUCCESS;
}

static int join_parts(struct parts *parts, MPI_Datatype *made_p)
{
	MPI_Count one[RANK_MOST + 2];
	for (int i = 0; i < parts->n; i++)
		one[i] = 1;
	return weft_mpi_Type_create_struct(parts->n, one, parts->at, parts->type, made_p);
}

static int dense_type(const struct weft_lang_section *s, MPI_Count bytes, MPI_Count size,
		      MPI_Datatype type, MPI_Datatype *made_p)
{
	struct parts parts = {.n = 0};
	MPI_Count elem = (MPI_Count)s->elem, tail = bytes % elem;
	MPI_Datatype one;
	int err = element_type(s, size, type, &one);
	if (err)
		return err;
	err = dense_parts(s, bytes / elem, one, &parts);
	if (!err && tail) {
		err = weft_mpi_Type_contiguous(tail, MPI_BYTE, &parts.type[parts.n]);
		parts.n += !err;
	}
	if (!err)
		err = join_parts(&parts, made_p);
	for (int i = 0; i < parts.n; i++)
		(void)weft_mpi_Type_free(&parts.type[i]);
	(void)weft_mpi_Type_free(&one);
	return err;
}

/* ---- data with gaps ------------------------------------------------------------------------- */

struct runs {
	MPI_Count *at, *len;
	MPI_Count n, room;
};

static bool runs_add(struct runs *r, MPI_Count at, MPI_Count len)
{
	if (r->n && r->at[r->n - 1] + r->len[r->n - 1] == at) {
		r->len[r->n - 1] += len;
		return true;
	}
	if (r->n == r->room) {
		MPI_Count room = r->room ? 2 * r->room : 64;
		MPI_Count *more = realloc(r->at, 2 * (size_t)room * sizeof *more);
		if (!more)
			return false;
		r->at = more;
		for (MPI_Count i = r->n; i-- > 0;) /* the lengths move up */
			more[room + i] = more[r->room + i];
		r->len = more + room;
		r->room = room;
	}
	r->at[r->n] = at;
	r->len[r->n++] = len;
	return true;
}

/* Where byte `v` of the elements side by side is, from base. */
static MPI_Count place_of(const struct weft_lang_section *s, size_t v)
{
	size_t index = v / s->elem;
	MPI_Count at = (MPI_Count)(v % s->elem);
	for (int d = 0; d < s->rank; d++) {
		size_t extent = (size_t)s->dim[d].extent;
		at += (MPI_Count)(index % extent) * s->dim[d].stride;
		index /= extent;
	}
	return at;
}

static int gappy_type(const struct weft_lang_section *s, struct weft_buf buf, MPI_Datatype *made_p)
{
	struct runs r = {.at = NULL};
	size_t total = s->elem * weft_lang_section_elements(s), done = 0;
	int err = MPI_SUCCESS;
	char *const zero = s->base;        /* buf.base is behind it where the layout begins later */
	while (!err && done < buf.bytes) { /* ends: each turn lists data */
		struct iovec iov[64];
		unsigned n = 64;
		done += weft_data_iov(&buf, done, iov, &n);
		for (unsigned i = 0; !err && i < n; i++) {
			size_t v = (size_t)((char *)iov[i].iov_base - zero), left = iov[i].iov_len;
			if (v > total || left > total - v)
				err = MPI_ERR_COUNT;
			while (!err && left) { /* ends: each turn takes a part of an element */
				size_t part = s->elem - v % s->elem;
				part = part < left ? part : left;
				if (!runs_add(&r, place_of(s, v), (MPI_Count)part))
					err = MPI_ERR_NO_MEM;
				v += part;
				left -= part;
			}
		}
	}
	if (!err)
		err = weft_mpi_Type_create_hindexed(r.n, r.len, r.at, MPI_BYTE, made_p);
	free(r.at);
	return err;
}

/* ---- both ----------------------------------------------------------------------------------- */

/* Size of a datatype; *dense_p: its elements lie side by side without gaps, from their address on. */
static MPI_Count type_size(MPI_Datatype type, bool *dense_p)
{
	MPI_Count size = 0, lb = 0, extent = 0, true_lb = 0, true_extent = 0;
	(void)weft_mpi_Type_size(type, &size);
	(void)weft_mpi_Type_get_extent(type, &lb, &extent);
	(void)weft_mpi_Type_get_true_extent(type, &true_lb, &true_extent);
	*dense_p = size == extent && size == true_extent && !lb && !true_lb;
	return size;
}

int weft_lang_section_type(const struct weft_lang_section *s, MPI_Count count, MPI_Datatype type,
			   MPI_Datatype *made_p)
{
	struct weft_buf buf;
	bool dense;
	*made_p = MPI_DATATYPE_NULL;
	weft_assert(s->rank && s->rank <= RANK_MOST);
	if (count <= 0 || !weft_mpi_object_find(type, WEFT_MPI_TYPE) || !s->elem ||
	    weft_mpi_buf(s->base, count, type, &buf))
		return MPI_SUCCESS;
	MPI_Count size = type_size(type, &dense);
	int err;
	if (!size)
		return MPI_SUCCESS;
	if (dense) {
		MPI_Count total = (MPI_Count)(s->elem * weft_lang_section_elements(s));
		if (count > total / size)
			return MPI_ERR_COUNT;
		err = dense_type(s, count * size, size, type, made_p);
	} else {
		err = gappy_type(s, buf, made_p);
	}
	return err ? err : weft_mpi_Type_commit(made_p);
}

int weft_lang_section_spaced(const struct weft_lang_section *s, MPI_Datatype type,
			     MPI_Datatype *made_p)
{
	bool dense;
	*made_p = MPI_DATATYPE_NULL;
	if (!weft_mpi_object_find(type, WEFT_MPI_TYPE))
		return MPI_SUCCESS;
	if (s->rank != 1 || type_size(type, &dense) != (MPI_Count)s->elem || !dense)
		return MPI_ERR_BUFFER;
	int err = weft_mpi_Type_create_resized(type, 0, s->dim[0].stride, made_p);
	return err ? err : weft_mpi_Type_commit(made_p);
}
