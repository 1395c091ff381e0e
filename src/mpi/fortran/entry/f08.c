/* SPDX-License-Identifier: BSD-3-Clause */
/* f08.c - what mpi_f08 has otherwise than mpif.h: a buffer that comes back, handles that are compared. */
#include "mpi/fortran/fort.h"
#include "mpi/fortran/section.h"

#if WEFT_F_INT == 4
#pragma GCC visibility push(default)

void WEFT_F_NAMED(buffer_detach_f08)(void **buffer_addr, void *size, void *ierror);
void WEFT_F_NAMED(comm_detach_buffer_f08)(const void *comm, void **buffer_addr, void *size,
					  void *ierror);
void WEFT_F_NAMED(session_detach_buffer_f08)(const void *session, void **buffer_addr, void *size,
					     void *ierror);

static int handle_in(const void *integer)
{
	return weft_f_wide ? (int)*(const int64_t *)integer : *(const int32_t *)integer;
}

static void size_out(void *size, void *ierror, MPI_Count n, int code)
{
	if (weft_f_wide && !code)
		*(int64_t *)size = n;
	else if (!code)
		*(int32_t *)size = n > INT32_MAX ? MPI_UNDEFINED : (int32_t)n;
	weft_f_error_out(ierror, code);
}

void WEFT_F_NAMED(buffer_detach_f08)(void **buffer_addr, void *size, void *ierror)
{
	MPI_Count n = 0;
	int code = CALL(Buffer_detach_c)(buffer_addr, &n);
	size_out(size, ierror, n, code);
}

void WEFT_F_NAMED(comm_detach_buffer_f08)(const void *comm, void **buffer_addr, void *size,
					  void *ierror)
{
	MPI_Count n = 0;
	int code = CALL(Comm_detach_buffer_c)(IN_HANDLE(Comm, handle_in(comm)), buffer_addr, &n);
	size_out(size, ierror, n, code);
}

void WEFT_F_NAMED(session_detach_buffer_f08)(const void *session, void **buffer_addr, void *size,
					     void *ierror)
{
	MPI_Count n = 0;
	int code = CALL(Session_detach_buffer_c)(IN_HANDLE(Session, handle_in(session)),
						 buffer_addr, &n);
	size_out(size, ierror, n, code);
}

/* ---- handles that are compared -------------------------------------------------------------- */

#ifndef WEFT_F_PMPI
/* LOGICAL has the size of an INTEGER; a caller reads no more of the register. */
#define COMPARE(object)                                                                            \
	int64_t weft_f_eq_##object##_(const void *a, const void *b);                               \
	int64_t weft_f_ne_##object##_(const void *a, const void *b);                               \
	int64_t weft_f_eq_##object##_(const void *a, const void *b)                                \
	{                                                                                          \
		return handle_in(a) == handle_in(b) ? weft_f_true_value : 0;                       \
	}                                                                                          \
	int64_t weft_f_ne_##object##_(const void *a, const void *b)                                \
	{                                                                                          \
		return handle_in(a) != handle_in(b) ? weft_f_true_value : 0;                       \
	}
COMPARE(comm)
COMPARE(datatype)
COMPARE(errhandler)
COMPARE(file)
COMPARE(group)
COMPARE(info)
COMPARE(message)
COMPARE(op)
COMPARE(request)
COMPARE(session)
COMPARE(win)
#endif
#pragma GCC visibility pop
#endif
