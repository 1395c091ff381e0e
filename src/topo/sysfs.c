/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sysfs.c - which cores share a core, caches, a die, a package, a NUMA node.
 *
 * A place is a set of cores.  Its children are found by their first core: of all that this core shares, the largest set
 * that is smaller than the place.  So nothing is assumed about which level lies within which, and cores of
 * different kinds may share different things.
 */
#include "topo/sysfs.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WORD_BITS (8 * sizeof(unsigned long))
#define CPUS (WEFT_TOPO_CPUS_MAX)
#define CACHES_MAX 10
#define NODES_MAX 1024
#define TEXT_MAX 4096

enum level { NUMA, PACKAGE, DIE, L3, CLUSTER, L2, L1, CORE, LEVELS };

static const char *const level_name[] = {"numa",    "package", "die", "L3",
					 "cluster", "L2",      "L1d", "core"};

struct reader {
	const char *root;
	size_t words; /* of a set */
	const unsigned long *own;
	char file[LEVELS][48];  /* below a core's folder; "": the kernel does not tell */
	unsigned long **shared; /* by core: LEVELS sets, once asked for */
	const unsigned long *
		*told;       /* by core, LEVELS: the set that the kernel told of a core in it */
	unsigned long *numa; /* a set for each node */
	int numas;
	unsigned long *counted; /* LEVELS sets: cores of places that have their number */
	int number[LEVELS + 1]; /* how many places have; the last: processing units */
	struct weft_topo_node *nodes;
	int count, room;
};

/* ---- sets --------------------------------------------------------------------------------- */

static int set_count(const unsigned long *set, size_t words)
{
	int n = 0;
	for (size_t w = 0; w < words; w++)
		n += __builtin_popcountl(set[w]);
	return n;
}

static int set_first(const unsigned long *set, size_t words)
{
	for (size_t w = 0; w < words; w++)
		if (set[w])
			return (int)(w * WORD_BITS) + __builtin_ctzl(set[w]);
	return -1;
}

static bool set_has(const unsigned long *set, int cpu)
{
	return set[(size_t)cpu / WORD_BITS] >> ((size_t)cpu % WORD_BITS) & 1;
}

static void set_add(unsigned long *set, size_t words, long cpu)
{
	if (cpu >= 0 && (size_t)cpu / WORD_BITS < words)
		set[(size_t)cpu / WORD_BITS] |= 1ul << ((size_t)cpu % WORD_BITS);
}

/* ---- files -------------------------------------------------------------------------------- */

static bool read_text(const char *root, const char *path, char *text)
{
	char full[512];
	if (snprintf(full, sizeof full, "%s%s", root, path) >= (int)sizeof full)
		return false;
	int fd = open(full, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	ssize_t n = read(fd, text, TEXT_MAX - 1);
	close(fd);
	text[n > 0 ? n : 0] = 0;
	return n > 0;
}

/* "0-3,8-11"; false: something else. */
static bool read_list(const struct reader *r, const char *path, unsigned long *set)
{
	char text[TEXT_MAX];
	if (!read_text(r->root, path, text))
		return false;
	memset(set, 0, r->words * sizeof *set);
	const char *at = text;
	while (*at >= '0' && *at <= '9') { /* ends: each turn moves on */
		char *end;
		long first = strtol(at, &end, 10), last = first;
		if (*end == '-')
			last = strtol(end + 1, &end, 10);
		for (long c = first; c <= last && c < CPUS; c++)
			set_add(set, r->words, c);
		at = end + (*end == ',');
	}
	return *at == '\n' || !*at;
}

static void try_file(struct reader *r, enum level level, int cpu, const char *name)
{
	char path[512];
	int n = snprintf(path, sizeof path, "%s/sys/devices/system/cpu/cpu%d/%s", r->root, cpu,
			 name);
	if (!r->file[level][0] && n < (int)sizeof path && access(path, R_OK) == 0)
		snprintf(r->file[level], sizeof r->file[level], "%s", name);
}

/* Which of the core's caches is of which level. */
static void find_caches(struct reader *r, int cpu)
{
	static const enum level of[] = {LEVELS, L1, L2, L3};
	for (int k = 0; k < CACHES_MAX; k++) {
		char path[128], text[TEXT_MAX], name[48];
		snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cache/index%d/type", cpu,
			 k);
		if (!read_text(r->root, path, text))
			return;
		if (text[0] == 'I')
			continue;
		snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cache/index%d/level",
			 cpu, k);
		if (!read_text(r->root, path, text) || text[0] < '1' || text[0] > '3')
			continue;
		snprintf(name, sizeof name, "cache/index%d/shared_cpu_list", k);
		try_file(r, of[text[0] - '0'], cpu, name);
	}
}

/* Kernels before 5.3 have other names. */
static void find_files(struct reader *r, int cpu)
{
	try_file(r, PACKAGE, cpu, "topology/package_cpus_list");
	try_file(r, PACKAGE, cpu, "topology/core_siblings_list");
	try_file(r, DIE, cpu, "topology/die_cpus_list");
	try_file(r, CLUSTER, cpu, "topology/cluster_cpus_list");
	try_file(r, CORE, cpu, "topology/core_cpus_list");
	try_file(r, CORE, cpu, "topology/thread_siblings_list");
	find_caches(r, cpu);
}

static bool find_numa(struct reader *r)
{
	unsigned long *online = calloc(NODES_MAX / WORD_BITS + r->words, sizeof *online);
	struct reader nodes = {.root = r->root, .words = NODES_MAX / WORD_BITS};
	bool good = online != NULL;
	if (good && read_list(&nodes, "/sys/devices/system/node/online", online)) {
		int n = set_count(online, nodes.words);
		r->numa = calloc((size_t)n * r->words + 1, sizeof *r->numa);
		good = r->numa != NULL;
		for (int i = 0; i < NODES_MAX && good && n > 1; i++) {
			char path[128];
			snprintf(path, sizeof path, "/sys/devices/system/node/node%d/cpulist", i);
			if (set_has(online, i) &&
			    read_list(r, path, r->numa + (size_t)r->numas * r->words))
				r->numas++;
		}
	}
	free(online);
	return good;
}

/* One level's set of a core, from the kernel. */
static void read_level(struct reader *r, int level, int cpu, unsigned long *set)
{
	const unsigned long **told_of = r->told + level;
	char path[128];
	snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/%s", cpu, r->file[level]);
	bool told = r->file[level][0] && read_list(r, path, set);
	for (int i = 0; i < r->numas && level == NUMA && !told; i++) {
		memcpy(set, r->numa + (size_t)i * r->words, r->words * sizeof *set);
		told = set_has(set, cpu);
	}
	/* What is not told is no place of its own. */
	for (size_t w = 0; w < r->words; w++) {
		set[w] = told ? set[w] & r->own[w] : r->own[w];
		/* ends: each turn takes a core out of rest */
		for (unsigned long rest = told ? set[w] : 0; rest; rest &= rest - 1)
			told_of[(w * WORD_BITS + (size_t)__builtin_ctzl(rest)) * LEVELS] = set;
	}
}

/* LEVELS sets of own cores: what this core shares with others.  Cores that share a cache tell the same of it, so that a
 * set is read once for all of them: a file costs 10 us, and a large machine has a thousand.  NULL: no memory. */
static unsigned long *shared_of(struct reader *r, int cpu)
{
	if (r->shared[cpu])
		return r->shared[cpu];
	unsigned long *sets = calloc(LEVELS * r->words, sizeof *sets);
	if (!sets)
		return NULL;
	for (int level = 0; level < LEVELS; level++) {
		unsigned long *set = sets + (size_t)level * r->words;
		const unsigned long *known = r->told[(size_t)cpu * LEVELS + (size_t)level];
		if (known)
			memcpy(set, known, r->words * sizeof *set);
		else
			read_level(r, level, cpu, set);
	}
	return r->shared[cpu] = sets;
}

/* ---- the tree ----------------------------------------------------------------------------- */

static bool node_add(struct reader *r)
{
	if (r->count == r->room) {
		int room = r->room ? 2 * r->room : 64;
		struct weft_topo_node *more = realloc(r->nodes, (size_t)room * sizeof *more);
		if (!more)
			return false;
		r->nodes = more;
		r->room = room;
	}
	r->nodes[r->count++] = (struct weft_topo_node){.first_child = -1, .cpu = -1};
	return true;
}

/* The place begins with this core, and so do those above and below it that begin there: each gets its number.  The name
 * is that of the outermost level; of levels that are the same set, a core is what people know best. */
static void name_place(struct reader *r, int i, const unsigned long *set, const unsigned long *sets)
{
	struct weft_topo_node *n = &r->nodes[i];
	int cpu = set_first(set, r->words);
	for (int level = LEVELS - 1; level >= 0; level--) {
		const unsigned long *of = sets + (size_t)level * r->words;
		unsigned long *counted = r->counted + (size_t)level * r->words;
		if (!set_has(counted, cpu))
			r->number[level]++;
		for (size_t w = 0; w < r->words; w++)
			counted[w] |= of[w];
		bool same = memcmp(of, set, r->words * sizeof *set) == 0;
		if (same && strncmp(n->name, "core", 4) != 0)
			snprintf(n->name, sizeof n->name, "%s %d", level_name[level],
				 r->number[level] - 1);
	}
	if (i == 0)
		snprintf(n->name, sizeof n->name, "machine");
	else if (!n->name[0])
		snprintf(n->name, sizeof n->name, "cpus %d..", cpu);
}

/* The largest set that the core shares within the place, and that is not all of it; NULL: itself alone. */
static const unsigned long *largest_part(const struct reader *r, const unsigned long *sets,
					 const unsigned long *place, int size)
{
	const unsigned long *best = NULL;
	int most = 1;
	for (int level = 0; level < LEVELS; level++) {
		const unsigned long *set = sets + (size_t)level * r->words;
		int n = 0;
		for (size_t w = 0; w < r->words; w++)
			n += __builtin_popcountl(set[w] & place[w]);
		if (n < size && n > most) {
			most = n;
			best = set;
		}
	}
	return best;
}

/* The parts of a place, one set after the other; 0: WEFT_ERR_NOMEM, or sets that overlap. */
static int part_all(struct reader *r, const unsigned long *place, int size, unsigned long *parts)
{
	unsigned long *rest = malloc(r->words * sizeof *rest);
	int n = 0;
	if (!rest)
		return 0;
	memcpy(rest, place, r->words * sizeof *rest);
	/* ends: each turn takes a core out of rest */
	for (int cpu; (cpu = set_first(rest, r->words)) >= 0; n++) {
		const unsigned long *sets = shared_of(r, cpu);
		const unsigned long *part = sets ? largest_part(r, sets, place, size) : NULL;
		unsigned long *into = parts + (size_t)n * r->words;
		memset(into, 0, r->words * sizeof *into);
		set_add(into, r->words, cpu);
		for (size_t w = 0; w < r->words; w++) {
			into[w] |= part ? part[w] & place[w] : 0;
			if (!sets || (into[w] & ~rest[w])) {
				free(rest);
				return 0;
			}
			rest[w] &= ~into[w];
		}
	}
	free(rest);
	return n;
}

static bool add_below(struct reader *r, int i, const unsigned long *place);

static bool add_parts(struct reader *r, int i, const unsigned long *parts, int n)
{
	int first = r->count;
	r->nodes[i].first_child = first;
	r->nodes[i].childn = n;
	for (int k = 0; k < n; k++) {
		if (!node_add(r))
			return false;
		r->nodes[first + k].parent = i;
		r->nodes[first + k].rank = k;
		r->nodes[first + k].depth = r->nodes[i].depth + 1;
	}
	for (int k = 0; k < n; k++)
		if (!add_below(r, first + k, parts + (size_t)k * r->words))
			return false;
	return true;
}

/* The names and places of node i and below. */
static bool add_below(struct reader *r, int i, const unsigned long *place)
{
	int size = set_count(place, r->words), cpu = set_first(place, r->words);
	const unsigned long *sets = shared_of(r, cpu);
	if (!sets)
		return false;
	if (size == 1)
		snprintf(r->nodes[i].name, sizeof r->nodes[i].name, "pu %d", r->number[LEVELS]++);
	name_place(r, i, place, sets);
	if (size == 1) {
		r->nodes[i].cpu = cpu;
		return true;
	}
	unsigned long *parts = malloc((size_t)size * r->words * sizeof *parts);
	int n = parts ? part_all(r, place, size, parts) : 0;
	bool good = n > 1 && add_parts(r, i, parts, n);
	free(parts);
	return good;
}

static void reader_fini(struct reader *r)
{
	for (size_t cpu = 0; r->shared && cpu < r->words * WORD_BITS; cpu++)
		free(r->shared[cpu]);
	free(r->shared);
	free(r->told);
	free(r->numa);
	free(r->counted);
	free(r->nodes);
	free(r);
}

weft_err weft_topo_sysfs_read(const char *root, const unsigned long *own, size_t words,
			      struct weft_topo_node **nodes_p, int *count_p)
{
	int first = set_first(own, words);
	struct reader *r = calloc(1, sizeof *r);
	if (!r)
		return WEFT_ERR_NOMEM;
	r->root = root;
	r->own = own;
	r->words = words;
	r->counted = calloc(LEVELS * words, sizeof *r->counted);
	r->shared = calloc(words * WORD_BITS, sizeof *r->shared);
	r->told = calloc(words * WORD_BITS * LEVELS, sizeof *r->told);
	bool good = r->counted && r->shared && r->told && first >= 0;
	if (good)
		find_files(r, first);
	good = good && r->file[CORE][0] && find_numa(r) && node_add(r);
	if (good) {
		r->nodes[0].parent = -1;
		good = add_below(r, 0, own);
	}
	if (good) {
		*nodes_p = r->nodes;
		*count_p = r->count;
		r->nodes = NULL;
	}
	reader_fini(r);
	return good ? WEFT_OK : WEFT_ERR_UNSUPPORTED;
}
