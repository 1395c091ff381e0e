/* SPDX-License-Identifier: BSD-3-Clause */
/* Signallers and a taker at the ready vector and its mail, in every order, from the production headers. */
#include "ult/model_ready.h"

/* ---- the ready vector ------------------------------------------------------------------------ */

static int taken;

static void vector_setup(void)
{
	ready_setup();
	taken = 0;
}

static void signal_slot(int which, uint32_t slot)
{
	model_write(&context[which], 1);
	weft_ult_ready_signal_word(&ready, slot);
}

static void mails_first(void)
{
	model_write(&context[0], 1);
	weft_ult_ready_signal(&ready, 0);
}

static void mails_second(void)
{
	model_write(&context[1], 1);
	weft_ult_ready_signal(&ready, 1);
}

static void signals_first(void)
{
	signal_slot(0, 0);
}

static void signals_second(void)
{
	signal_slot(1, 1);
}

static void signals_far(void)
{
	signal_slot(2, 4096);
}

/* Takes until both have come; each must be seen whole, and once. */
static void takes_both(void)
{
	uint32_t last = 0;
	while (__builtin_popcount((unsigned)taken) < 2) { /* ends: both were signalled */
		model_block(nothing_signalled, NULL);
		see_newest();
		uint32_t slot = weft_ult_ready_pick(&ready, last);
		if (slot == WEFT_READY_NONE)
			continue;
		int which = slot == 4096 ? 2 : (int)slot;
		MODEL_CHECK(!(taken & 1 << which));
		MODEL_CHECK(model_read(&context[which]) == 1);
		taken |= 1 << which;
		last = slot;
	}
	MODEL_CHECK(atomic_load_explicit(&ready.x_count, memory_order_relaxed) == 0);
}

/* Forgets the levels above. */
static void signals_badly(void)
{
	model_write(&context[1], 1);
	atomic_fetch_or_explicit(&chunk[0].x_word[0], 2, memory_order_seq_cst);
}

int main(void)
{
	static const struct model models[] = {
		{"two signals of a word",
		 vector_setup,
		 {signals_first, signals_second, takes_both},
		 NULL,
		 2,
		 .must = {"weft_ult_ready_signal_word x", "weft_ult_ready_gather x"}},
		{"two signals by mail",
		 vector_setup,
		 {mails_first, mails_second, takes_both},
		 NULL,
		 2,
		 .must = {"weft_ult_ready_signal c", "weft_ult_ready_fetch l"}},
		{"two signals far apart",
		 vector_setup,
		 {signals_first, signals_far, takes_both},
		 NULL,
		 2},
		{"a signal without summary",
		 vector_setup,
		 {signals_first, signals_badly, takes_both},
		 NULL,
		 2,
		 .broken = true},
	};
	return explore_all(models, weft_countof(models));
}
