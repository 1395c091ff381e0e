/* SPDX-License-Identifier: BSD-3-Clause */
/* command.h - what the files of the command `weft` share. */
#ifndef WEFT_COMMAND_H
#define WEFT_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One line about a wrong command line; returns exit code 2. */
int weft_cmd_misuse(const char *text, const char *word);

/* The folder that bin/weft lies in, so that an installation may be moved.  False: unknown. */
bool weft_cmd_prefix(char *buf, size_t size);

/* weft info; the arguments after it.  Returns the exit code. */
int weft_cmd_info(int argc, char **argv);

/* weft info --live; the arguments after it. */
int weft_cmd_live(int argc, char **argv);

/* weft doctor; the arguments after it. */
int weft_cmd_doctor(int argc, char **argv);

/* size bytes from address at of process pid; false: not there, or not allowed. */
bool weft_cmd_fetch(int pid, uint64_t at, void *to, size_t size);
/* A text there; it may lie at the end of a page. */
void weft_cmd_fetch_text(int pid, uint64_t at, char *to, size_t size);

struct weft_live_head;
/* The memory of base/live.h that process pid has open, mapped; NULL: none, and errno. */
const struct weft_live_head *weft_cmd_live_map(int pid);
void weft_cmd_live_unmap(const struct weft_live_head *h);
/* Where the process has the part of that name; 0: it has none. */
uint64_t weft_cmd_live_part(const struct weft_live_head *h, const char *name, uint64_t layout,
			    bool *known);
struct weft_wait_note;
/* Of each user-level thread that is alive; note is an address in that process. */
typedef void weft_cmd_ult_fn(void *arg, int worker, uint32_t slot, const char *name,
			     const struct weft_wait_note *note);
bool weft_cmd_live_each_ult(int pid, const struct weft_live_head *h, weft_cmd_ult_fn *fn,
			    void *arg);
/* The user-level threads of process pid, at most `most` of them one by one. */
void weft_cmd_live_ults(int pid, const struct weft_live_head *h, int most);

/* weft sample; the arguments after it. */
int weft_cmd_sample(int argc, char **argv);
/* Its two ranks: sends sizes from, twice that, ... to, to and fro in blocks, and prints "BYTES NS"
 * lines; or writes down on each host what was measured with the other. */
int weft_cmd_sample_rank(size_t from, size_t to, int blocks);
int weft_cmd_sample_keep(long long bytes);
struct weft_sample;
/* False, after one line: there is no such place; it cannot be written. */
bool weft_cmd_sample_path(char *path, size_t size);
bool weft_cmd_sample_write(char *path, const struct weft_sample *sample);

#endif
