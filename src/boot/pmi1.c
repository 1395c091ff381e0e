/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmi1.c - PMI-1: one line asks, one line answers, "cmd=NAME key=value ...".
 *
 * What comes in is not trusted: an answer that is too long, of another kind or without the wanted
 * key is an error that names what was asked.
 */
#include "boot/pmi1.h"
#include "boot/pmi_io.h"
#include "boot/service.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/log.h"
#include "base/settings.h"

static int fd_of(const struct weft_pmi *p)
{
	/* Relaxed: the starting thread reads what it wrote itself. */
	return atomic_load_explicit(&p->x_fd, memory_order_relaxed);
}

static void log_refusal(const struct weft_pmi *p, const char *text, const char *detail)
{
	if (p->quiet)
		weft_info("PMI-1: %s%s", text, detail);
	else
		weft_error("%s%s", text, detail);
}

static weft_err send_line(struct weft_pmi *p, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
static weft_err send_line(struct weft_pmi *p, const char *fmt, ...)
{
	char *text;
	va_list ap;
	va_start(ap, fmt);
	int len = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (len < 0)
		return WEFT_ERR_NOMEM;
	weft_err err = weft_boot_pmi_write_all(fd_of(p), text, (size_t)len);
	explicit_bzero(text, (size_t)len); /* it may hold the job's secret */
	free(text);
	if (err)
		log_refusal(p,
			    "the launcher does not take requests any more: ", weft_strerror(err));
	return err;
}

/* Forgets the previous answer and keeps what came after it. */
static void drop_line(struct weft_pmi *p)
{
	size_t rest = p->fill - p->line_end;
	memmove(p->line, p->line + p->line_end, rest);
	explicit_bzero(p->line + rest, p->fill - rest);
	p->fill = rest;
	p->line_end = 0;
}

/* Reads one answer: NUL-terminated at p->line.  `asked` is for the message only. */
static weft_err read_line(struct weft_pmi *p, const char *asked)
{
	drop_line(p);
	uint64_t deadline = weft_boot_pmi_deadline();
	weft_err err = WEFT_OK;
	size_t seen = 0;
	for (;;) { /* ends: a line, an error, a full buffer or the deadline */
		char *nl = memchr(p->line + seen, '\n', p->fill - seen);
		if (nl) {
			*nl = 0;
			p->line_end = (size_t)(nl - p->line) + 1;
			break;
		}
		seen = p->fill;
		if (p->fill == WEFT_PMI_LINE_MAX) {
			weft_error("the launcher's answer to %s is longer than %d bytes", asked,
				   WEFT_PMI_LINE_MAX);
			return WEFT_ERR_PROTO;
		}
		err = weft_boot_pmi_wait_ready(fd_of(p), POLLIN, deadline);
		if (err)
			break;
		ssize_t n = read(fd_of(p), p->line + p->fill, WEFT_PMI_LINE_MAX - p->fill);
		if (n > 0)
			p->fill += (size_t)n;
		else if (n == 0 || (errno != EINTR && errno != EAGAIN)) {
			err = WEFT_ERR_PEER;
			break;
		}
	}
	if (err == WEFT_ERR_TIMEOUT)
		weft_error("no answer from the launcher to %s within %lld s (setting "
			   "init_timeout): is a rank missing or stopped?",
			   asked, (long long)weft_setting_int(WEFT_SET_INIT_TIMEOUT));
	else if (err)
		log_refusal(p, "the launcher closed its channel instead of answering ", asked);
	else if (memchr(p->line, 0, p->line_end - 1)) {
		weft_error("the launcher's answer to %s contains a NUL byte", asked);
		err = WEFT_ERR_PROTO;
	}
	return err;
}

/* The text after "key=" in the answer, ended in place at the next blank; NULL: absent. */
static char *field_of(struct weft_pmi *p, const char *key, char *saved_p)
{
	size_t n = strlen(key);
	for (char *s = p->line; *s;) { /* ends: s moves on each turn */
		s += strspn(s, " \r\t");
		size_t len = strcspn(s, " \r\t");
		if (len > n && strncmp(s, key, n) == 0 && s[n] == '=') {
			*saved_p = s[len];
			s[len] = 0;
			return s + n + 1;
		}
		s += len;
	}
	return NULL;
}

static void restore_field(char *value, char saved)
{
	value[strlen(value)] = saved;
}

static bool field_is(struct weft_pmi *p, const char *key, const char *want)
{
	char saved;
	char *v = field_of(p, key, &saved);
	bool same = v && strcmp(v, want) == 0;
	if (v)
		restore_field(v, saved);
	return same;
}

static weft_err field_int(struct weft_pmi *p, const char *key, int *out_p)
{
	char saved, *end;
	char *v = field_of(p, key, &saved);
	if (!v)
		return WEFT_ERR_PROTO;
	errno = 0;
	long n = strtol(v, &end, 10);
	bool good = end != v && !*end && !errno && n >= -1 && n <= INT32_MAX;
	restore_field(v, saved);
	if (!good)
		return WEFT_ERR_PROTO;
	*out_p = (int)n;
	return WEFT_OK;
}

/* Complains about an answer that does not fit, with its first bytes made printable. */
static weft_err bad_answer(struct weft_pmi *p, const char *asked)
{
	char shown[64];
	size_t i = 0;
	for (; i < sizeof shown - 1 && p->line[i]; i++)
		shown[i] = p->line[i] >= 32 && p->line[i] < 127 ? p->line[i] : '?';
	shown[i] = 0;
	weft_error("the launcher's answer to %s makes no sense: \"%s\"", asked, shown);
	return WEFT_ERR_PROTO;
}

static weft_err expect_answer(struct weft_pmi *p, const char *asked, const char *answer)
{
	weft_err err = read_line(p, asked);
	if (!err && !field_is(p, "cmd", answer))
		err = bad_answer(p, asked);
	return err;
}

weft_err weft_boot_pmi_int(struct weft_pmi *p, const char *cmd, const char *answer, const char *key,
			   int *out_p)
{
	weft_err err = send_line(p, "cmd=%s\n", cmd);
	if (!err)
		err = expect_answer(p, cmd, answer);
	if (!err && field_int(p, key, out_p))
		err = bad_answer(p, cmd);
	return err;
}

static weft_err greet_server(struct weft_pmi *p)
{
	weft_err err = send_line(p, "cmd=init pmi_version=1 pmi_subversion=1\n");
	if (!err)
		err = expect_answer(p, "init", "response_to_init");
	if (!err && (!field_is(p, "rc", "0") || !field_is(p, "pmi_version", "1"))) {
		log_refusal(p, "the launcher refuses PMI version 1", "");
		err = WEFT_ERR_UNSUPPORTED;
	}
	return err;
}

static weft_err learn_limits(struct weft_pmi *p)
{
	weft_err err = weft_boot_pmi_int(p, "get_maxes", "maxes", "kvsname_max", &p->kvsname_max);
	if (!err && (field_int(p, "keylen_max", &p->keylen_max) ||
		     field_int(p, "vallen_max", &p->vallen_max) || p->keylen_max < 24 ||
		     p->vallen_max < 32))
		err = bad_answer(p, "get_maxes");
	if (!err && p->vallen_max > WEFT_PMI_LINE_MAX / 2)
		p->vallen_max = WEFT_PMI_LINE_MAX / 2;
	return err;
}

static weft_err learn_name(struct weft_pmi *p)
{
	weft_err err = send_line(p, "cmd=get_my_kvsname\n");
	if (!err)
		err = expect_answer(p, "get_my_kvsname", "my_kvsname");
	if (err)
		return err;
	char saved;
	char *name = field_of(p, "kvsname", &saved);
	if (!name || !*name || strlen(name) >= sizeof p->kvsname)
		return bad_answer(p, "get_my_kvsname");
	memcpy(p->kvsname, name, strlen(name) + 1);
	restore_field(name, saved);
	return WEFT_OK;
}

static void shut_line(struct weft_pmi *p, bool keep_fd)
{
	/* Relaxed: weft_boot_pmi_abort may read either value; a write to a closed socket fails. */
	int fd = atomic_exchange_explicit(&p->x_fd, -1, memory_order_relaxed);
	if (fd >= 0 && !keep_fd)
		close(fd);
	if (p->line)
		explicit_bzero(p->line, WEFT_PMI_LINE_MAX);
	free(p->line);
	p->line = NULL;
	p->fill = p->line_end = 0;
}

weft_err weft_boot_pmi_open(struct weft_pmi *p, int fd)
{
	p->line = malloc(WEFT_PMI_LINE_MAX + 1);
	if (!p->line)
		return WEFT_ERR_NOMEM;
	p->fill = p->line_end = 0;
	if (fcntl(fd, F_SETFD, FD_CLOEXEC))
		weft_debug("F_SETFD on PMI_FD: %s", strerror(errno));
	atomic_store_explicit(&p->x_fd, fd, memory_order_relaxed); /* before other threads */
	weft_err err = greet_server(p);
	if (p->quiet && err == WEFT_ERR_PEER)
		err = WEFT_ERR_UNSUPPORTED; /* not in this way, at least */
	p->quiet = p->quiet && err;
	if (!err)
		err = learn_limits(p);
	if (!err)
		err = learn_name(p);
	if (err)
		shut_line(p, err == WEFT_ERR_UNSUPPORTED);
	return err;
}

weft_err weft_boot_pmi_put(struct weft_pmi *p, const char *key, const char *value)
{
	weft_err err = send_line(p, "cmd=put kvsname=%s key=%s value=%s\n", p->kvsname, key, value);
	if (!err)
		err = expect_answer(p, "put", "put_result");
	if (!err && !field_is(p, "rc", "0")) {
		weft_error("the launcher does not store key %s", key);
		err = WEFT_ERR_LIMIT;
	}
	return err;
}

weft_err weft_boot_pmi_get(struct weft_pmi *p, const char *key, const char **value_p)
{
	char asked[96];
	snprintf(asked, sizeof asked, "get of key %s", key);
	weft_err err = send_line(p, "cmd=get kvsname=%s key=%s\n", p->kvsname, key);
	if (!err)
		err = expect_answer(p, asked, "get_result");
	if (err)
		return err;
	int rc;
	if (field_int(p, "rc", &rc))
		return bad_answer(p, asked);
	if (rc != 0)
		return WEFT_ERR_NOENT;
	char saved;
	const char *value = field_of(p, "value", &saved);
	if (!value)
		return bad_answer(p, asked);
	*value_p = value;
	return WEFT_OK;
}

weft_err weft_boot_pmi_get_batch(struct weft_pmi *p, int batch, int from, int *next_p,
				 const char **text_p)
{
	char asked[64];
	snprintf(asked, sizeof asked, "get of batch %d from rank %d", batch, from);
	weft_err err = send_line(p, "cmd=weft_batch batch=%d from=%d\n", batch, from);
	if (!err)
		err = expect_answer(p, asked, "weft_batch_result");
	if (err)
		return err;
	int rc, next;
	if (field_int(p, "rc", &rc))
		return bad_answer(p, asked);
	if (rc != 0)
		return WEFT_ERR_NOENT;
	char saved;
	const char *text = field_int(p, "next", &next) ? NULL : field_of(p, "value", &saved);
	if (!text || next <= from)
		return bad_answer(p, asked);
	*next_p = next;
	*text_p = text;
	return WEFT_OK;
}

weft_err weft_boot_pmi_barrier(struct weft_pmi *p)
{
	weft_err err = send_line(p, "cmd=barrier_in\n");
	if (!err)
		err = weft_boot_pmi_wait_peers(fd_of(p), p->tells);
	return err ? err : expect_answer(p, "barrier_in", "barrier_out");
}

void weft_boot_pmi_finalize(struct weft_pmi *p)
{
	weft_err err = send_line(p, "cmd=finalize\n");
	if (!err)
		err = expect_answer(p, "finalize", "finalize_ack");
	if (err)
		weft_debug("no orderly end with the launcher");
	shut_line(p, false);
}

bool weft_boot_pmi_abort(struct weft_pmi *p, int code, const char *text)
{
	char line[600];
	int n = snprintf(line, sizeof line, "cmd=abort exitcode=%d%s%.*s", code,
			 text ? " why=" : "", 500, text ? text : "");
	for (char *c = line; (c = strchr(c, '\n'));)
		*c = ' ';
	line[n++] = '\n';
	/* Relaxed: the number is all that is read; see shut_line(). */
	int fd = atomic_load_explicit(&p->x_fd, memory_order_relaxed);
	return fd >= 0 && weft_boot_pmi_write_some(fd, line, (size_t)n) == n;
}

/* --- the table ------------------------------------------------------------------------------- */

/* Hydra 4.2's proxy aborts when its whole answer, "cmd=get_result rc=0 value=... found=TRUE", is
 * longer than the longest value that it offers. */
#define ANSWER_OVERHEAD 64

static struct weft_pmi channel = {.x_fd = -1};
static bool is_wefts; /* mpiexec is weft's own: it knows cmd=weft_batch and abort's why= */

static weft_err ask_about_job(struct weft_boot_info *info)
{
	weft_err err = weft_boot_pmi_int(&channel, "get_appnum", "appnum", "appnum", &info->appnum);
	if (!err)
		err = weft_boot_pmi_int(&channel, "get_universe_size", "universe_size", "size",
					&info->universe);
	if (!err && info->universe < 0)
		info->universe = 0;
	if (!err && info->appnum < 0)
		info->appnum = 0;
	return err;
}

static weft_err open_pmi1(const struct weft_boot_env *env, struct weft_boot_info *info)
{
	is_wefts = env->secret_fd >= 0;
	info->launcher = is_wefts ? "weft" : "hydra";
	channel.tells = !is_wefts && env->rank < 2; /* not each rank of thousands */
	info->protection =
		is_wefts ? "came over a socket that this process inherited from mpiexec"
			 : "went through the launcher's PMI-1 space: between hosts as plain "
			   "text, as well protected as the launcher's own connections";
	channel.quiet = !env->last;
	weft_err err = weft_boot_pmi_open(&channel, env->pmi_fd);
	return err ? err : ask_about_job(info);
}

static void close_pmi1(void)
{
	weft_boot_pmi_finalize(&channel);
}

static size_t pmi1_value_max(void)
{
	size_t most = (size_t)channel.vallen_max;
	return most >= 4 * ANSWER_OVERHEAD ? most - ANSWER_OVERHEAD : most - 1;
}

static weft_err put_pmi1(const char *key, const char *value)
{
	return weft_boot_pmi_put(&channel, key, value);
}

static weft_err get_pmi1(const char *key, const char **value_p)
{
	return weft_boot_pmi_get(&channel, key, value_p);
}

static weft_err get_many_pmi1(int batch, int from, int *next_p, const char **text_p)
{
	return is_wefts ? weft_boot_pmi_get_batch(&channel, batch, from, next_p, text_p)
			: WEFT_ERR_NOENT;
}

static weft_err fence_pmi1(void)
{
	return weft_boot_pmi_barrier(&channel);
}

static bool abort_pmi1(int code, bool bereft, const char *why)
{
	if (bereft && !is_wefts)
		return false;
	return weft_boot_pmi_abort(&channel, code, bereft ? why : NULL);
}

const struct weft_boot_service weft_boot_pmi1 = {
	.open = open_pmi1,
	.close = close_pmi1,
	.value_max = pmi1_value_max,
	.put = put_pmi1,
	.get = get_pmi1,
	.get_many = get_many_pmi1,
	.fence = fence_pmi1,
	.abort = abort_pmi1,
};
