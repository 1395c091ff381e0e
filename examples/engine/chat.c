/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * chat.c - two processes talk over a socket: the first one listens, the second connects.
 *
 *   chat PATH
 *
 * One source for two descriptors, the keyboard and the other side; each event's function posts it
 * again.  No thread polls and nothing runs while both are silent.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <weft/source.h>

static struct weft_events *fds;
static int other;
static struct weft_event keyboard, peer;

static bool put(int fd, const char *text, ssize_t n)
{
	while (n > 0) {
		/* A side that has gone is an error, not a signal. */
		ssize_t k = fd == other ? send(fd, text, (size_t)n, MSG_NOSIGNAL)
					: write(fd, text, (size_t)n);
		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			return false;
		text += k;
		n -= k;
	}
	return true;
}

static bool typed(struct weft_event *ev)
{
	char line[512];
	ssize_t n = weft_event_result(ev) < 0 ? 0 : read(0, line, sizeof line);
	if (n <= 0 || !put(other, line, n)) {
		shutdown(other, SHUT_WR); /* we have said all */
		return false;
	}
	return weft_event_post_fd(fds, ev, 0, POLLIN) == WEFT_OK;
}

static bool heard(struct weft_event *ev)
{
	char line[512];
	ssize_t n = weft_event_result(ev) < 0 ? 0 : read(other, line, sizeof line);
	if (n <= 0) {
		put(2, "(the other side has said all)\n", 30);
		return false;
	}
	put(1, "> ", 2);
	put(1, line, n);
	return weft_event_post_fd(fds, ev, other, POLLIN) == WEFT_OK;
}

/* A socket without a listener: its owner was interrupted. */
static void clear(const char *path)
{
	struct stat st;
	if (errno == ECONNREFUSED && stat(path, &st) == 0 && S_ISSOCK(st.st_mode))
		unlink(path);
}

/* Waits for the other side like for anything else. */
static int meet(const char *path)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (strlen(path) >= sizeof a.sun_path)
		errno = ENAMETOOLONG;
	if (s < 0 || strlen(path) >= sizeof a.sun_path)
		return -1;
	strcpy(a.sun_path, path);
	if (connect(s, (struct sockaddr *)&a, sizeof a) == 0)
		return s;
	clear(path);
	if (bind(s, (struct sockaddr *)&a, sizeof a) || listen(s, 1))
		return -1;
	struct weft_event ev;
	weft_event_init(&ev, NULL, NULL);
	weft_event_post_fd(fds, &ev, s, POLLIN);
	weft_event_wait(&ev, WEFT_FOREVER);
	int c = accept(s, NULL, NULL);
	weft_events_forget_fd(fds, s);
	close(s);
	unlink(path);
	return c;
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: chat PATH\n");
		return 2;
	}
	if (weft_engine_start() || weft_events_open_fds(&fds))
		return 1;
	other = meet(argv[1]);
	if (other < 0) {
		fprintf(stderr, "chat: %s: %s\n", argv[1], strerror(errno));
		return 1;
	}
	weft_event_init(&keyboard, typed, NULL);
	weft_event_init(&peer, heard, NULL);
	weft_event_post_fd(fds, &peer, other, POLLIN);
	weft_event_post_fd(fds, &keyboard, 0, POLLIN);
	/* Until both sides have reached the end of their input. */
	weft_event_wait(&peer, WEFT_FOREVER);
	weft_event_wait(&keyboard, WEFT_FOREVER);
	weft_events_close(fds);
	weft_engine_stop();
	close(other);
	return 0;
}
