/* SPDX-License-Identifier: BSD-3-Clause */
/* place.c - deals ranks out to hosts, and reads rankfiles. */
#include "place.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "say.h"

/* Blocks in turn over these hosts, of which place[] is the number among all; host_of[rank] is set. */
static void deal_ranks(const struct plan *plan, struct place *p, const struct host_list *hosts,
		       const int *place, const struct plan_program *prog)
{
	int rank = prog->first, end = prog->first + prog->ranks;
	while (rank < end) { /* ends: each host takes one at least */
		for (int h = 0; h < hosts->count && rank < end; h++) {
			int block = plan->per_host ? plan->per_host : hosts->items[h].slots;
			if (!block || plan->bind.map == BIND_HOST)
				block = 1;
			if (hosts->count == 1)
				block = prog->ranks;
			for (int i = 0; i < block && rank < end; i++)
				p->host_of[rank++] = place ? place[h] : h;
		}
	}
}

static int number_of_host(const struct place *p, const char *name)
{
	for (int h = 0; h < p->hosts.count; h++)
		if (strcmp(p->hosts.items[h].name, name) == 0)
			return h;
	return -1;
}

/* Each program's ranks over its own hosts. */
static bool deal_programs(const struct plan *plan, struct place *p)
{
	for (int i = 0; i < plan->program_count; i++) {
		struct host_list own;
		if (!hosts_collect(plan->programs[i].hosts, NULL, &own))
			return false;
		int *place = calloc((size_t)own.count, sizeof *place);
		if (!place)
			return false;
		for (int h = 0; h < own.count; h++)
			place[h] = number_of_host(p, own.items[h].name);
		deal_ranks(plan, p, &own, place, &plan->programs[i]);
		free(place);
	}
	return true;
}

static bool deal_all(const struct plan *plan, struct place *p, bool remote)
{
	const struct plan_program all = {.ranks = plan->size};
	if (remote && plan->hosts_by_program)
		return deal_programs(plan, p);
	deal_ranks(plan, p, &p->hosts, NULL, &all);
	return true;
}

/* --rank-by node: as many ranks per host as before, numbered round the hosts. */
static bool number_round(const struct plan *plan, struct place *p)
{
	int *left = calloc((size_t)p->hosts.count, sizeof *left);
	if (!left)
		return false;
	for (int r = 0; r < plan->size; r++)
		left[p->host_of[r]]++;
	for (int rank = 0; rank < plan->size;) /* ends: a rank is left on some host */
		for (int h = 0; h < p->hosts.count; h++)
			if (left[h] && left[h]--)
				p->host_of[rank++] = h;
	free(left);
	return true;
}

static void count_locals(const struct plan *plan, struct place *p)
{
	for (int r = 0; r < plan->size; r++)
		p->locals[r] = p->counts[p->host_of[r]]++;
}

/* A host that has no rank needs no agent. */
static void forget_idle_hosts(const struct plan *plan, struct place *p)
{
	int kept = 0;
	for (int h = 0; h < p->hosts.count; h++) {
		if (!p->counts[h])
			continue;
		for (int r = 0; r < plan->size && kept != h; r++)
			if (p->host_of[r] == h)
				p->host_of[r] = kept;
		p->hosts.items[kept] = p->hosts.items[h];
		p->counts[kept++] = p->counts[h];
	}
	p->hosts.count = kept;
}

/* --- rankfile: "rank 3=HOST slot=0-1", HOST also +nN, the N-th of the hosts --- */

struct ranks_line {
	const char *path;
	int line;
};

static bool say_wrong_line(const struct ranks_line *at, const char *why)
{
	say("%s, line %d: %s", at->path, at->line, why);
	return false;
}

static bool is_here(const char *name)
{
	char own[65] = "";
	(void)gethostname(own, sizeof own - 1);
	size_t len = strcspn(own, ".");
	return strcmp(name, "localhost") == 0 || strcmp(name, own) == 0 ||
	       (strlen(name) == len && strncmp(name, own, len) == 0);
}

static int find_host(const struct place *p, const char *name, bool remote)
{
	if (strncmp(name, "+n", 2) == 0) {
		char *end;
		long n = strtol(name + 2, &end, 10);
		return *end || end == name + 2 || n < 0 || n >= p->hosts.count ? -1 : (int)n;
	}
	int h = number_of_host(p, name);
	return h < 0 && !remote && is_here(name) ? 0 : h;
}

static bool read_rank(const struct ranks_line *at, const struct plan *plan, struct place *p,
		      char *text, bool remote)
{
	int rank = -1, used = 0;
	if (sscanf(text, " rank %d = %n", &rank, &used) != 1 || !used)
		return say_wrong_line(at, "a line is \"rank N=HOST slot=CORES\"");
	char *name = text + used, *end = name + strcspn(name, " \t\r\n");
	char *slot = strstr(end, "slot");
	if (*end)
		*end++ = 0;
	if (rank < 0 || rank >= plan->size)
		return say_wrong_line(at, "there is no such rank");
	if (p->host_of[rank] >= 0)
		return say_wrong_line(at, "this rank has a line already");
	int host = find_host(p, name, remote);
	if (host < 0)
		return say_wrong_line(at, "this host is not among those of --hosts or -f");
	if (!slot)
		return say_wrong_line(at, "slot=CORES is missing");
	slot += 4 + strspn(slot + 4, "s \t");
	if (*slot != '=')
		return say_wrong_line(at, "slot=CORES is missing");
	slot += 1 + strspn(slot + 1, " \t");
	size_t len = strcspn(slot, " \t\r\n");
	if (!len || strspn(slot, "0123456789,-:*") < len)
		return say_wrong_line(at, "cores are written 0-3,6 or 1:0-2 (package : its cores)");
	p->host_of[rank] = host;
	p->slots[rank] = plan_copy(slot, len);
	return true;
}

static bool read_rankfile(const struct plan *plan, struct place *p, bool remote)
{
	struct ranks_line at = {.path = plan->bind.rankfile};
	FILE *in = fopen(at.path, "re");
	char *line = NULL;
	size_t room = 0;
	bool good = in;
	for (int r = 0; r < plan->size; r++)
		p->host_of[r] = -1;
	while (good && getline(&line, &room, in) >= 0) {
		at.line++;
		line[strcspn(line, "#")] = 0;
		if (line[strspn(line, " \t\r\n")])
			good = read_rank(&at, plan, p, line, remote);
	}
	if (!in || ferror(in)) {
		say("%s: cannot be read: %s", at.path, strerror(errno));
		good = false;
	}
	free(line);
	if (in)
		fclose(in);
	for (int r = 0; good && r < plan->size; r++) {
		if (p->host_of[r] < 0) {
			say("%s: no line for rank %d", at.path, r);
			good = false;
		}
	}
	return good;
}

bool place_make(const struct plan *plan, bool remote, struct place *place)
{
	size_t n = (size_t)plan->size;
	struct place p = {.host_of = calloc(n, sizeof *p.host_of),
			  .locals = calloc(n, sizeof *p.locals)};
	if (!hosts_collect(remote ? plan->hosts : NULL, remote ? plan->hostfile : NULL, &p.hosts))
		return false;
	p.counts = calloc((size_t)p.hosts.count, sizeof *p.counts);
	if (plan->bind.rankfile)
		p.slots = calloc(n, sizeof *p.slots);
	if (!p.host_of || !p.locals || !p.counts || (plan->bind.rankfile && !p.slots)) {
		say("no memory");
		return false;
	}
	if (plan->bind.rankfile && !read_rankfile(plan, &p, remote))
		return false;
	if (!plan->bind.rankfile && !deal_all(plan, &p, remote))
		return false;
	if (plan->bind.rank == BIND_HOST && !number_round(plan, &p))
		return false;
	count_locals(plan, &p);
	forget_idle_hosts(plan, &p);
	*place = p;
	return true;
}

char *place_mapping(const struct place *place, int size)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	if (!out)
		return NULL;
	fputs("(vector", out);
	for (int r = 0; r < size;) { /* ends: r moves past a run of ranks of one host */
		int n = 1;
		while (r + n < size && place->host_of[r + n] == place->host_of[r])
			n++;
		/* The hosts that follow and take as many. */
		int h = place->host_of[r], hosts = 1, at = r + n;
		while (at + n <= size && place->host_of[at] == h + hosts &&
		       place->host_of[at + n - 1] == h + hosts &&
		       (at + n == size || place->host_of[at + n] != h + hosts)) {
			hosts++;
			at += n;
		}
		fprintf(out, ",(%d,%d,%d)", h, hosts, n);
		r = at;
	}
	fputs(")", out);
	return fclose(out) ? NULL : text;
}
