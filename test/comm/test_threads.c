/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_threads.c - threads that send, receive, probe and poll at once, with and without wildcards,
 * by the plain calls and the others, with gates that change their owner: every message arrives
 * once, intact, and in order per sender, context and tag.
 */
#include <sched.h>
#include <string.h>
#include "comm/core.h"
#include "comm/fake_net.h"
#include "payload.h"

#define RANKS 2
#define THREADS 4
#define WILD_TAG 100

static struct weft_core *core[RANKS];
static pthread_mutex_t poll_mask[RANKS];
static struct weft_ctx *ctx[RANKS];
static unsigned rounds = 1000;
static _Atomic int x_running;

static void poll_rank(int rank)
{
	if (pthread_mutex_trylock(&poll_mask[rank]))
		return;
	(void)weft_comm_core_poll(core[rank]);
	pthread_mutex_unlock(&poll_mask[rank]);
}

static void wait_for(int rank, struct weft_req *r)
{
	while (!weft_comm_req_done(r)) {
		poll_rank(rank);
		sched_yield();
	}
}

struct who {
	int rank, thread;
	uint64_t seed;
};

static size_t size_of(unsigned i)
{
	static const size_t sizes[] = {4, 16, 200, 1024, 1500, 9000};
	return sizes[i % weft_countof(sizes)];
}

static void start_receive(struct weft_req *r, struct who *w, int peer, int tag, void *buf,
			  size_t room)
{
	struct weft_buf b = weft_data_buf_flat(buf, room);
	if (peer != WEFT_ANY_PEER && weft_rand_next(&w->seed) % 2) {
		CHECK(!weft_comm_core_irecv_plain(r, ctx[w->rank], peer, tag, buf, room));
		return;
	}
	weft_comm_req_init(r, NULL, NULL);
	CHECK(!weft_comm_core_irecv(r, ctx[w->rank], peer, tag, &b));
}

static void start_send(struct weft_req *r, struct who *w, int peer, int tag, unsigned i, char *buf)
{
	size_t n = size_of(i);
	memset(buf, (int)i & 0xff, n);
	memcpy(buf, &i, sizeof i);
	struct weft_buf b = weft_data_buf_flat(buf, n);
	weft_comm_req_init(r, NULL, NULL);
	if (i % 7 && weft_rand_next(&w->seed) % 4 &&
	    weft_comm_send_plain(ctx[w->rank], peer, tag, buf, n) == WEFT_OK) {
		r->status.err = WEFT_OK;
		weft_wait_completion_init_done(&r->done);
		return;
	}
	CHECK(!weft_comm_core_isend(r, ctx[w->rank], peer, tag, &b,
				    i % 7 ? WEFT_SEND_STANDARD : WEFT_SEND_SYNC));
}

static void check_message(const char *buf, const struct weft_status *st, unsigned want)
{
	unsigned i;
	CHECK(!st->err);
	CHECK_EQ(st->bytes, size_of(want));
	memcpy(&i, buf, sizeof i);
	CHECK_EQ(i, want);
	CHECK(payload_is(buf + sizeof i, st->bytes - sizeof i, (char)want));
}

/* A ring of exchanges on the thread's own tag, with receives sometimes late, sometimes early. */
static void exchange(struct who *w)
{
	static _Thread_local char out[16384], in[16384];
	struct weft_req s, r;
	int peer = (w->rank + 1) % RANKS;
	bool early = weft_rand_next(&w->seed) % 2;
	if (early)
		start_receive(&r, w, peer, w->thread, in, sizeof in);
	for (unsigned k = 0; k < 8; k++) {
		start_send(&s, w, peer, w->thread, k, out);
		if (!early)
			start_receive(&r, w, peer, w->thread, in, sizeof in);
		wait_for(w->rank, &r);
		check_message(in, &r.status, k);
		if (early && k < 7)
			start_receive(&r, w, peer, w->thread, in, sizeof in);
		wait_for(w->rank, &s);
	}
}

/* Messages for receives with wildcards; the numbers rise per sender. */
static void wild_sender(struct who *w)
{
	static _Thread_local char out[16384];
	struct weft_req s;
	for (unsigned i = 0; i < rounds * 4; i++) {
		start_send(&s, w, (w->rank + (int)(i % RANKS)) % RANKS, WILD_TAG, i, out);
		wait_for(w->rank, &s);
	}
}

static void wild_receiver(struct who *w)
{
	static _Thread_local char in[16384];
	unsigned next[RANKS] = {0};
	/* Each rank sends every RANKS-th message here, beginning with its distance. */
	for (int r = 0; r < RANKS; r++)
		next[r] = (unsigned)((w->rank - r + RANKS) % RANKS);
	for (unsigned got = 0; got < rounds * 4; got++) {
		struct weft_req r;
		struct weft_status st;
		if (got % 3 == 2) {
			struct weft_msg *m;
			while (!weft_comm_core_improbe(ctx[w->rank], WEFT_ANY_PEER, WILD_TAG, &m,
						       &st)) {
				poll_rank(w->rank);
				sched_yield();
			}
			struct weft_buf b = weft_data_buf_flat(in, sizeof in);
			weft_comm_req_init(&r, NULL, NULL);
			CHECK(!weft_comm_core_imrecv(&r, m, &b));
		} else {
			start_receive(&r, w, WEFT_ANY_PEER, WILD_TAG, in, sizeof in);
		}
		wait_for(w->rank, &r);
		int from = r.status.peer;
		check_message(in, &r.status, next[from]);
		next[from] += RANKS;
	}
}

static void *run(void *arg)
{
	struct who *w = arg;
	if (w->thread == THREADS - 1)
		wild_sender(w);
	else if (w->thread == THREADS - 2)
		wild_receiver(w);
	else
		for (unsigned i = 0; i < rounds; i++)
			exchange(w);
	atomic_fetch_sub(&x_running, 1);
	return NULL;
}

int main(int argc, char **argv)
{
	unsigned long long seed = test_seed(argc, argv);
	pthread_t th[RANKS][THREADS + 1];
	struct who who[RANKS][THREADS + 1];

	if (argc > 2)
		rounds = (unsigned)atoi(argv[2]);
	fake_init(seed);
	fake.credit = 5000;
	weft_wait_owner_need = 2; /* owners come and go all the time */
	fake_cores(core, RANKS);
	for (int r = 0; r < RANKS; r++) {
		pthread_mutex_init(&poll_mask[r], NULL);
		CHECK(!weft_comm_core_ctx_open(core[r], 3, &ctx[r]));
	}
	atomic_store(&x_running, RANKS * THREADS);
	for (int r = 0; r < RANKS; r++) {
		for (int t = 0; t < THREADS; t++) {
			who[r][t] = (struct who){r, t, seed + (uint64_t)(r * 10 + t)};
			CHECK(!pthread_create(&th[r][t], NULL, run, &who[r][t]));
		}
	}
	/* A rank whose threads are over still owes its peer what waits for room. */
	while (atomic_load(&x_running)) {
		for (int r = 0; r < RANKS; r++)
			poll_rank(r);
		sched_yield();
	}
	for (int r = 0; r < RANKS; r++)
		for (int t = 0; t < THREADS; t++)
			pthread_join(th[r][t], NULL);
	for (int r = 0; r < RANKS; r++) {
		while (!weft_comm_core_idle(core[r]))
			for (int p = 0; p < RANKS; p++)
				poll_rank(p);
		weft_comm_core_destroy(core[r]);
	}
	fake_fini();
	return 0;
}
