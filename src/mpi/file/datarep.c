/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * datarep.c - data representations: native and internal (as in memory), external32, and those that the
 * program registers.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "data/external.h"
#include "mpi/file/mpi_file.h"

enum rep_kind { REP_PLAIN, REP_EXTERNAL, REP_USER };

struct weft_mpi_datarep {
	enum rep_kind kind;
	char name[MPI_MAX_DATAREP_STRING];
	MPI_Datarep_conversion_function_c *read, *write; /* NULL: as in memory */
	MPI_Datarep_conversion_function *read_int, *write_int;
	MPI_Datarep_extent_function *extent;
	void *extra;
	struct weft_mpi_datarep *next;
};

static struct weft_mpi_datarep native = {.name = "native"};
static struct weft_mpi_datarep internal = {.name = "internal", .next = &native};
static struct weft_mpi_datarep external = {
	.kind = REP_EXTERNAL, .name = "external32", .next = &internal};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct weft_mpi_datarep *all = &external; /* under lock; only grows */

const struct weft_mpi_datarep *weft_mpi_datarep_find(const char *name)
{
	pthread_mutex_lock(&lock);
	const struct weft_mpi_datarep *r = all;
	while (r && strcmp(r->name, name) != 0)
		r = r->next;
	pthread_mutex_unlock(&lock);
	return r;
}

const char *weft_mpi_datarep_name(const struct weft_mpi_datarep *rep)
{
	return rep->name;
}

bool weft_mpi_datarep_plain(const struct weft_mpi_datarep *rep)
{
	return rep->kind == REP_PLAIN;
}

void weft_mpi_datareps_end(void)
{
	pthread_mutex_lock(&lock);
	while (all != &external) {
		struct weft_mpi_datarep *r = all;
		all = r->next;
		free(r);
	}
	pthread_mutex_unlock(&lock);
}

static int datarep_register(const struct weft_mpi_datarep *like, const char *name)
{
	if (strlen(name) >= MPI_MAX_DATAREP_STRING || !name[0])
		return weft_mpi_err(MPI_ERR_ARG,
				    "the representation's name is empty, or longer "
				    "than %d characters",
				    MPI_MAX_DATAREP_STRING - 1);
	if (!like->extent)
		return weft_mpi_err(MPI_ERR_ARG, "dtype_file_extent_fn is a null pointer");
	if (weft_mpi_datarep_find(name))
		return weft_mpi_err(MPI_ERR_DUP_DATAREP, "there is a data representation \"%s\"",
				    name);
	struct weft_mpi_datarep *r = malloc(sizeof *r);
	if (!r)
		return weft_mpi_err(MPI_ERR_NO_MEM, "out of memory");
	*r = *like;
	r->kind = REP_USER;
	strcpy(r->name, name);
	pthread_mutex_lock(&lock);
	r->next = all;
	all = r;
	pthread_mutex_unlock(&lock);
	return MPI_SUCCESS;
}

int weft_mpi_Register_datarep_c(const char *datarep,
				MPI_Datarep_conversion_function_c *read_conversion_fn,
				MPI_Datarep_conversion_function_c *write_conversion_fn,
				MPI_Datarep_extent_function *dtype_file_extent_fn,
				void *extra_state)
{
	struct weft_mpi_datarep r = {.read = read_conversion_fn,
				     .write = write_conversion_fn,
				     .extent = dtype_file_extent_fn,
				     .extra = extra_state};
	return datarep_register(&r, datarep);
}

int weft_mpi_Register_datarep(const char *datarep,
			      MPI_Datarep_conversion_function *read_conversion_fn,
			      MPI_Datarep_conversion_function *write_conversion_fn,
			      MPI_Datarep_extent_function *dtype_file_extent_fn, void *extra_state)
{
	struct weft_mpi_datarep r = {.read_int = read_conversion_fn,
				     .write_int = write_conversion_fn,
				     .extent = dtype_file_extent_fn,
				     .extra = extra_state};
	return datarep_register(&r, datarep);
}

/* ---- sizes -------------------------------------------------------------------------------- */

struct sizes {
	const struct weft_mpi_datarep *rep;
	int err;
	uint64_t bytes, items;
	/* All elements so far: file bytes / memory bytes. */
	uint64_t file, memory;
	bool mixed;
};

int weft_mpi_datarep_element(const struct weft_mpi_datarep *rep, enum weft_basic basic,
			     MPI_Aint *bytes_p)
{
	const struct weft_basic_info *b = &weft_data_basic_info[basic];
	*bytes_p = b->external * (b->cls == WEFT_CLASS_COMPLEX ? 2 : 1);
	if (rep->kind != REP_USER)
		return MPI_SUCCESS;
	int err = rep->extent(weft_mpi_type_of_basic(basic), bytes_p, rep->extra);
	if (err)
		return weft_mpi_err(MPI_ERR_CONVERSION, "the extent function of \"%s\" failed (%d)",
				    rep->name, err);
	if (*bytes_p <= 0)
		return weft_mpi_err(MPI_ERR_CONVERSION, "the extent function of \"%s\" gave %lld",
				    rep->name, (long long)*bytes_p);
	return MPI_SUCCESS;
}

static void add_run(void *arg, enum weft_basic basic, size_t n)
{
	struct sizes *s = arg;
	const struct weft_basic_info *b = &weft_data_basic_info[basic];
	MPI_Aint file = 0;
	if (!s->err)
		s->err = weft_mpi_datarep_element(s->rep, basic, &file);
	if (s->err)
		return;
	if (s->memory && s->file * b->size != (uint64_t)file * s->memory)
		s->mixed = true;
	s->file = (uint64_t)file;
	s->memory = b->size;
	s->bytes += (uint64_t)file * n;
	s->items += n;
}

static struct sizes sizes_of(const struct weft_mpi_datarep *rep, const struct weft_mpi_type *t)
{
	struct sizes s = {.rep = rep};
	weft_data_sig_walk(t->layout->sig, add_run, &s);
	return s;
}

int weft_mpi_datarep_bytes(const struct weft_mpi_datarep *rep, const struct weft_mpi_type *t,
			   MPI_Count count, uint64_t *bytes_p)
{
	struct sizes s = {.bytes = t->layout->size};
	if (rep->kind != REP_PLAIN)
		s = sizes_of(rep, t);
	if (s.err)
		return s.err;
	if (__builtin_mul_overflow(s.bytes, (uint64_t)count, bytes_p) || *bytes_p > INT64_MAX)
		return weft_mpi_err(MPI_ERR_COUNT, "the data is longer than a file can be");
	return MPI_SUCCESS;
}

int weft_mpi_datarep_scale(const struct weft_mpi_datarep *rep, const struct weft_mpi_type *t,
			   uint32_t *num_p, uint32_t *den_p, bool *mixed_p)
{
	struct sizes s = sizes_of(rep, t);
	if (s.err)
		return s.err;
	*mixed_p = s.mixed;
	if (s.mixed) {
		*num_p = *den_p = 1;
		return MPI_SUCCESS;
	}
	*num_p = s.memory ? (uint32_t)s.file : 1;
	*den_p = s.memory ? (uint32_t)s.memory : 1;
	return MPI_SUCCESS;
}

/* ---- conversion --------------------------------------------------------------------------- */

static int call_user(const struct weft_mpi_datarep *rep, bool write, void *buf, MPI_Datatype type,
		     MPI_Count items, void *bytes)
{
	MPI_Datarep_conversion_function_c *fn = write ? rep->write : rep->read;
	MPI_Datarep_conversion_function *fn_int = write ? rep->write_int : rep->read_int;
	if (fn_int && items > INT32_MAX)
		return weft_mpi_err(MPI_ERR_CONVERSION,
				    "%lld elements at once need MPI_Register_datarep_c",
				    (long long)items);
	int err = fn ? fn(buf, type, items, bytes, 0, rep->extra)
		     : fn_int(buf, type, (int)items, bytes, 0, rep->extra);
	return err ? weft_mpi_err(MPI_ERR_CONVERSION, "the %s conversion of \"%s\" failed (%d)",
				  write ? "write" : "read", rep->name, err)
		   : MPI_SUCCESS;
}

int weft_mpi_datarep_out(const struct weft_mpi_datarep *rep, const void *buf, MPI_Count count,
			 MPI_Datatype type, void *bytes)
{
	const struct weft_mpi_type *t = weft_mpi_type_of(type);
	struct weft_buf b = weft_data_buf_typed(buf, (size_t)count, t->layout);
	if (rep->kind == REP_EXTERNAL)
		weft_data_external_pack(&b, t->layout, (size_t)count, bytes);
	else if (!rep->write && !rep->write_int)
		weft_data_pack(&b, 0, bytes, b.bytes);
	else
		return call_user(rep, true, (void *)(uintptr_t)buf, type,
				 (MPI_Count)sizes_of(rep, t).items * count, bytes);
	return MPI_SUCCESS;
}

/* The end of the file may lie within the data: whole elements alone are converted. */
int weft_mpi_datarep_in(const struct weft_mpi_datarep *rep, void *buf, MPI_Count count,
			MPI_Datatype type, void *bytes, uint64_t got, uint64_t *data_p)
{
	const struct weft_mpi_type *t = weft_mpi_type_of(type);
	struct sizes s = sizes_of(rep, t);
	MPI_Count whole = s.bytes ? (MPI_Count)(got / s.bytes) : 0;
	if (whole > count)
		whole = count;
	struct weft_buf b = weft_data_buf_typed(buf, (size_t)whole, t->layout);
	*data_p = (uint64_t)whole * t->layout->size;
	if (s.err)
		return s.err;
	if (rep->kind == REP_EXTERNAL)
		weft_data_external_unpack(&b, t->layout, (size_t)whole, bytes);
	else if (!rep->read && !rep->read_int)
		weft_data_unpack(&b, 0, bytes, b.bytes);
	else if (whole)
		return call_user(rep, false, buf, type, (MPI_Count)s.items * whole, bytes);
	return MPI_SUCCESS;
}
