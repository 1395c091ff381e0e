/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_depth.c - what lies in matching does not slow it down: a million receives or messages, in
 * any order, exact or wildcard, cost a few steps each; threads that match exact keys share no lock;
 * and counted tags stay in few buckets.
 *
 * Counts steps and locks, never time.  WEFT_LONG=1: a million instead of some ten thousand.
 */
#include <pthread.h>
#include "base/counters.h"
#include "check.h"
#include "comm/core.h"
#include "comm/core_check.h"

static struct weft_core *core;
static struct weft_ctx *ctx;
static unsigned count = 40000 / TEST_ALONE;
static uint64_t seed;

static uint64_t steps(void)
{
	return weft_counter_sum(WEFT_CNT_MATCH_STEPS);
}

static unsigned *order(bool reverse, bool shuffled)
{
	unsigned *o = malloc(count * sizeof *o);
	for (unsigned i = 0; i < count; i++)
		o[i] = reverse ? count - 1 - i : i;
	for (unsigned i = count - 1; shuffled && i > 0; i--) {
		unsigned j = (unsigned)(weft_rand_next(&seed) % (i + 1)), t = o[i];
		o[i] = o[j];
		o[j] = t;
	}
	return o;
}

static void send(int tag, unsigned value)
{
	struct weft_buf b = weft_data_buf_flat(&value, sizeof value);
	CHECK(!weft_comm_send_now(ctx, 0, tag, &b));
}

struct slot {
	struct weft_req req;
	unsigned value;
};

static void receive(struct slot *s, int peer, int tag)
{
	struct weft_buf b = weft_data_buf_flat(&s->value, sizeof s->value);
	weft_comm_req_init(&s->req, NULL, NULL);
	CHECK(!weft_comm_core_irecv(&s->req, ctx, peer, tag, &b));
}

/* At most two looks beyond the first per operation: the bound that "O(1)" means here. */
static void check_steps(const char *what, uint64_t before)
{
	uint64_t n = steps() - before;
	printf("%-40s %u operations, %.3f steps each\n", what, 2 * count,
	       (double)n / (2.0 * count));
	CHECK(n <= 4ull * count);
}

/* Distinct tags, far apart or side by side; posted first or sent first. */
static void exact(const char *what, bool sent_first, int stride, bool reverse, bool shuffled)
{
	struct slot *slot = calloc(count, sizeof *slot);
	unsigned *o = order(reverse, shuffled);
	uint64_t before = steps();

	for (unsigned i = 0; i < count; i++) {
		if (sent_first)
			send((int)i * stride, i);
		else
			receive(&slot[i], 0, (int)i * stride);
	}
	for (unsigned i = 0; i < count; i++) {
		if (sent_first)
			receive(&slot[o[i]], 0, (int)o[i] * stride);
		else
			send((int)o[i] * stride, o[i]);
	}
	for (unsigned i = 0; i < count; i++)
		CHECK(weft_comm_req_done(&slot[i].req) && slot[i].value == i);
	check_steps(what, before);
	free(o);
	free(slot);
}

/* One key many times, and others that share its bucket's neighbourhood. */
static void one_key(void)
{
	struct slot *slot = calloc(count, sizeof *slot);
	uint64_t before = steps();
	for (unsigned i = 0; i < count; i++)
		receive(&slot[i], 0, 7);
	for (unsigned i = count; i-- > count / 2;)
		CHECK(weft_comm_recv_cancel(&slot[i].req)); /* from the end, then from the middle */
	for (unsigned i = count / 4; i < count / 2; i++)
		CHECK(weft_comm_recv_cancel(&slot[i].req));
	for (unsigned i = 0; i < count / 4; i++) {
		send(7, i);
		CHECK(weft_comm_req_done(&slot[i].req) && slot[i].value == i);
	}
	check_steps("one key, cancelled from behind", before);
	free(slot);
}

/* Wildcard receives of each sort, `keys` different ones, then messages from the last key on. */
static void wild_posted(const char *what, int peer, bool any_tag, unsigned keys)
{
	struct slot *slot = calloc(count, sizeof *slot);
	uint64_t before = steps();
	for (unsigned i = 0; i < count; i++)
		receive(&slot[i], peer, any_tag ? WEFT_ANY_TAG : (int)(i % keys));
	for (unsigned i = 0; i < count; i++)
		send((int)((count - 1 - i) % keys), i);
	for (unsigned i = 0; i < count; i++)
		CHECK(weft_comm_req_done(&slot[i].req) && slot[i].value < count);
	if (keys == 1)
		for (unsigned i = 0; i < count; i++)
			CHECK_EQ(slot[i].value, i);
	check_steps(what, before);
	free(slot);
}

/* Messages that lie there, taken by wildcards, newest tag first. */
static void wild_taken(const char *what, int peer, bool any_tag)
{
	struct slot s;
	uint64_t before = steps();
	for (unsigned i = 0; i < count; i++)
		send((int)i, i);
	for (unsigned i = 0; i < count; i++) {
		receive(&s, peer, any_tag ? WEFT_ANY_TAG : (int)(count - 1 - i));
		CHECK(weft_comm_req_done(&s.req));
		CHECK_EQ(s.value, any_tag ? i : count - 1 - i);
	}
	check_steps(what, before);
}

/* The first wildcard comes when messages lie loose already: it still sees them in order. */
static void turn(void)
{
	struct slot s;
	for (unsigned i = 0; i < count; i++)
		send((int)(weft_rand_next(&seed) % 1000000), i);
	for (unsigned i = 0; i < count; i++) {
		receive(&s, i % 2 ? 0 : WEFT_ANY_PEER, WEFT_ANY_TAG);
		CHECK(weft_comm_req_done(&s.req));
		CHECK_EQ(s.value, i);
	}
}

/* A hint saves an index of each message, counted; a wildcard against the promise still gets the right
 * message. */
static void hints(void)
{
	struct slot s;
	weft_comm_ctx_hint(ctx, true, true, false);
	for (unsigned i = 0; i < 100; i++)
		send((int)i, i);
	receive(&s, WEFT_ANY_PEER, 50);
	CHECK(weft_comm_req_done(&s.req) && s.value == 50);
	/* Neither index of any message is kept; with one of the hints, one of them. */
	CHECK(ctx->not_by_peer == 99 && ctx->not_by_tag == 99);
	weft_comm_ctx_hint(ctx, true, false, false);
	send(1000, 1000);
	CHECK(ctx->not_by_peer == 99 && ctx->not_by_tag == 100);
	weft_comm_ctx_hint(ctx, false, true, false);
	send(1001, 1001);
	CHECK(ctx->not_by_peer == 100 && ctx->not_by_tag == 100);
	receive(&s, 0, 1000);
	receive(&s, 0, 1001);
	CHECK(ctx->not_by_peer == 99 && ctx->not_by_tag == 99);
	weft_comm_ctx_hint(ctx, false, false, false);
	for (unsigned i = 100; i < 200; i++)
		send((int)i, i);
	receive(&s, 0, WEFT_ANY_TAG);
	CHECK(weft_comm_req_done(&s.req) && s.value == 0);
	receive(&s, WEFT_ANY_PEER, 150);
	CHECK(weft_comm_req_done(&s.req) && s.value == 150);
	for (unsigned i = 0; i < 197; i++) {
		receive(&s, WEFT_ANY_PEER, WEFT_ANY_TAG);
		CHECK(weft_comm_req_done(&s.req));
	}
	CHECK_EQ(atomic_load(&ctx->x_unexpected), 0);
	CHECK(!ctx->not_by_peer && !ctx->not_by_tag && !ctx->all_head);
}

/* With leave to overtake, an exact receive is taken although an older wildcard is posted. */
static void overtaking(void)
{
	struct slot wild, exact_one;
	weft_comm_ctx_hint(ctx, false, false, true);
	receive(&wild, WEFT_ANY_PEER, WEFT_ANY_TAG);
	receive(&exact_one, 0, 5);
	uint64_t before = weft_counter_sum(WEFT_CNT_MATCH_COMMON);
	send(5, 1);
	CHECK(weft_comm_req_done(&exact_one.req) && !weft_comm_req_done(&wild.req));
	CHECK_EQ(weft_counter_sum(WEFT_CNT_MATCH_COMMON), before);
	send(5, 2);
	CHECK(weft_comm_req_done(&wild.req) && wild.value == 2);
	weft_comm_ctx_hint(ctx, false, false, false);
}

static void *thread(void *arg)
{
	int base = (int)(uintptr_t)arg * 1000000;
	struct slot s;
	for (int i = 0; i < 5000; i++) {
		if (i & 1) {
			receive(&s, 0, base + i);
			send(base + i, (unsigned)i);
		} else {
			send(base + i, (unsigned)i);
			receive(&s, 0, base + i);
		}
		CHECK(weft_comm_req_done(&s.req) && s.value == (unsigned)i);
	}
	return NULL;
}

static void threads(void)
{
	pthread_t t[4];
	uint64_t before = weft_counter_sum(WEFT_CNT_MATCH_COMMON);
	for (uintptr_t i = 0; i < 4; i++)
		CHECK(!pthread_create(&t[i], NULL, thread, (void *)i));
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	CHECK_EQ(weft_counter_sum(WEFT_CNT_MATCH_COMMON), before);
}

/* Closes a context; how many buckets were searched. */
static uint64_t closed(struct weft_ctx *c)
{
	uint64_t before = weft_counter_sum(WEFT_CNT_MATCH_SCANNED);
	weft_comm_ctx_close(c);
	CHECK(!c->all_head);
	return weft_counter_sum(WEFT_CNT_MATCH_SCANNED) - before;
}

/* A context with a receive and a message of another tag left in it. */
static void leave_two(struct weft_ctx **c, uint32_t id, struct slot *s)
{
	struct weft_ctx *was = ctx;
	CHECK(!weft_comm_core_ctx_open(core, 1000 + id, c));
	ctx = *c;
	receive(s, 0, (int)(id % 4096));
	send(-1 - (int)(id % 4096), id);
	ctx = was;
}

/* Closing a context costs what it used, however many others are there; and leaves theirs. */
static void closing(void)
{
	enum { N = 32000 / TEST_ALONE, FEW = 100 };
	static struct weft_ctx *many[N];
	static struct slot s[N];
	static uint64_t alone[FEW];
	uint64_t sum = 0, sum_alone = 0;
	struct weft_core *was = core; /* its table is used already */
	CHECK(!weft_comm_core_create(0, 1, &core));
	for (uint32_t i = 0; i < FEW; i++) {
		leave_two(&many[i], i, &s[i]);
		alone[i] = closed(many[i]);
		sum_alone += alone[i];
	}
	for (uint32_t i = 0; i < N; i++)
		leave_two(&many[i], i, &s[i]);
	for (uint32_t i = 0; i < N; i++) {
		CHECK(!weft_comm_req_done(&s[i].req));
		uint64_t each = closed(many[i]);
		CHECK(weft_comm_req_done(&s[i].req) && s[i].req.status.cancelled);
		/* Two pages, searched twice; if both have one place, the second stands for its row
		 * and column, of which there are two, and which hold the first one, too, at most. */
		CHECK(each <= 2 * 3 * WEFT_BUCKET_GROUP);
		if (i < FEW) {
			CHECK(each == alone[i] || each == alone[i] + 2 * WEFT_BUCKET_GROUP);
			sum += each;
		}
	}
	printf("closing a context: %llu buckets searched, %llu among %d of them\n",
	       (unsigned long long)sum_alone / FEW, (unsigned long long)sum / FEW, N);
	CHECK(sum <= sum_alone + sum_alone / 4);
	weft_comm_core_check(core);
	weft_comm_core_destroy(core);
	core = was;
}

static unsigned pages(void)
{
	unsigned n = 0;
	for (size_t i = 0; i < weft_countof(core->match.x_used); i++)
		n += (unsigned)__builtin_popcountll(core->match.x_used[i]);
	return n;
}

/* Tags that count up, as those of collectives do, stay within 4096 buckets; tags that share one are
 * kept apart all the same. */
static void counted(void)
{
	enum { N = 16 };
	static struct slot s[N];
	struct weft_ctx *was = ctx;
	unsigned before = pages();

	CHECK(!weft_comm_core_ctx_open(core, 5000 | WEFT_CTX_COUNTED, &ctx));
	for (unsigned i = 0; i < count; i++) {
		receive(&s[0], 0, (int)i);
		send((int)i, i);
		CHECK(weft_comm_req_done(&s[0].req) && s[0].value == i);
	}
	printf("tags counted to %u: %u pages of %d buckets\n", count, pages() - before,
	       WEFT_BUCKET_GROUP);
	CHECK(pages() - before <= 4096 / WEFT_BUCKET_GROUP + 1);
	for (int i = 0; i < N; i++)
		receive(&s[i], 0, i * 4096);
	for (int i = N; i-- > 0;)
		send(i * 4096, (unsigned)i);
	for (unsigned i = 0; i < N; i++)
		CHECK(weft_comm_req_done(&s[i].req) && s[i].value == i);
	weft_comm_core_check(core);
	weft_comm_ctx_close(ctx);
	ctx = was;
}

static void fresh(void)
{
	static uint32_t id;
	if (ctx)
		weft_comm_ctx_close(ctx);
	CHECK(!weft_comm_core_ctx_open(core, 2 * (id++ % 3), &ctx));
}

int main(int argc, char **argv)
{
	seed = test_seed(argc, argv);
	if (getenv("WEFT_LONG"))
		count = 1000000;
	CHECK(!weft_comm_core_create(0, 1, &core));
	counted();
	fresh();
	threads();
	exact("posted, tags side by side", false, 1, false, false);
	exact("posted, from the last", false, 1, true, false);
	exact("posted, shuffled, tags 1000 apart", false, 1000, false, true);
	exact("unexpected", true, 1, false, false);
	exact("unexpected, from the last", true, 1, true, false);
	exact("unexpected, shuffled, tags 4096 apart", true, count > 500000 ? 2048 : 4096, false,
	      true);
	one_key();
	fresh();
	turn();
	exact("unexpected, in lists, shuffled", true, 1, false, true);
	fresh();
	wild_posted("posted: any tag", 0, true, 1);
	wild_posted("posted: any peer, own tags", WEFT_ANY_PEER, false, count);
	wild_posted("posted: any peer, any tag", WEFT_ANY_PEER, true, 1);
	wild_taken("taken: any tag", 0, true);
	wild_taken("taken: any peer, own tags", WEFT_ANY_PEER, false);
	wild_taken("taken: any peer, any tag", WEFT_ANY_PEER, true);
	hints();
	overtaking();
	fresh();
	threads();
	closing();
	weft_comm_core_check(core);
	weft_comm_ctx_close(ctx);
	weft_comm_core_destroy(core);
	return 0;
}
