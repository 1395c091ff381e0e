/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stack.c - memory of stacks: slabs per worker and size, a guard below each.
 *
 * Slabs are cut from regions of address space, each twice as large as the one before: a mapping is
 * made under the kernel's one lock on all of them, where it waits for the other workers' guards.
 * Pages are left to the first touch, by the thread itself, which goes on with what the kernel
 * has just cleared.
 *
 * Guards by MADV_GUARD_INSTALL (Linux 6.13), which needs no mapping of its own; a slab's guards in
 * one call.  Else by mprotect, two mappings each, for as many as half of vm.max_map_count allows;
 * beyond that a canary at the lowest word, looked at whenever the thread stops.
 */
#include "base/assert.h"
#include "ult/ult_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include "base/log.h"
#include "base/settings.h"

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif
#define SELF_GROUP (-10001) /* PIDFD_SELF_THREAD_GROUP, Linux 6.14 */

#define SLAB_BYTES ((size_t)2 << 20)
#define SLAB_STACKS 256u
#define REGION_BYTES ((size_t)256 << 20) /* at most: address space, not memory */
#define CANARY 0x7765667420656e64u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
enum { UNKNOWN, BY_ADVICE, BY_MPROTECT };
static _Atomic int x_how;       /* written under lock; once by mprotect, for ever */
static long mprotects_left;     /* under lock */
static uint64_t unguarded;      /* under lock */
static _Atomic bool x_no_group; /* this kernel knows no advice for many pieces */
static _Atomic uint64_t x_stacks, x_bytes, x_given_back;
_Atomic bool weft_ult_x_canaries;

int weft_ult_stack_class(size_t size)
{
	/* Sanitizers need several times as much. */
	if (WEFT_ULT_SANITIZED && size < 65536)
		size = 65536;
	if (weft_likely(size <= 4096))
		return 0;
	int class = 64 - __builtin_clzll(size - 1) - 12;
	return class < WEFT_ULT_CLASSES ? class : -1;
}

/* ---- guards ---------------------------------------------------------------------------------- */

static long map_limit(void)
{
	FILE *f = fopen("/proc/sys/vm/max_map_count", "re");
	long n = 65530;
	if (f) {
		if (fscanf(f, "%ld", &n) != 1)
			n = 65530;
		fclose(f);
	}
	return n;
}

/* One advice for n pieces of `step` bytes apart, `len` long each.  No lock of ours: workers that
 * make stacks at once do it side by side. */
static bool advise_pieces(char *at, size_t step, size_t len, unsigned n, int advice)
{
	struct iovec v[SLAB_STACKS];
	/* Relaxed: a thread that does not know it yet finds out by itself. */
	if (!atomic_load_explicit(&x_no_group, memory_order_relaxed) &&
	    !weft_ult_under_valgrind()) {
		for (unsigned i = 0; i < n; i++)
			v[i] = (struct iovec){at + i * step, len};
		long done =
			syscall(SYS_process_madvise, SELF_GROUP, v, (unsigned long)n, advice, 0);
		if (done == (long)(n * len))
			return true;
		if (done < 0 && errno != EINTR && errno != EAGAIN)
			atomic_store_explicit(&x_no_group, true, memory_order_relaxed);
	}
	for (unsigned i = 0; i < n; i++)
		if (madvise(at + i * step, len, advice))
			return false;
	return true;
}

/* How guards are made; asked once. */
static int how_guarded(void)
{
	/* Relaxed: what belongs to mprotect is under the lock. */
	int how = atomic_load_explicit(&x_how, memory_order_relaxed);
	if (weft_likely(how != UNKNOWN))
		return how;
	pthread_mutex_lock(&lock);
	if (atomic_load_explicit(&x_how, memory_order_relaxed) == UNKNOWN) {
		long given = (long)weft_setting_int(WEFT_SET_ULT_GUARDS);
		mprotects_left = given >= 0 ? given : map_limit() / 4;
		atomic_store_explicit(&x_how, given >= 0 ? BY_MPROTECT : BY_ADVICE,
				      memory_order_relaxed);
	}
	how = atomic_load_explicit(&x_how, memory_order_relaxed);
	pthread_mutex_unlock(&lock);
	return how;
}

static void install_guards(char *slab_at, size_t step, unsigned n)
{
	if (how_guarded() == BY_ADVICE) {
		if (advise_pieces(slab_at, step, WEFT_ULT_GUARD, n, MADV_GUARD_INSTALL))
			return;
		weft_debug("this kernel has no light guards: by mprotect");
		atomic_store_explicit(&x_how, BY_MPROTECT, memory_order_relaxed);
	}
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < n; i++) {
		if (mprotects_left > 0 &&
		    mprotect(slab_at + i * step, WEFT_ULT_GUARD, PROT_NONE) == 0) {
			mprotects_left--;
			continue;
		}
		mprotects_left = 0;
		/* Relaxed: read by the taker of a stack from here, under a lock. */
		if (!atomic_exchange_explicit(&weft_ult_x_canaries, true, memory_order_relaxed))
			weft_info("no more guards below stacks: canaries");
		unguarded++;
	}
	pthread_mutex_unlock(&lock);
}

void weft_ult_stacks_cold(const struct iovec *v, unsigned n, unsigned stacks)
{
	/* Lazily: no page is touched now, and one that is used again before costs nothing. */
	if (syscall(SYS_process_madvise, SELF_GROUP, v, (unsigned long)n, MADV_FREE, 0) < 0)
		for (unsigned i = 0; i < n; i++)
			(void)madvise(v[i].iov_base, v[i].iov_len, MADV_FREE);
	/* Relaxed: a count. */
	atomic_fetch_add_explicit(&x_given_back, stacks, memory_order_relaxed);
}

void weft_ult_stack_mark(struct weft_ult *t)
{
	uint64_t word = CANARY;
	memcpy(t->stack, &word, sizeof word);
}

bool weft_ult_stack_intact(const struct weft_ult *t)
{
	uint64_t word;
	memcpy(&word, t->stack, sizeof word);
	return word == CANARY;
}

/* ---- slabs -------------------------------------------------------------------------------------
 */

/* Address space for slabs of `bytes`: as much again as there was, or what can be had. */
static weft_err region_new(struct weft_ult_slab *slab, size_t bytes)
{
	size_t n = slab->region_slabs ? 2 * slab->region_slabs : 1;
	if (n * bytes > REGION_BYTES)
		n = REGION_BYTES / bytes > 1 ? REGION_BYTES / bytes : 1;
	for (;; n /= 2) { /* ends: at one slab */
		char *m = mmap(NULL, n * bytes, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
		if (m != MAP_FAILED) {
			/* A page is all that most stacks touch. */
			(void)madvise(m, n * bytes, MADV_NOHUGEPAGE);
			slab->region = m;
			slab->region_slabs = slab->region_left = n;
			atomic_fetch_add_explicit(&x_bytes, n * bytes,
						  memory_order_relaxed); /* a count */
			return WEFT_OK;
		}
		if (n == 1)
			return WEFT_ERR_NOMEM;
	}
}

static weft_err slab_new(struct weft_ult_slab *slab, int class)
{
	size_t step = weft_ult_stack_step(class);
	weft_assert(class >= 0 && class < WEFT_ULT_CLASSES && !slab->left);
	size_t n = SLAB_BYTES / step;
	n = n < 1 ? 1 : n > SLAB_STACKS ? SLAB_STACKS : n;
	if (!slab->region_left && region_new(slab, n * step)) {
		weft_error("no memory for stacks of %zu bytes: %s", weft_ult_stack_bytes(class),
			   strerror(errno));
		return WEFT_ERR_NOMEM;
	}
	char *m = slab->region;
	slab->region += n * step;
	slab->region_left--;
	install_guards(m, step, (unsigned)n);
	for (size_t i = 0; i < n; i++)
		weft_ult_tell_stack(m + i * step + WEFT_ULT_GUARD, step - WEFT_ULT_GUARD);
	slab->at = m;
	slab->left = (unsigned)n;
	return WEFT_OK;
}

weft_err weft_ult_stacks_get(struct weft_ult_slab *slab, int class, unsigned n, char **stack)
{
	size_t step = weft_ult_stack_step(class);
	for (unsigned i = 0; i < n;) { /* ends: each turn hands out some */
		weft_err err = slab->left ? WEFT_OK : slab_new(slab, class);
		if (err)
			return err;
		unsigned some = slab->left < n - i ? slab->left : n - i;
		char *at = slab->at;
		for (unsigned k = 0; k < some; k++)
			stack[i++] = at + k * step + WEFT_ULT_GUARD;
		slab->at += some * step;
		slab->left -= some;
	}
	atomic_fetch_add_explicit(&x_stacks, n, memory_order_relaxed); /* a count */
	return WEFT_OK;
}

void weft_ult_stack_describe(FILE *out)
{
	fprintf(out, "  stacks: %llu in %llu MiB of address space, guards by %s",
		(unsigned long long)atomic_load_explicit(&x_stacks, memory_order_relaxed),
		(unsigned long long)(atomic_load_explicit(&x_bytes, memory_order_relaxed) >> 20),
		how_guarded() == BY_MPROTECT ? "mprotect" : "MADV_GUARD_INSTALL");
#ifdef WEFT_VALGRIND
	fputs(", known to valgrind", out);
#endif
	pthread_mutex_lock(&lock);
	if (unguarded)
		fprintf(out, ", %llu with a canary instead", (unsigned long long)unguarded);
	pthread_mutex_unlock(&lock);
	uint64_t back = atomic_load_explicit(&x_given_back, memory_order_relaxed);
	if (back)
		fprintf(out, ", memory of dead ones given back %llu times",
			(unsigned long long)back);
	fputc('\n', out);
}
