/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * error_initial.c - what mpiexec says at the start: the first error handler of MPI_COMM_WORLD, MPI_COMM_SELF and what is made
 * of them, and kinds of memory; both stand in MPI_INFO_ENV.
 *
 * error_initial [HANDLER [KINDS]]: as given to mpiexec.
 */
/* ranks: 2 */
#include <string.h>
#include "mpitest.h"

static void handler_is(MPI_Comm c, MPI_Errhandler want)
{
	MPI_Errhandler h;
	OK(MPI_Comm_get_errhandler(c, &h));
	CHECK(h == want);
	OK(MPI_Errhandler_free(&h));
}

static void says(MPI_Info info, const char *key, const char *want)
{
	char value[MPI_MAX_INFO_VAL];
	int n = sizeof value, there;
	OK(MPI_Info_get_string(info, key, &n, value, &there));
	CHECK(want ? there && strcmp(value, want) == 0 : !there);
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : NULL, *kinds = argc > 2 ? argv[2] : NULL;
	MPI_Errhandler want = MPI_ERRORS_ARE_FATAL;
	MPI_Comm made, small;
	MPI_Win win;
	MPI_Group group;
	MPI_Info used;
	MPI_Session session;
	int *base, x = 0;

	if (name && strcmp(name, "mpi_errors_return") == 0)
		want = MPI_ERRORS_RETURN;
	if (name && strcmp(name, "mpi_errors_abort") == 0)
		want = MPI_ERRORS_ABORT;
	test_start(&argc, &argv, MPI_THREAD_SINGLE);
	handler_is(MPI_COMM_WORLD, want);
	handler_is(MPI_COMM_SELF, want);
	OK(MPI_Comm_dup(MPI_COMM_WORLD, &made));
	handler_is(made, want);
	if (want == MPI_ERRORS_RETURN) {
		CHECK_EQ(MPI_Send(&x, 1, MPI_INT, size, 0, MPI_COMM_WORLD), MPI_ERR_RANK);
		CHECK_EQ(MPI_Send(&x, 1, MPI_INT, 0, -1, made), MPI_ERR_TAG);
	}
	OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ABORT));
	handler_is(MPI_COMM_WORLD, MPI_ERRORS_ABORT);
	handler_is(made, want);
	/* A session's communicators have the handler that their maker names, whatever mpiexec was told. */
	OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
	OK(MPI_Group_from_session_pset(session, "mpi://SELF", &group));
	OK(MPI_Comm_create_from_group(group, "error_initial", MPI_INFO_NULL, MPI_ERRORS_ABORT,
				      &small));
	handler_is(small, MPI_ERRORS_ABORT);
	says(MPI_INFO_ENV, "mpi_initial_errhandler", name);
	says(MPI_INFO_ENV, "mpi_memory_alloc_kinds", kinds);
	/* Every object takes what malloc gives, and what MPI gives. */
	const char *all = "system,mpi:alloc_mem:win_allocate:win_allocate_shared";
	OK(MPI_Comm_get_info(made, &used));
	says(used, "mpi_memory_alloc_kinds", all);
	OK(MPI_Info_free(&used));
	OK(MPI_Session_get_info(session, &used));
	says(used, "mpi_memory_alloc_kinds", all);
	OK(MPI_Info_free(&used));
	OK(MPI_Win_allocate(sizeof x, 1, MPI_INFO_NULL, made, &base, &win));
	OK(MPI_Win_get_info(win, &used));
	says(used, "mpi_memory_alloc_kinds", all);
	OK(MPI_Info_free(&used));
	OK(MPI_Win_free(&win));
	OK(MPI_Comm_free(&small));
	OK(MPI_Group_free(&group));
	OK(MPI_Session_finalize(&session));
	OK(MPI_Comm_free(&made));
	return test_end();
}
