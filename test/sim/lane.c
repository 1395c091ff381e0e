/* SPDX-License-Identifier: BSD-3-Clause */
/* lane.c - what is on its way from one rank to another over one rail: packets, in order, each with
 * the time when it arrives. */
#include <stdlib.h>
#include "sim.h"

void sim_packet_free(struct sim_packet *p)
{
	free(p->data);
	free(p);
}

struct weft_wire sim_head_of(const struct sim_packet *p)
{
	struct weft_wire h;
	memcpy(&h, p->head, sizeof h);
	return h;
}

/* Copies the bytes: the pieces are the sender's again. */
void sim_packet_gather(struct sim_packet *p)
{
	size_t off = 0;
	p->data = malloc(p->len + 1);
	CHECK(p->data);
	for (unsigned i = 0; i < p->n; i++) {
		memcpy(p->data + off, p->iov[i].iov_base, p->iov[i].iov_len);
		off += p->iov[i].iov_len;
	}
	CHECK_EQ(off, p->len);
	p->pending = false;
}

struct sim_packet *sim_packet_make(const void *head, const struct iovec *iov, unsigned n,
				   size_t len, void *cookie)
{
	struct sim_packet *p = calloc(1, sizeof *p);
	CHECK(p);
	memcpy(p->head, head, sizeof p->head);
	if (n)
		memcpy(p->iov, iov, n * sizeof *iov);
	p->n = n;
	p->len = len;
	p->cookie = cookie;
	return p;
}

void sim_lane_append(struct sim_lane *l, struct sim_packet *p)
{
	uint64_t due = sim.now_ns + weft_rand_next(&sim.rnd) % (sim.plan.delay_ns + 1);
	if (due > l->due_ns)
		l->due_ns = due;
	p->due_ns = l->due_ns; /* in order */
	*l->last = p;
	l->last = &p->next;
	l->queued++;
}

struct sim_packet *sim_lane_pop(struct sim_lane *l)
{
	struct sim_packet *p = l->first;
	l->first = p->next;
	if (!l->first)
		l->last = &l->first;
	l->queued--;
	return p;
}

void sim_lanes_begin(void)
{
	for (int a = 0; a < SIM_RANKS; a++)
		for (int b = 0; b < SIM_RANKS; b++)
			for (int r = 0; r < SIM_RAILS; r++) {
				struct sim_lane *l = sim_lane_of(a, b, r);
				memset(l, 0, sizeof *l);
				l->last = &l->first;
			}
}

void sim_lane_clear(struct sim_lane *l)
{
	while (l->first)
		sim_packet_free(sim_lane_pop(l));
	if (l->placing)
		sim_packet_free(l->placing);
	l->placing = NULL;
}

void sim_lanes_end(void)
{
	for (int a = 0; a < sim.plan.ranks; a++)
		for (int b = 0; b < sim.plan.ranks; b++)
			for (int r = 0; r < SIM_RAILS; r++)
				sim_lane_clear(sim_lane_of(a, b, r));
}
