/* SPDX-License-Identifier: BSD-3-Clause */
/* soft.c - see soft.h. */
#include "soft.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "plan.h"

/* One item of the list, up to a comma; -1: it is none. */
static long largest_of(const char *text, long most, const char **end_p)
{
	long v[3] = {0, 0, 1}, best = 0;
	int n = 0;
	char *end;

	for (;;) { /* bound: three numbers */
		v[n++] = strtol(text, &end, 10);
		if (end == text)
			return -1;
		if (*end != ':' || n == 3)
			break;
		text = end + 1;
	}
	if ((*end && *end != ',') || !v[2])
		return -1;
	*end_p = end;
	if (n == 1)
		v[1] = v[0];
	/* The number nearest to most, or the first below it: steps of v[2] from v[0] on. */
	long low = v[2] > 0 ? v[0] : v[1], high = v[2] > 0 ? v[1] : v[0];
	long top = high < most ? high : most;
	if (top >= low) {
		long step = v[2] > 0 ? v[2] : -v[2];
		long back = v[2] > 0 ? (top - v[0]) % step : (step - (v[0] - top) % step) % step;
		best = top - back;
	}
	return best >= low && best > 0 ? best : 0;
}

int soft_count(const char *list, int most)
{
	long best = 0;

	while (*list) { /* ends: each turn takes an item */
		long v = largest_of(list, most, &list);
		if (v < 0)
			return 0;
		best = v > best ? v : best;
		list += *list == ',';
	}
	return (int)best;
}

char *soft_find(const char *program, const char *path)
{
	char buf[PATH_MAX];

	if (strchr(program, '/'))
		return NULL;
	while (*path) { /* ends: path moves to the next folder */
		size_t n = strcspn(path, ":");
		int len = snprintf(buf, sizeof buf, "%.*s/%s", (int)n, path, program);
		if (len < (int)sizeof buf && access(buf, X_OK) == 0)
			return plan_copy(buf, (size_t)len);
		path += n + (path[n] == ':');
	}
	return NULL;
}
