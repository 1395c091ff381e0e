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

/* A context that will call entry(arg) on the stack that ends at top (aligned to 16).  entry must
 * not return.  arg is what the first switch to it hands over. */
void *weft_ctx_make(void *top, void (*entry)(void *arg));

/* Stores this context in *save_p, goes to `to`; returns, when somebody comes back, his arg. */
void *weft_ctx_switch(void **save_p, void *to, void *arg);

/* Calls fn(arg) on the free part of a suspended context's stack; fn must not switch. */
void weft_ctx_call(void *ctx, void (*fn)(void *arg), void *arg);

#endif
