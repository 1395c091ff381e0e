/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmi2.c - PMI-2: a length of six characters, then "cmd=NAME;key=value;...;"; a ';' within a value is
 * doubled.  Only the greeting is a line, as in PMI-1.
 */
#include "boot/pmi2.h"
#include "boot/batch.h"
#include "boot/pmi_io.h"
#include "boot/service.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/log.h"
#include "base/settings.h"

#define FENCE "kvs-fence" /* the one request whose answer other ranks hold up */
#define LENGTH_CHARS 6
#define GREETING_MAX 256
#define VALUE_MAX                                                                                  \
	WEFT_PMI2_VALUE_MAX /* the interface says 1024 with its NUL; launchers count it differently */

static int fd_of(const struct weft_pmi2 *p)
{
	/* Relaxed: the starting thread reads what it wrote itself. */
	return atomic_load_explicit(&p->x_fd, memory_order_relaxed);
}

static void log_refusal(const struct weft_pmi2 *p, const char *text, const char *asked)
{
	if (p->quiet)
		weft_info("PMI-2: %s %s", text, asked);
	else
		weft_error("%s %s", text, asked);
}

/* --- messages --- */

/* Reads at least one byte, at most n; *got_p: how many. */
static weft_err read_some(struct weft_pmi2 *p, char *to, size_t n, uint64_t deadline, size_t *got_p)
{
	for (;;) { /* ends: bytes, an error or the deadline */
		weft_err err = weft_boot_pmi_wait_ready(fd_of(p), POLLIN, deadline);
		if (err)
			return err;
		ssize_t got = read(fd_of(p), to, n);
		if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN))
			return WEFT_ERR_PEER;
		if (got > 0) {
			*got_p = (size_t)got;
			return WEFT_OK;
		}
	}
}

static void no_answer(const struct weft_pmi2 *p, const char *asked, weft_err err)
{
	if (err == WEFT_ERR_TIMEOUT)
		weft_error("no answer from the launcher to %s within %lld s (setting "
			   "init_timeout): is a rank missing or stopped?",
			   asked, (long long)weft_setting_int(WEFT_SET_INIT_TIMEOUT));
	else
		log_refusal(p, "the launcher closed its channel instead of answering", asked);
}

/* Reads exactly n bytes. */
static weft_err read_bytes(struct weft_pmi2 *p, char *to, size_t n, const char *asked)
{
	uint64_t deadline = weft_boot_pmi_deadline();
	weft_err err = WEFT_OK;
	for (size_t got; n && !err; n -= got, to += got) /* ends: each turn reads or fails */
		if ((err = read_some(p, to, n, deadline, &got)))
			break;
	if (err)
		no_answer(p, asked, err);
	return err;
}

static weft_err bad_answer(struct weft_pmi2 *p, const char *asked)
{
	log_refusal(p, "the launcher gives no answer that makes sense to", asked);
	return WEFT_ERR_PROTO;
}

/* Splits "key=value;key=value;" in place; false: it is nothing of the kind. */
static bool split_fields(struct weft_pmi2 *p)
{
	char *at = p->text;
	p->n_fields = 0;
	while (*at) { /* ends: each turn moves on, and the text ends with a NUL */
		char *value = strpbrk(at, "=;");
		if (!value || *value == ';' || p->n_fields == WEFT_PMI2_FIELDS_MAX)
			return false;
		*value++ = 0;
		p->field[p->n_fields].key = at;
		p->field[p->n_fields++].value = value;
		char *to = value;
		for (at = value; *at && (*at != ';' || at[1] == ';'); at++) {
			at += *at == ';';
			*to++ = *at;
		}
		at += *at == ';';
		*to = 0;
	}
	return true;
}

static const char *field_of(const struct weft_pmi2 *p, const char *key)
{
	for (int i = 0; i < p->n_fields; i++)
		if (strcmp(p->field[i].key, key) == 0)
			return p->field[i].value;
	return NULL;
}

static bool number_in(const char *text, long lo, long hi, int *out_p)
{
	char *end;
	if (!text)
		return false;
	errno = 0;
	long v = strtol(text, &end, 10);
	if (end == text || *end || errno || v < lo || v > hi)
		return false;
	*out_p = (int)v;
	return true;
}

/* The number of bytes that follow; 0: not a number that can be. */
static size_t length_of(const char head[LENGTH_CHARS])
{
	char text[LENGTH_CHARS + 1], *end;
	memcpy(text, head, LENGTH_CHARS);
	text[LENGTH_CHARS] = 0;
	if (strspn(text, " 0123456789") != LENGTH_CHARS)
		return 0;
	long n = strtol(text, &end, 10);
	return *end && *end != ' ' ? 0 : n > WEFT_PMI2_TEXT_MAX ? 0 : (size_t)n;
}

/* Reads one answer into p->field; it must be the one to cmd, with rc=0. */
static weft_err read_answer(struct weft_pmi2 *p, const char *cmd, const char *asked)
{
	char head[LENGTH_CHARS], want[64];
	int rc;
	weft_err err = read_bytes(p, head, sizeof head, asked);
	if (err)
		return err;
	size_t n = length_of(head);
	if (!n)
		return bad_answer(p, asked);
	err = read_bytes(p, p->text, n, asked);
	if (err)
		return err;
	p->text[n] = 0;
	snprintf(want, sizeof want, "%s-response", cmd);
	if (memchr(p->text, 0, n) || !split_fields(p) || p->n_fields < 1 ||
	    strcmp(p->field[0].key, "cmd") != 0 || strcmp(p->field[0].value, want) != 0 ||
	    !number_in(field_of(p, "rc"), INT32_MIN, INT32_MAX, &rc))
		return bad_answer(p, asked);
	if (rc == 0)
		return WEFT_OK;
	log_refusal(p, "the launcher refuses", asked);
	return WEFT_ERR_LIMIT;
}

/* "cmd=...;" with its length, to be freed; NULL: no memory. */
static char *request_of(const char *cmd, const char *fmt, va_list ap)
{
	char *rest, *message;
	int len = vasprintf(&rest, fmt, ap);
	if (len < 0)
		return NULL;
	if (asprintf(&message,
		     "%6zu"
		     "cmd=%s;%s",
		     strlen(cmd) + 5 + (size_t)len, cmd, rest) < 0)
		message = NULL;
	explicit_bzero(rest, (size_t)len); /* it may hold the job's secret */
	free(rest);
	return message;
}

static weft_err send_text(struct weft_pmi2 *p, char *text, const char *asked)
{
	weft_err err = weft_boot_pmi_write_all(fd_of(p), text, strlen(text));
	if (err)
		log_refusal(p, "the launcher does not take the request", asked);
	explicit_bzero(text, strlen(text));
	return err;
}

/* Sends "cmd=...;" and reads its answer. */
static weft_err ask_server(struct weft_pmi2 *p, const char *cmd, const char *asked, const char *fmt,
			   ...) __attribute__((format(printf, 4, 5)));
static weft_err ask_server(struct weft_pmi2 *p, const char *cmd, const char *asked, const char *fmt,
			   ...)
{
	va_list ap;
	va_start(ap, fmt);
	char *message = request_of(cmd, fmt, ap);
	va_end(ap);
	if (!message)
		return WEFT_ERR_NOMEM;
	weft_err err = send_text(p, message, asked);
	free(message);
	if (!err && strcmp(cmd, FENCE) == 0)
		err = weft_boot_pmi_wait_peers(fd_of(p),
					       p->rank < 2); /* not each rank of thousands */
	return err ? err : read_answer(p, cmd, asked);
}

/* --- life --- */

/* The greeting is a line of PMI-1's kind; nothing may follow it before the next request.  line[0] is 0 if it
 * has no end, or an end too early. */
static weft_err read_greeting(struct weft_pmi2 *p, char line[GREETING_MAX])
{
	uint64_t deadline = weft_boot_pmi_deadline();
	size_t n = 0, got;
	do { /* ends: a line's end, a full line or an error */
		weft_err err = read_some(p, line + n, GREETING_MAX - n, deadline, &got);
		if (err) {
			no_answer(p, "init", err);
			return err;
		}
		n += got;
	} while (!memchr(line + n - got, '\n', got) && n < GREETING_MAX);
	if (line[n - 1] != '\n')
		n = 1;
	line[n - 1] = 0;
	return WEFT_OK;
}

static weft_err greet_server(struct weft_pmi2 *p)
{
	static const char hello[] = "cmd=init pmi_version=2 pmi_subversion=0\n";
	char line[GREETING_MAX];
	weft_err err = weft_boot_pmi_write_all(fd_of(p), hello, sizeof hello - 1);
	if (err) {
		log_refusal(p, "the launcher does not take the request", "init");
		return err;
	}
	err = read_greeting(p, line);
	if (err)
		return err;
	if (strncmp(line, "cmd=response_to_init ", 21) != 0 || strchr(line, '\n'))
		return bad_answer(p, "init");
	if (!strstr(line, "pmi_version=2") || !strstr(line, "rc=0")) {
		log_refusal(p, "the launcher refuses PMI version 2", "");
		return WEFT_ERR_UNSUPPORTED;
	}
	return WEFT_OK;
}

static weft_err learn_place(struct weft_pmi2 *p)
{
	const char *job = getenv("PMI_JOBID"), *rank = getenv("PMI_RANK");
	bool named = job && *job; /* MPICH 4.2's Hydra, which gives none, takes no empty value */
	weft_err err = ask_server(p, "fullinit", "fullinit", "%s%s%spmirank=%s;threaded=TRUE;",
				  named ? "pmijobid=" : "", named ? job : "", named ? ";" : "",
				  rank ? rank : "0");
	if (err)
		return err;
	if (!number_in(field_of(p, "size"), 1, INT32_MAX, &p->size) ||
	    !number_in(field_of(p, "rank"), 0, p->size - 1, &p->rank))
		return bad_answer(p, "fullinit");
	if (!number_in(field_of(p, "appnum"), 0, INT32_MAX, &p->appnum))
		p->appnum = 0;
	return WEFT_OK;
}

/* A rank of another launcher below a batch script has SLURM_PROCID, too. */
static bool by_slurm(void)
{
	const char *job = getenv("PMI_JOBID");
	return getenv("SLURM_PROCID") && job && *job && !getenv("HYDI_CONTROL_FD");
}

static weft_err learn_job(struct weft_pmi2 *p)
{
	const char *told = getenv("PMI_JOBID");
	/* What Slurm answers, too; each question costs its node's daemon a turn. */
	if (by_slurm() && told && *told && strlen(told) < sizeof p->jobid && !strchr(told, ';')) {
		memcpy(p->jobid, told, strlen(told) + 1);
		return WEFT_OK;
	}
	weft_err err = ask_server(p, "job-getid", "job-getid", "%s", "");
	if (err)
		return err;
	const char *id = field_of(p, "jobid");
	if (!id || !*id || strlen(id) >= sizeof p->jobid || strchr(id, ';'))
		return bad_answer(p, "job-getid");
	memcpy(p->jobid, id, strlen(id) + 1);
	return WEFT_OK;
}

static void shut_line(struct weft_pmi2 *p, bool keep_fd)
{
	/* Relaxed: weft_boot_pmi2_abort may read either value; a write to a closed socket fails. */
	int fd = atomic_exchange_explicit(&p->x_fd, -1, memory_order_relaxed);
	if (fd >= 0 && !keep_fd)
		close(fd);
	if (p->text)
		explicit_bzero(p->text, WEFT_PMI2_TEXT_MAX);
	explicit_bzero(p->many, sizeof p->many);
	free(p->text);
	p->text = NULL;
	p->n_fields = 0;
}

weft_err weft_boot_pmi2_open(struct weft_pmi2 *p, int fd)
{
	p->text = calloc(1, WEFT_PMI2_TEXT_MAX + 1);
	if (!p->text)
		return WEFT_ERR_NOMEM;
	if (fcntl(fd, F_SETFD, FD_CLOEXEC))
		weft_debug("F_SETFD on PMI_FD: %s", strerror(errno));
	atomic_store_explicit(&p->x_fd, fd, memory_order_relaxed); /* before other threads */
	weft_err err = greet_server(p);
	if (p->quiet && err == WEFT_ERR_PEER)
		err = WEFT_ERR_UNSUPPORTED; /* not in this way, at least */
	p->quiet = p->quiet && err;
	if (!err)
		err = learn_place(p);
	if (!err)
		err = learn_job(p);
	if (err)
		shut_line(p, err == WEFT_ERR_UNSUPPORTED);
	return err;
}

weft_err weft_boot_pmi2_put(struct weft_pmi2 *p, const char *key, const char *value)
{
	return ask_server(p, "kvs-put", "kvs-put", "key=%s;value=%s;", key, value);
}

static weft_err value_of(struct weft_pmi2 *p, const char *asked, const char **value_p)
{
	/* Slurm and Hydra say found=, the interface's text flag=. */
	const char *flag = field_of(p, "flag"), *value = field_of(p, "value");
	if (!flag)
		flag = field_of(p, "found");
	if (flag && strcmp(flag, "TRUE") != 0)
		return WEFT_ERR_NOENT;
	if (!value)
		return bad_answer(p, asked);
	*value_p = value;
	return WEFT_OK;
}

weft_err weft_boot_pmi2_get(struct weft_pmi2 *p, const char *key, const char **value_p)
{
	char asked[96];
	snprintf(asked, sizeof asked, "kvs-get of key %s", key);
	weft_err err = ask_server(p, "kvs-get", asked, "jobid=%s;srcid=-1;key=%s;", p->jobid, key);
	return err ? err : value_of(p, asked, value_p);
}

static weft_err send_gets(struct weft_pmi2 *p, int batch, int from, int n)
{
	char *text = NULL, name[WEFT_BOOT_PART_NAME];
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);
	if (!out)
		return WEFT_ERR_NOMEM;
	for (int i = 0; i < n; i++) {
		weft_boot_batch_part_name(name, batch, from + i, 0);
		fprintf(out, "%6zucmd=kvs-get;jobid=%s;srcid=-1;key=%s;",
			strlen("cmd=kvs-get;jobid=;srcid=-1;key=;") + strlen(p->jobid) +
				strlen(name),
			p->jobid, name);
	}
	weft_err err = fclose(out) ? WEFT_ERR_NOMEM : send_text(p, text, "kvs-get");
	free(text);
	return err;
}

weft_err weft_boot_pmi2_get_many(struct weft_pmi2 *p, int batch, int from, int *next_p,
				 const char **text_p)
{
	int n = p->size - from < WEFT_PMI2_GETS ? p->size - from : WEFT_PMI2_GETS;
	size_t len = 0;
	weft_err err = send_gets(p, batch, from, n);
	for (int i = 0; i < n && !err; i++) {
		const char *value = "";
		err = read_answer(p, "kvs-get", "kvs-get");
		if (!err)
			err = value_of(p, "kvs-get", &value);
		if (err == WEFT_ERR_NOENT)
			err = WEFT_OK;
		if (!err && strlen(value) > VALUE_MAX)
			err = bad_answer(p, "kvs-get");
		if (!err)
			len += (size_t)snprintf(p->many + len, sizeof p->many - len, "%s;", value);
	}
	*next_p = from + n;
	*text_p = p->many;
	return err;
}

weft_err weft_boot_pmi2_attribute(struct weft_pmi2 *p, const char *key, const char **value_p)
{
	weft_err err = ask_server(p, "info-getjobattr", "info-getjobattr", "key=%s;", key);
	return err ? err : value_of(p, "info-getjobattr", value_p);
}

weft_err weft_boot_pmi2_fence(struct weft_pmi2 *p)
{
	return ask_server(p, FENCE, FENCE, "%s", "");
}

void weft_boot_pmi2_finalize(struct weft_pmi2 *p)
{
	p->quiet = true; /* the job is over: a launcher that has gone is no error */
	if (ask_server(p, "finalize", "finalize", "%s", ""))
		weft_debug("no orderly end with the launcher");
	p->quiet = false;
	shut_line(p, false);
}

bool weft_boot_pmi2_abort(struct weft_pmi2 *p, const char *why)
{
	char line[700], body[600];
	int n = snprintf(body, sizeof body, "cmd=abort;isworld=TRUE;msg=%.*s;", 500,
			 why ? why : "");
	for (char *c = body + strlen("cmd=abort;isworld=TRUE;msg="); c < body + n - 1; c++)
		if (*c == ';' || *c == '\n')
			*c = ',';
	int len = snprintf(line, sizeof line, "%6d%s", n, body);
	/* Relaxed: the number is all that is read; see shut_line(). */
	int fd = atomic_load_explicit(&p->x_fd, memory_order_relaxed);
	return fd >= 0 && weft_boot_pmi_write_some(fd, line, (size_t)len) == len;
}

/* --- the table ------------------------------------------------------------------------------- */

static struct weft_pmi2 channel = {.x_fd = -1};

static weft_err open_pmi2(const struct weft_boot_env *env, struct weft_boot_info *info)
{
	const char *text;
	channel.quiet = !env->last;
	info->launcher = by_slurm() ? "slurm, by PMI-2" : "PMI-2";
	info->protection = "went through the launcher's PMI-2 space: between hosts as plain text, "
			   "as well protected as the launcher's own connections";
	weft_err err = weft_boot_pmi2_open(&channel, env->pmi_fd);
	if (err)
		return err;
	info->rank = channel.rank;
	info->size = channel.size;
	info->appnum = channel.appnum;
	err = weft_boot_pmi2_attribute(&channel, "universeSize", &text);
	if (err && err != WEFT_ERR_NOENT)
		return err;
	if (err || !number_in(text, 0, INT32_MAX, &info->universe))
		info->universe = 0;
	return WEFT_OK;
}

static void close_pmi2(void)
{
	weft_boot_pmi2_finalize(&channel);
}

static size_t pmi2_value_max(void)
{
	return VALUE_MAX;
}

static weft_err put_pmi2(const char *key, const char *value)
{
	return weft_boot_pmi2_put(&channel, key, value);
}

static weft_err get_pmi2(const char *key, const char **value_p)
{
	return weft_boot_pmi2_get(&channel, key, value_p);
}

/* Slurm's daemon takes a request after the other, however many have come. */
static weft_err get_many_pmi2(int batch, int from, int *next_p, const char **text_p)
{
	return by_slurm() ? weft_boot_pmi2_get_many(&channel, batch, from, next_p, text_p)
			  : WEFT_ERR_NOENT;
}

static weft_err fence_pmi2(void)
{
	return weft_boot_pmi2_fence(&channel);
}

static bool abort_pmi2(int code, bool bereft, const char *why)
{
	return !bereft && weft_boot_pmi2_abort(&channel, why);
}

const struct weft_boot_service weft_boot_pmi2 = {
	.open = open_pmi2,
	.close = close_pmi2,
	.value_max = pmi2_value_max,
	.put = put_pmi2,
	.get = get_pmi2,
	.get_many = get_many_pmi2,
	.fence = fence_pmi2,
	.abort = abort_pmi2,
};
