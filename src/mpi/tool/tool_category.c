/* SPDX-License-Identifier: BSD-3-Clause */
/* tool_category.c - two categories, settings and counters; no events and no event sources. */
#include "mpi/tool/tool.h"

#include <string.h>

static const struct category {
	const char *name, *desc;
	int cvars, pvars; /* the first that many of each table */
} categories[] = {
	{"weft_settings", "what can be configured: the environment's WEFT_ variables",
	 WEFT_SETTING_COUNT, 0},
	{"weft_counters", "what weft has done since it started", 0, WEFT_COUNTER_COUNT},
};

static int check_index(int cat_index)
{
	if (!weft_tool_running())
		return MPI_T_ERR_NOT_INITIALIZED;
	if (cat_index < 0 || cat_index >= (int)weft_countof(categories))
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
	*num_cat = (int)weft_countof(categories);
	return MPI_SUCCESS;
}

int weft_mpi_T_category_get_info(int cat_index, char *name, int *name_len, char *desc,
				 int *desc_len, int *num_cvars, int *num_pvars, int *num_categories)
{
	int err = check_index(cat_index);

	if (err)
		return err;
	const struct category *c = &categories[cat_index];
	weft_tool_text(c->name, name, name_len);
	weft_tool_text(c->desc, desc, desc_len);
	if (num_cvars)
		*num_cvars = c->cvars;
	if (num_pvars)
		*num_pvars = c->pvars;
	if (num_categories)
		*num_categories = 0;
	return MPI_SUCCESS;
}

int weft_mpi_T_category_get_index(const char *name, int *cat_index)
{
	if (!weft_tool_running())
		return MPI_T_ERR_NOT_INITIALIZED;
	if (!name || !cat_index)
		return MPI_T_ERR_INVALID;
	for (int i = 0; i < (int)weft_countof(categories); i++)
		if (strcmp(name, categories[i].name) == 0) {
			*cat_index = i;
			return MPI_SUCCESS;
		}
	return MPI_T_ERR_INVALID_NAME;
}

int weft_mpi_T_category_get_cvars(int cat_index, int len, int indices[])
{
	int err = check_index(cat_index);

	return err ? err : first_numbers(categories[cat_index].cvars, len, indices);
}

int weft_mpi_T_category_get_pvars(int cat_index, int len, int indices[])
{
	int err = check_index(cat_index);

	return err ? err : first_numbers(categories[cat_index].pvars, len, indices);
}

int weft_mpi_T_category_get_categories(int cat_index, int len, int indices[])
{
	int err = check_index(cat_index);

	return err ? err : first_numbers(0, len, indices);
}

int weft_mpi_T_category_get_events(int cat_index, int len, int indices[])
{
	int err = check_index(cat_index);

	return err ? err : first_numbers(0, len, indices);
}

int weft_mpi_T_category_get_num_events(int cat_index, int *num_events)
{
	int err = check_index(cat_index);

	if (err)
		return err;
	if (!num_events)
		return MPI_T_ERR_INVALID;
	*num_events = 0;
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

/* ---- events: there are none, so that no index and no registration is good ------------------- */

static int no_such_index(void)
{
	return weft_tool_running() ? MPI_T_ERR_INVALID_INDEX : MPI_T_ERR_NOT_INITIALIZED;
}

static int no_such_handle(void)
{
	return weft_tool_running() ? MPI_T_ERR_INVALID_HANDLE : MPI_T_ERR_NOT_INITIALIZED;
}

static int none(int *num)
{
	if (!weft_tool_running())
		return MPI_T_ERR_NOT_INITIALIZED;
	if (!num)
		return MPI_T_ERR_INVALID;
	*num = 0;
	return MPI_SUCCESS;
}

int weft_mpi_T_event_get_num(int *num_events)
{
	return none(num_events);
}

int weft_mpi_T_source_get_num(int *num_sources)
{
	return none(num_sources);
}

int weft_mpi_T_event_get_index(const char *name, int *event_index)
{
	if (!weft_tool_running())
		return MPI_T_ERR_NOT_INITIALIZED;
	return name && event_index ? MPI_T_ERR_INVALID_NAME : MPI_T_ERR_INVALID;
}

int weft_mpi_T_event_get_info(int event_index, char *name, int *name_len, int *verbosity,
			      MPI_Datatype array_of_datatypes[], MPI_Aint array_of_displacements[],
			      int *num_elements, MPI_T_enum *enumtype, MPI_Info *info, char *desc,
			      int *desc_len, int *bind)
{
	return no_such_index();
}

int weft_mpi_T_event_handle_alloc(int event_index, void *obj_handle, MPI_Info info,
				  MPI_T_event_registration *event_registration)
{
	return no_such_index();
}

int weft_mpi_T_source_get_info(int source_index, char *name, int *name_len, char *desc,
			       int *desc_len, MPI_T_source_order *ordering,
			       MPI_Count *ticks_per_second, MPI_Count *max_ticks, MPI_Info *info)
{
	return no_such_index();
}

int weft_mpi_T_source_get_timestamp(int source_index, MPI_Count *timestamp)
{
	return no_such_index();
}

int weft_mpi_T_event_register_callback(MPI_T_event_registration event_registration,
				       MPI_T_cb_safety cb_safety, MPI_Info info, void *user_data,
				       MPI_T_event_cb_function event_cb_function)
{
	return no_such_handle();
}

int weft_mpi_T_event_callback_get_info(MPI_T_event_registration event_registration,
				       MPI_T_cb_safety cb_safety, MPI_Info *info_used)
{
	return no_such_handle();
}

int weft_mpi_T_event_callback_set_info(MPI_T_event_registration event_registration,
				       MPI_T_cb_safety cb_safety, MPI_Info info)
{
	return no_such_handle();
}

int weft_mpi_T_event_handle_get_info(MPI_T_event_registration event_registration,
				     MPI_Info *info_used)
{
	return no_such_handle();
}

int weft_mpi_T_event_handle_set_info(MPI_T_event_registration event_registration, MPI_Info info)
{
	return no_such_handle();
}

int weft_mpi_T_event_handle_free(MPI_T_event_registration event_registration, void *user_data,
				 MPI_T_event_free_cb_function free_cb_function)
{
	return no_such_handle();
}

int weft_mpi_T_event_set_dropped_handler(MPI_T_event_registration event_registration,
					 MPI_T_event_dropped_cb_function dropped_cb_function)
{
	return no_such_handle();
}

int weft_mpi_T_event_read(MPI_T_event_instance event_instance, int element_index, void *buffer)
{
	return no_such_handle();
}

int weft_mpi_T_event_copy(MPI_T_event_instance event_instance, void *buffer)
{
	return no_such_handle();
}

int weft_mpi_T_event_get_source(MPI_T_event_instance event_instance, int *source_index)
{
	return no_such_handle();
}

int weft_mpi_T_event_get_timestamp(MPI_T_event_instance event_instance, MPI_Count *event_timestamp)
{
	return no_such_handle();
}
