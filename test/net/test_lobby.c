/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A peer that was reached is not given up because the dialer did not look: with dozens of ranks to
 * a core nobody runs for seconds, and then finds more events than it takes at once.
 */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/log.h"
#include "check.h"
#include "net/lobby.h"

#define SIZE 100

static int other[SIZE];
static unsigned lost;

static int dial(void *arg, int peer, unsigned n, char *where, size_t size)
{
	int pair[2];
	CHECK(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair));
	snprintf(where, size, "the test");
	if (other[peer])
		close(other[peer]);
	other[peer] = pair[1];
	return pair[0];
}

static void on_linked(void *arg, int peer, int fd)
{
	close(fd);
}

static void on_lost(void *arg, int peer, weft_err err, const char *why)
{
	lost++;
}

static const struct weft_lobby_ops ops = {
	.driver = "test", .dial = dial, .linked = on_linked, .lost = on_lost};

static struct weft_hub hub;
static struct weft_lobby l;

static void begin(int size)
{
	static const uint8_t secret[32];
	static struct weft_net_job job;
	job = (struct weft_net_job){.size = size, .jobid = "test", .secret = secret};
	CHECK_EQ(weft_hub_open(&hub), WEFT_OK);
	CHECK_EQ(weft_lobby_open(&l, &ops, NULL, &job, &hub), WEFT_OK);
}

static void end(void)
{
	weft_lobby_close(&l);
	weft_hub_close(&hub);
}

static void case_dials(void)
{
	begin(SIZE);
	for (int i = 1; i < SIZE; i++)
		CHECK(weft_lobby_want(&l, i));
	weft_lobby_work(&l);
	CHECK_EQ(l.n_dials, SIZE - 1);
	/* Their time is over, and what happened on the sockets has not been seen. */
	for (int i = 1; i < SIZE; i++) {
		CHECK(!l.peers[i].connected);
		l.peers[i].next_ns = 1;
		l.peers[i].began_ns = 1;
	}
	weft_lobby_work(&l);
	for (int i = 1; i < SIZE; i++) {
		CHECK_EQ(l.peers[i].attempts, 1);
		CHECK_EQ(l.peers[i].state, WEFT_LOBBY_DIALING);
		CHECK(l.peers[i].connected);
	}
	CHECK_EQ(lost, 0);
	end();
}

int main(void)
{
	weft_log_level = -1;
	case_dials();
	return 0;
}
