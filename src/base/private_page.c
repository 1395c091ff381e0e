/* SPDX-License-Identifier: BSD-3-Clause */
/* private_page.c - pages that no core dump contains. */
#include "base/private_page.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "base/log.h"

static size_t whole_pages(size_t bytes)
{
	return weft_align_up(bytes, (size_t)sysconf(_SC_PAGESIZE));
}

void *weft_private_page_alloc(size_t bytes)
{
	void *at = mmap(NULL, whole_pages(bytes), PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		return NULL;
	if (madvise(at, whole_pages(bytes), MADV_DONTDUMP))
		weft_debug("MADV_DONTDUMP refused: a core dump may contain the job's secret");
	return at;
}

void weft_private_page_free(void *at, size_t bytes)
{
	if (!at)
		return;
	explicit_bzero(at, bytes);
	munmap(at, whole_pages(bytes));
}
