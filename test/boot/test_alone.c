/* SPDX-License-Identifier: BSD-3-Clause */
/* Without a launcher a process is a job of one, with a secret and a key-value space of its own. */
#include "boot/boot.h"
#include "check.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void is_a_job_of_one(void)
{
	const struct weft_boot_info *info, *again;
	char value[16];
	uint8_t first[WEFT_SECRET_BYTES];
	static const uint8_t zero[WEFT_SECRET_BYTES];
	CHECK_EQ(weft_boot_put("k", "v"), WEFT_ERR_STATE);
	CHECK_EQ(weft_boot_open(&info), WEFT_OK);
	CHECK_EQ(weft_boot_open(&again), WEFT_ERR_STATE);
	CHECK_EQ(info->rank, 0);
	CHECK_EQ(info->size, 1);
	CHECK(strcmp(info->launcher, "none") == 0);
	CHECK(strlen(info->jobid) == 32);
	CHECK(memcmp(info->secret, zero, sizeof zero) != 0);
	memcpy(first, info->secret, sizeof first);
	CHECK_EQ(weft_boot_put("k", "v"), WEFT_OK);
	CHECK_EQ(weft_boot_get(0, "k", value, sizeof value), WEFT_ERR_NOENT);
	CHECK_EQ(weft_boot_fence(), WEFT_OK);
	CHECK_EQ(weft_boot_get(0, "k", value, sizeof value), WEFT_OK);
	CHECK(strcmp(value, "v") == 0);
	CHECK_EQ(weft_boot_put("k", "later"), WEFT_OK);
	CHECK_EQ(weft_boot_fence(), WEFT_OK);
	CHECK_EQ(weft_boot_get(0, "k", value, sizeof value), WEFT_OK);
	CHECK(strcmp(value, "later") == 0);
	weft_boot_close();
	weft_boot_close();
	CHECK_EQ(weft_boot_open(&info), WEFT_OK);
	CHECK(memcmp(info->secret, first, sizeof first) != 0);
	weft_boot_close();
}

static void abort_gives_the_code(void)
{
	static const int codes[][2] = {{7, 7}, {0, 1}, {256, 1}, {255, 255}, {-1, 255}};
	for (size_t i = 0; i < weft_countof(codes); i++) {
		int status, out[2];
		char text[8] = "";
		CHECK(pipe(out) == 0);
		pid_t pid = fork();
		if (pid == 0) {
			dup2(out[1], STDOUT_FILENO);
			printf("last");
			weft_boot_abort(codes[i][0], NULL);
		}
		close(out[1]);
		CHECK(waitpid(pid, &status, 0) == pid);
		CHECK_EQ(WEXITSTATUS(status), codes[i][1]);
		CHECK(read(out[0], text, sizeof text - 1) == 4 && strcmp(text, "last") == 0);
		close(out[0]);
	}
}

static _Atomic bool x_held;

static void *hold_stdout(void *arg)
{
	flockfile(stdout);
	/* HELD -> GO: orders nothing else; the main thread only waits for the lock to be taken. */
	atomic_store_explicit(&x_held, true, memory_order_release);
	pause();
	return arg;
}

static _Noreturn void abort_in_trouble(int out_fd, bool other_thread)
{
	static char much[1 << 16];
	pthread_t thread;
	dup2(out_fd, STDOUT_FILENO);
	printf("more");
	if (other_thread) {
		CHECK(pthread_create(&thread, NULL, hold_stdout, NULL) == 0);
		while (!atomic_load_explicit(&x_held, memory_order_acquire))
			sched_yield(); /* ends: the thread takes the lock */
	} else {
		CHECK(write(out_fd, much, sizeof much) == (ssize_t)sizeof much); /* full now */
	}
	alarm(200);
	weft_boot_abort(3, NULL);
}

/* Another thread is inside stdout for ever, or its reader has stopped: abort still ends the process. */
static void abort_does_not_wait(void)
{
#ifdef __SANITIZE_THREAD__
	return; /* its own exit flushes stdio and waits */
#endif
	for (int other_thread = 0; other_thread < 2; other_thread++) {
		int status, out[2];
		CHECK(pipe(out) == 0);
		pid_t pid = fork();
		if (pid == 0)
			abort_in_trouble(out[1], other_thread);
		CHECK(waitpid(pid, &status, 0) == pid);
		CHECK(WIFEXITED(status));
		CHECK_EQ(WEXITSTATUS(status), 3);
		close(out[0]);
		close(out[1]);
	}
}

int main(void)
{
	is_a_job_of_one();
	abort_gives_the_code();
	abort_does_not_wait();
	return 0;
}
