/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * epoll.c - messages in a program that lives in epoll: rank 0 sleeps on a timer and on its receives
 * at once, without a thread of its own and without polling.
 *
 *   mpicc examples/epoll.c -o epoll && mpiexec -n 3 ./epoll
 */
#include <mpi-ext.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum { EACH = 100, TICK_NS = 2000000 };

struct peer {
	int rank, number, left;
	MPI_Request request;
};

/* The next message of that peer. */
static void receive(MPIX_Pollset set, struct peer *p)
{
	MPI_Irecv(&p->number, 1, MPI_INT, p->rank, 0, MPI_COMM_WORLD, &p->request);
	MPIX_Pollset_add(set, p->request, p);
}

static long take(MPIX_Pollset set, int *open)
{
	void *key;
	int n, complete;
	long sum = 0;

	for (MPIX_Pollset_take(set, 1, &key, &n); n; MPIX_Pollset_take(set, 1, &key, &n)) {
		struct peer *p = key;
		MPI_Test(&p->request, &complete, MPI_STATUS_IGNORE);
		if (!complete)
			abort(); /* a receive comes out when it is complete */
		sum += p->number;
		if (--p->left)
			receive(set, p);
		else
			--*open;
	}
	return sum;
}

static int serve(int open)
{
	struct itimerspec every = {.it_interval.tv_nsec = TICK_NS, .it_value.tv_nsec = TICK_NS};
	struct epoll_event event = {.events = EPOLLIN};
	struct peer *peers = calloc((size_t)open, sizeof(*peers));
	int ep = epoll_create1(0), timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK), fd, ready;
	long sum = 0, ticks = 0, expected = 0;
	MPIX_Pollset set;

	MPIX_Pollset_create(&set);
	MPIX_Pollset_fd(set, &fd);
	if (!peers || epoll_ctl(ep, EPOLL_CTL_ADD, fd, &event) ||
	    epoll_ctl(ep, EPOLL_CTL_ADD, timer, &event) || timerfd_settime(timer, 0, &every, NULL))
		return 1;
	for (int i = 0; i < open; i++) {
		peers[i].rank = i + 1;
		peers[i].left = EACH;
		receive(set, &peers[i]);
		expected += EACH * (EACH + 1L) / 2;
	}
	while (open) {
		uint64_t passed;
		MPIX_Pollset_arm(set, &ready);
		if (!ready)
			epoll_wait(ep, &event, 1, -1);
		if (read(timer, &passed, sizeof(passed)) == sizeof(passed))
			ticks += (long)passed;
		sum += take(set, &open);
	}
	printf("sum %ld, %ld ticks of the timer meanwhile\n", sum, ticks);
	MPIX_Pollset_free(&set);
	close(timer);
	close(ep);
	free(peers);
	return sum != expected;
}

int main(int argc, char **argv)
{
	int rank, size, bad = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (rank == 0 && size > 1)
		bad = serve(size - 1);
	for (int i = EACH; rank && i; i--) {
		MPI_Send(&i, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
		usleep(200); /* this is a computation */
	}
	MPI_Finalize();
	return bad;
}
