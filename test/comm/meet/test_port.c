/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_port.c - processes call a port: each line carries messages of any length in order, many call
 * at once, a wrong capability and a closed port are told apart, callers that have given up are not accepted,
 * nothing is left behind.
 */
#include <dirent.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/log.h"
#include "base/settings.h"
#include "check.h"
#include "comm/meet/port.h"
#include "task/task.h"

#define CALLERS 6
#define LONG_BYTES 1000003

static char name[WEFT_PORT_NAME];

static void start(void)
{
	CHECK_EQ(weft_settings_load(), WEFT_OK);
	weft_log_init();
	CHECK_EQ(weft_engine_start(), WEFT_OK);
}

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

static uint8_t byte_at(size_t i, int who)
{
	return (uint8_t)(i * 7 + i / 251 + (size_t)who);
}

static void send_long(struct weft_comm_line *l, int from)
{
	uint8_t *data = malloc(LONG_BYTES);
	CHECK(data != NULL);
	for (size_t i = 0; i < LONG_BYTES; i++)
		data[i] = byte_at(i, from);
	CHECK_EQ(weft_comm_line_send(l, data, LONG_BYTES), WEFT_OK);
	free(data);
}

static void check_long(struct weft_comm_line *l, int from)
{
	void *in;
	size_t len;
	CHECK_EQ(weft_comm_line_recv(l, &in, &len), WEFT_OK);
	CHECK_EQ(len, LONG_BYTES);
	for (size_t i = 0; i < len; i++)
		CHECK_EQ(((uint8_t *)in)[i], byte_at(i, from));
	free(in);
}

/* Says its number, then swaps something long, then hears a farewell. */
static void call(int me)
{
	struct weft_comm_line *l;
	void *in;
	size_t len;
	CHECK_EQ(weft_comm_port_call(name, WEFT_FOREVER, &l), WEFT_OK);
	CHECK_EQ(weft_comm_line_swap(l, &me, sizeof me, &in, &len), WEFT_OK);
	CHECK_EQ(len, sizeof me);
	CHECK_EQ(*(int *)in, -me);
	free(in);
	send_long(l, me);
	check_long(l, 100 + me);
	CHECK_EQ(weft_comm_line_recv(l, &in, &len), WEFT_OK);
	CHECK_EQ(len, 0);
	free(in);
	weft_comm_line_close(l);
}

static void serve(struct weft_comm_port *p)
{
	struct weft_comm_line *l;
	void *in;
	size_t len;
	CHECK_EQ(weft_comm_port_accept(p, WEFT_FOREVER, &l), WEFT_OK);
	CHECK_EQ(weft_comm_line_recv(l, &in, &len), WEFT_OK);
	CHECK_EQ(len, sizeof(int));
	int caller = *(int *)in, answer = -caller;
	free(in);
	CHECK_EQ(weft_comm_line_send(l, &answer, sizeof answer), WEFT_OK);
	send_long(l, 100 + caller);
	check_long(l, caller);
	CHECK_EQ(weft_comm_line_send(l, NULL, 0), WEFT_OK);
	weft_comm_line_close(l);
}

/* The callers start before the engine does here, and learn the name by a pipe each. */
static void run_caller(int fd, int me)
{
	CHECK_EQ(read(fd, name, sizeof name), (ssize_t)sizeof name);
	start();
	call(me);
	weft_engine_stop();
	exit(0);
}

static void *serve_thread(void *p)
{
	serve(p);
	return NULL;
}

static void *call_thread(void *me)
{
	call((int)(intptr_t)me);
	return NULL;
}

/* Both ends in one process: nothing may be left. */
static void leaves_nothing(struct weft_comm_port *p)
{
	int before = 0;
	for (int i = 0; i < 20; i++) {
		pthread_t t, u;
		CHECK(!pthread_create(&t, NULL, serve_thread, p));
		CHECK(!pthread_create(&u, NULL, call_thread, (void *)(intptr_t)(i + 1)));
		CHECK(!pthread_join(t, NULL));
		CHECK(!pthread_join(u, NULL));
		if (i == 2)
			before = descriptors();
	}
	CHECK_EQ(descriptors(), before);
}

static void refuses(void)
{
	struct weft_comm_line *l;
	char wrong[WEFT_PORT_NAME];
	strcpy(wrong, name);
	wrong[10] = wrong[10] == '0' ? '1' : '0'; /* of the capability */
	CHECK_EQ(weft_comm_port_call(wrong, WEFT_FOREVER, &l), WEFT_ERR_AUTH);
	static const char *const nonsense[] = {"", "weft2:", "tag#0$description#x$port#1$",
					       "weft2:00@x"};
	for (size_t i = 0; i < weft_countof(nonsense); i++)
		CHECK_EQ(weft_comm_port_call(nonsense[i], WEFT_FOREVER, &l), WEFT_ERR_NOENT);
	memset(wrong, 'f', sizeof wrong - 1);
	wrong[sizeof wrong - 1] = 0;
	CHECK_EQ(weft_comm_port_call(wrong, WEFT_FOREVER, &l), WEFT_ERR_NOENT);
	/* A port that does not accept. */
	CHECK_EQ(weft_comm_port_call(name, 50000000, &l), WEFT_ERR_TIMEOUT);
}

/* A caller that gives up in the queue is not handed to accept: the next one is.  Without background progress the port
 * has not heard of its end by then. */
static void goes_on(struct weft_comm_port *p)
{
	for (int i = 0; i < 20; i++) {
		pthread_t t;
		struct weft_comm_line *l;
		weft_progress_set(false);
		CHECK_EQ(weft_comm_port_call(name, 20000000, &l), WEFT_ERR_TIMEOUT);
		CHECK(!pthread_create(&t, NULL, call_thread, (void *)(intptr_t)(i + 1)));
		serve(p);
		CHECK(!pthread_join(t, NULL));
		weft_progress_set(true);
	}
}

static void *cancel_thread(void *p)
{
	weft_comm_port_cancel(p);
	return NULL;
}

int main(void)
{
	int fds[CALLERS][2];
	pid_t pid[CALLERS];
	for (int i = 0; i < CALLERS; i++) {
		CHECK(!pipe(fds[i]));
		pid[i] = fork();
		CHECK(pid[i] >= 0);
		if (!pid[i])
			run_caller(fds[i][0], 1 + i);
	}
	start();
	struct weft_comm_port *p;
	struct weft_comm_line *l;
	CHECK_EQ(weft_comm_port_open(&p), WEFT_OK);
	CHECK(strlen(weft_comm_port_name(p)) < WEFT_PORT_NAME);
	CHECK(!strpbrk(weft_comm_port_name(p), " \t\n"));
	strcpy(name, weft_comm_port_name(p));
	CHECK_EQ(weft_comm_port_accept(p, 1000000, &l), WEFT_ERR_TIMEOUT);
	for (int i = 0; i < CALLERS; i++)
		CHECK_EQ(write(fds[i][1], name, sizeof name), (ssize_t)sizeof name);
	for (int i = 0; i < CALLERS; i++)
		serve(p);
	for (int i = 0; i < CALLERS; i++) {
		int status;
		CHECK_EQ(waitpid(pid[i], &status, 0), pid[i]);
		CHECK_EQ(status, 0);
	}
	leaves_nothing(p);
	goes_on(p);
	refuses();
	pthread_t t;
	CHECK(!pthread_create(&t, NULL, cancel_thread, p));
	/* The caller that has given up (refuses) may stand in the queue still. */
	CHECK_EQ(weft_comm_port_accept(p, WEFT_FOREVER, &l), WEFT_ERR_CANCELLED);
	CHECK(!pthread_join(t, NULL));
	weft_comm_port_close(p);
	CHECK_EQ(weft_comm_port_call(name, WEFT_FOREVER, &l), WEFT_ERR_NOENT);
	weft_engine_stop();
	return 0;
}
