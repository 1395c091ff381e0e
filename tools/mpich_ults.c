/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpich_ults.c - a library to preload (suite-mpich --ults): what a program itself asks of pthreads is done by weft's
 * user-level threads.  What libraries ask goes to pthreads as ever, so only calls from the program's own file count.
 *
 * Covers    what MPICH's thread tests use: create, join, self, mutexes, barriers.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <weft/ult.h>

#define STACK (1u << 20) /* bytes: the tests keep arrays there */

_Static_assert(sizeof(weft_ult_mutex) <= sizeof(pthread_mutex_t), "it lies in a mutex's place");
_Static_assert(sizeof(weft_ult_barrier) <= sizeof(pthread_barrier_t),
	       "it lies in a barrier's place");

static uintptr_t low, high; /* the program's own file; both 0 before the library has begun */

static int find_program(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	(void)arg;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X))
			continue;
		low = info->dlpi_addr + p->p_vaddr;
		high = low + p->p_memsz;
	}
	return 1; /* the first is the program */
}

__attribute__((constructor)) static void begin(void)
{
	dl_iterate_phdr(find_program, NULL);
}

/* Is the call the program's? */
#define OURS ((uintptr_t)__builtin_return_address(0) - low < high - low)
#define REAL(name) ((__typeof__(&(name)))dlsym(RTLD_NEXT, #name))

static int code_of(weft_err err)
{
	return !err ? 0 : err == WEFT_ERR_NOMEM || err == WEFT_ERR_LIMIT ? EAGAIN : EINVAL;
}

int pthread_create(pthread_t *t, const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
	struct weft_ult_attr how = WEFT_ULT_ATTR_INIT;
	weft_ult *u;

	if (!OURS)
		return REAL(pthread_create)(t, attr, fn, arg);
	how.stack_size = STACK;
	weft_err err = weft_ult_create(&u, &how, fn, arg);
	if (!err)
		*t = (pthread_t)(uintptr_t)u;
	return code_of(err);
}

int pthread_join(pthread_t t, void **result)
{
	if (!OURS)
		return REAL(pthread_join)(t, result);
	return code_of(weft_ult_join((weft_ult *)(uintptr_t)t, result));
}

pthread_t pthread_self(void)
{
	weft_ult *u = OURS ? weft_ult_self() : NULL;
	return u ? (pthread_t)(uintptr_t)u : REAL(pthread_self)();
}

int pthread_mutex_init(pthread_mutex_t *m, const pthread_mutexattr_t *attr)
{
	if (!OURS)
		return REAL(pthread_mutex_init)(m, attr);
	memset(m, 0, sizeof *m);
	return 0;
}

int pthread_mutex_destroy(pthread_mutex_t *m)
{
	return OURS ? 0 : REAL(pthread_mutex_destroy)(m);
}

int pthread_mutex_lock(pthread_mutex_t *m)
{
	if (!OURS)
		return REAL(pthread_mutex_lock)(m);
	return code_of(weft_ult_mutex_lock((weft_ult_mutex *)(void *)m));
}

/* Where a build has no barriers, the tests look for a count under a mutex, again and again: each look gives others a turn. */
int pthread_mutex_unlock(pthread_mutex_t *m)
{
	if (!OURS)
		return REAL(pthread_mutex_unlock)(m);
	weft_err err = weft_ult_mutex_unlock((weft_ult_mutex *)(void *)m);
	weft_ult_yield();
	return code_of(err);
}

int pthread_barrier_init(pthread_barrier_t *b, const pthread_barrierattr_t *attr, unsigned count)
{
	if (!OURS)
		return REAL(pthread_barrier_init)(b, attr, count);
	memset(b, 0, sizeof *b);
	((weft_ult_barrier *)(void *)b)->need = count;
	return 0;
}

int pthread_barrier_destroy(pthread_barrier_t *b)
{
	return OURS ? 0 : REAL(pthread_barrier_destroy)(b);
}

int pthread_barrier_wait(pthread_barrier_t *b)
{
	bool last = false;
	if (!OURS)
		return REAL(pthread_barrier_wait)(b);
	weft_err err = weft_ult_barrier_wait((weft_ult_barrier *)(void *)b, &last);
	return err ? code_of(err) : last ? PTHREAD_BARRIER_SERIAL_THREAD : 0;
}
