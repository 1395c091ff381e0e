/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * spawn_plan.h - what MPI_Comm_spawn_multiple asks for, as a command line of weft's mpiexec.
 *
 * Info keys: wdir (wd), path, host, add-host, soft, arch, mpi_initial_errhandler and file, which names a file of lines
 * KEY VALUE with more of them; a key that is given itself rules.  Others are passed over.
 *
 * Callers   the root of a spawn.
 */
#ifndef WEFT_MPI_SPAWN_PLAN_H
#define WEFT_MPI_SPAWN_PLAN_H

#include "mpi/mpi_int.h"

struct weft_mpi_spawn_program {
	const char *command;
	char **argv; /* without the command; MPI_ARGV_NULL: none */
	int maxprocs;
	MPI_Info info;
};

struct weft_mpi_spawn_plan {
	char **argv; /* for mpiexec; argv[0] is free for its name */
	int n, room;
	int asked;   /* processes: the sum of maxprocs */
	int started; /* as soft wants it */
};

/* An MPI error code; fini also after an error. */
int weft_mpi_spawn_plan_make(const struct weft_mpi_spawn_program *program, int count,
			     struct weft_mpi_spawn_plan *plan);
void weft_mpi_spawn_plan_fini(struct weft_mpi_spawn_plan *plan);

#endif
