/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ev_file.h - a request to read or write a file, the queue of those that wait, and the threads that make blocking
 * calls where there is no io_uring.
 *
 * Callers   queue: one at a time.  pool_open: once per source; the rest of the pool are the source's functions.
 * Owner     a request is its poster's, from done on; the pool's threads end with stop.
 * Order     of equal priority, first come, first served.  An fsync is called once the writes to its descriptor that came
 *           before are over, and before later ones; nothing else is ordered.
 */
#ifndef WEFT_EV_FILE_H
#define WEFT_EV_FILE_H

#include "task/event/event_int.h"

enum weft_file_call { FILE_READ, FILE_WRITE, FILE_FSYNC, FILE_READV, FILE_WRITEV, FILE_CALL };

struct file_request {
	struct weft_event *next; /* in a queue */
	void *buffer;            /* READV, WRITEV: the vector; CALL: fn's argument */
	union {
		size_t bytes;
		int64_t (*fn)(void *arg); /* CALL */
	};
	uint64_t offset;
	int64_t result; /* of a blocking call */
	int fd;
	uint32_t pieces; /* of the vector */
	uint8_t op;
	bool with_kernel; /* or with a thread */
	bool withdrawn;
};

_Static_assert(sizeof(struct file_request) <= sizeof(((struct weft_ev *)0)->of_source), "it fits");

static inline struct file_request *weft_task_file_request(const struct weft_event *ev)
{
	return weft_task_event_data(ev);
}

struct weft_file_queue {
	struct weft_event *first, *last;
};

/* Behind those of equal or higher priority: the steps are those of lower priority. */
void weft_task_file_queue_add(struct weft_file_queue *q, struct weft_event *ev);
/* before: its neighbour in front, NULL: it is the first. */
void weft_task_file_queue_cut(struct weft_file_queue *q, struct weft_event *before,
			      struct weft_event *ev);
/* False: it is not there. */
bool weft_task_file_queue_remove(struct weft_file_queue *q, struct weft_event *ev);

/* slow: calls wait for a device or a server rather than compute, as far as is known. */
weft_err weft_task_file_pool_open(bool slow, struct weft_events **es_p) weft_must_use;

#endif
