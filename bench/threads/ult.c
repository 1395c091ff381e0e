/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ult.c - what does it cost to switch, create, block and wake a thread?
 *
 * Unit      nanoseconds; a million threads: seconds and KiB for each.
 * Bound     rows "limit": a switch is no faster than two stacks exchanged with their control words,
 *           two workers no faster than a word that goes from one core to the other and back.
 *           One of 100,000 at random: cache and TLB misses for its stack and its descriptor.  A
 *           million: a page of stack each.
 * Method    medians of blocks of some milliseconds.  The same with kernel threads: --pthreads.
 *
 * ult [--quick] [--pthreads] [CASE...]
 */
#include "bench.h"
#include "order.h"
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <weft/ult.h>

#define BLOCKS 15

static int quick, plain;
static double block[BENCH_BLOCKS_MAX];

static double now_ns(void)
{
	return bench_now_us() * 1e3;
}

static void row(const char *name, double ns)
{
	bench_row(name, "time", "ns", ns);
}

/* ---- a thread of either kind ------------------------------------------------------------------
 */

struct thread {
	weft_ult *ult;
	pthread_t plain;
	sem_t sem; /* a plain one parks here */
	void *(*fn)(void *);
	void *arg;
};

static void start(struct thread *t, void *(*fn)(void *), void *arg, int worker)
{
	t->fn = fn;
	t->arg = arg;
	if (!plain) {
		struct weft_ult_attr a = WEFT_ULT_ATTR_INIT;
		a.worker = worker;
		a.stack_size = 4096;
		if (weft_ult_create(&t->ult, &a, fn, arg))
			exit(1);
		return;
	}
	pthread_attr_t a;
	pthread_attr_init(&a);
	pthread_attr_setstacksize(&a, 64 << 10);
	if (worker >= 0) {
		cpu_set_t may, one;
		sched_getaffinity(0, sizeof(may), &may);
		int nth = worker % CPU_COUNT(&may);
		CPU_ZERO(&one);
		for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
			if (CPU_ISSET(cpu, &may) && nth-- == 0)
				CPU_SET(cpu, &one);
		pthread_attr_setaffinity_np(&a, sizeof(one), &one);
	}
	sem_init(&t->sem, 0, 0);
	if (pthread_create(&t->plain, &a, fn, arg))
		exit(1);
	pthread_attr_destroy(&a);
}

static void end(struct thread *t)
{
	if (plain)
		pthread_join(t->plain, NULL);
	else
		weft_ult_join(t->ult, NULL);
}

static void park(struct thread *me)
{
	if (plain)
		sem_wait(&me->sem);
	else
		weft_ult_park();
}

static void unpark(struct thread *t)
{
	if (plain)
		sem_post(&t->sem);
	else
		weft_ult_unpark(t->ult);
}

/* ---- switch ------------------------------------------------------------------------------------
 */

static long turns;

static void *yields(void *arg)
{
	int first = arg != NULL;
	for (int b = 0; b < BLOCKS; b++) {
		double t = now_ns();
		for (long i = 0; i < turns; i++)
			plain ? (void)sched_yield() : weft_ult_yield();
		if (first)
			block[b] = (now_ns() - t) / (double)turns / 2;
	}
	return NULL;
}

static void bench_switch(void)
{
	struct thread t[2];
	turns = plain ? 20000 : 200000;
	start(&t[0], yields, NULL, 0);
	start(&t[1], yields, &turns, 0);
	end(&t[0]);
	end(&t[1]);
	row("switch", bench_median(block, BLOCKS));
}

/* All are ready, and take turns: many stacks, but who comes next is known. */
static void *yields_among(void *arg)
{
	(void)arg;
	for (long i = 0; i < turns; i++)
		weft_ult_yield();
	return NULL;
}

static struct thread *yielders;
static int yielder_count;
static double yielders_ns;

/* A thread of their worker: none of them begins before all are there. */
static void *starts_yielders(void *arg)
{
	(void)arg;
	for (int i = 0; i < yielder_count; i++)
		start(&yielders[i], yields_among, NULL, 0);
	/* The first turn of each, and its end, count as well. */
	double began = now_ns();
	for (int i = 0; i < yielder_count; i++)
		end(&yielders[i]);
	yielders_ns = now_ns() - began;
	return NULL;
}

static void bench_switch_many(void)
{
	char name[64];
	struct thread t;
	yielder_count = quick ? 10000 : 100000;
	yielders = calloc((size_t)yielder_count, sizeof(*yielders));
	turns = 10;
	start(&t, starts_yielders, NULL, 0);
	end(&t);
	snprintf(name, sizeof(name), "switch among %d", yielder_count);
	row(name, yielders_ns / yielder_count / (double)(turns + 1));
	free(yielders);
}

/* ---- limits ------------------------------------------------------------------------------------
 */

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

/* ---- block and wake ----------------------------------------------------------------------------
 */

static struct thread pair[2];
static _Atomic int x_turn;

static void *plays(void *arg)
{
	int me = arg != NULL;
	for (int b = 0; b < BLOCKS; b++) {
		double t = now_ns();
		for (long i = 0; i < turns; i++) {
			while (atomic_load_explicit(&x_turn, memory_order_acquire) != me)
				park(&pair[me]);
			atomic_store_explicit(&x_turn, !me, memory_order_release);
			unpark(&pair[!me]);
		}
		if (me)
			block[b] = (now_ns() - t) / (double)turns;
	}
	return NULL;
}

static void bench_wake(const char *name, int other)
{
	turns = plain ? (quick ? 1000 : 5000) : other ? 20000 : 100000;
	atomic_store(&x_turn, 2);
	start(&pair[0], plays, NULL, 0);
	start(&pair[1], plays, &turns, other);
	atomic_store(&x_turn, 0);
	unpark(&pair[0]);
	end(&pair[0]);
	end(&pair[1]);
	row(name, bench_median(block, BLOCKS));
}

/* ---- create and join ---------------------------------------------------------------------------
 */

static void *nothing(void *arg)
{
	return arg;
}

static void *creates(void *arg)
{
	(void)arg;
	for (int b = 0; b < BLOCKS; b++) {
		double t = now_ns();
		for (long i = 0; i < turns; i++) {
			struct thread child;
			start(&child, nothing, NULL, -1);
			end(&child);
		}
		block[b] = (now_ns() - t) / (double)turns;
	}
	return NULL;
}

static void bench_create(void)
{
	struct thread t;
	turns = plain ? 200 : 50000;
	start(&t, creates, NULL, 0);
	end(&t);
	row("create and join", bench_median(block, BLOCKS));
}

/* ---- a mutex that four threads want ------------------------------------------------------------
 */

static weft_ult_mutex mutex = WEFT_ULT_MUTEX_INIT;
static pthread_mutex_t plain_mutex = PTHREAD_MUTEX_INITIALIZER;
static long shared_count;

static void *locks(void *arg)
{
	(void)arg;
	for (long i = 0; i < turns; i++) {
		if (plain) {
			pthread_mutex_lock(&plain_mutex);
			shared_count++;
			pthread_mutex_unlock(&plain_mutex);
		} else {
			weft_ult_mutex_lock(&mutex);
			shared_count++;
			weft_ult_mutex_unlock(&mutex);
		}
	}
	return NULL;
}

static void bench_mutex(void)
{
	struct thread t[4];
	turns = 50000;
	for (int b = 0; b < BLOCKS; b++) {
		double began = now_ns();
		for (int i = 0; i < 4; i++)
			start(&t[i], locks, NULL, i % 2);
		for (int i = 0; i < 4; i++)
			end(&t[i]);
		block[b] = (now_ns() - began) / (double)turns / 4;
	}
	row("mutex of 4 on 2 cores", bench_median(block, BLOCKS));
}

/* ---- many --------------------------------------------------------------------------------------
 */

static struct thread *many;
static int *after; /* who is woken by whom: one random cycle */
static int count;
static _Atomic long x_hops;
static long hops_first, hops_max; /* a round first, in which each finds out whom it wakes */
static double hops_began, hops_end;

/* Whom it wakes it keeps on its stack: no table is looked up in a hop. */
static void *hops(void *arg)
{
	struct thread *me = arg, *next = &many[after[me - many]];
	weft_ult *next_ult = NULL;
	for (;;) {
		if (plain)
			park(me);
		else
			weft_ult_park();
		long h = atomic_load_explicit(&x_hops, memory_order_relaxed) + 1;
		atomic_store_explicit(&x_hops, h, memory_order_relaxed);
		if (h == hops_first)
			hops_began = now_ns();
		if (h == hops_max)
			hops_end = now_ns();
		if (!next_ult)
			next_ult = next->ult;
		if (plain)
			unpark(next);
		else
			weft_ult_unpark(next_ult);
		if (h >= hops_max)
			return NULL;
	}
}

static void bench_random(void)
{
	char name[64];
	count = plain ? 1000 : 100000;
	hops_first = count;
	hops_max = hops_first + (plain ? 20000 : 1000000);
	many = calloc((size_t)count, sizeof(*many));
	after = malloc(sizeof(*after) * (size_t)count);
	order_cycle(after, count);
	for (int i = 0; i < count; i++)
		start(&many[i], hops, &many[i], 0);
	unpark(&many[0]);
	for (int i = 0; i < count; i++)
		end(&many[i]);
	snprintf(name, sizeof(name), "one of %d at random", count);
	row(name, (hops_end - hops_began) / (double)(hops_max - hops_first));
	free(many);
	free(after);
}

static _Atomic int x_blocked, x_open;

static void *blocks(void *arg)
{
	struct thread *me = arg;
	atomic_fetch_add_explicit(&x_blocked, 1, memory_order_relaxed);
	while (!atomic_load_explicit(&x_open, memory_order_acquire))
		park(me);
	return NULL;
}

static int creators;
static double phase[3];

static void *creates_part(void *arg)
{
	int part = (int)(long)arg, from = count / creators * part, to = from + count / creators;
	for (int i = from; i < to; i++)
		start(&many[i], blocks, &many[i], -1);
	return NULL;
}

static void *wakes_part(void *arg)
{
	int part = (int)(long)arg, from = count / creators * part, to = from + count / creators;
	for (int i = from; i < to; i++)
		unpark(&many[i]);
	for (int i = from; i < to; i++)
		end(&many[i]);
	return NULL;
}

static void each_part(void *(*fn)(void *))
{
	struct thread t[2];
	for (int i = 0; i < creators; i++)
		start(&t[i], fn, (void *)(long)i, i);
	for (int i = 0; i < creators; i++)
		end(&t[i]);
}

static void bench_million(void)
{
	char name[64];
	count = plain ? 5000 : quick ? 100000 : 1000000;
	creators = weft_ult_workers() > 1 && !plain ? 2 : 1;
	many = malloc(sizeof(*many) * (size_t)count);
	memset(many, 0, sizeof(*many) * (size_t)count);
	long before = bench_memory_kib();
	double t = now_ns();
	each_part(creates_part);
	while (atomic_load(&x_blocked) < count / creators * creators)
		usleep(100);
	phase[0] = (now_ns() - t) / 1e9;
	long blocked = bench_memory_kib();
	atomic_store(&x_open, 1);
	double woken = now_ns();
	each_part(wakes_part);
	phase[1] = (now_ns() - woken) / 1e9;
	snprintf(name, sizeof(name), "%d threads on %d", count, creators);
	bench_row(name, "created and blocked", "s", phase[0]);
	bench_row(name, "woken and ended", "s", phase[1]);
	bench_row(name, "memory of each", "KiB", (double)(blocked - before) / count);
	free(many);
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

/* What as many threads cannot do without: a page of stack each, touched, with a guard below. */
static void bench_limit_million(void)
{
	enum { STEP = 8192, SLAB = 256 };
	int n = quick ? 100000 : 1000000;
	char name[64];
	double t = now_ns();
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
	snprintf(name, sizeof(name), "limit: %d pages with guards", n);
	bench_row(name, "touched", "s", (now_ns() - t) / 1e9);
	munmap(m, size);
	/* And what the pages alone take, side by side, in one call: no thread could do with less.
	 */
	size = (size_t)n * 4096;
	m = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		 -1, 0);
	if (m == MAP_FAILED)
		exit(1);
	madvise(m, size, MADV_NOHUGEPAGE);
	t = now_ns();
	if (madvise(m, size, 23)) /* MADV_POPULATE_WRITE */
		memset(m, 1, size);
	snprintf(name, sizeof(name), "limit: %d pages in a row", n);
	bench_row(name, "populated", "s", (now_ns() - t) / 1e9);
	munmap(m, size);
}

static int wanted(int argc, char **argv, const char *name)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], name) == 0)
			return 1;
	return argc == 1;
}

int main(int argc, char **argv)
{
	int kept = 1, workers = 2;
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--quick") == 0)
			quick = 1;
		else if (strcmp(argv[i], "--pthreads") == 0)
			plain = 1;
		else
			argv[kept++] = argv[i];
	}
	argc = kept;
	cpu_set_t may;
	sched_getaffinity(0, sizeof(may), &may);
	if (wanted(argc, argv, "million-on-1"))
		workers = argc > 1 ? 1 : 2;
	if (!plain && weft_ult_start(workers))
		return 1;
	if (wanted(argc, argv, "switch"))
		bench_switch();
	if (!plain && wanted(argc, argv, "switch-many"))
		bench_switch_many();
	if (!plain && wanted(argc, argv, "limit")) {
		bench_limit_switch();
		bench_limit_random();
		if (CPU_COUNT(&may) > 1)
			bench_limit_cores();
	}
	if (wanted(argc, argv, "create"))
		bench_create();
	if (wanted(argc, argv, "wake"))
		bench_wake("block and wake on one worker", 0);
	if (wanted(argc, argv, "wake2"))
		bench_wake("block and wake over two workers", 1);
	if (wanted(argc, argv, "mutex"))
		bench_mutex();
	if (wanted(argc, argv, "random"))
		bench_random();
	if (!plain && wanted(argc, argv, "million-on-1"))
		bench_limit_million();
	if (wanted(argc, argv, "million") || wanted(argc, argv, "million-on-1"))
		bench_million();
	return 0;
}
