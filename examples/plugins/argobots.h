/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * argobots.h - threads of Argobots that wait in weft or MPI block alone.
 *
 *   ABT_init(...); MPI_Init_thread(...);
 *   argobots_plug_in();    ...    argobots_plug_out();   before ABT_finalize
 *
 * Each thread that ever waits has an eventual, made at its first wait and freed with it.  Tasklets
 * cannot stop, and block as plain threads do.
 */
#ifndef ARGOBOTS_H
#define ARGOBOTS_H

#include <abt.h>
#include <stdlib.h>
#include <weft/plugin.h>

static ABT_key argobots_key = ABT_KEY_NULL;

struct argobots_thread {
	ABT_eventual called;
};

static void argobots_end(void *value)
{
	struct argobots_thread *t = value;
	ABT_eventual_free(&t->called);
	free(t);
}

static void *argobots_self(void)
{
	ABT_unit_type type;
	void *value = NULL;
	if (ABT_self_get_type(&type) != ABT_SUCCESS || type != ABT_UNIT_TYPE_THREAD ||
	    ABT_key_get(argobots_key, &value) != ABT_SUCCESS)
		return NULL;
	if (value)
		return value;
	struct argobots_thread *t = malloc(sizeof(*t));
	if (!t || ABT_eventual_create(0, &t->called) != ABT_SUCCESS) {
		free(t);
		return NULL;
	}
	if (ABT_key_set(argobots_key, t) != ABT_SUCCESS) {
		argobots_end(t);
		return NULL;
	}
	return t;
}

static void argobots_park(void *self)
{
	struct argobots_thread *t = self;
	ABT_eventual_wait(t->called, NULL);
	ABT_eventual_reset(t->called);
}

static void argobots_unpark(void *thread)
{
	struct argobots_thread *t = thread;
	ABT_eventual_set(t->called, NULL, 0);
}

static void argobots_yield(void)
{
	ABT_thread_yield();
}

static const struct weft_plugin argobots_plugin = {argobots_self, argobots_park, argobots_unpark,
						   argobots_yield};

static inline weft_err argobots_plug_in(void)
{
	if (argobots_key == ABT_KEY_NULL &&
	    ABT_key_create(argobots_end, &argobots_key) != ABT_SUCCESS)
		return WEFT_ERR_NOMEM;
	return weft_plugin_set(&argobots_plugin);
}

static inline weft_err argobots_plug_out(void)
{
	return weft_plugin_set(NULL);
}

#endif
