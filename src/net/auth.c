/* SPDX-License-Identifier: BSD-3-Clause */
/* auth.c - the handshake of auth.h as a small state machine over a non-blocking stream. */
#include "net/auth.h"

#include <endian.h>
#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include "base/assert.h"
#include "base/counters.h"
#include "base/log.h"

/* Offsets in a hello. */
enum {
	AT_MAGIC = 0,
	AT_VERSION = 8,
	AT_FLAGS = 12,
	AT_JOB = 16,
	AT_SRC = 48,
	AT_DST = 52,
	AT_NONCE = 56,
};

enum {
	WAIT_HELLO,   /* acceptor: the initiator's hello; initiator: hello and proof */
	WAIT_PROOF,   /* acceptor */
	PROVEN,       /* acceptor: waits for weft_net_auth_answer */
	WAIT_VERDICT, /* initiator */
	LAST_WORDS,   /* acceptor: the verdict goes out */
	OVER,
};

static const uint8_t magic[8] = {'w', 'e', 'f', 't', 0x0d, 0x0a, 0x1a, 0x00};

static uint32_t read_le32(const uint8_t *p)
{
	uint32_t v;
	memcpy(&v, p, sizeof v);
	return le32toh(v);
}

static void write_le32(uint8_t *p, uint32_t v)
{
	v = htole32(v);
	memcpy(p, &v, sizeof v);
}

static void hash_job(const struct weft_net_job *job, uint8_t out[32])
{
	crypto_generichash(out, 32, (const uint8_t *)job->jobid, strlen(job->jobid), NULL, 0);
}

static void fill_hello(struct weft_auth *a, int dst)
{
	uint8_t *h = a->mine;
	memset(h, 0, WEFT_AUTH_HELLO);
	memcpy(h + AT_MAGIC, magic, sizeof magic);
	write_le32(h + AT_VERSION, WEFT_AUTH_VERSION);
	write_le32(h + AT_FLAGS, 0);
	hash_job(a->job, h + AT_JOB);
	write_le32(h + AT_SRC, (uint32_t)a->job->rank);
	write_le32(h + AT_DST, (uint32_t)dst);
	randombytes_buf(h + AT_NONCE, 32);
}

/* The proof that the side with that role gives; computed alike on both sides. */
static void make_proof(const struct weft_auth *a, bool of_initiator, uint8_t out[WEFT_AUTH_PROOF])
{
	const uint8_t *ini = a->initiator ? a->mine : a->theirs;
	const uint8_t *acc = a->initiator ? a->theirs : a->mine;
	uint8_t role = of_initiator ? 'I' : 'A';
	crypto_auth_hmacsha256_state st;

	crypto_auth_hmacsha256_init(&st, a->job->secret, 32);
	crypto_auth_hmacsha256_update(&st, &role, 1);
	/* A hello is of fixed size and holds nonce, job, ranks, version and flags. */
	crypto_auth_hmacsha256_update(&st, ini, WEFT_AUTH_HELLO);
	crypto_auth_hmacsha256_update(&st, acc, WEFT_AUTH_HELLO);
	crypto_auth_hmacsha256_final(&st, out);
	sodium_memzero(&st, sizeof st);
}

void weft_net_auth_init(struct weft_auth *a, const struct weft_net_job *job, int fd, bool initiator,
			int peer)
{
	weft_assert(fd >= 0 && initiator == (peer >= 0) && peer < job->size);
	memset(a, 0, sizeof *a);
	a->job = job;
	a->fd = fd;
	a->initiator = initiator;
	a->peer = peer;
	a->state = WAIT_HELLO;
	a->in_want = WEFT_AUTH_HELLO;
	if (initiator) {
		fill_hello(a, peer);
		memcpy(a->out, a->mine, WEFT_AUTH_HELLO);
		a->out_len = WEFT_AUTH_HELLO;
		a->in_want = WEFT_AUTH_HELLO + WEFT_AUTH_PROOF;
	}
}

static weft_err write_out(struct weft_auth *a, char *why, size_t size)
{
	weft_assert(a->out_have <= a->out_len && a->out_len <= sizeof a->out);
	while (a->out_have < a->out_len) {
		ssize_t n = send(a->fd, a->out + a->out_have, a->out_len - a->out_have,
				 MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM))
			return WEFT_AGAIN;
		if (n < 0) {
			snprintf(why, size, "hung up during the handshake: %s", strerror(errno));
			return WEFT_ERR_PEER;
		}
		a->out_have += (unsigned)n;
	}
	return WEFT_OK;
}

/* The first bytes decide early whether this is one of ours at all. */
static weft_err check_prefix(struct weft_auth *a, char *why, size_t size)
{
	unsigned n = a->in_have < sizeof magic ? a->in_have : (unsigned)sizeof magic;
	if (memcmp(a->in, magic, n) != 0) {
		snprintf(why, size, "its first bytes are not a hello of weft");
		return WEFT_ERR_PROTO;
	}
	if (a->in_have >= AT_VERSION + 4) {
		uint32_t v = read_le32(a->in + AT_VERSION);
		if (v != WEFT_AUTH_VERSION) {
			/* Tell the other side, so that it can name both versions too. */
			if (!a->initiator) {
				fill_hello(a, -1);
				(void)!send(a->fd, a->mine, WEFT_AUTH_HELLO,
					    MSG_NOSIGNAL | MSG_DONTWAIT);
			}
			snprintf(why, size,
				 "it speaks version %u of the handshake, this process version %u",
				 v, WEFT_AUTH_VERSION);
			return WEFT_ERR_AUTH;
		}
	}
	return WEFT_OK;
}

/* Reads up to in_want; WEFT_OK when they are there. */
static weft_err read_wanted(struct weft_auth *a, char *why, size_t size)
{
	weft_assert(a->in_have <= a->in_want && a->in_want <= sizeof a->in);
	while (a->in_have < a->in_want) {
		ssize_t n = recv(a->fd, a->in + a->in_have, a->in_want - a->in_have, MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return WEFT_AGAIN;
		if (n <= 0) {
			snprintf(why, size, "hung up during the handshake%s%s", n < 0 ? ": " : "",
				 n < 0 ? strerror(errno) : "");
			return WEFT_ERR_PEER;
		}
		a->in_have += (unsigned)n;
		a->read_total += (unsigned)n;
		weft_assert(a->read_total <= WEFT_AUTH_READ_MAX);
		if (a->state == WAIT_HELLO) {
			weft_err err = check_prefix(a, why, size);
			if (err)
				return err;
		}
	}
	return WEFT_OK;
}

static weft_err check_hello(struct weft_auth *a, char *why, size_t size)
{
	uint8_t job[32];
	memcpy(a->theirs, a->in, WEFT_AUTH_HELLO);
	int src = (int)read_le32(a->theirs + AT_SRC), dst = (int)read_le32(a->theirs + AT_DST);

	hash_job(a->job, job);
	if (sodium_memcmp(job, a->theirs + AT_JOB, sizeof job) != 0) {
		snprintf(why, size, "it belongs to another job");
		return WEFT_ERR_AUTH;
	}
	if (dst != a->job->rank || src < 0 || src >= a->job->size || src == a->job->rank ||
	    (a->initiator && src != a->peer)) {
		snprintf(why, size, "it claims to be rank %d and looks for rank %d", src, dst);
		return WEFT_ERR_AUTH;
	}
	return WEFT_OK;
}

static weft_err check_proof(const struct weft_auth *a, const uint8_t *proof, char *why, size_t size)
{
	uint8_t want[WEFT_AUTH_PROOF];
	make_proof(a, !a->initiator, want);
	int differs = sodium_memcmp(want, proof, sizeof want);
	sodium_memzero(want, sizeof want);
	if (differs) {
		snprintf(why, size, "it does not know the job's secret");
		return WEFT_ERR_AUTH;
	}
	return WEFT_OK;
}

static void expect_state(struct weft_auth *a, int state, unsigned want)
{
	weft_assert(state > a->state); /* a handshake goes forward only */
	a->state = state;
	a->in_have = 0;
	a->in_want = want;
}

static weft_err step_acceptor(struct weft_auth *a, char *why, size_t size)
{
	weft_err err = WEFT_OK;
	if (a->state == WAIT_HELLO) {
		if ((err = read_wanted(a, why, size)) || (err = check_hello(a, why, size)))
			return err;
		fill_hello(a, (int)read_le32(a->theirs + AT_SRC));
		memcpy(a->out, a->mine, WEFT_AUTH_HELLO);
		make_proof(a, false, a->out + WEFT_AUTH_HELLO);
		a->out_have = 0;
		a->out_len = WEFT_AUTH_HELLO + WEFT_AUTH_PROOF;
		expect_state(a, WAIT_PROOF, WEFT_AUTH_PROOF);
	}
	if ((err = write_out(a, why, size)))
		return err;
	if (a->state == WAIT_PROOF) {
		if ((err = read_wanted(a, why, size)) || (err = check_proof(a, a->in, why, size)))
			return err;
		a->peer = (int)read_le32(a->theirs + AT_SRC);
		a->state = PROVEN;
		return WEFT_OK;
	}
	if (a->state == LAST_WORDS)
		a->state = OVER;
	return WEFT_OK;
}

static weft_err take_verdict(const struct weft_auth *a, char *why, size_t size)
{
	weft_assert(a->initiator && a->in_have == WEFT_AUTH_VERDICT);
	switch (a->in[0]) {
	case WEFT_AUTH_ACCEPT:
		return WEFT_OK;
	case WEFT_AUTH_CROSSED:
		return WEFT_ERR_STATE;
	default:
		snprintf(why, size, "refuses a second connection");
		return WEFT_ERR_PEER;
	}
}

static weft_err step_initiator(struct weft_auth *a, char *why, size_t size)
{
	weft_err err = write_out(a, why, size);
	if (err)
		return err;
	if (a->state == WAIT_HELLO) {
		if ((err = read_wanted(a, why, size)) || (err = check_hello(a, why, size)) ||
		    (err = check_proof(a, a->in + WEFT_AUTH_HELLO, why, size)))
			return err;
		make_proof(a, true, a->out);
		a->out_have = 0;
		a->out_len = WEFT_AUTH_PROOF;
		expect_state(a, WAIT_VERDICT, WEFT_AUTH_VERDICT);
		if ((err = write_out(a, why, size)))
			return err;
	}
	if (a->state == WAIT_VERDICT) {
		if ((err = read_wanted(a, why, size)) || (err = take_verdict(a, why, size)))
			return err;
		a->state = OVER;
	}
	return WEFT_OK;
}

weft_err weft_net_auth_step(struct weft_auth *a, char *why, size_t why_size)
{
	return a->initiator ? step_initiator(a, why, why_size) : step_acceptor(a, why, why_size);
}

int weft_net_auth_claim(const struct weft_auth *a)
{
	weft_assert(!a->initiator);
	return a->state > WAIT_HELLO ? (int)read_le32(a->theirs + AT_SRC) : -1;
}

void weft_net_auth_answer(struct weft_auth *a, enum weft_auth_verdict verdict)
{
	weft_assert(!a->initiator && a->state == PROVEN);
	weft_assert(verdict >= WEFT_AUTH_ACCEPT && verdict <= WEFT_AUTH_REFUSE);
	memset(a->out, 0, WEFT_AUTH_VERDICT);
	a->out[0] = (uint8_t)verdict;
	a->out_have = 0;
	a->out_len = WEFT_AUTH_VERDICT;
	a->state = LAST_WORDS;
}

void weft_net_auth_derive(const uint8_t *secret, const char *label, const void *data, size_t len,
			  uint8_t *out, size_t n)
{
	uint8_t whole[crypto_auth_hmacsha256_BYTES];
	crypto_auth_hmacsha256_state st;

	crypto_auth_hmacsha256_init(&st, secret, 32);
	/* With its NUL: no label is the beginning of another one with data. */
	crypto_auth_hmacsha256_update(&st, (const uint8_t *)label, strlen(label) + 1);
	crypto_auth_hmacsha256_update(&st, data, len);
	crypto_auth_hmacsha256_final(&st, whole);
	memcpy(out, whole, n < sizeof whole ? n : sizeof whole);
	sodium_memzero(whole, sizeof whole);
	sodium_memzero(&st, sizeof st);
}

void weft_net_auth_refused(const char *driver, const char *why)
{
	static _Atomic uint64_t x_next_ns, x_silent;
	uint64_t now = weft_clock_ns();
	weft_count(WEFT_CNT_AUTH_REFUSED, 1);

	/* Relaxed: a rate limit of log lines; a line too many does no harm. */
	uint64_t next = atomic_load_explicit(&x_next_ns, memory_order_relaxed);
	if (now < next ||
	    !atomic_compare_exchange_strong_explicit(&x_next_ns, &next, now + 60000000000u,
						     memory_order_relaxed, memory_order_relaxed)) {
		atomic_fetch_add_explicit(&x_silent, 1, memory_order_relaxed);
		return;
	}
	uint64_t silent = atomic_exchange_explicit(&x_silent, 0, memory_order_relaxed);
	if (silent)
		weft_warn("%s: refused a connection: %s (%llu more since the last such line)",
			  driver, why, (unsigned long long)silent);
	else
		weft_warn("%s: refused a connection: %s", driver, why);
}
