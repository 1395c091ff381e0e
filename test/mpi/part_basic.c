/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 2 3 */
/* Partitioned messages: any numbers of partitions on both sides, any order, any layout, again and again. */
#include "mpitest.h"

static unsigned long long seed = 20260101;

static unsigned rnd(unsigned n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(seed >> 33) % n;
}

static void shuffle(int *order, int n)
{
	for (int i = 0; i < n; i++) {
		int j = i + (int)rnd((unsigned)(n - i)), x = order[j];
		order[j] = order[i];
		order[i] = x;
	}
}

static int right, left;

static int value(int from, int round, int i)
{
	return from * 1000003 + round * 7919 + i;
}

enum how { IN_ORDER, SHUFFLED, BY_RANGE, BY_LIST, HOWS };

static void make_ready(enum how how, int n, MPI_Request req)
{
	int *order = malloc((size_t)(n + 1) * sizeof *order);

	for (int i = 0; i < n; i++)
		order[i] = i;
	if (how == SHUFFLED)
		shuffle(order, n);
	if (how == BY_RANGE) {
		for (int i = 0, step; i < n; i += step) {
			step = 1 + (int)rnd((unsigned)n);
			if (i + step > n)
				step = n - i;
			OK(MPI_Pready_range(i, i + step - 1, req));
		}
	} else if (how == BY_LIST) {
		shuffle(order, n);
		OK(MPI_Pready_list(n / 2, order, req));
		OK(MPI_Pready_list(n - n / 2, order + n / 2, req));
	} else {
		for (int i = 0; i < n; i++)
			OK(MPI_Pready(order[i], req));
	}
	free(order);
}

/* total ints, sent in sparts and received in rparts partitions; each arrived partition is right at once. */
static void pair(int total, int sparts, int rparts, int rounds)
{
	int *out = calloc((size_t)total, sizeof *out), *in = calloc((size_t)total, sizeof *in);
	MPI_Request req[2];
	MPI_Status st[2];

	OK(MPI_Psend_init(out, sparts, total / sparts, MPI_INT, right, 5, MPI_COMM_WORLD,
			  MPI_INFO_NULL, &req[0]));
	OK(MPI_Precv_init(in, rparts, total / rparts, MPI_INT, left, 5, MPI_COMM_WORLD,
			  MPI_INFO_NULL, &req[1]));
	for (int round = 0; round < rounds; round++) {
		for (int i = 0; i < total; i++) {
			out[i] = value(rank, round, i);
			in[i] = -1;
		}
		if (round % 2)
			OK(MPI_Startall(2, req));
		else {
			OK(MPI_Start(&req[0]));
			OK(MPI_Start(&req[1]));
		}
		make_ready((enum how)(round % HOWS), sparts, req[0]);
		int each = total / rparts, seen = 0, flag;
		for (int p = 0; p < rparts && round % 3; p++) {
			OK(MPI_Parrived(req[1], p, &flag));
			for (int i = p * each; flag && i < (p + 1) * each; i++)
				CHECK_EQ(in[i], value(left, round, i));
			seen += flag;
		}
		if (round % 3 == 2)
			while (seen < rparts) {
				int p = (int)rnd((unsigned)rparts);
				OK(MPI_Parrived(req[1], p, &flag));
				if (!flag)
					continue;
				for (int i = p * each; i < (p + 1) * each; i++)
					CHECK_EQ(in[i], value(left, round, i));
				seen++;
			}
		OK(MPI_Waitall(2, req, st));
		for (int i = 0; i < total; i++)
			CHECK_EQ(in[i], value(left, round, i));
		int n;
		OK(MPI_Get_count(&st[1], MPI_INT, &n));
		CHECK_EQ(n, total);
		CHECK(st[1].MPI_SOURCE == left && st[1].MPI_TAG == 5);
	}
	OK(MPI_Request_free(&req[0]));
	OK(MPI_Request_free(&req[1]));
	free(out);
	free(in);
}

static void many_shapes(void)
{
	static const int shape[][3] = {
		{1, 1, 1},          {64, 1, 64},           {64, 64, 1},
		{561, 33, 17},      {561, 17, 33},         {4096, 4096, 8},
		{4096, 8, 4096},    {100000, 10, 4},       {100000, 4, 10},
		{1 << 20, 16, 64},  {1 << 20, 4, 1 << 20}, {1 << 18, 1 << 18, 16},
		{720720, 720, 1001}};
	for (unsigned i = 0; i < sizeof shape / sizeof shape[0]; i++)
		pair(shape[i][0], shape[i][1], shape[i][2], shape[i][0] > 100000 ? 5 : 12);
	for (int i = 0; i < 40; i++) {
		seed = (unsigned long long)i; /* the same on all ranks: pair() draws, too */
		int s = 1 + (int)rnd(70), r = 1 + (int)rnd(70);
		pair(s * r * (1 + (int)rnd(30)), s, r, 4);
	}
}

/* Every other int, and columns: the layouts of both sides differ. */
static void with_layouts(void)
{
	enum { PARTS = 6, COLS = 700, ROUNDS = 4 };
	static int out[PARTS * COLS * 2], in[PARTS * COLS * 3];
	MPI_Datatype two, three;
	MPI_Request req[2];

	OK(MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &two));
	OK(MPI_Type_commit(&two));
	MPI_Datatype pairs; /* 2 ints of 6: partitions of the sender begin inside of it */
	OK(MPI_Type_vector(2, 1, 3, MPI_INT, &pairs));
	OK(MPI_Type_create_resized(pairs, 0, 6 * sizeof(int), &three));
	OK(MPI_Type_commit(&three));
	OK(MPI_Type_free(&pairs));
	OK(MPI_Psend_init(out, PARTS * 7, COLS / 7, two, right, 1, MPI_COMM_WORLD, MPI_INFO_NULL,
			  &req[0]));
	OK(MPI_Precv_init(in, PARTS / 2, COLS, three, left, 1, MPI_COMM_WORLD, MPI_INFO_NULL,
			  &req[1]));
	OK(MPI_Type_free(&two));
	OK(MPI_Type_free(&three));
	for (int round = 0; round < ROUNDS; round++) {
		memset(in, 0xff, sizeof in);
		for (int i = 0; i < PARTS * COLS; i++)
			out[2 * i] = value(rank, round, i);
		OK(MPI_Startall(2, req));
		make_ready((enum how)(round % HOWS), PARTS * 7, req[0]);
		OK(MPI_Waitall(2, req, MPI_STATUSES_IGNORE));
		for (int i = 0; i < PARTS * COLS; i++) {
			CHECK_EQ(in[i * 3], value(left, round, i));
			CHECK_EQ(in[i * 3 + 1], -1);
		}
	}
	OK(MPI_Request_free(&req[0]));
	OK(MPI_Request_free(&req[1]));
}

/* The same with partitions that are large enough for messages of their own. */
static void with_large_layouts(void)
{
	enum { N = 90000 };
	int *out = calloc(2 * N, sizeof *out), *in = calloc(2 * N, sizeof *in);
	MPI_Datatype two, five, odd;
	MPI_Request req[2];

	OK(MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &two));
	OK(MPI_Type_commit(&two));
	OK(MPI_Type_vector(5, 1, 2, MPI_INT, &five));
	OK(MPI_Type_create_resized(five, 0, 10 * sizeof(int), &odd));
	OK(MPI_Type_free(&five));
	OK(MPI_Type_commit(&odd));
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < N; i++)
			out[2 * i] = value(rank, round, i);
		OK(MPI_Psend_init(out, 9, N / 9, two, right, 1, MPI_COMM_WORLD, MPI_INFO_NULL,
				  &req[0]));
		OK(MPI_Precv_init(in, 8, N / 8 / 5, odd, left, 1, MPI_COMM_WORLD, MPI_INFO_NULL,
				  &req[1]));
		OK(MPI_Startall(2, req));
		make_ready(SHUFFLED, 9, req[0]);
		OK(MPI_Waitall(2, req, MPI_STATUSES_IGNORE));
		for (int i = 0; i < N; i++)
			CHECK(in[i * 2] == value(left, round, i) && !in[i * 2 + 1]);
		OK(MPI_Request_free(&req[0]));
		OK(MPI_Request_free(&req[1]));
	}
	OK(MPI_Type_free(&two));
	OK(MPI_Type_free(&odd));
	free(out);
	free(in);
}

/* Pairs of one tag match in the order of their init calls; those that were freed unused count. */
static void matched_in_order(void)
{
	enum { N = 5 };
	int out[N], in[N];
	MPI_Request s[N], r[N];

	for (int i = 0; i < N; i++) {
		OK(MPI_Psend_init(&out[i], 1, 1, MPI_INT, right, 9, test_comm, MPI_INFO_NULL,
				  &s[i]));
		OK(MPI_Precv_init(&in[i], 1, 1, MPI_INT, left, 9, test_comm, MPI_INFO_NULL, &r[i]));
	}
	OK(MPI_Request_free(&s[1]));
	OK(MPI_Request_free(&r[1]));
	for (int i = N - 1; i >= 0; i--) {
		if (i == 1)
			continue;
		out[i] = i * 10 + rank;
		in[i] = -1;
		OK(MPI_Start(&r[i]));
		OK(MPI_Start(&s[i]));
		OK(MPI_Pready(0, s[i]));
	}
	for (int i = 0; i < N; i++) {
		if (i == 1)
			continue;
		OK(MPI_Wait(&s[i], MPI_STATUS_IGNORE));
		OK(MPI_Wait(&r[i], MPI_STATUS_IGNORE));
		CHECK_EQ(in[i], i * 10 + left);
		OK(MPI_Request_free(&s[i]));
		OK(MPI_Request_free(&r[i]));
	}
}

/* The receiver comes late: nothing is written into its buffer before it has started. */
static void late_receiver(void)
{
	enum { N = 1000 };
	static int out[N], in[N];
	MPI_Request s, r;
	int flag;

	OK(MPI_Psend_init(out, N, 1, MPI_INT, right, 2, MPI_COMM_WORLD, MPI_INFO_NULL, &s));
	OK(MPI_Precv_init(in, 10, N / 10, MPI_INT, left, 2, MPI_COMM_WORLD, MPI_INFO_NULL, &r));
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < N; i++) {
			out[i] = value(rank, round, i);
			in[i] = -1;
		}
		OK(MPI_Parrived(r, 3, &flag));
		CHECK(flag); /* not active: nothing is to come */
		OK(MPI_Start(&s));
		OK(MPI_Pready_range(0, N - 1, s));
		test_barrier();
		for (int i = 0; i < N; i++)
			CHECK_EQ(in[i], -1);
		OK(MPI_Start(&r));
		OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
		OK(MPI_Wait(&s, MPI_STATUS_IGNORE));
		CHECK_EQ(in[N - 1], value(left, round, N - 1));
		test_barrier();
	}
	OK(MPI_Request_free(&s));
	OK(MPI_Request_free(&r));
}

static void nothing_to_send(void)
{
	MPI_Request req[4];
	MPI_Status st;
	int flag;

	OK(MPI_Psend_init(NULL, 3, 0, MPI_INT, right, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &req[0]));
	OK(MPI_Precv_init(NULL, 5, 0, MPI_INT, left, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &req[1]));
	OK(MPI_Psend_init(&flag, 2, 1, MPI_BYTE, MPI_PROC_NULL, 3, MPI_COMM_WORLD, MPI_INFO_NULL,
			  &req[2]));
	OK(MPI_Precv_init(&flag, 2, 1, MPI_BYTE, MPI_PROC_NULL, 3, MPI_COMM_WORLD, MPI_INFO_NULL,
			  &req[3]));
	for (int round = 0; round < 3; round++) {
		OK(MPI_Startall(4, req));
		OK(MPI_Pready_range(0, 2, req[0]));
		OK(MPI_Pready(1, req[2]));
		OK(MPI_Pready(0, req[2]));
		OK(MPI_Parrived(req[3], 1, &flag));
		CHECK(flag);
		OK(MPI_Wait(&req[3], &st));
		CHECK(st.MPI_SOURCE == MPI_PROC_NULL);
		OK(MPI_Waitall(3, req, MPI_STATUSES_IGNORE));
	}
	for (int i = 0; i < 4; i++)
		OK(MPI_Request_free(&req[i]));
}

static void mistakes(void)
{
	int v[8] = {0}, w[8], flag, list[2] = {1, 9};
	MPI_Request s, r, other;

	FAILS(MPI_Psend_init(v, -1, 1, MPI_INT, right, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &s),
	      MPI_ERR_ARG);
	FAILS(MPI_Psend_init(v, 1, -1, MPI_INT, right, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &s),
	      MPI_ERR_COUNT);
	FAILS(MPI_Precv_init(v, 1, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, MPI_INFO_NULL,
			     &s),
	      MPI_ERR_RANK);
	FAILS(MPI_Precv_init(v, 1, 1, MPI_INT, left, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_INFO_NULL,
			     &s),
	      MPI_ERR_TAG);
	FAILS(MPI_Psend_init(v, 1 << 30, (MPI_Count)1 << 40, MPI_INT, right, 1, MPI_COMM_WORLD,
			     MPI_INFO_NULL, &s),
	      MPI_ERR_COUNT);
	FAILS(MPI_Psend_init(NULL, 1, 1, MPI_INT, right, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &s),
	      MPI_ERR_BUFFER);
	OK(MPI_Psend_init(v, 8, 1, MPI_INT, right, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &s));
	OK(MPI_Precv_init(w, 8, 1, MPI_INT, left, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &r));
	OK(MPI_Send_init(v, 1, MPI_INT, right, 1, MPI_COMM_WORLD, &other));
	for (int round = 0; round < 2; round++) {
		FAILS(MPI_Pready(0, s), MPI_ERR_REQUEST); /* not active */
		FAILS(MPI_Pready_range(0, 1, s), MPI_ERR_REQUEST);
		FAILS(MPI_Pready(0, MPI_REQUEST_NULL), MPI_ERR_REQUEST);
		FAILS(MPI_Pready(0, other), MPI_ERR_REQUEST);
		OK(MPI_Start(&s));
		OK(MPI_Start(&r));
		FAILS(MPI_Start(&s), MPI_ERR_REQUEST);
		FAILS(MPI_Pready(0, r), MPI_ERR_REQUEST);
		FAILS(MPI_Pready(-1, s), MPI_ERR_ARG);
		FAILS(MPI_Pready(8, s), MPI_ERR_ARG);
		FAILS(MPI_Pready_range(3, 8, s), MPI_ERR_ARG);
		FAILS(MPI_Pready_range(-1, 3, s), MPI_ERR_ARG);
		FAILS(MPI_Pready_range(4, 3, s), MPI_ERR_ARG);
		FAILS(MPI_Pready_list(2, list, s), MPI_ERR_ARG);
		FAILS(MPI_Pready_list(-1, list, s), MPI_ERR_ARG);
		FAILS(MPI_Pready_list(1, NULL, s), MPI_ERR_ARG);
		FAILS(MPI_Parrived(s, 0, &flag), MPI_ERR_REQUEST);
		FAILS(MPI_Parrived(other, 0, &flag), MPI_ERR_REQUEST);
		FAILS(MPI_Parrived(r, 8, &flag), MPI_ERR_ARG);
		FAILS(MPI_Parrived(r, -1, &flag), MPI_ERR_ARG);
		FAILS(MPI_Parrived(r, 0, NULL), MPI_ERR_ARG);
		OK(MPI_Pready(3, s));
		FAILS(MPI_Pready(3, s), MPI_ERR_ARG); /* twice */
		FAILS(MPI_Pready_range(2, 4, s), MPI_ERR_ARG);
		OK(MPI_Test(&s, &flag, MPI_STATUS_IGNORE));
		CHECK(!flag);
		FAILS(MPI_Pready(3, s), MPI_ERR_ARG);
		OK(MPI_Pready_range(0, 1, s));
		OK(MPI_Pready_range(5, 7, s));
		OK(MPI_Wait(&s, MPI_STATUS_IGNORE));
		OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
	}
	OK(MPI_Request_free(&s));
	OK(MPI_Request_free(&r));
	OK(MPI_Request_free(&other));
}

/* Sides of different sizes: an error on both, no hang, and the next pair works. */
static void different_sizes(void)
{
	static int v[20], w[20];
	MPI_Request s, r;

	for (int more = 0; more < 2; more++) {
		OK(MPI_Psend_init(v, 4, 4 + more, MPI_INT, right, 6, MPI_COMM_WORLD, MPI_INFO_NULL,
				  &s));
		OK(MPI_Precv_init(w, 4, 5 - more, MPI_INT, left, 6, MPI_COMM_WORLD, MPI_INFO_NULL,
				  &r));
		for (int round = 0; round < 2; round++) {
			OK(MPI_Start(&s));
			OK(MPI_Start(&r));
			OK(MPI_Pready_range(0, 3, s));
			FAILS(MPI_Wait(&r, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE);
			FAILS(MPI_Wait(&s, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE);
		}
		OK(MPI_Request_free(&s));
		OK(MPI_Request_free(&r));
	}
	pair(100, 10, 4, 2);
}

/* Freed while active, it still arrives. */
static void freed_early(void)
{
	static int v[64], w[64];
	MPI_Request s, r;

	OK(MPI_Psend_init(v, 64, 1, MPI_INT, right, 8, MPI_COMM_WORLD, MPI_INFO_NULL, &s));
	OK(MPI_Precv_init(w, 1, 64, MPI_INT, left, 8, MPI_COMM_WORLD, MPI_INFO_NULL, &r));
	for (int i = 0; i < 64; i++)
		v[i] = value(rank, 0, i);
	OK(MPI_Start(&s));
	OK(MPI_Pready_range(0, 63, s));
	OK(MPI_Request_free(&s));
	OK(MPI_Start(&r));
	OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
	CHECK_EQ(w[63], value(left, 0, 63));
	OK(MPI_Request_free(&r));
	test_barrier();
}

/* On an intercommunicator the peers are those of the other group. */
static void between_groups(void)
{
	MPI_Comm half, inter;
	MPI_Request s, r;
	int v = rank, w = -1;

	if (size != 2)
		return;
	OK(MPI_Comm_split(MPI_COMM_WORLD, rank, 0, &half));
	OK(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, !rank, 1, &inter));
	OK(MPI_Psend_init(&v, 1, 1, MPI_INT, 0, 8, inter, MPI_INFO_NULL, &s));
	OK(MPI_Precv_init(&w, 1, 1, MPI_INT, 0, 8, inter, MPI_INFO_NULL, &r));
	OK(MPI_Comm_free(&inter));
	OK(MPI_Start(&s));
	OK(MPI_Start(&r));
	OK(MPI_Pready(0, s));
	OK(MPI_Wait(&s, MPI_STATUS_IGNORE));
	OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
	CHECK_EQ(w, !rank);
	OK(MPI_Request_free(&s));
	OK(MPI_Request_free(&r));
	OK(MPI_Comm_free(&half));
}

int main(int argc, char **argv)
{
	test_start(&argc, &argv, MPI_THREAD_SINGLE);
	OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
	right = (rank + 1) % size;
	left = (rank + size - 1) % size;
	mistakes();
	many_shapes();
	with_layouts();
	with_large_layouts();
	matched_in_order();
	late_receiver();
	nothing_to_send();
	different_sizes();
	freed_early();
	between_groups();
	return test_end();
}
