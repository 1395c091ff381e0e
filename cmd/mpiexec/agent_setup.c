/* SPDX-License-Identifier: BSD-3-Clause */
/* agent_setup.c - numbers, strings with their NUL, and lists of them, one after the other. */
#include "agent_setup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put_int(FILE *out, uint32_t v)
{
	fwrite(&v, sizeof v, 1, out);
}

static void put_text(FILE *out, const char *text)
{
	size_t n = strlen(text) + 1;
	put_int(out, (uint32_t)n);
	fwrite(text, n, 1, out);
}

static void put_list(FILE *out, char *const *list, uint32_t count)
{
	put_int(out, count);
	for (uint32_t i = 0; i < count; i++)
		put_text(out, list[i] ? list[i] : "");
}

static void write_all(FILE *out, const struct agent_setup *s)
{
	put_int(out, s->host);
	put_text(out, s->name);
	put_text(out, s->folder);
	put_int(out, s->mode);
	put_text(out, s->launcher);
	put_text(out, s->program);
	put_int(out, s->fanout);
	put_int(out, s->silence);
	put_list(out, s->argv, s->argc);
	put_list(out, s->env, s->envc);
	put_int(out, s->rankc);
	fwrite(s->ranks, sizeof *s->ranks, s->rankc, out);
	put_list(out, s->slots, s->slotc);
	put_int(out, s->below);
	put_list(out, s->hosts, s->hostc);
}

char *agent_setup_write(const struct agent_setup *s, size_t *len_p)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);
	if (!out)
		return NULL;
	write_all(out, s);
	bool good = !ferror(out);
	/* The secret goes into the one buffer that is wiped. */
	char *body = fclose(out) == 0 && good ? malloc(sizeof s->handover + len) : NULL;
	if (body) {
		memcpy(body, &s->handover, sizeof s->handover);
		memcpy(body + sizeof s->handover, text, len);
		*len_p = sizeof s->handover + len;
	}
	free(text);
	return body;
}

struct reader {
	char *at, *end;
	bool bad;
};

static void *get_bytes(struct reader *r, size_t len)
{
	if ((size_t)(r->end - r->at) < len) {
		r->bad = true;
		return NULL;
	}
	void *p = r->at;
	r->at += len;
	return p;
}

static uint32_t get_int(struct reader *r)
{
	uint32_t v = 0;
	const void *p = get_bytes(r, sizeof v);
	if (p)
		memcpy(&v, p, sizeof v);
	return v;
}

static char *get_text(struct reader *r)
{
	static char none[1];
	uint32_t n = get_int(r);
	char *p = n ? get_bytes(r, n) : NULL;
	if (!p || p[n - 1]) {
		r->bad = true;
		return none;
	}
	return p;
}

static char **get_list(struct reader *r, uint32_t *count_p)
{
	uint32_t n = get_int(r);
	char **list = NULL;
	/* Each takes five bytes at least: so no count asks for memory that no body backs. */
	if (n > (size_t)(r->end - r->at) / 5)
		r->bad = true;
	else
		list = calloc((size_t)n + 1, sizeof *list);
	r->bad = r->bad || !list;
	for (uint32_t i = 0; i < n && !r->bad; i++)
		list[i] = get_text(r);
	*count_p = r->bad ? 0 : n;
	return list;
}

static void get_ranks(struct reader *r, struct agent_setup *s)
{
	uint32_t n = get_int(r);
	const void *p = n <= UINT32_MAX / 8 ? get_bytes(r, n * sizeof *s->ranks) : NULL;
	s->ranks = p ? malloc(n * sizeof *s->ranks + 1) : NULL;
	if (!s->ranks) {
		r->bad = true;
		return;
	}
	memcpy(s->ranks, p, n * sizeof *s->ranks);
	s->rankc = n;
}

bool agent_setup_read(struct agent_setup *s, char *body, size_t len)
{
	struct reader r = {.at = body, .end = body + len};
	*s = (struct agent_setup){0};
	const void *h = get_bytes(&r, sizeof s->handover);
	if (!h)
		return false;
	memcpy(&s->handover, h, sizeof s->handover);
	s->host = get_int(&r);
	s->name = get_text(&r);
	s->folder = get_text(&r);
	s->mode = get_int(&r);
	s->launcher = get_text(&r);
	s->program = get_text(&r);
	s->fanout = get_int(&r);
	s->silence = get_int(&r);
	s->argv = get_list(&r, &s->argc);
	s->env = get_list(&r, &s->envc);
	get_ranks(&r, s);
	s->slots = get_list(&r, &s->slotc);
	s->below = get_int(&r);
	s->hosts = get_list(&r, &s->hostc);
	return !r.bad && r.at == r.end && s->argc && s->rankc && s->fanout && s->silence &&
	       (!s->slotc || s->slotc == s->rankc);
}
