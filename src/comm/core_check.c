/* SPDX-License-Identifier: BSD-3-Clause */
/* core_check.c - the invariants of a core, asserted. */
#include "base/assert.h"
#include "comm/core.h"
#include "comm/core_check.h"
#include "comm/match/match_check.h"
#include "comm/send/credit.h"

void weft_comm_core_check(struct weft_core *core)
{
	int gone = 0;

	weft_assert(core->rank >= 0 && core->rank < core->size);
	weft_assert(core->nrails >= 0 && core->nrails <= WEFT_RAILS_MAX);
	for (int t = 0; t < WEFT_OUT_TYPES; t++)
		weft_assert(core->out_ops[t]->post_locked && core->out_ops[t]->failed);
	weft_comm_match_check(core);
	for (int p = 0; p < core->size; p++) {
		struct weft_gate *g = &core->gate[p];
		weft_assert(g->core == core && g->peer == p);
		weft_comm_gate_check(g);
		weft_comm_credit_check(g);
		gone += weft_comm_gate_down(g);
	}
	/* Relaxed: no thread is in the core. */
	weft_assert(atomic_load_explicit(&core->x_gone, memory_order_relaxed) == gone);
	weft_assert(atomic_load_explicit(&core->x_died, memory_order_relaxed) <= gone);
	weft_comm_ids_check(&core->ids);
	weft_comm_answers_check(&core->answers);
	for (int c = 0; c < WEFT_POOL_CLASSES; c++) {
		long items = weft_comm_packet_pool_check(&core->pool[c]);
		weft_assert(items >= 0);
		(void)items;
	}
}
