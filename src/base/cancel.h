/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cancel.h - keeps pthread_cancel from ending a thread that holds what other threads need.
 *
 * A cancel that comes meanwhile acts after the call into the library, at the application's own next
 * cancellation point.
 *
 * Callers   any thread, in pairs, nested as one likes.  Around every call of libc that is a
 *           cancellation point (read, write, epoll_wait, sendmsg, nanosleep ...) made in a thread
 *           of the application; syscall() and pthread_mutex_lock are none.
 * Cost      9 ns a pair: beside a system call, never on a path without one.
 */
#ifndef WEFT_CANCEL_H
#define WEFT_CANCEL_H

#include <pthread.h>

/* The state to go back to. */
static inline int weft_cancel_off(void)
{
	int was = PTHREAD_CANCEL_ENABLE;
	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &was);
	return was;
}

static inline void weft_cancel_back(int was)
{
	int ours;
	(void)pthread_setcancelstate(was, &ours);
}

#endif
