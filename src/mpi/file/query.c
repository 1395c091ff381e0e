/* SPDX-License-Identifier: BSD-3-Clause */
/* query.c - the file as a whole: size, storage, sync, atomic mode, and what it was opened with. */
#include <errno.h>

#include "mpi/comm/comm_int.h"
#include "mpi/comm/group.h"
#include "mpi/entry.h"
#include "mpi/file/mpi_file.h"

int weft_mpi_File_get_size(MPI_File fh, MPI_Offset *size)
{
	struct weft_mpi_file *f = weft_mpi_file(fh);
	uint64_t bytes = 0;
	int err = weft_file_size(f->file, &bytes);
	*size = (MPI_Offset)bytes;
	return weft_mpi_file_err(err, "cannot ask for the size of", f->name);
}

/* The same number on all members, of a file that may be written. */
static int size_wrong(struct weft_mpi_file *f, MPI_Offset size, const char *what)
{
	int64_t mine = size;
	int err = weft_mpi_file_same(f, &mine, 1, what);
	if (err)
		return err;
	if (size < 0)
		return weft_mpi_err(MPI_ERR_ARG, "the size is negative (%lld)", (long long)size);
	if (f->amode & MPI_MODE_RDONLY)
		return weft_mpi_err(MPI_ERR_READ_ONLY, "%.120s was opened with MPI_MODE_RDONLY",
				    f->name);
	if (f->amode & MPI_MODE_SEQUENTIAL)
		return weft_mpi_err(MPI_ERR_UNSUPPORTED_OPERATION,
				    "the file was opened with MPI_MODE_SEQUENTIAL");
	return MPI_SUCCESS;
}

int weft_mpi_File_set_size(MPI_File fh, MPI_Offset size)
{
	struct weft_mpi_file *f = weft_mpi_file(fh);
	int err = size_wrong(f, size, "the size in MPI_File_set_size");
	if (err)
		return err;
	/* All have come, so no access from before is under way any more. */
	if (!f->comm->rank)
		err = weft_mpi_file_err(weft_file_resize(f->file, (uint64_t)size),
					"cannot set the size of", f->name);
	return weft_mpi_file_agree(f, err);
}

int weft_mpi_File_preallocate(MPI_File fh, MPI_Offset size)
{
	struct weft_mpi_file *f = weft_mpi_file(fh);
	int err = size_wrong(f, size, "the size in MPI_File_preallocate");
	if (err)
		return err;
	if (!f->comm->rank)
		err = weft_mpi_file_err(weft_file_preallocate(f->file, (uint64_t)size),
					"cannot allocate storage for", f->name);
	return weft_mpi_file_agree(f, err);
}

/* This host's cache, where others have written. */
static int bring_up_to_date(struct weft_mpi_file *f)
{
	int err = weft_file_lock(f->file, false, 0, 0);
	if (!err)
		err = weft_file_unlock(f->file, 0, 0);
	else if (err == ENOLCK || err == EOPNOTSUPP || err == ENOSYS)
		err = 0; /* without locks an open does it */
	return err ? err : weft_file_refresh(f->file);
}

int weft_mpi_File_sync(MPI_File fh)
{
	struct weft_mpi_file *f = weft_mpi_file(fh);
	int err = 0;
	if (f->split)
		return weft_mpi_err(MPI_ERR_IO, "%s was not ended", f->split_call);
	if (!(f->amode & MPI_MODE_RDONLY))
		err = weft_file_sync(f->file);
	if (!err && f->checks)
		err = bring_up_to_date(f);
	return weft_mpi_file_agree(f, weft_mpi_file_err(err, "cannot synchronise", f->name));
}

int weft_mpi_File_set_atomicity(MPI_File fh, int flag)
{
	struct weft_mpi_file *f = weft_mpi_file(fh);
	int64_t mine = flag != 0;
	int err = weft_mpi_file_same(f, &mine, 1, "the flag of MPI_File_set_atomicity");
	if (!err)
		/* Relaxed: as in_atomic_mode in access.c. */
		atomic_store_explicit(&f->x_atomic, flag != 0, memory_order_relaxed);
	return err;
}

int weft_mpi_File_get_atomicity(MPI_File fh, int *flag)
{
	/* Relaxed: as in_atomic_mode in access.c. */
	*flag = atomic_load_explicit(&weft_mpi_file(fh)->x_atomic, memory_order_relaxed);
	return MPI_SUCCESS;
}

MPI_Comm weft_mpi_file_comm(MPI_File file)
{
	struct weft_mpi_file *f = weft_mpi_file(file);
	return f ? f->comm_handle : MPI_COMM_NULL;
}

int weft_mpi_File_get_amode(MPI_File fh, int *amode)
{
	*amode = weft_mpi_file(fh)->amode;
	return MPI_SUCCESS;
}

int weft_mpi_File_get_group(MPI_File fh, MPI_Group *group)
{
	struct weft_mpi_group *g = weft_mpi_file(fh)->comm->group;
	return weft_mpi_group_name(weft_mpi_group_make_in(g->domain, g->size, g->world), group);
}
