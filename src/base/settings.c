/* SPDX-License-Identifier: BSD-3-Clause */
/* settings.c - reads, checks and prints the table of settings. */
#include "base/settings.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/log.h"
#include "base/sample.h"

extern char **environ;

static const struct weft_setting table[WEFT_SETTING_COUNT] = {
#define WEFT_SETTING(id, name, kind, dflt, lo, hi, choices, help)                                  \
	[WEFT_SET_##id] = {name, WEFT_SETTING_##kind, dflt, lo, hi, choices, help},
#include "base/settings_table.h"
#undef WEFT_SETTING
};

struct value {
	int64_t number;
	const char *text;
	bool given;
	bool measured;     /* from the file of weft sample */
	char sampled[24];  /* its text then */
	const char *wrong; /* what of the environment was not understood, and said so */
	char *own;         /* set by a call: our copy; outlasts a later look at the environment */
	char *word
		[WEFT_SETTING_CHOICES]; /* ENUM: copies that stay, for threads that read one now */
};

static struct value values[WEFT_SETTING_COUNT];
static bool loaded;
static struct weft_sample sample; /* the file that was read last */

static weft_err parse_int(const struct weft_setting *s, const char *text, int64_t *out_p)
{
	char *end;
	errno = 0;
	long long v = strtoll(text, &end, 10);
	if (end == text || errno)
		return WEFT_ERR_ARG;
	unsigned shift = 0;
	switch (tolower((unsigned char)*end)) {
	case 'k':
		shift = 10;
		break;
	case 'm':
		shift = 20;
		break;
	case 'g':
		shift = 30;
		break;
	}
	if (shift)
		end++;
	long long scaled;
	if (*end || __builtin_mul_overflow(v, 1LL << shift, &scaled))
		return WEFT_ERR_ARG;
	if (scaled < s->lo || scaled > s->hi)
		return WEFT_ERR_ARG;
	*out_p = scaled;
	return WEFT_OK;
}

static weft_err parse_bool(const char *text, int64_t *out_p)
{
	static const char *const no[] = {"0", "no", "off", "false"};
	static const char *const yes[] = {"1", "yes", "on", "true"};
	for (size_t i = 0; i < weft_countof(no); i++) {
		if (strcasecmp(text, no[i]) == 0) {
			*out_p = 0;
			return WEFT_OK;
		}
		if (strcasecmp(text, yes[i]) == 0) {
			*out_p = 1;
			return WEFT_OK;
		}
	}
	return WEFT_ERR_ARG;
}

static bool is_choice(const char *choices, const char *text)
{
	size_t n = strlen(text);
	for (const char *p = choices; p; p = strchr(p, '|') ? strchr(p, '|') + 1 : NULL)
		if (n && strncmp(p, text, n) == 0 && (p[n] == '|' || p[n] == 0))
			return true;
	return false;
}

static weft_err parse_value(enum weft_setting_id id, const char *text)
{
	const struct weft_setting *s = &table[id];
	struct value *v = &values[id];
	weft_err err = WEFT_OK;
	int64_t number = 0;
	switch (s->kind) {
	case WEFT_SETTING_INT:
		err = parse_int(s, text, &number);
		break;
	case WEFT_SETTING_BOOL:
		err = parse_bool(text, &number);
		break;
	case WEFT_SETTING_ENUM:
		err = is_choice(s->choices, text) ? WEFT_OK : WEFT_ERR_ARG;
		break;
	case WEFT_SETTING_STR:
		break;
	}
	if (err)
		return err;
	v->number = number;
	v->text = text;
	return WEFT_OK;
}

static void log_mistake(enum weft_setting_id id, const char *name, const char *text)
{
	const struct weft_setting *s = &table[id];
	if (s->kind == WEFT_SETTING_INT)
		weft_error("%s=%.100s is not a number from %lld to %lld", name, text,
			   (long long)s->lo, (long long)s->hi);
	else if (s->kind == WEFT_SETTING_BOOL)
		weft_error("%s=%.100s is neither on nor off", name, text);
	else
		weft_error("%s=%.100s is not one of %s", name, text, s->choices);
}

static int id_of_env(const char *name, size_t len)
{
	for (int i = 0; i < WEFT_SETTING_COUNT; i++)
		if (strlen(table[i].name) == len && strncasecmp(table[i].name, name, len) == 0)
			return i;
	return -1;
}

/* What weft sample has measured stands where nothing is set. */
static void use_sample(void)
{
	static bool said;
	char path[4096], why[160];
	sample.n_hosts = 0;
	if (!weft_sample_path(path, sizeof path))
		return;
	weft_err err = weft_sample_read(path, &sample, why, sizeof why);
	if (err && err != WEFT_ERR_NOENT && !said) {
		weft_warn("%s: %s; nothing of it is used, `weft sample` makes it anew", path, why);
		said = true;
	}
	for (int i = 0; i < WEFT_SAMPLE_COUNT && !err; i++) {
		enum weft_setting_id id = weft_sample_id[i];
		struct value *v = &values[id];
		if (v->given || sample.value[i] < 0)
			continue;
		snprintf(v->sampled, sizeof v->sampled, "%lld", (long long)sample.value[i]);
		v->measured = parse_value(id, v->sampled) == WEFT_OK;
	}
}

/* The commands have variables of their own, the launcher has, and the tests. */
static bool belongs_to_others(const char *assignment)
{
	static const char *const theirs[] = {
		"WEFT_CC=",   "WEFT_CXX=",  "WEFT_FC=",       "WEFT_FORTRAN_CACHE=",
		"WEFT_LONG=", "WEFT_BOOT_", "WEFT_SPAWN_FD=", "WEFT_SPAWN_PORT=",
		"WEFT_JOB_"};
	for (size_t i = 0; i < weft_countof(theirs); i++)
		if (strncmp(assignment, theirs[i], strlen(theirs[i])) == 0)
			return true;
	return false;
}

weft_err weft_settings_load(void)
{
	weft_err result = WEFT_OK;
	for (int i = 0; i < WEFT_SETTING_COUNT; i++) {
		if (values[i].own)
			continue;
		if (parse_value((enum weft_setting_id)i, table[i].dflt))
			weft_panic("the default of setting %s is wrong", table[i].name);
		values[i].given = values[i].measured = false;
	}
	loaded = true;

	for (char **e = environ; e && *e; e++) {
		if (strncmp(*e, "WEFT_", 5) != 0 || belongs_to_others(*e))
			continue;
		const char *eq = strchr(*e, '=');
		if (!eq)
			continue;
		char name[64];
		snprintf(name, sizeof name, "%.*s", (int)(eq - *e), *e);
		int id = id_of_env(*e + 5, (size_t)(eq - *e) - 5);
		if (id < 0) {
			weft_warn("%s is not a setting; `weft info` lists them", name);
			continue;
		}
		if (values[id].own)
			continue;
		if (parse_value((enum weft_setting_id)id, eq + 1)) {
			if (values[id].wrong != eq + 1) /* said once, however often it is read */
				log_mistake((enum weft_setting_id)id, name, eq + 1);
			values[id].wrong = eq + 1;
			result = WEFT_ERR_ARG;
			continue;
		}
		values[id].given = true;
	}
	weft_log_init();
	use_sample();
	return result;
}

int64_t weft_setting_for_host(enum weft_setting_id id, const char *host)
{
	int64_t found = weft_setting_int(id);
	for (unsigned i = 0; i < sample.n_hosts; i++)
		if (id == WEFT_SET_EAGER_TCP && !weft_setting_given(id) &&
		    strcmp(sample.host[i].name, host) == 0)
			found = sample.host[i].eager_tcp;
	return found;
}

static const struct value *value_of(enum weft_setting_id id)
{
	if (!loaded && weft_settings_load() != WEFT_OK)
		weft_debug("settings with mistakes fall back to their defaults");
	return &values[id];
}

int64_t weft_setting_int(enum weft_setting_id id)
{
	return value_of(id)->number;
}

bool weft_setting_bool(enum weft_setting_id id)
{
	return value_of(id)->number != 0;
}

const char *weft_setting_str(enum weft_setting_id id)
{
	return value_of(id)->text;
}

bool weft_setting_given(enum weft_setting_id id)
{
	return value_of(id)->given;
}

bool weft_setting_measured(enum weft_setting_id id)
{
	return value_of(id)->measured;
}

const struct weft_setting *weft_setting_info(enum weft_setting_id id)
{
	return &table[id];
}

/* One of its choices; NULL: no memory. */
static char *kept_word(struct value *v, const char *word)
{
	for (int i = 0; i < WEFT_SETTING_CHOICES; i++) {
		if (!v->word[i])
			v->word[i] = strdup(word);
		if (!v->word[i] || strcmp(v->word[i], word) == 0)
			return v->word[i];
	}
	return NULL;
}

weft_err weft_setting_set(enum weft_setting_id id, const char *value)
{
	(void)value_of(id);
	struct value *v = &values[id];
	if (table[id].kind == WEFT_SETTING_ENUM && !is_choice(table[id].choices, value)) {
		log_mistake(id, table[id].name, value);
		return WEFT_ERR_ARG;
	}
	/* Lives until the next set: readers copy what must last. */
	char *copy = table[id].kind == WEFT_SETTING_ENUM ? kept_word(v, value) : strdup(value);
	if (!copy)
		return WEFT_ERR_NOMEM;
	char *before = table[id].kind == WEFT_SETTING_ENUM ? NULL : v->own;
	weft_err err = parse_value(id, copy);
	if (err) {
		log_mistake(id, table[id].name, value);
		if (table[id].kind != WEFT_SETTING_ENUM)
			free(copy);
		return err;
	}
	v->given = true;
	v->measured = false;
	v->own = copy;
	free(before);
	return WEFT_OK;
}

void weft_settings_print(FILE *out)
{
	for (int i = 0; i < WEFT_SETTING_COUNT; i++) {
		const struct value *v = value_of((enum weft_setting_id)i);
		const char *from = "";
		if (v->given)
			from = "  (set)";
		else if (weft_sample_has((enum weft_setting_id)i))
			from = v->measured ? "  (from the file)" : "  (guessed)";
		fprintf(out, "  %-20s %s%s\n", table[i].name, v->text[0] ? v->text : "(empty)",
			from);
		fprintf(out, "      %s; default %s\n", table[i].help,
			table[i].dflt[0] ? table[i].dflt : "(empty)");
	}
}
