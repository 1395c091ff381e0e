/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The doorbell between two processes in every order: with membarrier as a fence in every thread,
 * and with senders that publish by an exchange, no packet is left lying beside a sleeping receiver.
 */
#include "model/explore.h"
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/counters.h"

static bool rung; /* the eventfd is readable */

static long model_write_bell(void)
{
	rung = true;
	return 8;
}

#define weft_count(id, n) ((void)0)
#define syscall(...) (model_membarrier(), 0L)
#define write(fd, p, n) ((void)(p), model_write_bell())
/* The production source, compiled against the explorer's atomics. */
#include "net/bell.c"

static struct weft_bell bell;
static _Atomic int packet[2];
static int payload[2];

static void setup(void)
{
	atomic_store_explicit(&bell.x_armed, 0, memory_order_relaxed);
	for (int i = 0; i < 2; i++) {
		atomic_store_explicit(&packet[i], 0, memory_order_relaxed);
		payload[i] = 0;
	}
	rung = false;
}

/* Publishes as net/shm does. */
static void send(int i, bool plain, bool exchange)
{
	model_write(&payload[i], 7);
	if (exchange)
		atomic_exchange_explicit(&packet[i], 1, memory_order_seq_cst);
	else
		atomic_store_explicit(&packet[i], 1, memory_order_release);
	if (weft_bell_armed(&bell, plain))
		weft_bell_ring(&bell, 0);
}

static void sends_plain(void)
{
	send(0, true, false);
}

static void sends_plain_too(void)
{
	send(1, true, false);
}

static void sends_exchange(void)
{
	send(0, false, true);
}

static void sends_exchange_too(void)
{
	send(1, false, true);
}

static void sends_badly(void) /* neither membarrier nor an exchange */
{
	send(0, false, false);
}

static bool silent(void *arg)
{
	return !rung;
}

static int got(int n)
{
	int sum = 0;
	for (int i = 0; i < n; i++)
		if (atomic_load_explicit(&packet[i], memory_order_acquire)) {
			MODEL_CHECK(model_read(&payload[i]) == 7);
			sum++;
		}
	return sum;
}

/* Arms, looks once more, sleeps until rung: until all n are there. */
static void receive(int n, bool fence)
{
	for (int turn = 0; got(n) < n; turn++) {
		MODEL_CHECK(turn < 6); /* each turn brings a packet or a ring that came late */
		weft_bell_arm(&bell, fence);
		if (got(n) == n)
			break;
		model_block(silent, NULL);
		rung = false;
		for (int i = 0; i < n; i++)
			model_fresh((void *)&packet[i], sizeof packet[i]); /* a system call */
	}
	weft_bell_disarm(&bell);
}

static void receives_fence(void)
{
	receive(1, true);
}

static void receives_two_fence(void)
{
	receive(2, true);
}

static void receives(void)
{
	receive(1, false);
}

static void receives_two(void)
{
	receive(2, false);
}

int main(void)
{
	static const struct model models[] = {
		{"membarrier", setup, {receives_fence, sends_plain}, NULL, 6},
		{"membarrier, two senders",
		 setup,
		 {receives_two_fence, sends_plain, sends_plain_too},
		 NULL,
		 2},
		{"exchange",
		 setup,
		 {receives, sends_exchange},
		 NULL,
		 6,
		 .must = {"weft_bell_armed l"}},
		{"exchange, two senders",
		 setup,
		 {receives_two, sends_exchange, sends_exchange_too},
		 NULL,
		 2},
		{"plain, no membarrier", setup, {receives, sends_plain}, NULL, 6, .broken = true},
		{"neither", setup, {receives, sends_badly}, NULL, 6, .broken = true},
	};
	return explore_all(models, weft_countof(models));
}
