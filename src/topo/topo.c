/* SPDX-License-Identifier: BSD-3-Clause */
/* topo.c - asks hwloc once, keeps what the engine needs in plain arrays. */
#include "topo/topo.h"

#include <hwloc.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "base/log.h"

#define CPU_TABLE CPU_SETSIZE

static struct weft_topo_node *nodes;
static int node_count;
static int leaf_of[CPU_TABLE];
static bool real;

/* ---- building -------------------------------------------------------------------------------- */

/* Past levels that have only one child. */
static hwloc_obj_t prune(hwloc_obj_t o)
{
	while (o->arity == 1) /* ends at a fork or a leaf */
		o = o->first_child;
	return o;
}

static int count_places(hwloc_obj_t o)
{
	int n = 1;
	o = prune(o);
	for (unsigned i = 0; i < o->arity; i++)
		n += count_places(o->children[i]);
	return n;
}

static void set_of(hwloc_obj_t o, cpu_set_t *set)
{
	CPU_ZERO(set);
	int cpu;
	hwloc_bitmap_foreach_begin(cpu, o->cpuset) if (cpu < CPU_SETSIZE) CPU_SET(cpu, set);
	hwloc_bitmap_foreach_end();
}

static void fill(struct weft_topo_node *n, hwloc_obj_t o, int parent, int rank)
{
	n->parent = parent;
	n->rank = rank;
	n->depth = parent < 0 ? 0 : nodes[parent].depth + 1;
	n->first_child = -1;
	n->childn = 0;
	set_of(o, &n->cpus);
	if (parent < 0) {
		snprintf(n->name, sizeof n->name, "machine");
		return;
	}
	/* Of a chain of places that are the same, a core is what people know best. */
	for (hwloc_obj_t c = o; c; c = c->arity == 1 ? c->first_child : NULL)
		if (c->type == HWLOC_OBJ_CORE)
			o = c;
	char type[16];
	hwloc_obj_type_snprintf(type, sizeof type, o, 0);
	for (char *c = type; *c; c++)
		if (*c >= 'A' && *c <= 'Z' && c[1] > '9')
			*c = (char)(*c - 'A' + 'a');
	snprintf(n->name, sizeof n->name, "%s %u", type, o->logical_index);
}

/* Adds the children of `o`, which is node i; node numbers grow breadth first below each node. */
static void add_children(hwloc_obj_t o, int i)
{
	o = prune(o);
	if (!o->arity)
		return;
	int first = node_count;
	nodes[i].first_child = first;
	nodes[i].childn = (int)o->arity;
	node_count += (int)o->arity;
	for (unsigned k = 0; k < o->arity; k++) /* the name is that of the upper end of a chain */
		fill(&nodes[first + (int)k], o->children[k], i, (int)k);
	for (unsigned k = 0; k < o->arity; k++)
		add_children(o->children[k], first + (int)k);
}

static void fill_leaf_table(void)
{
	int leaves = 0;
	for (int cpu = 0; cpu < CPU_TABLE; cpu++)
		leaf_of[cpu] = -1;
	for (int i = 0; i < node_count; i++) {
		if (nodes[i].childn)
			continue;
		leaves++;
		for (int cpu = 0; cpu < CPU_TABLE; cpu++)
			if (CPU_ISSET(cpu, &nodes[i].cpus))
				leaf_of[cpu] = i;
	}
	/* Cores that the tree lacks (another machine's tree, a changed affinity) are spread. */
	int next = 0;
	for (int cpu = 0; cpu < CPU_TABLE; cpu++) {
		if (leaf_of[cpu] >= 0)
			continue;
		while (nodes[next % node_count].childn) /* ends: a tree has a leaf */
			next++;
		leaf_of[cpu] = next++ % node_count;
	}
}

static weft_err build(hwloc_topology_t topo)
{
	hwloc_obj_t root = hwloc_get_root_obj(topo);
	int n = count_places(root);
	nodes = calloc((size_t)n, sizeof *nodes);
	if (!nodes)
		return WEFT_ERR_NOMEM;
	node_count = 1;
	fill(&nodes[0], root, -1, 0);
	add_children(root, 0);
	return WEFT_OK;
}

/* Without hwloc's help: a leaf per core we may use. */
static weft_err build_flat(void)
{
	cpu_set_t set;
	if (sched_getaffinity(0, sizeof set, &set)) {
		CPU_ZERO(&set);
		CPU_SET(0, &set);
	}
	int n = CPU_COUNT(&set);
	nodes = calloc((size_t)n + 1, sizeof *nodes);
	if (!nodes)
		return WEFT_ERR_NOMEM;
	nodes[0] = (struct weft_topo_node){
		.name = "machine", .parent = -1, .first_child = -1, .cpus = set};
	node_count = 1;
	for (int cpu = 0; n > 1 && cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &set))
			continue;
		struct weft_topo_node *l = &nodes[node_count];
		snprintf(l->name, sizeof l->name, "cpu %d", cpu);
		l->parent = 0;
		l->first_child = -1;
		l->rank = node_count - 1;
		l->depth = 1;
		CPU_SET(cpu, &l->cpus);
		node_count++;
	}
	if (n > 1) {
		nodes[0].first_child = 1;
		nodes[0].childn = n;
	}
	return WEFT_OK;
}

/* Leaves out the cores that this process may not use. */
static void restrict_to_own(hwloc_topology_t topo)
{
	cpu_set_t set;
	hwloc_bitmap_t own = hwloc_bitmap_alloc();
	if (own && !sched_getaffinity(0, sizeof set, &set)) {
		for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
			if (CPU_ISSET(cpu, &set))
				hwloc_bitmap_set(own, (unsigned)cpu);
		/* Fails when nothing would be left; then the whole tree is right. */
		if (hwloc_topology_restrict(topo, own, 0))
			weft_debug("topology: not restricted to our own cores");
	}
	hwloc_bitmap_free(own);
}

weft_err weft_topo_load(void)
{
	hwloc_topology_t topo;
	weft_err err = WEFT_ERR_SYS;
	if (nodes)
		return WEFT_OK;
	if (hwloc_topology_init(&topo) == 0) {
		/* What nobody here asks for is not looked up: it is half of the time. */
		(void)hwloc_topology_set_flags(topo, HWLOC_TOPOLOGY_FLAG_NO_DISTANCES |
							     HWLOC_TOPOLOGY_FLAG_NO_MEMATTRS |
							     HWLOC_TOPOLOGY_FLAG_NO_CPUKINDS);
		if (hwloc_topology_load(topo) == 0) {
			real = hwloc_topology_is_thissystem(topo);
			if (real)
				restrict_to_own(topo);
			err = build(topo);
		}
		hwloc_topology_destroy(topo);
	}
	if (err == WEFT_ERR_SYS) {
		weft_debug("topology: hwloc finds nothing here, using a flat tree");
		real = true;
		err = build_flat();
	}
	if (err)
		return err;
	fill_leaf_table();
	return WEFT_OK;
}

void weft_topo_unload(void)
{
	free(nodes);
	nodes = NULL;
	node_count = 0;
}

/* ---- asking ---------------------------------------------------------------------------------- */

int weft_topo_count(void)
{
	return node_count;
}

const struct weft_topo_node *weft_topo_node(int i)
{
	return &nodes[i];
}

bool weft_topo_is_real(void)
{
	return real;
}

int weft_topo_leaf_of_cpu(int cpu)
{
	return weft_likely(cpu >= 0 && cpu < CPU_TABLE) ? leaf_of[cpu] : leaf_of[0];
}

static bool covers(const cpu_set_t *outer, const cpu_set_t *inner)
{
	cpu_set_t both;
	CPU_AND(&both, outer, inner);
	return CPU_EQUAL(&both, inner);
}

int weft_topo_cover(const cpu_set_t *set)
{
	int at = 0;
	if (!set || CPU_COUNT(set) == 0 || !covers(&nodes[0].cpus, set))
		return 0;
	for (;;) { /* ends: each turn goes one level down */
		int down = -1;
		for (int k = 0; k < nodes[at].childn && down < 0; k++)
			if (covers(&nodes[nodes[at].first_child + k].cpus, set))
				down = nodes[at].first_child + k;
		if (down < 0)
			return at;
		at = down;
	}
}

static void describe_below(FILE *out, int i)
{
	const struct weft_topo_node *n = &nodes[i];
	char list[128] = "";
	size_t used = 0;
	for (int cpu = 0; cpu < CPU_SETSIZE && used < sizeof list - 16; cpu++) {
		if (!CPU_ISSET(cpu, &n->cpus))
			continue;
		int end = cpu;
		while (end + 1 < CPU_SETSIZE && CPU_ISSET(end + 1, &n->cpus))
			end++;
		used += (size_t)snprintf(list + used, sizeof list - used,
					 end > cpu ? "%s%d-%d" : "%s%d", used ? "," : "", cpu, end);
		cpu = end;
	}
	fprintf(out, "  %*s%s: cores %s\n", 2 * n->depth, "", n->name, list[0] ? list : "none");
	for (int k = 0; k < n->childn; k++)
		describe_below(out, n->first_child + k);
}

void weft_topo_describe(FILE *out)
{
	bool loaded_here = !nodes;
	if (loaded_here && weft_topo_load())
		return;
	fprintf(out, "topology%s:\n", real ? "" : " (not this machine: from the environment)");
	describe_below(out, 0);
	if (loaded_here)
		weft_topo_unload();
}
