/* SPDX-License-Identifier: BSD-3-Clause */
/* kvs.c - open hashing, doubled when full. */
#include "kvs.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct pair {
	struct pair *next;
	uint64_t hash;
	char *value;
	char key[];
};

static struct pair **buckets;
static size_t bucket_count, pair_count, bytes_used;

static uint64_t hash_of(const char *key)
{
	uint64_t h = 0xcbf29ce484222325u; /* FNV-1a: keys come from our own user's ranks */
	for (; *key; key++)
		h = (h ^ (unsigned char)*key) * 0x100000001b3u;
	return h;
}

static bool enlarge_table(void)
{
	size_t count = bucket_count ? bucket_count * 2 : 64;
	struct pair **fresh = calloc(count, sizeof *fresh);
	if (!fresh)
		return false;
	for (size_t i = 0; i < bucket_count; i++) {
		for (struct pair *p = buckets[i], *next; p; p = next) {
			next = p->next;
			p->next = fresh[p->hash & (count - 1)];
			fresh[p->hash & (count - 1)] = p;
		}
	}
	free(buckets);
	buckets = fresh;
	bucket_count = count;
	return true;
}

static struct pair *find_pair(const char *key, uint64_t hash)
{
	struct pair *p = bucket_count ? buckets[hash & (bucket_count - 1)] : NULL;
	while (p && (p->hash != hash || strcmp(p->key, key) != 0))
		p = p->next;
	return p;
}

bool kvs_put(const char *key, const char *value)
{
	uint64_t hash = hash_of(key);
	size_t key_len = strlen(key), len = strlen(value);
	if (bytes_used + key_len + len + sizeof(struct pair) > KVS_BYTES_MAX)
		return false;
	char *copy = strdup(value);
	if (!copy)
		return false;
	struct pair *p = find_pair(key, hash);
	if (p) {
		bytes_used -= strlen(p->value);
		free(p->value);
	} else {
		p = malloc(sizeof *p + key_len + 1);
		if (!p || (pair_count >= bucket_count && !enlarge_table())) {
			free(p);
			free(copy);
			return false;
		}
		memcpy(p->key, key, key_len + 1);
		p->hash = hash;
		p->next = buckets[hash & (bucket_count - 1)];
		buckets[hash & (bucket_count - 1)] = p;
		pair_count++;
		bytes_used += key_len + sizeof *p;
	}
	p->value = copy;
	bytes_used += len;
	return true;
}

const char *kvs_get(const char *key)
{
	struct pair *p = find_pair(key, hash_of(key));
	return p ? p->value : NULL;
}
