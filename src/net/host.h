/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * host.h - which host is this process on?
 *
 * Two processes are on the same host when they share boot id, network, pid and user namespace and
 * user: only then can they hand over descriptors, read each other's memory and trust each
 * other's pids.  The text of the key is the same exactly then.
 *
 * Callers   any thread.  Nothing blocks; each call reads a few files of /proc.
 */
#ifndef WEFT_HOST_H
#define WEFT_HOST_H

#include "base/base.h"

#define WEFT_HOST_KEY_MAX 128

/* Writes the key of this process.  WEFT_ERR_UNSUPPORTED: no /proc; then no other process counts as
 * being on this host. */
weft_err weft_net_host_key(char *buf, size_t size) weft_must_use;

/* The same for the network alone (boot id and network namespace): equal keys share a loopback. */
weft_err weft_net_network_key(char *buf, size_t size) weft_must_use;

/* Does an address that shm published (its address() line) name the host with that key? */
bool weft_net_shm_same_host(const char *address, const char *key);

#endif
