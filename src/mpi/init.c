/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * init.c - MPI_Init to MPI_Finalize, and what happens to processes that skip one of them.
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

#include "base/log.h"
#include "mpi/aid/aid.h"
#include "mpi/aid/check.h"
#include "mpi/comm/attr.h"
#include "mpi/p2p/bsend.h"
#include "mpi/comm/comm_int.h"
#include "mpi/errhandler.h"
#include "mpi/error.h"
#include "mpi/comm/group.h"
#include "mpi/info.h"
#include "mpi/p2p/request.h"
#include "mpi/part/part.h"
#include "rma/rma.h"
#include "rt/rt.h"

_Atomic int weft_mpi_x_state;

static pthread_t main_thread;
static int thread_level = MPI_THREAD_SINGLE;

/* Objects that are there before MPI_Init. */
__attribute__((constructor)) static void predefine(void)
{
	weft_mpi_errhandlers_init();
	weft_mpi_groups_init();
	weft_mpi_info_env_init();
}

static int state(void)
{
	/* Acquire: what MPI_Init wrote, for threads that only ask whether it ran. */
	return atomic_load_explicit(&weft_mpi_x_state, memory_order_acquire);
}

/* The library belongs to the process that started it: its threads are not in the child. */
static void child_after_fork(void)
{
	if (state() == WEFT_MPI_RUNNING)
		/* Relaxed: the child has one thread. */
		atomic_store_explicit(&weft_mpi_x_state, WEFT_MPI_FORKED, memory_order_relaxed);
}

/* MPI_Finalize was called, and may have failed because a peer is gone. */
static bool finalize_called;

static bool launcher_tells;

/* A process that ends without MPI_Finalize says so, unless its launcher does, once for all. */
static void process_exits(void)
{
	if (state() == WEFT_MPI_RUNNING && !finalize_called && !launcher_tells)
		weft_error("the process ends without MPI_Finalize");
}

/* ---- init --------------------------------------------------------------------------------- */

static int start_layers(const struct weft_boot_info **boot_p)
{
	weft_comm_set_down_hook(weft_mpi_domain_peer_down);
	weft_err err = weft_rt_start(boot_p);
	if (err) {
		/* The layer that failed has said why. */
		fflush(NULL);
		_exit(1);
	}
	return MPI_SUCCESS;
}

static int init(int *argc, char ***argv, int required)
{
	const struct weft_boot_info *boot = NULL;
	static bool hooked;

	if (state() == WEFT_MPI_FORKED)
		weft_mpi_not_running("MPI_Init");
	if (state() != WEFT_MPI_UNUSED)
		return weft_mpi_err(MPI_ERR_OTHER,
				    state() == WEFT_MPI_RUNNING
					    ? "MPI is initialized already"
					    : "MPI was finalized: it cannot be started again");
	int err = start_layers(&boot);
	if (!err)
		err = weft_mpi_types_init();
	if (!err)
		err = weft_mpi_ops_init();
	if (!err)
		err = weft_mpi_comms_init(boot->rank, boot->size);
	if (err) {
		weft_error("MPI_Init: out of memory");
		fflush(NULL);
		_exit(1);
	}
	weft_mpi_attrs_init(boot);
	weft_mpi_aid_notes_init(boot);
	weft_mpi_check_init();
	weft_mpi_info_env_fill(argc ? *argc : 0, argv ? *argv : NULL, boot->size, required);
	main_thread = pthread_self();
	thread_level = required;
	if (!hooked) {
		hooked = true;
		pthread_atfork(NULL, NULL, child_after_fork);
		atexit(process_exits);
	}
	launcher_tells = strcmp(boot->launcher, "weft") == 0;
	/* PUB-INIT -> state().  Carries: everything that init wrote.
	 * Without it, a thread that saw MPI_Initialized could meet half-made communicators. */
	atomic_store_explicit(&weft_mpi_x_state, WEFT_MPI_RUNNING, memory_order_release);
	return MPI_SUCCESS;
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
	return init(argc, argv, MPI_THREAD_SINGLE);
}

int weft_mpi_Init_thread(int *argc, char ***argv, int required, int *provided)
{
	int level = level_floor(required);
	int err = init(argc, argv, level);

	if (!err)
		*provided = level;
	return err;
}

int weft_mpi_Initialized(int *flag)
{
	*flag = state() != WEFT_MPI_UNUSED;
	return MPI_SUCCESS;
}

int weft_mpi_Finalized(int *flag)
{
	/* In a forked child MPI is over, too: libraries then leave it alone at exit. */
	*flag = state() == WEFT_MPI_FINALIZED || state() == WEFT_MPI_FORKED;
	return MPI_SUCCESS;
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

/* A barrier, so that no rank leaves while another still talks to it. */
static int meet_all(void)
{
	struct weft_mpi_comm *world = weft_mpi_comm_of(MPI_COMM_WORLD);
	struct weft_mpi_talk t = weft_mpi_talk_all(world);
	char mine = 0, *all = malloc((size_t)world->size);
	int err = all ? weft_mpi_talk_allgather(&t, &mine, all, 1) : MPI_SUCCESS;

	free(all);
	return err;
}

int weft_mpi_Finalize(void)
{
	finalize_called = true;
	/* MPI deletes MPI_COMM_SELF's attributes first, while everything else still works. */
	int err = weft_mpi_attrs_free(&weft_mpi_comm_of(MPI_COMM_SELF)->head);
	if (!err)
		err = weft_mpi_attrs_free(&weft_mpi_comm_of(MPI_COMM_WORLD)->head);
	if (err)
		return err;
	if (weft_mpi_checking && meet_all() == MPI_SUCCESS)
		weft_mpi_check_finalize();
	weft_mpi_bsend_fini();
	weft_mpi_requests_drain();
	err = meet_all();
	if (err) {
		weft_mpi_blame(weft_mpi_comm_of(MPI_COMM_WORLD));
		return err;
	}
	weft_rma_end();
	weft_mpi_comms_fini();
	weft_mpi_psends_fini();
	weft_mpi_precvs_fini();
	weft_mpi_ops_fini();
	weft_mpi_types_fini();
	weft_rt_stop();
	/* Release: partner state() in Finalized.  Carries: that all is stopped. */
	atomic_store_explicit(&weft_mpi_x_state, WEFT_MPI_FINALIZED, memory_order_release);
	return MPI_SUCCESS;
}

/* ---- abort -------------------------------------------------------------------------------- */

int weft_mpi_Abort(MPI_Comm comm, int errorcode)
{
	char line[200];
	struct weft_mpi_comm *c = weft_mpi_comm_of(comm);
	/* Exit statuses have 8 bits; an abort never looks like success. */
	int code = errorcode & 0xff ? errorcode & 0xff : 1;

	if (state() != WEFT_MPI_RUNNING) {
		weft_error("MPI_Abort(%d)", errorcode);
		fflush(NULL);
		_exit(code);
	}
	snprintf(line, sizeof(line), "MPI_Abort(%d)%s%s", errorcode, c && c->name[0] ? " on " : "",
		 c ? c->name : "");
	weft_boot_abort(code, line);
}
