/* SPDX-License-Identifier: BSD-3-Clause */
/* nearest.c - known words of other launchers, and the distance between words. */
#include "nearest.h"

#include <stdio.h>
#include <string.h>
#include "say.h"

/* Options of MPICH, Intel MPI and Open MPI that have another form, or none, here. */
static const struct {
	const char *name, *text;
} options[] = {
	{"bind-to-core", "write --bind-to core"},
	{"bind-to-socket", "write --bind-to socket"},
	{"bind-to-none", "write --bind-to none"},
	{"bycore", "write --map-by core"},
	{"bysocket", "write --map-by socket"},
	{"slot-list", "write --cpu-set LIST"},
	{"binding", "write --bind-to OBJECT"},
	{"output", "write --label, or --output-filename DIR"},
	{"merge-stderr-to-stdout", "write 2>&1 behind the command"},
	{"xterm", "write xterm -e before the program"},
	{"path", "set PATH, or give the program's path"},
	{"gdb", "write gdb --args before the program"},
	{"tv", "start the program under the debugger"},
	{"preload-binary", "copy the program to each host first"},
	{"preload-files", "copy the files to each host first"},
	{"genvuser", "the environment reaches every rank anyway"},
	{"timestamp-output", "pipe the output through ts"},
	{"s", "stdin goes to rank 0 alone"},
	{"profile", "WEFT_TRACE=FILE keeps what happened when"},
	{"trace", "WEFT_TRACE=FILE keeps what happened when"},
	{"check-mpi", "there is no such checker"},
};

static const struct {
	const char *name, *text;
} settings[] = {
	{"btl", "WEFT_DRIVERS chooses networks (tcp,self for tcp alone)"},
	{"pml", "WEFT_DRIVERS chooses networks"},
	{"mtl", "WEFT_DRIVERS chooses networks (ofi,self for libfabric)"},
	{"btl_tcp_if_include", "WEFT_TCP_INTERFACE names the interface"},
	{"oob_tcp_if_include", "WEFT_TCP_INTERFACE names the interface"},
	{"btl_tcp_progress_thread", "messages move in the background by default"},
	{"mpi_yield_when_idle", "a rank that waits sleeps by default"},
	{"btl_vader_eager_limit", "WEFT_EAGER_SHM is the largest eager message"},
	{"btl_sm_eager_limit", "WEFT_EAGER_SHM is the largest eager message"},
	{"btl_tcp_eager_limit", "WEFT_EAGER_TCP is the largest eager message"},
	{"plm_rsh_agent", "--launcher-exec names the command that starts an agent"},
	{"orte_rsh_agent", "--launcher-exec names the command that starts an agent"},
	{"plm", "--engine names a launcher"},
	{"rmaps_base_oversubscribe", "more ranks than cores are always allowed"},
	{"hwloc_base_binding_policy", "write --bind-to OBJECT"},
	{"rmaps_base_mapping_policy", "write --map-by OBJECT"},
	{"orte_base_help_aggregate", "there is nothing to switch off"},
};

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

/* Letters to add, drop or change. */
static size_t edit_distance(const char *a, size_t an, const char *b, size_t bn)
{
	size_t row[64];
	if (bn >= COUNT(row))
		return an + bn;
	for (size_t j = 0; j <= bn; j++)
		row[j] = j;
	for (size_t i = 1; i <= an; i++) {
		size_t corner = row[0];
		row[0] = i;
		for (size_t j = 1; j <= bn; j++) {
			size_t up = row[j], best = corner + (a[i - 1] != b[j - 1]);
			best = up + 1 < best ? up + 1 : best;
			best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
			corner = up;
			row[j] = best;
		}
	}
	return row[bn];
}

struct search {
	const char *word, *found;
	size_t len, found_len, best;
};

static void compare_names(const char *name, size_t len, void *arg)
{
	struct search *s = arg;
	size_t d = edit_distance(s->word, s->len, name, len);
	if (d < s->best) {
		s->best = d;
		s->found = name;
		s->found_len = len;
	}
}

void nearest_option(const char *shown, const char *name, size_t len,
		    void (*all_names)(void (*each)(const char *, size_t, void *), void *arg))
{
	for (size_t i = 0; i < COUNT(options); i++) {
		if (strlen(options[i].name) == len && strncmp(options[i].name, name, len) == 0) {
			say("%.60s is not known here: %s", shown, options[i].text);
			return;
		}
	}
	struct search s = {.word = name, .len = len, .best = len / 3 + 1};
	if (len < 48 && len > 1)
		all_names(compare_names, &s);
	if (s.found && s.best)
		say("unknown option %.60s: did you mean %s%.*s? mpiexec --help lists them", shown,
		    s.found_len > 1 ? "--" : "-", (int)s.found_len, s.found);
	else
		say("unknown option %.60s; mpiexec --help lists them", shown);
}

const char *nearest_setting(const char *name, const char *value)
{
	(void)value;
	for (size_t i = 0; i < COUNT(settings); i++)
		if (strcmp(settings[i].name, name) == 0)
			return settings[i].text;
	return "weft info lists weft's settings";
}
