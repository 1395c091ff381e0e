/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * halo.c - one-sided without MPI: a ring of cells, spread over the peers, is smoothed step by step.  Each peer
 * puts its outer cells into its neighbours' memory with a notification, and sleeps until theirs are there.
 *
 *   gcc halo.c $(pkg-config --cflags --libs weft) -o halo && mpiexec -n 4 ./halo
 */
#include <stdint.h>
#include <stdio.h>
#include <weft/comm.h>

enum { CELLS = 1000, STEPS = 200, LEFT = 0, RIGHT = 1, MOST = 64 };

/* What peers reach: the neighbours' cells, of even and odd steps apart, since a neighbour may be a step ahead;
 * and at peer 0 the sum of all cells. */
static struct {
	int64_t halo[2][2]; /* [step % 2][side] */
	int64_t total;
} shared;

static int64_t cell[CELLS], next[CELLS];

int main(void)
{
	weft_comm_handle handle;
	uint64_t key, key_of[MOST];

	if (weft_comm_open())
		return 1;
	int me = weft_comm_rank(), peers = weft_comm_size();
	int left = (me + peers - 1) % peers, right = (me + 1) % peers;
	if (peers > MOST)
		return 1;

	/* Handles go to all peers by message. */
	weft_err err = weft_comm_expose(&shared, sizeof(shared), &key);
	if (!err)
		err = weft_comm_handle_export(key, &handle);
	for (int p = 0; p < peers && !err; p++)
		err = weft_comm_send(p, 0, &handle, sizeof(handle));
	for (int i = 0; i < peers && !err; i++) {
		int peer;
		err = weft_comm_recv(i, 0, &handle, sizeof(handle), NULL);
		if (!err)
			err = weft_comm_handle_import(&handle, &peer, &key_of[i], NULL);
	}

	cell[CELLS / 2] = 1000000 * (me + 1);
	for (int step = 0; step < STEPS && !err; step++) {
		int64_t(*halo)[2] = shared.halo;
		int odd = step % 2;
		size_t at = sizeof(halo[0]) * odd;
		unsigned note = 2 * odd;

		/* Own left end is the left neighbour's right halo. */
		err = weft_comm_put_notify(NULL, left, key_of[left], at + RIGHT * sizeof(int64_t),
					   &cell[0], sizeof(int64_t), note + RIGHT);
		if (!err)
			err = weft_comm_put_notify(NULL, right, key_of[right],
						   at + LEFT * sizeof(int64_t), &cell[CELLS - 1],
						   sizeof(int64_t), note + LEFT);
		/* What needs no neighbour is computed while the cells travel. */
		for (int i = 1; i < CELLS - 1; i++)
			next[i] = cell[i - 1] / 4 + cell[i + 1] / 4 + cell[i] - 2 * (cell[i] / 4);
		if (!err)
			err = weft_comm_notify_wait(key, note + LEFT, 1, left);
		if (!err)
			err = weft_comm_notify_wait(key, note + RIGHT, 1, right);
		int64_t before = halo[odd][LEFT], after = halo[odd][RIGHT];
		next[0] = before / 4 + cell[1] / 4 + cell[0] - 2 * (cell[0] / 4);
		next[CELLS - 1] = cell[CELLS - 2] / 4 + after / 4 + cell[CELLS - 1] -
				  2 * (cell[CELLS - 1] / 4);
		/* The own puts have left cell[] before it changes. */
		if (!err)
			err = weft_comm_flush_all();
		for (int i = 0; i < CELLS; i++)
			cell[i] = next[i];
	}

	/* Nothing gets lost: the sum stays what it was. */
	int64_t sum = 0;
	for (int i = 0; i < CELLS; i++)
		sum += cell[i];
	if (!err)
		err = weft_comm_fetch_add(NULL, 0, key_of[0],
					  (size_t)((char *)&shared.total - (char *)&shared),
					  sizeof(sum), (uint64_t)sum, NULL);
	if (!err)
		err = weft_comm_flush(0);
	if (!err)
		err = weft_comm_barrier();
	if (err)
		fprintf(stderr, "peer %d: %s\n", me, weft_strerror(err));
	int64_t wanted = (int64_t)1000000 * peers * (peers + 1) / 2;
	if (me == 0 && !err)
		printf("%d peers, %d steps: the sum is %lld of %lld\n", peers, STEPS,
		       (long long)shared.total, (long long)wanted);
	return weft_comm_close() || err || (me == 0 && shared.total != wanted);
}
