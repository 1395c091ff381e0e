/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * domain.h - a set of processes that can talk to each other: those of this job, or of several jobs
 * that have met.
 *
 * Every communicator lies in one domain, and the numbers in its groups are that domain's: 0..size-1,
 * the same on all its members.  A process may be in several domains, under different numbers; its
 * name (struct weft_mpi_process) tells that it is the same.  The domain of the job is there from
 * MPI_Init to MPI_Finalize; another has a core (comm/comm.h) of its own as long as it has
 * communicators, and is memory as long as groups refer to it.
 *
 * Callers   any thread, unless it says otherwise.
 * Failure   a process of a met job that dies takes this job with it, until the last communicator of
 *           their domain is gone.
 */
#ifndef WEFT_MPI_DOMAIN_H
#define WEFT_MPI_DOMAIN_H

#include "mpi/mpi_int.h"

/* The same in every process that speaks of it. */
struct weft_mpi_process {
	uint8_t job[16];
	int32_t rank; /* in that job's MPI_COMM_WORLD */
};

struct weft_mpi_ids; /* comm_id.c */

struct weft_mpi_domain {
	_Atomic int x_refs;     /* groups; communicators refer to it by theirs */
	_Atomic int x_comms;    /* communicators */
	struct weft_core *core; /* NULL: groups only, or ended */
	int rank, size;         /* rank: ours, or -1 */
	struct weft_mpi_process *process;
	struct weft_mpi_ids *ids;
	struct weft_mpi_domain *next; /* under the lock of domain.c: all that have a core */
};

/* The job's. */
extern struct weft_mpi_domain *weft_mpi_home;
int weft_mpi_domains_init(int rank, int size);
/* Ends all that are left; before the layers below stop.  May block. */
void weft_mpi_domains_fini(void);

/*
 * A domain of met processes over `core`, which it takes over; or without core, for groups alone
 * (NULL).  process is copied.  The caller has one use of it (unuse), without core one reference
 * (unref).  NULL: no memory, core is as before.
 */
struct weft_mpi_domain *weft_mpi_domain_make(struct weft_core *core, int size,
					     const struct weft_mpi_process *process);
void weft_mpi_domain_ref(struct weft_mpi_domain *d);
void weft_mpi_domain_unref(struct weft_mpi_domain *d);

/* A communicator of d begins, ends. */
void weft_mpi_domain_use(struct weft_mpi_domain *d);
void weft_mpi_domain_unuse(struct weft_mpi_domain *d);
/* Leaves the domains whose last communicator has ended.  May block: from MPI calls that may. */
void weft_mpi_domains_sweep(void);

/* The number of that process in d, or -1. */
int weft_mpi_domain_find(const struct weft_mpi_domain *d, const struct weft_mpi_process *p);

/* A peer of a core is gone. */
void weft_mpi_domain_peer_down(struct weft_core *core, int peer, weft_err err, const char *why);

#endif
