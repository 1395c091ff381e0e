/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sample.c - weft sample: measures from where on another way of sending is quicker on this host,
 * or between two, and leaves it in the file that every start reads (base/sample.h).
 *
 * Two ranks (sample_rank.c), started by the mpiexec beside this program, send each size to and fro
 * by either way; each posts its receive before it sends.  What comes later than its message costs a
 * copy more where it was sent at once, and is not measured: how often that happens is the program's
 * affair.
 */
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/sample.h"
#include "command.h"

#define SIZES_MAX 16

struct effort {
	int starts;         /* of a pair for either way, in turn: placement and neighbours change */
	const char *blocks; /* of round trips per size in each */
};
static const struct effort normal = {3, "5"}, quick = {1, "2"};

/* A switch point: below it `low` is the better value of its setting, from it on `high`. */
static const struct point {
	enum weft_setting_id id;
	const char *driver, *variable, *low, *high;
	const char *low_name, *high_name;
	size_t from, to; /* sizes measured, each twice the one before */
	bool last_low;   /* the setting is the last size below the point, not the first above */
} points[WEFT_SAMPLE_COUNT] = {
	{WEFT_SET_EAGER_SHM, "self,shm", "WEFT_EAGER_SHM", "1m", "0", "at once", "asked first", 512,
	 16384, true},
	{WEFT_SET_EAGER_TCP, "self,tcp", "WEFT_EAGER_TCP", "16m", "0", "at once", "asked first",
	 1024, 262144, true},
	{WEFT_SET_SHARE_COPY, "self,shm", "WEFT_SHARE_COPY", "0", "1", "one copies", "both copy",
	 16384, 2097152, false},
};

/* ---- the command -------------------------------------------------------------------------- */

struct row {
	size_t bytes;
	unsigned long long ns[2]; /* low, high */
};

static int cores(void)
{
	cpu_set_t may;
	return sched_getaffinity(0, sizeof may, &may) ? 1 : CPU_COUNT(&may);
}

#define ARGS_MAX 32

/* The two ranks, with these words behind `weft sample`; hosts: "A,B", or NULL: here. */
static void become_ranks(const char *hosts, const char *const *vars, const char *const *words)
{
	char prefix[4096], launcher[4200], self[4200];
	const char *argv[ARGS_MAX];
	int n = 0;
	if (!weft_cmd_prefix(prefix, sizeof prefix))
		_exit(1);
	snprintf(launcher, sizeof launcher, "%s/bin/mpiexec", prefix);
	snprintf(self, sizeof self, "%s/bin/weft", prefix);
	argv[n++] = launcher;
	if (hosts) {
		argv[n++] = "-hosts";
		argv[n++] = hosts;
		argv[n++] = "-ppn";
		argv[n++] = "1";
	}
	for (int i = 0; vars[i]; i += 2) {
		argv[n++] = "-genv";
		argv[n++] = vars[i];
		argv[n++] = vars[i + 1];
	}
	argv[n++] = "-n";
	argv[n++] = "2";
	argv[n++] = "--bind-to";
	argv[n++] = cores() > 1 ? "core" : "none";
	argv[n++] = "--timeout";
	argv[n++] = "120";
	argv[n++] = self;
	argv[n++] = "sample";
	while (*words) /* at most four */
		argv[n++] = *words++;
	argv[n] = NULL;
	unsetenv("WEFT_RAILS");
	execv(launcher, (char **)(uintptr_t)argv);
	fprintf(stderr, "weft: %s: %s\n", launcher, strerror(errno));
	_exit(1);
}

static void become_measuring(const struct point *p, const char *value, const char *hosts,
			     const char *blocks)
{
	char from[24], to[24];
	snprintf(from, sizeof from, "%zu", p->from);
	snprintf(to, sizeof to, "%zu", p->to);
	become_ranks(hosts,
		     (const char *const[]){"WEFT_DRIVERS", p->driver, "WEFT_SAMPLE_FILE", "none",
					   p->variable, value, NULL},
		     (const char *const[]){"--rank", from, to, blocks, NULL});
}

static void become_keeping(const char *value, const char *hosts)
{
	const char *file = getenv("WEFT_SAMPLE_FILE");
	become_ranks(hosts,
		     (const char *const[]){"WEFT_DRIVERS", "self,tcp",
					   file ? "WEFT_SAMPLE_FILE" : NULL, file, NULL},
		     (const char *const[]){"--keep", value, NULL});
}

static bool ended_well(pid_t child)
{
	int status = 0;
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return status == 0;
}

/* Column `side` of the rows takes what is quicker than before; false after a line about it. */
static bool column(const struct point *p, const char *hosts, const char *blocks, int side,
		   struct row *row, int n)
{
	int fd[2], got = 0;
	pid_t child = pipe(fd) ? -1 : fork();
	if (child < 0) {
		fprintf(stderr, "weft: sample: %s\n", strerror(errno));
		return false;
	}
	if (!child) {
		dup2(fd[1], 1);
		close(fd[0]);
		close(fd[1]);
		become_measuring(p, side ? p->high : p->low, hosts, blocks);
	}
	close(fd[1]);
	FILE *in = fdopen(fd[0], "r");
	unsigned long long ns;
	for (; in && got < n && fscanf(in, "%zu %llu", &row[got].bytes, &ns) == 2; got++)
		if (ns < row[got].ns[side])
			row[got].ns[side] = ns;
	if (in)
		fclose(in);
	if (!ended_well(child) || got < n) {
		fprintf(stderr, "weft: sample: %s could not be measured with %s=%s\n",
			weft_setting_info(p->id)->name, p->variable, side ? p->high : p->low);
		return false;
	}
	return true;
}

/*
 * How many of the sizes lie below the point: where both ways together lose least, relative to each
 * other, so that one size that was disturbed does not decide.
 */
static int cut(const struct row *row, int n)
{
	double sum = 0, least = 0;
	int best = 0;
	for (int i = 0; i < n; i++) {
		double low = (double)row[i].ns[0], high = (double)row[i].ns[1];
		sum += (low - high) / (low + high);
		if (sum < least) {
			least = sum;
			best = i + 1;
		}
	}
	return best;
}

static bool measure(const struct point *p, const char *hosts, const struct effort *e,
		    long long *value_p)
{
	struct row row[SIZES_MAX];
	int n = 0;
	for (size_t s = p->from; s <= p->to; s *= 2)
		n++;
	for (int i = 0; i < n; i++)
		row[i].ns[0] = row[i].ns[1] = ULLONG_MAX;
	for (int i = 0; i < e->starts; i++)
		if (!column(p, hosts, e->blocks, 0, row, n) ||
		    !column(p, hosts, e->blocks, 1, row, n))
			return false;
	printf("%s\n  %10s  %12s  %12s  (us, one way)\n", weft_setting_info(p->id)->name, "bytes",
	       p->low_name, p->high_name);
	for (int i = 0; i < n; i++)
		printf("  %10zu  %12.2f  %12.2f\n", row[i].bytes, (double)row[i].ns[0] / 2e3,
		       (double)row[i].ns[1] / 2e3);
	int k = cut(row, n);
	if (p->last_low) /* what is smaller than all that was measured goes at once in any case */
		*value_p = (long long)(k ? row[k - 1].bytes : p->from);
	else
		*value_p = k < n ? (long long)row[k].bytes : 0;
	printf("  %s %lld\n\n", weft_setting_info(p->id)->name, *value_p);
	return true;
}

/* This host alone: what was measured with others stays. */
static int sample_here(const struct effort *e)
{
	static struct weft_sample sample;
	char path[4096], why[160];
	if (!weft_cmd_sample_path(path, sizeof path))
		return 1;
	if (weft_sample_read(path, &sample, why, sizeof why))
		sample.n_hosts = 0;
	for (int i = 0; i < WEFT_SAMPLE_COUNT; i++) {
		long long value;
		sample.value[i] = -1;
		if (points[i].id == WEFT_SET_SHARE_COPY && cores() < 2) {
			printf("share_copy: not measured, both ranks would be on one core\n\n");
			continue;
		}
		if (!measure(&points[i], NULL, e, &value))
			return 1;
		sample.value[i] = value;
	}
	if (!weft_cmd_sample_write(path, &sample))
		return 1;
	printf("written to %s\n", path);
	return 0;
}

/* Two hosts, "A,B": each of them learns what was measured. */
static int sample_hosts(const char *hosts, const struct effort *e)
{
	char text[24];
	long long value;
	for (int i = 0; i < WEFT_SAMPLE_COUNT; i++) {
		if (points[i].id != WEFT_SET_EAGER_TCP)
			continue;
		if (!measure(&points[i], hosts, e, &value))
			return 1;
		snprintf(text, sizeof text, "%lld", value);
		fflush(stdout);
		pid_t child = fork();
		if (!child)
			become_keeping(text, hosts);
		if (child < 0 || !ended_well(child)) {
			fprintf(stderr, "weft: sample: could not be written down on %s\n", hosts);
			return 1;
		}
	}
	return 0;
}

/* What the ranks are started with. */
static bool is_for_ranks(int argc, char **argv, int *rc_p)
{
	if (argc == 4 && strcmp(argv[0], "--rank") == 0)
		*rc_p = weft_cmd_sample_rank(strtoul(argv[1], NULL, 10), strtoul(argv[2], NULL, 10),
					     atoi(argv[3]));
	else if (argc == 2 && strcmp(argv[0], "--keep") == 0)
		*rc_p = weft_cmd_sample_keep(atoll(argv[1]));
	else
		return false;
	return true;
}

int weft_cmd_sample(int argc, char **argv)
{
	const char *hosts = NULL;
	const struct effort *e = &normal;
	int rc;
	if (is_for_ranks(argc, argv, &rc))
		return rc;
	for (; argc; argc--, argv++) {
		if (strcmp(argv[0], "--quick") == 0)
			e = &quick;
		else if (strcmp(argv[0], "--hosts") == 0 && argc > 1 && !hosts)
			hosts = (argc--, *++argv);
		else
			return weft_cmd_misuse("sample: no option", argv[0]);
	}
	if (hosts && (!strchr(hosts, ',') || strchr(hosts, ',') != strrchr(hosts, ',')))
		return weft_cmd_misuse("sample: --hosts wants two, as in A,B, not", hosts);
	if (weft_settings_load())
		return 1;
	return hosts ? sample_hosts(hosts, e) : sample_here(e);
}
