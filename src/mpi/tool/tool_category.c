/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tool_category.c - categories: settings, counters, and events with one category below for each
 * source.
 */
#include "mpi/tool/event.h"
#include "mpi/tool/tool.h"

#include <string.h>

enum { SETTINGS, COUNTERS, EVENTS, SOURCES, COUNT = SOURCES + WEFT_EVENT_SOURCES - 1 };

static const struct category {
	const char *name, *desc;
	int cvars, pvars; /* the first that many of each table */
} categories[] = {
	[SETTINGS] = {"weft_settings", "what can be configured: the environment's WEFT_ variables",
		      WEFT_SETTING_COUNT, 0},
	[COUNTERS] = {"weft_counters", "what weft has done since it started", 0,
		      WEFT_COUNTER_COUNT},
	[EVENTS] = {"weft_events", "what happens, as it happens: a category for each source", 0, 0},
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

	if (source == WEFT_EVENT_NONE)
		return categories[cat_index];
	return (struct category){.name = weft_event_source_name(source),
				 .desc = weft_event_source_desc(source)};
}

static int check_index(int cat_index)
{
	if (!weft_tool_running())
		return MPI_T_ERR_NOT_INITIALIZED;
	if (cat_index < 0 || cat_index >= COUNT)
		return MPI_T_ERR_INVALID_INDEX;
	return MPI_SUCCESS;
}

static int first_numbers(int have, int len, int indices[])
{
	if (len > 0 && !indices)
		return MPI_T_ERR_INVALID;
	for (int i = 0; i < have && i < len; i++)
		indices[i] = i;
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
		*num_categories = cat_index == EVENTS ? COUNT - SOURCES : 0;
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

	return err ? err : first_numbers(category_of(cat_index).cvars, len, indices);
}

int weft_mpi_T_category_get_pvars(int cat_index, int len, int indices[])
{
	int err = check_index(cat_index);

	return err ? err : first_numbers(category_of(cat_index).pvars, len, indices);
}

int weft_mpi_T_category_get_categories(int cat_index, int len, int indices[])
{
	int err = check_index(cat_index);

	if (err || cat_index != EVENTS)
		return err;
	if (len > 0 && !indices)
		return MPI_T_ERR_INVALID;
	for (int i = 0; SOURCES + i < COUNT && i < len; i++)
		indices[i] = SOURCES + i;
	return MPI_SUCCESS;
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
