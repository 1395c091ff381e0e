/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * facts.h - what the library knows of the program's Fortran compiler, and the sentinels.
 *
 * mpif.h and the modules declare common blocks.  A sentinel is one, so that it is one variable in the program and in the
 * library, known by its address.  A fact is the *size* of one: weft_f_int_is_ has as many bytes as an INTEGER, and so on.  The
 * linker exports them from the program because this library names them, so a program need not be compiled or linked in any way of its own.
 */
#ifndef WEFT_MPI_FORTRAN_FACTS_H
#define WEFT_MPI_FORTRAN_FACTS_H

/* INTEGERs have 8 bytes.  Set before main(). */
extern int weft_f_wide;
/* .TRUE. */
extern int weft_f_true_value;

/* Tells the library under MPI what is known; at the first start of MPI. */
void weft_f_facts_tell(void);

#pragma GCC visibility push(default)
/* The program's own, if it has them; a long each, so that they are at least as large. */
extern long weft_f_bottom_[], weft_f_in_place_[], weft_f_buffer_automatic_[],
	weft_f_status_ignore_[], weft_f_statuses_ignore_[], weft_f_errcodes_ignore_[],
	weft_f_unweighted_[], weft_f_weights_empty_[], weft_f_argv_null_[], weft_f_argvs_null_[];
#pragma GCC visibility pop

#endif
