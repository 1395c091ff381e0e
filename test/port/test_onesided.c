/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_onesided.c - the one-sided part of weft/comm.h between ranks started by mpiexec: atomics of all ranks on
 * one word, flush with and without requests, notifications and threads that sleep for them, handles, every
 * access that is refused, and a peer that dies while others wait for it.
 *
 * Without arguments it starts itself under the mpiexec built beside it, once per driver.
 */
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <weft/comm.h>
#include "check.h"

enum { BIG = 300000, TIMES = 300 };

static int me, n, to;

static struct {
	_Atomic uint64_t sum;
	_Atomic uint32_t sum4, guard;
	uint64_t word, turn;
	char data[BIG];
} mine;

static uint64_t key;
static uint64_t key_of[16];
#define AT(field) ((size_t)((char *)&mine.field - (char *)&mine))

/* Each rank hands its region to all others as plain bytes. */
static void exchange(void)
{
	weft_comm_handle h, got;
	CHECK(!weft_comm_expose(&mine, sizeof mine, &key));
	CHECK(!weft_comm_handle_export(key, &h));
	CHECK_EQ(weft_comm_handle_export(key + 99, &got), WEFT_ERR_NOENT);
	for (int p = 0; p < n; p++)
		CHECK(!weft_comm_send(p, 20, &h, sizeof h));
	for (int p = 0; p < n; p++) {
		int peer;
		size_t bytes;
		CHECK(!weft_comm_recv(p, 20, &got, sizeof got, NULL));
		CHECK(!weft_comm_handle_import(&got, &peer, &key_of[p], &bytes));
		CHECK_EQ(peer, p);
		CHECK_EQ(bytes, sizeof mine);
		for (unsigned i = 0; i < sizeof got.bytes; i++) {
			got.bytes[i] ^= 4;
			CHECK_EQ(weft_comm_handle_import(&got, &peer, &key_of[p], NULL),
				 WEFT_ERR_ARG);
			got.bytes[i] ^= 4;
		}
	}
}

static void *adder(void *arg)
{
	uint64_t before = 0, old;
	(void)arg;
	for (int i = 0; i < TIMES; i++) {
		weft_comm_request r;
		CHECK(!weft_comm_fetch_add(&r, 0, key_of[0], AT(sum), 8, 3, &old));
		CHECK(!weft_comm_wait(&r, NULL));
		CHECK(i == 0 || old > before);
		before = old;
		/* 4 bytes: the neighbour stays; no request, nothing fetched. */
		CHECK(!weft_comm_fetch_add(NULL, 0, key_of[0], AT(sum4), 4, UINT32_MAX, NULL));
	}
	return NULL;
}

static void atomics(void)
{
	pthread_t other;
	uint64_t total = 2 * 3 * (uint64_t)TIMES * (uint64_t)n;
	CHECK(!pthread_create(&other, NULL, adder, NULL));
	adder(NULL);
	pthread_join(other, NULL);
	if (me == 0) /* the target's own atomics count as well */
		atomic_fetch_add(&mine.sum, 1);
	CHECK(!weft_comm_flush_all());
	CHECK(!weft_comm_barrier());
	if (me == 0) {
		CHECK_EQ(mine.sum, total + 1);
		CHECK_EQ((int32_t)mine.sum4, -2 * TIMES * n);
		CHECK_EQ(mine.guard, 0);
	}
	/* A lock by compare and swap, given back by swap: the turn is not lost. */
	for (int i = 0; i < 20; i++) {
		weft_comm_request r;
		uint64_t old = 1, turn;
		while (old) {
			CHECK(!weft_comm_compare_swap(&r, 0, key_of[0], AT(word), 8, 0,
						      (uint64_t)me + 1, &old));
			CHECK(!weft_comm_wait(&r, NULL));
		}
		CHECK(!weft_comm_get(NULL, 0, key_of[0], AT(turn), &turn, 8));
		CHECK(!weft_comm_flush(0));
		turn++;
		CHECK(!weft_comm_put(NULL, 0, key_of[0], AT(turn), &turn, 8));
		CHECK(!weft_comm_flush(0));
		CHECK(!weft_comm_swap(&r, 0, key_of[0], AT(word), 8, 0, &old));
		CHECK(!weft_comm_wait(&r, NULL));
		CHECK_EQ(old, (uint64_t)me + 1);
	}
	CHECK(!weft_comm_barrier());
	CHECK(me || mine.turn == 20 * (uint64_t)n);
}

/* Data of every size behind a notification, from the rank before; the answer to the rank after. */
static void notified(void)
{
	static const size_t sizes[] = {0, 1, 1000, 1024, 1025, 70000, BIG};
	static char from[BIG];
	int before = (me + n - 1) % n;
	for (unsigned s = 0; s < sizeof sizes / sizeof *sizes; s++) {
		memset(from, me * 10 + (int)s, sizes[s]);
		CHECK(!weft_comm_put_notify(NULL, to, key_of[to], AT(data), from, sizes[s], s));
		CHECK(!weft_comm_notify_wait(key, s, 1, before));
		for (size_t i = 0; i < sizes[s]; i++)
			CHECK_EQ(mine.data[i], (char)(before * 10 + (int)s));
		CHECK_EQ(weft_comm_notify_test(key, s, 1), WEFT_AGAIN);
		CHECK(!weft_comm_flush(to));
		CHECK(!weft_comm_barrier());
	}
	/* Counts add up, and are taken in any portions. */
	for (int i = 0; i < 10; i++)
		CHECK(!weft_comm_put_notify(NULL, to, key_of[to], 0, NULL, 0, 63));
	CHECK(!weft_comm_notify_wait(key, 63, 7, WEFT_COMM_ANY_PEER));
	CHECK(!weft_comm_notify_wait(key, 63, 3, WEFT_COMM_ANY_PEER));
	CHECK_EQ(weft_comm_notify_test(key, 63, 1), WEFT_AGAIN);
	CHECK(!weft_comm_flush_all());
	CHECK(!weft_comm_barrier());
}

static double cpu(void)
{
	struct rusage u;
	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static void *sleeper(void *arg)
{
	(void)arg;
	CHECK(!weft_comm_notify_wait(key, 5, 1, WEFT_COMM_ANY_PEER));
	return NULL;
}

/* Several threads wait for one count; each notification lets one go.  They sleep meanwhile. */
static void asleep(void)
{
	pthread_t t[3];
	int before = (me + n - 1) % n;
	for (int i = 0; i < 3; i++)
		CHECK(!pthread_create(&t[i], NULL, sleeper, NULL));
	double began = cpu();
	usleep(200000);
	CHECK(!weft_comm_barrier());
	CHECK(cpu() - began < 0.15);
	for (int i = 0; i < 3; i++)
		CHECK(!weft_comm_put_notify(NULL, before, key_of[before], 0, NULL, 0, 5));
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	CHECK(!weft_comm_flush_all());
	CHECK(!weft_comm_barrier());
}

static void *hidden_wait(void *arg)
{
	CHECK_EQ(weft_comm_notify_wait(*(uint64_t *)arg, 0, 1, WEFT_COMM_ANY_PEER), WEFT_ERR_NOENT);
	return NULL;
}

static void refused(void)
{
	static const size_t at[] = {sizeof mine - 7, sizeof mine, SIZE_MAX - 7, SIZE_MAX / 2};
	uint64_t old = 7, other;
	weft_comm_request r;
	pthread_t t;
	char b[8] = "";
	for (unsigned i = 0; i < sizeof at / sizeof *at; i++) {
		CHECK(!weft_comm_fetch_add(&r, to, key_of[to], at[i], 8, 1, &old));
		CHECK_EQ(weft_comm_wait(&r, NULL), WEFT_ERR_ARG);
		CHECK(!weft_comm_put_notify(NULL, to, key_of[to], at[i], b, 8, 9));
		CHECK_EQ(weft_comm_flush(to), WEFT_ERR_ARG);
		CHECK(!weft_comm_flush(to));
	}
	CHECK_EQ(old, 7);
	CHECK(!weft_comm_swap(&r, to, key_of[to], 4, 8, 1, &old)); /* not aligned */
	CHECK_EQ(weft_comm_wait(&r, NULL), WEFT_ERR_ARG);
	CHECK(!weft_comm_compare_swap(&r, to, key_of[to] + 50, 0, 8, 1, 1, &old));
	CHECK_EQ(weft_comm_wait(&r, NULL), WEFT_ERR_ARG);
	CHECK_EQ(weft_comm_fetch_add(&r, to, key_of[to], 0, 2, 1, &old), WEFT_ERR_ARG);
	CHECK_EQ(weft_comm_fetch_add(&r, n, key, 0, 8, 1, &old), WEFT_ERR_ARG);
	CHECK_EQ(weft_comm_put_notify(NULL, to, key, 0, b, 1, WEFT_COMM_NOTES), WEFT_ERR_ARG);
	CHECK_EQ(weft_comm_notify_wait(key, WEFT_COMM_NOTES, 1, to), WEFT_ERR_ARG);
	CHECK_EQ(weft_comm_notify_wait(key, 0, 1, n), WEFT_ERR_ARG);
	CHECK_EQ(weft_comm_notify_wait(key + 99, 0, 1, to), WEFT_ERR_NOENT);
	CHECK_EQ(weft_comm_flush(n), WEFT_ERR_ARG);
	CHECK(!weft_comm_barrier());
	CHECK_EQ(weft_comm_notify_test(key, 9, 1), WEFT_AGAIN);
	CHECK(!weft_comm_expose(b, sizeof b, &other));
	CHECK(!pthread_create(&t, NULL, hidden_wait, &other));
	usleep(1000);
	CHECK(!weft_comm_hide(other));
	pthread_join(t, NULL);
	CHECK(!weft_comm_barrier());
}

static int rank_main(void)
{
	CHECK_EQ(weft_comm_flush(0), WEFT_ERR_STATE);
	CHECK(!weft_comm_open());
	me = weft_comm_rank();
	n = weft_comm_size();
	to = (me + 1) % n;
	exchange();
	atomics();
	notified();
	asleep();
	refused();
	CHECK(!weft_comm_hide(key));
	CHECK(!weft_comm_close());
	return 0;
}

/* Rank 1 dies; rank 0 waits for its notification, and flushes what it puts there. */
static int death_main(void)
{
	weft_err err = WEFT_OK;
	CHECK(!weft_comm_open());
	me = weft_comm_rank();
	n = weft_comm_size();
	exchange();
	CHECK(!weft_comm_barrier());
	if (me == 1) {
		usleep(50000);
		kill(getpid(), SIGKILL);
	}
	CHECK_EQ(weft_comm_notify_wait(key, 1, 1, 1), WEFT_ERR_PEER);
	for (int i = 0; i < 3 && !err; i++) {
		err = weft_comm_fetch_add(NULL, 1, key_of[1], 0, 8, 1, NULL);
		weft_err late = weft_comm_flush(1);
		err = err ? err : late;
	}
	CHECK_EQ(err, WEFT_ERR_PEER);
	printf("lost as expected\n");
	fflush(stdout);
	_exit(0);
}

int main(int argc, char **argv)
{
	static const char *const how[] = {
		"-n 1 %s rank",
		"-n 2 %s rank",
		"-n 2 -env WEFT_DRIVERS tcp,self %s rank",
		"-n 3 %s rank",
		"-n 2 -env WEFT_PROGRESS off %s rank",
		"-n 2 %s death | grep -q 'lost as expected'",
		"-n 2 -env WEFT_DRIVERS tcp,self %s death | grep -q 'lost as expected'"};
	char self[PATH_MAX], dir[PATH_MAX], rest[PATH_MAX + 100], command[3 * PATH_MAX];
	if (argc > 1)
		return strcmp(argv[1], "death") ? rank_main() : death_main();
	ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
	CHECK(len > 0);
	self[len] = 0;
	strcpy(dir, self);
	*strrchr(dir, '/') = 0;
	snprintf(command, sizeof command, "%s/bin/mpiexec", dir);
	if (access(command, X_OK))
		return rank_main(); /* the layers alone: one rank */
	for (size_t i = 0; i < sizeof how / sizeof *how; i++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		snprintf(rest, sizeof rest, how[i], self);
#pragma GCC diagnostic pop
		snprintf(command, sizeof command, "%s/bin/mpiexec --timeout 100 %s", dir, rest);
		printf("%s\n", how[i]);
		fflush(stdout);
		CHECK(system(command) == 0);
	}
	return 0;
}
