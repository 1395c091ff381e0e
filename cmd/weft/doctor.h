/* SPDX-License-Identifier: BSD-3-Clause */
/* doctor.h - what the files of `weft doctor` share: the ranks of a job and what their threads wait for. */
#ifndef WEFT_DOCTOR_H
#define WEFT_DOCTOR_H

#include "wait/note.h"

#define WEFT_DOCTOR_TEXT 80

/* One thread that waits. */
struct weft_doctor_wait {
	uint64_t note_at; /* there */
	struct weft_wait_note note;
	struct weft_wait_call what;
	char thread[WEFT_DOCTOR_TEXT], call[WEFT_DOCTOR_TEXT], comm[WEFT_DOCTOR_TEXT];
	int *member; /* note.size numbers; NULL: 0.. */
	int holder;  /* LOCK: rank of the holder in the window; -1: none is named */
};

struct weft_doctor_rank {
	int pid, rank;
	bool stopped;             /* by a signal or a debugger */
	unsigned long long ticks; /* of the processor that it has used */
	struct weft_doctor_wait *wait;
	int waits;
	bool still; /* waits, and has done nothing else between two looks */
	bool stuck; /* waits for ranks that are stuck */
};

/* Its ranks on this host. */
struct weft_doctor_job {
	char name[WEFT_WAIT_JOB];
	int size; /* ranks on all hosts */
	struct weft_doctor_rank *rank;
	int ranks;
};

struct weft_doctor_rank *weft_doctor_find(struct weft_doctor_job *j, int rank);
/* Number in the job of member i of a wait's communicator. */
static inline int weft_doctor_member(const struct weft_doctor_wait *w, int i)
{
	return w->member ? w->member[i] : i;
}

/* Which ranks are still in two looks at the same job. */
void weft_doctor_compare(const struct weft_doctor_job *before, struct weft_doctor_job *now);
/* Marks the ranks that wait for each other; returns their number. */
int weft_doctor_deadlock(struct weft_doctor_job *j);
/* A rank that the stuck rank r waits for, by wait *w_p; -1: none in particular. */
int weft_doctor_waits_for(struct weft_doctor_job *j, const struct weft_doctor_rank *r,
			  const struct weft_doctor_wait **w_p);

#endif
