/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * faultfs.c - a file system that passes through to a folder and misbehaves on purpose.
 *
 *	faultfs FOLDER MOUNTPOINT [KEY=VALUE,...]
 *
 *	latency_us=N       each read, write, fsync takes N us longer; open_us=N, each open
 *	mb_s=N             data passes at N MB/s for each request
 *	away=1             what is written is stored elsewhere: on a host whose cores are not these, and so not at all
 *	short=N            a read or write moves at most N bytes
 *	eio_write=N        the N-th write from now on fails with EIO, once; also eio_read, eio_fsync, eio_open, eio_trunc
 *	eio_from=N        every write from the N-th on fails with EIO
 *	enospc=N           no byte at or behind N can be written: ENOSPC, a short write up to there; edquot=N
 *	estale_from=N     every request of data from the N-th on fails with ESTALE
 *	erofs=1            opens for writing fail with EROFS
 *	enolck=1           locks (fcntl, flock) fail with ENOLCK
 *	cached=1           pages are cached from open to close, and a peer's writes are seen after the next open alone:
 *	                   two mounts of one folder are two hosts of NFS
 *
 * It stays in the foreground and prints "ready" once mounted.  While it runs the same keys may be set anew by the
 * extended attribute user.faults of the mount point; user.requests reads how many requests of data have come.
 */
#define FUSE_USE_VERSION 31
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

enum key {
	LATENCY_US,
	OPEN_US,
	MB_S,
	AWAY,
	SHORT,
	EIO_WRITE,
	EIO_READ,
	EIO_FSYNC,
	EIO_OPEN,
	EIO_TRUNC,
	EIO_FROM,
	ENOSPC_AT,
	EDQUOT_AT,
	ESTALE_FROM,
	EROFS_ON,
	ENOLCK_ON,
	CACHED,
	KEYS
};

static const char *const key_name[KEYS] = {
	"latency_us", "open_us",     "mb_s",     "away",      "short",    "eio_write",
	"eio_read",   "eio_fsync",   "eio_open", "eio_trunc", "eio_from", "enospc",
	"edquot",     "estale_from", "erofs",    "enolck",    "cached"};

static _Atomic long value[KEYS]; /* 0: off; countdowns count down */
static _Atomic long requests;
static const char *folder;

/* "key=value,..."; -1: one of them is none. */
static int set_keys(const char *text)
{
	char copy[512], *save = NULL;

	if (strlen(text) >= sizeof copy)
		return -1;
	strcpy(copy, text);
	for (char *item = strtok_r(copy, ",", &save); item; item = strtok_r(NULL, ",", &save)) {
		char *equal = strchr(item, '=');
		int k = 0;
		if (!equal)
			return -1;
		*equal = 0;
		while (k < KEYS && strcmp(key_name[k], item) != 0)
			k++;
		if (k == KEYS)
			return -1;
		atomic_store(&value[k], atol(equal + 1));
	}
	return 0;
}

/* Has the countdown come to its end with this call? */
static int is_nth(enum key k)
{
	long now = atomic_load(&value[k]);

	while (now > 0) /* ends: one call takes each number */
		if (atomic_compare_exchange_weak(&value[k], &now, now - 1))
			return now == 1;
	return 0;
}

/* Of a countdown that ends in failure for good: 1 lets a request pass no more. */
static int is_from(enum key k)
{
	long now = atomic_load(&value[k]);

	while (now > 1)
		if (atomic_compare_exchange_weak(&value[k], &now, now - 1))
			return 0;
	return now == 1;
}

static void pause_us(long us)
{
	struct timespec ts = {us / 1000000, us % 1000000 * 1000};

	while (us > 0 && nanosleep(&ts, &ts) != 0 && errno == EINTR) /* ends: the time is over */
		;
}

/* What every request of data has in common: 0, or why it fails. */
static int request_begin(size_t bytes)
{
	long mb_s = atomic_load(&value[MB_S]);

	atomic_fetch_add(&requests, 1);
	pause_us(atomic_load(&value[LATENCY_US]) + (mb_s > 0 ? (long)bytes / mb_s : 0));
	return is_from(ESTALE_FROM) ? -ESTALE : 0;
}

static const char *real(const char *path, char *room)
{
	snprintf(room, PATH_MAX, "%s%s", folder, path);
	return room;
}

static int result(long n)
{
	return n < 0 ? -errno : (int)n;
}

/* ---- names ------------------------------------------------------------------------------- */

static int fs_getattr(const char *path, struct stat *st, struct fuse_file_info *fi)
{
	char room[PATH_MAX];

	return result(fi ? fstat((int)fi->fh, st) : lstat(real(path, room), st));
}

static int fs_readdir(const char *path, void *buf, fuse_fill_dir_t fill, off_t at,
		      struct fuse_file_info *fi, enum fuse_readdir_flags flags)
{
	char room[PATH_MAX];
	DIR *dir = opendir(real(path, room));

	(void)at, (void)fi, (void)flags;
	for (const struct dirent *e; dir && (e = readdir(dir));) /* ends: none left */
		fill(buf, e->d_name, NULL, 0, 0);
	if (dir)
		closedir(dir);
	return 0;
}

static int fs_unlink(const char *path)
{
	char room[PATH_MAX];

	return result(unlink(real(path, room)));
}

static int fs_mkdir(const char *path, mode_t mode)
{
	char room[PATH_MAX];

	return result(mkdir(real(path, room), mode));
}

static int fs_rmdir(const char *path)
{
	char room[PATH_MAX];

	return result(rmdir(real(path, room)));
}

static int fs_chmod(const char *path, mode_t mode, struct fuse_file_info *fi)
{
	char room[PATH_MAX];

	(void)fi;
	return result(chmod(real(path, room), mode));
}

static int fs_statfs(const char *path, struct statvfs *st)
{
	char room[PATH_MAX];

	return result(statvfs(real(path, room), st));
}

static int fs_truncate(const char *path, off_t bytes, struct fuse_file_info *fi)
{
	char room[PATH_MAX];

	if (is_nth(EIO_TRUNC))
		return -EIO;
	return result(fi ? ftruncate((int)fi->fh, bytes) : truncate(real(path, room), bytes));
}

static int open_any(const char *path, int flags, mode_t mode, struct fuse_file_info *fi)
{
	char room[PATH_MAX];
	int fd;

	pause_us(atomic_load(&value[OPEN_US]));
	if (is_nth(EIO_OPEN))
		return -EIO;
	if (atomic_load(&value[EROFS_ON]) && (flags & O_ACCMODE) != O_RDONLY)
		return -EROFS;
	fd = open(real(path, room), flags, mode);
	if (fd < 0)
		return -errno;
	fi->fh = (uint64_t)fd;
	/* Straight: a short write reaches the caller, and no page is kept. */
	fi->direct_io = !atomic_load(&value[CACHED]);
	fi->keep_cache = 0;
	return 0;
}

static int fs_open(const char *path, struct fuse_file_info *fi)
{
	return open_any(path, fi->flags & ~(O_APPEND | O_DIRECT), 0, fi);
}

static int fs_create(const char *path, mode_t mode, struct fuse_file_info *fi)
{
	return open_any(path, (fi->flags & ~(O_APPEND | O_DIRECT)) | O_CREAT, mode, fi);
}

static int fs_release(const char *path, struct fuse_file_info *fi)
{
	(void)path;
	return result(close((int)fi->fh));
}

/* ---- data -------------------------------------------------------------------------------- */

static size_t shortened(size_t bytes)
{
	size_t most = (size_t)atomic_load(&value[SHORT]);

	return most && bytes > most ? most : bytes;
}

static int fs_read(const char *path, char *buf, size_t bytes, off_t at, struct fuse_file_info *fi)
{
	int err = request_begin(bytes);

	(void)path;
	if (!err && is_nth(EIO_READ))
		err = -EIO;
	return err ? err : result(pread((int)fi->fh, buf, shortened(bytes), at));
}

/* Cuts at the end of the space; -errno: nothing is left. */
static int space_left(enum key k, int error, off_t at, size_t *bytes)
{
	long end = atomic_load(&value[k]);

	if (end <= 0 || at + (off_t)*bytes <= end)
		return 0;
	if (at >= end)
		return -error;
	*bytes = (size_t)(end - at);
	return 0;
}

static int fs_write(const char *path, const char *buf, size_t bytes, off_t at,
		    struct fuse_file_info *fi)
{
	int err = request_begin(bytes);

	(void)path;
	bytes = shortened(bytes);
	if (!err && (is_nth(EIO_WRITE) || is_from(EIO_FROM)))
		err = -EIO;
	if (!err)
		err = space_left(ENOSPC_AT, ENOSPC, at, &bytes);
	if (!err)
		err = space_left(EDQUOT_AT, EDQUOT, at, &bytes);
	if (!err && atomic_load(&value[AWAY]))
		return (int)bytes;
	return err ? err : result(pwrite((int)fi->fh, buf, bytes, at));
}

static int fs_fsync(const char *path, int data, struct fuse_file_info *fi)
{
	int err = request_begin(0);

	(void)path, (void)data, (void)fi;
	return err ? err : is_nth(EIO_FSYNC) ? -EIO : 0; /* the folder outlives the test anyway */
}

static int fs_fallocate(const char *path, int mode, off_t at, off_t bytes,
			struct fuse_file_info *fi)
{
	size_t all = (size_t)bytes;
	int err = space_left(ENOSPC_AT, ENOSPC, at, &all);

	(void)path;
	if (!err && all < (size_t)bytes)
		err = -ENOSPC;
	if (err)
		return err;
	err = fallocate((int)fi->fh, mode, at, bytes);
	return result(err);
}

static int fs_lock(const char *path, struct fuse_file_info *fi, int cmd, struct flock *lock)
{
	(void)path;
	if (atomic_load(&value[ENOLCK_ON]))
		return -ENOLCK;
	return result(fcntl((int)fi->fh,
			    cmd == F_GETLK   ? F_OFD_GETLK
			    : cmd == F_SETLK ? F_OFD_SETLK
					     : F_OFD_SETLKW,
			    (lock->l_pid = 0, lock)));
}

static int fs_flock(const char *path, struct fuse_file_info *fi, int op)
{
	(void)path;
	return atomic_load(&value[ENOLCK_ON]) ? -ENOLCK : result(flock((int)fi->fh, op));
}

/* ---- the keys, while it runs ------------------------------------------------------------- */

static int fs_setxattr(const char *path, const char *name, const char *text, size_t bytes,
		       int flags)
{
	char copy[512];

	(void)flags;
	if (strcmp(path, "/") != 0 || strcmp(name, "user.faults") != 0)
		return -ENOTSUP;
	if (bytes >= sizeof copy)
		return -E2BIG;
	memcpy(copy, text, bytes);
	copy[bytes] = 0;
	return set_keys(copy) ? -EINVAL : 0;
}

static int fs_getxattr(const char *path, const char *name, char *text, size_t bytes)
{
	char number[32];
	int n;

	if (strcmp(path, "/") != 0 || strcmp(name, "user.requests") != 0)
		return -ENODATA;
	n = snprintf(number, sizeof number, "%ld", atomic_load(&requests));
	if (bytes >= (size_t)n)
		memcpy(text, number, (size_t)n);
	return bytes && bytes < (size_t)n ? -ERANGE : n;
}

static void *fs_init(struct fuse_conn_info *conn, struct fuse_config *config)
{
	/* The kernel makes EIO of a short write that it has sent on without waiting. */
	conn->want &= ~(unsigned)FUSE_CAP_ASYNC_DIO;
	/* Nor shall it look at the time of the last change, and forget pages before the next open. */
	if (atomic_load(&value[CACHED]))
		conn->want &= ~(unsigned)FUSE_CAP_AUTO_INVAL_DATA;
	config->use_ino = 1;
	config->hard_remove = 1; /* a file is released some time after its close */
	config->attr_timeout = atomic_load(&value[CACHED]) ? 30 : 0;
	config->entry_timeout = config->attr_timeout;
	config->negative_timeout = 0;
	printf("ready\n");
	fflush(stdout);
	return NULL;
}

static const struct fuse_operations operations = {
	.init = fs_init,
	.getattr = fs_getattr,
	.readdir = fs_readdir,
	.unlink = fs_unlink,
	.mkdir = fs_mkdir,
	.rmdir = fs_rmdir,
	.chmod = fs_chmod,
	.statfs = fs_statfs,
	.truncate = fs_truncate,
	.open = fs_open,
	.create = fs_create,
	.release = fs_release,
	.read = fs_read,
	.write = fs_write,
	.fsync = fs_fsync,
	.lock = fs_lock,
	.flock = fs_flock,
	.fallocate = fs_fallocate,
	.setxattr = fs_setxattr,
	.getxattr = fs_getxattr,
};

int main(int argc, char **argv)
{
	static char resolved[PATH_MAX];

	if (argc < 3 || argc > 4 || (argc == 4 && set_keys(argv[3]) != 0) ||
	    !realpath(argv[1], resolved)) {
		fprintf(stderr, "usage: faultfs FOLDER MOUNTPOINT [KEY=VALUE,...]\n");
		return 2;
	}
	folder = resolved;
	umask(0);
	char *args[] = {argv[0], "-f", "-o", "fsname=faultfs,subtype=faultfs,max_threads=32",
			argv[2], NULL};
	return fuse_main(5, args, &operations, NULL);
}
