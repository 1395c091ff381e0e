/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 2 4 */
/*
 * Point-to-point, datatypes and packing with MPI_Count, and their rarer relatives, do what the
 * common ones do.
 */
#include "mpitest.h"

#define DONE(req) OK(MPI_Wait(&(req), MPI_STATUS_IGNORE))

/* ---- point-to-point ------------------------------------------------------------------------ */

typedef int send_fn(const void *, MPI_Count, MPI_Datatype, int, int, MPI_Comm);
typedef int isend_fn(const void *, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);

/* Round the ring; the receive is there before, as ready sends want it. */
static void posted(MPI_Request *req, int *got, int tag)
{
	*got = -1;
	OK(MPI_Irecv_c(got, 1, MPI_INT, (rank + size - 1) % size, tag, MPI_COMM_WORLD, req));
	test_barrier();
}

static void arrived(MPI_Request *req, const int *got, int tag)
{
	DONE(*req);
	CHECK_EQ(*got, (rank + size - 1) % size * 1000 + tag);
}

static void test_sends(void)
{
	send_fn *send[] = {MPI_Send_c, MPI_Bsend_c, MPI_Rsend_c, MPI_Ssend_c};
	isend_fn *isend[] = {MPI_Irsend_c, MPI_Ibsend_c, MPI_Issend_c};
	isend_fn *init[] = {MPI_Send_init_c, MPI_Bsend_init_c, MPI_Rsend_init_c, MPI_Ssend_init_c};
	int to = (rank + 1) % size, got, value, tag = 0;
	char room[4 * (MPI_BSEND_OVERHEAD + 64)];
	MPI_Request in_req, out_req;
	void *back;
	MPI_Count bytes;

	OK(MPI_Buffer_attach_c(room, sizeof(room)));
	for (size_t i = 0; i < sizeof(send) / sizeof(*send); i++, tag++) {
		value = rank * 1000 + tag;
		posted(&in_req, &got, tag);
		OK(send[i](&value, 1, MPI_INT, to, tag, MPI_COMM_WORLD));
		arrived(&in_req, &got, tag);
	}
	for (size_t i = 0; i < sizeof(isend) / sizeof(*isend); i++, tag++) {
		value = rank * 1000 + tag;
		posted(&in_req, &got, tag);
		OK(isend[i](&value, 1, MPI_INT, to, tag, MPI_COMM_WORLD, &out_req));
		arrived(&in_req, &got, tag);
		DONE(out_req);
	}
	value = rank * 1000 + tag;
	posted(&in_req, &got, tag);
	OK(MPI_Irsend(&value, 1, MPI_INT, to, tag, MPI_COMM_WORLD, &out_req));
	arrived(&in_req, &got, tag++);
	DONE(out_req);
	for (size_t i = 0; i < sizeof(init) / sizeof(*init); i++, tag++) {
		OK(init[i](&value, 1, MPI_INT, to, tag, MPI_COMM_WORLD, &out_req));
		for (int turn = 0; turn < 2; turn++) {
			value = rank * 1000 + tag;
			posted(&in_req, &got, tag);
			OK(MPI_Start(&out_req));
			arrived(&in_req, &got, tag);
			DONE(out_req);
		}
		OK(MPI_Request_free(&out_req));
	}
	OK(MPI_Buffer_detach_c(&back, &bytes));
	CHECK(back == room && bytes == sizeof(room));
	OK(MPI_Comm_attach_buffer_c(MPI_COMM_WORLD, room, sizeof(room)));
	OK(MPI_Comm_detach_buffer_c(MPI_COMM_WORLD, &back, &bytes));
	CHECK(back == room && bytes == sizeof(room));
}

static void test_receives(void)
{
	int from = (rank + size - 1) % size, to = (rank + 1) % size, got = -1, value = rank;
	MPI_Request in_req, out_req;
	MPI_Message message;
	MPI_Status status;
	MPI_Count n;

	OK(MPI_Recv_init_c(&got, 1, MPI_INT, from, 1, MPI_COMM_WORLD, &in_req));
	OK(MPI_Start(&in_req));
	OK(MPI_Send_c(&value, 1, MPI_INT, to, 1, MPI_COMM_WORLD));
	DONE(in_req);
	CHECK_EQ(got, from);
	OK(MPI_Request_free(&in_req));

	for (int turn = 0; turn < 2; turn++) {
		got = -1;
		OK(MPI_Isend(&value, 1, MPI_INT, to, 2, MPI_COMM_WORLD, &out_req));
		OK(MPI_Mprobe(from, 2, MPI_COMM_WORLD, &message, &status));
		CHECK(MPI_Message_fromint(MPI_Message_toint(message)) == message);
		if (turn) {
			OK(MPI_Imrecv_c(&got, 1, MPI_INT, &message, &in_req));
			OK(MPI_Wait(&in_req, &status));
		} else {
			OK(MPI_Mrecv_c(&got, 1, MPI_INT, &message, &status));
		}
		OK(MPI_Get_elements_c(&status, MPI_INT, &n));
		CHECK(got == from && n == 1);
		DONE(out_req);
	}
	OK(MPI_Sendrecv_c(&value, 1, MPI_INT, to, 3, &got, 1, MPI_INT, from, 3, MPI_COMM_WORLD,
			  MPI_STATUS_IGNORE));
	CHECK_EQ(got, from);
	got = -1;
	OK(MPI_Isendrecv_c(&value, 1, MPI_INT, to, 4, &got, 1, MPI_INT, from, 4, MPI_COMM_WORLD,
			   &in_req));
	DONE(in_req);
	CHECK_EQ(got, from);
	got = rank;
	OK(MPI_Sendrecv_replace_c(&got, 1, MPI_INT, to, 5, from, 5, MPI_COMM_WORLD,
				  MPI_STATUS_IGNORE));
	CHECK_EQ(got, from);
	got = rank;
	OK(MPI_Isendrecv_replace_c(&got, 1, MPI_INT, to, 6, from, 6, MPI_COMM_WORLD, &in_req));
	DONE(in_req);
	CHECK_EQ(got, from);
	OK(MPI_Status_set_elements_x(&status, MPI_INT, 7));
	OK(MPI_Get_elements_x(&status, MPI_INT, &n));
	CHECK_EQ(n, 7);
}

/* ---- datatypes ----------------------------------------------------------------------------- */

/* `t` lays out just what `want` does. */
static void type_is(MPI_Datatype t, MPI_Datatype want)
{
	char from[256], a[256], b[256];
	MPI_Count size_t_, size_want, lb, extent, lb_want, extent_want, tlb, textent, tlb_w, te_w;
	int pos_a = 0;
	MPI_Count pos_b = 0;

	OK(MPI_Type_commit(&t));
	OK(MPI_Type_commit(&want));
	OK(MPI_Type_size_x(t, &size_t_));
	OK(MPI_Type_size_c(want, &size_want));
	CHECK_EQ(size_t_, size_want);
	OK(MPI_Type_get_extent_c(t, &lb, &extent));
	OK(MPI_Type_get_extent_x(want, &lb_want, &extent_want));
	CHECK(lb == lb_want && extent == extent_want);
	OK(MPI_Type_get_true_extent_c(t, &tlb, &textent));
	OK(MPI_Type_get_true_extent_x(want, &tlb_w, &te_w));
	CHECK(tlb == tlb_w && textent == te_w && tlb + textent <= (MPI_Count)sizeof(from));
	for (size_t i = 0; i < sizeof(from); i++)
		from[i] = (char)(i + 1);
	OK(MPI_Pack(from, 1, want, a, sizeof(a), &pos_a, MPI_COMM_WORLD));
	OK(MPI_Pack_c(from, 1, t, b, sizeof(b), &pos_b, MPI_COMM_WORLD));
	CHECK(pos_a == pos_b && !memcmp(a, b, (size_t)pos_a));
	OK(MPI_Type_free(&t));
	OK(MPI_Type_free(&want));
}

static void test_types(void)
{
	int at_int[] = {0, 3, 7}, lengths[] = {2, 2, 2}, sizes[] = {4, 6}, part[] = {2, 3};
	int starts[] = {1, 2}, distribs[] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_NONE};
	int dargs[] = {MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG}, procs[] = {2, 1};
	MPI_Count at_n[] = {0, 3, 7}, at_b[] = {0, 12, 28}, lengths_n[] = {2, 2, 2};
	MPI_Count sizes_n[] = {4, 6}, part_n[] = {2, 3}, starts_n[] = {1, 2};
	MPI_Aint at_aint[] = {0, 12, 28};
	MPI_Datatype a, b, three[] = {MPI_INT, MPI_INT, MPI_INT};

	OK(MPI_Type_indexed(3, lengths, at_int, MPI_INT, &a));
	OK(MPI_Type_create_indexed_block(3, 2, at_int, MPI_INT, &b));
	type_is(b, a);
	OK(MPI_Type_indexed_c(3, lengths_n, at_n, MPI_INT, &a));
	OK(MPI_Type_create_indexed_block_c(3, 2, at_n, MPI_INT, &b));
	type_is(b, a);
	OK(MPI_Type_create_hindexed(3, lengths, at_aint, MPI_INT, &a));
	OK(MPI_Type_create_hindexed_block(3, 2, at_aint, MPI_INT, &b));
	type_is(b, a);
	OK(MPI_Type_create_hindexed_c(3, lengths_n, at_b, MPI_INT, &a));
	OK(MPI_Type_create_hindexed_block_c(3, 2, at_b, MPI_INT, &b));
	type_is(b, a);
	OK(MPI_Type_create_struct(3, lengths, at_aint, three, &a));
	OK(MPI_Type_create_struct_c(3, lengths_n, at_b, three, &b));
	type_is(b, a);
	OK(MPI_Type_vector(3, 2, 4, MPI_INT, &a));
	OK(MPI_Type_vector_c(3, 2, 4, MPI_INT, &b));
	type_is(b, a);
	OK(MPI_Type_create_hvector(3, 2, 16, MPI_INT, &a));
	OK(MPI_Type_create_hvector_c(3, 2, 16, MPI_INT, &b));
	type_is(b, a);
	OK(MPI_Type_create_resized(MPI_INT, 0, 12, &a));
	OK(MPI_Type_create_resized_c(MPI_INT, 0, 12, &b));
	type_is(b, a);
	OK(MPI_Type_create_subarray(2, sizes, part, starts, MPI_ORDER_C, MPI_INT, &a));
	OK(MPI_Type_create_subarray_c(2, sizes_n, part_n, starts_n, MPI_ORDER_C, MPI_INT, &b));
	type_is(b, a);
	OK(MPI_Type_create_darray(2, 1, 2, sizes, distribs, dargs, procs, MPI_ORDER_C, MPI_INT,
				  &a));
	OK(MPI_Type_create_darray_c(2, 1, 2, sizes_n, distribs, dargs, procs, MPI_ORDER_C, MPI_INT,
				    &b));
	type_is(b, a);
}

static void test_packing(void)
{
	int from[3] = {1, 2, 3}, to[3] = {0};
	char box[64];
	MPI_Count need, pos = 0;

	OK(MPI_Pack_size_c(3, MPI_INT, MPI_COMM_WORLD, &need));
	CHECK(need >= 12 && need <= (MPI_Count)sizeof(box));
	OK(MPI_Pack_c(from, 3, MPI_INT, box, sizeof(box), &pos, MPI_COMM_WORLD));
	pos = 0;
	OK(MPI_Unpack_c(box, sizeof(box), &pos, to, 3, MPI_INT, MPI_COMM_WORLD));
	CHECK(!memcmp(from, to, sizeof(from)));
	memset(to, 0, sizeof(to));
	OK(MPI_Pack_external_size_c("external32", 3, MPI_INT, &need));
	CHECK_EQ(need, 12);
	pos = 0;
	OK(MPI_Pack_external_c("external32", from, 3, MPI_INT, box, sizeof(box), &pos));
	CHECK(pos == 12 && box[3] == 1 && box[7] == 2);
	pos = 0;
	OK(MPI_Unpack_external_c("external32", box, sizeof(box), &pos, to, 3, MPI_INT));
	CHECK(!memcmp(from, to, sizeof(from)));
}

int main(int argc, char **argv)
{
	test_start(&argc, &argv, MPI_THREAD_SINGLE);
	test_sends();
	test_receives();
	test_types();
	test_packing();
	return test_end();
}
