/* SPDX-License-Identifier: BSD-3-Clause */
/* page.c - the shared memory of a window. */
#include "rma/page.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/file_limit.h"
#include "base/log.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static weft_err map_page(struct weft_rma_page *p, int fd, size_t bytes)
{
	/* Pages are taken when they are first touched: by the member that uses them, near it. */
	void *m = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (m == MAP_FAILED) {
		weft_debug("window: cannot map %zu bytes: %s", bytes, strerror(errno));
		return WEFT_ERR_NOMEM;
	}
	p->map = m;
	p->bytes = bytes;
	return WEFT_OK;
}

weft_err weft_rma_page_make(struct weft_rma_page *p, size_t bytes)
{
	p->fd = -1;
	if (!weft_file_fits(bytes))
		return WEFT_ERR_UNSUPPORTED;
	int fd = memfd_create("weft-window", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0) {
		weft_debug("window: no memfd: %s", strerror(errno));
		return WEFT_ERR_UNSUPPORTED;
	}
	weft_err err = WEFT_ERR_NOMEM;
	if (ftruncate(fd, (off_t)bytes) == 0 && fcntl(fd, F_ADD_SEALS, SEALS) == 0)
		err = map_page(p, fd, bytes);
	if (err)
		close(fd);
	else
		p->fd = fd;
	return err;
}

weft_err weft_rma_page_map(struct weft_rma_page *p, int pid, int fd, size_t bytes)
{
	char path[64];
	struct stat st;
	p->fd = -1;
	snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, fd);
	int mine = open(path, O_RDWR | O_CLOEXEC);
	if (mine < 0) {
		weft_debug("window: cannot open %s: %s", path, strerror(errno));
		return WEFT_ERR_UNSUPPORTED;
	}
	int seals = fcntl(mine, F_GET_SEALS);
	weft_err err = WEFT_ERR_UNSUPPORTED;
	/* Sealed: a file that shrinks would kill us at an access. */
	if (seals >= 0 && (seals & F_SEAL_SHRINK) && fstat(mine, &st) == 0 &&
	    st.st_size == (off_t)bytes)
		err = map_page(p, mine, bytes);
	close(mine);
	return err;
}

void weft_rma_page_close_fd(struct weft_rma_page *p)
{
	if (p->fd >= 0)
		close(p->fd);
	p->fd = -1;
}

void weft_rma_page_unmap(struct weft_rma_page *p)
{
	weft_rma_page_close_fd(p);
	if (p->map)
		munmap(p->map, p->bytes);
	p->map = NULL;
}

uint64_t weft_rma_process_start(int pid)
{
	char path[32], text[512], state = 0;
	unsigned long long start = 0;
	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	FILE *f = fopen(path, "re");
	if (!f)
		return 0;
	size_t n = fread(text, 1, sizeof text - 1, f);
	fclose(f);
	text[n] = 0;
	/* The name, in brackets, may hold anything; after it: state, then 18 numbers, then the start. */
	char *after = strrchr(text, ')');
	if (!after || sscanf(after,
			     ") %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d "
			     "%*d %*d %llu",
			     &state, &start) != 2)
		return 0;
	return state == 'Z' || state == 'X' ? 0 : start;
}
