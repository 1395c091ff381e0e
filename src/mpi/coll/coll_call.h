/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll_call.h - one call of a collective: its arguments checked and translated for coll/, then run
 * in one of the three forms.
 *
 * Use       open; weft_mpi_X_args checks the arguments of X and fills in a; run, start or init end
 *           the call, whatever comes of it.  After a failed check: refuse.  tools/gen_mpi.py writes
 *           these steps down, for each X three times (gen/mpi_coll.c).
 */
#ifndef WEFT_MPI_COLL_CALL_H
#define WEFT_MPI_COLL_CALL_H

#include "coll/coll.h"
#include "mpi/mpi_int.h"
#include "mpi/coll/op.h"
#include "mpi/type/type.h"

struct weft_mpi_coll_call {
	struct weft_mpi_comm *comm;
	MPI_Comm handle;
	struct weft_coll_args a;
	struct weft_mpi_op *op;        /* user's: referenced by requests */
	struct weft_mpi_type *op_type; /* the datatype its function is told */
	const struct weft_type *
		*arrays[2]; /* of alltoallw, send and receive; freed with the call */
};

void weft_mpi_coll_open(struct weft_mpi_coll_call *k, enum weft_coll_kind kind, MPI_Comm comm);
/* After a failed check: ends the call; returns err. */
int weft_mpi_coll_refuse(struct weft_mpi_coll_call *k, int err);

/* The members of c, without a tag. */
void weft_mpi_coll_group(struct weft_mpi_comm *c, struct weft_coll_group *g);

int weft_mpi_coll_run(struct weft_mpi_coll_call *k);
int weft_mpi_coll_start(struct weft_mpi_coll_call *k, MPI_Request *request);
int weft_mpi_coll_init(struct weft_mpi_coll_call *k, MPI_Request *request);

/*
 * Checks (base, count, type) and gives the layout; `what` names the buffer.  base must not be
 * MPI_IN_PLACE.
 */
int weft_mpi_coll_buf(const char *what, const void *base, MPI_Count count, MPI_Datatype type,
		      const struct weft_type **layout_p);
/* The same for n blocks of one type / of types[i]; the layouts go to k.  displs may be NULL. */
int weft_mpi_coll_bufs(const char *what, const void *base, const MPI_Count *counts,
		       const MPI_Aint *displs, int n, MPI_Datatype type,
		       const struct weft_type **layout_p);
int weft_mpi_coll_bufs_w(struct weft_mpi_coll_call *k, bool send, const void *base,
			 const MPI_Count *counts, const MPI_Aint *displs, const MPI_Datatype *types,
			 int n);

/* Data is sent from where data is received, without MPI_IN_PLACE. */
int weft_mpi_coll_same_buffer(void);
/* MPI_IN_PLACE where it is not allowed. */
int weft_mpi_coll_not_in_place(const char *what);

/* Is `sendbuf` MPI_IN_PLACE, as allowed on intracommunicators?  Sets a.in_place. */
int weft_mpi_coll_in_place(struct weft_mpi_coll_call *k, const void *sendbuf);

#endif
