/* SPDX-License-Identifier: BSD-3-Clause */
/* thread.c - how every thread of the engine starts: no signals, short slice, small timer slack. */
#include "base/log.h"
#include "task/engine_int.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SLICE_NS 100000u /* the kernel's smallest: wakes us before others' slices end */
#define STACK_BYTES (512u * 1024)

/* The kernel's structure; slices are in sched_runtime. */
struct sched_attr_v0 {
	uint32_t size, sched_policy;
	uint64_t sched_flags;
	int32_t sched_nice;
	uint32_t sched_priority;
	uint64_t sched_runtime, sched_deadline, sched_period;
};

/* True: the kernel took the slice (Linux 6.12 and later). */
static bool ask_for_slice(void)
{
	struct sched_attr_v0 a = {.size = sizeof a, .sched_policy = SCHED_OTHER};
	a.sched_runtime = SLICE_NS;
	if (syscall(SYS_sched_setattr, 0, &a, 0))
		return false;
	memset(&a, 0, sizeof a);
	return syscall(SYS_sched_getattr, 0, &a, sizeof a, 0) == 0 && a.sched_runtime == SLICE_NS;
}

bool weft_engine_thread_settle(const char *name)
{
	(void)prctl(PR_SET_NAME, name);
	(void)prctl(PR_SET_TIMERSLACK, 1ul);
	return ask_for_slice();
}

weft_err weft_engine_thread(pthread_t *thread_p, void *(*run)(void *), void *arg)
{
	pthread_attr_t attr;
	sigset_t all, old;
	sigfillset(&all);
	if (pthread_attr_init(&attr))
		return WEFT_ERR_NOMEM;
	(void)pthread_attr_setstacksize(&attr, STACK_BYTES);
	/* The new thread inherits the mask: signals of the application never land in it. */
	pthread_sigmask(SIG_SETMASK, &all, &old);
	int failed = pthread_create(thread_p, &attr, run, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return failed ? WEFT_ERR_LIMIT : WEFT_OK;
}
