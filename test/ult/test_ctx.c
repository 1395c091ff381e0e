/* SPDX-License-Identifier: BSD-3-Clause */
/* The switch keeps registers, floating-point control and the argument; calls on another stack. */
#include <fenv.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "check.h"
#include "ult/sched/ctx.h"
#include "ult/stack/san.h"

#define STACK 65536

static void *home, *it;
static int turns;
static long seen[8];
static int rounding;

static void entry(void *arg)
{
	long a = (long)arg;
	volatile double d = 1.5;
	fesetround(FE_UPWARD);
	for (int i = 0; i < 8; i++) {
		seen[i] = a;
		turns++;
		a = (long)weft_ult_ctx_switch(&it, home, (void *)(a * 2));
		CHECK(d == 1.5);
		CHECK_EQ(fegetround(), FE_UPWARD);
	}
	(void)weft_ult_ctx_switch(&it, home, NULL);
	CHECK(!"gone on after its end");
}

static void note_rounding(void *arg)
{
	char *here = __builtin_frame_address(0);
	CHECK((uintptr_t)here % 16 == 0);
	*(char **)arg = here;
	rounding = fegetround();
}

static void switches(void)
{
	char *stack = aligned_alloc(64, STACK), *where = NULL;
	CHECK(stack);
	it = weft_ult_ctx_make(stack + STACK, entry);
	for (long i = 1; i <= 8; i++) {
		void *back = weft_ult_ctx_switch(&home, it, (void *)i);
		CHECK_EQ((long)back, 2 * i);
		CHECK_EQ(turns, i);
		CHECK_EQ(seen[i - 1], i);
		CHECK_EQ(fegetround(), FE_TONEAREST);
	}
	/* Below what the suspended context keeps. */
	weft_ult_ctx_call(it, note_rounding, &where);
	CHECK(where > stack && where < stack + STACK);
	CHECK_EQ(rounding, FE_TONEAREST);
	CHECK(weft_ult_ctx_switch(&home, it, NULL) == NULL);
	free(stack);
}

int main(void)
{
#if WEFT_ULT_SANITIZED
	SKIP("switches are not announced to the sanitizer here");
#endif
	switches();
	return 0;
}
