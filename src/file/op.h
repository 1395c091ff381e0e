/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * op.h - an independent operation: data of a buffer to or from a file, through a view.
 *
 * The op cuts the view's ranges into pieces, and lanes take one piece after the other: pack, write; or read,
 * unpack.  Several lanes are under way at once where there are many pieces.  Its memory is that of the lanes,
 * however much data there is.
 *
 * Callers   start, run: any thread.  start: not blocking.  run: may block.
 * Owner     the op, its buffer, its view and its file stay until it is done: until fn was called, or else until
 *           `done` is true; either is the last access.
 * Progress  start: by the engine, no call needed.
 * Errors    the first position that failed decides: err says why, bytes how much of the data before it is there.
 *           Pieces behind it that were under way may be written too.
 */
#ifndef WEFT_FILE_OP_H
#define WEFT_FILE_OP_H

#include <pthread.h>
#include "data/data.h"
#include "file/view.h"
#include "file/file.h"
#include "wait/completion.h"

struct weft_file_lane;

#define WEFT_FILE_OP_RANGES 16

struct weft_file_op {
	/* The caller's.  Bytes of buf go to or come from positions [pos, pos + buf.bytes) of the view. */
	const struct weft_file *file;
	const struct weft_file_view *view;
	struct weft_buf buf;
	uint64_t pos;
	bool write;
	/* No other process writes between the first and the last byte meanwhile: holes may be rewritten as they are. */
	bool own_range;
	void (*fn)(struct weft_file_op *op); /* as a handler; NULL: `done` is signalled */
	void *arg;
	/* How it ended. */
	int err;        /* errno, or 0 */
	uint64_t bytes; /* of data; fewer at the end of the file, or before an error */
	struct weft_completion done;
	/* The op's own. */
	pthread_mutex_t lock; /* of what follows */
	uint64_t next;        /* data bytes handed out */
	uint64_t good;        /* data bytes of pieces that are over */
	uint64_t err_at;      /* with err: the first data byte that failed */
	bool eof;
	unsigned range_at, range_n;
	struct weft_file_range range[WEFT_FILE_OP_RANGES];
	unsigned lanes, busy;
	struct weft_file_lane *lane;
};

/* About how long it takes by mapped pages, ns, where it has that many ranges; 0: it does not go so.  *once_p: what of it is
 * the first use of pages. */
uint64_t weft_file_op_map_ns(const struct weft_file_op *op, uint64_t ranges, uint64_t from,
			     uint64_t to, uint64_t *once_p);
/* 0 or ENOMEM, and then nothing has begun. */
int weft_file_op_start(struct weft_file_op *op);
/* Starts it and waits; fn is not called.  A thread that may block does the work by itself. */
void weft_file_op_run(struct weft_file_op *op);

#endif
