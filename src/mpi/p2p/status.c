/* SPDX-License-Identifier: BSD-3-Clause */
/* status.c - reading and writing statuses. */
#include "mpi/mpi_int.h"
#include "mpi/type/type.h"

int weft_mpi_Get_count(const MPI_Status *status, MPI_Datatype datatype, MPI_Count *count)
{
	*count = weft_mpi_type_count(weft_mpi_type_of(datatype), weft_mpi_status_bytes(status));
	return MPI_SUCCESS;
}

int weft_mpi_Get_elements(const MPI_Status *status, MPI_Datatype datatype, MPI_Count *count)
{
	*count = weft_mpi_type_elements(weft_mpi_type_of(datatype), weft_mpi_status_bytes(status));
	return MPI_SUCCESS;
}

int weft_mpi_Test_cancelled(const MPI_Status *status, int *flag)
{
	*flag = status->MPI_internal[2] != 0;
	return MPI_SUCCESS;
}

int weft_mpi_Status_set_cancelled(MPI_Status *status, int flag)
{
	status->MPI_internal[2] = flag != 0;
	return MPI_SUCCESS;
}

int weft_mpi_Status_set_elements(MPI_Status *status, MPI_Datatype datatype, MPI_Count count)
{
	uint64_t bytes = weft_mpi_type_elements_bytes(weft_mpi_type_of(datatype), count);

	status->MPI_internal[0] = (int)(uint32_t)bytes;
	status->MPI_internal[1] = (int)(uint32_t)(bytes >> 32);
	return MPI_SUCCESS;
}

int weft_mpi_Status_get_source(const MPI_Status *status, int *source)
{
	*source = status->MPI_SOURCE;
	return MPI_SUCCESS;
}

int weft_mpi_Status_get_tag(const MPI_Status *status, int *tag)
{
	*tag = status->MPI_TAG;
	return MPI_SUCCESS;
}

int weft_mpi_Status_get_error(const MPI_Status *status, int *err)
{
	*err = status->MPI_ERROR;
	return MPI_SUCCESS;
}

int weft_mpi_Status_set_source(MPI_Status *status, int source)
{
	status->MPI_SOURCE = source;
	return MPI_SUCCESS;
}

int weft_mpi_Status_set_tag(MPI_Status *status, int tag)
{
	status->MPI_TAG = tag;
	return MPI_SUCCESS;
}

int weft_mpi_Status_set_error(MPI_Status *status, int err)
{
	status->MPI_ERROR = err;
	return MPI_SUCCESS;
}
