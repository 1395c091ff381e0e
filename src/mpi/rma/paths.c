/* SPDX-License-Identifier: BSD-3-Clause */
/* paths.c - how a window reaches each target, for programs that ask: MPIX_WIN_PATHS, and info. */
#include <mpi-ext.h>
#include <stdio.h>
#include <stdlib.h>

#include "mpi/error.h"
#include "mpi/info.h"
#include "mpi/rma/win.h"

static const char *const name[] = {
	[MPIX_WIN_PATH_LOAD] = "load",
	[MPIX_WIN_PATH_COPY] = "copy",
	[MPIX_WIN_PATH_ENGINE] = "engine",
};

bool weft_mpi_win_paths_fill(struct weft_mpi_win *w)
{
	static const int path[] = {[WEFT_RMA_MAPPED] = MPIX_WIN_PATH_LOAD,
				   [WEFT_RMA_COPY] = MPIX_WIN_PATH_COPY,
				   [WEFT_RMA_OWED] = MPIX_WIN_PATH_ENGINE};
	w->paths = malloc((size_t)w->members * sizeof *w->paths);
	for (int r = 0; w->paths && r < w->members; r++)
		w->paths[r] = path[weft_rma_path(w->rma, r)];
	return w->paths != NULL;
}

/* Runs of ranks with one path; false: they do not fit. */
static bool format_runs(const struct weft_mpi_win *w, char *text, size_t size)
{
	size_t at = 0;
	for (int first = 0, end; first < w->members; first = end) {
		for (end = first + 1; end < w->members && w->paths[end] == w->paths[first];)
			end++;
		char last[16] = "";
		if (end - first > 1)
			snprintf(last, sizeof last, "-%d", end - 1);
		int n = snprintf(text + at, size - at, "%s%d%s:%s", first ? " " : "", first, last,
				 name[w->paths[first]]);
		if (n < 0 || (size_t)n >= size - at)
			return false;
		at += (size_t)n;
	}
	return true;
}

/* So many of each. */
static void format_totals(const struct weft_mpi_win *w, char *text, size_t size)
{
	int n[MPIX_WIN_PATH_ENGINE + 1] = {0};
	for (int r = 0; r < w->members; r++)
		n[w->paths[r]]++;
	snprintf(text, size, "%d ranks by load, %d by copy, %d by engine", n[MPIX_WIN_PATH_LOAD],
		 n[MPIX_WIN_PATH_COPY], n[MPIX_WIN_PATH_ENGINE]);
}

int weft_mpi_win_paths_info(struct weft_mpi_win *w, struct weft_mpi_info *i)
{
	char text[MPI_MAX_INFO_VAL] = "";
	bool engine = false;
	for (int r = 0; r < w->members; r++)
		engine |= w->paths[r] == MPIX_WIN_PATH_ENGINE;
	if (!format_runs(w, text, sizeof text))
		format_totals(w, text, sizeof text);
	int err = weft_mpi_info_put(i, "weft_paths", text);
	if (!err)
		err = weft_mpi_info_put(i, "weft_target_progress", engine ? "engine" : "none");
	if (!err)
		err = weft_mpi_info_put(i, "weft_accumulate",
					weft_rma_cpu_atomics(w->rma) ? "processor" : "lock");
	return err;
}
