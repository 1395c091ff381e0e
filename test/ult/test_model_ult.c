/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The life of a thread in every order, from the production headers: park inside the lock and out of
 * it, an outside unpark and its next run; tokens and deadlines; the end, join and detach.
 */
#include "ult/model_ready.h"
/* The production sources, compiled against the explorer's atomics. */
#include "wait/park.c"
#include "ult/sched/life.h"

/* ---- park, unpark, run elsewhere ------------------------------------------------------------- */

static struct weft_parker parker;
static int note; /* what the outsider wrote before it called */
static _Atomic int x_resumed;

static void unpark_ult(struct weft_parker *p)
{
	if (weft_ult_call(&p->x_word))
		weft_ult_ready_signal(&ready, 0);
}

static void no_sleep(struct weft_parker *p, uint64_t deadline_ns)
{
}

static const struct weft_parker_ops ult_ops = {"model", no_sleep, NULL, NULL, unpark_ult};

static void park_setup(void)
{
	ready_setup();
	weft_wait_owner_init(&lock, WEFT_OWNER_FIXED);
	weft_wait_parker_init(&parker, &ult_ops, NULL);
	note = 0;
	atomic_store_explicit(&x_resumed, 0, memory_order_relaxed);
}

static void goes_on(void)
{
	MODEL_CHECK(model_read(&note) == 1);
	MODEL_CHECK(atomic_fetch_add_explicit(&x_resumed, 1, memory_order_relaxed) == 0);
}

static void missed(void)
{
	MODEL_CHECK(weft_ult_park_consume(&parker.x_word));
	goes_on();
}

/* On a worker that is not its home: the next to run lets it be called, its context is stored. */
static void parks(void)
{
	model_write(&context[0], 1);
	if (!weft_ult_park_commit(&parker.x_word))
		missed();
}

/* At home: lets itself be called, looks what is next, and stores its context inside the lock. */
static void parks_and_switches(bool looks_at_itself)
{
	weft_wait_owner_enter_fixed(&lock, false);
	bool parked = weft_ult_park_commit(&parker.x_word);
	bool next = parked && weft_ult_ready_pick(&ready, 0) == 0;
	if (next && !looks_at_itself)
		MODEL_CHECK(model_read(&context[0]) == 1);
	if (parked && !next)
		model_write(&context[0], 1);
	weft_wait_owner_leave(&lock);
	if (!parked)
		missed();
	else if (next)
		goes_on();
}

static void parks_inside(void)
{
	parks_and_switches(true);
}

/* Switches to itself. */
static void parks_blindly(void)
{
	parks_and_switches(false);
}

static void calls(void)
{
	model_write(&note, 1);
	weft_wait_unpark(&parker);
}

static bool not_ready_nor_resumed(void *arg)
{
	int resumed;
	memcpy(&resumed, (void *)&x_resumed, sizeof resumed);
	return !resumed && nothing_signalled(NULL);
}

static void run_it(uint32_t slot)
{
	MODEL_CHECK(slot == 0);
	MODEL_CHECK(model_read(&context[0]) == 1);
	goes_on();
}

/* The holder of its home's lock: runs it once it is ready. */
static void runs_elsewhere(void)
{
	model_block(not_ready_nor_resumed, NULL);
	see_newest();
	if (!nothing_signalled(NULL))
		run_it(weft_ult_ready_pick(&ready, 0));
}

static bool gave_up;

/* A thief that comes inside the lock or does without. */
static void steals_it(void)
{
	model_block(not_ready_nor_resumed, NULL);
	see_newest();
	if (nothing_signalled(NULL))
		return;
	if (!weft_wait_owner_steal_begin(&lock, false)) {
		gave_up = true;
		return;
	}
	uint32_t slot = weft_ult_ready_pick(&ready, 0);
	weft_wait_owner_steal_end(&lock);
	if (slot != WEFT_READY_NONE) /* else it has been called, and has gone on by itself */
		run_it(slot);
}

/* Says PARKED before its context is stored, and outside. */
static void parks_badly(void)
{
	bool parked = weft_ult_park_commit(&parker.x_word);
	model_write(&context[0], 1);
	if (!parked)
		missed();
}

static void park_check(void)
{
	MODEL_CHECK(atomic_load_explicit(&x_resumed, memory_order_relaxed) == 1);
}

/* Once; or it is still ready, when the thief did without. */
static void inside_check(void)
{
	int resumed = atomic_load_explicit(&x_resumed, memory_order_relaxed);
	MODEL_CHECK(resumed == 1 || (resumed == 0 && gave_up && !nothing_signalled(NULL)));
}

static void inside_setup(void)
{
	park_setup();
	gave_up = false;
}

/* ---- tokens ---------------------------------------------------------------------------------- */

static void parks_for_token(void)
{
	model_write(&context[0], 1);
	if (weft_ult_token_commit(&parker.x_word))
		return;
	MODEL_CHECK(weft_ult_token_take(&parker.x_word));
	goes_on();
}

static void gives(void)
{
	model_write(&note, 1);
	if (weft_ult_token_give(&parker.x_word))
		weft_ult_ready_signal(&ready, 0);
}

/* Too late for the wait that it was for: changes nothing. */
static void calls_late_wait(void)
{
	weft_wait_unpark(&parker);
}

static void token_check(void)
{
	uint32_t word = atomic_load_explicit(&parker.x_word, memory_order_relaxed);
	MODEL_CHECK(atomic_load_explicit(&x_resumed, memory_order_relaxed) == 1 ||
		    !nothing_signalled(NULL));
	MODEL_CHECK(!(word & (WEFT_ULT_TOKEN | WEFT_ULT_WAITS_TOKEN)));
}

/* In an inner wait: the token stays for later. */
static void inner_check(void)
{
	park_check();
	MODEL_CHECK(atomic_load_explicit(&parker.x_word, memory_order_relaxed) == WEFT_ULT_TOKEN);
}

static void parks_alone(void)
{
	model_write(&context[0], 1);
	if (!weft_ult_park_commit(&parker.x_word)) {
		missed();
		return;
	}
	model_block(not_ready_nor_resumed, NULL);
	see_newest();
	run_it(weft_ult_ready_pick(&ready, 0));
}

static void gives_meanwhile(void)
{
	MODEL_CHECK(!weft_ult_token_give(&parker.x_word));
}

static _Atomic int x_called;

static void late_setup(void)
{
	park_setup();
	model_write(&context[0], 1);
	(void)weft_ult_token_commit(&parker.x_word);
	atomic_store_explicit(&x_called, 0, memory_order_relaxed);
}

static void gives_in_time(void)
{
	if (weft_ult_token_give(&parker.x_word))
		atomic_fetch_add_explicit(&x_called, 1, memory_order_relaxed);
}

static void time_passes(void)
{
	if (weft_ult_call_late(&parker.x_word))
		atomic_fetch_add_explicit(&x_called, 1, memory_order_relaxed);
}

static void late_check(void)
{
	MODEL_CHECK(atomic_load_explicit(&x_called, memory_order_relaxed) == 1);
}

/* ---- end, join, detach ----------------------------------------------------------------------- */

static _Atomic uintptr_t x_join;
static struct weft_parker joiner;
static int result, freed;

static void join_setup(void)
{
	atomic_store_explicit(&x_join, WEFT_ULT_RUNNING, memory_order_relaxed);
	weft_wait_parker_init(&joiner, &ult_ops, NULL);
	ready_setup();
	result = freed = 0;
}

static void free_it(void)
{
	model_write(&result, 0); /* its stack is used again */
	freed++;
}

static void ends(void)
{
	struct weft_parker *p;
	model_write(&result, 7);
	if (weft_ult_over(&x_join, &p))
		free_it();
	else if (p)
		atomic_store_explicit(&p->x_word, WEFT_PARKER_NOTIFIED, memory_order_relaxed);
}

static void joins(void)
{
	weft_err err = weft_ult_join_begin(&x_join, &joiner);
	MODEL_CHECK(err == WEFT_OK || err == WEFT_AGAIN);
	while (err == WEFT_OK && !weft_ult_ended(&x_join)) /* ends: it ends */
		model_relax();
	MODEL_CHECK(model_read(&result) == 7);
	free_it();
}

static void detaches(void)
{
	if (weft_ult_detach_begin(&x_join) == WEFT_AGAIN)
		free_it();
}

static void join_check(void)
{
	MODEL_CHECK(freed == 1);
}

int main(void)
{
	static const struct model models[] = {
		{"park and unpark",
		 park_setup,
		 {parks, calls, runs_elsewhere},
		 park_check,
		 3,
		 .must = {"weft_ult_park_commit c", "weft_ult_call c"}},
		{"park inside the lock",
		 inside_setup,
		 {parks_inside, calls, steals_it},
		 inside_check,
		 3},
		{"park inside, and switch to oneself",
		 inside_setup,
		 {parks_blindly, calls, steals_it},
		 inside_check,
		 3,
		 .broken = true},
		{"park for a token",
		 park_setup,
		 {parks_for_token, gives, runs_elsewhere},
		 park_check,
		 3,
		 .must = {"weft_ult_token_commit c", "weft_ult_token_give c"}},
		{"a token and a late call",
		 park_setup,
		 {parks_for_token, gives, calls_late_wait},
		 token_check,
		 3},
		{"a token in an inner wait",
		 park_setup,
		 {parks_alone, calls, gives_meanwhile},
		 inner_check,
		 3},
		{"a token and a deadline", late_setup, {gives_in_time, time_passes}, late_check, 3},
		{"called before stored",
		 park_setup,
		 {parks_badly, calls, runs_elsewhere},
		 park_check,
		 3,
		 .broken = true},
		{"end and join",
		 join_setup,
		 {ends, joins},
		 join_check,
		 6,
		 .must = {"weft_ult_over x", "weft_ult_ended l"}},
		{"end and detach", join_setup, {ends, detaches}, join_check, 6},
	};
	return explore_all(models, weft_countof(models));
}
