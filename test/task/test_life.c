/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine starts and stops again and again, leaves no descriptor or thread behind, works without
 * background threads, and in a child of fork answers with an error instead of a hang.
 */
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include "base/settings.h"
#include "fake_source.h"
#include "task/queue/weft_task.h"

static int entries(const char *path)
{
	int n = 0;
	DIR *d = opendir(path);
	if (!d)
		SKIP("no /proc");
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static void signals(void *arg)
{
	weft_wait_completion_signal(arg);
}

static void one_message(void)
{
	static struct fake_source net;
	struct weft_completion c;
	struct fake_msg m = {.fn = signals, .arg = &c};
	weft_wait_completion_init(&c);
	fake_add(&net, "fake", true);
	fake_send(&net, &m);
	weft_task_engine_wait(&c);
	fake_remove(&net);
}

static enum weft_task_verdict does_nothing(struct weft_task *t, void *arg)
{
	return WEFT_TASK_DONE;
}

static void starts_and_stops(void)
{
	/* The counters' memory stays from the first count on, for readers outside. */
	CHECK_EQ(weft_engine_start(), WEFT_OK);
	one_message();
	weft_engine_stop();
	int fds = entries("/proc/self/fd");
	for (int i = 0; i < 20; i++) {
		CHECK_EQ(weft_engine_start(), WEFT_OK);
		CHECK_EQ(weft_engine_start(), WEFT_OK); /* one more user */
		weft_engine_stop();
		one_message();
		if (i % 2)
			weft_progress_set(false);
		weft_engine_stop();
		weft_progress_set(true);
	}
	CHECK_EQ(entries("/proc/self/fd"), fds);
	CHECK_EQ(weft_engine_poll(), 0);
	weft_engine_stop();
}

static void reports_what_is_left(void)
{
	struct weft_task t;
	setenv("WEFT_PROGRESS", "off", 1);
	CHECK_EQ(weft_settings_load(), WEFT_OK);
	CHECK_EQ(weft_engine_start(), WEFT_OK);
	weft_task_init(&t, "left", does_nothing, NULL, 0);
	weft_task_submit(&t);
	weft_engine_stop(); /* one warning, no crash */
	unsetenv("WEFT_PROGRESS");
	CHECK_EQ(weft_settings_load(), WEFT_OK);
}

static void child_is_told(void)
{
	CHECK_EQ(weft_engine_start(), WEFT_OK);
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		struct weft_completion c, *p = &c;
		weft_wait_completion_init(&c);
		alarm(200);
		if (weft_engine_poll() != 0 ||
		    weft_task_engine_wait_all(&p, 1, WEFT_FOREVER) != WEFT_ERR_STATE ||
		    weft_engine_start() != WEFT_ERR_STATE)
			_exit(1);
		weft_progress_set(false);
		weft_engine_stop();
		_exit(0);
	}
	int status;
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	one_message(); /* the parent is unharmed */
	weft_engine_stop();
}

/* The engine's threads take no signal of the application. */
static volatile sig_atomic_t taken_by_main;
static pthread_t main_thread;

static void on_signal(int sig)
{
	taken_by_main += pthread_equal(pthread_self(), main_thread) ? 1 : 1000;
}

static void signals_stay_away(void)
{
	main_thread = pthread_self();
	signal(SIGUSR1, on_signal);
	CHECK_EQ(weft_engine_start(), WEFT_OK);
	for (int i = 0; i < 50; i++) {
		kill(getpid(), SIGUSR1);
		usleep(100);
	}
	CHECK(taken_by_main > 0 && taken_by_main < 1000);
	weft_engine_stop();
}

int main(void)
{
	CHECK_EQ(weft_setting_set(WEFT_SET_LOG, "error"), WEFT_OK);
	starts_and_stops();
	reports_what_is_left();
	signals_stay_away();
	child_is_told();
	return 0;
}
