/* SPDX-License-Identifier: BSD-3-Clause */
/* hosts.c - reads hosts word by word; the translated file lies in a memfd that exec leaves open. */
#include "hosts.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "plan.h"
#include "say.h"

#define NAME_MAX_BYTES 253 /* RFC 1035, 2.3.4, without the dots at the ends */
#define SHOWN 60           /* of what was not understood */

struct host {
	const char *name;
	int len;
	int slots; /* 0: not said */
};

/* Where we read, for the line that says what is wrong. */
struct spot {
	const char *what; /* the file, or the option */
	int line;         /* 0: no line */
};

static bool say_wrong_host(const struct spot *p, const char *why, const char *word, size_t len)
{
	char shown[SHOWN + 1];
	size_t n = len < SHOWN ? len : SHOWN;
	for (size_t i = 0; i < n; i++)
		shown[i] = isprint((unsigned char)word[i]) ? word[i] : '?';
	shown[n] = 0;
	if (p->line)
		say("%s, line %d: %s: '%s'", p->what, p->line, why, shown);
	else
		say("%s: %s: '%s'", p->what, why, shown);
	return false;
}

static bool slots_read(const struct spot *p, const char *text, size_t len, int *slots_p)
{
	int n = 0;
	for (size_t i = 0; i < len && n <= PLAN_RANKS_MAX; i++)
		n = isdigit((unsigned char)text[i]) ? n * 10 + (text[i] - '0') : PLAN_RANKS_MAX + 1;
	if (n < 1 || n > PLAN_RANKS_MAX)
		return say_wrong_host(p, "a host takes 1 to 65536 ranks", text, len);
	*slots_p = n;
	return true;
}

/* The end of a name: its ranges in brackets, as srun has them, may hold commas. */
static size_t name_len(const char *text, size_t len)
{
	static const char also[] = "._-@%";
	size_t i = 0;
	bool inside = false;
	for (; i < len; i++) {
		char c = text[i];
		if (c == '[' || c == ']')
			inside = c == '[';
		else if (!isalnum((unsigned char)c) && !memchr(also, c, sizeof also - 1) &&
			 !(inside && (c == ',' || c == ':')))
			break;
	}
	return inside ? 0 : i;
}

/* NAME or NAME:RANKS, all of it. */
static bool host_read(const struct spot *p, const char *text, size_t len, struct host *h)
{
	size_t n = name_len(text, len);
	*h = (struct host){.name = text, .len = (int)n};
	if (!len)
		return say_wrong_host(p, "a host without a name", text, len);
	if (!n || n > NAME_MAX_BYTES || text[0] == '-' || (n < len && text[n] != ':'))
		return say_wrong_host(p, "this is no host's name", text, len);
	return n == len || slots_read(p, text + n + 1, len - n - 1, &h->slots);
}

static bool form_has(const struct spot *p, const struct host *h, enum hosts_form form)
{
	return form != HOSTS_NAMES || !h->slots ||
	       say_wrong_host(p, "srun is told ranks per host by -ppn, not here", h->name,
			      (size_t)h->len);
}

/* A host that is named again takes more ranks. */
static bool keep_host(const struct spot *p, const struct host *h, struct host_list *hosts)
{
	if (memchr(h->name, '[', (size_t)h->len) && h->name[0] != '[')
		return say_wrong_host(p, "without srun each host is named by itself", h->name,
				      (size_t)h->len);
	for (int i = 0; i < hosts->count; i++) {
		struct host_item *item = &hosts->items[i];
		if (strlen(item->name) != (size_t)h->len ||
		    strncmp(item->name, h->name, (size_t)h->len) != 0)
			continue;
		item->slots = (item->slots ? item->slots : 1) + (h->slots ? h->slots : 1);
		return true;
	}
	hosts->items = plan_grow(hosts->items, hosts->count, sizeof *hosts->items);
	hosts->items[hosts->count++] =
		(struct host_item){plan_copy(h->name, (size_t)h->len), h->slots};
	return true;
}

static bool list_read(const char *list, enum hosts_form form, struct host_list *hosts)
{
	const struct spot p = {.what = "--hosts"};
	for (const char *at = list;; at++) {
		size_t len = name_len(at, strlen(at));
		len += strcspn(at + len, ",");
		struct host h;
		if (!host_read(&p, at, len, &h) || !form_has(&p, &h, form) ||
		    (hosts && !keep_host(&p, &h, hosts)))
			return false;
		at += len;
		if (!*at)
			return true;
	}
}

bool hosts_list_ok(const char *list, enum hosts_form form)
{
	return list_read(list, form, NULL);
}

static size_t count_blanks(const char *s)
{
	return strspn(s, " \t\r\n");
}

static size_t word_length(const char *s)
{
	return strcspn(s, " \t\r\n");
}

/* What stands behind the name. */
static bool rest_read(const struct spot *p, const char *at, struct host *h)
{
	static const char slots[] = "slots=";
	for (at += count_blanks(at); *at; at += count_blanks(at)) {
		size_t len = word_length(at), n = sizeof slots - 1;
		if (!memchr(at, '=', len))
			return say_wrong_host(p, "one host a line; this follows its name", at, len);
		if (len >= n && memcmp(at, slots, n) == 0 &&
		    !slots_read(p, at + n, len - n, &h->slots))
			return false;
		at += len;
	}
	return true;
}

static void host_write(FILE *out, const struct host *h, enum hosts_form form)
{
	fprintf(out, "%.*s", h->len, h->name);
	if (h->slots)
		fprintf(out, form == HOSTS_COLON ? ":%d" : " slots=%d", h->slots);
	putc('\n', out);
}

/* To out in the launcher's form, or into the list. */
static bool lines_read(FILE *in, FILE *out, struct host_list *list, const char *path,
		       enum hosts_form form)
{
	struct spot p = {.what = path};
	char *line = NULL;
	size_t room = 0;
	bool ok = true;
	int hosts = 0;
	for (ssize_t n; ok && (n = getline(&line, &room, in)) >= 0;) {
		p.line++;
		char *at = line, *comment = memchr(line, '#', (size_t)n);
		if (comment)
			*comment = 0;
		else if (memchr(line, 0, (size_t)n))
			ok = say_wrong_host(&p, "this is no text", line, (size_t)n);
		at += count_blanks(at);
		if (!ok || !*at)
			continue;
		struct host h;
		ok = host_read(&p, at, word_length(at), &h) &&
		     rest_read(&p, at + word_length(at), &h) && form_has(&p, &h, form);
		if (ok && out)
			host_write(out, &h, form);
		else if (ok)
			ok = keep_host(&p, &h, list);
		hosts++;
	}
	free(line);
	if (ok && ferror(in)) {
		say("%s: cannot be read: %s", path, strerror(errno));
		return false;
	}
	if (ok && !hosts)
		say("%s: names no host", path);
	return ok && hosts;
}

const char *hosts_file(const char *path, enum hosts_form form)
{
	static char translated[32];
	FILE *in = fopen(path, "re");
	if (!in) {
		say("%s: cannot be read: %s", path, strerror(errno));
		return NULL;
	}
	int fd = memfd_create("hosts", 0);
	FILE *out = fd < 0 ? NULL : fdopen(dup(fd), "w");
	if (!out) {
		say("no memory for the hosts of %s: %s", path, strerror(errno));
		fclose(in);
		return NULL;
	}
	bool ok = lines_read(in, out, NULL, path, form);
	fclose(in);
	if (fclose(out) && ok) {
		say("no memory for the hosts of %s: %s", path, strerror(errno));
		ok = false;
	}
	snprintf(translated, sizeof translated, "/proc/self/fd/%d", fd);
	return ok ? translated : NULL;
}

bool hosts_collect(const char *list, const char *path, struct host_list *hosts)
{
	*hosts = (struct host_list){0};
	if (list && !list_read(list, HOSTS_OURS, hosts))
		return false;
	if (path) {
		FILE *in = fopen(path, "re");
		if (!in) {
			say("%s: cannot be read: %s", path, strerror(errno));
			return false;
		}
		bool ok = lines_read(in, NULL, hosts, path, HOSTS_OURS);
		fclose(in);
		if (!ok)
			return false;
	}
	if (!hosts->count) {
		hosts->items = plan_grow(hosts->items, 0, sizeof *hosts->items);
		hosts->items[hosts->count++] = (struct host_item){.name = ""};
	}
	return true;
}
