/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 2 */
/* Communicators come and go 100,000 times and leave no memory behind, live by the thousand, and
 * other objects too; to free one costs the same however many are alive. */
#include <unistd.h>
#include "mpitest.h"

static long resident_kib(void)
{
	long all = 0, resident = 0;
	FILE *f = fopen("/proc/self/statm", "r");
	CHECK(f && fscanf(f, "%ld %ld", &all, &resident) == 2);
	if (f)
		fclose(f);
	return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

static unsigned long long scanned(void)
{
	unsigned long long v = 0;
	int index, count;
	MPI_T_pvar_session s;
	MPI_T_pvar_handle h;

	OK(MPI_T_pvar_get_index("weft_match_scanned", MPI_T_PVAR_CLASS_COUNTER, &index));
	OK(MPI_T_pvar_session_create(&s));
	OK(MPI_T_pvar_handle_alloc(s, index, NULL, &h, &count));
	OK(MPI_T_pvar_read(s, h, &v));
	OK(MPI_T_pvar_handle_free(s, &h));
	OK(MPI_T_pvar_session_free(&s));
	return v;
}

static void make_and_use(MPI_Comm *comm)
{
	int v = 0;

	OK(MPI_Comm_dup(MPI_COMM_WORLD, comm));
	OK(MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 5, &v, 1, MPI_INT,
			(rank + size - 1) % size, 5, *comm, MPI_STATUS_IGNORE));
	CHECK_EQ(v, (rank + size - 1) % size);
}

/* How many buckets of the matching table were searched. */
static unsigned long long free_one(MPI_Comm *comm)
{
	unsigned long long before = scanned();

	OK(MPI_Comm_free(comm));
	return scanned() - before;
}

/* Before others: contexts remember what they were used for. */
static void free_costs_the_same(void)
{
	enum { N = 32000 / TEST_ALONE };
	static MPI_Comm comm[N];
	int provided;

	OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
	make_and_use(&comm[0]);
	unsigned long long alone = free_one(&comm[0]);
	CHECK(alone > 0);
	for (int i = 0; i < N; i++)
		make_and_use(&comm[i]);
	for (int i = 0; i < N; i++)
		CHECK_EQ(free_one(&comm[i]), alone);
	OK(MPI_T_finalize());
}

static void come_and_go(void)
{
	MPI_Comm comm;
	long before = 0;

	for (int i = 0; i < 100000; i++) {
		/* By then freed ids are used again, and with them what belongs to them. */
		if (i == 10000)
			before = resident_kib();
		OK(MPI_Comm_dup(MPI_COMM_SELF, &comm));
		OK(MPI_Comm_free(&comm));
	}
	/* 90,000 times 24 bytes. */
	CHECK(resident_kib() - before < 2048);
	for (int i = 0; i < 10000; i++) {
		OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
		OK(MPI_Comm_free(&comm));
	}
}

static void live_together(void)
{
	enum { N = 2000 };
	static MPI_Comm comm[N];
	int v = 0;

	for (int i = 0; i < N; i++)
		OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm[i]));
	for (int i = 0; i < N; i += 100) {
		OK(MPI_Sendrecv(&i, 1, MPI_INT, (rank + 1) % size, i, &v, 1, MPI_INT,
				(rank + size - 1) % size, i, comm[i], MPI_STATUS_IGNORE));
		CHECK_EQ(v, i);
	}
	for (int i = 0; i < N; i++)
		OK(MPI_Comm_free(&comm[i]));
}

static void small_objects(void)
{
	MPI_Info info;
	MPI_Group group, one;
	MPI_Errhandler e;
	int key, zero = 0;

	OK(MPI_Comm_group(MPI_COMM_WORLD, &group));
	for (int i = 0; i < 70000; i++) {
		OK(MPI_Info_create(&info));
		OK(MPI_Info_free(&info));
		OK(MPI_Group_incl(group, 1, &zero, &one));
		OK(MPI_Group_free(&one));
		OK(MPI_Comm_get_errhandler(MPI_COMM_WORLD, &e));
		OK(MPI_Errhandler_free(&e));
		OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &key,
					  NULL));
		OK(MPI_Comm_free_keyval(&key));
	}
	OK(MPI_Group_free(&group));
}

static void many_requests(void)
{
	enum { N = 100000 };
	static MPI_Request req[N];
	static char b[N];

	for (int i = 0; i < N; i++)
		OK(MPI_Irecv(&b[i], 1, MPI_CHAR, 0, i, MPI_COMM_SELF, &req[i]));
	for (int i = 0; i < N; i++)
		OK(MPI_Send("x", 1, MPI_CHAR, 0, i, MPI_COMM_SELF));
	OK(MPI_Waitall(N, req, MPI_STATUSES_IGNORE));
	CHECK_EQ(b[N - 1], 'x');
}

int main(int argc, char **argv)
{
	test_start(&argc, &argv, MPI_THREAD_SINGLE);
	free_costs_the_same();
	come_and_go();
	live_together();
	small_objects();
	many_requests();
	return test_end();
}
