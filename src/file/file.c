/* SPDX-License-Identifier: BSD-3-Clause */
/* file.c - opens and closes files, and asks the system about them. */
#include "file/map.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <weft/source.h>

/* ---- the source --------------------------------------------------------------------------- */

/* Requests that are with the kernel at a time; the rest waits in the source. */
#define DEPTH 128

static pthread_mutex_t source_lock = PTHREAD_MUTEX_INITIALIZER;
static struct weft_events *source[2]; /* under source_lock; [1]: by blocking calls of a thread */

static int take_source(bool blocking, struct weft_events **es_p)
{
	struct weft_events **es = &source[blocking];
	int err = 0;
	pthread_mutex_lock(&source_lock);
	if (!*es &&
	    (blocking ? weft_events_open_files_blocking(es) : weft_events_open_files(DEPTH, es)))
		err = ENOMEM;
	*es_p = *es;
	pthread_mutex_unlock(&source_lock);
	return err;
}

void weft_file_end(void)
{
	for (int i = 0; i < 2; i++) {
		pthread_mutex_lock(&source_lock);
		struct weft_events *es = source[i];
		source[i] = NULL;
		pthread_mutex_unlock(&source_lock);
		weft_err err = weft_events_close(es);
		(void)err; /* not from a handler, so it cannot fail */
	}
}

/* ---- open and close ----------------------------------------------------------------------- */

#define MAGIC_XFS 0x58465342
#define MAGIC_ZFS 0x2fc12fc1
#define MAGIC_LUSTRE 0x0bd00bd0
#define MAGIC_GPFS 0x47504653
#define MAGIC_CIFS 0xff534d42u
#define MAGIC_SMB2 0xfe534d42u
#define MAGIC_F2FS 0xf2f52010u
#define MAGIC_CEPH 0x00c36400
#define MAGIC_BEEGFS 0x19830326
#define MAGIC_9P 0x01021997

/*
 * Coherent: one host's, or a cluster's whose servers keep the hosts' caches in step.  Mapped: those whose mappings are
 * the pages that their calls read and write; ZFS has two copies.
 */
static const struct {
	uint32_t magic;
	bool coherent, local, mapped;
	const char *name;
} systems[] = {
	{TMPFS_MAGIC, true, true, true, "tmpfs"},
	{EXT4_SUPER_MAGIC, true, true, true, "ext4"},
	{MAGIC_XFS, true, true, true, "xfs"},
	{BTRFS_SUPER_MAGIC, true, true, true, "btrfs"},
	{MAGIC_ZFS, true, true, false, "zfs"},
	{OVERLAYFS_SUPER_MAGIC, true, true, true, "overlay"},
	{MAGIC_F2FS, true, true, true, "f2fs"},
	{MAGIC_LUSTRE, true, false, false, "lustre"},
	{MAGIC_GPFS, true, false, false, "gpfs"},
	{MAGIC_CEPH, true, false, false, "ceph"},
	{MAGIC_BEEGFS, true, false, false, "beegfs"},
	{NFS_SUPER_MAGIC, false, false, false, "nfs"},
	{FUSE_SUPER_MAGIC, false, false, false, "fuse"},
	{MAGIC_CIFS, false, false, false, "cifs"},
	{MAGIC_SMB2, false, false, false, "smb"},
	{MAGIC_9P, false, false, false, "9p"},
};

static struct weft_file_system system_of(int fd)
{
	struct weft_file_system fs = {.name = "other", .coherent = false, .block = 4096};
	struct statfs st;
	int n;
	do /* ends: a signal comes at most now and then */
		n = fstatfs(fd, &st);
	while (n && errno == EINTR);
	if (n)
		return fs;
	if (st.f_bsize > 0)
		fs.block = (uint64_t)st.f_bsize;
	for (size_t i = 0; i < weft_countof(systems); i++)
		if ((uint32_t)st.f_type == systems[i].magic) {
			fs.name = systems[i].name;
			fs.coherent = systems[i].coherent;
			fs.lock_refreshes = systems[i].magic == NFS_SUPER_MAGIC;
			fs.local = systems[i].local;
			fs.mapped = systems[i].mapped;
			fs.blocking = systems[i].magic == FUSE_SUPER_MAGIC;
		}
	return fs;
}

int weft_file_open(const char *path, int flags, unsigned mode, struct weft_file **f_p)
{
	struct weft_file *f = calloc(1, sizeof *f);
	if (!f)
		return ENOMEM;
	int err = 0;
	do /* ends: a signal comes at most now and then */
		f->fd = open(path, flags | O_CLOEXEC, mode);
	while (f->fd < 0 && errno == EINTR);
	if (f->fd < 0) {
		err = errno;
		goto free_file;
	}
	struct stat st;
	if (fstat(f->fd, &st))
		err = errno;
	else if (S_ISDIR(st.st_mode))
		err = EISDIR;
	f->fs = system_of(f->fd);
	/* Linux 6.18 answers io_uring with data from a wrong place where FUSE reads short. */
	if (!err)
		err = take_source(f->fs.blocking, &f->events);
	if (!err && f->fs.mapped)
		err = take_source(true, &f->calls);
	if (err) {
		close(f->fd);
		goto free_file;
	}
	f->readable = (flags & O_ACCMODE) != O_WRONLY;
	f->writable = (flags & O_ACCMODE) != O_RDONLY;
	struct rlimit most;
	f->limit = getrlimit(RLIMIT_FSIZE, &most) || most.rlim_cur == RLIM_INFINITY ? UINT64_MAX
										    : most.rlim_cur;
	f->maps = weft_file_maps_make(f);
	*f_p = f;
	return 0;
free_file:
	free(f);
	return err;
}

int weft_file_close(struct weft_file *f)
{
	weft_file_map_touch(f);
	weft_file_maps_free(f->maps);
	/* The descriptor is gone whatever close says; EINTR is no failure of the file. */
	int err = close(f->fd) && errno != EINTR ? errno : 0;
	free(f);
	return err;
}

int weft_file_delete(const char *path)
{
	return unlink(path) ? errno : 0;
}

/* ---- size and storage --------------------------------------------------------------------- */

int weft_file_size(const struct weft_file *f, uint64_t *bytes_p)
{
	struct stat st;
	if (fstat(f->fd, &st))
		return errno;
	if (S_ISBLK(st.st_mode)) {
		off_t end = lseek(f->fd, 0, SEEK_END);
		if (end < 0)
			return errno;
		*bytes_p = (uint64_t)end;
		return 0;
	}
	*bytes_p = (uint64_t)st.st_size;
	return 0;
}

int weft_file_resize(const struct weft_file *f, uint64_t bytes)
{
	int n;
	if (bytes > f->limit)
		return EFBIG;
	do /* ends: a signal comes at most now and then */
		n = ftruncate(f->fd, (off_t)bytes);
	while (n && errno == EINTR);
	return n ? errno : 0;
}

int weft_file_preallocate(const struct weft_file *f, uint64_t bytes)
{
	uint64_t size;
	if (!bytes)
		return 0;
	if (bytes > f->limit)
		return EFBIG;
	int n;
	do /* ends: a signal comes at most now and then */
		n = fallocate(f->fd, 0, 0, (off_t)bytes);
	while (n && errno == EINTR);
	if (!n || (errno != EOPNOTSUPP && errno != ENOSYS))
		return n ? errno : 0;
	/* The file system cannot reserve: let the library write what is missing. */
	int err = posix_fallocate(f->fd, 0, (off_t)bytes);
	if (err != EOPNOTSUPP && err != EINVAL && err != EBADF)
		return err;
	err = weft_file_size(f, &size);
	return err || size >= bytes ? err : weft_file_resize(f, bytes);
}

int weft_file_sync(const struct weft_file *f)
{
	int n;
	weft_file_map_touch(f);
	do /* ends: a signal comes at most now and then */
		n = fsync(f->fd);
	while (n && errno == EINTR);
	/* What cannot be synchronised (a pipe, a device) has no cache behind it. */
	return n && errno != EINVAL && errno != EROFS ? errno : 0;
}

/* ---- record locks ------------------------------------------------------------------------- */

static int record_lock(const struct weft_file *f, short type, uint64_t from, uint64_t len)
{
	struct flock l = {
		.l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)from, .l_len = (off_t)len};
	int n;
	do /* ends: the lock's holder gives it back, or its end does */
		n = fcntl(f->fd, type == F_UNLCK ? F_OFD_SETLK : F_OFD_SETLKW, &l);
	while (n && errno == EINTR);
	return n ? errno : 0;
}

int weft_file_lock(const struct weft_file *f, bool exclusive, uint64_t from, uint64_t len)
{
	/* A lock for writing needs a descriptor that writes, one for reading one that reads. */
	bool write = exclusive ? f->writable : !f->readable;
	return record_lock(f, write ? F_WRLCK : F_RDLCK, from, len);
}

int weft_file_unlock(const struct weft_file *f, uint64_t from, uint64_t len)
{
	return record_lock(f, F_UNLCK, from, len);
}

void weft_file_drop_cache(const struct weft_file *f)
{
	(void)posix_fadvise(f->fd, 0, 0, POSIX_FADV_DONTNEED);
}

int weft_file_refresh(const struct weft_file *f)
{
	char path[40];
	int fd;
	snprintf(path, sizeof path, "/proc/self/fd/%d", f->fd);
	do /* ends: a signal comes at most now and then */
		fd = open(path, (f->readable ? O_RDONLY : O_WRONLY) | O_CLOEXEC | O_NOCTTY);
	while (fd < 0 && errno == EINTR);
	if (fd < 0)
		return errno;
	weft_file_drop_cache(f);
	/* Its size too; what cannot be asked is not kept either. */
	struct statx now;
	(void)statx(fd, "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC, STATX_SIZE, &now);
	return close(fd) && errno != EINTR ? errno : 0;
}
