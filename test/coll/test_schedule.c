/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every collective gives what MPI defines, for many sizes of groups, layouts and orders of
 * delivery. All ranks live in this process over a simulated network that delivers in random order
 * (but in order between two ranks with one tag), and completes sends at random: now, soon, or at
 * the match.
 */
#include <string.h>

#include "base/base.h"
#include "base/settings.h"
#include "check.h"
#include "coll/coll.h"
#include "task/weft_task.h"

/* ---- the network -------------------------------------------------------------------------- */

#define MAX_RANKS 40

struct weft_ctx {
	int rank;
};

struct packet {
	struct packet *next;
	int from, to, tag;
	size_t len;
	struct weft_req *req; /* completes when delivered; NULL: completed already */
	char data[];
};

struct posted {
	struct posted *next;
	int from, to, tag;
	struct weft_req *req;
	struct weft_buf buf;
};

static struct packet *packets; /* in order of sending */
static struct posted *receives;
static uint64_t seed;
static int fail_rank = -1; /* its messages all fail */

static uint64_t rnd(uint64_t n)
{
	return weft_rand_next(&seed) % n;
}

static void complete(struct weft_req *req, weft_err err, size_t bytes)
{
	req->status = (struct weft_status){.err = err, .bytes = bytes};
	req->then(req, req->then_arg);
}

static void push(struct weft_ctx *ctx, int peer, int tag, const struct weft_buf *buf,
		 struct weft_req *req)
{
	struct packet *p = malloc(sizeof *p + buf->bytes);
	*p = (struct packet){
		.from = ctx->rank, .to = peer, .tag = tag, .len = buf->bytes, .req = req};
	weft_pack(buf, 0, p->data, buf->bytes);
	struct packet **end = &packets;
	while (*end)
		end = &(*end)->next;
	*end = p;
}

weft_err weft_send_now(struct weft_ctx *ctx, int peer, int tag, const struct weft_buf *buf)
{
	if (rnd(2))
		return WEFT_AGAIN;
	if (ctx->rank == fail_rank)
		return WEFT_ERR_PEER;
	push(ctx, peer, tag, buf, NULL);
	return WEFT_OK;
}

weft_err weft_isend(struct weft_req *req, struct weft_ctx *ctx, int peer, int tag,
		    const struct weft_buf *buf, enum weft_send_mode mode)
{
	bool soon = rnd(2);
	if (ctx->rank == fail_rank)
		return WEFT_ERR_PEER;
	push(ctx, peer, tag, buf, soon ? NULL : req);
	if (soon)
		complete(req, WEFT_OK, buf->bytes);
	return WEFT_OK;
}

weft_err weft_irecv(struct weft_req *req, struct weft_ctx *ctx, int peer, int tag,
		    const struct weft_buf *buf)
{
	struct posted *p = malloc(sizeof *p);
	*p = (struct posted){.from = peer, .to = ctx->rank, .tag = tag, .req = req, .buf = *buf};
	struct posted **end = &receives;
	while (*end)
		end = &(*end)->next;
	*end = p;
	return WEFT_OK;
}

/* ---- tasks: run later, in no handler ---- */

static struct weft_task *tasks[MAX_RANKS * 4];
static size_t tasks_n, tasks_run;

void weft_task_init(struct weft_task *t, const char *name,
		    enum weft_task_verdict (*fn)(struct weft_task *t, void *arg), void *arg,
		    unsigned options)
{
	*t = (struct weft_task){.fn = fn, .arg = arg, .name = name, .options = options};
}

bool weft_task_submit(struct weft_task *t)
{
	CHECK(tasks_n < weft_countof(tasks));
	for (size_t i = 0; i < tasks_n; i++)
		CHECK(tasks[i] != t);
	tasks[tasks_n++] = t;
	return true;
}

static void run_task(void)
{
	if (!tasks_n)
		return;
	size_t i = rnd(tasks_n);
	struct weft_task *t = tasks[i];
	tasks[i] = tasks[--tasks_n];
	tasks_run++;
	CHECK_EQ(t->fn(t, t->arg), WEFT_TASK_GONE);
}

int weft_comm_size(void)
{
	return 1;
}

bool weft_comm_same_host(int peer)
{
	return true;
}

static struct posted **find_posted(int from, int to, int tag)
{
	for (struct posted **p = &receives; *p; p = &(*p)->next)
		if ((*p)->from == from && (*p)->to == to && (*p)->tag == tag)
			return p;
	return NULL;
}

/* Is it the first of its kind, and is there a receive for it? */
static struct posted **deliverable(struct packet *k)
{
	for (struct packet *e = packets; e != k; e = e->next)
		if (e->from == k->from && e->to == k->to && e->tag == k->tag)
			return NULL;
	return find_posted(k->from, k->to, k->tag);
}

/* Delivers one message; false: there is none. */
static bool deliver(void)
{
	size_t n = 0;
	for (struct packet *k = packets; k; k = k->next)
		n++;
	if (!n)
		return false;
	size_t start = rnd(n);
	for (size_t i = 0; i < n; i++) {
		struct packet **kp = &packets;
		for (size_t j = (start + i) % n; j; j--)
			kp = &(*kp)->next;
		struct packet *k = *kp;
		struct posted **pp = deliverable(k);
		if (!pp)
			continue;
		struct posted *p = *pp;
		*kp = k->next;
		*pp = p->next;
		size_t len = k->len < p->buf.bytes ? k->len : p->buf.bytes;
		weft_unpack(&p->buf, 0, k->data, len);
		weft_err err = k->len > p->buf.bytes ? WEFT_ERR_TRUNC : WEFT_OK;
		bool sender_first = rnd(2);
		if (sender_first && k->req)
			complete(k->req, WEFT_OK, k->len);
		complete(p->req, err, len);
		if (!sender_first && k->req)
			complete(k->req, WEFT_OK, k->len);
		free(k);
		free(p);
		return true;
	}
	return false;
}

/* ---- running all ranks -------------------------------------------------------------------- */

static struct weft_ctx ctxs[MAX_RANKS];
static struct weft_coll *colls[MAX_RANKS];
static int calls_in_advance;
static bool may_call_user;

static void run_all(int n)
{
	bool left = true;
	int started = 0;
	while (left) {
		if (started < n && rnd(2)) {
			may_call_user = true;
			weft_coll_start(colls[started++]);
			may_call_user = false;
		}
		bool moved = tasks_n > 0;
		if (rnd(2))
			run_task();
		moved = deliver() || moved;
		left = started < n;
		for (int r = 0; r < started; r++) {
			may_call_user = true;
			bool over = weft_coll_advance(colls[r]);
			may_call_user = false;
			left = left || !over;
		}
		/* Without a message under way and nothing started, nobody would ever finish. */
		if (!moved && started == n && left) {
			bool any = false;
			for (int r = 0; r < n; r++)
				any = any || weft_completion_done(weft_coll_wait_on(colls[r]));
			CHECK(any || packets || tasks_n);
		}
	}
	CHECK(!packets && !receives);
}

/* ---- operations --------------------------------------------------------------------------- */

static void add_int(const void *in, void *inout, size_t n)
{
	const int *a = in;
	int *b = inout;
	for (size_t i = 0; i < n; i++)
		b[i] += a[i];
}

/* 2x2 matrices modulo a prime: associative, not commutative. */
struct mat {
	uint32_t m[4];
};

static struct mat mul(struct mat a, struct mat b)
{
	struct mat r;
	for (int i = 0; i < 2; i++)
		for (int j = 0; j < 2; j++)
			r.m[2 * i + j] = (uint32_t)(((uint64_t)a.m[2 * i] * b.m[j] +
						     (uint64_t)a.m[2 * i + 1] * b.m[2 + j]) %
						    1000003);
	return r;
}

/* The user's datatype: a matrix with a hole behind it. */
#define MAT_EXTENT 20
static const struct weft_type *mat_type;

static void mul_mats(const struct weft_coll_op *op, const void *in, void *inout, size_t n)
{
	CHECK(may_call_user);
	calls_in_advance++;
	for (size_t i = 0; i < n; i++) {
		struct mat a, b;
		memcpy(&a, (const char *)in + i * MAT_EXTENT, sizeof a);
		memcpy(&b, (char *)inout + i * MAT_EXTENT, sizeof b);
		b = mul(a, b);
		memcpy((char *)inout + i * MAT_EXTENT, &b, sizeof b);
	}
}

/* ---- a case ------------------------------------------------------------------------------- */

struct weft_case {
	enum weft_coll_kind kind;
	int n, root;
	size_t count;
	bool in_place, crowded, user, holes;
};

static struct weft_coll_group groups[MAX_RANKS];
static int peers[MAX_RANKS];
static int tag;

static void make_groups(int n, bool crowded)
{
	/* Ranks are not processes: a permutation. */
	for (int i = 0; i < n; i++)
		peers[i] = i;
	for (int i = n - 1; i > 0; i--) {
		int j = (int)rnd((uint64_t)i + 1), t = peers[i];
		peers[i] = peers[j];
		peers[j] = t;
	}
	tag += WEFT_COLL_TAGS;
	for (int r = 0; r < n; r++) {
		ctxs[peers[r]].rank = peers[r];
		groups[r] = (struct weft_coll_group){.rank = r,
						     .size = n,
						     .peer = peers,
						     .ctx = &ctxs[peers[r]],
						     .tag = tag,
						     .crowded = crowded,
						     .apart = n % 2};
	}
}

/* Data: element i of what rank r has for rank to. */
static int value(int r, int to, size_t i)
{
	return (int)((uint32_t)r * 1000003u + (uint32_t)to * 10007u + (uint32_t)i * 31u + 7u);
}

static const struct weft_type *holey; /* one int every 12 bytes */

static size_t step_of(const struct weft_case *k)
{
	return k->holes ? 12 : 4;
}

static void put(const struct weft_case *k, char *base, size_t i, int v)
{
	memcpy(base + i * step_of(k), &v, 4);
}

static int get(const struct weft_case *k, const char *base, size_t i)
{
	int v;
	memcpy(&v, base + i * step_of(k), 4);
	return v;
}

static bool rooted(enum weft_coll_kind kind)
{
	return kind == WEFT_COLL_BCAST || kind == WEFT_COLL_REDUCE ||
	       (kind >= WEFT_COLL_GATHER && kind <= WEFT_COLL_SCATTERV);
}

/* v forms: rank r's block (for `to`) has so many elements. */
static int64_t vcount(const struct weft_case *k, int r, int to)
{
	return (int64_t)((k->count * (size_t)(r + 2 * to)) % 7 + (size_t)(r % 2) * k->count);
}

static void start_case(const struct weft_case *k, struct weft_coll_args *args)
{
	for (int r = 0; r < k->n; r++) {
		colls[r] = weft_coll_new();
		args[r].kind = k->kind;
		args[r].root = k->root;
		CHECK_EQ(weft_coll_build(colls[r], &groups[r], &args[r]), WEFT_OK);
	}
	/* Twice, as persistent ones do; the arguments' data is made for it to give the same. */
	run_all(k->n);
	for (int r = 0; r < k->n; r++)
		CHECK_EQ(weft_coll_result(colls[r]), WEFT_OK);
}

static void end_case(const struct weft_case *k)
{
	for (int r = 0; r < k->n; r++)
		weft_coll_free(colls[r]);
}

#define EACH(r) for (int r = 0; r < k->n; r++)

/* Barrier: nobody leaves before everybody has come. */
static void case_barrier(const struct weft_case *k)
{
	make_groups(k->n, k->crowded);
	struct weft_coll_args a = {.kind = WEFT_COLL_BARRIER};
	EACH(r)
	{
		colls[r] = weft_coll_new();
		CHECK_EQ(weft_coll_build(colls[r], &groups[r], &a), WEFT_OK);
	}
	int late = (int)rnd((uint64_t)k->n);
	EACH(r)
	if (r != late)
		weft_coll_start(colls[r]);
	while (deliver())
		;
	EACH(r)
	CHECK(r == late || !weft_coll_advance(colls[r]));
	weft_coll_start(colls[late]);
	while (deliver())
		;
	EACH(r)
	CHECK(weft_coll_advance(colls[r]));
	CHECK(!packets && !receives);
	end_case(k);
}

static void *room(const struct weft_case *k, size_t n)
{
	return calloc(n + 1, step_of(k));
}

/* All kinds that only move data: fills what is sent, runs, checks what came. */
static void case_move(const struct weft_case *k)
{
	const struct weft_type *t = k->holes ? holey : &weft_type_elem[WEFT_B_I32];
	const struct weft_type *st = t;
	struct weft_coll_args args[MAX_RANKS] = {0};
	bool v = k->kind == WEFT_COLL_GATHERV || k->kind == WEFT_COLL_SCATTERV ||
		 k->kind == WEFT_COLL_ALLGATHERV || k->kind == WEFT_COLL_ALLTOALLV ||
		 k->kind == WEFT_COLL_ALLTOALLW;
	bool w = k->kind == WEFT_COLL_ALLTOALLW;
	make_groups(k->n, k->crowded);
	size_t n = (size_t)k->n, most = k->count + 8;
	char *sbuf[MAX_RANKS], *rbuf[MAX_RANKS];
	int64_t scounts[MAX_RANKS][MAX_RANKS], rcounts[MAX_RANKS][MAX_RANKS];
	intptr_t sdispls[MAX_RANKS][MAX_RANKS], rdispls[MAX_RANKS][MAX_RANKS];
	const struct weft_type *types[MAX_RANKS];
	bool sends_all = k->kind == WEFT_COLL_SCATTER || k->kind == WEFT_COLL_SCATTERV ||
			 k->kind >= WEFT_COLL_ALLTOALL;
	bool bcast = k->kind == WEFT_COLL_BCAST;
	/* In-place alltoallv needs equal counts in both directions. */
#define VCOUNT(r, to)                                                                              \
	(k->kind == WEFT_COLL_ALLTOALLV || k->kind == WEFT_COLL_ALLTOALLW                          \
		 ? vcount(k, (r) + (to), (r) * (to))                                               \
	 : sends_all ? vcount(k, to, 0)                                                            \
		     : vcount(k, r, 0))
	EACH(r)
	{
		sbuf[r] = room(k, n * 2 * most);
		rbuf[r] = room(k, n * 2 * most);
		types[r] = t;
	}
	EACH(r)
	{
		struct weft_coll_args *a = &args[r];
		a->stype = st;
		a->rtype = t;
		a->scount = a->rcount = k->count;
		bool here = !rooted(k->kind) || r == k->root;
		a->in_place = k->in_place && here && !bcast;
		a->sbuf = sbuf[r];
		a->rbuf = rbuf[r];
		if (v) {
			EACH(o)
			{
				scounts[r][o] = VCOUNT(r, o);
				rcounts[r][o] = VCOUNT(o, r);
				sdispls[r][o] = rdispls[r][o] = (intptr_t)((size_t)o * 2 * most);
				if (w)
					sdispls[r][o] = rdispls[r][o] *= (intptr_t)step_of(k);
			}
			if (sends_all)
				a->scounts = scounts[r], a->sdispls = sdispls[r];
			else
				a->scount = (size_t)VCOUNT(r, 0);
			if (k->kind != WEFT_COLL_SCATTERV)
				a->rcounts = rcounts[r], a->rdispls = rdispls[r];
			else
				a->rcount = (size_t)VCOUNT(0, r);
			if (w)
				a->stypes = a->rtypes = types;
		}
		/* What is sent. */
		EACH(o)
		{
			size_t len = v ? (size_t)VCOUNT(r, o) : k->count;
			size_t at = (size_t)o * (v ? 2 * most : k->count);
			if (bcast) {
				for (size_t i = 0; i < len && r == k->root; i++)
					put(k, rbuf[r], i, value(r, 0, i));
				continue;
			}
			if (!sends_all) {
				/* One block: in place it lies at our place of the result. */
				char *b = a->in_place ? rbuf[r] : sbuf[r];
				size_t off =
					a->in_place ? (size_t)r * (v ? 2 * most : k->count) : 0;
				for (size_t i = 0; i < len; i++)
					put(k, b, off + i, value(r, 0, i));
				continue;
			}
			char *b = a->in_place && k->kind >= WEFT_COLL_ALLTOALL ? rbuf[r] : sbuf[r];
			for (size_t i = 0; i < len; i++)
				put(k, b, at + i, value(r, o, i));
		}
	}
	start_case(k, args);
	EACH(r)
	{
		if (bcast) {
			for (size_t i = 0; i < k->count; i++)
				CHECK_EQ(get(k, rbuf[r], i), value(k->root, 0, i));
			continue;
		}
		if (k->kind == WEFT_COLL_SCATTER || k->kind == WEFT_COLL_SCATTERV) {
			size_t len = v ? (size_t)VCOUNT(0, r) : k->count;
			for (size_t i = 0; i < len && !args[r].in_place; i++)
				CHECK_EQ(get(k, rbuf[r], i), value(k->root, r, i));
			continue;
		}
		if (rooted(k->kind) && r != k->root)
			continue;
		EACH(o)
		{
			size_t len = v ? (size_t)VCOUNT(o, r) : k->count;
			size_t at = (size_t)o * (v ? 2 * most : k->count);
			for (size_t i = 0; i < len; i++)
				CHECK_EQ(get(k, rbuf[r], at + i), value(o, sends_all ? r : 0, i));
		}
	}
	end_case(k);
	EACH(r)
	{
		free(sbuf[r]);
		free(rbuf[r]);
	}
}

/* ---- reductions --------------------------------------------------------------------------- */

static struct mat mat_value(int r, size_t i)
{
	struct mat m;
	for (int j = 0; j < 4; j++)
		m.m[j] = (uint32_t)value(r, j, i) % 1000003;
	return m;
}

/* Element i of the combination of ranks lo..hi. */
static struct mat mat_want(int lo, int hi, size_t i)
{
	struct mat m = mat_value(lo, i);
	for (int r = lo + 1; r <= hi; r++)
		m = mul(m, mat_value(r, i));
	return m;
}

static int int_want(int lo, int hi, size_t i)
{
	uint32_t s = 0;
	for (int r = lo; r <= hi; r++)
		s += (uint32_t)(value(r, 0, i) & 0xfffff);
	return (int)s;
}

static void check_reduced(const struct weft_case *k, const char *buf, size_t first, size_t n,
			  int lo, int hi)
{
	for (size_t i = 0; i < n; i++) {
		if (k->user) {
			struct mat want = mat_want(lo, hi, first + i);
			CHECK(!memcmp(buf + i * MAT_EXTENT, &want, sizeof want));
		} else {
			int v;
			memcpy(&v, buf + 4 * i, 4);
			CHECK_EQ(v, int_want(lo, hi, first + i));
		}
	}
}

static void case_reduce(const struct weft_case *k)
{
	struct weft_coll_args args[MAX_RANKS] = {0};
	size_t extent = k->user ? MAT_EXTENT : 4;
	int64_t counts[MAX_RANKS];
	size_t total = k->count;
	make_groups(k->n, k->crowded);
	if (k->kind == WEFT_COLL_REDUCE_SCATTER_BLOCK)
		total *= (size_t)k->n;
	if (k->kind == WEFT_COLL_REDUCE_SCATTER) {
		total = 0;
		EACH(r)
		{
			counts[r] = (int64_t)(k->count * (size_t)(r % 3));
			total += (size_t)counts[r];
		}
	}
	char *sbuf[MAX_RANKS], *rbuf[MAX_RANKS], *keep[MAX_RANKS];
	EACH(r)
	{
		struct weft_coll_args *a = &args[r];
		sbuf[r] = calloc(total + 1, extent);
		rbuf[r] = calloc(total + 1, extent);
		keep[r] = calloc(total + 1, extent);
		bool here = k->kind != WEFT_COLL_REDUCE || r == k->root;
		a->in_place = k->in_place && here;
		char *b = a->in_place ? rbuf[r] : sbuf[r];
		for (size_t i = 0; i < total; i++) {
			if (k->user) {
				struct mat m = mat_value(r, i);
				memcpy(b + i * extent, &m, sizeof m);
			} else {
				int v = value(r, 0, i) & 0xfffff;
				memcpy(b + i * extent, &v, 4);
			}
		}
		memcpy(keep[r], sbuf[r], total * extent);
		a->sbuf = sbuf[r];
		a->rbuf = rbuf[r];
		a->rcount = k->count;
		a->rcounts = k->kind == WEFT_COLL_REDUCE_SCATTER ? counts : NULL;
		a->rtype = k->user ? mat_type : &weft_type_elem[WEFT_B_I32];
		a->op = k->user ? (struct weft_coll_op){.user = mul_mats}
				: (struct weft_coll_op){.fn = add_int, .commutative = true};
	}
	start_case(k, args);
	size_t at = 0;
	EACH(r)
	{
		/* Sources stay as they were. */
		CHECK(!memcmp(keep[r], sbuf[r], total * extent));
		switch (k->kind) {
		case WEFT_COLL_REDUCE:
			if (r == k->root)
				check_reduced(k, rbuf[r], 0, total, 0, k->n - 1);
			break;
		case WEFT_COLL_ALLREDUCE:
			check_reduced(k, rbuf[r], 0, total, 0, k->n - 1);
			break;
		case WEFT_COLL_SCAN:
			check_reduced(k, rbuf[r], 0, total, 0, r);
			break;
		case WEFT_COLL_EXSCAN:
			if (r)
				check_reduced(k, rbuf[r], 0, total, 0, r - 1);
			break;
		default: {
			size_t n =
				k->kind == WEFT_COLL_REDUCE_SCATTER ? (size_t)counts[r] : k->count;
			check_reduced(k, rbuf[r], at, n, 0, k->n - 1);
			at += n;
		}
		}
	}
	end_case(k);
	EACH(r)
	{
		free(sbuf[r]);
		free(rbuf[r]);
		free(keep[r]);
	}
}

static void one_case(const struct weft_case *k)
{
	if (k->kind == WEFT_COLL_BARRIER)
		case_barrier(k);
	else if (k->kind < WEFT_COLL_REDUCE)
		case_move(k);
	else
		case_reduce(k);
}

static void test_kinds(void)
{
	static const int sizes[] = {1, 2, 3, 4, 5, 7, 8, 9, 13, 16, 17};
	static const size_t counts[] = {0, 1, 3, 64, 5000};
	for (int kind = 0; kind <= WEFT_COLL_EXSCAN; kind++) {
		for (size_t s = 0; s < weft_countof(sizes); s++) {
			for (size_t i = 0; i < weft_countof(counts); i++) {
				uint64_t bits = rnd(16);
				struct weft_case k = {.kind = (enum weft_coll_kind)kind,
						      .n = sizes[s],
						      .root = (int)rnd((uint64_t)sizes[s]),
						      .count = counts[i],
						      .in_place = bits & 1,
						      .crowded = bits & 2,
						      .user = bits & 4,
						      .holes = bits & 8};
				/* Keep it short: large data in small groups only. */
				if (k.n > 8 && k.count > 64)
					k.count = 200;
				one_case(&k);
			}
		}
	}
	/* Sizes that take the algorithms for many ranks and for large data. */
	static const enum weft_coll_kind many[] = {
		WEFT_COLL_ALLTOALL,  WEFT_COLL_ALLGATHER, WEFT_COLL_ALLGATHERV, WEFT_COLL_ALLREDUCE,
		WEFT_COLL_ALLTOALLV, WEFT_COLL_GATHER,    WEFT_COLL_BARRIER,    WEFT_COLL_SCATTER};
	for (size_t i = 0; i < weft_countof(many); i++) {
		struct weft_case k = {.kind = many[i], .n = 39, .count = 5, .in_place = i % 2};
		one_case(&k);
		k.in_place = !k.in_place;
		one_case(&k);
	}
	for (int holes = 0; holes < 2; holes++) {
		struct weft_case k = {
			.kind = WEFT_COLL_BCAST, .n = 5, .root = 3, .count = 70000, .holes = holes};
		one_case(&k);
	}
	/* Work that does not fit in a handler. */
	static const enum weft_coll_kind heavy[] = {WEFT_COLL_ALLREDUCE, WEFT_COLL_REDUCE,
						    WEFT_COLL_SCAN, WEFT_COLL_REDUCE_SCATTER};
	for (size_t i = 0; i < weft_countof(heavy); i++) {
		struct weft_case k = {.kind = heavy[i], .n = 3, .count = 60000, .crowded = i % 2};
		one_case(&k);
	}
	CHECK(tasks_run > 0);
	CHECK(calls_in_advance > 0);
}

/* Chains and halving, from sizes on that tests can afford. */
static void test_long(void)
{
	static const int sizes[] = {2, 3, 4, 5, 6, 7, 8, 11, 16, 19};
	static const enum weft_coll_kind kinds[] = {WEFT_COLL_BCAST, WEFT_COLL_REDUCE,
						    WEFT_COLL_ALLREDUCE};
	CHECK(!weft_setting_set(WEFT_SET_COLL_HALVING, "64"));
	CHECK(!weft_setting_set(WEFT_SET_COLL_CHAIN, "64"));
	CHECK(!weft_setting_set(WEFT_SET_COLL_SPLIT, "64"));
	for (size_t i = 0; i < weft_countof(sizes) * weft_countof(kinds) * 4; i++) {
		uint64_t bits = rnd(16);
		int n = sizes[i / 4 % weft_countof(sizes)];
		struct weft_case k = {.kind = kinds[i % weft_countof(kinds)],
				      .n = n,
				      .root = (int)rnd((uint64_t)n),
				      .count = i % 2 ? (size_t)n + rnd(4) : 100 + rnd(100),
				      .in_place = bits & 1,
				      .crowded = bits & 2,
				      .user = bits & 4,
				      .holes = bits & 8};
		one_case(&k);
	}
	/* Several segments. */
	struct weft_case k = {.kind = WEFT_COLL_BCAST, .n = 4, .root = 1, .count = 120000};
	one_case(&k);
	CHECK(!weft_setting_set(WEFT_SET_COLL_HALVING, "1024g"));
	CHECK(!weft_setting_set(WEFT_SET_COLL_CHAIN, "1024g"));
	CHECK(!weft_setting_set(WEFT_SET_COLL_SPLIT, "256k"));
}

/* ---- other properties --------------------------------------------------------------------- */

/* A schedule may be started again and again, as persistent collectives do. */
static void test_again(void)
{
	enum { N = 6 };
	int in[N], out[N];
	make_groups(N, false);
	for (int r = 0; r < N; r++) {
		struct weft_coll_args a = {.kind = WEFT_COLL_ALLREDUCE,
					   .sbuf = &in[r],
					   .rbuf = &out[r],
					   .rcount = 1,
					   .rtype = &weft_type_elem[WEFT_B_I32],
					   .op = {.fn = add_int, .commutative = true}};
		colls[r] = weft_coll_new();
		CHECK_EQ(weft_coll_build(colls[r], &groups[r], &a), WEFT_OK);
	}
	for (int k = 0; k < 20; k++) {
		int sum = 0;
		for (int r = 0; r < N; r++)
			sum += in[r] = (int)rnd(1000);
		run_all(N);
		for (int r = 0; r < N; r++)
			CHECK_EQ(out[r], sum);
	}
	for (int r = 0; r < N; r++)
		weft_coll_free(colls[r]);
}

/* A member that cannot send: all others finish, and those it owed something know. */
static void test_failure(void)
{
	static const enum weft_coll_kind kinds[] = {WEFT_COLL_BARRIER, WEFT_COLL_ALLREDUCE,
						    WEFT_COLL_ALLTOALL, WEFT_COLL_ALLGATHER};
	enum { N = 7 };
	static int in[N][N], out[N][N];
	for (size_t i = 0; i < weft_countof(kinds); i++) {
		make_groups(N, false);
		for (int r = 0; r < N; r++) {
			struct weft_coll_args a = {.kind = kinds[i],
						   .sbuf = in[r],
						   .rbuf = out[r],
						   .rcount = 1,
						   .scount = 1,
						   .stype = &weft_type_elem[WEFT_B_I32],
						   .rtype = &weft_type_elem[WEFT_B_I32],
						   .op = {.fn = add_int, .commutative = true}};
			colls[r] = weft_coll_new();
			CHECK_EQ(weft_coll_build(colls[r], &groups[r], &a), WEFT_OK);
		}
		int dead = peers[2], failed = 0;
		fail_rank = dead;
		for (int r = 0; r < N; r++)
			weft_coll_start(colls[r]);
		bool left = true;
		while (left) {
			left = deliver();
			/* What waits for the dead process fails, as comm/ does it. */
			for (struct posted **pp = &receives; *pp;) {
				struct posted *p = *pp;
				if (p->from != dead && p->to != dead) {
					pp = &p->next;
					continue;
				}
				*pp = p->next;
				complete(p->req, WEFT_ERR_PEER, 0);
				free(p);
				left = true;
				pp = &receives;
			}
			for (struct packet **kp = &packets; *kp;) {
				struct packet *k = *kp;
				if (k->to != dead) {
					kp = &k->next;
					continue;
				}
				*kp = k->next;
				if (k->req)
					complete(k->req, WEFT_ERR_PEER, 0);
				free(k);
				left = true;
				kp = &packets;
			}
		}
		for (int r = 0; r < N; r++) {
			CHECK(weft_coll_advance(colls[r]));
			failed += weft_coll_result(colls[r]) != WEFT_OK;
			weft_coll_free(colls[r]);
		}
		CHECK_EQ(failed, N);
		fail_rank = -1;
		CHECK(!packets && !receives);
	}
}

int main(int argc, char **argv)
{
	seed = test_seed(argc, argv);
	int64_t zero = 0;
	const struct weft_type *m;
	CHECK_EQ(weft_type_contiguous(4, &weft_type_elem[WEFT_B_U32], &m), WEFT_OK);
	CHECK_EQ(weft_type_resized(m, 0, MAT_EXTENT, &mat_type), WEFT_OK);
	weft_type_unref(m);
	CHECK_EQ(weft_type_indexed(1, NULL, 1, &zero, 1, &weft_type_elem[WEFT_B_I32], &m), WEFT_OK);
	CHECK_EQ(weft_type_resized(m, 0, 12, &holey), WEFT_OK);
	weft_type_unref(m);
	test_kinds();
	test_long();
	test_again();
	test_failure();
	weft_type_unref(mat_type);
	weft_type_unref(holey);
	return 0;
}
