/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 2 */
/* Names beside the ABI: c2f and f2c of every kind of handle lead back to it, a status too, and names that
 * MPI-3.0 deleted do what their successors do. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#include <stddef.h>

#include "mpitest.h"

#define ROUND(what, handle) CHECK(MPI_##what##_f2c(MPI_##what##_c2f(handle)) == (handle))
#define ROUND_PROFILED(what, handle) CHECK(PMPI_##what##_f2c(PMPI_##what##_c2f(handle)) == (handle))

static void handles(void)
{
	MPI_Comm comm;
	MPI_Group group;
	MPI_Datatype type;
	MPI_Info info;
	MPI_Request request;

	OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
	OK(MPI_Comm_group(comm, &group));
	OK(MPI_Type_contiguous(3, MPI_INT, &type));
	OK(MPI_Info_create(&info));
	OK(MPI_Recv_init(NULL, 0, MPI_INT, MPI_PROC_NULL, 0, comm, &request));
	ROUND(Comm, MPI_COMM_WORLD);
	ROUND(Comm, comm);
	ROUND(Comm, MPI_COMM_NULL);
	ROUND_PROFILED(Comm, comm);
	ROUND(Group, group);
	ROUND(Type, MPI_DOUBLE);
	ROUND(Type, type);
	ROUND_PROFILED(Type, type);
	ROUND(Info, info);
	ROUND(Info, MPI_INFO_NULL);
	ROUND(Request, request);
	ROUND(Request, MPI_REQUEST_NULL);
	ROUND(Op, MPI_SUM);
	ROUND(Errhandler, MPI_ERRORS_RETURN);
	ROUND(Win, MPI_WIN_NULL);
	ROUND(File, MPI_FILE_NULL);
	ROUND(Message, MPI_MESSAGE_NULL);
	ROUND(Session, MPI_SESSION_NULL);
	OK(MPI_Request_free(&request));
	OK(MPI_Info_free(&info));
	OK(MPI_Type_free(&type));
	OK(MPI_Group_free(&group));
	OK(MPI_Comm_free(&comm));
}

static void statuses(void)
{
	int value = 7, got = 0, count;
	MPI_Fint f[MPI_F_STATUS_SIZE];
	MPI_Status status, back;

	OK(MPI_Sendrecv(&value, 1, MPI_INT, 0, 5, &got, 1, MPI_INT, 0, 5, MPI_COMM_SELF, &status));
	OK(MPI_Status_c2f(&status, f));
	CHECK_EQ(f[MPI_F_SOURCE], 0);
	CHECK_EQ(f[MPI_F_TAG], 5);
	OK(MPI_Status_f2c(f, &back));
	OK(MPI_Get_count(&back, MPI_INT, &count));
	CHECK_EQ(count, 1);
	CHECK_EQ(back.MPI_TAG, 5);

	MPI_F08_status f08;
	OK(MPI_Status_c2f08(&status, &f08));
	CHECK_EQ(f08.MPI_TAG, 5);
	f[MPI_F_TAG] = 6;
	OK(MPI_Status_f2f08(f, &f08));
	CHECK_EQ(f08.MPI_TAG, 6);
	f08.MPI_SOURCE = 7;
	OK(MPI_Status_f082f(&f08, f));
	CHECK_EQ(f[MPI_F_SOURCE], 7);
	OK(PMPI_Status_f082c(&f08, &back));
	OK(MPI_Get_count(&back, MPI_INT, &count));
	CHECK_EQ(count, 1);
	CHECK_EQ(back.MPI_SOURCE, 7);
	CHECK(MPI_F_STATUS_IGNORE == NULL); /* no Fortran here */
}

struct pair {
	char c;
	double d;
};

static void types(void)
{
	struct pair p;
	int lengths[2] = {1, 1};
	MPI_Aint at[2], extent, lb, ub, want_lb, want;
	MPI_Datatype kinds[2] = {MPI_CHAR, MPI_DOUBLE}, type, other;

	OK(MPI_Address(&p.c, &at[0]));
	OK(MPI_Address(&p.d, &at[1]));
	CHECK_EQ(at[1] - at[0], (MPI_Aint)offsetof(struct pair, d));
	at[1] -= at[0];
	at[0] = 0;
	OK(MPI_Type_struct(2, lengths, at, kinds, &type));
	OK(MPI_Type_get_extent(type, &want_lb, &want));
	OK(MPI_Type_extent(type, &extent));
	OK(MPI_Type_lb(type, &lb));
	OK(MPI_Type_ub(type, &ub));
	CHECK_EQ(extent, want);
	CHECK_EQ(lb, want_lb);
	CHECK_EQ(ub, want_lb + want);
	OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
	FAILS(MPI_Type_extent(type, NULL), MPI_ERR_ARG);
	FAILS(MPI_Type_lb(type, NULL), MPI_ERR_ARG);
	FAILS(MPI_Type_ub(type, NULL), MPI_ERR_ARG);
	OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL));
	OK(MPI_Type_hvector(2, 1, 96, type, &other));
	OK(MPI_Type_extent(other, &extent));
	CHECK_EQ(extent, 96 + want);
	OK(MPI_Type_free(&other));
	OK(MPI_Type_hindexed(2, lengths, at, MPI_DOUBLE, &other));
	OK(MPI_Type_extent(other, &extent));
	CHECK_EQ(extent, at[1] + 8);
	OK(MPI_Type_free(&other));
	OK(MPI_Type_free(&type));
}

static int seen;

static void on_error(MPI_Comm *comm, int *code, ...)
{
	(void)comm;
	seen = *code;
}

static void errhandlers(void)
{
	MPI_Handler_function *function = on_error;
	MPI_Errhandler made, got;

	OK(MPI_Errhandler_create(function, &made));
	OK(MPI_Errhandler_set(MPI_COMM_SELF, made));
	OK(MPI_Errhandler_get(MPI_COMM_SELF, &got));
	CHECK(MPI_Send(NULL, -1, MPI_INT, 0, 0, MPI_COMM_SELF) != MPI_SUCCESS);
	CHECK(seen != 0);
	OK(MPI_Errhandler_free(&got));
	OK(MPI_Errhandler_free(&made));
}

int main(int argc, char **argv)
{
	test_start(&argc, &argv, MPI_THREAD_SINGLE);
	handles();
	statuses();
	types();
	errhandlers();
	return test_end();
}
