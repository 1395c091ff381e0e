/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * error.c - error classes, codes and their texts, the user's included, and weft's own errors
 * translated to them.
 */
#include "base/assert.h"
#include "mpi/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "wait/stack.h"

#define TEXT(id, t) [MPI_ERR_##id] = "MPI_ERR_" #id ": " t
static const char *const class_text[] = {
	[MPI_SUCCESS] = "MPI_SUCCESS: no error",
	TEXT(BUFFER, "invalid buffer"),
	TEXT(COUNT, "invalid count"),
	TEXT(TYPE, "invalid datatype"),
	TEXT(TAG, "invalid tag"),
	TEXT(COMM, "invalid communicator"),
	TEXT(RANK, "invalid rank"),
	TEXT(REQUEST, "invalid request or message"),
	TEXT(ROOT, "invalid root"),
	TEXT(GROUP, "invalid group"),
	TEXT(OP, "invalid operation"),
	TEXT(TOPOLOGY, "invalid topology"),
	TEXT(DIMS, "invalid dimensions"),
	TEXT(ARG, "invalid argument"),
	TEXT(UNKNOWN, "unknown error"),
	TEXT(TRUNCATE, "message longer than the receive buffer"),
	TEXT(OTHER, "error of another kind"),
	TEXT(INTERN, "internal error"),
	TEXT(PENDING, "request not complete"),
	TEXT(IN_STATUS, "look at the error field of each status"),
	TEXT(ACCESS, "permission denied"),
	TEXT(AMODE, "invalid access mode"),
	TEXT(ASSERT, "invalid assertion"),
	TEXT(BAD_FILE, "invalid file name"),
	TEXT(BASE, "invalid base address"),
	TEXT(CONVERSION, "error in a data conversion function"),
	TEXT(DISP, "invalid displacement"),
	TEXT(DUP_DATAREP, "data representation exists already"),
	TEXT(FILE_EXISTS, "file exists"),
	TEXT(FILE_IN_USE, "file is open elsewhere"),
	TEXT(FILE, "invalid file"),
	TEXT(INFO_KEY, "info key is empty or too long"),
	TEXT(INFO_NOKEY, "no such info key"),
	TEXT(INFO_VALUE, "info value is too long"),
	TEXT(INFO, "invalid info object"),
	TEXT(IO, "input or output error"),
	TEXT(KEYVAL, "invalid attribute key"),
	TEXT(LOCKTYPE, "invalid lock type"),
	TEXT(NAME, "service name is not published"),
	TEXT(NO_MEM, "out of memory"),
	TEXT(NOT_SAME, "argument differs between processes"),
	TEXT(NO_SPACE, "not enough space"),
	TEXT(NO_SUCH_FILE, "no such file"),
	TEXT(PORT, "invalid port"),
	TEXT(QUOTA, "quota exceeded"),
	TEXT(READ_ONLY, "file or file system is read-only"),
	TEXT(RMA_ATTACH, "memory cannot be attached"),
	TEXT(RMA_CONFLICT, "conflicting accesses to a window"),
	TEXT(RMA_RANGE, "memory is not part of the window"),
	TEXT(RMA_SHARED, "memory cannot be shared"),
	TEXT(RMA_SYNC, "wrong synchronisation of one-sided calls"),
	TEXT(SERVICE, "invalid service name"),
	TEXT(SIZE, "invalid size"),
	TEXT(SPAWN, "processes could not be started"),
	TEXT(UNSUPPORTED_DATAREP, "unsupported data representation"),
	TEXT(UNSUPPORTED_OPERATION, "unsupported operation"),
	TEXT(WIN, "invalid window"),
	TEXT(RMA_FLAVOR, "wrong kind of window"),
	TEXT(PROC_ABORTED, "a peer is gone"),
	TEXT(VALUE_TOO_LARGE, "value does not fit"),
	TEXT(SESSION, "invalid session"),
	TEXT(ERRHANDLER, "invalid error handler"),
	TEXT(ABI, "wrong ABI"),
};
#undef TEXT

/* ---- the thread's cause ------------------------------------------------------------------- */

static _Thread_local struct weft_mpi_cause cause;

struct weft_mpi_cause *weft_mpi_cause(void)
{
	return &cause;
}

struct why {
	const char *fmt;
	va_list ap;
};

static void write_why(void *arg)
{
	struct why *w = arg;
	vsnprintf(cause.text, sizeof(cause.text), w->fmt, w->ap);
}

int weft_mpi_err(int code, const char *fmt, ...)
{
	struct why w = {.fmt = fmt};

	va_start(w.ap, fmt);
	weft_wait_big_stack(write_why, &w); /* takes 2 KiB */
	va_end(w.ap);
	cause.code = cause.text_code = code;
	return code;
}

void weft_mpi_blame(struct weft_mpi_comm *c)
{
	if (!c || cause.blamed)
		return;
	weft_mpi_comm_ref(c);
	cause.blame = c;
	cause.blamed = true;
}

int weft_mpi_err_of(weft_err err)
{
	switch (err) {
	case WEFT_OK:
	case WEFT_ERR_CANCELLED:
		return MPI_SUCCESS;
	case WEFT_ERR_NOMEM:
		return weft_mpi_err(MPI_ERR_NO_MEM, "out of memory");
	case WEFT_ERR_ARG:
		return MPI_ERR_ARG;
	case WEFT_ERR_TRUNC:
		return weft_mpi_err(MPI_ERR_TRUNCATE,
				    "the message is longer than the receive buffer");
	case WEFT_ERR_PEER:
		return weft_mpi_err(MPI_ERR_PROC_ABORTED, "a rank it needs has ended");
	case WEFT_ERR_UNSUPPORTED:
		return weft_mpi_err(MPI_ERR_UNSUPPORTED_OPERATION, "not possible here");
	case WEFT_ERR_DEADLOCK:
		return weft_mpi_err(MPI_ERR_OTHER, "waiting is not allowed in a callback");
	case WEFT_ERR_LIMIT:
		return weft_mpi_err(MPI_ERR_OTHER, "a limit is reached");
	default:
		return weft_mpi_err(MPI_ERR_INTERN, "%s", weft_strerror(err));
	}
}

/* ---- lost peers --------------------------------------------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char **down_why; /* under lock; by process, NULL: not lost */
static int down_size;

void weft_mpi_peer_down(int peer, weft_err err, const char *why)
{
	(void)err;
	pthread_mutex_lock(&lock);
	if (peer >= down_size) {
		char **more = realloc(down_why, (size_t)(peer + 1) * sizeof(*more));
		if (more) {
			memset(more + down_size, 0, (size_t)(peer + 1 - down_size) * sizeof(*more));
			down_why = more;
			down_size = peer + 1;
		}
	}
	if (peer >= 0 && peer < down_size && !down_why[peer])
		down_why[peer] = strdup(why ? why : "lost");
	pthread_mutex_unlock(&lock);
}

int weft_mpi_err_peer(weft_err err, int world)
{
	int code = weft_mpi_err_of(err);

	if (err != WEFT_ERR_PEER)
		return code;
	pthread_mutex_lock(&lock);
	if (world >= 0 && world < down_size && down_why[world])
		weft_mpi_err(code, "%s", down_why[world]); /* it names the rank */
	else if (world >= 0)
		weft_mpi_err(code, "rank %d of the job is gone", world);
	pthread_mutex_unlock(&lock);
	return code;
}

/* ---- the user's classes and codes --------------------------------------------------------- */

#define FIRST_USER_CODE (MPI_ERR_LASTCODE + 1)

struct user_code {
	bool used;
	bool is_class;
	int class;
	int codes; /* of a class: how many codes belong to it */
	char *text;
};

static struct user_code *user; /* under lock */
static int user_count;
int weft_mpi_last_used_code = MPI_ERR_LASTCODE; /* MPI_LASTUSEDCODE points here */

static struct user_code *user_code_locked(int code)
{
	weft_assert_held(weft_mutex, &lock);
	int i = code - FIRST_USER_CODE;

	return code >= FIRST_USER_CODE && i < user_count && user[i].used ? &user[i] : NULL;
}

static int user_add(bool is_class, int class, int *code_p)
{
	int err = MPI_SUCCESS, i;

	pthread_mutex_lock(&lock);
	struct user_code *parent = is_class ? NULL : user_code_locked(class);
	if (!is_class && !(parent && parent->is_class) && (class < 0 || class > MPI_ERR_ABI)) {
		err = weft_mpi_err(MPI_ERR_ARG, "%d is not an error class", class);
		goto unlock;
	}
	for (i = 0; i < user_count && user[i].used; i++)
		;
	if (i == user_count) {
		struct user_code *more = realloc(user, (size_t)(i + 1) * sizeof(*more));
		if (!more) {
			err = weft_mpi_err(MPI_ERR_NO_MEM, "out of memory");
			goto unlock;
		}
		user = more;
		user_count++;
	}
	parent = is_class ? NULL : user_code_locked(class);
	if (parent)
		parent->codes++;
	user[i] = (struct user_code){.used = true, .is_class = is_class};
	user[i].class = is_class ? FIRST_USER_CODE + i : class;
	*code_p = FIRST_USER_CODE + i;
	if (*code_p > weft_mpi_last_used_code)
		weft_mpi_last_used_code = *code_p;
unlock:
	pthread_mutex_unlock(&lock);
	return err;
}

static int user_remove(bool is_class, int code)
{
	int err = MPI_SUCCESS;

	pthread_mutex_lock(&lock);
	struct user_code *u = user_code_locked(code);
	if (!u || u->is_class != is_class) {
		err = weft_mpi_err(MPI_ERR_ARG, "%d was not made by MPI_Add_error_%s", code,
				   is_class ? "class" : "code");
	} else if (u->codes) {
		err = weft_mpi_err(MPI_ERR_ARG, "error class %d still has codes", code);
	} else if (u->text) {
		err = weft_mpi_err(
			MPI_ERR_ARG,
			"error %s %d still has a string: call MPI_Remove_error_string first",
			is_class ? "class" : "code", code);
	} else {
		struct user_code *parent = is_class ? NULL : user_code_locked(u->class);
		if (parent)
			parent->codes--;
		*u = (struct user_code){0};
	}
	pthread_mutex_unlock(&lock);
	return err;
}

int weft_mpi_Add_error_class(int *errorclass)
{
	return user_add(true, 0, errorclass);
}

int weft_mpi_Add_error_code(int errorclass, int *errorcode)
{
	return user_add(false, errorclass, errorcode);
}

int weft_mpi_Remove_error_class(int errorclass)
{
	return user_remove(true, errorclass);
}

int weft_mpi_Remove_error_code(int errorcode)
{
	return user_remove(false, errorcode);
}

static int user_text(int code, const char *string)
{
	int err = MPI_SUCCESS;
	char *copy = string ? strndup(string, MPI_MAX_ERROR_STRING - 1) : NULL;

	pthread_mutex_lock(&lock);
	struct user_code *u = user_code_locked(code);
	if (!u || (!string && !u->text)) {
		free(copy);
		err = weft_mpi_err(MPI_ERR_ARG, "%d is not an error code of the user's%s", code,
				   u ? " with a text" : "");
	} else {
		free(u->text);
		u->text = copy;
	}
	pthread_mutex_unlock(&lock);
	return err;
}

int weft_mpi_Add_error_string(int errorcode, const char *string)
{
	return user_text(errorcode, string);
}

int weft_mpi_Remove_error_string(int errorcode)
{
	return user_text(errorcode, NULL);
}

#define TOOL_TEXT(name, text)                                                                      \
	[MPI_T_ERR_##name - MPI_T_ERR_CANNOT_INIT] = "MPI_T_ERR_" #name ": " text
static const char *const tool_text[] = {
	TOOL_TEXT(CANNOT_INIT, "the tool interface cannot start"),
	TOOL_TEXT(NOT_ACCESSIBLE, "not to be reached now"),
	TOOL_TEXT(NOT_INITIALIZED, "the tool interface has not been started"),
	TOOL_TEXT(NOT_SUPPORTED, "not supported"),
	TOOL_TEXT(MEMORY, "out of memory"),
	TOOL_TEXT(INVALID, "invalid argument"),
	TOOL_TEXT(INVALID_INDEX, "invalid index"),
	TOOL_TEXT(INVALID_ITEM, "invalid item"),
	TOOL_TEXT(INVALID_SESSION, "invalid session of performance variables"),
	TOOL_TEXT(INVALID_HANDLE, "invalid handle"),
	TOOL_TEXT(INVALID_NAME, "nothing has that name"),
	TOOL_TEXT(OUT_OF_HANDLES, "no more handles"),
	TOOL_TEXT(OUT_OF_SESSIONS, "no more sessions"),
	TOOL_TEXT(CVAR_SET_NOT_NOW, "the control variable cannot be written now"),
	TOOL_TEXT(CVAR_SET_NEVER, "the control variable cannot be written any more"),
	TOOL_TEXT(PVAR_NO_WRITE, "the performance variable cannot be written or reset"),
	TOOL_TEXT(PVAR_NO_STARTSTOP, "the performance variable cannot be started or stopped"),
	TOOL_TEXT(PVAR_NO_ATOMIC, "the performance variable cannot be read and reset at once"),
};
#undef TOOL_TEXT

/* ---- classes and texts -------------------------------------------------------------------- */

int weft_mpi_Error_class(int errorcode, int *errorclass)
{
	int err = MPI_SUCCESS;

	if (errorcode >= 0 && errorcode <= MPI_ERR_ABI) {
		*errorclass = errorcode;
		return MPI_SUCCESS;
	}
	if (errorcode >= MPI_T_ERR_CANNOT_INIT && errorcode <= MPI_T_ERR_PVAR_NO_ATOMIC) {
		*errorclass = errorcode;
		return MPI_SUCCESS;
	}
	pthread_mutex_lock(&lock);
	struct user_code *u = user_code_locked(errorcode);
	if (u)
		*errorclass = u->class;
	else
		err = weft_mpi_err(MPI_ERR_ARG, "%d is not an error code", errorcode);
	pthread_mutex_unlock(&lock);
	return err;
}

const char *weft_mpi_code_text(int code, char *buf, size_t size)
{
	const char *found = NULL;

	if (code >= 0 && code < (int)weft_countof(class_text))
		return class_text[code];
	if (code >= MPI_T_ERR_CANNOT_INIT && code <= MPI_T_ERR_PVAR_NO_ATOMIC)
		return tool_text[code - MPI_T_ERR_CANNOT_INIT];
	pthread_mutex_lock(&lock);
	struct user_code *u = user_code_locked(code);
	if (u) {
		snprintf(buf, size, "%s", u->text ? u->text : "");
		found = buf;
	}
	pthread_mutex_unlock(&lock);
	return found;
}

int weft_mpi_Error_string(int errorcode, char *string, int *resultlen)
{
	char buf[MPI_MAX_ERROR_STRING];
	const char *text = weft_mpi_code_text(errorcode, buf, sizeof(buf));

	if (!text)
		return weft_mpi_err(MPI_ERR_ARG, "%d is not an error code", errorcode);
	*resultlen = snprintf(string, MPI_MAX_ERROR_STRING, "%s", text);
	return MPI_SUCCESS;
}
