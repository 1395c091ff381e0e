/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A source whose look is dear is looked at less often while another is busy, and every round again
 * after it had an event; a thread that tests in a loop disarms the sources; without events and waits a poll
 * in the background arms them again.
 */
#include <string.h>
#include "base/settings.h"
#include "fake_source.h"
#include "task/engine_int.h"
#include "task/wake/arm.h"

static struct fake_source cheap;
static _Atomic long x_dear_polls;
static _Atomic int x_dear_has;

static void spin_ns(uint64_t ns)
{
	uint64_t end = weft_cycles() + ns * weft_cycles_per_us() / 1000;
	while (weft_cycles() < end)
		weft_cpu_relax();
}

static int dear_poll(void *arg)
{
	atomic_fetch_add(&x_dear_polls, 1);
	spin_ns(400); /* as a system call would */
	return atomic_exchange(&x_dear_has, 0);
}

static weft_err dear_arm(void *arg, enum weft_arm_level level)
{
	return level != WEFT_ARM_OFF && atomic_load(&x_dear_has) ? WEFT_AGAIN : WEFT_OK;
}

static void nothing(void *arg)
{
}

static long dear_polls_in(int rounds, bool messages)
{
	/* One each: the watcher may be holding the source, then a message stays for later. */
	static struct fake_msg message[8000];
	static int used;
	long before = atomic_load(&x_dear_polls);
	for (int i = 0; i < rounds; i++) {
		if (messages) {
			CHECK(used < 8000);
			message[used].fn = nothing;
			fake_send(&cheap, &message[used++]);
		}
		weft_task_engine_round(&weft_task_engine, WEFT_ROUND_QUICK);
	}
	return atomic_load(&x_dear_polls) - before;
}

static void dear_looks_get_rare(void)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	struct weft_source dear = {.name = "dear", .poll = dear_poll, .arm = dear_arm, .fd = fd};
	CHECK_EQ(weft_task_source_add(&dear), WEFT_OK);
	(void)dear_polls_in(200, false); /* its cost is measured */
	(void)dear_polls_in(500, true);
	long rare = dear_polls_in(6400, true);
	printf("dear source: %ld looks in 6400 rounds beside a busy one\n", rare);
	CHECK(rare >= 50 && rare <= 1600);
	/* It has something: found within its longest period, then looked at every round. */
	atomic_store(&x_dear_has, 1);
	(void)dear_polls_in(70, false);
	CHECK_EQ(atomic_load(&x_dear_has), 0);
	CHECK(dear_polls_in(100, false) >= 99);
	weft_task_source_remove(&dear);
	close(fd);
}

static void testing_disarms(void)
{
	/* No thread polls: the watcher arms. */
	uint64_t t0 = weft_clock_ns();
	while (!weft_task_sources_armed(&weft_task_engine)) {
		CHECK(weft_clock_ns() - t0 < 60000000000u);
		usleep(100);
	}
	/* Tests in quick succession: disarmed, and no further message rings. */
	t0 = weft_clock_ns();
	while (weft_task_sources_armed(&weft_task_engine) && weft_clock_ns() - t0 < 60000000000u)
		weft_engine_poll();
	CHECK(!weft_task_sources_armed(&weft_task_engine) || weft_clock_ns() - t0 < 60000000000u);
}

static void refuses_nonsense(void)
{
	struct weft_source s = {.name = "nothing"};
	CHECK_EQ(weft_task_source_add(NULL), WEFT_ERR_ARG);
	CHECK_EQ(weft_task_source_add(&s), WEFT_ERR_ARG);
	weft_task_source_remove(&s); /* never added */
	s = (struct weft_source){
		.name = "bad descriptor", .poll = dear_poll, .arm = dear_arm, .fd = 9999};
	CHECK_EQ(weft_task_source_add(&s), WEFT_ERR_SYS);
	struct weft_source many[WEFT_SLOT_MAX];
	int n = 0;
	memset((void *)many, 0, sizeof many);
	for (; n < WEFT_SLOT_MAX; n++) {
		many[n] = (struct weft_source){.name = "many", .poll = dear_poll, .fd = -1};
		if (weft_task_source_add(&many[n]))
			break;
	}
	CHECK_EQ(n, WEFT_SLOT_MAX - 1); /* the first is there already */
	while (n--)
		weft_task_source_remove(&many[n]);
}

int main(void)
{
	struct weft_source early = {.name = "early", .poll = dear_poll, .fd = -1};
	CHECK_EQ(weft_task_source_add(&early), WEFT_ERR_STATE);
	/* Counted rounds are ours alone. */
	CHECK_EQ(weft_setting_set(WEFT_SET_PROGRESS, "off"), WEFT_OK);
	CHECK_EQ(weft_engine_start(), WEFT_OK);
	fake_add(&cheap, "cheap", true);
	dear_looks_get_rare();
	weft_progress_set(true);
	testing_disarms();
	refuses_nonsense();
	fake_remove(&cheap);
	weft_engine_stop();
	return 0;
}
