/* SPDX-License-Identifier: BSD-3-Clause */
/* trace.c - rings of threads, texts, the listener; trace_file.c has the file. */
#include "base/assert.h"
#include "base/cancel.h"
#include "base/trace_int.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/log.h"
#include "base/trace_text.h"

#define SYNC_EVERY 1024u     /* records, so that each ring has some */
#define SYNC_CYCLES 1u << 24 /* and some milliseconds */

_Atomic unsigned weft_trace_x_on;
static weft_trace_listener *_Atomic x_listener;
static _Atomic uint64_t x_kinds; /* that are listened to */
_Static_assert(WEFT_TRACE_KIND_COUNT <= 64, "a bit per kind");

/* A ring and its writer; on a line of its own. */
struct owner {
	alignas(WEFT_CACHELINE) struct weft_trace_ring *ring; /* NULL: there was no room */
	_Atomic uint64_t *x_words;
	uint64_t sync_at; /* cycles */
	struct owner *next_free;
};

static _Thread_local struct owner *self;
static struct owner owners[WEFT_TRACE_RINGS_MAX]; /* under ring_lock, until a thread has them */
static struct owner nowhere;
static struct owner *free_owners; /* under ring_lock: of threads that have ended */
static unsigned owner_count;      /* under ring_lock */
static pthread_mutex_t ring_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t end_key;

static struct weft_trace_place places[WEFT_TRACE_PLACES];
static pthread_mutex_t text_lock = PTHREAD_MUTEX_INITIALIZER;
static char texts[WEFT_TRACE_TEXTS][WEFT_TRACE_TEXT_BYTES]; /* under text_lock until numbered */
static unsigned text_count;                                 /* under text_lock */

/* ---- records ------------------------------------------------------------------------------- */

static void write_record(struct owner *o, uint64_t time, uint64_t what, uint64_t a, uint64_t b)
{
	const uint64_t w[WEFT_TRACE_WORDS] = {time, what, a, b};
	(void)weft_trace_ring_put(o->ring, o->x_words, weft_trace_file.mask, w);
}

static __attribute__((noinline)) void sync_clocks(struct owner *o)
{
	struct weft_trace_pair p = weft_trace_pair_now();
	write_record(o, p.cycles, weft_trace_what(WEFT_TRACE_SYNC, 0, 0), p.ns, 0);
	o->sync_at = p.cycles + (SYNC_CYCLES);
}

static void say_thread(struct owner *o)
{
	char name[16] = "";
	uint64_t w[2];
	uint32_t id = (uint32_t)syscall(SYS_gettid);
	(void)prctl(PR_GET_NAME, name);
	memcpy(w, name, sizeof w);
	/* Relaxed, all: for readers that come when the record below has been overwritten. */
	atomic_store_explicit(&o->ring->x_thread, id, memory_order_relaxed);
	atomic_store_explicit(&o->ring->x_name[0], w[0], memory_order_relaxed);
	atomic_store_explicit(&o->ring->x_name[1], w[1], memory_order_relaxed);
	write_record(o, weft_trace_now(), weft_trace_what(WEFT_TRACE_THREAD, 0, id), w[0], w[1]);
}

static void thread_ends(void *arg)
{
	struct owner *o = arg;
	self = NULL;
	if (!o->ring)
		return;
	write_record(o, weft_trace_now(), weft_trace_what(WEFT_TRACE_THREAD_END, 0, 0), 0, 0);
	pthread_mutex_lock(&ring_lock);
	o->next_free = free_owners;
	free_owners = o;
	pthread_mutex_unlock(&ring_lock);
}

static struct owner *take_locked(void)
{
	weft_assert_held(weft_mutex, &ring_lock);
	struct owner *o = free_owners;
	if (o) {
		free_owners = o->next_free;
		return o;
	}
	if (owner_count == WEFT_TRACE_RINGS_MAX)
		return &nowhere;
	o = &owners[owner_count];
	o->ring = weft_trace_file_ring(owner_count);
	if (!o->ring)
		return &nowhere;
	o->x_words = (_Atomic uint64_t *)((char *)o->ring + WEFT_TRACE_PAGE);
	owner_count++;
	return o;
}

static __attribute__((noinline)) struct owner *find_owner(void)
{
	int was = weft_cancel_off();
	pthread_mutex_lock(&ring_lock);
	struct owner *o = take_locked();
	pthread_mutex_unlock(&ring_lock);
	weft_cancel_back(was);
	self = o;
	(void)pthread_setspecific(end_key, o);
	if (!o->ring)
		return o;
	sync_clocks(o);
	say_thread(o);
	return o;
}

static void put_in_ring(enum weft_trace_kind kind, unsigned small, uint32_t id, uint64_t a,
			uint64_t b)
{
	struct owner *o = self;
	if (weft_unlikely(!o))
		o = find_owner();
	if (weft_unlikely(!o->ring)) {
		/* Relaxed: a count. */
		atomic_fetch_add_explicit(&weft_trace_file.head->x_lost, 1, memory_order_relaxed);
		return;
	}
	uint64_t now = weft_trace_now();
	write_record(o, now, weft_trace_what(kind, small, id), a, b);
	/* Relaxed: ours. */
	uint64_t pos = atomic_load_explicit(&o->ring->x_pos, memory_order_relaxed);
	if (weft_unlikely(now >= o->sync_at || pos % SYNC_EVERY == 0))
		sync_clocks(o);
}

static void tell_listener(enum weft_trace_kind kind, unsigned small, uint32_t id, uint64_t a,
			  uint64_t b)
{
	/* Relaxed: a kind that is no longer wanted is thrown away by its listener. */
	if (!(atomic_load_explicit(&x_kinds, memory_order_relaxed) >> kind & 1))
		return;
	/* LISTENER <- LISTENER (listen). */
	weft_trace_listener *fn = atomic_load_explicit(&x_listener, memory_order_acquire);
	if (kind == WEFT_TRACE_TASK) {
		uint64_t took = weft_trace_now() - a; /* a: when it began */
		a = weft_trace_file.by_cycles ? took * 1000 / weft_cycles_per_us() : took;
	}
	fn(kind, weft_clock_ns(), small, id, a, b);
}

void weft_trace_put(enum weft_trace_kind kind, unsigned small, uint32_t id, uint64_t a, uint64_t b)
{
	/* Relaxed: as in weft_trace_on. */
	unsigned on = atomic_load_explicit(&weft_trace_x_on, memory_order_relaxed);
	if (on & WEFT_TRACE_TO_LISTENER)
		tell_listener(kind, small, id, a, b);
	if (on & WEFT_TRACE_TO_FILE)
		put_in_ring(kind, small, id, a, b);
}

void weft_trace_listen(weft_trace_listener *fn, uint64_t kinds)
{
	(void)weft_cycles_per_us(); /* measured at the first call */
	/* LISTENER -> LISTENER (tell_listener).  Carries: what the listener has made before. */
	atomic_store_explicit(&x_listener, fn, memory_order_release);
	atomic_store_explicit(&x_kinds, kinds, memory_order_relaxed);
	/* Release, as in start: a thread that sees the bit finds the listener. */
	if (kinds)
		atomic_fetch_or_explicit(&weft_trace_x_on, WEFT_TRACE_TO_LISTENER,
					 memory_order_release);
	else
		atomic_fetch_and_explicit(&weft_trace_x_on, ~WEFT_TRACE_TO_LISTENER,
					  memory_order_relaxed);
}

uint64_t weft_trace_begin(const char *name, const void *fn, unsigned *text_p)
{
	*text_p = name ? weft_trace_text(name) : weft_trace_code(fn);
	return weft_trace_now();
}

void weft_trace_put_name(enum weft_trace_kind kind, uint32_t id, const char *name)
{
	uint64_t w[2] = {0, 0};
	memcpy(w, name, strnlen(name, sizeof w));
	weft_trace_put(kind, 0, id, w[0], w[1]);
}

/* ---- texts --------------------------------------------------------------------------------- */

static void text_to_file_locked(unsigned n)
{
	weft_assert_held(weft_mutex, &text_lock);
	struct weft_trace_head *h = weft_trace_file.head;
	if (!h)
		return;
	memcpy((char *)h + WEFT_TRACE_PAGE + (size_t)n * WEFT_TRACE_TEXT_BYTES, texts[n],
	       WEFT_TRACE_TEXT_BYTES);
	/* Relaxed: under the lock. */
	atomic_store_explicit(&h->x_texts, n, memory_order_relaxed);
}

/* The number of a new text; 0: no room.  make(): writes it. */
static unsigned new_text(uint64_t key, void (*make)(char *, size_t, const void *), const void *arg)
{
	unsigned n = 0;
	pthread_mutex_lock(&text_lock);
	uint32_t known = weft_trace_find(places, key);
	if (known) {
		n = known;
	} else if (text_count + 1 < WEFT_TRACE_TEXTS) {
		n = ++text_count;
		make(texts[n], WEFT_TRACE_TEXT_BYTES, arg);
		text_to_file_locked(n);
		/* Without a place it is written anew each time, until there is no room. */
		(void)weft_trace_add(places, key, n);
	}
	pthread_mutex_unlock(&text_lock);
	return n;
}

const char *weft_trace_text_at(unsigned n)
{
	return texts[n < WEFT_TRACE_TEXTS ? n : 0];
}

static void make_text(char *to, size_t size, const void *arg)
{
	strncpy(to, arg, size - 1);
}

static void make_code(char *to, size_t size, const void *arg)
{
	Dl_info i;
	if (!dladdr(arg, &i)) {
		snprintf(to, size, "%p", arg);
	} else if (i.dli_sname && i.dli_saddr == arg) {
		snprintf(to, size, "%s", i.dli_sname);
	} else {
		const char *slash = strrchr(i.dli_fname, '/');
		snprintf(to, size, "%.40s+0x%lx", slash ? slash + 1 : i.dli_fname,
			 (unsigned long)((const char *)arg - (const char *)i.dli_fbase));
	}
}

static uint64_t address_key(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

unsigned weft_trace_text(const char *text)
{
	uint64_t key = 0xcbf29ce484222325u;
	if (!text)
		return 0;
	for (unsigned i = 0; text[i] && i < WEFT_TRACE_TEXT_BYTES - 1; i++)
		key = (key ^ (unsigned char)text[i]) * 0x100000001b3u;
	key |= (uint64_t)1 << 63; /* no address of ours */
	unsigned n = weft_trace_find(places, key);
	return weft_likely(n) ? n : new_text(key, make_text, text);
}

unsigned weft_trace_static(const char *text)
{
	if (!text)
		return 0;
	unsigned n = weft_trace_find(places, address_key(text));
	return weft_likely(n) ? n : new_text(address_key(text), make_text, text);
}

unsigned weft_trace_code(const void *fn)
{
	if (!fn)
		return 0;
	unsigned n = weft_trace_find(places, address_key(fn));
	return weft_likely(n) ? n : new_text(address_key(fn), make_code, fn);
}

bool weft_trace_code_known(const void *fn)
{
	return weft_trace_find(places, address_key(fn)) != 0;
}

/* ---- begin and end ------------------------------------------------------------------------- */

static void child_after_fork(void)
{
	/* Relaxed: the child has one thread.  The rings are the parent's. */
	atomic_store_explicit(&weft_trace_x_on, 0, memory_order_relaxed);
	self = NULL;
}

/* A listener may have made texts before. */
static bool open_file(void)
{
	pthread_mutex_lock(&text_lock);
	bool opened = weft_trace_file_open();
	for (unsigned n = 1; opened && n <= text_count; n++)
		text_to_file_locked(n);
	pthread_mutex_unlock(&text_lock);
	return opened;
}

void weft_trace_start(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static bool tried;
	pthread_mutex_lock(&lock);
	if (!tried && open_file()) {
		if (pthread_key_create(&end_key, thread_ends))
			weft_panic("no pthread key left for the trace");
		(void)pthread_atfork(NULL, NULL, child_after_fork);
		/* Release: the file, which threads look at that see it. */
		atomic_fetch_or_explicit(&weft_trace_x_on, WEFT_TRACE_TO_FILE,
					 memory_order_release);
	}
	tried = true;
	pthread_mutex_unlock(&lock);
}

__attribute__((destructor)) void weft_trace_stop(void)
{
	/* Relaxed: as in weft_trace_on. */
	if (atomic_load_explicit(&weft_trace_x_on, memory_order_relaxed) & WEFT_TRACE_TO_FILE)
		weft_trace_file_end();
}
