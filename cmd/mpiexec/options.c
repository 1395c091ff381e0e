/* SPDX-License-Identifier: BSD-3-Clause */
/* options.c - what each option does, under every name that MPICH's and Open MPI's users know it by. */
#include "options.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include "base/base.h"
#include "nearest.h"
#include "say.h"

typedef enum plan_result result;

/* --- variables --- */

static bool add_var(struct plan_vars *vars, const char *name, size_t len, const char *value)
{
	if (!len || memchr(name, '=', len)) {
		say("'%s' is not the name of a variable", name);
		return false;
	}
	vars->items = plan_grow(vars->items, vars->count, sizeof *vars->items);
	vars->items[vars->count++] =
		(struct plan_var){plan_copy(name, len), plan_copy(value, strlen(value))};
	return true;
}

static bool add_exported(struct plan_vars *vars, const char *option, const char *arg, size_t len)
{
	char *name = plan_copy(arg, len), *eq = strchr(name, '=');
	const char *value = eq ? eq + 1 : getenv(name);
	bool good = true;
	if (value)
		good = add_var(vars, name, eq ? (size_t)(eq - name) : len, value);
	else
		say("%s %s: the variable is not set", option, name);
	free(name);
	return good;
}

static result result_of(bool good)
{
	return good ? PLAN_RUN : PLAN_BAD;
}

static result do_x(struct plan *plan, struct plan_program *prog, const char *shown, char **arg)
{
	return result_of(add_exported(&prog->vars, shown, arg[0], strlen(arg[0])));
}

static result do_env(struct plan *plan, struct plan_program *prog, const char *shown, char **arg)
{
	return result_of(add_var(&prog->vars, arg[0], strlen(arg[0]), arg[1]));
}

static result do_genv(struct plan *plan, struct plan_program *prog, const char *shown, char **arg)
{
	return result_of(add_var(&plan->vars, arg[0], strlen(arg[0]), arg[1]));
}

static result export_list(struct plan_vars *vars, const char *shown, const char *names)
{
	for (const char *at = names; *at;) { /* ends: at moves past one name */
		size_t len = strcspn(at, ",");
		if (len && !add_exported(vars, shown, at, len))
			return PLAN_BAD;
		at += len + (at[len] == ',');
	}
	return PLAN_RUN;
}

static result do_genvlist(struct plan *plan, struct plan_program *prog, const char *shown,
			  char **arg)
{
	plan->env = PLAN_ENV_NONE;
	return export_list(&plan->vars, shown, arg[0]);
}

static result do_envlist(struct plan *plan, struct plan_program *prog, const char *shown,
			 char **arg)
{
	prog->env = PLAN_ENV_NONE;
	return export_list(&prog->vars, shown, arg[0]);
}

static result do_genvnone(struct plan *plan, struct plan_program *prog, const char *shown,
			  char **arg)
{
	plan->env = PLAN_ENV_NONE;
	return PLAN_RUN;
}

static result do_envnone(struct plan *plan, struct plan_program *prog, const char *shown,
			 char **arg)
{
	prog->env = PLAN_ENV_NONE;
	return PLAN_RUN;
}

static result do_genvall(struct plan *plan, struct plan_program *prog, const char *shown,
			 char **arg)
{
	plan->env = PLAN_ENV_ALL;
	return PLAN_RUN;
}

static result do_envall(struct plan *plan, struct plan_program *prog, const char *shown, char **arg)
{
	prog->env = PLAN_ENV_ALL;
	return PLAN_RUN;
}

static result do_iface(struct plan *plan, struct plan_program *prog, const char *shown, char **arg)
{
	return result_of(add_var(&plan->vars, "WEFT_TCP_INTERFACE", 18, arg[0]));
}

static result do_initial_errhandler(struct plan *plan, struct plan_program *prog, const char *shown,
				    char **arg)
{
	static const char *const known[] = {"mpi_errors_are_fatal", "mpi_errors_abort",
					    "mpi_errors_return"};
	for (size_t i = 0; i < weft_countof(known); i++)
		if (strcmp(arg[0], known[i]) == 0)
			return result_of(
				add_var(&plan->vars, "WEFT_INITIAL_ERRHANDLER", 23, arg[0]));
	say("%s %s: give mpi_errors_are_fatal, mpi_errors_abort or mpi_errors_return", shown,
	    arg[0]);
	return PLAN_BAD;
}

static result do_memory_kinds(struct plan *plan, struct plan_program *prog, const char *shown,
			      char **arg)
{
	return result_of(add_var(&plan->vars, "WEFT_MEMORY_ALLOC_KINDS", 23, arg[0]));
}

/* --- numbers --- */

static bool read_count(const char *option, const char *text, int *out_p)
{
	char *end;
	errno = 0;
	long v = strtol(text, &end, 10);
	if (end == text || *end || errno || v < 1 || v > PLAN_RANKS_MAX) {
		say("%s %s: give a number from 1 to %d", option, text, PLAN_RANKS_MAX);
		return false;
	}
	*out_p = (int)v;
	return true;
}

static result do_n(struct plan *plan, struct plan_program *prog, const char *shown, char **arg)
{
	return result_of(read_count(shown, arg[0], &prog->ranks));
}

static result do_per_host(struct plan *plan, struct plan_program *prog, const char *shown,
			  char **arg)
{
	return result_of(read_count(shown, arg[0], &plan->per_host));
}

static result do_one_per_host(struct plan *plan, struct plan_program *prog, const char *shown,
			      char **arg)
{
	plan->per_host = 1;
	return PLAN_RUN;
}

static result do_timeout(struct plan *plan, struct plan_program *prog, const char *shown,
			 char **arg)
{
	char *end;
	double v = strtod(arg[0], &end);
	if (end == arg[0] || *end || !isfinite(v) || v < 0 || v > 1e9) {
		say("%s %s: give seconds, 0 for none", shown, arg[0]);
		return PLAN_BAD;
	}
	plan->timeout_s = v;
	plan->timeout_by = shown;
	return PLAN_RUN;
}

/* --- cores --- */

static result do_bind(struct plan *plan, struct plan_program *prog, const char *shown, char **arg)
{
	return result_of(bind_read_target(shown, arg[0], &plan->bind));
}

static result do_map(struct plan *plan, struct plan_program *prog, const char *shown, char **arg)
{
	return result_of(bind_read_map(shown, arg[0], &plan->bind));
}

static result do_rank(struct plan *plan, struct plan_program *prog, const char *shown, char **arg)
{
	return result_of(bind_read_rank(shown, arg[0], &plan->bind));
}

static result do_by_host(struct plan *plan, struct plan_program *prog, const char *shown,
			 char **arg)
{
	plan->bind.map = BIND_HOST;
	return PLAN_RUN;
}

static result do_by_slot(struct plan *plan, struct plan_program *prog, const char *shown,
			 char **arg)
{
	plan->bind.map = BIND_SLOT;
	return PLAN_RUN;
}

static result do_per_package(struct plan *plan, struct plan_program *prog, const char *shown,
			     char **arg)
{
	plan->bind.map = BIND_PACKAGE;
	return result_of(read_count(shown, arg[0], &plan->bind.per_object));
}

static result do_cores_per_rank(struct plan *plan, struct plan_program *prog, const char *shown,
				char **arg)
{
	return result_of(read_count(shown, arg[0], &plan->bind.units));
}

static result do_threads(struct plan *plan, struct plan_program *prog, const char *shown,
			 char **arg)
{
	plan->bind.threads = true;
	return PLAN_RUN;
}

static result do_report(struct plan *plan, struct plan_program *prog, const char *shown, char **arg)
{
	plan->bind.report = true;
	return PLAN_RUN;
}

static result do_cpus(struct plan *plan, struct plan_program *prog, const char *shown, char **arg)
{
	plan->bind.cpus = arg[0];
	return PLAN_RUN;
}

static result do_rankfile(struct plan *plan, struct plan_program *prog, const char *shown,
			  char **arg)
{
	plan->bind.rankfile = arg[0];
	return PLAN_RUN;
}

/* --- output --- */

static result do_label(struct plan *plan, struct plan_program *prog, const char *shown, char **arg)
{
	plan->label = true;
	return PLAN_RUN;
}

static bool pattern_ok(const char *shown, const char *text)
{
	for (const char *p = strchr(text, '%'); p; p = strchr(p + 2, '%')) {
		if (!p[1] || !strchr("rh%", p[1])) {
			say("%s %.60s: there are %%r (rank), %%h (host) and %%%%", shown, text);
			return false;
		}
	}
	return true;
}

static result do_outfile(struct plan *plan, struct plan_program *prog, const char *shown,
			 char **arg)
{
	plan->out_pattern = arg[0];
	return result_of(pattern_ok(shown, arg[0]));
}

static result do_errfile(struct plan *plan, struct plan_program *prog, const char *shown,
			 char **arg)
{
	plan->err_pattern = arg[0];
	return result_of(pattern_ok(shown, arg[0]));
}

static result do_folder(struct plan *plan, struct plan_program *prog, const char *shown, char **arg)
{
	size_t len = strcspn(arg[0], ":");
	if (!len || (arg[0][len] && strcmp(arg[0] + len, ":nocopy") != 0)) {
		say("%s %.60s: give a folder, or FOLDER:nocopy", shown, arg[0]);
		return PLAN_BAD;
	}
	plan->out_folder = plan_copy(arg[0], len);
	plan->out_folder_only = arg[0][len];
	return PLAN_RUN;
}

static result do_exit_codes(struct plan *plan, struct plan_program *prog, const char *shown,
			    char **arg)
{
	plan->exit_codes = true;
	return PLAN_RUN;
}

static result do_go_on(struct plan *plan, struct plan_program *prog, const char *shown, char **arg)
{
	plan->go_on = true;
	return PLAN_RUN;
}

static result do_wdir(struct plan *plan, struct plan_program *prog, const char *shown, char **arg)
{
	prog->wdir = arg[0];
	return PLAN_RUN;
}

static result do_path(struct plan *plan, struct plan_program *prog, const char *shown, char **arg)
{
	prog->path = arg[0];
	return PLAN_RUN;
}

static result do_soft(struct plan *plan, struct plan_program *prog, const char *shown, char **arg)
{
	prog->soft = arg[0];
	return PLAN_RUN;
}

static result do_arch(struct plan *plan, struct plan_program *prog, const char *shown, char **arg)
{
	struct utsname u;
	if (uname(&u) == 0 && strcmp(u.machine, arg[0]) == 0)
		return PLAN_RUN;
	say("%s %s: this host is %s", shown, arg[0], u.machine);
	return PLAN_BAD;
}

/* --- other machines --- */

static result do_hosts(struct plan *plan, struct plan_program *prog, const char *shown, char **arg)
{
	plan->hosts = prog->hosts = arg[0];
	return PLAN_RUN;
}

static result do_hostfile(struct plan *plan, struct plan_program *prog, const char *shown,
			  char **arg)
{
	plan->hostfile = arg[0];
	return PLAN_RUN;
}

static result do_engine(struct plan *plan, struct plan_program *prog, const char *shown, char **arg)
{
	plan->engine = arg[0];
	return PLAN_RUN;
}

static result do_agent(struct plan *plan, struct plan_program *prog, const char *shown, char **arg)
{
	plan->agent = arg[0];
	return PLAN_RUN;
}

/* --- words that change nothing here --- */

static result do_nothing(struct plan *plan, struct plan_program *prog, const char *shown,
			 char **arg)
{
	return PLAN_RUN;
}

static result do_mca(struct plan *plan, struct plan_program *prog, const char *shown, char **arg)
{
	say("%s %s %s: a setting of Open MPI's, left out; %s", shown, arg[0], arg[1],
	    nearest_setting(arg[0], arg[1]));
	return PLAN_RUN;
}

static result say_meaningless(struct plan *plan, struct plan_program *prog, const char *shown,
			      char **arg)
{
	say("%s has no meaning here and is left out", shown);
	return PLAN_RUN;
}

static const struct option_row rows[];

static result do_help(struct plan *plan, struct plan_program *prog, const char *shown, char **arg)
{
	printf("Usage: mpiexec [options] program [arguments] [: [options] program ...]\n"
	       "Starts the ranks of an MPI job and ends all of them together.\n\n");
	for (const struct option_row *r = rows; r->names; r++)
		if (r->help)
			printf("  %-27s %s\n", r->shown, r->help);
	printf("\nOne dash or two are the same. stdin goes to rank 0. The exit code is that of the "
	       "first\n"
	       "rank that fails, 128 + N for signal N, 127 for a program that is not found, 2 for "
	       "a wrong\n"
	       "option. Ctrl-C asks the ranks to end, a second one ends them at once.\n");
	return PLAN_DONE;
}

static result do_version(struct plan *plan, struct plan_program *prog, const char *shown,
			 char **arg)
{
	printf("weft mpiexec %s\n", WEFT_VERSION);
	return PLAN_DONE;
}

static result is_file(struct plan *plan, struct plan_program *prog, const char *shown, char **arg)
{
	return PLAN_RUN; /* plan.c has put its words in place */
}

static const struct option_row rows[] = {
	{"n#|np#|c#", 1, "-n N, -np N", "ranks of the program that follows (default 1)", do_n},
	{"x", 1, "-x VAR[=VALUE]", "sets VAR for this program, or checks that it is set", do_x},
	{"env", 2, "-env VAR VALUE", "sets VAR for this program", do_env},
	{"genv", 2, "-genv VAR VALUE", "sets VAR for all programs", do_genv},
	{"envlist", 1, "-envlist A,B, -genvlist A,B", "of the environment only these, and PATH",
	 do_envlist},
	{"genvlist", 1, NULL, NULL, do_genvlist},
	{"envnone", 0, "-envnone, -genvnone", "of the environment only PATH", do_envnone},
	{"genvnone", 0, NULL, NULL, do_genvnone},
	{"envall", 0, NULL, NULL, do_envall},
	{"genvall", 0, NULL, NULL, do_genvall},
	{"wdir|wd", 1, "--wdir DIR", "working directory of this program", do_wdir},
	{"path", 1, "-path DIRS", "folders to look for this program first, a:b", do_path},
	{"soft", 1, "-soft LIST", "as many ranks up to -n N as one of 2,4:8,10:20:5 says", do_soft},
	{"arch", 1, "-arch NAME", "the machine that this program wants, as x86_64", do_arch},
	{"configfile|file|app", 1, "-configfile, -file, --app F",
	 "options and programs from a file, one a line", is_file},
	{"bind-to", 1, "--bind-to OBJECT",
	 "hwthread, core, l2cache, l3cache, numa, socket; none (default)", do_bind},
	{"map-by", 1, "--map-by OBJECT[:PE=N]",
	 "the next rank goes to the next such object; also node, slot, ppr:N:OBJECT", do_map},
	{"rank-by", 1, "--rank-by OBJECT", "numbers go round these objects; also slot, fill, node",
	 do_rank},
	{"cpus-per-rank|cpus-per-proc", 1, NULL, NULL, do_cores_per_rank},
	{"use-hwthread-cpus|use-hwthreads-as-cpus", 0, "--use-hwthread-cpus",
	 "hardware threads count as cores", do_threads},
	{"cpu-set|cpu-list", 1, "--cpu-set LIST", "only these hardware threads, 0-3,6", do_cpus},
	{"rankfile|rf", 1, "--rankfile FILE", "lines \"rank 0=HOST slot=0-1\"", do_rankfile},
	{"report-bindings|display-map|display-bind", 0, "--report-bindings",
	 "a line per rank: its cores", do_report},
	{"npersocket#|npersocket", 1, NULL, NULL, do_per_package},
	{"bynode", 0, NULL, NULL, do_by_host},
	{"byslot", 0, NULL, NULL, do_by_slot},
	{"timeout|maxtime", 1, "--timeout SECONDS",
	 "ends the job after that, exit code 124; or MPIEXEC_TIMEOUT", do_timeout},
	{"l|label|tag-output|prepend-rank", 0, "-l, --label", "\"[rank] \" before each line",
	 do_label},
	{"outfile-pattern|outfile", 1, "-outfile-pattern FILE", "stdout to files: %r rank, %h host",
	 do_outfile},
	{"errfile-pattern|errfile", 1, "-errfile-pattern FILE", "stderr likewise", do_errfile},
	{"output-filename|output-directory", 1, "--output-filename DIR",
	 "both also to DIR/1/rank.N/; DIR:nocopy: only there", do_folder},
	{"print-all-exitcodes", 0, "-print-all-exitcodes", "that of each rank, at the end",
	 do_exit_codes},
	{"disable-auto-cleanup", 0, "-disable-auto-cleanup",
	 "a rank that fails does not end the others", do_go_on},
	{"iface", 1, "-iface NAME", "the network interface of tcp: WEFT_TCP_INTERFACE", do_iface},
	{"initial-errhandler", 1, "-initial-errhandler NAME",
	 "mpi_errors_are_fatal, mpi_errors_abort or mpi_errors_return, until the program sets one",
	 do_initial_errhandler},
	{"memory-alloc-kinds", 1, "-memory-alloc-kinds LIST",
	 "kinds of memory that the program asks for", do_memory_kinds},
	{"hosts|host|H", 1, "--hosts A,B",
	 "other machines: by srun in an allocation, prterun or Hydra, else ssh; behind ':' that "
	 "program's",
	 do_hosts},
	{"f|hostfile|machinefile|machine|default-hostfile", 1, "-f FILE, --hostfile FILE",
	 "the same, hosts in a file", do_hostfile},
	{"ppn#|N#|npernode#|perhost#|npernode|ppn", 1, "-ppn N, -N N", "ranks per host",
	 do_per_host},
	{"pernode", 0, NULL, NULL, do_one_per_host},
	{"engine|bootstrap|rmk|launcher", 1, "--engine NAME",
	 "srun, prterun, mpiexec.hydra; ssh: none of them", do_engine},
	{"launcher-exec|rsh-agent|bootstrap-exec", 1, "--launcher-exec COMMAND",
	 "starts an agent on a host, instead of ssh; or WEFT_RSH", do_agent},
	{"oversubscribe|allow-run-as-root|nooversubscribe|no-oversubscribe|q|quiet|v|verbose|"
	 "nolocal|"
	 "no-local|enable-recovery|ordered-output|enable-x|disable-x",
	 0, NULL, NULL, do_nothing},
	{"mca|gmca|omca|gomca|pmixmca|gpmixmca|prtemca|gprtemca", 2, "--mca NAME VALUE",
	 "Open MPI's: left out, with a note of what comes nearest", do_mca},
	{"tune|am|prefix|dvm-uri|ckpoint-interval|ckpoint-prefix|pmi-port|topolib|stdin", 1, NULL,
	 NULL, say_meaningless},
	{"noprefix|display-allocation|report-state-on-timeout|disable-hostname-propagation|skip-"
	 "launch-node|"
	 "usize|info",
	 0, NULL, NULL, say_meaningless},
	{"h|help", 0, "-h, --help", "this text", do_help},
	{"V|version", 0, "--version", "the version", do_version},
	{0},
};

/* Does names hold the word?  "n#" also fits n4: *digits_p is where the number begins. */
static bool names_have(const char *names, const char *word, size_t len, size_t *digits_p)
{
	size_t letters = len;
	while (letters && word[letters - 1] >= '0' && word[letters - 1] <= '9')
		letters--;
	for (const char *p = names; p;) { /* ends: p moves to the next name, at last to NULL */
		const char *bar = strchr(p, '|');
		size_t n = bar ? (size_t)(bar - p) : strlen(p);
		bool number = n && p[n - 1] == '#';
		n -= number;
		*digits_p = number && letters < len ? letters : 0;
		if ((n == len || (*digits_p && n == letters)) && strncmp(p, word, n) == 0)
			return true;
		p = bar ? bar + 1 : NULL;
	}
	return false;
}

static void all_names(void (*each)(const char *name, size_t len, void *arg), void *arg)
{
	for (const struct option_row *r = rows; r->names; r++) {
		for (const char *p = r->names;
		     p;) { /* ends: p moves to the next name, at last to NULL */
			size_t n = strcspn(p, "|#"), all = strcspn(p, "|");
			each(p, n, arg);
			p = p[all] ? p + all + 1 : NULL;
		}
	}
}

const struct option_row *option_find(const char *word, char **value_p)
{
	const char *name = word + (word[1] == '-' ? 2 : 1);
	size_t len = strcspn(name, "="), digits;
	for (const struct option_row *r = rows; r->names; r++) {
		if (!names_have(r->names, name, len, &digits))
			continue;
		*value_p = name[len] ? (char *)name + len + 1
			   : digits  ? (char *)name + digits
				     : NULL;
		if (digits && name[len])
			break; /* -n2=3 */
		if (name[len] && r->args != 1)
			break;
		return r;
	}
	nearest_option(word, name, len, all_names);
	return NULL;
}

bool option_is_file(const struct option_row *row)
{
	return row->apply == is_file;
}
