/* SPDX-License-Identifier: BSD-3-Clause */
/* doctor.c - starts `weft doctor`, which lies beside mpiexec: to guard the job, or for a last look at it. */
#include "doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "say.h"

#define LAST_MS 5000 /* what a last look may take */

static void become_doctor(const char *path, const char *how, const char *pid, const sigset_t *mask)
{
	int fd = open("/dev/null", O_RDONLY);
	if (fd >= 0)
		dup2(fd, STDIN_FILENO);
	dup2(STDERR_FILENO, STDOUT_FILENO);
	sigprocmask(SIG_SETMASK, mask, NULL);
	execl(path, "weft", "doctor", how, pid, (char *)NULL);
	if (strcmp(how, "--guard") == 0)
		say("WEFT_DEADLOCK=abort: %s: %s: the job is not watched", path, strerror(errno));
	_exit(1);
}

/* The command beside us; false: we do not know where that is. */
static bool find_weft(char *path, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", path, size - sizeof "weft");
	if (n <= 0)
		return false;
	path[n] = 0;
	strcpy(strrchr(path, '/') + 1, "weft");
	return true;
}

void doctor_last_look(void)
{
	char path[4096], pid[20];
	sigset_t none;
	if (!find_weft(path, sizeof path))
		return;
	sigemptyset(&none);
	snprintf(pid, sizeof pid, "%d", (int)getpid());
	pid_t child = fork();
	if (child == 0)
		become_doctor(path, "--last", pid, &none);
	if (child < 0)
		return;
	int fd = (int)syscall(SYS_pidfd_open, child, 0);
	struct pollfd end = {.fd = fd, .events = POLLIN};
	if (fd < 0 || poll(&end, 1, LAST_MS) <= 0)
		kill(child, SIGKILL);
	if (fd >= 0)
		close(fd);
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		; /* ends with the child, which is ending */
}

void doctor_start(const sigset_t *mask)
{
	const char *how = getenv("WEFT_DEADLOCK");
	char path[4096], pid[20];
	if (!how || strcmp(how, "abort") != 0 || !find_weft(path, sizeof path))
		return;
	snprintf(pid, sizeof pid, "%d", (int)getpid());
	pid_t child = fork();
	if (child == 0) {
		if (fork() == 0)
			become_doctor(path, "--guard", pid, mask);
		_exit(0);
	}
	if (child < 0)
		say("WEFT_DEADLOCK=abort: fork: %s: the job is not watched", strerror(errno));
	else
		while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
			; /* ends with the child, at once */
}
