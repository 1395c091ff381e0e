#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Proves that <weft/ult.h> is good C++, and that a user-level thread may block inside a catch: the
# exceptions in flight are its own.  Run with BUILD and SOURCE set.
set -u
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cat >"$work/catch.cc" <<'END'
#include <weft/ult.h>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

static void *catches(void *arg)
{
	const std::string mine = "exception of " + std::to_string((long)arg);
	for (int i = 0; i < 50; i++) {
		try {
			throw mine;
		} catch (const std::string &) {
			weft_ult_yield();
			weft_ult_park_for(1000);
			try {
				throw; /* the one that we are handling */
			} catch (const std::string &again) {
				weft_ult_yield();
				if (again != mine || !std::current_exception()) {
					std::fprintf(stderr, "got the %s\n", again.c_str());
					std::abort();
				}
			}
		}
		if (std::current_exception())
			std::abort();
	}
	return NULL;
}

int main()
{
	weft_ult *t[8];
	weft_ult_attr a = WEFT_ULT_ATTR_INIT;
	weft_ult_mutex m = WEFT_ULT_MUTEX_INIT;
	a.stack_size = 65536;
	if (weft_ult_start(2) != WEFT_OK || weft_ult_mutex_lock(&m) != WEFT_OK)
		return 1;
	for (long i = 0; i < 8; i++)
		if (weft_ult_create(&t[i], &a, catches, (void *)i) != WEFT_OK)
			return 1;
	for (int i = 0; i < 8; i++)
		weft_ult_join(t[i], NULL);
	weft_ult_mutex_unlock(&m);
	return weft_ult_stop() == WEFT_OK ? 0 : 1;
}
END
"$BUILD/bin/mpicxx" -Wall -Wextra -Werror -O2 "$work/catch.cc" -o "$work/catch" || {
	echo "FAILED: mpicxx does not compile a program with <weft/ult.h>" >&2
	exit 1
}
"$work/catch" || {
	echo "FAILED: exceptions of user-level threads: exit code $?" >&2
	exit 1
}
