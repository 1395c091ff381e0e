/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 2 */
/*
 * A Fortran binding tells the library what its compiler is like: sizes of types, optional types and values
 * of LOGICAL are what it said from then on, in messages and reductions, too; only the first call counts.
 */
#include <stdint.h>
#include "mpitest.h"

static void set_and_free(MPI_Info info, int want)
{
	FAILS(MPI_Abi_set_fortran_info(info), want);
	OK(MPI_Info_free(&info));
}

static MPI_Info with(const char *key, const char *value)
{
	MPI_Info info;
	OK(MPI_Info_create(&info));
	OK(MPI_Info_set(info, key, value));
	return info;
}

static int bytes(MPI_Datatype t)
{
	int n = -1;
	OK(MPI_Type_size(t, &n));
	return n;
}

static void says(MPI_Info info, const char *key, const char *want)
{
	char got[20] = "";
	int len = sizeof got, flag = 0;
	OK(MPI_Info_get_string(info, key, &len, got, &flag));
	CHECK(flag);
	if (strcmp(got, want) != 0) {
		fprintf(stderr, "%s is %s, not %s\n", key, got, want);
		exit(1);
	}
}

/* What is refused changes nothing. */
static void refused(void)
{
	MPI_Info info;
	int32_t yes = 1, no = 0;
	FAILS(MPI_Abi_set_fortran_info(MPI_INFO_NULL), MPI_ERR_INFO);
	set_and_free(with("mpi_real_size", "32"), MPI_ERR_INFO_VALUE);
	set_and_free(with("mpi_integer_size", "2"), MPI_ERR_INFO_VALUE);
	set_and_free(with("mpi_integer_size", "many"), MPI_ERR_INFO_VALUE);
	set_and_free(with("mpi_real4_supported", "perhaps"), MPI_ERR_INFO_VALUE);
	OK(MPI_Abi_get_fortran_info(&info));
	CHECK(info == MPI_INFO_NULL);
	CHECK_EQ(bytes(MPI_INTEGER), 4);
	CHECK_EQ(bytes(MPI_DOUBLE_PRECISION), 8);
	FAILS(MPI_Abi_set_fortran_booleans(3, &yes, &no), MPI_ERR_ARG);
	FAILS(MPI_Abi_set_fortran_booleans(16, &yes, &no), MPI_ERR_ARG);
	FAILS(MPI_Abi_set_fortran_booleans(4, &yes, &yes), MPI_ERR_ARG);
	FAILS(MPI_Abi_set_fortran_booleans(4, &yes, NULL), MPI_ERR_ARG);
	int set = 1;
	OK(MPI_Abi_get_fortran_booleans(4, &yes, &no, &set));
	CHECK(!set && yes == 1 && no == 0);
	FAILS(MPI_Abi_get_fortran_booleans(5, &yes, &no, &set), MPI_ERR_ARG);
}

static void types(void)
{
	MPI_Info info = with("mpi_integer_size", "8");
	OK(MPI_Info_set(info, "mpi_real_size", "8"));
	OK(MPI_Info_set(info, "mpi_logical_size", "8"));
	OK(MPI_Info_set(info, "mpi_logical2_supported", "false"));
	OK(MPI_Info_set(info, "mpi_real16_supported", "true"));
	set_and_free(info, MPI_SUCCESS);
	set_and_free(with("mpi_integer_size", "4"), MPI_ERR_ABI);
	OK(MPI_Abi_get_fortran_info(&info));
	says(info, "mpi_integer_size", "8");
	says(info, "mpi_real_size", "8");
	says(info, "mpi_logical_size", "8");
	says(info, "mpi_double_precision_size", "8");
	says(info, "mpi_logical2_supported", "false");
	says(info, "mpi_logical4_supported", "true");
	says(info, "mpi_double_complex_supported", "true");
	says(info, "mpi_real16_supported", bytes(MPI_REAL16) == MPI_UNDEFINED ? "false" : "true");
	OK(MPI_Info_free(&info));
	CHECK_EQ(bytes(MPI_INTEGER), 8);
	CHECK_EQ(bytes(MPI_2INTEGER), 16);
	CHECK_EQ(bytes(MPI_REAL), 8);
	CHECK_EQ(bytes(MPI_COMPLEX), 16);
	CHECK_EQ(bytes(MPI_2REAL), 16);
	CHECK_EQ(bytes(MPI_LOGICAL), 8);
	CHECK_EQ(bytes(MPI_DOUBLE_PRECISION), 8);
	CHECK_EQ(bytes(MPI_LOGICAL2), MPI_UNDEFINED);
	CHECK_EQ(bytes(MPI_INTEGER4), 4);
	CHECK_EQ(bytes(MPI_INT), 4);
}

static void messages(void)
{
	int64_t out = ((int64_t)rank << 40) + 7, in = -1, sum = 0, from = (rank + size - 1) % size;
	double half = 0.5, halves = 0;
	struct {
		int64_t value, index;
	} mine = {.value = ((int64_t)1 << 40) - rank, .index = rank}, least;

	OK(MPI_Sendrecv(&out, 1, MPI_INTEGER, (rank + 1) % size, 0, &in, 1, MPI_INTEGER, (int)from,
			0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
	CHECK(in == (from << 40) + 7);
	OK(MPI_Allreduce(&out, &sum, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD));
	CHECK(sum == 7 * size + (((int64_t)size * (size - 1) / 2) << 40));
	OK(MPI_Allreduce(&half, &halves, 1, MPI_REAL, MPI_SUM, MPI_COMM_WORLD));
	CHECK(halves == 0.5 * size);
	OK(MPI_Allreduce(&mine, &least, 1, MPI_2INTEGER, MPI_MINLOC, MPI_COMM_WORLD));
	CHECK(least.index == size - 1 && least.value == ((int64_t)1 << 40) - (size - 1));
	FAILS(MPI_Send(&out, 1, MPI_LOGICAL2, 0, 0, MPI_COMM_SELF), MPI_ERR_TYPE);
}

/* A compiler whose .TRUE. has all bits set, and whose .FALSE. is 2, so that nothing is right by chance. */
static void logicals(void)
{
	int32_t yes = -1, no = 2;
	int16_t yes2 = 0, no2 = 0;
	int64_t in[3] = {-1, 2, rank ? 2 : -1}, out[3];
	int set = 0;
	OK(MPI_Abi_set_fortran_booleans(4, &yes, &no));
	FAILS(MPI_Abi_set_fortran_booleans(8, &in[0], &in[1]), MPI_ERR_ABI);
	yes = no = 0;
	OK(MPI_Abi_get_fortran_booleans(4, &yes, &no, &set));
	CHECK(set && yes == -1 && no == 2);
	OK(MPI_Abi_get_fortran_booleans(2, &yes2, &no2, &set));
	CHECK(set && yes2 == -1 && no2 == 2);
	OK(MPI_Allreduce(in, out, 3, MPI_LOGICAL, MPI_LAND, MPI_COMM_WORLD));
	CHECK(out[0] == -1 && out[1] == 2 && out[2] == (size == 1 ? -1 : 2));
	OK(MPI_Allreduce(in, out, 3, MPI_LOGICAL, MPI_LOR, MPI_COMM_WORLD));
	CHECK(out[0] == -1 && out[1] == 2 && out[2] == -1);
	OK(MPI_Allreduce(in, out, 3, MPI_LOGICAL, MPI_LXOR, MPI_COMM_WORLD));
	CHECK(out[0] == (size % 2 ? -1 : 2) && out[1] == 2 && out[2] == -1);
	int c[2] = {5, 0}, d[2]; /* C's ints are as they were */
	OK(MPI_Allreduce(c, d, 2, MPI_INT, MPI_LOR, MPI_COMM_WORLD));
	CHECK((size == 1 || d[0] == 1) && d[1] == 0);
}

int main(int argc, char **argv)
{
	MPI_Info info;
	test_start(&argc, &argv, MPI_THREAD_SINGLE);
	OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
	OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
	refused();
	types();
	messages();
	logicals();
	test_end();
	OK(MPI_Abi_get_fortran_info(&info));
	says(info, "mpi_integer_size", "8");
	OK(MPI_Info_free(&info));
	return 0;
}
