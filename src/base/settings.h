/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * settings.h - the one table of what can be configured.
 *
 * A setting NAME is read from the environment variable WEFT_NAME (upper case), once, by
 * weft_settings_load(); `weft info` and the manual page print the same table.  What is not set
 * there, `weft sample` may have measured (sample.h); else the default stands.
 *
 * Callers   load: the starting thread, before any other layer.  Reading: any thread, after that.
 *           The few settings that may change while running have their own setter in the layer
 *           that owns them.
 * Errors    an unknown WEFT_ variable or a value out of range: one line, WEFT_ERR_ARG.
 */
#ifndef WEFT_SETTINGS_H
#define WEFT_SETTINGS_H

#include <stdio.h>
#include "base/base.h"

enum weft_setting_kind {
	WEFT_SETTING_INT,  /* decimal, with optional k, m, g (powers of 1024) */
	WEFT_SETTING_BOOL, /* 0 1 no yes off on false true */
	WEFT_SETTING_STR,
	WEFT_SETTING_ENUM, /* one word of `choices` */
};

#define WEFT_SETTING_CHOICES 8 /* words of an ENUM, at most */

enum weft_setting_id {
#define WEFT_SETTING(id, name, kind, dflt, lo, hi, choices, help) WEFT_SET_##id,
#include "base/settings_table.h"
#undef WEFT_SETTING
	WEFT_SETTING_COUNT
};

struct weft_setting {
	const char *name; /* lower case, as in `weft info` */
	enum weft_setting_kind kind;
	const char *dflt;    /* as text */
	int64_t lo, hi;      /* range of INT */
	const char *choices; /* "a|b|c" of ENUM, else NULL */
	const char *help;
};

/* Reads the environment.  Logs each mistake in one line; WEFT_ERR_ARG if there was one. */
weft_err weft_settings_load(void) weft_must_use;

int64_t weft_setting_int(enum weft_setting_id id);
bool weft_setting_bool(enum weft_setting_id id);
const char *weft_setting_str(enum weft_setting_id id); /* STR and ENUM; never NULL */

/* Was it given by the user, or is it the default? */
bool weft_setting_given(enum weft_setting_id id);

/* Or is it what `weft sample` measured? */
bool weft_setting_measured(enum weft_setting_id id);

/* The same number for messages between this host and that one, where `weft sample` measured it for
 * the two. */
int64_t weft_setting_for_host(enum weft_setting_id id, const char *host);

/* The description of setting id. */
const struct weft_setting *weft_setting_info(enum weft_setting_id id);

/*
 * Replaces a value (tests, MPI_T, MPI info), for what reads it from then on.  One thread at a time; a text that
 * weft_setting_str gave out for this setting is no longer valid, but for ENUM.
 */
weft_err weft_setting_set(enum weft_setting_id id, const char *value) weft_must_use;

/* Every setting, its value, default and help, one block each. */
void weft_settings_print(FILE *out);

#endif
