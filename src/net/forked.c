/* SPDX-License-Identifier: BSD-3-Clause */
/* forked.c - a short list of what a forked child has to let go of. */
#include "net/forked.h"

#include <pthread.h>

#define SLOTS 64

static struct {
	void (*let_go)(void *arg);
	void *arg;
} slot[SLOTS];

static void in_child(void)
{
	for (int i = 0; i < SLOTS; i++) {
		if (slot[i].arg)
			slot[i].let_go(slot[i].arg);
		slot[i].arg = NULL;
	}
}

static void register_once(void)
{
	(void)pthread_atfork(NULL, NULL, in_child);
}

void weft_net_forked_add(void (*let_go)(void *arg), void *arg)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	(void)pthread_once(&once, register_once);
	for (int i = 0; i < SLOTS; i++) {
		if (slot[i].arg)
			continue;
		slot[i].let_go = let_go;
		slot[i].arg = arg;
		return;
	}
}

void weft_net_forked_remove(void *arg)
{
	for (int i = 0; i < SLOTS; i++)
		if (slot[i].arg == arg)
			slot[i].arg = NULL;
}
