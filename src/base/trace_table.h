/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace_table.h - WEFT_TRACE_EVENT(ID, name, help); no include guard.  A file carries the names, so
 * lines may come and go; cmd/weft/trace_read.py knows what it does with which.
 *
 * id, small, a, b are the fields of a record (trace_ring.h); "text" is the number of a text.
 */
/* clang-format off */
WEFT_TRACE_EVENT(SYNC, "sync", "cycles and clock at the same moment; a: ns of CLOCK_MONOTONIC")
WEFT_TRACE_EVENT(THREAD, "thread", "this ring is a kernel thread's from here on; id: its number, a, b: its name")

/* user-level threads; id: home worker << 24 | slot */
WEFT_TRACE_EVENT(ULT_CREATE, "ult_create", "made; small: text of its function, a: its creator")
WEFT_TRACE_EVENT(ULT_NAME, "ult_name", "it has a name; a, b: its letters")
WEFT_TRACE_EVENT(ULT_RUN, "ult_run", "it runs here from now on; id NONE: the worker itself does")
WEFT_TRACE_EVENT(ULT_YIELD, "ult_yield", "it lets another run, and stays ready")
WEFT_TRACE_EVENT(ULT_BLOCK, "ult_block", "it is about to wait; small: text of what for, a: for which")
WEFT_TRACE_EVENT(ULT_STAY, "ult_stay", "it was called before it could: it goes on")
WEFT_TRACE_EVENT(ULT_WAKE, "ult_wake", "it is ready again; a: the waker, NONE: no user-level thread")
WEFT_TRACE_EVENT(ULT_END, "ult_end", "its function has returned")
WEFT_TRACE_EVENT(ULT_STEAL, "ult_steal", "taken from another worker; a: from which")
WEFT_TRACE_EVENT(ULT_KEEP, "ult_keep", "it makes a blocking call and keeps its kernel thread")
WEFT_TRACE_EVENT(IDLE, "idle", "a worker has nothing to run; id: which")
WEFT_TRACE_EVENT(BUSY, "busy", "it looks for threads again")

/* kernel threads */
WEFT_TRACE_EVENT(SLEEP, "sleep", "the kernel thread is about to sleep")
WEFT_TRACE_EVENT(AWAKE, "awake", "it goes on")
WEFT_TRACE_EVENT(THREAD_END, "thread_end", "it has ended")

/* the engine */
WEFT_TRACE_EVENT(TASK, "task", "a task has run that does not look again; small: text of its name, a: time when it began")

/* messages; id: the peer, a: number of the message between the two | tag << 32, b: bytes */
WEFT_TRACE_EVENT(SEND, "send", "a message is about to go out; small: how, see src/comm/trace.c")
WEFT_TRACE_EVENT(ARRIVE, "arrive", "it has come, or its request to be fetched; small: how")
WEFT_TRACE_EVENT(TAKE, "take", "a receive finds a message that came before it; a: tag << 32")
WEFT_TRACE_EVENT(RECEIVED, "received", "a receive is over that was fetched, or that failed; a: tag << 32")
WEFT_TRACE_EVENT(POST, "post", "a receive is posted; id: the peer, NONE: any, a: tag << 32, b: its room")

/* several networks at once; id: the peer, small: the rail */
WEFT_TRACE_EVENT(RAIL, "rail", "a packet, or a piece of one, goes over it; b: bytes")
WEFT_TRACE_EVENT(RAIL_UP, "rail_up", "it can be used; a: it could before")
WEFT_TRACE_EVENT(RAIL_DOWN, "rail_down", "it is broken; b: packets that go again")

/* MPI; those that take the short way of a small message show as that alone */
WEFT_TRACE_EVENT(CALL, "call", "an MPI call begins; small: text of its name")
WEFT_TRACE_EVENT(RETURN, "return", "it returns; small: the same")
/* clang-format on */
