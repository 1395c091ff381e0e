/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * auth.h - proves to each other, over a fresh stream, that both sides know the job's secret.
 *
 *   initiator                                   acceptor
 *     hello (88 bytes: version, job, ranks, nonce) ->
 *                                     <- hello (its own nonce), proof (32 bytes)
 *     proof ->
 *                                     <- verdict (8 bytes)
 *
 * proof = HMAC-SHA256(secret, role | both nonces | job | initiator | acceptor | versions | flags).
 * The role differs, so that no answer can be reflected; the nonces are fresh, so that none can be
 * replayed.  Nothing about a peer is stored outside struct weft_auth before its proof is checked.
 *
 * Callers   one thread at a time per struct.
 * Blocking  never: the descriptor is non-blocking, step() goes as far as it can.
 * Bounds    reads at most WEFT_AUTH_READ_MAX bytes, never one more than the handshake needs.
 */
#ifndef WEFT_AUTH_H
#define WEFT_AUTH_H

#include "base/base.h"
#include "net/driver.h"

/* What two processes say to each other first.  Raised with each change of this handshake, of a driver's wire or
 * of comm/wire.h or rma/wire.h: doc/versions.md. */
#ifndef WEFT_AUTH_VERSION /* a test builds another one */
#define WEFT_AUTH_VERSION 5
#endif
#define WEFT_AUTH_HELLO 88
#define WEFT_AUTH_PROOF 32
#define WEFT_AUTH_VERDICT 8
#define WEFT_AUTH_READ_MAX (WEFT_AUTH_HELLO + WEFT_AUTH_PROOF + WEFT_AUTH_VERDICT)

enum weft_auth_verdict {
	WEFT_AUTH_ACCEPT = 1,
	WEFT_AUTH_CROSSED = 2, /* our own connection to you comes through instead */
	WEFT_AUTH_REFUSE = 3,  /* you are connected already, or were lost */
};

struct weft_auth {
	const struct weft_net_job *job;
	int fd;
	bool initiator;
	int peer;  /* the initiator's target; for the acceptor valid once proven */
	int state; /* private, see auth.c */
	uint8_t mine[WEFT_AUTH_HELLO], theirs[WEFT_AUTH_HELLO];
	uint8_t in[WEFT_AUTH_HELLO + WEFT_AUTH_PROOF];
	uint8_t out[WEFT_AUTH_HELLO + WEFT_AUTH_PROOF];
	unsigned in_have, in_want, out_have, out_len;
	unsigned read_total;
};

/* Starts a handshake on fd; job must outlive it.  peer: the target, or -1 for the acceptor. */
void weft_net_auth_init(struct weft_auth *a, const struct weft_net_job *job, int fd, bool initiator,
			int peer);

/*
 * Goes on.  WEFT_AGAIN: wait for the descriptor.  WEFT_OK: acceptor: the peer is proven, call
 * weft_net_auth_answer(); after that, or for the initiator: done.  Errors: close the descriptor; `why`
 * says what happened.  WEFT_ERR_AUTH, _PROTO: the other side is not ours.  WEFT_ERR_PEER: it hung
 * up. WEFT_ERR_STATE: initiator only, crossed.
 */
weft_err weft_net_auth_step(struct weft_auth *a, char *why, size_t why_size) weft_must_use;

/* The acceptor's answer to a proven peer; then step() until WEFT_OK. */
void weft_net_auth_answer(struct weft_auth *a, enum weft_auth_verdict verdict);

/* Does it still have bytes to write? */
static inline bool weft_net_auth_wants_write(const struct weft_auth *a)
{
	return a->out_have < a->out_len;
}

/* Has the other side said anything yet? */
static inline bool weft_net_auth_silent(const struct weft_auth *a)
{
	return a->read_total == 0;
}

/* Has the other side's whole hello come, and did it make sense?  That is no proof. */
static inline bool weft_net_auth_greeted(const struct weft_auth *a)
{
	return a->read_total >= WEFT_AUTH_HELLO;
}

/* Acceptor: the rank that the other side has said it is, which its proof is to show; -1: it has not said. */
int weft_net_auth_claim(const struct weft_auth *a);

/*
 * out: n bytes (at most 32) that depend on the secret, the label and the data, and tell nothing of the
 * secret.  Any thread.
 */
void weft_net_auth_derive(const uint8_t *secret, const char *label, const void *data, size_t len,
			  uint8_t *out, size_t n);

/* Counts a refusal; logs it unless one was logged within the last minute. */
void weft_net_auth_refused(const char *driver, const char *why);

#endif
