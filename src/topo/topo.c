/* SPDX-License-Identifier: BSD-3-Clause */
/* topo.c - asks the kernel or hwloc once, keeps what the engine needs in plain arrays. */
#include "topo/topo.h"

#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/log.h"
#include "topo/hwloc_lib.h"
#include "topo/sysfs.h"

#define CPU_TABLE WEFT_TOPO_CPUS_MAX
#define WORD_BITS (8 * sizeof(unsigned long))

static struct weft_topo_node *nodes;
static int node_count;
static int *leaf_node; /* by number of the leaf */
static int leaf_count;
static int leaf_of[CPU_TABLE]; /* the place of a core's leaf, or of some other leaf */
static bool real;
static const struct weft_hwloc *hw; /* once hwloc has been asked for */

/* Trees of before, of a machine that has changed since. */
static struct retired {
	void *nodes, *leaf_node;
	struct retired *next;
} * retired;

/* What hwloc reads from the environment about the machine. */
static const char *const hwloc_told[] = {"HWLOC_SYNTHETIC", "HWLOC_XMLFILE", "HWLOC_FSROOT",
					 "HWLOC_COMPONENTS", "HWLOC_THISSYSTEM"};

/* Cores of the tree, and the last word that has some: nothing beyond it matters. */
static unsigned long in_tree[CPU_TABLE / WORD_BITS];
static size_t in_tree_words;

/* ---- building -------------------------------------------------------------------------------- */

/* Past levels that have only one child. */
static hwloc_obj_t skip_only_children(hwloc_obj_t o)
{
	while (o->arity == 1) /* ends at a fork or a leaf */
		o = o->first_child;
	return o;
}

static int count_places(hwloc_obj_t o)
{
	int n = 1;
	o = skip_only_children(o);
	for (unsigned i = 0; i < o->arity; i++)
		n += count_places(o->children[i]);
	return n;
}

static void fill_node(struct weft_topo_node *n, hwloc_obj_t o, int parent, int rank)
{
	n->parent = parent;
	n->rank = rank;
	n->depth = parent < 0 ? 0 : nodes[parent].depth + 1;
	n->first_child = -1;
	n->childn = 0;
	n->cpu = -1;
	if (parent < 0) {
		snprintf(n->name, sizeof n->name, "machine");
		return;
	}
	/* Of a chain of places that are the same, a core is what people know best. */
	for (hwloc_obj_t c = o; c; c = c->arity == 1 ? c->first_child : NULL)
		if (c->type == HWLOC_OBJ_CORE)
			o = c;
	char type[16];
	hw->obj_type_snprintf(type, sizeof type, o, 0);
	for (char *c = type; *c; c++)
		if (*c >= 'A' && *c <= 'Z' && c[1] > '9')
			*c = (char)(*c - 'A' + 'a');
	snprintf(n->name, sizeof n->name, "%s %u", type, o->logical_index);
}

/* Adds the children of `o`, which is node i; node numbers grow breadth first below each node. */
static void add_children(hwloc_obj_t o, int i)
{
	o = skip_only_children(o);
	if (!o->arity) {
		nodes[i].cpu = (int)o->os_index;
		return;
	}
	int first = node_count;
	nodes[i].first_child = first;
	nodes[i].childn = (int)o->arity;
	node_count += (int)o->arity;
	for (unsigned k = 0; k < o->arity; k++) /* the name is that of the upper end of a chain */
		fill_node(&nodes[first + (int)k], o->children[k], i, (int)k);
	for (unsigned k = 0; k < o->arity; k++)
		add_children(o->children[k], first + (int)k);
}

/* Numbers the leaves below i from left to right. */
static void number_leaves(int i)
{
	struct weft_topo_node *n = &nodes[i];
	n->first_leaf = leaf_count;
	if (!n->childn)
		leaf_node[leaf_count++] = i;
	for (int k = 0; k < n->childn; k++)
		number_leaves(n->first_child + k);
	n->leaves = leaf_count - n->first_leaf;
}

static weft_err fill_leaf_table(void)
{
	leaf_node = calloc((size_t)node_count, sizeof *leaf_node);
	if (!leaf_node)
		return WEFT_ERR_NOMEM;
	leaf_count = 0;
	number_leaves(0);
	/* Cores that the tree lacks (another machine's tree, a changed affinity) are spread. */
	for (int cpu = 0; cpu < CPU_TABLE; cpu++)
		leaf_of[cpu] = leaf_node[cpu % leaf_count];
	memset(in_tree, 0, sizeof in_tree);
	in_tree_words = 0;
	for (int l = 0; l < leaf_count; l++) {
		int cpu = nodes[leaf_node[l]].cpu;
		if (cpu < 0 || cpu >= CPU_TABLE)
			continue;
		leaf_of[cpu] = leaf_node[l];
		size_t w = (size_t)cpu / WORD_BITS;
		in_tree[w] |= 1ul << ((size_t)cpu % WORD_BITS);
		in_tree_words = w + 1 > in_tree_words ? w + 1 : in_tree_words;
	}
	return WEFT_OK;
}

static weft_err build_tree(hwloc_topology_t topo)
{
	hwloc_obj_t root = hw->get_obj_by_depth(topo, 0, 0);
	int n = count_places(root);
	nodes = calloc((size_t)n, sizeof *nodes);
	if (!nodes)
		return WEFT_ERR_NOMEM;
	node_count = 1;
	fill_node(&nodes[0], root, -1, 0);
	add_children(root, 0);
	return WEFT_OK;
}

bool weft_topo_own_cpus(unsigned long *set_p)
{
	memset(set_p, 0, WEFT_TOPO_CPUS_MAX / 8);
	/* The system call itself says how much it has written; the library's wants to know. */
	return syscall(SYS_sched_getaffinity, 0, (size_t)WEFT_TOPO_CPUS_MAX / 8, set_p) > 0;
}

static bool in_words(const unsigned long *set, int cpu)
{
	return set[(size_t)cpu / WORD_BITS] >> ((size_t)cpu % WORD_BITS) & 1;
}

/* Without hwloc's help: a leaf per core we may use. */
static weft_err build_flat(void)
{
	unsigned long set[WEFT_TOPO_CPUS_MAX / WORD_BITS];
	int n = 0, first = 0;
	if (!weft_topo_own_cpus(set))
		set[0] = 1;
	for (int cpu = CPU_TABLE - 1; cpu >= 0; cpu--)
		if (in_words(set, cpu)) {
			first = cpu;
			n++;
		}
	nodes = calloc((size_t)n + 1, sizeof *nodes);
	if (!nodes)
		return WEFT_ERR_NOMEM;
	nodes[0] = (struct weft_topo_node){
		.name = "machine", .parent = -1, .first_child = -1, .cpu = n > 1 ? -1 : first};
	node_count = 1;
	for (int cpu = first; n > 1 && cpu < CPU_TABLE; cpu++) {
		if (!in_words(set, cpu))
			continue;
		struct weft_topo_node *l = &nodes[node_count];
		snprintf(l->name, sizeof l->name, "cpu %d", cpu);
		l->parent = 0;
		l->first_child = -1;
		l->rank = node_count - 1;
		l->depth = 1;
		l->cpu = cpu;
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
	unsigned long set[WEFT_TOPO_CPUS_MAX / WORD_BITS];
	hwloc_bitmap_t own = hw->bitmap_alloc();
	if (own && weft_topo_own_cpus(set)) {
		for (int cpu = 0; cpu < CPU_TABLE; cpu++)
			if (in_words(set, cpu))
				hw->bitmap_set(own, (unsigned)cpu);
		/* Fails when nothing would be left; then the whole tree is right. */
		if (hw->topology_restrict(topo, own, 0))
			weft_debug("topology: not restricted to our own cores");
	}
	hw->bitmap_free(own);
}

/* Is hwloc told of a machine, or how to look at this one? */
static bool hwloc_is_told(void)
{
	for (size_t i = 0; i < weft_countof(hwloc_told); i++)
		if (getenv(hwloc_told[i]))
			return true;
	return false;
}

static weft_err build_from_kernel(void)
{
	unsigned long set[WEFT_TOPO_CPUS_MAX / WORD_BITS];
	size_t words = weft_countof(set);
	if (hwloc_is_told() || !weft_topo_own_cpus(set))
		return WEFT_ERR_UNSUPPORTED;
	while (words > 1 && !set[words - 1])
		words--;
	real = true;
	return weft_topo_sysfs_read("", set, words, &nodes, &node_count);
}

static weft_err build_from_hwloc(void)
{
	hwloc_topology_t topo;
	weft_err err = WEFT_ERR_SYS;
	hw = weft_hwloc();
	if (hw && hw->topology_init(&topo) == 0) {
		/* What weft does not ask for is not looked up: it is half of the time. */
		(void)hw->topology_set_flags(topo, HWLOC_TOPOLOGY_FLAG_NO_DISTANCES |
							   HWLOC_TOPOLOGY_FLAG_NO_MEMATTRS |
							   HWLOC_TOPOLOGY_FLAG_NO_CPUKINDS);
		if (hw->topology_load(topo) == 0) {
			real = hw->topology_is_thissystem(topo);
			if (real)
				restrict_to_own(topo);
			err = build_tree(topo);
		}
		hw->topology_destroy(topo);
	}
	return err;
}

weft_err weft_topo_load(void)
{
	if (nodes)
		return WEFT_OK;
	weft_err err = build_from_kernel();
	if (err)
		err = build_from_hwloc();
	if (err == WEFT_ERR_SYS) {
		weft_debug("topology: hwloc finds nothing here, using a flat tree");
		real = true;
		err = build_flat();
	}
	if (!err)
		err = fill_leaf_table();
	if (err)
		weft_topo_unload();
	return err;
}

/* ---- again -------------------------------------------------------------------------------------
 */

#define FROM_MAX 256

/* What a tree follows from: our cores, and what hwloc is told. */
static void read_from(char *text)
{
	unsigned long set[WEFT_TOPO_CPUS_MAX / WORD_BITS];
	uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
	if (!weft_topo_own_cpus(set))
		set[0] = 1;
	for (size_t w = 0; w < weft_countof(set); w++)
		hash = (hash ^ set[w]) * UINT64_C(0x100000001b3);
	int used = snprintf(text, FROM_MAX, "%llx", (unsigned long long)hash);
	for (size_t i = 0; i < weft_countof(hwloc_told) && used < FROM_MAX; i++) {
		const char *value = getenv(hwloc_told[i]);
		used += snprintf(text + used, FROM_MAX - (size_t)used, " %s", value ? value : "");
	}
}

weft_err weft_topo_load_again(void)
{
	static char from[FROM_MAX];
	char now[FROM_MAX];
	read_from(now);
	if (nodes && strcmp(from, now)) {
		/* A thread may be in the midst of a look: it stays. */
		struct retired *r = malloc(sizeof *r);
		if (!r)
			return WEFT_ERR_NOMEM;
		*r = (struct retired){.nodes = nodes, .leaf_node = leaf_node, .next = retired};
		retired = r;
		nodes = NULL;
		leaf_node = NULL;
		node_count = 0;
	}
	memcpy(from, now, sizeof from);
	return weft_topo_load();
}

void weft_topo_unload(void)
{
	free(nodes);
	free(leaf_node);
	nodes = NULL;
	leaf_node = NULL;
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

/* How many words of a set of so many bytes can name cores of the tree. */
static size_t words_of(size_t bytes)
{
	size_t words = bytes / sizeof(unsigned long);
	return words < in_tree_words ? words : in_tree_words;
}

int weft_topo_cover(const cpu_set_t *set, size_t bytes)
{
	int low = leaf_count, high = -1;
	if (!set)
		return 0;
	const unsigned long *word = (const unsigned long *)(const void *)set;
	size_t words = words_of(bytes ? bytes : sizeof *set);
	/* ends: a turn per core of the tree in the set */
	for (size_t w = 0; w < words; w++)
		for (unsigned long bits = word[w] & in_tree[w]; bits; bits &= bits - 1) {
			int l = nodes[leaf_of[w * WORD_BITS + (size_t)__builtin_ctzl(bits)]]
					.first_leaf;
			low = l < low ? l : low;
			high = l > high ? l : high;
		}
	if (high < 0)
		return 0;
	int at = leaf_node[low];
	while (high >= nodes[at].first_leaf + nodes[at].leaves) /* ends: at the root */
		at = nodes[at].parent;
	return at;
}

int weft_topo_leaf_in(const cpu_set_t *set, size_t bytes)
{
	int here = weft_topo_leaf_here();
	if (!set || weft_topo_in_set(set, bytes, nodes[here].cpu))
		return here;
	const unsigned long *word = (const unsigned long *)(const void *)set;
	size_t words = words_of(bytes ? bytes : sizeof *set);
	for (size_t w = 0; w < words; w++)
		if (word[w] & in_tree[w])
			return leaf_of[w * WORD_BITS +
				       (size_t)__builtin_ctzl(word[w] & in_tree[w])];
	return -1;
}

bool weft_topo_bind_self(int leaf)
{
	unsigned long set[WEFT_TOPO_CPUS_MAX / WORD_BITS] = {0};
	size_t cpu = (size_t)nodes[leaf].cpu;
	if (cpu >= CPU_TABLE)
		return false;
	set[cpu / WORD_BITS] = 1ul << (cpu % WORD_BITS);
	return syscall(SYS_sched_setaffinity, 0, sizeof set, set) == 0;
}
