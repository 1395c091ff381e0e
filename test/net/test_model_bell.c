/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The doorbell between two processes in every order: with membarrier as a fence in every thread,
 * and with senders that publish by an exchange, no packet is left lying beside a sleeping receiver.
 */
#include "model/explore.h"
#include <errno.h>
#include <unistd.h>
#include "base/counters.h"

static bool rung; /* the eventfd is readable */

static long model_write_bell(void)
{
	rung = true;
	return 8;
}

#define weft_count(id, n) ((void)0)
#define write(fd, p, n) ((void)(p), model_write_bell())
/* The production source, compiled against the explorer's atomics. */
#include "net/shm/bell.c"
#include "net/shm/delayed_ring.h"

static struct weft_bell bell;
static _Atomic int packet[2];
static int payload[2];
static struct weft_net_delayed_ring owed;
static struct weft_net_delayed_ring_note note;
static bool posted; /* the explorer's: no order of its own */

static void setup(void)
{
	atomic_store_explicit(&bell.x_armed, 0, memory_order_relaxed);
	bell.count = 0;
	atomic_store_explicit(&owed.x_n, 0, memory_order_relaxed);
	atomic_store_explicit(&note.x_word, 0, memory_order_relaxed);
	posted = false;
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
	if (weft_net_bell_armed(&bell, plain))
		weft_net_bell_ring(&bell, 0);
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
		weft_net_bell_arm(&bell, WEFT_ARM_ALL, fence);
		weft_net_bell_check(&bell);
		if (got(n) == n)
			break;
		model_block(silent, NULL);
		rung = false;
		for (int i = 0; i < n; i++)
			model_fresh((void *)&packet[i], sizeof packet[i]); /* a system call */
	}
	weft_net_bell_disarm(&bell);
}

/* ---- no thread waits: armed without a fence ------------------------------------------------- */

static void urges(void)
{
	atomic_store_explicit(&packet[0], 1, memory_order_release);
	if (weft_net_bell_urgent(&bell))
		weft_net_bell_ring(&bell, 0);
}

/* Asks as for any packet. */
static void urges_badly(void)
{
	atomic_store_explicit(&packet[0], 1, memory_order_release);
	weft_compiler_barrier();
	if (weft_net_bell_level(&bell))
		weft_net_bell_ring(&bell, 0);
}

static void sleep_until_rung(void)
{
	model_block(silent, NULL);
	model_fresh((void *)&packet[0], sizeof packet[0]); /* a system call */
	MODEL_CHECK(atomic_load_explicit(&packet[0], memory_order_acquire));
}

static void leaves_quietly(void)
{
	weft_net_bell_arm(&bell, WEFT_ARM_REPLIES_UNCHECKED, true);
	if (!atomic_load_explicit(&packet[0], memory_order_acquire))
		sleep_until_rung();
}

/* check: some time later it looks again. */
static void leaves_how(bool check)
{
	weft_net_bell_arm(&bell, WEFT_ARM_ALL_UNCHECKED, true);
	if (atomic_load_explicit(&packet[0], memory_order_acquire))
		return;
	if (check)
		weft_net_bell_arm(&bell, WEFT_ARM_ALL, true);
	if (!check || !atomic_load_explicit(&packet[0], memory_order_acquire))
		sleep_until_rung();
}

static void leaves_and_checks(void)
{
	leaves_how(true);
}

/* Checked long ago, rung, and found by a poll, which leaves it armed. */
static void rung_again_how(bool checked)
{
	weft_net_bell_arm(&bell, WEFT_ARM_ALL_UNCHECKED, true);
	if (checked)
		weft_net_bell_arm(&bell, WEFT_ARM_ALL, true);
	weft_net_bell_ring(&bell, 0); /* another sender's */
	rung = false;
	weft_net_bell_arm(&bell, checked ? WEFT_ARM_ALL : WEFT_ARM_ALL_UNCHECKED, true);
	if (!atomic_load_explicit(&packet[0], memory_order_acquire))
		sleep_until_rung();
}

static void rung_again(void)
{
	rung_again_how(true);
}

static void rung_again_for_good(void)
{
	rung_again_how(false);
}

static void leaves_for_good(void)
{
	leaves_how(false);
}

/* A receiver armed quietly comes to wait: what has come meanwhile did not ring. */
static void waits_how(bool look)
{
	weft_net_bell_arm(&bell, WEFT_ARM_REPLIES_UNCHECKED, true);
	weft_net_bell_arm(&bell, WEFT_ARM_ALL, true);
	if (!look || !atomic_load_explicit(&packet[0], memory_order_acquire))
		sleep_until_rung();
}

static void waits(void)
{
	waits_how(true);
}

static void waits_without_a_look(void)
{
	waits_how(false);
}

/* ---- armed SOON: no thread waits, and the next poll is near --------------------------------- */

/* As net/shm does it. */
static void urge(void)
{
	atomic_store_explicit(&packet[0], 1, memory_order_release);
	uint32_t word = weft_net_bell_urgent(&bell);
	if (weft_net_bell_level_of(word) == WEFT_ARM_SOON)
		weft_net_delayed_ring_owe(&owed, &note, word);
	else if (word)
		weft_net_bell_ring(&bell, 0);
	posted = true;
}

/* Before the last thread stops polling. */
static void ring_owed(void)
{
	uint32_t word =
		weft_net_delayed_ring_take_all(&owed) ? weft_net_delayed_ring_take(&note) : 0;
	if (word)
		weft_net_bell_ring_still(&bell, word, 0);
}

static bool nothing_posted(void *arg)
{
	return !posted;
}

static void polls(void)
{
	ring_owed(); /* a look at any moment takes nothing that it does not ring for */
	model_block(nothing_posted, NULL);
	model_fresh((void *)&owed.x_n, sizeof owed.x_n); /* its poster had the gate's mask */
	ring_owed();
}

/* Counts first: a poll between takes the count, and finds no note to ring for. */
static void urges_and_counts_first(void)
{
	atomic_store_explicit(&packet[0], 1, memory_order_release);
	uint32_t word = weft_net_bell_urgent(&bell);
	atomic_fetch_add_explicit(&owed.x_n, 1, memory_order_release);
	atomic_store_explicit(&note.x_word, word, memory_order_relaxed);
	posted = true;
}

static void leaves_soon(void)
{
	weft_net_bell_arm(&bell, WEFT_ARM_SOON, true);
	if (!atomic_load_explicit(&packet[0], memory_order_acquire))
		sleep_until_rung();
}

/* The sender computes: the check finds its packet, or makes the next one ring. */
static void soon_checked_how(enum weft_arm_level level)
{
	weft_net_bell_arm(&bell, WEFT_ARM_SOON, true);
	if (atomic_load_explicit(&packet[0], memory_order_acquire))
		return;
	weft_net_bell_arm(&bell, level, true);
	if (!atomic_load_explicit(&packet[0], memory_order_acquire))
		sleep_until_rung();
}

static void soon_and_checks(void)
{
	soon_checked_how(WEFT_ARM_REPLIES);
}

static void soon_and_checks_all(void)
{
	soon_checked_how(WEFT_ARM_ALL);
}

/* Looks again, and is as armed as before. */
static void soon_and_looks(void)
{
	weft_net_bell_arm(&bell, WEFT_ARM_SOON, true);
	if (!atomic_load_explicit(&packet[0], memory_order_acquire) &&
	    !atomic_load_explicit(&packet[0], memory_order_acquire))
		sleep_until_rung();
}

/* Comes back, and sleeps in a wait: what was owed is none of that. */
static void soon_and_waits(void)
{
	weft_net_bell_arm(&bell, WEFT_ARM_SOON, true);
	weft_net_bell_disarm(&bell);
	if (atomic_load_explicit(&packet[0], memory_order_acquire))
		return;
	weft_net_bell_arm(&bell, WEFT_ARM_ALL, true);
	if (!atomic_load_explicit(&packet[0], memory_order_acquire))
		sleep_until_rung();
}

/* It was back since: it is not woken for what it has found. */
static void came_back(void)
{
	weft_net_bell_arm(&bell, WEFT_ARM_SOON, true);
	if (!atomic_load_explicit(&packet[0], memory_order_acquire))
		return;
	weft_net_bell_disarm(&bell);
	weft_net_bell_arm(&bell, WEFT_ARM_SOON, true);
	model_block(nothing_posted, NULL);
}

static void urges_and_rings_still(void)
{
	urge();
	uint32_t word = atomic_load_explicit(&note.x_word, memory_order_relaxed);
	uint32_t now = atomic_load_explicit(&bell.x_armed, memory_order_relaxed);
	ring_owed();
	MODEL_CHECK(!rung || now == word);
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
		 .must = {"weft_net_bell_armed l"}},
		{"exchange, two senders",
		 setup,
		 {receives_two, sends_exchange, sends_exchange_too},
		 NULL,
		 2},
		{"no thread waits, urgent", setup, {leaves_quietly, urges}, NULL, 6},
		{"no thread waits, asked without a fence",
		 setup,
		 {leaves_quietly, urges_badly},
		 NULL,
		 6,
		 .broken = true},
		{"no thread waits, checked", setup, {leaves_and_checks, sends_plain}, NULL, 6},
		{"checked, rung and armed again", setup, {rung_again, sends_plain}, NULL, 6},
		{"rung and armed again, not checked",
		 setup,
		 {rung_again_for_good, sends_plain},
		 NULL,
		 6,
		 .broken = true},
		{"no thread waits, not checked",
		 setup,
		 {leaves_for_good, sends_plain},
		 NULL,
		 6,
		 .broken = true},
		{"armed quietly, then waits", setup, {waits, sends_plain}, NULL, 6},
		{"armed quietly, then waits, without a look",
		 setup,
		 {waits_without_a_look, sends_plain},
		 NULL,
		 6,
		 .broken = true},
		{"back soon, rung later",
		 setup,
		 {leaves_soon, urge, polls},
		 NULL,
		 6,
		 .must = {"weft_net_delayed_ring_take_all x"}},
		{"back soon, counted before it is noted",
		 setup,
		 {leaves_soon, urges_and_counts_first, polls},
		 NULL,
		 6,
		 .broken = true},
		{"back soon, checked", setup, {soon_and_checks, urge}, NULL, 6},
		{"back soon, checked for all", setup, {soon_and_checks_all, urge}, NULL, 6},
		{"back soon, looked at only",
		 setup,
		 {soon_and_looks, urge},
		 NULL,
		 6,
		 .broken = true},
		{"back soon, then waits", setup, {soon_and_waits, urge, polls}, NULL, 3},
		{"back soon and gone again", setup, {came_back, urges_and_rings_still}, NULL, 6},
		{"plain, no membarrier", setup, {receives, sends_plain}, NULL, 6, .broken = true},
		{"neither", setup, {receives, sends_badly}, NULL, 6, .broken = true},
	};
	return explore_all(models, weft_countof(models));
}
