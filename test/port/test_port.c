/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_port.c - weft/comm.h as its users see it, between ranks started by mpiexec: messages,
 * probes, cancels, active messages that answer from their handlers, put and get of every size, and
 * what is refused.
 *
 * Without arguments it starts itself under the mpiexec built beside it, once per driver.
 */
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>
#include <weft/comm.h>
#include "check.h"

static int me, n;

static void fill(char *p, size_t bytes, int seed)
{
	for (size_t i = 0; i < bytes; i++)
		p[i] = (char)(seed * 7 + (int)(i % 251));
}

static void messages(void)
{
	static char in[200000], out[200000], want[200000];
	static const size_t sizes[] = {0, 1, 8, 500, 9000, 200000};
	weft_comm_result st;
	for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
		weft_comm_request r, t;
		weft_comm_request *both[] = {&r, &t};
		fill(out, sizes[s], me);
		CHECK(!weft_comm_irecv(&r, (me + n - 1) % n, 5, in, sizeof in));
		CHECK(!weft_comm_isend(&t, (me + 1) % n, 5, out, sizes[s]));
		CHECK(!weft_comm_wait_all(both, 2));
		CHECK(weft_comm_test(&r, &st) && st.bytes == sizes[s] && st.tag == 5);
		CHECK_EQ(st.peer, (me + n - 1) % n);
		fill(want, sizes[s], st.peer);
		CHECK(!memcmp(in, want, sizes[s]));
	}
	CHECK(!weft_comm_send((me + 1) % n, 6, "abc", 4));
	while (!weft_comm_probe(WEFT_COMM_ANY_PEER, 6, &st))
		;
	CHECK_EQ(st.bytes, 4);
	CHECK_EQ(weft_comm_recv(st.peer, 6, in, 2, NULL), WEFT_ERR_TRUNC);
	weft_comm_request late;
	CHECK(!weft_comm_irecv(&late, WEFT_COMM_ANY_PEER, 7, in, 1));
	CHECK(!weft_comm_test(&late, NULL));
	CHECK(weft_comm_cancel(&late));
	CHECK_EQ(weft_comm_wait(&late, &st), WEFT_ERR_CANCELLED);
	CHECK_EQ(weft_comm_send(n, 1, in, 1), WEFT_ERR_ARG);
	CHECK_EQ(weft_comm_send(0, -1, in, 1), WEFT_ERR_ARG);
}

/* ---- active messages ---------------------------------------------------------------------- */

#define ROUNDS 400
static _Atomic int pongs, waits_refused;
static _Atomic long sum;

static void on_ping(int peer, const void *data, size_t bytes, void *arg)
{
	int v;
	CHECK(bytes == sizeof v + 1000 && arg == &sum);
	memcpy(&v, data, sizeof v);
	atomic_fetch_add(&sum, v);
	if (weft_comm_recv(peer, 1, &v, sizeof v, NULL) == WEFT_ERR_DEADLOCK)
		atomic_fetch_add(&waits_refused, 1);
	CHECK(!weft_comm_poll());
	CHECK(!weft_comm_am(peer, 2, &v, sizeof v));
}

static void on_pong(int peer, const void *data, size_t bytes, void *arg)
{
	(void)peer, (void)data, (void)arg;
	CHECK_EQ(bytes, sizeof(int));
	atomic_fetch_add(&pongs, 1);
}

static void *pings(void *arg)
{
	char data[sizeof(int) + 1000] = {0};
	(void)arg;
	for (int i = 0; i < ROUNDS; i++) {
		memcpy(data, &i, sizeof i);
		CHECK(!weft_comm_am((me + 1) % n, 1, data, sizeof data));
	}
	return NULL;
}

static void active(void)
{
	pthread_t t;
	char c = 0;
	CHECK(!pthread_create(&t, NULL, pings, NULL));
	pings(NULL);
	pthread_join(t, NULL);
	while (atomic_load(&pongs) < 2 * ROUNDS)
		(void)weft_comm_poll();
	CHECK(!weft_comm_barrier()); /* all have all their answers */
	CHECK_EQ(atomic_load(&sum), 2l * ROUNDS * (ROUNDS - 1) / 2);
	CHECK_EQ(atomic_load(&waits_refused), 2 * ROUNDS);
	CHECK_EQ(weft_comm_am(0, 3, &c, WEFT_COMM_AM_MAX + 1), WEFT_ERR_ARG);
	CHECK_EQ(weft_comm_am(0, WEFT_COMM_AM_HANDLERS, &c, 1), WEFT_ERR_ARG);
}

/* ---- put and get -------------------------------------------------------------------------- */

static void put_get(void)
{
	enum { REGION = 1 << 20 };
	static char region[REGION], mine[REGION], back[REGION];
	static const size_t sizes[] = {0, 1, 100, 9000, 300000, REGION / 2};
	uint64_t key, keys[16];
	int to = (me + 1) % n;
	weft_comm_request r[2];

	CHECK(!weft_comm_expose(region, REGION, &key));
	for (int p = 0; p < n; p++)
		CHECK(!weft_comm_send(p, 20, &key, sizeof key));
	for (int p = 0; p < n; p++)
		CHECK(!weft_comm_recv(p, 20, &keys[p], sizeof key, NULL));
	for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
		size_t bytes = sizes[s], at = s * 1000;
		fill(mine, bytes, me + (int)s);
		CHECK(!weft_comm_put(&r[0], to, keys[to], at, mine, bytes));
		CHECK(!weft_comm_wait(&r[0], NULL));
		CHECK(!weft_comm_get(&r[0], to, keys[to], at, back, bytes));
		CHECK(!weft_comm_wait(&r[0], NULL));
		CHECK(!memcmp(mine, back, bytes));
		CHECK(!weft_comm_barrier());
		fill(back, bytes, (me + n - 1) % n + (int)s);
		CHECK(!memcmp(region + at, back, bytes)); /* the one before us wrote it */
		CHECK(!weft_comm_barrier());
	}
	memset(region, 1, REGION);
	CHECK(!weft_comm_barrier());
	memset(back, 3, REGION);
	CHECK(!weft_comm_put(&r[0], to, keys[to], REGION - 10, mine, 11));
	CHECK(!weft_comm_get(&r[1], to, keys[to] + 77, 0, back, 5));
	CHECK_EQ(weft_comm_wait(&r[0], NULL), WEFT_ERR_ARG);
	CHECK_EQ(weft_comm_wait(&r[1], NULL), WEFT_ERR_ARG);
	CHECK(back[0] == 3 && back[4] == 3);
	CHECK(!weft_comm_put(&r[0], to, keys[to], SIZE_MAX - 3, mine, 11));
	CHECK_EQ(weft_comm_wait(&r[0], NULL), WEFT_ERR_ARG);
	CHECK(!weft_comm_barrier());
	for (int i = 0; i < REGION; i++)
		CHECK(region[i] == 1);
	CHECK(!weft_comm_hide(key));
	CHECK_EQ(weft_comm_hide(key), WEFT_ERR_NOENT);
	CHECK(!weft_comm_barrier());
	CHECK(!weft_comm_get(&r[0], to, keys[to], 0, back, 5));
	CHECK_EQ(weft_comm_wait(&r[0], NULL), WEFT_ERR_ARG);
}

static int rank_main(void)
{
	CHECK_EQ(weft_comm_send(0, 1, "", 1), WEFT_ERR_STATE);
	CHECK(!weft_comm_am_handler(1, on_ping, &sum));
	CHECK(!weft_comm_am_handler(2, on_pong, NULL));
	CHECK(!weft_comm_open());
	CHECK_EQ(weft_comm_open(), WEFT_ERR_STATE);
	me = weft_comm_rank();
	n = weft_comm_size();
	messages();
	active();
	put_get();
	CHECK(!weft_comm_close());
	CHECK_EQ(weft_comm_close(), WEFT_ERR_STATE);
	return 0;
}

int main(int argc, char **argv)
{
	static const char *const how[] = {"-n 1", "-n 2", "-n 2 -env WEFT_DRIVERS tcp,self",
					  "-n 3"};
	char self[PATH_MAX], dir[PATH_MAX], command[3 * PATH_MAX];
	if (argc > 1)
		return rank_main();
	ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
	CHECK(len > 0);
	self[len] = 0;
	strcpy(dir, self);
	*strrchr(dir, '/') = 0;
	snprintf(command, sizeof command, "%s/bin/mpiexec", dir);
	if (access(command, X_OK))
		return rank_main(); /* the layers alone: one rank */
	for (size_t i = 0; i < sizeof how / sizeof *how; i++) {
		snprintf(command, sizeof command, "%s/bin/mpiexec --timeout 200 %s %s rank", dir,
			 how[i], self);
		printf("%s\n", how[i]);
		fflush(stdout);
		CHECK(system(command) == 0);
	}
	return 0;
}
