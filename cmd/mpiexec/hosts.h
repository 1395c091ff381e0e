/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hosts.h - the machines that --hosts or -f name, checked before another launcher reads them.
 *
 * A line of the file, as MPICH's and Open MPI's users write it: NAME, NAME:RANKS, NAME slots=RANKS
 * (what else stands behind a name, word=value, is passed over); # begins a comment.
 *
 * Callers   the main thread, before it hands the job over.
 */
#ifndef MPIEXEC_HOSTS_H
#define MPIEXEC_HOSTS_H

#include <stdbool.h>

struct host_item {
	const char *name;
	int slots; /* 0: not said */
};

struct host_list {
	struct host_item *items;
	int count;
};

/* The hosts of a list and of a file (either may be NULL), each once, in their order; of neither: this
 * machine, whose name is "".  False: after one line. */
bool hosts_collect(const char *list, const char *path, struct host_list *hosts);

/* How a launcher wants its file. */
enum hosts_form {
	HOSTS_COLON, /* NAME:RANKS */
	HOSTS_SLOTS, /* NAME slots=RANKS */
	HOSTS_NAMES, /* NAME; ranks per host cannot be said */
	HOSTS_OURS,  /* mpiexec starts the ranks itself: no file is written */
};

/* Is this a list of hosts?  False: after one line. */
bool hosts_list_ok(const char *list, enum hosts_form form);

/*
 * The file in the launcher's form: a path that is good in this process and in what it becomes by
 * exec; NULL after one line.
 */
const char *hosts_file(const char *path, enum hosts_form form);

#endif
