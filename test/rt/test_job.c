/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_job.c - ranks started by mpiexec exchange messages of every size and kind over the real
 * drivers: blocking, crossed, wildcards, waiting probes, threads; a rank that cannot start ends
 * the job; bursts leave while the sender computes;
 * what shall not be progressed in the background is not.
 *
 * Without arguments it starts itself under the mpiexec built beside it, once per driver.
 */
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>
#include "base/counters.h"
#include "base/log.h"
#include "base/settings.h"
#include "check.h"
#include "comm/comm.h"
#include "rt/rt.h"
#include "task/task.h"

static struct weft_ctx *ctx, *wild_ctx;
static int me, n_ranks;

static void wait_req(struct weft_req *r)
{
	if (!weft_comm_req_done(r))
		weft_task_engine_wait(&r->done);
}

static void start_send_in(struct weft_ctx *c, struct weft_req *r, int peer, int tag,
			  const void *buf, size_t n)
{
	struct weft_buf b = weft_data_buf_flat(buf, n);
	weft_comm_req_init(r, NULL, NULL);
	CHECK_EQ(weft_comm_core_isend(r, c, peer, tag, &b, WEFT_SEND_STANDARD), WEFT_OK);
}

static void start_recv_in(struct weft_ctx *c, struct weft_req *r, int peer, int tag, void *buf,
			  size_t n)
{
	struct weft_buf b = weft_data_buf_flat(buf, n);
	weft_comm_req_init(r, NULL, NULL);
	CHECK_EQ(weft_comm_core_irecv(r, c, peer, tag, &b), WEFT_OK);
}

static void start_send(struct weft_req *r, int peer, int tag, const void *buf, size_t n)
{
	start_send_in(ctx, r, peer, tag, buf, n);
}

static void start_recv(struct weft_req *r, int peer, int tag, void *buf, size_t n)
{
	start_recv_in(ctx, r, peer, tag, buf, n);
}

static void fill(unsigned char *buf, size_t n, unsigned salt)
{
	for (size_t i = 0; i < n; i++)
		buf[i] = (unsigned char)(i * 13 + (i >> 9) + salt);
}

static void check_fill(const unsigned char *buf, size_t n, unsigned salt)
{
	for (size_t i = 0; i < n; i++)
		CHECK(buf[i] == (unsigned char)(i * 13 + (i >> 9) + salt));
}

/* Each rank sends to each rank, itself included, all at once. */
static void crossed(size_t n, int tag)
{
	struct weft_req s[16], r[16];
	unsigned char *in[16], *out = malloc(n + 1);

	fill(out, n, (unsigned)me);
	for (int p = 0; p < n_ranks; p++) {
		in[p] = calloc(1, n + 1);
		if (p % 2)
			start_recv(&r[p], p, tag, in[p], n);
		start_send(&s[p], p, tag, out, n);
		if (!(p % 2))
			start_recv(&r[p], p, tag, in[p], n);
	}
	for (int p = 0; p < n_ranks; p++) {
		wait_req(&r[p]);
		wait_req(&s[p]);
		CHECK_EQ(r[p].status.err, WEFT_OK);
		CHECK_EQ(r[p].status.peer, p);
		CHECK_EQ(r[p].status.bytes, n);
		check_fill(in[p], n, (unsigned)p);
		free(in[p]);
	}
	free(out);
}

/* Rank 0 collects with wildcards and probes what the others send. */
static void collected(void)
{
	unsigned char buf[20000];
	const int each = 50;

	if (me) {
		for (int i = 0; i < each; i++) {
			struct weft_req s;
			size_t n = (size_t)(i * 397 % 20000);
			fill(buf, n, (unsigned)i);
			start_send_in(wild_ctx, &s, 0, 100 + i, buf, n);
			wait_req(&s);
		}
		return;
	}
	int next[16] = {0};
	for (int i = 0; i < each * (n_ranks - 1); i++) {
		struct weft_status st;
		struct weft_req r;
		weft_comm_core_probe(wild_ctx, WEFT_ANY_PEER, WEFT_ANY_TAG, &st);
		CHECK_EQ(st.err, WEFT_OK);
		start_recv_in(wild_ctx, &r, st.peer, WEFT_ANY_TAG, buf, sizeof buf);
		wait_req(&r);
		CHECK_EQ(r.status.tag, 100 + next[st.peer]);
		CHECK_EQ(r.status.bytes, next[st.peer] * 397 % 20000);
		check_fill(buf, r.status.bytes, (unsigned)next[st.peer]);
		next[st.peer]++;
	}
}

static void *pingpong(void *arg)
{
	int tag = (int)(intptr_t)arg, peer = me ^ 1;
	for (unsigned i = 0; i < 300; i++) {
		unsigned got = 0;
		struct weft_req s, r;
		if (me & 1) {
			start_recv(&r, peer, tag, &got, sizeof got);
			wait_req(&r);
			start_send(&s, peer, tag, &i, sizeof i);
			wait_req(&s);
		} else {
			start_send(&s, peer, tag, &i, sizeof i);
			start_recv(&r, peer, tag, &got, sizeof got);
			wait_req(&r);
			wait_req(&s);
		}
		CHECK_EQ(got, i);
	}
	return NULL;
}

/* A word to a rank that does not poll: files in the job's folder, argument 2. */
static const char *folder;

static const char *flag(bool background)
{
	static char path[PATH_MAX];
	snprintf(path, sizeof path, "%s/arrived.%d", folder, background);
	return path;
}

static void raise_flag(bool background)
{
	int fd = creat(flag(background), 0600);
	CHECK(fd >= 0);
	close(fd);
}

static bool flag_is_up(bool background)
{
	return access(flag(background), F_OK) == 0;
}

/* Rank 0 sends bursts of small messages and then computes until they have arrived: together if the
 * network is one that gains by it and a thread polls soon, at once otherwise. */
static void bursts(bool background)
{
	enum { N = 40, ROUNDS = 20 };
	uint64_t before = weft_counter_sum(WEFT_CNT_AGGREGATED), sent[N];
	struct weft_req r[N];

	if (me > 1)
		return;
	weft_progress_set(background);
	for (int round = 0; round < ROUNDS; round++) {
		uint64_t ready = 0;
		if (me) {
			struct weft_req s;
			for (int i = 0; i < N; i++)
				start_recv(&r[i], 0, 2000, &sent[i], sizeof sent[i]);
			start_send(&s, 0, 2001, &ready, sizeof ready);
			wait_req(&s);
			for (int i = 0; i < N; i++) {
				wait_req(&r[i]);
				CHECK_EQ(sent[i], i);
			}
			if (round == ROUNDS - 1)
				raise_flag(background);
			continue;
		}
		start_recv(&r[0], 1, 2001, &ready, sizeof ready);
		wait_req(&r[0]);
		for (int i = 0; i < N; i++) {
			sent[i] = (unsigned)i;
			start_send(&r[i], 1, 2000, &sent[i], sizeof sent[i]);
		}
		while (round == ROUNDS - 1 && !flag_is_up(background))
			; /* computes, without a call into the library */
		for (int i = 0; i < N; i++)
			wait_req(&r[i]);
	}
	if (!me && strstr(weft_setting_str(WEFT_SET_DRIVERS), "tcp"))
		CHECK((weft_counter_sum(WEFT_CNT_AGGREGATED) > before) == background);
	weft_progress_set(true);
}

/* Our receive was started without background progress, and the message comes while we compute: it
 * stays with us until we wait.  False: it came while we were still polling for something else. */
static bool stays_left(struct weft_req *r, uint64_t before)
{
	uint64_t t0 = weft_clock_ns();
	while (weft_counter_sum(WEFT_CNT_LEFT) == before) { /* the watcher finds it */
		if (weft_comm_req_done(r))
			return false;
		CHECK(weft_clock_ns() - t0 < 100000000000u);
	}
	t0 = weft_clock_ns();
	while (weft_clock_ns() - t0 < 5000000u)
		CHECK(!weft_comm_req_done(r));
	return true;
}

/* One message; returns whether it was seen to stay behind. */
static uint64_t left_once(int receiver)
{
	enum { BYTES = 3 << 20 };
	unsigned char *buf = calloc(1, BYTES), byte = 0;
	struct weft_req r, sync;
	uint64_t seen = 0;

	if (me == receiver) {
		uint64_t before = weft_counter_sum(WEFT_CNT_LEFT);
		weft_progress_thread_set(false);
		start_recv(&r, 1 - me, 3000, buf, BYTES);
		weft_progress_thread_set(true);
		start_send(&sync, 1 - me, 3001, &byte, 1);
		wait_req(&sync);
		seen = stays_left(&r, before);
		wait_req(&r);
		CHECK_EQ(r.status.err, WEFT_OK);
		check_fill(buf, BYTES, 77);
		start_send(&sync, 1 - me, 3002, &seen, sizeof seen);
		wait_req(&sync);
	} else {
		fill(buf, BYTES, 77);
		start_recv(&sync, 1 - me, 3001, &byte, 1);
		wait_req(&sync);
		/* By now the receiver has most likely stopped polling. */
		for (uint64_t t0 = weft_clock_ns(); weft_clock_ns() - t0 < 2000000u;)
			;
		start_send(&r, 1 - me, 3000, buf, BYTES);
		wait_req(&r);
		start_recv(&sync, 1 - me, 3002, &seen, sizeof seen);
		wait_req(&sync);
	}
	free(buf);
	return seen;
}

/* What a thread starts that wants no background progress goes on only when a thread polls. */
static void not_in_the_background(void)
{
	if (me > 1)
		return;
	for (int receiver = 0; receiver < 2; receiver++) {
		int tries = 0;
		while (!left_once(receiver))
			CHECK(++tries < 1000);
	}
}

static void threads(void)
{
	pthread_t th[4];
	for (intptr_t t = 0; t < 4; t++)
		CHECK(!pthread_create(&th[t], NULL, pingpong, (void *)(1000 + t)));
	for (int t = 0; t < 4; t++)
		pthread_join(th[t], NULL);
}

static int rank_main(void)
{
	static const size_t sizes[] = {0,    1,    8,     63,    64,     65,      1000,
				       8192, 8193, 65536, 70000, 300000, 1 << 20, (4 << 20) + 1};
	const struct weft_boot_info *boot;

	CHECK_EQ(weft_rt_start(&boot), WEFT_OK);
	me = boot->rank;
	n_ranks = boot->size;
	CHECK_EQ(weft_comm_ctx_open(weft_comm_home(), 5, &ctx), WEFT_OK);
	CHECK_EQ(weft_comm_ctx_open(weft_comm_home(), 6, &wild_ctx), WEFT_OK);
	for (unsigned i = 0; i < weft_countof(sizes); i++)
		crossed(sizes[i], (int)i);
	collected();
	threads();
	for (unsigned i = 0; i < 20; i++)
		crossed(8, 50);
	not_in_the_background();
	bursts(true);
	crossed(8, 51);
	bursts(false);
	crossed(8, 52);
	weft_comm_ctx_close(wild_ctx);
	weft_comm_ctx_close(ctx);
	weft_rt_stop();
	return 0;
}

static char self[PATH_MAX], mpiexec[PATH_MAX];

static void find_mpiexec(void)
{
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	CHECK(n > 0);
	self[n] = 0;
	int dir = (int)(strrchr(self, '/') - self);
	CHECK(snprintf(mpiexec, sizeof mpiexec, "%.*s/bin/mpiexec", dir, self) <
	      (int)sizeof mpiexec);
	if (access(mpiexec, X_OK))
		SKIP("mpiexec is not built");
}

/* One rank cannot start; the other, which waits for it, ends, too, and soon. */
static void unable(void)
{
	char command[PATH_MAX * 4];
	snprintf(command, sizeof command,
		 "'%s' --timeout 200 -n 1 -env WEFT_DRIVERS wrong '%s' rank . : -n 1 '%s' rank . "
		 "2>&1",
		 mpiexec, self, self);
	printf("%s\n", command);
	fflush(stdout);
	FILE *p = popen(command, "r");
	CHECK(p);
	char line[1024];
	bool told = false;
	while (fgets(line, sizeof line, p)) {
		fputs(line, stdout);
		told = told || strstr(line, "there is no driver 'wrong'");
	}
	CHECK(told);
	CHECK(pclose(p) != 0);
}

static int start_ranks(const char *drivers, const char *ranks)
{
	char command[PATH_MAX * 3], dir[] = "/tmp/weft-test-job-XXXXXX";
	CHECK(mkdtemp(dir));
	snprintf(command, sizeof command,
		 "WEFT_DRIVERS=%s '%s' --timeout 200 -n %s '%s' rank %s; rc=$?; rm -r %s; exit $rc",
		 drivers, mpiexec, ranks, self, dir, dir);
	printf("%s\n", command);
	fflush(stdout);
	return system(command);
}

int main(int argc, char **argv)
{
	if (argc > 2 && !strcmp(argv[1], "rank")) {
		folder = argv[2];
		return rank_main();
	}
	find_mpiexec();
	unable();
	CHECK(!start_ranks("self,shm", "2"));
	CHECK(!start_ranks("self,shm", "4"));
	CHECK(!start_ranks("self,tcp", "2"));
	CHECK(!start_ranks("self,tcp", "4"));
	return 0;
}
