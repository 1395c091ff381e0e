/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * complete.c - wait and test for all, any and some of several requests; request_get_status of such.
 *
 * Null and inactive requests count as complete with an empty status.
 */
#include <stdlib.h>

#include "mpi/aid/aid.h"
#include "mpi/error.h"
#include "mpi/p2p/request.h"
#include "task/task.h"
#include "wait/stack.h"

#define SMALL 64      /* requests that a set is made for on the stack */
#define PAUSE_FOR 4   /* of those that are polled in vain, so many end a pause by themselves */
#define SMALL_LIGHT 8 /* the same on a user-level thread's */

/* Memory for a set of n on the caller's stack, no more than it takes; NULL: too many. */
#define SET_ROOM(n)                                                                                \
	((n) > 0 && (n) <= (weft_wait_stack_may_be_small() ? SMALL_LIGHT : SMALL)                  \
		 ? __builtin_alloca((size_t)(n)*2 * sizeof(void *))                                \
		 : NULL)

/* The request behind a handle that is not null, active or not; NULL: none. */
static inline struct weft_mpi_request *find_request(MPI_Request handle)
{
	return (struct weft_mpi_request *)weft_mpi_object_find_dynamic((uint64_t)(uintptr_t)handle,
								       WEFT_MPI_REQUEST);
}

/* An array of requests looked at once: the active ones and where they stand. */
struct set {
	int n;                         /* length of the array */
	int live;                      /* how many are active */
	bool advances;                 /* some need advance(): no sleeping on them one by one */
	bool collective;               /* some are collectives */
	struct weft_mpi_request **r;   /* [n]; NULL: null or inactive */
	struct weft_completion **wait; /* [n]; scratch, behind r */
	void *room;                    /* the caller's memory for both; NULL: from the heap */
};

static void set_close(struct set *s)
{
	if (!s->room)
		free(s->r);
}

/* The requests from `first` on; those before it count as null. */
static int set_open_from(struct set *s, int first, int n, const MPI_Request *array)
{
	if (n < 0)
		return weft_mpi_err(MPI_ERR_COUNT, "count is negative (%d)", n);
	if (n && !array)
		return weft_mpi_err(MPI_ERR_ARG, "argument array_of_requests is a null pointer");
	s->n = n;
	s->live = 0;
	s->advances = s->collective = false;
	s->r = s->room || !n ? s->room : malloc((size_t)n * (sizeof(*s->r) + sizeof(*s->wait)));
	s->wait = s->r ? (struct weft_completion **)(void *)(s->r + n) : NULL;
	int err = s->r || !n ? MPI_SUCCESS : weft_mpi_err(MPI_ERR_NO_MEM, "out of memory");
	struct weft_mpi_request **to = s->r;
	int live = 0;
	for (int i = 0; i < first && !err; i++)
		to[i] = NULL;
	for (int i = first; i < n && !err; i++) {
		struct weft_mpi_request *r;
		err = weft_mpi_request_active(array[i], i, &r);
		to[i] = r;
		if (weft_unlikely(!r))
			continue;
		live++;
		if (r->ops != &weft_mpi_over_ops && r->ops != &weft_mpi_plain_ops) {
			s->advances |= r->ops->advance != NULL;
			s->collective |= r->ops->collective;
		}
	}
	s->live = live;
	if (err)
		set_close(s);
	return err;
}

static int set_open(struct set *s, int n, const MPI_Request *array)
{
	return set_open_from(s, 0, n, array);
}

/*
 * For waits that need all of them from there on: sleeps until something that is not over may have
 * changed.  What is over is left out: it would end a wait for any at once, and no thread would poll.
 */
static void set_sleep_all(struct set *s, int from)
{
	size_t m = 0;

	for (int i = from; i < s->n; i++) {
		if (!s->r[i] || weft_mpi_request_done(s->r[i]))
			continue;
		struct weft_completion *c = s->r[i]->ops->wait_on(s->r[i]);
		if (!c)
			return; /* wants to be advanced first */
		s->wait[m++] = c;
	}
	if (!m)
		return;
	/* The only error, waiting in a handler, is one the caller cannot have: it is MPI's user. */
	(void)(s->advances ? weft_task_engine_wait_any(s->wait, m, WEFT_FOREVER)
			   : weft_task_engine_wait_all(s->wait, m, WEFT_FOREVER));
}

/* For waits that one ends: sleeps until one may be over, perhaps is already. */
static void set_sleep_any(struct set *s)
{
	size_t m = 0;

	for (int i = 0; i < s->n; i++) {
		if (!s->r[i])
			continue;
		struct weft_completion *c = s->r[i]->ops->wait_on(s->r[i]);
		if (!c)
			return; /* wants to be advanced first */
		s->wait[m++] = c;
	}
	(void)weft_task_engine_wait_any(s->wait, m, WEFT_FOREVER); /* error: see above */
}

static bool set_all_done(struct set *s)
{
	bool all = true;

	for (int i = 0; i < s->n; i++)
		if (s->r[i] && !weft_mpi_request_done(s->r[i]))
			all = false;
	return all;
}

/* The first that is done, or -1. */
static int set_first_done(struct set *s)
{
	for (int i = 0; i < s->n; i++)
		if (s->r[i] && weft_mpi_request_done(s->r[i]))
			return i;
	return -1;
}

static void set_polled_collectives(struct set *s)
{
	for (int i = 0; i < s->n; i++)
		if (s->r[i] && s->r[i]->ops->collective && !weft_mpi_request_done(s->r[i]))
			weft_mpi_aid_polled(s->r[i]);
}

/* One poll while what is wanted of them, all or one, is not over; and a pause when it is due. */
static void set_poll(struct set *s, bool all)
{
	struct weft_completion *c[PAUSE_FOR];
	size_t m = 0;
	bool pause;

	(void)weft_task_poll(&pause);
	if (weft_unlikely(s->collective))
		set_polled_collectives(s);
	if (weft_likely(!pause))
		return;
	for (int i = 0; i < s->n && m < PAUSE_FOR; i++) {
		if (!s->r[i])
			continue;
		if (weft_mpi_request_done(s->r[i])) {
			if (!all)
				return;
			continue;
		}
		c[m] = s->r[i]->ops->wait_on(s->r[i]);
		if (!c[m])
			return; /* wants to be advanced first */
		m++;
	}
	if (m)
		(void)weft_task_poll_pause(c, m);
}

/* The same two, with a look for messages before the answer is no. */
static bool set_test_all(struct set *s)
{
	if (set_all_done(s))
		return true;
	set_poll(s, true);
	return set_all_done(s);
}

static int set_test_first(struct set *s)
{
	int i = set_first_done(s);
	if (i >= 0)
		return i;
	set_poll(s, false);
	return set_first_done(s);
}

/* ---- the ends ----------------------------------------------------------------------------- */

/* The i-th is over: ends it, or without `array` looks only; the status says its error, too. */
static inline int set_finish(struct set *s, int i, MPI_Request array[], MPI_Status *st)
{
	int err = array ? weft_mpi_request_end(s->r[i], &array[i], st)
			: weft_mpi_request_peek(s->r[i], st);
	if (st != MPI_STATUS_IGNORE)
		st->MPI_ERROR = err;
	return err;
}

static MPI_Status *status_at(MPI_Status *statuses, int i)
{
	return statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[i];
}

/* The text is that of the last failure. */
static int in_status(bool failed)
{
	if (!failed)
		return MPI_SUCCESS;
	weft_mpi_cause()->code = MPI_ERR_IN_STATUS;
	return MPI_ERR_IN_STATUS;
}

/* All are over. */
static int finish_all(struct set *s, MPI_Request array[], MPI_Status *statuses)
{
	bool failed = false;

	for (int i = 0; i < s->n; i++)
		if (s->r[i])
			failed |= set_finish(s, i, array, status_at(statuses, i)) != MPI_SUCCESS;
		else
			weft_mpi_status_empty(status_at(statuses, i));
	return in_status(failed);
}

/* One may be over: which one, or MPI_UNDEFINED; its error is returned, not told in the status. */
static int finish_first(struct set *s, MPI_Request array[], int *indx, int *flag,
			MPI_Status *status)
{
	int i = s->live ? set_test_first(s) : -1;

	*indx = i >= 0 ? i : MPI_UNDEFINED;
	*flag = i >= 0 || !s->live;
	if (!s->live)
		weft_mpi_status_empty(status);
	if (i < 0)
		return MPI_SUCCESS;
	return array ? weft_mpi_request_end(s->r[i], &array[i], status)
		     : weft_mpi_request_peek(s->r[i], status);
}

/* Those that are over: how many, or MPI_UNDEFINED when none is active. */
static int finish_some(struct set *s, MPI_Request array[], int *outcount, int indices[],
		       MPI_Status *statuses)
{
	int n = 0;
	bool failed = false;

	for (int i = 0; i < s->n; i++) {
		if (!s->r[i] || !weft_mpi_request_done(s->r[i]))
			continue;
		failed |= set_finish(s, i, array, status_at(statuses, n)) != MPI_SUCCESS;
		indices[n++] = i;
	}
	*outcount = s->live ? n : MPI_UNDEFINED;
	return in_status(failed);
}

/* ---- all ---------------------------------------------------------------------------------- */

/* Ends those that are over, in order, from there on; returns the first that is not. */
static int end_in_order(struct set *s, int i, MPI_Request array[], MPI_Status *statuses,
			bool *failed_p)
{
	for (; i < s->n; i++) {
		struct weft_mpi_request *r = s->r[i];
		if (weft_unlikely(!r))
			weft_mpi_status_empty(status_at(statuses, i));
		else if (r->ops == &weft_mpi_over_ops || weft_mpi_request_done(r))
			*failed_p |= set_finish(s, i, array, status_at(statuses, i)) != MPI_SUCCESS;
		else
			break;
	}
	return i;
}

/* None needs to be advanced: each is looked at once more after what came before it. */
static int wait_in_order(struct set *s, int i, MPI_Request array[], MPI_Status *statuses)
{
	bool failed = false;

	/* Ends when the last operation does. */
	while ((i = end_in_order(s, i, array, statuses, &failed)) < s->n)
		/* A look may complete another thread's operation only, and that thread may need this
		 * core: then sleep. */
		if (!weft_task_engine_look() || !weft_mpi_request_done(s->r[i]))
			set_sleep_all(s, i);
	return in_status(failed);
}

/*
 * The most frequent kinds, where no status is wanted: sends that were over at once, and plain receives
 * without an error, straight from the array.  From there on, in order; returns the first
 * that is another, or not over.
 */
static int end_plain(int i, int n, MPI_Request array[])
{
	struct weft_mpi_pool *pool = &weft_mpi_request_pool, mine = *pool;

	for (; i < n; i++) {
		struct weft_mpi_request *r = find_request(array[i]);
		if (weft_unlikely(!r))
			break;
		if (r->ops == &weft_mpi_over_ops) {
			weft_mpi_object_unname(&r->head);
			weft_mpi_pool_push(&mine, r);
		} else if (r->ops == &weft_mpi_plain_ops &&
			   weft_wait_completion_done(&r->core.done) && !r->core.status.err) {
			weft_mpi_object_unname(&r->head);
			r->comm = NULL;
			weft_mpi_pool_push(&mine, r);
		} else {
			break;
		}
		array[i] = MPI_REQUEST_NULL;
	}
	*pool = mine;
	if (weft_unlikely(mine.count > WEFT_MPI_POOL_KEEP))
		weft_mpi_request_spill();
	return i;
}

/* Is what stopped end_plain() a message that comes with one look? */
static bool look_for(MPI_Request handle)
{
	struct weft_mpi_request *r = find_request(handle);
	if (weft_unlikely(!r || r->ops != &weft_mpi_plain_ops ||
			  weft_wait_completion_done(&r->core.done)))
		return false;
	return weft_task_engine_look() && weft_wait_completion_done(&r->core.done);
}

/* Waitall, from `first` on: all that is left is checked before something is ended. */
static __attribute__((noinline)) int
wait_all_from(int first, int count, MPI_Request array_of_requests[], MPI_Status *array_of_statuses)
{
	struct set s = {.room = SET_ROOM(count)};
	int err = set_open_from(&s, first, count, array_of_requests);

	if (err)
		return err;
	if (weft_likely(!s.advances)) {
		err = wait_in_order(&s, first, array_of_requests, array_of_statuses);
	} else {
		/* Ends when the last operation does; each round does one step at least. */
		while (!set_all_done(&s))
			set_sleep_all(&s, 0);
		err = finish_all(&s, array_of_requests, array_of_statuses);
	}
	set_close(&s);
	return err;
}

int weft_mpi_Waitall(int count, MPI_Request array_of_requests[], MPI_Status *array_of_statuses)
{
	int i = 0;

	if (array_of_statuses == MPI_STATUSES_IGNORE && weft_likely(array_of_requests != NULL))
		/* Ends: each round ends one request at least. */
		do {
			i = end_plain(i, count, array_of_requests);
			if (i >= count && count >= 0)
				return MPI_SUCCESS;
		} while (i < count && look_for(array_of_requests[i]));
	return wait_all_from(i, count, array_of_requests, array_of_statuses);
}

int weft_mpi_Testall(int count, MPI_Request array_of_requests[], int *flag,
		     MPI_Status *array_of_statuses)
{
	struct set s = {.room = SET_ROOM(count)};
	int err = set_open(&s, count, array_of_requests);

	if (err)
		return err;
	*flag = set_test_all(&s);
	if (*flag)
		err = finish_all(&s, array_of_requests, array_of_statuses);
	set_close(&s);
	return err;
}

/* ---- any ---------------------------------------------------------------------------------- */

int weft_mpi_Waitany(int count, MPI_Request array_of_requests[], int *indx, MPI_Status *status)
{
	struct set s = {.room = SET_ROOM(count)};
	int err = set_open(&s, count, array_of_requests), i;

	if (err)
		return err;
	*indx = MPI_UNDEFINED;
	if (!s.live) {
		weft_mpi_status_empty(status);
	} else {
		while ((i = set_first_done(&s)) < 0)
			set_sleep_any(&s);
		*indx = i;
		err = weft_mpi_request_end(s.r[i], &array_of_requests[i], status);
	}
	set_close(&s);
	return err;
}

int weft_mpi_Testany(int count, MPI_Request array_of_requests[], int *indx, int *flag,
		     MPI_Status *status)
{
	struct set s = {.room = SET_ROOM(count)};
	int err = set_open(&s, count, array_of_requests);

	if (err)
		return err;
	err = finish_first(&s, array_of_requests, indx, flag, status);
	set_close(&s);
	return err;
}

/* ---- some --------------------------------------------------------------------------------- */

int weft_mpi_Waitsome(int incount, MPI_Request array_of_requests[], int *outcount,
		      int array_of_indices[], MPI_Status *array_of_statuses)
{
	struct set s = {.room = SET_ROOM(incount)};
	int err = set_open(&s, incount, array_of_requests);

	if (err)
		return err;
	while (s.live && set_first_done(&s) < 0)
		set_sleep_any(&s);
	err = finish_some(&s, array_of_requests, outcount, array_of_indices, array_of_statuses);
	set_close(&s);
	return err;
}

int weft_mpi_Testsome(int incount, MPI_Request array_of_requests[], int *outcount,
		      int array_of_indices[], MPI_Status *array_of_statuses)
{
	struct set s = {.room = SET_ROOM(incount)};
	int err = set_open(&s, incount, array_of_requests);

	if (err)
		return err;
	if (s.live && set_first_done(&s) < 0)
		set_poll(&s, false);
	err = finish_some(&s, array_of_requests, outcount, array_of_indices, array_of_statuses);
	set_close(&s);
	return err;
}

/* ---- looking without completing ----------------------------------------------------------- */

int weft_mpi_Request_get_status_all(int count, const MPI_Request array_of_requests[], int *flag,
				    MPI_Status *array_of_statuses)
{
	struct set s = {.room = SET_ROOM(count)};
	int err = set_open(&s, count, array_of_requests);

	if (err)
		return err;
	*flag = set_test_all(&s);
	if (*flag)
		err = finish_all(&s, NULL, array_of_statuses);
	set_close(&s);
	return err;
}

int weft_mpi_Request_get_status_any(int count, const MPI_Request array_of_requests[], int *indx,
				    int *flag, MPI_Status *status)
{
	struct set s = {.room = SET_ROOM(count)};
	int err = set_open(&s, count, array_of_requests);

	if (err)
		return err;
	err = finish_first(&s, NULL, indx, flag, status);
	set_close(&s);
	return err;
}

int weft_mpi_Request_get_status_some(int incount, const MPI_Request array_of_requests[],
				     int *outcount, int array_of_indices[],
				     MPI_Status *array_of_statuses)
{
	struct set s = {.room = SET_ROOM(incount)};
	int err = set_open(&s, incount, array_of_requests);

	if (err)
		return err;
	if (s.live && set_first_done(&s) < 0)
		set_poll(&s, false);
	err = finish_some(&s, NULL, outcount, array_of_indices, array_of_statuses);
	set_close(&s);
	return err;
}
