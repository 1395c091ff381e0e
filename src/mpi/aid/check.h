/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check.h - WEFT_CHECK: mistakes that MPI leaves undefined, found and named in one line each.
 *
 * The generated entry points call these where weft_mpi_hooked(): `call` is the function's name, `site` the
 * return address into the program.
 *
 * Callers   any thread, inside an MPI call that is not on a small stack's own memory: reports take a larger one.
 * Cost      off: the branch that tracing takes, too.  On: a lock and some hundred nanoseconds per call; plain sends and
 *           receives leave the fast path.
 * Failure   without memory a check is left out, never the call.
 */
#ifndef WEFT_MPI_CHECK_H
#define WEFT_MPI_CHECK_H

#include "mpi/mpi_int.h"

extern bool weft_mpi_checking;

/* Reads the setting; after types and communicators are there. */
void weft_mpi_check_init(void);
/* Before MPI_Finalize takes anything down: what was not freed. */
void weft_mpi_check_finalize(void);

/* One line about the calling rank; ends the job if the setting says so. */
void weft_mpi_check_report(const char *fmt, ...) __attribute__((format(printf, 1, 2), cold));

#define WEFT_CHECK_PLACE 160
/* " at FILE:LINE" of an address in the program, as far as it can be found; else "". */
void weft_mpi_check_place(const void *site, char *text, size_t size);
/* The same of an offset in this process's program; 0: unknown. */
void weft_mpi_check_place_of(uint64_t offset, char *text, size_t size);
/* The offset of an address in the program itself, not in a library; 0: it is not there. */
uint64_t weft_mpi_check_offset(const void *site);

/* ---- handles (check_made.c) ------------------------------------------------------------------- */
void weft_mpi_check_made(const char *call, const void *site, const void *handle);
void weft_mpi_check_freed(const char *call, const void *site, const void *handle);
/* What is known about a handle: "made by MPI_Comm_dup at a.c:3, freed by ..."; else "". */
void weft_mpi_check_known(const void *handle, char *text, size_t size);
/* By which call, and where; NULL: unknown. */
const char *weft_mpi_check_made_by(const void *handle, const void **site_p);
void weft_mpi_check_leaks(void);
/* A request that is over needs no place. */
void weft_mpi_check_forget(const void *request);

/* ---- buffers (check_pending.c) ---------------------------------------------------------------- */
/* An operation has begun: from now until it is completed its buffer is not the program's. */
void weft_mpi_check_started(const char *call, const void *site, bool send, const void *buf,
			    MPI_Count count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,
			    MPI_Request request);
/* A blocking one is about to use its buffer. */
void weft_mpi_check_used(const char *call, const void *site, bool send, const void *buf,
			 MPI_Count count, MPI_Datatype type, int peer, int tag, MPI_Comm comm);
/* What operation that is not completed receives into base; false: none. */
bool weft_mpi_check_pending_of(const void *base, const char **call_p, const void **site_p);
/* Before a call that may end requests, and after it: those whose handles are good no longer are over.
 * NULL: not checking, or no memory. */
struct weft_mpi_check_about *weft_mpi_check_about(int n, const MPI_Request requests[])
	__attribute__((cold));
void weft_mpi_check_completed(struct weft_mpi_check_about *about) __attribute__((cold));

/* ---- both sides of a message (check_pair.c) ------------------------------------------------------ */
/* After check_init's reading of the setting. */
void weft_mpi_check_pair_init(void);
/* The next message that this thread sends, or the next receive that it posts, is of such elements. */
void weft_mpi_check_message(const char *call, const void *site, bool send, const void *buf,
			    MPI_Count count, MPI_Datatype type);
void weft_mpi_check_message_over(void);
/* That call receives into buf, whatever says so later. */
void weft_mpi_check_place_said(const char *call, const void *site, const void *buf);
/* Both sides of partitioned communication have met, of so many bytes each; base: the receiver's. */
void weft_mpi_check_part(const void *base, int peer, int tag, uint64_t bytes, uint32_t theirs,
			 uint32_t ours) __attribute__((cold));
/* What was said of the message in this call is that of a request, which starts it later: now it is made, now it
 * starts. */
void weft_mpi_check_message_keep(struct weft_mpi_request *r) __attribute__((cold));
void weft_mpi_check_message_start(const struct weft_mpi_request *r) __attribute__((cold));

/* ---- collectives (check_coll.c) --------------------------------------------------------------- */
/* bytes: what all members give alike, or -1; op: MPI_OP_NULL: none; root: -1: none. */
void weft_mpi_check_coll(const char *call, const void *site, MPI_Comm comm, int root,
			 MPI_Count count, MPI_Datatype type, MPI_Op op);
/* The call that the thread has just announced by check_coll is good, and begins: where checking. */
struct weft_mpi_coll_call;
void weft_mpi_check_coll_begin(struct weft_mpi_coll_call *k) __attribute__((cold));
/* It is not good, and does not begin. */
void weft_mpi_check_coll_refused(void);
/* A call that is collective over comm and makes something of it (a communicator, a window, a file) begins. */
void weft_mpi_check_coll_makes(const char *call, const void *site, MPI_Comm comm, int root);
/* MPI_Finalize begins: the other members compare it with their collective of that number. */
void weft_mpi_check_coll_last(void);
/* Before comm is freed: its notes have been compared. */
void weft_mpi_check_coll_end(const char *call, MPI_Comm comm);
void weft_mpi_check_coll_fini(void);
/* check_blocks.c: does each member give what each other one expects of it?  `number` counts the communicator's collectives. */
void weft_mpi_check_blocks(const struct weft_mpi_coll_call *k, const char *call, const void *site,
			   uint32_t number);
/* Tags in a communicator's context for collectives: above those of communicators that are being made, which count one by
 * one. */
#define WEFT_MPI_CHECK_TAG_NOTE 0x1c000000
#define WEFT_MPI_CHECK_TAG_BLOCK 0x1e000000
#define WEFT_MPI_CHECK_TAG_MASK 0x01ffffffu

/* ---- messages (check_lost.c) -------------------------------------------------------------------- */
/* That call ends comm for this process: what has arrived there is lost. */
void weft_mpi_check_lost(const char *call, MPI_Comm comm);

/* ---- windows (check_win.c) --------------------------------------------------------------------- */
struct weft_mpi_win;
struct weft_rma_there;
enum weft_mpi_check_access {
	WEFT_MPI_CHECK_PUT,
	WEFT_MPI_CHECK_GET,
	WEFT_MPI_CHECK_ACC,
	WEFT_MPI_CHECK_SWAP, /* compare and swap: goes with every accumulate */
};
/* All members of the window check: its accesses are kept from now on. */
void weft_mpi_check_win_made(struct weft_mpi_win *w);
void weft_mpi_check_win_free(struct weft_mpi_win *w);
/* Where w->log is: an access has begun; those to rank (-1: all) are over, local: gets alone; at a fence, all members. */
void weft_mpi_check_win_access(struct weft_mpi_win *w, const char *call,
			       enum weft_mpi_check_access kind, unsigned op, unsigned elem,
			       const struct weft_rma_there *there) __attribute__((cold));
void weft_mpi_check_win_flushed(struct weft_mpi_win *w, int rank, bool local) __attribute__((cold));
int weft_mpi_check_win_fence(struct weft_mpi_win *w) __attribute__((cold));
/* Before rank hears of MPI_Win_complete; and when all origins have completed. */
void weft_mpi_check_win_complete(struct weft_mpi_win *w, int rank) __attribute__((cold));
void weft_mpi_check_win_wait(struct weft_mpi_win *w) __attribute__((cold));

/* The name of comm, or a text for one that has none. */
const char *weft_mpi_check_comm(MPI_Comm comm);
/* Bytes and a hash of the signature of count elements of type. */
uint64_t weft_mpi_check_signature(MPI_Count count, MPI_Datatype type, uint64_t *bytes_p);
struct weft_type;
uint64_t weft_mpi_check_layout_signature(MPI_Count count, const struct weft_type *t,
					 uint64_t *bytes_p);
/* The same in short (comm/sign.h), 0: no elements; and what its elements are called. */
uint32_t weft_mpi_check_layout_sign(MPI_Count count, const struct weft_type *t);
uint32_t weft_mpi_check_sign(MPI_Count count, MPI_Datatype type);
const char *weft_mpi_check_elements(uint32_t sign);

#endif
