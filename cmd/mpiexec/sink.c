/* SPDX-License-Identifier: BSD-3-Clause */
/* sink.c - two buffers: the main thread fills one while the writer empties the other. */
#include "sink.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>
#include "events.h"
#include "say.h"

#define SINK_FULL ((size_t)4 << 20)

struct buffer {
	char *text;
	size_t len, cap;
};

struct sink {
	int fd, ring_fd; /* I; fd -1: of many files, each text has a head */
	struct event_source source;
	pthread_mutex_t lock; /* held for appends and swaps only, never across a system call */
	pthread_cond_t more;
	struct buffer filling;    /* lock */
	struct buffer writing;    /* the writer */
	_Atomic size_t x_waiting; /* bytes put and not yet written */
	_Atomic bool x_broken;    /* the writer */
	_Atomic int x_error;      /* the writer: errno of what broke it */
	const void *last_origin;  /* main */
	bool in_line;             /* main: the last text did not end a line */
};

static struct sink sinks[2], file_sink;
static struct sink *out_sink, *err_sink;
static void (*on_drained)(void);

/* True when the text is out; false: the reader is gone. */
static bool write_out(int fd, const char *text, size_t len)
{
	while (len) { /* ends: the reader takes the bytes, or the descriptor fails */
		ssize_t n = write(fd, text, len);
		if (n >= 0) {
			text += n;
			len -= (size_t)n;
		} else if (errno == EAGAIN) { /* another process made our shared descriptor so */
			struct pollfd p = {.fd = fd, .events = POLLOUT};
			(void)poll(&p, 1, -1);
		} else if (errno != EINTR) {
			return false;
		}
	}
	return true;
}

/* What stands before each text in the sink of files. */
struct file_head {
	int fd;
	size_t len;
};

/* Writes each text to its file. */
static bool write_files(const char *text, size_t len)
{
	bool good = true;
	int error = 0;
	for (size_t at = 0; at < len;) { /* ends: at moves past one text */
		struct file_head head;
		memcpy(&head, text + at, sizeof head);
		at += sizeof head;
		if (!write_out(head.fd, text + at, head.len)) {
			good = false;
			error = errno;
		}
		at += head.len;
	}
	errno = error;
	return good;
}

static void ring_owner(struct sink *s)
{
	uint64_t one = 1;
	(void)!write(s->ring_fd, &one, sizeof one);
}

static void *writer_main(void *arg)
{
	struct sink *s = arg;
	for (;;) { /* ends with the process */
		pthread_mutex_lock(&s->lock);
		while (!s->filling.len)
			pthread_cond_wait(&s->more, &s->lock);
		struct buffer full = s->filling;
		s->filling = s->writing;
		s->filling.len = 0;
		pthread_mutex_unlock(&s->lock);
		s->writing = full;
		/* Relaxed: the flag is the writer's own until the counts below publish it. */
		if (!atomic_load_explicit(&s->x_broken, memory_order_relaxed) &&
		    !(s->fd < 0 ? write_files(full.text, full.len)
				: write_out(s->fd, full.text, full.len))) {
			atomic_store_explicit(&s->x_error, errno, memory_order_relaxed);
			atomic_store_explicit(&s->x_broken, true, memory_order_relaxed);
		}
		/* OUT -> IDLE (sink_is_idle).  Carries: the bytes are written, x_broken and x_error
		 * are set. Without it, mpiexec could end while its last line is still on the way.
		 */
		atomic_fetch_sub_explicit(&s->x_waiting, full.len, memory_order_release);
		ring_owner(s);
	}
	return NULL;
}

static void writer_drained(struct event_source *source, uint32_t events)
{
	struct sink *s = (struct sink *)((char *)source - offsetof(struct sink, source));
	uint64_t count;
	(void)!read(s->ring_fd, &count, sizeof count);
	(void)events;
	on_drained();
}

static bool open_sink(struct sink *s, int fd)
{
	pthread_t thread;
	s->fd = fd;
	s->source.ready = writer_drained;
	s->ring_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->more, NULL);
	if (s->ring_fd < 0 || !events_add(s->ring_fd, EPOLLIN, &s->source) ||
	    pthread_create(&thread, NULL, writer_main, s))
		return false;
	pthread_detach(thread);
	return true;
}

static bool same_file(int a, int b)
{
	struct stat x, y;
	return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev &&
	       x.st_ino == y.st_ino;
}

static void carry_line(const char *text, int len)
{
	sink_put(err_sink, NULL, NULL, 0, text, (size_t)len);
}

bool sink_open_all(void (*drained_fn)(void))
{
	on_drained = drained_fn;
	if (!open_sink(&sinks[0], STDOUT_FILENO))
		return false;
	out_sink = err_sink = &sinks[0];
	if (!same_file(STDOUT_FILENO, STDERR_FILENO)) {
		if (!open_sink(&sinks[1], STDERR_FILENO))
			return false;
		err_sink = &sinks[1];
	}
	say_through(carry_line);
	return true;
}

struct sink *sink_stdout(void)
{
	return out_sink;
}

struct sink *sink_stderr(void)
{
	return err_sink;
}

static void append_text(struct buffer *b, const char *text, size_t len)
{
	if (b->cap - b->len < len) {
		size_t cap = (b->len + len) * 2;
		char *more = realloc(b->text, cap);
		if (!more)
			return; /* this text is lost; the job goes on */
		b->text = more;
		b->cap = cap;
	}
	if (len)
		memcpy(b->text + b->len, text, len);
	b->len += len;
}

void sink_put(struct sink *s, const void *origin, const char *head, size_t head_len,
	      const char *text, size_t len)
{
	bool cut = s->in_line && s->last_origin != origin;
	bool go_on = s->in_line && !cut;
	pthread_mutex_lock(&s->lock);
	size_t before = s->filling.len;
	if (cut)
		append_text(&s->filling, "\n", 1);
	if (!go_on)
		append_text(&s->filling, head, head_len);
	append_text(&s->filling, text, len);
	/* Relaxed: under the lock; the writer subtracts only what it took from here. */
	atomic_fetch_add_explicit(&s->x_waiting, s->filling.len - before, memory_order_relaxed);
	pthread_cond_signal(&s->more);
	pthread_mutex_unlock(&s->lock);
	if (len)
		s->in_line = text[len - 1] != '\n';
	s->last_origin = origin;
}

struct sink *sink_files(void)
{
	static bool opened;
	if (!opened && !open_sink(&file_sink, -1))
		return NULL;
	opened = true;
	return &file_sink;
}

void sink_put_file(struct sink *s, int fd, const char *text, size_t len)
{
	struct file_head head = {.fd = fd, .len = len};
	if (!len)
		return;
	pthread_mutex_lock(&s->lock);
	size_t before = s->filling.len;
	append_text(&s->filling, (const char *)&head, sizeof head);
	append_text(&s->filling, text, len);
	if (s->filling.len - before != sizeof head + len)
		s->filling.len = before; /* no memory: a head needs its text */
	/* Relaxed: as in sink_put. */
	atomic_fetch_add_explicit(&s->x_waiting, s->filling.len - before, memory_order_relaxed);
	pthread_cond_signal(&s->more);
	pthread_mutex_unlock(&s->lock);
}

static size_t bytes_waiting(const struct sink *s)
{
	/* IDLE <- OUT: see writer_main. */
	return atomic_load_explicit(&s->x_waiting, memory_order_acquire);
}

bool sink_is_full(const struct sink *s)
{
	return bytes_waiting(s) > SINK_FULL;
}

bool sink_is_broken(const struct sink *s)
{
	(void)bytes_waiting(s);
	return atomic_load_explicit(&s->x_broken, memory_order_relaxed);
}

int sink_error(const struct sink *s)
{
	(void)bytes_waiting(s);
	return atomic_load_explicit(&s->x_error, memory_order_relaxed);
}

bool sink_is_idle(const struct sink *s)
{
	return bytes_waiting(s) == 0;
}
