/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Strangers at the door and a peer gone mad.  Strangers connect to the listeners of tcp and shm,
 * say nothing, say nonsense, know a wrong secret or claim a rank that is there already: each is
 * refused and counted, the job's own connection works on.  A peer that proved itself and then sends
 * frames that make no sense is lost with one line; nothing is delivered, nothing hangs, and what
 * was to be filled is not written to any more.
 */
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include "base/counters.h"
#include "base/log.h"
#include "base/settings.h"
#include "net/bundle/bundle_int.h"
#include "net/shm/shm_int.h"
#include "net/tcp/tcp_int.h"
#include "net/victim.h"

/* An honest hello, and then a guess instead of a proof. */
static void guess(struct victim *v)
{
	struct weft_net_job job = {.rank = 2, .size = 4, .jobid = "victim", .secret = wrong_secret};
	struct weft_auth a;
	char why[96];
	uint8_t proof[WEFT_AUTH_PROOF] = {1};
	int fd = dial(v);
	weft_net_auth_init(&a, &job, fd, true, 0);
	CHECK_EQ(weft_net_auth_step(&a, why, sizeof why), WEFT_AGAIN);
	CHECK(send(fd, proof, sizeof proof, MSG_NOSIGNAL) == (ssize_t)sizeof proof);
	uint64_t end = weft_clock_ns() + 120000000000ull;
	while (!is_closed(fd)) {
		CHECK(weft_clock_ns() < end);
		v->driver->poll(v->net);
	}
	close(fd);
}

/* A second rank of the job, in its own process, that sends a packet every millisecond. */
static pid_t start_peer(struct victim *v)
{
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid)
		return pid;
	struct victim me;
	alarm(300);
	open_rank(&me, v->driver, 1);
	CHECK_EQ(me.driver->reach(me.net, 0, v->address), WEFT_OK);
	for (;;) {
		char head[WEFT_NET_HEAD] = {0};
		struct iovec iov = {head, 8};
		if (me.driver->post(me.net, 0, head, &iov, 1, 8, NULL) == WEFT_POST_DOWN)
			_exit(me.downs ? 0 : 1);
		poll_ms(&me, 1);
	}
}

static void refuses_strangers(const struct weft_driver *d)
{
	static const char *const said[] = {"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
					   "SSH-2.0-OpenSSH\r\n", "\x16\x03\x01\x02\x00\x01\x00",
					   "\n", "weftweft"};
	struct victim v;
	open_rank(&v, d, 0);
	pid_t pid = start_peer(&v);
	POLL_UNTIL(&v, v.packets > 3);

	/* A port scan changes nothing. */
	for (int i = 0; i < 100; i++) {
		close(dial(&v));
		v.driver->poll(v.net);
	}
	uint64_t before = weft_counter_sum(WEFT_CNT_AUTH_REFUSED);
	for (size_t i = 0; i < weft_countof(said); i++) {
		int fd = dial(&v);
		CHECK(send(fd, said[i], strlen(said[i]), MSG_NOSIGNAL) > 0);
		POLL_UNTIL(&v, is_closed(fd));
		close(fd);
	}
	CHECK_EQ(weft_counter_sum(WEFT_CNT_AUTH_REFUSED) - before, weft_countof(said));

	/* Wrong secret; right secret but taken, impossible, or the victim's own rank. */
	int ranks[] = {1, 4, -1, 0};
	for (size_t i = 0; i < weft_countof(ranks); i++) {
		int fd = dial(&v);
		CHECK(knock(&v, fd, ranks[i], secret) != WEFT_OK);
		close(fd);
	}
	int fd = dial(&v);
	CHECK(knock(&v, fd, 2, wrong_secret) != WEFT_OK);
	close(fd);
	guess(&v);
	CHECK(weft_counter_sum(WEFT_CNT_AUTH_REFUSED) >= before + weft_countof(said) + 5);

	/* 200 that stay silent: bounded, and the job goes on. */
	int silent[200];
	int got = v.packets;
	for (size_t i = 0; i < weft_countof(silent); i++) {
		silent[i] = dial(&v);
		if (i % 16 == 0)
			poll_ms(&v, 1);
	}
	POLL_UNTIL(&v, v.packets > got + 20);
	CHECK(is_closed(silent[0]));
	/* The rest goes when its time is up. */
	POLL_UNTIL(&v, is_closed(silent[weft_countof(silent) - 1]));
	for (size_t i = 0; i < weft_countof(silent); i++)
		close(silent[i]);

	CHECK_EQ(v.downs, 0);
	got = v.packets;
	POLL_UNTIL(&v, v.packets > got + 3);
	while (v.driver->drain(v.net) == WEFT_AGAIN)
		v.driver->poll(v.net);
	v.driver->close(v.net);
	int status;
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK_EQ(status, 0);
}

static void frame(uint8_t out[WEFT_TCP_FRAME], uint32_t len)
{
	uint8_t head[WEFT_NET_HEAD] = {7};
	weft_net_tcp_frame_write(out, len, head);
}

/* Proves itself as rank 2, sends bytes, and sees how the victim takes them. */
static void mad_tcp(const void *bytes, size_t n, bool hang_up, int packets, weft_err want)
{
	struct victim v;
	open_rank(&v, &weft_net_driver_tcp, 0);
	int fd = dial(&v);
	CHECK_EQ(knock(&v, fd, 2, secret), WEFT_OK);
	CHECK(send(fd, bytes, n, MSG_NOSIGNAL) == (ssize_t)n);
	if (hang_up)
		shutdown(fd, SHUT_WR);
	POLL_UNTIL(&v, v.downs);
	CHECK_EQ(v.downs, 1);
	CHECK_EQ(v.packets, packets);
	CHECK_EQ(v.down_err, want);
	CHECK(strstr(v.why, "rank 2"));
	v.driver->close(v.net);
	close(fd);
}

static void mad_tcp_peers(uint64_t seed)
{
	uint8_t f[4 * WEFT_TCP_FRAME];
	memset(f, 0, sizeof f);
	mad_tcp(f, sizeof f, false, 0, WEFT_ERR_PROTO);
	memset(f, 0xff, sizeof f);
	mad_tcp(f, sizeof f, false, 0, WEFT_ERR_PROTO);
	/* A good packet, then a length beyond all bounds, well checked. */
	frame(f, 0);
	frame(f + WEFT_TCP_FRAME, WEFT_TCP_MAX_PAYLOAD + 1);
	mad_tcp(f, 2 * WEFT_TCP_FRAME, false, 1, WEFT_ERR_PROTO);
	/* Several packets in a frame: too few, too many, too long, too much in all. */
	static const uint32_t wild[][2] = {{0, 8}, {1, 8}, {129, 8}, {2, 1025}, {17, 1000}};
	for (size_t i = 0; i < weft_countof(wild); i++) {
		frame(f, weft_net_tcp_run_word(wild[i][0], wild[i][1]));
		mad_tcp(f, sizeof f, false, 0, WEFT_ERR_PROTO);
	}
	/* All of three, then one byte too few of three. */
	frame(f, weft_net_tcp_run_word(3, 8));
	mad_tcp(f, WEFT_TCP_FRAME + 24, true, 3, WEFT_ERR_PEER);
	mad_tcp(f, WEFT_TCP_FRAME + 23, true, 0, WEFT_ERR_PEER);
	/* A bit of the head flipped. */
	frame(f, 0);
	f[20] ^= 1;
	mad_tcp(f, WEFT_TCP_FRAME, false, 0, WEFT_ERR_PROTO);
	/* The end within a head, within a small payload, within a large one: never delivered. */
	frame(f, 0);
	mad_tcp(f, WEFT_TCP_FRAME - 1, true, 0, WEFT_ERR_PEER);
	frame(f, 64);
	mad_tcp(f, sizeof f - WEFT_TCP_FRAME - 1, true, 0, WEFT_ERR_PEER);
	frame(f, 1000000);
	mad_tcp(f, sizeof f, true, 0, WEFT_ERR_PEER);
	/* A plain end without goodbye, and one with. */
	frame(f, 0);
	mad_tcp(f, WEFT_TCP_FRAME, true, 1, WEFT_ERR_PEER);
	frame(f + WEFT_TCP_FRAME, WEFT_TCP_BYE);
	mad_tcp(f, 2 * WEFT_TCP_FRAME, true, 1, WEFT_OK);
	for (int i = 0; i < 50; i++) {
		for (size_t k = 0; k < sizeof f; k++)
			f[k] = (uint8_t)weft_rand_next(&seed);
		mad_tcp(f, sizeof f, true, 0, WEFT_ERR_PROTO);
	}
}

/* Frames that come one byte at a time are frames all the same. */
static void slow_tcp(void)
{
	struct victim v;
	uint8_t f[3 * WEFT_TCP_FRAME + 100];
	open_rank(&v, &weft_net_driver_tcp, 0);
	int fd = dial(&v);
	CHECK_EQ(knock(&v, fd, 2, secret), WEFT_OK);
	memset(f, 1, sizeof f);
	frame(f, 100);
	frame(f + WEFT_TCP_FRAME + 100, 0);
	frame(f + 2 * WEFT_TCP_FRAME + 100, WEFT_TCP_BYE);
	for (size_t i = 0; i < sizeof f; i++) {
		CHECK(send(fd, f + i, 1, MSG_NOSIGNAL) == 1);
		v.driver->poll(v.net);
	}
	POLL_UNTIL(&v, v.downs);
	CHECK_EQ(v.packets, 2);
	CHECK_EQ(v.bytes, 100);
	CHECK_EQ(v.down_err, WEFT_OK);
	v.driver->close(v.net);
	close(fd);
}

/* ---- a bundle's peer ------------------------------------------------------------------------ */

#define LARGE 200000u

static int dial_rail(const struct victim *v, const char *ip)
{
	struct sockaddr_in sa = {.sin_family = AF_INET};
	const char *at = strstr(v->address, ip);
	unsigned port;
	CHECK(at && sscanf(at + strlen(ip), "/%*u/%u", &port) == 1);
	CHECK(inet_pton(AF_INET, ip, &sa.sin_addr) == 1);
	sa.sin_port = htons((uint16_t)port);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(fd >= 0 && connect(fd, (struct sockaddr *)&sa, sizeof sa) == 0);
	return fd;
}

static void send_unit(int fd, struct weft_bundle_head h, uint32_t len, const void *data, size_t n)
{
	uint8_t f[WEFT_TCP_FRAME];
	weft_net_tcp_frame_write(f, len, &h);
	CHECK(send(fd, f, sizeof f, MSG_NOSIGNAL) == (ssize_t)sizeof f);
	CHECK(send(fd, data, n, MSG_NOSIGNAL) == (ssize_t)n);
}

/* In the middle of a payload on one rail, another rail talks nonsense.  The peer is lost, the place
 * of the payload is the program's again, and nothing is written there any more. */
static void mad_on_two_rails(void)
{
	struct weft_bundle_rail rails[WEFT_BUNDLE_RAILS];
	struct weft_bundle_stats s[2];
	struct weft_bundle_begin begin = {.len = LARGE};
	struct victim v;
	unsigned n;
	int fd[2];
	CHECK_EQ(weft_net_bundle_parse("tcp:127.0.0.2,tcp:127.0.0.3", rails, &n), WEFT_OK);
	weft_net_bundle_plan(rails, n);
	open_rank(&v, &weft_net_driver_bundle, 0);
	CHECK(v.into = calloc(1, LARGE));
	CHECK_EQ(v.driver->reach(v.net, 2, v.address), WEFT_OK); /* never dialed */
	fd[0] = dial_rail(&v, "127.0.0.2");
	fd[1] = dial_rail(&v, "127.0.0.3");
	/* Before we greet on one rail: then the other is dialed from there. */
	for (int i = 0; i < 2; i++)
		CHECK_EQ(knock(&v, fd[i], 2, secret), WEFT_OK);
	for (int i = 0; i < 2; i++)
		send_unit(fd[i], (struct weft_bundle_head){.kind = WEFT_BUNDLE_HELLO}, 0, "", 0);
	POLL_UNTIL(&v, (weft_net_bundle_stats(v.net, s, 2), s[0].up && s[1].up));

	uint8_t *data = malloc(LARGE);
	CHECK(data);
	memset(data, 7, LARGE);
	send_unit(fd[1], (struct weft_bundle_head){.kind = WEFT_BUNDLE_BEGIN}, sizeof begin, &begin,
		  sizeof begin);
	POLL_UNTIL(&v, v.into_iov.iov_len == LARGE);
	send_unit(fd[1], (struct weft_bundle_head){.kind = WEFT_BUNDLE_PART, .number = 1}, LARGE,
		  data, LARGE / 4);
	POLL_UNTIL(&v, v.into[LARGE / 4 - 1] == 7);
	/* The first rail is polled first. */
	CHECK(send(fd[1], data, LARGE / 4, MSG_NOSIGNAL) == LARGE / 4);
	send_unit(fd[0], (struct weft_bundle_head){.kind = 77}, 0, "", 0);
	POLL_UNTIL(&v, v.downs);
	CHECK_EQ(v.down_err, WEFT_ERR_PROTO);
	CHECK_EQ(v.failed, 1);
	CHECK_EQ(v.packets, 0);
	for (size_t i = 0; i < LARGE; i++)
		CHECK(!v.into[i]);
	v.driver->close(v.net);
	for (int i = 0; i < 2; i++)
		close(fd[i]);
	free(data);
	free(v.into);
}

/* Greets shm with something wrong and counts how it ends. */
static void mad_shm(const void *bytes, size_t n, const int *fds, unsigned n_fds)
{
	struct victim v;
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(4 * sizeof(int))];
	} control = {0};
	struct iovec iov = {(void *)(uintptr_t)bytes, n};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	open_rank(&v, &weft_net_driver_shm, 0);
	int fd = dial(&v);
	CHECK_EQ(knock(&v, fd, 2, secret), WEFT_OK);
	if (n_fds) {
		msg.msg_control = control.buf;
		msg.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
		memcpy(CMSG_DATA(c), fds, n_fds * sizeof(int));
	}
	if (n)
		CHECK(sendmsg(fd, &msg, MSG_NOSIGNAL) == (ssize_t)n);
	else
		shutdown(fd, SHUT_RDWR);
	POLL_UNTIL(&v, v.downs);
	CHECK_EQ(v.downs, 1);
	CHECK(v.down_err != WEFT_OK);
	v.driver->close(v.net);
	close(fd);
}

/* The greeting as shm_link.c has it. */
struct greeting {
	uint32_t magic, flags, slots, data, max_payload, inbox_bytes, narrow, none;
	uint64_t nonce_addr;
	uint8_t nonce[16];
};

static void mad_shm_peers(void)
{
	struct greeting g = {.magic = 0x77736d33u,
			     .slots = 256,
			     .data = 8 * WEFT_SHM_MAX_PAYLOAD,
			     .max_payload = WEFT_SHM_MAX_PAYLOAD,
			     .inbox_bytes = sizeof(struct weft_shm_inbox)};
	struct weft_ring_shape shape = {.slots = 256, .data = 8 * WEFT_SHM_MAX_PAYLOAD};
	int unsealed = memfd_create("x", MFD_CLOEXEC);
	g.narrow = 16384;
	shape.narrow = g.narrow;
	CHECK(unsealed >= 0 && ftruncate(unsealed, (off_t)weft_net_ring_bytes(shape)) == 0);
	int small = -1, pipe_fd[2];
	void *map;
	CHECK_EQ(weft_net_shm_memory_create(4096, &small, &map), WEFT_OK);
	weft_net_shm_memory_unmap(map, 4096);
	CHECK(pipe(pipe_fd) == 0);

	mad_shm(NULL, 0, NULL, 0);
	mad_shm("x", 1, NULL, 0);
	mad_shm(&g, sizeof g, NULL, 0);
	mad_shm(&g, sizeof g, (int[]){small}, 1);
	mad_shm(&g, sizeof g, (int[]){small, small, small, small}, 4);
	mad_shm(&g, sizeof g, (int[]){unsealed, small, pipe_fd[1]}, 3);
	mad_shm(&g, sizeof g, (int[]){small, small, pipe_fd[1]}, 3);
	mad_shm(&g, sizeof g, (int[]){pipe_fd[0], pipe_fd[1], pipe_fd[1]}, 3);
	struct greeting bad = g;
	bad.slots = 0x80000000u;
	mad_shm(&bad, sizeof bad, (int[]){small, small, pipe_fd[1]}, 3);
	bad = g;
	bad.data = 3;
	mad_shm(&bad, sizeof bad, (int[]){small, small, pipe_fd[1]}, 3);
	bad = g;
	bad.magic = 0;
	mad_shm(&bad, sizeof bad, (int[]){small, small, pipe_fd[1]}, 3);

	/* All is right but the doorbell: another kind of file, one that blocks. */
	int ring = -1, inbox = -1, blocks = eventfd(0, EFD_CLOEXEC);
	CHECK(blocks >= 0);
	CHECK_EQ(weft_net_shm_memory_create(weft_net_ring_bytes(shape), &ring, &map), WEFT_OK);
	weft_net_shm_memory_unmap(map, weft_net_ring_bytes(shape));
	CHECK_EQ(weft_net_shm_memory_create(sizeof(struct weft_shm_inbox), &inbox, &map), WEFT_OK);
	weft_net_shm_memory_unmap(map, sizeof(struct weft_shm_inbox));
	mad_shm(&g, sizeof g, (int[]){ring, inbox, pipe_fd[1]}, 3);
	mad_shm(&g, sizeof g, (int[]){ring, inbox, blocks}, 3);
}

int main(int argc, char **argv)
{
	uint64_t seed = test_seed(argc, argv);
	alarm(300);
	CHECK_EQ(weft_setting_set(WEFT_SET_HANDSHAKE_TIMEOUT, "1"), WEFT_OK);
	weft_log_level = -1; /* the lines are meant to come; a user would see them */
	refuses_strangers(&weft_net_driver_tcp);
	refuses_strangers(&weft_net_driver_shm);
	mad_tcp_peers(seed);
	slow_tcp();
	mad_shm_peers();
	mad_on_two_rails();
	return 0;
}
