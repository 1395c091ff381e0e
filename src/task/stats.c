/* SPDX-License-Identifier: BSD-3-Clause */
/* stats.c - the counters as users read them, and the processor time of the engine's threads. */
#include <weft/stats.h>

#include <string.h>
#include "base/counters.h"
#include "task/engine_int.h"
#include "task/wake/budget.h"

size_t weft_task_stats(struct weft_stat *stat, size_t n)
{
	for (size_t i = 0; i < n && i < WEFT_COUNTER_COUNT; i++) {
		enum weft_counter_id id = (enum weft_counter_id)i;
		stat[i] = (struct weft_stat){.name = weft_counter_name(id),
					     .help = weft_counter_help(id),
					     .value = weft_counter_sum(id)};
	}
	if (n > WEFT_COUNTER_COUNT)
		stat[WEFT_COUNTER_COUNT] = (struct weft_stat){
			.name = "background_ns",
			.help = "processor time that the engine's own threads have used",
			.value = weft_task_budget_used_ns()};
	return WEFT_COUNTER_COUNT + 1;
}

uint64_t weft_task_stat(const char *name)
{
	struct weft_stat all[WEFT_COUNTER_COUNT + 1];
	size_t n = weft_task_stats(all, WEFT_COUNTER_COUNT + 1);
	for (size_t i = 0; i < n; i++)
		if (strcmp(all[i].name, name) == 0)
			return all[i].value;
	return 0;
}
