/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_pmi.c - PMI-1, either side: what a launcher answers to a rank, what a rank asks of mpiexec.
 */
#include <fcntl.h>
#include "base/settings.h"
#include "boot/pmi1.h"
#include "events.h"
#include "fuzz.h"
#include "pmi.h"

/* All answers lie there before they are asked for, and then the launcher hangs up. */
static void client(struct fuzz_input *in)
{
	struct weft_pmi p = {0};
	const char *text;
	int fd[2], n;

	CHECK(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd));
	if (in->left)
		(void)!send(fd[1], in->at, in->left, MSG_NOSIGNAL | MSG_DONTWAIT);
	shutdown(fd[1], SHUT_WR);
	if (!weft_boot_pmi_open(&p, fd[0])) {
		(void)!weft_boot_pmi_int(&p, "get_appnum", "appnum", "appnum", &n);
		(void)!weft_boot_pmi_put(&p, "key", "value");
		(void)!weft_boot_pmi_get(&p, "key", &text);
		(void)!weft_boot_pmi_get_batch(&p, 0, 0, &n, &text);
		(void)!weft_boot_pmi_barrier(&p);
		weft_boot_pmi_finalize(&p);
	}
	close(fd[1]);
}

static void heard(int rank, int code)
{
}

static void heard_aborted(int rank, int code, const char *why)
{
}

static void heard_broken(int rank, const char *what)
{
}

static void heard_stuck(int rank)
{
}

/* Bytes of a rank, and a descriptor with them if there is one. */
static void say(int to, const uint8_t *at, size_t n, int fd)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof fd)];
	} control = {0};
	struct iovec iov = {(void *)(uintptr_t)at, n};
	struct msghdr h = {.msg_iov = &iov, .msg_iovlen = 1};
	if (fd >= 0) {
		h.msg_control = &control;
		h.msg_controllen = sizeof control;
		struct cmsghdr *m = CMSG_FIRSTHDR(&h);
		m->cmsg_level = SOL_SOCKET;
		m->cmsg_type = SCM_RIGHTS;
		m->cmsg_len = CMSG_LEN(sizeof fd);
		memcpy(CMSG_DATA(m), &fd, sizeof fd);
	}
	if (n)
		(void)!sendmsg(to, &h, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* cut: the lines come in two halves, so many 64ths in the first. */
static void server(struct fuzz_input *in, unsigned cut)
{
	static const struct pmi_hooks hooks = {.aborted = heard_aborted,
					       .broken = heard_broken,
					       .lost = heard,
					       .stuck = heard_stuck};
	static bool up;
	int fd[2], gift[2];
	char c;

	if (!up)
		CHECK(events_init() && pmi_init(3, "fuzz", "", &hooks));
	up = true;
	CHECK(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd));
	CHECK(pmi_attach(1, 0, fd[0]));
	size_t first = in->left * cut / 64;
	CHECK(!pipe2(gift, O_CLOEXEC | O_NONBLOCK));
	say(fd[1], in->at, first, -1);
	events_wait(0);
	say(fd[1], in->at + first, in->left - first, gift[1]);
	events_wait(0);
	events_wait(0);
	close(fd[1]);
	pmi_detach(1);
	/* What came along was not kept. */
	close(gift[1]);
	CHECK(read(gift[0], &c, 1) == 0);
	close(gift[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};
	unsigned what = fuzz_byte(&in);
	if (what & 1)
		server(&in, what >> 2);
	else
		client(&in);
	return 0;
}
