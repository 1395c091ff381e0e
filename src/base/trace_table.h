/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace_table.h - WEFT_TRACE_EVENT(ID, name, group, fields, help); no include guard.  A file carries
 * the names, so lines may come and go; cmd/weft/trace_read.py knows what it does with which.
 *
 * id, small, a, b are the fields of a record (trace_ring.h); "text" is the number of a text.  Each
 * group but NONE is a source of MPI_T events, each line an event type; `fields` says which elements
 * it has: a letter of src/mpi/tool/event_type.c, and the element's name.
 */
/* clang-format off */
WEFT_TRACE_EVENT(SYNC, "sync", NONE, "",
		 "cycles and clock at the same moment; a: ns of CLOCK_MONOTONIC")
WEFT_TRACE_EVENT(THREAD, "thread", NONE, "",
		 "this ring is a kernel thread's from here on; id: its number, a, b: its name")

/* user-level threads; id: home worker << 24 | slot */
WEFT_TRACE_EVENT(ULT_CREATE, "ult_create", ULT, "i=thread T=function",
		 "made; small: text of its function, a: its creator")
WEFT_TRACE_EVENT(ULT_NAME, "ult_name", NONE, "",
		 "it has a name; a, b: its letters")
WEFT_TRACE_EVENT(ULT_RUN, "ult_run", ULT, "i=thread",
		 "it runs here from now on; id NONE: the worker itself does")
WEFT_TRACE_EVENT(ULT_YIELD, "ult_yield", ULT, "i=thread",
		 "it lets another run, and stays ready")
WEFT_TRACE_EVENT(ULT_BLOCK, "ult_block", ULT, "i=thread T=what_for A=object",
		 "it is about to wait; small: text of what for, a: for which")
WEFT_TRACE_EVENT(ULT_STAY, "ult_stay", ULT, "i=thread",
		 "it was called before it could: it goes on")
WEFT_TRACE_EVENT(ULT_WAKE, "ult_wake", ULT, "i=thread n=waker",
		 "it is ready again; a: the waker, NONE: no user-level thread")
WEFT_TRACE_EVENT(ULT_END, "ult_end", ULT, "i=thread",
		 "its function has returned")
WEFT_TRACE_EVENT(ULT_STEAL, "ult_steal", ULT, "i=thread n=victim",
		 "taken from another worker; a: from which")
WEFT_TRACE_EVENT(ULT_KEEP, "ult_keep", ULT, "i=thread",
		 "it makes a blocking call and keeps its kernel thread")
WEFT_TRACE_EVENT(IDLE, "idle", ULT, "i=worker",
		 "a worker has nothing to run; id: which")
WEFT_TRACE_EVENT(BUSY, "busy", ULT, "i=worker",
		 "it looks for threads again")

/* kernel threads */
WEFT_TRACE_EVENT(SLEEP, "sleep", ENGINE, "s=where",
		 "the kernel thread is about to sleep; small: 1: where arrivals wake it, 0: until a thread does")
WEFT_TRACE_EVENT(AWAKE, "awake", ENGINE, "",
		 "it goes on")
WEFT_TRACE_EVENT(THREAD_END, "thread_end", NONE, "",
		 "it has ended")

/* the engine */
WEFT_TRACE_EVENT(TASK, "task", ENGINE, "T=name d=ran_ns",
		 "a task has run that does not look again; small: text of its name, a: time when it began")

WEFT_TRACE_EVENT(KICK, "kick", ENGINE, "s=target",
		 "a thread is woken because it must look; small: 1 the sleeper, 2 the watcher, 3 a parked waiter")
WEFT_TRACE_EVENT(ARM, "arm", ENGINE, "s=level",
		 "the sources are armed, before a thread sleeps; small: the level (arm_level.h)")
WEFT_TRACE_EVENT(RANG, "rang", ENGINE, "i=source", "a source has woken the sleeper; id: its slot")

/* messages; id: the peer, a: number of the message between the two | tag << 32, b: bytes */
WEFT_TRACE_EVENT(SEND, "send", MESSAGE, "i=peer t=tag n=number b=bytes s=how",
		 "a message is about to go out; small: how, see src/comm/msg_trace.c")
WEFT_TRACE_EVENT(ARRIVE, "arrive", MESSAGE, "i=peer t=tag n=number b=bytes s=how",
		 "it has come, or its request to be fetched; small: how")
WEFT_TRACE_EVENT(TAKE, "take", MESSAGE, "i=peer t=tag b=bytes",
		 "a receive finds a message that came before it; a: tag << 32")
WEFT_TRACE_EVENT(RECEIVED, "received", MESSAGE, "i=peer t=tag b=bytes s=how",
		 "a receive is over; small: 0: it was fetched, or failed, else how; a: tag << 32")
WEFT_TRACE_EVENT(POST, "post", MESSAGE, "i=peer t=tag b=room",
		 "a receive is posted; id: the peer, NONE: any, a: tag << 32, b: its room")

WEFT_TRACE_EVENT(MATCH, "match", MESSAGE, "i=peer t=tag n=number b=bytes s=how",
		 "what has arrived finds a receive that is posted; small: how")
WEFT_TRACE_EVENT(UNEXPECTED, "unexpected", MESSAGE, "i=peer t=tag n=number b=bytes s=how",
		 "what has arrived waits for a receive; small: how")
WEFT_TRACE_EVENT(SENT, "sent", MESSAGE, "i=peer t=tag b=bytes s=failed",
		 "a send that was not over at once is over; small: it failed; a: tag << 32")
WEFT_TRACE_EVENT(CREDIT_OUT, "credit_out", MESSAGE, "i=peer t=tag b=bytes",
		 "no credit for an eager message: it waits at its sender; a: tag << 32")
WEFT_TRACE_EVENT(CREDIT, "credit", MESSAGE, "i=peer b=bytes",
		 "the peer gives credit back; b: bytes")
WEFT_TRACE_EVENT(PEER_DOWN, "peer_down", NETWORK, "i=peer s=error",
		 "the connection to a peer has ended; small: 1: not in order")

/* collectives; id: the context, small: which (src/coll/names.c) */
WEFT_TRACE_EVENT(COLL, "coll", COLLECTIVE, "i=context s=kind b=steps",
		 "a schedule starts; b: its steps")
WEFT_TRACE_EVENT(COLL_STEP, "coll_step", COLLECTIVE, "i=context s=kind n=step b=bytes",
		 "a message of it is over; a: the step's number, b: bytes")
WEFT_TRACE_EVENT(COLL_END, "coll_end", COLLECTIVE, "i=context s=kind", "the schedule is over")
WEFT_TRACE_EVENT(COLL_SHORT, "coll_short", COLLECTIVE, "i=context s=kind N=way b=bytes",
		 "a small one goes without a schedule; a: text of its way, b: bytes")

/* several networks at once; id: the peer, small: the rail */
WEFT_TRACE_EVENT(RAIL, "rail", NETWORK, "i=peer s=rail b=bytes",
		 "a packet, or a piece of one, goes over it; b: bytes")
WEFT_TRACE_EVENT(RAIL_UP, "rail_up", NETWORK, "i=peer s=rail n=was_up",
		 "it can be used; a: it could before")
WEFT_TRACE_EVENT(RAIL_DOWN, "rail_down", NETWORK, "i=peer s=rail b=packets_again",
		 "it is broken; b: packets that go again")

/* MPI; those that take the short way of a small message show as that alone */
WEFT_TRACE_EVENT(CALL, "call", CALL, "T=name",
		 "an MPI call begins; small: text of its name")
WEFT_TRACE_EVENT(RETURN, "return", CALL, "T=name",
		 "it returns; small: the same")
/* clang-format on */
