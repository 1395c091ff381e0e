/* SPDX-License-Identifier: BSD-3-Clause */
/* pmi_io.c - bytes to and from the launcher, each wait bounded but that for other ranks. */
#include "boot/pmi_io.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/log.h"
#include "base/settings.h"

uint64_t weft_boot_pmi_deadline(void)
{
	return weft_clock_ns() + (uint64_t)weft_setting_int(WEFT_SET_INIT_TIMEOUT) * 1000000000u;
}

/* Waits until fd is ready for events; TIMEOUT when the deadline passes first. */
weft_err weft_boot_pmi_wait_ready(int fd, short events, uint64_t deadline)
{
	for (;;) { /* ends: ready, failed, or the deadline is over */
		uint64_t now = weft_clock_ns();
		uint64_t left_ms = now < deadline ? (deadline - now) / 1000000u + 1 : 0;
		int ms = left_ms < INT_MAX ? (int)left_ms : INT_MAX;
		struct pollfd pfd = {.fd = fd, .events = events};
		int n = poll(&pfd, 1, ms);
		if (n > 0)
			return pfd.revents & POLLNVAL ? WEFT_ERR_SYS : WEFT_OK;
		if (n == 0 && ms == 0)
			return WEFT_ERR_TIMEOUT;
		if (n < 0 && errno != EINTR)
			return WEFT_ERR_SYS;
	}
}

weft_err weft_boot_pmi_wait_peers(int fd, bool tell)
{
	weft_err err = weft_boot_pmi_wait_ready(fd, POLLIN, weft_boot_pmi_deadline());
	if (err != WEFT_ERR_TIMEOUT)
		return err;
	if (tell)
		weft_warn("still waiting for ranks that have not called MPI_Init for %lld s",
			  (long long)weft_setting_int(WEFT_SET_INIT_TIMEOUT));
	return weft_boot_pmi_wait_ready(fd, POLLIN, UINT64_MAX);
}

/* The kernel has no memory just now: a millisecond, until the deadline. */
static weft_err wait_for_memory(uint64_t deadline)
{
	(void)poll(NULL, 0, 1);
	return weft_clock_ns() < deadline ? WEFT_OK : WEFT_ERR_TIMEOUT;
}

/* No SIGPIPE when the launcher is gone; falls back to write for launchers that use pipes. */
ssize_t weft_boot_pmi_write_some(int fd, const char *text, size_t len)
{
	ssize_t n = send(fd, text, len, MSG_NOSIGNAL);
	return n < 0 && errno == ENOTSOCK ? write(fd, text, len) : n;
}

weft_err weft_boot_pmi_write_all(int fd, const char *text, size_t len)
{
	uint64_t deadline = weft_boot_pmi_deadline();
	while (len) { /* ends: each turn writes, fails or waits until the deadline */
		ssize_t n = weft_boot_pmi_write_some(fd, text, len);
		if (n > 0) {
			text += n;
			len -= (size_t)n;
			continue;
		}
		if (n < 0 && errno == EINTR)
			continue;
		bool poor = n < 0 && (errno == ENOBUFS || errno == ENOMEM); /* it passes */
		if (!poor && (n == 0 || errno != EAGAIN))
			return WEFT_ERR_PEER;
		weft_err err = poor ? wait_for_memory(deadline)
				    : weft_boot_pmi_wait_ready(fd, POLLOUT, deadline);
		if (err)
			return err;
	}
	return WEFT_OK;
}
