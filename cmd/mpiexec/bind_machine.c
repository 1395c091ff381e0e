/* SPDX-License-Identifier: BSD-3-Clause */
/* bind_machine.c - reads hwloc's tree, within the cores that this process may use. */
#include "bind_machine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "say.h"

static hwloc_obj_type_t type_of(enum bind_kind kind)
{
	switch (kind) {
	case BIND_THREAD:
		return HWLOC_OBJ_PU;
	case BIND_L1:
		return HWLOC_OBJ_L1CACHE;
	case BIND_L2:
		return HWLOC_OBJ_L2CACHE;
	case BIND_L3:
		return HWLOC_OBJ_L3CACHE;
	case BIND_NUMA:
		return HWLOC_OBJ_NUMANODE;
	case BIND_PACKAGE:
		return HWLOC_OBJ_PACKAGE;
	case BIND_HOST:
	case BIND_NONE:
		return HWLOC_OBJ_MACHINE;
	default:
		return HWLOC_OBJ_CORE;
	}
}

/* Has the tree one level of the type, and not none or several? */
static bool has_level(int depth)
{
	return depth != HWLOC_TYPE_DEPTH_UNKNOWN && depth != HWLOC_TYPE_DEPTH_MULTIPLE;
}

static void free_list(const struct bind_machine *m, hwloc_bitmap_t **list_p, int *count_p)
{
	for (int i = 0; i < *count_p; i++)
		m->hw->bitmap_free((*list_p)[i]);
	free(*list_p);
	*list_p = NULL;
	*count_p = 0;
}

/* Objects without a core of ours are left out. */
static bool list_objects(const struct bind_machine *m, hwloc_obj_type_t type,
			 hwloc_bitmap_t **list_p, int *count_p)
{
	int depth = m->hw->get_type_depth(m->tree, type);
	int n = has_level(depth) ? (int)m->hw->get_nbobjs_by_depth(m->tree, depth) : 0;
	free_list(m, list_p, count_p);
	*list_p = calloc(n > 0 ? (size_t)n : 1, sizeof **list_p);
	for (int i = 0; *list_p && i < n; i++) {
		hwloc_obj_t o = m->hw->get_obj_by_depth(m->tree, depth, (unsigned)i);
		if (!o->cpuset || m->hw->bitmap_iszero(o->cpuset))
			continue;
		hwloc_bitmap_t set = m->hw->bitmap_dup(o->cpuset);
		if (!set)
			return false;
		(*list_p)[(*count_p)++] = set;
	}
	return *list_p;
}

bool bind_machine_objects(struct bind_machine *m, enum bind_kind kind)
{
	hwloc_obj_type_t type = type_of(kind);
	if (!list_objects(m, type, &m->objects, &m->objectn))
		return false;
	/* Small machines name no core, package or NUMA node: it is the whole, or the thread. */
	if (!m->objectn && type == HWLOC_OBJ_CORE)
		return list_objects(m, HWLOC_OBJ_PU, &m->objects, &m->objectn);
	if (!m->objectn && (type == HWLOC_OBJ_PACKAGE || type == HWLOC_OBJ_NUMANODE))
		return list_objects(m, HWLOC_OBJ_MACHINE, &m->objects, &m->objectn);
	if (!m->objectn)
		say("this machine has no %s to map or bind ranks to; hwloc-ls shows what it has",
		    m->hw->obj_type_string(type));
	return m->objectn;
}

static bool keep_own(struct bind_machine *m, const char *cpus)
{
	hwloc_bitmap_t set = m->hw->bitmap_alloc();
	bool good = set;
	m->is_real = m->hw->topology_is_thissystem(m->tree);
	if (good && m->is_real && m->hw->get_cpubind(m->tree, set, HWLOC_CPUBIND_PROCESS) == 0)
		good = m->hw->topology_restrict(m->tree, set, 0) == 0;
	if (good && cpus) {
		hwloc_const_bitmap_t all = m->hw->topology_get_topology_cpuset(m->tree);
		bool read =
			m->hw->bitmap_list_sscanf(set, cpus) == 0 && m->hw->bitmap_weight(set) > 0;
		if (!read || !m->hw->bitmap_intersects(set, all) ||
		    m->hw->topology_restrict(m->tree, set, 0)) {
			char *may = NULL;
			(void)m->hw->bitmap_list_asprintf(&may, all);
			say("--cpu-set %.60s: this process may use the cores %s", cpus,
			    may ? may : "of its affinity");
			free(may);
			good = false;
		}
	}
	m->hw->bitmap_free(set);
	return good;
}

bool bind_machine_load(struct bind_machine *m, const char *cpus, bool threads)
{
	*m = (struct bind_machine){0};
	m->hw = weft_hwloc();
	if (!m->hw) {
		say("binding and mapping ranks needs libhwloc (libhwloc.so.15), which is not here");
		return false;
	}
	if (m->hw->topology_init(&m->tree) || m->hw->topology_load(m->tree)) {
		say("hwloc cannot read this machine: %s", strerror(errno));
		return false;
	}
	if (!keep_own(m, cpus) || !bind_machine_objects(m, threads ? BIND_THREAD : BIND_CORE)) {
		bind_machine_unload(m);
		return false;
	}
	m->units = m->objects;
	m->unitn = m->objectn;
	m->objects = NULL;
	m->objectn = 0;
	return true;
}

void bind_machine_unload(struct bind_machine *m)
{
	free_list(m, &m->units, &m->unitn);
	free_list(m, &m->objects, &m->objectn);
	m->hw->topology_destroy(m->tree);
}

bool bind_machine_holds(const struct bind_machine *m, int object, int unit)
{
	return m->hw->bitmap_intersects(m->objects[object], m->units[unit]);
}

/* Units of an object follow each other: both are numbered from left to right. */
int bind_machine_first_unit(const struct bind_machine *m, int object)
{
	int i = 0;
	while (i < m->unitn - 1 && !bind_machine_holds(m, object, i))
		i++; /* ends: each object holds a unit */
	return i;
}

int bind_machine_units_in(const struct bind_machine *m, int object)
{
	int n = 0;
	for (int i = 0; i < m->unitn; i++)
		n += bind_machine_holds(m, object, i);
	return n;
}

bool bind_machine_around(struct bind_machine *m, enum bind_kind kind, int unit, hwloc_bitmap_t set)
{
	if (!bind_machine_objects(m, kind))
		return false;
	for (int o = 0; o < m->objectn; o++)
		if (bind_machine_holds(m, o, unit))
			m->hw->bitmap_or(set, set, m->objects[o]);
	return true;
}

bool bind_machine_slots(const struct bind_machine *m, const char *text, hwloc_bitmap_t set)
{
	const char *colon = strchr(text, ':');
	hwloc_bitmap_t wanted = m->hw->bitmap_alloc();
	hwloc_obj_t in = NULL;
	bool good = wanted;
	m->hw->bitmap_zero(set);
	if (good && colon) {
		char *end;
		unsigned long p = strtoul(text, &end, 10);
		int depth = m->hw->get_type_depth(m->tree, HWLOC_OBJ_PACKAGE);
		in = end == colon && has_level(depth)
			     ? m->hw->get_obj_by_depth(m->tree, depth, (unsigned)p)
			     : NULL;
		good = in;
	}
	const char *list = colon ? colon + 1 : text;
	if (good && strcmp(list, "*") == 0)
		m->hw->bitmap_fill(wanted);
	else if (good)
		good = m->hw->bitmap_list_sscanf(wanted, list) == 0 &&
		       m->hw->bitmap_weight(wanted) > 0;
	int nth = 0; /* of the cores in the package, or of all */
	for (int i = 0; good && i < m->unitn; i++) {
		if (in && !m->hw->bitmap_isincluded(m->units[i], in->cpuset))
			continue;
		if (m->hw->bitmap_isset(wanted, (unsigned)nth++))
			m->hw->bitmap_or(set, set, m->units[i]);
	}
	if (good && m->hw->bitmap_iszero(set))
		good = false;
	if (!good)
		say("rankfile: slot=%.40s: no such core among the %d that may be used here", text,
		    m->unitn);
	m->hw->bitmap_free(wanted);
	return good;
}

/* "[BB/..][../..]": packages in brackets, cores between strokes, a letter per hardware thread. */
static void draw_cores(const struct bind_machine *m, hwloc_const_bitmap_t set, FILE *out)
{
	int depth = m->hw->get_type_depth(m->tree, HWLOC_OBJ_CORE), n = 0;
	hwloc_obj_t core = has_level(depth) ? m->hw->get_obj_by_depth(m->tree, depth, 0) : NULL;
	hwloc_obj_t package = NULL;
	for (; core; core = core->next_cousin) { /* ends: the last core */
		hwloc_obj_t its = core->parent;
		while (its && its->type != HWLOC_OBJ_PACKAGE) /* ends: above the machine */
			its = its->parent;
		if (!n || its != package)
			fputs(n ? "][" : "[", out);
		else
			putc('/', out);
		package = its;
		for (int cpu = m->hw->bitmap_first(core->cpuset); cpu >= 0;
		     cpu = m->hw->bitmap_next(core->cpuset, cpu))
			putc(m->hw->bitmap_isset(set, (unsigned)cpu) ? 'B' : '.', out);
		n++;
	}
	if (n)
		putc(']', out);
}

char *bind_machine_describe(const struct bind_machine *m, hwloc_const_bitmap_t set)
{
	char *text = NULL, *cpus = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	if (!out)
		return NULL;
	if (!set)
		fprintf(out, "is not bound: %d core%s", m->unitn, m->unitn == 1 ? "" : "s");
	else if (m->hw->bitmap_list_asprintf(&cpus, set) >= 0) {
		fprintf(out, "is bound to hardware thread%s %s ",
			m->hw->bitmap_weight(set) == 1 ? "" : "s", cpus);
		draw_cores(m, set, out);
	}
	free(cpus);
	return fclose(out) ? NULL : text;
}
