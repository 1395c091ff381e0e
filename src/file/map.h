/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * map.h - a file's bytes as memory: short ranges by loads and stores, where a system call for each costs more than its data.
 *
 * A local file system has one cache for mappings and for calls, and a store changes no byte beside its own: members whose
 * ranges share a page need no lock.  Windows of the file are mapped when they are first used, and kept.
 *
 * A page that cannot be had (no space, an error of the device, the file was cut) would end the process by SIGBUS.  A handler puts an
 * empty page there instead, and leave says so: the access is made again by calls, which name the error.  Where the handler is
 * not in place, or the thread blocks the signal, or the file system is another one, enter gives nothing.
 *
 * Callers   enter, leave: any thread that may wait for the device.  Others: any thread.
 * Owner     a window is held from enter to leave; close comes after.
 */
#ifndef WEFT_FILE_MAP_H
#define WEFT_FILE_MAP_H

#include "file/file.h"

#define WEFT_FILE_WINDOW ((uint64_t)64 << 20)

struct weft_file_window;

/* Of a file on a file system that allows it; NULL: no memory, or not allowed. */
struct weft_file_maps *weft_file_maps_make(const struct weft_file *f);
void weft_file_maps_free(struct weft_file_maps *m);

/* May ranges go by the mapping?  A hint: enter decides. */
bool weft_file_map_may(const struct weft_file *f);
/* Where the window ends in which byte `at` lies: a use stays in one window. */
static inline uint64_t weft_file_map_end(uint64_t at)
{
	return (at / WEFT_FILE_WINDOW + 1) * WEFT_FILE_WINDOW;
}
/*
 * The memory of byte `at` of the file, and `len` bytes from there, all of them within the file's size; NULL: take the
 * system's calls.  dense: each page of it will be used, so they are fetched together.
 */
char *weft_file_map_enter(const struct weft_file *f, bool write, uint64_t at, uint64_t len,
			  bool dense, struct weft_file_window **w_p);
/* False: what was loaded or stored since enter is nothing, and may be repeated. */
bool weft_file_map_leave(const struct weft_file *f, struct weft_file_window *w);

/* Of [from, to): the bytes whose pages have not been fetched for writing, about. */
uint64_t weft_file_map_cold(const struct weft_file *f, uint64_t from, uint64_t to);

/* Stores do not always move the time of the file's last change.  Is it time for a call that does? */
bool weft_file_map_is_stale(const struct weft_file *f);
/* Such a call was made. */
void weft_file_map_touched(const struct weft_file *f);
/* Moves it, if stores have come after the last such call. */
void weft_file_map_touch(const struct weft_file *f);

#endif
