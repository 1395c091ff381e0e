/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpi_int.h - what the files of this folder share: communicators, groups, requests, errors.
 *
 * Arrays that an entry point widened from int are good during the call only: copy what must last.
 *
 * Function MPI_X is implemented as weft_mpi_X(), with the parameters of the large-count form.  The
 * generated entry points (gen/mpi_entry_*.c) have checked state and arguments before they call it,
 * and hand a result other than MPI_SUCCESS to the error handler that MPI names.
 */
#ifndef WEFT_MPI_INT_H
#define WEFT_MPI_INT_H

#include <mpi.h>
#include <pthread.h>
#include "base/base.h"
#include "comm/comm.h"
#include "data/data.h"
#include "mpi/object.h"
#include "wait/completion.h"

struct weft_mpi_info; /* info.h */
struct weft_mpi_type; /* type.h */
struct weft_mpi_op;   /* op.h */
struct weft_mpi_errhandler;
struct weft_mpi_bsend;   /* a buffer attached for buffered sends */
struct weft_mpi_session; /* session/session.h */

#define WEFT_MPI_TAG_UB 2147483647

/* ---- errors (error.c) --------------------------------------------------------------------- */

/*
 * Records why the calling thread's MPI function fails, and returns code:
 *	return weft_mpi_err(MPI_ERR_RANK, "rank %d is not in a communicator of %d", r, n);
 * The text is what the default error handler prints.
 */
int weft_mpi_err(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3), cold));
/* The MPI class of an internal error. */
int weft_mpi_err_of(weft_err err);

/* Calls the error handler; returns code (or ends the job, as the handler says). */
int weft_mpi_raise_comm(MPI_Comm comm, int code, const char *func) __attribute__((cold));
int weft_mpi_raise_win(MPI_Win win, int code, const char *func) __attribute__((cold));
int weft_mpi_raise_file(MPI_File file, int code, const char *func) __attribute__((cold));
int weft_mpi_raise_session(MPI_Session session, int code, const char *func) __attribute__((cold));
/* For errors of a call that makes something with that handler; if it is none, as raise. */
int weft_mpi_raise_new(MPI_Errhandler handler, int code, const char *func) __attribute__((cold));
/* For errors that belong to no object: the handler of MPI_COMM_SELF. */
int weft_mpi_raise(int code, const char *func) __attribute__((cold));

/* ---- groups (group.c) --------------------------------------------------------------------- */

struct weft_mpi_domain; /* comm/domain.h */

struct weft_mpi_group {
	struct weft_mpi_head head;
	struct weft_mpi_domain *domain; /* whose numbers `world` has; NULL: empty */
	int size;
	int rank;   /* ours, or MPI_UNDEFINED */
	int *world; /* world[r]: the process of rank r, a number of the domain */
	struct weft_mpi_session *session; /* whose process set it comes from; referenced; or NULL */
	_Atomic(int *) x_inverse; /* process -> rank or MPI_UNDEFINED; made when first needed */
};

/* world is copied.  NULL: no memory.  The new group has one reference and no handle yet. */
struct weft_mpi_group *weft_mpi_group_make_in(struct weft_mpi_domain *domain, int size,
					      const int *world);
/* The same in the job's domain. */
struct weft_mpi_group *weft_mpi_group_make(int size, const int *world);
/* g in domain's numbers, with a reference; NULL: a member is not there (or no memory). */
struct weft_mpi_group *weft_mpi_group_in(struct weft_mpi_group *g, struct weft_mpi_domain *domain);
/* Gives it a handle; takes the caller's reference, also when it fails.  Empty groups become
 * MPI_GROUP_EMPTY. */
int weft_mpi_group_name(struct weft_mpi_group *g, MPI_Group *handle_p);
void weft_mpi_group_unref(struct weft_mpi_group *g);
/* Rank of process `world` of g's domain in g, or MPI_UNDEFINED. */
int weft_mpi_group_rank_of(struct weft_mpi_group *g, int world);

/* ---- communicators (comm.c) --------------------------------------------------------------- */

/* Topology attached by topo_*.c. */
struct weft_mpi_topo_ops {
	void (*free)(void *topo);
	void *(*dup)(const void *topo); /* for MPI_Comm_dup; NULL result: no memory */
};

struct weft_mpi_comm {
	struct weft_mpi_head head;
	int rank, size;        /* in the local group */
	bool inter;            /* an intercommunicator */
	int peers;             /* number of ranks that one can send to: remote size if inter */
	const int *peer;       /* peer[r]: the process of such a rank; NULL: r itself */
	struct weft_ctx *p2p;  /* messages of point-to-point functions */
	struct weft_ctx *coll; /* messages of collectives, and of making communicators */
	struct weft_ctx *part_match,
		*part_data; /* under lock: of partitioned ones; NULL: none yet */
	uint32_t id;        /* contexts 2 id and 2 id + 1 */
	int keeper;         /* the process that may hand the id out again; -1: none */
	struct weft_mpi_group *group, *remote; /* remote == group unless inter */
	struct weft_mpi_session *session;      /* that it comes from; used; or NULL */
	struct weft_mpi_comm *local; /* inter: intracommunicator of the local group; no handle */
	/* Of two groups that have met: what our side was before, whose members have connections; they part by
	 * messages there with that tag.  NULL: none. */
	struct weft_mpi_comm *before;
	int parting_tag;
	_Atomic bool
		x_parting; /* in MPI_Comm_disconnect: others may have left, and cannot be asked */
	_Atomic uint32_t x_coll_tag; /* next tag for a collective */
	uint32_t checked;            /* collectives, with WEFT_CHECK */
	void *topo;                  /* topo_*.c */
	const struct weft_mpi_topo_ops *topo_ops;
	int topo_kind;                 /* MPI_CART, MPI_GRAPH, MPI_DIST_GRAPH or MPI_UNDEFINED */
	struct weft_coll_calls *calls; /* `coll`'s; NULL: none yet */
	void *coll_cache;              /* coll_*.c: what collectives keep per communicator */
	void (*coll_cache_free)(void *cache);

	pthread_mutex_t lock; /* of what follows */
	struct weft_mpi_errhandler *errhandler;
	struct weft_mpi_info *info;
	struct weft_mpi_bsend *bsend;
	char name[MPI_MAX_OBJECT_NAME];
	MPI_File file; /* its errors are that file's; or MPI_FILE_NULL */
	MPI_Win win;   /* its errors are that window's; or MPI_WIN_NULL */
};

/* Tags on `coll`: collectives count below WEFT_MPI_TAG_COLL_END, several tags for each; the rest is
 * for making communicators, since that may go on while collectives are under way. */
#define WEFT_MPI_TAG_COLL_END 0x10000000
#define WEFT_MPI_TAG_TALK 0x10000000
#define WEFT_MPI_TAG_INTER 0x20000000
#define WEFT_MPI_TAG_PARTING 0x30000000
#define WEFT_MPI_TAG_FINALIZE 0x30000000 /* on MPI_COMM_WORLD, which never parts */
#define WEFT_MPI_TAG_GROUP 0x40000000

/* The next collective's tag: the same on every member, since they call in the same order. */
static inline int weft_mpi_comm_coll_tag(struct weft_mpi_comm *c)
{
	/* Relaxed: MPI forbids two collectives at once on one communicator. */
	uint32_t t = atomic_fetch_add_explicit(&c->x_coll_tag, 1, memory_order_relaxed);
	return (int)(t & (WEFT_MPI_TAG_COLL_END - 1));
}

/* The same for making a communicator: a tag that no collective uses. */
static inline int weft_mpi_comm_talk_tag(struct weft_mpi_comm *c)
{
	return WEFT_MPI_TAG_TALK | weft_mpi_comm_coll_tag(c);
}

/* The process behind rank r (which must be in range). */
static inline int weft_mpi_comm_peer(const struct weft_mpi_comm *c, int r)
{
	return c->peer ? c->peer[r] : r;
}

/* The rank of process `world` among those one receives from. */
static inline int weft_mpi_comm_rank_of(struct weft_mpi_comm *c, int world)
{
	return c->peer ? weft_mpi_group_rank_of(c->remote, world) : world;
}

void weft_mpi_comm_unref_last(struct weft_mpi_comm *c);

static inline void weft_mpi_comm_ref(struct weft_mpi_comm *c)
{
	weft_mpi_object_ref(&c->head);
}

static inline void weft_mpi_comm_unref(struct weft_mpi_comm *c)
{
	if (weft_mpi_object_unref(&c->head))
		weft_mpi_comm_unref_last(c);
}

/*
 * Collective over parent's members that are in `members` (a group in parent's order or not):
 * makes a communicator of them with its own contexts.  For topologies and splits.
 */
int weft_mpi_comm_make(struct weft_mpi_comm *parent, struct weft_mpi_group *members, int tag,
		       struct weft_mpi_comm **comm_p);

/*
 * Splits like MPI_Comm_split (collective over an intracommunicator).  *comm_p is NULL for color
 * MPI_UNDEFINED.  The result has no handle yet; weft_mpi_comm_name gives it one.
 */
int weft_mpi_comm_split(struct weft_mpi_comm *parent, int color, int key,
			struct weft_mpi_comm **comm_p);
int weft_mpi_comm_name(struct weft_mpi_comm *c, MPI_Comm *handle_p);

/* ---- requests (request.c) ----------------------------------------------------------------- */

struct weft_mpi_request;

struct weft_mpi_request_ops {
	const char *name; /* of the kind, for messages */
	bool by_core;     /* over once r->core is, with its status; advance and free are NULL */
	bool collective;  /* a collective, or its start */
	/*
	 * What to wait for next; NULL: nothing, call advance.  Without advance the operation is
	 * over when this completion is.
	 */
	struct weft_completion *(*wait_on)(struct weft_mpi_request *r);
	/*
	 * Does what only the application's thread may do (user operations).  True: the operation
	 * is over.  Called by wait and test, one thread at a time.  May be NULL.
	 */
	bool (*advance)(struct weft_mpi_request *r);
	/* The operation is over: fills *st (may be MPI_STATUS_IGNORE), returns its error code.
	 * r stays; may be called again (MPI_Request_get_status). */
	int (*finish)(struct weft_mpi_request *r, MPI_Status *st);
	/* Persistent: starts it (again).  NULL: not persistent. */
	int (*start)(struct weft_mpi_request *r);
	/* NULL: cannot be cancelled. */
	int (*cancel)(struct weft_mpi_request *r);
	/* Its errors belong to the communicator that this answers; it may be NULL.  NULL: to r->comm. */
	struct weft_mpi_comm *(*owner)(struct weft_mpi_request *r);
	/* The program's code that ends a request after its last finish; its error.  May be NULL. */
	int (*end)(struct weft_mpi_request *r);
	/* MPI_Request_free while active, where r must keep its handle.  NULL: it becomes an orphan. */
	int (*free_active)(struct weft_mpi_request *r);
	/* r goes away: gives back what impl holds; r itself is the caller's.  May be NULL. */
	void (*free)(struct weft_mpi_request *r);
};

/* In a pool: no handle, neither comm nor type, not persistent. */
struct weft_mpi_request {
	/* All that a request that is over at once needs, in one line. */
	struct weft_mpi_head head;
	const struct weft_mpi_request_ops *ops;
	struct weft_mpi_request *next; /* pool, or list of requests freed while active */
	bool persistent;
	bool active;  /* persistent: started and not completed yet */
	bool typed;   /* it holds a reference to `type` */
	uint8_t mode; /* enum weft_mpi_mode */
	/* With these and the first fields of core, a small receive needs three lines more. */
	struct weft_mpi_comm *comm; /* whose error handler is called; referenced; or NULL */
	int peer;                   /* rank or MPI_ANY_SOURCE, MPI_PROC_NULL */
	int tag;
	/* point-to-point */
	struct weft_req core;
	struct weft_buf buf;
	void *type; /* datatype object, if typed */
	void *impl; /* the operation's own, e.g. a schedule */
	void *extra;
	bool continued; /* it ends with a continuation (cont/cont.h) */
	uint32_t sign;  /* WEFT_CHECK: of a persistent message (comm/sign.h), or 0 */
	/* of a collective (aid.h), since it started: */
	uint32_t vain;   /* tests that found it not over */
	unsigned asks;   /* how often other members have been asked */
	uint64_t ask_ns; /* of the clock: when they are next */
};
_Static_assert(offsetof(struct weft_mpi_request, comm) == WEFT_CACHELINE, "the first line is full");

/* From the calling thread's pool; has a handle; ops, impl and persistent are set.  comm may be
 * NULL.  NULL: no memory. */
struct weft_mpi_request *weft_mpi_request_new(const struct weft_mpi_request_ops *ops,
					      struct weft_mpi_comm *comm, void *impl,
					      bool persistent);
/* The communicator that its errors belong to; NULL: none. */
static inline struct weft_mpi_comm *weft_mpi_request_owner(struct weft_mpi_request *r)
{
	return r->ops->owner ? r->ops->owner(r) : r->comm;
}
/* Calls ops->free, drops the references and gives r back to a pool. */
void weft_mpi_request_delete(struct weft_mpi_request *r);

static inline MPI_Request weft_mpi_request_handle(const struct weft_mpi_request *r)
{
	return (MPI_Request)(uintptr_t)r->head.handle;
}

/* Waits for r by its operations: what MPI_Wait does, without status and without freeing. */
void weft_mpi_request_wait(struct weft_mpi_request *r);

/*
 * Fills a status; st may be MPI_STATUS_IGNORE.  MPI_ERROR stays as it is: only functions that
 * complete several requests set it.
 */
static inline void weft_mpi_status_set(MPI_Status *st, int source, int tag, uint64_t bytes,
				       bool cancelled)
{
	if (st == MPI_STATUS_IGNORE)
		return;
	st->MPI_SOURCE = source;
	st->MPI_TAG = tag;
	st->MPI_internal[0] = (int)(uint32_t)bytes;
	st->MPI_internal[1] = (int)(uint32_t)(bytes >> 32);
	st->MPI_internal[2] = cancelled;
}

/* The empty status, that of nothing to wait for: its MPI_ERROR is MPI_SUCCESS. */
static inline void weft_mpi_status_empty(MPI_Status *st)
{
	weft_mpi_status_set(st, MPI_ANY_SOURCE, MPI_ANY_TAG, 0, false);
	if (st != MPI_STATUS_IGNORE)
		st->MPI_ERROR = MPI_SUCCESS;
}

static inline uint64_t weft_mpi_status_bytes(const MPI_Status *st)
{
	return (uint64_t)(uint32_t)st->MPI_internal[0] | (uint64_t)(uint32_t)st->MPI_internal[1]
								 << 32;
}

/* ---- handles ------------------------------------------------------------------------------ */

#define WEFT_MPI_ACCESSOR(noun, mpi_type, KIND)                                                    \
	static inline struct weft_mpi_##noun *weft_mpi_##noun##_of(mpi_type h)                     \
	{                                                                                          \
		return weft_mpi_object_find(h, WEFT_MPI_##KIND);                                   \
	}
/* weft_mpi_comm_of(MPI_Comm) and so on: NULL when the handle names nothing. */
WEFT_MPI_ACCESSOR(comm, MPI_Comm, COMM)
WEFT_MPI_ACCESSOR(group, MPI_Group, GROUP)
WEFT_MPI_ACCESSOR(request, MPI_Request, REQUEST)
WEFT_MPI_ACCESSOR(info, MPI_Info, INFO)
WEFT_MPI_ACCESSOR(errhandler, MPI_Errhandler, ERRHANDLER)
WEFT_MPI_ACCESSOR(type, MPI_Datatype, TYPE)
WEFT_MPI_ACCESSOR(op, MPI_Op, OP)
#undef WEFT_MPI_ACCESSOR

/* ---- start and end (init.c) --------------------------------------------------------------- */

enum { WEFT_MPI_UNUSED = 0, WEFT_MPI_RUNNING, WEFT_MPI_FINALIZED, WEFT_MPI_FORKED };
extern _Atomic int weft_mpi_x_state; /* one of these */

/* One line that names func and says what is wrong with the state, then the process ends. */
_Noreturn void weft_mpi_not_running(const char *func) __attribute__((cold));

/* Called in order at MPI_Init, before the first communicator, and backwards at MPI_Finalize.
 * Defined by type_*.c and op_*.c: they predefine their objects. */
int weft_mpi_types_init(void);
void weft_mpi_types_fini(void);
int weft_mpi_ops_init(void);
void weft_mpi_ops_fini(void);

/* ---- attributes (attr.c) ------------------------------------------------------------------ */

/*
 * For dup: copies from's attributes to `to`, an object of the same kind (callbacks run, with no
 * lock held).  The code of a callback that failed, or MPI_SUCCESS.
 */
int weft_mpi_attrs_copy(struct weft_mpi_head *from, struct weft_mpi_head *to);
/* For free: runs the delete callbacks, in the reverse order of setting.  On an error nothing more
 * is deleted and the object must stay. */
int weft_mpi_attrs_free(struct weft_mpi_head *head);

#include "gen/mpi_impl.h"

#endif
