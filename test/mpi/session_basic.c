/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 2 4 */
/* Sessions without MPI_Init: sets, groups, communicators, buffers, errors; again and again, from many threads,
 * then beside MPI_Init, and after MPI_Finalize. */
#include <pthread.h>
#include <stdatomic.h>

#include "mpitest.h"

static _Atomic int x_handled;

static void handler(MPI_Session *s, int *code, ...)
{
	int class;

	MPI_Error_class(*code, &class);
	CHECK(s && class != MPI_SUCCESS);
	atomic_fetch_add(&x_handled, 1);
}

static MPI_Session open_one(void)
{
	MPI_Session s = MPI_SESSION_NULL;

	OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &s));
	CHECK(s != MPI_SESSION_NULL);
	return s;
}

static MPI_Comm comm_of(MPI_Session s, const char *set, const char *tag)
{
	MPI_Group g;
	MPI_Comm c;

	OK(MPI_Group_from_session_pset(s, set, &g));
	OK(MPI_Comm_create_from_group(g, tag, MPI_INFO_NULL, MPI_ERRORS_RETURN, &c));
	OK(MPI_Group_free(&g));
	return c;
}

static void works(MPI_Comm c)
{
	int n, r, sum = -1;

	OK(MPI_Comm_size(c, &n));
	OK(MPI_Comm_rank(c, &r));
	OK(MPI_Allreduce(&r, &sum, 1, MPI_INT, MPI_SUM, c));
	CHECK_EQ(sum, n * (n - 1) / 2);
}

static void process_sets(MPI_Session s)
{
	char name[MPI_MAX_PSET_NAME_LEN + 1], value[16];
	int n = 0, len, world = 0, self = 0, flag;
	MPI_Info info;

	OK(MPI_Session_get_num_psets(s, MPI_INFO_NULL, &n));
	CHECK(n >= 2);
	for (int i = 0; i < n; i++) {
		len = 0;
		OK(MPI_Session_get_nth_pset(s, MPI_INFO_NULL, i, &len, NULL));
		CHECK(len > 1);
		int room = len;
		OK(MPI_Session_get_nth_pset(s, MPI_INFO_NULL, i, &len, name));
		CHECK(len == room && (int)strlen(name) + 1 == len);
		len = 4; /* cut off, and the whole length told */
		char cut[4];
		OK(MPI_Session_get_nth_pset(s, MPI_INFO_NULL, i, &len, cut));
		CHECK(len == room && strncmp(cut, name, 3) == 0 && !cut[3]);
		OK(MPI_Session_get_pset_info(s, name, &info));
		OK(MPI_Info_get(info, "mpi_size", 15, value, &flag));
		CHECK(flag && atoi(value) >= 1);
		OK(MPI_Info_free(&info));
		if (strcmp(name, "mpi://SELF") == 0)
			self = atoi(value);
		if (strcmp(name, "mpi://WORLD") == 0)
			world = atoi(value);
	}
	CHECK(self == 1 && world >= 1);
	size = world;
	len = 0;
	FAILS(MPI_Session_get_nth_pset(s, MPI_INFO_NULL, n, &len, NULL), MPI_ERR_ARG);
	FAILS(MPI_Session_get_nth_pset(s, MPI_INFO_NULL, -1, &len, NULL), MPI_ERR_ARG);
	FAILS(MPI_Session_get_pset_info(s, "none://such", &info), MPI_ERR_ARG);
	MPI_Group g;
	OK(MPI_Group_from_session_pset(s, "none://such", &g));
	CHECK(g == MPI_GROUP_NULL);
	OK(MPI_Session_get_info(s, &info));
	OK(MPI_Info_get(info, "thread_level", 15, value, &flag));
	CHECK(flag);
	OK(MPI_Info_free(&info));
}

static void communicators(MPI_Session s)
{
	MPI_Comm all = comm_of(s, "mpi://WORLD", "all"), self = comm_of(s, "mpi://SELF", "self"),
		 two;
	MPI_Group g, part;
	int first = 0;

	OK(MPI_Comm_rank(all, &rank));
	works(all);
	works(self);
	MPI_Comm same = comm_of(s, "mpi://world", "lower case");
	works(same);
	OK(MPI_Comm_free(&same));
	/* Derived ones, and groups made of groups. */
	OK(MPI_Comm_dup(all, &two));
	works(two);
	OK(MPI_Comm_free(&two));
	OK(MPI_Comm_split(all, rank % 2, 0, &two));
	works(two);
	OK(MPI_Comm_free(&two));
	OK(MPI_Group_from_session_pset(s, "mpi://WORLD", &g));
	OK(MPI_Group_excl(g, 1, &first, &part));
	if (size > 1 && rank > 0) {
		OK(MPI_Comm_create_from_group(part, "but the first", MPI_INFO_NULL,
					      MPI_ERRORS_RETURN, &two));
		works(two);
		OK(MPI_Comm_disconnect(&two));
	} else if (size > 1) {
		FAILS(MPI_Comm_create_from_group(part, "but the first", MPI_INFO_NULL,
						 MPI_ERRORS_RETURN, &two),
		      MPI_ERR_GROUP);
	}
	OK(MPI_Group_free(&part));
	OK(MPI_Comm_create_from_group(MPI_GROUP_EMPTY, "no process", MPI_INFO_NULL,
				      MPI_ERRORS_RETURN, &two));
	CHECK(two == MPI_COMM_NULL);
	OK(MPI_Group_free(&g));
	OK(MPI_Comm_free(&all));
	OK(MPI_Comm_free(&self));
}

static void between_groups(MPI_Session s)
{
	MPI_Group g, mine, theirs;
	MPI_Comm inter;
	int half = size / 2, n, low[1][3] = {{0, half - 1, 1}}, high[1][3] = {{half, size - 1, 1}};

	if (size < 2)
		return;
	OK(MPI_Group_from_session_pset(s, "mpi://WORLD", &g));
	OK(MPI_Group_range_incl(g, 1, rank < half ? low : high, &mine));
	OK(MPI_Group_range_incl(g, 1, rank < half ? high : low, &theirs));
	FAILS(MPI_Intercomm_create_from_groups(mine, 99, theirs, 0, "halves", MPI_INFO_NULL,
					       MPI_ERRORS_RETURN, &inter),
	      MPI_ERR_RANK);
	FAILS(MPI_Intercomm_create_from_groups(mine, 0, g, 0, "halves", MPI_INFO_NULL,
					       MPI_ERRORS_RETURN, &inter),
	      MPI_ERR_GROUP);
	OK(MPI_Intercomm_create_from_groups(mine, 0, theirs, 0, "halves", MPI_INFO_NULL,
					    MPI_ERRORS_RETURN, &inter));
	OK(MPI_Comm_remote_size(inter, &n));
	CHECK_EQ(n, rank < half ? size - half : half);
	int v = rank, w = -1;
	OK(MPI_Allreduce(&v, &w, 1, MPI_INT, MPI_MIN, inter));
	CHECK_EQ(w, rank < half ? half : 0);
	OK(MPI_Comm_free(&inter));
	OK(MPI_Group_free(&mine));
	OK(MPI_Group_free(&theirs));
	OK(MPI_Group_free(&g));
}

static void buffers(MPI_Session s)
{
	static char room[4096], other[64];
	MPI_Comm c = comm_of(s, "mpi://SELF", "buffers");
	char *back;
	int n, v = 7, w = 0;
	MPI_Request req;

	FAILS(MPI_Session_detach_buffer(s, &back, &n), MPI_ERR_BUFFER);
	FAILS(MPI_Session_flush_buffer(s), MPI_ERR_BUFFER);
	FAILS(MPI_Bsend(&v, 1, MPI_INT, 0, 1, c), MPI_ERR_BUFFER);
	OK(MPI_Session_attach_buffer(s, room, sizeof room));
	FAILS(MPI_Session_attach_buffer(s, other, sizeof other), MPI_ERR_BUFFER);
	OK(MPI_Bsend(&v, 1, MPI_INT, 0, 1, c));
	OK(MPI_Recv(&w, 1, MPI_INT, 0, 1, c, MPI_STATUS_IGNORE));
	CHECK_EQ(w, 7);
	OK(MPI_Session_flush_buffer(s));
	OK(MPI_Session_iflush_buffer(s, &req));
	OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
	OK(MPI_Session_detach_buffer(s, &back, &n));
	CHECK(back == room && n == (int)sizeof room);
	OK(MPI_Comm_free(&c));
}

static void errors(void)
{
	MPI_Errhandler mine, got, wrong;
	MPI_Session s, gone;
	MPI_Info info;
	MPI_Comm c;
	int n;

	OK(MPI_Session_create_errhandler(handler, &mine));
	OK(MPI_Session_init(MPI_INFO_NULL, mine, &s));
	OK(MPI_Session_get_errhandler(s, &got));
	CHECK(got == mine);
	OK(MPI_Errhandler_free(&got));
	n = atomic_load(&x_handled);
	FAILS(MPI_Session_get_num_psets(s, MPI_INFO_NULL, NULL), MPI_ERR_ARG);
	OK(MPI_Session_call_errhandler(s, MPI_ERR_OTHER));
	CHECK_EQ(atomic_load(&x_handled), n + 2);
	OK(MPI_Session_set_errhandler(s, MPI_ERRORS_RETURN));
	FAILS(MPI_Session_get_num_psets(s, MPI_INFO_NULL, NULL), MPI_ERR_ARG);
	CHECK_EQ(atomic_load(&x_handled), n + 2);
	/* What is made with a handler: the errors of the call are that handler's, wrong arguments' too. */
	FAILS(MPI_Session_init(MPI_INFO_NULL, mine, NULL), MPI_ERR_ARG);
	CHECK_EQ(atomic_load(&x_handled), n + 3);
	FAILS(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, NULL), MPI_ERR_ARG);
	FAILS(MPI_Comm_create_from_group(MPI_GROUP_EMPTY, NULL, MPI_INFO_NULL, MPI_ERRORS_RETURN,
					 &c),
	      MPI_ERR_ARG);
	FAILS(MPI_Comm_create_from_group(MPI_GROUP_NULL, "none", MPI_INFO_NULL, MPI_ERRORS_RETURN,
					 &c),
	      MPI_ERR_GROUP);
	FAILS(MPI_Intercomm_create_from_groups(MPI_GROUP_EMPTY, 0, MPI_GROUP_EMPTY, 0, "none",
					       MPI_INFO_NULL, MPI_ERRORS_RETURN, NULL),
	      MPI_ERR_ARG);
	OK(MPI_Comm_create_errhandler((MPI_Comm_errhandler_function *)(void (*)(void))handler,
				      &wrong));
	FAILS(MPI_Session_set_errhandler(s, wrong), MPI_ERR_ERRHANDLER);
	OK(MPI_Errhandler_free(&wrong));
	OK(MPI_Errhandler_free(&mine));
	gone = s;
	OK(MPI_Session_finalize(&s));
	CHECK(s == MPI_SESSION_NULL);
	(void)gone;
	/* Strict: the end is refused while a communicator is there. */
	OK(MPI_Info_create(&info));
	OK(MPI_Info_set(info, "strict_finalize", "1"));
	OK(MPI_Session_init(info, MPI_ERRORS_RETURN, &s));
	OK(MPI_Info_free(&info));
	c = comm_of(s, "mpi://SELF", "strict");
	FAILS(MPI_Session_finalize(&s), MPI_ERR_PENDING);
	CHECK(s != MPI_SESSION_NULL);
	OK(MPI_Comm_free(&c));
	OK(MPI_Session_finalize(&s));
	/* Else a communicator outlives its session, and can be freed. */
	s = open_one();
	c = comm_of(s, "mpi://WORLD", "outlives");
	OK(MPI_Session_finalize(&s));
	works(c);
	OK(MPI_Comm_free(&c));
}

static long resident(void)
{
	long pages = 0, total = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	CHECK(f && fscanf(f, "%ld %ld", &total, &pages) == 2);
	fclose(f);
	return pages * 4096;
}

/* Opened and ended 10,000 times, a communicator each tenth time. */
static void again_and_again(void)
{
	long before = 0;

	for (int i = 0; i < 10000; i++) {
		MPI_Session s = open_one();
		if (i % 10 == 0) {
			MPI_Comm c = comm_of(s, "mpi://SELF", "again");
			OK(MPI_Comm_free(&c));
		}
		OK(MPI_Session_finalize(&s));
		if (i == 2000)
			before = resident();
	}
	CHECK(resident() - before < 2 << 20);
}

/* Each thread has its own sessions; those of the same number meet in a communicator. */
static void *own_sessions(void *arg)
{
	char tag[32];

	for (int i = 0; i < 20; i++) {
		MPI_Session s = open_one();
		snprintf(tag, sizeof tag, "thread %d round %d", (int)(long)arg, i);
		MPI_Comm c = comm_of(s, "mpi://WORLD", tag);
		works(c);
		OK(MPI_Comm_free(&c));
		OK(MPI_Session_finalize(&s));
	}
	return NULL;
}

static void from_threads(void)
{
	enum { THREADS = 4 };
	pthread_t t[THREADS];

	for (long i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&t[i], NULL, own_sessions, (void *)i));
	for (int i = 0; i < THREADS; i++)
		CHECK(!pthread_join(t[i], NULL));
}

int main(int argc, char **argv)
{
	MPI_Session s;
	MPI_Comm c;
	int flag;

	OK(MPI_Initialized(&flag));
	CHECK(!flag);
	s = open_one();
	OK(MPI_Initialized(&flag));
	CHECK(!flag);
	process_sets(s);
	communicators(s);
	between_groups(s);
	buffers(s);
	OK(MPI_Session_finalize(&s));
	errors();
	again_and_again();
	from_threads();
	OK(MPI_Initialized(&flag));
	CHECK(!flag);
	/* Beside MPI_Init, and past MPI_Finalize. */
	s = open_one();
	c = comm_of(s, "mpi://WORLD", "stays");
	test_start(&argc, &argv, MPI_THREAD_MULTIPLE);
	works(MPI_COMM_WORLD);
	works(c);
	test_end();
	OK(MPI_Finalized(&flag));
	CHECK(flag);
	works(c);
	OK(MPI_Comm_free(&c));
	OK(MPI_Session_finalize(&s));
	s = open_one();
	c = comm_of(s, "mpi://WORLD", "last");
	works(c);
	OK(MPI_Comm_free(&c));
	OK(MPI_Session_finalize(&s));
	return 0;
}
