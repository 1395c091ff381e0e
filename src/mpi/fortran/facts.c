/* SPDX-License-Identifier: BSD-3-Clause */
/* facts.c - the program's Fortran compiler, by the sizes of common blocks; the sentinels. */
#include "mpi/fortran/facts.h"

#include <dlfcn.h>
#include <link.h>
#include <mpi.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/lang.h"

int weft_f_wide;
int weft_f_true_value = 1;

long weft_f_bottom_[1], weft_f_in_place_[1], weft_f_buffer_automatic_[1], weft_f_status_ignore_[8],
	weft_f_statuses_ignore_[8], weft_f_errcodes_ignore_[1], weft_f_unweighted_[1],
	weft_f_weights_empty_[1], weft_f_argv_null_[1], weft_f_argvs_null_[1];

/* The sum of a fact's two blocks, in a program whose parts agree: tools/abi/abi_fortran.py. */
#define FACT_SUM 40

#define FACT(x)                                                                                    \
	extern char weft_f_##x##_is_[] __attribute__((weak, visibility("default")));               \
	extern char weft_g_##x##_is_[] __attribute__((weak, visibility("default")));
FACT(int)
FACT(real)
FACT(dble)
FACT(true)

static int size_integer, size_real, size_double;
static bool mixed;

/* How large a symbol is; 0: there is none. */
static long size_of(const char *name, void *address)
{
	Dl_info info;
	const ElfW(Sym) *sym = NULL;

	if (!address || !dladdr1(address, &info, (void **)&sym, RTLD_DL_SYMENT) || !sym ||
	    !info.dli_sname || strcmp(info.dli_sname, name) != 0)
		return 0;
	return (long)sym->st_size;
}

static int fact_of(const char *f_name, void *f, const char *g_name, void *g, int otherwise)
{
	long size = size_of(f_name, f);

	if (size == 0)
		return otherwise;
	if (size + size_of(g_name, g) != FACT_SUM)
		mixed = true;
	return (int)size;
}

#define READ(x, otherwise)                                                                         \
	fact_of("weft_f_" #x "_is_", weft_f_##x##_is_, "weft_g_" #x "_is_", weft_g_##x##_is_,      \
		otherwise)

__attribute__((constructor)) static void read_facts(void)
{
	size_integer = READ(int, 4);
	size_real = READ(real, 4);
	size_double = READ(dble, 8);
	weft_f_true_value = READ(true, 3) - 2;
	weft_f_wide = size_integer == 8;
	/* A main program in C starts MPI by itself. */
	if (weft_f_int_is_)
		weft_lang_at_start(weft_f_facts_tell);
}

static int tell_sizes(void)
{
	static const char *const keys[] = {"mpi_logical_size", "mpi_integer_size", "mpi_real_size",
					   "mpi_double_precision_size"};
	const int sizes[] = {size_integer, size_integer, size_real, size_double};
	MPI_Info info, known;

	if (PMPI_Abi_get_fortran_info(&known) != MPI_SUCCESS || known != MPI_INFO_NULL) {
		if (known != MPI_INFO_NULL)
			PMPI_Info_free(&known);
		return MPI_SUCCESS;
	}
	int err = PMPI_Info_create(&info);
	for (int i = 0; !err && i < 4; i++) {
		char text[4];
		snprintf(text, sizeof(text), "%d", sizes[i]);
		err = PMPI_Info_set(info, keys[i], text);
	}
	if (!err)
		err = PMPI_Abi_set_fortran_info(info);
	if (!err)
		PMPI_Info_free(&info);
	return err;
}

static void tell_logicals(void)
{
	int yes = 0, no = 0, known = 0;

	if (PMPI_Abi_get_fortran_booleans(4, &yes, &no, &known) == MPI_SUCCESS && known) {
		weft_f_true_value = yes;
		return;
	}
	yes = weft_f_true_value;
	PMPI_Abi_set_fortran_booleans(4, &yes, &no);
}

void weft_f_facts_tell(void)
{
	static atomic_flag told = ATOMIC_FLAG_INIT;

	/* Relaxed: the flag only picks the first caller. */
	if (atomic_flag_test_and_set_explicit(&told, memory_order_relaxed))
		return;
	if (mixed) {
		fprintf(stderr, "weft: parts of this program were compiled for INTEGER, REAL or "
				"LOGICAL of different sizes "
				"(-i8, -r8 and such): compile all of them alike\n");
		exit(1);
	}
	tell_sizes();
	tell_logicals();
}
