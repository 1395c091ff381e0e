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

/* ---- rows of whole elements ------------------------------------------------------------------ */

/* Parts of a datatype under construction. */
struct parts {
	MPI_Datatype type[RANK_MOST + 2];
	MPI_Count at[RANK_MOST + 2];
	int n;
};

/* What pieces of the data are counted in. */
struct unit {
	MPI_Datatype type;
	MPI_Count size;
};

static const struct weft_sig *signature_of(MPI_Datatype type)
{
	return weft_mpi_type_of(type)->layout->sig;
}

/* The basic elements of `type` if they are all of a kind, else bytes. */
static struct unit basic_unit(MPI_Datatype type)
{
	const struct weft_sig *sig = signature_of(type);
	if (sig->kind != WEFT_SIG_BASIC)
		return (struct unit){MPI_BYTE, 1};
	return (struct unit){weft_mpi_type_of_basic((enum weft_basic)sig->basic),
			     weft_data_basic_info[sig->basic].size};
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
		/* No duplicate: that would call what the program attached for copying. */
		int err = weft_mpi_Type_contiguous(1, elem, &t);
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

static void parts_free(struct parts *parts)
{
	for (int i = 0; i < parts->n; i++)
		(void)weft_mpi_Type_free(&parts->type[i]);
}

/* count elements of `type`, each of which fills one of the section's, but for its holes. */
static int whole_type(const struct weft_lang_section *s, MPI_Count count, MPI_Datatype type,
		      MPI_Datatype *made_p)
{
	struct parts parts = {.n = 0};
	int err = dense_parts(s, count, type, &parts);
	if (!err)
		err = join_parts(&parts, made_p);
	parts_free(&parts);
	return err;
}

/* The first `bytes` bytes of the section, which are elements of `type` without a gap. */
static int dense_type(const struct weft_lang_section *s, MPI_Count bytes, MPI_Count size,
		      MPI_Datatype type, MPI_Datatype *made_p)
{
	struct parts parts = {.n = 0};
	struct unit unit = {type, size};
	MPI_Count elem = (MPI_Count)s->elem;
	if (elem % unit.size)
		unit = basic_unit(type);
	if (elem % unit.size)
		unit = (struct unit){MPI_BYTE, 1};
	MPI_Count tail = bytes % elem / unit.size;
	MPI_Datatype one;
	int err = weft_mpi_Type_contiguous(elem / unit.size, unit.type, &one);
	if (err)
		return err;
	err = dense_parts(s, bytes / elem, one, &parts);
	if (!err && tail) {
		err = weft_mpi_Type_contiguous(tail, unit.type, &parts.type[parts.n]);
		parts.n += !err;
	}
	if (!err)
		err = join_parts(&parts, made_p);
	parts_free(&parts);
	(void)weft_mpi_Type_free(&one);
	return err;
}

/* ---- all other data ------------------------------------------------------------------------- */

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

/* Counts the runs in basic elements where each holds whole ones. */
static MPI_Datatype runs_type(struct runs *r, MPI_Datatype type)
{
	struct unit unit = basic_unit(type);
	for (MPI_Count i = 0; i < r->n; i++)
		if (r->len[i] % unit.size)
			return MPI_BYTE;
	for (MPI_Count i = 0; i < r->n; i++)
		r->len[i] /= unit.size;
	return unit.type;
}

static int pieces_type(const struct weft_lang_section *s, struct weft_buf buf, MPI_Datatype type,
		       MPI_Datatype *made_p)
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
	if (!err) {
		MPI_Datatype unit = runs_type(&r, type);
		err = weft_mpi_Type_create_hindexed(r.n, r.len, r.at, unit, made_p);
	}
	free(r.at);
	return err;
}

/* ---- all of it ------------------------------------------------------------------------------ */

/* How elements of a datatype lie in an array of elements of `elem` bytes. */
enum fit {
	FIT_DENSE, /* side by side without gaps, from their address on */
	FIT_WHOLE, /* each within one of the array's */
	FIT_OTHER
};

static enum fit fit_of(const struct weft_type *l, size_t elem)
{
	ptrdiff_t extent = weft_data_type_extent(l);
	if (l->flat && !l->true_lb && (size_t)extent == l->size)
		return FIT_DENSE;
	if ((size_t)extent == elem && l->true_lb >= 0 && (size_t)l->true_ub <= elem)
		return FIT_WHOLE;
	return FIT_OTHER;
}

/* Pieces may be bytes: the data consists of what `count` elements of `type` do all the same. */
static int give_signature(MPI_Datatype made, MPI_Count count, MPI_Datatype type)
{
	struct weft_mpi_type *m = weft_mpi_type_of(made);
	const struct weft_type *layout;
	weft_err err = weft_data_type_signed(m->layout, (size_t)count, signature_of(type), &layout);
	if (err)
		return MPI_ERR_NO_MEM;
	weft_data_type_unref(m->layout);
	m->layout = layout;
	return MPI_SUCCESS;
}

int weft_lang_section_type(const struct weft_lang_section *s, MPI_Count count, MPI_Datatype type,
			   MPI_Datatype *made_p)
{
	struct weft_buf buf;
	*made_p = MPI_DATATYPE_NULL;
	weft_assert(s->rank && s->rank <= RANK_MOST);
	if (count <= 0 || !weft_mpi_object_find(type, WEFT_MPI_TYPE) || !s->elem ||
	    weft_mpi_buf(s->base, count, type, &buf) || !buf.bytes)
		return MPI_SUCCESS;
	const struct weft_type *l = weft_mpi_type_of(type)->layout;
	enum fit fit = fit_of(l, s->elem);
	size_t elements = weft_lang_section_elements(s);
	MPI_Datatype made;
	int err;
	if (fit == FIT_DENSE) {
		if (buf.bytes > s->elem * elements)
			return MPI_ERR_COUNT;
		err = dense_type(s, (MPI_Count)buf.bytes, (MPI_Count)l->size, type, &made);
	} else if (fit == FIT_WHOLE) {
		if ((size_t)count > elements)
			return MPI_ERR_COUNT;
		err = whole_type(s, count, type, &made);
	} else {
		err = pieces_type(s, buf, type, &made);
	}
	if (err)
		return err;
	err = give_signature(made, count, type);
	if (!err)
		err = weft_mpi_Type_commit(&made);
	if (err)
		(void)weft_mpi_Type_free(&made);
	else
		*made_p = made;
	return err;
}

int weft_lang_section_spaced(const struct weft_lang_section *s, MPI_Datatype type,
			     MPI_Datatype *made_p)
{
	*made_p = MPI_DATATYPE_NULL;
	if (!weft_mpi_object_find(type, WEFT_MPI_TYPE) || !weft_mpi_type_of(type)->layout)
		return MPI_SUCCESS;
	const struct weft_type *l = weft_mpi_type_of(type)->layout;
	if (s->rank != 1 || (size_t)weft_data_type_extent(l) != s->elem ||
	    fit_of(l, s->elem) == FIT_OTHER)
		return MPI_ERR_BUFFER;
	int err = weft_mpi_Type_create_resized(type, 0, s->dim[0].stride, made_p);
	return err ? err : weft_mpi_Type_commit(made_p);
}
