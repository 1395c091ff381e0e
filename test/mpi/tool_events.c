/* ranks: 2 */
/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_T events: types, sources and categories hang together; callbacks see each message, in place or
 * at the end of a call by their safety; what does not fit is counted; a freed handle calls no more. */
#include <mpi.h>

#include <stdlib.h>
#include <string.h>
#include "../check.h"

#define MANY 6000 /* more than the queue holds */

static int rank, other;

struct seen {
	_Atomic int events;
	int wrong, deferred, freed;
	MPI_Count dropped, last;
	_Atomic long long bytes;
	int tag, peer;
};

/* ---- what there is ------------------------------------------------------------------------------ */

static void types_and_categories(void)
{
	int n, back, cats, sum = 0, sources;
	CHECK_EQ(MPI_T_event_get_num(&n), MPI_SUCCESS);
	CHECK(n >= 25);
	for (int i = 0; i < n; i++) {
		char name[64], desc[512];
		int nlen = sizeof name, dlen = sizeof desc, elements = 8, bind = -1;
		MPI_Datatype types[8];
		MPI_Aint at[8];
		CHECK_EQ(MPI_T_event_get_info(i, name, &nlen, NULL, types, at, &elements, NULL,
					      NULL, desc, &dlen, &bind),
			 MPI_SUCCESS);
		CHECK(elements <= 8 && bind == MPI_T_BIND_NO_OBJECT);
		for (int k = 0; k < elements; k++)
			CHECK(at[k] == 8 * k && (types[k] == MPI_INT || types[k] == MPI_COUNT ||
						 types[k] == MPI_UNSIGNED_LONG));
		CHECK_EQ(MPI_T_event_get_index(name, &back), MPI_SUCCESS);
		CHECK_EQ(back, i);
	}
	CHECK_EQ(MPI_T_event_get_info(n, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
				      NULL),
		 MPI_T_ERR_INVALID_INDEX);
	CHECK_EQ(MPI_T_event_get_index("weft_none", &back), MPI_T_ERR_INVALID_NAME);
	CHECK_EQ(MPI_T_category_get_num(&cats), MPI_SUCCESS);
	for (int c = 0; c < cats; c++) {
		CHECK_EQ(MPI_T_category_get_num_events(c, &back), MPI_SUCCESS);
		int *which = calloc((size_t)back + 1, sizeof *which);
		CHECK_EQ(MPI_T_category_get_events(c, back, which), MPI_SUCCESS);
		for (int i = 0; i < back; i++)
			CHECK(which[i] >= 0 && which[i] < n);
		free(which);
		sum += back;
	}
	CHECK_EQ(sum, n); /* each in one category */
	CHECK_EQ(MPI_T_source_get_num(&sources), MPI_SUCCESS);
	for (int i = 0; i < sources; i++) {
		MPI_T_source_order order = 0;
		MPI_Count ticks, most, t0, t1;
		CHECK_EQ(MPI_T_source_get_info(i, NULL, NULL, NULL, NULL, &order, &ticks, &most,
					       NULL),
			 MPI_SUCCESS);
		CHECK(order == MPI_T_SOURCE_UNORDERED && ticks == 1000000000 && most > 0);
		CHECK_EQ(MPI_T_source_get_timestamp(i, &t0), MPI_SUCCESS);
		CHECK_EQ(MPI_T_source_get_timestamp(i, &t1), MPI_SUCCESS);
		CHECK(t1 >= t0);
	}
	CHECK_EQ(MPI_T_source_get_timestamp(sources, NULL), MPI_T_ERR_INVALID_INDEX);
}

/* ---- callbacks ---------------------------------------------------------------------------------- */

static void on_message(MPI_T_event_instance e, MPI_T_event_registration r, MPI_T_cb_safety safety,
		       void *data)
{
	struct seen *s = data;
	char copy[64];
	int source = -1, k;
	MPI_Count bytes, time;
	(void)r;
	memset(copy, 0x55, sizeof copy);
	s->events++;
	s->wrong += MPI_T_event_read(e, 0, &s->peer) != MPI_SUCCESS;
	s->wrong += MPI_T_event_read(e, 1, &s->tag) != MPI_SUCCESS;
	s->wrong += MPI_T_event_read(e, 3, &bytes) != MPI_SUCCESS;
	s->wrong += MPI_T_event_read(e, 7, &k) != MPI_T_ERR_INVALID_ITEM;
	s->wrong += MPI_T_event_copy(e, copy) != MPI_SUCCESS;
	s->wrong += memcmp(copy + 24, &bytes, sizeof bytes) != 0;
	s->wrong += MPI_T_event_get_source(e, &source) != MPI_SUCCESS || source < 0;
	s->wrong += MPI_T_event_get_timestamp(e, &time) != MPI_SUCCESS || time <= 0;
	s->deferred += safety == MPI_T_CB_REQUIRE_NONE;
	s->bytes += bytes;
	s->last = time;
}

static void on_dropped(MPI_Count count, MPI_T_event_registration r, int source,
		       MPI_T_cb_safety safety, void *data)
{
	struct seen *s = data;
	(void)r;
	(void)safety;
	CHECK(source >= 0 && count > 0);
	s->dropped += count;
}

static void on_freed(MPI_T_event_registration r, MPI_T_cb_safety safety, void *data)
{
	struct seen *s = data;
	(void)r;
	(void)safety;
	s->freed++;
}

static void on_received(MPI_T_event_instance e, MPI_T_event_registration r, MPI_T_cb_safety safety,
			void *data)
{
	struct seen *s = data;
	MPI_Count bytes = -1;
	(void)r;
	(void)safety;
	s->wrong += MPI_T_event_read(e, 2, &bytes) != MPI_SUCCESS || bytes < 0;
	s->bytes += bytes;
	s->events++;
}

static MPI_T_event_registration listen_with(MPI_T_event_cb_function *cb, const char *name,
					    MPI_T_cb_safety safety, struct seen *s)
{
	int index;
	MPI_T_event_registration r;
	MPI_Info info;
	CHECK_EQ(MPI_T_event_get_index(name, &index), MPI_SUCCESS);
	CHECK_EQ(MPI_T_event_handle_alloc(index, NULL, MPI_INFO_NULL, &r), MPI_SUCCESS);
	CHECK_EQ(MPI_T_event_set_dropped_handler(r, on_dropped), MPI_SUCCESS);
	CHECK_EQ(MPI_T_event_register_callback(r, (MPI_T_cb_safety)77, MPI_INFO_NULL, s, cb),
		 MPI_T_ERR_INVALID);
	CHECK_EQ(MPI_T_event_register_callback(r, safety, MPI_INFO_NULL, s, cb), MPI_SUCCESS);
	CHECK_EQ(MPI_T_event_handle_get_info(r, &info), MPI_SUCCESS);
	CHECK_EQ(MPI_Info_free(&info), MPI_SUCCESS);
	CHECK_EQ(MPI_T_event_callback_get_info(r, safety, &info), MPI_SUCCESS);
	CHECK_EQ(MPI_Info_free(&info), MPI_SUCCESS);
	return r;
}

static MPI_T_event_registration listen_to(const char *name, MPI_T_cb_safety safety, struct seen *s)
{
	return listen_with(on_message, name, safety, s);
}

static void stop(MPI_T_event_registration r, struct seen *s)
{
	CHECK_EQ(MPI_T_event_handle_free(r, s, on_freed), MPI_SUCCESS);
	CHECK_EQ(s->freed, 1);
	CHECK_EQ(MPI_T_event_handle_free(r, s, on_freed), MPI_T_ERR_INVALID_HANDLE);
	CHECK_EQ(s->wrong, 0);
}

/* Rank 0 sends n messages of 12 bytes, rank 1 takes them; then a call that both make. */
static void messages(int n, int tag)
{
	int x[3] = {1, 2, 3};
	for (int i = 0; i < n; i++) {
		if (rank == 0)
			MPI_Send(x, 3, MPI_INT, 1, tag, MPI_COMM_WORLD);
		else
			MPI_Recv(x, 3, MPI_INT, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
	MPI_Sendrecv(&n, 1, MPI_INT, other, 99, x, 1, MPI_INT, other, 99, MPI_COMM_WORLD,
		     MPI_STATUS_IGNORE);
}

/* A call that delivers, and no message. */
static void any_call(void)
{
	int flag;
	MPI_Initialized(&flag);
	MPI_Comm_compare(MPI_COMM_WORLD, MPI_COMM_WORLD, &flag);
}

static void in_place(void)
{
	struct seen sent = {0}, came = {0};
	MPI_T_event_registration s =
		listen_to("weft_send", MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE, &sent);
	MPI_T_event_registration a =
		listen_to("weft_arrive", MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE, &came);
	MPI_Barrier(MPI_COMM_WORLD); /* both listen */
	messages(100, 7);
	CHECK_EQ(sent.deferred + came.deferred, 0);
	CHECK(sent.events >= (rank == 0 ? 101 : 1));
	CHECK(came.events >= (rank == 1 ? 101 : 1));
	CHECK(sent.peer == other && came.peer == other);
	CHECK(sent.bytes >= (rank == 0 ? 1200 : 4));
	stop(s, &sent);
	stop(a, &came);
	int before = sent.events;
	messages(10, 7);
	CHECK_EQ(sent.events, before);
}

static void deferred(void)
{
	struct seen sent = {0}, found = {0}, waits = {0};
	MPI_T_event_registration s = listen_to("weft_send", MPI_T_CB_REQUIRE_NONE, &sent);
	MPI_T_event_registration m = listen_to("weft_match", MPI_T_CB_REQUIRE_THREAD_SAFE, &found);
	MPI_T_event_registration u = listen_to("weft_unexpected", MPI_T_CB_REQUIRE_NONE, &waits);
	MPI_Barrier(MPI_COMM_WORLD);
	messages(100, 8);
	any_call();
	CHECK_EQ(sent.deferred, sent.events);
	CHECK(sent.events >= (rank == 0 ? 101 : 1));
	/* Each arrival is one or the other. */
	CHECK(found.events + waits.events >= (rank == 1 ? 101 : 1));
	CHECK_EQ(sent.dropped, 0);
	stop(s, &sent);
	stop(m, &found);
	stop(u, &waits);
}

static void too_many(void)
{
	struct seen sent = {0};
	MPI_T_event_registration s = listen_to("weft_send", MPI_T_CB_REQUIRE_NONE, &sent);
	messages(MANY, 9);
	any_call();
	any_call();
	CHECK(rank == 1 || sent.events + sent.dropped >= MANY);
	CHECK(rank == 1 || sent.events >= 4000 || sent.dropped == 0);
	stop(s, &sent);
}

/* Every receive ends with its event: posted before its message or after it, fetched, of this rank. */
static void each_received(void)
{
	enum { EACH = 20, LARGE = 3000000 };
	struct seen got = {0};
	char *big = malloc(LARGE);
	int x[3] = {1, 2, 3}, y[3];
	MPI_Request q[EACH];
	MPI_T_event_registration r =
		listen_with(on_received, "weft_received", MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE, &got);
	memset(big, rank, LARGE);
	MPI_Barrier(MPI_COMM_WORLD);
	int before = got.events;
	long long bytes = got.bytes;
	if (rank == 1) {
		for (int i = 0; i < EACH; i++)
			MPI_Irecv(&big[4 * i], 1, MPI_INT, 0, 20, MPI_COMM_WORLD, &q[i]);
		MPI_Send(x, 3, MPI_INT, 0, 21, MPI_COMM_WORLD);
		MPI_Waitall(EACH, q, MPI_STATUSES_IGNORE);
		CHECK(got.events >= before + EACH - 1); /* the last may be told just now */
		MPI_Recv(y, 0, MPI_INT, 0, 23, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		for (int i = 0; i < EACH; i++)
			MPI_Recv(y, 3, MPI_INT, 0, 22, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Recv(big, LARGE, MPI_CHAR, 0, 24, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Send(x, 0, MPI_INT, 0, 25, MPI_COMM_WORLD);
		MPI_Recv(y, 0, MPI_INT, 0, 26, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		CHECK(got.events >= before + 2 * EACH + 2);
		CHECK(got.bytes >= bytes + EACH * 16 + LARGE);
	} else {
		MPI_Recv(y, 3, MPI_INT, 1, 21, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		for (int i = 0; i < EACH; i++)
			MPI_Send(x, 1, MPI_INT, 1, 20, MPI_COMM_WORLD);
		for (int i = 0; i < EACH; i++)
			MPI_Send(x, 3, MPI_INT, 1, 22, MPI_COMM_WORLD);
		MPI_Send(x, 0, MPI_INT, 1, 23, MPI_COMM_WORLD);
		MPI_Send(big, LARGE, MPI_CHAR, 1, 24, MPI_COMM_WORLD);
		MPI_Recv(y, 0, MPI_INT, 1, 25, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Send(x, 0, MPI_INT, 1, 26, MPI_COMM_WORLD);
	}
	before = got.events;
	MPI_Sendrecv(x, 3, MPI_INT, 0, 27, y, 3, MPI_INT, 0, 27, MPI_COMM_SELF, MPI_STATUS_IGNORE);
	MPI_Send(x, 3, MPI_INT, 0, 27, MPI_COMM_SELF);
	MPI_Recv(y, 3, MPI_INT, 0, 27, MPI_COMM_SELF, MPI_STATUS_IGNORE);
	CHECK(got.events >= before + 2);
	free(big);
	stop(r, &got);
}

/* A callback that frees its own handle: free_cb comes when it has returned. */
static MPI_T_event_registration own;

static void frees_itself(MPI_T_event_instance e, MPI_T_event_registration r, MPI_T_cb_safety safety,
			 void *data)
{
	struct seen *s = data;
	(void)e;
	(void)safety;
	s->events++;
	s->wrong += r != own;
	s->wrong += MPI_T_event_handle_free(r, s, on_freed) != MPI_SUCCESS;
	s->wrong += s->freed != 0;
}

static void freed_within(void)
{
	struct seen s = {0};
	int index;
	CHECK_EQ(MPI_T_event_get_index("weft_call", &index), MPI_SUCCESS);
	CHECK_EQ(MPI_T_event_handle_alloc(index, NULL, MPI_INFO_NULL, &own), MPI_SUCCESS);
	CHECK_EQ(MPI_T_event_register_callback(own, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL, &s,
					       frees_itself),
		 MPI_SUCCESS);
	any_call();
	MPI_Barrier(MPI_COMM_WORLD);
	CHECK_EQ(s.events, 1);
	CHECK_EQ(s.wrong, 0);
	CHECK_EQ(s.freed, 1);
}

int main(int argc, char **argv)
{
	int provided, n;
	struct seen early = {0};

	CHECK_EQ(MPI_T_event_get_num(&n), MPI_T_ERR_NOT_INITIALIZED);
	CHECK_EQ(MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided), MPI_SUCCESS);
	types_and_categories();
	/* Before MPI: a tool sees the first message.  Argument "late": none listens before MPI runs. */
	MPI_T_event_registration s = 0;
	int late = argc > 1;
	if (!late)
		s = listen_to("weft_send", MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE, &early);
	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	other = 1 - rank;
	messages(3, 1);
	CHECK(early.events >= (late ? 0 : rank == 0 ? 4 : 1));
	if (!late)
		stop(s, &early);
	in_place();
	deferred();
	each_received();
	too_many();
	freed_within();
	struct seen last = {0};
	(void)listen_to("weft_send", MPI_T_CB_REQUIRE_NONE, &last);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Finalize();
	CHECK_EQ(MPI_T_finalize(), MPI_SUCCESS);
	CHECK_EQ(MPI_T_event_get_num(&n), MPI_T_ERR_NOT_INITIALIZED);
	return 0;
}
