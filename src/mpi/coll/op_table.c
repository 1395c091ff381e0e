/* SPDX-License-Identifier: BSD-3-Clause */
/* op_table.c - predefined operations, user's operations and their life, MPI_Reduce_local. */
#include <limits.h>
#include <stdlib.h>

#include "mpi/coll/op.h"
#include "mpi/lang.h"

#define OPS(X)                                                                                     \
	X(SUM)                                                                                     \
	X(PROD)                                                                                    \
	X(MIN)                                                                                     \
	X(MAX) X(BAND) X(BOR) X(BXOR) X(LAND) X(LOR) X(LXOR) X(MINLOC) X(MAXLOC) X(REPLACE) X(NO_OP)

static struct weft_mpi_op predefined[] = {
#define X(id)                                                                                      \
	{.predefined = true,                                                                       \
	 .commutative = WEFT_OP_##id != WEFT_OP_REPLACE && WEFT_OP_##id != WEFT_OP_NO_OP,          \
	 .op = WEFT_OP_##id,                                                                       \
	 .name = "MPI_" #id},
	OPS(X)
#undef X
};

static const MPI_Op handles[] = {
#define X(id) MPI_##id,
	OPS(X)
#undef X
};

int weft_mpi_ops_init(void)
{
	for (size_t i = 0; i < weft_countof(predefined); i++)
		weft_mpi_object_predefine(&predefined[i].head, WEFT_MPI_OP, handles[i]);
	return MPI_SUCCESS;
}

void weft_mpi_ops_fini(void)
{
}

void weft_mpi_op_unref_last(struct weft_mpi_op *op)
{
	free(op);
}

static int op_new(MPI_User_function *fn, MPI_User_function_c *fn_c, int commute, MPI_Op *op_p)
{
	struct weft_mpi_op *op = calloc(1, sizeof *op);
	if (!op)
		return weft_mpi_err(MPI_ERR_NO_MEM, "no memory for an operation");
	if (!fn && !fn_c) {
		free(op);
		return weft_mpi_err(MPI_ERR_ARG, "the user's function is a null pointer");
	}
	op->fn = fn;
	op->fn_c = fn_c;
	op->lang = fn ? weft_mpi_lang_take((const void *)(uintptr_t)fn) : NULL;
	op->commutative = commute != 0;
	atomic_init(&op->head.x_refs, 1);
	if (weft_mpi_object_new(&op->head, WEFT_MPI_OP)) {
		free(op);
		return weft_mpi_err(MPI_ERR_NO_MEM, "no memory for an operation");
	}
	*op_p = (MPI_Op)(uintptr_t)op->head.handle;
	return MPI_SUCCESS;
}

int weft_mpi_Op_create(MPI_User_function *user_fn, int commute, MPI_Op *op)
{
	return op_new(user_fn, NULL, commute, op);
}

int weft_mpi_Op_create_c(MPI_User_function_c *user_fn, int commute, MPI_Op *op)
{
	return op_new(NULL, user_fn, commute, op);
}

int weft_mpi_Op_free(MPI_Op *op)
{
	struct weft_mpi_op *o = weft_mpi_op_of(*op);
	if (!o)
		return weft_mpi_err(MPI_ERR_OP, "invalid operation");
	if (o->predefined)
		return weft_mpi_err(MPI_ERR_OP, "%s is predefined and cannot be freed", o->name);
	weft_mpi_object_retire(&o->head);
	weft_mpi_op_unref(o);
	*op = MPI_OP_NULL;
	return MPI_SUCCESS;
}

int weft_mpi_Op_commutative(MPI_Op op, int *commute)
{
	*commute = weft_mpi_op_of(op)->commutative;
	return MPI_SUCCESS;
}

MPI_Op weft_mpi_Op_fromint(int op)
{
	return weft_mpi_handle_fromint(op);
}

int weft_mpi_Op_toint(MPI_Op op)
{
	return weft_mpi_handle_toint(op);
}

/* Calls the user's function, in pieces where its count is an int. */
static void call_user(const struct weft_coll_op *op, const void *in, void *inout, size_t count)
{
	const struct weft_mpi_op *o = op->arg;
	MPI_Datatype type = op->arg2;
	char *a = (char *)(uintptr_t)in, *b = inout;
	if (o->fn_c) {
		MPI_Count n = (MPI_Count)count;
		o->fn_c(a, b, &n, &type);
		return;
	}
	for (size_t done = 0; done < count;) {
		int n = count - done < INT_MAX ? (int)(count - done) : INT_MAX;
		if (o->lang)
			o->lang->op((weft_lang_fn *)o->fn, a, b, n, weft_mpi_handle_toint(type));
		else
			o->fn(a, b, &n, &type);
		done += (size_t)n;
		a += n * op->extent;
		b += n * op->extent;
	}
}

int weft_mpi_op_for(MPI_Op op, MPI_Datatype datatype, struct weft_coll_op *out_p)
{
	struct weft_mpi_op *o = weft_mpi_op_of(op);
	const struct weft_mpi_type *t = weft_mpi_type_of(datatype);
	if (!t->committed)
		return weft_mpi_err(MPI_ERR_TYPE, "the datatype is not committed: call "
						  "MPI_Type_commit first");
	*out_p = (struct weft_coll_op){.commutative = o->commutative};
	if (!o->predefined) {
		out_p->user = call_user;
		out_p->arg = o;
		out_p->arg2 = datatype;
		out_p->extent = weft_data_type_extent(t->layout);
		return MPI_SUCCESS;
	}
	out_p->fn = weft_data_reduce_find(o->op, t->layout->elem);
	if (!out_p->fn)
		return weft_mpi_err(MPI_ERR_OP, "%s is not defined for %s", o->name,
				    t->std_name ? t->std_name : "derived datatypes");
	return MPI_SUCCESS;
}

int weft_mpi_Reduce_local(const void *inbuf, void *inoutbuf, MPI_Count count, MPI_Datatype datatype,
			  MPI_Op op)
{
	struct weft_coll_op o;
	int err = weft_mpi_op_for(op, datatype, &o);
	if (err || !count)
		return err;
	if (inbuf == MPI_IN_PLACE || inoutbuf == MPI_IN_PLACE)
		return weft_mpi_err(MPI_ERR_BUFFER, "MPI_IN_PLACE is not allowed here");
	if (inbuf && inbuf == inoutbuf)
		return weft_mpi_err(MPI_ERR_BUFFER, "inbuf and inoutbuf are the same");
	weft_coll_op_apply(&o, inbuf, inoutbuf, (size_t)count);
	return MPI_SUCCESS;
}
