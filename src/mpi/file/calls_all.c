/* SPDX-License-Identifier: BSD-3-Clause */
/* calls_all.c - the collective calls.
 *
 * Each member does its own part; MPI asks for no more.  Ordered ones take their turns first (shared.c). */
#include "mpi/file/mpi_file.h"

int weft_mpi_File_read_all(MPI_File fh, void *buf, MPI_Count count, MPI_Datatype datatype,
			   MPI_Status *status)
{
	struct weft_mpi_file_call k = {.file = weft_mpi_file(fh),
				       .write = false,
				       .all = true,
				       .where = WEFT_MPI_BY_OWN,
				       .buf = (void *)(uintptr_t)buf,
				       .count = count,
				       .type = datatype};
	return weft_mpi_file_access(&k, status);
}

int weft_mpi_File_iread_all(MPI_File fh, void *buf, MPI_Count count, MPI_Datatype datatype,
			    MPI_Request *request)
{
	struct weft_mpi_file_call k = {.file = weft_mpi_file(fh),
				       .write = false,
				       .all = true,
				       .where = WEFT_MPI_BY_OWN,
				       .buf = (void *)(uintptr_t)buf,
				       .count = count,
				       .type = datatype};
	return weft_mpi_file_iaccess(&k, request);
}

int weft_mpi_File_read_all_begin(MPI_File fh, void *buf, MPI_Count count, MPI_Datatype datatype)
{
	struct weft_mpi_file_call k = {.file = weft_mpi_file(fh),
				       .write = false,
				       .all = true,
				       .where = WEFT_MPI_BY_OWN,
				       .buf = (void *)(uintptr_t)buf,
				       .count = count,
				       .type = datatype};
	return weft_mpi_file_split_begin(&k, "MPI_File_read_all_begin");
}

int weft_mpi_File_read_all_end(MPI_File fh, void *buf, MPI_Status *status)
{
	(void)buf;
	return weft_mpi_file_split_end(weft_mpi_file(fh), "MPI_File_read_all_begin", status);
}

int weft_mpi_File_read_at_all(MPI_File fh, MPI_Offset offset, void *buf, MPI_Count count,
			      MPI_Datatype datatype, MPI_Status *status)
{
	struct weft_mpi_file_call k = {.file = weft_mpi_file(fh),
				       .write = false,
				       .all = true,
				       .where = WEFT_MPI_BY_OFFSET,
				       .offset = offset,
				       .buf = (void *)(uintptr_t)buf,
				       .count = count,
				       .type = datatype};
	return weft_mpi_file_access(&k, status);
}

int weft_mpi_File_iread_at_all(MPI_File fh, MPI_Offset offset, void *buf, MPI_Count count,
			       MPI_Datatype datatype, MPI_Request *request)
{
	struct weft_mpi_file_call k = {.file = weft_mpi_file(fh),
				       .write = false,
				       .all = true,
				       .where = WEFT_MPI_BY_OFFSET,
				       .offset = offset,
				       .buf = (void *)(uintptr_t)buf,
				       .count = count,
				       .type = datatype};
	return weft_mpi_file_iaccess(&k, request);
}

int weft_mpi_File_read_at_all_begin(MPI_File fh, MPI_Offset offset, void *buf, MPI_Count count,
				    MPI_Datatype datatype)
{
	struct weft_mpi_file_call k = {.file = weft_mpi_file(fh),
				       .write = false,
				       .all = true,
				       .where = WEFT_MPI_BY_OFFSET,
				       .offset = offset,
				       .buf = (void *)(uintptr_t)buf,
				       .count = count,
				       .type = datatype};
	return weft_mpi_file_split_begin(&k, "MPI_File_read_at_all_begin");
}

int weft_mpi_File_read_at_all_end(MPI_File fh, void *buf, MPI_Status *status)
{
	(void)buf;
	return weft_mpi_file_split_end(weft_mpi_file(fh), "MPI_File_read_at_all_begin", status);
}

int weft_mpi_File_read_ordered(MPI_File fh, void *buf, MPI_Count count, MPI_Datatype datatype,
			       MPI_Status *status)
{
	struct weft_mpi_file_call k = {.file = weft_mpi_file(fh),
				       .write = false,
				       .all = true,
				       .where = WEFT_MPI_BY_ORDERED,
				       .buf = (void *)(uintptr_t)buf,
				       .count = count,
				       .type = datatype};
	return weft_mpi_file_access(&k, status);
}

int weft_mpi_File_read_ordered_begin(MPI_File fh, void *buf, MPI_Count count, MPI_Datatype datatype)
{
	struct weft_mpi_file_call k = {.file = weft_mpi_file(fh),
				       .write = false,
				       .all = true,
				       .where = WEFT_MPI_BY_ORDERED,
				       .buf = (void *)(uintptr_t)buf,
				       .count = count,
				       .type = datatype};
	return weft_mpi_file_split_begin(&k, "MPI_File_read_ordered_begin");
}

int weft_mpi_File_read_ordered_end(MPI_File fh, void *buf, MPI_Status *status)
{
	(void)buf;
	return weft_mpi_file_split_end(weft_mpi_file(fh), "MPI_File_read_ordered_begin", status);
}

int weft_mpi_File_write_all(MPI_File fh, const void *buf, MPI_Count count, MPI_Datatype datatype,
			    MPI_Status *status)
{
	struct weft_mpi_file_call k = {.file = weft_mpi_file(fh),
				       .write = true,
				       .all = true,
				       .where = WEFT_MPI_BY_OWN,
				       .buf = (void *)(uintptr_t)buf,
				       .count = count,
				       .type = datatype};
	return weft_mpi_file_access(&k, status);
}

int weft_mpi_File_iwrite_all(MPI_File fh, const void *buf, MPI_Count count, MPI_Datatype datatype,
			     MPI_Request *request)
{
	struct weft_mpi_file_call k = {.file = weft_mpi_file(fh),
				       .write = true,
				       .all = true,
				       .where = WEFT_MPI_BY_OWN,
				       .buf = (void *)(uintptr_t)buf,
				       .count = count,
				       .type = datatype};
	return weft_mpi_file_iaccess(&k, request);
}

int weft_mpi_File_write_all_begin(MPI_File fh, const void *buf, MPI_Count count,
				  MPI_Datatype datatype)
{
	struct weft_mpi_file_call k = {.file = weft_mpi_file(fh),
				       .write = true,
				       .all = true,
				       .where = WEFT_MPI_BY_OWN,
				       .buf = (void *)(uintptr_t)buf,
				       .count = count,
				       .type = datatype};
	return weft_mpi_file_split_begin(&k, "MPI_File_write_all_begin");
}

int weft_mpi_File_write_all_end(MPI_File fh, const void *buf, MPI_Status *status)
{
	(void)buf;
	return weft_mpi_file_split_end(weft_mpi_file(fh), "MPI_File_write_all_begin", status);
}

int weft_mpi_File_write_at_all(MPI_File fh, MPI_Offset offset, const void *buf, MPI_Count count,
			       MPI_Datatype datatype, MPI_Status *status)
{
	struct weft_mpi_file_call k = {.file = weft_mpi_file(fh),
				       .write = true,
				       .all = true,
				       .where = WEFT_MPI_BY_OFFSET,
				       .offset = offset,
				       .buf = (void *)(uintptr_t)buf,
				       .count = count,
				       .type = datatype};
	return weft_mpi_file_access(&k, status);
}

int weft_mpi_File_iwrite_at_all(MPI_File fh, MPI_Offset offset, const void *buf, MPI_Count count,
				MPI_Datatype datatype, MPI_Request *request)
{
	struct weft_mpi_file_call k = {.file = weft_mpi_file(fh),
				       .write = true,
				       .all = true,
				       .where = WEFT_MPI_BY_OFFSET,
				       .offset = offset,
				       .buf = (void *)(uintptr_t)buf,
				       .count = count,
				       .type = datatype};
	return weft_mpi_file_iaccess(&k, request);
}

int weft_mpi_File_write_at_all_begin(MPI_File fh, MPI_Offset offset, const void *buf,
				     MPI_Count count, MPI_Datatype datatype)
{
	struct weft_mpi_file_call k = {.file = weft_mpi_file(fh),
				       .write = true,
				       .all = true,
				       .where = WEFT_MPI_BY_OFFSET,
				       .offset = offset,
				       .buf = (void *)(uintptr_t)buf,
				       .count = count,
				       .type = datatype};
	return weft_mpi_file_split_begin(&k, "MPI_File_write_at_all_begin");
}

int weft_mpi_File_write_at_all_end(MPI_File fh, const void *buf, MPI_Status *status)
{
	(void)buf;
	return weft_mpi_file_split_end(weft_mpi_file(fh), "MPI_File_write_at_all_begin", status);
}

int weft_mpi_File_write_ordered(MPI_File fh, const void *buf, MPI_Count count,
				MPI_Datatype datatype, MPI_Status *status)
{
	struct weft_mpi_file_call k = {.file = weft_mpi_file(fh),
				       .write = true,
				       .all = true,
				       .where = WEFT_MPI_BY_ORDERED,
				       .buf = (void *)(uintptr_t)buf,
				       .count = count,
				       .type = datatype};
	return weft_mpi_file_access(&k, status);
}

int weft_mpi_File_write_ordered_begin(MPI_File fh, const void *buf, MPI_Count count,
				      MPI_Datatype datatype)
{
	struct weft_mpi_file_call k = {.file = weft_mpi_file(fh),
				       .write = true,
				       .all = true,
				       .where = WEFT_MPI_BY_ORDERED,
				       .buf = (void *)(uintptr_t)buf,
				       .count = count,
				       .type = datatype};
	return weft_mpi_file_split_begin(&k, "MPI_File_write_ordered_begin");
}

int weft_mpi_File_write_ordered_end(MPI_File fh, const void *buf, MPI_Status *status)
{
	(void)buf;
	return weft_mpi_file_split_end(weft_mpi_file(fh), "MPI_File_write_ordered_begin", status);
}
