/* SPDX-License-Identifier: BSD-3-Clause */
/* keeper.c - the keeper's loop: spawn, signal, reap, end. */
#include "keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "base/base.h"
#include "rank.h"
#include "say.h"
#include "spawned.h"
#include "tree.h"

#define GRACE_NS 1500000000u /* an aborted job is over within two seconds */
#define KILL_AGAIN_NS 20000000u
#define GIVE_UP_NS                                                                                 \
	10000000000u /* a process that SIGKILL does not end: another user's, a dead disk           \
		      */

static struct keeper {
	const struct keeper_setup *setup;
	int sock, child_fd;
	pid_t *pids;  /* of each rank: 0 not started or gone */
	bool leaving; /* told to end when no spawned job is left */
	bool ending;
	uint64_t kill_at;    /* next time to send SIGKILL, once ending */
	uint64_t give_up_at; /* 0: no SIGKILL has been sent yet */
} k;

bool keeper_send(int sock, struct keeper_msg msg, const int *fds)
{
	struct iovec iov = {&msg, sizeof msg};
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(KEEPER_FDS * sizeof(int))];
	} control;
	struct msghdr h = {.msg_iov = &iov, .msg_iovlen = 1};
	if (fds) {
		memset(&control, 0, sizeof control);
		h.msg_control = &control;
		h.msg_controllen = sizeof control;
		struct cmsghdr *c = CMSG_FIRSTHDR(&h);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(KEEPER_FDS * sizeof(int));
		memcpy(CMSG_DATA(c), fds, KEEPER_FDS * sizeof(int));
	}
	ssize_t n;
	do
		n = sendmsg(sock, &h, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)sizeof msg;
}

static void tell_owner(enum keeper_op op, int rank, int value, int step)
{
	struct keeper_msg m = {.op = (int32_t)op, .rank = rank, .value = value, .step = step};
	(void)keeper_send(k.sock, m, NULL); /* mpiexec gone: the loop sees the end of the socket */
}

/* One message; 0: mpiexec is gone. */
static int receive_message(struct keeper_msg *msg, int fds[KEEPER_FDS])
{
	struct iovec iov = {msg, sizeof *msg};
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(KEEPER_FDS * sizeof(int))];
	} control;
	struct msghdr h = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof control};
	ssize_t n;
	do
		n = recvmsg(k.sock, &h, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n != (ssize_t)sizeof *msg)
		return 0;
	struct cmsghdr *c = CMSG_FIRSTHDR(&h);
	bool whole = c && c->cmsg_type == SCM_RIGHTS &&
		     c->cmsg_len == CMSG_LEN(KEEPER_FDS * sizeof(int));
	if (whole)
		memcpy(fds, CMSG_DATA(c), KEEPER_FDS * sizeof(int));
	for (int i = 0; i < KEEPER_FDS && !whole; i++)
		fds[i] = -1;
	return 1;
}

/* --- signals --- */

static bool is_rank_group(pid_t pgid, void *arg)
{
	(void)arg;
	for (int i = 0; i < k.setup->plan->size; i++)
		if (k.pids[i] == pgid)
			return true;
	return false;
}

/* Each rank's group at once (no process forks out of it meanwhile), then the processes elsewhere. */
static void signal_all(int sig)
{
	for (int i = 0; i < k.setup->plan->size; i++)
		if (k.pids[i]) /* not reaped yet, so the number is still its own */
			(void)kill(-k.pids[i], sig);
	(void)tree_signal(sig, 0, is_rank_group, NULL);
}

void keeper_kill_all(void)
{
	uint64_t give_up_at = weft_clock_ns() + GIVE_UP_NS;
	while (weft_clock_ns() < give_up_at) { /* ends sooner: we inherit each orphan, none stays */
		int status;
		pid_t pid = waitpid(-1, &status, WNOHANG);
		if (pid > 0 || (pid < 0 && errno == EINTR))
			continue;
		if (pid < 0)
			return;
		(void)tree_signal(SIGKILL, 0, NULL, NULL);
		struct timespec pause = {.tv_nsec = 2000000};
		nanosleep(&pause, NULL);
	}
}

/* --- children --- */

static void rank_gone(pid_t pid, int status)
{
	for (int i = 0; i < k.setup->plan->size; i++) {
		if (k.pids[i] == pid) {
			k.pids[i] = 0;
			tell_owner(KEEPER_EXITED, i, status, 0);
			return;
		}
	}
	/* Else an orphan that we inherited: its status is of no use. */
}

/* Reaps what has ended.  True: no child is left. */
static bool reap_children(void)
{
	for (;;) { /* ends: no child, or none that has ended */
		int status;
		pid_t pid = waitpid(-1, &status, WNOHANG);
		if (pid > 0)
			rank_gone(pid, status);
		else if (pid == 0 || errno != EINTR)
			return pid < 0;
	}
}

/* stdin is rank 0's alone: its writer shall notice when that rank stops reading. */
static void forget_stdin(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0)
		return;
	dup2(null, STDIN_FILENO);
	close(null);
}

static void spawn_rank(int rank, int fds[KEEPER_FDS])
{
	pid_t pid = 0;
	struct rank_failure failure = {.step = KEEPER_STEP_SETUP, .error = EMFILE};
	if (fds[0] >= 0 && !k.ending)
		pid = rank_spawn(k.setup, rank, fds, &failure);
	for (int i = 0; i < KEEPER_FDS; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	if (rank == 0)
		forget_stdin();
	if (pid > 0) {
		k.pids[rank] = pid;
		tell_owner(KEEPER_STARTED, rank, (int)pid, 0);
	} else {
		tell_owner(KEEPER_FAILED, rank, failure.error, failure.step);
	}
}

/* --- the loop --- */

static void begin_end(bool at_once)
{
	uint64_t now = weft_clock_ns();
	if (!k.ending && !at_once) {
		signal_all(SIGTERM);
		signal_all(SIGCONT); /* a stopped process acts on SIGTERM only when continued */
		k.kill_at = now + GRACE_NS;
	} else if (at_once) {
		k.kill_at = now;
	}
	k.ending = true;
}

static void obey_message(const struct keeper_msg *m, int fds[KEEPER_FDS])
{
	switch ((enum keeper_op)m->op) {
	case KEEPER_SPAWN:
		spawn_rank(m->rank, fds);
		break;
	case KEEPER_SIGNAL:
		signal_all(m->value);
		break;
	case KEEPER_LEAVE:
		k.leaving = true;
		break;
	case KEEPER_END:
		begin_end(false);
		break;
	case KEEPER_KILL:
		begin_end(true);
		break;
	default:
		break;
	}
}

static void kill_again(void)
{
	uint64_t now = weft_clock_ns();
	signal_all(SIGKILL);
	k.kill_at = now + KILL_AGAIN_NS;
	if (!k.give_up_at)
		k.give_up_at = now + GIVE_UP_NS;
}

static bool given_up(void)
{
	if (!k.give_up_at || weft_clock_ns() < k.give_up_at)
		return false;
	say("some processes of the job do not end, not even by SIGKILL");
	return true;
}

static int next_timeout_ms(void)
{
	uint64_t now = weft_clock_ns();
	if (!k.ending)
		return -1;
	return k.kill_at > now ? (int)((k.kill_at - now) / 1000000u) + 1 : 0;
}

static void keep_ranks(void)
{
	for (;;) { /* ends: told to end and no process left, or mpiexec is gone */
		bool empty = reap_children();
		if (k.leaving && !k.ending && (empty || !tree_has(SPAWNED_NAME)))
			begin_end(false);
		if (k.ending && (empty || given_up())) {
			tell_owner(KEEPER_GONE, 0, 0, 0);
			return;
		}
		if (k.ending && weft_clock_ns() >= k.kill_at)
			kill_again();
		struct pollfd p[2] = {{.fd = k.sock, .events = POLLIN},
				      {.fd = k.child_fd, .events = POLLIN}};
		if (poll(p, 2, next_timeout_ms()) <= 0)
			continue;
		if (p[1].revents) {
			struct signalfd_siginfo si;
			(void)!read(k.child_fd, &si, sizeof si);
		}
		if (p[0].revents) {
			struct keeper_msg m;
			int fds[KEEPER_FDS];
			if (!receive_message(&m, fds)) {
				keeper_kill_all();
				return;
			}
			obey_message(&m, fds);
		}
	}
}

/* Another name in `ps` and for killall, so that ending every "mpiexec" spares the keeper. */
static void rename_process(const struct keeper_setup *s)
{
	static const char title[] = "weft-keeper";
	char *begin = s->argv[0];
	char *end = s->argv[s->argc - 1] + strlen(s->argv[s->argc - 1]);
	size_t room = (size_t)(end - begin);
	memset(begin, 0, room);
	memcpy(begin, title, room < sizeof title ? room : sizeof title);
	prctl(PR_SET_NAME, title);
}

_Noreturn static void keeper_main(const struct keeper_setup *setup, int sock)
{
	sigset_t child;
	k.setup = setup;
	k.sock = sock;
	say_through(NULL); /* the carrier is our parent's */
	if (setup->forget)
		setup->forget();
	rename_process(setup);
	setsid();
	/* Every signal is blocked already: only SIGKILL ends the keeper before its ranks. */
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	k.child_fd = signalfd(-1, &child, SFD_CLOEXEC);
	k.pids = calloc((size_t)setup->plan->size, sizeof *k.pids);
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) || k.child_fd < 0 || !k.pids) {
		say("the keeper process cannot start: %s", strerror(errno));
		_exit(1);
	}
	keep_ranks();
	_exit(0);
}

pid_t keeper_start(const struct keeper_setup *setup, int *sock_p)
{
	int pair[2];
	sigset_t all, before;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair)) {
		say("socketpair: %s", strerror(errno));
		return -1;
	}
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &before);
	pid_t pid = fork();
	if (pid == 0) {
		close(pair[0]);
		keeper_main(setup, pair[1]);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	close(pair[1]);
	if (pid < 0) {
		say("fork: %s", strerror(errno));
		close(pair[0]);
		return -1;
	}
	*sock_p = pair[0];
	return pid;
}
