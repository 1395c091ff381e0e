/* SPDX-License-Identifier: BSD-3-Clause */
/* put.h - accesses to regions: their handler is named before the first message, their regions end last. */
#ifndef WEFT_PORT_PUT_H
#define WEFT_PORT_PUT_H

#include "base/base.h"

weft_err weft_port_put_start(void) weft_must_use;
/* No handler runs any more. */
void weft_port_put_stop(void);

#endif
