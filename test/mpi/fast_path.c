/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 2 */
/*
 * A small message over shared memory that is taken before long costs neither side a system
 * call or an allocation: MPI_Send and MPI_Recv, and windows of MPI_Isend, MPI_Irecv, MPI_Waitall.
 *
 * What one side does is watched while the other waits outside of MPI, so that no count depends on
 * which side runs when.  The receiver is watched only with WEFT_PROGRESS=off: else its watcher may have
 * taken the messages before it looks.
 */
#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>
#include "mpitest.h"

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#endif

/* Warm: until the locks that one thread uses alone are its own, and every function is bound. */
enum { WARM = 60, ROUNDS = 120, MANY = 24, LONGEST = 1024 };

/* ---- what is forbidden meanwhile ---------------------------------------------------------- */

static _Thread_local unsigned allocations;
static volatile char gate; /* 1: a system call of this thread raises SIGSYS */
static bool watches_calls;

/* A sanitizer's own allocator is not replaced: there only system calls are watched. */
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t each);
void *__libc_realloc(void *p, size_t n);

void *malloc(size_t n)
{
	allocations++;
	return __libc_malloc(n);
}

void *calloc(size_t n, size_t each)
{
	allocations++;
	return __libc_calloc(n, each);
}

void *realloc(void *p, size_t n)
{
	allocations++;
	return __libc_realloc(p, n);
}
#endif

static void caught(int sig, siginfo_t *info, void *context)
{
	char text[80];
	gate = 0;
	int n = snprintf(text, sizeof text, "a small message made system call %d\n",
			 info->si_syscall);
	(void)!write(2, text, (size_t)n);
	_exit(sig && context ? 1 : 2);
}

static void watch_begin(bool counted)
{
	allocations = 0;
	gate = counted && watches_calls;
}

static void watch_end(bool counted)
{
	gate = 0;
	if (counted && allocations) {
		fprintf(stderr, "small messages made %u allocations\n", allocations);
		exit(1);
	}
}

static void prepare(void)
{
	struct sigaction act = {.sa_sigaction = caught, .sa_flags = SA_SIGINFO};
	OK(sigaction(SIGSYS, &act, NULL));
	watches_calls = !prctl(PR_SET_SYSCALL_USER_DISPATCH, 1, 0, 0, &gate);
	if (!watches_calls)
		printf("system calls are not watched: %s\n", strerror(errno));
}

/* ---- one side at a time ------------------------------------------------------------------- */

static struct turns {
	sem_t sent, taken;
} * turns;

static void sleep_until(sem_t *s)
{
	while (sem_wait(s))
		CHECK(errno == EINTR);
}

/* Memory that both have; its name goes to the other as a message. */
static void share(void)
{
	char name[64];
	snprintf(name, sizeof name, "/weft-fast-path-%d", (int)getpid());
	if (rank == 0)
		shm_unlink(name);
	OK(MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD));
	int fd = shm_open(name, O_CREAT | O_RDWR, 0600);
	CHECK(fd >= 0 && !ftruncate(fd, sizeof *turns));
	turns = mmap(NULL, sizeof *turns, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(turns != MAP_FAILED);
	close(fd);
	if (rank == 0)
		CHECK(!sem_init(&turns->sent, 1, 0) && !sem_init(&turns->taken, 1, 0));
	OK(MPI_Barrier(MPI_COMM_WORLD));
	if (rank == 0)
		shm_unlink(name);
}

static unsigned char data[MANY][LONGEST];

static void send_all(int bytes, bool window)
{
	MPI_Request req[MANY];
	for (int i = 0; i < MANY; i++)
		if (window)
			MPI_Isend(data[i], bytes, MPI_BYTE, 1, 7, MPI_COMM_WORLD, &req[i]);
		else
			MPI_Send(data[i], bytes, MPI_BYTE, 1, 7, MPI_COMM_WORLD);
	if (window)
		MPI_Waitall(MANY, req, MPI_STATUSES_IGNORE);
}

static void sender(int bytes, bool window, int round)
{
	bool counted = round >= WARM;
	if (window) /* its receives are posted */
		sleep_until(&turns->taken);
	for (int i = 0; i < MANY; i++)
		memset(data[i], round + i, (size_t)bytes);
	watch_begin(counted);
	send_all(bytes, window);
	watch_end(counted);
	OK(sem_post(&turns->sent));
	OK(MPI_Recv(NULL, 0, MPI_BYTE, 1, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

static void receiver(int bytes, bool window, int round, bool watched)
{
	bool counted = watched && round >= WARM;
	MPI_Request req[MANY];
	watch_begin(counted);
	for (int i = 0; window && i < MANY; i++)
		MPI_Irecv(data[i], bytes, MPI_BYTE, 0, 7, MPI_COMM_WORLD, &req[i]);
	watch_end(counted);
	if (window)
		OK(sem_post(&turns->taken));
	sleep_until(&turns->sent);
	watch_begin(counted);
	for (int i = 0; !window && i < MANY; i++)
		MPI_Recv(data[i], bytes, MPI_BYTE, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	if (window)
		MPI_Waitall(MANY, req, MPI_STATUSES_IGNORE);
	watch_end(counted);
	for (int i = 0; i < MANY; i++)
		CHECK(data[i][0] == (unsigned char)(round + i) &&
		      data[i][bytes - 1] == (unsigned char)(round + i));
	OK(MPI_Send(NULL, 0, MPI_BYTE, 0, 8, MPI_COMM_WORLD));
}

int main(int argc, char **argv)
{
	static const int sizes[] = {8, 32, LONGEST};
	const char *progress = getenv("WEFT_PROGRESS");
	bool alone = progress && !strcmp(progress, "off");
	test_start(&argc, &argv, MPI_THREAD_MULTIPLE);
	share();
	prepare();
	for (int s = 0; s < 3; s++)
		for (int window = 0; window < 2; window++)
			for (int round = 0; round < ROUNDS; round++) {
				if (rank == 0)
					sender(sizes[s], window, round);
				else
					receiver(sizes[s], window, round, alone);
			}
	return test_end();
}
