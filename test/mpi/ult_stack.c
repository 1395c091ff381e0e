/* SPDX-License-Identifier: BSD-3-Clause */
/* Every call fits on a stack of 4 KiB with room to spare; WEFT_LONG=1: says what each one takes.
 * ranks: 1 2 */
#include <stdio.h>
#include <weft/ult.h>
#include "mpitest.h"

#define PAINTED 12288
#ifdef __OPTIMIZE__
#define MOST 1792
#else
#define MOST 3072
#endif
#define PAINT 0xa5

static MPI_Comm comm;
static int in[4], out[4], left, right;
static weft_ult_mutex mutex = WEFT_ULT_MUTEX_INIT;
static weft_ult_cond cond = WEFT_ULT_COND_INIT;
static weft_ult_sem sem = WEFT_ULT_SEM_INIT(0);
static char large_in[300000], large_out[300000];
static int too_much, turn;

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
	volatile unsigned char *sp = stack_end(), *top = sp - 64, *low;
	for (int i = 0; i < PAINTED; i++)
		top[-i] = PAINT;
	call();
	for (low = top - PAINTED + 1; low < top && *low == PAINT; low++)
		; /* ends: at the top */
	long used = sp - low;
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

static const struct {
	const char *name;
	void (*call)(void);
} calls[] = {
#define ROW(name)                                                                                  \
	{                                                                                          \
#name, name                                                                        \
	}
	ROW(yields),     ROW(parks),      ROW(sleeps),     ROW(locks),       ROW(posts),
	ROW(waits),      ROW(creates),    ROW(irecv),      ROW(isend),       ROW(waitall),
	ROW(sendrecv),   ROW(large),      ROW(send),       ROW(probe),       ROW(test),
	ROW(barrier),    ROW(bcast),      ROW(reduce),     ROW(allreduce),   ROW(gather),
	ROW(scatter),    ROW(allgather),  ROW(alltoall),   ROW(alltoallv),   ROW(scan),
	ROW(ibarrier),   ROW(iallreduce), ROW(persist),    ROW(dup),         ROW(comm_free),
	ROW(split),      ROW(comm_free),  ROW(comm_group), ROW(comm_create), ROW(comm_free),
	ROW(group_free), ROW(info_set),   ROW(vector),     ROW(send_vector), ROW(type_free),
	ROW(wtime),
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
	a.stack_size = 65536;
	CHECK_EQ(weft_ult_start(1), WEFT_OK);
	CHECK_EQ(weft_ult_create(&t, &a, calls_all, NULL), WEFT_OK);
	CHECK_EQ(weft_ult_join(t, NULL), WEFT_OK);
	CHECK_EQ(too_much, 0);
	return test_end();
}
