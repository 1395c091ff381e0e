/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * words.h - a file of options and programs, as words: each line a program, a colon between them.
 *
 * Quotes and backslashes as in a shell, nothing is expanded; # begins a comment; a line that ends in a
 * backslash goes on in the next.
 */
#ifndef MPIEXEC_WORDS_H
#define MPIEXEC_WORDS_H

#include <stdbool.h>

/* Appends the file's words to the list; false: after one line. */
bool words_read(const char *path, char ***words_p, int *count_p);

#endif
