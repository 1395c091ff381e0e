/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libc_names.c - a program's own `send` is not what the library calls.  A function of a program
 * takes the place of the C library's in every library, though ISO C leaves names of POSIX to
 * programs, and Fortran's bind(C) procedures have them, too.  So the linker sends calls of these
 * names in WEFT_LIBC_NAMES here, and where the program has one, the C library's is called.
 * Preloaded libraries still see the calls.
 */
#include "base/base.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <sys/auxv.h>
#include <sys/socket.h>
#include <unistd.h>

/* name, result, parameters, arguments */
#define WEFT_LIBC_NAMES(X)                                                                         \
	X(send, ssize_t, (int fd, const void *at, size_t n, int flags), (fd, at, n, flags))        \
	X(recv, ssize_t, (int fd, void *at, size_t n, int flags), (fd, at, n, flags))              \
	X(read, ssize_t, (int fd, void *at, size_t n), (fd, at, n))                                \
	X(write, ssize_t, (int fd, const void *at, size_t n), (fd, at, n))                         \
	X(close, int, (int fd), (fd))                                                              \
	X(socket, int, (int domain, int type, int protocol), (domain, type, protocol))             \
	X(bind, int, (int fd, const struct sockaddr *to, socklen_t n), (fd, to, n))                \
	X(connect, int, (int fd, const struct sockaddr *to, socklen_t n), (fd, to, n))             \
	X(listen, int, (int fd, int n), (fd, n))                                                   \
	X(shutdown, int, (int fd, int how), (fd, how))                                             \
	X(poll, int, (struct pollfd * fds, nfds_t n, int ms), (fds, n, ms))                        \
	X(access, int, (const char *path, int mode), (path, mode))                                 \
	X(link, int, (const char *from, const char *to), (from, to))                               \
	X(unlink, int, (const char *path), (path))

#define POINTER(name, type, parameters, arguments) type(*name) parameters;
static struct {
	WEFT_LIBC_NAMES(POINTER)
} called;

/* Linker: __wrap_f is what the library's calls of f go to, __real_f is f. */
#define WRAP(name, type, parameters, arguments)                                                    \
	extern type __real_##name parameters;                                                      \
	extern type __wrap_##name parameters;                                                      \
	type __wrap_##name parameters                                                              \
	{                                                                                          \
		return weft_unlikely(called.name != NULL) ? called.name arguments                  \
							  : __real_##name arguments;               \
	}
WEFT_LIBC_NAMES(WRAP)

static const void *base_of(const void *address)
{
	Dl_info info;
	return address && dladdr(address, &info) ? info.dli_fbase : NULL;
}

/* The C library's where the program has one of that name. */
static void *libc_own(void *libc, const char *name, void *found, const void *program)
{
	return libc && program && base_of(found) == program ? dlsym(libc, name) : NULL;
}

__attribute__((constructor)) static void find_libc_names(void)
{
	/* The program's headers lie in it. */
	const void *program = base_of((const void *)(uintptr_t)getauxval(AT_PHDR));
	void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
	void *found;

#define FIND(name, type, parameters, arguments)                                                    \
	found = libc_own(libc, #name, (void *)(uintptr_t)&__real_##name, program);                 \
	*(void **)&called.name = found;
	WEFT_LIBC_NAMES(FIND)
}
