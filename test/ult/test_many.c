/* SPDX-License-Identifier: BSD-3-Clause */
/* Too many threads: the error that is promised; and a thread that ends makes room for another. */
#include <stdatomic.h>
#include <weft/ult.h>
#include "base/settings.h"
#include "check.h"
#include "ult/ult_int.h"

#define SOME 200 /* more than are made at a time */

static _Atomic bool x_open;

static void *blocks(void *arg)
{
	while (!atomic_load(&x_open))
		weft_ult_park();
	return arg;
}

static weft_err create(weft_ult **t)
{
	struct weft_ult_attr a = WEFT_ULT_ATTR_INIT;
	a.stack_size = 4096;
	return weft_ult_create(t, &a, blocks, t);
}

static void let_end(weft_ult **t, int n)
{
	void *got;
	atomic_store(&x_open, true);
	for (int i = 0; i < n; i++) {
		weft_ult_unpark(t[i]);
		CHECK_EQ(weft_ult_join(t[i], &got), WEFT_OK);
		CHECK(got == &t[i]);
	}
	atomic_store(&x_open, false);
}

/* As if so many slots of worker 0 had been used. */
static uint32_t slots_set(uint32_t slots)
{
	struct weft_ult_worker *w = weft_ult_all.worker[0];
	pthread_mutex_lock(&w->pool_lock);
	uint32_t was = w->slots;
	w->slots = slots;
	pthread_mutex_unlock(&w->pool_lock);
	return was;
}

int main(void)
{
	weft_ult *t[SOME];
	int n = 0;
	CHECK_EQ(weft_settings_load(), WEFT_OK);
	CHECK_EQ(weft_ult_start(1), WEFT_OK);
	CHECK_EQ(create(&t[0]), WEFT_OK);
	uint32_t made = slots_set(WEFT_READY_SLOTS);
	CHECK(made > 1 && made < SOME);
	weft_err err = WEFT_OK;
	for (n = 1; n < SOME && (err = create(&t[n])) == WEFT_OK; n++)
		; /* ends: those that were made are used up */
	CHECK_EQ(err, WEFT_ERR_LIMIT);
	CHECK_EQ(n, made);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(create(&t[n]), WEFT_ERR_LIMIT);

	let_end(&t[n - 2], 2);
	CHECK_EQ(create(&t[n - 2]), WEFT_OK);
	CHECK_EQ(create(&t[n - 1]), WEFT_OK);
	CHECK_EQ(create(&t[n]), WEFT_ERR_LIMIT);

	slots_set(made);
	for (; n < SOME; n++) /* and on, with new ones */
		CHECK_EQ(create(&t[n]), WEFT_OK);
	let_end(t, SOME);
	CHECK_EQ(weft_ult_stop(), WEFT_OK);
	return 0;
}
