/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz.h - a target reads bytes as a process outside could have sent them.  It must neither crash,
 * hang nor read what it does not own; whether the bytes are taken or refused is no matter.
 *
 * libFuzzer calls it (tools/fuzz), or replay.c with the files of corpus/NAME and mutations of them.
 */
#ifndef WEFT_TEST_FUZZ_H
#define WEFT_TEST_FUZZ_H

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/log.h"
#include "check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Takes bytes off the front of the input; zeros when it is used up. */
struct fuzz_input {
	const uint8_t *at;
	size_t left;
};

static inline void fuzz_take(struct fuzz_input *in, void *to, size_t n)
{
	size_t k = n < in->left ? n : in->left;
	memset(to, 0, n);
	memcpy(to, in->at, k);
	in->at += k;
	in->left -= k;
}

static inline unsigned fuzz_byte(struct fuzz_input *in)
{
	uint8_t b;
	fuzz_take(in, &b, 1);
	return b;
}

#endif
