/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * traffic.c - messages of every protocol with checked contents while something disturbs: MODE.
 *
 *	traffic plain|signals|children|descriptors|stopped|halted ROUNDS [DIR]
 *
 * Rank 0 prints a checksum that is the same however the messages travelled.
 */
#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../mpi/mpitest.h"

#define LARGEST 300000

extern char **environ;

static unsigned char out[LARGEST], in[LARGEST];
static unsigned long long checksum;
static volatile sig_atomic_t ticks, deaths, faults;

/* The same sequence in every rank. */
static unsigned dice(void)
{
	static unsigned long long state = 20261121;

	state = state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (unsigned)(state >> 33);
}

static void ring(int n, int tag)
{
	int right = (rank + 1) % size, left = (rank + size - 1) % size;
	MPI_Request req[2];
	MPI_Status st[2];
	int got = -1;

	memset(out, (rank + n + tag) & 255, (size_t)n);
	memset(in, 0xee, (size_t)n);
	OK(MPI_Irecv(in, LARGEST, MPI_BYTE, tag & 1 ? MPI_ANY_SOURCE : left, tag, MPI_COMM_WORLD,
		     &req[0]));
	OK(MPI_Isend(out, n, MPI_BYTE, right, tag, MPI_COMM_WORLD, &req[1]));
	OK(MPI_Waitall(2, req, st));
	OK(MPI_Get_count(&st[0], MPI_BYTE, &got));
	CHECK_EQ(got, n);
	for (int i = 0; i < n; i++)
		CHECK_EQ(in[i], (left + n + tag) & 255);
	checksum = checksum * 31 + (unsigned)n + (n ? in[n - 1] : 0);
}

static void together(int n)
{
	static long long a[64], b[64];
	long long to[16], from[16];

	for (int i = 0; i < 64; i++)
		a[i] = (long long)rank * i + n;
	OK(MPI_Allreduce(a, b, 64, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD));
	for (int i = 0; i < 64; i++)
		CHECK_EQ(b[i], (long long)size * (size - 1) / 2 * i + (long long)size * n);
	for (int i = 0; i < size; i++)
		to[i] = rank * 100 + i;
	OK(MPI_Alltoall(to, 1, MPI_LONG_LONG, from, 1, MPI_LONG_LONG, MPI_COMM_WORLD));
	for (int i = 0; i < size; i++)
		CHECK_EQ(from[i], i * 100 + rank);
	OK(MPI_Barrier(MPI_COMM_WORLD));
	checksum = checksum * 31 + (unsigned long long)b[63];
}

static void on_tick(int s)
{
	(void)s;
	ticks++;
}

static void on_child(int s)
{
	(void)s;
	deaths++;
}

static sigjmp_buf back;

static void on_fault(int s)
{
	(void)s;
	faults++;
	siglongjmp(back, 1);
}

static void handle(int sig, void (*fn)(int))
{
	struct sigaction sa = {.sa_handler = fn}; /* no SA_RESTART: calls come back with EINTR */

	sigemptyset(&sa.sa_mask);
	CHECK_EQ(sigaction(sig, &sa, NULL), 0);
}

static void handler_is(int sig, void (*fn)(int))
{
	struct sigaction sa;

	CHECK_EQ(sigaction(sig, NULL, &sa), 0);
	CHECK(sa.sa_handler == fn);
}

static void signals_begin(void)
{
	struct itimerval ms = {{0, 1000}, {0, 1000}};

	handler_is(SIGPIPE, SIG_DFL);
	handler_is(SIGCHLD, SIG_DFL);
	handle(SIGALRM, on_tick);
	handle(SIGPROF, on_tick);
	handle(SIGSEGV, on_fault);
	handle(SIGCHLD, on_child);
	handle(SIGPIPE, on_tick);
	CHECK_EQ(setitimer(ITIMER_REAL, &ms, NULL), 0);
	CHECK_EQ(setitimer(ITIMER_PROF, &ms, NULL), 0);
}

static void fault_once(void)
{
	int *volatile nowhere = NULL;

	if (sigsetjmp(back, 1) == 0) {
		*nowhere = 1;
		CHECK(!"past a fault");
	}
}

static void signals_end(void)
{
	struct itimerval none = {{0, 0}, {0, 0}};

	setitimer(ITIMER_REAL, &none, NULL);
	setitimer(ITIMER_PROF, &none, NULL);
	CHECK(ticks > 0);
	CHECK(faults > 0);
	handler_is(SIGSEGV, on_fault);
	handler_is(SIGALRM, on_tick);
	handler_is(SIGPIPE, on_tick);
}

static void child_ends(pid_t pid)
{
	int status = -1;

	CHECK(pid > 0);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* Children of four kinds; requests are under way meanwhile. */
static void children(int round)
{
	char word[16] = "", *const argv[] = {"true", NULL};
	int right = (rank + 1) % size, left = (rank + size - 1) % size;
	MPI_Request req[2];
	pid_t pid;
	FILE *p;

	memset(out, round & 255, LARGEST);
	OK(MPI_Irecv(in, LARGEST, MPI_BYTE, left, 77, MPI_COMM_WORLD, &req[0]));
	OK(MPI_Isend(out, LARGEST, MPI_BYTE, right, 77, MPI_COMM_WORLD, &req[1]));
	switch (round % 4) {
	case 0:
		pid = fork();
		if (pid == 0) {
			memset(out, 0xaa, LARGEST); /* the child's copy, not ours */
			_exit(0);
		}
		child_ends(pid);
		break;
	case 1:
		CHECK_EQ(system("exit 5") >> 8, 5);
		break;
	case 2:
		p = popen("echo word", "r");
		CHECK(p && fgets(word, sizeof(word), p));
		CHECK(strcmp(word, "word\n") == 0);
		CHECK_EQ(pclose(p), 0);
		break;
	case 3:
		CHECK_EQ(posix_spawnp(&pid, "true", NULL, NULL, argv, environ), 0);
		child_ends(pid);
		break;
	}
	OK(MPI_Waitall(2, req, MPI_STATUSES_IGNORE));
	for (int i = 0; i < LARGEST; i++)
		CHECK_EQ(in[i], round & 255);
}

/* After exec a child has 0, 1, 2 and what ls opens itself. */
static void descriptors(void)
{
	char line[4096];
	int n = 0;
	FILE *p = popen("exec ls -l /proc/self/fd", "r");

	CHECK(p);
	while (fgets(line, sizeof(line), p)) {
		const char *arrow = strstr(line, " -> ");
		int fd = -1;

		if (!arrow)
			continue;
		while (arrow > line && arrow[-1] != ' ')
			arrow--;
		fd = atoi(arrow);
		if (fd > 2 && !strstr(line, "/fd")) {
			fprintf(stderr, "a child inherits %s", line);
			n++;
		}
	}
	CHECK_EQ(pclose(p), 0);
	CHECK_EQ(n, 0);
}

/* Tells the driver which process to stop, and waits until it has. */
static void announce(const char *dir)
{
	char name[4096], ready[4200];
	FILE *f;

	snprintf(name, sizeof(name), "%s/new.%d", dir, rank);
	snprintf(ready, sizeof(ready), "%s/pid.%d", dir, rank);
	f = fopen(name, "w");
	CHECK(f);
	fprintf(f, "%d", getpid());
	fclose(f);
	CHECK_EQ(rename(name, ready), 0);
}

static volatile sig_atomic_t went_on;

static void on_cont(int sig)
{
	(void)sig;
	went_on = 1;
}

static void round_of(const char *mode, int i)
{
	static const int sizes[] = {0, 1, 100, 4096, 8193, 70000, LARGEST};

	ring(sizes[dice() % 7], i);
	ring((int)(dice() % 9000), i);
	together(i);
	if (!strcmp(mode, "children"))
		children(i);
	if (!strcmp(mode, "signals"))
		fault_once();
}

int main(int argc, char **argv)
{
	int rounds;
	const char *mode;

	if (argc < 3)
		SKIP("run by the drivers of this folder");
	mode = argv[1];
	int halted = !strcmp(mode, "halted"), stopped = halted || !strcmp(mode, "stopped");
	rounds = atoi(argv[2]);
	test_start(&argc, &argv, MPI_THREAD_MULTIPLE);
	CHECK(size <= 16);
	if (!strcmp(mode, "signals"))
		signals_begin();
	for (int i = 0; i < rounds; i++) {
		/* Not before all are connected: a rank stopped amid that is refused, with a line.
		 */
		if (i == 1 && halted)
			signal(SIGCONT, on_cont);
		if (i == 1 && stopped)
			announce(argv[3]);
		/* The driver may be late: not in the end, when the others leave. */
		while (i == rounds / 2 && rank == 1 && halted && !went_on)
			usleep(1000);
		round_of(mode, i);
		/* Long enough to be met by the driver's signal. */
		if (stopped)
			usleep(2000);
	}
	if (!strcmp(mode, "signals")) {
		/* Each rank hears a tick, however fast the messages were. */
		while (!ticks)
			pause();
		signals_end();
	}
	if (!strcmp(mode, "descriptors"))
		descriptors();
	if (rank == 0)
		printf("checksum %llx\n", checksum);
	return test_end();
}
