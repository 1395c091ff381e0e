/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ctx.h - a suspended computation on a stack of its own, and how to change to it.
 *
 * A context is the stack pointer where its callee-saved registers and its floating-point control
 * words lie.  Control words are loaded only when the two sides differ.  Assembly for x86-64 and
 * AArch64; elsewhere, and with WEFT_CTX_UCONTEXT defined, ucontext.
 *
 * Callers   the thread that runs on the stack that is left.
 * Shadow    stacks (CET): the object is not marked for them, so the loader leaves them off.
 */
#ifndef WEFT_ULT_CTX_H
#define WEFT_ULT_CTX_H

#include <stdint.h>

/* A context that will call entry(arg) on the stack that ends at top (aligned to 16).  entry must
 * not return.  arg is what the first switch to it hands over. */
void *weft_ult_ctx_make(void *top, void (*entry)(void *arg));

/* Stores this context in *save_p, goes to `to`; returns the arg of the switch that comes back. */
void *weft_ult_ctx_switch(void **save_p, void *to, void *arg);

/*
 * The same without a call: threads that stop in one and the same function are predicted to return
 * where they do.  Only in files that are compiled without a red zone: those of ult/.
 *
 * A frame, from the stack pointer up: control words, five words of the first switch, rbp, where to
 * go on; the compiler keeps what else it needs.  Exception flags are not control: they stay.  The
 * code that goes on takes the stack, from rsi: until then a signal finds the one that was left.
 */
#if defined(__x86_64__) && !defined(WEFT_CTX_UCONTEXT)
#ifdef __AVX512F__
#define WEFT_CTX_WIDE                                                                              \
	, "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24",         \
		"xmm25", "xmm26", "xmm27", "xmm28", "xmm29", "xmm30", "xmm31", "k1", "k2", "k3",   \
		"k4", "k5", "k6", "k7"
#else
#define WEFT_CTX_WIDE
#endif
static inline __attribute__((always_inline)) void *weft_ult_ctx_swap(void **save_p, void *to,
								     void *arg)
{
	void *got;
	__asm__ volatile("leaq -64(%%rsp), %%rsp\n"
			 "	movq %%rbp, 48(%%rsp)\n"
			 "	leaq 5f(%%rip), %%rax\n"
			 "	movq %%rax, 56(%%rsp)\n"
			 "	stmxcsr (%%rsp)\n"
			 "	fnstcw 4(%%rsp)\n"
			 "	movl (%%rsp), %%ecx\n"
			 "	movzwl 4(%%rsp), %%r8d\n"
			 "	movq %%rsp, (%%rdi)\n"
			 "	xorl (%%rsi), %%ecx\n"
			 "	testl $0xffc0, %%ecx\n"
			 "	jne 2f\n"
			 "1:	cmpw 4(%%rsi), %%r8w\n"
			 "	jne 3f\n"
			 "4:	movq %%rdx, %%rax\n"
			 "	notrack jmp *56(%%rsi)\n"
			 "2:	ldmxcsr (%%rsi)\n"
			 "	jmp 1b\n"
			 "3:	fldcw 4(%%rsi)\n"
			 "	jmp 4b\n"
			 "5:	movq 48(%%rsi), %%rbp\n"
			 "	leaq 64(%%rsi), %%rsp\n"
			 : "=a"(got), "+D"(save_p), "+S"(to), "+d"(arg)
			 :
			 : "rbx", "rcx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",
			   "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8",
			   "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "st",
			   "st(1)", "st(2)", "st(3)", "st(4)", "st(5)", "st(6)", "st(7)", "memory",
			   "cc" WEFT_CTX_WIDE);
	return got;
}
#else
#define weft_ult_ctx_swap weft_ult_ctx_switch
#endif

/*
 * The first frame of a user-level thread, in its descriptor: its stack is not touched before it
 * runs.  64 bytes, from control to go; those between are the descriptor's.
 */
#if defined(__x86_64__) && !defined(WEFT_CTX_UCONTEXT)
#define WEFT_CTX_FIRST
struct weft_ctx_first {
	uint32_t mxcsr;
	uint16_t fpucw;
	void *top;
};

/* Where it goes on: calls weft_ult_begin(arg). */
void weft_ult_ctx_first(void);

static inline void *weft_ult_ctx_first_make(struct weft_ctx_first *f, void (**go)(void), void *top)
{
	__asm__ volatile("stmxcsr %0" : "=m"(f->mxcsr));
	__asm__ volatile("fnstcw %0" : "=m"(f->fpucw));
	f->top = top;
	*go = weft_ult_ctx_first;
	return f;
}
#endif

/* Calls fn(arg) on the free part of a stack, which ends at ctx, or of a suspended context's.  fn
 * may switch if the context that is suspended there is never resumed. */
void weft_ult_ctx_call(void *ctx, void (*fn)(void *arg), void *arg);

#endif
