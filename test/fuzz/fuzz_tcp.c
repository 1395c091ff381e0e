/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz_tcp.c - the stream of a peer that has proven itself: frames, whole and cut, and what is
 * none; and a connection that says this instead of a handshake.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include "fuzz.h"
#include "net/auth.h"
#include "net/tcp/tcp_int.h"

#define RANKS 500

static const uint8_t secret[32] = {5};
static struct weft_net *net;
static struct sockaddr_in where;
static int next_rank;
static bool down;
static char place[4096];
static struct iovec piece;

static void on_packet(void *arg, int peer, const void *head, const void *payload, size_t len)
{
	unsigned sum = 0;
	for (size_t i = 0; i < len; i++)
		sum += ((const uint8_t *)payload)[i];
	(void)sum;
}

static void on_run(void *arg, int peer, const void *head, const void *payload, size_t len,
		   unsigned n)
{
	CHECK(n && n <= WEFT_NET_RUN_MAX);
	for (unsigned i = 0; i < n; i++)
		on_packet(arg, peer, head, (const char *)payload + i * weft_net_run_apart(len),
			  len);
}

static void on_place(void *arg, int peer, const void *head, size_t len, struct weft_net_sink *sink)
{
	piece = (struct iovec){place, len < sizeof place ? len : sizeof place};
	*sink = (struct weft_net_sink){.iov = &piece, .n = 1, .room = piece.iov_len};
}

static void on_placed(void *arg, int peer, void *cookie, weft_err err)
{
}

static void on_ready(void *arg, int peer)
{
}

static void on_down(void *arg, int peer, weft_err err, const char *why)
{
	down = true;
}

static void open_net(void)
{
	static const struct weft_net_events events = {.packet = on_packet,
						      .run = on_run,
						      .place = on_place,
						      .placed = on_placed,
						      .sent = on_placed,
						      .ready = on_ready,
						      .down = on_down};
	static const struct weft_net_job job = {.size = RANKS, .jobid = "fuzz", .secret = secret};
	char address[2048];
	unsigned port;

	if (net)
		weft_net_driver_tcp.close(net);
	CHECK(!weft_net_driver_tcp.open(&job, &events, &net));
	CHECK(!weft_net_driver_tcp.address(net, address, sizeof address));
	const char *at = strstr(address, " 127.0.0.1/");
	CHECK(at && sscanf(at, " 127.0.0.1/%*u/%u", &port) == 1);
	where = (struct sockaddr_in){.sin_family = AF_INET,
				     .sin_port = htons((uint16_t)port),
				     .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	next_rank = 1;
}

static int dial(void)
{
	static uint32_t turn;
	/* Each from another address: the kernel keeps a closed connection's port for a minute, and
	 * one address has 28,000. */
	struct sockaddr_in from = {.sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK + turn++ % 200)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
	CHECK(fd >= 0 && !setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on));
	CHECK(!bind(fd, (struct sockaddr *)&from, sizeof from));
	CHECK(!connect(fd, (struct sockaddr *)&where, sizeof where));
	return fd;
}

static void prove(int fd)
{
	struct weft_net_job job = {
		.rank = next_rank++, .size = RANKS, .jobid = "fuzz", .secret = secret};
	struct weft_auth a;
	char why[96];
	weft_err err;
	weft_net_auth_init(&a, &job, fd, true, 0);
	/* Ends: loopback and a driver that answers. */
	while ((err = weft_net_auth_step(&a, why, sizeof why)) == WEFT_AGAIN)
		(void)weft_net_driver_tcp.poll(net);
	CHECK_EQ(err, WEFT_OK);
}

/* Frames of the input's own making: an honest check over a length that may lie. */
static void send_frames(int fd, struct fuzz_input *in)
{
	while (in->left) {
		uint8_t frame[WEFT_TCP_FRAME], head[WEFT_NET_HEAD], payload[512];
		uint32_t len;
		unsigned what = fuzz_byte(in);
		fuzz_take(in, &len, sizeof len);
		fuzz_take(in, head, 4);
		if (what & 1)
			len %= 512;
		uint32_t bytes = what & 1 ? len : 0;
		if (what & 4) { /* several packets, as many as the payload has room for, or not */
			len = weft_net_tcp_run_word(len % 140, what & 1 ? 8u : len >> 16 & 0x7ff);
			bytes = what & 8 ? 512 : bytes;
		}
		weft_net_tcp_frame_write(frame, len, head);
		if (what & 2)
			frame[fuzz_byte(in) % WEFT_TCP_FRAME] ^= 1;
		(void)!send(fd, frame, WEFT_TCP_FRAME, MSG_NOSIGNAL | MSG_DONTWAIT);
		fuzz_take(in, payload, bytes);
		(void)!send(fd, payload, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
		(void)weft_net_driver_tcp.poll(net);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};
	if (!net || next_rank >= RANKS - 1)
		open_net();
	unsigned how = fuzz_byte(&in) % 3;
	struct linger rst = {1, 0}; /* leaves no TIME_WAIT behind */
	int fd = dial();
	down = false;
	if (how)
		prove(fd);
	if (how == 2)
		send_frames(fd, &in);
	else if (in.left)
		(void)!send(fd, in.at, in.left, MSG_NOSIGNAL | MSG_DONTWAIT);
	for (int i = 0; i < 4; i++)
		(void)weft_net_driver_tcp.poll(net);
	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &rst, sizeof rst);
	close(fd);
	/* Ends: the end of the connection is an event. */
	while (how && !down)
		(void)weft_net_driver_tcp.poll(net);
	(void)weft_net_driver_tcp.poll(net);
	return 0;
}
