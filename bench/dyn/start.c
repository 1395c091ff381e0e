/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * start.c - what does it take to start ranks that do nothing, and to end them?
 *
 * Unit      start: ms from the launcher's start to its end; cpu: ms of CPU time, of launcher and ranks together.
 * Bound     the same launcher with /bin/true: what processes cost that know nothing of MPI.
 * Method    This program is started by itself, with the launcher's command, which starts it as a rank, after
 *           "--".  The two kinds of ranks alternate.  Median of rounds, after one that does not count.
 */
#include "bench_mpi.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>

extern char **environ;

enum { TRUE, RANK, KINDS };
static const char *const kind_name[KINDS] = {"/bin/true", "MPI_Init; MPI_Finalize"};

static double cpu_ms(void)
{
	struct rusage r;
	getrusage(RUSAGE_CHILDREN, &r);
	return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1e3 +
	       (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) * 1e-3;
}

/* One job, whose output goes nowhere. */
static void run_job(char **command)
{
	posix_spawn_file_actions_t files;
	pid_t pid;
	int status;
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	if (posix_spawnp(&pid, command[0], &files, NULL, command, environ) != 0 ||
	    waitpid(pid, &status, 0) != pid || status != 0) {
		fprintf(stderr, "start: %s fails\n", command[0]);
		exit(1);
	}
	posix_spawn_file_actions_destroy(&files);
}

static void measure(char **commands[KINDS])
{
	int rounds = bench_quick ? 3 : 41;
	double took[KINDS][BENCH_BLOCKS_MAX], cpu[KINDS][BENCH_BLOCKS_MAX];
	for (int i = -1; i < rounds; i++) {
		for (int k = 0; k < KINDS; k++) {
			double begin = bench_now_us(), before = cpu_ms();
			run_job(commands[k]);
			if (i < 0)
				continue;
			took[k][i] = (bench_now_us() - begin) * 1e-3;
			cpu[k][i] = cpu_ms() - before;
		}
	}
	for (int k = 0; k < KINDS; k++) {
		bench_row(kind_name[k], "start", "ms", bench_median(took[k], rounds));
		bench_row(kind_name[k], "cpu", "ms", bench_median(cpu[k], rounds));
	}
}

/* The launcher's command with another program in the place of this one, which comes last but for "rank". */
static char **command_of(char **launcher, int n, const char *program)
{
	char **command = calloc((size_t)n + 1, sizeof *command);
	if (!command)
		exit(1);
	memcpy(command, launcher, (size_t)n * sizeof *command);
	if (program) {
		command[n - 2] = (char *)(size_t)program;
		command[n - 1] = NULL;
	}
	return command;
}

int main(int argc, char **argv)
{
	int at = 1;
	if (argc > 1 && strcmp(argv[1], "rank") == 0) {
		MPI_Init(NULL, NULL);
		MPI_Finalize();
		return 0;
	}
	for (; at < argc && strcmp(argv[at], "--") != 0; at++) {
		if (strcmp(argv[at], "--quick") != 0)
			bench_usage(argv[0], argv[at], "[--quick] -- LAUNCHER... PROGRAM rank");
		bench_quick = 1;
	}
	if (argc - at < 4)
		bench_usage(argv[0], "too few words", "[--quick] -- LAUNCHER... PROGRAM rank");
	char **launcher = argv + at + 1;
	int n = argc - at - 1;
	char **commands[KINDS] = {command_of(launcher, n, "/bin/true"),
				  command_of(launcher, n, NULL)};
	measure(commands);
	return 0;
}
