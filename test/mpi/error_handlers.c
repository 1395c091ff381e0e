/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 2 */
/* Errors reach the handler of the right communicator; users' classes, codes and texts work. */
#include <setjmp.h>

#include "mpitest.h"

static int calls, seen_code;
static MPI_Comm seen_comm;
static jmp_buf away;

static void note(MPI_Comm *comm, int *code, ...)
{
	int r;

	calls++;
	seen_code = *code;
	seen_comm = *comm;
	/* A handler may call MPI. */
	OK(MPI_Comm_rank(*comm, &r));
}

static void jump(MPI_Comm *comm, int *code, ...)
{
	(void)comm, (void)code;
	longjmp(away, 1);
}

static void called(void)
{
	MPI_Errhandler e, same;
	MPI_Comm a, b;
	MPI_Request req;
	int v[2] = {0};

	OK(MPI_Comm_create_errhandler(note, &e));
	OK(MPI_Comm_dup(MPI_COMM_SELF, &a));
	OK(MPI_Comm_set_errhandler(a, e));
	OK(MPI_Comm_get_errhandler(a, &same));
	CHECK(same == e);
	OK(MPI_Errhandler_free(&same));
	OK(MPI_Errhandler_free(&e));
	CHECK(e == MPI_ERRHANDLER_NULL);
	FAILS(MPI_Send(v, 1, MPI_INT, 5, 0, a), MPI_ERR_RANK);
	CHECK(calls == 1 && seen_code == MPI_ERR_RANK && seen_comm == a);
	OK(MPI_Comm_dup(a, &b)); /* inherits it */
	FAILS(MPI_Send(v, 1, MPI_INT, 0, -4, b), MPI_ERR_TAG);
	CHECK(calls == 2 && seen_comm == b);
	/* What a request finds out belongs to its communicator. */
	OK(MPI_Irecv(v, 1, MPI_INT, 0, 0, b, &req));
	OK(MPI_Send(v, 2, MPI_INT, 0, 0, b));
	FAILS(MPI_Wait(&req, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE);
	CHECK(calls == 3 && seen_comm == b);
	OK(MPI_Comm_call_errhandler(a, MPI_ERR_OTHER));
	CHECK(calls == 4 && seen_code == MPI_ERR_OTHER && seen_comm == a);
	OK(MPI_Comm_get_errhandler(a, &e)); /* still there, by its handler */
	OK(MPI_Errhandler_free(&e));
	OK(MPI_Comm_free(&a));
	OK(MPI_Comm_free(&b));
}

static void left_by_a_jump(void)
{
	MPI_Errhandler e;
	MPI_Comm a;
	volatile int turn = 0;

	OK(MPI_Comm_create_errhandler(jump, &e));
	OK(MPI_Comm_dup(MPI_COMM_SELF, &a));
	OK(MPI_Comm_set_errhandler(a, e));
	OK(MPI_Errhandler_free(&e));
	if (setjmp(away) == 0 || turn < 10) {
		turn++;
		MPI_Send(NULL, 0, MPI_INT, 99, 0, a);
		CHECK(0);
	}
	/* No lock was left behind. */
	OK(MPI_Comm_set_errhandler(a, MPI_ERRORS_RETURN));
	OK(MPI_Comm_free(&a));
}

static void wrong_kind(void)
{
	MPI_Errhandler e;

	OK(MPI_Win_create_errhandler((MPI_Win_errhandler_function *)(void *)note, &e));
	FAILS(MPI_Comm_set_errhandler(MPI_COMM_SELF, e), MPI_ERR_ERRHANDLER);
	OK(MPI_Errhandler_free(&e));
	FAILS(MPI_Errhandler_free(&e), MPI_ERR_ERRHANDLER);
}

static void texts(void)
{
	char text[MPI_MAX_ERROR_STRING];
	int cls, code, code2, back, n;
	int *last, flag;

	OK(MPI_Error_string(MPI_ERR_TRUNCATE, text, &n));
	CHECK(strstr(text, "MPI_ERR_TRUNCATE") && n == (int)strlen(text));
	OK(MPI_Error_string(MPI_SUCCESS, text, &n));
	OK(MPI_Add_error_class(&cls));
	OK(MPI_Add_error_code(cls, &code));
	OK(MPI_Add_error_code(MPI_ERR_ARG, &code2));
	OK(MPI_Comm_get_attr(MPI_COMM_SELF, MPI_LASTUSEDCODE, &last, &flag));
	CHECK(flag && *last >= code2);
	CHECK(cls > MPI_ERR_LASTCODE && code > cls);
	OK(MPI_Error_class(code, &back));
	CHECK_EQ(back, cls);
	OK(MPI_Error_class(code2, &back));
	CHECK_EQ(back, MPI_ERR_ARG);
	OK(MPI_Error_string(code, text, &n));
	CHECK(n == 0 && text[0] == 0);
	OK(MPI_Add_error_string(code, "the moon is full"));
	OK(MPI_Error_string(code, text, &n));
	CHECK(strcmp(text, "the moon is full") == 0);
	FAILS(MPI_Remove_error_class(cls), MPI_ERR_ARG);
	/* What has a string stays until that is removed. */
	FAILS(MPI_Remove_error_code(code), MPI_ERR_ARG);
	OK(MPI_Remove_error_string(code));
	OK(MPI_Remove_error_code(code));
	FAILS(MPI_Remove_error_code(code), MPI_ERR_ARG);
	OK(MPI_Add_error_string(cls, "tides"));
	FAILS(MPI_Remove_error_class(cls), MPI_ERR_ARG);
	OK(MPI_Remove_error_string(cls));
	OK(MPI_Remove_error_class(cls));
	FAILS(MPI_Remove_error_class(cls), MPI_ERR_ARG);
	FAILS(MPI_Error_string(code, text, &n), MPI_ERR_ARG);
	FAILS(MPI_Error_class(-3, &back), MPI_ERR_ARG);
	FAILS(MPI_Add_error_string(MPI_ERR_ARG, "mine"), MPI_ERR_ARG);
	OK(MPI_Remove_error_code(code2));
}

int main(int argc, char **argv)
{
	test_start(&argc, &argv, MPI_THREAD_SINGLE);
	OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
	called();
	left_by_a_jump();
	wrong_kind();
	texts();
	return test_end();
}
