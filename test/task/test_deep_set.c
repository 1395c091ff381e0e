/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A source whose descriptor is an epoll set of a set of a set, however deep, wakes its waiter: by
 * the descriptor where the kernel still watches it, else by the timer; so do further descriptors.
 */
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "check.h"
#include "task/task.h"
#include "wait/completion.h"

#define DEEP 7

static struct deep {
	int leaf, set[DEEP];
	unsigned sets; /* above the leaf */
	struct weft_completion came;
	bool done;
} deep;

static int deep_poll(void *arg)
{
	uint64_t count;
	(void)arg;
	if (deep.done || read(deep.leaf, &count, sizeof count) != sizeof count)
		return 0;
	deep.done = true;
	weft_wait_completion_signal(&deep.came);
	return 1;
}

static weft_err deep_arm(void *arg, enum weft_arm_level level)
{
	struct epoll_event ev;
	(void)arg;
	if (level == WEFT_ARM_OFF)
		return WEFT_OK;
	return !deep.done && deep.sets && epoll_wait(deep.set[0], &ev, 1, 0) > 0 ? WEFT_AGAIN
										 : WEFT_OK;
}

static void *write_later(void *arg)
{
	uint64_t one = 1;
	(void)arg;
	usleep(20000); /* not for correctness: the waiter is asleep by then */
	CHECK(write(deep.leaf, &one, sizeof one) == sizeof one);
	return NULL;
}

/* How many sets lie above the leaf; the kernel refuses to stack more. */
static unsigned stack_sets(unsigned want)
{
	unsigned n = 0;
	for (; n < want; n++) {
		struct epoll_event ev = {.events = EPOLLIN};
		deep.set[n] = epoll_create1(EPOLL_CLOEXEC);
		CHECK(deep.set[n] >= 0);
		if (epoll_ctl(deep.set[n], EPOLL_CTL_ADD, n ? deep.set[n - 1] : deep.leaf, &ev)) {
			close(deep.set[n]);
			break;
		}
	}
	return n;
}

/* beside: the deep descriptor is not the first one. */
static unsigned wakes_at(unsigned sets, bool beside)
{
	pthread_t thread;
	int idle = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	deep.done = false;
	deep.leaf = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	CHECK(deep.leaf >= 0 && idle >= 0);
	deep.sets = stack_sets(sets);
	int top = deep.sets ? deep.set[deep.sets - 1] : deep.leaf;
	struct weft_source src = {.name = "deep",
				  .poll = deep_poll,
				  .arm = deep_arm,
				  .fd = beside ? idle : top,
				  .more_fd = &top,
				  .n_more = beside};
	weft_wait_completion_init(&deep.came);
	CHECK_EQ(weft_task_source_add(&src), WEFT_OK);
	CHECK_EQ(pthread_create(&thread, NULL, write_later, NULL), 0);
	weft_task_engine_wait(&deep.came); /* or ctest ends it */
	CHECK_EQ(pthread_join(thread, NULL), 0);
	weft_task_source_remove(&src);
	for (unsigned i = deep.sets; i-- > 0;)
		close(deep.set[i]);
	close(deep.leaf);
	close(idle);
	return deep.sets;
}

int main(void)
{
	unsigned deepest = 0;
	CHECK_EQ(weft_engine_start(), WEFT_OK);
	for (unsigned sets = 0; sets <= DEEP; sets++)
		for (int beside = 0; beside < 2; beside++) {
			unsigned n = wakes_at(sets, beside);
			deepest = n > deepest ? n : deepest;
		}
	printf("up to %u sets above a descriptor\n", deepest);
	CHECK(deepest >= 4); /* else nothing was too deep */
	weft_engine_stop();
	return 0;
}
