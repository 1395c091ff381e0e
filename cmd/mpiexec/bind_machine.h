/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bind_machine.h - the machine as bind.c deals it out: units (cores, or hardware threads) in order,
 * and the objects of one kind at a time.
 *
 * Callers   bind.c.  Each false or NULL is after one line, but for want of memory.
 */
#ifndef MPIEXEC_BIND_MACHINE_H
#define MPIEXEC_BIND_MACHINE_H

#include "bind.h"
#include "topo/hwloc_lib.h"

struct bind_machine {
	const struct weft_hwloc *hw;
	hwloc_topology_t tree;
	bool is_real; /* this machine, not a description */
	hwloc_bitmap_t *units;
	int unitn;
	hwloc_bitmap_t *objects; /* of the kind asked for last */
	int objectn;
};

/* cpus: only these of the cores that this process may use, or NULL. */
bool bind_machine_load(struct bind_machine *m, const char *cpus, bool threads);
void bind_machine_unload(struct bind_machine *m);

/* Sets objects; false: the machine has none of the kind. */
bool bind_machine_objects(struct bind_machine *m, enum bind_kind kind);
bool bind_machine_holds(const struct bind_machine *m, int object, int unit);
int bind_machine_first_unit(const struct bind_machine *m, int object);
int bind_machine_units_in(const struct bind_machine *m, int object);

/* Adds to set the object of the kind that holds the unit. */
bool bind_machine_around(struct bind_machine *m, enum bind_kind kind, int unit, hwloc_bitmap_t set);

/* The cores that a rankfile names. */
bool bind_machine_slots(const struct bind_machine *m, const char *text, hwloc_bitmap_t set);

/* "core 1 [../BB]"; set NULL: not bound.  To be freed. */
char *bind_machine_describe(const struct bind_machine *m, hwloc_const_bitmap_t set);

#endif
