/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_auth.c - the handshake, either side: what a stranger says, in pieces. */
#include "fuzz.h"
#include "net/auth.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t secret[32] = {1, 2, 3};
	static const struct weft_net_job job = {
		.rank = 1, .size = 4, .jobid = "fuzz", .secret = secret};
	struct fuzz_input in = {data, size};
	struct weft_auth a;
	char why[96];
	int fd[2];

	CHECK(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd));
	unsigned how = fuzz_byte(&in);
	weft_net_auth_init(&a, &job, fd[0], how & 1, how & 1 ? 2 : -1);
	weft_err err = weft_net_auth_step(&a, why, sizeof why);
	/* Ends: each round sends a piece of the input. */
	while (in.left && err == WEFT_AGAIN) {
		uint8_t piece[256];
		size_t n = 1 + fuzz_byte(&in);
		if (n > in.left)
			n = in.left;
		fuzz_take(&in, piece, n);
		if (n && send(fd[1], piece, n, MSG_NOSIGNAL) < 0)
			break;
		err = weft_net_auth_step(&a, why, sizeof why);
	}
	if (err == WEFT_AGAIN) {
		close(fd[1]);
		fd[1] = -1;
		err = weft_net_auth_step(&a, why, sizeof why);
	}
	/* No input guesses 256 bits. */
	CHECK(err != WEFT_OK);
	CHECK(a.read_total <= WEFT_AUTH_READ_MAX);
	close(fd[0]);
	if (fd[1] >= 0)
		close(fd[1]);
	return 0;
}
