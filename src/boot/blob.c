/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * blob.c - pairs as one text: key,value,key,value, with every other byte than letters, digits and
 * "-._~" written as %XX.  Launchers split lines at blanks, '=' and ';': none of these occurs.
 */
#include "boot/blob.h"

#include <stdlib.h>
#include <string.h>

static bool is_plain(unsigned char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '-' || c == '.' || c == '_' || c == '~';
}

static weft_err blob_reserve(struct weft_boot_blob *b, size_t more)
{
	if (b->cap - b->len > more)
		return WEFT_OK;
	size_t cap = (b->len + more + 1) * 2;
	char *text = realloc(b->text, cap);
	if (!text)
		return WEFT_ERR_NOMEM;
	b->text = text;
	b->cap = cap;
	return WEFT_OK;
}

static void append_escaped(struct weft_boot_blob *b, const char *s)
{
	static const char digits[] = "0123456789ABCDEF";
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;
		if (is_plain(c)) {
			b->text[b->len++] = (char)c;
		} else {
			b->text[b->len++] = '%';
			b->text[b->len++] = digits[c >> 4];
			b->text[b->len++] = digits[c & 15];
		}
	}
	b->text[b->len++] = ',';
	b->text[b->len] = 0;
}

weft_err weft_boot_blob_add(struct weft_boot_blob *b, const char *key, const char *value)
{
	weft_err err = blob_reserve(b, 3 * (strlen(key) + strlen(value)) + 3);
	if (err)
		return err;
	append_escaped(b, key);
	append_escaped(b, value);
	return WEFT_OK;
}

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* Decodes one byte at *s_p and moves on; -1: not ours. */
static int next_byte(const char **s_p)
{
	const char *s = *s_p;
	if (is_plain((unsigned char)*s)) {
		*s_p = s + 1;
		return (unsigned char)*s;
	}
	if (*s != '%' || hex_value(s[1]) < 0 || hex_value(s[2]) < 0)
		return -1;
	*s_p = s + 3;
	int c = hex_value(s[1]) << 4 | hex_value(s[2]);
	return c ? c : -1;
}

/* Compares the field at *s_p with want and moves behind its comma; -1: not ours. */
static int match_field(const char **s_p, const char *want)
{
	bool same = true;
	while (**s_p != ',') {
		int c = next_byte(s_p);
		if (c < 0)
			return -1;
		if (!same || (unsigned char)*want != c)
			same = false;
		else
			want++;
	}
	(*s_p)++;
	return same && !*want;
}

static weft_err copy_field(const char *s, char *buf, size_t size)
{
	size_t n = 0;
	while (*s != ',') {
		int c = next_byte(&s);
		if (c < 0)
			return WEFT_ERR_PROTO;
		if (n + 1 >= size)
			return WEFT_ERR_TRUNC;
		buf[n++] = (char)c;
	}
	if (n >= size)
		return WEFT_ERR_TRUNC;
	buf[n] = 0;
	return WEFT_OK;
}

weft_err weft_boot_blob_find(const char *text, const char *key, char *buf, size_t size)
{
	const char *found = NULL;
	for (const char *s = text; *s;) { /* ends: each turn moves s past two commas */
		int same = match_field(&s, key);
		const char *value = s;
		if (same < 0 || match_field(&s, "") < 0)
			return WEFT_ERR_PROTO;
		if (same)
			found = value;
	}
	return found ? copy_field(found, buf, size) : WEFT_ERR_NOENT;
}

bool weft_boot_blob_valid(const char *text)
{
	char none[1];
	weft_err err = weft_boot_blob_find(text, "", none, sizeof none);
	return err != WEFT_ERR_PROTO;
}

void weft_boot_blob_fini(struct weft_boot_blob *b)
{
	free(b->text);
	*b = (struct weft_boot_blob){0};
}
