/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * boot.c - joins and leaves the job; puts, fences and gets.
 *
 * Batches   what a rank puts between two fences goes out as one text under one key (in parts when
 *           the launcher's values are short), so a fence of n ranks costs n puts and a reader one
 *           get per rank and fence, however many keys there are.
 * Names     "w<batch>.<rank>.<part>"; part 0 begins with the number of parts and a dot.
 */
#include "boot/blob.h"
#include "boot/psets.h"
#include "boot/secret.h"
#include "boot/service.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/log.h"

#define PARTS_MAX 65536
#define PART_HEAD 16                /* room for the number of parts and a dot */
#define PART_MOST ((size_t)1 << 20) /* of a launcher without a limit */
#define ABORT_WAIT_NS 1000000000u
#define BEREFT_WAIT_NS 5000000000u /* mpiexec waits for word of that rank's end, too */
#define JOB_KEY "weft.job"

static char nothing[] = ""; /* a batch in which the rank put nothing */

static struct {
	struct weft_boot_info *info;
	const struct weft_boot_service *service;
	struct weft_boot_blob pending; /* put, not yet fenced */
	char ***batches;               /* [batch][rank]: text, `nothing`, or NULL: not fetched */
	int n_batches;
} job = {.service = &weft_boot_alone};

/* --- batches --- */

static void part_name(char *name, size_t size, int batch, int rank, int part)
{
	snprintf(name, size, "w%d.%d.%d", batch, rank, part);
}

/* Bytes of text in one value. */
static size_t part_room(void)
{
	size_t most = job.service->value_max();
	return (most < PART_MOST ? most : PART_MOST) - PART_HEAD;
}

static weft_err publish(int batch, const char *text, size_t len)
{
	size_t room = part_room();
	size_t parts = (len + room - 1) / room;
	if (parts > PARTS_MAX) {
		weft_error("%zu bytes are too many for the launcher's key-value space", len);
		return WEFT_ERR_LIMIT;
	}
	char *value = malloc(room + PART_HEAD + 1);
	if (!value)
		return WEFT_ERR_NOMEM;
	weft_err err = WEFT_OK;
	for (size_t i = 0; i < parts && !err; i++) {
		char name[48];
		part_name(name, sizeof name, batch, job.info->rank, (int)i);
		size_t n = len - i * room < room ? len - i * room : room;
		int head = i ? 0 : snprintf(value, PART_HEAD, "%zu.", parts);
		memcpy(value + head, text + i * room, n);
		value[(size_t)head + n] = 0;
		err = job.service->put(name, value);
	}
	explicit_bzero(value, room + PART_HEAD + 1);
	free(value);
	return err;
}

/* Appends the value of one part; its name is known to exist unless the launcher lost it. */
static weft_err append_part(const char *name, struct weft_boot_blob *all)
{
	const char *value;
	weft_err err = job.service->get(name, &value);
	if (err == WEFT_ERR_NOENT) {
		weft_error("the launcher lost key %s", name);
		return WEFT_ERR_PROTO;
	}
	if (err)
		return err;
	size_t n = strlen(value);
	char *text = realloc(all->text, all->len + n + 1);
	if (!text)
		return WEFT_ERR_NOMEM;
	memcpy(text + all->len, value, n + 1);
	all->text = text;
	all->len += n;
	return WEFT_OK;
}

static weft_err fetch_parts(int batch, int rank, const char *first, struct weft_boot_blob *all)
{
	char *end, name[48];
	part_name(name, sizeof name, batch, rank, 0);
	errno = 0;
	long parts = strtol(first, &end, 10);
	if (end == first || *end != '.' || errno || parts < 1 || parts > PARTS_MAX) {
		weft_error("the launcher's value of key %s is damaged", name);
		return WEFT_ERR_PROTO;
	}
	all->text = strdup(end + 1);
	if (!all->text)
		return WEFT_ERR_NOMEM;
	all->len = strlen(all->text);
	weft_err err = WEFT_OK;
	for (int i = 1; i < parts && !err; i++) {
		part_name(name, sizeof name, batch, rank, i);
		err = append_part(name, all);
	}
	if (!err && !weft_boot_blob_valid(all->text)) {
		weft_error("the launcher's value of key %s is damaged", name);
		err = WEFT_ERR_PROTO;
	}
	return err;
}

/* Fills the slot of (batch, rank) from the value of its part 0. */
static weft_err keep_text(int batch, int rank, const char *first)
{
	struct weft_boot_blob all = {0};
	weft_err err = fetch_parts(batch, rank, first, &all);
	if (err)
		weft_boot_blob_fini(&all);
	else
		job.batches[batch][rank] = all.text;
	return err;
}

static weft_err fetch_one(int batch, int rank)
{
	char name[48];
	const char *first;
	part_name(name, sizeof name, batch, rank, 0);
	weft_err err = job.service->get(name, &first);
	if (err == WEFT_ERR_NOENT) {
		job.batches[batch][rank] = nothing;
		return WEFT_OK;
	}
	return err ? err : keep_text(batch, rank, first);
}

/* Takes one text of many; *text_p moves behind it.  Ranks that are in memory already stay. */
static weft_err keep_next(int batch, int rank, char **text_p)
{
	char *first = *text_p, *end = strchr(first, ';');
	if (!end) {
		weft_error("the launcher's values of batch %d are damaged", batch);
		return WEFT_ERR_PROTO;
	}
	*end = 0;
	*text_p = end + 1;
	if (job.batches[batch][rank])
		return WEFT_OK;
	if (!*first) {
		job.batches[batch][rank] = nothing;
		return WEFT_OK;
	}
	return keep_text(batch, rank, first);
}

/* Many at once, where the launcher offers it: n ranks that read n ranks would need n * n requests.
 * NOENT: it does not. */
static weft_err fetch_many(int batch, int rank)
{
	int next;
	const char *answer;
	weft_err err = job.service->get_many(batch, rank, &next, &answer);
	if (err)
		return err;
	char *text = strdup(answer); /* further parts are read through the same buffer */
	if (!text)
		return WEFT_ERR_NOMEM;
	char *at = text;
	if (next > job.info->size)
		next = job.info->size;
	for (int r = rank; r < next && !err; r++)
		err = keep_next(batch, r, &at);
	free(text);
	return err;
}

/* The text of (batch, rank), fetched once. */
static weft_err batch_text(int batch, int rank, const char **text_p)
{
	if (!job.batches[batch][rank]) {
		weft_err err = job.service->get_many ? fetch_many(batch, rank) : WEFT_ERR_NOENT;
		if (err == WEFT_ERR_NOENT)
			err = fetch_one(batch, rank);
		if (err)
			return err;
	}
	*text_p = job.batches[batch][rank];
	return WEFT_OK;
}

static weft_err batch_add(void)
{
	char ***grown = realloc(job.batches, ((size_t)job.n_batches + 1) * sizeof *grown);
	if (!grown)
		return WEFT_ERR_NOMEM;
	job.batches = grown;
	char **row = calloc((size_t)job.info->size, sizeof *row);
	if (!row)
		return WEFT_ERR_NOMEM;
	job.batches[job.n_batches++] = row;
	return WEFT_OK;
}

static void batches_free(void)
{
	for (int i = 0; i < job.n_batches; i++) {
		for (int r = 0; r < job.info->size; r++) {
			char *text = job.batches[i][r];
			if (text && text != nothing) {
				explicit_bzero(text, strlen(text));
				free(text);
			}
		}
		free(job.batches[i]);
	}
	free(job.batches);
	job.batches = NULL;
	job.n_batches = 0;
	if (job.pending.text)
		explicit_bzero(job.pending.text, job.pending.len);
	weft_boot_blob_fini(&job.pending);
}

/* --- joining --- */

/* Under a foreign launcher rank 0 makes the secret and tells the others. */
static weft_err secret_by_kvs(void)
{
	struct weft_boot_info *info = job.info;
	char text[WEFT_BOOT_SECRET_TEXT];
	weft_err err = WEFT_OK;
	info->secret_by_kvs = true;
	if (info->rank == 0) {
		err = weft_boot_secret_make(info);
		if (!err) {
			weft_boot_secret_print(info, text);
			err = weft_boot_put(JOB_KEY, text);
		}
	}
	if (!err)
		err = weft_boot_fence();
	if (!err && info->rank != 0) {
		err = weft_boot_get(0, JOB_KEY, text, sizeof text);
		if (err == WEFT_ERR_NOENT)
			weft_error("key %s of rank 0, the job's secret, is missing", JOB_KEY);
	}
	if (!err && info->rank != 0) {
		err = weft_boot_secret_parse(text, info);
		if (err)
			weft_error("key %s of rank 0, the job's secret, is damaged", JOB_KEY);
	}
	explicit_bzero(text, sizeof text);
	return err;
}

static weft_err join(const struct weft_boot_env *env)
{
	struct weft_boot_info *info = job.info;
	weft_err err = job.service->open(env, info);
	if (err)
		return err;
	if (env->secret_fd >= 0)
		return weft_boot_secret_receive(env->secret_fd, info);
	return info->size > 1 || env->pmi_fd >= 0 ? secret_by_kvs() : weft_boot_secret_make(info);
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
	job.info->rank = env.rank;
	job.info->size = env.size;
	job.service = env.service;
	if (env.size > 1)
		weft_log_set_rank(env.rank);
	err = join(&env);
	if (!err)
		err = weft_boot_psets_open(env.rank, env.size);
	if (err) {
		weft_boot_psets_close();
		batches_free();
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
	return weft_boot_blob_add(&job.pending, key, value);
}

weft_err weft_boot_fence(void)
{
	if (!job.info)
		return WEFT_ERR_STATE;
	weft_err err = batch_add();
	if (err)
		return err;
	int batch = job.n_batches - 1;
	/* My own values need no way through the launcher. */
	job.batches[batch][job.info->rank] = job.pending.len ? job.pending.text : nothing;
	size_t len = job.pending.len;
	job.pending = (struct weft_boot_blob){0};
	if (len)
		err = publish(batch, job.batches[batch][job.info->rank], len);
	return err ? err : job.service->fence();
}

weft_err weft_boot_get(int rank, const char *key, char *buf, size_t size)
{
	if (!job.info)
		return WEFT_ERR_STATE;
	if (rank < 0 || rank >= job.info->size || !size)
		return WEFT_ERR_ARG;
	for (int batch = job.n_batches - 1; batch >= 0; batch--) {
		const char *text;
		weft_err err = batch_text(batch, rank, &text);
		if (!err)
			err = weft_boot_blob_find(text, key, buf, size);
		if (err == WEFT_ERR_TRUNC)
			weft_error("key %s of rank %d is longer than expected", key, rank);
		if (err != WEFT_ERR_NOENT)
			return err;
	}
	return WEFT_ERR_NOENT;
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
	batches_free();
	weft_boot_info_destroy(job.info);
	job.info = NULL;
}

/* Writes out what stdio holds, unless another thread is inside f or its reader has stopped: both could last
 * for ever, and the job has to end now. */
static void flush_quickly(FILE *f)
{
	struct pollfd pfd = {.fd = fileno(f), .events = POLLOUT};
	for (int tries = 0; ftrylockfile(f); tries++) {
		if (tries == 20)
			return;
		struct timespec pause = {.tv_nsec = 5000000};
		nanosleep(&pause, NULL);
	}
	if (poll(&pfd, 1, 200) > 0)
		fflush_unlocked(f);
	funlockfile(f);
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
	flush_quickly(stdout);
	if (text)
		weft_error("%s", text);
	flush_quickly(stderr);
	if (job.service->abort(code, false, text))
		wait_for_end(ABORT_WAIT_NS);
	_exit(code & 255 ? code & 255 : 1);
}

_Noreturn void weft_boot_abort_bereft(int code, const char *text)
{
	flush_quickly(stdout);
	flush_quickly(stderr);
	if (job.service->abort(code, true, text)) {
		wait_for_end(BEREFT_WAIT_NS);
		weft_error("%s", text); /* the launcher has not told it */
		_exit(code & 255 ? code & 255 : 1);
	}
	weft_boot_abort(code, text);
}
