/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A user-level thread waits in the engine for what never comes when the engine stops: the stop
 * names it and comes back; the thread stays in its wait, and ends when it is signalled after all.
 */
#include <string.h>
#include <unistd.h>
#include <weft/ult.h>
#include "check.h"
#include "rt/rt.h"
#include "task/task.h"
#include "wait/completion.h"

static struct weft_completion never;
static _Atomic int x_in, x_out;

static void *waits(void *arg)
{
	atomic_fetch_add(&x_in, 1);
	weft_task_engine_wait(&never);
	atomic_fetch_add(&x_out, 1);
	return NULL;
}

/* Ends: parked; asked for what the report asks. */
static void until_it_waits(void)
{
	char text[4096];
	do {
		FILE *f = fmemopen(text, sizeof text, "w");
		CHECK(f != NULL);
		weft_ult_report(f);
		fclose(f);
		sched_yield();
	} while (!strstr(text, "patient: waits for a message, a task or another event"));
}

int main(void)
{
	const struct weft_boot_info *info;
	char said[4096] = "", path[] = "/tmp/weft-stays-XXXXXX";
	int fd = mkstemp(path), err = dup(2);
	weft_ult *t;
	CHECK(fd >= 0 && err >= 0);
	unlink(path);
	weft_wait_completion_init(&never);
	CHECK_EQ(weft_rt_start(&info), WEFT_OK);
	CHECK_EQ(weft_ult_start(1), WEFT_OK);
	struct weft_ult_attr attr = WEFT_ULT_ATTR_INIT;
	attr.name = "patient";
	CHECK_EQ(weft_ult_create(&t, &attr, waits, NULL), WEFT_OK);
	until_it_waits();
	CHECK_EQ(dup2(fd, 2), 2);
	weft_rt_stop();
	dup2(err, 2);
	CHECK(pread(fd, said, sizeof said - 1, 0) > 0);
	CHECK(strstr(said, "the progress engine has stopped: user-level thread 0."));
	CHECK(strstr(said, " patient stays in its wait for a message or an event"));
	CHECK_EQ(atomic_load(&x_in), 1);
	CHECK_EQ(atomic_load(&x_out), 0);
	weft_wait_completion_signal(&never);
	CHECK_EQ(weft_ult_join(t, NULL), WEFT_OK);
	CHECK_EQ(atomic_load(&x_out), 1);
	CHECK_EQ(weft_ult_stop(), WEFT_OK);
	return 0;
}
