/* ranks: 1 2 */
/* SPDX-License-Identifier: BSD-3-Clause */
/* Background progress is switched by call and by info key, before MPI_Init and while MPI runs. */
#include <mpi.h>
#include <weft/progress.h>

#include "../check.h"

static int by_info(const char *key, const char *value)
{
	MPI_Info info;

	MPI_Info_create(&info);
	MPI_Info_set(info, key, value);
	int err = MPI_Comm_set_info(MPI_COMM_WORLD, info);
	MPI_Info_free(&info);
	return err;
}

static void exchange(int rank, int size)
{
	static char out[300000], in[300000];

	out[sizeof out - 1] = (char)rank;
	MPI_Sendrecv(out, sizeof out, MPI_CHAR, (rank + 1) % size, 0, in, sizeof in, MPI_CHAR,
		     (rank + size - 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	CHECK_EQ(in[sizeof in - 1], (rank + size - 1) % size);
}

int main(int argc, char **argv)
{
	int rank, size, provided;

	CHECK(weft_progress_get());
	weft_progress_set(false);
	CHECK(!weft_progress_get());
	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	CHECK(!weft_progress_get());
	exchange(rank, size);

	CHECK_EQ(by_info("weft_progress", "on"), MPI_SUCCESS);
	CHECK(weft_progress_get());
	exchange(rank, size);
	CHECK_EQ(by_info("weft_progress", "off"), MPI_SUCCESS);
	CHECK(!weft_progress_get());
	exchange(rank, size);
	weft_progress_set(true);

	CHECK(weft_progress_thread_get());
	CHECK_EQ(by_info("weft_progress_thread", "off"), MPI_SUCCESS);
	CHECK(!weft_progress_thread_get());
	exchange(rank, size);
	weft_progress_thread_set(true);

	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	CHECK_EQ(by_info("weft_progress", "perhaps"), MPI_ERR_INFO_VALUE);
	CHECK(weft_progress_get());
	MPI_Finalize();
	return 0;
}
