/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 4
 *
 * Two groups meet at a port, again and again; threads accept on ports of their own at once; wrong
 * names, closed ports and names of services that are not there are the errors that MPI names; a
 * socket between two processes is enough to join them. */
#include <mpi.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "mpitest.h"

#define ROUNDS 5
#define THREADS 4

static MPI_Comm half;
static char port[MPI_MAX_PORT_NAME], ports[THREADS][MPI_MAX_PORT_NAME];

static int class_of(int err)
{
	int class;
	MPI_Error_class(err, &class);
	return class;
}

static void meet(bool server)
{
	MPI_Comm inter, all;
	int n, me, sum;
	if (server)
		MPI_Comm_accept(port, MPI_INFO_NULL, 1, half, &inter);
	else
		MPI_Comm_connect(port, MPI_INFO_NULL, 0, half, &inter);
	MPI_Intercomm_merge(inter, !server, &all);
	MPI_Comm_size(all, &n);
	MPI_Comm_rank(all, &me);
	CHECK_EQ(n, 4);
	MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, all);
	CHECK_EQ(sum, 6);
	MPI_Comm_disconnect(&all);
	MPI_Comm_disconnect(&inter);
}

static void *one_thread(void *arg)
{
	int i = (int)(intptr_t)arg, in = -1, out = 100 + i;
	MPI_Comm inter;
	if (rank == 2)
		MPI_Comm_accept(ports[i], MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter);
	else
		MPI_Comm_connect(ports[i], MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter);
	MPI_Sendrecv(&out, 1, MPI_INT, 0, 0, &in, 1, MPI_INT, 0, 0, inter, MPI_STATUS_IGNORE);
	CHECK_EQ(in, 100 + i);
	MPI_Comm_disconnect(&inter);
	return NULL;
}

static void threads(void)
{
	pthread_t t[THREADS];
	for (int i = 0; i < THREADS && rank == 2; i++)
		MPI_Open_port(MPI_INFO_NULL, ports[i]);
	MPI_Bcast(ports, sizeof ports, MPI_CHAR, 2, MPI_COMM_WORLD);
	if (rank != 2 && rank != 3)
		return;
	for (int i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&t[i], NULL, one_thread, (void *)(intptr_t)i));
	for (int i = 0; i < THREADS; i++)
		CHECK(!pthread_join(t[i], NULL));
	for (int i = 0; i < THREADS && rank == 2; i++)
		MPI_Close_port(ports[i]);
}

static void errors(void)
{
	MPI_Comm inter;
	char mine[MPI_MAX_PORT_NAME], found[MPI_MAX_PORT_NAME], service[64];
	snprintf(service, sizeof service, "weft test %d", (int)getpid());
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	MPI_Open_port(MPI_INFO_NULL, mine);

	CHECK_EQ(class_of(MPI_Lookup_name(service, MPI_INFO_NULL, found)), MPI_ERR_NAME);
	CHECK_EQ(class_of(MPI_Unpublish_name(service, MPI_INFO_NULL, mine)), MPI_ERR_SERVICE);
	CHECK_EQ(MPI_Publish_name(service, MPI_INFO_NULL, mine), MPI_SUCCESS);
	CHECK_EQ(class_of(MPI_Publish_name(service, MPI_INFO_NULL, mine)), MPI_ERR_SERVICE);
	CHECK_EQ(MPI_Lookup_name(service, MPI_INFO_NULL, found), MPI_SUCCESS);
	CHECK(strcmp(found, mine) == 0);
	CHECK_EQ(MPI_Unpublish_name(service, MPI_INFO_NULL, mine), MPI_SUCCESS);
	CHECK_EQ(class_of(MPI_Lookup_name(service, MPI_INFO_NULL, found)), MPI_ERR_NAME);

	/* Nothing accepts. */
	MPI_Info soon;
	MPI_Info_create(&soon);
	MPI_Info_set(soon, "timeout", "0.1");
	CHECK_EQ(class_of(MPI_Comm_connect(mine, soon, 0, MPI_COMM_SELF, &inter)), MPI_ERR_PORT);
	CHECK_EQ(class_of(MPI_Comm_accept(mine, soon, 0, MPI_COMM_SELF, &inter)), MPI_ERR_PORT);
	MPI_Info_free(&soon);
	/* One digit of the capability is wrong. */
	strcpy(found, mine);
	found[20] = found[20] == 'a' ? 'b' : 'a';
	CHECK_EQ(class_of(MPI_Comm_connect(found, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter)),
		 MPI_ERR_PORT);
	CHECK(inter == MPI_COMM_NULL);
	CHECK_EQ(class_of(MPI_Comm_connect("nonsense", MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter)),
		 MPI_ERR_PORT);
	CHECK_EQ(class_of(MPI_Comm_accept("nonsense", MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter)),
		 MPI_ERR_PORT);
	MPI_Close_port(mine);
	CHECK_EQ(class_of(MPI_Comm_connect(mine, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter)),
		 MPI_ERR_PORT);
	CHECK_EQ(class_of(MPI_Close_port(mine)), MPI_ERR_PORT);
}

static void *join_thread(void *arg)
{
	MPI_Comm inter;
	int in = 0, out = 5;
	CHECK_EQ(MPI_Comm_join((int)(intptr_t)arg, &inter), MPI_SUCCESS);
	MPI_Sendrecv(&out, 1, MPI_INT, 0, 0, &in, 1, MPI_INT, 0, 0, inter, MPI_STATUS_IGNORE);
	CHECK_EQ(in, 5);
	MPI_Comm_disconnect(&inter);
	return NULL;
}

/* Both ends in one process: it may meet itself. */
static void join(void)
{
	int pair[2];
	pthread_t t[2];
	char byte;
	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	for (int i = 0; i < 2; i++)
		CHECK(!pthread_create(&t[i], NULL, join_thread, (void *)(intptr_t)pair[i]));
	for (int i = 0; i < 2; i++)
		CHECK(!pthread_join(t[i], NULL));
	/* The socket is as it was. */
	for (int i = 0; i < 2; i++)
		CHECK_EQ(recv(pair[i], &byte, 1, MSG_DONTWAIT), -1);
	close(pair[0]);
	CHECK_EQ(MPI_Comm_join(pair[1], &half) != MPI_SUCCESS, 1);
	close(pair[1]);
}

int main(int argc, char **argv)
{
	int provided;
	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &half);
	if (rank == 2) /* rank 1 of its half */
		MPI_Open_port(MPI_INFO_NULL, port);
	MPI_Bcast(port, sizeof port, MPI_CHAR, 2, MPI_COMM_WORLD);
	for (int i = 0; i < ROUNDS; i++)
		meet(rank % 2 == 0);
	if (rank == 2)
		MPI_Close_port(port);
	threads();
	if (rank == 1)
		errors();
	if (rank == 1)
		join();
	MPI_Finalize();
	return 0;
}
