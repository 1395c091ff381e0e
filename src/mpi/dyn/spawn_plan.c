/* SPDX-License-Identifier: BSD-3-Clause */
/* spawn_plan.c - programs, arguments and info keys of a spawn become mpiexec's command line. */
#include "mpi/dyn/spawn_plan.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "mpi/info.h"

enum key {
	KEY_WDIR,
	KEY_PATH,
	KEY_HOST,
	KEY_ADD_HOST,
	KEY_SOFT,
	KEY_ARCH,
	KEY_WD,
	KEY_ERRHANDLER,
	KEY_FILE,
	KEYS
};
static const char *const key_name[KEYS] = {
	"wdir", "path", "host", "add-host", "soft", "arch", "wd", "mpi_initial_errhandler", "file"};

struct keys {
	char value[KEYS][MPI_MAX_INFO_VAL + 1]; /* empty: not given */
};

/* ---- info keys ---------------------------------------------------------------------------- */

/* A line KEY VALUE or KEY = VALUE of the file. */
static void take_line(struct keys *k, char *line)
{
	char *key = line + strspn(line, " \t");
	size_t n = strcspn(key, " \t=\n");
	char *value = key + n + strspn(key + n, " \t=");

	value[strcspn(value, "\n")] = 0;
	for (int i = 0; i < KEY_FILE; i++)
		if (n && strlen(key_name[i]) == n && strncmp(key, key_name[i], n) == 0 &&
		    !k->value[i][0])
			snprintf(k->value[i], sizeof(k->value[i]), "%s", value);
}

static int read_file(struct keys *k)
{
	char line[MPI_MAX_INFO_VAL + 64];
	FILE *f = fopen(k->value[KEY_FILE], "re");

	if (!f)
		return weft_mpi_err(MPI_ERR_SPAWN, "info key file: %s cannot be read",
				    k->value[KEY_FILE]);
	while (fgets(line, sizeof(line), f))
		if (line[0] != '#')
			take_line(k, line);
	fclose(f);
	return MPI_SUCCESS;
}

static int keys_read(MPI_Info info, struct keys *k)
{
	memset(k, 0, sizeof(*k));
	if (info == MPI_INFO_NULL)
		return MPI_SUCCESS;
	struct weft_mpi_info *i = weft_mpi_info_of(info);
	if (!i)
		return weft_mpi_err(MPI_ERR_INFO, "invalid info object");
	for (int key = 0; key < KEYS; key++)
		if (!weft_mpi_info_look(i, key_name[key], k->value[key], sizeof(k->value[key])))
			k->value[key][0] = 0;
	int err = k->value[KEY_FILE][0] ? read_file(k) : MPI_SUCCESS;
	/* The short word that many programs use. */
	if (!k->value[KEY_WDIR][0])
		memcpy(k->value[KEY_WDIR], k->value[KEY_WD], sizeof(k->value[KEY_WDIR]));
	return err;
}

static bool is_this_host(const char *name, size_t n)
{
	char mine[HOST_NAME_MAX + 1] = "";
	const char *named = getenv("WEFT_JOB_HOST");

	(void)gethostname(mine, sizeof(mine) - 1);
	const char *const known[] = {mine, "localhost", "127.0.0.1", "::1", named ? named : mine};
	for (size_t i = 0; i < weft_countof(known); i++)
		if (strlen(known[i]) == n && strncmp(known[i], name, n) == 0)
			return true;
	/* The short name of a host with a long one. */
	return strcspn(mine, ".") == n && strncmp(mine, name, n) == 0;
}

/* list: A,B:2,C */
static bool is_listed(const char *list, const char *name, size_t n)
{
	for (const char *h = list; *h; h += *h == ',') { /* ends: with the list */
		if (strcspn(h, ",:") == n && strncmp(h, name, n) == 0)
			return true;
		h += strcspn(h, ",");
	}
	return false;
}

/* The hosts of this job, by the variables that mpiexec sets where there are several. */
static bool is_jobs_host(const char *name, size_t n)
{
	const char *hosts = getenv("WEFT_JOB_HOSTS");

	return is_listed(hosts ? hosts : "", name, n);
}

/* Where the processes are to go; "": here. */
static const char *places_of(const struct keys *k)
{
	return k->value[KEY_HOST][0] ? k->value[KEY_HOST] : k->value[KEY_ADD_HOST];
}

/* *away_p: a process goes to another host. */
static int check_place(const struct keys *k, bool *away_p)
{
	struct utsname u;

	for (const char *h = places_of(k); *h; h += *h == ',') { /* ends: with the list */
		size_t n = strcspn(h, ",:");
		bool here = !n || is_this_host(h, n);
		if (!here && !is_jobs_host(h, n) && !is_listed(k->value[KEY_ADD_HOST], h, n))
			return weft_mpi_err(MPI_ERR_SPAWN,
					    "info key host: %.*s is neither this host nor one on "
					    "which mpiexec has started ranks of this job; the key "
					    "add-host names further ones, reached by ssh",
					    (int)n, h);
		*away_p = *away_p || !here;
		h += strcspn(h, ",");
	}
	if (k->value[KEY_ARCH][0] && (uname(&u) || strcmp(u.machine, k->value[KEY_ARCH]) != 0))
		return weft_mpi_err(MPI_ERR_SPAWN, "info key arch: this host is %s, not %s",
				    u.machine, k->value[KEY_ARCH]);
	return MPI_SUCCESS;
}

static int check_errhandler(const char *name)
{
	if (!*name || strcmp(name, "mpi_errors_are_fatal") == 0 ||
	    strcmp(name, "mpi_errors_abort") == 0 || strcmp(name, "mpi_errors_return") == 0)
		return MPI_SUCCESS;
	return weft_mpi_err(MPI_ERR_SPAWN,
			    "info key mpi_initial_errhandler: %s is none of mpi_errors_are_fatal, "
			    "mpi_errors_abort and mpi_errors_return",
			    name);
}

/* The largest number up to most that a:b:c names; -1: none, or no such text. */
static long largest_in_range(const char *text, long most)
{
	long v[3] = {0, 0, 1}, best = -1;
	int n = 0;
	char *end;

	do {
		v[n++] = strtol(text, &end, 10);
		if (end == text || (*end && *end != ':'))
			return -1;
		text = end + 1;
	} while (*end && n < 3);
	if (*end)
		return -1;
	if (n == 1)
		v[1] = v[0];
	/* Ends: the step is not 0, and each turn goes on by it. */
	for (long i = v[0]; v[2] && (v[2] > 0 ? i <= v[1] : i >= v[1]); i += v[2]) {
		if (i >= 0 && i <= most && i > best)
			best = i;
		if (i > most && v[2] > 0)
			break;
	}
	return best;
}

/* How many processes soft lets us start; 0: none. */
static int soft_count(const char *soft, int most)
{
	long best = 0;
	char part[128];

	if (!*soft)
		return most;
	for (const char *s = soft; *s; s += *s == ',') {
		size_t n = strcspn(s, ",");
		snprintf(part, sizeof(part), "%.*s", (int)n, s);
		long v = largest_in_range(part, most);
		best = v > best ? v : best;
		s += n;
	}
	return (int)best;
}

/* ---- the command line --------------------------------------------------------------------- */

static bool plan_add_word(struct weft_mpi_spawn_plan *p, const char *word)
{
	if (p->n + 2 > p->room) {
		int room = 2 * p->room + 16;
		char **more = realloc(p->argv, (size_t)room * sizeof(*more));
		if (!more)
			return false;
		p->argv = more;
		p->room = room;
	}
	p->argv[p->n] = word ? strdup(word) : NULL;
	p->argv[p->n + 1] = NULL;
	return !word || p->argv[p->n++] != NULL;
}

/* Looks for command in the folders of path; else it stays as it is, for the usual search. */
static const char *resolve_command(const char *command, const char *path, char buf[PATH_MAX])
{
	if (strchr(command, '/'))
		return command;
	while (*path) { /* ends: path moves to the next folder */
		size_t n = strcspn(path, ":");
		if (snprintf(buf, PATH_MAX, "%.*s/%s", (int)n, path, command) < PATH_MAX &&
		    access(buf, X_OK) == 0)
			return buf;
		path += n + (path[n] == ':');
	}
	return command;
}

/* Hosts by the names that mpiexec knows: this one has one of them. */
static bool add_hosts(struct weft_mpi_spawn_plan *p, const struct keys *k)
{
	const char *here = getenv("WEFT_JOB_HOST"), *list = places_of(k);
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	if (!here)
		here = "localhost";
	if (!out)
		return false;
	for (const char *h = *list ? list : here; *h; h += *h == ',') { /* ends: with the list */
		size_t all = strcspn(h, ","), n = strcspn(h, ",:");
		bool local = is_this_host(h, n);
		fprintf(out, "%s%.*s%.*s", len ? "," : "", (int)(local ? strlen(here) : n),
			local ? here : h, (int)(all - n), h + n);
		fflush(out);
		h += all;
	}
	bool good = fclose(out) == 0 && plan_add_word(p, "--hosts") && plan_add_word(p, text);
	free(text);
	return good;
}

/* Hosts need agents, which start as those of this job did. */
static bool add_launcher(struct weft_mpi_spawn_plan *p)
{
	const char *rsh = getenv("WEFT_JOB_RSH");
	bool good = plan_add_word(p, "--engine") && plan_add_word(p, "ssh");

	if (rsh && strcmp(rsh, "ssh") != 0)
		good = good && plan_add_word(p, "--launcher-exec") && plan_add_word(p, rsh);
	return good;
}

static bool add_program(struct weft_mpi_spawn_plan *p, const struct weft_mpi_spawn_program *prog,
			const struct keys *k, int n, bool away)
{
	char count[16], buf[PATH_MAX];
	bool first = p->n == 1, good = first || plan_add_word(p, ":");

	snprintf(count, sizeof(count), "%d", n);
	if (away && first)
		good = good && add_launcher(p);
	if (away)
		good = good && add_hosts(p, k);
	good = good && plan_add_word(p, "-n") && plan_add_word(p, count);
	if (k->value[KEY_WDIR][0])
		good = good && plan_add_word(p, "--wdir") && plan_add_word(p, k->value[KEY_WDIR]);
	if (k->value[KEY_ERRHANDLER][0])
		good = good && plan_add_word(p, "-env") &&
		       plan_add_word(p, "WEFT_INITIAL_ERRHANDLER") &&
		       plan_add_word(p, k->value[KEY_ERRHANDLER]);
	good = good && plan_add_word(p, "--") &&
	       plan_add_word(p, resolve_command(prog->command, k->value[KEY_PATH], buf));
	for (char **a = prog->argv; good && a && a != MPI_ARGV_NULL && *a; a++)
		good = plan_add_word(p, *a);
	return good;
}

/* Before the command line begins: where processes go decides how it does. */
static int check_keys(const struct weft_mpi_spawn_program *program, int count, bool *away_p)
{
	struct keys k;
	int err = MPI_SUCCESS;

	*away_p = false;
	for (int i = 0; i < count && !err; i++) {
		err = keys_read(program[i].info, &k);
		if (!err)
			err = check_place(&k, away_p);
		if (!err)
			err = check_errhandler(k.value[KEY_ERRHANDLER]);
	}
	return err;
}

int weft_mpi_spawn_plan_make(const struct weft_mpi_spawn_program *program, int count,
			     struct weft_mpi_spawn_plan *plan)
{
	struct keys k;
	bool away;

	*plan = (struct weft_mpi_spawn_plan){0};
	if (!plan_add_word(plan, "mpiexec"))
		return weft_mpi_err(MPI_ERR_NO_MEM, "out of memory");
	for (int i = 0; i < count; i++)
		plan->asked += program[i].maxprocs > 0 ? program[i].maxprocs : 0;
	int wrong = check_keys(program, count, &away);
	if (wrong)
		return wrong;
	for (int i = 0; i < count; i++) {
		const struct weft_mpi_spawn_program *prog = &program[i];
		if (!prog->command || !*prog->command)
			return weft_mpi_err(MPI_ERR_ARG, "command %d is empty", i);
		if (prog->maxprocs < 1)
			return weft_mpi_err(MPI_ERR_ARG, "maxprocs of command %d is %d", i,
					    prog->maxprocs);
		int err = keys_read(prog->info, &k);
		if (err)
			return err;
		int n = soft_count(k.value[KEY_SOFT], prog->maxprocs);
		plan->started += n;
		if (!n)
			return weft_mpi_err(MPI_ERR_SPAWN,
					    "info key soft: %s allows no number from 1 to %d",
					    k.value[KEY_SOFT], prog->maxprocs);
		if (!add_program(plan, prog, &k, n, away))
			return weft_mpi_err(MPI_ERR_NO_MEM, "out of memory");
	}
	return MPI_SUCCESS;
}

void weft_mpi_spawn_plan_fini(struct weft_mpi_spawn_plan *plan)
{
	for (int i = 1; i < plan->n; i++)
		free(plan->argv[i]);
	free(plan->argv);
}
