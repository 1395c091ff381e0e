/* SPDX-License-Identifier: BSD-3-Clause */
/* thread.c - how every thread of the engine starts: no signals, short slice, small timer slack. */
#include "base/log.h"
#include "base/settings.h"
#include "task/engine_int.h"
#include "task/thread.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STACK_BYTES (512u * 1024)

bool weft_task_sched_get(struct weft_sched_attr *a)
{
	memset(a, 0, sizeof *a);
	return syscall(SYS_sched_getattr, 0, a, sizeof *a, 0) == 0;
}

bool weft_task_sched_set(struct weft_sched_attr *a)
{
	return syscall(SYS_sched_setattr, 0, a, 0) == 0;
}

/* True: the kernel took the slice (Linux 6.12 and later). */
static bool ask_for_slice(void)
{
	struct weft_sched_attr a = {
		.size = sizeof a, .policy = SCHED_OTHER, .runtime = WEFT_SLICE_NS};
	return weft_task_sched_set(&a) && weft_task_sched_get(&a) && a.runtime == WEFT_SLICE_NS;
}

/* "0,2-3" */
static bool parse_cpus(const char *text, cpu_set_t *set)
{
	CPU_ZERO(set);
	while (*text) { /* ends with the text */
		char *end;
		long first = strtol(text, &end, 10), last = first;
		if (end == text || first < 0)
			return false;
		if (*end == '-') {
			text = end + 1;
			last = strtol(text, &end, 10);
			if (end == text)
				return false;
		}
		for (long i = first; i <= last && i < CPU_SETSIZE; i++)
			CPU_SET((int)i, set);
		if (*end && *end != ',')
			return false;
		text = *end ? end + 1 : end;
	}
	return CPU_COUNT(set) > 0;
}

static cpu_set_t
	cpus; /* those of the setting; read by a thread that starts another, joined before a stop */
static bool have_cpus;

void weft_task_engine_threads_init(void)
{
	const char *text = weft_setting_str(WEFT_SET_PROGRESS_CPUS);
	have_cpus = *text && parse_cpus(text, &cpus);
	if (*text && !have_cpus)
		weft_warn("WEFT_PROGRESS_CPUS: '%s' is no list of cores, as 0,2-3", text);
}

bool weft_task_engine_thread_settle(const char *name)
{
	(void)prctl(PR_SET_NAME, name);
	(void)prctl(PR_SET_TIMERSLACK, 1ul);
	return ask_for_slice();
}

weft_err weft_task_engine_thread(pthread_t *thread_p, void *(*run)(void *), void *arg)
{
	pthread_attr_t attr;
	sigset_t all, old;
	sigfillset(&all);
	sigdelset(
		&all,
		SIGBUS); /* of a file's mapped page: its handler's, or the process's end, blocked or not */
	if (pthread_attr_init(&attr))
		return WEFT_ERR_NOMEM;
	(void)pthread_attr_setstacksize(&attr, STACK_BYTES);
	/* The new thread inherits the mask: signals of the application never land in it. */
	pthread_sigmask(SIG_SETMASK, &all, &old);
	if (have_cpus)
		(void)pthread_attr_setaffinity_np(&attr, sizeof cpus, &cpus);
	int failed = pthread_create(thread_p, &attr, run, arg);
	if (failed == EINVAL && have_cpus) {
		weft_warn("the engine's threads cannot run on cores %s",
			  weft_setting_str(WEFT_SET_PROGRESS_CPUS));
		have_cpus = false;
		pthread_attr_destroy(&attr);
		failed = pthread_attr_init(&attr);
		(void)pthread_attr_setstacksize(&attr, STACK_BYTES);
		failed = failed ? failed : pthread_create(thread_p, &attr, run, arg);
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return failed ? WEFT_ERR_LIMIT : WEFT_OK;
}
