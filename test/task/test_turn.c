/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A waiter among strangers takes turns: a sleep after which it stood in the queue for a core makes
 * it suspect them, and neither that sleep nor the next ones change how long it looks; then it looks
 * for no longer than what is left of its turn, not at all when that is over.  It sleeps with the
 * kernel's shortest slice, and has its own again when the wait ends.  It is suspicious for as long
 * as the queue takes a fifth of its time.  The kernel's file is made up.
 */
#include <sched.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/settings.h"
#include "check.h"
#include "task/engine_int.h"
#include "task/thread.h"
#include "task/waiting/spin.h"
#include "task/waiting/wait_site.h"
#include "task/event/load.h"
#include "task/waiting/turn.h"

#define MS UINT64_C(1000000)
#define SHORTEST_NS 4000u

static const void *const here = (const void *)0x1000;
static char root[128], file[200];

/* So long has this thread waited for a core, says the kernel. */
static void queued_ms(unsigned long long ms)
{
	FILE *f = fopen(file, "w");
	CHECK(f != NULL);
	fprintf(f, "5000000 %llu 7\n", ms * 1000000);
	CHECK_EQ(fclose(f), 0);
}

static void make_root(void)
{
	const char *tmp = getenv("TMPDIR");
	char dir[160];
	snprintf(root, sizeof root, "%.90s/weft-turn-XXXXXX", tmp ? tmp : "/tmp");
	CHECK(mkdtemp(root) != NULL);
	snprintf(dir, sizeof dir, "%s/proc", root);
	CHECK_EQ(mkdir(dir, 0755), 0);
	snprintf(dir, sizeof dir, "%s/proc/thread-self", root);
	CHECK_EQ(mkdir(dir, 0755), 0);
	snprintf(file, sizeof file, "%s/schedstat", dir);
	weft_task_load_set_root(root);
}

static void clean(void)
{
	char rm[160];
	snprintf(rm, sizeof rm, "rm -rf '%s'", root);
	(void)!system(rm);
}

static void a_long_sleep_is_no_suspicion(void)
{
	CHECK_EQ(weft_task_load_queued_ns(), 0); /* no such file */
	queued_ms(1);
	CHECK_EQ(weft_task_load_queued_ns(), MS);
	uint64_t before = weft_task_spin_site_ns(here);
	weft_task_spin_slept(here, 100 * MS);
	CHECK(!weft_task_spin_preempted());
	CHECK(weft_task_spin_site_ns(here) < before);
}

/* The time that it would look now, and it was suspicious before and after asking. */
static bool plan_now(uint64_t *ns_p)
{
	bool before = weft_task_spin_preempted();
	*ns_p = weft_task_spin_plan(here).ns;
	return before && weft_task_spin_preempted();
}

/* One more sleep in the queue; then the same, when its turn is over. */
static bool plan_after_turn(unsigned long long *ms_p, uint64_t *ns_p)
{
	queued_ms(*ms_p += 30);
	weft_task_spin_slept(here, 100 * MS);
	while (weft_task_turn_left_ns()) /* ends: time passes */
		;
	return plan_now(ns_p);
}

static void a_queue_is(void)
{
	unsigned long long ms = 1;
	uint64_t ns, learned = weft_task_spin_site_ns(here);
	bool judged = false;
	while (!judged) { /* ends: this thread once runs for some 50 ms after it slept */
		queued_ms(ms += 30);
		weft_task_spin_slept(here, 100 * MS);
		judged = plan_now(&ns);
	}
	CHECK_EQ(weft_task_spin_site_ns(here), learned);
	CHECK(ns <= WEFT_TURN_NS && ns <= learned);
	do { /* ends: once it is its turn and it is suspicious */
		queued_ms(ms += 30);
		weft_task_spin_slept(here, 100 * MS);
		judged = plan_now(&ns);
	} while (!judged || !ns);
	/* The same with a turn that is over. */
	do { /* ends: after some spins in vain the place sleeps at once */
		judged = plan_after_turn(&ms, &ns);
		CHECK(ns <= learned);
	} while (!judged || ns);
}

/* A spin that pays makes the place spin again, turn or not; one that sleeps at once tries now and then. */
static void spins_that_pay_go_on(void)
{
	unsigned long long ms = 500000;
	uint64_t ns;
	unsigned waits;
	bool judged = false;
	while (!judged) { /* ends: it is suspicious before and after */
		weft_task_spin_paid(here);
		judged = plan_after_turn(&ms, &ns);
	}
	CHECK(ns >= SHORTEST_NS);
	for (judged = false; !judged || ns;) /* ends: as in a_queue_is */
		judged = plan_after_turn(&ms, &ns);
	for (waits = 0; !judged || !ns; waits += judged) /* ends: the next trial */
		judged = plan_after_turn(&ms, &ns);
	CHECK(waits >= 1 && waits <= 16);
}

static void rest_ms(long ms)
{
	struct timespec ts = {0, ms * 1000000};
	while (nanosleep(&ts, &ts)) /* ends: time passes */
		;
}

/* Has it had to queue for much of the time since it saw them, they are still there. */
static void who_saw_them_asks_again(void)
{
	unsigned long long ms = 1000000;
	bool judged = false;
	while (!judged) { /* ends: this thread once runs within two seconds */
		uint64_t began = weft_clock_ns();
		queued_ms(ms += 30);
		weft_task_spin_slept(here, 100 * MS);
		queued_ms(ms += 10000);
		rest_ms(60); /* what a suspicion lasts by itself, and some */
		bool still = weft_task_spin_preempted();
		judged = weft_clock_ns() - began < 2000 * MS;
		CHECK(still || !judged);
	}
	rest_ms(60);
	CHECK(!weft_task_spin_preempted()); /* no longer queued since */
}

static void our_own_ranks_are_no_strangers(void)
{
	while (weft_task_spin_preempted()) /* ends: a suspicion does, by itself */
		sched_yield();
	weft_task_engine_set_local_ranks(3, 2);
	queued_ms(100000000);
	weft_task_spin_slept(here, 100 * MS);
	CHECK(!weft_task_spin_preempted());
	weft_task_engine_set_local_ranks(1, 2);
}

static void slices(void)
{
	struct weft_sched_attr a;
	CHECK(weft_task_sched_get(&a));
	uint64_t own = a.runtime;
	uint64_t said = weft_task_turn_sleeps();
	if (!said) {
		printf("this kernel has no slices\n");
		return;
	}
	CHECK_EQ(said, own);
	CHECK_EQ(weft_task_turn_sleeps(), 0); /* short already */
	CHECK(weft_task_sched_get(&a));
	CHECK_EQ(a.runtime, WEFT_SLICE_NS);
	a.nice += 1; /* it is made nicer meanwhile */
	CHECK(weft_task_sched_set(&a));
	weft_task_turn_wakes(0);
	CHECK(weft_task_sched_get(&a));
	CHECK_EQ(a.runtime, WEFT_SLICE_NS);
	int nice_now = a.nice;
	weft_task_turn_wakes(said);
	CHECK(weft_task_sched_get(&a));
	CHECK_EQ(a.runtime, own);
	CHECK_EQ(a.nice, nice_now);
}

/* A wait among strangers, through the engine: its slice is back afterwards. */
static void a_wait_gives_it_back(void)
{
	struct weft_sched_attr before, after;
	struct weft_completion never, *c = &never;
	unsigned long long ms = 2000000;
	bool suspicious;
	weft_wait_completion_init(&never);
	CHECK(weft_task_sched_get(&before));
	do { /* ends: once it is suspicious before and after */
		queued_ms(ms += 30);
		weft_task_spin_slept(here, 100 * MS);
		suspicious = weft_task_spin_preempted();
		CHECK_EQ(weft_task_engine_wait_all_at(&c, 1, 3 * MS, here), WEFT_ERR_TIMEOUT);
		suspicious = suspicious && weft_task_spin_preempted();
	} while (!suspicious);
	CHECK(weft_task_sched_get(&after));
	CHECK_EQ(after.runtime, before.runtime);
	CHECK_EQ(after.nice, before.nice);
}

int main(void)
{
	CHECK_EQ(weft_setting_set(WEFT_SET_LOG, "error"), WEFT_OK);
	make_root();
	CHECK_EQ(weft_engine_start(), WEFT_OK);
	weft_task_engine_set_local_ranks(1, 2);
	a_long_sleep_is_no_suspicion();
	a_queue_is();
	spins_that_pay_go_on();
	who_saw_them_asks_again();
	our_own_ranks_are_no_strangers();
	slices();
	a_wait_gives_it_back();
	weft_engine_stop();
	clean();
	return 0;
}
