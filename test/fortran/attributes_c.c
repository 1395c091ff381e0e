/* SPDX-License-Identifier: BSD-3-Clause */
/* attributes_c.c - attributes.f90's other language. */
#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

int c_key(void);
intptr_t c_reads_address(int comm, int key);
int c_reads_integer(int comm, int key);
void c_sets(int comm, int key, intptr_t value);

int c_key(void)
{
	int key = MPI_KEYVAL_INVALID;
	MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &key, NULL);
	return key;
}

/* C gets the address of what Fortran has set. */
intptr_t c_reads_address(int comm, int key)
{
	MPI_Aint *value = NULL;
	int flag = 0;

	MPI_Comm_get_attr(MPI_Comm_fromint(comm), key, &value, &flag);
	return flag ? *value : 0;
}

int c_reads_integer(int comm, int key)
{
	int *value = NULL, flag = 0;

	MPI_Comm_get_attr(MPI_Comm_fromint(comm), key, &value, &flag);
	return flag ? *value : 0;
}

void c_sets(int comm, int key, intptr_t value)
{
	MPI_Comm_set_attr(MPI_Comm_fromint(comm), key, (void *)value);
}
