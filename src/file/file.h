/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * file.h - an open file of this process, and what is done to it as a whole.
 *
 * Callers   any thread, not a handler: these calls are the kernel's, and block as long as it does.
 * Owner     weft_file_close ends it; no operation may be under way then.
 * Errors    every function of this layer returns 0 or an errno; mpi/file/ makes classes of them.
 */
#ifndef WEFT_FILE_H
#define WEFT_FILE_H

#include "base/base.h"

struct weft_events;
struct weft_file_maps;

/* What the file lies on, as fstatfs says. */
struct weft_file_system {
	const char *name; /* "tmpfs", "ext4", "nfs", ...; "other" */
	bool coherent;    /* what one host writes, another's read sees without a lock */
	bool lock_refreshes; /* taking a record lock brings a host's cache up to date; else only an open does */
	bool local;     /* this host's own, behind the kernel's cache: a small access is a copy */
	bool mapped;    /* its cache is one for mappings and calls */
	bool blocking;  /* requests go by a thread's blocking calls, never by io_uring */
	uint64_t block; /* the unit that it likes */
};

struct weft_file {
	int fd;
	bool readable, writable; /* I */
	uint64_t limit;          /* I: RLIMIT_FSIZE: to write from there on would raise SIGXFSZ */
	struct weft_events *events;  /* where its requests go */
	struct weft_events *calls;   /* where calls go that may wait, or NULL */
	struct weft_file_maps *maps; /* I; NULL: not mapped */
	struct weft_file_system fs;  /* I */
	_Atomic uint32_t x_shy; /* so many small writes go by the source, since one took long */
	_Atomic uint32_t
		x_small_ns; /* what a call takes that writes very little, on average; 0: not known */
	_Atomic uint32_t x_small; /* such calls, for samples */
	_Atomic bool
		x_blind; /* the system does not say whether data is in its cache: reads go as writes do */
};

/* flags, mode: of open(2). */
int weft_file_open(const char *path, int flags, unsigned mode, struct weft_file **f_p);
int weft_file_close(struct weft_file *f);
int weft_file_delete(const char *path);

int weft_file_size(const struct weft_file *f, uint64_t *bytes_p);
int weft_file_resize(const struct weft_file *f, uint64_t bytes);
/* Storage for the first `bytes` is there afterwards; the size grows to it, and no content changes. */
int weft_file_preallocate(const struct weft_file *f, uint64_t bytes);
/* What was written is with the device. */
int weft_file_sync(const struct weft_file *f);

/* Bytes [from, from + len), len 0: to the end, by the system's record locks; waits.  For file systems that are not
 * coherent between hosts: there, taking the lock is what brings caches up to date. */
int weft_file_lock(const struct weft_file *f, bool exclusive, uint64_t from, uint64_t len);
int weft_file_unlock(const struct weft_file *f, uint64_t from, uint64_t len);
/* Pages of this host's cache are read anew, unless they wait to be written: a cache that is checked by the time of the last change
 * misses what another host has written within one of the server's ticks (GlusterFS). */
void weft_file_drop_cache(const struct weft_file *f);
/* Opens the file once more, and closes it: where a host's cache is checked when a file is opened (NFS, and FUSE, whose locks do not
 * do that), what other hosts have written before is seen by what is read later.  Drops the cache, too. */
int weft_file_refresh(const struct weft_file *f);

/* Ends the process's sources of file requests: no file is open.  The next open makes others. */
void weft_file_end(void);

#endif
