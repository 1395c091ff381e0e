/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * boot_probe.c - a rank without MPI: joins through boot.h, then does what its argument says.
 *
 * The scripts of this folder run it under weft's mpiexec and under Hydra.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "boot/boot.h"

static const struct weft_boot_info *info;

#define MUST(call)                                                                                 \
	do {                                                                                       \
		weft_err must_err = (call);                                                        \
		if (must_err) {                                                                    \
			fprintf(stderr, "probe: %s: %s\n", #call, weft_strerror(must_err));        \
			exit(9);                                                                   \
		}                                                                                  \
	} while (0)

/* A value that depends on the rank, with every awkward byte in it. */
static void make_value(int rank, size_t len, char *text)
{
	for (size_t i = 0; i < len; i++)
		text[i] = (char)(1 + (i * 7 + (size_t)rank * 13) % 255);
	text[len] = 0;
}

/* Each rank puts several values, long ones too, and reads those of all.  Where a get waits for its value
 * (PMIx), a key is put once, and what is never put cannot be asked for. */
static void exchange(size_t len)
{
	char *mine = malloc(len + 1), *theirs = malloc(len + 1), text[64];
	bool lazy = weft_boot_is_lazy();
	for (int round = 0; round < 3; round++) {
		make_value(info->rank + round, len, mine);
		snprintf(text, sizeof text, "short %d=%d; %%", info->rank, round);
		char longs[32], shorts[32], empty[32];
		snprintf(longs, sizeof longs, "long value %d", lazy ? round : 0);
		snprintf(shorts, sizeof shorts, "short %d", lazy ? round : 0);
		snprintf(empty, sizeof empty, "empty %d", lazy ? round : 0);
		MUST(weft_boot_put(longs, mine));
		MUST(weft_boot_put(shorts, text));
		MUST(weft_boot_put(empty, ""));
		MUST(weft_boot_fence());
		for (int r = 0; r < info->size; r++) {
			char want[64], got[64];
			make_value(r + round, len, mine);
			MUST(weft_boot_get(r, longs, theirs, len + 1));
			snprintf(want, sizeof want, "short %d=%d; %%", r, round);
			MUST(weft_boot_get(r, shorts, got, sizeof got));
			if (strcmp(mine, theirs) != 0 || strcmp(want, got) != 0)
				exit(8);
			MUST(weft_boot_get(r, empty, got, 1));
			if (!lazy &&
			    weft_boot_get(r, "not put by any", got, sizeof got) != WEFT_ERR_NOENT)
				exit(7);
		}
		MUST(weft_boot_fence());
	}
	free(mine);
	free(theirs);
}

/* All ranks hold the same secret: compares a short digest, never prints the secret. */
static void same_secret(void)
{
	char text[32], got[32];
	uint64_t sum = 1469598103934665603u;
	MUST(weft_boot_publish()); /* the secret may come with it */
	for (size_t i = 0; i < sizeof info->secret; i++)
		sum = (sum ^ info->secret[i]) * 1099511628211u;
	snprintf(text, sizeof text, "%016llx", (unsigned long long)sum);
	MUST(weft_boot_put("digest", text));
	MUST(weft_boot_put("jobid", info->jobid));
	MUST(weft_boot_fence());
	for (int r = 0; r < info->size; r++) {
		char jobid[WEFT_JOBID_MAX];
		MUST(weft_boot_get(r, "digest", got, sizeof got));
		MUST(weft_boot_get(r, "jobid", jobid, sizeof jobid));
		if (strcmp(text, got) != 0 || strcmp(jobid, info->jobid) != 0)
			exit(6);
	}
}

/* In rank 1 only: ends the process as `how` says; the others wait for it. */
static void misbehave(const char *how, const char *arg)
{
	if (info->rank == (info->size > 1 ? 1 : 0)) {
		printf("last words");
		if (strcmp(how, "abort") == 0)
			weft_boot_abort(atoi(arg), "abort on purpose");
		fflush(stdout);
		if (strcmp(how, "exit") == 0)
			exit(atoi(arg));
		if (strcmp(how, "signal") == 0) {
			signal(atoi(arg), SIG_DFL); /* a sanitizer may have taken it */
			raise(atoi(arg));
		}
	}
	bool met = weft_boot_fence() == WEFT_OK;
	if (met && strcmp(how, "stay") == 0) {
		printf("joined\n");
		fflush(stdout);
	} else if (met && strcmp(how, "hang") != 0) {
		exit(5);
	}
	for (;;) /* ends: the launcher kills us */
		pause();
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	if (weft_boot_open(&info))
		return 3;
	if (strcmp(what, "identity") == 0)
		printf("rank %d size %d appnum %d launcher %s secret_by_kvs %d\n", info->rank,
		       info->size, info->appnum, info->launcher, info->secret_by_kvs);
	else if (strcmp(what, "exchange") == 0) {
		exchange(argc > 2 ? strtoul(argv[2], NULL, 0) : 100);
		same_secret();
	} else if (argc > 2)
		misbehave(what, argv[2]);
	weft_boot_close();
	return argc > 3 ? atoi(argv[3]) : 0;
}
