/* SPDX-License-Identifier: BSD-3-Clause */
/* ctx.c - the switch: assembly for two machines, ucontext for the others. */
#include "ult/sched/ctx.h"

#include <stddef.h>
#include <string.h>

#if defined(__x86_64__) && !defined(WEFT_CTX_UCONTEXT)

void *weft_ult_ctx_switch(void **save_p, void *to, void *arg)
{
	return weft_ult_ctx_swap(save_p, to, arg);
}

__asm__(".text\n"
	/* Where a new thread begins: nothing lies above, for code that walks the stack. */
	".p2align 4\n"
	".type weft_ctx_begin, @function\n"
	"weft_ctx_begin:\n"
	".cfi_startproc\n"
	".cfi_undefined rip\n"
	"	endbr64\n"
	"	movq 32(%rsi), %rcx\n"
	"	leaq 64(%rsi), %rsp\n"
	"	xorl %ebp, %ebp\n"
	"	movq %rax, %rdi\n"
	"	call *%rcx\n"
	"	ud2\n"
	".cfi_endproc\n"
	".size weft_ctx_begin, .-weft_ctx_begin\n"

	/* The same for one whose first frame lies elsewhere. */
	".p2align 4\n"
	".globl weft_ult_ctx_first\n"
	".hidden weft_ult_ctx_first\n"
	".type weft_ult_ctx_first, @function\n"
	"weft_ult_ctx_first:\n"
	".cfi_startproc\n"
	".cfi_undefined rip\n"
	"	endbr64\n"
	"	movq 8(%rsi), %rsp\n"
	"	xorl %ebp, %ebp\n"
	"	movq %rax, %rdi\n"
	"	call weft_ult_begin\n"
	"	ud2\n"
	".cfi_endproc\n"
	".size weft_ult_ctx_first, .-weft_ult_ctx_first\n"

	".p2align 4\n"
	".globl weft_ult_ctx_call\n"
	".hidden weft_ult_ctx_call\n"
	".type weft_ult_ctx_call, @function\n"
	"weft_ult_ctx_call:\n"
	".cfi_startproc\n"
	".cfi_signal_frame\n" /* its caller lies on another stack, above or below */
	"	endbr64\n"
	"	pushq %rbp\n"
	".cfi_def_cfa_offset 16\n"
	".cfi_offset rbp, -16\n"
	"	movq %rsp, %rbp\n"
	".cfi_def_cfa_register rbp\n"
	"	leaq -128(%rdi), %rsp\n" /* what the other keeps below, if anything */
	"	andq $-16, %rsp\n"
	"	movq %rdx, %rdi\n"
	"	call *%rsi\n"
	"	movq %rbp, %rsp\n"
	"	popq %rbp\n"
	".cfi_def_cfa rsp, 8\n"
	"	ret\n"
	".cfi_endproc\n"
	".size weft_ult_ctx_call, .-weft_ult_ctx_call\n");

_Static_assert(offsetof(struct weft_ctx_first, fpucw) == 4 &&
		       offsetof(struct weft_ctx_first, top) == 8,
	       "known to the assembly");

void weft_ctx_begin(void);

void *weft_ult_ctx_make(void *top, void (*entry)(void *arg))
{
	uint64_t *f = (uint64_t *)top - 8;
	uint32_t mxcsr;
	uint16_t fpucw;
	__asm__ volatile("stmxcsr %0" : "=m"(mxcsr));
	__asm__ volatile("fnstcw %0" : "=m"(fpucw));
	f[0] = mxcsr | (uint64_t)fpucw << 32;
	f[1] = f[2] = f[3] = f[5] = f[6] = 0;
	f[4] = (uint64_t)(uintptr_t)entry;          /* for weft_ctx_begin */
	f[7] = (uint64_t)(uintptr_t)weft_ctx_begin; /* where to go on */
	return f;
}

#elif defined(__aarch64__) && !defined(WEFT_CTX_UCONTEXT)

/* A frame of 176 bytes: x19..x30, d8..d15, the control register. */
__asm__(".text\n"
	".p2align 4\n"
	".globl weft_ult_ctx_switch\n"
	".hidden weft_ult_ctx_switch\n"
	".type weft_ult_ctx_switch, %function\n"
	"weft_ult_ctx_switch:\n"
	".cfi_startproc\n"
	"	hint #34\n" /* bti c */
	"	sub sp, sp, #176\n"
	".cfi_def_cfa_offset 176\n"
	"	stp x19, x20, [sp, #0]\n"
	"	stp x21, x22, [sp, #16]\n"
	"	stp x23, x24, [sp, #32]\n"
	"	stp x25, x26, [sp, #48]\n"
	"	stp x27, x28, [sp, #64]\n"
	"	stp x29, x30, [sp, #80]\n"
	".cfi_offset x29, -96\n"
	".cfi_offset x30, -88\n"
	"	stp d8, d9, [sp, #96]\n"
	"	stp d10, d11, [sp, #112]\n"
	"	stp d12, d13, [sp, #128]\n"
	"	stp d14, d15, [sp, #144]\n"
	"	mrs x3, fpcr\n"
	"	str x3, [sp, #160]\n"
	"	mov x4, sp\n"
	"	str x4, [x0]\n"
	"	mov sp, x1\n"
	"	ldr x5, [sp, #160]\n"
	"	cmp x3, x5\n"
	"	b.eq 1f\n"
	"	msr fpcr, x5\n"
	"1:	ldp x19, x20, [sp, #0]\n"
	"	ldp x21, x22, [sp, #16]\n"
	"	ldp x23, x24, [sp, #32]\n"
	"	ldp x25, x26, [sp, #48]\n"
	"	ldp x27, x28, [sp, #64]\n"
	"	ldp x29, x30, [sp, #80]\n"
	"	ldp d8, d9, [sp, #96]\n"
	"	ldp d10, d11, [sp, #112]\n"
	"	ldp d12, d13, [sp, #128]\n"
	"	ldp d14, d15, [sp, #144]\n"
	"	add sp, sp, #176\n"
	".cfi_def_cfa_offset 0\n"
	"	mov x0, x2\n"
	"	ret\n"
	".cfi_endproc\n"
	".size weft_ult_ctx_switch, .-weft_ult_ctx_switch\n"

	/* Global: the address of a local symbol, by way of the table of addresses, is its
	   section's. */
	".p2align 4\n"
	".globl weft_ctx_begin\n"
	".hidden weft_ctx_begin\n"
	".type weft_ctx_begin, %function\n"
	"weft_ctx_begin:\n"
	".cfi_startproc\n"
	".cfi_undefined x30\n"
	"	hint #36\n" /* bti j */
	"	mov x29, #0\n"
	"	mov x30, #0\n"
	"	blr x19\n"
	"	brk #1\n"
	".cfi_endproc\n"
	".size weft_ctx_begin, .-weft_ctx_begin\n"

	".p2align 4\n"
	".globl weft_ult_ctx_call\n"
	".hidden weft_ult_ctx_call\n"
	".type weft_ult_ctx_call, %function\n"
	"weft_ult_ctx_call:\n"
	".cfi_startproc\n"
	".cfi_signal_frame\n" /* its caller lies on another stack, above or below */
	"	hint #34\n"
	"	stp x29, x30, [sp, #-16]!\n"
	".cfi_def_cfa_offset 16\n"
	".cfi_offset x29, -16\n"
	".cfi_offset x30, -8\n"
	"	mov x29, sp\n"
	".cfi_def_cfa_register x29\n"
	"	sub x3, x0, #128\n"
	"	and x3, x3, #-16\n"
	"	mov sp, x3\n"
	"	mov x0, x2\n"
	"	blr x1\n"
	"	mov sp, x29\n"
	".cfi_def_cfa_register sp\n"
	"	ldp x29, x30, [sp], #16\n"
	".cfi_def_cfa_offset 0\n"
	"	ret\n"
	".cfi_endproc\n"
	".size weft_ult_ctx_call, .-weft_ult_ctx_call\n");

__attribute__((visibility("hidden"))) void weft_ctx_begin(void);

void *weft_ult_ctx_make(void *top, void (*entry)(void *arg))
{
	uint64_t *f = (uint64_t *)top - 22;
	memset(f, 0, 176);
	f[0] = (uint64_t)(uintptr_t)entry;           /* x19 */
	f[11] = (uint64_t)(uintptr_t)weft_ctx_begin; /* x30 */
	__asm__ volatile("mrs %0, fpcr" : "=r"(f[20]));
	return f;
}

#else

#include <ucontext.h>

/* The context is the address of this, on the stack of its owner. */
struct frame {
	ucontext_t uc;
	void (*entry)(void *arg);
	void *arg; /* what the last switch to it handed over */
};

static void frame_begin(unsigned high, unsigned low)
{
	struct frame *f = (struct frame *)(uintptr_t)((uint64_t)high << 32 | low);
	f->entry(f->arg);
}

static void frame_make(struct frame *f, void *lowest, void (*entry)(void *arg), ucontext_t *after)
{
	uint64_t at = (uint64_t)(uintptr_t)f;
	getcontext(&f->uc);
	f->uc.uc_stack.ss_sp = lowest;
	f->uc.uc_stack.ss_size = (size_t)((char *)f - (char *)lowest);
	f->uc.uc_link = after;
	f->entry = entry;
	makecontext(&f->uc, (void (*)(void))frame_begin, 2, (unsigned)(at >> 32), (unsigned)at);
}

void *weft_ult_ctx_make(void *top, void (*entry)(void *arg))
{
	struct frame *f = (struct frame *)(((uintptr_t)top - sizeof(struct frame)) & ~63ul);
	frame_make(f, (char *)f - 1024, entry, NULL); /* only its upper end matters */
	return f;
}

void *weft_ult_ctx_switch(void **save_p, void *to, void *arg)
{
	struct frame me, *it = to;
	it->arg = arg;
	*save_p = &me;
	swapcontext(&me.uc, &it->uc);
	return me.arg;
}

void weft_ult_ctx_call(void *ctx, void (*fn)(void *arg), void *arg)
{
	struct frame me, *f;
	f = (struct frame *)(((uintptr_t)ctx - sizeof *f - 4096) & ~63ul);
	frame_make(f, (char *)f - 1024, fn, &me.uc);
	f->arg = arg;
	swapcontext(&me.uc, &f->uc);
}

#endif
