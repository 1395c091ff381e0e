/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 0
 *
 * A child of a spawn that is killed while it is connected takes its parent with it, and a parent that
 * is killed its children: the end of a pipe that all of them hold is seen. */
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "mpitest.h"

#define CHILDREN 2

static void child(MPI_Comm parent, const char *victim)
{
	MPI_Barrier(parent);
	if (strcmp(victim, "child") == 0 && rank == CHILDREN - 1)
		raise(SIGKILL);
	/* Ends with the job. */
	MPI_Recv(NULL, 0, MPI_BYTE, 0, 7, parent, MPI_STATUS_IGNORE);
}

static void parent(char *self, char *victim)
{
	MPI_Comm inter;
	char *args[] = {victim, NULL};
	MPI_Comm_spawn(self, args, CHILDREN, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter,
		       MPI_ERRCODES_IGNORE);
	MPI_Barrier(inter);
	if (strcmp(victim, "parent") == 0)
		raise(SIGKILL);
	MPI_Recv(NULL, 0, MPI_BYTE, 0, 7, inter, MPI_STATUS_IGNORE);
}

/* All processes of both jobs inherit stdout: its reader sees when the last one is gone. */
static void all_end(char *self, char *victim)
{
	int out[2], status;
	char text[256];
	CHECK(!pipe(out));
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		dup2(out[1], STDOUT_FILENO);
		close(out[0]);
		close(out[1]);
		execl(self, self, victim, (char *)NULL);
		_exit(127);
	}
	close(out[1]);
	/* Ends when no process has the pipe any more. */
	while (read(out[0], text, sizeof text) > 0)
		continue;
	close(out[0]);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(status != 0 && !(WIFEXITED(status) && WEXITSTATUS(status) == 127));
}

int main(int argc, char **argv)
{
	MPI_Comm up;
	char self[4096];
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	CHECK(n > 0);
	self[n] = 0;
	if (argc == 1) {
		all_end(self, "child");
		all_end(self, "parent");
		return 0;
	}
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_get_parent(&up);
	if (up == MPI_COMM_NULL)
		parent(self, argv[1]);
	else
		child(up, argv[1]);
	MPI_Finalize();
	return 0;
}
