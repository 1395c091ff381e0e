/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tool_cvar.c - control variables: every setting, named weft_NAME.
 *
 * All may be written before MPI_Init; while MPI runs only those that `live` lists.
 */
#include "mpi/tool/tool.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include "base/log.h"
#include "mpi/mpi_int.h"
#include "task/task.h"

static const char prefix[] = "weft_";

/* ---- settings that may change while MPI runs ------------------------------------------------ */

static void progress_changed(void)
{
	weft_progress_set(weft_setting_bool(WEFT_SET_PROGRESS));
}

/* Read at each use. */
static void takes_effect(void)
{
}

/* What may be written while MPI runs.  All others are writable before MPI_Init: the layers read them at
 * their start. */
static const struct live {
	enum weft_setting_id id;
	void (*changed)(void); /* makes the new value take effect */
} live[] = {
	{WEFT_SET_PROGRESS, progress_changed},
	{WEFT_SET_LOG, weft_log_init},
	{WEFT_SET_HANDSHAKE_TIMEOUT, takes_effect},
	{WEFT_SET_CONNECT_TIMEOUT, takes_effect},
	{WEFT_SET_ULT_KEEP, takes_effect},
	{WEFT_SET_COLL_SHARE, takes_effect},
	{WEFT_SET_COLL_SHARE_NET, takes_effect},
	{WEFT_SET_COLL_SHARE_CROWDED, takes_effect},
	{WEFT_SET_COLL_SPLIT, takes_effect},
	{WEFT_SET_COLL_FLAT, takes_effect},
	{WEFT_SET_COLL_SHM, takes_effect},
	{WEFT_SET_RMA_PATH, takes_effect},
	{WEFT_SET_FILE_LOCKS, takes_effect},
	{WEFT_SET_FILE_STRATEGY, takes_effect},
	{WEFT_SET_IO_URING, takes_effect},
	{WEFT_SET_ACCEPT_TIMEOUT, takes_effect},
	{WEFT_SET_TCP_SILENCE, takes_effect},
	{WEFT_SET_SPIN_US, weft_task_engine_retune},
	{WEFT_SET_YIELD_MAX, weft_task_engine_retune},
	{WEFT_SET_PROGRESS_BUDGET, weft_task_engine_retune},
	{WEFT_SET_IDLE_PERIOD_US, weft_task_engine_retune},
};

/* Ranks that differ in these choose other steps for the same collective, window or file. */
static bool same_on_all(enum weft_setting_id id)
{
	return strncmp(weft_setting_info(id)->name, "coll_", 5) == 0 || id == WEFT_SET_RMA_PATH ||
	       id == WEFT_SET_FILE_LOCKS || id == WEFT_SET_FILE_STRATEGY;
}

static const struct live *live_of(enum weft_setting_id id)
{
	for (size_t i = 0; i < weft_countof(live); i++)
		if (live[i].id == id)
			return &live[i];
	return NULL;
}

/* Settings are read when MPI starts; what is not `live` cannot change after that. */
static bool cvar_writable(enum weft_setting_id id)
{
	/* Relaxed: a tool that races with MPI_Init gets one answer or the other. */
	int state = atomic_load_explicit(&weft_mpi_x_state, memory_order_relaxed);
	return state == WEFT_MPI_UNUSED || (state == WEFT_MPI_RUNNING && live_of(id));
}

/* ---- handles: the setting's number, +1 to leave 0 for MPI_T_CVAR_HANDLE_NULL ---------------- */

static bool id_of(MPI_T_cvar_handle handle, enum weft_setting_id *id_p)
{
	uintptr_t i = (uintptr_t)handle - 1;

	if (i >= WEFT_SETTING_COUNT)
		return false;
	*id_p = (enum weft_setting_id)i;
	return true;
}

static int count_of(enum weft_setting_id id)
{
	return weft_setting_info(id)->kind == WEFT_SETTING_STR ? WEFT_TOOL_TEXT_MAX : 1;
}

int weft_mpi_T_cvar_get_num(int *num_cvar)
{
	if (!weft_tool_running())
		return MPI_T_ERR_NOT_INITIALIZED;
	if (!num_cvar)
		return MPI_T_ERR_INVALID;
	*num_cvar = WEFT_SETTING_COUNT;
	return MPI_SUCCESS;
}

int weft_mpi_T_cvar_get_info(int cvar_index, char *name, int *name_len, int *verbosity,
			     MPI_Datatype *datatype, MPI_T_enum *enumtype, char *desc,
			     int *desc_len, int *bind, int *scope)
{
	char full[128];

	if (!weft_tool_running())
		return MPI_T_ERR_NOT_INITIALIZED;
	if (cvar_index < 0 || cvar_index >= WEFT_SETTING_COUNT)
		return MPI_T_ERR_INVALID_INDEX;
	enum weft_setting_id id = (enum weft_setting_id)cvar_index;
	const struct weft_setting *s = weft_setting_info(id);
	snprintf(full, sizeof full, "%s%s", prefix, s->name);
	weft_tool_text(full, name, name_len);
	weft_tool_text(s->help, desc, desc_len);
	if (verbosity)
		*verbosity = MPI_T_VERBOSITY_USER_BASIC;
	if (datatype)
		*datatype = s->kind == WEFT_SETTING_STR ? MPI_CHAR : MPI_INT;
	if (enumtype)
		*enumtype = weft_tool_enum_of(id);
	if (bind)
		*bind = MPI_T_BIND_NO_OBJECT;
	if (scope)
		*scope = !cvar_writable(id) ? MPI_T_SCOPE_READONLY
			 : same_on_all(id)  ? MPI_T_SCOPE_ALL_EQ
					    : MPI_T_SCOPE_LOCAL;
	return MPI_SUCCESS;
}

int weft_mpi_T_cvar_get_index(const char *name, int *cvar_index)
{
	if (!weft_tool_running())
		return MPI_T_ERR_NOT_INITIALIZED;
	if (!name || !cvar_index)
		return MPI_T_ERR_INVALID;
	if (strncmp(name, prefix, sizeof prefix - 1) == 0)
		for (int i = 0; i < WEFT_SETTING_COUNT; i++)
			if (strcmp(name + sizeof prefix - 1,
				   weft_setting_info((enum weft_setting_id)i)->name) == 0) {
				*cvar_index = i;
				return MPI_SUCCESS;
			}
	return MPI_T_ERR_INVALID_NAME;
}

int weft_mpi_T_cvar_handle_alloc(int cvar_index, void *obj_handle, MPI_T_cvar_handle *handle,
				 int *count)
{
	(void)obj_handle; /* none is bound to an object */
	if (!weft_tool_running())
		return MPI_T_ERR_NOT_INITIALIZED;
	if (cvar_index < 0 || cvar_index >= WEFT_SETTING_COUNT)
		return MPI_T_ERR_INVALID_INDEX;
	if (!handle || !count)
		return MPI_T_ERR_INVALID;
	*handle = (MPI_T_cvar_handle)((uintptr_t)cvar_index + 1);
	*count = count_of((enum weft_setting_id)cvar_index);
	return MPI_SUCCESS;
}

int weft_mpi_T_cvar_handle_free(MPI_T_cvar_handle *handle)
{
	enum weft_setting_id id;

	if (!weft_tool_running())
		return MPI_T_ERR_NOT_INITIALIZED;
	if (!handle || !id_of(*handle, &id))
		return MPI_T_ERR_INVALID_HANDLE;
	*handle = MPI_T_CVAR_HANDLE_NULL;
	return MPI_SUCCESS;
}

int weft_mpi_T_cvar_read(MPI_T_cvar_handle handle, void *buf)
{
	enum weft_setting_id id;

	if (!weft_tool_running())
		return MPI_T_ERR_NOT_INITIALIZED;
	if (!id_of(handle, &id))
		return MPI_T_ERR_INVALID_HANDLE;
	if (!buf)
		return MPI_T_ERR_INVALID;
	const struct weft_setting *s = weft_setting_info(id);
	switch (s->kind) {
	case WEFT_SETTING_STR:
		snprintf(buf, WEFT_TOOL_TEXT_MAX, "%s", weft_setting_str(id));
		break;
	case WEFT_SETTING_ENUM:
		*(int *)buf = weft_tool_choice_index(s->choices, weft_setting_str(id));
		break;
	case WEFT_SETTING_BOOL:
	case WEFT_SETTING_INT:
		*(int *)buf = (int)weft_setting_int(id);
		break;
	}
	return MPI_SUCCESS;
}

/* The new value as the text that the environment would hold; false: it makes no sense. */
static bool as_text(enum weft_setting_id id, const void *buf, char *out, size_t size)
{
	const struct weft_setting *s = weft_setting_info(id);

	switch (s->kind) {
	case WEFT_SETTING_STR:
		return memchr(buf, 0, size) && snprintf(out, size, "%s", (const char *)buf) >= 0;
	case WEFT_SETTING_ENUM:
		return weft_tool_choice(s->choices, *(const int *)buf, out, size);
	case WEFT_SETTING_BOOL:
		snprintf(out, size, "%s", *(const int *)buf ? "on" : "off");
		return true;
	case WEFT_SETTING_INT:
		if (*(const int *)buf < s->lo || *(const int *)buf > s->hi)
			return false;
		snprintf(out, size, "%d", *(const int *)buf);
		return true;
	}
	return false;
}

int weft_mpi_T_cvar_write(MPI_T_cvar_handle handle, const void *buf)
{
	enum weft_setting_id id;
	char text[WEFT_TOOL_TEXT_MAX];

	if (!weft_tool_running())
		return MPI_T_ERR_NOT_INITIALIZED;
	if (!id_of(handle, &id))
		return MPI_T_ERR_INVALID_HANDLE;
	if (!buf)
		return MPI_T_ERR_INVALID;
	/* Relaxed: a tool that races with MPI_Init gets one answer or the other. */
	int state = atomic_load_explicit(&weft_mpi_x_state, memory_order_relaxed);
	const struct live *l = live_of(id);
	if (state == WEFT_MPI_RUNNING && !l)
		return MPI_T_ERR_CVAR_SET_NOT_NOW;
	if (state != WEFT_MPI_RUNNING && state != WEFT_MPI_UNUSED)
		return MPI_T_ERR_CVAR_SET_NEVER;
	if (!as_text(id, buf, text, sizeof text) || weft_setting_set(id, text))
		return MPI_T_ERR_INVALID;
	if (state == WEFT_MPI_RUNNING)
		l->changed();
	return MPI_SUCCESS;
}
