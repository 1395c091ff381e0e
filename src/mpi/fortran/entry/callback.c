/* SPDX-License-Identifier: BSD-3-Clause */
/* callback.c - the program's operations, error handlers, generalized requests and data representations. */
#include <stdlib.h>
#include <string.h>

#include "mpi/fortran/fort.h"
#include "mpi/lang.h"

/* ---- operations and error handlers --------------------------------------------------------- */

typedef void op_fn(void *in, void *inout, I *n, I *datatype);
typedef void handler_fn(I *object, I *code);

static void call_op(weft_lang_fn *fn, void *in, void *inout, int n, int datatype)
{
	I count = n, type = datatype;

	((op_fn *)fn)(in, inout, &count, &type);
}

static void call_handler(weft_lang_fn *fn, int object, int *code)
{
	I o = object, c = *code;

	((handler_fn *)fn)(&o, &c);
	*code = weft_f_int(c);
}

static const struct weft_lang here = {.op = call_op, .errhandler = call_handler};

void ENTRY(op_create)(weft_f_function *user_fn, const I *commute, I *op, I *ierror)
{
	WIDE(op_create, (user_fn, (void *)commute, (void *)op, (void *)ierror));
	MPI_Op made = MPI_OP_NULL;
	weft_lang_next(&here, (void *)user_fn);
	int code = CALL(Op_create)((MPI_User_function *)user_fn, weft_f_true(*commute), &made);
	weft_lang_next(NULL, NULL);
	if (!code)
		*op = OUT_HANDLE(Op, made);
	ERROR_OUT(ierror, code);
}

#define HANDLER(Object, object)                                                                    \
	void ENTRY(object##_create_errhandler)(weft_f_function * fn, I * errhandler, I * ierror)   \
	{                                                                                          \
		WIDE(object##_create_errhandler, (fn, (void *)errhandler, (void *)ierror));        \
		MPI_Errhandler made = MPI_ERRHANDLER_NULL;                                         \
		weft_lang_next(&here, (void *)fn);                                                 \
		int code = CALL(Object##_create_errhandler)(                                       \
			(MPI_##Object##_errhandler_function *)fn, &made);                          \
		weft_lang_next(NULL, NULL);                                                        \
		if (!code)                                                                         \
			*errhandler = OUT_HANDLE(Errhandler, made);                                \
		ERROR_OUT(ierror, code);                                                           \
	}
HANDLER(Comm, comm)
HANDLER(Win, win)
HANDLER(File, file)
HANDLER(Session, session)

/* ---- generalized requests ------------------------------------------------------------------ */

typedef void query_fn(MPI_Aint *extra, I *status, I *ierror);
typedef void free_fn(MPI_Aint *extra, I *ierror);
typedef void cancel_fn(MPI_Aint *extra, I *complete, I *ierror);

/* Lives until free_fn has been called. */
struct grequest {
	query_fn *query;
	free_fn *free;
	cancel_fn *cancel;
	MPI_Aint extra;
};

static int grequest_query(void *state, MPI_Status *status)
{
	struct grequest *g = state;
	I ierror = MPI_SUCCESS;
#if WEFT_F_INT == 8
	I s[8];
	weft_f_status_out_8(s, status);
	g->query(&g->extra, s, &ierror);
	weft_f_status_in_8(status, s);
#else
	g->query(&g->extra, (I *)status, &ierror);
#endif
	return weft_f_int(ierror);
}

static int grequest_free(void *state)
{
	struct grequest *g = state;
	I ierror = MPI_SUCCESS;

	g->free(&g->extra, &ierror);
	free(g);
	return weft_f_int(ierror);
}

static int grequest_cancel(void *state, int complete)
{
	struct grequest *g = state;
	I c = weft_f_logical(complete), ierror = MPI_SUCCESS;

	g->cancel(&g->extra, &c, &ierror);
	return weft_f_int(ierror);
}

void ENTRY(grequest_start)(weft_f_function *query, weft_f_function *release,
			   weft_f_function *cancel, const MPI_Aint *extra_state, I *request,
			   I *ierror)
{
	WIDE(grequest_start,
	     (query, release, cancel, (void *)extra_state, (void *)request, (void *)ierror));
	MPI_Request made = MPI_REQUEST_NULL;
	struct grequest *g = malloc(sizeof(*g));
	if (!g) {
		ERROR_OUT(ierror, weft_f_no_memory());
		return;
	}
	*g = (struct grequest){(query_fn *)query, (free_fn *)release, (cancel_fn *)cancel,
			       *extra_state};
	int code = CALL(Grequest_start)(grequest_query, grequest_free, grequest_cancel, g, &made);
	if (code)
		free(g);
	else
		*request = OUT_HANDLE(Request, made);
	ERROR_OUT(ierror, code);
}

/* ---- data representations ------------------------------------------------------------------ */

typedef void conversion_fn(void *userbuf, I *datatype, I *count, void *filebuf,
			   MPI_Offset *position, MPI_Aint *extra, I *ierror);
typedef void extent_fn(I *datatype, MPI_Aint *extent, MPI_Aint *extra, I *ierror);

/* Lives as long as the process: MPI has no way to forget a representation. */
struct datarep {
	conversion_fn *read, *write;
	extent_fn *extent;
	MPI_Aint extra;
};

static int convert_by_user(conversion_fn *fn, struct datarep *d, void *userbuf,
			   MPI_Datatype datatype, int count, void *filebuf, MPI_Offset position)
{
	I type = OUT_HANDLE(Type, datatype), n = count, ierror = MPI_SUCCESS;

	fn(userbuf, &type, &n, filebuf, &position, &d->extra, &ierror);
	return weft_f_int(ierror);
}

static int datarep_read(void *userbuf, MPI_Datatype datatype, int count, void *filebuf,
			MPI_Offset position, void *state)
{
	struct datarep *d = state;

	return convert_by_user(d->read, d, userbuf, datatype, count, filebuf, position);
}

static int datarep_write(void *userbuf, MPI_Datatype datatype, int count, void *filebuf,
			 MPI_Offset position, void *state)
{
	struct datarep *d = state;

	return convert_by_user(d->write, d, userbuf, datatype, count, filebuf, position);
}

static int datarep_extent(MPI_Datatype datatype, MPI_Aint *extent, void *state)
{
	struct datarep *d = state;
	I type = OUT_HANDLE(Type, datatype), ierror = MPI_SUCCESS;

	d->extent(&type, extent, &d->extra, &ierror);
	return weft_f_int(ierror);
}

void ENTRY(register_datarep)(const char *datarep, weft_f_function *read, weft_f_function *write,
			     weft_f_function *extent, const MPI_Aint *extra_state, I *ierror,
			     size_t datarep_len)
{
	WIDE(register_datarep, ((void *)datarep, read, write, extent, (void *)extra_state,
				(void *)ierror, datarep_len));
	struct weft_f_temp temp;
	weft_f_temp_open(&temp);
	char *name = weft_f_string(&temp, datarep, datarep_len, false);
	struct datarep *d = malloc(sizeof(*d));
	if (!name || !d) {
		ERROR_OUT(ierror, weft_f_no_memory());
		free(d);
		weft_f_temp_close(&temp);
		return;
	}
	*d = (struct datarep){(conversion_fn *)read, (conversion_fn *)write, (extent_fn *)extent,
			      *extra_state};
	bool no_read = weft_f_predefined(read) == WEFT_F_NULL_FN,
	     no_write = weft_f_predefined(write) == WEFT_F_NULL_FN;
	int code = CALL(Register_datarep)(name, no_read ? MPI_CONVERSION_FN_NULL : datarep_read,
					  no_write ? MPI_CONVERSION_FN_NULL : datarep_write,
					  datarep_extent, d);
	if (code)
		free(d);
	weft_f_temp_close(&temp);
	ERROR_OUT(ierror, code);
}
