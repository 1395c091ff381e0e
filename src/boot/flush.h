/* SPDX-License-Identifier: BSD-3-Clause */
/* flush.h - what stdio holds is written out before the process ends at once. */
#ifndef WEFT_BOOT_FLUSH_H
#define WEFT_BOOT_FLUSH_H

#include <stdio.h>

/* Unless another thread is inside f or its reader has stopped: both could last for ever, and the job has to
 * end now. */
void weft_boot_flush(FILE *f);

#endif
