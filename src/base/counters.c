/* SPDX-License-Identifier: BSD-3-Clause */
/* counters.c - the list of per-thread blocks; blocks of ended threads are used again, values kept.
 */
#include "base/counters.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "base/file_limit.h"
#include "base/live.h"
#include "base/log.h"

_Thread_local struct weft_counter_block *weft_counter_self;

/* Blocks are only ever added: readers walk without a lock. */
static struct weft_counter_block *_Atomic x_blocks;
static pthread_key_t end_key;
static pthread_once_t end_once = PTHREAD_ONCE_INIT;
static struct weft_counter_block last_resort; /* shared when memory is gone: counts may be lost */

static const char *const names[] = {
#define WEFT_COUNTER(id, name, help) name,
#include "base/counters_table.h"
#undef WEFT_COUNTER
};
static const char *const helps[] = {
#define WEFT_COUNTER(id, name, help) help,
#include "base/counters_table.h"
#undef WEFT_COUNTER
};

static struct weft_live_head *live; /* NULL: blocks are ordinary memory */

/* Shared memory that `weft info --live` finds; without it everything works but that. */
static void make_live(void)
{
	int fd = weft_file_fits(WEFT_LIVE_BYTES) ? memfd_create(WEFT_LIVE_NAME, MFD_CLOEXEC) : -1;
	if (fd < 0)
		return;
	void *p = MAP_FAILED;
	if (ftruncate(fd, WEFT_LIVE_BYTES) == 0)
		p = mmap(NULL, WEFT_LIVE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
			 fd, 0);
	if (p == MAP_FAILED) {
		close(fd);
		return;
	}
	live = p; /* fd stays open: readers find the memory by it */
	live->counters = WEFT_COUNTER_COUNT;
	live->block_bytes =
		(uint32_t)weft_align_up(sizeof(struct weft_counter_block), WEFT_CACHELINE);
	live->values_at = offsetof(struct weft_counter_block, x_value);
	char *name = (char *)(live + 1);
	for (int i = 0; i < WEFT_COUNTER_COUNT; i++) {
		size_t n = strlen(names[i]) + 1;
		if (name + n > (char *)live + WEFT_LIVE_BLOCKS_AT)
			weft_panic("the counters' names need more room");
		memcpy(name, names[i], n);
		name += n;
	}
	live->magic = WEFT_LIVE_MAGIC;
}

static struct weft_counter_block *new_block(void)
{
	size_t bytes = weft_align_up(sizeof(struct weft_counter_block), WEFT_CACHELINE);
	if (live) {
		/* Relaxed: the block is zero from the start, and readers may come late. */
		uint32_t i = atomic_fetch_add_explicit(&live->x_blocks, 1, memory_order_relaxed);
		if (i < (WEFT_LIVE_BYTES - WEFT_LIVE_BLOCKS_AT) / bytes)
			return (void *)((char *)live + WEFT_LIVE_BLOCKS_AT + i * bytes);
		atomic_fetch_sub_explicit(&live->x_blocks, 1, memory_order_relaxed);
	}
	struct weft_counter_block *b = aligned_alloc(WEFT_CACHELINE, bytes);
	if (b)
		memset((void *)b, 0, sizeof *b);
	return b;
}

static void thread_ends(void *arg)
{
	struct weft_counter_block *b = arg;
	weft_counter_self = NULL;
	/* FREE -> REUSE.  Carries: our last counts.  Without it the next owner could overwrite
	 * them. */
	atomic_store_explicit(&b->x_used, false, memory_order_release);
}

static void make_key(void)
{
	if (pthread_key_create(&end_key, thread_ends))
		weft_panic("no pthread key left for the counters");
	make_live();
}

void weft_live_tell(const char *name, uint64_t layout, const void *at)
{
	(void)pthread_once(&end_once, make_key);
	for (size_t i = 0; live && i < sizeof live->part / sizeof live->part[0]; i++) {
		struct weft_live_part *p = &live->part[i];
		if (p->name[0] && strncmp(p->name, name, sizeof p->name) != 0)
			continue;
		strncpy(p->name, name, sizeof p->name - 1);
		p->layout = layout;
		/* TOLD -> LOOK (weft info --live).  Carries: name and layout. */
		atomic_store_explicit(&p->x_at, (uint64_t)(uintptr_t)at, memory_order_release);
		return;
	}
}

static struct weft_counter_block *reuse_block(void)
{
	/* SEE <- PUB (weft_counter_block_get).  Carries: next, the zeroed block. */
	for (struct weft_counter_block *b = atomic_load_explicit(&x_blocks, memory_order_acquire);
	     b; b = b->next) {
		bool used = false;
		/* REUSE: partner FREE in thread_ends. */
		if (atomic_compare_exchange_strong_explicit(
			    &b->x_used, &used, true, memory_order_acquire, memory_order_relaxed))
			return b;
	}
	return NULL;
}

struct weft_counter_block *weft_counter_block_get(void)
{
	pthread_once(&end_once, make_key);
	struct weft_counter_block *b = reuse_block();
	if (!b) {
		b = new_block();
		if (!b)
			return &last_resort;
		atomic_store_explicit(&b->x_used, true, memory_order_relaxed);
		b->next = atomic_load_explicit(&x_blocks, memory_order_relaxed);
		/* PUB -> SEE (readers).  Carries: the zeroed block. */
		while (!atomic_compare_exchange_weak_explicit(
			&x_blocks, &b->next, b, memory_order_release, memory_order_relaxed))
			;
	}
	pthread_setspecific(end_key, b);
	weft_counter_self = b;
	return b;
}

uint64_t weft_counter_sum(enum weft_counter_id id)
{
	/* Relaxed: numbers; a reader that wants them exact has waited for their writers. */
	uint64_t sum = atomic_load_explicit(&last_resort.x_value[id], memory_order_relaxed);
	/* SEE <- PUB (weft_counter_block_get).  Carries: next, the zeroed block. */
	for (struct weft_counter_block *b = atomic_load_explicit(&x_blocks, memory_order_acquire);
	     b; b = b->next)
		sum += atomic_load_explicit(&b->x_value[id], memory_order_relaxed);
	return sum;
}

const char *weft_counter_name(enum weft_counter_id id)
{
	return names[id];
}

const char *weft_counter_help(enum weft_counter_id id)
{
	return helps[id];
}
