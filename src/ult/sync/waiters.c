/* SPDX-License-Identifier: BSD-3-Clause */
/* waiters.c - the sleep of threads that wait in a queue. */
#include "ult/sync/waiters.h"
#include "ult/watch.h"
#include "wait/stack.h"

weft_err weft_ult_waiters_sleep(struct weft_ult_waiters *q, struct weft_ult_node *n,
				uint64_t deadline_ns, const char *what, const void *object)
{
	weft_err err = WEFT_OK;
	weft_ult_waits_for(what, object);
	weft_wait_entry();
	/* sleep <- GO. */
	while (!atomic_load_explicit(&n->x_go, memory_order_acquire)) { /* ends: let go, or late */
		if (deadline_ns == WEFT_NEVER && !weft_wait_parker_is_light(n->parker)) {
			weft_ult_plain_park(n->parker);
			continue;
		}
		if (deadline_ns == WEFT_NEVER || weft_clock_ns() < deadline_ns) {
			(void)weft_wait_park(n->parker, deadline_ns);
			continue;
		}
		weft_ult_waiters_lock(q);
		bool in = false;
		for (struct weft_ult_node *at = q->first; at && !in; at = at->next)
			in = at == n;
		if (in)
			weft_ult_waiters_remove_locked(q, n);
		weft_ult_waiters_unlock(q);
		if (in) {
			err = WEFT_ERR_TIMEOUT;
			break;
		}
		deadline_ns = WEFT_NEVER; /* it was taken out: x_go comes */
	}
	weft_ult_waits_for(NULL, NULL);
	return err;
}

uint64_t weft_ult_waiters_deadline(uint64_t ns)
{
	uint64_t now;
	if (ns == WEFT_ULT_FOREVER)
		return WEFT_NEVER;
	now = weft_clock_ns();
	return ns > WEFT_NEVER - 1 - now ? WEFT_NEVER - 1 : now + ns;
}
