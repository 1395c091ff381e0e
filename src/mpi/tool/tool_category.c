/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tool_category.c - categories: settings, counters and events, each with one category below for what belongs
 * together, a layer's variables or a source's events.  Each of them is in one category.
 */
#include "mpi/tool/event.h"
#include "mpi/tool/tool.h"

#include <string.h>

/* Neighbours in the table of settings, or of counters: from `first` to the next group's. */
static const struct group {
	const char *name, *desc;
	int first;
} groups[] = {
	{"weft_settings_general", "messages to the user, mistakes, traces", WEFT_SET_LOG},
	{"weft_settings_launch", "start of a job, and other hosts", WEFT_SET_INIT_TIMEOUT},
	{"weft_settings_networks", "which networks, and how they connect", WEFT_SET_DRIVERS},
	{"weft_settings_engine", "progress in the background, waiting, tasks", WEFT_SET_PROGRESS},
	{"weft_settings_threads", "user-level threads", WEFT_SET_ULT_WORKERS},
	{"weft_settings_messages", "point-to-point messages", WEFT_SET_EAGER_SHM},
	{"weft_settings_collectives", "collectives", WEFT_SET_COLL_SHARE},
	{"weft_settings_windows", "one-sided accesses", WEFT_SET_RMA_PATH},
	{"weft_settings_files", "files", WEFT_SET_FILE_LOCKS},
	{"weft_settings_processes", "processes that come and go", WEFT_SET_SPAWN_MPIEXEC},
	{NULL, NULL, WEFT_SETTING_COUNT},
	{"weft_counters_engine", "polls, sleeps and wake-ups, tasks", WEFT_CNT_POLL_EXPLICIT},
	{"weft_counters_messages", "point-to-point messages", WEFT_CNT_EAGER_SENT},
	{"weft_counters_networks", "rails and connections", WEFT_CNT_RAILS_LOST},
	{"weft_counters_collectives", "collectives", WEFT_CNT_COLL_SCHEDULES},
	{"weft_counters_files", "files", WEFT_CNT_FILE_STRAIGHT},
	{NULL, NULL, WEFT_COUNTER_COUNT},
};

enum {
	SETTING_GROUPS = 10,
	COUNTER_GROUPS = weft_countof(groups) - SETTING_GROUPS - 2,
	SETTINGS = 0,
	COUNTERS,
	EVENTS,
	OF_SETTINGS,
	OF_COUNTERS = OF_SETTINGS + SETTING_GROUPS,
	SOURCES = OF_COUNTERS + COUNTER_GROUPS,
	COUNT = SOURCES + WEFT_EVENT_SOURCES - 1
};

struct category {
	const char *name, *desc;
	int first, cvars, pvars; /* numbers in one of the tables */
	int below, belows;       /* categories */
};

static const struct category top[] = {
	[SETTINGS] = {"weft_settings", "what can be configured: the environment's WEFT_ variables",
		      .below = OF_SETTINGS, .belows = SETTING_GROUPS},
	[COUNTERS] = {"weft_counters", "what weft has done since it started", .below = OF_COUNTERS,
		      .belows = COUNTER_GROUPS},
	[EVENTS] = {"weft_events", "what happens, as it happens: a category for each source",
		    .below = SOURCES, .belows = COUNT - SOURCES},
};

/* A source of events as a category; NONE: it is none. */
static enum weft_event_source source_of(int cat_index)
{
	return cat_index < SOURCES ? WEFT_EVENT_NONE
				   : (enum weft_event_source)(cat_index - SOURCES + 1);
}

static struct category category_of(int cat_index)
{
	enum weft_event_source source = source_of(cat_index);

	if (cat_index < OF_SETTINGS)
		return top[cat_index];
	if (source != WEFT_EVENT_NONE)
		return (struct category){.name = weft_event_source_name(source),
					 .desc = weft_event_source_desc(source)};
	bool counts = cat_index >= OF_COUNTERS;
	const struct group *g = &groups[cat_index - OF_SETTINGS + counts];
	int n = g[1].first - g->first;
	return (struct category){.name = g->name,
				 .desc = g->desc,
				 .first = g->first,
				 .cvars = counts ? 0 : n,
				 .pvars = counts ? n : 0};
}

static int check_index(int cat_index)
{
	if (!weft_tool_running())
		return MPI_T_ERR_NOT_INITIALIZED;
	if (cat_index < 0 || cat_index >= COUNT)
		return MPI_T_ERR_INVALID_INDEX;
	return MPI_SUCCESS;
}

static int numbers_from(int first, int have, int len, int indices[])
{
	if (len > 0 && !indices)
		return MPI_T_ERR_INVALID;
	for (int i = 0; i < have && i < len; i++)
		indices[i] = first + i;
	return MPI_SUCCESS;
}

int weft_mpi_T_category_get_num(int *num_cat)
{
	if (!weft_tool_running())
		return MPI_T_ERR_NOT_INITIALIZED;
	if (!num_cat)
		return MPI_T_ERR_INVALID;
	*num_cat = COUNT;
	return MPI_SUCCESS;
}

int weft_mpi_T_category_get_info(int cat_index, char *name, int *name_len, char *desc,
				 int *desc_len, int *num_cvars, int *num_pvars, int *num_categories)
{
	int err = check_index(cat_index);

	if (err)
		return err;
	struct category c = category_of(cat_index);
	weft_tool_text(c.name, name, name_len);
	weft_tool_text(c.desc, desc, desc_len);
	if (num_cvars)
		*num_cvars = c.cvars;
	if (num_pvars)
		*num_pvars = c.pvars;
	if (num_categories)
		*num_categories = c.belows;
	return MPI_SUCCESS;
}

int weft_mpi_T_category_get_index(const char *name, int *cat_index)
{
	if (!weft_tool_running())
		return MPI_T_ERR_NOT_INITIALIZED;
	if (!name || !cat_index)
		return MPI_T_ERR_INVALID;
	for (int i = 0; i < COUNT; i++)
		if (strcmp(name, category_of(i).name) == 0) {
			*cat_index = i;
			return MPI_SUCCESS;
		}
	return MPI_T_ERR_INVALID_NAME;
}

int weft_mpi_T_category_get_cvars(int cat_index, int len, int indices[])
{
	int err = check_index(cat_index);

	if (err)
		return err;
	struct category c = category_of(cat_index);
	return numbers_from(c.first, c.cvars, len, indices);
}

int weft_mpi_T_category_get_pvars(int cat_index, int len, int indices[])
{
	int err = check_index(cat_index);

	if (err)
		return err;
	struct category c = category_of(cat_index);
	return numbers_from(c.first, c.pvars, len, indices);
}

int weft_mpi_T_category_get_categories(int cat_index, int len, int indices[])
{
	int err = check_index(cat_index);

	if (err)
		return err;
	struct category c = category_of(cat_index);
	return numbers_from(c.below, c.belows, len, indices);
}

int weft_mpi_T_category_get_events(int cat_index, int len, int indices[])
{
	int err = check_index(cat_index);

	if (err || source_of(cat_index) == WEFT_EVENT_NONE)
		return err;
	if (len > 0 && !indices)
		return MPI_T_ERR_INVALID;
	(void)weft_event_types(source_of(cat_index), len, indices);
	return MPI_SUCCESS;
}

int weft_mpi_T_category_get_num_events(int cat_index, int *num_events)
{
	int err = check_index(cat_index);

	if (err)
		return err;
	if (!num_events)
		return MPI_T_ERR_INVALID;
	*num_events = source_of(cat_index) == WEFT_EVENT_NONE
			      ? 0
			      : weft_event_types(source_of(cat_index), 0, NULL);
	return MPI_SUCCESS;
}

int weft_mpi_T_category_changed(int *update_number)
{
	if (!weft_tool_running())
		return MPI_T_ERR_NOT_INITIALIZED;
	if (!update_number)
		return MPI_T_ERR_INVALID;
	*update_number = 0; /* the tables are fixed when weft is built */
	return MPI_SUCCESS;
}
