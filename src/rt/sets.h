/* SPDX-License-Identifier: BSD-3-Clause */
/* sets.h - weft's own process sets: "weft://host" and "weft://numa", the ranks near this one. */
#ifndef WEFT_RT_SETS_H
#define WEFT_RT_SETS_H

#include "base/base.h"

/* Starting thread, once comm/ runs.  weft://numa is there if this rank's cores are all of one NUMA node.
 * What cannot be named is left out. */
void weft_rt_name_sets(int rank, int size);

#endif
