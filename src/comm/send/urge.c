/* SPDX-License-Identifier: BSD-3-Clause */
/* urge.c - the ring at the other end of a gate, at once or late. */
#include "comm/send/urge.h"

#include "comm/core.h"
#include "task/task.h"

bool weft_comm_urge_may_be_late(struct weft_gate *g, const struct weft_wire *head)
{
	struct weft_core *core = g->core;
	return core->later && weft_task_engine_runner() == WEFT_RUNNER_APPLICATION &&
	       weft_comm_urge_late(&core->urge, head, weft_cycles());
}

void weft_comm_urge_ring(struct weft_gate *g, bool late)
{
	if (g->driver->urge(g->net, g->peer, late) && !g->core->later())
		(void)g->driver->urge(g->net, g->peer, false);
}
