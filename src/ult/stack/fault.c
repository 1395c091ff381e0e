/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fault.c - a thread that runs over its stack: says which, how large, how it came there; aborts.
 *
 * Carriers have a signal stack of their own, so the handler works when the thread's is full.  A
 * handler of the application without SA_ONSTACK may not fit on a small stack: the kernel then sends
 * SIGSEGV, or the handler runs into the guard; the message names either case.  Other faults go to
 * the handler that was there before.
 */
#include "ult/ult_int.h"

#include <execinfo.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define SIGNAL_STACK (64u << 10)
#define GUARD 4096u
#define FRAMES 48

static struct sigaction before;

static void put_text(char *line, size_t size, const char *text)
{
	strncat(line, text, size - strlen(line) - 1);
}

static void put_number(char *line, size_t size, uint64_t n)
{
	char digits[24], *at = digits + sizeof digits;
	*--at = 0;
	do /* ends: n shrinks */
		*--at = (char)('0' + n % 10);
	while (n /= 10);
	put_text(line, size, at);
}

/* Signals as the kernel keeps them: a bit each. */
static uint64_t signals_of(const sigset_t *set)
{
	uint64_t bits;
	memcpy(&bits, set, sizeof bits);
	return bits;
}

/* Which of these would be handled on the thread's own stack? */
static void put_signals(char *line, size_t size, uint64_t these)
{
	for (int sig = 1; sig < NSIG; sig++) {
		struct sigaction a;
		if (!(these >> (sig - 1) & 1) || sigaction(sig, NULL, &a) ||
		    (a.sa_flags & SA_ONSTACK) || a.sa_handler == SIG_DFL || a.sa_handler == SIG_IGN)
			continue;
		put_text(line, size, " signal ");
		put_number(line, size, (uint64_t)sig);
		put_text(line, size, ",");
	}
}

/* No function here that a signal handler may not call. */
_Noreturn void weft_ult_overflow(const struct weft_ult *t, const char *how)
{
	char line[256] = "weft: user-level thread ";
	void *frame[FRAMES];
	if (t->name[0]) {
		put_text(line, sizeof line, "\"");
		put_text(line, sizeof line, t->name);
		put_text(line, sizeof line, "\" ");
	}
	put_text(line, sizeof line, "(worker ");
	put_number(line, sizeof line, (uint64_t)t->home->id);
	put_text(line, sizeof line, ", number ");
	put_number(line, sizeof line, t->slot);
	put_text(line, sizeof line, ") needs more than its stack of ");
	put_number(line, sizeof line, weft_ult_stack_bytes((t->deep ? t->deep : t)->class));
	put_text(line, sizeof line, t->deep ? " bytes for this call, " : " bytes, ");
	put_text(line, sizeof line, how);
	put_text(line, sizeof line, "; called from:\n");
	ssize_t n = write(2, line, strlen(line));
	(void)n;
	backtrace_symbols_fd(frame, backtrace(frame, FRAMES), 2);
	signal(SIGABRT, SIG_DFL);
	abort();
}

static bool on_stack(const struct weft_ult *t, const char *at, size_t beyond)
{
	return at >= t->stack - beyond && at < t->stack;
}

/* Does a signal's handler run on t's stack?  *blocked_p: which signals were blocked before. */
static bool in_handler(const struct weft_ult *t, uint64_t *blocked_p)
{
#if defined(__x86_64__)
	/* What the kernel puts there: where the handler returns to, a context, its end the mask. */
	enum { MASK_AT = 304 };
	struct {
		void *handler;
		unsigned long flags;
		uintptr_t back;
		uint64_t mask;
	} known = {0};
	const char *top = t->stack + weft_ult_stack_bytes(t->class) - MASK_AT;
	if (syscall(SYS_rt_sigaction, SIGSEGV, NULL, &known, sizeof known.mask) || !known.back)
		return false;
	for (const char *at = t->stack; at < top; at += sizeof known.back) { /* ends: at top */
		if (memcmp(at, &known.back, sizeof known.back) == 0) {
			memcpy(blocked_p, at + MASK_AT, sizeof *blocked_p);
			return true;
		}
	}
#endif
	return false;
}

static _Noreturn void in_guard(const struct weft_ult *t, const sigset_t *blocked)
{
	char how[128] = "found by the guard below it";
	uint64_t before_it;
	if (in_handler(t->deep ? t->deep : t, &before_it)) {
		put_text(how, sizeof how, ", in the handler of");
		put_signals(how, sizeof how, signals_of(blocked) & ~before_it);
		put_text(how, sizeof how, " without SA_ONSTACK");
	}
	weft_ult_overflow(t, how);
}

static void handle_fault(int sig, siginfo_t *info, void *context)
{
	struct weft_ult_worker *w = weft_ult_worker_self;
	struct weft_ult *t = weft_ult_self();
	/* A frame larger than the guard is probed page by page: it ends in the guard. */
	if (t && (!w || !w->on_own_stack)) {
		if (info->si_code > 0 && on_stack(t->deep ? t->deep : t, info->si_addr, GUARD))
			in_guard(t, &((ucontext_t *)context)->uc_sigmask);
		if (info->si_code == SI_KERNEL && !info->si_addr) {
			char how[128] = "or it was to handle";
			put_signals(how, sizeof how,
				    ~signals_of(&((ucontext_t *)context)->uc_sigmask));
			put_text(how, sizeof how, " without SA_ONSTACK");
			weft_ult_overflow(t, how);
		}
	}
	/* Not ours: as it was before, and once more. */
	sigaction(sig, &before, NULL);
	if (info->si_code <= 0)
		raise(sig);
}

void weft_ult_fault_install(void)
{
	static bool installed;
	struct sigaction a = {.sa_flags = SA_SIGINFO | SA_ONSTACK};
	void *warm[2];
#if WEFT_ULT_SANITIZED
	return; /* the tools have handlers of their own, and stacks are large */
#endif
	if (installed)
		return;
	installed = true;
	(void)backtrace(warm, 2); /* loads what it needs: not in a handler */
	a.sa_sigaction = handle_fault;
	sigemptyset(&a.sa_mask);
	(void)sigaction(SIGSEGV, &a, &before);
}

void weft_ult_fault_stack(bool on)
{
	struct weft_ult_carrier *c = weft_ult_carrier_self;
	stack_t s = {.ss_flags = SS_DISABLE, .ss_size = SIGNAL_STACK};
#if WEFT_ULT_SANITIZED
	return;
#endif
	if (on) {
		c->signal_stack = mmap(NULL, SIGNAL_STACK, PROT_READ | PROT_WRITE,
				       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (c->signal_stack == MAP_FAILED) {
			c->signal_stack = NULL;
			return;
		}
		s.ss_sp = c->signal_stack;
		s.ss_flags = 0;
		(void)sigaltstack(&s, NULL);
	} else if (c->signal_stack) {
		(void)sigaltstack(&s, NULL);
		munmap(c->signal_stack, SIGNAL_STACK);
	}
}
