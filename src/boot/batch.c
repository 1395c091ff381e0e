/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * batch.c - what a rank has put between two fences, as one text under one key.
 *
 * Gain   a fence of n ranks costs n puts and a reader one get per rank and fence, however many
 *        keys there are.  Where the launcher's values are short, the text goes in parts.
 * Names  "w<batch>.<rank>.<part>"; part 0 begins with the number of parts and a dot.
 */
#include "boot/batch.h"
#include "boot/blob.h"
#include "boot/service.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/log.h"

#define PARTS_MAX 65536
#define PART_HEAD 16                /* room for the number of parts and a dot */
#define PART_MOST ((size_t)1 << 20) /* of a launcher without a limit */

static char nothing[] = ""; /* a batch in which the rank put nothing */

static struct {
	const struct weft_boot_service *service;
	int rank, size;
	struct weft_boot_blob pending; /* put, not yet fenced */
	char ***batches;               /* [batch][rank]: text, `nothing`, or NULL: not fetched */
	int n_batches;
} kept;

void weft_boot_batch_open(const struct weft_boot_service *service, int rank, int size)
{
	kept.service = service;
	kept.rank = rank;
	kept.size = size;
}

void weft_boot_batch_part_name(char name[WEFT_BOOT_PART_NAME], int batch, int rank, int part)
{
	snprintf(name, WEFT_BOOT_PART_NAME, "w%d.%d.%d", batch, rank, part);
}

/* Bytes of text in one value. */
static size_t part_room(void)
{
	size_t most = kept.service->value_max();
	return (most < PART_MOST ? most : PART_MOST) - PART_HEAD;
}

static weft_err publish_batch(int batch, const char *text, size_t len)
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
		char name[WEFT_BOOT_PART_NAME];
		weft_boot_batch_part_name(name, batch, kept.rank, (int)i);
		size_t n = len - i * room < room ? len - i * room : room;
		int head = i ? 0 : snprintf(value, PART_HEAD, "%zu.", parts);
		memcpy(value + head, text + i * room, n);
		value[(size_t)head + n] = 0;
		err = kept.service->put(name, value);
	}
	explicit_bzero(value, room + PART_HEAD + 1);
	free(value);
	return err;
}

/* Appends the value of one part; its name is known to exist unless the launcher lost it. */
static weft_err append_part(const char *name, struct weft_boot_blob *all)
{
	const char *value;
	weft_err err = kept.service->get(name, &value);
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
	weft_boot_batch_part_name(name, batch, rank, 0);
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
		weft_boot_batch_part_name(name, batch, rank, i);
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
		kept.batches[batch][rank] = all.text;
	return err;
}

static weft_err fetch_one(int batch, int rank)
{
	char name[WEFT_BOOT_PART_NAME];
	const char *first;
	weft_boot_batch_part_name(name, batch, rank, 0);
	weft_err err = kept.service->get(name, &first);
	if (err == WEFT_ERR_NOENT) {
		kept.batches[batch][rank] = nothing;
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
	if (kept.batches[batch][rank])
		return WEFT_OK;
	if (!*first) {
		kept.batches[batch][rank] = nothing;
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
	weft_err err = kept.service->get_many(batch, rank, &next, &answer);
	if (err)
		return err;
	char *text = strdup(answer); /* further parts are read through the same buffer */
	if (!text)
		return WEFT_ERR_NOMEM;
	char *at = text;
	if (next > kept.size)
		next = kept.size;
	for (int r = rank; r < next && !err; r++)
		err = keep_next(batch, r, &at);
	free(text);
	return err;
}

/* The text of (batch, rank), fetched once. */
static weft_err batch_text(int batch, int rank, const char **text_p)
{
	if (!kept.batches[batch][rank]) {
		weft_err err = kept.service->get_many ? fetch_many(batch, rank) : WEFT_ERR_NOENT;
		if (err == WEFT_ERR_NOENT)
			err = fetch_one(batch, rank);
		if (err)
			return err;
	}
	*text_p = kept.batches[batch][rank];
	return WEFT_OK;
}

static weft_err batch_add(void)
{
	char ***grown = realloc(kept.batches, ((size_t)kept.n_batches + 1) * sizeof *grown);
	if (!grown)
		return WEFT_ERR_NOMEM;
	kept.batches = grown;
	char **row = calloc((size_t)kept.size, sizeof *row);
	if (!row)
		return WEFT_ERR_NOMEM;
	kept.batches[kept.n_batches++] = row;
	return WEFT_OK;
}

weft_err weft_boot_batch_put(const char *key, const char *value)
{
	return weft_boot_blob_add(&kept.pending, key, value);
}

weft_err weft_boot_batch_fence(void)
{
	weft_err err = batch_add();
	if (err)
		return err;
	int batch = kept.n_batches - 1;
	/* My own values need no way through the launcher. */
	kept.batches[batch][kept.rank] = kept.pending.len ? kept.pending.text : nothing;
	size_t len = kept.pending.len;
	kept.pending = (struct weft_boot_blob){0};
	if (len)
		err = publish_batch(batch, kept.batches[batch][kept.rank], len);
	return err ? err : kept.service->fence();
}

weft_err weft_boot_batch_get(int rank, const char *key, char *buf, size_t size)
{
	for (int batch = kept.n_batches - 1; batch >= 0; batch--) {
		const char *text;
		weft_err err = batch_text(batch, rank, &text);
		if (!err)
			err = weft_boot_blob_find(text, key, buf, size);
		if (err != WEFT_ERR_NOENT)
			return err;
	}
	return WEFT_ERR_NOENT;
}

void weft_boot_batch_close(void)
{
	for (int i = 0; i < kept.n_batches; i++) {
		for (int r = 0; r < kept.size; r++) {
			char *text = kept.batches[i][r];
			if (text && text != nothing) {
				explicit_bzero(text, strlen(text));
				free(text);
			}
		}
		free(kept.batches[i]);
	}
	free(kept.batches);
	kept.batches = NULL;
	kept.n_batches = 0;
	if (kept.pending.text)
		explicit_bzero(kept.pending.text, kept.pending.len);
	weft_boot_blob_fini(&kept.pending);
}
