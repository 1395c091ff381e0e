/* SPDX-License-Identifier: BSD-3-Clause */
/* sizeof.c - MPI_SIZEOF: by the descriptor, or one function per size that the module's interfaces choose. */
#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

#include "mpi/fortran/facts.h"

/* The start of a descriptor of ISO_Fortran_binding.h, which compilers have in common. */
struct descriptor {
	void *base;
	size_t elem_len;
};

static void put_integer(void *to, size_t v)
{
	if (weft_f_wide)
		*(int64_t *)to = (int64_t)v;
	else
		*(int32_t *)to = (int32_t)v;
}

#pragma GCC visibility push(default)
void weft_f_sizeof(const struct descriptor *x, void *size, void *ierror);
#define DECLARE(n) void weft_f_sizeof_##n(const void *x, void *size, void *ierror);
DECLARE(1)
DECLARE(2)
DECLARE(4)
DECLARE(8)
DECLARE(16)
#pragma GCC visibility pop

void weft_f_sizeof(const struct descriptor *x, void *size, void *ierror)
{
	put_integer(size, x->elem_len);
	put_integer(ierror, MPI_SUCCESS);
}

#define DEFINE(n)                                                                                  \
	void weft_f_sizeof_##n(const void *x, void *size, void *ierror)                            \
	{                                                                                          \
		(void)x;                                                                           \
		put_integer(size, n);                                                              \
		put_integer(ierror, MPI_SUCCESS);                                                  \
	}
DEFINE(1)
DEFINE(2)
DEFINE(4)
DEFINE(8)
DEFINE(16)
