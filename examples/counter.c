/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * counter.c - messages without MPI: a counter that lives with peer 0, raised by active messages and
 * read with get.
 *
 *   gcc counter.c $(pkg-config --cflags --libs weft) -o counter && mpiexec -n 4 ./counter
 */
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <weft/comm.h>

enum { RAISE, RAISED };

static _Atomic long counter, answers;

/* Runs at peer 0, in whatever thread polls there. */
static void raise_it(int peer, const void *data, size_t bytes, void *arg)
{
	(void)data, (void)bytes, (void)arg;
	counter++;
	weft_comm_am(peer, RAISED, NULL, 0);
}

static void raised(int peer, const void *data, size_t bytes, void *arg)
{
	(void)peer, (void)data, (void)bytes, (void)arg;
	answers++;
}

int main(void)
{
	weft_comm_request get;
	uint64_t key = 0;
	long seen = 0;

	weft_comm_am_handler(RAISE, raise_it, NULL);
	weft_comm_am_handler(RAISED, raised, NULL);
	if (weft_comm_open())
		return 1;
	int me = weft_comm_rank(), peers = weft_comm_size();

	/* Peer 0 tells the key of its counter to all peers, itself included. */
	if (me == 0) {
		weft_comm_expose(&counter, sizeof(counter), &key);
		for (int p = 0; p < peers; p++)
			weft_comm_send(p, 0, &key, sizeof(key));
	}
	weft_comm_recv(0, 0, &key, sizeof(key), NULL);

	for (int i = 0; i < 1000; i++)
		weft_comm_am(0, RAISE, NULL, 0);
	while (answers < 1000)
		weft_comm_poll();
	weft_comm_barrier();

	weft_err err = weft_comm_get(&get, 0, key, 0, &seen, sizeof(seen));
	if (!err)
		err = weft_comm_wait(&get, NULL);
	if (err)
		fprintf(stderr, "get: %s\n", weft_strerror(err));
	if (me == peers - 1)
		printf("%d peers have counted to %ld\n", peers, seen);
	return weft_comm_close() || seen != 1000l * peers;
}
