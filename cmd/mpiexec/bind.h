/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bind.h - which cores each rank of this machine may use: objects of the machine, dealt out to ranks.
 *
 * Ranks are mapped to objects (core, cache, NUMA node, package) one after the other, numbered, and
 * bound to the object of the wished kind around their place.  Only cores that this process may use
 * count (affinity, cgroup, --cpu-set).  What HWLOC_SYNTHETIC or HWLOC_XMLFILE describe is computed
 * and reported, not applied.
 *
 * Callers   bind_read_*: the parser.  bind_make: before ranks are started.  bind_apply: between fork
 *           and exec.
 * Errors    false after one line.
 */
#ifndef MPIEXEC_BIND_H
#define MPIEXEC_BIND_H

#include <stdbool.h>
#include <stddef.h>

enum bind_kind {
	BIND_UNSET,
	BIND_NONE,
	BIND_SLOT, /* the next core; with BIND_HOST also a way to deal ranks out to hosts */
	BIND_THREAD,
	BIND_CORE,
	BIND_L1,
	BIND_L2,
	BIND_L3,
	BIND_NUMA,
	BIND_PACKAGE,
	BIND_HOST,
	BIND_FILL, /* --rank-by: object by object */
};

struct bind_wish {
	enum bind_kind bind, map, rank;
	int per_object;       /* ppr:N:OBJECT, 0: not given */
	int units;            /* PE=N: cores per rank, 0: not given */
	bool threads;         /* hardware threads count as cores */
	bool report;          /* a line per rank */
	const char *cpus;     /* --cpu-set, or NULL */
	const char *rankfile; /* or NULL */
};

/* --bind-to, --map-by and --rank-by as MPICH's and Open MPI's users write them. */
bool bind_read_target(const char *option, const char *text, struct bind_wish *wish);
bool bind_read_map(const char *option, const char *text, struct bind_wish *wish);
bool bind_read_rank(const char *option, const char *text, struct bind_wish *wish);

/* The kind in the words of the command line. */
const char *bind_word(enum bind_kind kind);

/* Does the wish need the machine's tree? */
bool bind_is_wished(const struct bind_wish *wish);

/* Objects that `ppr:N:OBJECT` multiplies; 0 after one line. */
int bind_count_objects(const struct bind_wish *wish);

struct bind_rank {
	void *set; /* cpu_set_t of `bytes`, or NULL: not bound */
	size_t bytes;
	char *text; /* for the report */
};

/*
 * The cores of `count` ranks of this machine.  slots: NULL, or of each rank what a rankfile says:
 * "0-3,6" or "1:0-2" (package : its cores), NULL: nothing.
 */
bool bind_make(const struct bind_wish *wish, const char *const *slots, int count,
	       struct bind_rank *ranks);

void bind_apply(const struct bind_rank *rank);

#endif
