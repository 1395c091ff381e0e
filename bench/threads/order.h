/* SPDX-License-Identifier: BSD-3-Clause */
/* order.h - in which order N threads get their turn. */
#ifndef WEFT_BENCH_ORDER_H
#define WEFT_BENCH_ORDER_H

#include <stdlib.h>

/* Thread numbers 0..n-1: one after the other, or in a random order that is always the same. */
static inline void order_fill(int *order, int n, int random)
{
	unsigned seed = 20161121;
	for (int i = 0; i < n; i++)
		order[i] = i;
	for (int i = n - 1; random && i > 0; i--) {
		int j = (int)((unsigned)rand_r(&seed) % (unsigned)(i + 1)), t = order[i];
		order[i] = order[j];
		order[j] = t;
	}
}

/* The successor of each: one random cycle through all of 0..n-1. */
static inline void order_cycle(int *after, int n)
{
	int *order = malloc(sizeof(*order) * (size_t)n);
	order_fill(order, n, 1);
	for (int i = 0; i < n; i++)
		after[order[i]] = order[(i + 1) % n];
	free(order);
}

#endif
