/* SPDX-License-Identifier: BSD-3-Clause */
/* say.c - one line at a time. */
#include "say.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

static void (*carrier)(const char *text, int len);

void say(const char *fmt, ...)
{
	char text[2048];
	int n = snprintf(text, sizeof text, "mpiexec: ");
	int room = (int)sizeof text - n - 1;
	va_list ap;
	va_start(ap, fmt);
	int m = vsnprintf(text + n, (size_t)room, fmt, ap);
	va_end(ap);
	if (m < 0)
		m = 0;
	n += m < room ? m : room - 1;
	text[n++] = '\n';
	if (carrier) {
		carrier(text, n);
		return;
	}
	ssize_t done = write(STDERR_FILENO, text, (size_t)n);
	(void)done; /* nowhere left to complain */
}

void say_through(void (*line)(const char *text, int len))
{
	carrier = line;
}
