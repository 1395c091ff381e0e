/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * replay.c - runs a target without libFuzzer: each file of a corpus, then mutations of them.
 *
 *	fuzz_NAME DIR [MUTATIONS [SEED]]
 */
#include <dirent.h>
#include "base/base.h"
#include "fuzz.h"

#define FILES 256
#define BYTES 65536

static struct {
	uint8_t *data;
	size_t size;
} file[FILES];
static unsigned n_files;
static uint64_t rnd;

static void load(const char *dir, const char *name)
{
	char path[4096];
	snprintf(path, sizeof path, "%s/%s", dir, name);
	FILE *f = fopen(path, "rb");
	CHECK(f && n_files < FILES);
	file[n_files].data = malloc(BYTES);
	CHECK(file[n_files].data);
	file[n_files].size = fread(file[n_files].data, 1, BYTES, f);
	fclose(f);
	n_files++;
}

/* A copy of exactly that size: what reads beyond it is seen. */
static void run(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);
	CHECK(copy);
	if (size)
		memcpy(copy, data, size);
	(void)LLVMFuzzerTestOneInput(copy, size);
	free(copy);
}

static size_t pick(size_t n)
{
	return n ? weft_rand_next(&rnd) % n : 0;
}

/* Flips, inserts, removes, repeats, joins. */
static size_t mutate(uint8_t *to)
{
	size_t i = pick(n_files), n = file[i].size;
	memcpy(to, file[i].data, n);
	for (size_t k = 1 + pick(6); k; k--) {
		size_t at = pick(n), len = 1 + pick(16);
		switch (pick(6)) {
		case 0:
			if (n)
				to[at] ^= (uint8_t)(1u << pick(8));
			break;
		case 1:
			if (n)
				to[at] = (uint8_t)(pick(2) ? 0xff : weft_rand_next(&rnd));
			break;
		case 2:
			n -= at < n ? pick(n - at) : 0;
			break;
		case 3:
			if (n + len <= BYTES) {
				memmove(to + at + len, to + at, n - at);
				n += len;
			}
			break;
		case 4:
			if (at + len <= n) {
				memmove(to + at, to + at + len, n - at - len);
				n -= len;
			}
			break;
		default: {
			size_t j = pick(n_files), part = pick(file[j].size + 1);
			if (n + part <= BYTES) {
				memcpy(to + n, file[j].data, part);
				n += part;
			}
		}
		}
	}
	return n;
}

int main(int argc, char **argv)
{
	static uint8_t bytes[BYTES];
	unsigned mutations = argc > 2 ? (unsigned)atoi(argv[2]) : 0;
	struct dirent *e;
	DIR *d = argc > 1 ? opendir(argv[1]) : NULL;

	if (!d) {
		fprintf(stderr, "usage: fuzz_NAME DIR [MUTATIONS [SEED]]\n");
		return 2;
	}
	rnd = argc > 3 ? strtoull(argv[3], NULL, 0) : 20161121;
	printf("seed %llu\n", (unsigned long long)rnd);
	while ((e = readdir(d)))
		if (e->d_name[0] != '.')
			load(argv[1], e->d_name);
	closedir(d);
	CHECK(n_files);
	weft_log_level = -1; /* refusals are what we want */
	run(NULL, 0);
	for (unsigned i = 0; i < n_files; i++)
		run(file[i].data, file[i].size);
	for (unsigned i = 0; i < mutations; i++)
		run(bytes, mutate(bytes));
	printf("%u files, %u mutations\n", n_files, mutations);
	for (unsigned i = 0; i < n_files; i++)
		free(file[i].data);
	return 0;
}
