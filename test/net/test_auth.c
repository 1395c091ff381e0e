/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The handshake: a dialer that knows the secret gets in, byte by byte too; a dialer that does not,
 * belongs elsewhere, lies about ranks, speaks another version, replays or reflects, stays out.
 */
#include "net/auth.h"
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/log.h"
#include "check.h"

static const uint8_t right[32] = {1, 2, 3}, wrong[32] = {1, 2, 4};
static const struct weft_net_job job0 = {.rank = 0, .size = 4, .jobid = "job", .secret = right};
static const struct weft_net_job job1 = {.rank = 1, .size = 4, .jobid = "job", .secret = right};
static char why[96];

static void open_pair(int fd[2])
{
	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd) == 0);
}

static void close_pair(const int fd[2])
{
	close(fd[0]);
	close(fd[1]);
}

/* Runs both sides until they end; *i and *a are how. */
static void shake(struct weft_auth *ini, struct weft_auth *acc, weft_err *i, weft_err *a)
{
	bool answered = false;
	*i = *a = WEFT_AGAIN;
	for (int round = 0; round < 10 && (*i == WEFT_AGAIN || *a == WEFT_AGAIN); round++) {
		if (*i == WEFT_AGAIN)
			*i = weft_net_auth_step(ini, why, sizeof why);
		if (*a == WEFT_AGAIN)
			*a = weft_net_auth_step(acc, why, sizeof why);
		if (*a == WEFT_OK && !answered) {
			answered = true;
			weft_net_auth_answer(acc, WEFT_AUTH_ACCEPT);
			*a = weft_net_auth_step(acc, why, sizeof why);
		}
		if (*a < WEFT_AGAIN)
			shutdown(acc->fd, SHUT_RDWR);
		if (*i < WEFT_AGAIN)
			shutdown(ini->fd, SHUT_RDWR);
	}
}

static void expect_pair(const struct weft_net_job *from, int target, const struct weft_net_job *at,
			bool good)
{
	int fd[2];
	struct weft_auth ini, acc;
	weft_err i, a;
	open_pair(fd);
	weft_net_auth_init(&ini, from, fd[0], true, target);
	weft_net_auth_init(&acc, at, fd[1], false, -1);
	shake(&ini, &acc, &i, &a);
	if (good) {
		CHECK_EQ(i, WEFT_OK);
		CHECK_EQ(a, WEFT_OK);
		CHECK_EQ(acc.peer, from->rank);
	} else {
		CHECK(i != WEFT_OK && i != WEFT_AGAIN);
		CHECK(a != WEFT_OK && a != WEFT_AGAIN);
	}
	close_pair(fd);
}

static void lets_in_who_belongs(void)
{
	expect_pair(&job1, 0, &job0, true);
	expect_pair(&job0, 1, &job1, true);
}

static void keeps_out_who_does_not(void)
{
	struct weft_net_job j = job1;
	j.secret = wrong;
	expect_pair(&j, 0, &job0, false);
	j = job1;
	j.jobid = "other";
	expect_pair(&j, 0, &job0, false);
	j = job1;
	j.rank = 4;
	expect_pair(&j, 0, &job0, false);
	j.rank = -1;
	expect_pair(&j, 0, &job0, false);
	j.rank = 0;
	expect_pair(&j, 0, &job0, false);
	/* Asks the wrong process. */
	expect_pair(&job1, 2, &job0, false);
}

static void notices_garbage_early(void)
{
	static const char *const texts[] = {"GET / HTTP/1.1\r\n\r\n", "SSH-2.0-x\r\n",
					    "\x16\x03\x01", "x", "weft\r\n\x1a\x01"};
	for (size_t k = 0; k < weft_countof(texts); k++) {
		int fd[2];
		struct weft_auth acc;
		open_pair(fd);
		weft_net_auth_init(&acc, &job0, fd[1], false, -1);
		CHECK(write(fd[0], texts[k], strlen(texts[k])) > 0);
		CHECK_EQ(weft_net_auth_step(&acc, why, sizeof why), WEFT_ERR_PROTO);
		close_pair(fd);
	}
}

static void names_both_versions(void)
{
	int fd[2];
	struct weft_auth acc, ini;
	open_pair(fd);
	weft_net_auth_init(&ini, &job1, fd[0], true, 0);
	weft_net_auth_init(&acc, &job0, fd[1], false, -1);
	ini.out[8] = 77;
	CHECK_EQ(weft_net_auth_step(&ini, why, sizeof why), WEFT_AGAIN);
	CHECK_EQ(weft_net_auth_step(&acc, why, sizeof why), WEFT_ERR_AUTH);
	char ours[32];
	snprintf(ours, sizeof ours, "version %u", (unsigned)WEFT_AUTH_VERSION);
	CHECK(strstr(why, "77") && strstr(why, ours));
	close_pair(fd);
}

/* One byte at a time in both directions, through a relay. */
static void survives_short_reads(void)
{
	int a[2], b[2];
	struct weft_auth ini, acc;
	weft_err i = WEFT_AGAIN, c = WEFT_AGAIN;
	bool answered = false;
	open_pair(a);
	open_pair(b);
	weft_net_auth_init(&ini, &job1, a[0], true, 0);
	weft_net_auth_init(&acc, &job0, b[0], false, -1);
	for (int round = 0; round < 2000 && (i == WEFT_AGAIN || c == WEFT_AGAIN); round++) {
		char byte;
		if (i == WEFT_AGAIN)
			i = weft_net_auth_step(&ini, why, sizeof why);
		if (read(a[1], &byte, 1) == 1)
			CHECK(write(b[1], &byte, 1) == 1);
		if (c == WEFT_AGAIN)
			c = weft_net_auth_step(&acc, why, sizeof why);
		if (c == WEFT_OK && !answered) {
			answered = true;
			weft_net_auth_answer(&acc, WEFT_AUTH_ACCEPT);
			c = weft_net_auth_step(&acc, why, sizeof why);
		}
		if (read(b[1], &byte, 1) == 1)
			CHECK(write(a[1], &byte, 1) == 1);
	}
	CHECK_EQ(i, WEFT_OK);
	CHECK_EQ(c, WEFT_OK);
	CHECK(acc.read_total <= 200 && ini.read_total <= 200);
	close_pair(a);
	close_pair(b);
}

/* What an honest initiator sent once opens nothing a second time. */
static void replay_is_useless(void)
{
	int a[2], b[2];
	struct weft_auth ini, acc, again;
	uint8_t hello[WEFT_AUTH_HELLO], proof[WEFT_AUTH_PROOF], heard[WEFT_AUTH_READ_MAX];
	open_pair(a);
	open_pair(b);
	/* Listen to an honest handshake. */
	weft_net_auth_init(&ini, &job1, a[0], true, 0);
	weft_net_auth_init(&acc, &job0, b[0], false, -1);
	CHECK_EQ(weft_net_auth_step(&ini, why, sizeof why), WEFT_AGAIN);
	CHECK_EQ(read(a[1], hello, sizeof hello), (ssize_t)sizeof hello);
	CHECK_EQ(write(b[1], hello, sizeof hello), (ssize_t)sizeof hello);
	CHECK_EQ(weft_net_auth_step(&acc, why, sizeof why), WEFT_AGAIN);
	ssize_t n = read(b[1], heard, sizeof heard);
	CHECK_EQ(n, WEFT_AUTH_HELLO + WEFT_AUTH_PROOF);
	CHECK_EQ(write(a[1], heard, (size_t)n), n);
	CHECK_EQ(weft_net_auth_step(&ini, why, sizeof why), WEFT_AGAIN);
	CHECK_EQ(read(a[1], proof, sizeof proof), (ssize_t)sizeof proof);
	close_pair(b);
	/* Play it to another acceptor. */
	open_pair(b);
	weft_net_auth_init(&again, &job0, b[0], false, -1);
	CHECK_EQ(write(b[1], hello, sizeof hello), (ssize_t)sizeof hello);
	CHECK_EQ(write(b[1], proof, sizeof proof), (ssize_t)sizeof proof);
	CHECK_EQ(weft_net_auth_step(&again, why, sizeof why), WEFT_ERR_AUTH);
	close_pair(b);
	/* Reflect the acceptor's own proof. */
	open_pair(b);
	weft_net_auth_init(&again, &job0, b[0], false, -1);
	CHECK_EQ(write(b[1], hello, sizeof hello), (ssize_t)sizeof hello);
	CHECK_EQ(weft_net_auth_step(&again, why, sizeof why), WEFT_AGAIN);
	CHECK_EQ(read(b[1], heard, sizeof heard), WEFT_AUTH_HELLO + WEFT_AUTH_PROOF);
	CHECK_EQ(write(b[1], heard + WEFT_AUTH_HELLO, WEFT_AUTH_PROOF), WEFT_AUTH_PROOF);
	CHECK_EQ(weft_net_auth_step(&again, why, sizeof why), WEFT_ERR_AUTH);
	close_pair(b);
	close_pair(a);
}

int main(void)
{
	weft_log_level = WEFT_LOG_ERROR;
	lets_in_who_belongs();
	keeps_out_who_does_not();
	notices_garbage_early();
	names_both_versions();
	survives_short_reads();
	replay_is_useless();
	return 0;
}
