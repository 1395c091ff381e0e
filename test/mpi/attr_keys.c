/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 2 */
/* Attributes: predefined ones, callbacks on copy and delete, their errors, keys freed in use. */
#include "mpitest.h"

static int copies, deletes, order[8];

static int copy(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag)
{
	int r;

	/* A callback may call MPI: no lock is held. */
	OK(MPI_Comm_rank(comm, &r));
	CHECK(key > 0 && extra == (void *)&copies);
	copies++;
	*(void **)out = (char *)in + 1;
	*flag = 1;
	return MPI_SUCCESS;
}

static int delete (MPI_Comm comm, int key, void *value, void *extra)
{
	int r;

	(void)key;
	(void)extra;
	OK(MPI_Comm_size(comm, &r));
	order[deletes++ % 8] = (int)(long)value;
	return MPI_SUCCESS;
}

static int refuse(MPI_Comm comm, int key, void *value, void *extra)
{
	(void)comm, (void)key, (void)value;
	return *(int *)extra ? MPI_ERR_OTHER : MPI_SUCCESS;
}

static void predefined(void)
{
	int *v = NULL, flag = 0;

	OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &v, &flag));
	CHECK(flag && *v >= 32767);
	OK(MPI_Comm_get_attr(MPI_COMM_SELF, MPI_WTIME_IS_GLOBAL, &v, &flag));
	CHECK(flag && (*v == 0 || *v == 1));
	OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_IO, &v, &flag));
	CHECK(flag);
	OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &v, &flag));
	CHECK(flag && *v >= MPI_ERR_LASTCODE);
	OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &v, &flag));
	CHECK(!flag || *v > size);
	FAILS(MPI_Comm_set_attr(MPI_COMM_WORLD, MPI_TAG_UB, &flag), MPI_ERR_KEYVAL);
	FAILS(MPI_Comm_delete_attr(MPI_COMM_WORLD, MPI_TAG_UB), MPI_ERR_KEYVAL);
}

static void copied_and_deleted(void)
{
	int key, stay, flag = 0, old;
	void *v = NULL;
	MPI_Comm a, b;
	MPI_Request req;

	OK(MPI_Comm_create_keyval(copy, delete, &key, &copies));
	OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &stay, NULL));
	OK(MPI_Comm_dup(MPI_COMM_WORLD, &a));
	OK(MPI_Comm_get_attr(a, key, &v, &flag));
	CHECK(!flag);
	OK(MPI_Comm_set_attr(a, stay, &stay));
	OK(MPI_Comm_set_attr(a, key, (void *)40));
	OK(MPI_Comm_set_attr(a, key, (void *)50));
	CHECK(deletes == 1 && order[0] == 40);
	OK(MPI_Comm_dup(a, &b));
	CHECK_EQ(copies, 1);
	OK(MPI_Comm_get_attr(b, key, &v, &flag));
	CHECK(flag && v == (void *)51);
	OK(MPI_Comm_get_attr(b, stay, &v, &flag));
	CHECK(!flag);
	OK(MPI_Comm_free(&b));
	CHECK(deletes == 2 && order[1] == 51);
	OK(MPI_Comm_idup(a, &b, &req));
	CHECK_EQ(copies, 2);
	OK(MPI_Comm_delete_attr(a, key));
	CHECK_EQ(deletes, 3);
	OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
	OK(MPI_Comm_get_attr(b, key, &v, &flag));
	CHECK(flag && v == (void *)51);
	/* A freed key keeps serving the values it has. */
	old = key;
	OK(MPI_Comm_free_keyval(&key));
	CHECK_EQ(key, MPI_KEYVAL_INVALID);
	/* As long as it serves, freeing a copy of it does no harm. */
	key = old;
	OK(MPI_Comm_free_keyval(&key));
	CHECK_EQ(key, MPI_KEYVAL_INVALID);
	OK(MPI_Comm_free(&b));
	CHECK_EQ(deletes, 4);
	FAILS(MPI_Comm_set_attr(a, old, NULL), MPI_ERR_KEYVAL);
	OK(MPI_Comm_free_keyval(&stay));
	OK(MPI_Comm_free(&a));
}

static void callbacks_that_fail(void)
{
	int key, no = 1;
	MPI_Comm a;

	OK(MPI_Comm_create_keyval(MPI_COMM_DUP_FN, refuse, &key, &no));
	OK(MPI_Comm_dup(MPI_COMM_SELF, &a));
	OK(MPI_Comm_set_errhandler(a, MPI_ERRORS_RETURN));
	OK(MPI_Comm_set_attr(a, key, &no));
	FAILS(MPI_Comm_free(&a), MPI_ERR_OTHER);
	CHECK(a != MPI_COMM_NULL);
	FAILS(MPI_Comm_delete_attr(a, key), MPI_ERR_OTHER);
	no = 0;
	OK(MPI_Comm_free(&a));
	OK(MPI_Comm_free_keyval(&key));
	FAILS(MPI_Comm_free_keyval(&key), MPI_ERR_KEYVAL);
}

static void deprecated_names(void)
{
	int key, flag = 0;
	void *v = NULL;

	OK(MPI_Keyval_create(MPI_DUP_FN, MPI_NULL_DELETE_FN, &key, NULL));
	OK(MPI_Attr_put(MPI_COMM_SELF, key, (void *)7));
	OK(MPI_Attr_get(MPI_COMM_SELF, key, &v, &flag));
	CHECK(flag && v == (void *)7);
	OK(MPI_Attr_delete(MPI_COMM_SELF, key));
	OK(MPI_Keyval_free(&key));
}

static int type_deletes;

static int type_delete(MPI_Datatype type, int key, void *value, void *extra)
{
	(void)type, (void)key, (void)value, (void)extra;
	type_deletes++;
	return MPI_SUCCESS;
}

static void on_datatypes(void)
{
	int key, flag = 0;
	void *v = NULL;
	MPI_Datatype a, b;

	OK(MPI_Type_create_keyval(MPI_TYPE_DUP_FN, type_delete, &key, NULL));
	OK(MPI_Type_contiguous(3, MPI_INT, &a));
	OK(MPI_Type_set_attr(a, key, &key));
	OK(MPI_Type_dup(a, &b));
	OK(MPI_Type_get_attr(b, key, &v, &flag));
	CHECK(flag && v == &key);
	OK(MPI_Type_free(&b));
	OK(MPI_Type_free(&a));
	CHECK_EQ(type_deletes, 2);
	OK(MPI_Type_set_attr(MPI_INT, key, NULL));
	OK(MPI_Type_delete_attr(MPI_INT, key));
	OK(MPI_Type_free_keyval(&key));
}

static int at_end;

static int last_call(MPI_Comm comm, int key, void *value, void *extra)
{
	int flag = 1;

	(void)comm, (void)key, (void)value, (void)extra;
	OK(MPI_Finalized(&flag));
	CHECK(!flag);
	at_end++;
	return MPI_SUCCESS;
}

int main(int argc, char **argv)
{
	int key;

	test_start(&argc, &argv, MPI_THREAD_SINGLE);
	OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
	OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
	predefined();
	copied_and_deleted();
	callbacks_that_fail();
	deprecated_names();
	on_datatypes();
	OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, last_call, &key, NULL));
	OK(MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL));
	test_end();
	CHECK_EQ(at_end, 1);
	return 0;
}
