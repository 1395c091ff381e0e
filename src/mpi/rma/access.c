/* SPDX-License-Identifier: BSD-3-Clause */
/* access.c - put, get, accumulate and their kin: from MPI's arguments to those of rma/. */
#include <stdlib.h>

#include "mpi/aid/check.h"
#include "mpi/coll/op.h"
#include "mpi/p2p/p2p.h"
#include "mpi/p2p/request.h"
#include "mpi/rma/win.h"
#include "rma/acc.h"

/* ---- arguments ---------------------------------------------------------------------------- */

static int disp_wrong(struct weft_mpi_win *w, int rank, MPI_Aint disp, int64_t *at_p)
{
	bool dynamic = w->flavor == MPI_WIN_FLAVOR_DYNAMIC;
	if (disp < 0 && !dynamic)
		return weft_mpi_err(MPI_ERR_DISP, "the displacement is negative (%lld)",
				    (long long)disp);
	if (__builtin_mul_overflow((int64_t)disp, dynamic ? 1 : weft_rma_unit(w->rma, rank), at_p))
		return weft_mpi_err(MPI_ERR_DISP, "the displacement is too large (%lld)",
				    (long long)disp);
	return MPI_SUCCESS;
}

/* The target's side of an access; the rank may be accessed. */
static int there_of(struct weft_mpi_win *w, int rank, MPI_Aint disp, MPI_Count count,
		    MPI_Datatype type, struct weft_rma_there *t)
{
	struct weft_buf b;
	weft_err err = weft_mpi_buf(NULL, count, type, &b);
	if (weft_unlikely(err))
		return weft_mpi_p2p_buf_wrong(err, &b);
	*t = (struct weft_rma_there){
		.rank = rank, .count = b.count, .type = b.type, .bytes = b.bytes};
	int code = disp_wrong(w, rank, disp, &t->at);
	/* A flat layout may begin behind its origin. */
	t->at += (int64_t)(intptr_t)b.base;
	return code;
}

static int sizes_differ(const struct weft_buf *here, const struct weft_rma_there *there)
{
	if (weft_likely(here->bytes == there->bytes))
		return MPI_SUCCESS;
	return weft_mpi_err(MPI_ERR_TYPE, "%zu bytes at the origin, %zu at the target", here->bytes,
			    there->bytes);
}

/* What an access that was started came to. */
static int access_err(struct weft_mpi_win *w, const struct weft_rma_there *t, weft_err err)
{
	if (weft_likely(!err))
		return MPI_SUCCESS;
	if (err == WEFT_ERR_ARG && w->flavor == MPI_WIN_FLAVOR_DYNAMIC)
		return weft_mpi_err(MPI_ERR_RMA_RANGE, "%zu bytes at address %#llx of rank %d",
				    t->bytes, (unsigned long long)t->at, t->rank);
	if (err == WEFT_ERR_ARG)
		return weft_mpi_err(MPI_ERR_RMA_RANGE,
				    "%zu bytes from byte %lld on of rank %d, which has %llu",
				    t->bytes, (long long)t->at, t->rank,
				    (unsigned long long)weft_rma_len(w->rma, t->rank));
	return weft_mpi_win_err(w, t->rank, err);
}

/* An access has begun: WEFT_CHECK compares it with others. */
static void check_begun(struct weft_mpi_win *w, const char *call, enum weft_mpi_check_access kind,
			struct weft_rma_reduction red, const struct weft_rma_there *t, int err)
{
	if (weft_unlikely(w->log) && !err)
		weft_mpi_check_win_access(w, call, kind, red.op, red.elem, t);
}

/* Both sides of an access to `rank`, checked.  rank is not MPI_PROC_NULL. */
static int both_sides(struct weft_mpi_win *w, const void *addr, MPI_Count count, MPI_Datatype type,
		      int rank, MPI_Aint disp, MPI_Count there_count, MPI_Datatype there_type,
		      struct weft_buf *here, struct weft_rma_there *there)
{
	int err = weft_mpi_win_access(w, rank);
	if (!err)
		err = weft_mpi_p2p_buf(addr, count, type, here);
	if (!err)
		err = there_of(w, rank, disp, there_count, there_type, there);
	return err ? err : sizes_differ(here, there);
}

/* ---- requests ----------------------------------------------------------------------------- */

struct request_op {
	struct weft_rma_op op;
	MPI_Win win;
};

static struct weft_completion *op_wait_on(struct weft_mpi_request *r)
{
	return &((struct request_op *)r->impl)->op.done;
}

/* A window that was freed has no errors any more. */
static struct weft_mpi_comm *op_owner(struct weft_mpi_request *r)
{
	struct weft_mpi_win *w = weft_mpi_window(((struct request_op *)r->impl)->win);
	return w ? w->comm : NULL;
}

static int op_finish(struct weft_mpi_request *r, MPI_Status *st)
{
	struct request_op *o = r->impl;
	/* Relaxed: ordered by the completion. */
	weft_err err = (weft_err)atomic_load_explicit(&o->op.x_err, memory_order_relaxed);
	weft_mpi_status_set(st, MPI_ANY_SOURCE, MPI_ANY_TAG, 0, false);
	return err == WEFT_ERR_ARG ? weft_mpi_err(MPI_ERR_RMA_RANGE, "a one-sided request")
	       : err               ? weft_mpi_err_of(err)
				   : MPI_SUCCESS;
}

static void op_free(struct weft_mpi_request *r)
{
	free(r->impl);
}

static const struct weft_mpi_request_ops op_ops = {.name = "one-sided",
						   .wait_on = op_wait_on,
						   .finish = op_finish,
						   .owner = op_owner,
						   .free = op_free};

/* A request around an operation, which the caller ends by op_started or drops. */
static struct weft_mpi_request *request_new(MPI_Win win, struct weft_rma_op **op_p)
{
	struct request_op *o = malloc(sizeof *o);
	struct weft_mpi_request *r = o ? weft_mpi_request_new(&op_ops, NULL, o, false) : NULL;
	if (!r) {
		free(o);
		return NULL;
	}
	weft_rma_op_init(&o->op);
	o->win = win;
	*op_p = &o->op;
	return r;
}

/* The call is over: hands out the request, or, after an error, waits for what it began. */
static int request_end(struct weft_mpi_request *r, struct weft_rma_op *op, int err,
		       MPI_Request *request)
{
	weft_rma_op_started(op);
	if (err) {
		weft_mpi_request_wait(r);
		weft_mpi_request_delete(r);
		return err;
	}
	*request = weft_mpi_request_handle(r);
	return MPI_SUCCESS;
}

/* ---- put and get -------------------------------------------------------------------------- */

static int put_or_get(bool put, const void *addr, MPI_Count count, MPI_Datatype type, int rank,
		      MPI_Aint disp, MPI_Count there_count, MPI_Datatype there_type, MPI_Win win,
		      struct weft_rma_op *op)
{
	struct weft_mpi_win *w = weft_mpi_window(win);
	struct weft_buf here;
	struct weft_rma_there there;
	if (rank == MPI_PROC_NULL)
		return MPI_SUCCESS;
	int err = both_sides(w, addr, count, type, rank, disp, there_count, there_type, &here,
			     &there);
	if (weft_unlikely(err))
		return err;
	weft_err done = put ? weft_rma_put(w->rma, &here, &there, op)
			    : weft_rma_get(w->rma, &here, &there, op);
	err = access_err(w, &there, done);
	const char *call = !put ? "MPI_Get" : op ? "MPI_Rput" : "MPI_Put";
	if (put || !op) /* the end of a get's request is not seen */
		check_begun(w, call, put ? WEFT_MPI_CHECK_PUT : WEFT_MPI_CHECK_GET,
			    (struct weft_rma_reduction){0}, &there, err);
	return err;
}

int weft_mpi_Put(const void *origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype,
		 int target_rank, MPI_Aint target_disp, MPI_Count target_count,
		 MPI_Datatype target_datatype, MPI_Win win)
{
	return put_or_get(true, origin_addr, origin_count, origin_datatype, target_rank,
			  target_disp, target_count, target_datatype, win, NULL);
}

int weft_mpi_Get(void *origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype,
		 int target_rank, MPI_Aint target_disp, MPI_Count target_count,
		 MPI_Datatype target_datatype, MPI_Win win)
{
	return put_or_get(false, origin_addr, origin_count, origin_datatype, target_rank,
			  target_disp, target_count, target_datatype, win, NULL);
}

static int request_put_or_get(bool put, const void *addr, MPI_Count count, MPI_Datatype type,
			      int rank, MPI_Aint disp, MPI_Count there_count,
			      MPI_Datatype there_type, MPI_Win win, MPI_Request *request)
{
	struct weft_rma_op *op;
	struct weft_mpi_request *r = request_new(win, &op);
	if (!r)
		return weft_mpi_err(MPI_ERR_NO_MEM, "out of memory");
	int err = put_or_get(put, addr, count, type, rank, disp, there_count, there_type, win, op);
	return request_end(r, op, err, request);
}

int weft_mpi_Rput(const void *origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype,
		  int target_rank, MPI_Aint target_disp, MPI_Count target_count,
		  MPI_Datatype target_datatype, MPI_Win win, MPI_Request *request)
{
	return request_put_or_get(true, origin_addr, origin_count, origin_datatype, target_rank,
				  target_disp, target_count, target_datatype, win, request);
}

int weft_mpi_Rget(void *origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype,
		  int target_rank, MPI_Aint target_disp, MPI_Count target_count,
		  MPI_Datatype target_datatype, MPI_Win win, MPI_Request *request)
{
	return request_put_or_get(false, origin_addr, origin_count, origin_datatype, target_rank,
				  target_disp, target_count, target_datatype, win, request);
}

/* ---- accumulate --------------------------------------------------------------------------- */

struct parts {
	unsigned kinds;
	enum weft_basic first, second;
	bool mixed;
};

static void count_basic(void *arg, enum weft_basic basic, size_t n)
{
	struct parts *p = arg;
	if (p->kinds == 0)
		p->first = basic;
	else if (p->kinds == 1)
		p->second = basic;
	else
		p->mixed |= basic != (p->kinds % 2 ? p->second : p->first);
	p->mixed |= p->kinds > 0 && n != 1;
	p->kinds++;
}

static unsigned pair_of(enum weft_basic value, enum weft_basic index)
{
	static const uint8_t pair[][3] = {
#define WEFT_PAIR(id, v, vt, i, it) {WEFT_B_##v, WEFT_B_##i, WEFT_B_##id},
#include "data/pair_table.h"
#undef WEFT_PAIR
		{WEFT_B_I64, WEFT_B_I32, WEFT_B_I64_I32},
	};
	for (size_t i = 0; i < weft_countof(pair); i++)
		if (pair[i][0] == value && pair[i][1] == index)
			return pair[i][2];
	return WEFT_B_NONE;
}

/* The predefined type that all of a datatype's elements are, for op; NONE: there are several. */
static unsigned element_of(MPI_Datatype type, enum weft_op op)
{
	const struct weft_mpi_type *t = weft_mpi_type_of(type);
	struct parts p = {0};
	if (!t->layout)
		return WEFT_B_NONE;
	unsigned elem = t->layout->elem;
	if (elem == WEFT_B_NONE) {
		weft_data_sig_walk(t->layout->sig, count_basic, &p);
		elem = p.kinds == 1                         ? p.first
		       : p.mixed || !p.kinds || p.kinds % 2 ? WEFT_B_NONE
							    : pair_of(p.first, p.second);
	}
	/* Derived from pairs of two of a kind, it looks like an array of them. */
	if (t->layout->elem == WEFT_B_NONE && (op == WEFT_OP_MINLOC || op == WEFT_OP_MAXLOC) &&
	    elem < WEFT_BASIC_COUNT)
		elem = pair_of(elem, elem);
	return elem;
}

static int reduction_of(MPI_Op op, MPI_Datatype type, bool fetches, struct weft_rma_reduction *red)
{
	struct weft_mpi_op *o = weft_mpi_op_of(op);
	const struct weft_mpi_type *t = weft_mpi_type_of(type);
	if (!o->predefined)
		return weft_mpi_err(MPI_ERR_OP, "one-sided calls take predefined operations alone");
	if (o->op == WEFT_OP_NO_OP && !fetches)
		return weft_mpi_err(MPI_ERR_OP, "MPI_NO_OP is for calls that fetch");
	*red = (struct weft_rma_reduction){.op = o->op, .elem = element_of(type, o->op)};
	bool any = o->op == WEFT_OP_REPLACE || o->op == WEFT_OP_NO_OP;
	if (red->elem == WEFT_B_NONE && (any || !t->layout->size)) {
		/* Bytes do for what copies, and for no data at all. */
		red->elem = WEFT_B_BYTE;
		return MPI_SUCCESS;
	}
	if (red->elem == WEFT_B_NONE)
		return weft_mpi_err(MPI_ERR_TYPE,
				    "the target's datatype consists of several predefined ones");
	if (!any && !weft_data_reduce_find(red->op, red->elem))
		return weft_mpi_err(MPI_ERR_OP, "%s is not defined for %s", o->name,
				    t->std_name ? t->std_name : "the datatype's elements");
	return MPI_SUCCESS;
}

static int start_accumulate(const void *addr, MPI_Count count, MPI_Datatype type, int rank,
			    MPI_Aint disp, MPI_Count there_count, MPI_Datatype there_type,
			    MPI_Op op, MPI_Win win, struct weft_rma_op *rma_op)
{
	struct weft_mpi_win *w = weft_mpi_window(win);
	struct weft_buf here;
	struct weft_rma_there there;
	struct weft_rma_reduction red;
	int err = reduction_of(op, there_type, false, &red);
	if (err || rank == MPI_PROC_NULL)
		return err;
	err = both_sides(w, addr, count, type, rank, disp, there_count, there_type, &here, &there);
	if (err || !there.bytes)
		return err;
	err = access_err(w, &there, weft_rma_accumulate(w->rma, &here, NULL, &there, red, rma_op));
	check_begun(w, rma_op ? "MPI_Raccumulate" : "MPI_Accumulate", WEFT_MPI_CHECK_ACC, red,
		    &there, err);
	return err;
}

int weft_mpi_Accumulate(const void *origin_addr, MPI_Count origin_count,
			MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp,
			MPI_Count target_count, MPI_Datatype target_datatype, MPI_Op op,
			MPI_Win win)
{
	return start_accumulate(origin_addr, origin_count, origin_datatype, target_rank,
				target_disp, target_count, target_datatype, op, win, NULL);
}

int weft_mpi_Raccumulate(const void *origin_addr, MPI_Count origin_count,
			 MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp,
			 MPI_Count target_count, MPI_Datatype target_datatype, MPI_Op op,
			 MPI_Win win, MPI_Request *request)
{
	struct weft_rma_op *rma_op;
	struct weft_mpi_request *r = request_new(win, &rma_op);
	if (!r)
		return weft_mpi_err(MPI_ERR_NO_MEM, "out of memory");
	int err = start_accumulate(origin_addr, origin_count, origin_datatype, target_rank,
				   target_disp, target_count, target_datatype, op, win, rma_op);
	return request_end(r, rma_op, err, request);
}

static int get_accumulate(const char *call, const void *addr, MPI_Count count, MPI_Datatype type,
			  void *result_addr, MPI_Count result_count, MPI_Datatype result_type,
			  int rank, MPI_Aint disp, MPI_Count there_count, MPI_Datatype there_type,
			  MPI_Op op, MPI_Win win, struct weft_rma_op *rma_op)
{
	struct weft_mpi_win *w = weft_mpi_window(win);
	struct weft_buf from = {0}, result;
	struct weft_rma_there there;
	struct weft_rma_reduction red;
	int err = reduction_of(op, there_type, true, &red);
	if (err || rank == MPI_PROC_NULL)
		return err;
	err = both_sides(w, result_addr, result_count, result_type, rank, disp, there_count,
			 there_type, &result, &there);
	/* The origin's buffer means nothing to MPI_NO_OP. */
	if (!err && red.op != WEFT_OP_NO_OP && !weft_mpi_type_of(type))
		err = weft_mpi_err(MPI_ERR_TYPE, "invalid origin_datatype");
	if (!err && red.op != WEFT_OP_NO_OP)
		err = weft_mpi_p2p_buf(addr, count, type, &from);
	if (!err && red.op != WEFT_OP_NO_OP)
		err = sizes_differ(&from, &there);
	if (err || !there.bytes)
		return err;
	err = access_err(w, &there,
			 weft_rma_accumulate(w->rma, &from, &result, &there, red, rma_op));
	if (!rma_op)
		check_begun(w, call, WEFT_MPI_CHECK_ACC, red, &there, err);
	return err;
}

int weft_mpi_Get_accumulate(const void *origin_addr, MPI_Count origin_count,
			    MPI_Datatype origin_datatype, void *result_addr, MPI_Count result_count,
			    MPI_Datatype result_datatype, int target_rank, MPI_Aint target_disp,
			    MPI_Count target_count, MPI_Datatype target_datatype, MPI_Op op,
			    MPI_Win win)
{
	return get_accumulate("MPI_Get_accumulate", origin_addr, origin_count, origin_datatype,
			      result_addr, result_count, result_datatype, target_rank, target_disp,
			      target_count, target_datatype, op, win, NULL);
}

int weft_mpi_Rget_accumulate(const void *origin_addr, MPI_Count origin_count,
			     MPI_Datatype origin_datatype, void *result_addr,
			     MPI_Count result_count, MPI_Datatype result_datatype, int target_rank,
			     MPI_Aint target_disp, MPI_Count target_count,
			     MPI_Datatype target_datatype, MPI_Op op, MPI_Win win,
			     MPI_Request *request)
{
	struct weft_rma_op *rma_op;
	struct weft_mpi_request *r = request_new(win, &rma_op);
	if (!r)
		return weft_mpi_err(MPI_ERR_NO_MEM, "out of memory");
	int err = get_accumulate("MPI_Rget_accumulate", origin_addr, origin_count, origin_datatype,
				 result_addr, result_count, result_datatype, target_rank,
				 target_disp, target_count, target_datatype, op, win, rma_op);
	return request_end(r, rma_op, err, request);
}

/* ---- one element -------------------------------------------------------------------------- */

static int predefined_alone(MPI_Datatype type)
{
	const struct weft_mpi_type *t = weft_mpi_type_of(type);
	if (t->predefined && t->layout && t->layout->elem != WEFT_B_NONE)
		return MPI_SUCCESS;
	return weft_mpi_err(MPI_ERR_TYPE, "the call takes one element of a predefined datatype");
}

int weft_mpi_Fetch_and_op(const void *origin_addr, void *result_addr, MPI_Datatype datatype,
			  int target_rank, MPI_Aint target_disp, MPI_Op op, MPI_Win win)
{
	int err = predefined_alone(datatype);
	return err ? err
		   : get_accumulate("MPI_Fetch_and_op", origin_addr, 1, datatype, result_addr, 1,
				    datatype, target_rank, target_disp, 1, datatype, op, win, NULL);
}

int weft_mpi_Compare_and_swap(const void *origin_addr, const void *compare_addr, void *result_addr,
			      MPI_Datatype datatype, int target_rank, MPI_Aint target_disp,
			      MPI_Win win)
{
	struct weft_mpi_win *w = weft_mpi_window(win);
	struct weft_buf result;
	struct weft_rma_there there;
	int err = predefined_alone(datatype);
	if (err)
		return err;
	unsigned elem = weft_mpi_type_of(datatype)->layout->elem;
	uint8_t cls = elem < WEFT_BASIC_COUNT ? weft_data_basic_info[elem].cls : WEFT_CLASS_PAIR;
	if (cls == WEFT_CLASS_FLOAT || cls == WEFT_CLASS_COMPLEX || cls == WEFT_CLASS_PAIR)
		return weft_mpi_err(MPI_ERR_TYPE, "compare and swap takes an integer, a logical or "
						  "a byte");
	if (target_rank == MPI_PROC_NULL)
		return MPI_SUCCESS;
	err = both_sides(w, result_addr, 1, datatype, target_rank, target_disp, 1, datatype,
			 &result, &there);
	if (!err && (!origin_addr || !compare_addr))
		err = weft_mpi_err(MPI_ERR_BUFFER, "a buffer is a null pointer");
	if (err)
		return err;
	err = access_err(w, &there,
			 weft_rma_compare_swap(w->rma, origin_addr, compare_addr, result_addr, elem,
					       &there));
	check_begun(w, "MPI_Compare_and_swap", WEFT_MPI_CHECK_SWAP,
		    (struct weft_rma_reduction){.elem = elem}, &there, err);
	return err;
}
