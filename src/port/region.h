/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * region.h - memory that peers may reach, and its notifications.
 *
 * Callers   any thread, handlers included.
 * Trust     offset and length come from a peer: at answers for what lies inside of a region alone.
 */
#ifndef WEFT_PORT_REGION_H
#define WEFT_PORT_REGION_H

#include "port/port.h"

/* False: key names no region, or [offset, offset + bytes) is not inside of it. */
bool weft_port_region_at(uint64_t key, uint64_t offset, uint64_t bytes, char **at_p);
/* One more; the data are there.  A region that is hidden meanwhile has none. */
void weft_port_region_note(uint64_t key, unsigned note);
/* No handler runs any more. */
void weft_port_regions_end(void);

#endif
