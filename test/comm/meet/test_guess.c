/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_guess.c - strangers that know a port's addresses and job, and guess its capability: each of 2,000 (a million in
 * ./check --long) is refused, none becomes a line, no descriptor is left, and a caller with the right name
 * gets in beside them.
 *
 *   test_guess [GUESSES]
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <poll.h>
#include <sodium.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/counters.h"
#include "base/log.h"
#include "base/settings.h"
#include "boot/boot.h"
#include "check.h"
#include "comm/meet/port.h"
#include "net/auth.h"
#include "task/task.h"

#define GUESSERS 4

static int descriptors(void)
{
	int n = 0;
	DIR *d = opendir("/proc/self/fd");
	CHECK(d != NULL);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static int dial(unsigned port)
{
	struct sockaddr_in sa = {.sin_family = AF_INET,
				 .sin_port = htons((uint16_t)port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	/* No local port is used up: the connection is reset at its end. */
	struct linger reset = {.l_onoff = 1};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	CHECK(fd >= 0);
	CHECK_EQ(setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset), 0);
	(void)connect(fd, (struct sockaddr *)&sa, sizeof sa);
	return fd;
}

static void await(int fd, short events)
{
	struct pollfd p = {.fd = fd, .events = events};
	CHECK_EQ(poll(&p, 1, 120000), 1);
}

/* An honest hello, and a proof by a guessed capability: 32 random bytes are as good. */
static void guess(unsigned port, const char *jobid)
{
	uint8_t proof[WEFT_AUTH_PROOF], in[2 * WEFT_AUTH_READ_MAX];
	struct weft_net_job job = {.rank = 1, .size = 2, .jobid = jobid, .secret = proof};
	struct weft_auth a;
	char why[96];
	ssize_t n;
	randombytes_buf(proof, sizeof proof);
	int fd = dial(port);
	await(fd, POLLOUT);
	weft_net_auth_init(&a, &job, fd, true, 0);
	/* Once the other side's proof is there, it is seen to be another capability's. */
	weft_err err = weft_net_auth_step(&a, why, sizeof why);
	CHECK(err == WEFT_AGAIN || err == WEFT_ERR_AUTH);
	/* All seats may be taken at this moment: then the other side goes at once. */
	(void)send(fd, proof, sizeof proof, MSG_NOSIGNAL);
	size_t got = 0;
	do {
		await(fd, POLLIN);
		n = recv(fd, in, sizeof in, MSG_DONTWAIT);
		got += n > 0 ? (size_t)n : 0;
	} while (n > 0); /* ends: the other side goes */
	/* Nothing that a line begins with, the verdict, was said. */
	CHECK(got <= WEFT_AUTH_HELLO + WEFT_AUTH_PROOF);
	close(fd);
}

static _Noreturn void run_guesser(int fd, long guesses)
{
	char name[WEFT_PORT_NAME], jobid[17];
	unsigned port;
	CHECK_EQ(read(fd, name, sizeof name), (ssize_t)sizeof name);
	const char *job = strchr(strchr(name, ':') + 1, ':') + 1;
	snprintf(jobid, sizeof jobid, "%s", job);
	const char *at = strstr(name, ",127.0.0.1/");
	CHECK(at && sscanf(at, ",127.0.0.1/%*u/%u", &port) == 1);
	for (long i = 0; i < guesses; i++)
		guess(port, jobid);
	exit(0);
}

static _Noreturn void run_caller(int fd)
{
	char name[WEFT_PORT_NAME];
	struct weft_comm_line *l;
	CHECK_EQ(read(fd, name, sizeof name), (ssize_t)sizeof name);
	CHECK_EQ(weft_settings_load(), WEFT_OK);
	weft_log_init();
	CHECK_EQ(weft_engine_start(), WEFT_OK);
	CHECK_EQ(weft_comm_port_call(name, WEFT_FOREVER, &l), WEFT_OK);
	weft_comm_line_close(l);
	weft_engine_stop();
	exit(0);
}

int main(int argc, char **argv)
{
	long guesses = argc > 1 ? strtol(argv[1], NULL, 10) : 2000;
	int fds[GUESSERS + 1][2];
	pid_t pid[GUESSERS + 1];
	CHECK(sodium_init() >= 0);
	setenv("WEFT_LOG", "error", 1); /* a line for each would be */
	for (int i = 0; i <= GUESSERS; i++) {
		CHECK(!pipe(fds[i]));
		pid[i] = fork();
		CHECK(pid[i] >= 0);
		if (pid[i])
			continue;
		if (i < GUESSERS)
			run_guesser(fds[i][0], guesses / GUESSERS);
		run_caller(fds[i][0]);
	}
	CHECK_EQ(weft_settings_load(), WEFT_OK);
	weft_log_init();
	CHECK_EQ(weft_engine_start(), WEFT_OK);
	struct weft_comm_port *p;
	struct weft_comm_line *l;
	CHECK_EQ(weft_comm_port_open(&p), WEFT_OK);
	CHECK_EQ(weft_comm_port_accept(p, 1000000, &l), WEFT_ERR_TIMEOUT);
	int before = descriptors();
	char name[WEFT_PORT_NAME] = "";
	snprintf(name, sizeof name, "%s", weft_comm_port_name(p));
	if (!strstr(name, ",127.0.0.1/"))
		SKIP("the port does not listen at 127.0.0.1");
	for (int i = 0; i <= GUESSERS; i++)
		CHECK_EQ(write(fds[i][1], name, sizeof name), (ssize_t)sizeof name);
	CHECK_EQ(weft_comm_port_accept(p, WEFT_FOREVER, &l), WEFT_OK);
	weft_comm_line_close(l);
	for (int i = 0; i <= GUESSERS; i++) {
		int status;
		CHECK_EQ(waitpid(pid[i], &status, 0), pid[i]);
		CHECK_EQ(status, 0);
	}
	CHECK_EQ(weft_comm_port_accept(p, 1000000, &l), WEFT_ERR_TIMEOUT);
	uint64_t refused = weft_counter_sum(WEFT_CNT_AUTH_REFUSED);
	printf("%llu refused\n", (unsigned long long)refused);
	CHECK(refused >= (uint64_t)(guesses / GUESSERS * GUESSERS));
	CHECK_EQ(descriptors(), before);
	weft_comm_port_close(p);
	weft_engine_stop();
	return 0;
}
