/* SPDX-License-Identifier: BSD-3-Clause */
/* rt.c - the order in which the layers come up and go down. */
#include "rt/rt.h"
#include "rt/sets.h"

#include <sched.h>
#include <unistd.h>
#include "base/mechanism.h"
#include "base/counters.h"
#include "base/log.h"
#include "base/settings.h"
#include "base/trace.h"
#include "comm/comm.h"
#include "task/task.h"
#include "net/ofi/ofi.h"
#include "ult/ult.h"

#include <dlfcn.h>

static enum { RT_NEW, RT_RUNNING, RT_STOPPED } state;
static const struct weft_boot_info *job;

static void poll_engine(void)
{
	(void)weft_task_engine_poll();
}

/* Workers of user-level threads that have nothing to run wait in the engine. */
static const struct weft_ult_hooks ult_hooks = {.idle = weft_task_engine_idle, .tick = poll_engine};

/*
 * A program that is linked with libweft-task before libmpi_abi submits its tasks there, while its
 * messages are here: two engines, with threads and settings of their own.
 */
static void warn_of_another_engine(void)
{
	Dl_info there, here;
	void *submit = dlsym(RTLD_DEFAULT, "weft_task_submit");
	if (submit && dladdr(submit, &there) && dladdr(&state, &here) &&
	    there.dli_fbase != here.dli_fbase)
		weft_warn("two progress engines: tasks go to %s, messages to %s; link the second "
			  "alone, it has both",
			  there.dli_fname, here.dli_fname);
}

/* Ranks without cores of their own (by a launcher or an affinity) share the host's: each gets its
 * part. */
static void share_cores(void)
{
	cpu_set_t own, whole;
	int ranks = weft_comm_local_ranks(), index = 0;
	for (int p = 0; p < job->rank; p++)
		index += weft_comm_same_host(weft_comm_home(), p);
	bool given = sched_getaffinity(0, sizeof own, &own) ||
		     (sched_getaffinity(getppid(), sizeof whole, &whole) == 0 &&
		      CPU_COUNT(&whole) > CPU_COUNT(&own)) ||
		     (CPU_COUNT(&own) == 1 && sysconf(_SC_NPROCESSORS_ONLN) > 1);
	weft_ult_share_set(given ? 0 : index, given ? 1 : ranks);
}

weft_err weft_rt_start(const struct weft_boot_info **info_p)
{
	if (state != RT_NEW) {
		weft_error("a process can join a job only once");
		return WEFT_ERR_STATE;
	}
	weft_err err = weft_settings_load();
	if (err)
		return err;
	weft_log_init();
	err = weft_mechanisms_init();
	if (err)
		return err;
	warn_of_another_engine();
	err = weft_boot_open(&job);
	if (err)
		return err;
	weft_trace_rank(job->rank, job->size);
	weft_task_engine_set_stop_hook(weft_ult_engine_stopped);
	err = weft_engine_start();
	if (err)
		goto leave_job;
	err = weft_comm_start(job);
	if (err)
		goto stop_engine;
	weft_task_engine_set_local_ranks(weft_comm_local_ranks(), 0);
	share_cores();
	weft_rt_name_sets(job->rank, job->size);
	weft_ult_hooks_set(&ult_hooks);
	state = RT_RUNNING;
	*info_p = job;
	return WEFT_OK;
stop_engine:
	weft_engine_stop();
leave_job:
	/* The other ranks wait for this rank, and would go on waiting if it left in order.  The cause
	 * has been logged. */
	if (job->size > 1)
		weft_boot_abort(1, NULL);
	weft_boot_close();
	return err;
}

void weft_rt_stop(void)
{
	if (state != RT_RUNNING)
		return;
	state = RT_STOPPED;
	weft_ult_hooks_set(NULL);
	weft_comm_stop();
	weft_engine_stop();
	weft_boot_close();
}

bool weft_rt_running(void)
{
	return state == RT_RUNNING;
}

void weft_rt_describe(FILE *out)
{
	if (state == RT_RUNNING) {
		char text[2048];
		fprintf(out, "rank %d of %d, launcher %s\n", job->rank, job->size, job->launcher);
		weft_comm_describe(text, sizeof text);
		fputs(text, out);
		if (job->protection)
			fprintf(out, "the job's secret %s\n", job->protection);
	} else {
		fprintf(out, "drivers: %s\n", weft_setting_str(WEFT_SET_DRIVERS));
	}
	char ofi[192];
	weft_net_ofi_describe(ofi, sizeof ofi);
	fprintf(out, "ofi: %s\n", ofi);
	weft_engine_describe(out);
	weft_ult_describe(out);
}
