/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 2 4 */
/*
 * The rarer functions do what their commoner relatives do: exchanges with neighbours in all their
 * forms, collectives with MPI_Count, the rest of MPI_T, handles as integers.
 */
#include <stdlib.h>
#include "mpitest.h"

#define DONE(req) OK(MPI_Wait(&(req), MPI_STATUS_IGNORE))
/* ---- neighbours on a ring ------------------------------------------------------------------ */

static MPI_Comm ring;
static int left, right, out[4], in[4];

static void ring_set(void)
{
	out[0] = rank * 10;
	out[1] = rank * 10 + 1;
	memset(in, -1, sizeof(in));
}

/* What the left one sent to its right, and the right one to its left. */
static void ring_all(void)
{
	CHECK_EQ(in[0], left * 10 + 1);
	CHECK_EQ(in[1], right * 10);
}

/* What both sent to all. */
static void ring_same(void)
{
	CHECK_EQ(in[0], left * 10);
	CHECK_EQ(in[1], right * 10);
}

static int ones[2] = {1, 1}, at[2] = {0, 1};
static MPI_Count ones_c[2] = {1, 1};
static MPI_Aint at_c[2] = {0, 1}, at_bytes[2] = {0, sizeof(int)};
static MPI_Datatype ints[2];

#define RING_GATHER out, 1, MPI_INT, in, 1, MPI_INT
#define RING_GATHERV out, 1, MPI_INT, in, ones, at, MPI_INT
#define RING_GATHERV_C out, 1, MPI_INT, in, ones_c, at_c, MPI_INT
#define RING_V out, ones, at, MPI_INT, in, ones, at, MPI_INT
#define RING_V_C out, ones_c, at_c, MPI_INT, in, ones_c, at_c, MPI_INT
#define RING_W out, ones, at_bytes, ints, in, ones, at_bytes, ints
#define RING_W_C out, ones_c, at_bytes, ints, in, ones_c, at_bytes, ints

/* The blocking, the non-blocking and the persistent form. */
#define RING(what, suffix, args, check)                                                            \
	do {                                                                                       \
		MPI_Request req_;                                                                  \
		ring_set();                                                                        \
		OK(MPI_Neighbor_##what##suffix(RING_##args, ring));                                \
		check();                                                                           \
		ring_set();                                                                        \
		OK(MPI_Ineighbor_##what##suffix(RING_##args, ring, &req_));                        \
		DONE(req_);                                                                        \
		check();                                                                           \
		OK(MPI_Neighbor_##what##_init##suffix(RING_##args, ring, MPI_INFO_NULL, &req_));   \
		for (int turn_ = 0; turn_ < 2; turn_++) {                                          \
			ring_set();                                                                \
			OK(MPI_Start(&req_));                                                      \
			DONE(req_);                                                                \
			check();                                                                   \
		}                                                                                  \
		OK(MPI_Request_free(&req_));                                                       \
	} while (0)

static void test_neighbours(void)
{
	int periodic = 1;
	OK(MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &ring));
	OK(MPI_Cart_shift(ring, 0, 1, &left, &right));
	ints[0] = ints[1] = MPI_INT;
	RING(allgather, , GATHER, ring_same);
	RING(allgather, _c, GATHER, ring_same);
	RING(allgatherv, , GATHERV, ring_same);
	RING(allgatherv, _c, GATHERV_C, ring_same);
	RING(alltoall, , GATHER, ring_all);
	RING(alltoall, _c, GATHER, ring_all);
	RING(alltoallv, , V, ring_all);
	RING(alltoallv, _c, V_C, ring_all);
	RING(alltoallw, , W, ring_all);
	RING(alltoallw, _c, W_C, ring_all);
	OK(MPI_Comm_free(&ring));
}

/* ---- collectives with MPI_Count ------------------------------------------------------------ */

static int *mine, *theirs; /* size values each */
static int sum;            /* 0 + ... + size-1 */

static void coll_set(void)
{
	for (int i = 0; i < size; i++) {
		mine[i] = rank * 100 + i;
		theirs[i] = -1;
	}
}

static void is_alltoall(void)
{
	for (int i = 0; i < size; i++)
		CHECK_EQ(theirs[i], i * 100 + rank);
}

static void is_allgather(void)
{
	for (int i = 0; i < size; i++)
		CHECK_EQ(theirs[i], i * 100);
}

static void is_gather(void)
{
	if (rank == 0)
		is_allgather();
}

static void is_scatter(void)
{
	CHECK_EQ(theirs[0], rank);
}

static void is_allreduce(void)
{
	for (int i = 0; i < size; i++)
		CHECK_EQ(theirs[i], sum * 100 + size * i);
}

static void is_reduce(void)
{
	if (rank == 0)
		is_allreduce();
}

static void is_reduce_scatter(void)
{
	CHECK_EQ(theirs[0], sum * 100 + size * rank);
}

static void is_scan(void)
{
	CHECK_EQ(theirs[0], rank * (rank + 1) / 2 * 100);
}

static void is_exscan(void)
{
	CHECK(rank == 0 || theirs[0] == rank * (rank - 1) / 2 * 100);
}

static void is_bcast(void)
{
	for (int i = 0; i < size; i++)
		CHECK_EQ(mine[i], i);
}

static MPI_Count *each;
static MPI_Aint *places, *places_bytes;
static MPI_Datatype *types;

/* The blocking, the non-blocking and the persistent form of one collective with MPI_Count. */
#define COLL(Name, name, args, check)                                                              \
	do {                                                                                       \
		MPI_Request req_;                                                                  \
		coll_set();                                                                        \
		OK(MPI_##Name##_c(COLL_##args, MPI_COMM_WORLD));                                   \
		check();                                                                           \
		coll_set();                                                                        \
		OK(MPI_I##name##_c(COLL_##args, MPI_COMM_WORLD, &req_));                           \
		DONE(req_);                                                                        \
		check();                                                                           \
		OK(MPI_##Name##_init_c(COLL_##args, MPI_COMM_WORLD, MPI_INFO_NULL, &req_));        \
		for (int turn_ = 0; turn_ < 2; turn_++) {                                          \
			coll_set();                                                                \
			OK(MPI_Start(&req_));                                                      \
			DONE(req_);                                                                \
			check();                                                                   \
		}                                                                                  \
		OK(MPI_Request_free(&req_));                                                       \
	} while (0)

#define COLL_BCAST mine, size, MPI_INT, 0
#define COLL_ONE mine, 1, MPI_INT, theirs, 1, MPI_INT
#define COLL_ONE_ROOT COLL_ONE, 0
#define COLL_V_TO mine, 1, MPI_INT, theirs, each, places, MPI_INT
#define COLL_V_TO_ROOT COLL_V_TO, 0
#define COLL_V_FROM_ROOT mine, each, places, MPI_INT, theirs, 1, MPI_INT, 0
#define COLL_VV mine, each, places, MPI_INT, theirs, each, places, MPI_INT
#define COLL_WW mine, each, places_bytes, types, theirs, each, places_bytes, types
#define COLL_SUM mine, theirs, size, MPI_INT, MPI_SUM
#define COLL_SUM_ONE mine, theirs, 1, MPI_INT, MPI_SUM
#define COLL_SUM_ROOT COLL_SUM, 0
#define COLL_SUM_EACH mine, theirs, each, MPI_INT, MPI_SUM

static void test_collectives(void)
{
	mine = malloc(sizeof(*mine) * (size_t)size);
	theirs = malloc(sizeof(*theirs) * (size_t)size);
	each = malloc(sizeof(*each) * (size_t)size);
	places = malloc(sizeof(*places) * (size_t)size);
	places_bytes = malloc(sizeof(*places_bytes) * (size_t)size);
	types = malloc(sizeof(*types) * (size_t)size);
	CHECK(mine && theirs && each && places && places_bytes && types);
	for (int i = 0; i < size; i++) {
		each[i] = 1;
		places[i] = i;
		places_bytes[i] = i * (MPI_Aint)sizeof(int);
		types[i] = MPI_INT;
	}
	sum = size * (size - 1) / 2;
	COLL(Bcast, bcast, BCAST, is_bcast);
	COLL(Gather, gather, ONE_ROOT, is_gather);
	COLL(Gatherv, gatherv, V_TO_ROOT, is_gather);
	COLL(Scatter, scatter, ONE_ROOT, is_scatter);
	COLL(Scatterv, scatterv, V_FROM_ROOT, is_scatter);
	COLL(Allgather, allgather, ONE, is_allgather);
	COLL(Allgatherv, allgatherv, V_TO, is_allgather);
	COLL(Alltoall, alltoall, ONE, is_alltoall);
	COLL(Alltoallv, alltoallv, VV, is_alltoall);
	COLL(Alltoallw, alltoallw, WW, is_alltoall);
	COLL(Reduce, reduce, SUM_ROOT, is_reduce);
	COLL(Allreduce, allreduce, SUM, is_allreduce);
	COLL(Reduce_scatter, reduce_scatter, SUM_EACH, is_reduce_scatter);
	COLL(Reduce_scatter_block, reduce_scatter_block, SUM_ONE, is_reduce_scatter);
	COLL(Scan, scan, SUM_ONE, is_scan);
	COLL(Exscan, exscan, SUM_ONE, is_exscan);
	int a[2] = {1, 2}, b[2] = {10, 20};
	OK(MPI_Reduce_local_c(a, b, 2, MPI_INT, MPI_SUM));
	CHECK(b[0] == 11 && b[1] == 22);
	free(mine);
	free(theirs);
	free(each);
	free(places);
	free(places_bytes);
	free(types);
}

/* ---- the rest ------------------------------------------------------------------------------ */

static void on_session(MPI_Session *session, int *code, ...)
{
	(void)session;
	(void)code;
}

static void on_file(MPI_File *file, int *code, ...)
{
	(void)file;
	(void)code;
}

static void test_error_handlers(void)
{
	MPI_Errhandler e, got;

	OK(MPI_Session_create_errhandler(on_session, &e));
	OK(MPI_Errhandler_free(&e));
	OK(MPI_File_create_errhandler(on_file, &e));
	OK(MPI_File_set_errhandler(MPI_FILE_NULL, e));
	OK(MPI_File_get_errhandler(MPI_FILE_NULL, &got));
	CHECK(got == e);
	OK(MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN));
	OK(MPI_Errhandler_free(&got));
	if (e != MPI_ERRHANDLER_NULL)
		OK(MPI_Errhandler_free(&e));
}

static void test_handles(void)
{
	MPI_Info info, info2;
	MPI_Group group;
	MPI_Errhandler e = MPI_ERRORS_RETURN;
	MPI_Comm copy;
	MPI_Request req;
	int key, nodes = size, edge[1] = {0}, index[64], where;

	OK(MPI_Info_create(&info));
	OK(MPI_Comm_group(MPI_COMM_WORLD, &group));
	info2 = MPI_Info_fromint(MPI_Info_toint(info));
	CHECK(info2 == info);
	CHECK(MPI_Group_fromint(MPI_Group_toint(group)) == group);
	CHECK(MPI_Errhandler_fromint(MPI_Errhandler_toint(e)) == e);
	CHECK(MPI_Win_fromint(MPI_Win_toint(MPI_WIN_NULL)) == MPI_WIN_NULL);
	CHECK(MPI_File_fromint(MPI_File_toint(MPI_FILE_NULL)) == MPI_FILE_NULL);
	CHECK(MPI_Session_fromint(MPI_Session_toint(MPI_SESSION_NULL)) == MPI_SESSION_NULL);
	OK(MPI_Comm_idup_with_info(MPI_COMM_WORLD, info, &copy, &req));
	DONE(req);
	int result;
	OK(MPI_Comm_compare(MPI_COMM_WORLD, copy, &result));
	CHECK_EQ(result, MPI_CONGRUENT);
	OK(MPI_Comm_free(&copy));
	OK(MPI_Group_free(&group));
	OK(MPI_Info_free(&info));
	OK(MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, MPI_WIN_NULL_DELETE_FN, &key, NULL));
	CHECK(key != MPI_KEYVAL_INVALID);
	OK(MPI_Win_free_keyval(&key));
	CHECK_EQ(key, MPI_KEYVAL_INVALID);
	OK(MPI_Get_hw_resource_info(&info));
	OK(MPI_Info_free(&info));
	for (int i = 0; i < size; i++)
		index[i] = 1;
	edge[0] = 0;
	OK(MPI_Graph_map(MPI_COMM_WORLD, nodes, index, edge, &where));
	CHECK(where == rank || where == MPI_UNDEFINED);
}

static void test_tool(void)
{
	int n, level, len = 0, desc_len = 0, verbosity, bind, pvar_class, readonly, continuous,
		      atomic, cvars, pvars, cats;
	char name[256], desc[1024];
	MPI_Datatype type;
	MPI_T_enum values;

	OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &level));
	OK(MPI_T_pvar_get_num(&n));
	CHECK(n > 0);
	for (int i = 0; i < n; i++) {
		len = sizeof(name);
		desc_len = sizeof(desc);
		int index = -1;
		OK(MPI_T_pvar_get_info(i, name, &len, &verbosity, &pvar_class, &type, &values, desc,
				       &desc_len, &bind, &readonly, &continuous, &atomic));
		OK(MPI_T_pvar_get_index(name, pvar_class, &index));
		CHECK(index == i && desc[0]);
	}
	CHECK(MPI_T_pvar_get_info(n, name, &len, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
				  NULL, NULL) != MPI_SUCCESS);
	OK(MPI_T_category_get_num(&n));
	for (int i = 0; i < n; i++) {
		int index = -1;
		len = sizeof(name);
		desc_len = sizeof(desc);
		OK(MPI_T_category_get_info(i, name, &len, desc, &desc_len, &cvars, &pvars, &cats));
		OK(MPI_T_category_get_index(name, &index));
		CHECK_EQ(index, i);
		int *list = malloc(sizeof(*list) * (size_t)(cvars + pvars + cats + 1));
		CHECK(list);
		OK(MPI_T_category_get_cvars(i, cvars, list));
		OK(MPI_T_category_get_pvars(i, pvars, list));
		OK(MPI_T_category_get_categories(i, cats, list));
		OK(MPI_T_category_get_num_events(i, &index));
		OK(MPI_T_category_get_events(i, 0, list));
		free(list);
	}
	OK(MPI_T_category_changed(&n));
	OK(MPI_T_event_get_num(&n));
	/* One beyond the last. */
	CHECK_EQ(MPI_T_event_get_info(n, name, &len, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
				      NULL),
		 MPI_T_ERR_INVALID_INDEX);
	MPI_T_event_registration reg;
	CHECK_EQ(MPI_T_event_handle_alloc(n, NULL, MPI_INFO_NULL, &reg), MPI_T_ERR_INVALID_INDEX);
	OK(MPI_T_source_get_num(&n));
	OK(MPI_T_finalize());
}

int main(int argc, char **argv)
{
	test_start(&argc, &argv, MPI_THREAD_SINGLE);
	test_neighbours();
	test_collectives();
	test_error_handlers();
	test_handles();
	test_tool();
	return test_end();
}
