/* SPDX-License-Identifier: BSD-3-Clause */
/* words.c - cuts a file into words. */
#include "words.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "plan.h"
#include "say.h"

#define FILE_MAX ((size_t)16 << 20)

struct cutter {
	const char *at;
	int line;
	const char *path;
	char ***words;
	int *count;
	bool in_program; /* this line has a word already */
	bool first;      /* no program yet */
};

static void add_word(struct cutter *c, const char *text, size_t len)
{
	*c->words = plan_grow(*c->words, *c->count, sizeof **c->words);
	(*c->words)[(*c->count)++] = plan_copy(text, len);
}

static bool say_unended(const struct cutter *c, int line)
{
	say("%s, line %d: a quote that does not end", c->path, line);
	return false;
}

/* One word from c->at on; quotes and backslashes are taken out. */
static bool cut_word(struct cutter *c, char *room)
{
	size_t len = 0;
	int begun = c->line;
	char quote = 0;
	for (; *c->at; c->at++) {
		char ch = *c->at;
		if (ch == '\n' && !quote)
			break;
		if (ch == '\\' && quote != '\'' && c->at[1]) {
			ch = *++c->at;
			if (ch == '\n') {
				c->line++;
				continue;
			}
			room[len++] = ch;
		} else if (quote ? ch == quote : ch == '"' || ch == '\'') {
			quote = quote ? 0 : ch;
		} else if (!quote && strchr(" \t\r", ch)) {
			break;
		} else {
			c->line += ch == '\n';
			room[len++] = ch;
		}
	}
	if (quote)
		return say_unended(c, begun);
	if (!c->in_program && !c->first)
		add_word(c, ":", 1);
	c->in_program = true;
	c->first = false;
	add_word(c, room, len);
	return true;
}

static bool cut_words(struct cutter *c, char *room)
{
	while (*c->at) { /* ends: at moves past a word, a blank or a line */
		c->at += strspn(c->at, " \t\r");
		if (c->at[0] == '\\' && c->at[1] == '\n') {
			c->at += 2;
			c->line++;
		} else if (*c->at == '\n') {
			c->at++;
			c->line++;
			c->in_program = false;
		} else if (*c->at == '#') {
			c->at += strcspn(c->at, "\n");
		} else if (*c->at && !cut_word(c, room)) {
			return false;
		}
	}
	return true;
}

bool words_read(const char *path, char ***words_p, int *count_p)
{
	FILE *in = fopen(path, "re");
	char *text = NULL;
	size_t room = 0;
	ssize_t n = in ? getdelim(&text, &room, 0, in) : -1;
	if (!in || ferror(in) || (n < 0 && !feof(in))) {
		say("%s: cannot be read: %s", path, strerror(errno));
		if (in)
			fclose(in);
		free(text);
		return false;
	}
	fclose(in);
	size_t len = n > 0 ? strlen(text) : 0;
	if (len != (n > 0 ? (size_t)n : 0) || len > FILE_MAX || !len) {
		say("%s: %s", path, len ? "this is no text" : "names no program");
		free(text);
		return false;
	}
	int before = *count_p;
	struct cutter c = {.at = text,
			   .line = 1,
			   .path = path,
			   .words = words_p,
			   .count = count_p,
			   .first = true};
	char *word = malloc(len + 1);
	bool good = word && cut_words(&c, word);
	free(word);
	free(text);
	if (good && *count_p == before) {
		say("%s: names no program", path);
		return false;
	}
	return good;
}
