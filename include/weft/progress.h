/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * progress.h - switches background progress while a program runs.
 *
 * Background progress means that weft's watcher moves messages on while the application computes.
 * The same switches: the setting `progress` (WEFT_PROGRESS) at start, the tool interface's control
 * variable weft_progress, and the info keys weft_progress and weft_progress_thread ("on", "off")
 * given to MPI_Comm_set_info on MPI_COMM_WORLD.
 *
 * Callers   any thread, also before MPI_Init.  Nothing here blocks; set makes one system call.
 */
#ifndef WEFT_PROGRESS_H
#define WEFT_PROGRESS_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define WEFT_PROGRESS_API __attribute__((visibility("default")))
#else
#define WEFT_PROGRESS_API
#endif

/* For the process.  Off: messages move only inside MPI calls, and no engine thread runs. */
WEFT_PROGRESS_API void weft_progress_set(bool on);
WEFT_PROGRESS_API bool weft_progress_get(void);

/* For the operations that the calling thread starts from now on; it is on at first. */
WEFT_PROGRESS_API void weft_progress_thread_set(bool on);
WEFT_PROGRESS_API bool weft_progress_thread_get(void);

#ifdef __cplusplus
}
#endif
#endif
