/* SPDX-License-Identifier: BSD-3-Clause */
/* spawned.c - the socket to the process that has called MPI_Comm_spawn. */
#include "spawned.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "events.h"
#include "say.h"

static int fd = -1;
static bool spawned;
static struct event_source source;
static void (*on_orphaned)(void);

static void close_range_of(unsigned first, unsigned last)
{
	if (first > last || syscall(SYS_close_range, first, last, 0) == 0)
		return;
	/* Before Linux 5.9; what is not open does no harm. */
	for (unsigned i = first; i <= last && i < 65536; i++)
		close((int)i);
}

void spawned_begin(void)
{
	const char *text = getenv("WEFT_SPAWN_FD");
	if (!text)
		return;
	spawned = true;
	fd = atoi(text);
	unsetenv("WEFT_SPAWN_FD");
	if (fd <= STDERR_FILENO || fcntl(fd, F_SETFD, FD_CLOEXEC)) {
		say("WEFT_SPAWN_FD names no descriptor");
		exit(1);
	}
	prctl(PR_SET_NAME, SPAWNED_NAME);
	close_range_of(STDERR_FILENO + 1, (unsigned)fd - 1);
	close_range_of((unsigned)fd + 1, ~0u);
	/* Its parent waits for this process alone: wait() there never meets the one that goes on. */
	pid_t pid = fork();
	if (pid < 0)
		say("fork: %s", strerror(errno));
	if (pid)
		_exit(pid < 0);
}

void spawned_forget_hosts(void)
{
	static const char *const names[] = {JOB_HOSTS, JOB_HOST, JOB_RSH};
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		unsetenv(names[i]);
}

bool spawned_is(void)
{
	return spawned;
}

static void close_parent(void)
{
	events_remove(fd);
	close(fd);
	fd = -1;
}

static void parent_ready(struct event_source *self, uint32_t events)
{
	char word;
	(void)self;
	(void)events;
	ssize_t n = recv(fd, &word, 1, MSG_DONTWAIT);
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	close_parent();
	if (n <= 0)
		on_orphaned();
}

bool spawned_watch(void (*orphaned)(void))
{
	on_orphaned = orphaned;
	source.ready = parent_ready;
	return fd < 0 || events_add(fd, EPOLLIN, &source);
}

bool spawned_tell(int rank, int error, int step)
{
	int32_t word[3] = {rank, error, step};
	return fd >= 0 && send(fd, word, sizeof word, MSG_NOSIGNAL) == (ssize_t)sizeof word;
}
