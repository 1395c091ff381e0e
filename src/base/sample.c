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

static const char blank[] = " \t\r";

/* What follows the name of a switch point: one number and nothing else; else -1, and why. */
static int64_t value_of(int i, char **rest, unsigned n, char *why, size_t why_size)
{
	const struct weft_setting *s = weft_setting_info(weft_sample_id[i]);
	const char *text = strtok_r(NULL, blank, rest);
	int64_t v = text && !strtok_r(NULL, blank, rest) ? number_of(text, s) : -1;
	if (v < 0)
		snprintf(why, why_size, "line %u: %s wants one number from %lld to %lld", n,
			 s->name, (long long)s->lo, (long long)s->hi);
	return v;
}

static bool is_host(const char *name)
{
	size_t n = strlen(name);
	return n && n < WEFT_SAMPLE_NAME &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
		       n;
}

static struct weft_sample_host *host_find(struct weft_sample *s, const char *name)
{
	for (unsigned i = 0; i < s->n_hosts; i++)
		if (strcmp(s->host[i].name, name) == 0)
			return &s->host[i];
	return NULL;
}

bool weft_sample_set_host(struct weft_sample *s, const char *name, int64_t eager_tcp)
{
	struct weft_sample_host *h = host_find(s, name);
	if (!h && (!is_host(name) || s->n_hosts == WEFT_SAMPLE_HOSTS))
		return false;
	if (!h) {
		h = &s->host[s->n_hosts++];
		strcpy(h->name, name); /* is_host: it fits */
	}
	h->eager_tcp = eager_tcp;
	return true;
}

bool weft_sample_own_name(char name[WEFT_SAMPLE_NAME])
{
	if (gethostname(name, WEFT_SAMPLE_NAME))
		return false;
	name[WEFT_SAMPLE_NAME - 1] = 0;
	return is_host(name);
}

/* The rest of "host HOST eager_tcp BYTES". */
static weft_err take_host(char **rest, unsigned n, struct weft_sample *out, char *why,
			  size_t why_size)
{
	const char *host = strtok_r(NULL, blank, rest);
	const char *name = strtok_r(NULL, blank, rest);
	int i = name ? index_of(name) : -1;
	if (!host || !is_host(host) || i < 0 || weft_sample_id[i] != WEFT_SET_EAGER_TCP) {
		snprintf(why, why_size, "line %u: it is `host HOST eager_tcp BYTES`", n);
		return WEFT_ERR_ARG;
	}
	if (host_find(out, host)) {
		snprintf(why, why_size, "line %u: host %s for the second time", n, host);
		return WEFT_ERR_ARG;
	}
	int64_t v = value_of(i, rest, n, why, why_size);
	if (v >= 0 && !weft_sample_set_host(out, host, v)) {
		snprintf(why, why_size, "line %u: more than %d hosts", n, WEFT_SAMPLE_HOSTS);
		v = -1;
	}
	return v < 0 ? WEFT_ERR_ARG : WEFT_OK;
}

/* One line, which it cuts into its words. */
static weft_err take_line(char *line, unsigned n, bool hosts, struct weft_sample *out, char *why,
			  size_t why_size)
{
	char *rest = NULL;
	const char *name = strtok_r(line, blank, &rest);
	if (!name)
		return WEFT_OK;
	if (hosts && strcmp(name, "host") == 0)
		return take_host(&rest, n, out, why, why_size);
	int i = index_of(name);
	if (i < 0)
		snprintf(why, why_size, "line %u: no switch point has this name", n);
	else if (out->value[i] >= 0)
		snprintf(why, why_size, "line %u: %s for the second time", n, name);
	else
		out->value[i] = value_of(i, &rest, n, why, why_size);
	return i >= 0 && out->value[i] >= 0 && !*why ? WEFT_OK : WEFT_ERR_ARG;
}

static void clear_sample(struct weft_sample *out)
{
	for (int i = 0; i < WEFT_SAMPLE_COUNT; i++)
		out->value[i] = -1;
	out->n_hosts = 0;
}

weft_err weft_sample_parse(const char *text, size_t len, struct weft_sample *out, char *why,
			   size_t why_size)
{
	unsigned n = 0;
	bool hosts = false;
	weft_err err = WEFT_OK;
	clear_sample(out);
	if (why_size)
		*why = 0;
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
		if (n == 1) {
			hosts = strcmp(line, "weft-sample 2") == 0;
			if (!hosts && strcmp(line, "weft-sample 1") != 0) {
				snprintf(why, why_size,
					 "it begins with neither `weft-sample 1` nor `2`");
				err = WEFT_ERR_ARG;
			}
		} else {
			line[strcspn(line, "#")] = 0;
			err = take_line(line, n, hosts, out, why, why_size);
		}
	}
	if (!n) {
		snprintf(why, why_size, "it is empty");
		err = WEFT_ERR_ARG;
	}
	if (err)
		clear_sample(out);
	return err;
}

weft_err weft_sample_read(const char *path, struct weft_sample *out, char *why, size_t why_size)
{
	char text[WEFT_SAMPLE_MAX + 1];
	struct stat st;
	clear_sample(out);
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

weft_err weft_sample_print(const struct weft_sample *s, char *text, size_t size)
{
	int n = snprintf(text, size, "weft-sample 2\n# by `weft sample`, in bytes\n");
	for (int i = 0; i < WEFT_SAMPLE_COUNT && n > 0 && (size_t)n < size; i++)
		if (s->value[i] >= 0)
			n += snprintf(text + n, size - (size_t)n, "%s %lld\n",
				      weft_setting_info(weft_sample_id[i])->name,
				      (long long)s->value[i]);
	for (unsigned i = 0; i < s->n_hosts && n > 0 && (size_t)n < size; i++)
		n += snprintf(text + n, size - (size_t)n, "host %s eager_tcp %lld\n",
			      s->host[i].name, (long long)s->host[i].eager_tcp);
	return n > 0 && (size_t)n < size ? WEFT_OK : WEFT_ERR_LIMIT;
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
