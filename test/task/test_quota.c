/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * In a control group with a quota the engine counts the cores that the quota grants, also when it
 * is set for a group above; tasks and timers work there.  Needs to be allowed to make control
 * groups.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weft/source.h>
#include <weft/task.h>
#include "check.h"
#include "task/event/load.h"

static char outer[128], inner[160];
static bool unified;
static int outside; /* the quota that is there anyway; 0: none */

static int granted(int cores)
{
	return outside && outside < cores ? outside : cores;
}

static bool put(const char *dir, const char *file, const char *text)
{
	char path[256];
	snprintf(path, sizeof path, "%s/%s", dir, file);
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	if (fd >= 0)
		close(fd);
	return ok;
}

static bool set_quota(const char *dir, const char *us)
{
	char text[64];
	snprintf(text, sizeof text, unified ? "%s 100000" : "%s", us);
	return put(dir, unified ? "cpu.max" : "cpu.cfs_quota_us", text);
}

/* A group in a group, where this system has its control groups. */
static bool make_groups(void)
{
	static const char *const mount[] = {"/sys/fs/cgroup/cpu", "/sys/fs/cgroup"};
	for (int i = 0; i < 2; i++) {
		unified = i == 1;
		snprintf(outer, sizeof outer, "%s/weft-test-%d", mount[i], (int)getpid());
		snprintf(inner, sizeof inner, "%s/inner", outer);
		if (mkdir(outer, 0755))
			continue;
		if (unified)
			(void)put(outer, "cgroup.subtree_control", "+cpu");
		if (mkdir(inner, 0755) == 0 && set_quota(outer, "100000"))
			return true;
		rmdir(inner);
		rmdir(outer);
	}
	return false;
}

static enum weft_task_verdict count(struct weft_task *t, void *arg)
{
	(void)t;
	++*(int *)arg;
	return WEFT_TASK_DONE;
}

/* Forgets what was known a moment ago. */
static int quota_now(void)
{
	weft_task_load_set_root("");
	return weft_task_load_quota();
}

/* In the group: exit code 0, or the line that failed. */
static void inside(void)
{
	static struct weft_task task;
	struct weft_events *es;
	struct weft_event ev;
	int ran = 0;
	CHECK_EQ(quota_now(), 1); /* of the group above */
	CHECK_EQ(weft_task_load_cpus(), 1);
	CHECK(set_quota(outer, "200000"));
	CHECK_EQ(quota_now(), granted(2));
	CHECK(set_quota(inner, "50000"));
	CHECK_EQ(quota_now(), 1); /* its own; a part of a core is one */
	CHECK_EQ(weft_engine_start(), WEFT_OK);
	for (int i = 0; i < 100; i++) {
		weft_task_launch(&task, "in a group", count, &ran);
		CHECK_EQ(weft_task_wait(&task), WEFT_OK);
	}
	CHECK_EQ(ran, 100);
	CHECK_EQ(weft_events_open_timers(&es), WEFT_OK);
	weft_event_init(&ev, NULL, NULL);
	CHECK_EQ(weft_event_post_after(es, &ev, 1000000), WEFT_OK);
	CHECK_EQ(weft_event_wait(&ev, WEFT_FOREVER), WEFT_OK);
	CHECK_EQ(weft_events_close(es), WEFT_OK);
	weft_engine_stop();
}

/* A group that has just been left may be busy for a moment. */
static void remove_group(const char *dir)
{
	while (rmdir(dir) && errno == EBUSY) /* ends: no process is in it */
		sched_yield();
}

int main(void)
{
	if (!make_groups()) {
		printf("skipped: no control group with a quota can be made here\n");
		return 77;
	}
	int status = 1;
	outside = weft_task_load_quota();
	pid_t child = fork();
	if (child == 0) {
		char self[32];
		snprintf(self, sizeof self, "%d", (int)getpid());
		if (!put(inner, "cgroup.procs", self))
			_exit(77);
		inside();
		_exit(0);
	}
	CHECK(child > 0);
	CHECK_EQ(waitpid(child, &status, 0), child);
	remove_group(inner);
	remove_group(outer);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
		printf("skipped: no process can be moved into a control group here\n");
		return 77;
	}
	CHECK_EQ(status, 0);
	return 0;
}
