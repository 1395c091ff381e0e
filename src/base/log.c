/* SPDX-License-Identifier: BSD-3-Clause */
/* log.c - formats a line and writes it at once. */
#include "base/cancel.h"
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/settings.h"

int weft_log_level = WEFT_LOG_WARN;
static int log_rank = -1;

void weft_log_set_rank(int rank)
{
	log_rank = rank;
}

void weft_log_init(void)
{
	static const char *const names[] = {"error", "warn", "info", "debug"};
	const char *want = weft_setting_str(WEFT_SET_LOG);
	for (int i = 0; i < (int)weft_countof(names); i++)
		if (strcmp(want, names[i]) == 0)
			weft_log_level = i;
}

static void write_line(const char *fmt, va_list ap)
{
	char line[1024];
	int n = log_rank >= 0 ? snprintf(line, sizeof line, "weft[%d]: ", log_rank)
			      : snprintf(line, sizeof line, "weft: ");
	int room = (int)sizeof line - n - 1;
	int m = vsnprintf(line + n, (size_t)room, fmt, ap);
	if (m < 0)
		m = 0;
	int from = n;
	n += m < room ? m : room - 1;
	for (int i = from; i < n; i++) /* text from outside: nothing that a terminal obeys */
		if ((unsigned char)line[i] < ' ' || line[i] == 0x7f)
			line[i] = '?';
	line[n++] = '\n';
	int was = weft_cancel_off();
	ssize_t done = write(STDERR_FILENO, line, (size_t)n);
	weft_cancel_back(was);
	(void)done; /* nowhere left to complain */
}

void weft_log_line(enum weft_log_level level, const char *fmt, ...)
{
	va_list ap;
	if ((int)level > weft_log_level)
		return;
	va_start(ap, fmt);
	write_line(fmt, ap);
	va_end(ap);
}

_Noreturn void weft_panic(const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	write_line(fmt, ap);
	va_end(ap);
	abort();
}
