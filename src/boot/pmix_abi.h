/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmix_abi.h - the part of libpmix.so.2's binary interface that weft uses (versions 3 to 6).
 *
 * Written down here, because the library is loaded at run time and its headers may be missing where
 * weft is built.  test/boot/pmix_server.c compares it with the installed headers.
 */
#ifndef WEFT_BOOT_PMIX_ABI_H
#define WEFT_BOOT_PMIX_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEFT_PMIX_NSPACE_BYTES 256
#define WEFT_PMIX_KEY_BYTES 512

enum { /* status */
       WEFT_PMIX_SUCCESS = 0,
       WEFT_PMIX_ERR_PROC_ABORTED = -7,
       WEFT_PMIX_ERR_TIMEOUT = -24,
       WEFT_PMIX_ERR_UNREACH = -25,
       WEFT_PMIX_ERR_BAD_PARAM = -27,
       WEFT_PMIX_ERR_INIT = -31,
       WEFT_PMIX_ERR_NOMEM = -32,
       WEFT_PMIX_ERR_NOT_FOUND = -46,
       WEFT_PMIX_ERR_NOT_SUPPORTED = -47,
       WEFT_PMIX_ERR_LOST_CONNECTION = -61,
       WEFT_PMIX_ERR_LOST_CONNECTION_TO_SERVER = -101, /* version 3's */
       WEFT_PMIX_OPERATION_SUCCEEDED = -157,
       WEFT_PMIX_ERR_PROC_TERM_WO_SYNC = -200,
       WEFT_PMIX_EVENT_NODE_DOWN = -231,
       WEFT_PMIX_EVENT_ACTION_COMPLETE = -334,
       WEFT_PMIX_ERR_PROC_KILLED_BY_CMD = -400,
       WEFT_PMIX_ERR_PROC_ABORTED_BY_SIG = -402,
};

enum { /* kinds of values */
       WEFT_PMIX_BOOL = 1,
       WEFT_PMIX_STRING = 3,
       WEFT_PMIX_UINT32 = 14,
       WEFT_PMIX_PROC = 22,
       WEFT_PMIX_DATA_ARRAY = 39,
       WEFT_PMIX_PROC_RANK = 40,
};

#define WEFT_PMIX_RANK_WILDCARD (UINT32_MAX - 1)
#define WEFT_PMIX_GLOBAL 3 /* for peers on this host and elsewhere */

struct weft_pmix_proc {
	char nspace[WEFT_PMIX_NSPACE_BYTES];
	uint32_t rank;
};

struct weft_pmix_array {
	uint16_t type;
	size_t size;
	void *array;
};

struct weft_pmix_value {
	uint16_t type;
	union {
		bool flag;
		char *string;
		uint32_t uint32;
		struct weft_pmix_proc *proc;
		struct weft_pmix_array *array;
		uint64_t room[3]; /* the largest kind */
	} data;
};

struct weft_pmix_info {
	char key[WEFT_PMIX_KEY_BYTES];
	uint32_t flags;
	struct weft_pmix_value value;
};

struct weft_pmix_query {
	char **keys;
	struct weft_pmix_info *qualifiers;
	size_t nqual;
};

typedef void (*weft_pmix_done_fn)(int status, void *arg);
typedef void (*weft_pmix_value_fn)(int status, struct weft_pmix_value *value, void *arg);
typedef void (*weft_pmix_registered_fn)(int status, size_t ref, void *arg);
typedef void (*weft_pmix_handled_fn)(int status, struct weft_pmix_info *results, size_t n,
				     weft_pmix_done_fn fn, void *fn_arg, void *chain);
typedef void (*weft_pmix_event_fn)(size_t ref, int status, const struct weft_pmix_proc *source,
				   struct weft_pmix_info *info, size_t n,
				   struct weft_pmix_info *results, size_t n_results,
				   weft_pmix_handled_fn handled, void *chain);

/* What is looked up in the library, by name. */
struct weft_pmix_lib {
	int (*PMIx_Init)(struct weft_pmix_proc *me, struct weft_pmix_info *info, size_t n);
	int (*PMIx_Finalize)(const struct weft_pmix_info *info, size_t n);
	int (*PMIx_Abort)(int code, const char *why, struct weft_pmix_proc *procs, size_t n);
	int (*PMIx_Put)(uint8_t scope, const char *key, struct weft_pmix_value *value);
	int (*PMIx_Commit)(void);
	int (*PMIx_Fence_nb)(const struct weft_pmix_proc *procs, size_t n,
			     const struct weft_pmix_info *info, size_t n_info, weft_pmix_done_fn fn,
			     void *arg);
	int (*PMIx_Get_nb)(const struct weft_pmix_proc *proc, const char *key,
			   const struct weft_pmix_info *info, size_t n, weft_pmix_value_fn fn,
			   void *arg);
	int (*PMIx_Query_info)(struct weft_pmix_query *queries, size_t n,
			       struct weft_pmix_info **results_p, size_t *n_p);
	int (*PMIx_Register_event_handler)(int *codes, size_t n_codes, struct weft_pmix_info *info,
					   size_t n, weft_pmix_event_fn fn,
					   weft_pmix_registered_fn registered, void *arg);
	const char *(*PMIx_Error_string)(int status);
};

#endif
