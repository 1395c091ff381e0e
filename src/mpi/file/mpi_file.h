/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpi_file.h - files as MPI names them: the object, its view and pointers; for the files of this folder.
 *
 * Callers   any thread.  MPI makes the program order the calls that change the view against all others.
 * Owner     the file's communicator is its own: a copy of the one that it was opened on.  An operation uses
 *           view and datatypes of its own: the program may change the view before it is over.
 * Errors    codes of error.h; weft_mpi_file_err makes them of what src/file/ says.
 */
#ifndef WEFT_MPI_FILE_H
#define WEFT_MPI_FILE_H

#include "file/op.h"
#include "file/team.h"
#include "mpi/errhandler.h"
#include "mpi/info.h"
#include "mpi/mpi_int.h"
#include "mpi/type/type.h"

struct weft_mpi_datarep;
struct weft_mpi_shared;
struct weft_mpi_file_op;
struct weft_mpi_file_empty;

#define WEFT_MPI_FILE_WORDS 2

/* What a call names as the place that it begins at. */
enum weft_mpi_where {
	WEFT_MPI_BY_OFFSET,  /* an offset, in etypes */
	WEFT_MPI_BY_OWN,     /* this process's pointer */
	WEFT_MPI_BY_SHARED,  /* the shared pointer */
	WEFT_MPI_BY_ORDERED, /* the same, in the order of the ranks */
};

struct weft_mpi_file {
	struct weft_mpi_head head;
	struct weft_file *file;
	struct weft_mpi_comm *comm; /* has a handle; its errors are the file's */
	MPI_Comm comm_handle;
	char *name;
	int amode;
	bool one_host; /* all members share a kernel */
	bool locks; /* the file system is not coherent between the members' hosts: by record locks */
	bool checks; /* nor with hosts that no member is on: their changes are looked for by sync and open */
	/* The view; MPI orders its changes. */
	struct weft_file_view view;
	struct weft_mpi_type *etype, *filetype; /* referenced */
	struct weft_mpi_type
		*laid; /* referenced: that the view lies on; the file type, unless that is mixed */
	const struct weft_mpi_datarep *rep;
	uint64_t etype_bytes; /* in the file */
	uint64_t view_number; /* the same on all members */
	_Atomic bool x_atomic;
	_Atomic unsigned x_accesses;    /* that are under way */
	struct weft_mpi_shared *shared; /* counters and locks of all members */
	struct weft_file_team team;     /* for collective accesses; size 0: not open */
	int64_t *
		words; /* 1 + WEFT_MPI_FILE_WORDS of each member, for what they tell each other in a call */
	pthread_mutex_t lock;              /* of what follows */
	int64_t pointer;                   /* in etypes */
	struct weft_mpi_file_empty *spare; /* for refused parts of collective accesses */
	/* The split collective that was begun; NULL: none. */
	struct weft_mpi_file_op *split;
	const char *split_call;
	struct weft_mpi_errhandler *errhandler;
	struct weft_mpi_info *info; /* as given, and as used */
};

static inline struct weft_mpi_file *weft_mpi_file(MPI_File h)
{
	return weft_mpi_object_find(h, WEFT_MPI_FILE);
}

/* ---- error.c ------------------------------------------------------------------------------ */

/* The class of an errno; 0 is MPI_SUCCESS.  what: in words, such as "cannot open". */
int weft_mpi_file_err(int err, const char *what, const char *name);

/* ---- open.c ------------------------------------------------------------------------------- */

/* An access is a user of the object, until it is completed. */
void weft_mpi_file_unref(struct weft_mpi_file *f);
/* What members tell each other, so that two that are in different calls do not take it for something else. */
enum weft_mpi_file_talk {
	WEFT_MPI_TALK_AGREE = 0x5701,
	WEFT_MPI_TALK_SAME,
	WEFT_MPI_TALK_TURN, /* of an ordered access */
};
/* Every member says `mine`, n numbers; those of each rank lie in f->words then.  No rank waits for one that has died. */
int weft_mpi_file_gather(struct weft_mpi_file *f, enum weft_mpi_file_talk kind, const int64_t *mine,
			 size_t n);
/* Every member says `mine`; the result is on all that of the first that failed, or MPI_SUCCESS. */
int weft_mpi_file_agree(struct weft_mpi_file *f, int mine);
/* The same, for arguments that have to be equal: n numbers. */
int weft_mpi_file_same(struct weft_mpi_file *f, const int64_t *mine, size_t n, const char *what);

/* ---- team.c ------------------------------------------------------------------------------- */

/* Collective: f->team, unless there is one member, or the hint collective_buffering says no. */
int weft_mpi_file_team_open(struct weft_mpi_file *f);
/* The next collective access's tags: the same on every member. */
int weft_mpi_file_team_tag(struct weft_mpi_file *f);

/* ---- hints.c ------------------------------------------------------------------------------ */

/* Takes in the hints that are known; others are left. */
int weft_mpi_file_hints_take(struct weft_mpi_file *f, MPI_Info info);
/* A hint as a number, or `otherwise`. */
int64_t weft_mpi_file_hint(struct weft_mpi_file *f, const char *key, int64_t otherwise);

/* ---- view.c ------------------------------------------------------------------------------- */

/* The first view: bytes from 0 on. */
void weft_mpi_file_view_init(struct weft_mpi_file *f);
void weft_mpi_file_view_drop(struct weft_mpi_file *f);
/* How many etypes of the view lie before the end of the file, the last one perhaps in part. */
int weft_mpi_file_end(struct weft_mpi_file *f, int64_t *etypes_p);

/* ---- mixed.c ------------------------------------------------------------------------------ */

/* How the elements of a mixed file type lie in the file, as a datatype of bytes; referenced. */
int weft_mpi_file_mixed_type(const struct weft_mpi_datarep *rep, const struct weft_mpi_type *t,
			     struct weft_mpi_type **type_p);

/* ---- datarep.c ---------------------------------------------------------------------------- */

/* NULL: no such representation. */
const struct weft_mpi_datarep *weft_mpi_datarep_find(const char *name);
const char *weft_mpi_datarep_name(const struct weft_mpi_datarep *rep);
/* Is the file's data as memory's? */
bool weft_mpi_datarep_plain(const struct weft_mpi_datarep *rep);
/* Bytes of count of t in the file. */
int weft_mpi_datarep_bytes(const struct weft_mpi_datarep *rep, const struct weft_mpi_type *t,
			   MPI_Count count, uint64_t *bytes_p);
/* By how much displacements grow; mixed: elements of t grow differently, and displacements do not. */
int weft_mpi_datarep_scale(const struct weft_mpi_datarep *rep, const struct weft_mpi_type *t,
			   uint32_t *num_p, uint32_t *den_p, bool *mixed_p);
/* The length of an element in the file.  Runs user code. */
int weft_mpi_datarep_element(const struct weft_mpi_datarep *rep, enum weft_basic basic,
			     MPI_Aint *bytes_p);
/* Between count of t at buf and the file's bytes.  Runs user code. */
int weft_mpi_datarep_out(const struct weft_mpi_datarep *rep, const void *buf, MPI_Count count,
			 MPI_Datatype type, void *bytes);
/* got: bytes of the file that are there; *data_p: how many bytes of data they make. */
int weft_mpi_datarep_in(const struct weft_mpi_datarep *rep, void *buf, MPI_Count count,
			MPI_Datatype type, void *bytes, uint64_t got, uint64_t *data_p);
void weft_mpi_datareps_end(void);

/* ---- shared.c ----------------------------------------------------------------------------- */

/* Collective. */
int weft_mpi_shared_make(struct weft_mpi_file *f);
void weft_mpi_shared_free(struct weft_mpi_file *f);
/* A communicator of the members that no call but close uses, once the file is open: there they meet though other calls did not match. */
MPI_Comm weft_mpi_shared_comm(const struct weft_mpi_file *f);
/* Adds, and gives what was there before. */
int weft_mpi_shared_add(struct weft_mpi_file *f, int64_t etypes, int64_t *before_p);
/* One member alone, all others wait. */
int weft_mpi_shared_set(struct weft_mpi_file *f, int64_t etypes);
/* Collective: this member's part of an ordered access. */
int weft_mpi_shared_turn(struct weft_mpi_file *f, int64_t etypes, int64_t *begin_p);
/* The atomic mode's lock over bytes [from, to) of the file. */
int weft_mpi_shared_lock(struct weft_mpi_file *f, bool exclusive, uint64_t from, uint64_t to);
void weft_mpi_shared_unlock(struct weft_mpi_file *f, bool exclusive, uint64_t from, uint64_t to);

/* ---- atomic.c ----------------------------------------------------------------------------- */

/* By the caller, which waits for the locks. */
int weft_mpi_atomic_run(struct weft_mpi_file_op *o);
/* In the background; then `over` is signalled, and its code is there. */
void weft_mpi_atomic_start(struct weft_mpi_file_op *o);
/* No access is under way. */
void weft_mpi_atomic_end(void);

/* ---- access.c ----------------------------------------------------------------------------- */

/* A data access: what the program asked for. */
struct weft_mpi_file_call {
	struct weft_mpi_file *file;
	bool write, all;
	bool waits; /* the caller does, for its end */
	enum weft_mpi_where where;
	MPI_Offset offset; /* AT */
	void *buf;
	MPI_Count count;
	MPI_Datatype type;
};

/* An access under way. */
struct weft_mpi_file_op {
	struct weft_file_op op;
	struct weft_file_all all; /* of a collective access; team NULL: it is none */
	struct weft_mpi_file *file;
	/* In another representation: the file's bytes, and where they come from or go. */
	char *bytes;
	void *buf;
	MPI_Count count;
	struct weft_mpi_type *type; /* referenced, or NULL */
	/* Its view, as it was when it began. */
	struct weft_file_view view;
	struct weft_mpi_type *filetype; /* referenced, or NULL */
	const struct weft_mpi_datarep *rep;
	bool in;    /* still to be converted */
	int code;   /* of the conversion, or of the locks of atomic mode */
	bool apart; /* in atomic mode, by the thread of atomic.c: */
	struct weft_mpi_file_op *next;
	struct weft_completion over;
	uint64_t data; /* bytes of data, once converted */
};

/* Parts of collective accesses that are taken with nothing where there is no memory to refuse them: made by open. */
int weft_mpi_file_spares_make(struct weft_mpi_file *f);
void weft_mpi_file_spares_free(struct weft_mpi_file *f);
int weft_mpi_file_access(const struct weft_mpi_file_call *k, MPI_Status *st);
int weft_mpi_file_iaccess(const struct weft_mpi_file_call *k, MPI_Request *request);
/* call: the name of the function that begins; both give the same. */
int weft_mpi_file_split_begin(const struct weft_mpi_file_call *k, const char *call);
int weft_mpi_file_split_end(struct weft_mpi_file *f, const char *call, MPI_Status *st);

#endif
