/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_wire.c - this build still speaks the wire of its version's release: a peer made of recorded bytes, of which none is
 * computed by the library's own code, meets it over tcp, proves itself, sends a message and receives one.
 *
 *   test_wire [--record]     prints the rows below, for a new version
 *
 * A change of the handshake, of a frame or of a packet's head fails here.  Then the version goes up
 * (WEFT_AUTH_VERSION; doc/versions.md says when), and the rows of the new one replace those below.
 */
#include <sodium.h>
#include <poll.h>
#include <sys/socket.h>
#include "base/log.h"
#include "base/settings.h"
#include "net/tcp/tcp_int.h"
#include "net/auth.h"
#include "net/victim.h"

/* ---- version 5, as recorded --------------------------------------------------------------- */

#define RECORDED_VERSION 5

/* Of rank 1, for rank 0 of a job with the id "victim"; the nonce is 32 times 0xa5. */
static const char hello_hex[] =
	"776566740d0a1a000500000000000000bb3883053f436c66c1ea7cdc252e1e20b70cc578be329cc906c364fece"
	"ad98b6"
	"0100000000000000a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5";
static const char accepted_hex[] = "0100000000000000";
/* A packet with the head 1, 2, ... 24 and the payload "wire of version 5", and an orderly farewell. */
static const char frame_hex[] = "11000000375bed8b0102030405060708090a0b0c0d0e0f101112131415161718"
				"77697265206f662076657273696f6e2035";
static const char bye_hex[] = "ffffffff24536400000000000000000000000000000000000000000000000000";

/* ---- the peer ----------------------------------------------------------------------------- */

#define PAYLOAD "wire of version 5"

static uint8_t got[256];
static size_t got_len;

static void on_payload(void *arg, int peer, const void *head, const void *payload, size_t len)
{
	struct victim *v = arg;
	(void)peer;
	v->packets++;
	memcpy(got, head, WEFT_NET_HEAD);
	memcpy(got + WEFT_NET_HEAD, payload, len);
	got_len = WEFT_NET_HEAD + len;
}

static void open_victim(struct victim *v)
{
	static struct weft_net_job job;
	struct weft_net_events events = {.arg = v,
					 .packet = on_payload,
					 .place = on_place,
					 .placed = on_placed,
					 .sent = on_sent,
					 .ready = on_ready,
					 .down = on_down};
	job = (struct weft_net_job){.rank = 0, .size = 4, .jobid = "victim", .secret = secret};
	memset(v, 0, sizeof *v);
	v->driver = &weft_net_driver_tcp;
	CHECK_EQ(v->driver->open(&job, &events, &v->net), WEFT_OK);
	CHECK_EQ(v->driver->address(v->net, v->address, sizeof v->address), WEFT_OK);
}

static size_t bytes_of(const char *hex, uint8_t *out, size_t size)
{
	size_t n;
	CHECK_EQ(sodium_hex2bin(out, size, hex, strlen(hex), NULL, &n, NULL), 0);
	return n;
}

/* Reads exactly n bytes while the library polls. */
static void take(struct victim *v, int fd, uint8_t *in, size_t n)
{
	uint64_t end = weft_clock_ns() + 120000000000ull;
	for (size_t have = 0; have < n;) {
		CHECK(weft_clock_ns() < end);
		v->driver->poll(v->net);
		ssize_t k = recv(fd, in + have, n - have, MSG_DONTWAIT);
		CHECK(k != 0);
		have += k > 0 ? (size_t)k : 0;
	}
}

static void give(int fd, const uint8_t *out, size_t n)
{
	CHECK_EQ(send(fd, out, n, MSG_NOSIGNAL), n);
}

static void same(const char *what, const uint8_t *is, const uint8_t *want, size_t n)
{
	char hex[1024];
	if (memcmp(is, want, n) == 0)
		return;
	fprintf(stderr,
		"%s is not what version %d says: %s\nA change of the wire needs a new "
		"WEFT_AUTH_VERSION: see the top of this "
		"file\n",
		what, RECORDED_VERSION, sodium_bin2hex(hex, sizeof hex, is, n));
	exit(1);
}

static void prove(char role, const uint8_t *initiator, const uint8_t *acceptor, uint8_t proof[32])
{
	crypto_auth_hmacsha256_state st;
	crypto_auth_hmacsha256_init(&st, secret, 32);
	crypto_auth_hmacsha256_update(&st, (const uint8_t *)&role, 1);
	crypto_auth_hmacsha256_update(&st, initiator, 88);
	crypto_auth_hmacsha256_update(&st, acceptor, 88);
	crypto_auth_hmacsha256_final(&st, proof);
}

static void shake_hands(struct victim *v, int fd)
{
	uint8_t mine[88], theirs[88 + 32], want[88], proof[32], verdict[8], accepted[8];
	CHECK_EQ(bytes_of(hello_hex, mine, sizeof mine), 88);
	CHECK_EQ(bytes_of(accepted_hex, accepted, sizeof accepted), 8);
	give(fd, mine, sizeof mine);
	take(v, fd, theirs, sizeof theirs);
	/* The same but for the ranks, which change places, and the nonce. */
	memcpy(want, mine, 48);
	memcpy(want + 48, mine + 52, 4);
	memcpy(want + 52, mine + 48, 4);
	same("the acceptor's hello", theirs, want, 56);
	prove('A', mine, theirs, proof);
	same("the acceptor's proof", theirs + 88, proof, sizeof proof);
	prove('I', mine, theirs, proof);
	give(fd, proof, sizeof proof);
	take(v, fd, verdict, sizeof verdict);
	same("the verdict", verdict, accepted, sizeof accepted);
}

static void talk(struct victim *v, int fd)
{
	uint8_t frame[32 + sizeof PAYLOAD], in[sizeof frame], bye[32];
	size_t n = bytes_of(frame_hex, frame, sizeof frame);
	CHECK_EQ(n, 32 + sizeof PAYLOAD - 1);
	give(fd, frame, n);
	POLL_UNTIL(v, v->packets > 0);
	CHECK_EQ(got_len, n - 8);
	same("the packet", got, frame + 8, n - 8);

	struct iovec iov = {frame + 32, n - 32};
	CHECK_EQ(v->driver->post(v->net, 1, frame + 8, &iov, 1, n - 32, NULL), WEFT_POST_DONE);
	take(v, fd, in, n);
	same("the frame", in, frame, n);

	/* An orderly end is no error. */
	CHECK_EQ(bytes_of(bye_hex, bye, sizeof bye), 32);
	give(fd, bye, sizeof bye);
	shutdown(fd, SHUT_WR);
	POLL_UNTIL(v, v->downs > 0);
	CHECK_EQ(v->down_err, WEFT_OK);
}

/* ---- recording ---------------------------------------------------------------------------- */

static void row(const char *name, const uint8_t *bytes, size_t n)
{
	printf("%s: ", name);
	for (size_t i = 0; i < n; i++)
		printf("%02x", bytes[i]);
	putchar('\n');
}

static void record(void)
{
	uint8_t hello[88], head[WEFT_NET_HEAD], frame[WEFT_TCP_FRAME + sizeof PAYLOAD];
	struct weft_net_job job = {.rank = 1, .size = 4, .jobid = "victim", .secret = secret};
	struct weft_auth a;
	weft_net_auth_init(&a, &job, 0, true, 0);
	memcpy(hello, a.mine, sizeof hello);
	memset(hello + 56, 0xa5, 32);
	row("hello", hello, sizeof hello);
	for (unsigned i = 0; i < sizeof head; i++)
		head[i] = (uint8_t)(i + 1);
	weft_net_tcp_frame_write(frame, sizeof PAYLOAD - 1, head);
	memcpy(frame + WEFT_TCP_FRAME, PAYLOAD, sizeof PAYLOAD - 1);
	row("frame", frame, WEFT_TCP_FRAME + sizeof PAYLOAD - 1);
	memset(head, 0, sizeof head);
	weft_net_tcp_frame_write(frame, WEFT_TCP_BYE, head);
	row("bye", frame, WEFT_TCP_FRAME);
}

int main(int argc, char **argv)
{
	struct victim v;
	CHECK(sodium_init() >= 0);
	CHECK_EQ(weft_settings_load(), WEFT_OK);
	weft_log_init();
	if (argc > 1 && strcmp(argv[1], "--record") == 0) {
		record();
		return 0;
	}
	if (WEFT_AUTH_VERSION != RECORDED_VERSION) {
		fprintf(stderr, "record the wire of version %d: see the top of this file\n",
			WEFT_AUTH_VERSION);
		return 1;
	}
	open_victim(&v);
	int fd = dial(&v);
	shake_hands(&v, fd);
	talk(&v, fd);
	close(fd);
	v.driver->close(v.net);
	return 0;
}
