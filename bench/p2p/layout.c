/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * layout.c - what does it cost that a message's data have holes?
 *
 * Unit      microseconds from the send to the answer of one byte.
 * Bound     the same bytes without holes (`flat`), while a piece is longer than a few cache lines.
 * Method    an MPI_Type_vector with gaps as wide as its pieces, on the sender's side, on the
 *           receiver's, on both; the other side is flat.  Median of the blocks.
 */
#include "bench_mpi.h"

static const char *const sides[] = {"sender", "receiver", "both"};

struct side {
	MPI_Datatype type;
	int count;
};

static double exchange(char *buf, const struct side *mine, int partner, int n)
{
	char answer = 0;
	MPI_Barrier(MPI_COMM_WORLD);
	double t = bench_now_us();
	for (int i = 0; i < n; i++) {
		if (bench_is_sender()) {
			MPI_Send(buf, mine->count, mine->type, partner, 1, MPI_COMM_WORLD);
			MPI_Recv(&answer, 1, MPI_CHAR, partner, 2, MPI_COMM_WORLD,
				 MPI_STATUS_IGNORE);
		} else {
			MPI_Recv(buf, mine->count, mine->type, partner, 1, MPI_COMM_WORLD,
				 MPI_STATUS_IGNORE);
			MPI_Send(&answer, 1, MPI_CHAR, partner, 2, MPI_COMM_WORLD);
		}
	}
	return (bench_now_us() - t) / n;
}

static void measure(char *buf, const struct side *mine, int partner, const char *name)
{
	double block[BENCH_BLOCKS_MAX];
	int blocks = bench_quick ? 5 : 11;
	int n = bench_repeat(exchange(buf, mine, partner, 2), 5000, 1000);
	for (int i = 0; i < blocks; i++)
		block[i] = exchange(buf, mine, partner, n);
	if (bench_rank == 0)
		bench_row(name, "time", "us", bench_median(block, blocks));
}

static void with_pieces(char *buf, int bytes, int piece, int partner)
{
	struct side flat = {MPI_CHAR, bytes}, holes = {MPI_DATATYPE_NULL, 1};
	char name[96], text[32], of[32];
	MPI_Type_vector(bytes / piece, piece, 2 * piece, MPI_CHAR, &holes.type);
	MPI_Type_commit(&holes.type);
	for (int k = 0; k < 3; k++) {
		int has = k == 2 || (k == 0) == bench_is_sender();
		snprintf(name, sizeof(name), "%s in %s %s",
			 bench_size((size_t)bytes, text, sizeof(text)),
			 bench_size((size_t)piece, of, sizeof(of)), sides[k]);
		measure(buf, has ? &holes : &flat, partner, name);
	}
	MPI_Type_free(&holes.type);
}

int main(int argc, char **argv)
{
	static const int sizes[] = {64 << 10, 4 << 20}, pieces[] = {8, 64, 512, 4096};
	char name[64], text[32];

	bench_start(&argc, &argv, MPI_THREAD_SINGLE);
	if (argc > 1)
		bench_usage(argv[0], argv[1], "[--quick]");
	int partner = bench_partner();
	char *buf = bench_alloc(8 << 20);
	for (int s = bench_quick ? 1 : 0; s < 2; s++) {
		snprintf(name, sizeof(name), "%s flat",
			 bench_size((size_t)sizes[s], text, sizeof(text)));
		measure(buf, &(struct side){MPI_CHAR, sizes[s]}, partner, name);
		for (int p = bench_quick ? 2 : 0; p < 4; p++)
			with_pieces(buf, sizes[s], pieces[p], partner);
	}
	MPI_Finalize();
	free(buf);
	return 0;
}
