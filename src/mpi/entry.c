/* SPDX-License-Identifier: BSD-3-Clause */
/* entry.c - the cold half of the entry points' checks. */
#include "mpi/entry.h"
#include "mpi/aid/check.h"

#include <stdio.h>
#include <unistd.h>
#include "mpi/tool/event.h"

_Noreturn void weft_mpi_not_running(const char *func)
{
	int state = atomic_load_explicit(&weft_mpi_x_state, memory_order_relaxed);
	char line[256];
	int n;

	if (state == WEFT_MPI_FORKED)
		n = snprintf(line, sizeof(line),
			     "weft: %s: called in a process made by fork: only the process that "
			     "called MPI_Init may use MPI\n",
			     func);
	else if (state == WEFT_MPI_FINALIZED)
		n = snprintf(line, sizeof(line), "weft: %s: called after MPI_Finalize\n", func);
	else
		n = snprintf(line, sizeof(line),
			     "weft: %s: called before MPI_Init: call MPI_Init or MPI_Init_thread "
			     "first\n",
			     func);
	/* A forked child must not write what its parent had buffered. */
	if (state != WEFT_MPI_FORKED)
		fflush(NULL);
	if (write(STDERR_FILENO, line, (size_t)n) < 0)
		_exit(2);
	_exit(1);
}

int weft_mpi_unsupported(void)
{
	return weft_mpi_err(MPI_ERR_UNSUPPORTED_OPERATION,
			    "not supported by this version of weft: see `weft info --mpi`");
}

int weft_mpi_no_memory(void)
{
	return weft_mpi_err(MPI_ERR_NO_MEM, "out of memory");
}

int weft_mpi_bad_handle(int code, const char *what, const void *handle)
{
	uint64_t h = (uint64_t)(uintptr_t)handle;

	if (h && h < WEFT_MPI_PREDEFINED_END && (h & 7) == 0)
		return weft_mpi_err(code, "null %s", what);
	char known[3 * WEFT_CHECK_PLACE];
	weft_mpi_check_known(handle, known, sizeof known);
	return weft_mpi_err(code, "invalid %s (handle 0x%llx is wild or was freed)%s", what,
			    (unsigned long long)h, known);
}

int weft_mpi_bad_rank(MPI_Comm comm, int rank, bool wild)
{
	const struct weft_mpi_comm *c = weft_mpi_comm_of(comm);

	return weft_mpi_err(MPI_ERR_RANK, "invalid rank %d (%s has %d ranks): check the %s", rank,
			    c->inter ? "remote group" : "communicator", c->peers,
			    wild ? "source" : "destination");
}

int weft_mpi_bad_root(MPI_Comm comm, int root)
{
	const struct weft_mpi_comm *c = weft_mpi_comm_of(comm);

	return weft_mpi_err(MPI_ERR_ROOT, "invalid root %d (%s has %d ranks)", root,
			    c->inter ? "remote group" : "communicator", c->peers);
}

int weft_mpi_bad_tag(int tag)
{
	return weft_mpi_err(MPI_ERR_TAG, "invalid tag %d: tags go from 0 to %d", tag,
			    WEFT_MPI_TAG_UB);
}

int weft_mpi_bad_count(const char *name, MPI_Count count)
{
	return weft_mpi_err(MPI_ERR_COUNT, "%s is negative (%lld)", name, (long long)count);
}

int weft_mpi_bad_pointer(const char *name)
{
	return weft_mpi_err(MPI_ERR_ARG, "argument %s is a null pointer", name);
}

const MPI_Count *weft_mpi_widen(struct weft_mpi_widen *w, const int *in, MPI_Count n)
{
	MPI_Count *out;

	if (!in || n <= 0)
		return NULL;
	if (n <= (MPI_Count)weft_countof(w->small) - w->used) {
		out = w->small + w->used;
		w->used += (unsigned)n;
	} else {
		out = w->failed ? NULL : malloc((size_t)n * sizeof(*out));
		if (!out) {
			w->failed = true;
			return NULL;
		}
		w->big[w->big_count++] = out;
	}
	for (MPI_Count i = 0; i < n; i++)
		out[i] = in[i];
	return out;
}

int weft_mpi_root_peers(MPI_Comm comm, int root)
{
	const struct weft_mpi_comm *c = weft_mpi_comm_of(comm);

	if (c->inter)
		return root == MPI_ROOT ? c->peers : 0;
	return root == c->rank ? c->size : 0;
}

int weft_mpi_degree(MPI_Comm comm, bool in)
{
	const struct weft_mpi_comm *c = weft_mpi_comm_of(comm);
	int n = 0, out = 0, weighted = 0;

	switch (c->topo_kind) {
	case MPI_CART:
		return weft_mpi_Cartdim_get(comm, &n) ? 0 : 2 * n;
	case MPI_GRAPH:
		return weft_mpi_Graph_neighbors_count(comm, c->rank, &n) ? 0 : n;
	case MPI_DIST_GRAPH:
		if (weft_mpi_Dist_graph_neighbors_count(comm, &n, &out, &weighted))
			return 0;
		return in ? n : out;
	default:
		return 0;
	}
}

/* ---- the trace ---------------------------------------------------------------------------- */

#define HOOKED (1u << 31)

unsigned weft_mpi_trace_call(const char *name)
{
	unsigned text = 0;
	if (weft_trace_on()) {
		text = weft_trace_static(name);
		weft_trace_put(WEFT_TRACE_CALL, text, 0, 0, 0);
	}
	return HOOKED | text;
}

void weft_mpi_trace_return(unsigned name)
{
	if (weft_trace_on())
		weft_trace_put(WEFT_TRACE_RETURN, name & ~HOOKED, 0, 0, 0);
	weft_mpi_check_message_over();
	weft_event_deliver();
}
