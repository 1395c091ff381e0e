/* SPDX-License-Identifier: BSD-3-Clause */
/* sched.c - schedules as objects: a pool of them, and the adders of steps. */
#include "coll/sched.h"

#include "base/assert.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Schedules that keep their memory for the next use: enough for a few threads that each have a few
 * operations open; more go back to malloc. */
#define POOL_MAX 64
/* Memory above this is not kept with a schedule: a large operation must not hold it forever. */
#define KEEP_STEPS 256
#define KEEP_SCRATCH 65536
/* One block up to here is kept for all schedules, for the first that asks: the C library would give it
 * back to the kernel each time, and getting its pages anew costs more than to fill them. */
#define KEEP_LARGE (4u << 20)

static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;
static struct weft_coll *pool;  /* under pool_lock */
static unsigned pooled;         /* under pool_lock */
static struct weft_arena large; /* under pool_lock */

struct weft_coll *weft_coll_new(void)
{
	pthread_mutex_lock(&pool_lock);
	struct weft_coll *c = pool;
	if (c) {
		pool = c->next;
		pooled--;
	}
	pthread_mutex_unlock(&pool_lock);
	return c ? c : calloc(1, sizeof *c);
}

static void destroy_schedule(struct weft_coll *c)
{
	free(c->step);
	free(c->edge);
	free(c->type);
	free(c->spare.block);
	free(c);
}

static void arena_grow(struct weft_arena *a, size_t size)
{
	struct weft_scratch *s = aligned_alloc(64, sizeof *s + size);
	if (!s)
		return;
	free(a->block);
	*a = (struct weft_arena){.block = s, .size = size};
}

static void *arena_cut(struct weft_arena *a, size_t bytes)
{
	weft_assert(a->used <= a->size && bytes % 64 == 0);
	if (bytes > a->size - a->used)
		return NULL;
	char *p = a->block->mem + a->used;
	a->used += bytes;
	weft_assert((uintptr_t)p % 64 == 0);
	return p;
}

static void large_take(struct weft_coll *c)
{
	pthread_mutex_lock(&pool_lock);
	c->large = large;
	large = (struct weft_arena){0};
	pthread_mutex_unlock(&pool_lock);
}

/* Gives back what this use had, or had better have had; of two the larger one is kept. */
static void large_give(struct weft_coll *c)
{
	if (c->large.size < c->want && c->want <= KEEP_LARGE)
		arena_grow(&c->large, c->want);
	c->large.used = 0;
	pthread_mutex_lock(&pool_lock);
	if (c->large.size > large.size) {
		struct weft_arena other = large;
		large = c->large;
		c->large = other;
	}
	pthread_mutex_unlock(&pool_lock);
	free(c->large.block);
	c->large = (struct weft_arena){0};
}

void weft_coll_free(struct weft_coll *c)
{
	for (size_t i = 0; i < c->types; i++)
		weft_data_type_unref(c->type[i]);
	while (c->scratch) {
		struct weft_scratch *s = c->scratch;
		c->scratch = s->next;
		free(s);
	}
	c->types = c->steps = c->edges = 0;
	/* So that the same operation, called again, allocates nothing. */
	if (c->want > KEEP_SCRATCH)
		large_give(c);
	else if (c->spare.size < c->want)
		arena_grow(&c->spare, c->want);
	c->spare.used = c->want = 0;
	c->finished = false;
	c->err = WEFT_OK;
	bool keep = c->steps_cap <= KEEP_STEPS;
	if (keep) {
		pthread_mutex_lock(&pool_lock);
		keep = pooled < POOL_MAX;
		if (keep) {
			c->next = pool;
			pool = c;
			pooled++;
		}
		pthread_mutex_unlock(&pool_lock);
	}
	if (!keep)
		destroy_schedule(c);
}

/* Room for one more of `size` bytes; false: c->err is set. */
static bool grow_array(struct weft_coll *c, void **mem, size_t n, size_t *cap, size_t size)
{
	if (weft_likely(n < *cap))
		return true;
	size_t now = *cap ? 2 * *cap : 16;
	void *p = realloc(*mem, now * size);
	if (!p) {
		weft_coll_sched_fail(c, WEFT_ERR_NOMEM);
		return false;
	}
	*mem = p;
	*cap = now;
	return true;
}

/* A new step with everything but its kind's own fields. */
static struct weft_step *add_step(struct weft_coll *c, enum weft_step_kind kind)
{
	void *mem = c->step;
	if (c->err || !grow_array(c, &mem, c->steps, &c->steps_cap, sizeof *c->step))
		return NULL;
	c->step = mem;
	struct weft_step *s = &c->step[c->steps++];
	s->kind = (uint8_t)kind;
	s->before = 0;
	s->edge = -1;
	return s;
}

static int added_after(struct weft_coll *c, int after)
{
	int step = (int)c->steps - 1;
	weft_coll_sched_after(c, step, after);
	return step;
}

static int add_message(struct weft_coll *c, enum weft_step_kind kind, int peer, int tag,
		       struct weft_buf buf, int after)
{
	struct weft_step *s = add_step(c, kind);
	if (!s)
		return -1;
	s->peer = peer;
	s->tag = tag;
	s->buf = buf;
	return added_after(c, after);
}

int weft_coll_sched_send(struct weft_coll *c, int peer, int tag, struct weft_buf buf, int after)
{
	return add_message(c, WEFT_STEP_SEND, peer, tag, buf, after);
}

int weft_coll_sched_recv(struct weft_coll *c, int peer, int tag, struct weft_buf buf, int after)
{
	return add_message(c, WEFT_STEP_RECV, peer, tag, buf, after);
}

int weft_coll_sched_copy(struct weft_coll *c, struct weft_buf to, struct weft_buf from, int after)
{
	struct weft_step *s = add_step(c, WEFT_STEP_COPY);
	if (!s)
		return -1;
	s->buf = to;
	s->from = from;
	return added_after(c, after);
}

int weft_coll_sched_reduce(struct weft_coll *c, const void *in, void *inout, size_t count,
			   int after)
{
	struct weft_step *s = add_step(c, WEFT_STEP_REDUCE);
	if (!s)
		return -1;
	s->in = in;
	s->inout = inout;
	s->count = count;
	return added_after(c, after);
}

int weft_coll_sched_join(struct weft_coll *c)
{
	return add_step(c, WEFT_STEP_JOIN) ? (int)c->steps - 1 : -1;
}

void weft_coll_sched_after(struct weft_coll *c, int step, int before)
{
	if (step < 0 || before < 0)
		return;
	weft_assert((size_t)step < c->steps && (size_t)before < c->steps && step != before);
	void *mem = c->edge;
	if (!grow_array(c, &mem, c->edges, &c->edges_cap, sizeof *c->edge))
		return;
	c->edge = mem;
	int e = (int)c->edges++;
	struct weft_step *b = &c->step[before];
	c->edge[e] = (struct weft_edge){.step = step, .next = -1};
	if (b->edge < 0)
		b->edge = e;
	else
		c->edge[b->edge_last].next = e;
	b->edge_last = e;
	c->step[step].before++;
}

void *weft_coll_sched_scratch(struct weft_coll *c, size_t bytes)
{
	/* After a failure builders go on, but nothing is run: any address will do. */
	static char nowhere[64];
	if (c->err)
		return nowhere;
	bytes = weft_align_up(bytes ? bytes : 1, 64);
	if (bytes > PTRDIFF_MAX / 2) {
		weft_coll_sched_fail(c, WEFT_ERR_LIMIT);
		return nowhere;
	}
	c->want += bytes;
	void *p = arena_cut(&c->spare, bytes);
	if (p)
		return p;
	if (c->want > KEEP_SCRATCH && !c->large.block)
		large_take(c);
	p = arena_cut(&c->large, bytes);
	if (p)
		return p;
	struct weft_scratch *s = aligned_alloc(64, sizeof *s + bytes);
	if (!s) {
		weft_coll_sched_fail(c, WEFT_ERR_NOMEM);
		return nowhere;
	}
	s->next = c->scratch;
	c->scratch = s;
	return s->mem;
}

#ifdef WEFT_CHECKED
/* Takes off steps without anything to wait for until none is left: so no step waits for itself. */
static size_t count_runnable(const struct weft_coll *c, unsigned *left, size_t *order)
{
	size_t n = 0;
	for (size_t i = 0; i < c->steps; i++)
		if (!(left[i] = c->step[i].before))
			order[n++] = i;
	for (size_t i = 0; i < n; i++) {
		for (int e = c->step[order[i]].edge; e >= 0; e = c->edge[e].next) {
			size_t to = (size_t)c->edge[e].step;
			weft_assert((size_t)e < c->edges && to < c->steps && left[to] > 0);
			if (!--left[to])
				order[n++] = to;
		}
	}
	return n;
}
#endif

void weft_coll_sched_check(const struct weft_coll *c)
{
#ifdef WEFT_CHECKED
	weft_assert(c->steps <= c->steps_cap && c->edges <= c->edges_cap);
	weft_assert(c->types <= c->types_cap);
	weft_assert(c->spare.used <= c->spare.size && c->large.used <= c->large.size);
	unsigned *left = malloc((c->steps + 1) * sizeof *left);
	size_t *order = malloc((c->steps + 1) * sizeof *order);
	if (left && order && !c->err)
		weft_assert(count_runnable(c, left, order) == c->steps);
	free(left);
	free(order);
#else
	(void)c;
#endif
}

void weft_coll_sched_keep(struct weft_coll *c, const struct weft_type *t)
{
	if (!t || t->is_static || c->err)
		return;
	void *mem = c->type;
	if (!grow_array(c, &mem, c->types, &c->types_cap, sizeof *c->type))
		return;
	c->type = mem;
	c->type[c->types++] = weft_data_type_ref(t);
}
