/* SPDX-License-Identifier: BSD-3-Clause */
/* tool_init.c - MPI_T_init_thread and MPI_T_finalize, counted; texts; enumerations. */
#include "mpi/tool/event.h"
#include "mpi/tool/tool.h"

#include <string.h>

/* How many MPI_T_init_thread calls are not finalized yet; any thread. */
static _Atomic int x_users;

bool weft_tool_running(void)
{
	/* Relaxed: a thread that calls has ordered itself after the initialising call. */
	return atomic_load_explicit(&x_users, memory_order_relaxed) > 0;
}

int weft_mpi_T_init_thread(int required, int *provided)
{
	(void)required;
	if (!provided)
		return MPI_T_ERR_INVALID;
	*provided = MPI_THREAD_MULTIPLE;
	atomic_fetch_add_explicit(&x_users, 1, memory_order_relaxed);
	return MPI_SUCCESS;
}

int weft_mpi_T_finalize(void)
{
	int users = atomic_load_explicit(&x_users, memory_order_relaxed);

	do {
		if (users == 0)
			return MPI_T_ERR_NOT_INITIALIZED;
	} while (!atomic_compare_exchange_weak_explicit(
		&x_users, &users, users - 1, memory_order_relaxed, memory_order_relaxed));
	if (users == 1)
		weft_event_forget_all();
	return MPI_SUCCESS;
}

void weft_tool_text(const char *text, char *out, int *len_p)
{
	if (!len_p)
		return;
	if (out && *len_p > 0) {
		size_t n = strlen(text), room = (size_t)*len_p - 1;
		size_t take = n < room ? n : room;
		memcpy(out, text, take);
		out[take] = 0;
	}
	*len_p = (int)strlen(text) + 1;
}

/* ---- enumerations: the choices of settings that take one word of a list --------------------- */

/* Setting id as a handle; +1 keeps 0 for MPI_T_ENUM_NULL. */
MPI_T_enum weft_tool_enum_of(enum weft_setting_id id)
{
	if (weft_setting_info(id)->kind != WEFT_SETTING_ENUM)
		return MPI_T_ENUM_NULL;
	return (MPI_T_enum)((uintptr_t)id + 1);
}

static const struct weft_setting *setting_of(MPI_T_enum e)
{
	uintptr_t i = (uintptr_t)e - 1;

	if (i >= WEFT_SETTING_COUNT)
		return NULL;
	const struct weft_setting *s = weft_setting_info((enum weft_setting_id)i);
	return s->kind == WEFT_SETTING_ENUM ? s : NULL;
}

bool weft_tool_choice(const char *choices, int i, char *out, size_t size)
{
	const char *p = choices;

	for (; p && i > 0; i--) {
		p = strchr(p, '|');
		p = p ? p + 1 : NULL;
	}
	if (!p || i < 0)
		return false;
	size_t n = strcspn(p, "|");
	if (n >= size)
		n = size - 1;
	memcpy(out, p, n);
	out[n] = 0;
	return true;
}

int weft_tool_choice_index(const char *choices, const char *word)
{
	char have[64];

	for (int i = 0; weft_tool_choice(choices, i, have, sizeof have); i++)
		if (strcmp(have, word) == 0)
			return i;
	return -1;
}

int weft_mpi_T_enum_get_info(MPI_T_enum enumtype, int *num, char *name, int *name_len)
{
	if (!weft_tool_running())
		return MPI_T_ERR_NOT_INITIALIZED;
	const struct weft_setting *s = setting_of(enumtype);
	if (!s)
		return MPI_T_ERR_INVALID_HANDLE;
	if (num) {
		char word[64];
		for (*num = 0; weft_tool_choice(s->choices, *num, word, sizeof word);)
			++*num;
	}
	weft_tool_text(s->name, name, name_len);
	return MPI_SUCCESS;
}

int weft_mpi_T_enum_get_item(MPI_T_enum enumtype, int indx, int *value, char *name, int *name_len)
{
	char word[64];

	if (!weft_tool_running())
		return MPI_T_ERR_NOT_INITIALIZED;
	const struct weft_setting *s = setting_of(enumtype);
	if (!s)
		return MPI_T_ERR_INVALID_HANDLE;
	if (!weft_tool_choice(s->choices, indx, word, sizeof word))
		return MPI_T_ERR_INVALID_ITEM;
	if (value)
		*value = indx;
	weft_tool_text(word, name, name_len);
	return MPI_SUCCESS;
}
