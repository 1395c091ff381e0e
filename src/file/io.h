/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * io.h - the io step: one range of a file, read or written, in the background or at once.
 *
 * A transfer that ends early goes on where it stopped; it is over when all bytes are there, at the end of
 * the file, or at an error.  Any number may be under way: what the kernel does not take waits in the source.
 *
 * Callers   start: any thread, handlers included.  now: any thread that may block.
 * Owner     the step and its memory are the library's from start until fn is called; then the owner's again.
 * Order     fn runs once, as a handler (short, may not wait), perhaps before start returns.
 */
#ifndef WEFT_FILE_IO_H
#define WEFT_FILE_IO_H

#include <sys/uio.h>
#include <weft/source.h>
#include "file/file.h"

struct weft_file_io {
	/* the owner's, before start */
	const struct weft_file *file;
	void (*fn)(struct weft_file_io *io);
	void *arg;
	bool write;
	uint64_t at;       /* in the file */
	size_t bytes;      /* wanted */
	void *base;        /* the memory, or NULL: */
	struct iovec *iov; /* pieces of it; changed on the way */
	unsigned n_iov;
	/* how it ended */
	size_t done; /* bytes; a read that met the end of the file has fewer than wanted */
	int err;     /* errno; done bytes were transferred before it */
	void (*work)(struct weft_file_io *io); /* call's */
	struct weft_event ev;
};

/* Never fails: an error comes by fn. */
void weft_file_io_start(struct weft_file_io *io);
/* The same by the caller's own system calls; returns when it is over, and does not call fn. */
void weft_file_io_now(struct weft_file_io *io);
/*
 * As now, for a read of flat memory, if all of it is in the system's cache; false: it is not, nor begun (err EOPNOTSUPP: this
 * file system does not say so, as tmpfs).
 */
bool weft_file_io_cached(struct weft_file_io *io);
/*
 * As start, for work of the owner's that may wait for the system: by a thread that is there for it.  It sets done and err.
 */
void weft_file_io_call(struct weft_file_io *io, void (*work)(struct weft_file_io *io));
/* As start, for fsync: all that was written through this file is with the device. */
void weft_file_io_sync(struct weft_file_io *io);

#endif
