/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * file_call.h - the poster's own blocking work on a file, by a thread of a source of blocking file requests.
 *
 * Callers   any thread, handlers included.
 * Owner     arg stays valid until the event is done; its result is what fn returned.
 * Order     a call counts as a write to fd: an fsync that is posted later to the same source comes after it.
 */
#ifndef WEFT_TASK_FILE_CALL_H
#define WEFT_TASK_FILE_CALL_H

#include <weft/source.h>
#include "base/base.h"

/* es: of weft_events_open_files_blocking.  fn runs in the call where no thread can be had. */
weft_err weft_task_post_file_call(struct weft_events *es, struct weft_event *ev, int fd,
				  int64_t (*fn)(void *arg), void *arg) weft_must_use;

#endif
