/* SPDX-License-Identifier: BSD-3-Clause */
/* verdict.h - which failure ended the job, in what words, and with which exit code. */
#ifndef MPIEXEC_VERDICT_H
#define MPIEXEC_VERDICT_H

#include <stdbool.h>
#include <stdint.h>
#include "place.h"
#include "plan.h"

enum verdict_kind {
	VERDICT_NONE,
	/* may be a consequence of one of the kinds below: replaced by it */
	VERDICT_LOST, /* an MPI process below a wrapper ended without finalize, its status unknown */
	VERDICT_STUCK, /* a rank left while others wait for it */
	VERDICT_ABORT, /* value: code; text: NULL, or why, in the rank's words */
	/* a cause by itself */
	VERDICT_DIED,     /* value: wait status */
	VERDICT_PROTOCOL, /* text */
	VERDICT_START,    /* value: errno, step */
	VERDICT_INTERNAL, /* text */
};

struct verdict {
	enum verdict_kind kind;
	int rank, value, step;
	const char *text; /* static */
};

/* Is b the better explanation when both were heard of within a moment, a first? */
bool verdict_replaces(const struct verdict *b, const struct verdict *a);

/* Exit code 0 without MPI_Finalize: a failure only for ranks that still wait for it. */
bool verdict_is_unfinished(const struct verdict *v);

/* How long to wait for a better explanation. */
uint64_t verdict_window_ns(const struct verdict *v);

/* Names hosts in lines as the place does, which stays. */
void verdict_use(const struct place *place);

/* One line on stderr. */
void verdict_say(const struct verdict *v, const struct plan *plan);

int verdict_exit_code(const struct verdict *v);

#endif
