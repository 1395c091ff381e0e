/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ofi.h - what others may know of the ofi driver beside its table: is libfabric there?
 *
 * Callers   any thread.
 */
#ifndef WEFT_OFI_H
#define WEFT_OFI_H

#include "base/base.h"

/* One line for weft info: libfabric's version, or why there is none. */
void weft_net_ofi_describe(char *buf, size_t size);

/* Switches for tests. */
struct weft_ofi_lacks {
	bool wait_fd, pidfd;
};
extern struct weft_ofi_lacks weft_net_ofi_lacks;

#endif
