/* ranks: 1 2 */
/* SPDX-License-Identifier: BSD-3-Clause */
/* Every setting and counter is reachable as a tool variable; progress can be switched while MPI
 * runs. */
#include <mpi.h>

#include <string.h>
#include "../check.h"

static void names_lead_back(void)
{
	int n, back, len, scope, bind;
	char name[64], desc[64];
	MPI_Datatype type;
	MPI_T_enum e;

	CHECK_EQ(MPI_T_cvar_get_num(&n), MPI_SUCCESS);
	CHECK(n > 5);
	for (int i = 0; i < n; i++) {
		int dlen = sizeof desc, verb;
		len = sizeof name;
		CHECK_EQ(MPI_T_cvar_get_info(i, name, &len, &verb, &type, &e, desc, &dlen, &bind,
					     &scope),
			 MPI_SUCCESS);
		CHECK(strlen(desc) < sizeof desc);
		CHECK_EQ(len, strlen(name) + 1);
		CHECK_EQ(MPI_T_cvar_get_index(name, &back), MPI_SUCCESS);
		CHECK_EQ(back, i);
		CHECK(scope == MPI_T_SCOPE_READONLY ||
		      scope == (strncmp(name, "weft_coll_", 10) ? MPI_T_SCOPE_LOCAL
								: MPI_T_SCOPE_ALL_EQ));
	}
	CHECK_EQ(MPI_T_cvar_get_index("progress", &back), MPI_T_ERR_INVALID_NAME);
	CHECK_EQ(MPI_T_cvar_get_info(n, name, &len, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
		 MPI_T_ERR_INVALID_INDEX);
}

static void write_int(const char *name, int value, int want)
{
	int index, count, got = -77;
	MPI_T_cvar_handle h;

	CHECK_EQ(MPI_T_cvar_get_index(name, &index), MPI_SUCCESS);
	CHECK_EQ(MPI_T_cvar_handle_alloc(index, NULL, &h, &count), MPI_SUCCESS);
	CHECK_EQ(count, 1);
	int scope = -1;
	CHECK_EQ(MPI_T_cvar_get_info(index, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, &scope),
		 MPI_SUCCESS);
	/* What it says is what a write finds. */
	int closed = want == MPI_T_ERR_CVAR_SET_NOT_NOW || want == MPI_T_ERR_CVAR_SET_NEVER;
	CHECK_EQ(scope, closed                                 ? MPI_T_SCOPE_READONLY
			: strncmp(name, "weft_coll_", 10) == 0 ? MPI_T_SCOPE_ALL_EQ
							       : MPI_T_SCOPE_LOCAL);
	CHECK_EQ(MPI_T_cvar_write(h, &value), want);
	CHECK_EQ(MPI_T_cvar_read(h, &got), MPI_SUCCESS);
	if (want == MPI_SUCCESS)
		CHECK_EQ(got, value);
	CHECK_EQ(MPI_T_cvar_handle_free(&h), MPI_SUCCESS);
	CHECK(h == MPI_T_CVAR_HANDLE_NULL);
}

static unsigned long long counter(const char *name)
{
	int index, count;
	unsigned long long v = 0;
	MPI_T_pvar_session s;
	MPI_T_pvar_handle h;

	CHECK_EQ(MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index), MPI_SUCCESS);
	CHECK_EQ(MPI_T_pvar_session_create(&s), MPI_SUCCESS);
	CHECK_EQ(MPI_T_pvar_handle_alloc(s, index, NULL, &h, &count), MPI_SUCCESS);
	CHECK_EQ(MPI_T_pvar_read(s, h, &v), MPI_SUCCESS);
	CHECK_EQ(MPI_T_pvar_start(s, h), MPI_T_ERR_PVAR_NO_STARTSTOP);
	CHECK_EQ(MPI_T_pvar_reset(s, h), MPI_T_ERR_PVAR_NO_WRITE);
	CHECK_EQ(MPI_T_pvar_handle_free(s, &h), MPI_SUCCESS);
	CHECK_EQ(MPI_T_pvar_read(s, h, &v), MPI_T_ERR_INVALID_HANDLE);
	CHECK_EQ(MPI_T_pvar_session_free(&s), MPI_SUCCESS);
	return v;
}

int main(int argc, char **argv)
{
	int provided, rank, size, x = 5, n;

	CHECK_EQ(MPI_T_cvar_get_num(&n), MPI_T_ERR_NOT_INITIALIZED);
	CHECK_EQ(MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided), MPI_SUCCESS);
	names_lead_back();
	write_int("weft_eager_shm", 2048, MPI_SUCCESS);
	write_int("weft_eager_shm", -2, MPI_T_ERR_INVALID);

	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	write_int("weft_eager_shm", 4096, MPI_T_ERR_CVAR_SET_NOT_NOW);
	write_int("weft_progress", 0, MPI_SUCCESS);
	write_int("weft_progress", 1, MPI_SUCCESS);
	/* Read at each use: it takes effect while MPI runs, when all ranks write the same. */
	write_int("weft_coll_flat", 4096, MPI_SUCCESS);
	int one = 1, sum = 0;
	CHECK_EQ(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD), MPI_SUCCESS);
	CHECK(sum >= 1);
	write_int("weft_coll_flat", -1, MPI_T_ERR_INVALID);
	write_int("weft_connect_timeout", 30, MPI_SUCCESS);
	MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 0, &x, 1, MPI_INT,
		     (rank + size - 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	CHECK_EQ(x, (rank + size - 1) % size);
	CHECK(size == 1 || counter("weft_eager_sent") >= 1);
	MPI_Finalize();
	write_int("weft_progress", 0, MPI_T_ERR_CVAR_SET_NEVER);
	CHECK_EQ(MPI_T_finalize(), MPI_SUCCESS);
	CHECK_EQ(MPI_T_finalize(), MPI_T_ERR_NOT_INITIALIZED);
	return 0;
}
