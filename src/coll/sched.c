/* SPDX-License-Identifier: BSD-3-Clause */
/* sched.c - schedules as objects: a pool of them, and the adders of steps. */
#include "coll/sched.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Schedules that keep their memory for the next use: enough for a few threads that each have a few
 * operations open; more go back to malloc. */
#define POOL_MAX 64
/* Memory above this is not kept with a schedule: a large operation must not hold it forever. */
#define KEEP_STEPS 256
#define KEEP_SCRATCH 65536
/* One block up to here is kept for all schedules, whoever comes first: the C library would give it
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

static void destroy(struct weft_coll *c)
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
	if (bytes > a->size - a->used)
		return NULL;
	char *p = a->block->mem + a->used;
	a->used += bytes;
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
		destroy(c);
}

/* Room for one more of `size` bytes; false: c->err is set. */
static bool grow(struct weft_coll *c, void **mem, size_t n, size_t *cap, size_t size)
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
static struct weft_step *add(struct weft_coll *c, enum weft_step_kind kind)
{
	void *mem = c->step;
	if (c->err || !grow(c, &mem, c->steps, &c->steps_cap, sizeof *c->step))
		return NULL;
	c->step = mem;
	struct weft_step *s = &c->step[c->steps++];
	s->kind = (uint8_t)kind;
	s->before = 0;
	s->edge = -1;
	return s;
}

static int added(struct weft_coll *c, int after)
{
	int step = (int)c->steps - 1;
	weft_coll_sched_after(c, step, after);
	return step;
}

static int message(struct weft_coll *c, enum weft_step_kind kind, int peer, int tag,
		   struct weft_buf buf, int after)
{
	struct weft_step *s = add(c, kind);
	if (!s)
		return -1;
	s->peer = peer;
	s->tag = tag;
	s->buf = buf;
	return added(c, after);
}

int weft_coll_sched_send(struct weft_coll *c, int peer, int tag, struct weft_buf buf, int after)
{
	return message(c, WEFT_STEP_SEND, peer, tag, buf, after);
}

int weft_coll_sched_recv(struct weft_coll *c, int peer, int tag, struct weft_buf buf, int after)
{
	return message(c, WEFT_STEP_RECV, peer, tag, buf, after);
}

int weft_coll_sched_copy(struct weft_coll *c, struct weft_buf to, struct weft_buf from, int after)
{
	struct weft_step *s = add(c, WEFT_STEP_COPY);
	if (!s)
		return -1;
	s->buf = to;
	s->from = from;
	return added(c, after);
}

int weft_coll_sched_reduce(struct weft_coll *c, const void *in, void *inout, size_t count,
			   int after)
{
	struct weft_step *s = add(c, WEFT_STEP_REDUCE);
	if (!s)
		return -1;
	s->in = in;
	s->inout = inout;
	s->count = count;
	return added(c, after);
}

int weft_coll_sched_join(struct weft_coll *c)
{
	return add(c, WEFT_STEP_JOIN) ? (int)c->steps - 1 : -1;
}

void weft_coll_sched_after(struct weft_coll *c, int step, int before)
{
	if (step < 0 || before < 0)
		return;
	void *mem = c->edge;
	if (!grow(c, &mem, c->edges, &c->edges_cap, sizeof *c->edge))
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

void weft_coll_sched_keep(struct weft_coll *c, const struct weft_type *t)
{
	if (!t || t->is_static || c->err)
		return;
	void *mem = c->type;
	if (!grow(c, &mem, c->types, &c->types_cap, sizeof *c->type))
		return;
	c->type = mem;
	c->type[c->types++] = weft_data_type_ref(t);
}
