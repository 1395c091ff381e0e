/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * exchange.h - the measurement behind overlap.c (MPI) and limit.c (a raw socket): what is timed,
 * and what "hidden" means.
 *
 * One exchange: the sender starts the transfer, the side that computes does so, both wait for
 * the transfer, then the receiver answers with one byte.  T is the sender's time from start until
 * that answer, so it covers both sides.
 *
 *   T_comm   the exchange alone
 *   T_comp   the computation alone, made as long as T_comm, or exchange_us
 *   T_total  with computation
 *   hidden = (T_comm + T_comp - T_total) / min(T_comm, T_comp)
 *            1: the transfer cost nothing beside the computation.  0: one after the other.
 *            Below 0: slower than one after the other.
 *   ratio  = T_comp / T_total
 *
 * The computation is a fixed number of turns: a thread that takes the core away from it makes it longer
 * and pays for that in T_total.  T_comm and T_total are taken in turn, so that both see the same
 * machine; each is the median.
 */
#ifndef WEFT_BENCH_EXCHANGE_H
#define WEFT_BENCH_EXCHANGE_H

#include "bench.h"

enum exchange_side { EXCHANGE_SENDER = 1, EXCHANGE_RECEIVER = 2, EXCHANGE_BOTH = 3 };

static const char *const exchange_side_name[] = {"", "sender", "receiver", "both"};

/* The three steps, by MPI or by a socket. */
struct exchange_ops {
	void (*sync)(void);                  /* both sides are here */
	void (*start)(char *buf, int bytes); /* send or receive, whatever this side does */
	void (*wait)(void);
	void (*answer)(void);        /* receiver to sender */
	long (*tell)(long value);    /* the sender's value, on both sides */
	double (*slower)(double us); /* the larger of both sides' values */
};

/*
 * A shaped link lets its burst (256 KiB) pass at full speed once it has rested for 2 ms: without
 * this rest the transfers would differ by what was sent just before them.  Awake, because a core
 * that sleeps is slow at first.
 */
static inline void exchange_rest(void)
{
	for (double end = bench_now_us() + 2500; bench_now_us() < end;)
		;
}

/* One exchange; the time counts on the sender. */
static inline double exchange_once(const struct exchange_ops *op, char *buf, int bytes, long turns)
{
	exchange_rest();
	op->sync();
	double t = bench_now_us();
	op->start(buf, bytes);
	if (turns)
		bench_compute(turns);
	op->wait();
	op->answer();
	return bench_now_us() - t;
}

static double exchange_us;        /* how long to compute; 0: as long as the transfer */
static const char *exchange_what; /* what it is, before the size; NULL: one message */

/* Rows of one size and side.  sender: do I send?  reps: how often each. */
static inline void exchange_measure(const struct exchange_ops *op, char *buf, int bytes,
				    enum exchange_side side, int sender, int reps)
{
	double comm[BENCH_BLOCKS_MAX], total[BENCH_BLOCKS_MAX], comp[BENCH_BLOCKS_MAX];
	char size[32], name[64];

	for (int i = 0; i < 2; i++)
		exchange_once(op, buf, bytes, 0);
	for (int i = 0; i < 5; i++)
		comm[i] = exchange_once(op, buf, bytes, 0);
	/* As long as the transfer, by the sender's watch, on each side's own core. */
	double us = (double)op->tell((long)(bench_median(comm, 5) * 1000)) / 1000;
	long turns = bench_turns(exchange_us > 0 ? exchange_us : us);
	int computes = side & (sender ? EXCHANGE_SENDER : EXCHANGE_RECEIVER);
	for (int i = 0; i < reps; i++) {
		comm[i] = exchange_once(op, buf, bytes, 0);
		total[i] = exchange_once(op, buf, bytes, computes ? turns : 0);
		op->sync();
		comp[i] = bench_now_us();
		if (computes)
			bench_compute(turns);
		comp[i] = bench_now_us() - comp[i];
	}
	double t_comm = bench_median(comm, reps), t_total = bench_median(total, reps);
	double t_comp = op->slower(computes ? bench_median(comp, reps) : 0);
	if (!sender)
		return;
	double shorter = t_comm < t_comp ? t_comm : t_comp;
	snprintf(name, sizeof(name), "%s%s%s %s", exchange_what ? exchange_what : "",
		 exchange_what ? " " : "", bench_size((size_t)bytes, size, sizeof(size)),
		 exchange_side_name[side]);
	bench_row(name, "hidden", "share", (t_comm + t_comp - t_total) / shorter);
	bench_row(name, "ratio", "share", t_comp / t_total);
	bench_row(name, "time", "us", t_total);
}

/* All sizes and sides: 1 MiB and 4 MiB, and below and above unless quick. */
static inline void exchange_run(const struct exchange_ops *op, int sender, int quick)
{
	static const int full[] = {65536, 1 << 20, 4 << 20, 0};
	static const int few[] = {1 << 20, 0};
	char *buf = bench_alloc(4 << 20);
	for (const int *bytes = quick ? few : full; *bytes; bytes++)
		for (int side = EXCHANGE_SENDER; side <= EXCHANGE_BOTH; side++)
			exchange_measure(op, buf, *bytes, (enum exchange_side)side, sender,
					 quick              ? 11
					 : *bytes > 1 << 20 ? 15
							    : 25);
	free(buf);
}

#endif
