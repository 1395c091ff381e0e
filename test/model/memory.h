/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memory.h - the explorer's memory: what each thread may still see of each location, and what the
 * operations on it do.  Included by explore.h, whose card has the rules.
 */
#ifndef WEFT_MODEL_MEMORY_H
#define WEFT_MODEL_MEMORY_H

#include "model/threads.h"

static void m_join(struct m_view *a, const struct m_view *b)
{
	for (int i = 0; i < mx.locs; i++)
		if (b->seen[i] > a->seen[i])
			a->seen[i] = b->seen[i];
	for (int i = 0; i <= M_THREADS; i++)
		if (b->epoch[i] > a->epoch[i])
			a->epoch[i] = b->epoch[i];
}

static uint64_t m_raw(const void *p, unsigned size)
{
	uint64_t v = 0;
	memcpy(&v, p, size);
	return v;
}

static int m_loc_of(void *p, unsigned size)
{
	for (int i = 0; i < mx.locs; i++)
		if (mx.loc[i].addr == p) {
			if (mx.loc[i].freed)
				model_fail("memory was used after its end");
			return i;
		}
	if (mx.locs == M_LOCS) {
		model_fail("too many locations");
		return 0;
	}
	struct m_loc *l = &mx.loc[mx.locs];
	memset(l, 0, sizeof *l);
	l->addr = p;
	l->size = size;
	l->n = 1;
	l->written_by = M_THREADS;
	l->value[0].v = m_raw(p, size);
	l->value[0].by = M_THREADS;
	for (int i = 0; i < mx.threads; i++)
		mx.t[i].view.seen[mx.locs] = 0;
	return mx.locs++;
}

static bool m_acquires(memory_order mo)
{
	return mo == memory_order_acquire || mo == memory_order_acq_rel ||
	       mo == memory_order_seq_cst || mo == memory_order_consume;
}

static bool m_releases(memory_order mo)
{
	return mo == memory_order_release || mo == memory_order_acq_rel ||
	       mo == memory_order_seq_cst;
}

static memory_order m_site(const char *func, int line, int op, memory_order mo)
{
	if (mo == memory_order_relaxed)
		return mo;
	int i = 0;
	while (i < mx.sites && (mx.site[i].line != line || mx.site[i].op != op ||
				strcmp(mx.site[i].func, func) != 0))
		i++;
	if (i == mx.sites) {
		if (mx.sites == M_SITES) {
			model_fail("too many sites");
			return mo;
		}
		mx.site[mx.sites++] =
			(struct m_site){.func = func, .line = line, .op = op, .mo = mo};
	}
	return i == mx.mutant ? memory_order_relaxed : mo;
}

static void m_push_value(int i, uint64_t v, memory_order mo, const struct m_view *before)
{
	struct m_loc *l = &mx.loc[i];
	struct m_thread *t = &mx.t[mx.now];
	if (l->n == M_VALUES) {
		model_fail("too many values of one location: an endless loop?");
		return;
	}
	struct m_value *nv = &l->value[l->n];
	memset(nv, 0, sizeof *nv);
	t->view.seen[i] = (uint8_t)l->n;
	t->view.epoch[mx.now]++;
	if (before)
		nv->view = *before; /* a read-modify-write continues what it read */
	if (m_releases(mo))
		m_join(&nv->view, &t->view);
	nv->v = v;
	nv->by = mx.now;
	if (mo == memory_order_seq_cst)
		l->sc = (uint8_t)l->n;
	l->n++;
	memcpy(l->addr, &v, l->size); /* for code that looks without us */
	mx.stores++;
}

/* Memory whose accesses are no steps, and give the newest value: what only hints. */
static struct {
	const char *from, *to;
} m_hints[32];
static int m_hint_count;

static inline void model_hint(const volatile void *p, size_t size)
{
	if (m_hint_count == (int)(sizeof m_hints / sizeof *m_hints))
		abort();
	m_hints[m_hint_count].from = (const char *)(uintptr_t)p;
	m_hints[m_hint_count++].to = (const char *)(uintptr_t)p + size;
}

static inline bool m_is_hint(const void *p)
{
	int i = 0;
	while (i < m_hint_count &&
	       !((const char *)p >= m_hints[i].from && (const char *)p < m_hints[i].to))
		i++;
	return i < m_hint_count;
}

static inline uint64_t m_load(void *p, unsigned size, memory_order mo, const char *func, int line)
{
	if (mx.now < 0 || m_is_hint(p))
		return m_raw(p, size);
	mo = m_site(func, line, 'l', mo);
	m_switch(false);
	int i = m_loc_of(p, size);
	struct m_loc *l = &mx.loc[i];
	struct m_thread *t = &mx.t[mx.now];
	unsigned low = t->view.seen[i];
	if (mo == memory_order_seq_cst && l->sc > low)
		low = l->sc;
	unsigned k = l->n - 1 - (unsigned)m_choose((int)(l->n - low));
	t->view.seen[i] = (uint8_t)k;
	t->last_loaded = i;
	if (m_acquires(mo))
		m_join(&t->view, &l->value[k].view);
	/* One's own store may still be in the store buffer when one reads it back. */
	if (mo == memory_order_seq_cst && k > l->sc && l->value[k].by != mx.now)
		l->sc = (uint8_t)k;
	m_tell(func, line, 'l', p, l->value[k].v);
	return l->value[k].v;
}

static inline void m_store(void *p, unsigned size, uint64_t v, memory_order mo, const char *func,
			   int line)
{
	if (mx.now < 0 || m_is_hint(p)) {
		memcpy(p, &v, size);
		return;
	}
	mo = m_site(func, line, 's', mo);
	m_switch(false);
	m_tell(func, line, 's', p, v);
	m_push_value(m_loc_of(p, size), v, mo, NULL);
}

enum { M_XCHG, M_ADD, M_SUB, M_OR, M_XOR, M_AND };

/* The second half of an exchange: reads the newest value of location i, or of plain memory, and
 * writes the next. */
static inline void m_replace(int i, void *p, unsigned size, uint64_t v, memory_order mo,
			     const char *func, int line, char kind)
{
	if (i < 0) {
		memcpy(p, &v, size);
		return;
	}
	struct m_view before = mx.loc[i].value[mx.loc[i].n - 1].view;
	m_tell(func, line, kind, p, v);
	if (m_acquires(mo))
		m_join(&mx.t[mx.now].view, &before);
	m_push_value(i, v, mo, &before);
}

static inline uint64_t m_rmw(void *p, unsigned size, int kind, uint64_t v, memory_order mo,
			     const char *func, int line)
{
	uint64_t mask = size == 8 ? UINT64_MAX : (1ull << 8 * size) - 1;
	bool step = mx.now >= 0 && !m_is_hint(p);
	if (step) {
		mo = m_site(func, line, 'x', mo);
		m_switch(false);
	}
	int i = step ? m_loc_of(p, size) : -1;
	uint64_t old = i >= 0 ? mx.loc[i].value[mx.loc[i].n - 1].v : m_raw(p, size);
	uint64_t neu = kind == M_XCHG  ? v
		       : kind == M_ADD ? old + v
		       : kind == M_SUB ? old - v
		       : kind == M_OR  ? old | v
		       : kind == M_XOR ? old ^ v
				       : old & v;
	neu &= mask;
	m_replace(i, p, size, neu, mo, func, line, 'x');
	return old;
}

static inline bool m_cas(void *p, unsigned size, void *expected, uint64_t desired, memory_order mo,
			 memory_order fail, const char *func, int line)
{
	uint64_t want = m_raw(expected, size);
	bool step = mx.now >= 0 && !m_is_hint(p);
	if (step) {
		mo = m_site(func, line, 'c', mo);
		fail = m_site(func, line, 'f', fail);
		m_switch(false);
	}
	int i = step ? m_loc_of(p, size) : -1;
	uint64_t old = i >= 0 ? mx.loc[i].value[mx.loc[i].n - 1].v : m_raw(p, size);
	if (old != want) {
		/* Failure reads the newest here; a stale failure is a load before, seen elsewhere.
		 */
		if (i >= 0) {
			mx.t[mx.now].view.seen[i] = (uint8_t)(mx.loc[i].n - 1);
			mx.t[mx.now].last_loaded = i;
			if (m_acquires(fail))
				m_join(&mx.t[mx.now].view, &mx.loc[i].value[mx.loc[i].n - 1].view);
		}
		memcpy(expected, &old, size);
		return false;
	}
	m_replace(i, p, size, desired, mo, func, line, 'c');
	return true;
}

/* A system call looked at *p: later loads are no older. */
static inline void model_fresh(void *p, unsigned size)
{
	int i = m_loc_of(p, size);
	mx.t[mx.now].view.seen[i] = (uint8_t)(mx.loc[i].n - 1);
}

/* A full fence on every thread, at one moment: membarrier. */
static inline void model_membarrier(void)
{
	m_switch(false);
	for (int i = 0; i < mx.threads; i++)
		m_join(&mx.membarrier, &mx.t[i].view);
	for (int i = 0; i < mx.threads; i++)
		m_join(&mx.t[i].view, &mx.membarrier);
}

/* A seq_cst fence of one thread: what it loads after is no older than any seq_cst access before. */
static inline void model_fence(void)
{
	struct m_view *mine = &mx.t[mx.now].view;
	m_switch(false);
	for (int i = 0; i < mx.locs; i++)
		if (mx.loc[i].sc > mine->seen[i])
			mine->seen[i] = mx.loc[i].sc;
	m_join(mine, &mx.membarrier);
	m_join(&mx.membarrier, mine);
}

/* Data without atomics; a race is a failure. */
static inline void model_write(int *p, int v)
{
	int i = m_loc_of(p, sizeof *p);
	struct m_loc *l = &mx.loc[i];
	struct m_thread *t = &mx.t[mx.now];
	for (int k = 0; k < mx.threads; k++)
		if (k != mx.now && l->read_at[k] > t->view.epoch[k])
			model_fail("a write races with an earlier read");
	if (l->written_by < M_THREADS && l->written_by != mx.now &&
	    l->written_at > t->view.epoch[l->written_by])
		model_fail("two writes race");
	t->view.epoch[mx.now]++;
	l->written_by = mx.now;
	l->written_at = t->view.epoch[mx.now];
	*p = v;
}

static inline int model_read(int *p)
{
	int i = m_loc_of(p, sizeof *p);
	struct m_loc *l = &mx.loc[i];
	struct m_thread *t = &mx.t[mx.now];
	if (l->written_by < M_THREADS && l->written_by != mx.now &&
	    l->written_at > t->view.epoch[l->written_by])
		model_fail("a read races with an earlier write");
	t->view.epoch[mx.now]++;
	l->read_at[mx.now] = t->view.epoch[mx.now];
	return *p;
}

static inline void model_free(void *p, size_t n)
{
	for (int i = 0; i < mx.locs; i++)
		if (mx.loc[i].addr >= (char *)p && mx.loc[i].addr < (char *)p + n)
			mx.loc[i].freed = true;
}

#endif
