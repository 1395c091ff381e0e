/* SPDX-License-Identifier: BSD-3-Clause */
/* port.c - ports, and the two sides that meet at one: MPI_Open_port, accept, connect, disconnect. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/settings.h"
#include "comm/meet/port.h"
#include "mpi/dyn/dyn.h"
#include "mpi/dyn/meet.h"
#include "mpi/error.h"
#include "mpi/info.h"

_Static_assert(WEFT_PORT_NAME <= MPI_MAX_PORT_NAME, "MPI's callers have room for a port's name");

/* An open port of this process. */
struct opened {
	struct weft_comm_port *port;
	int users;   /* accepts under way */
	bool closed; /* the last user closes it */
	struct opened *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct opened *all; /* under lock */

/* ---- open and close ----------------------------------------------------------------------- */

int weft_mpi_Open_port(MPI_Info info, char *port_name)
{
	struct opened *o = calloc(1, sizeof(*o));
	weft_err err = o ? weft_comm_port_open(&o->port) : WEFT_ERR_NOMEM;

	(void)info;
	if (err) {
		free(o);
		return weft_mpi_err(MPI_ERR_OTHER, "no port can be opened: %s", weft_strerror(err));
	}
	strcpy(port_name, weft_comm_port_name(o->port));
	pthread_mutex_lock(&lock);
	o->next = all;
	all = o;
	pthread_mutex_unlock(&lock);
	return MPI_SUCCESS;
}

/* NULL: no port of this process has that name. */
static struct opened **find_locked(const char *name)
{
	weft_assert_held(weft_mutex, &lock);
	struct opened **link = &all;

	/* Ends with the list. */
	while (*link && strcmp(weft_comm_port_name((*link)->port), name) != 0)
		link = &(*link)->next;
	return *link ? link : NULL;
}

static void port_free(struct opened *o)
{
	weft_comm_port_close(o->port);
	free(o);
}

int weft_mpi_Close_port(const char *port_name)
{
	pthread_mutex_lock(&lock);
	struct opened **link = find_locked(port_name), *o = NULL;
	bool free_now = false;
	if (link) {
		o = *link;
		*link = o->next;
		o->closed = true;
		free_now = o->users == 0;
		if (!free_now)
			weft_comm_port_cancel(o->port);
	}
	pthread_mutex_unlock(&lock);
	if (!o)
		return weft_mpi_err(MPI_ERR_PORT, "this process has not opened that port");
	if (free_now)
		port_free(o);
	return MPI_SUCCESS;
}

static struct opened *port_use(const char *name)
{
	pthread_mutex_lock(&lock);
	struct opened **link = find_locked(name), *o = link ? *link : NULL;
	if (o)
		o->users++;
	pthread_mutex_unlock(&lock);
	return o;
}

static void port_unuse(struct opened *o)
{
	pthread_mutex_lock(&lock);
	bool last = --o->users == 0 && o->closed;
	pthread_mutex_unlock(&lock);
	if (last)
		port_free(o);
}

void weft_mpi_ports_fini(void)
{
	/* Ends: each round closes one.  No accept is under way in MPI_Finalize. */
	for (struct opened *o; (o = all) != NULL;) {
		all = o->next;
		port_free(o);
	}
}

/* ---- a wire over a line ------------------------------------------------------------------- */

static int line_swap(void *arg, const void *out, size_t out_len, void **in_p, size_t *in_len_p)
{
	weft_err err = weft_comm_line_swap(arg, out, out_len, in_p, in_len_p);

	return err ? weft_mpi_err(MPI_ERR_OTHER, "the other side hung up: %s", weft_strerror(err))
		   : MPI_SUCCESS;
}

int weft_mpi_meet_by_line(struct weft_mpi_comm *local, int root, struct weft_comm_line *line,
			  int failed, int note[2], struct weft_mpi_comm **inter_p)
{
	struct weft_mpi_wire wire = {.arg = line, .swap = line_swap};

	if (line)
		wire.secret = weft_comm_line_secret(line);
	int err = weft_mpi_meet(local, root, line ? &wire : NULL, failed, note, local, inter_p);
	if (line)
		weft_comm_line_close(line);
	return err;
}

/* ---- accept and connect ------------------------------------------------------------------- */

/* What accept, connect and spawn check alike. */
int weft_mpi_dyn_check(const struct weft_mpi_comm *c, int root)
{
	if (c->inter)
		return weft_mpi_err(MPI_ERR_COMM, "the communicator is an intercommunicator");
	if (root < 0 || root >= c->size)
		return weft_mpi_err(MPI_ERR_ROOT, "invalid root %d (communicator has %d ranks)",
				    root, c->size);
	return MPI_SUCCESS;
}

/* The info key timeout, in seconds; `usual` without. */
static uint64_t timeout_of(MPI_Info info, uint64_t usual)
{
	char text[32], *end;

	if (!weft_mpi_info_of(info) ||
	    !weft_mpi_info_look(weft_mpi_info_of(info), "timeout", text, sizeof(text)))
		return usual;
	double s = strtod(text, &end);
	return end == text || *end || !(s >= 0 && s < 1e9) ? usual : (uint64_t)(s * 1e9);
}

static uint64_t connect_timeout(MPI_Info info)
{
	uint64_t s = (uint64_t)weft_setting_int(WEFT_SET_ACCEPT_TIMEOUT);

	return timeout_of(info, s ? s * 1000000000u : WEFT_FOREVER);
}

static int accept_caller(struct opened *o, uint64_t timeout, struct weft_comm_line **line_p)
{
	weft_err err = weft_comm_port_accept(o->port, timeout, line_p);

	if (err == WEFT_ERR_CANCELLED)
		return weft_mpi_err(MPI_ERR_PORT, "the port was closed meanwhile");
	if (err == WEFT_ERR_TIMEOUT)
		return weft_mpi_err(MPI_ERR_PORT, "no process has connected in time");
	return err ? weft_mpi_err(MPI_ERR_OTHER, "accept: %s", weft_strerror(err)) : MPI_SUCCESS;
}

static int call_port(const char *name, uint64_t timeout, struct weft_comm_line **line_p)
{
	switch (weft_comm_port_call(name, timeout, line_p)) {
	case WEFT_OK:
		return MPI_SUCCESS;
	case WEFT_ERR_NOENT:
		return weft_mpi_err(MPI_ERR_PORT, "no process listens at that port: the name is "
						  "wrong, or the port was closed");
	case WEFT_ERR_AUTH:
		return weft_mpi_err(MPI_ERR_PORT,
				    "the port's owner refuses: the name is not that of its port");
	case WEFT_ERR_TIMEOUT:
		return weft_mpi_err(MPI_ERR_PORT, "the port's owner has not accepted in time");
	default:
		return weft_mpi_err(MPI_ERR_PORT, "the port cannot be reached from here");
	}
}

static int name_new_comm(int err, struct weft_mpi_comm *inter, MPI_Comm *newcomm)
{
	*newcomm = MPI_COMM_NULL;
	return err ? err : weft_mpi_comm_name(inter, newcomm);
}

int weft_mpi_Comm_accept(const char *port_name, MPI_Info info, int root, MPI_Comm comm,
			 MPI_Comm *newcomm)
{
	struct weft_mpi_comm *c = weft_mpi_comm_of(comm), *inter = NULL;
	struct weft_comm_line *line = NULL;
	struct opened *o = NULL;
	int failed = MPI_SUCCESS, err = weft_mpi_dyn_check(c, root);

	if (err)
		return err;
	if (c->rank == root) {
		o = port_name ? port_use(port_name) : NULL;
		failed = o ? accept_caller(o, timeout_of(info, WEFT_FOREVER), &line)
			   : weft_mpi_err(MPI_ERR_PORT, "this process has not opened that port");
	}
	err = weft_mpi_meet_by_line(c, root, line, failed, NULL, &inter);
	if (o)
		port_unuse(o);
	return name_new_comm(err, inter, newcomm);
}

int weft_mpi_Comm_connect(const char *port_name, MPI_Info info, int root, MPI_Comm comm,
			  MPI_Comm *newcomm)
{
	struct weft_mpi_comm *c = weft_mpi_comm_of(comm), *inter = NULL;
	struct weft_comm_line *line = NULL;
	int failed = MPI_SUCCESS, err = weft_mpi_dyn_check(c, root);

	if (err)
		return err;
	if (c->rank == root)
		failed = !port_name ? weft_mpi_err(MPI_ERR_ARG, "port_name is a null pointer")
				    : call_port(port_name, connect_timeout(info), &line);
	err = weft_mpi_meet_by_line(c, root, line, failed, NULL, &inter);
	return name_new_comm(err, inter, newcomm);
}

/* ---- disconnect --------------------------------------------------------------------------- */

/* The members of our side, by connections that are there. */
static struct weft_mpi_talk talk_of_side(struct weft_mpi_comm *c)
{
	if (!c->before)
		return weft_mpi_talk_all(c->inter ? c->local : c);
	return (struct weft_mpi_talk){.ctx = c->before->coll,
				      .rank = c->rank,
				      .size = c->size,
				      .world = c->before->group->world,
				      .tag = c->parting_tag};
}

/* When it returns, every member of both groups has called it. */
static int meet_members(struct weft_mpi_comm *c)
{
	struct weft_mpi_talk t = talk_of_side(c);
	char out = 0, in;
	int tag = weft_mpi_comm_talk_tag(c), err = weft_mpi_talk_ack(&t, 0);

	if (!err && c->inter && c->rank == 0)
		err = weft_mpi_talk_swap(c->coll, weft_mpi_comm_peer(c, 0), tag, &out, 1, &in, 1);
	return weft_mpi_talk_bcast_unless(&t, 0, err, &out, 1);
}

int weft_mpi_Comm_disconnect(MPI_Comm *comm)
{
	struct weft_mpi_comm *c = weft_mpi_comm_of(*comm);

	if (!c)
		return weft_mpi_err(MPI_ERR_COMM, "invalid communicator (null or freed)");
	if (c->head.permanent)
		return weft_mpi_err(MPI_ERR_COMM, "%s cannot be disconnected", c->name);
	weft_mpi_comm_ref(c);
	/* Relaxed: read by this thread as it waits, or as a hint. */
	atomic_store_explicit(&c->x_parting, true, memory_order_relaxed);
	int err = meet_members(c);
	atomic_store_explicit(&c->x_parting, false, memory_order_relaxed);
	if (err)
		weft_mpi_blame(c);
	else
		err = weft_mpi_Comm_free(comm);
	weft_mpi_comm_unref(c);
	weft_mpi_domains_sweep();
	return err;
}
