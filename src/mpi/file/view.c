/* SPDX-License-Identifier: BSD-3-Clause */
/* view.c - views: set_view, get_view, and the positions that follow from them. */
#include <string.h>

#include "mpi/file/mpi_file.h"

void weft_mpi_file_view_init(struct weft_mpi_file *f)
{
	f->etype = f->filetype = f->laid = weft_mpi_type_of(MPI_BYTE);
	f->etype_bytes = 1;
	f->view = (struct weft_file_view){0};
	f->rep = weft_mpi_datarep_find("native");
}

void weft_mpi_file_view_drop(struct weft_mpi_file *f)
{
	weft_mpi_type_unref(f->etype);
	weft_mpi_type_unref(f->filetype);
	weft_mpi_type_unref(f->laid);
}

/* Data must not go back in the file, nor overlap where it is written; looked at in the first ranges of the type. */
static bool goes_back(const struct weft_type *t, bool written)
{
	struct weft_file_view v = {.type = t};
	struct weft_file_range r[64];
	uint64_t end = 0;
	for (uint64_t pos = 0, turns = 0; pos < t->size && turns < 64; turns++) {
		unsigned n = weft_countof(r);
		pos += weft_file_view_ranges(&v, pos, t->size - pos, r, &n);
		for (unsigned i = 0; i < n; i++) {
			if (r[i].at < end)
				return true;
			end = r[i].at + (written ? r[i].len : 0);
		}
	}
	return false;
}

static int layout_wrong(const struct weft_type *t, bool written, const char *what)
{
	if (t->true_lb < 0 || weft_data_type_extent(t) < 0)
		return weft_mpi_err(MPI_ERR_IO, "%s has a negative displacement", what);
	if (!t->flat && t->size && goes_back(t, written))
		return weft_mpi_err(MPI_ERR_IO, "the displacements of %s do not grow%s", what,
				    written ? ", or overlap" : "");
	return MPI_SUCCESS;
}

static int types_wrong(struct weft_mpi_type *e, struct weft_mpi_type *t, bool written)
{
	if (!e->layout || !t->layout || !e->committed || !t->committed)
		return weft_mpi_err(MPI_ERR_TYPE, "%s is not committed",
				    e->committed ? "the file type" : "the elementary type");
	if (!e->layout->size)
		return weft_mpi_err(MPI_ERR_TYPE, "the elementary type has no data");
	if (t->layout->size % e->layout->size)
		return weft_mpi_err(
			MPI_ERR_TYPE,
			"the file type (%zu bytes) is no multiple of the elementary type "
			"(%zu bytes)",
			t->layout->size, e->layout->size);
	int err = layout_wrong(e->layout, written, "the elementary type");
	return err ? err : layout_wrong(t->layout, written, "the file type");
}

/* A view that is not in use yet; *laid_p: referenced, what it lies on. */
static int view_make(struct weft_mpi_type *e, struct weft_mpi_type *t, MPI_Offset disp,
		     const struct weft_mpi_datarep *rep, struct weft_file_view *v,
		     uint64_t *etype_bytes_p, struct weft_mpi_type **laid_p)
{
	*v = (struct weft_file_view){.disp = (uint64_t)disp};
	int err = weft_mpi_datarep_bytes(rep, e, 1, etype_bytes_p);
	if (err)
		return err;
	uint32_t num = 1, den = 1;
	bool mixed = false;
	if (!weft_mpi_datarep_plain(rep))
		err = weft_mpi_datarep_scale(rep, t, &num, &den, &mixed);
	if (!err && mixed)
		err = weft_mpi_file_mixed_type(rep, t, &t);
	else if (!err)
		weft_mpi_type_ref(t);
	if (err)
		return err;
	*laid_p = t;
	if (!t->layout->flat || t->layout->true_lb) {
		v->type = t->layout;
		v->goes_back = !t->layout->flat && t->layout->size && goes_back(t->layout, true);
		if (num != den) {
			v->num = num;
			v->den = den;
		}
	}
	return MPI_SUCCESS;
}

/* MPI_DISPLACEMENT_CURRENT: where the shared pointer is. */
static int current_disp(struct weft_mpi_file *f, MPI_Offset *disp_p)
{
	int64_t at;
	if (!(f->amode & MPI_MODE_SEQUENTIAL))
		return weft_mpi_err(MPI_ERR_ARG, "MPI_DISPLACEMENT_CURRENT is for files that were "
						 "opened with MPI_MODE_SEQUENTIAL");
	int err = weft_mpi_shared_add(f, 0, &at);
	*disp_p = (MPI_Offset)weft_file_view_offset(&f->view, (uint64_t)at * f->etype_bytes);
	return err;
}

static int set_view_check(struct weft_mpi_file *f, MPI_Offset *disp_p, struct weft_mpi_type *e,
			  struct weft_mpi_type *t, const char *datarep, struct weft_file_view *v,
			  uint64_t *etype_bytes_p, struct weft_mpi_type **laid_p)
{
	const struct weft_mpi_datarep *rep = weft_mpi_datarep_find(datarep);
	int err = MPI_SUCCESS;
	if (f->split)
		return weft_mpi_err(MPI_ERR_IO, "%s was not ended", f->split_call);
	if (!rep)
		return weft_mpi_err(MPI_ERR_UNSUPPORTED_DATAREP, "no data representation \"%.60s\"",
				    datarep);
	if (*disp_p == MPI_DISPLACEMENT_CURRENT)
		err = current_disp(f, disp_p);
	else if (f->amode & MPI_MODE_SEQUENTIAL)
		err = weft_mpi_err(MPI_ERR_ARG, "with MPI_MODE_SEQUENTIAL the displacement is "
						"MPI_DISPLACEMENT_CURRENT");
	else if (*disp_p < 0)
		err = weft_mpi_err(MPI_ERR_ARG, "the displacement is negative (%lld)",
				   (long long)*disp_p);
	if (!err)
		err = types_wrong(e, t, !(f->amode & MPI_MODE_RDONLY));
	return err ? err : view_make(e, t, *disp_p, rep, v, etype_bytes_p, laid_p);
}

int weft_mpi_File_set_view(MPI_File fh, MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype,
			   const char *datarep, MPI_Info info)
{
	struct weft_mpi_file *f = weft_mpi_file(fh);
	struct weft_mpi_type *e = weft_mpi_type_of(etype), *t = weft_mpi_type_of(filetype);
	struct weft_file_view v;
	uint64_t etype_bytes = 0;
	struct weft_mpi_type *laid = NULL;
	int err = set_view_check(f, &disp, e, t, datarep, &v, &etype_bytes, &laid);
	if (!err)
		err = weft_mpi_file_hints_take(f, info);
	err = weft_mpi_file_agree(f, err);
	if (!err) {
		int64_t same[] = {(int64_t)etype_bytes, weft_data_type_extent(e->layout)};
		err = weft_mpi_file_same(f, same, 2, "the extent of the elementary type");
	}
	if (err) {
		if (laid)
			weft_mpi_type_unref(laid);
		return err;
	}
	weft_mpi_type_ref(e);
	weft_mpi_type_ref(t);
	weft_mpi_file_view_drop(f);
	f->etype = e;
	f->filetype = t;
	f->laid = laid;
	f->view = v;
	f->view_number++;
	f->etype_bytes = etype_bytes;
	f->rep = weft_mpi_datarep_find(datarep);
	pthread_mutex_lock(&f->lock);
	f->pointer = 0;
	pthread_mutex_unlock(&f->lock);
	if (!f->comm->rank)
		err = weft_mpi_shared_set(f, 0);
	return weft_mpi_file_agree(f, err);
}

int weft_mpi_File_get_view(MPI_File fh, MPI_Offset *disp, MPI_Datatype *etype,
			   MPI_Datatype *filetype, char *datarep)
{
	struct weft_mpi_file *f = weft_mpi_file(fh);
	*disp = (MPI_Offset)f->view.disp;
	int err = weft_mpi_type_again(f->etype, etype);
	if (!err)
		err = weft_mpi_type_again(f->filetype, filetype);
	strcpy(datarep, weft_mpi_datarep_name(f->rep));
	return err;
}

int weft_mpi_file_end(struct weft_mpi_file *f, int64_t *etypes_p)
{
	uint64_t bytes;
	int err = weft_file_size(f->file, &bytes);
	if (err)
		return weft_mpi_file_err(err, "cannot ask for the size of", f->name);
	uint64_t data = weft_file_view_position(&f->view, bytes);
	*etypes_p = (int64_t)((data + f->etype_bytes - 1) / f->etype_bytes);
	return MPI_SUCCESS;
}

int weft_mpi_File_get_byte_offset(MPI_File fh, MPI_Offset offset, MPI_Offset *disp)
{
	struct weft_mpi_file *f = weft_mpi_file(fh);
	if (offset < 0)
		return weft_mpi_err(MPI_ERR_ARG, "the offset is negative (%lld)",
				    (long long)offset);
	if (f->amode & MPI_MODE_SEQUENTIAL)
		return weft_mpi_err(MPI_ERR_UNSUPPORTED_OPERATION,
				    "the file was opened with MPI_MODE_SEQUENTIAL");
	*disp = (MPI_Offset)weft_file_view_offset(&f->view, (uint64_t)offset * f->etype_bytes);
	return MPI_SUCCESS;
}

int weft_mpi_File_get_type_extent(MPI_File fh, MPI_Datatype datatype, MPI_Count *extent)
{
	struct weft_mpi_file *f = weft_mpi_file(fh);
	struct weft_mpi_type *t = weft_mpi_type_of(datatype);
	uint32_t num = 1, den = 1;
	if (!t->layout)
		return weft_mpi_err(MPI_ERR_TYPE, "the datatype is not supported");
	if (!weft_mpi_datarep_plain(f->rep)) {
		bool mixed; /* then displacements, and so the extent, are the program's own */
		int err = weft_mpi_datarep_scale(f->rep, t, &num, &den, &mixed);
		if (err)
			return err;
	}
	*extent = (MPI_Count)weft_data_type_extent(t->layout) * num / den;
	return MPI_SUCCESS;
}

/* ---- pointers ----------------------------------------------------------------------------- */

/* Where `whence` says; from: the pointer now. */
static int seek_to(struct weft_mpi_file *f, MPI_Offset offset, int whence, int64_t from,
		   int64_t *to_p)
{
	int err = MPI_SUCCESS;
	if (whence == MPI_SEEK_SET)
		from = 0;
	else if (whence == MPI_SEEK_END)
		err = weft_mpi_file_end(f, &from);
	else if (whence != MPI_SEEK_CUR)
		err = weft_mpi_err(MPI_ERR_ARG,
				   "whence is %d: give MPI_SEEK_SET, MPI_SEEK_CUR or "
				   "MPI_SEEK_END",
				   whence);
	if (!err && (__builtin_add_overflow(from, offset, to_p) || *to_p < 0))
		err = weft_mpi_err(MPI_ERR_ARG, "the pointer would be negative");
	return err;
}

static int refuse_sequential(const struct weft_mpi_file *f)
{
	return f->amode & MPI_MODE_SEQUENTIAL
		       ? weft_mpi_err(MPI_ERR_UNSUPPORTED_OPERATION,
				      "the file was opened with MPI_MODE_SEQUENTIAL")
		       : MPI_SUCCESS;
}

int weft_mpi_File_seek(MPI_File fh, MPI_Offset offset, int whence)
{
	struct weft_mpi_file *f = weft_mpi_file(fh);
	int err = refuse_sequential(f);
	if (err)
		return err;
	pthread_mutex_lock(&f->lock);
	int64_t to = 0;
	err = seek_to(f, offset, whence, f->pointer, &to);
	if (!err)
		f->pointer = to;
	pthread_mutex_unlock(&f->lock);
	return err;
}

int weft_mpi_File_get_position(MPI_File fh, MPI_Offset *offset)
{
	struct weft_mpi_file *f = weft_mpi_file(fh);
	int err = refuse_sequential(f);
	if (err)
		return err;
	pthread_mutex_lock(&f->lock);
	*offset = f->pointer;
	pthread_mutex_unlock(&f->lock);
	return MPI_SUCCESS;
}

int weft_mpi_File_seek_shared(MPI_File fh, MPI_Offset offset, int whence)
{
	struct weft_mpi_file *f = weft_mpi_file(fh);
	int64_t mine[] = {offset, whence}, from = 0, to = 0;
	int err = weft_mpi_file_agree(f, refuse_sequential(f));
	if (!err)
		err = weft_mpi_file_same(f, mine, 2, "the argument of MPI_File_seek_shared");
	if (err)
		return err;
	if (!f->comm->rank) {
		err = weft_mpi_shared_add(f, 0, &from);
		if (!err)
			err = seek_to(f, offset, whence, from, &to);
		if (!err)
			err = weft_mpi_shared_set(f, to);
	}
	return weft_mpi_file_agree(f, err);
}

int weft_mpi_File_get_position_shared(MPI_File fh, MPI_Offset *offset)
{
	struct weft_mpi_file *f = weft_mpi_file(fh);
	int64_t at = 0;
	int err = refuse_sequential(f);
	if (!err)
		err = weft_mpi_shared_add(f, 0, &at);
	*offset = at;
	return err;
}
