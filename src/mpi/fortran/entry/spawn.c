/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * spawn.c - MPI_Comm_spawn and MPI_Comm_spawn_multiple: lists of texts.
 *
 * A list ends with a blank text. What only the root's call means anything in is read at the root alone.
 */
#include "mpi/fortran/fort.h"

static bool is_root(MPI_Comm comm, I root)
{
	int rank = -1;

	return PMPI_Comm_rank(comm, &rank) == MPI_SUCCESS && rank == root;
}

static bool is_blank(const char *text, size_t len)
{
	for (size_t k = 0; k < len; k++)
		if (text[k] != ' ')
			return false;
	return true;
}

/* The texts at text, text + step, ... up to a blank one, as C has them. */
static char **texts_of(struct weft_f_temp *temp, const char *text, size_t len, size_t step)
{
	int64_t n = 0;

	while (!is_blank(text + (size_t)n * step, len))
		n++;
	char **to = weft_f_temp_get(temp, n + 1, sizeof(*to));
	for (int64_t k = 0; to && k < n; k++)
		to[k] = weft_f_string(temp, text + (size_t)k * step, len, true);
	if (to)
		to[n] = NULL;
	return to;
}

static int *codes_of(struct weft_f_temp *temp, I *codes, int64_t n)
{
	return (void *)codes == (void *)weft_f_errcodes_ignore_ ? MPI_ERRCODES_IGNORE
								: weft_f_ints(temp, codes, NULL, n);
}

void ENTRY(comm_spawn)(const char *command, const char *argv, const I *maxprocs, const I *info,
		       const I *root, const I *comm, I *intercomm, I *array_of_errcodes, I *ierror,
		       size_t command_len, size_t argv_len)
{
	WIDE(comm_spawn, ((void *)command, (void *)argv, (void *)maxprocs, (void *)info,
			  (void *)root, (void *)comm, (void *)intercomm, (void *)array_of_errcodes,
			  (void *)ierror, command_len, argv_len));
	struct weft_f_temp temp;
	MPI_Comm comm_c = IN_HANDLE(Comm, *comm), made = MPI_COMM_NULL;
	weft_f_temp_open(&temp);
	char *command_c = weft_f_string(&temp, command, command_len, true),
	     **argv_c = MPI_ARGV_NULL;
	if ((const void *)argv != (const void *)weft_f_argv_null_ && is_root(comm_c, *root))
		argv_c = texts_of(&temp, argv, argv_len, argv_len);
	int *codes = codes_of(&temp, array_of_errcodes, *maxprocs);
	int code = temp.failed ? weft_f_no_memory()
			       : CALL(Comm_spawn)(command_c, argv_c, weft_f_int(*maxprocs),
						  IN_HANDLE(Info, *info), weft_f_int(*root), comm_c,
						  &made, codes);
	if (codes)
		OUT_INTS(array_of_errcodes, codes, *maxprocs);
	if (!code)
		*intercomm = OUT_HANDLE(Comm, made);
	weft_f_temp_close(&temp);
	ERROR_OUT(ierror, code);
}

/* What the root says of the commands. */
struct commands {
	char **names;
	char ***argvs;
	int *maxprocs;
	MPI_Info *infos;
};

static void commands_in(struct commands *c, struct weft_f_temp *temp, int64_t n, const char *names,
			size_t name_len, const char *argvs, size_t argv_len, const I *maxprocs,
			const I *infos)
{
	c->names = weft_f_temp_get(temp, n, sizeof(*c->names));
	c->infos = weft_f_temp_get(temp, n, sizeof(*c->infos));
	c->maxprocs = weft_f_ints(temp, maxprocs, maxprocs, n);
	for (int64_t k = 0; c->names && k < n; k++)
		c->names[k] = weft_f_string(temp, names + (size_t)k * name_len, name_len, true);
	IN_HANDLES(Info, c->infos, infos, n);
	if ((const void *)argvs == (const void *)weft_f_argvs_null_)
		return;
	/* The first index of array_of_argv says the command, so one command's texts lie n apart. */
	c->argvs = weft_f_temp_get(temp, n, sizeof(*c->argvs));
	for (int64_t k = 0; c->argvs && k < n; k++)
		c->argvs[k] = texts_of(temp, argvs + (size_t)k * argv_len, argv_len,
				       (size_t)n * argv_len);
}

void ENTRY(comm_spawn_multiple)(const I *count, const char *array_of_commands,
				const char *array_of_argv, const I *array_of_maxprocs,
				const I *array_of_info, const I *root, const I *comm, I *intercomm,
				I *array_of_errcodes, I *ierror, size_t array_of_commands_len,
				size_t array_of_argv_len)
{
	WIDE(comm_spawn_multiple, ((void *)count, (void *)array_of_commands, (void *)array_of_argv,
				   (void *)array_of_maxprocs, (void *)array_of_info, (void *)root,
				   (void *)comm, (void *)intercomm, (void *)array_of_errcodes,
				   (void *)ierror, array_of_commands_len, array_of_argv_len));
	struct weft_f_temp temp;
	struct commands c = {.argvs = MPI_ARGVS_NULL};
	MPI_Comm comm_c = IN_HANDLE(Comm, *comm), made = MPI_COMM_NULL;
	bool root_here = is_root(comm_c, *root);
	int64_t total = 0;
	weft_f_temp_open(&temp);
	if (root_here && *count > 0) {
		total = weft_f_sum(array_of_maxprocs, *count);
		commands_in(&c, &temp, *count, array_of_commands, array_of_commands_len,
			    array_of_argv, array_of_argv_len, array_of_maxprocs, array_of_info);
	}
	/* Elsewhere the number of processes is not known before they exist. */
	int *codes = root_here ? codes_of(&temp, array_of_errcodes, total) : MPI_ERRCODES_IGNORE;
	int code = temp.failed ? weft_f_no_memory()
			       : CALL(Comm_spawn_multiple)(weft_f_int(*count), c.names, c.argvs,
							   c.maxprocs, c.infos, weft_f_int(*root),
							   comm_c, &made, codes);
	if (codes)
		OUT_INTS(array_of_errcodes, codes, total);
	if (!code)
		*intercomm = OUT_HANDLE(Comm, made);
	weft_f_temp_close(&temp);
	ERROR_OUT(ierror, code);
}
