/* SPDX-License-Identifier: BSD-3-Clause */
/* say.h - mpiexec's own lines on stderr, before and after the ranks' output is carried. */
#ifndef MPIEXEC_SAY_H
#define MPIEXEC_SAY_H

/* "mpiexec: TEXT", one write. */
void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* From now on lines go where `line` puts them (NULL: stderr again). */
void say_through(void (*line)(const char *text, int len));

#endif
