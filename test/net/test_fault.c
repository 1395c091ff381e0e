/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Drivers under a bad kernel: a storm of signals, few descriptors, system calls that are not
 * allowed, a peer that died before any rank connected, a child that keeps a dead peer's descriptors
 * open, a peer that is stopped for a while (WEFT_LONG: for ten times as long as a host may be
 * silent). Correct results or one clear line, never a hang.
 */
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include "base/counters.h"
#include "base/settings.h"
#include "driver_suite.c"

static void on_signal(int sig)
{
}

static void storm(void)
{
	struct sigaction sa = {.sa_handler = on_signal}; /* no SA_RESTART: EINTR everywhere */
	struct itimerval every = {{0, 100}, {0, 100}};
	CHECK(sigaction(SIGALRM, &sa, NULL) == 0);
	CHECK(setitimer(ITIMER_REAL, &every, NULL) == 0);
}

static void case_storm_flood(struct node *n)
{
	storm();
	case_flood(n);
}

static void sleep_in_storm(struct node *n)
{
	weft_err err = n->driver->arm(n->net, WEFT_ARM_ALL);
	if (err == WEFT_OK) {
		(void)wait_readable(n, 10000);
		(void)n->driver->arm(n->net, WEFT_ARM_OFF);
	}
	n->driver->poll(n->net);
}

static void case_storm_sleep(struct node *n)
{
	storm();
	for (uint64_t i = 0; i < 500; i++) {
		send_packet(n, next_of(n), 20000 < max_len(n, 0) ? 20000 : 2000);
		while (n->got_n[prev_of(n)] <= i)
			sleep_in_storm(n);
	}
}

/* No descriptor left on one side: the other's connection comes through once there are some. */
static void case_few_descriptors(struct node *n)
{
	struct rlimit old, low;
	meet(n);
	if (n->rank == 0) {
		CHECK(getrlimit(RLIMIT_NOFILE, &old) == 0);
		int next = dup(0);
		CHECK(next >= 0);
		close(next);
		low = old;
		low.rlim_cur = (rlim_t)next; /* as many as are open, and not one more */
		CHECK(setrlimit(RLIMIT_NOFILE, &low) == 0);
		atomic_store(&n->board->x_word[0], 1);
		for (uint64_t end = weft_clock_ns() + 300000000; weft_clock_ns() < end;)
			n->driver->poll(n->net);
		CHECK_EQ(n->got_n[1], 0);
		CHECK(setrlimit(RLIMIT_NOFILE, &old) == 0);
		while (n->got_n[1] < 10)
			poll_once(n);
	} else {
		while (!atomic_load(&n->board->x_word[0]))
			sched_yield();
		for (int i = 0; i < 10; i++)
			send_packet(n, 0, 100);
	}
}

/* The peer is gone before the other connects: down() with a reason. */
static void case_nobody_home(struct node *n)
{
	meet(n);
	if (n->rank == 0) {
		n->driver->close(n->net);
		exit(0);
	}
	CHECK_EQ(try_send(n, 0, 8), WEFT_POST_FULL);
	while (!n->down[0])
		sleep_once(n);
	CHECK(n->down_err[0] != WEFT_OK);
	CHECK(strstr(n->down_why[0], "refused"));
	CHECK_EQ(try_send(n, 0, 8), WEFT_POST_DOWN);
	n->driver->close(n->net);
	exit(0);
}

/* The peer dies, but a child that it forked holds its descriptors open. */
static void case_orphan(struct node *n)
{
	atomic_store(&n->board->x_pid[n->rank], getpid());
	send_packet(n, next_of(n), 8);
	while (n->got_n[prev_of(n)] < 1)
		poll_once(n);
	meet_polling(n);
	if (n->rank == 0) {
		pid_t child = fork();
		CHECK(child >= 0);
		if (child == 0) {
			atomic_store(&n->board->x_word[0], (uint64_t)getpid());
			for (;;)
				pause();
		}
		while (!atomic_load(&n->board->x_word[0]))
			sched_yield();
		kill(getpid(), SIGKILL);
	}
	while (!n->down[0])
		sleep_once(n);
	CHECK(n->down_err[0] != WEFT_OK);
	CHECK(kill((pid_t)atomic_load(&n->board->x_word[0]), SIGKILL) == 0);
	n->driver->close(n->net);
	exit(0);
}

/* Stopped is not dead: everything arrives once it goes on. */
static void case_stopped(struct node *n)
{
	const bool longer = getenv("WEFT_LONG") != NULL;
	const uint64_t count = longer ? 30000 : 3000;
	atomic_store(&n->board->x_pid[n->rank], getpid());
	send_packet(n, 1 - n->rank, 8);
	while (n->got_n[1 - n->rank] < 1)
		poll_once(n);
	meet_polling(n);
	if (n->rank == 0) {
		CHECK(kill(atomic_load(&n->board->x_pid[1]), SIGSTOP) == 0);
		uint64_t end = weft_clock_ns() + (longer ? 20000000000 : 500000000);
		uint64_t sent = 0;
		/* What fits while it is stopped, then the rest. */
		while (weft_clock_ns() < end && (longer || sent < count)) {
			enum weft_post p = sent < count ? try_send(n, 1, 1000) : WEFT_POST_FULL;
			CHECK(p != WEFT_POST_DOWN);
			sent += p != WEFT_POST_FULL;
			poll_once(n);
		}
		CHECK_EQ(n->down[1], 0);
		CHECK(kill(atomic_load(&n->board->x_pid[1]), SIGCONT) == 0);
		for (; sent < count; sent++)
			send_packet(n, 1, 1000);
	} else {
		while (n->got_n[0] < 1 + count)
			poll_once(n);
	}
}

/* From here on these system calls answer ENOSYS or EPERM, as in a container. */
static void forbid(const int *nr, unsigned n, int error)
{
	struct sock_filter f[2 + 2 * 8 + 1];
	unsigned at = 0;
	f[at++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
					       offsetof(struct seccomp_data, nr));
	for (unsigned i = 0; i < n; i++) {
		f[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)nr[i],
						       0, 1);
		f[at++] = (struct sock_filter)BPF_STMT(
			BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ((unsigned)error & SECCOMP_RET_DATA));
	}
	f[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog prog = {.len = (unsigned short)at, .filter = f};
	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) != 0)
		exit(77);
}

/* In a child, so that the filter ends with it. */
static void poorly(const char *what, const int *nr, unsigned n, int error)
{
	fflush(NULL);
	pid_t pid = fork();
	int status;
	CHECK(pid >= 0);
	if (pid == 0) {
		forbid(nr, n, error);
		run_case(&weft_net_driver_shm, what, 2, case_flood);
		run_case(&weft_net_driver_shm, what, 2, case_sleep);
		run_case(&weft_net_driver_shm, what, 2, case_copy);
		run_case(&weft_net_driver_shm, what, 2, case_killed_asleep);
		exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 77));
}

/* Without memfd there is no shm: it says so at open. */
static void no_memfd(void)
{
	const int nr[] = {SYS_memfd_create};
	fflush(NULL);
	pid_t pid = fork();
	int status;
	CHECK(pid >= 0);
	if (pid == 0) {
		struct weft_net *net;
		struct weft_net_job job = {
			.rank = 0, .size = 2, .jobid = "x", .secret = suite_secret};
		struct weft_net_events events = {0};
		forbid(nr, 1, ENOSYS);
		CHECK_EQ(weft_net_driver_shm.open(&job, &events, &net), WEFT_ERR_UNSUPPORTED);
		exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 77));
}

static void both(const struct weft_driver *d)
{
	run_case(d, "storm flood", 2, case_storm_flood);
	run_case(d, "storm sleep", 2, case_storm_sleep);
	run_case(d, "few descriptors", 2, case_few_descriptors);
	run_case(d, "peer gone early", 2, case_nobody_home);
	if (getenv("WEFT_LONG"))
		CHECK_EQ(weft_setting_set(WEFT_SET_TCP_SILENCE, "2"), WEFT_OK);
	run_case(d, "stopped", 2, case_stopped);
	CHECK_EQ(weft_setting_set(WEFT_SET_TCP_SILENCE, "30"), WEFT_OK);
	run_case(d, "orphan", 2, case_orphan);
}

int main(void)
{
	const int container[] = {SYS_membarrier, SYS_process_vm_readv, SYS_process_vm_writev,
				 SYS_pidfd_open};
	weft_log_level = WEFT_LOG_ERROR;
	both(&weft_net_driver_shm);
	both(&weft_net_driver_tcp);
	no_memfd();
	poorly("ENOSYS", container, weft_countof(container), ENOSYS);
	poorly("EPERM", container, weft_countof(container), EPERM);
	return 0;
}
