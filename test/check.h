/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check.h - what a test program needs: a check that says what failed and ends with 1, and a skip
 * that ends with 77 and a reason.
 */
#ifndef WEFT_TEST_CHECK_H
#define WEFT_TEST_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define CHECK(cond)                                                                                \
	((cond) ? (void)0                                                                          \
		: (fprintf(stderr, "%s:%d: %s: failed: %s\n", __FILE__, __LINE__, __func__,        \
			   #cond),                                                                 \
		   exit(1)))

#define CHECK_EQ(a, b)                                                                             \
	do {                                                                                       \
		long long check_a = (long long)(a), check_b = (long long)(b);                      \
		if (check_a != check_b) {                                                          \
			fprintf(stderr, "%s:%d: %s: %s is %lld, want %s = %lld\n", __FILE__,       \
				__LINE__, __func__, #a, check_a, #b, check_b);                     \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

#define SKIP(why) (fprintf(stderr, "skipped: %s\n", (why)), exit(77))

/*
 * How many times as many rounds a test of one thread does without ThreadSanitizer as with it: there
 * is no race to be found in it, and the other builds prove what it computes.
 */
#ifdef __SANITIZE_THREAD__
#define TEST_ALONE 8
#else
#define TEST_ALONE 1
#endif

/* The seed of a random test: argument 1 if given, else fixed; always printed. */
static inline unsigned long long test_seed(int argc, char **argv)
{
	unsigned long long seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 20161121;
	printf("seed %llu\n", seed);
	return seed;
}

#endif
