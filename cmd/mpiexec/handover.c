/* SPDX-License-Identifier: BSD-3-Clause */
/* handover.c - draws the job's secret and name. */
#include "handover.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

static bool draw_random(void *buf, size_t size)
{
	ssize_t n;
	do
		n = getrandom(buf, size, 0); /* up to 256 bytes come whole */
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)size;
}

bool handover_name(char jobid[HANDOVER_JOBID_MAX])
{
	unsigned long long id[2];
	if (!draw_random(id, sizeof id))
		return false;
	snprintf(jobid, HANDOVER_JOBID_MAX, "%016llx%016llx", id[0], id[1]);
	return true;
}

static struct handover *make_page(void)
{
	struct handover *h =
		mmap(NULL, sizeof *h, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (h == MAP_FAILED)
		return NULL;
	(void)madvise(h, sizeof *h, MADV_DONTDUMP);
	return h;
}

struct handover *handover_keep(const struct handover *from)
{
	struct handover *h = make_page();
	if (h)
		*h = *from;
	return h;
}

struct handover *handover_create(const char *jobid)
{
	struct handover *h = make_page();
	if (!h)
		return NULL;
	memcpy(h->magic, "weftjob1", sizeof h->magic);
	snprintf(h->jobid, sizeof h->jobid, "%s", jobid);
	if (!draw_random(h->secret, sizeof h->secret)) {
		munmap(h, sizeof *h);
		return NULL;
	}
	return h;
}
