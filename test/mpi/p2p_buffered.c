/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 2 */
/* Buffered sends return at once, count their room, and are all out after detach. */
#include <stdlib.h>

#include "mpitest.h"

enum { BIG = 100000 };

static void room_is_counted(void)
{
	static char data[BIG], in[BIG];
	int n = 0, flag = 0;
	char *back = NULL, *room = malloc(2 * BIG + 2 * MPI_BSEND_OVERHEAD);
	MPI_Request req;

	FAILS(MPI_Bsend(data, 1, MPI_CHAR, 0, 1, MPI_COMM_SELF), MPI_ERR_BUFFER);
	OK(MPI_Buffer_attach(room, 2 * BIG + 2 * MPI_BSEND_OVERHEAD));
	FAILS(MPI_Buffer_attach(room, 10), MPI_ERR_BUFFER);
	memset(data, 'x', BIG);
	OK(MPI_Bsend(data, BIG, MPI_CHAR, 0, 1, MPI_COMM_SELF));
	memset(data, 'y', BIG);
	OK(MPI_Ibsend(data, BIG, MPI_CHAR, 0, 2, MPI_COMM_SELF, &req));
	OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
	memset(data, 'z', BIG);
	OK(MPI_Recv(in, BIG, MPI_CHAR, 0, 2, MPI_COMM_SELF, MPI_STATUS_IGNORE));
	CHECK(in[0] == 'y' && in[BIG - 1] == 'y');
	OK(MPI_Buffer_iflush(&req));
	OK(MPI_Test(&req, &flag, MPI_STATUS_IGNORE));
	OK(MPI_Recv(in, BIG, MPI_CHAR, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE));
	CHECK(in[0] == 'x' && in[BIG - 1] == 'x');
	OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
	OK(MPI_Buffer_flush());
	OK(MPI_Buffer_detach(&back, &n));
	CHECK(back == room && n == 2 * BIG + 2 * MPI_BSEND_OVERHEAD);
	FAILS(MPI_Buffer_detach(&back, &n), MPI_ERR_BUFFER);
	free(room);
}

static void buffer_of_a_communicator(void)
{
	int right = (rank + 1) % size, left = (rank + size - 1) % size, n = 0;
	static int out[1000], in[1000];
	void *back = NULL;
	MPI_Comm comm;
	MPI_Request req;

	OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
	OK(MPI_Comm_attach_buffer(comm, MPI_BUFFER_AUTOMATIC, 0));
	for (int k = 0; k < 20; k++) {
		for (int i = 0; i < 1000; i++)
			out[i] = k * i + rank;
		OK(MPI_Bsend(out, 1000, MPI_INT, right, k, comm));
	}
	for (int k = 0; k < 20; k++) {
		OK(MPI_Recv(in, 1000, MPI_INT, left, k, comm, MPI_STATUS_IGNORE));
		CHECK_EQ(in[999], k * 999 + left);
	}
	OK(MPI_Comm_iflush_buffer(comm, &req));
	OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
	OK(MPI_Comm_flush_buffer(comm));
	OK(MPI_Comm_detach_buffer(comm, &back, &n));
	CHECK(back == MPI_BUFFER_AUTOMATIC);
	OK(MPI_Comm_free(&comm));
}

int main(int argc, char **argv)
{
	test_start(&argc, &argv, MPI_THREAD_SINGLE);
	OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
	room_is_counted();
	buffer_of_a_communicator();
	return test_end();
}
