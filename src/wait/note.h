/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * note.h - what a thread that waits is waiting for, for an observer outside the process (`weft doctor`).
 *
 * A call that may wait describes itself in a note on its stack and names it in weft_wait_note_self. The
 * wait moves it to the caller's parker and back: user-level threads change places meanwhile. Before the first sleep
 * the note is completed by the layer that understands it (weft_wait_note_complete).
 *
 * Callers   the thread whose call it is; a reader in another process reads memory, at any time.
 * Owner     the call: its note is good until it returns, and then no parker names it.
 * Cost      some stores per call; a hook and a clock before a sleep.
 * Failure   a reader may see a note that has just ended: it looks twice.
 */
#ifndef WEFT_WAIT_NOTE_H
#define WEFT_WAIT_NOTE_H

#include "base/base.h"
#include "wait/park.h"

#define WEFT_WAIT_LIVE "waits"
#define WEFT_WAIT_JOB 64
#define WEFT_WAIT_FEW 6

enum weft_wait_form {
	WEFT_WAIT_OTHER,
	WEFT_WAIT_RECV,     /* a message of `rank` */
	WEFT_WAIT_SEND,     /* until `rank` takes it */
	WEFT_WAIT_ALL,      /* all members */
	WEFT_WAIT_REQUESTS, /* completed: any of the above; `tag` is their number */
	WEFT_WAIT_FENCE,    /* completed: ALL, of a window's members */
	WEFT_WAIT_WINDOW,   /* completed: OTHER, with the target if `rank` is one; or LOCK */
	WEFT_WAIT_LOCK,     /* the member that `holder` names, for as long as it names one */
};

/* What is the same for every call of a function. */
struct weft_wait_call {
	const char *name;
	uint8_t form; /* enum weft_wait_form */
	bool any;     /* REQUESTS: one of them is enough */
	bool lock;    /* WINDOW: for its lock */
};

/* The first part is filled in by each call: as few stores as can be. */
struct weft_wait_note {
	const struct weft_wait_call *call;
	const void *object; /* handle of the communicator or window, or requests, `tag` of them */
	int rank, tag; /* of a message: rank in the communicator, -1: any; ALL: the root or -1 */
	uint64_t since_ns; /* of the clock; 0: the rest is not there yet */
	/* before a sleep */
	uint8_t form;       /* of what is waited for now: no REQUESTS */
	int process;        /* the rank's number in the job; -1: any */
	int size;           /* members; member NULL: 0..size-1 */
	const int *member;  /* their numbers in the job */
	const char *name;   /* of the communicator */
	uint32_t id;        /* of the communicator, the same on all members */
	uint32_t collected; /* collectives that it has begun */
	/* Of a call that one of several requests ends (call->any): */
	bool hope;  /* one of them may end by something else than what the ranks below do */
	int others; /* requests beyond the one that is described */
	int few[WEFT_WAIT_FEW]; /* member, if the requests concern but few ranks */
	/* LOCK: a word in this process's memory; high half: the holder's rank + 1, 0: none is named. */
	const _Atomic uint64_t *holder;
	/* Its call may not end by itself: when it has slept so long, the layer that understands it is told
	 * (weft_wait_note_set_hooks), again and again, each time after twice as long.  0: never. */
	uint64_t patience_ns;
	uint64_t alarm_ns; /* of the clock; WEFT_NEVER: none */
	unsigned alarms;   /* so far */
};

/* A plain thread's parker, in a list that only grows. */
struct weft_thread_parker {
	struct weft_parker parker;
	struct weft_thread_parker *next;      /* I: made before it */
	struct weft_thread_parker *next_free; /* under park.c's lock */
	_Atomic int x_tid;                    /* 0: its thread has ended */
};

/* What the reader starts from (weft_live_tell). */
struct weft_wait_live {
	int rank, size;
	char job[WEFT_WAIT_JOB];
	struct weft_thread_parker *_Atomic x_threads;
};

/* The reader goes on only if its own is equal. */
#define WEFT_WAIT_LAYOUT                                                                           \
	(sizeof(struct weft_wait_note) << 32 | offsetof(struct weft_thread_parker, x_tid) << 16 |  \
	 sizeof(struct weft_wait_live))

extern struct weft_wait_live weft_wait_live;
extern _Thread_local struct weft_wait_note *weft_wait_note_self;

/* Shows this process as that rank of a job. */
void weft_wait_note_show(const char *job, int rank, int size);
/* Fills in the rest of a note; and is told of an alarm, by the waiter, which may hold the baton: it may start
 * operations, and may not wait.  Set once, before the first note is there. */
void weft_wait_note_set_hooks(void (*complete)(struct weft_wait_note *),
			      void (*alarm)(struct weft_wait_note *));
void weft_wait_note_complete(struct weft_wait_note *n);

/*
 * What this kernel thread's next wait is for.  Elsewhere than on x86-64 by a call: no compiler may keep the
 * address of a thread-local beyond a switch of user-level threads.
 */
#ifdef __x86_64__
static inline void weft_wait_note_set(struct weft_wait_note *n)
{
	weft_wait_note_self = n;
}
static inline struct weft_wait_note *weft_wait_note_get(void)
{
	return weft_wait_note_self;
}
#else
void weft_wait_note_set(struct weft_wait_note *n);
struct weft_wait_note *weft_wait_note_get(void);
#endif

/* The wait begins: from now on p says what it is for. */
static inline void weft_wait_note_begin(struct weft_parker *p)
{
	if (weft_likely(p != NULL)) {
		p->note = weft_wait_note_self;
		weft_wait_note_set(NULL);
	}
}

/* Before a sleep. */
static inline void weft_wait_note_sleep(struct weft_parker *p)
{
	if (p->note && !p->note->since_ns)
		weft_wait_note_complete(p->note);
}

/* When a sleep that has been noted has to end, for deadline_ns or for the note. */
static inline uint64_t weft_wait_note_until(const struct weft_parker *p, uint64_t deadline_ns)
{
	return weft_unlikely(p->note && p->note->alarm_ns < deadline_ns) ? p->note->alarm_ns
									 : deadline_ns;
}

/* Such a sleep has lasted until then. */
void weft_wait_note_expired(struct weft_parker *p) __attribute__((cold));

/* weft_wait_park(), as p's note asks for it; may return early. */
static inline void weft_wait_note_park(struct weft_parker *p, uint64_t deadline_ns)
{
	weft_wait_note_sleep(p);
	if (weft_unlikely(!weft_wait_park(p, weft_wait_note_until(p, deadline_ns))))
		weft_wait_note_expired(p);
}

/* It ends; the call may wait again, on another kernel thread. */
static inline void weft_wait_note_end(struct weft_parker *p)
{
	if (weft_likely(p != NULL)) {
		weft_wait_note_set(p->note);
		p->note = NULL;
	}
}

#endif
