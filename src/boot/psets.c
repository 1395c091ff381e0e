/* SPDX-License-Identifier: BSD-3-Clause */
/* psets.c - the list of process sets: grows, never shrinks before the job is left. */
#include "boot/psets.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "base/assert.h"

#define SETS_MAX 65536 /* a launcher that defines more is not believed */

static struct {
	pthread_mutex_t lock;
	struct weft_boot_pset *set; /* name and ranks are the list's own */
	int n, cap;
	int job_size;
} list = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int find_locked(const char *name)
{
	weft_assert_held(weft_mutex, &list.lock);
	for (int i = 0; i < list.n; i++)
		if (strcmp(list.set[i].name, name) == 0)
			return i;
	return -1;
}

static weft_err grow_locked(void)
{
	weft_assert_held(weft_mutex, &list.lock);
	if (list.n < list.cap)
		return WEFT_OK;
	int cap = list.cap ? 2 * list.cap : 8;
	struct weft_boot_pset *grown = realloc(list.set, (size_t)cap * sizeof *grown);
	if (!grown)
		return WEFT_ERR_NOMEM;
	list.set = grown;
	list.cap = cap;
	return WEFT_OK;
}

/* ranks: NULL, or memory that the list takes over. */
static weft_err append_locked(const char *name, int first, int size, int *ranks)
{
	weft_assert_held(weft_mutex, &list.lock);
	if (list.n == SETS_MAX)
		return WEFT_ERR_LIMIT;
	weft_err err = grow_locked();
	char *own = err ? NULL : strdup(name);
	if (!own)
		return WEFT_ERR_NOMEM;
	list.set[list.n++] =
		(struct weft_boot_pset){.name = own, .size = size, .first = first, .ranks = ranks};
	return WEFT_OK;
}

static bool ranks_ascend(const int *ranks, int size)
{
	for (int i = 0; i < size; i++)
		if (ranks[i] < (i ? ranks[i - 1] + 1 : 0) || ranks[i] >= list.job_size)
			return false;
	return true;
}

weft_err weft_boot_psets_add(const char *name, const int *ranks, int size)
{
	if (!*name || strlen(name) >= WEFT_PSET_NAME_MAX || size < 1 || !ranks_ascend(ranks, size))
		return WEFT_ERR_ARG;
	bool run = ranks[size - 1] - ranks[0] == size - 1;
	int *own = NULL;
	if (!run) {
		own = malloc((size_t)size * sizeof *own);
		if (!own)
			return WEFT_ERR_NOMEM;
		memcpy(own, ranks, (size_t)size * sizeof *own);
	}
	pthread_mutex_lock(&list.lock);
	bool known = find_locked(name) >= 0;
	weft_err err = known ? WEFT_OK : append_locked(name, ranks[0], size, own);
	pthread_mutex_unlock(&list.lock);
	if (known || err)
		free(own);
	return err;
}

int weft_boot_psets_count(void)
{
	pthread_mutex_lock(&list.lock);
	int n = list.n;
	pthread_mutex_unlock(&list.lock);
	return n;
}

weft_err weft_boot_psets_at(int i, struct weft_boot_pset *set_p)
{
	pthread_mutex_lock(&list.lock);
	bool there = i >= 0 && i < list.n;
	if (there)
		*set_p = list.set[i];
	pthread_mutex_unlock(&list.lock);
	return there ? WEFT_OK : WEFT_ERR_NOENT;
}

weft_err weft_boot_psets_find(const char *name, struct weft_boot_pset *set_p)
{
	pthread_mutex_lock(&list.lock);
	int i = find_locked(name);
	if (i >= 0)
		*set_p = list.set[i];
	pthread_mutex_unlock(&list.lock);
	return i >= 0 ? WEFT_OK : WEFT_ERR_NOENT;
}

weft_err weft_boot_psets_open(int rank, int size)
{
	pthread_mutex_lock(&list.lock);
	list.job_size = size;
	weft_err err = append_locked("mpi://WORLD", 0, size, NULL);
	if (!err)
		err = append_locked("mpi://SELF", rank, 1, NULL);
	pthread_mutex_unlock(&list.lock);
	return err;
}

void weft_boot_psets_close(void)
{
	pthread_mutex_lock(&list.lock);
	for (int i = 0; i < list.n; i++) {
		free((void *)(uintptr_t)list.set[i].name);
		free((void *)(uintptr_t)list.set[i].ranks);
	}
	free(list.set);
	list.set = NULL;
	list.n = list.cap = list.job_size = 0;
	pthread_mutex_unlock(&list.lock);
}
