/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * source.h - event sources: a thread waits for something, and weft's engine finds out when it is
 * there.
 *
 * A source knows how to look: for one request, for all of them in one call, or by a call that
 * blocks. The engine decides which thread looks, when and how: threads that wait poll; when none does, the
 * source is armed or its blocking call is made; see doc/engine.md.  Ready-made sources are at the
 * end.
 *
 * Callers   any thread while the engine runs (weft/task.h, or between MPI_Init and MPI_Finalize);
 *           handlers too, except wait and close.
 * Owner     an event is the caller's memory; the engine uses it from post until it is done.  The
 * last access is the store that makes it done: after a wait it may be freed at once. Order     what
 * the source wrote before it completed an event is visible after done or wait.
 */
#ifndef WEFT_SOURCE_H
#define WEFT_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weft/err.h>
#include <weft/task.h> /* starts the engine; WEFT_FOREVER */

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define WEFT_SOURCE_API __attribute__((visibility("default")))
#else
#define WEFT_SOURCE_API
#endif

struct weft_events; /* a source */

/* A request.  Set the first three before weft_event_post, or use weft_event_init. */
struct weft_event {
	void *user; /* the caller's */
	/*
	 * Runs when the event is there, as a handler (short, may not wait), before it counts as
	 * done; NULL: nothing.  True: the event is the function's own now (it was freed or posted
	 * again) and does not become done.
	 */
	bool (*fn)(struct weft_event *ev);
	int priority; /* requests of one source are looked at from the highest down */
	uint64_t weft_private[20];
};

/* How a source is looked at. */
enum weft_events_method {
	WEFT_EVENTS_AUTO,  /* as the load says */
	WEFT_EVENTS_POLL,  /* by polling only: explicitly, and by the timer */
	WEFT_EVENTS_BLOCK, /* by its descriptor or blocking call only */
};

/* What a choice may depend on. */
struct weft_events_load {
	int cores;       /* that this process may use */
	int running;     /* threads that run or want to, of the whole system */
	bool polled;     /* a thread polls at this moment */
	size_t requests; /* of this source */
};

enum {
	WEFT_EVENTS_RARE =
		1, /* hardly ever waited for in a hurry: never poll it for its own sake */
};

/*
 * What a source can do; at least one of poll, poll_group, block, block_group.  attach, detach,
 * poll, poll_group, arm and disarm run one at a time; block and block_group on a thread of their
 * own, while none of the others does.  All of them are handlers: they may complete, post and
 * cancel, not wait.
 */
struct weft_events_ops {
	const char *name;
	/* Is it there?  Then with which result? */
	bool (*poll)(void *arg, struct weft_event *ev, int64_t *result_p);
	/* Looks at all, by one call, and calls weft_event_complete for those that are there. */
	void (*poll_group)(void *arg, struct weft_events *es);
	/* Sleeps until ev is there and returns as poll does; false: something ended the sleep
	 * early. */
	bool (*block)(void *arg, struct weft_event *ev, int64_t *result_p);
	/* Sleeps until something may be there; then poll_group or poll looks. */
	void (*block_group)(void *arg, struct weft_events *es);
	/* Ends a block that another thread is in or about to enter.  NULL: block returns by itself
	 * at least every 100 ms. */
	void (*unblock)(void *arg);
	/* With fd: from arm on until disarm each arrival makes fd readable (again).  WEFT_AGAIN:
	 * something is there already.  Both may be NULL when fd always tells. */
	weft_err (*arm)(void *arg, struct weft_events *es);
	void (*disarm)(void *arg, struct weft_events *es);
	int fd; /* used when has_fd */
	bool has_fd;
	/* A request comes.  True: it is complete at once.  NULL: nothing to do. */
	bool (*attach)(void *arg, struct weft_event *ev, int64_t *result_p);
	/* A request is withdrawn.  False: not at once, it will still complete.  NULL: true. */
	bool (*detach)(void *arg, struct weft_event *ev);
	/* Chooses the method each time that it matters; NULL: the default policy. */
	enum weft_events_method (*choose)(void *arg, const struct weft_events_load *load);
	enum weft_events_method method; /* without choose */
	int priority;                   /* sources are looked at from the highest down */
	unsigned flags;                 /* WEFT_EVENTS_RARE */
};

/* ops is copied; arg is passed to its functions. */
WEFT_SOURCE_API weft_err weft_events_open(const struct weft_events_ops *ops, void *arg,
					  struct weft_events **es_p);
/*
 * Requests that are not complete end with -ECANCELED; then no function runs any more.  NULL is
 * fine. May block.  WEFT_ERR_DEADLOCK from a handler.  The library closes no source by itself.
 */
WEFT_SOURCE_API weft_err weft_events_close(struct weft_events *es);
/* Looks at the source now, on the caller's time; for a caller that knows that something is there. */
WEFT_SOURCE_API void weft_events_look(struct weft_events *es);

/* For poll_group: walks through the requests, from the highest priority down; NULL: no more. */
WEFT_SOURCE_API struct weft_event *weft_events_first(struct weft_events *es);
WEFT_SOURCE_API struct weft_event *weft_events_next(struct weft_events *es);
/* From poll_group, arm, attach or a ready-made source's callback: ev is there. */
WEFT_SOURCE_API void weft_event_complete(struct weft_event *ev, int64_t result);

/* ---- requests ------------------------------------------------------------------------------ */

static inline void weft_event_init(struct weft_event *ev, bool (*fn)(struct weft_event *ev),
				   void *user)
{
	ev->user = user;
	ev->fn = fn;
	ev->priority = 0;
	for (size_t i = 0; i < sizeof ev->weft_private / sizeof ev->weft_private[0]; i++)
		ev->weft_private[i] = 0;
}

/* Never blocks; the event may be there before it returns.  Not again before it is done. */
WEFT_SOURCE_API weft_err weft_event_post(struct weft_events *es, struct weft_event *ev);
/*
 * The event becomes done soon if it is not: with -ECANCELED if nothing came before.  May wait for a
 * few microseconds.
 */
WEFT_SOURCE_API void weft_event_cancel(struct weft_event *ev);
WEFT_SOURCE_API bool weft_event_done(const struct weft_event *ev);
/* What the source said; negative: -errno.  Valid in fn and once done. */
WEFT_SOURCE_API int64_t weft_event_result(const struct weft_event *ev);

/* May block: polls, then sleeps; timeouts in ns, or WEFT_FOREVER.  WEFT_OK, WEFT_ERR_TIMEOUT,
 * WEFT_ERR_DEADLOCK in a handler. */
WEFT_SOURCE_API weft_err weft_event_wait(struct weft_event *ev, uint64_t timeout_ns);
WEFT_SOURCE_API weft_err weft_event_wait_all(struct weft_event *const *ev, size_t n,
					     uint64_t timeout_ns);
WEFT_SOURCE_API weft_err weft_event_wait_any(struct weft_event *const *ev, size_t n,
					     uint64_t timeout_ns);

/* ---- ready-made: descriptors (sockets, pipes, eventfds, terminals) ----------------------------
 */

/* One epoll set for all requests: one system call finds what is ready. */
WEFT_SOURCE_API weft_err weft_events_open_fds(struct weft_events **es_p);
/* Done when fd is ready for one of `events` (POLLIN, POLLOUT, ...); the result is what poll(2)
 * says. */
WEFT_SOURCE_API weft_err weft_event_post_fd(struct weft_events *es, struct weft_event *ev, int fd,
					    short events);
/* Before fd is closed: its requests end with -ECANCELED.  Any thread, also while other threads poll it. */
WEFT_SOURCE_API void weft_events_forget_fd(struct weft_events *es, int fd);

/* ---- ready-made: timers -----------------------------------------------------------------------
 */

/* One timerfd for all requests. */
WEFT_SOURCE_API weft_err weft_events_open_timers(struct weft_events **es_p);
/* Done at that time of CLOCK_MONOTONIC; the result is by how many ns it was noticed later.
 */
WEFT_SOURCE_API weft_err weft_event_post_at(struct weft_events *es, struct weft_event *ev,
					    uint64_t at_ns);
WEFT_SOURCE_API weft_err weft_event_post_after(struct weft_events *es, struct weft_event *ev,
					       uint64_t ns);

/* ---- ready-made: doorbells in shared memory ----------------------------------------------------
 */

/*
 * Lies in memory that two processes (or two threads) share; one side rings, the other waits.  fd is
 * an eventfd that both have; it is written only when the waiting side sleeps.
 */
struct weft_doorbell {
#if defined(__GNUC__)
	__attribute__((aligned(64)))
#endif
	uint64_t weft_private[8];
};

WEFT_SOURCE_API void weft_doorbell_init(struct weft_doorbell *bell);
/* How often it was rung. */
WEFT_SOURCE_API uint64_t weft_doorbell_count(const struct weft_doorbell *bell);
/* What was written before is visible to a reader of the count; a system call only for a sleeper. */
WEFT_SOURCE_API void weft_doorbell_ring(struct weft_doorbell *bell, int fd);

WEFT_SOURCE_API weft_err weft_events_open_doorbells(struct weft_events **es_p);
/* Done when the bell's count is beyond `seen`; the result is the count.  One event per bell at a
 * time. */
WEFT_SOURCE_API weft_err weft_event_post_doorbell(struct weft_events *es, struct weft_event *ev,
						  struct weft_doorbell *bell, int fd,
						  uint64_t seen);

/* ---- ready-made: files
 * ---------------------------------------------------------------------------- */

/*
 * Reading and writing of regular files without a thread each: through io_uring, `depth` at a time
 * (0: 64), or where the system has none through the blocking calls of a few threads, which are
 * started where calls wait.  Requests are not ordered, but for an fsync by threads, which comes
 * after the writes that were posted before.
 */
WEFT_SOURCE_API weft_err weft_events_open_files(unsigned depth, struct weft_events **es_p);
/* The same by threads' blocking calls, for file systems that io_uring does not suit. */
WEFT_SOURCE_API weft_err weft_events_open_files_blocking(struct weft_events **es_p);
/* The results are those of pread, pwrite and fsync, or -errno. */
WEFT_SOURCE_API weft_err weft_event_post_read(struct weft_events *es, struct weft_event *ev, int fd,
					      void *buffer, size_t bytes, uint64_t offset);
WEFT_SOURCE_API weft_err weft_event_post_write(struct weft_events *es, struct weft_event *ev,
					       int fd, const void *buffer, size_t bytes,
					       uint64_t offset);
/* As preadv and pwritev; the vector stays the caller's, and unchanged until the event is done. */
struct iovec;
WEFT_SOURCE_API weft_err weft_event_post_readv(struct weft_events *es, struct weft_event *ev,
					       int fd, const struct iovec *iov, unsigned n,
					       uint64_t offset);
WEFT_SOURCE_API weft_err weft_event_post_writev(struct weft_events *es, struct weft_event *ev,
						int fd, const struct iovec *iov, unsigned n,
						uint64_t offset);
WEFT_SOURCE_API weft_err weft_event_post_fsync(struct weft_events *es, struct weft_event *ev,
					       int fd);
/* "io_uring" or "threads". */
WEFT_SOURCE_API const char *weft_events_files_by(const struct weft_events *es);

#ifdef __cplusplus
}
#endif
#endif
