/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * server.h - the communication server, in the watcher's place.
 */
#ifndef WEFT_TASK_SERVER_H
#define WEFT_TASK_SERVER_H

#include "task/engine_int.h"

/* In the watcher's place, with the flavour of that name. */
weft_err weft_task_server_start(struct weft_engine *e);

#endif
