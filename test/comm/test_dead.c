/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_dead.c - a peer dies with sends, receives and rendezvous under way: every request that needs
 * it ends with WEFT_ERR_PEER, others go on, later operations fail at once, the hook speaks once.
 */
#include "comm/core.h"
#include "comm/fake_net.h"
#include "comm/large/rdma_write.h"

#define RANKS 3
#define EACH 40

static int hooks;

static void on_down(struct weft_core *core, int peer, weft_err err, const char *why)
{
	(void)core;
	CHECK(peer == 1 && err == WEFT_ERR_PEER && why);
	hooks++;
}

static void poll_all(struct weft_core **core, int n)
{
	for (int i = 0; i < n; i++)
		for (int r = 0; r < RANKS; r++)
			if (!fake.x_dead[r])
				(void)weft_comm_core_poll(core[r]);
}

static void kill_at(uint64_t seed)
{
	struct weft_core *core[RANKS];
	struct weft_ctx *ctx[RANKS];
	static struct weft_req send[EACH], recv[EACH], theirs[EACH], wild, other;
	static char out[EACH][5000], in[EACH][5000], mail[EACH][5000];
	uint64_t rnd = seed;

	fake_init(seed);
	fake.can_get = seed & 1;
	fake.offer = seed & 2;
	fake.rdma = seed & 4;
	hooks = 0;
	fake_cores(core, RANKS);
	core[0]->down_hook = on_down;
	for (int r = 0; r < RANKS; r++)
		CHECK(!weft_comm_core_ctx_open(core[r], 1, &ctx[r]));
	for (int i = 0; i < EACH; i++) {
		size_t n = weft_rand_next(&rnd) % 2 ? 5000 : weft_rand_next(&rnd) % 1024;
		struct weft_buf b = weft_data_buf_flat(out[i], n);
		weft_comm_req_init(&send[i], NULL, NULL);
		CHECK(!weft_comm_core_isend(&send[i], ctx[0], 1, i, &b,
					    weft_rand_next(&rnd) % 2 ? WEFT_SEND_STANDARD
								     : WEFT_SEND_SYNC));
		b = weft_data_buf_flat(in[i], sizeof in[i]);
		weft_comm_req_init(&recv[i], NULL, NULL);
		CHECK(!weft_comm_core_irecv(&recv[i], ctx[0], 1, i % 5 ? i : WEFT_ANY_TAG, &b));
		/* The one that will die answers some, and sends some. */
		weft_comm_req_init(&theirs[i], NULL, NULL);
		b = weft_data_buf_flat(mail[i], weft_rand_next(&rnd) % 2 ? 5000 : 100);
		if (i % 2)
			CHECK(!weft_comm_core_isend(&theirs[i], ctx[1], 0, i, &b,
						    WEFT_SEND_STANDARD));
		else
			CHECK(!weft_comm_core_irecv(&theirs[i], ctx[1], 0, i, &b));
	}
	struct weft_buf none = weft_data_buf_flat(NULL, 0);
	weft_comm_req_init(&wild, NULL, NULL);
	CHECK(!weft_comm_core_irecv(&wild, ctx[0], WEFT_ANY_PEER, 1000, &none));
	weft_comm_req_init(&other, NULL, NULL);
	CHECK(!weft_comm_core_irecv(&other, ctx[0], 2, 7, &none));

	poll_all(core, (int)(weft_rand_next(&rnd) % 30));
	fake.x_dead[1] = true;
	poll_all(core, 50);

	int failed = 0;
	for (int i = 0; i < EACH; i++) {
		CHECK(weft_comm_req_done(&send[i]) && weft_comm_req_done(&recv[i]));
		CHECK(!send[i].status.err || send[i].status.err == WEFT_ERR_PEER);
		CHECK(!recv[i].status.err || recv[i].status.err == WEFT_ERR_PEER ||
		      recv[i].status.err == WEFT_ERR_TRUNC);
		failed += recv[i].status.err == WEFT_ERR_PEER;
	}
	CHECK(failed);
	CHECK_EQ(hooks, 1);
	CHECK(weft_comm_req_done(&wild) && wild.status.err == WEFT_ERR_PEER);
	CHECK(!weft_comm_req_done(&other));

	/* From now on at once. */
	struct weft_req late;
	weft_comm_req_init(&late, NULL, NULL);
	CHECK_EQ(weft_comm_core_isend(&late, ctx[0], 1, 0, &none, WEFT_SEND_STANDARD),
		 WEFT_ERR_PEER);
	CHECK_EQ(weft_comm_core_irecv(&late, ctx[0], 1, 2000, &none), WEFT_ERR_PEER);
	struct weft_status st;
	weft_comm_core_probe(ctx[0], 1, 2000, &st);
	CHECK_EQ(st.err, WEFT_ERR_PEER);

	/* Others go on. */
	CHECK(!weft_comm_core_isend(&late, ctx[2], 0, 7, &none, WEFT_SEND_SYNC));
	for (int i = 0; i < 1000 && !(weft_comm_req_done(&late) && weft_comm_req_done(&other)); i++)
		poll_all(core, 1);
	CHECK(weft_comm_req_done(&late) && !late.status.err);
	CHECK(weft_comm_req_done(&other) && !other.status.err);
	CHECK(weft_comm_core_idle(core[0]));

	/* No peer is left: a receive from any peer cannot come true. */
	core[0]->down_hook = NULL;
	fake.x_dead[2] = true;
	poll_all(core, 5);
	weft_comm_req_init(&late, NULL, NULL);
	CHECK_EQ(weft_comm_core_irecv(&late, ctx[0], WEFT_ANY_PEER, 3000, &none), WEFT_ERR_PEER);
	for (int i = 0; i < EACH; i++)
		if (!(i % 2))
			weft_comm_rdma_write_close(
				&theirs[i]); /* its memory went with the process */
	fake_end(core, RANKS);
}

int main(int argc, char **argv)
{
	unsigned long long seed = test_seed(argc, argv);
	for (unsigned i = 0; i < 100; i++)
		kill_at(seed + i);
	return 0;
}
