/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * victim.h - a rank that is talked to by hand: its driver, what came out above, a connection to its
 * door, and the handshake of a peer that knows the secret, or another one.
 *
 * One at a time in a program.
 */
#ifndef WEFT_TEST_NET_VICTIM_H
#define WEFT_TEST_NET_VICTIM_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "base/base.h"
#include "check.h"
#include "net/auth.h"
#include "net/driver.h"

static const uint8_t secret[32] = {9, 9, 9}, wrong_secret[32] = {9, 9, 8};

struct victim {
	const struct weft_driver *driver;
	struct weft_net *net;
	char address[2048];
	int packets, downs;
	size_t bytes;
	weft_err down_err;
	char why[256];
	uint8_t *into; /* a large payload's place, which is taken back after a failure */
	struct iovec into_iov;
	int failed;
	void (*each)(void); /* with each packet, if set */
};

static void on_packet(void *arg, int peer, const void *head, const void *payload, size_t len)
{
	struct victim *v = arg;
	v->packets++;
	v->bytes += len;
	if (v->each)
		v->each();
}

static void on_place(void *arg, int peer, const void *head, size_t len, struct weft_net_sink *sink)
{
	struct victim *v = arg;
	sink->n = 0; /* drop it */
	if (!v->into)
		return;
	v->into_iov = (struct iovec){v->into, len};
	*sink = (struct weft_net_sink){.iov = &v->into_iov, .n = 1, .room = len};
}

static void on_placed(void *arg, int peer, void *cookie, weft_err err)
{
	struct victim *v = arg;
	v->packets += err == WEFT_OK;
	if (!err || !v->into)
		return;
	v->failed++;
	memset(v->into, 0, v->into_iov.iov_len); /* no longer the driver's */
}

static void on_sent(void *arg, int peer, void *cookie, weft_err err)
{
}

static void on_ready(void *arg, int peer)
{
}

static void on_down(void *arg, int peer, weft_err err, const char *why)
{
	struct victim *v = arg;
	v->downs++;
	v->down_err = err;
	snprintf(v->why, sizeof v->why, "%s", why);
}

static inline void open_rank(struct victim *v, const struct weft_driver *d, int rank)
{
	static struct weft_net_job job;
	struct weft_net_events events = {.arg = v,
					 .packet = on_packet,
					 .place = on_place,
					 .placed = on_placed,
					 .sent = on_sent,
					 .ready = on_ready,
					 .down = on_down};
	job = (struct weft_net_job){.rank = rank, .size = 4, .jobid = "victim", .secret = secret};
	memset(v, 0, sizeof *v);
	v->driver = d;
	weft_err err = d->open(&job, &events, &v->net);
	if (err == WEFT_ERR_UNSUPPORTED)
		SKIP("the driver does not work here");
	CHECK_EQ(err, WEFT_OK);
	CHECK_EQ(d->address(v->net, v->address, sizeof v->address), WEFT_OK);
}

static inline void poll_ms(struct victim *v, unsigned ms)
{
	uint64_t end = weft_clock_ns() + ms * 1000000ull;
	while (weft_clock_ns() < end)
		v->driver->poll(v->net);
}

/* Polls until what is being waited for has come, two minutes at most. */
#define POLL_UNTIL(v, cond)                                                                        \
	do {                                                                                       \
		uint64_t end_ns = weft_clock_ns() + 120000000000ull;                               \
		while (!(cond)) {                                                                  \
			CHECK(weft_clock_ns() < end_ns);                                           \
			(v)->driver->poll((v)->net);                                               \
		}                                                                                  \
	} while (0)

static int dial(const struct victim *v)
{
	if (v->driver == &weft_net_driver_tcp) {
		struct sockaddr_in sa = {.sin_family = AF_INET,
					 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
		const char *at = strstr(v->address, " 127.0.0.1/");
		unsigned port;
		CHECK(at && sscanf(at, " 127.0.0.1/%*u/%u", &port) == 1);
		sa.sin_port = htons((uint16_t)port);
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		CHECK(fd >= 0 && connect(fd, (struct sockaddr *)&sa, sizeof sa) == 0);
		return fd;
	}
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	const char *name = strrchr(v->address, ' ') + 1;
	memcpy(un.sun_path + 1, name, strlen(name));
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(fd >= 0);
	CHECK(connect(fd, (struct sockaddr *)&un,
		      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name))) == 0);
	return fd;
}

/* Has the other side closed?  (Reads away what it said.) */
static inline bool is_closed(int fd)
{
	char buf[512];
	ssize_t n;
	while ((n = recv(fd, buf, sizeof buf, MSG_DONTWAIT)) > 0)
		;
	return n == 0 || (errno != EAGAIN && errno != EINTR);
}

/* The library's own handshake, as `rank`, with that secret. */
static inline weft_err knock(struct victim *v, int fd, int rank, const uint8_t *s)
{
	struct weft_net_job job = {.rank = rank, .size = 4, .jobid = "victim", .secret = s};
	struct weft_auth a;
	char why[96];
	weft_err err = WEFT_AGAIN;
	uint64_t end = weft_clock_ns() + 120000000000ull;
	weft_net_auth_init(&a, &job, fd, true, 0);
	while ((err = weft_net_auth_step(&a, why, sizeof why)) == WEFT_AGAIN) {
		CHECK(weft_clock_ns() < end);
		v->driver->poll(v->net);
	}
	return err;
}

#endif
