/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * live_ult.c - the user-level threads of a running process: how many run, are ready, wait, and for
 * what; some of them one by one.
 *
 * Read out of its memory while it goes on: a thread may be in another state by the time it is
 * printed, and nothing that was read is trusted further than the kernel checks addresses.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include "base/live.h"
#include "command.h"
#include "ult/sync/mutex.h"
#include "ult/ult_int.h"

#define KINDS_MAX 32 /* of things that are waited for */
#define KIND_LENGTH 40

static const char by_unpark[] = "weft_ult_unpark";
static const char by_event[] = "a message, a task or another event";

struct kind {
	uint64_t at; /* the text's address there; 1, 2: the two above */
	uint64_t count;
	char text[KIND_LENGTH];
};

struct view {
	int pid, most;
	weft_cmd_ult_fn *fn; /* instead of printing */
	void *fn_arg;
	int workers;
	uint64_t runs, ready, waits, listed;
	uint64_t current[WEFT_ULT_WORKERS_MAX];
	struct kind kind[KINDS_MAX];
	int kinds;
};

/* size bytes from address at of the process; false: not there, or not allowed. */
bool weft_cmd_fetch(int pid, uint64_t at, void *to, size_t size)
{
	struct iovec mine = {to, size}, its = {(void *)(uintptr_t)at, size};
	return process_vm_readv(pid, &mine, 1, &its, 1, 0) == (ssize_t)size;
}

/* A text there; it may lie at the end of a page. */
void weft_cmd_fetch_text(int pid, uint64_t at, char *to, size_t size)
{
	memset(to, 0, size);
	for (size_t i = 0; i + 1 < size && weft_cmd_fetch(pid, at + i, to + i, 1) && to[i]; i++)
		; /* ends: size, the text's end, or no memory */
}

static struct kind *kind_of(struct view *v, const struct weft_ult *t, uint32_t parked)
{
	uint64_t at =
		(uint64_t)(uintptr_t)atomic_load_explicit(&t->x_waits_for, memory_order_relaxed);
	if (!at)
		at = parked & WEFT_ULT_WAITS_TOKEN ? 1 : 2;
	for (int i = 0; i < v->kinds; i++)
		if (v->kind[i].at == at)
			return &v->kind[i];
	if (v->kinds == KINDS_MAX)
		return &v->kind[KINDS_MAX - 1];
	struct kind *k = &v->kind[v->kinds++];
	k->at = at;
	if (at > 2)
		weft_cmd_fetch_text(v->pid, at, k->text, sizeof k->text);
	else
		snprintf(k->text, sizeof k->text, "%s", at == 1 ? by_unpark : by_event);
	return k;
}

static void print_name(int worker, uint32_t slot, const char *name)
{
	printf("%d.%u%s%.*s", worker, slot, name[0] ? " " : "", WEFT_ULT_NAME - 1, name);
}

/* The thread that it waits for, where that is known: as src/ult/report.c does inside. */
static void print_other(struct view *v, const char *what, uint64_t on)
{
	struct weft_ult t;
	struct weft_ult_worker *home = NULL;
	uint64_t at = 0;
	uintptr_t owner;
	bool joins = strcmp(what, "the end of thread") == 0;
	if (joins)
		at = on;
	else if (strcmp(what, "mutex") == 0 && weft_cmd_fetch(v->pid, on, &owner, sizeof owner) &&
		 weft_ult_mutex_owner(owner))
		at = (uint64_t)(uintptr_t)weft_ult_mutex_owner(owner) -
		     offsetof(struct weft_ult, parker);
	if (!at || !weft_cmd_fetch(v->pid, at, &t, sizeof t))
		return;
	int id;
	home = t.home;
	if (!home || !weft_cmd_fetch(v->pid, (uint64_t)(uintptr_t)&home->id, &id, sizeof id))
		return;
	fputs(joins ? ", which is " : ", held by ", stdout);
	print_name(id, t.slot, t.name);
}

/* One that is alive; at: its address there. */
static void see(struct view *v, int worker, uint64_t at, const struct weft_ult *t)
{
	if (v->fn) {
		v->fn(v->fn_arg, worker, t->slot, t->name, t->parker.note);
		return;
	}
	uint32_t parked = atomic_load_explicit(&t->parker.x_word, memory_order_relaxed) &
			  (WEFT_ULT_PARKED | WEFT_ULT_WAITS_TOKEN);
	struct kind *k = parked ? kind_of(v, t, parked) : NULL;
	int on = -1;
	for (int i = 0; i < v->workers; i++)
		if (v->current[i] == at)
			on = i;
	if (k)
		k->count++;
	*(k ? &v->waits : on >= 0 ? &v->runs : &v->ready) += 1;
	if (v->listed >= (uint64_t)v->most)
		return;
	v->listed++;
	fputs("  thread ", stdout);
	print_name(worker, t->slot, t->name);
	if (k) {
		uint64_t which = (uint64_t)(uintptr_t)atomic_load_explicit(&t->x_waits_on,
									   memory_order_relaxed);
		printf(": waits for %s", k->text);
		if (which && k->at > 2)
			print_other(v, k->text, which);
	} else if (on >= 0) {
		printf(": runs on worker %d", on);
	} else {
		fputs(": is ready", stdout);
	}
	putchar('\n');
}

/* The first n threads of a chunk of worker w's. */
static bool see_chunk(struct view *v, int w, uint64_t at, uint32_t n)
{
	struct weft_ult *t = aligned_alloc(WEFT_CACHELINE, n * sizeof *t);
	bool ok = t && weft_cmd_fetch(v->pid, at, t, n * sizeof *t);
	for (uint32_t i = 0; ok && i < n; i++)
		if (weft_ult_is(&t[i], WEFT_ULT_ALIVE))
			see(v, w, at + i * sizeof *t, &t[i]);
	free(t);
	return ok;
}

static bool see_worker(struct view *v, int id, const struct weft_ult_worker *w)
{
	uint32_t slots = w->slots < WEFT_READY_SLOTS ? w->slots : WEFT_READY_SLOTS;
	for (uint32_t c = 0; c * WEFT_READY_CHUNK < slots; c++) { /* ends: slots are limited */
		uint32_t n = slots - c * WEFT_READY_CHUNK;
		uint64_t at = (uint64_t)(uintptr_t)atomic_load_explicit(&w->x_threads[c],
									memory_order_relaxed);
		if (at && !see_chunk(v, id, at, n < WEFT_READY_CHUNK ? n : WEFT_READY_CHUNK))
			return false;
	}
	return true;
}

static bool see_all(struct view *v, uint64_t ults_at)
{
	static struct weft_ult_all all;
	struct weft_ult_worker *w[WEFT_ULT_WORKERS_MAX];
	bool ok = weft_cmd_fetch(v->pid, ults_at, &all, sizeof all);
	while (ok && v->workers < WEFT_ULT_WORKERS_MAX && all.worker[v->workers]) {
		struct weft_ult_worker *one = aligned_alloc(WEFT_CACHELINE, sizeof *one);
		ok = one && weft_cmd_fetch(v->pid, (uint64_t)(uintptr_t)all.worker[v->workers], one,
					   sizeof *one);
		if (!ok) {
			free(one);
			break;
		}
		v->current[v->workers] = (uint64_t)(uintptr_t)one->current;
		w[v->workers++] = one;
	}
	for (int i = 0; i < v->workers; i++) {
		ok = ok && see_worker(v, i, w[i]);
		free(w[i]);
	}
	return ok;
}

static void print_sums(const struct view *v)
{
	uint64_t all = v->runs + v->ready + v->waits;
	if (all > v->listed && v->listed)
		printf("  and %llu more\n", (unsigned long long)(all - v->listed));
	printf("  %llu on %d workers: %llu run, %llu are ready, %llu wait\n",
	       (unsigned long long)all, v->workers, (unsigned long long)v->runs,
	       (unsigned long long)v->ready, (unsigned long long)v->waits);
	for (int i = 0; i < v->kinds; i++)
		printf("  %12llu wait for %s\n", (unsigned long long)v->kind[i].count,
		       v->kind[i].text);
}

uint64_t weft_cmd_live_part(const struct weft_live_head *h, const char *name, uint64_t layout,
			    bool *known)
{
	for (size_t i = 0; i < sizeof h->part / sizeof h->part[0]; i++) {
		const struct weft_live_part *p = &h->part[i];
		/* LOOK <- TOLD.  Carries: name and layout. */
		uint64_t at = atomic_load_explicit(&p->x_at, memory_order_acquire);
		if (!at || strncmp(p->name, name, sizeof p->name) != 0)
			continue;
		*known = p->layout == layout;
		return at;
	}
	return 0;
}

void weft_cmd_live_ults(int pid, const struct weft_live_head *h, int most)
{
	static struct view v;
	bool known;
	uint64_t at = weft_cmd_live_part(h, WEFT_ULT_LIVE, WEFT_ULT_LAYOUT, &known);
	if (!at)
		return;
	v = (struct view){.pid = pid, .most = most};
	printf("\n  user-level threads\n");
	if (!known)
		printf("  of a version that this one does not know\n");
	else if (!see_all(&v, at))
		printf("  not to be read: %s\n", strerror(errno));
	else
		print_sums(&v);
}

bool weft_cmd_live_each_ult(int pid, const struct weft_live_head *h, weft_cmd_ult_fn *fn, void *arg)
{
	static struct view v;
	bool known;
	uint64_t at = weft_cmd_live_part(h, WEFT_ULT_LIVE, WEFT_ULT_LAYOUT, &known);
	v = (struct view){.pid = pid, .fn = fn, .fn_arg = arg};
	return !at || (known && see_all(&v, at));
}
