/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shim.c - preloaded into ranks: makes what the library asks of the system fail now and then.
 *
 *	FAULT_ALLOC=K       its K-th allocation fails (the program's own do not count)
 *	FAULT_NET=SEED      sockets: sends of a part, ENOBUFS, ENOMEM, EINTR; reads of a byte
 *	FAULT_CLOCK=S       the clock of day jumps up to S seconds to and fro
 *	FAULT_RANK=R        in that rank only (PMI_RANK)
 *
 * FAULT_COUNT=FILE: at the end the number of allocations is written there.  A program may itself
 * say which allocation from now on fails: fault_arm, fault_disarm.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static struct {
	bool on;
	long alloc;
	_Atomic long x_count;
	bool net;
	_Atomic uint64_t x_seed;
	long clock;
	uintptr_t from, to; /* the library's text */
	const char *count_file;
} shim;

static void *(*real_malloc)(size_t);
static void *(*real_calloc)(size_t, size_t);
static void *(*real_realloc)(void *, size_t);
static void *(*real_aligned)(size_t, size_t);
static int (*real_clock)(clockid_t, struct timespec *);
static ssize_t (*real_send)(int, const void *, size_t, int);
static ssize_t (*real_sendmsg)(int, const struct msghdr *, int);
static ssize_t (*real_writev)(int, const struct iovec *, int);
static ssize_t (*real_recv)(int, void *, size_t, int);
static ssize_t (*real_readv)(int, const struct iovec *, int);

/* dlsym may allocate before we know where to. */
static char early[8192];
static size_t early_used;

static void find_library(void)
{
	char line[512];
	FILE *f = fopen("/proc/self/maps", "r");
	while (f && fgets(line, sizeof line, f)) {
		unsigned long a, b;
		if (!strstr(line, "libmpi_abi.so") || sscanf(line, "%lx-%lx", &a, &b) != 2)
			continue;
		if (!shim.from)
			shim.from = a;
		shim.to = b;
	}
	if (f)
		fclose(f);
}

__attribute__((constructor)) static void begin(void)
{
	const char *want = getenv("FAULT_RANK"), *rank = getenv("PMI_RANK");
	const char *alloc = getenv("FAULT_ALLOC"), *net = getenv("FAULT_NET");

	real_malloc = dlsym(RTLD_NEXT, "malloc");
	real_calloc = dlsym(RTLD_NEXT, "calloc");
	real_realloc = dlsym(RTLD_NEXT, "realloc");
	real_aligned = dlsym(RTLD_NEXT, "aligned_alloc");
	real_clock = dlsym(RTLD_NEXT, "clock_gettime");
	real_send = dlsym(RTLD_NEXT, "send");
	real_sendmsg = dlsym(RTLD_NEXT, "sendmsg");
	real_writev = dlsym(RTLD_NEXT, "writev");
	real_recv = dlsym(RTLD_NEXT, "recv");
	real_readv = dlsym(RTLD_NEXT, "readv");
	if (!rank || (want && strcmp(want, rank) != 0))
		return;
	find_library();
	shim.alloc = alloc ? atol(alloc) : -1;
	shim.net = net != NULL;
	shim.clock = getenv("FAULT_CLOCK") ? atol(getenv("FAULT_CLOCK")) : 0;
	atomic_store(&shim.x_seed, net ? strtoull(net, NULL, 0) + (uint64_t)atoi(rank) : 0);
	shim.count_file = getenv("FAULT_COUNT");
	shim.on = true;
}

__attribute__((destructor)) static void end(void)
{
	FILE *f = shim.on && shim.count_file ? fopen(shim.count_file, "w") : NULL;
	shim.on = false;
	if (!f)
		return;
	fprintf(f, "%ld\n", atomic_load(&shim.x_count));
	fclose(f);
}

/* Calls come before begin(), too. */
static int clock_now(clockid_t id, struct timespec *ts)
{
	static _Atomic unsigned x_calls;
	if (!real_clock)
		real_clock = dlsym(RTLD_NEXT, "clock_gettime");
	int rc = real_clock(id, ts);
	if (rc == 0 && shim.clock && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
		ts->tv_sec +=
			(long)(atomic_fetch_add(&x_calls, 1) * 7919u % 97u) * 2 * shim.clock / 97 -
			shim.clock;
	return rc;
}

__attribute__((visibility("default"))) int clock_gettime(clockid_t id, struct timespec *ts)
{
	return clock_now(id, ts);
}

__attribute__((visibility("default"))) int gettimeofday(struct timeval *tv, void *zone)
{
	struct timespec ts;
	(void)zone;
	int rc = clock_now(CLOCK_REALTIME, &ts);
	if (rc == 0)
		*tv = (struct timeval){ts.tv_sec, ts.tv_nsec / 1000};
	return rc;
}

__attribute__((visibility("default"))) time_t time(time_t *t)
{
	struct timespec ts;
	time_t now = clock_now(CLOCK_REALTIME, &ts) == 0 ? ts.tv_sec : (time_t)-1;
	if (t)
		*t = now;
	return now;
}

static bool ours(const void *caller)
{
	return shim.on && (uintptr_t)caller >= shim.from && (uintptr_t)caller < shim.to;
}

/* The k-th allocation of the calling thread from now on fails; 0: none does. */
static _Thread_local long armed_in;

__attribute__((visibility("default"))) void fault_arm(long k)
{
	armed_in = shim.on ? k : 0;
}

/* How many until one fails; 0: it did, or none was to. */
__attribute__((visibility("default"))) long fault_disarm(void)
{
	long left = armed_in;
	armed_in = 0;
	return left;
}

/* Shall this allocation fail? */
static bool fails(const void *caller)
{
	if (!ours(caller))
		return false;
	bool now = atomic_fetch_add(&shim.x_count, 1) + 1 == shim.alloc;
	if (armed_in > 0 && --armed_in == 0)
		now = true;
	if (!now)
		return false;
	errno = ENOMEM;
	return true;
}

void *malloc(size_t n)
{
	if (!real_malloc) {
		size_t at = early_used;
		early_used += (n + 15) & ~(size_t)15;
		return early_used <= sizeof early ? early + at : NULL;
	}
	return fails(__builtin_return_address(0)) ? NULL : real_malloc(n);
}

void *calloc(size_t n, size_t size)
{
	if (!real_calloc)
		return malloc(n * size); /* static memory is zero */
	return fails(__builtin_return_address(0)) ? NULL : real_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
	if (!real_realloc)
		return NULL;
	return fails(__builtin_return_address(0)) ? NULL : real_realloc(p, n);
}

void *aligned_alloc(size_t align, size_t n)
{
	return fails(__builtin_return_address(0)) ? NULL : real_aligned(align, n);
}

void *mmap(void *at, size_t n, int prot, int flags, int fd, off_t off)
{
	static void *(*real_mmap)(void *, size_t, int, int, int, off_t);
	if (!real_mmap)
		real_mmap = dlsym(RTLD_NEXT, "mmap");
	return fails(__builtin_return_address(0)) ? MAP_FAILED
						  : real_mmap(at, n, prot, flags, fd, off);
}

void free(void *p)
{
	static void (*real_free)(void *);
	if ((char *)p >= early && (char *)p < early + sizeof early)
		return;
	if (!real_free)
		real_free = dlsym(RTLD_NEXT, "free");
	real_free(p);
}

/* ---- sockets ------------------------------------------------------------------------------ */

static unsigned dice(unsigned n)
{
	uint64_t z = atomic_fetch_add(&shim.x_seed, 0x9e3779b97f4a7c15u);
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	return (unsigned)((z ^ (z >> 31)) >> 33) % n;
}

/* An error that passes, one time in six. */
static bool passing_error(const void *caller)
{
	static const int errors[] = {ENOBUFS, ENOMEM, EINTR};
	if (!shim.net || !ours(caller) || dice(6))
		return false;
	errno = errors[dice(3)];
	return true;
}

static bool shorten(const void *caller)
{
	return shim.net && ours(caller) && dice(3) == 0;
}

ssize_t send(int fd, const void *p, size_t n, int flags)
{
	if (passing_error(__builtin_return_address(0)))
		return -1;
	if (n > 1 && shorten(__builtin_return_address(0)))
		n = 1 + dice((unsigned)(n < 4096 ? n : 4096) - 1);
	return real_send(fd, p, n, flags);
}

ssize_t sendmsg(int fd, const struct msghdr *m, int flags)
{
	if (!m->msg_controllen && passing_error(__builtin_return_address(0)))
		return -1;
	if (!m->msg_controllen && m->msg_iovlen > 0 && m->msg_iov[0].iov_len > 1 &&
	    shorten(__builtin_return_address(0)))
		return real_send(fd, m->msg_iov[0].iov_base, 1, flags);
	return real_sendmsg(fd, m, flags);
}

ssize_t writev(int fd, const struct iovec *iov, int n)
{
	if (passing_error(__builtin_return_address(0)))
		return -1;
	return real_writev(fd, iov, n);
}

ssize_t recv(int fd, void *p, size_t n, int flags)
{
	if (n > 1 && shorten(__builtin_return_address(0)))
		n = 1;
	return real_recv(fd, p, n, flags);
}

ssize_t readv(int fd, const struct iovec *iov, int n)
{
	if (n > 0 && iov[0].iov_len && shorten(__builtin_return_address(0)))
		return real_recv(fd, iov[0].iov_base, 1, MSG_DONTWAIT);
	return real_readv(fd, iov, n);
}
