/* SPDX-License-Identifier: BSD-3-Clause */
/* secret.c - the job's secret: received, made, printed, and kept off core dumps. */
#include "boot/secret.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>
#include "base/log.h"
#include "base/private_page.h"
#include "base/settings.h"

struct weft_boot_info *weft_boot_info_create(void)
{
	return weft_private_page_alloc(sizeof(struct weft_boot_info));
}

void weft_boot_info_destroy(struct weft_boot_info *info)
{
	weft_private_page_free(info, sizeof *info);
}

/* Reads exactly size bytes within the setting init_timeout. */
static weft_err read_all(int fd, void *buf, size_t size)
{
	uint64_t end =
		weft_clock_ns() + (uint64_t)weft_setting_int(WEFT_SET_INIT_TIMEOUT) * 1000000000u;
	size_t have = 0;
	while (have < size) { /* ends: each turn reads, fails or nears the deadline */
		uint64_t now = weft_clock_ns();
		struct pollfd pfd = {.fd = fd, .events = POLLIN};
		int left_ms = now < end ? (int)((end - now) / 1000000u) + 1 : 0;
		int ready = poll(&pfd, 1, left_ms);
		if (ready == 0)
			return WEFT_ERR_TIMEOUT;
		if (ready < 0 && errno != EINTR)
			return WEFT_ERR_SYS;
		ssize_t n = ready > 0 ? read(fd, (char *)buf + have, size - have) : -1;
		if (n == 0)
			return WEFT_ERR_PROTO;
		if (n < 0 && errno != EINTR && errno != EAGAIN)
			return WEFT_ERR_SYS;
		if (n > 0)
			have += (size_t)n;
	}
	return WEFT_OK;
}

static bool jobid_valid(const char *jobid)
{
	size_t n = strnlen(jobid, WEFT_JOBID_MAX);
	return n > 0 && n < WEFT_JOBID_MAX &&
	       strspn(jobid, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._") ==
		       n;
}

weft_err weft_boot_secret_receive(int fd, struct weft_boot_info *info)
{
	struct weft_boot_handover h;
	weft_err err = read_all(fd, &h, sizeof h);
	close(fd);
	if (!err && (memcmp(h.magic, WEFT_BOOT_HANDOVER_MAGIC, sizeof h.magic) != 0 ||
		     !jobid_valid(h.jobid)))
		err = WEFT_ERR_PROTO;
	if (!err) {
		memcpy(info->secret, h.secret, sizeof info->secret);
		memcpy(info->jobid, h.jobid, sizeof info->jobid);
	} else {
		weft_error("no job secret on WEFT_BOOT_FD=%d (%s): was it read by another process "
			   "of this rank? start one MPI program per rank",
			   fd, weft_strerror(err));
	}
	explicit_bzero(&h, sizeof h);
	return err;
}

static weft_err draw_random(void *buf, size_t size)
{
	size_t have = 0;
	while (have < size) { /* ends: getrandom gives bytes or a lasting error */
		ssize_t n = getrandom((char *)buf + have, size - have, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			weft_error("getrandom: %s", strerror(errno));
			return WEFT_ERR_SYS;
		}
		have += (size_t)n;
	}
	return WEFT_OK;
}

weft_err weft_boot_secret_make(struct weft_boot_info *info)
{
	uint64_t id[2];
	weft_err err = draw_random(info->secret, sizeof info->secret);
	if (!err)
		err = draw_random(id, sizeof id);
	if (!err)
		snprintf(info->jobid, sizeof info->jobid, "%016llx%016llx",
			 (unsigned long long)id[0], (unsigned long long)id[1]);
	return err;
}

void weft_boot_secret_print(const struct weft_boot_info *info, char *text)
{
	static const char digits[] = "0123456789abcdef";
	for (size_t i = 0; i < WEFT_SECRET_BYTES; i++) {
		text[2 * i] = digits[info->secret[i] >> 4];
		text[2 * i + 1] = digits[info->secret[i] & 15];
	}
	text[2 * WEFT_SECRET_BYTES] = '.';
	memcpy(text + 2 * WEFT_SECRET_BYTES + 1, info->jobid, strlen(info->jobid) + 1);
}

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

weft_err weft_boot_secret_parse(const char *text, struct weft_boot_info *info)
{
	uint8_t secret[WEFT_SECRET_BYTES];
	size_t n = strlen(text);
	if (n < 2 * WEFT_SECRET_BYTES + 2 || n >= WEFT_BOOT_SECRET_TEXT ||
	    text[2 * WEFT_SECRET_BYTES] != '.' || !jobid_valid(text + 2 * WEFT_SECRET_BYTES + 1))
		return WEFT_ERR_PROTO;
	for (size_t i = 0; i < WEFT_SECRET_BYTES; i++) {
		int hi = hex_value(text[2 * i]), lo = hex_value(text[2 * i + 1]);
		if (hi < 0 || lo < 0)
			return WEFT_ERR_PROTO;
		secret[i] = (uint8_t)(hi << 4 | lo);
	}
	memcpy(info->secret, secret, sizeof secret);
	explicit_bzero(secret, sizeof secret);
	memset(info->jobid, 0, sizeof info->jobid);
	memcpy(info->jobid, text + 2 * WEFT_SECRET_BYTES + 1, n - 2 * WEFT_SECRET_BYTES - 1);
	return WEFT_OK;
}
