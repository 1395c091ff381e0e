/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * copy.c - copies a file through io_uring, 16 pieces under way at a time, with a progress bar.
 *
 *   copy FROM TO
 *
 * Each piece goes its way by itself: its function turns a finished read into a write and a finished
 * write into the next read, on whichever thread found out.  main only draws.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <weft/source.h>

#define PIECES 16
#define BYTES (256 * 1024)

static struct weft_events *files;
static int from, to;
static long long size;
static _Atomic long long next_at, written;
static _Atomic int failed; /* errno */

struct piece {
	struct weft_event ev; /* first */
	long long at;
	size_t have, put; /* read; of these written */
	int writing;
	char data[BYTES];
};

static struct piece piece[PIECES];

static int post(struct piece *p)
{
	if (p->writing)
		return weft_event_post_write(files, &p->ev, to, p->data + p->put, p->have - p->put,
					     (uint64_t)p->at + p->put);
	return weft_event_post_read(files, &p->ev, from, p->data, BYTES, (uint64_t)p->at);
}

/* Runs when a read or write is there.  True: the piece goes on. */
static bool step(struct weft_event *ev)
{
	struct piece *p = (struct piece *)ev;
	long long n = weft_event_result(ev);
	if (n < 0 || failed) {
		failed = n < 0 ? (int)-n : failed;
		return false;
	}
	if (!p->writing) {
		p->have = (size_t)n;
		p->put = 0;
		p->writing = 1;
	} else {
		p->put += (size_t)n;
		written += n;
	}
	if (p->writing && p->put == p->have) { /* also at the end of the file: 0 bytes */
		p->writing = 0;
		p->at = atomic_fetch_add(&next_at, BYTES);
		if (p->at >= size)
			return false;
	}
	if (post(p) == WEFT_OK)
		return true;
	failed = ENOMEM;
	return false;
}

/* Opens both; NULL, or what is wrong with *about_p.  TO is emptied only when all is well. */
static const char *open_both(char **name, char **about_p)
{
	struct stat a, b;
	*about_p = name[0];
	from = open(name[0], O_RDONLY);
	if (from < 0 || fstat(from, &a))
		return strerror(errno);
	if (!S_ISREG(a.st_mode))
		return "not a regular file"; /* its pieces have no places */
	*about_p = name[1];
	to = open(name[1], O_WRONLY | O_CREAT, 0666);
	if (to < 0 || fstat(to, &b))
		return strerror(errno);
	if (a.st_dev == b.st_dev && a.st_ino == b.st_ino)
		return "the same file";
	if (S_ISREG(b.st_mode) && ftruncate(to, 0))
		return strerror(errno);
	size = a.st_size;
	return NULL;
}

static void draw(void)
{
	char bar[41];
	int full = size ? (int)(40 * written / size) : 40;
	memset(bar, ' ', 40);
	memset(bar, '#', (size_t)full);
	bar[40] = 0;
	fprintf(stderr, "\r[%s] %3d %%", bar, size ? (int)(100 * written / size) : 100);
}

int main(int argc, char **argv)
{
	char *about;
	struct weft_event *all[PIECES];
	if (argc != 3) {
		fprintf(stderr, "usage: copy FROM TO\n");
		return 2;
	}
	const char *wrong = open_both(argv + 1, &about);
	if (wrong) {
		fprintf(stderr, "copy: %s: %s\n", about, wrong);
		return 1;
	}
	if (weft_engine_start() || weft_events_open_files(PIECES, &files))
		return 1;
	for (int i = 0; i < PIECES; i++) {
		weft_event_init(&piece[i].ev, step, NULL);
		all[i] = &piece[i].ev;
		piece[i].at = atomic_fetch_add(&next_at, BYTES);
		if (post(&piece[i]))
			return 1;
	}
	while (weft_event_wait_all(all, PIECES, 50000000) == WEFT_ERR_TIMEOUT)
		draw();
	struct weft_event sync;
	weft_event_init(&sync, NULL, NULL);
	weft_event_post_fsync(files, &sync, to);
	weft_event_wait(&sync, WEFT_FOREVER);
	draw();
	fprintf(stderr, "\n");
	if (!failed && close(to))
		failed = errno;
	if (failed)
		fprintf(stderr, "copy: %s\n", strerror(failed));
	else
		printf("%lld bytes through %s\n", (long long)written, weft_events_files_by(files));
	weft_events_close(files);
	weft_engine_stop();
	return failed != 0;
}
