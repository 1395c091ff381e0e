/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mixed.c - a file type whose elements are longer or shorter in the file by different factors.
 *
 * Only MPI_Type_create_struct and its like make such a type, and their displacements are in bytes, which the program
 * takes from MPI_File_get_type_extent: they hold in the file as they are.  Each element has the length that it has in
 * the file; the layout is a list of these, neighbours joined.
 */
#include <stdlib.h>

#include "mpi/error.h"
#include "mpi/file/mpi_file.h"

struct list {
	const struct weft_mpi_datarep *rep;
	struct weft_file_view memory; /* the type's own layout */
	uint64_t pos;                 /* data bytes of it so far */
	MPI_Count *length, *at;
	MPI_Count n, room;
	int err;
};

static bool list_grow(struct list *l)
{
	MPI_Count room = l->room ? 2 * l->room : 64;
	MPI_Count *length = realloc(l->length, (size_t)room * sizeof *length);
	if (length)
		l->length = length;
	MPI_Count *at = length ? realloc(l->at, (size_t)room * sizeof *at) : NULL;
	if (at)
		l->at = at;
	if (!at)
		l->err = weft_mpi_err(MPI_ERR_NO_MEM, "no memory for a view");
	else
		l->room = room;
	return at != NULL;
}

/* One element, `bytes` long in the file. */
static void list_add(struct list *l, MPI_Count at, MPI_Count bytes)
{
	MPI_Count end = l->n ? l->at[l->n - 1] + l->length[l->n - 1] : at;
	if (at < end) {
		l->err = weft_mpi_err(MPI_ERR_UNSUPPORTED_DATAREP,
				      "in \"%s\" an element of the file type reaches into the "
				      "next one, %lld bytes from the type's beginning",
				      weft_mpi_datarep_name(l->rep), (long long)at);
		return;
	}
	if (l->n && at == end) {
		l->length[l->n - 1] += bytes;
		return;
	}
	if (l->n == l->room && !list_grow(l))
		return;
	l->at[l->n] = at;
	l->length[l->n++] = bytes;
}

static void add_run(void *arg, enum weft_basic basic, size_t n)
{
	struct list *l = arg;
	MPI_Aint bytes = 0;
	if (!l->err)
		l->err = weft_mpi_datarep_element(l->rep, basic, &bytes);
	for (size_t i = 0; !l->err && i < n; i++) {
		list_add(l, (MPI_Count)weft_file_view_offset(&l->memory, l->pos), bytes);
		l->pos += weft_data_basic_info[basic].size;
	}
}

/* The list as a datatype of bytes, as long as t. */
static int make_type(const struct list *l, const struct weft_mpi_type *t,
		     struct weft_mpi_type **type_p)
{
	MPI_Datatype bytes, whole;
	int err = weft_mpi_Type_create_hindexed(l->n, l->length, l->at, MPI_BYTE, &bytes);
	if (err)
		return err;
	err = weft_mpi_Type_create_resized(bytes, t->layout->lb, weft_data_type_extent(t->layout),
					   &whole);
	(void)weft_mpi_Type_free(&bytes); /* it exists */
	if (err)
		return err;
	err = weft_mpi_Type_commit(&whole);
	if (!err) {
		*type_p = weft_mpi_type_of(whole);
		weft_mpi_type_ref(*type_p);
	}
	(void)weft_mpi_Type_free(&whole);
	return err;
}

int weft_mpi_file_mixed_type(const struct weft_mpi_datarep *rep, const struct weft_mpi_type *t,
			     struct weft_mpi_type **type_p)
{
	struct list l = {.rep = rep, .memory = {.type = t->layout}};
	weft_data_sig_walk(t->layout->sig, add_run, &l);
	int err = l.err ? l.err : make_type(&l, t, type_p);
	free(l.length);
	free(l.at);
	return err;
}
