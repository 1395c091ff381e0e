/* SPDX-License-Identifier: BSD-3-Clause */
/* key.c - values that each thread has of its own; plain threads keep them in the C library. */
#include "base/assert.h"
#include "ult/ult_int.h"

#include <stdlib.h>
#include "base/log.h"

#define KEYS_MAX 64
#define PASSES 4 /* over the values of a thread that ends: a destructor may set others */

static struct {
	pthread_key_t plain;
	void (*end)(void *value);
} key_table[KEYS_MAX]; /* written once under lock, before x_keys says so */
static _Atomic int x_keys;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool is_key(weft_ult_key key)
{
	/* KEY: what create wrote. */
	return key >= 0 && key < atomic_load_explicit(&x_keys, memory_order_acquire);
}

weft_err weft_ult_key_create(weft_ult_key *key_p, void (*end)(void *value))
{
	weft_err err = WEFT_OK;
	pthread_mutex_lock(&lock);
	int n = atomic_load_explicit(&x_keys, memory_order_relaxed);
	weft_assert(n <= KEYS_MAX);
	if (n == KEYS_MAX || pthread_key_create(&key_table[n].plain, end)) {
		weft_error("weft_ult_key_create: %d keys are there already", n);
		err = WEFT_ERR_LIMIT;
	} else {
		key_table[n].end = end;
		/* KEY.  Carries: its line of the table.  Without it, a thread that hears of the key
		 * by other means could call a destructor that is not written yet. */
		atomic_store_explicit(&x_keys, n + 1, memory_order_release);
		*key_p = n;
	}
	pthread_mutex_unlock(&lock);
	return err;
}

weft_err weft_ult_key_set(weft_ult_key key, void *value)
{
	struct weft_ult *t = weft_ult_self();
	if (!is_key(key))
		return WEFT_ERR_ARG;
	if (!t)
		return pthread_setspecific(key_table[key].plain, value) ? WEFT_ERR_NOMEM : WEFT_OK;
	if (!t->keys)
		t->keys = calloc(KEYS_MAX, sizeof *t->keys);
	if (!t->keys)
		return WEFT_ERR_NOMEM;
	t->keys[key] = value;
	return WEFT_OK;
}

void *weft_ult_key_get(weft_ult_key key)
{
	struct weft_ult *t = weft_ult_self();
	if (!is_key(key))
		return NULL;
	if (!t)
		return pthread_getspecific(key_table[key].plain);
	return t->keys ? t->keys[key] : NULL;
}

void weft_ult_keys_end(struct weft_ult *t)
{
	bool any = true;
	/* KEY: what create wrote.  A key that is made from now on has no value here. */
	int n = atomic_load_explicit(&x_keys, memory_order_acquire);
	for (int pass = 0; any && pass < PASSES; pass++) {
		any = false;
		for (int i = 0; i < n; i++) {
			void *value = t->keys[i];
			t->keys[i] = NULL;
			if (!value || !key_table[i].end)
				continue;
			any = true;
			key_table[i].end(value);
		}
	}
	free(t->keys);
	t->keys = NULL;
}
