/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * flood.c - more than a receiver takes: nothing is lost, no rank waits for ever, and its memory
 * holds no more payload than the credit that it gives.
 *
 *	flood reverse N           N messages with tags of their own, received last first
 *	flood all BYTES ROUNDS    each rank to all, all posted before anything is received
 *	flood deaf N BYTES        the receiver makes no MPI call until all is on its way
 */
#include <stdlib.h>
#include <unistd.h>

#include "../mpi/mpitest.h"

static unsigned long long counter(const char *name)
{
	unsigned long long v = 0;
	int index, count;
	MPI_T_pvar_session s;
	MPI_T_pvar_handle h;

	OK(MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index));
	OK(MPI_T_pvar_session_create(&s));
	OK(MPI_T_pvar_handle_alloc(s, index, NULL, &h, &count));
	OK(MPI_T_pvar_read(s, h, &v));
	OK(MPI_T_pvar_session_free(&s));
	return v;
}

/* Kilobytes in use; what can be given back is not counted. */
static long in_use_kb(void)
{
	char line[256];
	long kb = 0;
	FILE *f = fopen("/proc/self/status", "r");

	CHECK(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "RssAnon: %ld", &kb) == 1)
			break;
	fclose(f);
	return kb;
}

static void reverse(int n)
{
	MPI_Request *req = calloc((size_t)n, sizeof(*req));
	int *value = calloc((size_t)n, sizeof(*value));

	CHECK(req && value);
	if (rank == 0) {
		for (int i = 0; i < n; i++) {
			value[i] = i * 7;
			OK(MPI_Isend(&value[i], 1, MPI_INT, 1, i, MPI_COMM_WORLD, &req[i]));
		}
		OK(MPI_Waitall(n, req, MPI_STATUSES_IGNORE));
	}
	test_barrier();
	for (int i = n; rank == 1 && i-- > 0;) {
		OK(MPI_Recv(&value[i], 1, MPI_INT, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
		CHECK_EQ(value[i], i * 7);
	}
	free(req);
	free(value);
}

static void all(int bytes, int rounds)
{
	int n = rounds * size;
	MPI_Request *req = calloc((size_t)n, sizeof(*req));
	char *out = malloc((size_t)bytes), *in = malloc((size_t)bytes);

	CHECK(req && out && in);
	memset(out, rank, (size_t)bytes);
	for (int i = 0; i < n; i++)
		OK(MPI_Isend(out, bytes, MPI_BYTE, i % size, i / size, MPI_COMM_WORLD, &req[i]));
	/* From the last round to the first, so that everything lies there before. */
	for (int i = n; i-- > 0;) {
		OK(MPI_Recv(in, bytes, MPI_BYTE, i % size, i / size, MPI_COMM_WORLD,
			    MPI_STATUS_IGNORE));
		for (int k = 0; k < bytes; k += 64)
			CHECK_EQ(in[k], i % size);
	}
	OK(MPI_Waitall(n, req, MPI_STATUSES_IGNORE));
	free(req);
	free(out);
	free(in);
}

static void deaf(int n, int bytes)
{
	MPI_Request *req = calloc((size_t)n, sizeof(*req));
	char *out = malloc((size_t)bytes), *in = malloc((size_t)bytes), ready = 0;

	CHECK(req && out && in);
	memset(out, 'd', (size_t)bytes);
	test_barrier();
	if (rank == 0) {
		unsigned long long asked = counter("weft_credit_asked");
		for (int i = 0; i < n; i++)
			OK(MPI_Isend(out, bytes, MPI_BYTE, 1, 5, MPI_COMM_WORLD, &req[i]));
		/* Behind all of them. */
		OK(MPI_Send(&ready, 1, MPI_BYTE, 1, 6, MPI_COMM_WORLD));
		OK(MPI_Waitall(n, req, MPI_STATUSES_IGNORE));
		CHECK(counter("weft_credit_asked") > asked);
	} else if (rank == 1) {
		long before = in_use_kb();
		/* Everything before it has arrived by then: as payload, or as a request to send. */
		OK(MPI_Recv(&ready, 1, MPI_BYTE, 0, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
		long grown = in_use_kb() - before;
		/* A megabyte of credit, half a kilobyte per envelope, and what the pools keep. */
		printf("%d messages of %d bytes unreceived: %ld KB\n", n, bytes, grown);
		CHECK(grown < 1024 + n / 2 + 8192);
		for (int i = 0; i < n; i++) {
			memset(in, 0, (size_t)bytes);
			OK(MPI_Recv(in, bytes, MPI_BYTE, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
			CHECK(in[0] == 'd' && in[bytes - 1] == 'd');
		}
	}
	free(req);
	free(out);
	free(in);
}

int main(int argc, char **argv)
{
	int level;

	if (argc < 3)
		SKIP("run by test_flood.py");
	test_start(&argc, &argv, MPI_THREAD_SINGLE);
	OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &level));
	if (!strcmp(argv[1], "reverse"))
		reverse(atoi(argv[2]));
	else if (!strcmp(argv[1], "all"))
		all(atoi(argv[2]), atoi(argv[3]));
	else
		deaf(atoi(argv[2]), atoi(argv[3]));
	OK(MPI_T_finalize());
	return test_end();
}
