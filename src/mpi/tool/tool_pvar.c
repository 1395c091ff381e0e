/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tool_pvar.c - performance variables: every counter, named weft_NAME.
 *
 * They count all the time (continuous) and belong to weft (read-only): start, stop, write and reset
 * are answered with the interface's codes for that.
 */
#include "base/assert.h"
#include "mpi/tool/tool.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char prefix[] = "weft_";

struct session {
	struct session *next;
	struct handle *handles;
};

struct handle {
	struct handle *next;
	enum weft_counter_id id;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all sessions and handles */
static struct session *sessions;

static struct session **session_find_locked(MPI_T_pvar_session s)
{
	weft_assert_held(weft_mutex, &lock);
	struct session **p = &sessions;

	while (*p && (void *)*p != (void *)s)
		p = &(*p)->next;
	return *p ? p : NULL;
}

static struct handle **handle_find_locked(struct session *s, MPI_T_pvar_handle h)
{
	weft_assert_held(weft_mutex, &lock);
	struct handle **p = &s->handles;

	while (*p && (void *)*p != (void *)h)
		p = &(*p)->next;
	return *p ? p : NULL;
}

/* MPI_SUCCESS and the counter, or what is wrong with session or handle. */
static int look_up(MPI_T_pvar_session session, MPI_T_pvar_handle handle, enum weft_counter_id *id_p)
{
	int err = MPI_SUCCESS;

	if (!weft_tool_running())
		return MPI_T_ERR_NOT_INITIALIZED;
	pthread_mutex_lock(&lock);
	struct session **s = session_find_locked(session);
	struct handle **h = s ? handle_find_locked(*s, handle) : NULL;
	if (!s)
		err = MPI_T_ERR_INVALID_SESSION;
	else if (!h)
		err = MPI_T_ERR_INVALID_HANDLE;
	else
		*id_p = (*h)->id;
	pthread_mutex_unlock(&lock);
	return err;
}

/* The same for calls that MPI_T_PVAR_ALL_HANDLES may stand in: `answer` if all is well. */
static int refuse_pvar(MPI_T_pvar_session session, MPI_T_pvar_handle handle, int answer)
{
	enum weft_counter_id id;

	if (handle != MPI_T_PVAR_ALL_HANDLES) {
		int err = look_up(session, handle, &id);
		return err ? err : answer;
	}
	if (!weft_tool_running())
		return MPI_T_ERR_NOT_INITIALIZED;
	pthread_mutex_lock(&lock);
	bool known = session_find_locked(session) != NULL;
	pthread_mutex_unlock(&lock);
	/* All handles: those that cannot are left out, and none can. */
	return known ? MPI_SUCCESS : MPI_T_ERR_INVALID_SESSION;
}

int weft_mpi_T_pvar_get_num(int *num_pvar)
{
	if (!weft_tool_running())
		return MPI_T_ERR_NOT_INITIALIZED;
	if (!num_pvar)
		return MPI_T_ERR_INVALID;
	*num_pvar = WEFT_COUNTER_COUNT;
	return MPI_SUCCESS;
}

int weft_mpi_T_pvar_get_info(int pvar_index, char *name, int *name_len, int *verbosity,
			     int *var_class, MPI_Datatype *datatype, MPI_T_enum *enumtype,
			     char *desc, int *desc_len, int *bind, int *readonly, int *continuous,
			     int *atomic)
{
	char full[128];

	if (!weft_tool_running())
		return MPI_T_ERR_NOT_INITIALIZED;
	if (pvar_index < 0 || pvar_index >= WEFT_COUNTER_COUNT)
		return MPI_T_ERR_INVALID_INDEX;
	enum weft_counter_id id = (enum weft_counter_id)pvar_index;
	snprintf(full, sizeof full, "%s%s", prefix, weft_counter_name(id));
	weft_tool_text(full, name, name_len);
	weft_tool_text(weft_counter_help(id), desc, desc_len);
	if (verbosity)
		*verbosity = MPI_T_VERBOSITY_USER_DETAIL;
	if (var_class)
		*var_class = MPI_T_PVAR_CLASS_COUNTER;
	if (datatype)
		*datatype = MPI_UNSIGNED_LONG_LONG;
	if (enumtype)
		*enumtype = MPI_T_ENUM_NULL;
	if (bind)
		*bind = MPI_T_BIND_NO_OBJECT;
	if (readonly)
		*readonly = 1;
	if (continuous)
		*continuous = 1;
	if (atomic)
		*atomic = 0;
	return MPI_SUCCESS;
}

int weft_mpi_T_pvar_get_index(const char *name, int var_class, int *pvar_index)
{
	if (!weft_tool_running())
		return MPI_T_ERR_NOT_INITIALIZED;
	if (!name || !pvar_index)
		return MPI_T_ERR_INVALID;
	if (var_class == MPI_T_PVAR_CLASS_COUNTER && strncmp(name, prefix, sizeof prefix - 1) == 0)
		for (int i = 0; i < WEFT_COUNTER_COUNT; i++)
			if (strcmp(name + sizeof prefix - 1,
				   weft_counter_name((enum weft_counter_id)i)) == 0) {
				*pvar_index = i;
				return MPI_SUCCESS;
			}
	return MPI_T_ERR_INVALID_NAME;
}

int weft_mpi_T_pvar_session_create(MPI_T_pvar_session *session)
{
	if (!weft_tool_running())
		return MPI_T_ERR_NOT_INITIALIZED;
	if (!session)
		return MPI_T_ERR_INVALID;
	struct session *s = calloc(1, sizeof *s);
	if (!s)
		return MPI_T_ERR_MEMORY;
	pthread_mutex_lock(&lock);
	s->next = sessions;
	sessions = s;
	pthread_mutex_unlock(&lock);
	*session = (MPI_T_pvar_session)(void *)s;
	return MPI_SUCCESS;
}

int weft_mpi_T_pvar_session_free(MPI_T_pvar_session *session)
{
	if (!weft_tool_running())
		return MPI_T_ERR_NOT_INITIALIZED;
	if (!session)
		return MPI_T_ERR_INVALID;
	pthread_mutex_lock(&lock);
	struct session **p = session_find_locked(*session), *s = p ? *p : NULL;
	if (s)
		*p = s->next;
	pthread_mutex_unlock(&lock);
	if (!s)
		return MPI_T_ERR_INVALID_SESSION;
	for (struct handle *h = s->handles, *next; h; h = next) {
		next = h->next;
		free(h);
	}
	free(s);
	*session = MPI_T_PVAR_SESSION_NULL;
	return MPI_SUCCESS;
}

int weft_mpi_T_pvar_handle_alloc(MPI_T_pvar_session session, int pvar_index, void *obj_handle,
				 MPI_T_pvar_handle *handle, int *count)
{
	(void)obj_handle; /* none is bound to an object */
	if (!weft_tool_running())
		return MPI_T_ERR_NOT_INITIALIZED;
	if (pvar_index < 0 || pvar_index >= WEFT_COUNTER_COUNT)
		return MPI_T_ERR_INVALID_INDEX;
	if (!handle || !count)
		return MPI_T_ERR_INVALID;
	struct handle *h = calloc(1, sizeof *h);
	if (!h)
		return MPI_T_ERR_MEMORY;
	h->id = (enum weft_counter_id)pvar_index;
	pthread_mutex_lock(&lock);
	struct session **s = session_find_locked(session);
	if (s) {
		h->next = (*s)->handles;
		(*s)->handles = h;
	}
	pthread_mutex_unlock(&lock);
	if (!s) {
		free(h);
		return MPI_T_ERR_INVALID_SESSION;
	}
	*handle = (MPI_T_pvar_handle)(void *)h;
	*count = 1;
	return MPI_SUCCESS;
}

int weft_mpi_T_pvar_handle_free(MPI_T_pvar_session session, MPI_T_pvar_handle *handle)
{
	int err = MPI_SUCCESS;
	struct handle *gone = NULL;

	if (!weft_tool_running())
		return MPI_T_ERR_NOT_INITIALIZED;
	if (!handle)
		return MPI_T_ERR_INVALID;
	pthread_mutex_lock(&lock);
	struct session **s = session_find_locked(session);
	struct handle **h = s ? handle_find_locked(*s, *handle) : NULL;
	if (!s) {
		err = MPI_T_ERR_INVALID_SESSION;
	} else if (!h) {
		err = MPI_T_ERR_INVALID_HANDLE;
	} else {
		gone = *h;
		*h = gone->next;
	}
	pthread_mutex_unlock(&lock);
	free(gone);
	if (!err)
		*handle = MPI_T_PVAR_HANDLE_NULL;
	return err;
}

int weft_mpi_T_pvar_read(MPI_T_pvar_session session, MPI_T_pvar_handle handle, void *buf)
{
	enum weft_counter_id id;
	int err = look_up(session, handle, &id);

	if (err)
		return err;
	if (!buf)
		return MPI_T_ERR_INVALID;
	*(unsigned long long *)buf = weft_counter_sum(id);
	return MPI_SUCCESS;
}

int weft_mpi_T_pvar_start(MPI_T_pvar_session session, MPI_T_pvar_handle handle)
{
	return refuse_pvar(session, handle, MPI_T_ERR_PVAR_NO_STARTSTOP);
}

int weft_mpi_T_pvar_stop(MPI_T_pvar_session session, MPI_T_pvar_handle handle)
{
	return refuse_pvar(session, handle, MPI_T_ERR_PVAR_NO_STARTSTOP);
}

int weft_mpi_T_pvar_write(MPI_T_pvar_session session, MPI_T_pvar_handle handle, const void *buf)
{
	(void)buf;
	enum weft_counter_id id;
	int err = look_up(session, handle, &id);

	return err ? err : MPI_T_ERR_PVAR_NO_WRITE;
}

int weft_mpi_T_pvar_reset(MPI_T_pvar_session session, MPI_T_pvar_handle handle)
{
	return refuse_pvar(session, handle, MPI_T_ERR_PVAR_NO_WRITE);
}

int weft_mpi_T_pvar_readreset(MPI_T_pvar_session session, MPI_T_pvar_handle handle, void *buf)
{
	(void)buf;
	enum weft_counter_id id;
	int err = look_up(session, handle, &id);

	return err ? err : MPI_T_ERR_PVAR_NO_ATOMIC;
}
