/* SPDX-License-Identifier: BSD-3-Clause */
/* access.c - data access: from MPI's arguments to an operation of file/, blocking or as a request. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "mpi/error.h"
#include "mpi/file/mpi_file.h"
#include "mpi/p2p/p2p.h"
#include "task/task.h"
#include "wait/note.h"

/* ---- arguments ---------------------------------------------------------------------------- */

static int mode_wrong(const struct weft_mpi_file_call *k)
{
	const struct weft_mpi_file *f = k->file;
	if (k->write && f->amode & MPI_MODE_RDONLY)
		return weft_mpi_err(MPI_ERR_READ_ONLY, "%.120s was opened with MPI_MODE_RDONLY",
				    f->name);
	if (!k->write && f->amode & MPI_MODE_WRONLY)
		return weft_mpi_err(MPI_ERR_ACCESS, "%.120s was opened with MPI_MODE_WRONLY",
				    f->name);
	if (f->amode & MPI_MODE_SEQUENTIAL &&
	    (k->where == WEFT_MPI_BY_OFFSET || k->where == WEFT_MPI_BY_OWN))
		return weft_mpi_err(MPI_ERR_UNSUPPORTED_OPERATION,
				    "with MPI_MODE_SEQUENTIAL a file has the shared pointer only");
	if (f->split)
		return weft_mpi_err(MPI_ERR_IO, "%s was not ended", f->split_call);
	return MPI_SUCCESS;
}

/* The place where the access begins, in etypes; pointers move on by its whole length. */
static int take_place(const struct weft_mpi_file_call *k, uint64_t etypes, int64_t *at_p)
{
	struct weft_mpi_file *f = k->file;
	switch (k->where) {
	case WEFT_MPI_BY_OFFSET:
		*at_p = k->offset;
		if (k->offset < 0)
			return weft_mpi_err(MPI_ERR_ARG, "the offset is negative (%lld)",
					    (long long)k->offset);
		return MPI_SUCCESS;
	case WEFT_MPI_BY_OWN:
		pthread_mutex_lock(&f->lock);
		*at_p = f->pointer;
		f->pointer += (int64_t)etypes;
		pthread_mutex_unlock(&f->lock);
		return MPI_SUCCESS;
	case WEFT_MPI_BY_SHARED:
		return weft_mpi_shared_add(f, (int64_t)etypes, at_p);
	default:
		return weft_mpi_shared_turn(f, (int64_t)etypes, at_p);
	}
}

/* The data in the file's representation. */
static int convert_begin(const struct weft_mpi_file_call *k, struct weft_mpi_file_op *o,
			 uint64_t bytes)
{
	int err = MPI_SUCCESS;
	o->bytes = malloc(bytes ? bytes : 1);
	if (!o->bytes)
		return weft_mpi_err(MPI_ERR_NO_MEM, "no memory for %llu converted bytes",
				    (unsigned long long)bytes);
	o->buf = k->buf;
	o->count = k->count;
	o->in = !k->write;
	if (k->write)
		err = weft_mpi_datarep_out(o->rep, k->buf, k->count, k->type, o->bytes);
	o->op.buf = weft_data_buf_flat(o->bytes, bytes);
	return err;
}

static void op_drop(struct weft_mpi_file_op *o)
{
	free(o->bytes);
	o->bytes = NULL;
	if (o->type)
		weft_mpi_type_unref(o->type);
	o->type = NULL;
	if (o->filetype)
		weft_mpi_type_unref(o->filetype);
	o->filetype = NULL;
	if (o->file)
		weft_mpi_file_unref(o->file);
	o->file = NULL;
}

static bool in_atomic_mode(const struct weft_mpi_file *f)
{
	/* Relaxed: set_atomicity is collective, and ordered before accesses by the program. */
	return atomic_load_explicit(&f->x_atomic, memory_order_relaxed);
}

/* Do the members move their data together?  In atomic mode each does it by itself, under locks. */
static bool with_team(const struct weft_mpi_file_call *k)
{
	return k->all && k->file->team.size > 1 && !in_atomic_mode(k->file);
}

/* A member that waits long for the others is to say so, and to ask them (mpi/aid/waits.c). */
static void wait_noted(const struct weft_mpi_file *f, struct weft_file_all *a,
		       void (*wait)(struct weft_file_all *a))
{
	static const struct weft_wait_call call = {"collective file access", WEFT_WAIT_ALL, false,
						   false};
	struct weft_wait_note note = {.call = &call, .object = f->comm_handle, .rank = -1};
	struct weft_wait_note *outer = weft_wait_note_get();
	weft_wait_note_set(&note);
	wait(a);
	weft_wait_note_set(outer);
}

/* A part of a collective access that has nothing to move. */
struct weft_mpi_file_empty {
	struct weft_mpi_file_empty *next; /* of the spares */
	bool is_spare;
	struct weft_file_all all;
	struct weft_file_op op;
	struct weft_mpi_file *file;
	/* As in struct weft_mpi_file_op. */
	struct weft_file_view view;
	struct weft_mpi_type *filetype; /* referenced */
};

/* So many refusals may be under way while there is no memory; the next one waits for one of them. */
#define SPARES 4

static void give_spare(struct weft_mpi_file *f, struct weft_mpi_file_empty *p)
{
	p->is_spare = true;
	pthread_mutex_lock(&f->lock);
	p->next = f->spare;
	f->spare = p;
	pthread_mutex_unlock(&f->lock);
}

int weft_mpi_file_spares_make(struct weft_mpi_file *f)
{
	for (int i = 0; i < SPARES; i++) {
		struct weft_mpi_file_empty *p = calloc(1, sizeof *p);
		if (!p)
			return MPI_ERR_NO_MEM;
		give_spare(f, p);
	}
	return MPI_SUCCESS;
}

void weft_mpi_file_spares_free(struct weft_mpi_file *f)
{
	struct weft_mpi_file_empty *p;
	while ((p = f->spare)) { /* ends: fewer each time */
		f->spare = p->next;
		free(p);
	}
}

static struct weft_mpi_file_empty *take_spare(struct weft_mpi_file *f)
{
	pthread_mutex_lock(&f->lock);
	struct weft_mpi_file_empty *p = f->spare;
	if (p)
		f->spare = p->next;
	pthread_mutex_unlock(&f->lock);
	return p;
}

static struct weft_mpi_file_empty *empty_part(struct weft_mpi_file *f)
{
	struct weft_mpi_file_empty *p = calloc(1, sizeof *p);
	bool pause;
	while (!p && !(p = take_spare(f))) { /* ends: a refusal that is under way does */
		(void)weft_task_poll(&pause);
		if (pause)
			(void)weft_task_poll_pause(NULL, 0);
	}
	return p;
}

static void empty_over(struct weft_file_all *a)
{
	struct weft_mpi_file_empty *p = a->arg;
	struct weft_mpi_file *f = p->file;
	weft_mpi_type_unref(p->filetype);
	if (p->is_spare)
		give_spare(f, p);
	else
		free(p);
	/* OVER -> IDLE (wait_for_accesses in open.c): the file may be closed from here on. */
	atomic_fetch_sub_explicit(&f->x_accesses, 1, memory_order_release);
}

/* Others wait for this member's part, whatever is wrong with it. */
static void take_part_empty(const struct weft_mpi_file_call *k, int failed)
{
	struct weft_mpi_file_empty *p = empty_part(k->file);
	p->file = k->file;
	p->op = (struct weft_file_op){.file = k->file->file, .view = &p->view, .write = k->write};
	p->view = k->file->view;
	p->filetype = k->file->laid;
	weft_mpi_type_ref(p->filetype);
	p->all = (struct weft_file_all){.team = &k->file->team,
					.op = &p->op,
					.tag = weft_mpi_file_team_tag(k->file),
					.view_number = k->file->view_number,
					.failed = failed,
					.fn = empty_over,
					.arg = p};
	/* Relaxed: as in op_begin. */
	atomic_fetch_add_explicit(&k->file->x_accesses, 1, memory_order_relaxed);
	if (k->waits) { /* as the others do */
		wait_noted(k->file, &p->all, weft_file_all_run);
		empty_over(&p->all);
		return;
	}
	weft_file_all_start(&p->all);
	weft_task_engine_pending();
}

/* Once the turn of an ordered access has been taken. */
static int refused_later(const struct weft_mpi_file_call *k, int err)
{
	if (with_team(k))
		take_part_empty(k, err == MPI_ERR_NO_MEM ? ENOMEM : EINVAL);
	return err;
}

static int access_refused(const struct weft_mpi_file_call *k, int err)
{
	int64_t at;
	if (k->where == WEFT_MPI_BY_ORDERED)
		(void)weft_mpi_shared_turn(k->file, 0, &at);
	return refused_later(k, err);
}

static int op_fill(const struct weft_mpi_file_call *k, struct weft_mpi_file_op *o)
{
	struct weft_mpi_file *f = k->file;
	struct weft_buf buf;
	uint64_t bytes, end;
	int64_t at = 0;
	int err = mode_wrong(k);
	if (!err)
		err = weft_mpi_p2p_buf(k->buf, k->count, k->type, &buf);
	if (err)
		return access_refused(k, err);
	bytes = buf.bytes;
	if (!weft_mpi_datarep_plain(f->rep))
		err = weft_mpi_datarep_bytes(f->rep, weft_mpi_type_of(k->type), k->count, &bytes);
	if (!err && bytes % f->etype_bytes)
		err = weft_mpi_err(MPI_ERR_TYPE,
				   "the data (%llu bytes) is no multiple of the view's elementary "
				   "type (%llu bytes)",
				   (unsigned long long)bytes, (unsigned long long)f->etype_bytes);
	if (!err && bytes && f->filetype->layout->size == 0)
		err = weft_mpi_err(MPI_ERR_TYPE, "the view has no place for data");
	if (err)
		return access_refused(k, err);
	err = take_place(k, bytes / f->etype_bytes, &at);
	if (!err && (__builtin_mul_overflow((uint64_t)at, f->etype_bytes, &o->op.pos) ||
		     __builtin_add_overflow(o->op.pos, bytes, &end) || end > INT64_MAX))
		err = weft_mpi_err(MPI_ERR_ARG, "the access ends beyond what a file can hold");
	if (err)
		return refused_later(k, err);
	o->op.file = f->file;
	/* Its own: the program may change the file's view, or free the datatypes, before it waits. */
	o->view = f->view;
	o->rep = f->rep;
	o->filetype = f->laid;
	weft_mpi_type_ref(o->filetype);
	if (buf.type || !weft_mpi_datarep_plain(f->rep)) {
		o->type = weft_mpi_type_of(k->type);
		weft_mpi_type_ref(o->type);
	}
	o->op.view = &o->view;
	o->op.write = k->write;
	o->op.buf = buf;
	err = weft_mpi_datarep_plain(f->rep) ? MPI_SUCCESS : convert_begin(k, o, bytes);
	if (err)
		return refused_later(k, err);
	if (with_team(k))
		o->all = (struct weft_file_all){.team = &f->team,
						.op = &o->op,
						.tag = weft_mpi_file_team_tag(f),
						.view_number = f->view_number};
	return MPI_SUCCESS;
}

/* Checks k, takes its place in the file, and fills o. */
static int op_prepare(const struct weft_mpi_file_call *k, struct weft_mpi_file_op *o)
{
	*o = (struct weft_mpi_file_op){.file = k->file};
	weft_mpi_object_ref(&k->file->head);
	int err = op_fill(k, o);
	if (err)
		op_drop(o);
	return err;
}

/* ---- results ------------------------------------------------------------------------------ */

/* Once, on the caller's own thread. */
static void convert_end(struct weft_mpi_file_op *o)
{
	if (!o->in)
		return;
	o->in = false;
	int err = weft_mpi_datarep_in(o->rep, o->buf, o->count,
				      (MPI_Datatype)(uintptr_t)o->type->head.handle, o->bytes,
				      o->op.bytes, &o->data);
	if (!o->code)
		o->code = err;
}

/* The others' messages did not come, but no member is dead. */
static bool calls_differ(const struct weft_mpi_file_op *o)
{
	const struct weft_ctx *ctx = o->file->comm->coll;
	return o->all.team && weft_coll_ended(ctx, o->all.tag) &&
	       weft_coll_cause(ctx, WEFT_ERR_TRUNC) == WEFT_ERR_TRUNC;
}

static int op_finish(struct weft_mpi_file_op *o, MPI_Status *st)
{
	uint64_t bytes = o->op.bytes;
	convert_end(o);
	if (o->bytes && o->op.write)
		bytes = o->op.err ? 0 : (uint64_t)o->count * o->type->layout->size;
	else if (o->bytes)
		bytes = o->data;
	weft_mpi_status_set(st, MPI_ANY_SOURCE, MPI_ANY_TAG, bytes, false);
	if (o->code)
		return o->code;
	if (weft_unlikely(o->op.err == WEFT_FILE_MISMATCH ||
			  (o->op.err == EOWNERDEAD && calls_differ(o))))
		return weft_mpi_err(MPI_ERR_TRUNCATE, "the ranks' calls for %.120s do not match",
				    o->file->name);
	return weft_mpi_file_err(o->op.err, o->op.write ? "cannot write to" : "cannot read from",
				 o->file->name);
}

/* ---- blocking ----------------------------------------------------------------------------- */

/* To its end. */
static int op_run(struct weft_mpi_file_op *o, MPI_Status *st)
{
	if (weft_unlikely(in_atomic_mode(o->file)))
		o->code = weft_mpi_atomic_run(o);
	else if (o->all.team)
		wait_noted(o->file, &o->all, weft_file_all_run);
	else
		weft_file_op_run(&o->op);
	int err = op_finish(o, st);
	op_drop(o);
	return err;
}

int weft_mpi_file_access(const struct weft_mpi_file_call *k, MPI_Status *st)
{
	struct weft_mpi_file_op o;
	struct weft_mpi_file_call blocking = *k;
	blocking.waits = true;
	int err = op_prepare(&blocking, &o);
	return err ? err : op_run(&o, st);
}

static struct weft_completion *op_wait_on(struct weft_mpi_file_op *o)
{
	return o->apart ? &o->over : o->all.team ? &o->all.turn : &o->op.done;
}

/* ---- requests ----------------------------------------------------------------------------- */

static void wait_for_all(struct weft_file_all *a)
{
	weft_task_engine_wait(&a->turn);
}

static struct weft_completion *request_wait_on(struct weft_mpi_request *r)
{
	return op_wait_on(r->impl);
}

static int request_finish(struct weft_mpi_request *r, MPI_Status *st)
{
	return op_finish(r->impl, st);
}

static void request_free(struct weft_mpi_request *r)
{
	op_drop(r->impl);
	free(r->impl);
}

static const struct weft_mpi_request_ops file_ops = {
	.name = "file access",
	.wait_on = request_wait_on,
	.finish = request_finish,
	.free = request_free,
};

static const struct weft_mpi_request_ops file_all_ops = {
	.name = "collective file access",
	.collective = true,
	.wait_on = request_wait_on,
	.finish = request_finish,
	.free = request_free,
};

/* As a handler. */
static void op_over(struct weft_file_op *op)
{
	struct weft_mpi_file_op *o = op->arg;
	/* OVER -> IDLE (wait_for_accesses in open.c): the file may be closed from here on. */
	atomic_fetch_sub_explicit(&o->file->x_accesses, 1, memory_order_release);
	weft_wait_completion_signal(&op->done);
}

static void all_over(struct weft_file_all *a)
{
	struct weft_mpi_file_op *o = a->arg;
	/* OVER, as above. */
	atomic_fetch_sub_explicit(&o->file->x_accesses, 1, memory_order_release);
	weft_wait_completion_signal(&a->turn);
}

static int op_begin(struct weft_mpi_file_op *o)
{
	if (weft_unlikely(in_atomic_mode(o->file))) {
		weft_mpi_atomic_start(o);
		return MPI_SUCCESS;
	}
	/* Relaxed: the caller closes the file later, and knows of its own store. */
	atomic_fetch_add_explicit(&o->file->x_accesses, 1, memory_order_relaxed);
	if (o->all.team) {
		o->all.fn = all_over;
		o->all.arg = o;
		weft_file_all_start(&o->all);
		weft_task_engine_pending();
		return MPI_SUCCESS;
	}
	o->op.fn = op_over;
	o->op.arg = o;
	if (weft_file_op_start(&o->op)) {
		atomic_fetch_sub_explicit(&o->file->x_accesses, 1, memory_order_relaxed);
		return weft_mpi_err(MPI_ERR_NO_MEM, "no memory for an access");
	}
	weft_task_engine_pending();
	return MPI_SUCCESS;
}

int weft_mpi_file_iaccess(const struct weft_mpi_file_call *k, MPI_Request *request)
{
	struct weft_mpi_file_op *o = calloc(1, sizeof *o);
	/* Before all else: from prepare on the other members count on this one. */
	struct weft_mpi_request *r =
		o ? weft_mpi_request_new(with_team(k) ? &file_all_ops : &file_ops, k->file->comm, o,
					 false)
		  : NULL;
	if (!r) {
		free(o);
		return access_refused(k, weft_mpi_err(MPI_ERR_NO_MEM, "no memory for an access"));
	}
	int err = op_prepare(k, o);
	if (!err)
		err = op_begin(o);
	if (err)
		weft_mpi_request_delete(r);
	else
		*request = weft_mpi_request_handle(r);
	return err;
}

/* ---- split collectives -------------------------------------------------------------------- */

int weft_mpi_file_split_begin(const struct weft_mpi_file_call *k, const char *call)
{
	struct weft_mpi_file_op *o = malloc(sizeof *o);
	int err = o ? op_prepare(k, o)
		    : access_refused(k, weft_mpi_err(MPI_ERR_NO_MEM, "no memory for an access"));
	if (!err) {
		err = op_begin(o);
		if (err)
			op_drop(o);
	}
	if (err) {
		free(o);
		return err;
	}
	k->file->split = o;
	k->file->split_call = call;
	return MPI_SUCCESS;
}

int weft_mpi_file_split_end(struct weft_mpi_file *f, const char *call, MPI_Status *st)
{
	struct weft_mpi_file_op *o = f->split;
	if (!o)
		return weft_mpi_err(MPI_ERR_IO, "%s was not called", call);
	if (strcmp(call, f->split_call) != 0)
		return weft_mpi_err(MPI_ERR_IO, "%s was called, not %s", f->split_call, call);
	if (op_wait_on(o) == &o->all.turn)
		wait_noted(o->file, &o->all, wait_for_all);
	else
		weft_task_engine_wait(op_wait_on(o));
	f->split = NULL;
	int err = op_finish(o, st);
	op_drop(o);
	free(o);
	return err;
}
