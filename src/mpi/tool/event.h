/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * event.h - MPI_T events: each line of base/trace_table.h is an event type, each of its groups a source.
 *
 * Callers   offer_event (event.c): wherever the event happens, under any lock.  deliver: a thread in an MPI call,
 *           with no lock of weft's.
 * Order     a callback for MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE runs where the event happens, unless
 *           the stack there may be small or the event is one of the scheduler of user-level
 *           threads.  All other callbacks run at the end of the next MPI call of any thread, one
 *           at a time, in the order in which the events came into the queue.
 * Full      an event that finds the queue full is counted; the dropped handler hears how many.
 * Cost      off: what the trace costs (base/trace.h).  On: a record in the queue, or the call.
 */
#ifndef WEFT_MPI_TOOL_EVENT_H
#define WEFT_MPI_TOOL_EVENT_H

#include "base/trace.h"
#include "mpi/tool/tool.h"

enum weft_event_source {
	WEFT_EVENT_NONE, /* not for tools */
	WEFT_EVENT_MESSAGE,
	WEFT_EVENT_COLLECTIVE,
	WEFT_EVENT_NETWORK,
	WEFT_EVENT_ENGINE,
	WEFT_EVENT_ULT,
	WEFT_EVENT_CALL,
	WEFT_EVENT_SOURCES
};

struct weft_event {
	uint64_t time; /* weft_clock_ns() */
	uint64_t a, b;
	uint32_t id;
	uint16_t small;
	uint8_t kind;      /* enum weft_trace_kind */
	bool told_at_once; /* callbacks for any place have run */
};

#define WEFT_EVENT_ELEMENTS 8 /* at most; each takes eight bytes of a copy */

/* ---- event_type.c: what there is -------------------------------------------------------------- */

/* Number i of the event types as a kind; NONE: there are fewer. */
enum weft_trace_kind weft_event_kind(int i);
enum weft_event_source weft_event_source_of(enum weft_trace_kind kind);
/* Event types of that source, or of all of them: NONE.  Their numbers into indices[], up to len. */
int weft_event_types(enum weft_event_source source, int len, int indices[]);
const char *weft_event_source_name(enum weft_event_source source);
const char *weft_event_source_desc(enum weft_event_source source);
/* Element i of e into buf, as its type says; 0: there is none, else how many bytes. */
size_t weft_event_element(const struct weft_event *e, int i, void *buf);

/* ---- event.c ---------------------------------------------------------------------------------- */

/* What has been queued goes to its callbacks, unless another thread is at it. */
void weft_event_deliver(void);
/* The last user of the interface has left: no registration stays. */
void weft_event_forget_all(void);

#endif
