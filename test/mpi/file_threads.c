/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 2 */
/*
 * file_threads.c - many threads, plain and user-level, on one file through one handle and through handles of
 * their own; atomic mode among threads; a limit of the system in the midst of a write.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>
#include <weft/ult.h>
#include "mpitest.h"

enum { THREADS = 4, ULTS = 40, TURNS = 30, WORDS = 200 };

static char name[256];
static MPI_File file;

/* A block of its own for each thread of each rank, by blocking and non-blocking calls in turn. */
static void block_of(MPI_File f, int id, int turn)
{
	int out[WORDS], in[WORDS];
	MPI_Offset at = (MPI_Offset)id * sizeof out;
	MPI_Status st;
	MPI_Request req;
	for (int i = 0; i < WORDS; i++)
		out[i] = id * 1000000 + turn * 1000 + i;
	if (turn % 2) {
		OK(MPI_File_write_at(f, at, out, WORDS, MPI_INT, &st));
		OK(MPI_File_iread_at(f, at, in, WORDS, MPI_INT, &req));
		OK(MPI_Wait(&req, &st));
	} else {
		OK(MPI_File_iwrite_at(f, at, out, WORDS, MPI_INT, &req));
		OK(MPI_Wait(&req, &st));
		OK(MPI_File_read_at(f, at, in, WORDS, MPI_INT, &st));
	}
	CHECK(!memcmp(in, out, sizeof in));
}

static void *plain(void *arg)
{
	int id = rank * (THREADS + ULTS) + (int)(long)arg;
	MPI_File own;
	for (int i = 0; i < TURNS; i++)
		block_of(file, id, i);
	OK(MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_RDWR, MPI_INFO_NULL, &own));
	for (int i = 0; i < TURNS; i++)
		block_of(own, id, i);
	OK(MPI_File_close(&own));
	return NULL;
}

static void *light(void *arg)
{
	int id = rank * (THREADS + ULTS) + THREADS + (int)(long)arg;
	for (int i = 0; i < TURNS / 10; i++)
		block_of(file, id, i);
	return NULL;
}

static void test_threads(void)
{
	pthread_t t[THREADS];
	weft_ult *u[ULTS];
	for (long i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&t[i], NULL, plain, (void *)i));
	struct weft_ult_attr a = WEFT_ULT_ATTR_INIT;
	a.stack_size = 8192;
	CHECK_EQ(weft_ult_start(0), WEFT_OK);
	for (long i = 0; i < ULTS; i++)
		CHECK_EQ(weft_ult_create(&u[i], &a, light, (void *)i), WEFT_OK);
	for (int i = 0; i < ULTS; i++)
		CHECK_EQ(weft_ult_join(u[i], NULL), WEFT_OK);
	CHECK_EQ(weft_ult_stop(), WEFT_OK);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
}

/* Each writes the same range; a reader of it sees one writer's numbers. */
static void *atomic(void *arg)
{
	enum { MANY = 5000 };
	int *out = malloc(MANY * sizeof *out), *in = malloc(MANY * sizeof *in);
	for (int turn = 0; turn < 20; turn++) {
		for (int i = 0; i < MANY; i++)
			out[i] = rank * 1000 + (int)(long)arg * 100 + turn;
		OK(MPI_File_write_at(file, 0, out, MANY, MPI_INT, MPI_STATUS_IGNORE));
		OK(MPI_File_read_at(file, 0, in, MANY, MPI_INT, MPI_STATUS_IGNORE));
		for (int i = 1; i < MANY; i++)
			CHECK_EQ(in[i], in[0]);
	}
	free(out);
	free(in);
	return NULL;
}

static void test_atomic(void)
{
	pthread_t t[THREADS];
	OK(MPI_File_set_atomicity(file, 1));
	for (long i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&t[i], NULL, atomic, (void *)i));
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	OK(MPI_File_set_atomicity(file, 0));
}

static void test_limit(void)
{
	struct rlimit was, now;
	static char mem[100000];
	MPI_Status st;
	MPI_Request req;
	int n = -1;
	signal(SIGXFSZ, SIG_IGN);
	OK(MPI_File_set_size(file, 0));
	CHECK(!getrlimit(RLIMIT_FSIZE, &was));
	now = was;
	now.rlim_cur = 50000;
	CHECK(!setrlimit(RLIMIT_FSIZE, &now));
	FAILS(MPI_File_write_at(file, 0, mem, sizeof mem, MPI_BYTE, &st), MPI_ERR_NO_SPACE);
	OK(MPI_Get_count(&st, MPI_BYTE, &n));
	CHECK_EQ(n, 50000);
	OK(MPI_File_iwrite_at(file, 0, mem, sizeof mem, MPI_BYTE, &req));
	FAILS(MPI_Wait(&req, &st), MPI_ERR_NO_SPACE);
	CHECK(!setrlimit(RLIMIT_FSIZE, &was));
	OK(MPI_File_write_at(file, 0, mem, sizeof mem, MPI_BYTE, &st));
}

int main(int argc, char **argv)
{
	test_start(&argc, &argv, MPI_THREAD_MULTIPLE);
	const char *dir = getenv("WEFT_TEST_DIR");
	snprintf(name, sizeof name, "%s/test-file-threads-%d", dir ? dir : "/tmp", (int)getpid());
	OK(MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD));
	OK(MPI_File_open(MPI_COMM_WORLD, name,
			 MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
			 &file));
	test_threads();
	test_barrier();
	test_atomic();
	test_limit();
	OK(MPI_File_close(&file));
	return test_end();
}
