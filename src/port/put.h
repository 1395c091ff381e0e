/* SPDX-License-Identifier: BSD-3-Clause */
/* put.h - put and get: their handler is named before the first message, their regions end last. */
#ifndef WEFT_PORT_PUT_H
#define WEFT_PORT_PUT_H

void weft_port_put_start(void);
/* No handler runs any more. */
void weft_port_put_stop(void);

#endif
