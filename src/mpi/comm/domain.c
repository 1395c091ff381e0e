/* SPDX-License-Identifier: BSD-3-Clause */
/* domain.c - sets of processes that can talk to each other: made, counted, left. */
#include "mpi/comm/domain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "boot/boot.h"
#include "mpi/comm/comm_int.h"
#include "mpi/error.h"
#include "net/auth.h"
#include "rma/rma.h"

struct weft_mpi_domain *weft_mpi_home;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct weft_mpi_domain *all; /* under lock: met ones with a core */

/* The list's reference, and the maker's, which counts as a communicator. */
static void list_add(struct weft_mpi_domain *d)
{
	atomic_init(&d->x_refs, 2);
	atomic_init(&d->x_comms, 1);
	pthread_mutex_lock(&lock);
	d->next = all;
	all = d;
	pthread_mutex_unlock(&lock);
}

struct weft_mpi_domain *weft_mpi_domain_make(struct weft_core *core, int size,
					     const struct weft_mpi_process *process)
{
	struct weft_mpi_domain *d = calloc(1, sizeof(*d));
	size_t bytes = (size_t)size * sizeof(*process);

	if (!d)
		return NULL;
	d->size = size;
	d->rank = core ? weft_comm_core_rank(core) : -1;
	d->process = malloc(bytes);
	atomic_init(&d->x_refs, 1);
	if (!d->process) {
		free(d);
		return NULL;
	}
	if (process)
		memcpy(d->process, process, bytes);
	if (core && weft_mpi_ids_make(core, &d->ids)) {
		free(d->process);
		free(d);
		return NULL;
	}
	d->core = core;
	if (core && weft_mpi_home)
		list_add(d);
	return d;
}

int weft_mpi_domains_init(int rank, int size)
{
	struct weft_core *core = weft_comm_home();
	uint8_t job[16];

	weft_mpi_home = weft_mpi_domain_make(core, size, NULL);
	if (!weft_mpi_home)
		return MPI_ERR_NO_MEM;
	weft_net_auth_derive(weft_comm_secret(core), "job", NULL, 0, job, sizeof(job));
	for (int r = 0; r < size; r++) {
		memcpy(weft_mpi_home->process[r].job, job, sizeof(job));
		weft_mpi_home->process[r].rank = r;
	}
	weft_mpi_home->rank = rank;
	return MPI_SUCCESS;
}

void weft_mpi_domain_ref(struct weft_mpi_domain *d)
{
	/* Relaxed: the caller has a reference already. */
	atomic_fetch_add_explicit(&d->x_refs, 1, memory_order_relaxed);
}

void weft_mpi_domain_unref(struct weft_mpi_domain *d)
{
	/* LAST -> LAST (the last holder's).  Carries: the reads of d are over. */
	if (!d || atomic_fetch_sub_explicit(&d->x_refs, 1, memory_order_acq_rel) != 1)
		return;
	free(d->process);
	free(d);
}

void weft_mpi_domain_use(struct weft_mpi_domain *d)
{
	if (d == weft_mpi_home)
		return;
	weft_mpi_domain_ref(d);
	/* Relaxed: the caller has a communicator of d already. */
	atomic_fetch_add_explicit(&d->x_comms, 1, memory_order_relaxed);
}

void weft_mpi_domain_unuse(struct weft_mpi_domain *d)
{
	if (d == weft_mpi_home)
		return;
	/* UNUSE -> TAKE (take_ended).  Carries: the communicator's last accesses to the core. */
	atomic_fetch_sub_explicit(&d->x_comms, 1, memory_order_release);
	weft_mpi_domain_unref(d);
}

/* Takes one whose last communicator is gone out of the list, with a reference; NULL: none. */
static struct weft_mpi_domain *take_ended(bool any)
{
	struct weft_mpi_domain *d = NULL;

	pthread_mutex_lock(&lock);
	for (struct weft_mpi_domain **link = &all; *link; link = &(*link)->next) {
		/* TAKE <- UNUSE. */
		if (!any && atomic_load_explicit(&(*link)->x_comms, memory_order_acquire))
			continue;
		d = *link;
		*link = d->next;
		break;
	}
	pthread_mutex_unlock(&lock);
	return d;
}

static void leave_domain(struct weft_mpi_domain *d)
{
	weft_mpi_ids_free(d->ids);
	d->ids = NULL;
	weft_comm_leave(d->core);
	d->core = NULL;
	weft_mpi_domain_unref(d);
}

void weft_mpi_domains_sweep(void)
{
	/* Ends: each round takes one out. */
	for (struct weft_mpi_domain *d; (d = take_ended(false)) != NULL;)
		leave_domain(d);
}

void weft_mpi_domains_fini(void)
{
	for (struct weft_mpi_domain *d; (d = take_ended(true)) != NULL;)
		leave_domain(d);
	if (!weft_mpi_home)
		return;
	weft_mpi_ids_free(weft_mpi_home->ids);
	weft_mpi_home->ids = NULL;
	weft_mpi_home->core = NULL;
	weft_mpi_domain_unref(weft_mpi_home);
	weft_mpi_home = NULL;
}

static bool same_process(const struct weft_mpi_process *p, const struct weft_mpi_process *q)
{
	return p->rank == q->rank && memcmp(p->job, q->job, sizeof(p->job)) == 0;
}

int weft_mpi_domain_find(const struct weft_mpi_domain *d, const struct weft_mpi_process *p)
{
	/* The job's ranks are in order, and so are the sides of a met domain, mostly. */
	if (p->rank < d->size && same_process(&d->process[p->rank], p))
		return p->rank;
	for (int i = 0; i < d->size; i++)
		if (same_process(&d->process[i], p))
			return i;
	return -1;
}

void weft_mpi_domain_peer_down(struct weft_core *core, int peer, weft_err err, const char *why)
{
	if (core == weft_comm_home() || !weft_comm_home()) {
		weft_mpi_peer_down(peer, err, why);
		weft_rma_peer_down(core, peer);
		return;
	}
	weft_rma_peer_down(core, peer);
	if (err == WEFT_OK)
		return;
	bool matters = false;
	pthread_mutex_lock(&lock);
	for (struct weft_mpi_domain *d = all; d; d = d->next)
		/* Relaxed: a loss at the moment of the end may count or not. */
		matters = matters || (d->core == core &&
				      atomic_load_explicit(&d->x_comms, memory_order_relaxed));
	pthread_mutex_unlock(&lock);
	if (!matters)
		return;
	char text[300];
	snprintf(text, sizeof(text), "a process of a connected job is gone: %s",
		 why ? why : weft_strerror(err));
	weft_boot_abort_bereft(1, text);
}
