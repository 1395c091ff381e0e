/* SPDX-License-Identifier: BSD-3-Clause */
/* options.h - the options of the command line, as one table. */
#ifndef MPIEXEC_OPTIONS_H
#define MPIEXEC_OPTIONS_H

#include "plan.h"

struct option_row {
	const char *
		names; /* "a|b": one or two dashes before either; "n#": a number may follow at once */
	int args;
	/* One line of --help; NULL: another row or the manual page says it. */
	const char *shown, *help;
	enum plan_result (*apply)(struct plan *plan, struct plan_program *prog, const char *shown,
				  char **arg);
};

/* The row of a word that begins with a dash; *value_p: what stands in the same word, or NULL.
 * NULL: after one line that names what comes nearest. */
const struct option_row *option_find(const char *word, char **value_p);

/* Does the option name a file of further words?  Its value is the file. */
bool option_is_file(const struct option_row *row);

#endif
