/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmi.h - the server's side of PMI-1: one connection per rank, one key-value space.
 *
 * Ranks are not trusted to be sane: a line that is too long or makes no sense fails the job, a rank
 * that does not read its answers is not served on.  Nothing here blocks.
 *
 * Callers   the main thread only.
 */
#ifndef MPIEXEC_PMI_H
#define MPIEXEC_PMI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the job hears. */
struct pmi_hooks {
	void (*aborted)(int rank, int code, const char *why); /* why: static, or NULL */
	void (*broken)(int rank, const char *what);           /* a request that makes no sense */
	void (*lost)(int rank, int status); /* its MPI process ended without finalize */
	void (*stuck)(int rank);            /* rank left while others wait for it in a barrier */
};

/* mapping: PMI_process_mapping, which ranks share a host. */
bool pmi_init(int size, const char *jobid, const char *mapping, const struct pmi_hooks *hooks);

/* Serves rank on fd, our end of a socket pair, from now on. */
bool pmi_attach(int rank, int appnum, int fd);

/* Serves a rank of another host: send carries answers to it, pmi_feed what it says. */
void pmi_attach_far(int rank, int appnum, void (*send)(int rank, const char *text, size_t len));
void pmi_feed(int rank, const char *text, size_t len);
/* The process that said init there has ended; status: -1, not known. */
void pmi_speaker_ended(int rank, int status);

/* The rank's process has ended: reads what it still said and closes. */
void pmi_detach(int rank);

enum pmi_state {
	PMI_SILENT, /* never said init */
	PMI_JOINED,
	PMI_LEFT, /* said finalize */
};
enum pmi_state pmi_state_of(int rank);

/* Is a process served for that rank: from pmi_attach to pmi_detach. */
bool pmi_is_attached(int rank);

/* The process that said init has ended, and its exit status is unknown. */
bool pmi_is_silent(int rank);

/* The wait status of the process that said init, which may be below a wrapper; -1: not known. After
 * pmi_detach. */
int pmi_speaker_status(int rank);

/* When the first rank came to the barrier that is under way; 0: none is. */
uint64_t pmi_barrier_since(void);
/* A rank that lives and has not said init; -1: none. */
int pmi_late_rank(void);

/* Has the rank asked for the job's end? */
bool pmi_has_aborted(int rank);

#endif
