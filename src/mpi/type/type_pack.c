/* SPDX-License-Identifier: BSD-3-Clause */
/* type_pack.c - explicit packing: MPI_Pack and external32. */
#include <string.h>

#include "data/external.h"
#include "mpi/type/type.h"

/* Does `need` more fit behind position?  Records what is wrong. */
static int check_room(MPI_Count position, MPI_Count size, size_t need)
{
	if (position < 0 || size < 0 || position > size)
		return weft_mpi_err(MPI_ERR_ARG, "position %lld is not in a buffer of %lld bytes",
				    (long long)position, (long long)size);
	if (need > (size_t)(size - position))
		return weft_mpi_err(MPI_ERR_TRUNCATE,
				    "%zu bytes do not fit: %lld are left behind position %lld",
				    need, (long long)(size - position), (long long)position);
	return MPI_SUCCESS;
}

int weft_mpi_Pack(const void *inbuf, MPI_Count incount, MPI_Datatype datatype, void *outbuf,
		  MPI_Count outsize, MPI_Count *position, MPI_Comm comm)
{
	struct weft_buf buf;
	weft_err err = weft_mpi_buf(inbuf, incount, datatype, &buf);
	if (err)
		return weft_mpi_buf_class(err);
	int bad = check_room(*position, outsize, buf.bytes);
	if (bad)
		return bad;
	weft_data_pack(&buf, 0, (char *)outbuf + *position, buf.bytes);
	*position += (MPI_Count)buf.bytes;
	return MPI_SUCCESS;
}

int weft_mpi_Unpack(const void *inbuf, MPI_Count insize, MPI_Count *position, void *outbuf,
		    MPI_Count outcount, MPI_Datatype datatype, MPI_Comm comm)
{
	struct weft_buf buf;
	weft_err err = weft_mpi_buf(outbuf, outcount, datatype, &buf);
	if (err)
		return weft_mpi_buf_class(err);
	int bad = check_room(*position, insize, buf.bytes);
	if (bad)
		return bad;
	weft_data_unpack(&buf, 0, (const char *)inbuf + *position, buf.bytes);
	*position += (MPI_Count)buf.bytes;
	return MPI_SUCCESS;
}

int weft_mpi_Pack_size(MPI_Count incount, MPI_Datatype datatype, MPI_Comm comm, MPI_Count *size)
{
	struct weft_buf buf;
	weft_err err = weft_mpi_buf(NULL, incount, datatype, &buf);
	if (err)
		return weft_mpi_buf_class(err);
	*size = (MPI_Count)buf.bytes;
	return MPI_SUCCESS;
}

/* ---- external32 --------------------------------------------------------------------------- */

static int check_rep(const char *datarep)
{
	if (!strcmp(datarep, "external32"))
		return MPI_SUCCESS;
	return weft_mpi_err(MPI_ERR_ARG, "unknown data representation \"%.40s\": use external32",
			    datarep);
}

/* The buffer and its size in external32. */
static int external_buf(const char *datarep, const void *base, MPI_Count count,
			MPI_Datatype datatype, struct weft_buf *buf, size_t *size)
{
	int bad = check_rep(datarep);
	if (bad)
		return bad;
	weft_err err = weft_mpi_buf(base, count, datatype, buf);
	if (err)
		return weft_mpi_buf_class(err);
	if (weft_data_external_size(weft_mpi_type_of(datatype)->layout, (size_t)count, size))
		return weft_mpi_err(MPI_ERR_COUNT, "too much data for one buffer");
	return MPI_SUCCESS;
}

int weft_mpi_Pack_external(const char *datarep, const void *inbuf, MPI_Count incount,
			   MPI_Datatype datatype, void *outbuf, MPI_Count outsize,
			   MPI_Count *position)
{
	struct weft_buf buf;
	size_t need;
	int bad = external_buf(datarep, inbuf, incount, datatype, &buf, &need);
	if (!bad)
		bad = check_room(*position, outsize, need);
	if (bad)
		return bad;
	weft_data_external_pack(&buf, weft_mpi_type_of(datatype)->layout, (size_t)incount,
				(char *)outbuf + *position);
	*position += (MPI_Count)need;
	return MPI_SUCCESS;
}

int weft_mpi_Unpack_external(const char datarep[], const void *inbuf, MPI_Count insize,
			     MPI_Count *position, void *outbuf, MPI_Count outcount,
			     MPI_Datatype datatype)
{
	struct weft_buf buf;
	size_t need;
	int bad = external_buf(datarep, outbuf, outcount, datatype, &buf, &need);
	if (!bad)
		bad = check_room(*position, insize, need);
	if (bad)
		return bad;
	weft_data_external_unpack(&buf, weft_mpi_type_of(datatype)->layout, (size_t)outcount,
				  (const char *)inbuf + *position);
	*position += (MPI_Count)need;
	return MPI_SUCCESS;
}

int weft_mpi_Pack_external_size(const char *datarep, MPI_Count incount, MPI_Datatype datatype,
				MPI_Count *size)
{
	struct weft_buf buf;
	size_t need;
	int bad = external_buf(datarep, NULL, incount, datatype, &buf, &need);
	if (!bad)
		*size = (MPI_Count)need;
	return bad;
}
