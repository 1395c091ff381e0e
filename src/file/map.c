/* SPDX-License-Identifier: BSD-3-Clause */
/* map.c - windows of mapped files, and the handler that makes a page that is not to be had harmless. */
#include "file/map.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/log.h"
#include "base/mechanism.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define WINDOWS 8 /* of a file: 2 KiB of page tables for each MiB that is used */
#define GUARDED 256
#define UNIT ((uint64_t)64 << 10)
#define UNITS (WEFT_FILE_WINDOW / UNIT)
/* So many pages that were not to be had, and the file goes by calls. */
#define BREAKS_MAX 16
/* As fine as the kernel's own clock for files, about. */
#define STALE_NS 4000000u

/* ---- pages that are not to be had --------------------------------------------------------- */

/* A window as the handler sees it. */
struct guard {
	_Atomic uintptr_t x_from; /* 0: free */
	_Atomic bool x_broken;
};

static struct guard guards[GUARDED];
static pthread_mutex_t guard_lock = PTHREAD_MUTEX_INITIALIZER; /* of the handler's installation */
static struct sigaction before;
static bool installed;

static struct guard *guard_of(const void *addr)
{
	for (size_t i = 0; i < GUARDED; i++) {
		/* Relaxed: the address lies in a window that its user holds, and has seen. */
		uintptr_t from = atomic_load_explicit(&guards[i].x_from, memory_order_relaxed);
		if (from && (uintptr_t)addr - from < WEFT_FILE_WINDOW)
			return &guards[i];
	}
	return NULL;
}

/* The thread goes on with a page of nothing. */
static void handle_bus(int sig, siginfo_t *info, void *context)
{
	int saved = errno;
	struct guard *g = info->si_code > 0 ? guard_of(info->si_addr) : NULL;
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	(void)context;
	if (g) {
		/* BROKEN -> LEAVE: before any thread can store to the page that comes. */
		atomic_store_explicit(&g->x_broken, true, memory_order_seq_cst);
		void *at = (void *)((uintptr_t)info->si_addr & ~(page - 1));
		if (mmap(at, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
			 -1, 0) != MAP_FAILED) {
			errno = saved;
			return;
		}
	}
	/* Not ours: as it was before, and once more. */
	sigaction(sig, &before, NULL);
	if (info->si_code <= 0)
		raise(sig);
	errno = saved;
}

/* Is the handler in place, and would this thread's fault reach it? */
static bool guard_is_up(void)
{
	struct sigaction now;
	sigset_t blocked;
	if (pthread_sigmask(SIG_BLOCK, NULL, &blocked) || sigismember(&blocked, SIGBUS))
		return false;
	pthread_mutex_lock(&guard_lock);
	if (!installed) { /* once: a program that takes the signal back wants it */
		struct sigaction a = {.sa_flags = SA_SIGINFO | SA_ONSTACK};
		a.sa_sigaction = handle_bus;
		sigemptyset(&a.sa_mask);
		installed = true;
		(void)sigaction(SIGBUS, &a, &before);
	}
	pthread_mutex_unlock(&guard_lock);
	return !sigaction(SIGBUS, NULL, &now) && now.sa_flags & SA_SIGINFO &&
	       now.sa_sigaction == handle_bus;
}

static struct guard *guard_take(uintptr_t from)
{
	struct guard *g = NULL;
	pthread_mutex_lock(&guard_lock);
	for (size_t i = 0; !g && i < GUARDED; i++)
		/* Relaxed: written under the lock. */
		if (!atomic_load_explicit(&guards[i].x_from, memory_order_relaxed))
			g = &guards[i];
	if (g) {
		atomic_store_explicit(&g->x_broken, false, memory_order_relaxed);
		atomic_store_explicit(&g->x_from, from, memory_order_relaxed);
	}
	pthread_mutex_unlock(&guard_lock);
	return g;
}

static void guard_give(struct guard *g)
{
	pthread_mutex_lock(&guard_lock);
	atomic_store_explicit(&g->x_from, 0, memory_order_relaxed);
	pthread_mutex_unlock(&guard_lock);
}

/* ---- windows ------------------------------------------------------------------------------ */

struct weft_file_window {
	char *base; /* L; NULL: none */
	uint64_t at;
	struct guard *guard;
	unsigned users;                         /* L */
	uint64_t used;                          /* L: when, by enters */
	_Atomic uint64_t x_fetched[UNITS / 64]; /* for writing; hints */
};

struct weft_file_maps {
	pthread_mutex_t lock; /* letter L */
	int fd;               /* for mmap, which reads what it writes: the file's own, or */
	bool own_fd;          /* another one that reads too */
	int prot;
	unsigned breaks;  /* L */
	uint64_t entered; /* L */
	_Atomic bool x_off;
	_Atomic uint64_t x_touched_ns; /* the last call that moved the time of the change */
	_Atomic bool x_stored;         /* since */
	struct weft_file_window window[WINDOWS];
};

struct weft_file_maps *weft_file_maps_make(const struct weft_file *f)
{
	struct stat st;
	if (!f->fs.mapped || !weft_mechanism_on(WEFT_MECH_FILE_MAP) || fstat(f->fd, &st) ||
	    !S_ISREG(st.st_mode))
		return NULL;
	struct weft_file_maps *m = calloc(1, sizeof *m);
	if (!m)
		return NULL;
	m->fd = f->fd;
	m->prot = PROT_READ | (f->writable ? PROT_WRITE : 0);
	if (!f->readable) {
		char path[40];
		snprintf(path, sizeof path, "/proc/self/fd/%d", f->fd);
		m->fd = open(path, O_RDWR | O_CLOEXEC);
		m->own_fd = m->fd >= 0;
		if (!m->own_fd) {
			free(m);
			return NULL;
		}
	}
	pthread_mutex_init(&m->lock, NULL);
	return m;
}

static void window_drop(struct weft_file_window *w)
{
	weft_assert(!w->users);
	if (!w->base)
		return;
	guard_give(w->guard);
	munmap(w->base, WEFT_FILE_WINDOW);
	memset(w, 0, sizeof *w);
}

void weft_file_maps_free(struct weft_file_maps *m)
{
	if (!m)
		return;
	for (int i = 0; i < WINDOWS; i++)
		window_drop(&m->window[i]);
	if (m->own_fd)
		close(m->fd);
	pthread_mutex_destroy(&m->lock);
	free(m);
}

bool weft_file_map_may(const struct weft_file *f)
{
	/* Relaxed: a hint. */
	return f->maps && !atomic_load_explicit(&f->maps->x_off, memory_order_relaxed);
}

static bool is_broken(const struct weft_file_window *w)
{
	/* LEAVE: sees BROKEN if a store before it went to the empty page, which is mapped after BROKEN. */
	return atomic_load_explicit(&w->guard->x_broken, memory_order_seq_cst);
}

static bool window_make_locked(struct weft_file_maps *m, struct weft_file_window *w, uint64_t at)
{
	weft_assert_held(weft_mutex, &m->lock);
	window_drop(w);
	void *base = mmap(NULL, WEFT_FILE_WINDOW, m->prot, MAP_SHARED, m->fd, (off_t)at);
	if (base == MAP_FAILED) {
		weft_debug("files go by calls: mmap: %s", strerror(errno));
		atomic_store_explicit(&m->x_off, true, memory_order_relaxed);
		return false;
	}
	(void)madvise(base, WEFT_FILE_WINDOW, MADV_DONTFORK);
	w->guard = guard_take((uintptr_t)base);
	if (!w->guard) {
		munmap(base, WEFT_FILE_WINDOW);
		return false;
	}
	w->base = base;
	w->at = at;
	return true;
}

/* The window of that place, held; NULL: none is to be had. */
static struct weft_file_window *window_hold(struct weft_file_maps *m, uint64_t at)
{
	struct weft_file_window *w = NULL, *oldest = NULL;
	at -= at % WEFT_FILE_WINDOW;
	pthread_mutex_lock(&m->lock);
	for (int i = 0; i < WINDOWS; i++) {
		struct weft_file_window *it = &m->window[i];
		if (it->base && it->at == at && !is_broken(it))
			w = it;
		if (!it->users && (!oldest || it->used < oldest->used))
			oldest = it;
	}
	if (!w && oldest && window_make_locked(m, oldest, at))
		w = oldest;
	if (w) {
		w->users++;
		w->used = ++m->entered;
	}
	pthread_mutex_unlock(&m->lock);
	return w;
}

/* Pages that were not used for writing yet, together: each fault of its own takes 1 to 20 us.  False: one is not to be had. */
static bool pages_fetch(struct weft_file_window *w, uint64_t from, uint64_t to)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	for (uint64_t u = from / UNIT; u * UNIT < to; u++) {
		uint64_t bit = 1ull << u % 64, a = u * UNIT, b = a + UNIT;
		/* Relaxed: hints, as a page may be taken back at any time. */
		if (atomic_load_explicit(&w->x_fetched[u / 64], memory_order_relaxed) & bit)
			continue;
		bool all = from <= a && to >= b;
		a = from > a ? from & ~(page - 1) : a;
		b = to < b ? (to + page - 1) & ~(page - 1) : b;
		if (madvise(w->base + a, b - a, MADV_POPULATE_WRITE) && errno != EINVAL)
			return false;
		if (all)
			atomic_fetch_or_explicit(&w->x_fetched[u / 64], bit, memory_order_relaxed);
	}
	return true;
}

char *weft_file_map_enter(const struct weft_file *f, bool write, uint64_t at, uint64_t len,
			  bool dense, struct weft_file_window **w_p)
{
	struct weft_file_maps *m = f->maps;
	weft_assert(len && weft_file_map_end(at) >= at + len);
	if (!weft_file_map_may(f) || (write && !f->writable) || !guard_is_up())
		return NULL;
	struct weft_file_window *w = window_hold(m, at);
	if (!w)
		return NULL;
	uint64_t in = at - w->at;
	if (write && dense && !pages_fetch(w, in, in + len)) {
		(void)weft_file_map_leave(f, w);
		return NULL;
	}
	/* Relaxed: read by close and sync, which come after the access. */
	if (write)
		atomic_store_explicit(&m->x_stored, true, memory_order_relaxed);
	*w_p = w;
	return w->base + in;
}

bool weft_file_map_leave(const struct weft_file *f, struct weft_file_window *w)
{
	struct weft_file_maps *m = f->maps;
	bool good = !is_broken(w);
	pthread_mutex_lock(&m->lock);
	weft_assert(w->users);
	if (!--w->users && !good) {
		window_drop(w);
		if (++m->breaks == BREAKS_MAX)
			atomic_store_explicit(&m->x_off, true, memory_order_relaxed);
	}
	pthread_mutex_unlock(&m->lock);
	return good;
}

static uint64_t fetched_between(const struct weft_file_window *w, uint64_t from, uint64_t to)
{
	uint64_t n = 0;
	for (uint64_t u = from / UNIT; u * UNIT < to; u++) {
		uint64_t a = u * UNIT > from ? u * UNIT : from;
		uint64_t b = (u + 1) * UNIT < to ? (u + 1) * UNIT : to;
		/* Relaxed: a hint. */
		if (atomic_load_explicit(&w->x_fetched[u / 64], memory_order_relaxed) >> u % 64 & 1)
			n += b - a;
	}
	return n;
}

uint64_t weft_file_map_cold(const struct weft_file *f, uint64_t from, uint64_t to)
{
	struct weft_file_maps *m = f->maps;
	uint64_t cold = to - from;
	pthread_mutex_lock(&m->lock);
	for (int i = 0; i < WINDOWS; i++) {
		const struct weft_file_window *w = &m->window[i];
		uint64_t a = from > w->at ? from : w->at;
		uint64_t b = to < w->at + WEFT_FILE_WINDOW ? to : w->at + WEFT_FILE_WINDOW;
		if (w->base && a < b)
			cold -= fetched_between(w, a - w->at, b - w->at);
	}
	pthread_mutex_unlock(&m->lock);
	return cold;
}

/* ---- the time of the last change ---------------------------------------------------------- */

bool weft_file_map_is_stale(const struct weft_file *f)
{
	/* Relaxed: how long ago is known roughly. */
	uint64_t last = atomic_load_explicit(&f->maps->x_touched_ns, memory_order_relaxed);
	return weft_clock_ns() - last > STALE_NS;
}

void weft_file_map_touched(const struct weft_file *f)
{
	/* Relaxed: as above. */
	atomic_store_explicit(&f->maps->x_touched_ns, weft_clock_ns(), memory_order_relaxed);
}

void weft_file_map_touch(const struct weft_file *f)
{
	const struct timespec changed[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_nsec = UTIME_NOW}};
	/* Relaxed: the accesses came before, by the program's order. */
	if (!f->maps || !atomic_exchange_explicit(&f->maps->x_stored, false, memory_order_relaxed))
		return;
	/* The owner alone may leave out the time of the last read; a failure is not one of the data. */
	if (futimens(f->fd, changed) && futimens(f->fd, NULL))
		weft_debug("the time of a file's last change stays: %s", strerror(errno));
}
