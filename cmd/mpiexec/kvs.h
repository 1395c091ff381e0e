/* SPDX-License-Identifier: BSD-3-Clause */
/* kvs.h - the job's key-value space: a hash table of strings; main thread only. */
#ifndef MPIEXEC_KVS_H
#define MPIEXEC_KVS_H

#include <stdbool.h>

#define KVS_BYTES_MAX (256u << 20)

/* Stores a copy; false: no memory, or more than KVS_BYTES_MAX in all. */
bool kvs_put(const char *key, const char *value);

/* The value, valid until the key is put again; NULL: none. */
const char *kvs_get(const char *key);

#endif
