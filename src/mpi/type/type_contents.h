/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * type_contents.h - the arguments a datatype was made with, in their order.
 *
 * One list serves both forms: a count is an integer in the int form and a large count in the other;
 * an address is an address or a large count.
 */
#ifndef WEFT_MPI_TYPE_CONTENTS_H
#define WEFT_MPI_TYPE_CONTENTS_H

#include "mpi/type/type.h"

enum weft_mpi_item_kind {
	WEFT_MPI_ITEM_INT,   /* an int in both forms */
	WEFT_MPI_ITEM_COUNT, /* int or large count */
	WEFT_MPI_ITEM_ADDR,  /* address or large count */
};

struct weft_mpi_item {
	uint8_t kind;
	int64_t value;
};

struct weft_mpi_type_contents {
	_Atomic int x_refs;
	bool large; /* made by a large-count constructor: only the large-count functions can tell */
	bool failed; /* memory ran out while it was filled */
	size_t n, cap;
	struct weft_mpi_item *item;
	size_t types_n, types_cap;
	struct weft_mpi_type **types; /* referenced */
};

/* NULL: no memory. */
struct weft_mpi_type_contents *weft_mpi_contents_new(void);
void weft_mpi_contents_ref(struct weft_mpi_type_contents *c);
void weft_mpi_contents_unref(struct weft_mpi_type_contents *c);
/* Adders note a failure in c->failed. */
void weft_mpi_contents_add(struct weft_mpi_type_contents *c, enum weft_mpi_item_kind kind,
			   int64_t value);
void weft_mpi_contents_add_all(struct weft_mpi_type_contents *c, enum weft_mpi_item_kind kind,
			       const MPI_Count *values, MPI_Count n);
void weft_mpi_contents_add_type(struct weft_mpi_type_contents *c, struct weft_mpi_type *t);

#endif
