/* SPDX-License-Identifier: BSD-3-Clause */
/* comm.c - communicators: their life, and what one can ask them. */
#include "mpi/comm/comm_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/p2p/bsend.h"
#include "mpi/errhandler.h"
#include "mpi/error.h"
#include "mpi/comm/group.h"
#include "mpi/info.h"
#include "mpi/session/session.h"
#include <weft/progress.h>

static struct weft_mpi_comm *world_comm, *self_comm;

/* ---- building ----------------------------------------------------------------------------- */

static bool is_identity(const struct weft_mpi_group *g)
{
	for (int r = 0; r < g->size; r++)
		if (g->world[r] != r)
			return false;
	return true;
}

/* Opens both contexts of c->id. */
static int contexts_open(struct weft_mpi_comm *c)
{
	weft_err err = weft_comm_ctx_open(c->group->domain->core, 2 * c->id, &c->p2p);

	if (err)
		return weft_mpi_err_of(err);
	err = weft_comm_ctx_open(c->group->domain->core, 2 * c->id | WEFT_CTX_COUNTED, &c->coll);
	if (err) {
		weft_comm_ctx_close(c->p2p);
		return weft_mpi_err_of(err);
	}
	weft_comm_ctx_set_name(c->coll, c->name);
	weft_comm_ctx_set_name(c->p2p, c->name);
	return MPI_SUCCESS;
}

int weft_mpi_comm_build(const struct weft_mpi_comm_plan *plan, struct weft_mpi_comm **comm_p)
{
	struct weft_mpi_comm *c = calloc(1, sizeof(*c));

	if (!c)
		return weft_mpi_err(MPI_ERR_NO_MEM, "out of memory");
	c->id = plan->id;
	c->group = plan->group;
	int err = contexts_open(c);
	if (err) {
		free(c);
		return err;
	}
	weft_mpi_domain_use(c->group->domain);
	atomic_init(&c->head.x_refs, 1);
	c->head.kind = WEFT_MPI_COMM;
	c->keeper = plan->keeper;
	weft_mpi_group_ref(c->group);
	c->inter = plan->remote != NULL;
	c->remote = weft_mpi_group_ref(c->inter ? plan->remote : plan->group);
	c->local = plan->local;
	c->rank = c->group->rank;
	c->size = c->group->size;
	c->peers = c->remote->size;
	c->peer = is_identity(c->remote) ? NULL : c->remote->world;
	c->session = weft_mpi_session_use(plan->parent ? plan->parent->session : c->group->session);
	c->topo_kind = MPI_UNDEFINED;
	c->file = MPI_FILE_NULL;
	c->win = MPI_WIN_NULL;
	pthread_mutex_init(&c->lock, NULL);
	c->errhandler = weft_mpi_errhandler_initial();
	if (plan->parent) {
		pthread_mutex_lock(&plan->parent->lock);
		c->errhandler = plan->parent->errhandler;
		weft_mpi_errhandler_ref(c->errhandler);
		pthread_mutex_unlock(&plan->parent->lock);
	} else {
		weft_mpi_errhandler_ref(c->errhandler);
	}
	*comm_p = c;
	return MPI_SUCCESS;
}

void weft_mpi_comm_unref_last(struct weft_mpi_comm *c)
{
	if (c->coll_cache && c->coll_cache_free)
		c->coll_cache_free(c->coll_cache);
	if (c->topo && c->topo_ops && c->topo_ops->free)
		c->topo_ops->free(c->topo);
	weft_comm_ctx_close(c->p2p);
	weft_comm_ctx_close(c->coll);
	if (c->part_match)
		weft_comm_ctx_close(c->part_match);
	if (c->part_data)
		weft_comm_ctx_close(c->part_data);
	struct weft_mpi_domain *d = c->group->domain;
	weft_mpi_id_closed(d->ids, c->id, c->keeper, c->group->world[c->rank],
			   c->size + (c->inter ? c->peers : 0) - 1);
	struct weft_mpi_session *session = c->session;
	weft_mpi_group_unref(c->group);
	weft_mpi_group_unref(c->remote);
	if (c->local)
		weft_mpi_comm_unref(c->local);
	if (c->before)
		weft_mpi_comm_unref(c->before);
	weft_mpi_info_free(c->info);
	weft_mpi_errhandler_unref(c->errhandler);
	pthread_mutex_destroy(&c->lock);
	free(c);
	weft_mpi_session_unuse(session);
	weft_mpi_domain_unuse(d);
}

int weft_mpi_comm_name(struct weft_mpi_comm *c, MPI_Comm *handle_p)
{
	if (weft_mpi_object_new(&c->head, WEFT_MPI_COMM)) {
		weft_mpi_comm_unref(c);
		return weft_mpi_err(MPI_ERR_NO_MEM, "out of handles");
	}
	*handle_p = (MPI_Comm)(uintptr_t)c->head.handle;
	return MPI_SUCCESS;
}

/* ---- the predefined ones ------------------------------------------------------------------ */

void weft_mpi_comms_show(bool on)
{
	weft_mpi_predefined[world_comm->head.handle] = on ? &world_comm->head : NULL;
	weft_mpi_predefined[self_comm->head.handle] = on ? &self_comm->head : NULL;
}

static int predefine_comm(uint32_t id, int first, int n, MPI_Comm handle, const char *name,
			  struct weft_mpi_comm **comm_p)
{
	int *world = malloc((size_t)n * sizeof(*world));
	struct weft_mpi_comm_plan plan = {.id = id, .keeper = -1};

	if (!world)
		return MPI_ERR_NO_MEM;
	for (int r = 0; r < n; r++)
		world[r] = first + r;
	plan.group = weft_mpi_group_make(n, world);
	free(world);
	if (!plan.group)
		return MPI_ERR_NO_MEM;
	int err = weft_mpi_comm_build(&plan, comm_p);
	weft_mpi_group_unref(plan.group);
	if (err)
		return err;
	snprintf((*comm_p)->name, sizeof((*comm_p)->name), "%s", name);
	weft_mpi_object_predefine(&(*comm_p)->head, WEFT_MPI_COMM, handle);
	return MPI_SUCCESS;
}

int weft_mpi_comms_init(int rank, int size)
{
	int err = weft_mpi_domains_init(rank, size);
	if (!err)
		err = predefine_comm(WEFT_MPI_ID_WORLD, 0, size, MPI_COMM_WORLD, "MPI_COMM_WORLD",
				     &world_comm);
	if (!err)
		err = predefine_comm(WEFT_MPI_ID_SELF, rank, 1, MPI_COMM_SELF, "MPI_COMM_SELF",
				     &self_comm);
	return err;
}

void weft_mpi_comms_fini(void)
{
	struct weft_mpi_comm *both[] = {self_comm, world_comm};

	for (int i = 0; i < 2; i++) {
		if (!both[i])
			continue;
		weft_mpi_predefined[both[i]->head.handle] = NULL;
		weft_mpi_comm_unref_last(both[i]);
	}
	self_comm = world_comm = NULL;
	weft_mpi_domains_fini();
}

/* ---- questions ---------------------------------------------------------------------------- */

int weft_mpi_Comm_size(MPI_Comm comm, int *size)
{
	*size = weft_mpi_comm_of(comm)->size;
	return MPI_SUCCESS;
}

int weft_mpi_Comm_rank(MPI_Comm comm, int *rank)
{
	*rank = weft_mpi_comm_of(comm)->rank;
	return MPI_SUCCESS;
}

int weft_mpi_Comm_test_inter(MPI_Comm comm, int *flag)
{
	*flag = weft_mpi_comm_of(comm)->inter;
	return MPI_SUCCESS;
}

int weft_mpi_Comm_remote_size(MPI_Comm comm, int *size)
{
	struct weft_mpi_comm *c = weft_mpi_comm_of(comm);

	if (!c->inter)
		return weft_mpi_err(MPI_ERR_COMM, "not an intercommunicator");
	*size = c->peers;
	return MPI_SUCCESS;
}

/* A group of its own for each caller: groups are small, and freed handles stay recognisable. */
static int group_copy(struct weft_mpi_group *g, MPI_Group *group)
{
	return weft_mpi_group_name(weft_mpi_group_make_in(g->domain, g->size, g->world), group);
}

int weft_mpi_Comm_group(MPI_Comm comm, MPI_Group *group)
{
	return group_copy(weft_mpi_comm_of(comm)->group, group);
}

int weft_mpi_Comm_remote_group(MPI_Comm comm, MPI_Group *group)
{
	struct weft_mpi_comm *c = weft_mpi_comm_of(comm);

	if (!c->inter)
		return weft_mpi_err(MPI_ERR_COMM, "not an intercommunicator");
	return group_copy(c->remote, group);
}

int weft_mpi_Comm_compare(MPI_Comm comm1, MPI_Comm comm2, int *result)
{
	struct weft_mpi_comm *a = weft_mpi_comm_of(comm1), *b = weft_mpi_comm_of(comm2);

	if (a == b) {
		*result = MPI_IDENT;
		return MPI_SUCCESS;
	}
	*result = MPI_UNEQUAL;
	if (a->inter != b->inter)
		return MPI_SUCCESS;
	int local = weft_mpi_group_compare(a->group, b->group);
	int remote = weft_mpi_group_compare(a->remote, b->remote);
	if (local == MPI_IDENT && remote == MPI_IDENT)
		*result = MPI_CONGRUENT;
	else if (local != MPI_UNEQUAL && remote != MPI_UNEQUAL)
		*result = MPI_SIMILAR;
	return MPI_SUCCESS;
}

int weft_mpi_Comm_set_name(MPI_Comm comm, const char *comm_name)
{
	struct weft_mpi_comm *c = weft_mpi_comm_of(comm);

	pthread_mutex_lock(&c->lock);
	snprintf(c->name, sizeof(c->name), "%s", comm_name);
	pthread_mutex_unlock(&c->lock);
	return MPI_SUCCESS;
}

int weft_mpi_Comm_get_name(MPI_Comm comm, char *comm_name, int *resultlen)
{
	struct weft_mpi_comm *c = weft_mpi_comm_of(comm);

	if (!c) {
		if (comm != MPI_COMM_NULL)
			return weft_mpi_err(MPI_ERR_COMM, "invalid communicator (wild or freed)");
		memcpy(comm_name, "MPI_COMM_NULL", sizeof("MPI_COMM_NULL"));
		*resultlen = (int)strlen(comm_name);
		return MPI_SUCCESS;
	}
	pthread_mutex_lock(&c->lock);
	memcpy(comm_name, c->name, sizeof(c->name));
	pthread_mutex_unlock(&c->lock);
	*resultlen = (int)strlen(comm_name);
	return MPI_SUCCESS;
}

/* ---- info --------------------------------------------------------------------------------- */

static bool info_true(struct weft_mpi_info *i, const char *key)
{
	char buf[8];

	return weft_mpi_info_look(i, key, buf, sizeof(buf)) && strcmp(buf, "true") == 0;
}

/* weft_priority: what is no number, or out of range, is none. */
static int info_priority(struct weft_mpi_info *i)
{
	char buf[8], *end;

	if (!weft_mpi_info_look(i, "weft_priority", buf, sizeof(buf)))
		return 0;
	long n = strtol(buf, &end, 10);
	return *end || n < INT16_MIN || n > INT16_MAX ? 0 : (int)n;
}

void weft_mpi_comm_info_use(struct weft_mpi_comm *c, struct weft_mpi_info *info)
{
	pthread_mutex_lock(&c->lock);
	struct weft_mpi_info *old = c->info;
	c->info = info;
	weft_comm_ctx_hint(c->p2p, info_true(info, "mpi_assert_no_any_source"),
			   info_true(info, "mpi_assert_no_any_tag"),
			   info_true(info, "mpi_assert_allow_overtaking"));
	weft_comm_ctx_priority(c->p2p, info_priority(info));
	pthread_mutex_unlock(&c->lock);
	weft_mpi_info_free(old);
}

/* The keys of weft/progress.h: they speak of the process or thread, so they count on
 * MPI_COMM_WORLD alone, and when given, not when inherited. */
static int progress_keys(struct weft_mpi_info *i)
{
	static const struct {
		const char *key;
		void (*set)(bool on);
	} keys[] = {{"weft_progress", weft_progress_set},
		    {"weft_progress_thread", weft_progress_thread_set}};
	char value[MPI_MAX_INFO_VAL + 1];

	for (size_t k = 0; k < weft_countof(keys); k++) {
		if (!weft_mpi_info_look(i, keys[k].key, value, sizeof(value)))
			continue;
		bool on = strcmp(value, "on") == 0;
		if (!on && strcmp(value, "off") != 0)
			return weft_mpi_err(MPI_ERR_INFO_VALUE, "%s is '%s': give on or off",
					    keys[k].key, value);
		keys[k].set(on);
	}
	return MPI_SUCCESS;
}

int weft_mpi_Comm_set_info(MPI_Comm comm, MPI_Info info)
{
	if (comm == MPI_COMM_WORLD) {
		int err = progress_keys(weft_mpi_info_of(info));
		if (err)
			return err;
	}
	struct weft_mpi_info *copy = weft_mpi_info_copy(weft_mpi_info_of(info));

	if (!copy)
		return weft_mpi_err(MPI_ERR_NO_MEM, "out of memory");
	weft_mpi_comm_info_use(weft_mpi_comm_of(comm), copy);
	return MPI_SUCCESS;
}

/* The hints of from that mean something here; those that are ignored are left out, as MPI asks. */
static struct weft_mpi_info *known_hints(struct weft_mpi_info *from)
{
	static const char *const known[] = {
		"mpi_assert_no_any_source",      "mpi_assert_no_any_tag",
		"mpi_assert_allow_overtaking",   "mpi_assert_exact_length",
		"mpi_assert_memory_alloc_kinds", "weft_progress",
		"weft_progress_thread",          "weft_priority"};
	char value[MPI_MAX_INFO_VAL + 1];
	struct weft_mpi_info *to = weft_mpi_info_copy(NULL);

	for (size_t k = 0; to && from && k < weft_countof(known); k++)
		if (weft_mpi_info_look(from, known[k], value, sizeof(value)) &&
		    weft_mpi_info_put(to, known[k], value)) {
			weft_mpi_info_free(to);
			to = NULL;
		}
	if (to && weft_mpi_info_put_memory_kinds(to)) {
		weft_mpi_info_free(to);
		to = NULL;
	}
	return to;
}

int weft_mpi_Comm_get_info(MPI_Comm comm, MPI_Info *info_used)
{
	struct weft_mpi_comm *c = weft_mpi_comm_of(comm);

	pthread_mutex_lock(&c->lock);
	struct weft_mpi_info *copy = known_hints(c->info);
	pthread_mutex_unlock(&c->lock);
	return weft_mpi_info_name(copy, info_used);
}

/* ---- end ---------------------------------------------------------------------------------- */

int weft_mpi_Comm_free(MPI_Comm *comm)
{
	struct weft_mpi_comm *c = weft_mpi_comm_of(*comm);

	if (!c)
		return weft_mpi_err(MPI_ERR_COMM, "invalid communicator (null or freed)");
	if (c->head.permanent)
		return weft_mpi_err(MPI_ERR_COMM, "%s cannot be freed", c->name);
	int err = weft_mpi_attrs_free(&c->head);
	if (err) {
		weft_mpi_blame(c);
		return err;
	}
	weft_mpi_object_retire(&c->head);
	*comm = MPI_COMM_NULL;
	weft_mpi_bsend_release(c->bsend);
	c->bsend = NULL;
	/* Operations that are still under way hold references. */
	weft_mpi_comm_unref(c);
	return MPI_SUCCESS;
}
