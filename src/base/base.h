/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * base.h - small things that every layer uses: attributes, cache lines, the pause, the clock.
 *
 * Callers   any thread, signal handlers included.
 */
#ifndef WEFT_BASE_H
#define WEFT_BASE_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include <weft/err.h>

#define WEFT_CACHELINE 64

#define weft_must_use __attribute__((warn_unused_result))
#define weft_likely(x) __builtin_expect(!!(x), 1)
#define weft_unlikely(x) __builtin_expect(!!(x), 0)
#define weft_container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))
#define weft_countof(a) (sizeof(a) / sizeof((a)[0]))

/* The object of the standard ABI and the weft_ functions; everything else stays hidden. */
#define WEFT_API __attribute__((visibility("default")))

/* Tells the core that we spin. */
static inline void weft_cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/* The line will be written soon: fetch it for that, without waiting. */
static inline void weft_prefetch_write(const void *p)
{
#if defined(__x86_64__)
	/* gcc makes a fetch for reading of the builtin; cores that lack this one ignore it. */
	__asm__ volatile("prefetchw %0" : : "m"(*(const char *)p));
#else
	__builtin_prefetch(p, 1);
#endif
}

/* Keeps the compiler, not the core, from moving accesses across. */
static inline void weft_compiler_barrier(void)
{
	atomic_signal_fence(memory_order_seq_cst);
}

#define WEFT_NEVER UINT64_MAX /* as a deadline of weft_clock_ns(): there is none */

/* Nanoseconds of CLOCK_MONOTONIC. */
static inline uint64_t weft_clock_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* A cheap, monotonic-enough cycle count for bounding spins; never for protocol decisions. */
static inline uint64_t weft_cycles(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
	uint64_t v;
	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(v));
	return v;
#else
	return weft_clock_ns();
#endif
}

/* How many weft_cycles() pass in a microsecond; measured at the first call, which lasts until 0.1 ms
 * have passed since the library was loaded. */
uint64_t weft_cycles_per_us(void);

static inline size_t weft_align_up(size_t n, size_t to)
{
	return (n + to - 1) & ~(to - 1);
}

/* A small generator for tests, back-off and tie-breaks (splitmix64); not for secrets. */
static inline uint64_t weft_rand_next(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15u);
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

#endif
