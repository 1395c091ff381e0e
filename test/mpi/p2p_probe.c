/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 2 4 */
/* Probes say what is there; matched probes take it; both with wildcards and without. */
#include "mpitest.h"

static void probe_then_receive(void)
{
	int right = (rank + 1) % size, left = (rank + size - 1) % size, n, flag;
	int out[50], in[50];
	MPI_Request req;
	MPI_Status st;

	for (int turn = 0; turn < 20; turn++) {
		int len = turn + 1;
		for (int i = 0; i < len; i++)
			out[i] = rank + turn + i;
		OK(MPI_Isend(out, len, MPI_INT, right, turn, MPI_COMM_WORLD, &req));
		if (turn % 2)
			OK(MPI_Probe(MPI_ANY_SOURCE, turn, MPI_COMM_WORLD, &st));
		else
			for (flag = 0; !flag;)
				OK(MPI_Iprobe(left, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &st));
		CHECK_EQ(st.MPI_SOURCE, left);
		CHECK_EQ(st.MPI_TAG, turn);
		OK(MPI_Get_count(&st, MPI_INT, &n));
		CHECK_EQ(n, len);
		OK(MPI_Recv(in, n, MPI_INT, st.MPI_SOURCE, st.MPI_TAG, MPI_COMM_WORLD,
			    MPI_STATUS_IGNORE));
		CHECK_EQ(in[len - 1], left + turn + len - 1);
		OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
	}
}

static void take_and_receive(void)
{
	static char out[200000], in[200000];
	static const int lengths[] = {1, 5000, 200000};
	int right = (rank + 1) % size, left = (rank + size - 1) % size, n, flag;
	MPI_Message msg;
	MPI_Request req, rx;
	MPI_Status st;

	for (int k = 0; k < 6; k++) {
		int len = lengths[k % 3];
		memset(out, 'a' + k, (size_t)len);
		OK(MPI_Isend(out, len, MPI_CHAR, right, k, MPI_COMM_WORLD, &req));
		if (k < 3)
			OK(MPI_Mprobe(left, MPI_ANY_TAG, MPI_COMM_WORLD, &msg, &st));
		else
			for (flag = 0; !flag;)
				OK(MPI_Improbe(MPI_ANY_SOURCE, k, MPI_COMM_WORLD, &flag, &msg,
					       &st));
		OK(MPI_Get_count(&st, MPI_CHAR, &n));
		CHECK_EQ(n, len);
		OK(MPI_Iprobe(left, k, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
		CHECK(!flag);
		if (k % 2) {
			OK(MPI_Mrecv(in, len, MPI_CHAR, &msg, &st));
		} else {
			OK(MPI_Imrecv(in, len, MPI_CHAR, &msg, &rx));
			OK(MPI_Wait(&rx, &st));
		}
		CHECK(msg == MPI_MESSAGE_NULL);
		CHECK_EQ(st.MPI_SOURCE, left);
		CHECK_EQ(st.MPI_TAG, k);
		CHECK(in[0] == 'a' + k && in[len - 1] == 'a' + k);
		OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
	}
}

static void nobody(void)
{
	MPI_Message msg = MPI_MESSAGE_NULL;
	MPI_Request req;
	MPI_Status st;
	int flag = 0, v = 3, n = -1;

	OK(MPI_Mprobe(MPI_PROC_NULL, 1, MPI_COMM_WORLD, &msg, &st));
	CHECK(msg == MPI_MESSAGE_NO_PROC && st.MPI_SOURCE == MPI_PROC_NULL);
	OK(MPI_Mrecv(&v, 1, MPI_INT, &msg, &st));
	CHECK(msg == MPI_MESSAGE_NULL && st.MPI_SOURCE == MPI_PROC_NULL && v == 3);
	OK(MPI_Improbe(MPI_PROC_NULL, 1, MPI_COMM_WORLD, &flag, &msg, &st));
	CHECK(flag && msg == MPI_MESSAGE_NO_PROC);
	OK(MPI_Imrecv(&v, 1, MPI_INT, &msg, &req));
	OK(MPI_Wait(&req, &st));
	CHECK_EQ(st.MPI_SOURCE, MPI_PROC_NULL);
	OK(MPI_Get_count(&st, MPI_INT, &n));
	CHECK_EQ(n, 0);
	OK(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &flag, &st));
	CHECK(!flag);
	FAILS(MPI_Mrecv(&v, 1, MPI_INT, &msg, &st), MPI_ERR_REQUEST);
}

int main(int argc, char **argv)
{
	test_start(&argc, &argv, MPI_THREAD_SINGLE);
	OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
	probe_then_receive();
	take_and_receive();
	nobody();
	return test_end();
}
