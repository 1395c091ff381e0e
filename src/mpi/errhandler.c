/* SPDX-License-Identifier: BSD-3-Clause */
/* errhandler.c - error handlers, and what happens when an MPI function fails. */
#include "mpi/errhandler.h"
#include "mpi/lang.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/settings.h"
#include "boot/boot.h"
#include "mpi/comm/comm_int.h"
#include "mpi/error.h"
#include "mpi/entry.h"
#include "mpi/file/mpi_file.h"
#include "mpi/rma/win.h"
#include "mpi/session/session.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct weft_mpi_errhandler fatal = {.what = WEFT_MPI_FATAL};
static struct weft_mpi_errhandler aborts = {.what = WEFT_MPI_ABORTS};
static struct weft_mpi_errhandler returns = {.what = WEFT_MPI_RETURNS};

void weft_mpi_errhandlers_init(void)
{
	weft_mpi_object_predefine(&fatal.head, WEFT_MPI_ERRHANDLER, MPI_ERRORS_ARE_FATAL);
	weft_mpi_object_predefine(&aborts.head, WEFT_MPI_ERRHANDLER, MPI_ERRORS_ABORT);
	weft_mpi_object_predefine(&returns.head, WEFT_MPI_ERRHANDLER, MPI_ERRORS_RETURN);
}

struct weft_mpi_errhandler *weft_mpi_errhandler_fatal(void)
{
	return &fatal;
}

struct weft_mpi_errhandler *weft_mpi_errhandler_initial(void)
{
	const char *name = weft_setting_str(WEFT_SET_INITIAL_ERRHANDLER);

	if (strcmp(name, "mpi_errors_return") == 0)
		return &returns;
	return strcmp(name, "mpi_errors_abort") == 0 ? &aborts : &fatal;
}

struct weft_mpi_errhandler *weft_mpi_errhandler_ref(struct weft_mpi_errhandler *e)
{
	pthread_mutex_lock(&lock);
	e->refs++;
	pthread_mutex_unlock(&lock);
	return e;
}

void weft_mpi_errhandler_unref(struct weft_mpi_errhandler *e)
{
	pthread_mutex_lock(&lock);
	bool last = --e->refs == 0 && !e->head.permanent;
	pthread_mutex_unlock(&lock);
	if (last)
		free(e);
}

/* ---- making and freeing ------------------------------------------------------------------- */

static int create_handler(enum weft_mpi_kind object, void (*fn)(void), MPI_Errhandler *handle_p)
{
	if (!fn)
		return weft_mpi_err(MPI_ERR_ARG, "the error handler function is a null pointer");
	struct weft_mpi_errhandler *e = calloc(1, sizeof(*e));
	if (!e)
		return weft_mpi_err(MPI_ERR_NO_MEM, "out of memory");
	e->what = WEFT_MPI_USER;
	e->object = object;
	e->fn = fn;
	e->lang = weft_mpi_lang_take((const void *)(uintptr_t)fn);
	e->users = e->refs = 1;
	if (weft_mpi_object_new(&e->head, WEFT_MPI_ERRHANDLER)) {
		free(e);
		return weft_mpi_err(MPI_ERR_NO_MEM, "out of handles");
	}
	*handle_p = (MPI_Errhandler)(uintptr_t)e->head.handle;
	return MPI_SUCCESS;
}

int weft_mpi_Comm_create_errhandler(MPI_Comm_errhandler_function *fn, MPI_Errhandler *errhandler)
{
	return create_handler(WEFT_MPI_COMM, (void (*)(void))fn, errhandler);
}

int weft_mpi_Win_create_errhandler(MPI_Win_errhandler_function *fn, MPI_Errhandler *errhandler)
{
	return create_handler(WEFT_MPI_WIN, (void (*)(void))fn, errhandler);
}

int weft_mpi_File_create_errhandler(MPI_File_errhandler_function *fn, MPI_Errhandler *errhandler)
{
	return create_handler(WEFT_MPI_FILE, (void (*)(void))fn, errhandler);
}

int weft_mpi_Session_create_errhandler(MPI_Session_errhandler_function *fn,
				       MPI_Errhandler *errhandler)
{
	return create_handler(WEFT_MPI_SESSION, (void (*)(void))fn, errhandler);
}

int weft_mpi_Errhandler_free(MPI_Errhandler *errhandler)
{
	struct weft_mpi_errhandler *e = weft_mpi_errhandler_of(*errhandler);

	if (!e)
		return weft_mpi_err(MPI_ERR_ERRHANDLER, "invalid error handler (null or freed)");
	*errhandler = MPI_ERRHANDLER_NULL;
	if (e->head.permanent)
		return MPI_SUCCESS;
	pthread_mutex_lock(&lock);
	bool unnamed = --e->users == 0;
	pthread_mutex_unlock(&lock);
	if (unnamed)
		weft_mpi_object_retire(&e->head);
	weft_mpi_errhandler_unref(e);
	return MPI_SUCCESS;
}

/* ---- attaching ---------------------------------------------------------------------------- */

int weft_mpi_Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler errhandler)
{
	struct weft_mpi_comm *c = weft_mpi_comm_of(comm);
	struct weft_mpi_errhandler *e = weft_mpi_errhandler_of(errhandler);

	if (e->what == WEFT_MPI_USER && e->object != WEFT_MPI_COMM)
		return weft_mpi_err(MPI_ERR_ERRHANDLER,
				    "the error handler was not made for communicators");
	weft_mpi_errhandler_ref(e);
	pthread_mutex_lock(&c->lock);
	struct weft_mpi_errhandler *old = c->errhandler;
	c->errhandler = e;
	pthread_mutex_unlock(&c->lock);
	weft_mpi_errhandler_unref(old);
	return MPI_SUCCESS;
}

/* Hands out a handle; one more user. */
static int share_handler(struct weft_mpi_errhandler *e, MPI_Errhandler *handle_p)
{
	int err = MPI_SUCCESS;

	pthread_mutex_lock(&lock);
	if (!e->head.permanent) {
		if (e->users == 0 && weft_mpi_object_new(&e->head, WEFT_MPI_ERRHANDLER)) {
			err = weft_mpi_err(MPI_ERR_NO_MEM, "out of handles");
		} else {
			e->users++;
			e->refs++;
		}
	}
	*handle_p = (MPI_Errhandler)(uintptr_t)e->head.handle;
	pthread_mutex_unlock(&lock);
	return err;
}

int weft_mpi_Comm_get_errhandler(MPI_Comm comm, MPI_Errhandler *errhandler)
{
	struct weft_mpi_comm *c = weft_mpi_comm_of(comm);

	pthread_mutex_lock(&c->lock);
	int err = share_handler(c->errhandler, errhandler);
	pthread_mutex_unlock(&c->lock);
	return err;
}

int weft_mpi_Win_set_errhandler(MPI_Win win, MPI_Errhandler errhandler)
{
	struct weft_mpi_win *w = weft_mpi_window(win);
	struct weft_mpi_errhandler *e = weft_mpi_errhandler_of(errhandler);

	if (e->what == WEFT_MPI_USER && e->object != WEFT_MPI_WIN)
		return weft_mpi_err(MPI_ERR_ERRHANDLER,
				    "the error handler was not made for windows");
	weft_mpi_errhandler_ref(e);
	pthread_mutex_lock(&w->lock);
	struct weft_mpi_errhandler *old = w->errhandler;
	w->errhandler = e;
	pthread_mutex_unlock(&w->lock);
	weft_mpi_errhandler_unref(old);
	return MPI_SUCCESS;
}

int weft_mpi_Win_get_errhandler(MPI_Win win, MPI_Errhandler *errhandler)
{
	struct weft_mpi_win *w = weft_mpi_window(win);

	pthread_mutex_lock(&w->lock);
	int err = share_handler(w->errhandler, errhandler);
	pthread_mutex_unlock(&w->lock);
	return err;
}

/* Files that are opened later take this one over: MPI attaches it to MPI_FILE_NULL. */
static struct weft_mpi_errhandler *file_default = &returns;

struct weft_mpi_errhandler *weft_mpi_errhandler_file_default(void)
{
	pthread_mutex_lock(&lock);
	struct weft_mpi_errhandler *e = file_default;
	e->refs++;
	pthread_mutex_unlock(&lock);
	return e;
}

/* The handler of a file, or of MPI_FILE_NULL; with a reference. */
static struct weft_mpi_errhandler *file_handler(struct weft_mpi_file *f)
{
	if (!f)
		return weft_mpi_errhandler_file_default();
	pthread_mutex_lock(&f->lock);
	struct weft_mpi_errhandler *e = weft_mpi_errhandler_ref(f->errhandler);
	pthread_mutex_unlock(&f->lock);
	return e;
}

int weft_mpi_File_set_errhandler(MPI_File file, MPI_Errhandler errhandler)
{
	struct weft_mpi_errhandler *e = weft_mpi_errhandler_of(errhandler), *old;
	struct weft_mpi_file *f = weft_mpi_file(file);

	if (e->what == WEFT_MPI_USER && e->object != WEFT_MPI_FILE)
		return weft_mpi_err(MPI_ERR_ERRHANDLER, "the error handler was not made for files");
	weft_mpi_errhandler_ref(e);
	pthread_mutex_t *of = f ? &f->lock : &lock;
	pthread_mutex_lock(of);
	struct weft_mpi_errhandler **at = f ? &f->errhandler : &file_default;
	old = *at;
	*at = e;
	pthread_mutex_unlock(of);
	weft_mpi_errhandler_unref(old);
	return MPI_SUCCESS;
}

int weft_mpi_File_get_errhandler(MPI_File file, MPI_Errhandler *errhandler)
{
	struct weft_mpi_errhandler *e = file_handler(weft_mpi_file(file));
	int err = share_handler(e, errhandler);

	weft_mpi_errhandler_unref(e);
	return err;
}

/* ---- failing ------------------------------------------------------------------------------ */

static _Noreturn void die_of_error(int code, const char *func, const char *where)
{
	const struct weft_mpi_cause *why = weft_mpi_cause();
	char host[64] = "?", buf[MPI_MAX_ERROR_STRING], line[512];
	const char *text = weft_mpi_code_text(code, buf, sizeof(buf));
	bool told = why->code == code && why->text[0];

	gethostname(host, sizeof(host) - 1);
	snprintf(line, sizeof(line), "%s: %s%s%s (host %s%s%s)", func, told ? why->text : "",
		 told ? ": " : "", text ? text : "unknown error code", host,
		 where[0] ? ", communicator " : "", where);
	/* Relaxed: a hint for what to do with a dying process. */
	if (atomic_load_explicit(&weft_mpi_x_state, memory_order_relaxed) != WEFT_MPI_RUNNING) {
		weft_error("%s", line);
		fflush(NULL);
		_exit(code & 0xff ? code & 0xff : 1);
	}
	/* The code itself may be MPI_ERR_IN_STATUS. */
	if (told && why->text_code == MPI_ERR_PROC_ABORTED)
		weft_boot_abort_bereft(code & 0xff ? code & 0xff : 1, line);
	weft_boot_abort(code & 0xff ? code & 0xff : 1, line);
}

static void call_user(const struct weft_mpi_errhandler *e, void *handle_p, int *code_p)
{
	/* The handle types are all pointers: the cast restores what the user gave. */
	if (e->lang)
		e->lang->errhandler(e->fn, weft_mpi_handle_toint(*(void **)handle_p), code_p);
	else if (e->object == WEFT_MPI_COMM)
		((MPI_Comm_errhandler_function *)e->fn)(handle_p, code_p);
	else if (e->object == WEFT_MPI_FILE)
		((MPI_File_errhandler_function *)e->fn)(handle_p, code_p);
	else if (e->object == WEFT_MPI_WIN)
		((MPI_Win_errhandler_function *)e->fn)(handle_p, code_p);
	else
		((MPI_Session_errhandler_function *)e->fn)(handle_p, code_p);
}

/* No lock is held while the user's function runs: it may call MPI, or leave by longjmp. */
static int raise_on(struct weft_mpi_comm *c, int code, const char *func)
{
	struct weft_mpi_errhandler *e = &fatal;

	if (c && c->file != MPI_FILE_NULL)
		return weft_mpi_raise_file(c->file, code, func);
	if (c && c->win != MPI_WIN_NULL)
		return weft_mpi_raise_win(c->win, code, func);
	if (c) {
		pthread_mutex_lock(&c->lock);
		e = weft_mpi_errhandler_ref(c->errhandler);
		pthread_mutex_unlock(&c->lock);
	}
	if (e->what == WEFT_MPI_FATAL || e->what == WEFT_MPI_ABORTS)
		die_of_error(code, func, c ? c->name : "");
	weft_mpi_cause()->text[0] = '\0';
	if (e->what == WEFT_MPI_USER) {
		MPI_Comm handle =
			c->head.handle ? (MPI_Comm)(uintptr_t)c->head.handle : MPI_COMM_NULL;
		int seen = code;
		call_user(e, &handle, &seen);
	}
	weft_mpi_errhandler_unref(e);
	return code;
}

static bool has_initial(struct weft_mpi_comm *c)
{
	pthread_mutex_lock(&c->lock);
	bool initial = c->errhandler == &fatal;
	pthread_mutex_unlock(&c->lock);
	return initial;
}

/*
 * Errors of no communicator belong to MPI_COMM_SELF since MPI 4.0, to MPI_COMM_WORLD before.  So a
 * program that has set a handler on MPI_COMM_WORLD alone gets them there.
 */
static struct weft_mpi_comm *find_listener(struct weft_mpi_comm *c)
{
	struct weft_mpi_comm *self = weft_mpi_comm_of(MPI_COMM_SELF);

	if (c && c != self)
		return c;
	if (self && !has_initial(self))
		return self;
	struct weft_mpi_comm *world = weft_mpi_comm_of(MPI_COMM_WORLD);
	return world && !has_initial(world) ? world : self;
}

static int raise_handler(struct weft_mpi_errhandler *e, int code, const char *func);

static int raise_comm(struct weft_mpi_comm *c, int code, const char *func)
{
	struct weft_mpi_cause *why = weft_mpi_cause();

	if (why->handler)
		return raise_handler(why->handler, code, func);
	if (!why->blamed)
		return raise_on(find_listener(c), code, func);
	struct weft_mpi_comm *blame = why->blame;
	why->blamed = false;
	raise_on(blame, code, func);
	weft_mpi_comm_unref(blame);
	return code;
}

int weft_mpi_raise_comm(MPI_Comm comm, int code, const char *func)
{
	return raise_comm(weft_mpi_comm_of(comm), code, func);
}

int weft_mpi_raise(int code, const char *func)
{
	return raise_comm(NULL, code, func);
}

int weft_mpi_raise_new(MPI_Errhandler handler, int code, const char *func)
{
	struct weft_mpi_errhandler *e = weft_mpi_errhandler_of(handler);

	if (e)
		weft_mpi_blame_handler(e);
	return raise_comm(NULL, code, func);
}

static int raise_on_window(struct weft_mpi_win *w, int code, const char *func)
{
	pthread_mutex_lock(&w->lock);
	struct weft_mpi_errhandler *e = weft_mpi_errhandler_ref(w->errhandler);
	pthread_mutex_unlock(&w->lock);
	if (e->what == WEFT_MPI_FATAL || e->what == WEFT_MPI_ABORTS)
		die_of_error(code, func, "");
	weft_mpi_cause()->text[0] = '\0';
	if (e->what == WEFT_MPI_USER) {
		MPI_Win handle = (MPI_Win)(uintptr_t)w->head.handle;
		int seen = code;
		call_user(e, &handle, &seen);
	}
	weft_mpi_errhandler_unref(e);
	return code;
}

/* What names no window belongs to none. */
int weft_mpi_raise_win(MPI_Win win, int code, const char *func)
{
	struct weft_mpi_win *w = weft_mpi_window(win);

	return w ? raise_on_window(w, code, func) : weft_mpi_raise(code, func);
}

int weft_mpi_Win_call_errhandler(MPI_Win win, int errorcode)
{
	raise_on_window(weft_mpi_window(win), errorcode, "MPI_Win_call_errhandler");
	return MPI_SUCCESS;
}

/* ---- sessions ----------------------------------------------------------------------------- */

int weft_mpi_Session_set_errhandler(MPI_Session session, MPI_Errhandler errhandler)
{
	struct weft_mpi_session *s = weft_mpi_session_of(session);
	struct weft_mpi_errhandler *e = weft_mpi_errhandler_of(errhandler);

	if (e->what == WEFT_MPI_USER && e->object != WEFT_MPI_SESSION)
		return weft_mpi_err(MPI_ERR_ERRHANDLER,
				    "the error handler was not made for sessions");
	weft_mpi_errhandler_ref(e);
	pthread_mutex_lock(&s->lock);
	struct weft_mpi_errhandler *old = s->errhandler;
	s->errhandler = e;
	pthread_mutex_unlock(&s->lock);
	weft_mpi_errhandler_unref(old);
	return MPI_SUCCESS;
}

int weft_mpi_Session_get_errhandler(MPI_Session session, MPI_Errhandler *errhandler)
{
	struct weft_mpi_session *s = weft_mpi_session_of(session);

	pthread_mutex_lock(&s->lock);
	int err = share_handler(s->errhandler, errhandler);
	pthread_mutex_unlock(&s->lock);
	return err;
}

int weft_mpi_raise_session(MPI_Session session, int code, const char *func)
{
	struct weft_mpi_session *s = weft_mpi_session_of(session);

	if (!s)
		return weft_mpi_raise(code, func);
	pthread_mutex_lock(&s->lock);
	struct weft_mpi_errhandler *e = weft_mpi_errhandler_ref(s->errhandler);
	pthread_mutex_unlock(&s->lock);
	if (e->what == WEFT_MPI_FATAL || e->what == WEFT_MPI_ABORTS)
		die_of_error(code, func, "");
	weft_mpi_cause()->text[0] = '\0';
	if (e->what == WEFT_MPI_USER) {
		int seen = code;
		call_user(e, &session, &seen);
	}
	weft_mpi_errhandler_unref(e);
	return code;
}

int weft_mpi_Session_call_errhandler(MPI_Session session, int errorcode)
{
	weft_mpi_raise_session(session, errorcode, "MPI_Session_call_errhandler");
	return MPI_SUCCESS;
}

void weft_mpi_blame_handler(struct weft_mpi_errhandler *e)
{
	struct weft_mpi_cause *why = weft_mpi_cause();

	if (why->handler)
		weft_mpi_errhandler_unref(why->handler);
	why->handler = weft_mpi_errhandler_ref(e);
}

/* With the handler of what was to be made: there is no object that the user's function could be told. */
static int raise_handler(struct weft_mpi_errhandler *e, int code, const char *func)
{
	weft_mpi_cause()->handler = NULL;
	if (e->what == WEFT_MPI_FATAL || e->what == WEFT_MPI_ABORTS)
		die_of_error(code, func, "");
	weft_mpi_cause()->text[0] = '\0';
	if (e->what == WEFT_MPI_USER) {
		void *none = e->object == WEFT_MPI_SESSION ? (void *)MPI_SESSION_NULL
			     : e->object == WEFT_MPI_FILE  ? (void *)MPI_FILE_NULL
							   : (void *)MPI_COMM_NULL;
		int seen = code;
		call_user(e, &none, &seen);
	}
	weft_mpi_errhandler_unref(e);
	return code;
}

/* Errors of no file go to the handler of MPI_FILE_NULL, which MPI sets to MPI_ERRORS_RETURN. */
int weft_mpi_raise_file(MPI_File file, int code, const char *func)
{
	struct weft_mpi_cause *why = weft_mpi_cause();

	if (why->handler)
		return raise_handler(why->handler, code, func);
	struct weft_mpi_file *f = weft_mpi_file(file);
	struct weft_mpi_errhandler *e = file_handler(f);
	if (e->what == WEFT_MPI_FATAL || e->what == WEFT_MPI_ABORTS)
		die_of_error(code, func, "");
	why->text[0] = '\0';
	if (e->what == WEFT_MPI_USER) {
		MPI_File handle = f ? file : MPI_FILE_NULL;
		call_user(e, &handle, &code); /* what the function makes of the code is returned */
	}
	weft_mpi_errhandler_unref(e);
	return code;
}

int weft_mpi_Comm_call_errhandler(MPI_Comm comm, int errorcode)
{
	raise_on(weft_mpi_comm_of(comm), errorcode, "MPI_Comm_call_errhandler");
	return MPI_SUCCESS;
}

int weft_mpi_File_call_errhandler(MPI_File fh, int errorcode)
{
	weft_mpi_raise_file(fh, errorcode, "MPI_File_call_errhandler");
	return MPI_SUCCESS;
}
