/* SPDX-License-Identifier: BSD-3-Clause */
/* Every call fits on a stack of 4 KiB with room to spare; WEFT_LONG=1: says what each one takes.
 * ranks: 1 2 */
#include <stdio.h>
#include <weft/ult.h>
#include "mpitest.h"

#define PAINTED 12288
/* Without optimization frames are several times as large; other compilers add a few words. */
#if !defined(__OPTIMIZE__)
#define MOST 3072
#elif defined(__clang__) || !defined(__x86_64__)
#define MOST 1280
#else
#define MOST 1024
#endif
#define PAINT 0xa5

static MPI_Comm comm;
static int in[4], out[4], left, right;
static weft_ult_mutex mutex = WEFT_ULT_MUTEX_INIT;
static weft_ult_cond cond = WEFT_ULT_COND_INIT;
static weft_ult_sem sem = WEFT_ULT_SEM_INIT(0);
static char large_in[300000], large_out[300000];
static int too_much, turn;
static volatile unsigned char *before_call; /* the stack's end of the caller */

/* Where the stack ends, or a bit above. */
static inline __attribute__((always_inline)) unsigned char *stack_end(void)
{
	unsigned char *sp = __builtin_frame_address(0);
#if defined(__x86_64__)
	__asm__ volatile("movq %%rsp, %0" : "=r"(sp));
#elif defined(__aarch64__)
	__asm__ volatile("mov %0, sp" : "=r"(sp));
#endif
	return sp;
}

/* Paints what lies below its frame, calls, and looks how far down the paint is gone. */
static __attribute__((noinline)) void measure(const char *name, void (*call)(void))
{
	volatile unsigned char *top = stack_end() - 64, *low;
	for (int i = 0; i < PAINTED; i++)
		top[-i] = PAINT;
	call();
	for (low = top - PAINTED + 1; low < top && *low == PAINT; low++)
		; /* ends: at the top */
	long used = before_call - low;
	if (turn == 0)
		return;
	if (used > MOST)
		too_much++;
	if (used > MOST || getenv("WEFT_LONG"))
		fprintf(stderr, "%5ld bytes: %s\n", used, name);
}

#define CALL(name, ...)                                                                            \
	static void name(void)                                                                     \
	{                                                                                          \
		before_call = stack_end();                                                         \
		__VA_ARGS__;                                                                       \
	}

static MPI_Request request[2];
static MPI_Status status[2];
static int flag, n, count_of[4] = {1, 1, 1, 1}, at[4] = {0, 1, 2, 3};

CALL(yields, weft_ult_yield())
CALL(parks, (void)weft_ult_park_for(1000))
CALL(sleeps, weft_ult_sleep_ns(1000))
CALL(locks, (void)weft_ult_mutex_lock(&mutex); (void)weft_ult_mutex_unlock(&mutex))
CALL(posts, weft_ult_sem_post(&sem); (void)weft_ult_sem_wait(&sem))
CALL(waits, (void)weft_ult_mutex_lock(&mutex); (void)weft_ult_cond_wait_for(&cond, &mutex, 1000);
     (void)weft_ult_mutex_unlock(&mutex))
static void *nothing(void *arg)
{
	return arg;
}
static void creates(void)
{
	weft_ult *t;
	before_call = stack_end();
	CHECK_EQ(weft_ult_create(&t, NULL, nothing, NULL), WEFT_OK);
	CHECK_EQ(weft_ult_join(t, NULL), WEFT_OK);
}
CALL(irecv, MPI_Irecv(in, 1, MPI_INT, left, 1, comm, &request[0]))
CALL(isend, MPI_Isend(out, 1, MPI_INT, right, 1, comm, &request[1]))
CALL(waitall, MPI_Waitall(2, request, status))
CALL(sendrecv, MPI_Sendrecv(out, 1, MPI_INT, right, 2, in, 1, MPI_INT, left, 2, comm, status))
CALL(large, MPI_Sendrecv(large_out, sizeof(large_out), MPI_BYTE, right, 2, large_in,
			 sizeof(large_in), MPI_BYTE, left, 2, comm, status))
CALL(send, MPI_Isend(out, 1, MPI_INT, right, 3, comm, &request[1]);
     MPI_Recv(in, 1, MPI_INT, left, 3, comm, status); MPI_Wait(&request[1], status))
CALL(probe, MPI_Isend(out, 1, MPI_INT, right, 3, comm, &request[1]);
     MPI_Probe(left, MPI_ANY_TAG, comm, status); MPI_Get_count(status, MPI_INT, &n);
     MPI_Recv(in, 1, MPI_INT, left, 3, comm, status); MPI_Wait(&request[1], status))
CALL(test, MPI_Iprobe(MPI_ANY_SOURCE, 7, comm, &flag, status))
CALL(barrier, MPI_Barrier(comm))
CALL(bcast, MPI_Bcast(in, 4, MPI_INT, 0, comm))
CALL(reduce, MPI_Reduce(out, in, 4, MPI_INT, MPI_SUM, 0, comm))
CALL(allreduce, MPI_Allreduce(out, in, 4, MPI_INT, MPI_SUM, comm))
CALL(gather, MPI_Gather(out, 1, MPI_INT, in, 1, MPI_INT, 0, comm))
CALL(scatter, MPI_Scatter(out, 1, MPI_INT, in, 1, MPI_INT, 0, comm))
CALL(allgather, MPI_Allgather(out, 1, MPI_INT, in, 1, MPI_INT, comm))
CALL(alltoall, MPI_Alltoall(out, 1, MPI_INT, in, 1, MPI_INT, comm))
CALL(alltoallv, MPI_Alltoallv(out, count_of, at, MPI_INT, in, count_of, at, MPI_INT, comm))
CALL(scan, MPI_Scan(out, in, 4, MPI_INT, MPI_SUM, comm))
CALL(ibarrier, MPI_Ibarrier(comm, &request[0]); MPI_Wait(&request[0], status))
CALL(iallreduce, MPI_Iallreduce(out, in, 4, MPI_INT, MPI_SUM, comm, &request[0]);
     MPI_Wait(&request[0], status))
CALL(persist, MPI_Recv_init(in, 1, MPI_INT, left, 4, comm, &request[0]);
     MPI_Send_init(out, 1, MPI_INT, right, 4, comm, &request[1]); MPI_Startall(2, request);
     MPI_Waitall(2, request, status); MPI_Request_free(&request[0]); MPI_Request_free(&request[1]))
CALL(partitioned, MPI_Precv_init(in, 1, 4, MPI_INT, left, 4, comm, MPI_INFO_NULL, &request[0]);
     MPI_Psend_init(out, 4, 1, MPI_INT, right, 4, comm, MPI_INFO_NULL, &request[1]);
     MPI_Startall(2, request); MPI_Pready(2, request[1]); MPI_Pready_range(0, 1, request[1]);
     MPI_Pready(3, request[1]); MPI_Parrived(request[0], 0, &flag); MPI_Waitall(2, request, status);
     MPI_Request_free(&request[0]); MPI_Request_free(&request[1]))
static MPI_Comm other;
static MPI_Group group;
static MPI_Info info;
static MPI_Datatype type;
CALL(dup, MPI_Comm_dup(comm, &other))
CALL(comm_free, MPI_Comm_free(&other))
CALL(split, MPI_Comm_split(comm, 0, rank, &other))
CALL(comm_group, MPI_Comm_group(comm, &group))
CALL(comm_create, MPI_Comm_create(comm, group, &other))
CALL(group_free, MPI_Group_free(&group))
CALL(info_set, MPI_Info_create(&info); MPI_Info_set(info, "key", "value"); MPI_Info_free(&info))
CALL(vector, MPI_Type_vector(2, 1, 2, MPI_INT, &type); MPI_Type_commit(&type))
CALL(send_vector, MPI_Sendrecv(out, 1, type, right, 2, in, 1, type, left, 2, comm, status))
CALL(type_free, MPI_Type_free(&type))
CALL(wtime, (void)MPI_Wtime())

/* ---- the other ways to send and receive ---- */
static char room[4096];
static MPI_Message message;
static int index_of, indices[2];
static int at_bytes[4] = {0, 4, 8, 12};
CALL(ssend, MPI_Irecv(in, 1, MPI_INT, left, 5, comm, &request[0]);
     MPI_Ssend(out, 1, MPI_INT, right, 5, comm); MPI_Wait(&request[0], status))
CALL(rsend, MPI_Irecv(in, 1, MPI_INT, left, 5, comm, &request[0]); MPI_Barrier(comm);
     MPI_Rsend(out, 1, MPI_INT, right, 5, comm); MPI_Wait(&request[0], status))
CALL(buffer_attach, MPI_Buffer_attach(room, sizeof room))
CALL(bsend, MPI_Bsend(out, 1, MPI_INT, right, 5, comm);
     MPI_Recv(in, 1, MPI_INT, left, 5, comm, status))
static void *room_back;
CALL(buffer_detach, MPI_Buffer_detach(&room_back, &n))
CALL(mprobe, MPI_Isend(out, 1, MPI_INT, right, 6, comm, &request[1]);
     MPI_Mprobe(left, 6, comm, &message, status); MPI_Mrecv(in, 1, MPI_INT, &message, status);
     MPI_Wait(&request[1], status))
CALL(replace, MPI_Sendrecv_replace(in, 1, MPI_INT, right, 2, left, 2, comm, status))
CALL(isendrecv, MPI_Isendrecv(out, 1, MPI_INT, right, 2, in, 1, MPI_INT, left, 2, comm, request);
     MPI_Wait(request, status))
CALL(waitany, irecv(); isend(); MPI_Waitany(2, request, &index_of, status);
     MPI_Waitany(2, request, &index_of, status))
CALL(waitsome, irecv(); isend(); MPI_Waitsome(2, request, &n, indices, status);
     MPI_Waitall(2, request, status))
CALL(testall, irecv(); isend(); MPI_Testall(2, request, &flag, status);
     MPI_Waitall(2, request, status))
static void cancels(void)
{
	before_call = stack_end();
	MPI_Irecv(in, 1, MPI_INT, left, 77, comm, &request[0]);
	MPI_Cancel(&request[0]);
	MPI_Wait(&request[0], status);
	MPI_Test_cancelled(status, &flag);
}

/* ---- the other collectives ---- */
static int ones[4] = {1, 1, 1, 1};
static MPI_Datatype types[4] = {MPI_INT, MPI_INT, MPI_INT, MPI_INT};
static int many_in[20000], many_out[20000];
static MPI_Op own_op;
static void add(void *a, void *b, int *len, MPI_Datatype *t)
{
	(void)t;
	for (int i = 0; i < *len; i++)
		((int *)b)[i] += ((int *)a)[i];
}
CALL(gatherv, MPI_Gatherv(out, 1, MPI_INT, in, ones, at, MPI_INT, 0, comm))
CALL(scatterv, MPI_Scatterv(out, ones, at, MPI_INT, in, 1, MPI_INT, 0, comm))
CALL(allgatherv, MPI_Allgatherv(out, 1, MPI_INT, in, ones, at, MPI_INT, comm))
CALL(alltoallw, MPI_Alltoallw(out, ones, at_bytes, types, in, ones, at_bytes, types, comm))
CALL(reduce_scatter, MPI_Reduce_scatter(out, in, ones, MPI_INT, MPI_SUM, comm))
CALL(reduce_scatter_block, MPI_Reduce_scatter_block(out, in, 1, MPI_INT, MPI_SUM, comm))
CALL(exscan, MPI_Exscan(out, in, 4, MPI_INT, MPI_SUM, comm))
CALL(large_allreduce, MPI_Allreduce(many_out, many_in, 20000, MPI_INT, MPI_SUM, comm))
CALL(large_bcast, MPI_Bcast(many_in, 20000, MPI_INT, 0, comm))
CALL(op_create, MPI_Op_create(add, 1, &own_op))
CALL(own_allreduce, MPI_Allreduce(out, in, 4, MPI_INT, own_op, comm))
CALL(op_free, MPI_Op_free(&own_op))
CALL(ialltoallv, MPI_Ialltoallv(out, ones, at, MPI_INT, in, ones, at, MPI_INT, comm, request);
     MPI_Wait(request, status))
CALL(barrier_init, MPI_Barrier_init(comm, MPI_INFO_NULL, request); MPI_Start(request);
     MPI_Wait(request, status); MPI_Request_free(request))

/* ---- communicators ---- */
static MPI_Comm cart, part, bridge;
static int dims[1], yes[1] = {1}, edge[2];
static char word[MPI_MAX_OBJECT_NAME];
CALL(dup_info, MPI_Comm_dup_with_info(comm, MPI_INFO_NULL, &other); MPI_Comm_free(&other))
CALL(idup, MPI_Comm_idup(comm, &other, request); MPI_Wait(request, status); MPI_Comm_free(&other))
CALL(split_type, MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &other);
     MPI_Comm_disconnect(&other))
CALL(create_group, MPI_Comm_group(comm, &group); MPI_Comm_create_group(comm, group, 3, &other);
     MPI_Group_free(&group); MPI_Comm_free(&other))
CALL(cart_create, MPI_Dims_create(size, 1, dims); MPI_Cart_create(comm, 1, dims, yes, 0, &cart))
CALL(neighbor, MPI_Neighbor_allgather(out, 1, MPI_INT, in, 1, MPI_INT, cart);
     MPI_Neighbor_alltoallv(out, ones, at, MPI_INT, in, ones, at, MPI_INT, cart))
CALL(cart_sub, MPI_Cart_sub(cart, yes, &other); MPI_Comm_free(&other); MPI_Comm_free(&cart))
CALL(dist_graph, MPI_Dist_graph_create_adjacent(comm, 1, &left, ones, 1, &right, ones,
						MPI_INFO_NULL, 0, &other);
     MPI_Dist_graph_neighbors(other, 1, edge, ones, 1, edge + 1, ones); MPI_Comm_free(&other))
CALL(intercomm, MPI_Comm_split(comm, rank, 0, &part);
     MPI_Intercomm_create(part, 0, comm, !rank, 9, &bridge);
     MPI_Intercomm_merge(bridge, rank, &other); MPI_Comm_free(&other); MPI_Comm_free(&bridge);
     MPI_Comm_free(&part))
static void bridges(void)
{
	before_call = stack_end();
	if (size == 2)
		intercomm();
}
CALL(names, MPI_Comm_set_name(comm, "world"); MPI_Comm_get_name(comm, word, &n))

/* ---- what stays on this process ---- */
static int where;
CALL(packs, where = 0; MPI_Pack(out, 4, MPI_INT, room, sizeof room, &where, comm); where = 0;
     MPI_Unpack(room, sizeof room, &where, in, 4, MPI_INT, comm))
CALL(indexed, MPI_Type_indexed(2, ones, at, MPI_INT, &type); MPI_Type_commit(&type);
     MPI_Type_free(&type))
CALL(subarray, MPI_Type_create_subarray(1, count_of + 1, ones, at, MPI_ORDER_C, MPI_INT, &type);
     MPI_Type_free(&type))
CALL(error_string, MPI_Error_string(MPI_ERR_RANK, room, &n))
CALL(mistakes, MPI_Send(out, 1, MPI_INT, 1000, 1, comm);
     MPI_Recv(in, -1, MPI_INT, 0, 1, comm, status))
static void a_mistake(void)
{
	before_call = stack_end();
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	mistakes();
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_ARE_FATAL);
}

static const struct {
	const char *name;
	void (*call)(void);
} calls[] = {
#define ROW(name)                                                                                  \
	{                                                                                          \
#name, name                                                                        \
	}
	ROW(yields),
	ROW(parks),
	ROW(sleeps),
	ROW(locks),
	ROW(posts),
	ROW(waits),
	ROW(creates),
	ROW(irecv),
	ROW(isend),
	ROW(waitall),
	ROW(sendrecv),
	ROW(large),
	ROW(send),
	ROW(probe),
	ROW(test),
	ROW(barrier),
	ROW(bcast),
	ROW(reduce),
	ROW(allreduce),
	ROW(gather),
	ROW(scatter),
	ROW(allgather),
	ROW(alltoall),
	ROW(alltoallv),
	ROW(scan),
	ROW(ibarrier),
	ROW(iallreduce),
	ROW(persist),
	ROW(partitioned),
	ROW(dup),
	ROW(comm_free),
	ROW(split),
	ROW(comm_free),
	ROW(comm_group),
	ROW(comm_create),
	ROW(comm_free),
	ROW(group_free),
	ROW(info_set),
	ROW(vector),
	ROW(send_vector),
	ROW(type_free),
	ROW(wtime),
	/* ways to send */
	ROW(ssend),
	ROW(rsend),
	ROW(buffer_attach),
	ROW(bsend),
	ROW(buffer_detach),
	ROW(mprobe),
	ROW(replace),
	ROW(isendrecv),
	ROW(waitany),
	ROW(waitsome),
	ROW(testall),
	ROW(cancels),
	/* collectives */
	ROW(gatherv),
	ROW(scatterv),
	ROW(allgatherv),
	ROW(alltoallw),
	ROW(reduce_scatter),
	ROW(reduce_scatter_block),
	ROW(exscan),
	ROW(large_allreduce),
	ROW(large_bcast),
	ROW(op_create),
	ROW(own_allreduce),
	ROW(op_free),
	ROW(ialltoallv),
	ROW(barrier_init),
	/* communicators */
	ROW(dup_info),
	ROW(idup),
	ROW(split_type),
	ROW(create_group),
	ROW(cart_create),
	ROW(neighbor),
	ROW(cart_sub),
	ROW(dist_graph),
	ROW(bridges),
	ROW(names),
	/* here */
	ROW(packs),
	ROW(indexed),
	ROW(subarray),
	ROW(error_string),
	ROW(a_mistake),
};

static void *calls_all(void *arg)
{
	(void)arg;
	/* The dynamic linker binds at the first call, on any stack that it finds. */
	for (turn = 0; turn < 3; turn++)
		for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
			measure(calls[i].name, calls[i].call);
	return NULL;
}

int main(int argc, char **argv)
{
	struct weft_ult_attr a = WEFT_ULT_ATTR_INIT;
	weft_ult *t;
	test_start(&argc, &argv, MPI_THREAD_MULTIPLE);
	comm = MPI_COMM_WORLD;
	right = (rank + 1) % size;
	left = (rank + size - 1) % size;
	a.stack_size = 32768;
	CHECK_EQ(weft_ult_start(1), WEFT_OK);
	CHECK_EQ(weft_ult_create(&t, &a, calls_all, NULL), WEFT_OK);
	CHECK_EQ(weft_ult_join(t, NULL), WEFT_OK);
	CHECK_EQ(too_much, 0);
	return test_end();
}
