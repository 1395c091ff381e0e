/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sample.c - weft sample: measures from where on another way of sending is quicker on this host,
 * and leaves it in the file that every start reads (base/sample.h).
 *
 * Two ranks, started by the mpiexec beside this program, send each size to and fro by either way;
 * each posts its receive before it sends.  What comes later than its message costs a copy more
 * where it was sent at once, and is not measured: how often that happens is the program's affair.
 */
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/sample.h"
#include "command.h"
#include "comm/comm.h"
#include "rt/rt.h"
#include "task/task.h"

#define SIZES_MAX 16
#define BLOCKS 5 /* per start of a pair */
#define STARTS 3 /* of a pair for either way, in turn: placement and neighbours change */
#define STARTS_QUICK 1
#define BUFFER_MAX ((size_t)4 << 20)

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

/* ---- the ranks ---------------------------------------------------------------------------- */

struct pair {
	struct weft_ctx *ctx;
	char *out, *in;
	int me;
};

static weft_err give(struct pair *p, size_t n)
{
	struct weft_buf buf = weft_buf_flat(p->out, n);
	struct weft_req r;
	weft_err err = weft_send_now(p->ctx, !p->me, 1, &buf);
	if (err != WEFT_AGAIN)
		return err;
	weft_req_init(&r, NULL, NULL);
	err = weft_isend(&r, p->ctx, !p->me, 1, &buf, WEFT_SEND_STANDARD);
	if (!err) {
		weft_engine_wait_own(&r.done);
		err = r.status.err;
	}
	return err;
}

/* Sends, and receives the answer; or the other way round.  The receive comes first. */
static weft_err round_trip(struct pair *p, size_t n)
{
	struct weft_buf buf = weft_buf_flat(p->in, n);
	struct weft_req r;
	weft_req_init(&r, NULL, NULL);
	weft_err err = weft_irecv(&r, p->ctx, !p->me, 1, &buf);
	if (!err && !p->me)
		err = give(p, n);
	if (err)
		return err; /* the process ends, and with it the receive */
	weft_engine_wait_own(&r.done);
	err = r.status.err;
	return err || !p->me ? err : give(p, n);
}

/* Nanoseconds that a round trip takes; 0: it failed. */
static uint64_t block(struct pair *p, size_t bytes)
{
	unsigned n = bytes <= 16384 ? 200 : bytes <= 262144 ? 40 : 8;
	uint64_t t = weft_clock_ns();
	for (unsigned i = 0; i < n; i++)
		if (round_trip(p, bytes))
			return 0;
	t = (weft_clock_ns() - t) / n;
	return t ? t : 1;
}

/* The quickest of the blocks: what disturbs only makes them slower.  0: it failed. */
static uint64_t size_ns(struct pair *p, size_t bytes)
{
	uint64_t least = UINT64_MAX;
	for (int i = 0; i < BLOCKS; i++) {
		uint64_t v = block(p, bytes);
		if (!v)
			return 0;
		least = v < least ? v : least;
	}
	return least;
}

/* weft sample --rank POINT, under mpiexec: prints a line "BYTES NS" per size. */
static int rank_main(int point)
{
	const struct weft_boot_info *job;
	struct pair p = {.out = calloc(1, BUFFER_MAX), .in = calloc(1, BUFFER_MAX)};
	if (!p.out || !p.in || weft_rt_start(&job))
		return 1;
	p.me = job->rank;
	if (job->size != 2 || weft_ctx_open(1, &p.ctx))
		return 1;
	memset(p.out, 1, BUFFER_MAX);
	memset(p.in, 1, BUFFER_MAX);
	for (size_t n = points[point].from; n <= points[point].to; n *= 2) {
		uint64_t ns = size_ns(&p, n);
		if (!ns)
			return 1;
		if (!p.me)
			printf("%zu %llu\n", n, (unsigned long long)ns);
	}
	fflush(stdout);
	weft_ctx_close(p.ctx);
	weft_rt_stop();
	free(p.out);
	free(p.in);
	return 0;
}

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

static void become_ranks(int point, const char *value)
{
	char prefix[4096], launcher[4200], self[4200], which[16];
	if (!weft_cmd_prefix(prefix, sizeof prefix))
		_exit(1);
	snprintf(launcher, sizeof launcher, "%s/bin/mpiexec", prefix);
	snprintf(self, sizeof self, "%s/bin/weft", prefix);
	snprintf(which, sizeof which, "%d", point);
	setenv("WEFT_DRIVERS", points[point].driver, 1);
	setenv("WEFT_SAMPLE_FILE", "none", 1);
	setenv(points[point].variable, value, 1);
	unsetenv("WEFT_RAILS");
	execl(launcher, launcher, "-n", "2", "--bind-to", cores() > 1 ? "core" : "none",
	      "--timeout", "120", self, "sample", "--rank", which, (char *)NULL);
	fprintf(stderr, "weft: %s: %s\n", launcher, strerror(errno));
	_exit(1);
}

/* Column `side` of the rows takes what is quicker than before; false after a line about it. */
static bool column(int point, int side, struct row *row, int n)
{
	const struct point *p = &points[point];
	int fd[2], status = 0, got = 0;
	pid_t child = pipe(fd) ? -1 : fork();
	if (child < 0) {
		fprintf(stderr, "weft: sample: %s\n", strerror(errno));
		return false;
	}
	if (!child) {
		dup2(fd[1], 1);
		close(fd[0]);
		close(fd[1]);
		become_ranks(point, side ? p->high : p->low);
	}
	close(fd[1]);
	FILE *in = fdopen(fd[0], "r");
	unsigned long long ns;
	for (; in && got < n && fscanf(in, "%zu %llu", &row[got].bytes, &ns) == 2; got++)
		if (ns < row[got].ns[side])
			row[got].ns[side] = ns;
	if (in)
		fclose(in);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (status || got < n) {
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

static bool measure(int point, int starts, long long *value_p)
{
	const struct point *p = &points[point];
	struct row row[SIZES_MAX];
	int n = 0;
	for (size_t s = p->from; s <= p->to; s *= 2)
		n++;
	for (int i = 0; i < n; i++)
		row[i].ns[0] = row[i].ns[1] = ULLONG_MAX;
	for (int i = 0; i < starts; i++)
		if (!column(point, 0, row, n) || !column(point, 1, row, n))
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

static void make_folders(char *path)
{
	for (char *s = strchr(path + 1, '/'); s; s = strchr(s + 1, '/')) {
		*s = 0;
		(void)!mkdir(path, 0700); /* what is missing in the end, open says */
		*s = '/';
	}
}

/* The whole file or none: others may read it meanwhile. */
static bool write_file(char *path, const char *text)
{
	char made[4200];
	make_folders(path);
	snprintf(made, sizeof made, "%s.%ld", path, (long)getpid());
	FILE *out = fopen(made, "we");
	bool ok = out && fputs(text, out) >= 0;
	if (out && fclose(out))
		ok = false;
	if (ok && rename(made, path) == 0)
		return true;
	fprintf(stderr, "weft: %s: %s\n", path, strerror(errno));
	unlink(made);
	return false;
}

int weft_cmd_sample(int argc, char **argv)
{
	char path[4096], text[WEFT_SAMPLE_MAX];
	int starts = STARTS;
	if (argc == 2 && strcmp(argv[0], "--rank") == 0) {
		int point = atoi(argv[1]);
		if (point < 0 || point >= WEFT_SAMPLE_COUNT)
			return weft_cmd_misuse("sample: no option", argv[0]);
		return rank_main(point);
	}
	if (argc >= 1 && strcmp(argv[0], "--quick") == 0) {
		starts = STARTS_QUICK;
		argc--, argv++;
	}
	if (argc)
		return weft_cmd_misuse("sample: no option", argv[0]);
	if (weft_settings_load())
		return 1;
	if (!weft_sample_path(path, sizeof path)) {
		fprintf(stderr,
			"weft: sample: there is no file to write to: WEFT_SAMPLE_FILE is none, "
			"or HOME is not set\n");
		return 1;
	}
	int n = snprintf(text, sizeof text, "weft-sample 1\n# by `weft sample`, in bytes\n");
	for (int i = 0; i < WEFT_SAMPLE_COUNT; i++) {
		long long value;
		if (points[i].id == WEFT_SET_SHARE_COPY && cores() < 2) {
			printf("share_copy: not measured, both ranks would be on one core\n\n");
			continue;
		}
		if (!measure(i, starts, &value))
			return 1;
		n += snprintf(text + n, sizeof text - (size_t)n, "%s %lld\n",
			      weft_setting_info(points[i].id)->name, value);
	}
	if (!write_file(path, text))
		return 1;
	printf("written to %s\n", path);
	return 0;
}
