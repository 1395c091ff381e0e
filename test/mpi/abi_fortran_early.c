/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 0 2 */
/* What a Fortran binding says before MPI_Init holds after it. */
#include <stdint.h>
#include "mpitest.h"

int main(int argc, char **argv)
{
	MPI_Info info;
	int8_t yes = -1, no = 0;
	int32_t yes4 = 0, no4 = 5;
	int set = 0, bytes = 0;
	OK(MPI_Abi_get_fortran_info(&info));
	CHECK(info == MPI_INFO_NULL);
	OK(MPI_Info_create(&info));
	OK(MPI_Info_set(info, "mpi_integer_size", "8"));
	OK(MPI_Info_set(info, "mpi_complex8_supported", "false"));
	OK(MPI_Abi_set_fortran_info(info));
	OK(MPI_Info_free(&info));
	OK(MPI_Abi_set_fortran_booleans(1, &yes, &no));
	test_start(&argc, &argv, MPI_THREAD_SINGLE);
	OK(MPI_Abi_get_fortran_booleans(4, &yes4, &no4, &set));
	CHECK(set && yes4 == -1 && no4 == 0);
	OK(MPI_Type_size(MPI_INTEGER, &bytes));
	CHECK_EQ(bytes, 8);
	OK(MPI_Type_size(MPI_COMPLEX8, &bytes));
	CHECK_EQ(bytes, MPI_UNDEFINED);
	int64_t in = (int64_t)1 << 35, out = 0;
	OK(MPI_Allreduce(&in, &out, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD));
	CHECK(out == in * size);
	return test_end();
}
