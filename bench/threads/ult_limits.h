/* SPDX-License-Identifier: BSD-3-Clause */
/* ult_limits.h - what no thread can do without: rows "limit" of ult.c. */
#ifndef WEFT_BENCH_ULT_LIMITS_H
#define WEFT_BENCH_ULT_LIMITS_H

#include "bench.h"
#include "order.h"
#include "ult_thread.h"
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#if defined(__x86_64__)
static void *stack_of[2];
static int running;

/* What no switch can do without: leave, note where, keep the control words, go there. */
static __attribute__((noinline)) void exchange(void)
{
	int me = running;
	void *save = &stack_of[me], *to = stack_of[!me];
	running = !me;
	__asm__ volatile("subq $192, %%rsp\n"
			 "	movq %%rbp, 8(%%rsp)\n"
			 "	leaq 1f(%%rip), %%rax\n"
			 "	movq %%rax, 16(%%rsp)\n"
			 "	stmxcsr (%%rsp)\n"
			 "	fnstcw 4(%%rsp)\n"
			 "	movq %%rsp, (%0)\n"
			 "	movq %1, %%rsp\n"
			 "	jmp *16(%%rsp)\n"
			 "1:	movq 8(%%rsp), %%rbp\n"
			 "	addq $192, %%rsp\n"
			 : "+D"(save), "+S"(to)
			 :
			 : "rax", "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13",
			   "r14", "r15", "memory", "cc");
}

static __attribute__((noinline)) void exchanges(void)
{
	for (long i = 0; i < turns; i++)
		exchange();
}

static void other_side(void)
{
	for (;;)
		exchanges();
}

static void bench_limit_switch(void)
{
	size_t size = 65536;
	char *stack = aligned_alloc(64, size);
	void **frame = (void **)(stack + size - 512);
	turns = 200000;
	/* As after a call: the stack is off by one word. */
	frame[2] = (void *)(uintptr_t)other_side;
	stack_of[1] = (void *)((char *)frame - 8);
	((void **)stack_of[1])[2] = (void *)(uintptr_t)other_side;
	running = 0;
	for (int b = 0; b < BLOCKS; b++) {
		double t = now_ns();
		exchanges();
		block[b] = (now_ns() - t) / (double)turns / 2;
	}
	row("limit: two stacks exchanged", bench_median(block, BLOCKS));
	free(stack);
}
#else
static void bench_limit_switch(void)
{
}
#endif

static _Alignas(128) _Atomic int x_word;

static void *passes(void *arg)
{
	int me = arg != NULL;
	for (int b = 0; b < BLOCKS; b++) {
		double t = now_ns();
		for (long i = 0; i < turns; i++) {
			while (atomic_load_explicit(&x_word, memory_order_acquire) != me)
				;
			atomic_store_explicit(&x_word, !me, memory_order_release);
		}
		if (me)
			block[b] = (now_ns() - t) / (double)turns;
	}
	return NULL;
}

static void bench_limit_cores(void)
{
	int was = plain;
	struct thread t[2];
	plain = 1;
	turns = 50000;
	start(&t[0], passes, NULL, 0);
	start(&t[1], passes, &turns, 1);
	end(&t[0]);
	end(&t[1]);
	plain = was;
	row("limit: a word there and back", bench_median(block, BLOCKS));
}

/* A chain through one word of each of n pieces, in a random order. */
static double chain(int n, size_t step, int advice)
{
	size_t size = (size_t)n * step, huge = 2 << 20;
	char *map = mmap(NULL, size + huge, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	int *order = malloc(sizeof(*order) * (size_t)n);
	if (map == MAP_FAILED || !order)
		exit(1);
	char *m = map + (huge - (uintptr_t)map % huge) % huge;
	madvise(m, size, advice);
	order_fill(order, n, 1);
	for (int i = 0; i < n; i++)
		*(char **)(m + (size_t)order[i] * step) = m + (size_t)order[(i + 1) % n] * step;
	char *volatile at = m + (size_t)order[0] * step;
	for (int b = 0; b < BLOCKS; b++) {
		double t = now_ns();
		char *p = at;
		for (int i = 0; i < n; i++)
			p = *(char **)p;
		at = p;
		block[b] = (now_ns() - t) / n;
	}
	munmap(map, size + huge);
	free(order);
	return bench_median(block, BLOCKS);
}

/* What going to one of as many stacks at random cannot do without: a word of each, in their pages;
 * and how much of that is not the tables of pages, and not memory. */
static void bench_limit_random(void)
{
	int n = quick ? 10000 : 100000;
	char name[64];
	snprintf(name, sizeof(name), "limit: a word of %d stacks", n);
	row(name, chain(n, 8192, MADV_NOHUGEPAGE));
	snprintf(name, sizeof(name), "limit: the same in huge pages");
	row(name, chain(n, 4096, MADV_HUGEPAGE));
	snprintf(name, sizeof(name), "limit: %d words of a line each", n);
	row(name, chain(n, 64, MADV_HUGEPAGE));
}

/* Pages of stacks, touched, a guard below each, as two kernel threads or one make them. */
static void *makes_pages(void *arg)
{
	enum { STEP = 8192, SLAB = 256 };
	int n = *(int *)arg;
	size_t size = (size_t)(n + SLAB) * STEP;
	char *m = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (m == MAP_FAILED)
		exit(1);
	madvise(m, size, MADV_NOHUGEPAGE);
	for (int i = 0; i < n; i += SLAB) {
		struct iovec v[SLAB];
		for (int k = 0; k < SLAB; k++)
			v[k] = (struct iovec){m + (size_t)(i + k) * STEP, 4096};
		/* 102: MADV_GUARD_INSTALL; where the kernel has none, the limit is without. */
		(void)syscall(SYS_process_madvise, -10001, v, (unsigned long)SLAB, 102, 0);
		for (int k = 0; k < SLAB; k++)
			*(volatile char *)(m + (size_t)(i + k) * STEP + 8000) = 1;
	}
	return m;
}

static void bench_limit_pages(int n, int makers)
{
	char name[64];
	int was = plain, part = n / makers;
	struct thread t[2];
	plain = 1;
	double began = now_ns();
	for (int i = 0; i < makers; i++)
		start(&t[i], makes_pages, &part, i);
	for (int i = 0; i < makers; i++) {
		void *m;
		pthread_join(t[i].plain, &m);
		t[i].arg = m;
	}
	snprintf(name, sizeof(name), "limit: %d pages with guards on %d", n, makers);
	bench_row(name, "touched", "s", (now_ns() - began) / 1e9);
	for (int i = 0; i < makers; i++)
		munmap(t[i].arg, (size_t)(part + 256) * 8192);
	plain = was;
}

/* What the pages alone take, side by side, in one call: no thread could do with less. */
static void bench_limit_row(int n)
{
	char name[64];
	size_t size = (size_t)n * 4096;
	char *m = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (m == MAP_FAILED)
		exit(1);
	madvise(m, size, MADV_NOHUGEPAGE);
	double t = now_ns();
	if (madvise(m, size, 23)) /* MADV_POPULATE_WRITE */
		memset(m, 1, size);
	snprintf(name, sizeof(name), "limit: %d pages in a row", n);
	bench_row(name, "populated", "s", (now_ns() - t) / 1e9);
	munmap(m, size);
}

/* What as many threads cannot do without: a page of stack each, touched, with a guard below. */
static void bench_limit_million(int makers)
{
	int n = quick ? 100000 : 1000000;
	bench_limit_pages(n, makers);
	if (makers == 1)
		bench_limit_row(n);
}

#endif
