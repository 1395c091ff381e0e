/* SPDX-License-Identifier: BSD-3-Clause */
/* info.c - info objects; usable before MPI_Init and after MPI_Finalize, from any thread. */
#include "base/assert.h"
#include "mpi/info.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

struct pair {
	struct pair *next;
	char *key, *value;
};

struct weft_mpi_info {
	struct weft_mpi_head head;
	pthread_mutex_t lock; /* of the list */
	struct pair *first;
};

static struct weft_mpi_info env = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- lists -------------------------------------------------------------------------------- */

struct weft_mpi_info *weft_mpi_info_make(void)
{
	struct weft_mpi_info *i = calloc(1, sizeof(*i));

	if (i) {
		atomic_init(&i->head.x_refs, 1);
		pthread_mutex_init(&i->lock, NULL);
	}
	return i;
}

void weft_mpi_info_free(struct weft_mpi_info *i)
{
	if (!i)
		return;
	while (i->first) {
		struct pair *p = i->first;
		i->first = p->next;
		free(p->key);
		free(p->value);
		free(p);
	}
	pthread_mutex_destroy(&i->lock);
	free(i);
}

/* The link that points to key's pair, or to the end. */
static struct pair **link_locked(struct weft_mpi_info *i, const char *key)
{
	weft_assert_held(weft_mutex, &i->lock);
	struct pair **link = &i->first;

	while (*link && strcmp((*link)->key, key) != 0)
		link = &(*link)->next;
	return link;
}

int weft_mpi_info_put(struct weft_mpi_info *i, const char *key, const char *value)
{
	int err = MPI_SUCCESS;
	char *copy = strdup(value);

	pthread_mutex_lock(&i->lock);
	struct pair **link = link_locked(i, key), *p = *link;
	if (copy && !p) {
		p = calloc(1, sizeof(*p));
		if (p && !(p->key = strdup(key))) {
			free(p);
			p = NULL;
		}
		if (p)
			*link = p;
	}
	if (copy && p) {
		free(p->value);
		p->value = copy;
	} else {
		free(copy);
		err = weft_mpi_err(MPI_ERR_NO_MEM, "out of memory");
	}
	pthread_mutex_unlock(&i->lock);
	return err;
}

bool weft_mpi_info_look(struct weft_mpi_info *i, const char *key, char *buf, size_t size)
{
	if (!i)
		return false;
	pthread_mutex_lock(&i->lock);
	struct pair *p = *link_locked(i, key);
	if (p)
		snprintf(buf, size, "%s", p->value);
	pthread_mutex_unlock(&i->lock);
	return p != NULL;
}

struct weft_mpi_info *weft_mpi_info_copy(struct weft_mpi_info *from)
{
	struct weft_mpi_info *to = weft_mpi_info_make();

	if (!to || !from)
		return to;
	int err = MPI_SUCCESS;
	pthread_mutex_lock(&from->lock);
	for (struct pair *p = from->first; p && !err; p = p->next)
		err = weft_mpi_info_put(to, p->key, p->value);
	pthread_mutex_unlock(&from->lock);
	if (err) {
		weft_mpi_info_free(to);
		return NULL;
	}
	return to;
}

int weft_mpi_info_name(struct weft_mpi_info *i, MPI_Info *handle_p)
{
	if (!i)
		return weft_mpi_err(MPI_ERR_NO_MEM, "out of memory");
	if (weft_mpi_object_new(&i->head, WEFT_MPI_INFO)) {
		weft_mpi_info_free(i);
		return weft_mpi_err(MPI_ERR_NO_MEM, "out of handles");
	}
	*handle_p = (MPI_Info)(uintptr_t)i->head.handle;
	return MPI_SUCCESS;
}

/* ---- MPI's functions ---------------------------------------------------------------------- */

static int key_wrong(const char *key)
{
	if (!key || !key[0])
		return weft_mpi_err(MPI_ERR_INFO_KEY, "the info key is empty");
	if (strlen(key) >= MPI_MAX_INFO_KEY)
		return weft_mpi_err(MPI_ERR_INFO_KEY,
				    "the info key is longer than MPI_MAX_INFO_KEY (%d)",
				    MPI_MAX_INFO_KEY);
	return MPI_SUCCESS;
}

int weft_mpi_Info_create(MPI_Info *info)
{
	return weft_mpi_info_name(weft_mpi_info_make(), info);
}

int weft_mpi_Info_dup(MPI_Info info, MPI_Info *newinfo)
{
	return weft_mpi_info_name(weft_mpi_info_copy(weft_mpi_info_of(info)), newinfo);
}

int weft_mpi_Info_free(MPI_Info *info)
{
	struct weft_mpi_info *i = weft_mpi_info_of(*info);

	if (!i || i->head.permanent)
		return weft_mpi_err(MPI_ERR_INFO, i ? "MPI_INFO_ENV cannot be freed"
						    : "invalid info object (null or freed)");
	weft_mpi_object_retire(&i->head);
	weft_mpi_info_free(i);
	*info = MPI_INFO_NULL;
	return MPI_SUCCESS;
}

int weft_mpi_Info_set(MPI_Info info, const char *key, const char *value)
{
	struct weft_mpi_info *i = weft_mpi_info_of(info);
	int err = key_wrong(key);

	if (err)
		return err;
	if (i->head.permanent)
		return weft_mpi_err(MPI_ERR_INFO, "MPI_INFO_ENV cannot be changed");
	if (!value || strlen(value) >= MPI_MAX_INFO_VAL)
		return weft_mpi_err(MPI_ERR_INFO_VALUE,
				    "the info value is missing or longer than MPI_MAX_INFO_VAL "
				    "(%d)",
				    MPI_MAX_INFO_VAL);
	return weft_mpi_info_put(i, key, value);
}

int weft_mpi_Info_delete(MPI_Info info, const char *key)
{
	struct weft_mpi_info *i = weft_mpi_info_of(info);
	int err = key_wrong(key);

	if (err)
		return err;
	if (i->head.permanent)
		return weft_mpi_err(MPI_ERR_INFO, "MPI_INFO_ENV cannot be changed");
	pthread_mutex_lock(&i->lock);
	struct pair **link = link_locked(i, key), *p = *link;
	if (p)
		*link = p->next;
	pthread_mutex_unlock(&i->lock);
	if (!p)
		return weft_mpi_err(MPI_ERR_INFO_NOKEY, "the info object has no key \"%s\"", key);
	free(p->key);
	free(p->value);
	free(p);
	return MPI_SUCCESS;
}

int weft_mpi_Info_get(MPI_Info info, const char *key, int valuelen, char *value, int *flag)
{
	int err = key_wrong(key);

	if (err)
		return err;
	if (valuelen < 0)
		return weft_mpi_err(MPI_ERR_INFO_VALUE, "valuelen is negative (%d)", valuelen);
	*flag = weft_mpi_info_look(weft_mpi_info_of(info), key, value, (size_t)valuelen + 1);
	return MPI_SUCCESS;
}

int weft_mpi_Info_get_string(MPI_Info info, const char *key, int *buflen, char *value, int *flag)
{
	char buf[MPI_MAX_INFO_VAL];
	int err = key_wrong(key);

	if (err)
		return err;
	*flag = weft_mpi_info_look(weft_mpi_info_of(info), key, buf, sizeof(buf));
	if (!*flag)
		return MPI_SUCCESS;
	if (*buflen > 0)
		snprintf(value, (size_t)*buflen, "%s", buf);
	*buflen = (int)strlen(buf) + 1;
	return MPI_SUCCESS;
}

int weft_mpi_Info_get_valuelen(MPI_Info info, const char *key, int *valuelen, int *flag)
{
	char buf[MPI_MAX_INFO_VAL];
	int err = key_wrong(key);

	if (err)
		return err;
	*flag = weft_mpi_info_look(weft_mpi_info_of(info), key, buf, sizeof(buf));
	if (*flag)
		*valuelen = (int)strlen(buf);
	return MPI_SUCCESS;
}

int weft_mpi_Info_get_nkeys(MPI_Info info, int *nkeys)
{
	struct weft_mpi_info *i = weft_mpi_info_of(info);

	*nkeys = 0;
	pthread_mutex_lock(&i->lock);
	for (struct pair *p = i->first; p; p = p->next)
		++*nkeys;
	pthread_mutex_unlock(&i->lock);
	return MPI_SUCCESS;
}

int weft_mpi_Info_get_nthkey(MPI_Info info, int n, char *key)
{
	struct weft_mpi_info *i = weft_mpi_info_of(info);
	int at = n;

	pthread_mutex_lock(&i->lock);
	struct pair *p = i->first;
	while (p && at-- > 0)
		p = p->next;
	if (p && n >= 0)
		snprintf(key, MPI_MAX_INFO_KEY, "%s", p->key);
	pthread_mutex_unlock(&i->lock);
	if (!p || n < 0)
		return weft_mpi_err(MPI_ERR_ARG, "the info object has no key number %d", n);
	return MPI_SUCCESS;
}

int weft_mpi_info_put_memory_kinds(struct weft_mpi_info *i)
{
	return weft_mpi_info_put(i, "mpi_memory_alloc_kinds",
				 "system,mpi:alloc_mem:win_allocate:win_allocate_shared");
}

/* ---- MPI_INFO_ENV ------------------------------------------------------------------------- */

void weft_mpi_info_env_init(void)
{
	weft_mpi_object_predefine(&env.head, WEFT_MPI_INFO, MPI_INFO_ENV);
}

static int env_put(struct weft_mpi_info *i, const char *key, const char *value)
{
	char cut[MPI_MAX_INFO_VAL];

	snprintf(cut, sizeof(cut), "%s", value);
	return weft_mpi_info_put(i, key, cut);
}

/* The keys that MPI names, as far as this process can know them. */
static int env_fill(struct weft_mpi_info *i, int argc, char **argv)
{
	char text[MPI_MAX_INFO_VAL] = "";
	size_t used = 0;
	struct utsname u;
	int err = MPI_SUCCESS;

	if (argc > 0 && argv && argv[0])
		err = env_put(i, "command", argv[0]);
	for (int k = 1; argv && k < argc && argv[k] && used < sizeof(text); k++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", k > 1 ? " " : "",
					 argv[k]);
	if (!err && argc > 1)
		err = env_put(i, "argv", text);
	if (!err && uname(&u) == 0) {
		err = env_put(i, "host", u.nodename);
		if (!err)
			err = env_put(i, "arch", u.machine);
	}
	if (!err && getcwd(text, sizeof(text)))
		err = env_put(i, "wdir", text);
	/* What mpiexec was told; a program that nothing was said of has neither. */
	const char *said = getenv("WEFT_INITIAL_ERRHANDLER");
	if (!err && said && *said)
		err = env_put(i, "mpi_initial_errhandler", said);
	said = getenv("WEFT_MEMORY_ALLOC_KINDS");
	if (!err && said && *said)
		err = env_put(i, "mpi_memory_alloc_kinds", said);
	return err;
}

static const char *level_name(int level)
{
	switch (level) {
	case MPI_THREAD_SINGLE:
		return "MPI_THREAD_SINGLE";
	case MPI_THREAD_FUNNELED:
		return "MPI_THREAD_FUNNELED";
	case MPI_THREAD_SERIALIZED:
		return "MPI_THREAD_SERIALIZED";
	default:
		return "MPI_THREAD_MULTIPLE";
	}
}

void weft_mpi_info_env_fill(int argc, char **argv, int size, int thread_level)
{
	char number[16];

	snprintf(number, sizeof(number), "%d", size);
	/* Only hints: without memory for them the program runs as well. */
	if (env_fill(&env, argc, argv) || weft_mpi_info_put(&env, "maxprocs", number) ||
	    weft_mpi_info_put(&env, "soft", number) ||
	    weft_mpi_info_put(&env, "thread_level", level_name(thread_level)))
		return;
}

int weft_mpi_Info_create_env(int argc, char *argv[], MPI_Info *info)
{
	struct weft_mpi_info *i = weft_mpi_info_make();
	int err = i ? env_fill(i, argc, argv) : MPI_SUCCESS;

	if (err) {
		weft_mpi_info_free(i);
		return err;
	}
	return weft_mpi_info_name(i, info);
}
