/* SPDX-License-Identifier: BSD-3-Clause */
/* calls.c - the independent calls: each says where it begins and how it ends. */
#include "mpi/file/mpi_file.h"

int weft_mpi_File_read(MPI_File fh, void *buf, MPI_Count count, MPI_Datatype datatype,
		       MPI_Status *status)
{
	struct weft_mpi_file_call k = {.file = weft_mpi_file(fh),
				       .write = false,
				       .where = WEFT_MPI_BY_OWN,
				       .buf = (void *)(uintptr_t)buf,
				       .count = count,
				       .type = datatype};
	return weft_mpi_file_access(&k, status);
}

int weft_mpi_File_iread(MPI_File fh, void *buf, MPI_Count count, MPI_Datatype datatype,
			MPI_Request *request)
{
	struct weft_mpi_file_call k = {.file = weft_mpi_file(fh),
				       .write = false,
				       .where = WEFT_MPI_BY_OWN,
				       .buf = (void *)(uintptr_t)buf,
				       .count = count,
				       .type = datatype};
	return weft_mpi_file_iaccess(&k, request);
}

int weft_mpi_File_read_at(MPI_File fh, MPI_Offset offset, void *buf, MPI_Count count,
			  MPI_Datatype datatype, MPI_Status *status)
{
	struct weft_mpi_file_call k = {.file = weft_mpi_file(fh),
				       .write = false,
				       .where = WEFT_MPI_BY_OFFSET,
				       .offset = offset,
				       .buf = (void *)(uintptr_t)buf,
				       .count = count,
				       .type = datatype};
	return weft_mpi_file_access(&k, status);
}

int weft_mpi_File_iread_at(MPI_File fh, MPI_Offset offset, void *buf, MPI_Count count,
			   MPI_Datatype datatype, MPI_Request *request)
{
	struct weft_mpi_file_call k = {.file = weft_mpi_file(fh),
				       .write = false,
				       .where = WEFT_MPI_BY_OFFSET,
				       .offset = offset,
				       .buf = (void *)(uintptr_t)buf,
				       .count = count,
				       .type = datatype};
	return weft_mpi_file_iaccess(&k, request);
}

int weft_mpi_File_read_shared(MPI_File fh, void *buf, MPI_Count count, MPI_Datatype datatype,
			      MPI_Status *status)
{
	struct weft_mpi_file_call k = {.file = weft_mpi_file(fh),
				       .write = false,
				       .where = WEFT_MPI_BY_SHARED,
				       .buf = (void *)(uintptr_t)buf,
				       .count = count,
				       .type = datatype};
	return weft_mpi_file_access(&k, status);
}

int weft_mpi_File_iread_shared(MPI_File fh, void *buf, MPI_Count count, MPI_Datatype datatype,
			       MPI_Request *request)
{
	struct weft_mpi_file_call k = {.file = weft_mpi_file(fh),
				       .write = false,
				       .where = WEFT_MPI_BY_SHARED,
				       .buf = (void *)(uintptr_t)buf,
				       .count = count,
				       .type = datatype};
	return weft_mpi_file_iaccess(&k, request);
}

int weft_mpi_File_write(MPI_File fh, const void *buf, MPI_Count count, MPI_Datatype datatype,
			MPI_Status *status)
{
	struct weft_mpi_file_call k = {.file = weft_mpi_file(fh),
				       .write = true,
				       .where = WEFT_MPI_BY_OWN,
				       .buf = (void *)(uintptr_t)buf,
				       .count = count,
				       .type = datatype};
	return weft_mpi_file_access(&k, status);
}

int weft_mpi_File_iwrite(MPI_File fh, const void *buf, MPI_Count count, MPI_Datatype datatype,
			 MPI_Request *request)
{
	struct weft_mpi_file_call k = {.file = weft_mpi_file(fh),
				       .write = true,
				       .where = WEFT_MPI_BY_OWN,
				       .buf = (void *)(uintptr_t)buf,
				       .count = count,
				       .type = datatype};
	return weft_mpi_file_iaccess(&k, request);
}

int weft_mpi_File_write_at(MPI_File fh, MPI_Offset offset, const void *buf, MPI_Count count,
			   MPI_Datatype datatype, MPI_Status *status)
{
	struct weft_mpi_file_call k = {.file = weft_mpi_file(fh),
				       .write = true,
				       .where = WEFT_MPI_BY_OFFSET,
				       .offset = offset,
				       .buf = (void *)(uintptr_t)buf,
				       .count = count,
				       .type = datatype};
	return weft_mpi_file_access(&k, status);
}

int weft_mpi_File_iwrite_at(MPI_File fh, MPI_Offset offset, const void *buf, MPI_Count count,
			    MPI_Datatype datatype, MPI_Request *request)
{
	struct weft_mpi_file_call k = {.file = weft_mpi_file(fh),
				       .write = true,
				       .where = WEFT_MPI_BY_OFFSET,
				       .offset = offset,
				       .buf = (void *)(uintptr_t)buf,
				       .count = count,
				       .type = datatype};
	return weft_mpi_file_iaccess(&k, request);
}

int weft_mpi_File_write_shared(MPI_File fh, const void *buf, MPI_Count count, MPI_Datatype datatype,
			       MPI_Status *status)
{
	struct weft_mpi_file_call k = {.file = weft_mpi_file(fh),
				       .write = true,
				       .where = WEFT_MPI_BY_SHARED,
				       .buf = (void *)(uintptr_t)buf,
				       .count = count,
				       .type = datatype};
	return weft_mpi_file_access(&k, status);
}

int weft_mpi_File_iwrite_shared(MPI_File fh, const void *buf, MPI_Count count,
				MPI_Datatype datatype, MPI_Request *request)
{
	struct weft_mpi_file_call k = {.file = weft_mpi_file(fh),
				       .write = true,
				       .where = WEFT_MPI_BY_SHARED,
				       .buf = (void *)(uintptr_t)buf,
				       .count = count,
				       .type = datatype};
	return weft_mpi_file_iaccess(&k, request);
}
