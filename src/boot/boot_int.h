/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * boot_int.h - what the files of this folder share.
 *
 * Callers   the starting thread only, except where a function says otherwise.
 */
#ifndef WEFT_BOOT_INT_H
#define WEFT_BOOT_INT_H

#include <sys/types.h>
#include "boot/boot.h"

/* --- launcher.c: what the environment says about who started us --- */

enum weft_boot_origin {
	WEFT_BOOT_ALONE, /* nobody: one process */
	WEFT_BOOT_PMI1,  /* somebody who speaks PMI-1 on pmi_fd */
};

struct weft_boot_env {
	enum weft_boot_origin origin;
	int rank, size;
	int pmi_fd;
	int secret_fd; /* WEFT_BOOT_FD of weft's own mpiexec, or -1 */
};

/* Reads PMI_*, WEFT_BOOT_* and the marks of other launchers.  Logs what is wrong. */
weft_err weft_boot_env_read(struct weft_boot_env *env_p) weft_must_use;

/* --- secret.c: the 32 bytes that prove membership, and the page they live on --- */

/* What weft's mpiexec sends over the inherited socket, once per rank. */
#define WEFT_BOOT_HANDOVER_MAGIC "weftjob1"
struct weft_boot_handover {
	char magic[8];
	uint8_t secret[WEFT_SECRET_BYTES];
	char jobid[WEFT_JOBID_MAX];
};

/* An info object on a page of its own that no core dump contains; NULL: no memory. */
struct weft_boot_info *weft_boot_info_create(void);
/* Wipes and frees it. */
void weft_boot_info_destroy(struct weft_boot_info *info);

/* Reads secret and job name from fd and closes it, whatever happens. */
weft_err weft_boot_secret_receive(int fd, struct weft_boot_info *info) weft_must_use;
/* Draws a fresh secret and a fresh job name. */
weft_err weft_boot_secret_make(struct weft_boot_info *info) weft_must_use;
/* As text for a key-value space, and back; text holds WEFT_BOOT_SECRET_TEXT bytes. */
#define WEFT_BOOT_SECRET_TEXT (2 * WEFT_SECRET_BYTES + 1 + WEFT_JOBID_MAX + 1)
void weft_boot_secret_print(const struct weft_boot_info *info, char *text);
weft_err weft_boot_secret_parse(const char *text, struct weft_boot_info *info) weft_must_use;

/* --- blob.c: many (key, value) pairs as one text that every launcher carries unharmed --- */

struct weft_boot_blob {
	char *text; /* NUL-terminated, only letters, digits and "-._~%," */
	size_t len, cap;
};

/* Appends a pair.  Any bytes but NUL. */
weft_err weft_boot_blob_add(struct weft_boot_blob *b, const char *key,
			    const char *value) weft_must_use;
/* The last value of key within text, unescaped into buf.
 * NOENT: no such key; TRUNC: buf is too small; PROTO: text is not one of ours. */
weft_err weft_boot_blob_find(const char *text, const char *key, char *buf,
			     size_t size) weft_must_use;
/* Is text something that blob_add could have made? */
bool weft_boot_blob_valid(const char *text);
void weft_boot_blob_fini(struct weft_boot_blob *b);

/* --- pmi1.c: the line protocol --- */

#define WEFT_PMI_LINE_MAX 65536 /* a longer answer is a protocol error */
#define WEFT_PMI_NAME_MAX 512

struct weft_pmi {
	_Atomic int x_fd; /* -1: closed.  Written by the starting thread, read by abort */
	int kvsname_max, keylen_max, vallen_max;
	char kvsname[WEFT_PMI_NAME_MAX];
	char *line;            /* WEFT_PMI_LINE_MAX + 1 bytes: what has been read */
	size_t fill, line_end; /* bytes in line; end of the answer being parsed, 0: none */
};

/* Says hello, learns limits and the name of the space.  On failure nothing is kept open. */
weft_err weft_boot_pmi_open(struct weft_pmi *p, int fd) weft_must_use;
weft_err weft_boot_pmi_int(struct weft_pmi *p, const char *cmd, const char *answer, const char *key,
			   int *out_p) weft_must_use;
weft_err weft_boot_pmi_put(struct weft_pmi *p, const char *key, const char *value) weft_must_use;
/* *value_p lies in p->line until the next call. */
weft_err weft_boot_pmi_get(struct weft_pmi *p, const char *key, const char **value_p) weft_must_use;
/* weft's mpiexec only: the first parts that ranks from..*next_p - 1 put in a batch, each ended by
 * ';'.  NOENT: this launcher does not know the request.  *text_p as in weft_boot_pmi_get. */
weft_err weft_boot_pmi_get_batch(struct weft_pmi *p, int batch, int from, int *next_p,
				 const char **text_p) weft_must_use;
weft_err weft_boot_pmi_barrier(struct weft_pmi *p) weft_must_use;
void weft_boot_pmi_finalize(struct weft_pmi *p);
/* Any thread: one write, no answer expected.  True: the launcher will hear of it. */
/* text: NULL, or what weft's mpiexec says of it if it knows no other cause. */
bool weft_boot_pmi_abort(struct weft_pmi *p, int code, const char *text);

#endif
