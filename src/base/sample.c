/* SPDX-License-Identifier: BSD-3-Clause */
/* sample.c - reads the file of measured switch points. */
#include "base/sample.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const enum weft_setting_id weft_sample_id[WEFT_SAMPLE_COUNT] = {
	WEFT_SET_EAGER_SHM, WEFT_SET_EAGER_TCP, WEFT_SET_SHARE_COPY};

bool weft_sample_has(enum weft_setting_id id)
{
	for (int i = 0; i < WEFT_SAMPLE_COUNT; i++)
		if (weft_sample_id[i] == id)
			return true;
	return false;
}

static int index_of(const char *name)
{
	for (int i = 0; i < WEFT_SAMPLE_COUNT; i++)
		if (strcmp(weft_setting_info(weft_sample_id[i])->name, name) == 0)
			return i;
	return -1;
}

/* Digits alone, within the setting's range; else -1. */
static int64_t number_of(const char *text, const struct weft_setting *s)
{
	int64_t v = 0;
	if (!*text)
		return -1;
	for (; *text; text++) {
		if (*text < '0' || *text > '9' || v > (INT64_MAX - 9) / 10)
			return -1;
		v = v * 10 + (*text - '0');
	}
	return v < s->lo || v > s->hi ? -1 : v;
}

/* One line "NAME BYTES", which it cuts into its words. */
static weft_err take(char *line, unsigned n, struct weft_sample *out, char *why, size_t why_size)
{
	char *rest = NULL;
	const char *name = strtok_r(line, " \t\r", &rest);
	const char *value = strtok_r(NULL, " \t\r", &rest);
	if (!name)
		return WEFT_OK;
	int i = index_of(name);
	int64_t v = -1;
	if (i < 0)
		snprintf(why, why_size, "line %u: no switch point has this name", n);
	else if (out->value[i] >= 0)
		snprintf(why, why_size, "line %u: %s for the second time", n, name);
	else if (!value || strtok_r(NULL, " \t\r", &rest) ||
		 (v = number_of(value, weft_setting_info(weft_sample_id[i]))) < 0)
		snprintf(why, why_size, "line %u: %s wants one number from %lld to %lld", n,
			 weft_setting_info(weft_sample_id[i])->name,
			 (long long)weft_setting_info(weft_sample_id[i])->lo,
			 (long long)weft_setting_info(weft_sample_id[i])->hi);
	if (v < 0)
		return WEFT_ERR_ARG;
	out->value[i] = v;
	return WEFT_OK;
}

static void nothing(struct weft_sample *out)
{
	for (int i = 0; i < WEFT_SAMPLE_COUNT; i++)
		out->value[i] = -1;
}

weft_err weft_sample_parse(const char *text, size_t len, struct weft_sample *out, char *why,
			   size_t why_size)
{
	unsigned n = 0;
	weft_err err = WEFT_OK;
	nothing(out);
	for (size_t at = 0; !err && at < len;) {
		char line[128];
		const char *end = memchr(text + at, '\n', len - at);
		size_t k = end ? (size_t)(end - text) - at : len - at;
		n++;
		if (k >= sizeof line || memchr(text + at, 0, k)) {
			snprintf(why, why_size, "line %u is no text of this kind", n);
			err = WEFT_ERR_ARG;
			break;
		}
		memcpy(line, text + at, k);
		line[k] = 0;
		at += k + 1;
		if (n == 1 && strcmp(line, "weft-sample 1") != 0) {
			snprintf(why, why_size, "it does not begin with `weft-sample 1`");
			err = WEFT_ERR_ARG;
		} else if (n > 1) {
			line[strcspn(line, "#")] = 0;
			err = take(line, n, out, why, why_size);
		}
	}
	if (!n) {
		snprintf(why, why_size, "it is empty");
		err = WEFT_ERR_ARG;
	}
	if (err)
		nothing(out);
	return err;
}

weft_err weft_sample_read(const char *path, struct weft_sample *out, char *why, size_t why_size)
{
	char text[WEFT_SAMPLE_MAX + 1];
	struct stat st;
	nothing(out);
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0) {
		snprintf(why, why_size, "%s", strerror(errno));
		return errno == ENOENT || errno == ENOTDIR || errno == EACCES ? WEFT_ERR_NOENT
									      : WEFT_ERR_ARG;
	}
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		snprintf(why, why_size, "no plain file");
		close(fd);
		return WEFT_ERR_ARG;
	}
	/* A file of this size comes in one piece. */
	ssize_t n = read(fd, text, sizeof text);
	close(fd);
	if (n < 0 || n > WEFT_SAMPLE_MAX) {
		snprintf(why, why_size, "%s", n < 0 ? strerror(errno) : "it is too long");
		return WEFT_ERR_ARG;
	}
	return weft_sample_parse(text, (size_t)n, out, why, why_size);
}

bool weft_sample_path(char *path, size_t size)
{
	const char *set = weft_setting_str(WEFT_SET_SAMPLE_FILE);
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	char host[256];
	int n;
	if (strcmp(set, "none") == 0)
		return false;
	if (gethostname(host, sizeof host))
		return false;
	host[sizeof host - 1] = 0;
	if (*set)
		n = snprintf(path, size, "%s", set);
	else if (strchr(host, '/'))
		return false;
	else if (cache && *cache == '/')
		n = snprintf(path, size, "%s/weft/sample-%s", cache, host);
	else if (home && *home == '/')
		n = snprintf(path, size, "%s/.cache/weft/sample-%s", home, host);
	else
		return false;
	return n > 0 && (size_t)n < size;
}
