/* SPDX-License-Identifier: BSD-3-Clause */
/* open.c - files: how they are opened, closed and deleted by all members together. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/log.h"
#include "base/settings.h"
#include "coll/calls.h"
#include "mpi/aid/aid.h"
#include "mpi/comm/comm_int.h"
#include "mpi/error.h"
#include "mpi/file/mpi_file.h"
#include "task/task.h"

/* ---- agreeing ----------------------------------------------------------------------------- */

/* All that members tell each other is as long: where they are in different calls, each learns that. */
static int gather_on(struct weft_mpi_file *f, MPI_Comm comm, enum weft_mpi_file_talk kind,
		     const int64_t *mine, size_t n)
{
	int64_t own[1 + WEFT_MPI_FILE_WORDS] = {kind}, *w = f->words;
	const size_t each = weft_countof(own);
	weft_assert(n <= WEFT_MPI_FILE_WORDS);
	memcpy(own + 1, mine, n * sizeof *mine);
	/* A collective of coll/: a member's death ends it on every other. */
	int err = weft_mpi_Allgather(own, (MPI_Count)each, MPI_INT64_T, w, (MPI_Count)each,
				     MPI_INT64_T, comm);
	for (size_t r = 0; !err && r < (size_t)f->comm->size; r++) {
		if (w[r * each] != (int64_t)kind)
			err = weft_mpi_err(MPI_ERR_TRUNCATE,
					   "rank %d is in another call on %.120s than rank %d",
					   (int)r, f->name, f->comm->rank);
		memmove(w + r * n, w + r * each + 1, n * sizeof *w);
	}
	return err;
}

int weft_mpi_file_gather(struct weft_mpi_file *f, enum weft_mpi_file_talk kind, const int64_t *mine,
			 size_t n)
{
	return gather_on(f, f->comm_handle, kind, mine, n);
}

static int agree_on(struct weft_mpi_file *f, MPI_Comm comm, int mine)
{
	int64_t word = mine;
	int err = gather_on(f, comm, WEFT_MPI_TALK_AGREE, &word, 1);
	for (int r = 0; !err && r < f->comm->size; r++)
		if (f->words[r])
			err = r == f->comm->rank
				      ? mine
				      : weft_mpi_err((int)f->words[r],
						     "rank %d of the file's group failed", r);
	return err;
}

int weft_mpi_file_agree(struct weft_mpi_file *f, int mine)
{
	return agree_on(f, f->comm_handle, mine);
}

int weft_mpi_file_same(struct weft_mpi_file *f, const int64_t *mine, size_t n, const char *what)
{
	int err = weft_mpi_file_gather(f, WEFT_MPI_TALK_SAME, mine, n);
	for (int r = 1; !err && r < f->comm->size; r++)
		if (memcmp(f->words, f->words + (size_t)r * n, n * sizeof *mine) != 0)
			err = weft_mpi_err(MPI_ERR_NOT_SAME,
					   "%s of rank %d differs from that of rank 0", what, r);
	return err;
}

/* ---- opening ------------------------------------------------------------------------------ */

#define AMODES                                                                                     \
	(MPI_MODE_RDONLY | MPI_MODE_WRONLY | MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_EXCL |     \
	 MPI_MODE_DELETE_ON_CLOSE | MPI_MODE_UNIQUE_OPEN | MPI_MODE_SEQUENTIAL | MPI_MODE_APPEND)

static int amode_wrong(int amode)
{
	int how = !!(amode & MPI_MODE_RDONLY) + !!(amode & MPI_MODE_WRONLY) +
		  !!(amode & MPI_MODE_RDWR);
	if (how != 1)
		return weft_mpi_err(MPI_ERR_AMODE,
				    "give one of MPI_MODE_RDONLY, MPI_MODE_WRONLY, MPI_MODE_RDWR");
	if (amode & MPI_MODE_RDONLY && amode & (MPI_MODE_CREATE | MPI_MODE_EXCL))
		return weft_mpi_err(MPI_ERR_AMODE,
				    "MPI_MODE_RDONLY goes with neither MPI_MODE_CREATE nor "
				    "MPI_MODE_EXCL");
	if (amode & MPI_MODE_RDWR && amode & MPI_MODE_SEQUENTIAL)
		return weft_mpi_err(MPI_ERR_AMODE,
				    "MPI_MODE_RDWR does not go with MPI_MODE_SEQUENTIAL");
	if (amode & ~AMODES)
		return weft_mpi_err(MPI_ERR_AMODE, "unknown bits in the access mode (0x%x)",
				    (unsigned)(amode & ~AMODES));
	return MPI_SUCCESS;
}

static int open_flags(int amode, bool first)
{
	int flags = amode & MPI_MODE_RDONLY   ? O_RDONLY
		    : amode & MPI_MODE_WRONLY ? O_WRONLY
					      : O_RDWR;
	/* The first member creates the file; the others find it there. */
	if (first && amode & MPI_MODE_CREATE)
		flags |= O_CREAT;
	if (first && amode & MPI_MODE_EXCL && amode & MPI_MODE_CREATE)
		flags |= O_EXCL;
	return flags;
}

static unsigned file_perm(struct weft_mpi_file *f)
{
	char value[MPI_MAX_INFO_VAL + 1];
	unsigned long mode = 0666;
	if (weft_mpi_info_look(f->info, "file_perm", value, sizeof value)) {
		char *end;
		unsigned long given = strtoul(value, &end, 8);
		if (end != value && !*end && given <= 07777)
			mode = given;
	}
	return (unsigned)mode;
}

static int open_here(struct weft_mpi_file *f)
{
	int err = weft_file_open(f->name, open_flags(f->amode, f->comm->rank == 0), file_perm(f),
				 &f->file);
	return weft_mpi_file_err(err, "cannot open", f->name);
}

/* Does the file need record locks, since members on other hosts would not see what is written here? */
static int choose_locks(struct weft_mpi_file *f)
{
	char value[16];
	snprintf(value, sizeof value, "%s", weft_setting_str(WEFT_SET_FILE_LOCKS));
	weft_mpi_info_look(f->info, "weft_file_locks", value, sizeof value);
	f->locks = !strcmp(value, "on") ||
		   (strcmp(value, "off") != 0 && !f->file->fs.coherent && !f->one_host);
	f->checks = f->locks || (strcmp(value, "off") != 0 && !f->file->fs.coherent);
	if (f->checks)
		weft_file_drop_cache(f->file);
	if (f->locks && !f->comm->rank && strcmp(value, "on") != 0)
		weft_info(
			"%s lies on %s, which is not coherent between hosts: atomic mode and sync "
			"use record locks (info key weft_file_locks)",
			f->name, f->file->fs.name);
	return MPI_SUCCESS;
}

static int open_all(struct weft_mpi_file *f)
{
	int64_t amode = f->amode;
	int err = weft_mpi_file_same(f, &amode, 1, "the access mode");
	if (!err)
		err = amode_wrong(f->amode); /* on all members, since it is the same */
	if (err)
		return err;
	/* Rank 0 first: it may have to create the file. */
	if (!f->comm->rank)
		err = open_here(f);
	if (f->comm->size > 1) {
		err = weft_mpi_file_agree(f, err);
		if (!err && f->comm->rank)
			err = open_here(f);
		err = weft_mpi_file_agree(f, err);
	}
	return err;
}

/* An access that is not completed yet may still need the rest. */
void weft_mpi_file_unref(struct weft_mpi_file *f)
{
	if (!weft_mpi_object_unref(&f->head))
		return;
	weft_mpi_file_view_drop(f);
	weft_mpi_info_free(f->info);
	weft_mpi_errhandler_unref(f->errhandler);
	pthread_mutex_destroy(&f->lock);
	free(f->words);
	free(f->name);
	free(f);
}

/* What the members have together ends. */
static void file_drop(struct weft_mpi_file *f)
{
	weft_mpi_file_spares_free(f);
	weft_mpi_shared_free(f);
	if (f->team.size)
		weft_file_team_drop(&f->team);
	f->team.size = 0;
	if (f->file)
		(void)weft_file_close(f->file);
	f->file = NULL;
	if (f->comm) {
		f->comm->file = MPI_FILE_NULL;
		weft_mpi_object_retire(&f->comm->head);
		weft_mpi_comm_unref(f->comm);
	}
	f->comm = NULL;
	weft_mpi_file_unref(f);
}

static struct weft_mpi_file *file_new(const char *name, int amode)
{
	struct weft_mpi_file *f = calloc(1, sizeof *f);
	if (!f)
		return NULL;
	atomic_init(&f->head.x_refs, 1);
	pthread_mutex_init(&f->lock, NULL);
	f->amode = amode;
	f->errhandler = weft_mpi_errhandler_file_default();
	weft_mpi_file_view_init(f);
	f->name = strdup(name);
	f->info = weft_mpi_info_make();
	if (f->name && f->info)
		return f;
	file_drop(f);
	return NULL;
}

static int comm_for(struct weft_mpi_comm *parent, struct weft_mpi_file *f)
{
	struct weft_mpi_comm *c = NULL;
	int err = weft_mpi_comm_make_all(parent, &c);
	if (!err)
		err = weft_mpi_comm_name(c, &f->comm_handle);
	if (err)
		return err;
	f->comm = c;
	f->words = calloc((size_t)c->size * (1 + WEFT_MPI_FILE_WORDS), sizeof *f->words);
	if (!f->words)
		return weft_mpi_err(MPI_ERR_NO_MEM, "no memory for a file");
	f->one_host = !weft_comm_apart(c->group->domain->core);
	snprintf(c->name, sizeof c->name, "file %.40s", f->name);
	return MPI_SUCCESS;
}

/* With MPI_MODE_APPEND the pointers begin at the end. */
static int pointers_begin(struct weft_mpi_file *f)
{
	int64_t end = 0;
	if (!(f->amode & MPI_MODE_APPEND))
		return MPI_SUCCESS;
	int err = weft_mpi_file_end(f, &end);
	f->pointer = end;
	if (!err && !f->comm->rank)
		err = weft_mpi_shared_set(f, end);
	return weft_mpi_file_agree(f, err);
}

int weft_mpi_File_open(MPI_Comm comm, const char *filename, int amode, MPI_Info info, MPI_File *fh)
{
	struct weft_mpi_comm *parent = weft_mpi_comm_of(comm);
	*fh = MPI_FILE_NULL;
	if (parent->inter)
		return weft_mpi_err(MPI_ERR_COMM, "the communicator is an intercommunicator");
	struct weft_mpi_file *f = file_new(filename, amode);
	if (!f)
		return weft_mpi_err(MPI_ERR_NO_MEM, "no memory for a file");
	int err = comm_for(parent, f);
	if (!err)
		err = weft_mpi_file_hints_take(f, info);
	if (!err)
		err = open_all(f);
	if (!err)
		err = choose_locks(f);
	if (!err)
		err = weft_mpi_shared_make(f);
	if (!err)
		err = weft_mpi_file_team_open(f);
	if (!err)
		err = pointers_begin(f);
	if (!err && weft_mpi_object_new(&f->head, WEFT_MPI_FILE))
		err = weft_mpi_err(MPI_ERR_NO_MEM, "out of handles");
	if (err) {
		file_drop(f);
		return err;
	}
	*fh = (MPI_File)(uintptr_t)f->head.handle;
	f->comm->file = *fh;
	return MPI_SUCCESS;
}

/* ---- closing ------------------------------------------------------------------------------ */

/* Requests that the program has freed, or not waited for, still use the descriptor. */
static void wait_for_accesses(struct weft_mpi_file *f)
{
	uint64_t since = weft_clock_ns();
	unsigned asks = 0;
	bool pause;
	/* IDLE <- OVER (op_over in access.c).  Carries: the system has done with the buffers. */
	while (atomic_load_explicit(&f->x_accesses,
				    memory_order_acquire)) { /* ends: each access does */
		(void)weft_task_poll(&pause);
		if (pause)
			(void)weft_task_poll_pause(NULL, 0);
		weft_mpi_aid_waits(f->comm, since, &asks);
	}
}

int weft_mpi_File_close(MPI_File *fh)
{
	struct weft_mpi_file *f = weft_mpi_file(*fh);
	if (!f)
		return weft_mpi_err(MPI_ERR_FILE, "invalid file (null or closed)");
	if (f->split)
		return weft_mpi_err(MPI_ERR_IO, "%s was not ended", f->split_call);
	wait_for_accesses(f);
	/* A member that waits for this one in another call is told that it does not come. */
	weft_coll_calls_close(f->comm->calls);
	MPI_Comm meet = weft_mpi_shared_comm(f);
	/* Once all have come, each has ended its accesses: what follows the close, anywhere, sees them. */
	/* The next open may be another host's: a write that waits in this one's cache is sent now. */
	int err = f->locks && !(f->amode & MPI_MODE_RDONLY) ? weft_file_sync(f->file) : 0;
	int closed = weft_file_close(f->file);
	err = weft_mpi_file_err(err ? err : closed, "cannot close", f->name);
	f->file = NULL;
	err = agree_on(f, meet, err);
	if (f->amode & MPI_MODE_DELETE_ON_CLOSE && !f->comm->rank) {
		int gone = weft_mpi_file_err(weft_file_delete(f->name), "cannot delete", f->name);
		err = err ? err : gone;
	}
	if (f->amode & MPI_MODE_DELETE_ON_CLOSE)
		err = agree_on(f, meet, err);
	weft_mpi_object_retire(&f->head);
	*fh = MPI_FILE_NULL;
	/* The handler hears of what went wrong while the file was closed, though its file is gone. */
	if (err)
		weft_mpi_blame_handler(f->errhandler);
	file_drop(f);
	return err;
}

int weft_mpi_File_delete(const char *filename, MPI_Info info)
{
	(void)info;
	return weft_mpi_file_err(weft_file_delete(filename), "cannot delete", filename);
}
