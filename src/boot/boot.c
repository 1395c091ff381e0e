/* SPDX-License-Identifier: BSD-3-Clause */
/* boot.c - joins and leaves the job; puts, publishes and gets. */
#include "boot/batch.h"
#include "boot/flush.h"
#include "boot/psets.h"
#include "boot/secret.h"
#include "boot/service.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/log.h"

#define ABORT_WAIT_NS 1000000000u
#define BEREFT_WAIT_NS 5000000000u /* mpiexec waits for word of that rank's end, too */
#define JOB_KEY "weft.job"

static struct {
	struct weft_boot_info *info;
	const struct weft_boot_service *service;
	bool secret_due; /* rank 0 publishes it with what it publishes first */
} job = {.service = &weft_boot_alone};

/* --- joining --- */

/* Rank 0 tells the others: a put, published by the caller. */
static weft_err tell_secret(void)
{
	char text[WEFT_BOOT_SECRET_TEXT];
	weft_err err = weft_boot_secret_make(job.info);
	if (!err) {
		weft_boot_secret_print(job.info, text);
		err = weft_boot_put(JOB_KEY, text);
	}
	explicit_bzero(text, sizeof text);
	return err;
}

static weft_err take_secret(void)
{
	char text[WEFT_BOOT_SECRET_TEXT];
	weft_err err = weft_boot_get(0, JOB_KEY, text, sizeof text);
	if (err == WEFT_ERR_NOENT)
		weft_error("key %s of rank 0, the job's secret, is missing", JOB_KEY);
	if (!err) {
		err = weft_boot_secret_parse(text, job.info);
		if (err)
			weft_error("key %s of rank 0, the job's secret, is damaged", JOB_KEY);
	}
	explicit_bzero(text, sizeof text);
	return err;
}

/* Under a foreign launcher rank 0 makes the secret and tells the others.  Where each round of the launcher's space
 * makes all ranks wait for all, the secret goes with the first one that the caller asks for. */
static weft_err secret_by_kvs(void)
{
	job.info->secret_by_kvs = true;
	if (job.info->rank == 0) {
		weft_err err = tell_secret();
		return !err && job.service->lazy ? weft_boot_publish() : err;
	}
	job.secret_due = true;
	return job.service->lazy ? weft_boot_publish() : WEFT_OK;
}

/* The ways to the launcher, in order, until one is answered. */
static weft_err connect_launcher(struct weft_boot_env *env)
{
	weft_err err = WEFT_ERR_UNSUPPORTED;
	for (int i = 0; env->service[i]; i++) {
		job.service = env->service[i];
		env->last = !env->service[i + 1];
		job.info->rank = env->rank;
		job.info->size = env->size;
		err = job.service->open(env, job.info);
		if (err != WEFT_ERR_UNSUPPORTED)
			break;
	}
	return err;
}

static weft_err join_job(struct weft_boot_env *env)
{
	struct weft_boot_info *info = job.info;
	weft_err err = connect_launcher(env);
	if (err)
		return err;
	/* Some launchers say the job's size here; a program that asked would never spawn. */
	if (info->universe <= info->size)
		info->universe = 0;
	info->spread = env->spread && info->size > 1;
	if (info->size > 1)
		weft_log_set_rank(info->rank);
	weft_boot_batch_open(job.service, info->rank, info->size);
	if (env->secret_fd >= 0)
		return weft_boot_secret_receive(env->secret_fd, info);
	return job.service == &weft_boot_alone ? weft_boot_secret_make(info) : secret_by_kvs();
}

weft_err weft_boot_open(const struct weft_boot_info **info_p)
{
	struct weft_boot_env env;
	if (job.info) {
		weft_error("this process has already joined its job");
		return WEFT_ERR_STATE;
	}
	weft_err err = weft_boot_env_read(&env);
	if (err)
		return err;
	job.info = weft_boot_info_create();
	if (!job.info)
		return WEFT_ERR_NOMEM;
	if (env.size > 1)
		weft_log_set_rank(env.rank);
	err = join_job(&env);
	if (!err)
		err = weft_boot_psets_open(job.info->rank, job.info->size);
	if (err) {
		weft_boot_psets_close();
		weft_boot_batch_close();
		weft_boot_info_destroy(job.info);
		job.info = NULL;
		return err;
	}
	*info_p = job.info;
	return WEFT_OK;
}

/* --- the key-value space --- */

weft_err weft_boot_put(const char *key, const char *value)
{
	if (!job.info)
		return WEFT_ERR_STATE;
	return job.service->lazy ? job.service->lazy->put(key, value)
				 : weft_boot_batch_put(key, value);
}

weft_err weft_boot_publish(void)
{
	if (!job.info)
		return WEFT_ERR_STATE;
	weft_err err = job.service->lazy ? job.service->lazy->commit() : weft_boot_batch_fence();
	if (!err && job.secret_due) {
		job.secret_due = false;
		err = take_secret();
	}
	return err;
}

weft_err weft_boot_fence(void)
{
	weft_err err = weft_boot_publish();
	return !err && job.service->lazy ? job.service->fence() : err;
}

weft_err weft_boot_get(int rank, const char *key, char *buf, size_t size)
{
	if (!job.info)
		return WEFT_ERR_STATE;
	if (rank < 0 || rank >= job.info->size || !size)
		return WEFT_ERR_ARG;
	weft_err err = job.service->lazy ? job.service->lazy->get(rank, key, buf, size)
					 : weft_boot_batch_get(rank, key, buf, size);
	if (err == WEFT_ERR_TRUNC)
		weft_error("key %s of rank %d is longer than expected", key, rank);
	return err;
}

weft_err weft_boot_try_get(int rank, const char *key, char *buf, size_t size)
{
	return weft_boot_is_lazy() ? job.service->lazy->try_get(rank, key, buf, size)
				   : WEFT_ERR_STATE;
}

bool weft_boot_is_lazy(void)
{
	return job.info && job.service->lazy;
}

int weft_boot_locals(const int **ranks_p)
{
	return weft_boot_is_lazy() ? job.service->lazy->locals(ranks_p) : 0;
}

weft_err weft_boot_psets_refresh(void)
{
	return job.info && job.service->psets ? job.service->psets() : WEFT_OK;
}

/* --- leaving --- */

void weft_boot_close(void)
{
	if (!job.info)
		return;
	job.service->close();
	weft_boot_psets_close();
	weft_boot_batch_close();
	weft_boot_info_destroy(job.info);
	job.info = NULL;
}

/* The launcher ends all ranks at once.  Were we gone before, the others would first complain about
 * our death, each in its own line. */
static void wait_for_end(uint64_t ns)
{
	uint64_t end = weft_clock_ns() + ns;
	while (weft_clock_ns() < end) { /* ends: by the launcher's signal, or after that time */
		struct timespec pause = {.tv_nsec = 50000000};
		nanosleep(&pause, NULL);
	}
}

_Noreturn void weft_boot_abort(int code, const char *text)
{
	weft_boot_flush(stdout);
	if (text)
		weft_error("%s", text);
	weft_boot_flush(stderr);
	if (job.service->abort(code, false, text))
		wait_for_end(ABORT_WAIT_NS);
	_exit(code & 255 ? code & 255 : 1);
}

_Noreturn void weft_boot_abort_bereft(int code, const char *text)
{
	weft_boot_flush(stdout);
	weft_boot_flush(stderr);
	if (job.service->abort(code, true, text)) {
		wait_for_end(BEREFT_WAIT_NS);
		weft_error("%s", text); /* the launcher has not told it */
		_exit(code & 255 ? code & 255 : 1);
	}
	weft_boot_abort(code, text);
}
