/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sample.h - the file in which `weft sample` leaves the switch points that it measured.
 *
 * Text: the line "weft-sample 1" or "weft-sample 2", then one line "NAME BYTES" for some of the
 * settings eager_shm, eager_tcp and share_copy, and, in version 2, one line "host HOST eager_tcp
 * BYTES" for each host that this one was measured with; blank lines and lines from # on say
 * nothing.
 *
 * Callers   weft_settings_load, `weft sample`; one thread.
 * Errors    a file with a mistake counts as none at all: one line says which.
 */
#ifndef WEFT_SAMPLE_H
#define WEFT_SAMPLE_H

#include "base/settings.h"

#define WEFT_SAMPLE_COUNT 3
#define WEFT_SAMPLE_MAX 16384 /* bytes of a file */
#define WEFT_SAMPLE_HOSTS 128
#define WEFT_SAMPLE_NAME 65 /* of a host, with its end */

extern const enum weft_setting_id weft_sample_id[WEFT_SAMPLE_COUNT];

struct weft_sample {
	int64_t value[WEFT_SAMPLE_COUNT]; /* by weft_sample_id; -1: not in the file */
	unsigned n_hosts;
	struct weft_sample_host {
		char name[WEFT_SAMPLE_NAME];
		int64_t eager_tcp;
	} host[WEFT_SAMPLE_HOSTS];
};

/* Reads len bytes.  WEFT_ERR_ARG: why says what is wrong, *out holds nothing. */
weft_err weft_sample_parse(const char *text, size_t len, struct weft_sample *out, char *why,
			   size_t why_size) weft_must_use;

/* The same from a file; WEFT_ERR_NOENT: there is none. */
weft_err weft_sample_read(const char *path, struct weft_sample *out, char *why,
			  size_t why_size) weft_must_use;

/* The text that parses to *s; WEFT_ERR_LIMIT: it does not fit. */
weft_err weft_sample_print(const struct weft_sample *s, char *text, size_t size) weft_must_use;

/* Gives a host its value.  False: there are too many, or it is no name of a host. */
bool weft_sample_set_host(struct weft_sample *s, const char *name, int64_t eager_tcp) weft_must_use;

/* This host's own name, as others are to call it; false: it has none that can be used. */
bool weft_sample_own_name(char name[WEFT_SAMPLE_NAME]) weft_must_use;

/* Where the file lies by the setting sample_file; false: nowhere. */
bool weft_sample_path(char *path, size_t size) weft_must_use;

/* Is this one of the settings that can be measured? */
bool weft_sample_has(enum weft_setting_id id);

#endif
