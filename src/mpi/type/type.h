/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * type.h - datatypes: a layout (data/type.h) with a handle, a name, and how it was made.
 *
 * Callers   any thread.  A datatype's layout never changes, but by redefine; name and attributes have their lock.
 * Owner     an operation that outlives its call holds a reference on the object or on the layout.
 */
#ifndef WEFT_MPI_TYPE_H
#define WEFT_MPI_TYPE_H

#include "data/type.h"
#include "mpi/mpi_int.h"

/* How a datatype was made: MPI_Type_get_envelope, MPI_Type_get_contents.  Shared by duplicates. */
struct weft_mpi_type_contents;

struct weft_mpi_type {
	struct weft_mpi_head head;
	const struct weft_type *layout; /* referenced; NULL: an optional type we do not have */
	bool committed;
	bool predefined;
	int combiner;
	struct weft_mpi_type_contents *contents; /* NULL: named */
	const char *std_name;                    /* name of a predefined one */
	char *name; /* set by MPI_Type_set_name; under type_info.c's lock */
};

/* The element (data/basic.h) that a predefined datatype has, unless redefined; NONE: we have none. */
unsigned weft_mpi_type_usual(MPI_Datatype type);
/* A predefined datatype that stands for a basic element: towards the program's functions, as contents of a datatype. */
MPI_Datatype weft_mpi_type_of_basic(enum weft_basic b);
/* From now on a predefined datatype is of that element, NONE: not supported.  Not while it is in use. */
void weft_mpi_type_redefine(MPI_Datatype type, unsigned elem);

/* Bytes of the predefined contiguous types, by handle; 0: look further. */
extern uint8_t weft_mpi_type_bytes[WEFT_MPI_PREDEFINED_END];

weft_err weft_mpi_buf_slow(const void *base, MPI_Count count, MPI_Datatype type,
			   struct weft_buf *buf_p);

/*
 * The buffer that (base, count, type) means.  Records why and returns WEFT_ERR_ARG when the type is
 * not committed (raise MPI_ERR_TYPE), WEFT_ERR_LIMIT when count is too large for memory (raise
 * MPI_ERR_COUNT).  The handle and count >= 0 were checked.
 */
static inline weft_err weft_mpi_buf(const void *base, MPI_Count count, MPI_Datatype type,
				    struct weft_buf *buf_p)
{
	uint64_t h = (uint64_t)(uintptr_t)type;

	if (weft_likely(h < WEFT_MPI_PREDEFINED_END && weft_mpi_type_bytes[h] &&
			(uint64_t)count < (uint64_t)1 << 56)) {
		buf_p->base = (void *)(uintptr_t)base;
		buf_p->bytes = (size_t)count * weft_mpi_type_bytes[h];
		buf_p->type = NULL;
		buf_p->count = 0;
		return WEFT_OK;
	}
	return weft_mpi_buf_slow(base, count, type, buf_p);
}

/* The MPI error class of a failed weft_mpi_buf. */
static inline int weft_mpi_buf_class(weft_err err)
{
	return err == WEFT_ERR_LIMIT ? MPI_ERR_COUNT : MPI_ERR_TYPE;
}

void weft_mpi_type_unref_last(struct weft_mpi_type *t);

static inline void weft_mpi_type_ref(struct weft_mpi_type *t)
{
	weft_mpi_object_ref(&t->head);
}

static inline void weft_mpi_type_unref(struct weft_mpi_type *t)
{
	if (weft_mpi_object_unref(&t->head))
		weft_mpi_type_unref_last(t);
}

/* Basic elements in the first `bytes` bytes of any number of elements of t; MPI_UNDEFINED: the
 * bytes end inside one. */
MPI_Count weft_mpi_type_elements(const struct weft_mpi_type *t, uint64_t bytes);
/* The reverse, for MPI_Status_set_elements. */
uint64_t weft_mpi_type_elements_bytes(const struct weft_mpi_type *t, MPI_Count elements);
/* Whole elements of t in bytes; MPI_UNDEFINED: not a whole number. */
MPI_Count weft_mpi_type_count(const struct weft_mpi_type *t, uint64_t bytes);

/* A new datatype with a handle; takes over the references on layout and contents, in case of an
 * error too. */
int weft_mpi_type_new(const struct weft_type *layout, int combiner,
		      struct weft_mpi_type_contents *contents, MPI_Datatype *type_p);

/* Like MPI_Type_dup, without attributes and with the same contents as the original: what
 * MPI_Type_get_contents gives back. */
int weft_mpi_type_again(struct weft_mpi_type *t, MPI_Datatype *type_p);

#endif
