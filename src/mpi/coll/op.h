/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * op.h - operations: predefined kernels by element, or a user's function.
 *
 * Callers   for: any thread.  A user's function runs only on an application thread inside an MPI
 *           call; coll/ stops before it and goes on in the next call.
 */
#ifndef WEFT_MPI_OP_H
#define WEFT_MPI_OP_H

#include "coll/coll.h"
#include "data/reduce.h"
#include "mpi/mpi_int.h"
#include "mpi/type/type.h"

struct weft_mpi_op {
	struct weft_mpi_head head;
	bool predefined;
	bool commutative;
	enum weft_op op; /* predefined */
	const char *name;
	MPI_User_function *fn; /* user's, in one of the two forms */
	MPI_User_function_c *fn_c;
	const struct weft_lang *lang; /* fn's language; NULL: C */
};

void weft_mpi_op_unref_last(struct weft_mpi_op *op);

static inline void weft_mpi_op_unref(struct weft_mpi_op *op)
{
	if (weft_mpi_object_unref(&op->head))
		weft_mpi_op_unref_last(op);
}

/*
 * How coll/ shall apply op to elements of datatype.  MPI_SUCCESS, or MPI_ERR_OP: not defined for
 * that datatype, MPI_ERR_TYPE: not committed.  *out_p borrows op and the datatype: a caller that
 * keeps it holds references.
 */
int weft_mpi_op_for(MPI_Op op, MPI_Datatype datatype, struct weft_coll_op *out_p);

#endif
