/* SPDX-License-Identifier: BSD-3-Clause */
/* io.c - one range read or written: by the source's events, or by calls. */
#include "file/io.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "file/map.h"
#include "task/file_call.h"

/* The kernel moves at most so much by one call. */
#define CALL_MAX ((size_t)0x7ffff000)

/* n bytes of the vector are done. */
static void vector_advance(struct weft_file_io *io, size_t n)
{
	while (n) { /* ends: n shrinks, and is at most what the vector holds */
		weft_assert(io->n_iov);
		if (n < io->iov->iov_len) {
			io->iov->iov_base = (char *)io->iov->iov_base + n;
			io->iov->iov_len -= n;
			return;
		}
		n -= io->iov->iov_len;
		io->iov++;
		io->n_iov--;
	}
}

/* What one call said: n bytes, or -errno.  True: there is more to do. */
static bool io_goes_on(struct weft_file_io *io, int64_t n)
{
	if (n == -EINTR || n == -EAGAIN)
		return true;
	if (n < 0) {
		io->err = (int)-n;
		return false;
	}
	weft_assert((uint64_t)n <= io->bytes - io->done);
	io->done += (size_t)n;
	if (!io->base)
		vector_advance(io, (size_t)n);
	if (!n && io->write)
		io->err =
			EIO; /* a system that writes nothing and names no error would keep us here for ever */
	return n && io->done < io->bytes;
}

/* The kernel writes up to the limit on the length of files, and raises a signal only where nothing fits before it. */
static bool is_beyond(const struct weft_file_io *io)
{
	return io->write && io->at + io->done >= io->file->limit;
}

static bool io_event(struct weft_event *ev);

static void io_post(struct weft_file_io *io)
{
	struct weft_events *es = io->file->events;
	uint64_t at = io->at + io->done;
	size_t left = io->bytes - io->done;
	weft_err err;
	if (weft_unlikely(is_beyond(io))) {
		io->err = EFBIG;
		io->fn(io);
		return;
	}
	if (io->base)
		err = io->write ? weft_event_post_write(es, &io->ev, io->file->fd,
							(char *)io->base + io->done, left, at)
				: weft_event_post_read(es, &io->ev, io->file->fd,
						       (char *)io->base + io->done, left, at);
	else
		err = io->write ? weft_event_post_writev(es, &io->ev, io->file->fd, io->iov,
							 io->n_iov, at)
				: weft_event_post_readv(es, &io->ev, io->file->fd, io->iov,
							io->n_iov, at);
	if (!err)
		return;
	io->err = EINVAL;
	io->fn(io);
}

/* True: the event is ours; it was posted again, or freed by fn. */
static bool io_event(struct weft_event *ev)
{
	struct weft_file_io *io = ev->user;
	if (io_goes_on(io, weft_event_result(ev)))
		io_post(io);
	else
		io->fn(io);
	return true;
}

void weft_file_io_start(struct weft_file_io *io)
{
	io->done = 0;
	io->err = 0;
	weft_event_init(&io->ev, io_event, io);
	if (io->bytes)
		io_post(io);
	else
		io->fn(io);
}

void weft_file_io_now(struct weft_file_io *io)
{
	int64_t n;
	io->done = 0;
	io->err = 0;
	if (!io->bytes)
		return;
	do { /* ends: each turn moves bytes, or the system says why not */
		off_t at = (off_t)(io->at + io->done);
		size_t left = io->bytes - io->done;
		char *base = (char *)io->base + io->done;
		int fd = io->file->fd;
		if (left > CALL_MAX)
			left = CALL_MAX;
		if (weft_unlikely(is_beyond(io)))
			n = -1, errno = EFBIG;
		else if (io->base)
			n = io->write ? pwrite(fd, base, left, at) : pread(fd, base, left, at);
		else
			n = io->write ? pwritev(fd, io->iov, (int)io->n_iov, at)
				      : preadv(fd, io->iov, (int)io->n_iov, at);
		if (n < 0)
			n = -errno;
	} while (io_goes_on(io, n));
}

bool weft_file_io_cached(struct weft_file_io *io)
{
	weft_assert(io->base && !io->write);
	struct iovec v = {.iov_base = io->base, .iov_len = io->bytes};
	ssize_t n = preadv2(io->file->fd, &v, 1, (off_t)io->at, RWF_NOWAIT);
	io->err = n < 0 ? errno : 0;
	if (n < 0 || (size_t)n != io->bytes)
		return false; /* the end of the file, too, may be that of the cache */
	io->done = (size_t)n;
	io->err = 0;
	return true;
}

static int64_t call_work(void *arg)
{
	struct weft_file_io *io = arg;
	io->work(io);
	return 0;
}

static bool call_event(struct weft_event *ev)
{
	struct weft_file_io *io = ev->user;
	io->fn(io);
	return true;
}

void weft_file_io_call(struct weft_file_io *io, void (*work)(struct weft_file_io *io))
{
	io->done = 0;
	io->err = 0;
	io->work = work;
	weft_event_init(&io->ev, call_event, io);
	if (!weft_task_post_file_call(io->file->calls, &io->ev, io->file->fd, call_work, io))
		return;
	io->err = EINVAL;
	io->fn(io);
}

static bool sync_event(struct weft_event *ev)
{
	struct weft_file_io *io = ev->user;
	int64_t n = weft_event_result(ev);
	/* What cannot be synchronised (a pipe, a device) has no cache behind it. */
	if (n < 0 && n != -EINVAL && n != -EROFS)
		io->err = (int)-n;
	io->fn(io);
	return true;
}

void weft_file_io_sync(struct weft_file_io *io)
{
	io->done = 0;
	io->err = 0;
	weft_file_map_touch(io->file);
	weft_event_init(&io->ev, sync_event, io);
	if (!weft_event_post_fsync(io->file->events, &io->ev, io->file->fd))
		return;
	io->err = EINVAL;
	io->fn(io);
}
