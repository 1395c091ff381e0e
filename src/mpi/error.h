/* SPDX-License-Identifier: BSD-3-Clause */
/* error.h - why the calling thread's MPI function fails: between error.c and errhandler.c. */
#ifndef WEFT_MPI_ERROR_H
#define WEFT_MPI_ERROR_H

#include "mpi/mpi_int.h"

struct weft_mpi_cause {
	int code;                            /* that text explains */
	int text_code;                       /* the class that text was written for */
	bool blamed;                         /* blame is set */
	struct weft_mpi_comm *blame;         /* referenced; whose handler is called instead */
	struct weft_mpi_errhandler *handler; /* referenced; called instead; or NULL */
	char text[240];
};

/* The calling thread's. */
struct weft_mpi_cause *weft_mpi_cause(void);

/* The error belongs to that communicator (it came out of one of its requests). */
void weft_mpi_blame(struct weft_mpi_comm *c);

/* The error belongs to what is being made with that handler. */
void weft_mpi_blame_handler(struct weft_mpi_errhandler *e);

/* A standard class's or user's text; NULL: not an error code. */
const char *weft_mpi_code_text(int code, char *buf, size_t size);

/* Notes why a peer was lost, so that errors can say it. */
void weft_mpi_peer_down(int peer, weft_err err, const char *why);
/* The error class for an operation that ended with err, with the peer's story if it is known. */
int weft_mpi_err_peer(weft_err err, int world);

#endif
