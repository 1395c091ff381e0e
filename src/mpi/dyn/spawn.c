/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * spawn.c - MPI_Comm_spawn and what a spawned job does in MPI_Init.
 *
 * The root opens a port for this one spawn and has the children started by an agent; the first of
 * them calls the port, and the two groups meet as in accept and connect.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weft/source.h>

#include "base/log.h"
#include "comm/meet/port.h"
#include "mpi/dyn/agent.h"
#include "mpi/dyn/dyn.h"
#include "mpi/dyn/spawn_plan.h"

static MPI_Comm parent = MPI_COMM_NULL;

/* ---- the root ----------------------------------------------------------------------------- */

static bool agent_speaks(struct weft_event *ev)
{
	weft_comm_port_cancel(ev->user);
	return false;
}

/* Waits for the first child's call, or for the agent's word that there will be none. */
static weft_err await_call(struct weft_comm_port *port, const struct weft_mpi_agent *agent,
			   struct weft_comm_line **line_p)
{
	struct weft_events *es;
	struct weft_event ev;
	weft_err err = weft_events_open_fds(&es);

	if (err)
		return err;
	weft_event_init(&ev, agent_speaks, port);
	err = weft_event_post_fd(es, &ev, agent->fd, POLLIN);
	if (!err) {
		err = weft_comm_port_accept(port, WEFT_FOREVER, line_p);
		weft_event_cancel(&ev);
		(void)weft_event_wait(&ev, WEFT_FOREVER);
	}
	(void)weft_events_close(es);
	return err;
}

static int told_why(struct weft_mpi_agent *agent)
{
	struct weft_mpi_agent_word w;

	if (!weft_mpi_agent_word(agent, &w))
		return weft_mpi_err(MPI_ERR_SPAWN,
				    "the started processes have ended before MPI_Init was over");
	if (w.step == 1)
		return weft_mpi_err(MPI_ERR_SPAWN, "process %d: its working directory: %s", w.rank,
				    strerror(w.error));
	return weft_mpi_err(MPI_ERR_SPAWN, "process %d cannot be started: %s", w.rank,
			    strerror(w.error));
}

struct spawning {
	struct weft_mpi_spawn_plan plan;
	struct weft_comm_port *port;
	struct weft_mpi_agent agent;
	bool has_agent;
	struct weft_comm_line *line;
};

static int spawning_begin(struct spawning *s, const struct weft_mpi_spawn_program *program,
			  int count)
{
	int err = weft_mpi_spawn_plan_make(program, count, &s->plan);

	if (err)
		return err;
	weft_err no_port = weft_comm_port_open(&s->port);
	if (no_port)
		return weft_mpi_err(MPI_ERR_SPAWN, "no port for the children can be opened: %s",
				    weft_strerror(no_port));
	err = weft_mpi_agent_start(s->plan.argv, weft_comm_port_name(s->port), &s->agent);
	if (err)
		return err;
	s->has_agent = true;
	weft_err lost = await_call(s->port, &s->agent, &s->line);
	return lost ? told_why(&s->agent) : MPI_SUCCESS;
}

static void spawning_end(struct spawning *s, bool good)
{
	if (s->has_agent && good)
		weft_mpi_agent_release(&s->agent);
	else if (s->has_agent)
		weft_mpi_agent_end(&s->agent);
	if (s->port)
		weft_comm_port_close(s->port);
	weft_mpi_spawn_plan_fini(&s->plan);
}

/* ---- for all ------------------------------------------------------------------------------ */

static int spawn_programs(const struct weft_mpi_spawn_program *program, int count, int root,
			  MPI_Comm comm, MPI_Comm *intercomm, int *codes)
{
	struct weft_mpi_comm *c = weft_mpi_comm_of(comm), *inter = NULL;
	struct spawning s = {0};
	int failed = MPI_SUCCESS;

	*intercomm = MPI_COMM_NULL;
	if (c->rank == root)
		failed = spawning_begin(&s, program, count);
	/* Processes that were asked for, and those that were started: MPI_Comm_spawn's codes. */
	int told[2] = {s.plan.asked, s.plan.started};
	int err = weft_mpi_meet_by_line(c, root, s.line, failed, told, &inter);
	if (err && !failed && c->rank == root)
		err = weft_mpi_err(MPI_ERR_SPAWN,
				   "the started processes were lost before they were connected");
	for (int i = 0; i < told[0] && codes != MPI_ERRCODES_IGNORE; i++)
		codes[i] = !err && i < told[1] ? MPI_SUCCESS : MPI_ERR_SPAWN;
	if (c->rank == root)
		spawning_end(&s, !err);
	return err ? err : weft_mpi_comm_name(inter, intercomm);
}

int weft_mpi_Comm_spawn(const char *command, char *argv[], int maxprocs, MPI_Info info, int root,
			MPI_Comm comm, MPI_Comm *intercomm, int array_of_errcodes[])
{
	struct weft_mpi_spawn_program program = {command, argv, maxprocs, info};
	int err = weft_mpi_dyn_check(weft_mpi_comm_of(comm), root);

	return err ? err : spawn_programs(&program, 1, root, comm, intercomm, array_of_errcodes);
}

int weft_mpi_Comm_spawn_multiple(int count, char *array_of_commands[], char **array_of_argv[],
				 const int array_of_maxprocs[], const MPI_Info array_of_info[],
				 int root, MPI_Comm comm, MPI_Comm *intercomm,
				 int array_of_errcodes[])
{
	struct weft_mpi_comm *c = weft_mpi_comm_of(comm);
	struct weft_mpi_spawn_program *program = NULL;
	int err = weft_mpi_dyn_check(c, root);

	if (err)
		return err;
	/* The root's arguments alone mean something; a wrong count there fails as its plan does. */
	int n = c->rank == root && count > 0 ? count : 0;
	program = calloc((size_t)n + 1, sizeof(*program));
	if (!program)
		return weft_mpi_err(MPI_ERR_NO_MEM, "out of memory");
	for (int i = 0; i < n; i++)
		program[i] = (struct weft_mpi_spawn_program){
			array_of_commands[i],
			array_of_argv == MPI_ARGVS_NULL ? MPI_ARGV_NULL : array_of_argv[i],
			array_of_maxprocs[i], array_of_info[i]};
	/* An empty program fails where it is read. */
	err = spawn_programs(program, n ? n : 1, root, comm, intercomm, array_of_errcodes);
	free(program);
	return err;
}

/* ---- the children ------------------------------------------------------------------------- */

int weft_mpi_dyn_init(void)
{
	const char *name = getenv("WEFT_SPAWN_PORT");
	struct weft_mpi_comm *world = weft_mpi_comm_of(MPI_COMM_WORLD), *inter = NULL;
	struct weft_comm_line *line = NULL;
	int failed = MPI_SUCCESS;

	if (!name)
		return MPI_SUCCESS;
	if (world->rank == 0) {
		weft_err err = weft_comm_port_call(name, WEFT_FOREVER, &line);
		if (err) {
			weft_error("the process that has started this one cannot be reached: %s",
				   weft_strerror(err));
			failed = MPI_ERR_SPAWN;
		}
	}
	/* What this process starts is not spawned by that parent. */
	unsetenv("WEFT_SPAWN_PORT");
	int err = weft_mpi_meet_by_line(world, 0, line, failed, NULL, &inter);
	if (!err)
		err = weft_mpi_comm_name(inter, &parent);
	if (!err)
		snprintf(inter->name, sizeof(inter->name), "MPI_COMM_PARENT");
	return err;
}

int weft_mpi_Comm_get_parent(MPI_Comm *parent_p)
{
	/* Freed or disconnected, there is none any more. */
	*parent_p = weft_mpi_comm_of(parent) ? parent : MPI_COMM_NULL;
	return MPI_SUCCESS;
}

void weft_mpi_dyn_fini(void)
{
	weft_mpi_ports_fini();
	weft_mpi_names_fini();
}
