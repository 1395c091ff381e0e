/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tree.h - the engine's tree of queues, as it tells it: a place per queue, and which of our cores
 * lie below.
 */
#ifndef WEFT_BENCH_TREE_H
#define WEFT_BENCH_TREE_H

#define PLACES_MAX 16384

struct place {
	char name[48];          /* "local core 0", "remote package 1", "machine" */
	int parent, depth, cpu; /* cpu: a leaf's; -1: no leaf */
	int ours;               /* cores of ours below */
};

static struct place place[PLACES_MAX];
static int places;
static int leaf_of[CORES_MAX]; /* of cores[i]; -1: the tree lacks it */

/* Does `at` lie on the way from `below` to the root?  Each lies on its own. */
static bool is_above(int at, int below)
{
	while (below > at) /* ends: parents come first */
		below = place[below].parent;
	return below == at;
}

static void read_place(const char *line)
{
	static const char mark[] = "queue of ";
	const char *at = strstr(line, mark);
	char word[24];
	if (!at || places == PLACES_MAX || sscanf(at + sizeof mark - 1, "%23[^:,]", word) != 1)
		return;
	struct place *p = &place[places];
	p->depth = (int)(at - line) / 2 - 1;
	p->parent = places - 1;
	while (p->parent >= 0 && place[p->parent].depth >= p->depth) /* ends at the root */
		p->parent = place[p->parent].parent;
	snprintf(p->name, sizeof p->name, "%s", word);
	p->cpu = -1;
	if ((at = strstr(at, ", cpu ")))
		p->cpu = atoi(at + 6);
	places++;
}

/* Says of each place whether the first of our cores is below. */
static void name_places(void)
{
	for (int i = 1; i < places; i++) {
		char word[24];
		bool local = leaf_of[0] >= 0 && is_above(i, leaf_of[0]);
		snprintf(word, sizeof word, "%.23s", place[i].name);
		if (place[i].cpu >= 0) /* by the system's number, as taskset counts */
			snprintf(word, sizeof word, "%s %d",
				 strncasecmp(place[i].name, "pu", 2) ? "core" : "pu", place[i].cpu);
		snprintf(place[i].name, sizeof place[i].name, "%s %s", local ? "local" : "remote",
			 word);
	}
}

static void read_tree(void)
{
	char *text = NULL;
	size_t bytes;
	FILE *f = open_memstream(&text, &bytes);
	if (!f)
		exit(1);
	weft_engine_describe(f);
	fclose(f);
	for (char *rest = text, *line; (line = strsep(&rest, "\n"));)
		read_place(line);
	free(text);
	for (int i = 0; i < core_count; i++) {
		leaf_of[i] = -1;
		for (int k = 0; k < places && leaf_of[i] < 0; k++)
			if (place[k].cpu == cores[i])
				leaf_of[i] = k;
		for (int k = leaf_of[i]; k >= 0; k = place[k].parent)
			place[k].ours++;
	}
	name_places();
}

/* Levels from our first core's queue up to the place that both have in common. */
static int distance(int at)
{
	int from = leaf_of[0] < 0 ? 0 : leaf_of[0], up = 0;
	for (; !is_above(from, at) && !is_above(at, from); up++) /* ends at the root */
		from = place[from].parent;
	return up + (is_above(at, from) ? place[from].depth - place[at].depth : 0);
}

static void set_of(int at, cpu_set_t *set)
{
	CPU_ZERO(set);
	for (int i = 0; i < core_count; i++)
		if (leaf_of[i] >= 0 && is_above(at, leaf_of[i]))
			CPU_SET(cores[i], set);
}

#endif
