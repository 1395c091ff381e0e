/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 2 */
/* A child made by fork that calls MPI ends with a line; its parent goes on unharmed. */
#include <stdlib.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mpitest.h"

static void exchange(void)
{
	int v = -1, right = (rank + 1) % size, left = (rank + size - 1) % size;

	OK(MPI_Sendrecv(&rank, 1, MPI_INT, right, 0, &v, 1, MPI_INT, left, 0, MPI_COMM_WORLD,
			MPI_STATUS_IGNORE));
	CHECK_EQ(v, left);
}

static int child(int (*what)(void))
{
	int status = 0;
	fflush(NULL);
	pid_t pid = fork();

	if (pid == 0)
		_exit(what());
	CHECK(pid > 0);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* Questions are answered: MPI was there, and is over for this process. */
static int asks(void)
{
	int flag = 0;

	if (MPI_Initialized(&flag) || !flag || MPI_Finalized(&flag) || !flag)
		return 1;
	return MPI_Wtime() > 0 ? 0 : 1;
}

static int calls_mpi(void)
{
	int v = 0;

	dup2(open("/dev/null", O_WRONLY), 2);
	MPI_Send(&v, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
	return 0;
}

int main(int argc, char **argv)
{
	test_start(&argc, &argv, MPI_THREAD_SINGLE);
	exchange();
	CHECK_EQ(child(asks), 0);
	exchange();
	CHECK(child(calls_mpi) != 0);
	exchange();
	CHECK_EQ(system("true"), 0);
	exchange();
	return test_end();
}
