/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * io.c - what does MPI-IO cost beside the system's own calls, and does it hide behind computation?
 *
 *	io CASE --folder NAME=FOLDER ... [--quick]
 *
 * Unit      us per access (where all take part, from the first rank's begin to the last one's end); records per second; share hidden.
 * Bound     contiguous: pread and pwrite of the run.  strided, subarray: the better of two programs that a user would
 *           write: a pwrite for each run of bytes, or MPI_Alltoallv to owners of slabs and one pwrite for each.
 * Method    All ways of a case are taken in turns, in either order; medians.  Memory is contiguous, each rank's part of the file
 *           is strided (runs of equal length, in turns), or a block of a 4-dimensional array of doubles,
 *           cut in the last dimensions.  The file is there before, of full size, and in the cache where there is one.
 *           share: what the best other way of the same run takes (by hand, independent), by what this one takes; 1:
 *           as fast.  hidden: as in ../overlap/exchange.h, T_comm the blocking call; on FUSE the server stores nothing then, since
 *           the cores of a server elsewhere are not these.
 *           pointer: each rank writes records of 64 B by MPI_File_write_shared; by hand: write() with O_APPEND.
 *           many: rank 0 has so many requests of 4 KiB open at once; by hand: as many pwrites, one after the other.
 */
#include "bench_mpi.h"
#include <fcntl.h>
#include <pthread.h>
#include <sys/xattr.h>

#define ROUNDS_MAX BENCH_BLOCKS_MAX
#define PLACES_MAX 8
#define REGION ((size_t)16 << 20)

static struct place {
	char name[32], path[512];
	int slow; /* a request takes long: fewer of them */
} place[PLACES_MAX];
static int places, is_weft;
static char *data, *slab, *arrived; /* REGION bytes each */
static int fd;
static MPI_File file;

static int rounds_of(const struct place *p)
{
	return bench_quick ? (p->slow ? 3 : 9) : p->slow ? 7 : 15;
}

static void must(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "io: rank %d: %s failed\n", bench_rank, what);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static void must_mpi(int err, const char *what)
{
	must(err == MPI_SUCCESS, what);
}

/* All ranks meet here without a poll: a rank that spins would take the core of one that works. */
static void meet_asleep(void)
{
	MPI_Request r;
	int there = 0;

	MPI_Ibarrier(MPI_COMM_WORLD, &r);
	while (!there) { /* ends: each rank comes */
		MPI_Test(&r, &there, MPI_STATUS_IGNORE);
		if (!there)
			usleep(500);
	}
}

static double slowest(double us)
{
	MPI_Allreduce(MPI_IN_PLACE, &us, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	return us;
}

/* From the first rank's begin to the last one's end: all are on one host, and have one clock. */
static double taken_by_all(double begin, double end)
{
	double both[2] = {-begin, end};

	MPI_Allreduce(MPI_IN_PLACE, both, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	return both[0] + both[1];
}

static void open_place(const struct place *p)
{
	if (bench_rank == 0) {
		int made = open(p->path, O_RDWR | O_CREAT | O_TRUNC, 0600);
		must(made >= 0 && pwrite(made, data, REGION, 0) == (ssize_t)REGION, p->path);
		must(close(made) == 0, "close");
	}
	MPI_Barrier(MPI_COMM_WORLD);
	fd = open(p->path, O_RDWR);
	must(fd >= 0, p->path);
	must_mpi(MPI_File_open(MPI_COMM_WORLD, p->path, MPI_MODE_RDWR, MPI_INFO_NULL, &file),
		 "MPI_File_open");
}

static void close_place(const struct place *p)
{
	MPI_File_close(&file);
	close(fd);
	MPI_Barrier(MPI_COMM_WORLD);
	if (bench_rank == 0)
		unlink(p->path);
}

/* by: NULL for this MPI.  The other ways are measured with each MPI, but are rows with weft alone. */
static void row(const char *by, const char *name, const char *metric, const char *unit,
		double value)
{
	if (bench_rank || (by && !is_weft))
		return;
	if (by)
		printf("%s,", by);
	bench_row(name, metric, unit, value);
}

/* By the system's call. */
static void by_call(int write, size_t at, size_t bytes)
{
	must((write ? pwrite(fd, data + at, bytes, (off_t)at)
		    : pread(fd, data + at, bytes, (off_t)at)) == (ssize_t)bytes,
	     "pread or pwrite");
}

/* ---- contiguous --------------------------------------------------------------------------- */

static double contiguous_once(int by_hand, int write, size_t bytes, int n)
{
	MPI_Status st;
	double begin = bench_now_us();

	for (int i = 0; i < n; i++) {
		size_t at = (size_t)i * bytes % REGION;
		if (by_hand)
			by_call(write, at, bytes);
		else
			must_mpi(write ? MPI_File_write_at(file, (MPI_Offset)at, data + at,
							   (int)bytes, MPI_BYTE, &st)
				       : MPI_File_read_at(file, (MPI_Offset)at, data + at,
							  (int)bytes, MPI_BYTE, &st),
				 "MPI_File_read_at or MPI_File_write_at");
	}
	return (bench_now_us() - begin) / n;
}

static void contiguous(const struct place *p, size_t bytes, int write)
{
	double by_hand[ROUNDS_MAX], mine[ROUNDS_MAX], shares[ROUNDS_MAX];
	char name[128], size[32];
	int rounds = 2 * rounds_of(p) + 1;
	double us = contiguous_once(1, write, bytes, 3);
	int n = us > 4000 ? 1 : (int)(4000 / us) + 1;

	for (int i = 0; i < rounds; i++) {
		int first = i % 2; /* either way comes first in half of the rounds */
		double took[2];
		took[first] = contiguous_once(first, write, bytes, n);
		took[!first] = contiguous_once(!first, write, bytes, n);
		mine[i] = took[0];
		by_hand[i] = took[1];
		shares[i] = took[1] / took[0];
	}
	snprintf(name, sizeof name, "%s %s %s", p->name, bench_size(bytes, size, sizeof size),
		 write ? "write" : "read");
	row(NULL, name, "time", "us", bench_median(mine, rounds));
	row("by hand", name, "time", "us", bench_median(by_hand, rounds));
	row(NULL, name, "share", "of the best other way", bench_median(shares, rounds));
}

static void contiguous_rows(const struct place *p)
{
	static const size_t sizes[] = {4096, 65536, 1048576, 4194304};

	if (bench_rank == 0)
		for (int s = bench_quick ? 2 : 0; s < (bench_quick ? 3 : 4); s++)
			for (int write = 0; write < 2; write++)
				contiguous(p, sizes[s], write);
	meet_asleep();
}

/* ---- parts of a file ---------------------------------------------------------------------- */

/* Each rank's n runs of len bytes, ascending; a slab has as many of each rank. */
static struct {
	const char *name;
	int n;
	size_t len;
	int side, rows,
		columns; /* subarray: of side^4, over rows x columns of ranks; side 0: strided */
} part;

static size_t run_at(int rank, int k)
{
	if (!part.side)
		return ((size_t)k * (size_t)bench_ranks + (size_t)rank) * part.len;
	size_t side = (size_t)part.side, mine = side / (size_t)part.rows;
	size_t outer = (size_t)k / mine,
	       row = (size_t)k % mine + (size_t)(rank / part.columns) * mine;
	return (outer * side + row) * side * 8 + (size_t)(rank % part.columns) * part.len;
}

static MPI_Datatype part_type(void)
{
	MPI_Datatype t;

	if (part.side) {
		int sizes[4] = {part.side, part.side, part.side, part.side};
		int sub[4] = {part.side, part.side, part.side / part.rows,
			      part.side / part.columns};
		int starts[4] = {0, 0, bench_rank / part.columns * sub[2],
				 bench_rank % part.columns * sub[3]};
		MPI_Type_create_subarray(4, sizes, sub, starts, MPI_ORDER_C, MPI_DOUBLE, &t);
	} else {
		MPI_Type_vector(part.n, (int)part.len, (int)part.len * bench_ranks, MPI_BYTE, &t);
	}
	MPI_Type_commit(&t);
	return t;
}

/* Alltoallv, and one access for each slab. */
static void by_exchange(int write)
{
	int counts[64], places_of[64], each = part.n / bench_ranks;
	size_t bytes = (size_t)part.n * part.len, begin = (size_t)bench_rank * bytes;

	for (int r = 0; r < bench_ranks; r++) {
		counts[r] = each * (int)part.len;
		places_of[r] = r * counts[r];
	}
	if (write)
		MPI_Alltoallv(data, counts, places_of, MPI_BYTE, arrived, counts, places_of,
			      MPI_BYTE, MPI_COMM_WORLD);
	else
		must(pread(fd, slab, bytes, (off_t)begin) == (ssize_t)bytes, "pread");
	for (int r = 0; r < bench_ranks; r++)
		for (int k = 0; k < each; k++) {
			char *in = arrived + places_of[r] + (size_t)k * part.len;
			char *at = slab + run_at(r, bench_rank * each + k) - begin;
			memcpy(write ? at : in, write ? in : at, part.len);
		}
	if (write)
		must(pwrite(fd, slab, bytes, (off_t)begin) == (ssize_t)bytes, "pwrite");
	else
		MPI_Alltoallv(arrived, counts, places_of, MPI_BYTE, data, counts, places_of,
			      MPI_BYTE, MPI_COMM_WORLD);
}

static void by_calls(int write)
{
	for (int k = 0; k < part.n; k++) {
		char *at = data + (size_t)k * part.len;
		off_t there = (off_t)run_at(bench_rank, k);
		must((write ? pwrite(fd, at, part.len, there) : pread(fd, at, part.len, there)) ==
			     (ssize_t)part.len,
		     "pread or pwrite");
	}
}

/* A way that is not MPI's collective one is not taken again once it has used so much. */
#define PATIENCE_US 500000

/* ONCE is no way to do it: one rank moves all bytes by one call, what the file system takes at the least. */
enum way { COLLECTIVE, INDEPENDENT, EXCHANGE, CALLS, ONCE, WAYS };

static double part_once(enum way way, int write)
{
	MPI_Status st;
	int bytes = part.n * (int)part.len;

	MPI_Barrier(MPI_COMM_WORLD);
	double begin = bench_now_us();
	if (way == EXCHANGE)
		by_exchange(write);
	else if (way == CALLS)
		by_calls(write);
	else if (way == ONCE && bench_rank == 0)
		by_call(write, 0, (size_t)bytes * (size_t)bench_ranks);
	else if (way == COLLECTIVE)
		must_mpi(write ? MPI_File_write_at_all(file, 0, data, bytes, MPI_BYTE, &st)
			       : MPI_File_read_at_all(file, 0, data, bytes, MPI_BYTE, &st),
			 "a collective access");
	else if (way == INDEPENDENT)
		must_mpi(write ? MPI_File_write_at(file, 0, data, bytes, MPI_BYTE, &st)
			       : MPI_File_read_at(file, 0, data, bytes, MPI_BYTE, &st),
			 "an access");
	return taken_by_all(begin, bench_now_us());
}

static double least(double a, double b)
{
	return a < b ? a : b;
}

/* The file has what each rank has written, whatever way it went. */
static void compare(const struct place *p)
{
	size_t bytes = (size_t)part.n * part.len;

	for (size_t i = 0; i < bytes; i++)
		data[i] = (char)(i * 7 + (size_t)bench_rank);
	part_once(COLLECTIVE, 1);
	MPI_Barrier(MPI_COMM_WORLD);
	memset(data, 0, bytes);
	by_calls(0);
	for (size_t i = 0; i < bytes; i++)
		must(data[i] == (char)(i * 7 + (size_t)bench_rank), p->path);
}

static void part_rows_of(const struct place *p, int write)
{
	static const char *const by[WAYS] = {NULL, NULL, "by hand", "by hand", "by hand"};
	static const char *const how[WAYS] = {"", " independent", "", " independent",
					      " all by one call"};
	double us[WAYS][ROUNDS_MAX], spent[WAYS] = {0};
	int taken[WAYS] = {0};
	char name[128], size[32];
	int rounds = rounds_of(p);

	for (int i = -1; i < rounds; i++)
		for (int k = 0; k < WAYS; k++) {
			/* What came just before has left the caches warm, or not. */
			enum way way = (enum way)(i % 2 ? k : WAYS - 1 - k);
			if (way != COLLECTIVE && spent[way] > PATIENCE_US) /* known well enough */
				continue;
			double took = part_once(way, write);
			spent[way] += took;
			/* The first one warms up, unless it is the only one. */
			taken[way] += i >= 0;
			us[way][taken[way] ? taken[way] - 1 : 0] = took;
		}
	double best = 1e30, mine = 0;
	for (enum way way = COLLECTIVE; way < WAYS; way++) {
		double median = bench_median(us[way], taken[way] ? taken[way] : 1);
		snprintf(name, sizeof name, "%s %s runs of %s %s%s", p->name, part.name,
			 bench_size(part.len, size, sizeof size), write ? "write" : "read",
			 how[way]);
		row(by[way], name, "time", "us", median);
		if (way == COLLECTIVE)
			mine = median;
		else if (way != ONCE)
			best = least(best, median);
	}
	snprintf(name, sizeof name, "%s %s runs of %s %s", p->name, part.name,
		 bench_size(part.len, size, sizeof size), write ? "write" : "read");
	row(NULL, name, "share", "of the best other way", best / mine);
}

static void part_rows(const struct place *p)
{
	MPI_Datatype t = part_type();

	must_mpi(MPI_File_set_view(file, part.side ? 0 : bench_rank * (MPI_Offset)part.len,
				   MPI_BYTE, t, "native", MPI_INFO_NULL),
		 "MPI_File_set_view");
	MPI_Type_free(&t);
	compare(p);
	part_rows_of(p, 1);
	part_rows_of(p, 0);
	MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
}

static void strided_rows(const struct place *p)
{
	static const size_t lens[] = {512, 8192, 131072};
	size_t most = p->slow || bench_quick ? REGION / 4 : REGION;

	for (int i = 0; i < 3; i++) {
		part.name = "strided";
		part.side = 0;
		part.len = lens[i];
		part.n = (int)(most / lens[i]) / bench_ranks;
		if (bench_quick ? i == 1 + p->slow : !p->slow || i)
			part_rows(p);
	}
}

/* side^4 doubles: 32: 8 MiB. */
static void set_subarray(int side)
{
	part.name = "4-D subarray";
	part.side = side;
	part.columns = bench_ranks % 2 ? 1 : 2;
	part.rows = bench_ranks / part.columns;
	part.len = (size_t)(part.side / part.columns) * 8;
	part.n = part.side * part.side * part.side / part.rows;
	must(part.side % part.rows == 0, "the number of ranks");
}

static void subarray_rows(const struct place *p)
{
	set_subarray((p->slow ? 16 : 32) / (bench_quick ? 2 : 1));
	part_rows(p);
}

/* ---- shared pointer ----------------------------------------------------------------------- */

static double records_once(int by_hand, int n)
{
	MPI_Status st;

	MPI_Barrier(MPI_COMM_WORLD);
	double begin = bench_now_us();
	for (int i = 0; i < n; i++)
		if (by_hand)
			must(write(fd, data, 64) == 64, "write");
		else
			must_mpi(MPI_File_write_shared(file, data, 64, MPI_BYTE, &st),
				 "MPI_File_write_shared");
	return (double)n * bench_ranks / slowest(bench_now_us() - begin) * 1e6;
}

static void pointer_rows(const struct place *p)
{
	double mine[ROUNDS_MAX], by_hand[ROUNDS_MAX];
	char name[128];
	int rounds = rounds_of(p), n = p->slow ? 50 : bench_quick ? 500 : 5000;
	int flags = fcntl(fd, F_GETFL);

	for (int i = 0; i < rounds; i++) {
		MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
		mine[i] = records_once(0, n);
		must(fcntl(fd, F_SETFL, flags | O_APPEND) == 0, "fcntl");
		by_hand[i] = records_once(1, n);
		must(fcntl(fd, F_SETFL, flags) == 0, "fcntl");
		MPI_Barrier(MPI_COMM_WORLD);
		if (bench_rank == 0)
			must(ftruncate(fd, (off_t)REGION) == 0, "ftruncate");
	}
	snprintf(name, sizeof name, "%s shared pointer", p->name);
	row(NULL, name, "rate", "records/s", bench_median(mine, rounds));
	row("by hand", name, "rate", "records/s", bench_median(by_hand, rounds));
}

/* ---- many requests ------------------------------------------------------------------------ */

static double many_once(int by_hand, int write, int n, MPI_Request *r)
{
	size_t bytes = 4096;
	double begin = bench_now_us();

	for (int i = 0; i < n; i++) {
		size_t at = (size_t)i * bytes % REGION;
		if (by_hand)
			by_call(write, at, bytes);
		else
			must_mpi(write ? MPI_File_iwrite_at(file, (MPI_Offset)at, data + at,
							    (int)bytes, MPI_BYTE, &r[i])
				       : MPI_File_iread_at(file, (MPI_Offset)at, data + at,
							   (int)bytes, MPI_BYTE, &r[i]),
				 "MPI_File_iread_at or MPI_File_iwrite_at");
	}
	if (!by_hand)
		must_mpi(MPI_Waitall(n, r, MPI_STATUSES_IGNORE), "MPI_Waitall");
	return (bench_now_us() - begin) / n;
}

static void many_rows(const struct place *p)
{
	double mine[ROUNDS_MAX], by_hand[ROUNDS_MAX];
	char name[128];
	int rounds = rounds_of(p), n = (p->slow ? 500 : 10000) / (bench_quick ? 10 : 1);
	MPI_Request *r = malloc((size_t)n * sizeof(MPI_Request));

	must(r != NULL, "malloc");
	for (int write = 0; write < 2 && bench_rank == 0; write++) {
		for (int i = 0; i < rounds; i++) {
			mine[i] = many_once(0, write, n, r);
			by_hand[i] = many_once(1, write, n, r);
		}
		snprintf(name, sizeof name, "%s %d open requests of 4 KiB %s", p->name, n,
			 write ? "write" : "read");
		row(NULL, name, "time", "us", bench_median(mine, rounds));
		row("by hand", name, "time", "us", bench_median(by_hand, rounds));
	}
	meet_asleep();
	free(r);
}

/* ---- overlap ------------------------------------------------------------------------------ */

static int overlap_bytes;

static void *write_own(void *arg)
{
	(void)arg;
	must(pwrite(fd, data, (size_t)overlap_bytes, (off_t)bench_rank * overlap_bytes) ==
		     overlap_bytes,
	     "pwrite");
	return NULL;
}

/* us of a collective write and `turns` of computation beside it; by_hand: a thread's pwrite. */
static double overlap_once(int by_hand, MPI_Offset at, long turns)
{
	MPI_Request r;
	pthread_t thread;

	MPI_Barrier(MPI_COMM_WORLD);
	double begin = bench_now_us();
	if (!turns) {
		if (by_hand)
			write_own(NULL);
		else
			must_mpi(MPI_File_write_at_all(file, at, data, overlap_bytes, MPI_BYTE,
						       MPI_STATUS_IGNORE),
				 "MPI_File_write_at_all");
		return slowest(bench_now_us() - begin);
	}
	if (by_hand)
		must(pthread_create(&thread, NULL, write_own, NULL) == 0, "pthread_create");
	else
		must_mpi(MPI_File_iwrite_at_all(file, at, data, overlap_bytes, MPI_BYTE, &r),
			 "MPI_File_iwrite_at_all");
	bench_compute(turns);
	if (by_hand)
		pthread_join(thread, NULL);
	else
		MPI_Wait(&r, MPI_STATUS_IGNORE);
	return slowest(bench_now_us() - begin);
}

/* The computation takes as long as the write. */
static void overlap_row(const struct place *p, const char *what, int by_hand, MPI_Offset at)
{
	double alone[ROUNDS_MAX], both[ROUNDS_MAX], computing[ROUNDS_MAX];
	char name[128];
	int rounds = 2 * rounds_of(p) + 1;

	for (int i = 0; i < rounds; i++)
		alone[i] = overlap_once(by_hand, at, 0);
	long turns = bench_turns(bench_median(alone, rounds));
	MPI_Allreduce(MPI_IN_PLACE, &turns, 1, MPI_LONG, MPI_MIN, MPI_COMM_WORLD);
	for (int i = 0; i < rounds; i++) {
		alone[i] = overlap_once(by_hand, at, 0);
		both[i] = overlap_once(by_hand, at, turns);
		MPI_Barrier(MPI_COMM_WORLD);
		double begin = bench_now_us();
		bench_compute(turns);
		computing[i] = slowest(bench_now_us() - begin);
	}
	double io = bench_median(alone, rounds), comp = bench_median(computing, rounds);
	snprintf(name, sizeof name, "%s %s iwrite_at_all", p->name, what);
	row(by_hand ? "by hand" : NULL, name, "hidden", "share of the write",
	    (io + comp - bench_median(both, rounds)) / least(io, comp));
}

/* Of faultfs: data goes to a server whose cores are not these.  Elsewhere nothing. */
static void send_away(const struct place *p, int away)
{
	char mount[sizeof p->path];

	MPI_Barrier(MPI_COMM_WORLD);
	snprintf(mount, sizeof mount, "%.*s", (int)(strrchr(p->path, '/') - p->path), p->path);
	if (bench_rank == 0 && p->slow)
		(void)setxattr(mount, "user.faults", away ? "away=1" : "away=0", 6, 0);
	MPI_Barrier(MPI_COMM_WORLD);
}

static void overlap_rows(const struct place *p)
{
	send_away(p, 1);
	overlap_bytes = 4 << 20;
	if ((size_t)overlap_bytes * (size_t)bench_ranks > REGION)
		overlap_bytes = (int)(REGION / (size_t)bench_ranks);
	overlap_row(p, "contiguous", 0, (MPI_Offset)bench_rank * overlap_bytes);
	overlap_row(p, "contiguous", 1, 0);
	set_subarray(32);
	overlap_bytes = part.n * (int)part.len;
	MPI_Datatype t = part_type();
	MPI_File_set_view(file, 0, MPI_BYTE, t, "native", MPI_INFO_NULL);
	overlap_row(p, "4-D subarray", 0, 0);
	MPI_Type_free(&t);
	send_away(p, 0);
}

/* ------------------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	void (*rows)(const struct place *p);
} cases[] = {
	{"contiguous", contiguous_rows}, {"strided", strided_rows}, {"subarray", subarray_rows},
	{"pointer", pointer_rows},       {"many", many_rows},       {"overlap", overlap_rows}};

#define USAGE "CASE --folder NAME=FOLDER ... [--quick]"

static void add_place(char *program, char *text)
{
	struct place *p = &place[places];
	char *folder = strchr(text, '=');

	if (!folder || places == PLACES_MAX || folder - text >= (long)sizeof p->name ||
	    snprintf(p->path, sizeof p->path, "%s/bench-io.data", folder + 1) >=
		    (int)sizeof p->path)
		bench_usage(program, text, USAGE);
	memcpy(p->name, text, (size_t)(folder - text));
	p->slow = strcmp(p->name, "fuse") == 0;
	places++;
}

int main(int argc, char **argv)
{
	char version[MPI_MAX_LIBRARY_VERSION_STRING];
	int len, chosen = -1;

	bench_start(&argc, &argv, MPI_THREAD_FUNNELED);
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--folder") == 0 && i + 1 < argc) {
			add_place(argv[0], argv[++i]);
			continue;
		}
		for (int c = 0; c < (int)(sizeof cases / sizeof cases[0]); c++)
			if (strcmp(argv[i], cases[c].name) == 0)
				chosen = c;
		if (chosen < 0)
			bench_usage(argv[0], argv[i], USAGE);
	}
	if (chosen < 0 || !places || bench_ranks > 64)
		bench_usage(argv[0], "no case or folder", USAGE);
	MPI_Get_library_version(version, &len);
	is_weft = strncmp(version, "weft", 4) == 0;
	data = bench_alloc(REGION);
	slab = bench_alloc(REGION);
	arrived = bench_alloc(REGION);
	for (int i = 0; i < places; i++) {
		open_place(&place[i]);
		cases[chosen].rows(&place[i]);
		close_place(&place[i]);
	}
	MPI_Finalize();
	return 0;
}
