/* SPDX-License-Identifier: BSD-3-Clause */
/* shm_memory.c - memory to share: sealed memfds without a name, with all pages there from the
 * start, but in no page table before they are used: a program that ends soon uses few of them. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/file_limit.h"
#include "base/log.h"
#include "net/shm/shm_int.h"

/* What the largest one needs, so that the first one tells. */
#define FILE_LEAST ((size_t)320 * 1024)
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

struct weft_shm_lacks weft_net_shm_lacks;

static weft_err map_file(int fd, size_t bytes, void **map_p)
{
	void *m = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (m == MAP_FAILED) {
		weft_error("shm: cannot map %zu bytes: %s", bytes, strerror(errno));
		return WEFT_ERR_NOMEM;
	}
	/* A child of the application has no business there. */
	(void)madvise(m, bytes, MADV_DONTFORK);
	*map_p = m;
	return WEFT_OK;
}

weft_err weft_net_shm_memory_create(size_t bytes, int *fd_p, void **map_p)
{
	weft_assert(bytes > 0);
	weft_err err;
	if (!weft_file_fits(bytes > FILE_LEAST ? bytes : FILE_LEAST)) {
		weft_warn("shm: files may not be as long as shared memory here: raise ulimit -f");
		return WEFT_ERR_UNSUPPORTED;
	}
	int fd = weft_net_shm_lacks.memfd ? (errno = ENOSYS, -1)
					  : memfd_create("weft", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0) {
		if (errno == ENOSYS || errno == EPERM) {
			weft_debug("shm: no memfd here: %s", strerror(errno));
			return WEFT_ERR_UNSUPPORTED;
		}
		weft_error("shm: cannot create shared memory: %s%s", strerror(errno),
			   errno == EMFILE ? " (raise ulimit -n)" : "");
		return WEFT_ERR_LIMIT;
	}
	/* Now rather than by SIGBUS later. */
	int error = posix_fallocate(fd, 0, (off_t)bytes);
	if (error) {
		weft_error("shm: cannot reserve %zu bytes of shared memory: %s", bytes,
			   strerror(error));
		err = WEFT_ERR_NOMEM;
		goto close_fd;
	}
	if (fcntl(fd, F_ADD_SEALS, SEALS) != 0) {
		weft_error("shm: cannot seal shared memory: %s", strerror(errno));
		err = WEFT_ERR_SYS;
		goto close_fd;
	}
	err = map_file(fd, bytes, map_p);
	if (err)
		goto close_fd;
	*fd_p = fd;
	return WEFT_OK;
close_fd:
	close(fd);
	return err;
}

weft_err weft_net_shm_memory_map(int fd, size_t bytes, void **map_p)
{
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);
	if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(fd, &st) != 0 ||
	    st.st_size != (off_t)bytes) {
		weft_error("shm: a peer's memory is not sealed, or not of the announced size");
		return WEFT_ERR_PROTO;
	}
	return map_file(fd, bytes, map_p);
}

void weft_net_shm_memory_unmap(void *m, size_t bytes)
{
	if (m)
		munmap(m, bytes);
}
