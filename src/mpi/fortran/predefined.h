/* SPDX-License-Identifier: BSD-3-Clause */
/* predefined.h - MPI_COMM_DUP_FN and others: external procedures in Fortran, known by their address. */
#ifndef WEFT_MPI_FORTRAN_PREDEFINED_H
#define WEFT_MPI_FORTRAN_PREDEFINED_H

enum weft_f_predefined { WEFT_F_USERS_FN, WEFT_F_NULL_FN, WEFT_F_DUP_FN };

enum weft_f_predefined weft_f_predefined(void (*fn)(void));

#endif
