/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * victim.c - rank 1 dies in the way HOW while the other ranks wait for it in the way WHERE.
 *
 *	victim HOW WHERE fatal|return SEED DIR
 *
 * DIR/ready appears when all are connected; rank 1 dies after DIR/go has appeared.  With "return"
 * the survivors must get MPI_ERR_PROC_ABORTED and go on among themselves; then they write
 * DIR/ok.RANK.   With "fatal" no rank may come back from
 * the call.
 */
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "../mpi/mpitest.h"

#define BIG (8 << 20)

static char *big;
static const char *dir;

static void touch(const char *what, int n)
{
	char name[4096];
	FILE *f;

	snprintf(name, sizeof(name), "%s/%s.%d", dir, what, n);
	f = fopen(name, "w");
	CHECK(f);
	fclose(f);
}

static void await_go(void)
{
	char name[4096];

	snprintf(name, sizeof(name), "%s/go", dir);
	/* Ends when the driver says so; its own time limit bounds this. */
	while (access(name, F_OK))
		usleep(1000);
}

static void die(const char *how)
{
	if (!strcmp(how, "kill"))
		kill(getpid(), SIGKILL);
	if (!strcmp(how, "abort"))
		abort();
	if (!strcmp(how, "segv"))
		raise(SIGSEGV);
	if (how[0] == '_')
		_exit(atoi(how + 5));
	exit(atoi(how + 4));
}

/*
 * The memory in which ranks of a host meet for small collectives, ours and the others', as words.
 * An inbox has up to 76 pages: a line for the doorbell, then the board (src/net/shm/shm_int.h).
 */
#define BOARDS 8
#define BOARD_WORDS (15 * 4096 / 4)
#define PLACES_AT (2304 / 4) /* of the first slot's ring (coll/shm/ring.h) */
static _Atomic unsigned *board[BOARDS];
static int boards;

static void find_boards(void)
{
	char line[4096];
	FILE *f = fopen("/proc/self/maps", "r");
	CHECK(f);
	while (fgets(line, sizeof line, f) && boards < BOARDS) {
		unsigned long from, to;
		if (strstr(line, " rw-s ") && strstr(line, "/memfd:weft") &&
		    sscanf(line, "%lx-%lx", &from, &to) == 2 && to - from <= 76 * 4096)
			board[boards++] = (_Atomic unsigned *)(from + 64);
	}
	fclose(f);
}

/* Wrong counts, turns, sizes, sleepers, results, while the others meet there. */
static void scribble(void)
{
	find_boards();
	CHECK(boards);
	for (int i = 0; i < 3000; i++) {
		_Atomic unsigned *b = board[rand() % boards];
		/* The first ring's words, its places, anything of the first, anything. */
		_Atomic unsigned *x = b + (i % 4 == 1 ? PLACES_AT + rand() % 300
						      : rand() % (i % 4   ? 80
								  : i % 8 ? 700
									  : BOARD_WORDS));
		unsigned old = atomic_load(x);
		unsigned value[] = {0,
				    1,
				    2,
				    3,
				    old + 1,
				    old - 1,
				    old ^ 1u << rand() % 32,
				    0x7fffffff,
				    0xffffffff,
				    (unsigned)rand()};
		atomic_store(x, value[rand() % 10]);
		if (rand() % 8 == 0)
			sched_yield();
	}
}

/* What the victim owes the others in part, so that it dies in the middle of a transfer. */
static void begin(const char *where)
{
	MPI_Request req;

	if (!strcmp(where, "bigrecv"))
		for (int r = 0; r < size; r++)
			if (r != rank)
				OK(MPI_Isend(big, BIG, MPI_BYTE, r, 5, MPI_COMM_WORLD, &req));
	if (!strcmp(where, "bigsend"))
		for (int r = 0; r < size; r++)
			if (r != rank)
				OK(MPI_Irecv(big, BIG, MPI_BYTE, r, 5, MPI_COMM_WORLD, &req));
}

static int suffer(const char *where)
{
	MPI_Comm w = MPI_COMM_WORLD;
	MPI_Request req[2];
	MPI_Status st[2];
	int v = 0, sum = 0, code;

	if (!strcmp(where, "recv"))
		return MPI_Recv(&v, 1, MPI_INT, 1, 5, w, MPI_STATUS_IGNORE);
	if (!strcmp(where, "probe"))
		return MPI_Probe(1, 5, w, MPI_STATUS_IGNORE);
	if (!strcmp(where, "ssend"))
		return MPI_Ssend(&v, 1, MPI_INT, 1, 6, w);
	if (!strcmp(where, "send"))
		return MPI_Send(big, BIG, MPI_BYTE, 1, 6, w);
	if (!strcmp(where, "bigsend")) {
		/* The victim may have taken it all before it died. */
		code = MPI_Send(big, BIG, MPI_BYTE, 1, 5, w);
		return code ? code : MPI_Recv(&v, 1, MPI_INT, 1, 9, w, MPI_STATUS_IGNORE);
	}
	if (!strcmp(where, "bigrecv")) {
		code = MPI_Recv(big, BIG, MPI_BYTE, 1, 5, w, MPI_STATUS_IGNORE);
		return code ? code : MPI_Recv(&v, 1, MPI_INT, 1, 9, w, MPI_STATUS_IGNORE);
	}
	if (!strcmp(where, "barrier"))
		return MPI_Barrier(w);
	if (!strcmp(where, "allreduce"))
		return MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, w);
	/* A rank that gives or hands out gets ahead of the lost one, but not for ever. */
	code = MPI_SUCCESS;
	if (!strcmp(where, "gather")) {
		for (int i = 0; i < 1000 && !code; i++)
			code = MPI_Gather(&rank, 1, MPI_INT, big, 1, MPI_INT, i % 3, w);
		return code;
	}
	if (!strcmp(where, "bcast")) {
		/* More than find room where rank 1 does not take them. */
		for (int i = 0; i < 1000000 && !code; i++)
			code = MPI_Bcast(&v, 1, MPI_INT, 0, w);
		return code;
	}
	if (!strcmp(where, "waitall")) {
		OK(MPI_Irecv(&v, 1, MPI_INT, 1, 5, w, &req[0]));
		OK(MPI_Irecv(&sum, 1, MPI_INT, 1, 7, w, &req[1]));
		code = MPI_Waitall(2, req, st);
		if (code == MPI_ERR_IN_STATUS)
			code = st[0].MPI_ERROR;
		return code;
	}
	if (!strcmp(where, "meeting")) {
		/* Whether they go through, and what the sums are, is open; that they end is not. */
		for (int i = 0; i < 50; i++) {
			int all[3];
			(void)MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, w);
			(void)MPI_Allgather(&rank, 1, MPI_INT, all, 1, MPI_INT, w);
			(void)MPI_Barrier(w);
			(void)MPI_Bcast(&v, 1, MPI_INT, i % 3, w);
			(void)MPI_Reduce(&rank, &sum, 1, MPI_INT, MPI_SUM, i % 3, w);
			(void)MPI_Gather(&rank, 1, MPI_INT, all, 1, MPI_INT, i % 2, w);
			(void)MPI_Scatter(all, 1, MPI_INT, &sum, 1, MPI_INT, i % 2, w);
		}
		return MPI_Recv(&v, 1, MPI_INT, 1, 9, w, MPI_STATUS_IGNORE);
	}
	CHECK(!"a WHERE that exists");
	return 0;
}

/* The survivors can still talk, over messages of every protocol and over a communicator. */
static void go_on(void)
{
	MPI_Group world, living;
	MPI_Comm comm;
	int lost = 1, sum = 0, first = rank == 0, peer = first ? 2 : 0, v = -1;

	OK(MPI_Sendrecv(&rank, 1, MPI_INT, peer, 1, &v, 1, MPI_INT, peer, 1, MPI_COMM_WORLD,
			MPI_STATUS_IGNORE));
	CHECK_EQ(v, peer);
	memset(big, rank + 1, BIG / 2);
	OK(MPI_Sendrecv(big, BIG / 2, MPI_BYTE, peer, 2, big + BIG / 2, BIG / 2, MPI_BYTE, peer, 2,
			MPI_COMM_WORLD, MPI_STATUS_IGNORE));
	CHECK_EQ(big[BIG - 1], peer + 1);
	OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
	OK(MPI_Group_excl(world, 1, &lost, &living));
	OK(MPI_Comm_create_group(MPI_COMM_WORLD, living, 3, &comm));
	OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm));
	CHECK_EQ(sum, 2);
	/* The dead stay dead. */
	FAILS(MPI_Recv(&v, 1, MPI_INT, 1, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE),
	      MPI_ERR_PROC_ABORTED);
}

int main(int argc, char **argv)
{
	int lives, code;

	if (argc < 6)
		SKIP("run by test_death.py");
	dir = argv[5];
	test_start(&argc, &argv, MPI_THREAD_SINGLE);
	srand((unsigned)(atoi(argv[4]) + rank));
	big = calloc(1, BIG);
	CHECK(big);
	lives = !strcmp(argv[3], "return");
	if (lives)
		OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
	/* Enough of them for the group to meet in shared memory from then on. */
	static const char meets[] = "allreduce meeting gather bcast";
	for (int i = 0; i < 8 && strstr(meets, argv[2]); i++)
		OK(MPI_Barrier(MPI_COMM_WORLD));
	test_barrier();
	if (rank == 1) {
		touch("ready", 1);
		await_go();
		begin(argv[2]);
		usleep((useconds_t)(rand() % 3000));
		if (!strcmp(argv[2], "meeting"))
			scribble();
		die(argv[1]);
	}
	FAILS(suffer(argv[2]), MPI_ERR_PROC_ABORTED);
	CHECK(lives);
	go_on();
	touch("ok", rank);
	/* It may say that a rank is missing, but it comes back. */
	code = MPI_Finalize();
	if (code)
		FAILS(code, MPI_ERR_PROC_ABORTED);
	for (;;)
		pause(); /* the launcher ends us, because of rank 1 */
}
