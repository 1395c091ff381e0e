/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * init.c - the library's start, rest and stop; MPI_Init to MPI_Finalize, and what happens to processes that
 * skip one of them.
 *
 * Callers   the main thread of MPI; abort: any thread.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/log.h"
#include "mpi/aid/aid.h"
#include "mpi/aid/check.h"
#include "mpi/comm/attr.h"
#include "mpi/p2p/bsend.h"
#include "mpi/comm/comm_int.h"
#include "mpi/errhandler.h"
#include "mpi/file/mpi_file.h"
#include "mpi/lang.h"
#include "mpi/error.h"
#include "mpi/comm/group.h"
#include "mpi/info.h"
#include "mpi/p2p/request.h"
#include "mpi/part/part.h"
#include "mpi/session/session.h"
#include "rma/rma.h"
#include "mpi/dyn/dyn.h"
#include "rt/rt.h"

_Atomic int weft_mpi_x_state;

static pthread_t main_thread;
static int thread_level = MPI_THREAD_SINGLE;

/* Objects that are there before MPI_Init. */
__attribute__((constructor)) static void init_predefined(void)
{
	weft_mpi_errhandlers_init();
	weft_mpi_groups_init();
	weft_mpi_info_env_init();
}

static int library_state(void)
{
	/* Acquire: what MPI_Init wrote, for threads that only ask whether it ran. */
	return atomic_load_explicit(&weft_mpi_x_state, memory_order_acquire);
}

/* The library belongs to the process that started it: its threads are not in the child. */
static void child_after_fork(void)
{
	if (library_state() == WEFT_MPI_RUNNING)
		/* Relaxed: the child has one thread. */
		atomic_store_explicit(&weft_mpi_x_state, WEFT_MPI_FORKED, memory_order_relaxed);
}

/* MPI_Finalize was called, and may have failed because a peer is gone. */
static bool finalize_called;

static bool launcher_tells;

/* The library has users: MPI_Init, and each session.  Without any it is at rest. */
static pthread_mutex_t life = PTHREAD_MUTEX_INITIALIZER; /* of what follows */
static enum { DOWN, UP, STOPPED } library;
enum { WORLD_BEFORE, WORLD_ON, WORLD_OVER };
static _Atomic int world_model; /* one of these; read without the lock */
static int users;
static bool sessions_used; /* ever: MPI_Finalize leaves the library up for more */
static const struct weft_boot_info *job;
static struct weft_ctx *library_ctx;

/* ---- init --------------------------------------------------------------------------------- */

static int start_layers(const struct weft_boot_info **boot_p)
{
	weft_comm_set_down_hook(weft_mpi_domain_peer_down);
	weft_comm_set_awaits_hook(weft_rma_peer_known);
	weft_err err = weft_rt_start(boot_p);
	if (err) {
		/* The layer that failed has said why. */
		fflush(NULL);
		_exit(1);
	}
	return MPI_SUCCESS;
}

static void stop_layers(void)
{
	weft_mpi_dyn_fini();
	weft_comm_ctx_close(library_ctx);
	weft_mpi_atomic_end();
	weft_rma_end();
	weft_file_end();
	weft_mpi_datareps_end();
	weft_mpi_comms_fini();
	weft_mpi_psends_fini();
	weft_mpi_precvs_fini();
	weft_mpi_ops_fini();
	weft_mpi_types_fini();
	weft_rt_stop();
	library = STOPPED;
}

/* At exit, after sessions: no rank waits for another, each has ended what it had with its peers. */
static void stop_at_rest(void)
{
	pthread_mutex_lock(&life);
	if (library == UP && !users) {
		weft_mpi_requests_drain();
		stop_layers();
	}
	pthread_mutex_unlock(&life);
}

/* A process that ends without MPI_Finalize says so, unless its launcher does, once for all. */
static void process_exits(void)
{
	if (library_state() == WEFT_MPI_RUNNING && !finalize_called && !launcher_tells)
		weft_error(world_model == WORLD_ON
				   ? "the process ends without MPI_Finalize"
				   : "the process ends without MPI_Session_finalize");
	else if (library_state() != WEFT_MPI_FORKED && library_state() != WEFT_MPI_RUNNING)
		stop_at_rest();
}

static void library_start_locked(void)
{
	weft_assert_held(weft_mutex, &life);
	weft_mpi_lang_start();
	int err = start_layers(&job);

	if (!err)
		err = weft_mpi_types_init();
	if (!err)
		err = weft_mpi_ops_init();
	if (!err)
		err = weft_mpi_comms_init(job->rank, job->size);
	if (!err)
		err = weft_comm_ctx_open(weft_mpi_home->core,
					 WEFT_MPI_CTX_PART | 2 * WEFT_MPI_ID_TOLD, &library_ctx);
	if (err) {
		weft_error("MPI cannot start: out of memory");
		fflush(NULL);
		_exit(1);
	}
	weft_mpi_aid_notes_init(job);
	weft_mpi_check_init();
	weft_mpi_comms_show(false);
	pthread_atfork(NULL, NULL, child_after_fork);
	atexit(process_exits);
	launcher_tells = strcmp(job->launcher, "weft") == 0;
	library = UP;
}

static int library_use_locked(void)
{
	weft_assert_held(weft_mutex, &life);
	if (library_state() == WEFT_MPI_FORKED)
		weft_mpi_not_running("MPI_Init or MPI_Session_init");
	if (library == STOPPED)
		return weft_mpi_err(
			MPI_ERR_OTHER,
			"MPI was finalized: it starts again only where a session was open "
			"before MPI_Finalize");
	if (library == DOWN)
		library_start_locked();
	users++;
	/* PUB-INIT -> library_state().  Carries: everything that the start wrote.
	 * Without it, a thread that saw MPI_Initialized could meet half-made communicators. */
	atomic_store_explicit(&weft_mpi_x_state, WEFT_MPI_RUNNING, memory_order_release);
	return MPI_SUCCESS;
}

int weft_mpi_library_use(void)
{
	pthread_mutex_lock(&life);
	sessions_used = true;
	int err = library_use_locked();
	pthread_mutex_unlock(&life);
	return err;
}

static void library_unuse_locked(void)
{
	weft_assert_held(weft_mutex, &life);
	if (--users)
		return;
	/* Release: partner library_state() in Finalized.  Carries: that all is at rest. */
	atomic_store_explicit(&weft_mpi_x_state,
			      world_model == WORLD_OVER ? WEFT_MPI_FINALIZED : WEFT_MPI_UNUSED,
			      memory_order_release);
}

void weft_mpi_library_unuse(void)
{
	pthread_mutex_lock(&life);
	library_unuse_locked();
	pthread_mutex_unlock(&life);
}

struct weft_ctx *weft_mpi_library_ctx(void)
{
	return library_ctx;
}

static int init_world(int *argc, char ***argv, int required)
{
	int err;

	pthread_mutex_lock(&life);
	if (world_model != WORLD_BEFORE)
		err = weft_mpi_err(MPI_ERR_OTHER, world_model == WORLD_ON
							  ? "MPI is initialized already"
							  : "MPI was finalized: MPI_Init cannot be "
							    "called again");
	else
		err = library_use_locked();
	if (!err) {
		weft_mpi_comms_show(true);
		weft_mpi_attrs_init(job);
		weft_mpi_info_env_fill(argc ? *argc : 0, argv ? *argv : NULL, job->size, required);
		main_thread = pthread_self();
		thread_level = required;
		world_model = WORLD_ON;
	}
	pthread_mutex_unlock(&life);
	/* Those that have started this job hear of it by its end. */
	if (!err && weft_mpi_dyn_init())
		weft_boot_abort(1, "MPI_Init: this job cannot be connected to its parent");
	return err;
}

/* Levels lie in order; what is between two is the lower one. */
static int level_floor(int required)
{
	if (required >= MPI_THREAD_MULTIPLE)
		return MPI_THREAD_MULTIPLE;
	if (required >= MPI_THREAD_SERIALIZED)
		return MPI_THREAD_SERIALIZED;
	return required >= MPI_THREAD_FUNNELED ? MPI_THREAD_FUNNELED : MPI_THREAD_SINGLE;
}

int weft_mpi_Init(int *argc, char ***argv)
{
	return init_world(argc, argv, MPI_THREAD_SINGLE);
}

int weft_mpi_Init_thread(int *argc, char ***argv, int required, int *provided)
{
	int level = level_floor(required);
	int err = init_world(argc, argv, level);

	if (!err)
		*provided = level;
	return err;
}

int weft_mpi_Initialized(int *flag)
{
	*flag = world_model != WORLD_BEFORE;
	return MPI_SUCCESS;
}

int weft_mpi_Finalized(int *flag)
{
	/* In a forked child MPI is over, too: libraries then leave it alone at exit. */
	*flag = world_model == WORLD_OVER || library_state() == WEFT_MPI_FORKED;
	return MPI_SUCCESS;
}

bool weft_mpi_several_threads(void)
{
	pthread_mutex_lock(&life);
	/* Sessions let every thread call. */
	bool several = world_model != WORLD_ON || users != 1 || thread_level == MPI_THREAD_MULTIPLE;
	pthread_mutex_unlock(&life);
	return several;
}

int weft_mpi_Query_thread(int *provided)
{
	*provided = thread_level;
	return MPI_SUCCESS;
}

int weft_mpi_Is_thread_main(int *flag)
{
	*flag = pthread_equal(main_thread, pthread_self()) != 0;
	return MPI_SUCCESS;
}

/* ---- finalize ----------------------------------------------------------------------------- */

/* A barrier, so that no rank leaves while another still talks to it.  Its tag does not depend on how many collectives
 * a rank has called: ranks that differ there meet all the same. */
static int meet_all(void)
{
	struct weft_mpi_comm *world = weft_mpi_comm_of(MPI_COMM_WORLD);
	struct weft_mpi_talk t = weft_mpi_talk_all(world);

	t.tag = WEFT_MPI_TAG_FINALIZE;
	return weft_mpi_talk_barrier(&t);
}

/* A rank that waits for this one in a collective of MPI_COMM_WORLD waits in vain, and is told. */
static void call_no_more(struct weft_mpi_comm *world)
{
	if (!world->calls && world->size > 1)
		world->calls = weft_coll_calls_open(world->coll);
	weft_coll_calls_close(world->calls);
	weft_mpi_check_coll_last();
}

int weft_mpi_Finalize(void)
{
	if (world_model != WORLD_ON)
		return weft_mpi_err(MPI_ERR_OTHER, world_model == WORLD_OVER
							   ? "MPI_Finalize was called before"
							   : "MPI_Init was not called");
	finalize_called = true;
	/* MPI deletes MPI_COMM_SELF's attributes first, while everything else still works. */
	int err = weft_mpi_attrs_free(&weft_mpi_comm_of(MPI_COMM_SELF)->head);
	if (!err)
		err = weft_mpi_attrs_free(&weft_mpi_comm_of(MPI_COMM_WORLD)->head);
	if (err)
		return err;
	call_no_more(weft_mpi_comm_of(MPI_COMM_WORLD));
	if (weft_mpi_checking && meet_all() == MPI_SUCCESS)
		weft_mpi_check_finalize();
	weft_mpi_bsend_fini();
	if (!sessions_used)
		weft_mpi_requests_drain();
	err = meet_all();
	if (err) {
		weft_mpi_blame(weft_mpi_comm_of(MPI_COMM_WORLD));
		return err;
	}
	pthread_mutex_lock(&life);
	weft_mpi_comms_show(false);
	world_model = WORLD_OVER;
	if (!sessions_used)
		stop_layers();
	library_unuse_locked();
	pthread_mutex_unlock(&life);
	return MPI_SUCCESS;
}

/* ---- abort -------------------------------------------------------------------------------- */

int weft_mpi_Abort(MPI_Comm comm, int errorcode)
{
	char line[200];
	struct weft_mpi_comm *c = weft_mpi_comm_of(comm);
	/* Exit statuses have 8 bits; an abort never looks like success. */
	int code = errorcode & 0xff ? errorcode & 0xff : 1;

	if (library_state() != WEFT_MPI_RUNNING) {
		weft_error("MPI_Abort(%d)", errorcode);
		fflush(NULL);
		_exit(code);
	}
	snprintf(line, sizeof(line), "MPI_Abort(%d)%s%s", errorcode, c && c->name[0] ? " on " : "",
		 c ? c->name : "");
	weft_boot_abort(code, line);
}
