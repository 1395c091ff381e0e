/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tool.h - the MPI tool information interface (MPI 5.0, chapter 15) over weft's own tables: each
 * setting is a control variable, each counter a performance variable.
 *
 * Callers   any thread, before MPI_Init and after MPI_Finalize too; counted by MPI_T_init_thread.
 * Errors    returned, never raised: the interface has no error handlers.
 * Handles   cvar handles and enumerations name a table entry by value; pvar sessions and handles
 *           are objects on one list under one lock, so that a wrong one is found.
 */
#ifndef WEFT_MPI_TOOL_H
#define WEFT_MPI_TOOL_H

#include <mpi.h>
#include "base/base.h"
#include "base/counters.h"
#include "base/settings.h"

/* Longest text a setting can be written with, its end included. */
#define WEFT_TOOL_TEXT_MAX 1024

bool weft_tool_running(void);

/*
 * The interface's way to hand out texts: copies as much as *len_p bytes hold, end included, and
 * stores how many the whole text needs.  Either pointer may be NULL.
 */
void weft_tool_text(const char *text, char *out, int *len_p);

/* Index of the enumeration of setting id, as a handle; MPI_T_ENUM_NULL if it is not an ENUM. */
MPI_T_enum weft_tool_enum_of(enum weft_setting_id id);
/* The position of `word` among the choices a|b|c, or -1. */
int weft_tool_choice_index(const char *choices, const char *word);
/* Choice number i of a|b|c into out; false: there are fewer. */
bool weft_tool_choice(const char *choices, int i, char *out, size_t size);

#include "gen/mpi_impl.h"

#endif
