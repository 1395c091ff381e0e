/* SPDX-License-Identifier: BSD-3-Clause */
/* callbacks_c.c - callbacks.f90's other language. */
#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

intptr_t c_reads(int what, int object, int key);
int c_raises(int what, int object, int code);
int c_reduces(int op, int datatype, int count);

/* what: 0 a communicator, 1 a datatype, 2 a window.  C gets the address of what Fortran has set. */
intptr_t c_reads(int what, int object, int key)
{
	MPI_Aint *value = NULL;
	int flag = 0;

	if (what == 0)
		MPI_Comm_get_attr(MPI_Comm_fromint(object), key, &value, &flag);
	else if (what == 1)
		MPI_Type_get_attr(MPI_Type_fromint(object), key, &value, &flag);
	else
		MPI_Win_get_attr(MPI_Win_fromint(object), key, &value, &flag);
	return flag ? *value : 0;
}

/* The handler of a communicator, window, file or session is called. */
int c_raises(int what, int object, int code)
{
	switch (what) {
	case 0:
		return MPI_Comm_call_errhandler(MPI_Comm_fromint(object), code);
	case 1:
		return MPI_Win_call_errhandler(MPI_Win_fromint(object), code);
	case 2:
		return MPI_File_call_errhandler(MPI_File_fromint(object), code);
	default:
		return MPI_Session_call_errhandler(MPI_Session_fromint(object), code);
	}
}

/* Reduces pairs of 24 bytes with an operation of Fortran's; 1: as it should. */
int c_reduces(int op, int datatype, int count)
{
	double a[15], b[15];

	for (int i = 0; i < 15; i++) {
		a[i] = i;
		b[i] = 100 - i;
	}
	MPI_Reduce_local(a, b, count, MPI_Type_fromint(datatype), MPI_Op_fromint(op));
	for (int i = 0; i < 15; i += 3)
		if (b[i] != 100 - i || b[i + 1] != 100 || b[i + 2] != 100 - (i + 2))
			return 0;
	return 1;
}
