/* SPDX-License-Identifier: BSD-3-Clause */
/* bind.c - objects of hwloc's tree, dealt out to ranks. */
#include "bind.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "bind_machine.h"
#include "say.h"

/* A rank's place before it has a number. */
struct spot {
	int object, first; /* the object it is mapped to; its first unit */
};

static bool takes_units(enum bind_kind kind)
{
	return kind == BIND_SLOT || kind == BIND_CORE || kind == BIND_THREAD || kind == BIND_HOST ||
	       kind == BIND_NONE;
}

static enum bind_kind map_of(const struct bind_wish *w)
{
	if (w->map != BIND_UNSET)
		return w->map;
	return w->bind == BIND_UNSET ? BIND_CORE : w->bind;
}

/* The k-th rank of an object begins k * units further; round again where the object ends. */
static bool map_ranks(const struct bind_wish *w, struct bind_machine *m, int count,
		      struct spot *spots)
{
	enum bind_kind kind = map_of(w);
	int units = w->units ? w->units : 1;
	bool by_unit = takes_units(kind) && !w->per_object;
	if (!by_unit && !bind_machine_objects(m, kind))
		return false;
	int objects = by_unit ? 1 : m->objectn;
	for (int i = 0; i < count; i++) {
		int o = by_unit ? 0 : w->per_object ? i / w->per_object : i % objects;
		int k = by_unit ? i : w->per_object ? i % w->per_object : i / objects;
		if (o >= objects) {
			say("--map-by ppr:%d:...: room for %d ranks, and %d were asked for",
			    w->per_object, w->per_object * objects, count);
			return false;
		}
		int first = by_unit ? 0 : bind_machine_first_unit(m, o);
		int n = by_unit ? m->unitn : bind_machine_units_in(m, o);
		if (units > n) {
			say("PE=%d: %s has %d cores only", units,
			    by_unit ? "this machine" : "such an object", n);
			return false;
		}
		/* The last whole share of the object, where it does not divide evenly. */
		int shares = n / units;
		spots[i] = (struct spot){o, first + k % shares * units};
	}
	return true;
}

static struct spot *spots_sorted; /* for qsort */

static int by_object(const void *a, const void *b)
{
	const int x = *(const int *)a, y = *(const int *)b;
	int d = spots_sorted[x].object - spots_sorted[y].object;
	return d ? d : x - y;
}

/* order[rank] = index of its spot. */
static bool number_ranks(const struct bind_wish *w, struct bind_machine *m, int count,
			 struct spot *spots, int *order)
{
	for (int i = 0; i < count; i++)
		order[i] = i;
	if (w->rank == BIND_UNSET || w->rank == BIND_SLOT || w->rank == BIND_HOST)
		return true;
	if (w->rank == BIND_FILL) {
		spots_sorted = spots;
		qsort(order, (size_t)count, sizeof *order, by_object);
		return true;
	}
	/* One from each object in turn. */
	if (!bind_machine_objects(m, w->rank))
		return false;
	bool *taken = calloc((size_t)count, sizeof *taken);
	int n = 0;
	while (taken && n < count) { /* ends: each round takes one spot at least */
		for (int o = 0; o < m->objectn; o++) {
			for (int i = 0; i < count; i++) {
				if (taken[i] || !bind_machine_holds(m, o, spots[i].first))
					continue;
				taken[i] = true;
				order[n++] = i;
				break;
			}
		}
	}
	bool good = taken;
	free(taken);
	return good;
}

static bool bind_spot(const struct bind_wish *w, struct bind_machine *m, const struct spot *spot,
		      hwloc_bitmap_t set)
{
	int units = w->units ? w->units : 1;
	m->hw->bitmap_zero(set);
	for (int i = 0; i < units; i++) {
		int unit = spot->first + i;
		if (w->bind == BIND_UNSET || w->bind == BIND_NONE || takes_units(w->bind))
			m->hw->bitmap_or(set, set, m->units[unit]);
		else if (!bind_machine_around(m, w->bind, unit, set))
			return false;
	}
	return true;
}

static bool wants_no_binding(const struct bind_wish *w)
{
	bool none = w->bind == BIND_NONE || w->bind == BIND_UNSET || w->bind == BIND_HOST;
	return none && !w->units;
}

static bool keep_binding(struct bind_machine *m, hwloc_const_bitmap_t set, struct bind_rank *r)
{
	r->text = bind_machine_describe(m, set);
	if (!r->text)
		return false;
	if (!set || !m->is_real)
		return true;
	int last = m->hw->bitmap_last(set);
	cpu_set_t *cpus = CPU_ALLOC((size_t)last + 1);
	if (!cpus)
		return false;
	r->bytes = CPU_ALLOC_SIZE((size_t)last + 1);
	CPU_ZERO_S(r->bytes, cpus);
	for (int cpu = m->hw->bitmap_first(set); cpu >= 0; cpu = m->hw->bitmap_next(set, cpu))
		CPU_SET_S((size_t)cpu, r->bytes, cpus);
	r->set = cpus;
	return true;
}

static bool make_mapped(const struct bind_wish *w, struct bind_machine *m, const char *const *slots,
			int count, struct bind_rank *ranks)
{
	struct spot *spots = calloc((size_t)count, sizeof *spots);
	int *order = calloc((size_t)count, sizeof *order);
	hwloc_bitmap_t set = m->hw->bitmap_alloc();
	bool good = spots && order && set && map_ranks(w, m, count, spots) &&
		    number_ranks(w, m, count, spots, order);
	for (int i = 0; good && i < count; i++) {
		if (slots && slots[i])
			good = bind_machine_slots(m, slots[i], set) &&
			       keep_binding(m, set, &ranks[i]);
		else if (wants_no_binding(w) || slots)
			good = keep_binding(m, NULL, &ranks[i]);
		else
			good = bind_spot(w, m, &spots[order[i]], set) &&
			       keep_binding(m, set, &ranks[i]);
	}
	m->hw->bitmap_free(set);
	free(order);
	free(spots);
	return good;
}

bool bind_make(const struct bind_wish *wish, const char *const *slots, int count,
	       struct bind_rank *ranks)
{
	struct bind_machine m;
	if (!bind_machine_load(&m, wish->cpus, wish->threads || wish->bind == BIND_THREAD))
		return false;
	bool good = make_mapped(wish, &m, slots, count, ranks);
	bind_machine_unload(&m);
	return good;
}

int bind_count_objects(const struct bind_wish *wish)
{
	struct bind_machine m;
	if (!bind_machine_load(&m, wish->cpus, wish->threads))
		return 0;
	int n = bind_machine_objects(&m, wish->map) ? m.objectn : 0;
	bind_machine_unload(&m);
	return n;
}

bool bind_is_wished(const struct bind_wish *w)
{
	return w->report || w->rankfile || w->units || w->per_object || w->cpus ||
	       (w->bind != BIND_UNSET && w->bind != BIND_NONE);
}

void bind_apply(const struct bind_rank *rank)
{
	if (rank->set)
		(void)sched_setaffinity(0, rank->bytes, rank->set);
}

/* --- the words of the command line --- */

static const struct word {
	const char *name;
	enum bind_kind kind;
} words[] = {
	{"none", BIND_NONE},     {"slot", BIND_SLOT},      {"hwthread", BIND_THREAD},
	{"pu", BIND_THREAD},     {"core", BIND_CORE},      {"l1cache", BIND_L1},
	{"l1", BIND_L1},         {"l2cache", BIND_L2},     {"l2", BIND_L2},
	{"l3cache", BIND_L3},    {"l3", BIND_L3},          {"numa", BIND_NUMA},
	{"numanode", BIND_NUMA}, {"socket", BIND_PACKAGE}, {"package", BIND_PACKAGE},
	{"node", BIND_HOST},     {"machine", BIND_HOST},   {"board", BIND_HOST},
	{"host", BIND_HOST},     {"rr", BIND_UNSET},       {"user", BIND_UNSET},
	{"fill", BIND_FILL},     {"span", BIND_SLOT},
};

static enum bind_kind kind_of(const char *text, size_t len)
{
	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
		if (strlen(words[i].name) == len && strncmp(words[i].name, text, len) == 0)
			return words[i].kind;
	return BIND_UNSET;
}

const char *bind_word(enum bind_kind kind)
{
	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
		if (words[i].kind == kind)
			return words[i].name;
	return "none";
}

static bool refuse_word(const char *option, const char *text, const char *there_are)
{
	say("%s %.60s: there are %s", option, text, there_are);
	return false;
}

#define OBJECTS "hwthread, core, l1cache, l2cache, l3cache, numa, socket"

bool bind_read_target(const char *option, const char *text, struct bind_wish *wish)
{
	size_t len = strcspn(text, ":");
	enum bind_kind kind = kind_of(text, len);
	/* Open MPI's "core:overload-allowed" and "core:if-supported": always so. */
	if (kind == BIND_UNSET || kind == BIND_FILL || kind == BIND_SLOT)
		return refuse_word(option, text, OBJECTS " and none");
	wish->bind = kind == BIND_HOST ? BIND_NONE : kind;
	return true;
}

/* What follows a colon: PE=N, OVERSUBSCRIBE and the like. */
static bool read_modifiers(const char *option, const char *text, struct bind_wish *wish)
{
	static const char *const always[] = {"oversubscribe", "nooversubscribe", "span", "inherit",
					     "noinherit",     "overload-allowed"};
	for (const char *at = text; *at;) { /* ends: at moves past one word */
		size_t len = strcspn(at, ":,");
		bool known = !len;
		for (size_t i = 0; i < sizeof always / sizeof always[0]; i++)
			known = known ||
				(strlen(always[i]) == len && strncasecmp(always[i], at, len) == 0);
		if (strncasecmp(at, "pe=", 3) == 0) {
			char *end;
			long n = strtol(at + 3, &end, 10);
			if (end != at + len || n < 1 || n > 8192)
				return refuse_word(option, text, "PE=N with N from 1 to 8192");
			wish->units = (int)n;
			known = true;
		} else if (len == 7 && strncasecmp(at, "hwtcpus", 7) == 0) {
			wish->threads = true;
			known = true;
		}
		if (!known)
			return refuse_word(option, text,
					   "PE=N, HWTCPUS, OVERSUBSCRIBE and SPAN after ':'");
		at += len + (at[len] != 0);
	}
	return true;
}

static bool read_per_object(const char *option, const char *text, struct bind_wish *wish)
{
	char *end;
	long n = strtol(text + 4, &end, 10);
	size_t len = *end == ':' ? strcspn(end + 1, ":") : 0;
	enum bind_kind kind = kind_of(*end ? end + 1 : end, len);
	if (n < 1 || n > 65536 || kind == BIND_UNSET || kind == BIND_NONE || kind == BIND_FILL)
		return refuse_word(option, text, "ppr:N:OBJECT with node, " OBJECTS);
	wish->per_object = (int)n;
	wish->map = kind;
	const char *rest = end + 1 + len;
	return !*rest || read_modifiers(option, rest + 1, wish);
}

bool bind_read_map(const char *option, const char *text, struct bind_wish *wish)
{
	static const char file[] = "rankfile:file=";
	if (strncmp(text, file, sizeof file - 1) == 0) {
		wish->rankfile = text + sizeof file - 1;
		return true;
	}
	if (strncmp(text, "ppr:", 4) == 0)
		return read_per_object(option, text, wish);
	size_t len = strcspn(text, ":,");
	enum bind_kind kind = kind_of(text, len);
	/* ":PE=2" leaves the object as it is. */
	if (len && (kind == BIND_UNSET || kind == BIND_NONE || kind == BIND_FILL) &&
	    strncmp(text, "rr", len) != 0)
		return refuse_word(option, text,
				   "node, slot, " OBJECTS ", ppr:N:OBJECT and rankfile:file=FILE");
	if (len)
		wish->map = kind;
	return !text[len] || read_modifiers(option, text + len + 1, wish);
}

bool bind_read_rank(const char *option, const char *text, struct bind_wish *wish)
{
	enum bind_kind kind = kind_of(text, strcspn(text, ":"));
	if (kind == BIND_UNSET || kind == BIND_NONE)
		return refuse_word(option, text, "slot, fill, node, " OBJECTS);
	wish->rank = kind;
	return true;
}
