/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * san.h - tells sanitizers and valgrind about stacks and switches; nothing in other builds.
 *
 * ThreadSanitizer   each thread is a fiber of its own.
 * AddressSanitizer  is told before and after each switch on which stack it is.
 * valgrind          knows every stack; the cost is one instruction sequence when a slab is made.
 */
#ifndef WEFT_ULT_SAN_H
#define WEFT_ULT_SAN_H

#include <stddef.h>

#if defined(__SANITIZE_THREAD__)
#define WEFT_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WEFT_TSAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define WEFT_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WEFT_ASAN 1
#endif
#endif

#ifdef WEFT_TSAN
void *__tsan_get_current_fiber(void);
void *__tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void *fiber);
void __tsan_switch_to_fiber(void *fiber, unsigned flags);
#endif
#ifdef WEFT_ASAN
void __sanitizer_start_switch_fiber(void **fake_p, const void *bottom, size_t size);
void __sanitizer_finish_switch_fiber(void *fake, const void **bottom_p, size_t *size_p);
void __asan_unpoison_memory_region(const volatile void *addr, size_t size);
#endif

#if defined(WEFT_TSAN) || defined(WEFT_ASAN)
#define WEFT_ULT_SANITIZED 1
#else
#define WEFT_ULT_SANITIZED 0
#endif

/*
 * Requests to valgrind, a few instructions that do nothing elsewhere.  Written here for x86-64: its
 * header may come onto the machine after we were built, and then each switch would look like memory
 * that was never written.
 */
#if defined(__x86_64__)
#define WEFT_VALGRIND 1
enum { WEFT_VALGRIND_RUNNING = 0x1001, WEFT_VALGRIND_STACK = 0x1501 };

/* What valgrind answers; 0 without it. */
static inline unsigned long weft_ult_ask_valgrind(unsigned long what, const void *a, const void *b)
{
	unsigned long request[6] = {what, (unsigned long)a, (unsigned long)b}, answer = 0;
	__asm__ volatile("rolq $3, %%rdi\n\trolq $13, %%rdi\n\t"
			 "rolq $61, %%rdi\n\trolq $51, %%rdi\n\t"
			 "xchgq %%rbx, %%rbx"
			 : "+d"(answer)
			 : "a"(request)
			 : "cc", "memory");
	return answer;
}
#elif defined(__has_include)
#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#define WEFT_VALGRIND 1
enum { WEFT_VALGRIND_RUNNING, WEFT_VALGRIND_STACK };

static inline unsigned long weft_ult_ask_valgrind(unsigned long what, const void *a, const void *b)
{
	return what == WEFT_VALGRIND_RUNNING ? RUNNING_ON_VALGRIND : VALGRIND_STACK_REGISTER(a, b);
}
#endif
#endif

static inline void weft_ult_tell_stack(char *lowest, size_t bytes)
{
#ifdef WEFT_VALGRIND
	(void)weft_ult_ask_valgrind(WEFT_VALGRIND_STACK, lowest, lowest + bytes - 1);
#else
	(void)lowest;
	(void)bytes;
#endif
}

/* Under valgrind, which does not know the newest system calls? */
static inline int weft_ult_under_valgrind(void)
{
#ifdef WEFT_VALGRIND
	return weft_ult_ask_valgrind(WEFT_VALGRIND_RUNNING, NULL, NULL) != 0;
#else
	return 0;
#endif
}

#endif
