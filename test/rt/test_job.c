/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_job.c - ranks started by mpiexec exchange messages of every size and kind over the real
 * drivers: blocking, crossed, wildcards, waiting probes, threads; a rank that cannot start ends
 * the job; bursts leave while the sender computes;
 * what shall not be progressed in the background is not.
 *
 * Without arguments it starts itself under the mpiexec built beside it, once per driver.
 */
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
	if (!weft_req_done(r))
		weft_engine_wait(&r->done);
}

static void start_send_in(struct weft_ctx *c, struct weft_req *r, int peer, int tag,
			  const void *buf, size_t n)
{
	struct weft_buf b = weft_buf_flat(buf, n);
	weft_req_init(r, NULL, NULL);
	CHECK_EQ(weft_isend(r, c, peer, tag, &b, WEFT_SEND_STANDARD), WEFT_OK);
}

static void start_recv_in(struct weft_ctx *c, struct weft_req *r, int peer, int tag, void *buf,
			  size_t n)
{
	struct weft_buf b = weft_buf_flat(buf, n);
	weft_req_init(r, NULL, NULL);
	CHECK_EQ(weft_irecv(r, c, peer, tag, &b), WEFT_OK);
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

/* Everybody sends to everybody, ourselves included, all at once. */
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
		weft_probe(wild_ctx, WEFT_ANY_PEER, WEFT_ANY_TAG, &st);
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

/* Rank 0 sends bursts of small messages and then computes: they arrive meanwhile, together if the
 * network is one that gains by it and somebody sees them off, at once if nobody does. */
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
				CHECK_EQ(sent[i] & 255, i);
			}
			/* The sender was away for 300 ms in the last round. */
			CHECK(round < ROUNDS - 1 || weft_clock_ns() - sent[0] < 250000000u);
			continue;
		}
		start_recv(&r[0], 1, 2001, &ready, sizeof ready);
		wait_req(&r[0]);
		uint64_t now = weft_clock_ns() & ~(uint64_t)255;
		for (int i = 0; i < N; i++) {
			sent[i] = now | (unsigned)i;
			start_send(&r[i], 1, 2000, &sent[i], sizeof sent[i]);
		}
		while (round == ROUNDS - 1 && weft_clock_ns() - now < 300000000u)
			; /* computes */
		for (int i = 0; i < N; i++)
			wait_req(&r[i]);
	}
	if (!me && strstr(weft_setting_str(WEFT_SET_DRIVERS), "tcp"))
		CHECK((weft_counter_sum(WEFT_CNT_AGGREGATED) > before) == background);
	weft_progress_set(true);
}

/* What a thread starts that wants no background progress goes on only when somebody polls. */
static void not_in_the_background(void)
{
	enum { BYTES = 3 << 20 };
	if (me > 1)
		return;
	for (int receiver = 0; receiver < 2; receiver++) {
		unsigned char *buf = calloc(1, BYTES), byte = 0;
		struct weft_req r, sync;
		uint64_t before = weft_counter_sum(WEFT_CNT_LEFT), t0;

		if (me == receiver) {
			weft_progress_thread_set(false);
			start_recv(&r, 1 - me, 3000, buf, BYTES);
			weft_progress_thread_set(true);
			start_send(&sync, 1 - me, 3001, &byte, 1);
			wait_req(&sync);
			/* Computes until the watcher has found the message, and some more. */
			t0 = weft_clock_ns();
			while (weft_counter_sum(WEFT_CNT_LEFT) == before)
				CHECK(weft_clock_ns() - t0 < 20000000000u);
			t0 = weft_clock_ns();
			while (weft_clock_ns() - t0 < 5000000u)
				CHECK(!weft_req_done(&r));
			wait_req(&r);
			CHECK_EQ(r.status.err, WEFT_OK);
			check_fill(buf, BYTES, 77);
		} else {
			fill(buf, BYTES, 77);
			start_recv(&sync, 1 - me, 3001, &byte, 1);
			wait_req(&sync);
			/* The receiver has stopped polling by the time it sees this. */
			t0 = weft_clock_ns();
			while (weft_clock_ns() - t0 < 2000000u)
				;
			start_send(&r, 1 - me, 3000, buf, BYTES);
			wait_req(&r);
		}
		free(buf);
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
	CHECK_EQ(weft_ctx_open(5, &ctx), WEFT_OK);
	CHECK_EQ(weft_ctx_open(6, &wild_ctx), WEFT_OK);
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
	weft_ctx_close(wild_ctx);
	weft_ctx_close(ctx);
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

/* One rank cannot start; the other, who waits for it, ends too, and soon. */
static void unable(void)
{
	char command[PATH_MAX * 4];
	snprintf(command, sizeof command,
		 "'%s' --timeout 50 -n 1 -env WEFT_DRIVERS wrong '%s' rank : -n 1 '%s' rank 2>&1",
		 mpiexec, self, self);
	uint64_t t0 = weft_clock_ns();
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
	CHECK(weft_clock_ns() - t0 < 4000000000u);
}

static int start_ranks(const char *drivers, const char *ranks)
{
	char command[PATH_MAX * 3];
	snprintf(command, sizeof command, "WEFT_DRIVERS=%s '%s' --timeout 50 -n %s '%s' rank",
		 drivers, mpiexec, ranks, self);
	printf("%s\n", command);
	fflush(stdout);
	return system(command);
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "rank"))
		return rank_main();
	find_mpiexec();
	unable();
	CHECK(!start_ranks("self,shm", "2"));
	CHECK(!start_ranks("self,shm", "4"));
	CHECK(!start_ranks("self,tcp", "2"));
	CHECK(!start_ranks("self,tcp", "4"));
	return 0;
}
