/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fake_pmix.c - a libpmix.so.2 for a job of two ranks, whose other rank and server are as the environment says.
 *
 *   FAKE_STATUS="-1 -46"  the first gets of a key end so, one each; "-1 ..." : all of them
 *   FAKE_LATE=MS          such a get is answered that long after PMIx_Init at the earliest
 *   FAKE_MUTE=WHAT        this is never answered: init, job, query, fence
 *
 * A get that asks for a refresh must follow one that did not, and the other way round.
 */
#include "boot/pmix_abi.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static struct timespec born;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int asked; /* lock: how often the last key */
static char last_key[64];

static bool mute(const char *what)
{
	const char *m = getenv("FAKE_MUTE");
	return m && strcmp(m, what) == 0;
}

static void sleep_for_ever(void)
{
	for (;;) /* ends: with the process */
		pause();
}

int PMIx_Init(struct weft_pmix_proc *me, struct weft_pmix_info *info, size_t n)
{
	if (mute("init"))
		sleep_for_ever();
	clock_gettime(CLOCK_MONOTONIC, &born);
	snprintf(me->nspace, sizeof me->nspace, "fake");
	me->rank = (uint32_t)atoi(getenv("PMIX_RANK"));
	return 0;
}

int PMIx_Finalize(const struct weft_pmix_info *info, size_t n)
{
	return 0;
}

int PMIx_Abort(int code, const char *why, struct weft_pmix_proc *procs, size_t n)
{
	return 0;
}

int PMIx_Put(uint8_t scope, const char *key, struct weft_pmix_value *value)
{
	return 0;
}

int PMIx_Commit(void)
{
	return 0;
}

int PMIx_Fence_nb(const struct weft_pmix_proc *procs, size_t n, const struct weft_pmix_info *info,
		  size_t n_info, weft_pmix_done_fn fn, void *arg)
{
	return mute("fence") ? 0 : WEFT_PMIX_OPERATION_SUCCEEDED;
}

struct later {
	weft_pmix_value_fn fn;
	void *arg;
	int status;
	char text[128];
};

static void *answer(void *arg)
{
	struct later *l = arg;
	struct weft_pmix_value v = {.type = WEFT_PMIX_STRING, .data.string = l->text};
	struct timespec then = born;
	long ms = getenv("FAKE_LATE") ? atol(getenv("FAKE_LATE")) : 0;
	then.tv_sec += (then.tv_nsec + ms % 1000 * 1000000) / 1000000000 + ms / 1000;
	then.tv_nsec = (then.tv_nsec + ms % 1000 * 1000000) % 1000000000;
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &then, NULL) == EINTR)
		continue;
	l->fn(l->status, l->status ? NULL : &v, l->arg);
	free(l);
	return NULL;
}

/* The status of the n-th get of a rank's value. */
static int status_of(int n)
{
	const char *at = getenv("FAKE_STATUS");
	char *end;
	long status = 0;
	for (int i = 0; at && i <= n; i++, at = end) {
		long s = strtol(at, &end, 10);
		if (end == at)
			return strstr(at, "...") ? (int)status : 0;
		status = s;
	}
	return (int)status;
}

int PMIx_Get_nb(const struct weft_pmix_proc *proc, const char *key,
		const struct weft_pmix_info *info, size_t n, weft_pmix_value_fn fn, void *arg)
{
	struct weft_pmix_value v = {.type = WEFT_PMIX_UINT32, .data.uint32 = 2};
	if (strncmp(key, "pmix.", 5) == 0) {
		bool known = strcmp(key, "pmix.job.size") == 0;
		if (!mute("job"))
			fn(known ? 0 : WEFT_PMIX_ERR_NOT_FOUND, known ? &v : NULL, arg);
		return 0;
	}
	struct later *l = malloc(sizeof *l);
	pthread_t thread;
	pthread_mutex_lock(&lock);
	if (strcmp(key, last_key) != 0)
		asked = 0;
	snprintf(last_key, sizeof last_key, "%s", key);
	int turn = asked++;
	pthread_mutex_unlock(&lock);
	if (!l || n != 1 + (size_t)(turn % 2))
		abort();
	*l = (struct later){.fn = fn, .arg = arg, .status = status_of(turn)};
	snprintf(l->text, sizeof l->text, "%s of %u", key, (unsigned)proc->rank);
	if (strcmp(key, "weft.job") == 0)
		snprintf(l->text, sizeof l->text, "%064d.fake", 7);
	pthread_create(&thread, NULL, answer, l);
	pthread_detach(thread);
	return 0;
}

int PMIx_Query_info(struct weft_pmix_query *queries, size_t n, struct weft_pmix_info **results_p,
		    size_t *n_p)
{
	if (mute("query"))
		sleep_for_ever();
	return WEFT_PMIX_ERR_NOT_FOUND;
}

int PMIx_Register_event_handler(int *codes, size_t n_codes, struct weft_pmix_info *info, size_t n,
				weft_pmix_event_fn fn, weft_pmix_registered_fn registered,
				void *arg)
{
	return 0;
}

const char *PMIx_Error_string(int status)
{
	static char text[16];
	snprintf(text, sizeof text, "status%d", status);
	return text;
}
