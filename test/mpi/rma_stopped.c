/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 2 3 */
/*
 * rma_stopped.c - the others access a rank of their host that is stopped (SIGSTOP): free locks, puts, gets,
 * accumulates and flushes complete; and 1,000 windows leave neither descriptors nor mappings.
 */
#include <malloc.h>
#include <signal.h>
#include <unistd.h>
#include <stdio.h>
#include "mpitest.h"

/* KEPT: bytes that comm/ keeps of 4,096 contexts that have been. */
enum { N = 20000, KEPT = 2500000 };

static MPI_Win win;
static long *base;
static MPI_Aint there; /* dynamic: where rank 1's memory lies */

static MPI_Aint word(int i)
{
	return there ? MPI_Aint_add(there, 8 * i) : i;
}

static char state_of(int pid)
{
	char path[64], text[512], *after;
	FILE *f;

	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	f = fopen(path, "r");
	CHECK(f);
	size_t n = fread(text, 1, sizeof text - 1, f);
	fclose(f);
	text[n] = 0;
	after = strrchr(text, ')');
	CHECK(after);
	return after[2];
}

/* What rank 0 and the last do to rank 1, which does nothing. */
static void accesses(void)
{
	static long out[N], in[N];
	long one = 1, was, next, zero = 0;

	for (int i = 0; i < N; i++)
		out[i] = i;
	OK(MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win));
	if (rank == 0) {
		OK(MPI_Put(out, N, MPI_LONG, 1, word(8), N, MPI_LONG, win));
		OK(MPI_Win_flush(1, win));
		OK(MPI_Accumulate(out, N, MPI_LONG, 1, word(8), N, MPI_LONG, MPI_SUM, win));
		OK(MPI_Win_flush(1, win));
		OK(MPI_Get(in, N, MPI_LONG, 1, word(8), N, MPI_LONG, win));
		OK(MPI_Win_flush(1, win));
		for (int i = 0; i < N; i++)
			CHECK_EQ(in[i], 2 * i);
		OK(MPI_Compare_and_swap(&one, &zero, &next, MPI_LONG, 1, word(1), win));
	}
	OK(MPI_Fetch_and_op(&one, &was, MPI_LONG, 1, word(0), MPI_SUM, win));
	OK(MPI_Win_unlock(1, win));
	for (int i = 0; i < 100; i++) {
		OK(MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win));
		OK(MPI_Win_unlock(1, win));
	}
}

static void stopped(void)
{
	int pid = (int)getpid();

	base[0] = base[1] = 0;
	OK(MPI_Bcast(&pid, 1, MPI_INT, 1, MPI_COMM_WORLD));
	test_barrier();
	if (rank == 1) {
		raise(SIGSTOP); /* goes on when rank 0 says so */
	} else {
		while (state_of(pid) != 'T') /* ends: it is about to */
			usleep(100);
		accesses();
		int last = size - 1, token = 0;
		if (rank == last && last > 1)
			OK(MPI_Send(&token, 1, MPI_INT, 0, 3, MPI_COMM_WORLD));
		else if (last > 1)
			OK(MPI_Recv(&token, 1, MPI_INT, last, 3, MPI_COMM_WORLD,
				    MPI_STATUS_IGNORE));
		if (rank == 0)
			CHECK_EQ(kill(pid, SIGCONT), 0);
	}
	test_barrier();
	if (rank == 1) {
		CHECK_EQ(base[0], size - 1);
		CHECK_EQ(base[1], 1);
		CHECK_EQ(base[8 + 77], 154);
	}
	test_barrier();
}

static int lines_of(const char *path)
{
	int n = 0, c;
	FILE *f = fopen(path, "r");

	CHECK(f);
	while ((c = fgetc(f)) != EOF)
		n += c == '\n';
	fclose(f);
	return n;
}

static int open_files(void)
{
	int n = 0;

	for (int fd = 0; fd < 1024; fd++) {
		char path[64];
		snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
		n += access(path, F_OK) == 0;
	}
	return n;
}

/* Bytes of the heap that are in use. */
static size_t heap(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

/* One of each flavour, with an access. */
static void turn(int i)
{
	static long own;
	long one = 1;
	void *memory = &own;

	if (i % 4 == 0)
		OK(MPI_Win_create(&own, sizeof own, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
	else if (i % 4 == 1)
		OK(MPI_Win_allocate(4096, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
	else if (i % 4 == 2)
		OK(MPI_Win_allocate_shared(4096, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
	else
		OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
	OK(MPI_Win_fence(0, win));
	if (i % 4 != 3)
		OK(MPI_Accumulate(&one, 1, MPI_LONG, (rank + 1) % size, 0, 1, MPI_LONG, MPI_SUM,
				  win));
	OK(MPI_Win_fence(0, win));
	OK(MPI_Win_free(&win));
}

static void leaks(int windows)
{
	for (int i = 0; i < 200; i++)
		turn(i);
	int files = open_files(), maps = lines_of("/proc/self/maps");
	size_t bytes = heap();
	for (int i = 0; i < windows; i++)
		turn(i);
	CHECK_EQ(open_files(), files);
	CHECK(lines_of("/proc/self/maps") <= maps + 8); /* of malloc and the threads */
	if (heap() > bytes + KEPT + (size_t)windows)
		fprintf(stderr, "rank %d: %zu bytes, then %zu\n", rank, bytes, heap());
	CHECK(heap() <= bytes + KEPT + (size_t)windows);
}

int main(int argc, char **argv)
{
	int windows = argc > 1 ? atoi(argv[1]) : getenv("WEFT_LONG") ? 100000 : 1000;
	MPI_Aint bytes = (N + 8) * sizeof *base;

	test_start(&argc, &argv, MPI_THREAD_SINGLE);
	OK(MPI_Win_allocate(bytes, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
	stopped();
	OK(MPI_Win_free(&win));
	base = malloc((size_t)bytes);
	OK(MPI_Win_create(base, bytes, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
	stopped();
	OK(MPI_Win_free(&win));
	OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
	OK(MPI_Win_attach(win, base, bytes));
	OK(MPI_Get_address(base, &there));
	OK(MPI_Bcast(&there, 1, MPI_AINT, 1, MPI_COMM_WORLD));
	stopped();
	OK(MPI_Win_detach(win, base));
	OK(MPI_Win_free(&win));
	free(base);
	leaks(windows);
	return test_end();
}
