/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lang_section.h - what a binding with array sections needs of the library: a datatype for data in a section, and a hook
 * at the ends of a request whose buffers are copies.
 *
 * Callers   any thread.
 * Source    MPI-5.0, "Support for subscripted arrays" of the Fortran chapter; ISO_Fortran_binding.h of Fortran 2018.
 */
#ifndef WEFT_MPI_LANG_SECTION_H
#define WEFT_MPI_LANG_SECTION_H

#include <stdbool.h>
#include <stddef.h>

#include "mpi/lang.h"

/* CFI_cdesc_t: gfortran and flang agree upon all of it but the order of `kinds`, which nothing here reads. */
struct weft_lang_section {
	void *base;
	size_t elem; /* bytes of an element */
	int version;
	unsigned char rank;
	unsigned char kinds[3];
	struct {
		ptrdiff_t lower, extent, stride; /* stride in bytes */
	} dim[];
};

/* Elements of the section; an assumed-size array (last extent -1) is contiguous and is not asked. */
WEFT_LANG_API size_t weft_lang_section_elements(const struct weft_lang_section *s);

/*
 * A committed datatype, to be used with count 1 at s->base, for what `count` elements of `type` would be in an array that has the
 * section's elements side by side.  MPI_DATATYPE_NULL: the arguments are mistaken; the call that gets them says how.
 * Returns MPI_SUCCESS, or MPI_ERR_COUNT: more than the section holds; MPI_ERR_NO_MEM.  The caller frees the datatype.
 */
WEFT_LANG_API int weft_lang_section_type(const struct weft_lang_section *s, MPI_Count count,
					 MPI_Datatype type, MPI_Datatype *made_p);

/* The same for an array of which only the element's place counts: `type` with the distance of two elements of a section of one
 * dimension as its extent.  MPI_ERR_BUFFER: there is no such distance. */
WEFT_LANG_API int weft_lang_section_spaced(const struct weft_lang_section *s, MPI_Datatype type,
					   MPI_Datatype *made_p);

/* Called in the thread that starts, completes or frees the request. */
struct weft_lang_hook {
	void (*start)(void *arg); /* a persistent request is about to start */
	void (*over)(void *arg);  /* the operation is over, and the program not told yet */
	void (*gone)(void *arg);  /* the request goes away; last */
};

/* Memory for a hook, before the request is made; NULL: none left. */
WEFT_LANG_API void *weft_lang_hook_new(const struct weft_lang_hook *hook);
/* Sets it at a request that was just made; MPI_REQUEST_NULL: the operation did not begin. */
WEFT_LANG_API void weft_lang_hook_set(void *hook, MPI_Request request, void *arg);
/* It was not needed. */
WEFT_LANG_API void weft_lang_hook_drop(void *hook);

#endif
