/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 0 1 2 */
/* Versions, names, clocks, memory and states; handles as integers; a process alone. */
#include <stdint.h>

#include "mpitest.h"

static void any_time(void)
{
	int a = 0, b = 0, n = 0;
	char text[MPI_MAX_LIBRARY_VERSION_STRING];

	OK(MPI_Get_version(&a, &b));
	CHECK(a == 5 && b == 0);
	OK(MPI_Abi_get_version(&a, &b));
	CHECK(a == 1 && b == 0);
	OK(MPI_Get_library_version(text, &n));
	CHECK(strncmp(text, "weft ", 5) == 0 && n == (int)strlen(text));
}

static void running(void)
{
	int flag = 0, n = 0;
	char name[MPI_MAX_PROCESSOR_NAME];
	MPI_Info info;
	MPI_Comm parent;

	OK(MPI_Initialized(&flag));
	CHECK(flag);
	OK(MPI_Finalized(&flag));
	CHECK(!flag);
	OK(MPI_Get_processor_name(name, &n));
	CHECK(n > 0 && n == (int)strlen(name));
	OK(MPI_Abi_get_info(&info));
	OK(MPI_Info_free(&info));
	OK(MPI_Comm_get_parent(&parent));
	CHECK(parent == MPI_COMM_NULL);
	OK(MPI_Pcontrol(1, 2, "x"));
	double t = MPI_Wtime();
	while (MPI_Wtime() <= t)
		;
	CHECK(MPI_Wtick() > 0 && MPI_Wtick() < 1e-3);
}

static void memory(void)
{
	char *p = NULL;
	int v[10];
	MPI_Aint a, b;

	OK(MPI_Alloc_mem(1000, MPI_INFO_NULL, &p));
	CHECK(p && ((uintptr_t)p & 15) == 0);
	memset(p, 1, 1000);
	OK(MPI_Free_mem(p));
	OK(MPI_Alloc_mem(0, MPI_INFO_NULL, &p));
	OK(MPI_Free_mem(p));
	FAILS(MPI_Alloc_mem(-1, MPI_INFO_NULL, &p), MPI_ERR_ARG);
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
	/* Sanitizers end the program at such a request. */
	FAILS(MPI_Alloc_mem(INTPTR_MAX, MPI_INFO_NULL, &p), MPI_ERR_NO_MEM);
#endif
	OK(MPI_Get_address(&v[0], &a));
	OK(MPI_Get_address(&v[9], &b));
	CHECK_EQ(MPI_Aint_diff(b, a), 9 * (long)sizeof(int));
	CHECK_EQ(MPI_Aint_add(a, 36), b);
}

static void as_integers(void)
{
	MPI_Comm a;
	MPI_Request req;
	int v = 0, i;

	CHECK(MPI_Comm_fromint(MPI_Comm_toint(MPI_COMM_WORLD)) == MPI_COMM_WORLD);
	CHECK(MPI_Type_fromint(MPI_Type_toint(MPI_DOUBLE)) == MPI_DOUBLE);
	CHECK(MPI_Op_fromint(MPI_Op_toint(MPI_SUM)) == MPI_SUM);
	OK(MPI_Comm_dup(MPI_COMM_SELF, &a));
	i = MPI_Comm_toint(a);
	CHECK(i >= 4096 && MPI_Comm_fromint(i) == a);
	OK(MPI_Irecv(&v, 1, MPI_INT, 0, 0, a, &req));
	CHECK(MPI_Request_fromint(MPI_Request_toint(req)) == req);
	CHECK((uintptr_t)req > 4095 && (uintptr_t)a > 4095);
	OK(MPI_Cancel(&req));
	OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
	OK(MPI_Comm_free(&a));
	FAILS(MPI_Comm_rank(MPI_Comm_fromint(i), &v), MPI_ERR_COMM);
}

static void statuses(void)
{
	MPI_Status st;
	int v = 0;

	memset(&st, 0, sizeof(st));
	OK(MPI_Status_set_source(&st, 3));
	OK(MPI_Status_set_tag(&st, 4));
	OK(MPI_Status_set_error(&st, MPI_ERR_ARG));
	OK(MPI_Status_set_elements(&st, MPI_INT, 5));
	OK(MPI_Status_set_cancelled(&st, 1));
	OK(MPI_Status_get_source(&st, &v));
	CHECK_EQ(v, 3);
	OK(MPI_Status_get_tag(&st, &v));
	CHECK_EQ(v, 4);
	OK(MPI_Status_get_error(&st, &v));
	CHECK_EQ(v, MPI_ERR_ARG);
	OK(MPI_Get_count(&st, MPI_INT, &v));
	CHECK_EQ(v, 5);
	OK(MPI_Get_elements(&st, MPI_SHORT, &v));
	CHECK_EQ(v, 10);
	OK(MPI_Get_count(&st, MPI_LONG, &v));
	CHECK_EQ(v, MPI_UNDEFINED);
	OK(MPI_Test_cancelled(&st, &v));
	CHECK_EQ(v, 1);
	OK(MPI_Status_set_elements_c(&st, MPI_BYTE, (MPI_Count)1 << 40));
	OK(MPI_Get_count(&st, MPI_BYTE, &v));
	CHECK_EQ(v, MPI_UNDEFINED);
}

int main(int argc, char **argv)
{
	int flag = 1;

	any_time();
	OK(MPI_Initialized(&flag));
	CHECK(!flag);
	test_start(&argc, &argv, MPI_THREAD_FUNNELED);
	OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
	any_time();
	running();
	memory();
	as_integers();
	statuses();
	test_end();
	OK(MPI_Finalized(&flag));
	CHECK(flag);
	any_time();
	return 0;
}
