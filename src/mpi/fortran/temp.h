/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * temp.h - memory for one call: converted arrays and texts.
 *
 * Small ones lie in the structure, on the caller's stack; larger ones are allocated.
 * Errors    a get that fails returns NULL and sets failed; later ones may succeed.
 */
#ifndef WEFT_MPI_FORTRAN_TEMP_H
#define WEFT_MPI_FORTRAN_TEMP_H

#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weft_f_temp {
	struct weft_f_block *blocks;
	size_t used;
	bool failed;
	alignas(16) char small[192];
};

static inline void weft_f_temp_open(struct weft_f_temp *temp)
{
	temp->blocks = NULL;
	temp->used = 0;
	temp->failed = false;
}

/* n things of that size; a negative n gives none, for the C function to complain about. */
void *weft_f_temp_get(struct weft_f_temp *temp, int64_t n, size_t size);
void weft_f_temp_free(struct weft_f_temp *temp);

static inline void weft_f_temp_close(struct weft_f_temp *temp)
{
	if (temp->blocks)
		weft_f_temp_free(temp);
}

#define weft_f_handles(temp, n, size) weft_f_temp_get(temp, n, size)

/* A CHARACTER as a C string: without blanks at its end, and at its start if `both`. */
char *weft_f_string(struct weft_f_temp *temp, const char *text, size_t len, bool both);
/* An empty C string of that size. */
char *weft_f_text(struct weft_f_temp *temp, size_t size);
/* A C string into a CHARACTER: padded with blanks, cut where it does not fit. */
void weft_f_text_out(char *to, size_t len, const char *text);

/* Raises the lack of memory; returns its class. */
int weft_f_no_memory(void);

#endif
