/* SPDX-License-Identifier: BSD-3-Clause */
/* shm_socket.c - the unix sockets over which shm's peers meet: abstract names, same user only. */
#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "base/log.h"
#include "net/shm/shm_int.h"

/* An abstract name: nothing in the file system, gone with its socket. */
static socklen_t fill_name(struct sockaddr_un *sa, const char *name)
{
	memset(sa, 0, sizeof *sa);
	sa->sun_family = AF_UNIX;
	size_t n = strlen(name);
	memcpy(sa->sun_path + 1, name, n);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n);
}

int weft_net_shm_socket_listen(struct weft_shm *s)
{
	struct sockaddr_un sa;
	uint8_t random[16];
	int n;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		goto failed;
	/* Another process cannot squat on a name that it cannot guess. */
	randombytes_buf(random, sizeof random);
	n = snprintf(s->name, sizeof s->name, "weft-");
	sodium_bin2hex(s->name + n, sizeof s->name - (size_t)n, random, sizeof random);
	socklen_t len = fill_name(&sa, s->name);
	if (bind(fd, (struct sockaddr *)&sa, len) == 0 && listen(fd, 4096) == 0)
		return fd;
failed:
	weft_error("shm: cannot listen on a unix socket: %s%s", strerror(errno),
		   errno == EMFILE ? " (raise ulimit -n)" : "");
	if (fd >= 0)
		close(fd);
	return -1;
}

int weft_net_shm_socket_dial(void *arg, int peer, unsigned n, char *where, size_t size)
{
	struct weft_shm *s = arg;
	struct sockaddr_un sa;
	snprintf(where, size, "unix socket @%s", s->link[peer].name);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -1;
	socklen_t len = fill_name(&sa, s->link[peer].name);
	if (connect(fd, (struct sockaddr *)&sa, len) == 0)
		return fd;
	int error = errno; /* EAGAIN: the backlog is full; tried again like other failures */
	close(fd);
	errno = error;
	return -1;
}

bool weft_net_shm_socket_owner(int fd, pid_t *pid_p)
{
	struct ucred cred;
	socklen_t len = sizeof cred;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) != 0 || cred.uid != geteuid() ||
	    cred.pid <= 0)
		return false;
	*pid_p = cred.pid;
	return true;
}

bool weft_net_shm_socket_screen(void *arg, int fd, char *why, size_t size)
{
	pid_t pid;
	if (weft_net_shm_socket_owner(fd, &pid))
		return true;
	snprintf(why, size, "the process at the other end belongs to another user");
	return false;
}
