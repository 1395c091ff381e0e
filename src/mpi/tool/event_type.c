/* SPDX-License-Identifier: BSD-3-Clause */
/* event_type.c - event types and their elements, and the sources they come from. */
#include "mpi/tool/event.h"

#include <stdio.h>
#include <string.h>
#include "mpi/info.h"

static const char prefix[] = "weft_";

/* ---- the tables ------------------------------------------------------------------------------- */

static const struct type {
	const char *name, *fields, *help;
	enum weft_event_source source;
} types[WEFT_TRACE_KIND_COUNT] = {
#define WEFT_TRACE_EVENT(id, name, group, fields, help)                                            \
	[WEFT_TRACE_##id] = {name, fields, help, WEFT_EVENT_##group},
#include "base/trace_table.h"
#undef WEFT_TRACE_EVENT
};

static const struct {
	const char *name, *desc;
} sources[WEFT_EVENT_SOURCES] = {
	[WEFT_EVENT_MESSAGE] = {"weft_messages", "messages between ranks, from post to completion"},
	[WEFT_EVENT_COLLECTIVE] = {"weft_collectives", "collective operations and their steps"},
	[WEFT_EVENT_NETWORK] = {"weft_networks", "rails and connections to peers"},
	[WEFT_EVENT_ENGINE] = {"weft_engine", "the progress engine: tasks, sleeps, wake-ups"},
	[WEFT_EVENT_ULT] = {"weft_threads", "user-level threads and their workers"},
	[WEFT_EVENT_CALL] = {"weft_calls", "MPI calls of this process"},
};

enum weft_trace_kind weft_event_kind(int i)
{
	for (int k = 1; k < WEFT_TRACE_KIND_COUNT; k++)
		if (types[k].source != WEFT_EVENT_NONE && i-- == 0)
			return (enum weft_trace_kind)k;
	return WEFT_TRACE_NONE;
}

enum weft_event_source weft_event_source_of(enum weft_trace_kind kind)
{
	return types[kind].source;
}

int weft_event_types(enum weft_event_source source, int len, int indices[])
{
	int n = 0, i = 0;

	for (int k = 1; k < WEFT_TRACE_KIND_COUNT; k++) {
		if (types[k].source == WEFT_EVENT_NONE)
			continue;
		if (source == WEFT_EVENT_NONE || types[k].source == source) {
			if (n < len)
				indices[n] = i;
			n++;
		}
		i++;
	}
	return n;
}

const char *weft_event_source_name(enum weft_event_source source)
{
	return sources[source].name;
}

const char *weft_event_source_desc(enum weft_event_source source)
{
	return sources[source].desc;
}

/* ---- elements: "i=peer t=tag", a letter each --------------------------------------------------- */

static const char *field_at(enum weft_trace_kind kind, int i)
{
	const char *at = types[kind].fields;

	for (; at && *at && i > 0; i--) {
		at = strchr(at, ' ');
		at = at ? at + 1 : NULL;
	}
	return at && *at && i == 0 ? at : NULL;
}

static int field_count(enum weft_trace_kind kind)
{
	int n = 0;

	while (field_at(kind, n)) /* ends: the table's texts are short */
		n++;
	return n;
}

/* The types are among those that MPI allows here; a text is its address, which stays good. */
static MPI_Datatype field_type(char letter)
{
	switch (letter) {
	case 'b': /* b, a number */
	case 'd': /* a, a number */
		return MPI_COUNT;
	case 'A': /* a, an address */
	case 'T': /* small, a text */
	case 'N': /* a, a text */
		return MPI_UNSIGNED_LONG;
	default: /* i: id, s: small, t: the upper half of a, n: its lower half */
		return MPI_INT;
	}
}

size_t weft_event_element(const struct weft_event *e, int i, void *buf)
{
	const char *field = i < 0 ? NULL : field_at((enum weft_trace_kind)e->kind, i);
	int number;
	MPI_Count count;
	unsigned long address;

	if (!field)
		return 0;
	switch (*field) {
	case 'b':
	case 'd':
		count = (MPI_Count)(*field == 'b' ? e->b : e->a);
		memcpy(buf, &count, sizeof count);
		return sizeof count;
	case 'A':
		address = (unsigned long)e->a;
		break;
	case 'T':
		address = (unsigned long)(uintptr_t)weft_trace_text_at(e->small);
		break;
	case 'N':
		address = (unsigned long)(uintptr_t)weft_trace_text_at((unsigned)e->a);
		break;
	default:
		number = *field == 'i'   ? (int)e->id
			 : *field == 's' ? (int)e->small
			 : *field == 't' ? (int)(e->a >> 32)
					 : (int)(uint32_t)e->a;
		memcpy(buf, &number, sizeof number);
		return sizeof number;
	}
	memcpy(buf, &address, sizeof address);
	return sizeof address;
}

/* Names of elements are a part of the description: MPI_T has no other place for them. */
static void describe_event(enum weft_trace_kind kind, char *out, size_t size)
{
	size_t n = (size_t)snprintf(out, size, "%s", types[kind].help);

	for (int i = 0; i < field_count(kind) && n < size; i++) {
		const char *name = field_at(kind, i) + 2;
		n += (size_t)snprintf(out + n, size - n, "%s%.*s%s",
				      i ? ", " : "; elements: ", (int)strcspn(name, " "), name,
				      field_at(kind, i)[0] == 'T' || field_at(kind, i)[0] == 'N'
					      ? " (address of a text)"
					      : "");
	}
}

/* ---- what MPI_T says of them -------------------------------------------------------------------- */

int weft_mpi_T_event_get_num(int *num_events)
{
	if (!weft_tool_running())
		return MPI_T_ERR_NOT_INITIALIZED;
	if (!num_events)
		return MPI_T_ERR_INVALID;
	*num_events = weft_event_types(WEFT_EVENT_NONE, 0, NULL);
	return MPI_SUCCESS;
}

int weft_mpi_T_event_get_index(const char *name, int *event_index)
{
	if (!weft_tool_running())
		return MPI_T_ERR_NOT_INITIALIZED;
	if (!name || !event_index)
		return MPI_T_ERR_INVALID;
	if (strncmp(name, prefix, sizeof prefix - 1) != 0)
		return MPI_T_ERR_INVALID_NAME;
	for (int i = 0; weft_event_kind(i) != WEFT_TRACE_NONE; i++)
		if (strcmp(name + sizeof prefix - 1, types[weft_event_kind(i)].name) == 0) {
			*event_index = i;
			return MPI_SUCCESS;
		}
	return MPI_T_ERR_INVALID_NAME;
}

static void tell_elements(enum weft_trace_kind kind, MPI_Datatype types_p[], MPI_Aint at_p[],
			  int *num_p)
{
	int room = *num_p;

	*num_p = field_count(kind);
	for (int i = 0; i < *num_p && i < room; i++) {
		if (types_p)
			types_p[i] = field_type(field_at(kind, i)[0]);
		if (at_p)
			at_p[i] = 8 * i;
	}
}

static int empty_info(MPI_Info *info_p)
{
	return weft_mpi_info_name(weft_mpi_info_make(), info_p) ? MPI_T_ERR_MEMORY : MPI_SUCCESS;
}

int weft_mpi_T_event_get_info(int event_index, char *name, int *name_len, int *verbosity,
			      MPI_Datatype array_of_datatypes[], MPI_Aint array_of_displacements[],
			      int *num_elements, MPI_T_enum *enumtype, MPI_Info *info, char *desc,
			      int *desc_len, int *bind)
{
	char text[512];

	if (!weft_tool_running())
		return MPI_T_ERR_NOT_INITIALIZED;
	enum weft_trace_kind kind =
		event_index < 0 ? WEFT_TRACE_NONE : weft_event_kind(event_index);
	if (kind == WEFT_TRACE_NONE)
		return MPI_T_ERR_INVALID_INDEX;
	if (num_elements && *num_elements < 0)
		return MPI_T_ERR_INVALID;
	if (info && empty_info(info))
		return MPI_T_ERR_MEMORY;
	snprintf(text, sizeof text, "%s%s", prefix, types[kind].name);
	weft_tool_text(text, name, name_len);
	describe_event(kind, text, sizeof text);
	weft_tool_text(text, desc, desc_len);
	if (verbosity)
		*verbosity = types[kind].source == WEFT_EVENT_MESSAGE
				     ? MPI_T_VERBOSITY_USER_DETAIL
				     : MPI_T_VERBOSITY_MPIDEV_BASIC;
	if (num_elements)
		tell_elements(kind, array_of_datatypes, array_of_displacements, num_elements);
	if (enumtype)
		*enumtype = MPI_T_ENUM_NULL;
	if (bind)
		*bind = MPI_T_BIND_NO_OBJECT;
	return MPI_SUCCESS;
}

int weft_mpi_T_source_get_num(int *num_sources)
{
	if (!weft_tool_running())
		return MPI_T_ERR_NOT_INITIALIZED;
	if (!num_sources)
		return MPI_T_ERR_INVALID;
	*num_sources = WEFT_EVENT_SOURCES - 1;
	return MPI_SUCCESS;
}

/* Source number i is group i + 1. */
static int check_source(int i)
{
	if (!weft_tool_running())
		return MPI_T_ERR_NOT_INITIALIZED;
	return i >= 0 && i < WEFT_EVENT_SOURCES - 1 ? MPI_SUCCESS : MPI_T_ERR_INVALID_INDEX;
}

/* Threads put events side by side, so no source promises their order. */
int weft_mpi_T_source_get_info(int source_index, char *name, int *name_len, char *desc,
			       int *desc_len, MPI_T_source_order *ordering,
			       MPI_Count *ticks_per_second, MPI_Count *max_ticks, MPI_Info *info)
{
	int err = check_source(source_index);

	if (err)
		return err;
	if (info && empty_info(info))
		return MPI_T_ERR_MEMORY;
	weft_tool_text(sources[source_index + 1].name, name, name_len);
	weft_tool_text(sources[source_index + 1].desc, desc, desc_len);
	if (ordering)
		*ordering = MPI_T_SOURCE_UNORDERED;
	if (ticks_per_second)
		*ticks_per_second = 1000000000;
	if (max_ticks)
		*max_ticks = INT64_MAX;
	return MPI_SUCCESS;
}

int weft_mpi_T_source_get_timestamp(int source_index, MPI_Count *timestamp)
{
	int err = check_source(source_index);

	if (err)
		return err;
	if (!timestamp)
		return MPI_T_ERR_INVALID;
	*timestamp = (MPI_Count)weft_clock_ns();
	return MPI_SUCCESS;
}
