/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Files as an event source: what was written is read again, more requests than the kernel is given
 * at once, errors, the end of the file, withdrawn requests; through io_uring and through a thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <weft/source.h>
#include "base/settings.h"
#include "check.h"
#include "task/task.h"

enum { PIECE = 8192, PIECES = 64 };

static void fill(unsigned char *buffer, size_t bytes, unsigned seed)
{
	for (size_t i = 0; i < bytes; i++)
		buffer[i] = (unsigned char)(seed + i * 7 + (i >> 8));
}

static void there_and_back(struct weft_events *es, int fd)
{
	static unsigned char out[PIECES][PIECE], in[PIECES][PIECE];
	static struct weft_event ev[PIECES];
	struct weft_event *all[PIECES];
	for (int i = 0; i < PIECES; i++) {
		fill(out[i], PIECE, (unsigned)i);
		weft_event_init(&ev[i], NULL, NULL);
		all[i] = &ev[i];
		CHECK_EQ(weft_event_post_write(es, &ev[i], fd, out[i], PIECE, (uint64_t)i * PIECE),
			 WEFT_OK);
	}
	CHECK_EQ(weft_event_wait_all(all, PIECES, WEFT_FOREVER), WEFT_OK);
	for (int i = 0; i < PIECES; i++)
		CHECK_EQ(weft_event_result(&ev[i]), PIECE);
	CHECK_EQ(weft_event_post_fsync(es, &ev[0], fd), WEFT_OK);
	CHECK_EQ(weft_event_wait(&ev[0], WEFT_FOREVER), WEFT_OK);
	CHECK_EQ(weft_event_result(&ev[0]), 0);
	for (int i = 0; i < PIECES; i++)
		CHECK_EQ(weft_event_post_read(es, &ev[i], fd, in[i], PIECE, (uint64_t)i * PIECE),
			 WEFT_OK);
	CHECK_EQ(weft_event_wait_all(all, PIECES, WEFT_FOREVER), WEFT_OK);
	for (int i = 0; i < PIECES; i++)
		CHECK_EQ(weft_event_result(&ev[i]), PIECE);
	CHECK_EQ(memcmp(in, out, sizeof in), 0);
}

static void long_ones(struct weft_events *es, int fd)
{
	static unsigned char out[1 << 20], in[1 << 20];
	struct weft_event ev;
	fill(out, sizeof out, 3);
	weft_event_init(&ev, NULL, NULL);
	CHECK_EQ(weft_event_post_write(es, &ev, fd, out, sizeof out, 0), WEFT_OK);
	CHECK_EQ(weft_event_wait(&ev, WEFT_FOREVER), WEFT_OK);
	CHECK_EQ(weft_event_result(&ev), sizeof out);
	/* Twice as much as there is: short. */
	CHECK_EQ(weft_event_post_read(es, &ev, fd, in, sizeof in, sizeof in / 2), WEFT_OK);
	CHECK_EQ(weft_event_wait(&ev, WEFT_FOREVER), WEFT_OK);
	CHECK_EQ(weft_event_result(&ev), sizeof in / 2);
	CHECK_EQ(memcmp(in, out + sizeof out / 2, sizeof in / 2), 0);
}

static void ends_and_errors(struct weft_events *es, int fd)
{
	char c;
	struct weft_event ev;
	weft_event_init(&ev, NULL, NULL);
	CHECK_EQ(weft_event_post_read(es, &ev, fd, &c, 1, 1u << 30), WEFT_OK);
	CHECK_EQ(weft_event_wait(&ev, WEFT_FOREVER), WEFT_OK);
	CHECK_EQ(weft_event_result(&ev), 0); /* the end */
	CHECK_EQ(weft_event_post_read(es, &ev, 9999, &c, 1, 0), WEFT_OK);
	CHECK_EQ(weft_event_wait(&ev, WEFT_FOREVER), WEFT_OK);
	CHECK_EQ(weft_event_result(&ev), -EBADF);
	int p[2];
	CHECK_EQ(pipe2(p, O_CLOEXEC), 0);
	CHECK_EQ(weft_event_post_fsync(es, &ev, p[0]), WEFT_OK);
	CHECK_EQ(weft_event_wait(&ev, WEFT_FOREVER), WEFT_OK);
	CHECK_EQ(weft_event_result(&ev), -EINVAL);
	close(p[0]);
	close(p[1]);
}

/* A read of an empty pipe never ends by itself: io_uring withdraws it; one that a thread has
 * begun cannot be withdrawn. */
static void withdrawn(struct weft_events *es)
{
	char c[3];
	struct weft_event ev[3];
	int p[2];
	CHECK_EQ(pipe2(p, O_CLOEXEC), 0);
	for (int i = 0; i < 3; i++) {
		weft_event_init(&ev[i], NULL, NULL);
		CHECK_EQ(weft_event_post_read(es, &ev[i], p[0], &c[i], 1, (uint64_t)-1), WEFT_OK);
	}
	for (int i = 0; i < 2; i++) {
		weft_event_cancel(&ev[i]);
		CHECK_EQ(weft_event_wait(&ev[i], WEFT_FOREVER), WEFT_OK);
		CHECK_EQ(weft_event_result(&ev[i]), -ECANCELED);
	}
	CHECK(!weft_event_done(&ev[2]));
	CHECK_EQ(weft_events_close(es), WEFT_OK);
	CHECK_EQ(weft_event_result(&ev[2]), -ECANCELED);
	close(p[0]);
	close(p[1]);
}

int main(void)
{
	CHECK_EQ(weft_engine_start(), WEFT_OK);
	int fd = memfd_create("weft-test", MFD_CLOEXEC);
	CHECK(fd >= 0);
	struct weft_events *es;
	CHECK_EQ(weft_events_open_files(5000, &es), WEFT_ERR_ARG);
	CHECK_EQ(weft_events_open_files_blocking(NULL), WEFT_ERR_ARG);
	for (int turn = 0; turn < 6; turn++) {
		bool uring = turn < 2,
		     asked = turn >= 4; /* asked: for a thread, whatever the setting is */
		weft_progress_set(turn % 2 == 0);
		CHECK_EQ(weft_setting_set(WEFT_SET_IO_URING, uring || asked ? "on" : "off"),
			 WEFT_OK);
		CHECK_EQ(asked ? weft_events_open_files_blocking(&es)
			       : weft_events_open_files(uring ? 8 : 0, &es),
			 WEFT_OK);
		printf("files by %s\n", weft_events_files_by(es));
		bool by_uring = strcmp(weft_events_files_by(es), "io_uring") == 0;
		CHECK(uring || !by_uring);
		there_and_back(es, fd);
		long_ones(es, fd);
		ends_and_errors(es, fd);
		CHECK_EQ(ftruncate(fd, 0), 0);
		if (by_uring)
			withdrawn(es);
		else
			CHECK_EQ(weft_events_close(es), WEFT_OK);
	}
	close(fd);
	weft_engine_stop();
	return 0;
}
