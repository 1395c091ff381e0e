/* SPDX-License-Identifier: BSD-3-Clause */
/* topo_map.c - all members learn where all run, and each finds the same permutation (topo/remap.h). */
#include "mpi/topo/topo_map.h"

#include <stdlib.h>
#include "mpi/comm/place.h"

int weft_mpi_topo_map(struct weft_mpi_comm *c, const struct weft_topo_graph *g, int *node_p)
{
	int err;

	*node_p = c->rank;
	if (g->n < 2 || g->n > WEFT_TOPO_MAP_MOST)
		return MPI_SUCCESS;
	struct weft_topo_place *place = weft_mpi_place_gather(c, &err);
	if (!place)
		return err;
	err = MPI_SUCCESS;
	if (c->rank < g->n) {
		int *node = malloc((size_t)g->n * sizeof *node);
		if (node && !weft_topo_remap(g, place, node))
			*node_p = node[c->rank];
		else
			err = weft_mpi_err(MPI_ERR_NO_MEM, "no memory to reorder ranks");
		free(node);
	}
	free(place);
	return err;
}
