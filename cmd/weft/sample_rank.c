/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sample_rank.c - the two ranks of weft sample: they send each size to and fro, or each writes
 * down in the file of its own host what came out.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/sample.h"
#include "command.h"
#include "comm/comm.h"
#include "rt/rt.h"
#include "task/task.h"

#define BUFFER_MAX ((size_t)4 << 20)

struct pair {
	struct weft_ctx *ctx;
	char *out, *in;
	int me;
};

static weft_err give(struct pair *p, size_t n)
{
	struct weft_buf buf = weft_data_buf_flat(p->out, n);
	struct weft_req r;
	weft_err err = weft_comm_send_now(p->ctx, !p->me, 1, &buf);
	if (err != WEFT_AGAIN)
		return err;
	weft_comm_req_init(&r, NULL, NULL);
	err = weft_comm_core_isend(&r, p->ctx, !p->me, 1, &buf, WEFT_SEND_STANDARD);
	if (!err) {
		weft_task_engine_wait_own(&r.done);
		err = r.status.err;
	}
	return err;
}

/* Sends, and receives the answer; or the other way round.  The receive comes first. */
static weft_err round_trip(struct pair *p, size_t n)
{
	struct weft_buf buf = weft_data_buf_flat(p->in, n);
	struct weft_req r;
	weft_comm_req_init(&r, NULL, NULL);
	weft_err err = weft_comm_core_irecv(&r, p->ctx, !p->me, 1, &buf);
	if (!err && !p->me)
		err = give(p, n);
	if (err)
		return err; /* the process ends, and with it the receive */
	weft_task_engine_wait_own(&r.done);
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
static uint64_t size_ns(struct pair *p, size_t bytes, int blocks)
{
	uint64_t least = UINT64_MAX;
	for (int i = 0; i < blocks; i++) {
		uint64_t v = block(p, bytes);
		if (!v)
			return 0;
		least = v < least ? v : least;
	}
	return least;
}

static int ranks_start(struct pair *p)
{
	const struct weft_boot_info *job;
	p->out = calloc(1, BUFFER_MAX);
	p->in = calloc(1, BUFFER_MAX);
	if (!p->out || !p->in || weft_rt_start(&job))
		return 1;
	p->me = job->rank;
	return job->size != 2 || weft_comm_ctx_open(weft_comm_home(), 1, &p->ctx);
}

static void ranks_stop(struct pair *p)
{
	weft_comm_ctx_close(p->ctx);
	weft_rt_stop();
	free(p->out);
	free(p->in);
}

int weft_cmd_sample_rank(size_t from, size_t to, int blocks)
{
	struct pair p = {0};
	if (to > BUFFER_MAX || ranks_start(&p))
		return 1;
	memset(p.out, 1, BUFFER_MAX);
	memset(p.in, 1, BUFFER_MAX);
	for (size_t n = from; n <= to; n *= 2) {
		uint64_t ns = size_ns(&p, n, blocks);
		if (!ns)
			return 1;
		if (!p.me)
			printf("%zu %llu\n", n, (unsigned long long)ns);
	}
	fflush(stdout);
	ranks_stop(&p);
	return 0;
}

/* ---- the file ----------------------------------------------------------------------------- */

static void make_folders(char *path)
{
	for (char *s = strchr(path + 1, '/'); s; s = strchr(s + 1, '/')) {
		*s = 0;
		(void)!mkdir(path, 0700); /* what is missing in the end, open says */
		*s = '/';
	}
}

/* The whole file or none: others may read it meanwhile. */
bool weft_cmd_sample_write(char *path, const struct weft_sample *sample)
{
	char made[4200], text[WEFT_SAMPLE_MAX];
	if (weft_sample_print(sample, text, sizeof text)) {
		fprintf(stderr, "weft: %s: too much for one file\n", path);
		return false;
	}
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

bool weft_cmd_sample_path(char *path, size_t size)
{
	if (weft_sample_path(path, size))
		return true;
	fprintf(stderr, "weft: sample: there is no file to write to: WEFT_SAMPLE_FILE is none, or "
			"HOME is not set\n");
	return false;
}

static bool keep(const char *host, long long bytes)
{
	static struct weft_sample sample;
	char path[4096], why[160], own[WEFT_SAMPLE_NAME];
	if (!weft_sample_own_name(own) || !*host || strcmp(own, host) == 0) {
		fprintf(stderr,
			"weft: sample: the two ranks must be on hosts of different names\n");
		return false;
	}
	if (!weft_cmd_sample_path(path, sizeof path))
		return false;
	/* Whatever is wrong with the old one, a start has said. */
	weft_err err = weft_sample_read(path, &sample, why, sizeof why);
	(void)err;
	if (!weft_sample_set_host(&sample, host, bytes)) {
		fprintf(stderr, "weft: %s: no room for another host\n", path);
		return false;
	}
	if (!weft_cmd_sample_write(path, &sample))
		return false;
	printf("%s with %s: eager_tcp %lld, written to %s\n", own, host, bytes, path);
	return fflush(stdout) == 0;
}

/* One after the other: it may be the same file. */
int weft_cmd_sample_keep(long long bytes)
{
	struct pair p = {0};
	if (ranks_start(&p))
		return 1;
	bool ok = p.me || keep(weft_comm_host(weft_comm_home(), 1), bytes);
	p.out[0] = (char)ok;
	if (round_trip(&p, 1))
		return 1;
	if (p.me)
		ok = p.in[0] && keep(weft_comm_host(weft_comm_home(), 0), bytes);
	ranks_stop(&p);
	return !ok;
}
