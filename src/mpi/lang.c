/* SPDX-License-Identifier: BSD-3-Clause */
/* lang.c - what a binding announces, and what it is told of an attribute, per thread. */
#include "mpi/lang.h"

#include <stddef.h>
#include <stdint.h>

#include "gen/mpi_impl.h"
#include "mpi/mpi_int.h"

static _Thread_local struct {
	const struct weft_lang *lang;
	const void *mark;
	const void *got;
	MPI_Aint number;
} here;

static void (*at_start)(void);

void weft_lang_at_start(void (*fn)(void))
{
	at_start = fn;
}

void weft_mpi_lang_start(void)
{
	if (at_start)
		at_start();
}

void weft_lang_next(const struct weft_lang *lang, const void *mark)
{
	here.lang = lang;
	here.mark = mark;
}

const struct weft_lang *weft_mpi_lang_take(const void *mark)
{
	const struct weft_lang *lang = here.lang;

	if (!lang || here.mark != mark)
		return NULL;
	here.lang = NULL;
	return lang;
}

void weft_mpi_lang_got(const void *value, MPI_Aint number)
{
	here.got = value;
	here.number = number;
}

MPI_Aint weft_lang_attr(const void *value)
{
	return here.got == value ? here.number : (MPI_Aint)(intptr_t)value;
}

int weft_lang_raise(int code, const char *reason, enum weft_lang_object kind, int handle,
		    const char *routine)
{
	code = weft_mpi_err(code, "%s", reason);
	switch (kind) {
	case WEFT_LANG_COMM:
		return weft_mpi_raise_comm(weft_mpi_Comm_fromint(handle), code, routine);
	case WEFT_LANG_WIN:
		return weft_mpi_raise_win(weft_mpi_Win_fromint(handle), code, routine);
	case WEFT_LANG_FILE:
		return weft_mpi_raise_file(weft_mpi_File_fromint(handle), code, routine);
	default:
		return weft_mpi_raise(code, routine);
	}
}
