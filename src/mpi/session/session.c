/* SPDX-License-Identifier: BSD-3-Clause */
/* session.c - sessions: their life, their process sets, and what is made of these. */
#include "mpi/session/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "boot/psets.h"
#include "mpi/comm/comm_int.h"
#include "mpi/comm/domain.h"
#include "mpi/comm/group.h"
#include "mpi/entry.h"
#include "mpi/errhandler.h"
#include "mpi/error.h"
#include "mpi/info.h"
#include "mpi/p2p/bsend.h"

/* ---- life --------------------------------------------------------------------------------- */

void weft_mpi_session_unref_last(struct weft_mpi_session *s)
{
	weft_mpi_info_free(s->info);
	weft_mpi_errhandler_unref(s->errhandler);
	pthread_mutex_destroy(&s->lock);
	free(s);
	weft_mpi_library_unuse();
}

struct weft_mpi_session *weft_mpi_session_use(struct weft_mpi_session *s)
{
	/* Relaxed: a count that finalize judges by; its order is the program's. */
	if (s)
		atomic_fetch_add_explicit(&s->x_comms, 1, memory_order_relaxed);
	return weft_mpi_session_ref(s);
}

void weft_mpi_session_unuse(struct weft_mpi_session *s)
{
	if (s)
		atomic_fetch_sub_explicit(&s->x_comms, 1, memory_order_relaxed); /* as in use */
	weft_mpi_session_unref(s);
}

static bool asks_for(MPI_Info info, const char *key, const char *value)
{
	char buf[8];

	return info != MPI_INFO_NULL &&
	       weft_mpi_info_look(weft_mpi_info_of(info), key, buf, sizeof(buf)) &&
	       strcmp(buf, value) == 0;
}

/* Every thread may call, whatever was asked for. */
static struct weft_mpi_info *info_used(bool strict)
{
	struct weft_mpi_info *i = weft_mpi_info_make();

	if (i && (weft_mpi_info_put(i, "thread_level", "MPI_THREAD_MULTIPLE") ||
		  weft_mpi_info_put_memory_kinds(i) ||
		  (strict && weft_mpi_info_put(i, "strict_finalize", "1")))) {
		weft_mpi_info_free(i);
		return NULL;
	}
	return i;
}

static int session_new(MPI_Info info, struct weft_mpi_errhandler *e, MPI_Session *session)
{
	struct weft_mpi_session *s = calloc(1, sizeof(*s));

	if (!s)
		return weft_mpi_err(MPI_ERR_NO_MEM, "out of memory");
	int err = weft_mpi_library_use();
	if (err) {
		free(s);
		return err;
	}
	atomic_init(&s->head.x_refs, 1);
	pthread_mutex_init(&s->lock, NULL);
	s->errhandler = weft_mpi_errhandler_ref(e);
	s->strict = asks_for(info, "strict_finalize", "1");
	s->info = info_used(s->strict);
	if (!s->info || weft_mpi_object_new(&s->head, WEFT_MPI_SESSION)) {
		weft_mpi_session_unref(s);
		return weft_mpi_err(MPI_ERR_NO_MEM, "out of memory");
	}
	*session = (MPI_Session)(uintptr_t)s->head.handle;
	return MPI_SUCCESS;
}

int weft_mpi_Session_init(MPI_Info info, MPI_Errhandler errhandler, MPI_Session *session)
{
	struct weft_mpi_errhandler *e = weft_mpi_errhandler_of(errhandler);

	*session = MPI_SESSION_NULL;
	if (e->what == WEFT_MPI_USER && e->object != WEFT_MPI_SESSION)
		return weft_mpi_err(MPI_ERR_ERRHANDLER,
				    "the error handler was not made for sessions");
	return session_new(info, e, session);
}

int weft_mpi_Session_finalize(MPI_Session *session)
{
	struct weft_mpi_session *s = weft_mpi_session_of(*session);

	if (!s)
		return weft_mpi_err(MPI_ERR_SESSION, "invalid session (null or finalized)");
	int comms = atomic_load_explicit(&s->x_comms, memory_order_relaxed); /* as in use */
	if (s->strict && comms) {
		weft_mpi_blame_handler(s->errhandler);
		return weft_mpi_err(MPI_ERR_PENDING,
				    "%d communicators of the session are not freed", comms);
	}
	*session = MPI_SESSION_NULL;
	weft_mpi_bsend_release(s->bsend);
	s->bsend = NULL;
	weft_mpi_object_retire(&s->head);
	weft_mpi_session_unref(s);
	return MPI_SUCCESS;
}

int weft_mpi_Session_get_info(MPI_Session session, MPI_Info *info_used)
{
	struct weft_mpi_session *s = weft_mpi_session_of(session);

	return weft_mpi_info_name(weft_mpi_info_copy(s->info), info_used);
}

/* ---- process sets ------------------------------------------------------------------------- */

/* A launcher that does not answer has no new ones. */
static void ask_launcher(void)
{
	weft_err err = weft_boot_psets_refresh();
	(void)err;
}

/* Sets that the launcher defines later keep the numbers of those before. */
int weft_mpi_Session_get_num_psets(MPI_Session session, MPI_Info info, int *npset_names)
{
	(void)session;
	(void)info; /* no key means anything */
	ask_launcher();
	*npset_names = weft_boot_psets_count();
	return MPI_SUCCESS;
}

int weft_mpi_Session_get_nth_pset(MPI_Session session, MPI_Info info, int n, int *pset_len,
				  char *pset_name)
{
	struct weft_boot_pset set;

	(void)session;
	(void)info;
	if (weft_boot_psets_at(n, &set))
		return weft_mpi_err(MPI_ERR_ARG, "there is no process set %d (there are %d)", n,
				    weft_boot_psets_count());
	if (*pset_len < 0)
		return weft_mpi_err(MPI_ERR_ARG, "pset_len is negative (%d)", *pset_len);
	int need = (int)strlen(set.name) + 1;
	if (*pset_len) {
		if (!pset_name)
			return weft_mpi_err(MPI_ERR_ARG, "argument pset_name is a null pointer");
		snprintf(pset_name, (size_t)*pset_len, "%s", set.name);
	}
	*pset_len = need;
	return MPI_SUCCESS;
}

/* A URI's authority knows no case: MPI's own sets are found as mpi://world, too. */
static bool find_own(const char *name, struct weft_boot_pset *set_p)
{
	static const char own[] = "mpi://";

	if (strncasecmp(name, own, sizeof(own) - 1) != 0)
		return false;
	for (int i = 0; weft_boot_psets_at(i, set_p) == WEFT_OK; i++) /* ends with the sets */
		if (strcasecmp(name, set_p->name) == 0)
			return true;
	return false;
}

static int find_pset(const char *name, struct weft_boot_pset *set_p)
{
	if (weft_boot_psets_find(name, set_p) == WEFT_OK || find_own(name, set_p))
		return MPI_SUCCESS;
	ask_launcher();
	if (weft_boot_psets_find(name, set_p) == WEFT_OK)
		return MPI_SUCCESS;
	return weft_mpi_err(MPI_ERR_ARG, "there is no process set '%s'", name);
}

int weft_mpi_Session_get_pset_info(MPI_Session session, const char *pset_name, MPI_Info *info)
{
	struct weft_boot_pset set;
	char size[16];

	(void)session;
	int err = find_pset(pset_name, &set);
	if (err)
		return err;
	snprintf(size, sizeof(size), "%d", set.size);
	struct weft_mpi_info *i = weft_mpi_info_make();
	if (i && weft_mpi_info_put(i, "mpi_size", size)) {
		weft_mpi_info_free(i);
		i = NULL;
	}
	return weft_mpi_info_name(i, info);
}

/* MPI: a name that is not known gives MPI_GROUP_NULL, and that is no error. */
int weft_mpi_Group_from_session_pset(MPI_Session session, const char *pset_name,
				     MPI_Group *newgroup)
{
	struct weft_mpi_session *s = weft_mpi_session_of(session);
	struct weft_boot_pset set;

	*newgroup = MPI_GROUP_NULL;
	if (find_pset(pset_name, &set))
		return MPI_SUCCESS;
	int *world = malloc((size_t)set.size * sizeof(*world) + 1);
	if (!world)
		return weft_mpi_err(MPI_ERR_NO_MEM, "out of memory");
	for (int i = 0; i < set.size; i++)
		world[i] = weft_boot_pset_rank(&set, i);
	struct weft_mpi_group *g = weft_mpi_group_make(set.size, world);
	free(world);
	if (g)
		g->session = weft_mpi_session_ref(s);
	return weft_mpi_group_name(g, newgroup);
}

/* ---- communicators ------------------------------------------------------------------------ */

/* The tag by which the members of a group meet: the same string, the same tag. */
static int tag_of(const char *string)
{
	uint32_t h = 2166136261u;

	for (; *string; string++)
		h = (h ^ (unsigned char)*string) * 16777619u;
	return (int)(h & 0x3fffffffu);
}

static int check_arguments(struct weft_mpi_group *g, const char *string,
			   struct weft_mpi_errhandler *e)
{
	if (strlen(string) >= MPI_MAX_STRINGTAG_LEN)
		return weft_mpi_err(MPI_ERR_ARG, "the string tag has more than %d letters",
				    MPI_MAX_STRINGTAG_LEN - 1);
	if (e->what == WEFT_MPI_USER && e->object != WEFT_MPI_COMM)
		return weft_mpi_err(MPI_ERR_ERRHANDLER,
				    "the error handler was not made for communicators");
	if (g->size && g->rank == MPI_UNDEFINED)
		return weft_mpi_err(MPI_ERR_GROUP, "this process is not in the group");
	if (g->size && g->domain != weft_mpi_home)
		return weft_mpi_err(MPI_ERR_GROUP, "the group has processes of another job");
	return MPI_SUCCESS;
}

static int finish_comm(struct weft_mpi_comm *c, MPI_Info info, struct weft_mpi_errhandler *e,
		       MPI_Comm *handle_p)
{
	struct weft_mpi_errhandler *old = c->errhandler;

	c->errhandler = weft_mpi_errhandler_ref(e);
	weft_mpi_errhandler_unref(old);
	int err = weft_mpi_comm_name(c, handle_p);
	return !err && info != MPI_INFO_NULL ? weft_mpi_Comm_set_info(*handle_p, info) : err;
}

int weft_mpi_Comm_create_from_group(MPI_Group group, const char *stringtag, MPI_Info info,
				    MPI_Errhandler errhandler, MPI_Comm *newcomm)
{
	struct weft_mpi_group *g = weft_mpi_group_of(group);
	struct weft_mpi_errhandler *e = weft_mpi_errhandler_of(errhandler);
	struct weft_mpi_comm *c;

	*newcomm = MPI_COMM_NULL;
	int err = check_arguments(g, stringtag, e);
	if (!err && !g->size)
		return MPI_SUCCESS;
	if (!err)
		err = weft_mpi_comm_make_in(weft_mpi_library_ctx(), NULL, g, tag_of(stringtag), &c);
	if (!err)
		err = finish_comm(c, info, e, newcomm);
	return err;
}

int weft_mpi_Intercomm_create_from_groups(MPI_Group local_group, int local_leader,
					  MPI_Group remote_group, int remote_leader,
					  const char *stringtag, MPI_Info info,
					  MPI_Errhandler errhandler, MPI_Comm *newintercomm)
{
	struct weft_mpi_group *g = weft_mpi_group_of(local_group);
	struct weft_mpi_group *r = weft_mpi_group_of(remote_group);
	struct weft_mpi_errhandler *e = weft_mpi_errhandler_of(errhandler);
	struct weft_mpi_comm *local = NULL, *c = NULL;

	*newintercomm = MPI_COMM_NULL;
	int err = check_arguments(g, stringtag, e);
	if (!err && (!g->size || !r->size))
		return MPI_SUCCESS;
	if (!err && (local_leader < 0 || local_leader >= g->size))
		err = weft_mpi_err(MPI_ERR_RANK,
				   "invalid local leader %d (the group has %d processes)",
				   local_leader, g->size);
	if (!err && (remote_leader < 0 || remote_leader >= r->size))
		err = weft_mpi_err(MPI_ERR_RANK,
				   "invalid remote leader %d (the group has %d processes)",
				   remote_leader, r->size);
	for (int i = 0; !err && i < r->size; i++)
		if (weft_mpi_group_rank_of(g, r->world[i]) != MPI_UNDEFINED)
			err = weft_mpi_err(MPI_ERR_GROUP, "a process is in both groups");
	int tag = tag_of(stringtag);
	if (!err)
		err = weft_mpi_comm_make_in(weft_mpi_library_ctx(), NULL, g, tag, &local);
	if (!err) {
		err = weft_mpi_inter_make(local, local_leader, weft_mpi_library_ctx(),
					  r->world[remote_leader], WEFT_MPI_TAG_GROUP | tag, local,
					  &c);
		weft_mpi_comm_unref(local);
	}
	if (!err)
		err = finish_comm(c, info, e, newintercomm);
	return err;
}
