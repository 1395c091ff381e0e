/* SPDX-License-Identifier: BSD-3-Clause */
/* comm_hw.c - where members run, and communicators of those that share hardware or a process set. */
#include "mpi/comm/place.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "boot/psets.h"
#include "comm/comm.h"
#include "mpi/comm/comm_int.h"
#include "mpi/comm/domain.h"
#include "mpi/info.h"

#define INSTANCES WEFT_TOPO_INSTANCES_MAX

/* ---- places ------------------------------------------------------------------------------------ */

static int first_here(const struct weft_mpi_group *g, int first)
{
	for (int r = 0; r < g->size; r++)
		if (g->world[r] < first &&
		    (r == g->rank || weft_comm_same_host(g->domain->core, g->world[r])))
			first = g->world[r];
	return first;
}

/* The first process of c on our host, of either side: a colour that is the same for all ranks there. */
static int host_color(const struct weft_mpi_comm *c)
{
	int first = first_here(c->group, INT_MAX);

	return c->inter ? first_here(c->remote, first) : first;
}

void weft_mpi_place_here(const struct weft_mpi_comm *c, struct weft_topo_place *p)
{
	p->host = host_color(c);
	weft_topo_resource_here(p->at);
}

struct weft_topo_place *weft_mpi_place_gather(struct weft_mpi_comm *c, int *err_p)
{
	struct weft_mpi_talk t = weft_mpi_talk_all(c);
	struct weft_topo_place mine, *all = malloc((size_t)c->size * sizeof *all);

	if (!all) {
		*err_p = weft_mpi_err(MPI_ERR_NO_MEM, "out of memory");
		return NULL;
	}
	weft_mpi_place_here(c, &mine);
	*err_p = weft_mpi_talk_allgather(&t, &mine, all, sizeof mine);
	if (*err_p) {
		free(all);
		return NULL;
	}
	return all;
}

/* ---- split by kind ------------------------------------------------------------------------------ */

/* Of one host's instances; the same number on all members there. */
static int instance_color(int host, int instance, int *color_p)
{
	int color;

	if (__builtin_mul_overflow(host, INSTANCES, &color) || instance >= INSTANCES)
		return weft_mpi_err(MPI_ERR_OTHER,
				    "more hosts than a split by hardware can number");
	*color_p = color + instance;
	return MPI_SUCCESS;
}

/* A kind that this host lacks, or of which the process uses several: MPI_COMM_NULL. */
static int named_color(const struct weft_mpi_comm *c, const char *resource, int *color_p)
{
	struct weft_topo_place p;

	if (strcmp(resource, "mpi_shared_memory") == 0) {
		*color_p = host_color(c);
		return MPI_SUCCESS;
	}
	int kind = resource[0] ? weft_topo_resource_find(resource) : -1;
	if (kind < 0)
		return MPI_SUCCESS;
	weft_mpi_place_here(c, &p);
	return p.at[kind] < 0 ? MPI_SUCCESS : instance_color(p.host, p.at[kind], color_p);
}

/* Members of a process set; 0: in it. */
static int pset_color(const struct weft_mpi_comm *c, const char *name)
{
	struct weft_boot_pset set;
	int me = c->group->world[c->rank];

	if (strcmp(name, "mpi://WORLD") == 0)
		return 0;
	if (strcmp(name, "mpi://SELF") == 0)
		return me;
	if (weft_boot_psets_find(name, &set) &&
	    (weft_boot_psets_refresh() || weft_boot_psets_find(name, &set)))
		return MPI_UNDEFINED;
	for (int i = 0; i < set.size; i++)
		if (weft_boot_pset_rank(&set, i) == me)
			return weft_boot_pset_rank(&set, 0);
	return MPI_UNDEFINED;
}

/* The coarsest kind by which members differ: each gets those of its own instance. */
static int finer_color(struct weft_mpi_comm *c, int *color_p)
{
	int err, n = c->size, host_only;
	struct weft_topo_place *all = weft_mpi_place_gather(c, &err);

	if (!all)
		return err;
	host_only = 0;
	for (int r = 1; r < n; r++)
		host_only |= all[r].host != all[0].host;
	if (host_only)
		*color_p = all[c->rank].host;
	for (int k = 0; !host_only && k < WEFT_TOPO_RESOURCES_MAX; k++) {
		bool differ = false;
		for (int r = 1; r < n; r++)
			differ |= all[r].at[k] != all[0].at[k];
		if (!differ)
			continue;
		if (all[c->rank].at[k] >= 0)
			*color_p = all[c->rank].at[k];
		break;
	}
	free(all);
	return MPI_SUCCESS;
}

static int color_of(struct weft_mpi_comm *c, int split_type, MPI_Info info, int *color_p)
{
	struct weft_mpi_info *hints = weft_mpi_info_of(info);
	char resource[MPI_MAX_INFO_VAL] = "", set[MPI_MAX_INFO_VAL] = "";

	*color_p = MPI_UNDEFINED;
	switch (split_type) {
	case MPI_UNDEFINED:
		return MPI_SUCCESS;
	case MPI_COMM_TYPE_SHARED:
		*color_p = host_color(c);
		return MPI_SUCCESS;
	case MPI_COMM_TYPE_HW_UNGUIDED:
		if (!c->inter)
			return finer_color(c, color_p);
		*color_p = host_color(c); /* the two sides know each other's hosts alone */
		return MPI_SUCCESS;
	case MPI_COMM_TYPE_RESOURCE_GUIDED:
		if (weft_mpi_info_look(hints, "mpi_pset_name", set, sizeof set)) {
			*color_p = pset_color(c, set);
			return MPI_SUCCESS;
		}
		__attribute__((fallthrough));
	case MPI_COMM_TYPE_HW_GUIDED:
		(void)weft_mpi_info_look(hints, "mpi_hw_resource_type", resource, sizeof resource);
		return named_color(c, resource, color_p);
	default:
		return weft_mpi_err(MPI_ERR_ARG, "invalid split type %d", split_type);
	}
}

int weft_mpi_Comm_split_type(MPI_Comm comm, int split_type, int key, MPI_Info info,
			     MPI_Comm *newcomm)
{
	struct weft_mpi_comm *c = weft_mpi_comm_of(comm), *made = NULL;
	int color, err = color_of(c, split_type, info, &color);

	if (err)
		return err;
	*newcomm = MPI_COMM_NULL;
	if (c->inter)
		return weft_mpi_inter_split(c, color, key, newcomm);
	err = weft_mpi_comm_split(c, color, key, &made);
	return err || !made ? err : weft_mpi_comm_name(made, newcomm);
}

/* ---- what there is ------------------------------------------------------------------------------ */

int weft_mpi_Get_hw_resource_info(MPI_Info *hw_info)
{
	struct weft_mpi_info *i = weft_mpi_info_make();
	int here[WEFT_TOPO_RESOURCES_MAX], n = weft_topo_resources();
	int err = i ? weft_mpi_info_put(i, "mpi_shared_memory", "true") : MPI_SUCCESS;

	weft_topo_resource_here(here);
	for (int k = 0; i && k < n && !err; k++)
		err = weft_mpi_info_put(i, weft_topo_resource_name(k),
					here[k] < 0 ? "false" : "true");
	if (err) {
		weft_mpi_info_free(i);
		return err;
	}
	return weft_mpi_info_name(i, hw_info);
}
