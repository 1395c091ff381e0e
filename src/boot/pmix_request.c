/* SPDX-License-Identifier: BSD-3-Clause */
/* pmix_request.c - requests to libpmix, each bounded by the setting init_timeout. */
#include "boot/pmix_request.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/settings.h"

static const struct weft_pmix_lib *pmix;

struct weft_pmix_request {
	pthread_mutex_t lock;
	pthread_cond_t came;
	int users; /* the asker and the callback; the last of the two frees it */
	bool there;
	int status;
	char *text; /* of a get that was answered with a string */
	bool is_number;
	uint32_t number;
	/* What the library points to lives as long as the callback may come. */
	struct weft_pmix_proc proc;
	struct weft_pmix_info info[2];
	char key[WEFT_PMIX_KEY_BYTES];
	int (*fn)(void *arg);
	char arg[]; /* of a call */
};

void weft_boot_pmix_requests_open(const struct weft_pmix_lib *lib)
{
	pmix = lib;
}

static struct weft_pmix_request *request_create(size_t arg_size)
{
	struct weft_pmix_request *r = calloc(1, sizeof *r + arg_size);
	pthread_condattr_t attr;
	if (!r)
		return NULL;
	r->users = 2;
	pthread_mutex_init(&r->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&r->came, &attr);
	pthread_condattr_destroy(&attr);
	return r;
}

void weft_boot_pmix_drop(struct weft_pmix_request *r)
{
	pthread_mutex_lock(&r->lock);
	int users = --r->users;
	pthread_mutex_unlock(&r->lock);
	if (users)
		return;
	if (r->text)
		explicit_bzero(r->text, strlen(r->text));
	free(r->text);
	pthread_cond_destroy(&r->came);
	pthread_mutex_destroy(&r->lock);
	free(r);
}

/* --- answers: the library's thread --- */

static void answer_came(struct weft_pmix_request *r, int status,
			const struct weft_pmix_value *value)
{
	pthread_mutex_lock(&r->lock);
	r->status = status;
	if (value && value->type == WEFT_PMIX_STRING && value->data.string)
		r->text = strdup(value->data.string);
	r->is_number = value && value->type == WEFT_PMIX_UINT32;
	if (r->is_number)
		r->number = value->data.uint32;
	r->there = true;
	pthread_cond_signal(&r->came);
	pthread_mutex_unlock(&r->lock);
	weft_boot_pmix_drop(r);
}

static void on_done(int status, void *arg)
{
	answer_came(arg, status, NULL);
}

static void on_value(int status, struct weft_pmix_value *value, void *arg)
{
	answer_came(arg, status, status == WEFT_PMIX_SUCCESS ? value : NULL);
}

/* --- requests --- */

static void set_flag(struct weft_pmix_info *info, const char *key)
{
	snprintf(info->key, sizeof info->key, "%s", key);
	info->value.type = WEFT_PMIX_BOOL;
	info->value.data.flag = true;
}

struct weft_pmix_request *weft_boot_pmix_ask(const struct weft_pmix_proc *proc, const char *key,
					     enum weft_pmix_how how)
{
	struct weft_pmix_request *r = request_create(0);
	if (!r)
		return NULL;
	r->proc = *proc;
	snprintf(r->key, sizeof r->key, "%s", key);
	strcpy(r->info[0].key, "pmix.req.key");
	r->info[0].value.type = WEFT_PMIX_STRING;
	r->info[0].value.data.string = r->key;
	set_flag(&r->info[1], "pmix.get.refresh");
	int status = pmix->PMIx_Get_nb(&r->proc, r->key, how ? r->info : NULL, how, on_value, r);
	if (status != WEFT_PMIX_SUCCESS)
		answer_came(r, status, NULL); /* there will be no callback */
	return r;
}

struct weft_pmix_request *weft_boot_pmix_fence_begin(void)
{
	struct weft_pmix_request *r = request_create(0);
	if (!r)
		return NULL;
	int status = pmix->PMIx_Fence_nb(NULL, 0, NULL, 0, on_done, r);
	if (status != WEFT_PMIX_SUCCESS) /* there will be no callback */
		answer_came(r, status == WEFT_PMIX_OPERATION_SUCCEEDED ? WEFT_PMIX_SUCCESS : status,
			    NULL);
	return r;
}

uint64_t weft_boot_pmix_deadline(void)
{
	return weft_clock_ns() + (uint64_t)weft_setting_int(WEFT_SET_INIT_TIMEOUT) * 1000000000u;
}

bool weft_boot_pmix_wait(struct weft_pmix_request *r, uint64_t until_ns)
{
	struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000u),
				 .tv_nsec = (long)(until_ns % 1000000000u)};
	int rc = until_ns ? 0 : ETIMEDOUT;
	pthread_mutex_lock(&r->lock);
	while (!r->there && rc != ETIMEDOUT) /* ends: the callback, or the deadline */
		rc = pthread_cond_timedwait(&r->came, &r->lock, &until);
	bool there = r->there;
	pthread_mutex_unlock(&r->lock);
	return there;
}

int weft_boot_pmix_status(const struct weft_pmix_request *r)
{
	return r->status;
}

const char *weft_boot_pmix_text(const struct weft_pmix_request *r)
{
	return r->text;
}

bool weft_boot_pmix_number(const struct weft_pmix_request *r, uint32_t *n_p)
{
	if (r->is_number)
		*n_p = r->number;
	return r->is_number;
}

/* --- calls that the library answers itself, when it is served --- */

static void *make_call(void *arg)
{
	struct weft_pmix_request *r = arg;
	int status = r->fn(r->arg);
	answer_came(r, status, NULL);
	return NULL;
}

int weft_boot_pmix_call(int (*fn)(void *arg), void *arg, size_t size)
{
	struct weft_pmix_request *r = request_create(size);
	pthread_attr_t attr;
	pthread_t thread;
	if (!r)
		return WEFT_PMIX_ERR_NOMEM;
	r->fn = fn;
	memcpy(r->arg, arg, size);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (pthread_create(&thread, &attr, make_call, r))
		make_call(r); /* no thread to be had: then without a bound */
	pthread_attr_destroy(&attr);
	int status = WEFT_PMIX_ERR_TIMEOUT;
	if (weft_boot_pmix_wait(r, weft_boot_pmix_deadline())) {
		status = r->status;
		memcpy(arg, r->arg, size);
	}
	weft_boot_pmix_drop(r);
	return status;
}
