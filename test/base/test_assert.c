/* SPDX-License-Identifier: BSD-3-Clause */
/* Proves that a broken promise ends a checked process and says where, and that a kept one does not.
 */
#ifndef WEFT_CHECKED
#define WEFT_CHECKED
#endif
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/assert.h"
#include "base/log.h"
#include "check.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void under_lock(void)
{
	weft_assert_held(weft_mutex, &lock);
}

static void false_condition(void)
{
	int one = 1;
	weft_assert(one == 2);
}

/* Runs fn in a process of its own; how that ended, and what it said. */
static int run_in_child(void (*fn)(void), char *said, size_t size)
{
	int fds[2], status = 0;
	CHECK_EQ(pipe(fds), 0);
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		dup2(fds[1], STDERR_FILENO);
		fn();
		_exit(0);
	}
	close(fds[1]);
	ssize_t n = read(fds[0], said, size - 1);
	said[n > 0 ? n : 0] = 0;
	close(fds[0]);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	return status;
}

static void a_broken_promise_aborts(void)
{
	char said[400];
	int status = run_in_child(false_condition, said, sizeof said);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	CHECK(strstr(said, "test_assert.c:") && strstr(said, "one == 2"));
}

static void a_lock_must_be_held(void)
{
	char said[400];
	CHECK_EQ(run_in_child(under_lock, said, sizeof said) & 0x7f, SIGABRT);
	pthread_mutex_lock(&lock);
	under_lock();
	pthread_mutex_unlock(&lock);
}

int main(void)
{
	weft_log_init();
	a_broken_promise_aborts();
	a_lock_must_be_held();
	return 0;
}
