/* SPDX-License-Identifier: BSD-3-Clause */
/* error.c - what the system says of a file, as MPI's error classes. */
#include <errno.h>
#include <string.h>

#include "mpi/file/mpi_file.h"

static const struct {
	int err, class;
} classes[] = {
	{ENOENT, MPI_ERR_NO_SUCH_FILE},
	{EEXIST, MPI_ERR_FILE_EXISTS},
	{EACCES, MPI_ERR_ACCESS},
	{EPERM, MPI_ERR_ACCESS},
	{EROFS, MPI_ERR_READ_ONLY},
	{ENOSPC, MPI_ERR_NO_SPACE},
	{EFBIG, MPI_ERR_NO_SPACE},
	{EDQUOT, MPI_ERR_QUOTA},
	{ETXTBSY, MPI_ERR_FILE_IN_USE},
	{EBUSY, MPI_ERR_FILE_IN_USE},
	{ENAMETOOLONG, MPI_ERR_BAD_FILE},
	{ENOTDIR, MPI_ERR_BAD_FILE},
	{EISDIR, MPI_ERR_BAD_FILE},
	{ELOOP, MPI_ERR_BAD_FILE},
	{ENXIO, MPI_ERR_BAD_FILE},
	{ESTALE, MPI_ERR_FILE},
	{EBADF, MPI_ERR_FILE},
	{ENOMEM, MPI_ERR_NO_MEM},
	{EMFILE, MPI_ERR_OTHER},
	{ENFILE, MPI_ERR_OTHER},
	{EOPNOTSUPP, MPI_ERR_UNSUPPORTED_OPERATION},
	{ESPIPE, MPI_ERR_UNSUPPORTED_OPERATION},
	{ENOSYS, MPI_ERR_UNSUPPORTED_OPERATION},
	{EOWNERDEAD, MPI_ERR_PROC_ABORTED},
};

int weft_mpi_file_err(int err, const char *what, const char *name)
{
	char text[96];
	int class = MPI_ERR_IO;
	if (!err)
		return MPI_SUCCESS;
	for (size_t i = 0; i < weft_countof(classes); i++)
		if (classes[i].err == err)
			class = classes[i].class;
	const char *why = strerror_r(err, text, sizeof text);
	if (err == EOWNERDEAD)
		why = "a rank that it needs has ended";
	return weft_mpi_err(class, "%s %.120s: %s", what, name, why);
}
