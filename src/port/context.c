/* SPDX-License-Identifier: BSD-3-Clause */
/* context.c - the contexts of weft/comm.h, opened and closed together. */
#include "port/port.h"

/* MPI counts its contexts from 0; these are the last. */
#define FIRST_CONTEXT (UINT32_MAX - 2 * WEFT_PORT_CTXS - 1)

struct weft_ctx *weft_port_ctx[WEFT_PORT_CTXS];
_Thread_local int weft_port_depth;

void weft_port_contexts_close(void)
{
	for (int i = 0; i < WEFT_PORT_CTXS; i++) {
		if (weft_port_ctx[i])
			weft_comm_ctx_close(weft_port_ctx[i]);
		weft_port_ctx[i] = NULL;
	}
}

weft_err weft_port_contexts_open(void)
{
	for (uint32_t i = 0; i < WEFT_PORT_CTXS; i++) {
		uint32_t counted = i == WEFT_PORT_DATA || i == WEFT_PORT_ACK ? WEFT_CTX_COUNTED : 0;
		weft_err err = weft_comm_ctx_open(weft_comm_home(), FIRST_CONTEXT + 2 * i + counted,
						  &weft_port_ctx[i]);
		if (err) {
			weft_port_contexts_close();
			return err;
		}
	}
	return WEFT_OK;
}
