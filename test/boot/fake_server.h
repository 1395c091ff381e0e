/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fake_server.h - a PMI-1 server with faults, and a client process under test with its stderr.
 *
 * The client runs in a child, because the layer keeps its job in one place per process.
 */
#ifndef TEST_BOOT_FAKE_SERVER_H
#define TEST_BOOT_FAKE_SERVER_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "boot/boot.h"
#include "check.h"

struct fake {
	/* Answers `line`; returns false to say that the plain answer is wanted. */
	bool (*odd)(int fd, const char *line);
	int vallen;
	const char *maxes;    /* the whole answer to get_maxes, or NULL */
	size_t chunk;         /* bytes per write; 0: all at once */
	const void *handover; /* what WEFT_BOOT_FD gives, or NULL: a foreign launcher */
	size_t handover_len;
	int close_after; /* requests until the server leaves; 0: never */
};

#define FAKE_PAIRS 20000
static struct {
	char key[128];
	char *value;
} fake_kvs[FAKE_PAIRS];
static int fake_count;

static inline void fake_send(const struct fake *f, int fd, const char *text)
{
	size_t len = strlen(text), n = f->chunk ? f->chunk : len;
	for (size_t at = 0; at < len; at += n)
		if (write(fd, text + at, len - at < n ? len - at : n) < 0)
			return;
}

static inline const char *fake_get(const char *key)
{
	for (int i = 0; i < fake_count; i++)
		if (strcmp(fake_kvs[i].key, key) == 0)
			return fake_kvs[i].value;
	return NULL;
}

static inline void fake_put(const char *key, const char *value)
{
	CHECK(fake_count < FAKE_PAIRS);
	snprintf(fake_kvs[fake_count].key, sizeof fake_kvs[0].key, "%s", key);
	fake_kvs[fake_count++].value = strdup(value);
}

static inline void fake_answer(const struct fake *f, int fd, char *line)
{
	static char value[70000], text[80000];
	char key[128];
	if (f->odd && f->odd(fd, line))
		return;
	if (strncmp(line, "cmd=init ", 9) == 0) {
		fake_send(f, fd, "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n");
	} else if (strcmp(line, "cmd=get_maxes") == 0) {
		snprintf(text, sizeof text,
			 "cmd=maxes kvsname_max=64 keylen_max=64 vallen_max=%d\n",
			 f->vallen ? f->vallen : 1024);
		fake_send(f, fd, f->maxes ? f->maxes : text);
	} else if (strcmp(line, "cmd=get_my_kvsname") == 0) {
		fake_send(f, fd, "cmd=my_kvsname kvsname=kvs_0\n");
	} else if (strcmp(line, "cmd=get_appnum") == 0) {
		fake_send(f, fd, "cmd=appnum appnum=0\n");
	} else if (strcmp(line, "cmd=get_universe_size") == 0) {
		fake_send(f, fd, "cmd=universe_size size=-1\n");
	} else if (strcmp(line, "cmd=barrier_in") == 0) {
		fake_send(f, fd, "cmd=barrier_out\n");
	} else if (strcmp(line, "cmd=finalize") == 0) {
		fake_send(f, fd, "cmd=finalize_ack\n");
	} else if (sscanf(line, "cmd=put kvsname=kvs_0 key=%127s value=%69999s", key, value) == 2) {
		size_t most = (size_t)(f->vallen ? f->vallen : 1024);
		CHECK(strlen(key) < 64 && strlen(value) < most);
		/* The answer with this value, as Hydra 4.2's proxy writes it. */
		CHECK(most < 256 ||
		      strlen(value) + strlen("cmd=get_result rc=0 value= found=TRUE\n") < most);
		fake_put(key, value);
		fake_send(f, fd, "cmd=put_result rc=0 msg=success\n");
	} else if (sscanf(line, "cmd=get kvsname=kvs_0 key=%127s", key) == 1) {
		const char *v = fake_get(key);
		if (v)
			snprintf(text, sizeof text, "cmd=get_result rc=0 msg=success value=%s\n",
				 v);
		else
			snprintf(text, sizeof text, "cmd=get_result rc=-1 msg=key_not_found\n");
		fake_send(f, fd, text);
	}
}

static inline void fake_serve(const struct fake *f, int fd)
{
	FILE *in = fdopen(dup(fd), "r");
	char *line = NULL;
	size_t cap = 0;
	int requests = 0;
	CHECK(in != NULL);
	for (ssize_t n; (n = getline(&line, &cap, in)) > 0;) {
		if (f->close_after && ++requests > f->close_after)
			break;
		line[n - 1] = 0;
		fake_answer(f, fd, line);
	}
	free(line);
	fclose(in);
}

/* In the client: what weft's mpiexec would have left for it. */
static inline void fake_hand_over(const struct fake *f, int pmi_fd)
{
	int pair[2];
	char text[32];
	struct stat st;
	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0 && fstat(pmi_fd, &st) == 0);
	CHECK(write(pair[0], f->handover, f->handover_len) == (ssize_t)f->handover_len);
	close(pair[0]);
	snprintf(text, sizeof text, "%d", pair[1]);
	setenv("WEFT_BOOT_FD", text, 1);
	snprintf(text, sizeof text, "%llu", (unsigned long long)st.st_ino);
	setenv("WEFT_BOOT_PMI", text, 1);
}

/* Runs client(size) against the server as `rank`; its stderr lands in err.  Returns its exit code;
 * 1000 + N: killed by signal N. */
static inline int fake_run(const struct fake *f, int rank, int size, int (*client)(void), char *err,
			   size_t err_size)
{
	int pair[2], errors[2], status;
	char text[32];
	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0 && pipe(errors) == 0);
	fflush(NULL);
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		close(pair[0]);
		close(errors[0]);
		dup2(errors[1], STDERR_FILENO);
		snprintf(text, sizeof text, "%d", pair[1]);
		setenv("PMI_FD", text, 1);
		snprintf(text, sizeof text, "%d", rank);
		setenv("PMI_RANK", text, 1);
		snprintf(text, sizeof text, "%d", size);
		setenv("PMI_SIZE", text, 1);
		if (f->handover)
			fake_hand_over(f, pair[1]);
		alarm(200);
		exit(client());
	}
	close(pair[1]);
	close(errors[1]);
	fake_serve(f, pair[0]);
	close(pair[0]);
	size_t have = 0;
	for (ssize_t n;
	     have < err_size - 1 && (n = read(errors[0], err + have, err_size - 1 - have)) > 0;)
		have += (size_t)n;
	err[have] = 0;
	close(errors[0]);
	CHECK(waitpid(pid, &status, 0) == pid);
	return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
}

static inline void fake_forget(void)
{
	while (fake_count)
		free(fake_kvs[--fake_count].value);
}

static inline int count_lines(const char *text)
{
	int n = 0;
	for (; *text; text++)
		n += *text == '\n';
	return n;
}

#endif
