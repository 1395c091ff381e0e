/* SPDX-License-Identifier: BSD-3-Clause */
/* team.c - which members of a file are aggregators of its collective accesses, by hosts and hints. */
#include <stdlib.h>
#include <string.h>

#include "base/settings.h"
#include "coll/calls.h"
#include "mpi/coll/coll_call.h"
#include "mpi/comm/domain.h"
#include "mpi/error.h"
#include "mpi/file/mpi_file.h"

/* Aggregators of a host, where no hint says otherwise: a second one copies while the first one writes. */
#define PER_HOST 2
#define TAG_SEQUENCE 0x7fffff
#define WINDOW_MIN ((int64_t)64 << 10)
#define WINDOW_MAX ((int64_t)1 << 30)

_Static_assert(WEFT_FILE_TAGS <= WEFT_COLL_TAGS,
	       "an access's tags lie within those of a collective");

int weft_mpi_file_team_tag(struct weft_mpi_file *f)
{
	struct weft_mpi_comm *c = f->comm;
	int number = weft_mpi_comm_coll_tag(c) & TAG_SEQUENCE;
	/* A member that waits long asks the others, as in a collective: one may be dead, or elsewhere. */
	if (weft_unlikely(!c->calls))
		c->calls = weft_coll_calls_open(c->coll);
	weft_coll_called(c->calls, (uint32_t)number, WEFT_COLL_FILE);
	return number * WEFT_COLL_TAGS;
}

/* on_host[r]: the how-manieth rank of its host r is. */
static void count_on_hosts(const struct weft_mpi_comm *c, int *on_host, int *hosts_p)
{
	struct weft_core *core = c->group->domain->core;
	*hosts_p = 0;
	for (int r = 0; r < c->size; r++) {
		const char *name = weft_comm_host(core, weft_mpi_comm_peer(c, r));
		on_host[r] = 0;
		for (int q = r - 1; q >= 0; q--) { /* ends: the nearest rank of the host */
			if (strcmp(name, weft_comm_host(core, weft_mpi_comm_peer(c, q))) != 0)
				continue;
			on_host[r] = on_host[q] + 1;
			break;
		}
		*hosts_p += on_host[r] == 0;
	}
}

/* `wanted` of them, the first rank of each host before the second of any. */
static void choose_aggregators(const struct weft_mpi_comm *c, int64_t wanted, bool *is,
			       int *on_host)
{
	int hosts;
	count_on_hosts(c, on_host, &hosts);
	if (wanted <= 0)
		wanted = (int64_t)hosts * PER_HOST;
	for (int turn = 0, n = 0; n < wanted && turn < c->size; turn++)
		for (int r = 0; n < wanted && r < c->size; r++)
			if (on_host[r] == turn) {
				is[r] = true;
				n++;
			}
}

/* What every member has to know alike comes from rank 0. */
struct terms {
	int64_t use, wanted, window, forced;
};

static int terms_agree(struct weft_mpi_file *f, struct terms *t)
{
	char value[16] = "true";
	weft_mpi_info_look(f->info, "collective_buffering", value, sizeof value);
	t->use = strcmp(value, "false") != 0;
	t->wanted = weft_mpi_file_hint(f, "cb_nodes", 0);
	t->window = weft_mpi_file_hint(f, "cb_buffer_size", (int64_t)16 << 20);
	if (t->window < WINDOW_MIN)
		t->window = WINDOW_MIN;
	if (t->window > WINDOW_MAX)
		t->window = WINDOW_MAX;
	const char *forced = weft_setting_str(WEFT_SET_FILE_STRATEGY);
	t->forced = !strcmp(forced, "straight")    ? WEFT_FILE_STRAIGHT
		    : !strcmp(forced, "two_phase") ? WEFT_FILE_TWO_PHASE
						   : -1;
	return weft_mpi_Bcast(t, sizeof *t, MPI_BYTE, 0, f->comm_handle);
}

int weft_mpi_file_team_open(struct weft_mpi_file *f)
{
	struct weft_mpi_comm *c = f->comm;
	struct terms t;
	if (c->size == 1)
		return MPI_SUCCESS;
	int err = terms_agree(f, &t);
	if (err || !t.use)
		return err;
	bool *is = calloc((size_t)c->size, sizeof *is);
	int *on_host = calloc((size_t)c->size, sizeof *on_host);
	err = MPI_ERR_NO_MEM;
	if (is && on_host) {
		choose_aggregators(c, t.wanted, is, on_host);
		struct weft_coll_group g;
		weft_mpi_coll_group(c, &g);
		if (!weft_file_team_open(&f->team, &g, is, f->file)) {
			f->team.window = (uint64_t)t.window;
			f->team.forced = (int)t.forced;
			err = weft_mpi_file_spares_make(f);
		}
	}
	free(is);
	free(on_host);
	return weft_mpi_file_agree(f,
				   err ? weft_mpi_err(err, "no memory for a file") : MPI_SUCCESS);
}
