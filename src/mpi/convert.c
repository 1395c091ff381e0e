/* SPDX-License-Identifier: BSD-3-Clause */
/* convert.c - handles as integers and back, for other languages. */
#include "mpi/mpi_int.h"

int weft_mpi_Comm_toint(MPI_Comm comm)
{
	return weft_mpi_handle_toint(comm);
}

MPI_Comm weft_mpi_Comm_fromint(int comm)
{
	return weft_mpi_handle_fromint(comm);
}

int weft_mpi_Errhandler_toint(MPI_Errhandler errhandler)
{
	return weft_mpi_handle_toint(errhandler);
}

MPI_Errhandler weft_mpi_Errhandler_fromint(int errhandler)
{
	return weft_mpi_handle_fromint(errhandler);
}

int weft_mpi_File_toint(MPI_File file)
{
	return weft_mpi_handle_toint(file);
}

MPI_File weft_mpi_File_fromint(int file)
{
	return weft_mpi_handle_fromint(file);
}

int weft_mpi_Group_toint(MPI_Group group)
{
	return weft_mpi_handle_toint(group);
}

MPI_Group weft_mpi_Group_fromint(int group)
{
	return weft_mpi_handle_fromint(group);
}

int weft_mpi_Info_toint(MPI_Info info)
{
	return weft_mpi_handle_toint(info);
}

MPI_Info weft_mpi_Info_fromint(int info)
{
	return weft_mpi_handle_fromint(info);
}

int weft_mpi_Message_toint(MPI_Message message)
{
	return weft_mpi_handle_toint(message);
}

MPI_Message weft_mpi_Message_fromint(int message)
{
	return weft_mpi_handle_fromint(message);
}

int weft_mpi_Request_toint(MPI_Request request)
{
	return weft_mpi_handle_toint(request);
}

MPI_Request weft_mpi_Request_fromint(int request)
{
	return weft_mpi_handle_fromint(request);
}

int weft_mpi_Session_toint(MPI_Session session)
{
	return weft_mpi_handle_toint(session);
}

MPI_Session weft_mpi_Session_fromint(int session)
{
	return weft_mpi_handle_fromint(session);
}

int weft_mpi_Win_toint(MPI_Win win)
{
	return weft_mpi_handle_toint(win);
}

MPI_Win weft_mpi_Win_fromint(int win)
{
	return weft_mpi_handle_fromint(win);
}
