/* SPDX-License-Identifier: BSD-3-Clause */
/* dyn.h - what the files of this folder share, and what MPI_Init and MPI_Finalize call. */
#ifndef WEFT_MPI_DYN_H
#define WEFT_MPI_DYN_H

#include "mpi/comm/comm_int.h"

struct weft_comm_line;

/* weft_mpi_meet over a line, which it closes.  line: on the root; NULL there: see `failed`. */
int weft_mpi_meet_by_line(struct weft_mpi_comm *local, int root, struct weft_comm_line *line,
			  int failed, int note[2], struct weft_mpi_comm **inter_p);

/* MPI_SUCCESS: an intracommunicator, and root is one of its ranks. */
int weft_mpi_dyn_check(const struct weft_mpi_comm *c, int root);

/* In MPI_Init, once there are communicators: meets the processes that have started this job, if
 * MPI_Comm_spawn did.  An MPI error code. */
int weft_mpi_dyn_init(void);
/* In MPI_Finalize, while everything else still works. */
void weft_mpi_dyn_fini(void);

void weft_mpi_ports_fini(void);
void weft_mpi_names_fini(void);

#endif
