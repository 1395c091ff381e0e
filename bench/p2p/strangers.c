/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * strangers.c - what do strangers that connect to a rank cost its messages?
 *
 * Unit      microseconds, half of there and back, 8 B.
 * Bound     "nowhere": as many attempts to connect to a port without a listener; each attempt needs a
 *           core for a moment.  "elsewhere": the same connections to a listener of another process.
 * Method    strangers RATE: a process connects RATE times a second (1,000) to rank 0's listener,
 *           while 0 and 1 play ping-pong: "scan" connects and closes, "garbage" sends a line first,
 *           "silent" says nothing and stays, up to 256 at a time.  Windows of 20 ms in turn, so
 * that what else happens on the machine happens to all; the median of the windows' means counts.
 */
#include "bench_mpi.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>

enum mode { NOBODY, NOWHERE, ELSEWHERE, SCAN, GARBAGE, SILENT, MODES };
enum { WINDOW_US = 20000, CYCLES = 80, QUICK_CYCLES = 10, HELD = 256, TRIPS = 50 };

static const char *const names[MODES] = {"none", "nowhere", "elsewhere",
					 "scan", "garbage", "silent"};

/* What rank 0 and the stranger share. */
static struct shared {
	_Atomic int x_mode;
	_Atomic long x_made[MODES];
	struct sockaddr_storage at;
	socklen_t at_len;
} * shared;

/* The listener of this process, as any process can see it. */
static int find_listener(void)
{
	for (int fd = 0; fd < 1024; fd++) {
		int listens = 0;
		socklen_t n = sizeof(listens);
		if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &n) != 0 || !listens)
			continue;
		shared->at_len = sizeof(shared->at);
		return getsockname(fd, (struct sockaddr *)&shared->at, &shared->at_len) == 0;
	}
	return 0;
}

/* Another process that takes connections and closes them; its address is put where ours was. */
static void listen_elsewhere(struct sockaddr_storage *at, socklen_t *len)
{
	int fd = socket(shared->at.ss_family, SOCK_STREAM, 0);
	*at = shared->at;
	if (at->ss_family == AF_UNIX)
		*len = sizeof(sa_family_t); /* the kernel finds a name */
	else
		memset((char *)at + 2, 0, 2), *len = shared->at_len; /* the port, v4 and v6 */
	if (fd < 0 || bind(fd, (struct sockaddr *)at, *len) != 0 || listen(fd, 64) != 0)
		exit(1);
	*len = sizeof(*at);
	getsockname(fd, (struct sockaddr *)at, len);
	if (fork() == 0) {
		char line[256];
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;) { /* ends with its parent */
			int c = accept(fd, NULL, NULL);
			(void)!recv(c, line, sizeof(line), MSG_DONTWAIT);
			close(c);
		}
	}
	close(fd);
}

/* An address that is taken and has no listener. */
static void take_nowhere(struct sockaddr_storage *at, socklen_t *len)
{
	int fd = socket(shared->at.ss_family, SOCK_STREAM, 0);
	*at = shared->at;
	*len = shared->at_len;
	if (at->ss_family == AF_UNIX)
		*len = sizeof(sa_family_t);
	else
		memset((char *)at + 2, 0, 2);
	if (fd < 0 || bind(fd, (struct sockaddr *)at, *len) != 0)
		exit(1);
	*len = sizeof(*at);
	getsockname(fd, (struct sockaddr *)at, len);
}

static void knock(enum mode mode, const struct sockaddr_storage *at, socklen_t len, int *held,
		  long n)
{
	static const char line[] = "GET / HTTP/1.1\r\nHost: stranger\r\n\r\n";
	int fd = socket(at->ss_family, SOCK_STREAM | SOCK_NONBLOCK, 0);
	if (fd < 0 || (connect(fd, (const struct sockaddr *)at, len) != 0 && errno != EINPROGRESS &&
		       mode != NOWHERE)) {
		close(fd);
		return;
	}
	/* Counts for the picture only. */
	atomic_fetch_add_explicit(&shared->x_made[mode], 1, memory_order_relaxed);
	if (mode == GARBAGE || (mode == ELSEWHERE && n % 2))
		(void)!send(fd, line, sizeof(line) - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (mode == SILENT) {
		close(held[n % HELD]);
		held[n % HELD] = fd;
	} else {
		close(fd);
	}
}

/* Ends with rank 0. */
static void be_a_stranger(long rate)
{
	struct sockaddr_storage elsewhere, nowhere;
	socklen_t elsewhere_len, nowhere_len;
	int held[HELD];
	for (int i = 0; i < HELD; i++)
		held[i] = -1;
	while (!shared->at_len)
		usleep(1000);
	listen_elsewhere(&elsewhere, &elsewhere_len);
	take_nowhere(&nowhere, &nowhere_len);
	for (long n = 0;; n++) {
		enum mode mode = (enum mode)atomic_load(&shared->x_mode);
		for (int i = 0; i < HELD && mode != SILENT; i++) {
			if (held[i] >= 0)
				close(held[i]);
			held[i] = -1;
		}
		if (mode == ELSEWHERE)
			knock(mode, &elsewhere, elsewhere_len, held, n);
		else if (mode == NOWHERE)
			knock(mode, &nowhere, nowhere_len, held, n);
		else if (mode != NOBODY)
			knock(mode, &shared->at, shared->at_len, held, n);
		usleep((useconds_t)(1000000 / rate));
	}
}

static void trips(int n)
{
	char c[8] = {0};
	for (int i = 0; i < n; i++) {
		if (bench_rank == 0) {
			MPI_Send(c, 8, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
			MPI_Recv(c, 8, MPI_CHAR, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		} else {
			MPI_Recv(c, 8, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			MPI_Send(c, 8, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
		}
	}
}

/* Plays for a window; its mean. */
static double window(void)
{
	double begin = bench_now_us(), now = begin;
	char more = 1;
	long n = 0;
	while (more) {
		trips(TRIPS);
		n += TRIPS;
		now = bench_now_us();
		more = now - begin < WINDOW_US;
		MPI_Bcast(&more, 1, MPI_CHAR, 0, MPI_COMM_WORLD);
	}
	return (now - begin) / (double)n / 2;
}

int main(int argc, char **argv)
{
	static double us[MODES][CYCLES];
	long rate = 1000;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED)
		return 1;
	for (int i = 1; i < argc; i++)
		if (strspn(argv[i], "0123456789") == strlen(argv[i]))
			rate = atol(argv[i]);
	pid_t stranger = 0;
	if (bench_early_rank() == 0 && (stranger = fork()) == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		be_a_stranger(rate < 1 ? 1 : rate);
	}
	bench_start(&argc, &argv, MPI_THREAD_SINGLE);
	if (bench_ranks != 2 || argc > 2)
		bench_usage(argv[0], argc > 2 ? argv[2] : "", "[RATE] [--quick], two ranks");
	trips(1000); /* they are connected */
	int found = bench_rank == 0 && find_listener(),
	    cycles = bench_quick ? QUICK_CYCLES : CYCLES;
	found = bench_agree(found);
	for (int i = 0; found && i < cycles * MODES; i++) {
		atomic_store(&shared->x_mode, i % MODES);
		trips(TRIPS);
		us[i % MODES][i / MODES] = window();
	}
	atomic_store(&shared->x_mode, NOBODY);
	double nobody = 0;
	for (int m = 0; found && m < MODES && bench_rank == 0; m++) {
		double median = bench_median(us[m], cycles);
		char name[64];
		nobody = m ? nobody : median;
		snprintf(name, sizeof(name), "%s %ld/s", names[m], rate);
		bench_row(name, "latency", "us", median);
		if (m)
			bench_row(name, "more than none", "%", (median / nobody - 1) * 100);
		if (m)
			bench_row(name, "connections", "per second",
				  (double)atomic_load(&shared->x_made[m]) * 1e6 / WINDOW_US /
					  cycles);
	}
	if (stranger > 0)
		kill(stranger, SIGKILL);
	if (!found && bench_rank == 0)
		fprintf(stderr, "bench: rank 0 does not listen\n");
	MPI_Finalize();
	return 0;
}
