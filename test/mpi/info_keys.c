/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 */
/* Info objects keep keys in order, before MPI_Init and after MPI_Finalize too. */
#include "mpitest.h"

static void used(void)
{
	MPI_Info info, copy;
	char key[MPI_MAX_INFO_KEY], value[64];
	int n = -1, flag = 0, len;

	OK(MPI_Info_create(&info));
	OK(MPI_Info_set(info, "one", "1"));
	OK(MPI_Info_set(info, "two", "22"));
	OK(MPI_Info_set(info, "three", "333"));
	OK(MPI_Info_set(info, "two", "2"));
	OK(MPI_Info_get_nkeys(info, &n));
	CHECK_EQ(n, 3);
	OK(MPI_Info_get_nthkey(info, 1, key));
	CHECK(strcmp(key, "two") == 0);
	OK(MPI_Info_get(info, "two", 63, value, &flag));
	CHECK(flag && strcmp(value, "2") == 0);
	OK(MPI_Info_get(info, "three", 2, value, &flag));
	CHECK(flag && strcmp(value, "33") == 0);
	OK(MPI_Info_get_valuelen(info, "three", &len, &flag));
	CHECK(flag && len == 3);
	OK(MPI_Info_get(info, "four", 10, value, &flag));
	CHECK(!flag);
	len = 0;
	OK(MPI_Info_get_string(info, "three", &len, NULL, &flag));
	CHECK(flag && len == 4);
	OK(MPI_Info_get_string(info, "three", &len, value, &flag));
	CHECK(flag && len == 4 && strcmp(value, "333") == 0);
	len = 3;
	OK(MPI_Info_get_string(info, "three", &len, value, &flag));
	CHECK(flag && len == 4 && strcmp(value, "33") == 0);
	OK(MPI_Info_dup(info, &copy));
	OK(MPI_Info_delete(info, "one"));
	OK(MPI_Info_get_nkeys(info, &n));
	CHECK_EQ(n, 2);
	OK(MPI_Info_get_nkeys(copy, &n));
	CHECK_EQ(n, 3);
	OK(MPI_Info_free(&info));
	OK(MPI_Info_free(&copy));
	CHECK(info == MPI_INFO_NULL);
}

static void wrong(void)
{
	MPI_Info info;
	char big[MPI_MAX_INFO_VAL + 2], value[8];
	int flag;

	memset(big, 'k', sizeof(big));
	big[sizeof(big) - 1] = 0;
	OK(MPI_Info_create(&info));
	FAILS(MPI_Info_set(info, "", "x"), MPI_ERR_INFO_KEY);
	FAILS(MPI_Info_set(info, big, "x"), MPI_ERR_INFO_KEY);
	FAILS(MPI_Info_set(info, "x", big), MPI_ERR_INFO_VALUE);
	FAILS(MPI_Info_delete(info, "x"), MPI_ERR_INFO_NOKEY);
	FAILS(MPI_Info_get_nthkey(info, 0, value), MPI_ERR_ARG);
	FAILS(MPI_Info_get(MPI_INFO_NULL, "x", 1, value, &flag), MPI_ERR_INFO);
	OK(MPI_Info_free(&info));
	FAILS(MPI_Info_free(&info), MPI_ERR_INFO);
	info = MPI_INFO_ENV;
	FAILS(MPI_Info_free(&info), MPI_ERR_INFO);
}

int main(int argc, char **argv)
{
	char value[256];
	int flag = 0, n = sizeof(value);
	MPI_Info info;

	used();
	test_start(&argc, &argv, MPI_THREAD_MULTIPLE);
	OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
	used();
	wrong();
	OK(MPI_Info_get_string(MPI_INFO_ENV, "thread_level", &n, value, &flag));
	CHECK(flag && strcmp(value, "MPI_THREAD_MULTIPLE") == 0);
	n = sizeof(value);
	OK(MPI_Info_get_string(MPI_INFO_ENV, "command", &n, value, &flag));
	CHECK(flag && strstr(value, "info_keys"));
	OK(MPI_Info_create_env(argc, argv, &info));
	n = sizeof(value);
	OK(MPI_Info_get_string(info, "wdir", &n, value, &flag));
	CHECK(flag && value[0] == '/');
	OK(MPI_Info_free(&info));
	test_end();
	used();
	return 0;
}
