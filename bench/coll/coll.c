/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll.c - how long does a collective take, also with more ranks than cores?
 *
 * Unit      microseconds per call.
 * Bound     with a core per rank: log2(ranks) cache lines handed over (0.15 us each); with more
 *           ranks than cores: each rank must run once, so ranks / cores switches (1 us and up).
 * Method    Calls that let no rank leave before all have come (barrier, allreduce, allgather,
 *           alltoall) follow each other, and the time of many is divided.  bcast and reduce let
 *           the root, or its peers, run ahead: a barrier before each call, the calls alone are
 *           timed, and the mean over the ranks counts.  The same "-loop", and scatter and gather,
 *           follow each other, as in a program that hands out many small things: a barrier ends
 *           each block and counts.  Median of blocks.
 */
#include "bench_mpi.h"

#define MOST (1 << 20)

static char *out, *in;

static void barrier(int bytes)
{
	(void)bytes;
	MPI_Barrier(MPI_COMM_WORLD);
}

static void allreduce(int bytes)
{
	MPI_Allreduce(out, in, bytes / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void reduce(int bytes)
{
	MPI_Reduce(out, in, bytes / 8, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
}

static void bcast(int bytes)
{
	MPI_Bcast(out, bytes, MPI_CHAR, 0, MPI_COMM_WORLD);
}

static void allgather(int bytes)
{
	MPI_Allgather(out, bytes, MPI_CHAR, in, bytes, MPI_CHAR, MPI_COMM_WORLD);
}

static void alltoall(int bytes)
{
	MPI_Alltoall(out, bytes, MPI_CHAR, in, bytes, MPI_CHAR, MPI_COMM_WORLD);
}

static void scatter(int bytes)
{
	MPI_Scatter(out, bytes, MPI_CHAR, in, bytes, MPI_CHAR, 0, MPI_COMM_WORLD);
}

static void gather(int bytes)
{
	MPI_Gather(out, bytes, MPI_CHAR, in, bytes, MPI_CHAR, 0, MPI_COMM_WORLD);
}

/* Made once for each buffer size, started often. */
static MPI_Request request = MPI_REQUEST_NULL;
static int made_bytes = -1;

static int is_new(int bytes)
{
	if (bytes == made_bytes)
		return 0;
	if (request != MPI_REQUEST_NULL)
		MPI_Request_free(&request);
	made_bytes = bytes;
	return 1;
}

static void run_request(void)
{
	MPI_Start(&request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
}

#if MPI_VERSION >= 4
static void allreduce_persistent(int bytes)
{
	if (is_new(bytes))
		MPI_Allreduce_init(out, in, bytes / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD,
				   MPI_INFO_NULL, &request);
	run_request();
}

static void bcast_persistent(int bytes)
{
	if (is_new(bytes))
		MPI_Bcast_init(out, bytes, MPI_CHAR, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
	run_request();
}

static void alltoall_persistent(int bytes)
{
	if (is_new(bytes))
		MPI_Alltoall_init(out, bytes, MPI_CHAR, in, bytes, MPI_CHAR, MPI_COMM_WORLD,
				  MPI_INFO_NULL, &request);
	run_request();
}

/* Eight partitions to the next rank, of as many from the last one: all that the ranks give each other. */
static MPI_Request ring[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};

static void ring_partitioned(int bytes)
{
	enum { PARTS = 8 };
	int next = (bench_rank + 1) % bench_ranks,
	    last = (bench_rank + bench_ranks - 1) % bench_ranks;

	if (bytes != made_bytes) {
		for (int i = 0; i < 2 && made_bytes >= 0; i++)
			MPI_Request_free(&ring[i]);
		made_bytes = bytes;
		MPI_Psend_init(out, PARTS, bytes / PARTS, MPI_CHAR, next, 0, MPI_COMM_WORLD,
			       MPI_INFO_NULL, &ring[0]);
		MPI_Precv_init(in, PARTS, bytes / PARTS, MPI_CHAR, last, 0, MPI_COMM_WORLD,
			       MPI_INFO_NULL, &ring[1]);
	}
	MPI_Startall(2, ring);
	for (int i = 0; i < PARTS; i++)
		MPI_Pready(i, ring[0]);
	MPI_Waitall(2, ring, MPI_STATUSES_IGNORE);
}
#else
/* An older MPI has no row here. */
static void no_such_call(int bytes)
{
	(void)bytes;
	fprintf(stderr, "coll: this MPI has no persistent collectives and no partitions\n");
	MPI_Abort(MPI_COMM_WORLD, 1);
}
#define allreduce_persistent no_such_call
#define bcast_persistent no_such_call
#define alltoall_persistent no_such_call
#define ring_partitioned no_such_call
#endif

static const struct kind {
	const char *name;
	void (*call)(int bytes);
	int apart;    /* a barrier before each call */
	int per_rank; /* the size is a block's: one to and from each rank */
	int loop;     /* a barrier at the end */
} kinds[] = {
	{"barrier", barrier, 0, 0, 0},
	{"allreduce", allreduce, 0, 0, 0},
	{"bcast", bcast, 1, 0, 0},
	{"reduce", reduce, 1, 0, 0},
	{"allgather", allgather, 0, 1, 0},
	{"alltoall", alltoall, 0, 1, 0},
	{"bcast-loop", bcast, 0, 0, 1},
	{"reduce-loop", reduce, 0, 0, 1},
	{"scatter-loop", scatter, 0, 1, 1},
	{"gather-loop", gather, 0, 1, 1},
	{"allreduce-persistent", allreduce_persistent, 0, 0, 0},
	{"bcast-persistent", bcast_persistent, 1, 0, 0},
	{"alltoall-persistent", alltoall_persistent, 0, 1, 0},
	{"ring-partitioned", ring_partitioned, 0, 0, 1},
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* Microseconds per call, of n calls, on this rank. */
static double timed(const struct kind *k, int bytes, int n)
{
	double sum = 0, t;

	MPI_Barrier(MPI_COMM_WORLD);
	if (!k->apart) {
		t = bench_now_us();
		for (int i = 0; i < n; i++)
			k->call(bytes);
		if (k->loop)
			MPI_Barrier(MPI_COMM_WORLD);
		return (bench_now_us() - t) / n;
	}
	for (int i = 0; i < n; i++) {
		MPI_Barrier(MPI_COMM_WORLD);
		t = bench_now_us();
		k->call(bytes);
		sum += bench_now_us() - t;
	}
	return sum / n;
}

static void measure(const struct kind *k, int bytes)
{
	double block[BENCH_BLOCKS_MAX], median, mean, t;
	char name[64], size[32];
	int blocks = bench_quick ? 9 : 21;

	k->call(bytes);
	/* With the barriers: some calls are short only because those have waited. */
	t = bench_now_us();
	timed(k, bytes, 3);
	t = (bench_now_us() - t) / 3;
	/* A block is 5 ms, a case a second at most: some take 100 ms a call when ranks share cores.
	 */
	int n = bench_repeat(t, 5000, 2000);
	timed(k, bytes, n);
	if (blocks * t * n > 1e6)
		blocks = (int)(1e6 / (t * n)) | 1;
	blocks = bench_agree(blocks < 3 ? 3 : blocks);
	for (int i = 0; i < blocks; i++)
		block[i] = timed(k, bytes, n);
	median = bench_median(block, blocks);
	MPI_Reduce(&median, &mean, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
	snprintf(name, sizeof(name), "%s%s%s", k->name, k->call == barrier ? "" : " ",
		 k->call == barrier ? "" : bench_size((size_t)bytes, size, sizeof(size)));
	if (bench_rank == 0)
		bench_row(name, "time", "us", mean / bench_ranks);
}

/* What sleeps at first, and what is learned from the first waits, is over after this. */
static void warm_up(void)
{
	int on = 1;
	for (double end = bench_now_us() + 1e5; on;) {
		for (int i = 0; i < 50; i++)
			MPI_Barrier(MPI_COMM_WORLD);
		on = bench_agree(bench_now_us() < end);
	}
}

static const struct kind *find(const char *prog, const char *name)
{
	for (unsigned i = 0; i < KINDS; i++)
		if (strcmp(kinds[i].name, name) == 0)
			return &kinds[i];
	bench_usage(prog, name,
		    "barrier|allreduce|bcast|reduce|allgather|alltoall|bcast-loop|reduce-loop|"
		    "scatter-loop|gather-loop|allreduce-persistent|bcast-persistent|"
		    "alltoall-persistent|ring-partitioned [--quick]");
	return NULL;
}

int main(int argc, char **argv)
{
	static const int full[] = {8, 64, 1024, 8192, 16384, 65536, 131072, 1 << 20, 0};
	static const int quick[] = {8, 65536, 0};

	bench_start(&argc, &argv, MPI_THREAD_SINGLE);
	const struct kind *k = find(argv[0], argc > 1 ? argv[1] : "nothing");
	size_t room = (size_t)MOST * (k->per_rank ? (size_t)bench_ranks : 1);
	/* Few pages when the ranks are many: blocks up to 64 KiB then. */
	int most = k->per_rank && bench_ranks > 4 ? 65536 : MOST;
	if (k->per_rank)
		room = (size_t)most * (size_t)bench_ranks;
	out = bench_alloc(room);
	in = bench_alloc(room);
	memset(out, 0, room); /* sums of zeros, not of numbers that take the slow path */
	warm_up();
	if (k->call == barrier)
		measure(k, 0);
	for (const int *size = bench_quick ? quick : full; k->call != barrier && *size; size++)
		if (*size <= most)
			measure(k, *size);
	(void)is_new(-1);
	MPI_Finalize();
	free(out);
	free(in);
	return 0;
}
