/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Patience on a slow machine, where no rank runs for seconds: a peer that was reached is not given up
 * because the dialer did not look; a hello is on its way before the dialer sleeps; a guest that may be
 * a rank stays longer, as long as no other guest needs its place.  And strangers do not make us look
 * more often for long, a dialer connected to itself has not reached its peer, and a rank that comes after its end is no attack.
 */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "base/counters.h"
#include "base/log.h"
#include "base/settings.h"
#include "check.h"
#include "net/lobby.h"

#define SIZE 100

static int dialed[SIZE];
static unsigned lost, linked;
static int door;
static struct sockaddr_un door_name;
static socklen_t door_len;
static bool at_once; /* dial() gets through */
static bool to_self; /* dial() gets through to its own socket */

/* As the kernel does it when it chooses the port that is dialed. */
static int dial_self(void)
{
	struct sockaddr_in name = {.sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof name;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	CHECK(fd >= 0 && !bind(fd, (struct sockaddr *)&name, len));
	CHECK(!getsockname(fd, (struct sockaddr *)&name, &len));
	CHECK(!connect(fd, (struct sockaddr *)&name, len) || errno == EINPROGRESS);
	return fd;
}

static int dial(void *arg, int peer, unsigned n, char *where, size_t size)
{
	if (to_self)
		return dialed[peer] = dial_self();
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	CHECK(fd >= 0);
	snprintf(where, size, "the test");
	if (at_once)
		CHECK(!connect(fd, (struct sockaddr *)&door_name, door_len));
	return dialed[peer] = fd;
}

static void on_linked(void *arg, int peer, int fd)
{
	linked++;
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
static const uint8_t secret[32];
static struct weft_net_job job, theirs;

static void begin(int size)
{
	job = (struct weft_net_job){.size = size, .jobid = "test", .secret = secret};
	theirs = job;
	theirs.rank = 1;
	CHECK_EQ(weft_net_hub_open(&hub), WEFT_OK);
	CHECK_EQ(weft_net_lobby_open(&l, &ops, NULL, &job, &hub), WEFT_OK);
	lost = linked = 0;
	/* The kernel finds a name. */
	door_name = (struct sockaddr_un){.sun_family = AF_UNIX};
	door_len = sizeof door_name;
	door = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	CHECK(!bind(door, (struct sockaddr *)&door_name, sizeof(sa_family_t)) &&
	      !listen(door, SIZE));
	CHECK(!getsockname(door, (struct sockaddr *)&door_name, &door_len));
}

static void end(void)
{
	weft_net_lobby_close(&l);
	weft_net_hub_close(&hub);
}

static void case_dials(void)
{
	begin(SIZE);
	at_once = false;
	for (int i = 1; i < SIZE; i++)
		CHECK(weft_net_lobby_want(&l, i));
	weft_net_lobby_work(&l);
	CHECK_EQ(l.n_dials, SIZE - 1);
	/* They get through and their time is over, and we have not seen either. */
	for (int i = 1; i < SIZE; i++) {
		CHECK(!connect(dialed[i], (struct sockaddr *)&door_name, door_len));
		CHECK(!l.peers[i].connected);
		l.peers[i].next_ns = 1;
		l.peers[i].began_ns = 1;
	}
	weft_net_lobby_work(&l);
	for (int i = 1; i < SIZE; i++) {
		CHECK_EQ(l.peers[i].attempts, 1);
		CHECK_EQ(l.peers[i].state, WEFT_LOBBY_DIALING);
		CHECK(l.peers[i].connected);
	}
	CHECK_EQ(lost, 0);
	close(door);
	end();
}

/* A receive waits for a peer: it is dialed in a while, at once if a sender wants it meanwhile, and not if it came. */
static void case_expected(void)
{
	begin(4);
	at_once = false;
	for (int i = 1; i < 4; i++) {
		CHECK(weft_net_lobby_expect(&l, i));
		CHECK(!weft_net_lobby_expect(&l, i));
	}
	weft_net_lobby_work(&l);
	CHECK_EQ(l.n_expected, 3);
	CHECK_EQ(l.n_dials, 0);
	CHECK(!weft_net_lobby_busy(&l) && weft_net_lobby_tick_ms(&l) > WEFT_HUB_TICK_MS);
	CHECK(weft_net_lobby_want(&l, 1));
	weft_net_lobby_work(&l);
	CHECK_EQ(l.peers[1].state, WEFT_LOBBY_DIALING);
	CHECK_EQ(l.n_expected, 2);
	weft_net_lobby_forget(&l, 2);
	CHECK_EQ(l.n_expected, 1);
	CHECK_EQ(l.peers[3].attempts, 0);
	l.peers[2].next_ns = l.peers[3].next_ns = l.expected_ns = 1;
	weft_net_lobby_work(&l);
	CHECK_EQ(l.peers[2].attempts, 0);
	CHECK_EQ(l.peers[3].state, WEFT_LOBBY_DIALING);
	CHECK_EQ(l.n_expected, 0);
	CHECK(weft_net_lobby_counts_right(&l));
	close(door);
	end();
}

/* A connection that rests while a receive waits is made again later, each time twice as late until a sender wants it. */
static void case_expected_again(void)
{
	const uint64_t second = 1000000000u;
	begin(2);
	at_once = false;
	CHECK(weft_net_lobby_expect(&l, 1));
	weft_net_lobby_work(&l);
	for (int turn = 0; turn < 10; turn++) {
		CHECK_EQ(l.n_expected, 1);
		l.peers[1].next_ns = l.expected_ns = 1;
		weft_net_lobby_work(&l);
		CHECK_EQ(l.peers[1].state, WEFT_LOBBY_DIALING);
		weft_net_lobby_forget(&l, 1);
		weft_net_lobby_revive(&l, 1);
		uint64_t now = weft_clock_ns(), wait = second << (turn < 5 ? turn + 1 : 6);
		CHECK(weft_net_lobby_expect(&l, 1));
		CHECK(!weft_net_lobby_expect(&l, 1));
		weft_net_lobby_work(&l);
		CHECK(l.peers[1].next_ns >= now + wait && l.peers[1].next_ns < now + wait + second);
		CHECK_EQ(weft_net_lobby_tick_ms(&l), 1000);
	}
	CHECK(weft_net_lobby_want(&l, 1));
	weft_net_lobby_work(&l);
	weft_net_lobby_forget(&l, 1);
	weft_net_lobby_revive(&l, 1);
	uint64_t now = weft_clock_ns();
	CHECK(weft_net_lobby_expect(&l, 1));
	weft_net_lobby_work(&l);
	CHECK(l.peers[1].next_ns >= now + second && l.peers[1].next_ns < now + 2 * second);
	/* A wish that the poller has not heard yet stays one. */
	weft_net_lobby_forget(&l, 1);
	weft_net_lobby_revive(&l, 1);
	CHECK(weft_net_lobby_expect(&l, 1));
	weft_net_lobby_forget(&l, 1);
	weft_net_lobby_revive(&l, 1);
	CHECK(!weft_net_lobby_expect(&l, 1));
	weft_net_lobby_work(&l);
	CHECK_EQ(l.n_expected, 1);
	CHECK(!weft_net_lobby_wanted(&l));
	CHECK(weft_net_lobby_counts_right(&l));
	close(door);
	end();
}

static void case_hello_at_once(void)
{
	char hello[2 * WEFT_AUTH_HELLO];
	begin(2);
	at_once = true;
	CHECK(weft_net_lobby_want(&l, 1));
	weft_net_lobby_work(&l);
	int fd = accept4(door, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	CHECK(fd >= 0);
	CHECK_EQ(recv(fd, hello, sizeof hello, MSG_DONTWAIT), WEFT_AUTH_HELLO);
	close(fd);
	close(door);
	end();
}

static void look(void)
{
	struct epoll_event ev[8];
	for (int n; (n = weft_net_hub_look(&hub, ev, 8)) > 0;)
		for (int i = 0; i < n; i++)
			weft_net_lobby_event(&l, ev[i].data.u64, ev[i].events);
	weft_net_lobby_work(&l);
}

/*
 * The dialer is thrown out again and again, since it did not run in time, and by then all its time
 * to connect is over: no reason to give up a peer that is alive, unless it happens forty times.
 */
static void case_starved(void)
{
	begin(2);
	at_once = true;
	CHECK(weft_net_lobby_want(&l, 1));
	for (unsigned i = 1; i <= 40; i++) {
		CHECK_EQ(lost, 0);
		l.peers[1].next_ns = 0;
		weft_net_lobby_work(&l);
		CHECK_EQ(l.peers[1].attempts, i);
		l.peers[1].began_ns = 1;
		int fd = accept4(door, NULL, NULL, SOCK_CLOEXEC);
		CHECK(fd >= 0);
		close(fd);
		look();
		CHECK_EQ(l.peers[1].answered, i);
	}
	CHECK_EQ(lost, 1);
	close(door);
	end();
}

/* The peer has gone, and its port is ours: no process listens there. */
static void case_own_end(void)
{
	begin(2);
	to_self = true;
	CHECK(weft_net_lobby_want(&l, 1));
	weft_net_lobby_work(&l);
	look();
	CHECK_EQ(l.peers[1].state, WEFT_LOBBY_WAITING);
	l.peers[1].began_ns = 1;
	l.peers[1].next_ns = 0;
	weft_net_lobby_work(&l);
	look();
	CHECK_EQ(lost, 1);
	CHECK(l.peers[1].refused);
	to_self = false;
	close(door);
	end();
}

/* A guest that says `hello`, or nothing yet. */
static int enter(struct weft_auth *a, bool hello)
{
	char why[96];
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(fd >= 0 && !connect(fd, (struct sockaddr *)&door_name, door_len));
	weft_net_auth_init(a, &theirs, fd, true, 0);
	if (hello)
		CHECK_EQ(weft_net_auth_step(a, why, sizeof why), WEFT_AGAIN);
	unsigned n = l.n_guests;
	look();
	CHECK_EQ(l.n_guests, n < WEFT_LOBBY_GUESTS ? n + 1 : n);
	return fd;
}

static void pass(unsigned seconds)
{
	for (int i = 0; i < WEFT_LOBBY_GUESTS; i++)
		l.guests[i].since_ns -= seconds * 1000000000ull;
	look();
}

/* A rank proves itself after it was lost here (the launcher may report its end first): refused, but no attack. */
static void case_gone(void)
{
	struct weft_auth a;
	char why[96];
	uint64_t refused = weft_counter_sum(WEFT_CNT_AUTH_REFUSED);
	begin(2);
	CHECK_EQ(weft_net_lobby_listen(&l, door), WEFT_OK);
	int fd = enter(&a, true);
	CHECK(weft_net_lobby_died(&l, 1));
	look();
	CHECK_EQ(lost, 1);
	CHECK_EQ(weft_net_auth_step(&a, why, sizeof why), WEFT_AGAIN);
	look();
	CHECK_EQ(weft_net_auth_step(&a, why, sizeof why), WEFT_ERR_PEER);
	CHECK_EQ(linked, 0);
	CHECK_EQ(l.n_guests, 0);
	CHECK_EQ(weft_counter_sum(WEFT_CNT_AUTH_REFUSED), refused);
	close(fd);
	end();
}

/* Both sides dialed, one connection came through and was then closed by agreement: the attempt that was given up meanwhile
 * is not taken for a new one, and the peer may come again. */
static void case_rested(void)
{
	struct weft_auth a, b;
	char why[96];
	begin(2);
	CHECK_EQ(weft_net_lobby_listen(&l, door), WEFT_OK);
	int first = enter(&a, true), other = enter(&b, true);
	CHECK_EQ(weft_net_auth_step(&a, why, sizeof why), WEFT_AGAIN);
	look();
	CHECK_EQ(linked, 1);
	CHECK_EQ(l.n_guests, 1);
	/* Its proof was on the way. */
	CHECK_EQ(weft_net_auth_step(&b, why, sizeof why), WEFT_AGAIN);
	close(other);
	weft_net_lobby_forget(&l, 1);
	weft_net_lobby_revive(&l, 1);
	weft_net_lobby_show_out(&l, 1);
	CHECK_EQ(l.n_guests, 0);
	close(first);
	first = enter(&a, true);
	CHECK_EQ(weft_net_auth_step(&a, why, sizeof why), WEFT_AGAIN);
	look();
	CHECK_EQ(linked, 2);
	close(first);
	end();
}

static void case_patience(void)
{
	struct weft_auth a, b;
	char why[96];
	begin(2);
	CHECK_EQ(weft_net_lobby_listen(&l, door), WEFT_OK);
	int silent = enter(&a, false), greeted = enter(&b, true);
	pass(101);
	CHECK_EQ(l.n_guests, 1); /* the silent guest has to go */
	close(silent);
	/* It proves itself after ten times what it should take, ... */
	pass(899);
	CHECK_EQ(weft_net_auth_step(&b, why, sizeof why), WEFT_AGAIN);
	look();
	CHECK_EQ(weft_net_auth_step(&b, why, sizeof why), WEFT_OK);
	CHECK_EQ(linked, 1);
	CHECK_EQ(l.n_guests, 0);
	close(greeted);
	/* ... so others may be as slow, ... */
	silent = enter(&a, false);
	greeted = enter(&b, true);
	pass(1100);
	CHECK_EQ(l.n_guests, 2);
	/* ... but not for ever. */
	pass(200);
	CHECK_EQ(l.n_guests, 0);
	close(silent);
	close(greeted);
	end();
}

/* Strangers that are gone again, or stay and say nothing, do not keep us looking closely; a guest
 * that goes on does. */
static void case_calm(void)
{
	struct weft_auth a;
	char why[96];
	begin(2);
	CHECK_EQ(weft_net_lobby_listen(&l, door), WEFT_OK);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(fd >= 0 && !connect(fd, (struct sockaddr *)&door_name, door_len));
	close(fd);
	look();
	CHECK(!l.n_guests && !weft_net_lobby_busy(&l));
	fd = enter(&a, false);
	CHECK(weft_net_lobby_busy(&l)); /* its hello may come right behind */
	for (int i = 0; i < 8; i++)
		weft_net_lobby_work(&l);
	CHECK(l.n_guests == 1 && !weft_net_lobby_busy(&l));
	CHECK_EQ(weft_net_auth_step(&a, why, sizeof why), WEFT_AGAIN);
	look();
	CHECK(weft_net_lobby_busy(&l));
	close(fd);
	end();
}

/* Greeted strangers that fill the place go when they have had their time. */
static void case_full(void)
{
	struct weft_auth a;
	int fd[WEFT_LOBBY_GUESTS + 1];
	begin(2);
	CHECK_EQ(weft_net_lobby_listen(&l, door), WEFT_OK);
	for (int i = 0; i < WEFT_LOBBY_GUESTS; i++)
		fd[i] = enter(&a, true);
	pass(101);
	CHECK_EQ(l.n_guests, WEFT_LOBBY_GUESTS);
	l.guests[7].since_ns -= 60000000000ull; /* the oldest */
	fd[WEFT_LOBBY_GUESTS] = enter(&a, true);
	CHECK_EQ(l.n_guests, WEFT_LOBBY_GUESTS);
	CHECK(weft_clock_ns() - l.guests[7].since_ns < 100000000000ull);
	for (int i = 0; i <= WEFT_LOBBY_GUESTS; i++)
		close(fd[i]);
	end();
}

int main(void)
{
	CHECK_EQ(weft_setting_set(WEFT_SET_HANDSHAKE_TIMEOUT, "100"), WEFT_OK);
	weft_log_level = -1; /* the refusals are meant to be logged */
	case_dials();
	case_expected();
	case_expected_again();
	case_hello_at_once();
	case_starved();
	case_own_end();
	case_gone();
	case_rested();
	case_patience();
	case_calm();
	case_full();
	return 0;
}
