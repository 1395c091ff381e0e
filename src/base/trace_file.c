/* SPDX-License-Identifier: BSD-3-Clause */
/* trace_file.c - the file of a trace: its name, its room on the disk, its head. */
#include "base/trace_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/file_limit.h"
#include "base/log.h"
#include "base/settings.h"
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#define HEAD_BYTES (WEFT_TRACE_PAGE + WEFT_TRACE_TEXTS * WEFT_TRACE_TEXT_BYTES)

struct weft_trace_file weft_trace_file;
static int fd = -1;
static char path[4096]; /* as it is called now */
static int our_rank = -1, our_size = 1;

/* ---- the clock ----------------------------------------------------------------------------- */

static bool cycles_are_a_clock(void)
{
#if defined(__x86_64__)
	unsigned a, b, c, d;
	return __get_cpuid(0x80000007u, &a, &b, &c, &d) && (d & 1u << 8);
#else
	return true; /* a counter of constant rate, or the clock itself */
#endif
}

/* The two are read one after the other: the best of some attempts. */
struct weft_trace_pair weft_trace_pair_now(void)
{
	struct weft_trace_pair best = {0, 0};
	uint64_t least = ~(uint64_t)0;
	for (int i = 0; i < 3; i++) {
		uint64_t before = weft_trace_now(), ns = weft_clock_ns();
		uint64_t took = weft_trace_now() - before;
		if (took >= least)
			continue;
		least = took;
		best = (struct weft_trace_pair){before + took / 2, ns};
	}
	return best;
}

/* ---- the name ------------------------------------------------------------------------------ */

struct name {
	char text[4096];
	size_t n;
	bool personal; /* it has a rank or a process in it */
};

static void append_text(struct name *to, const char *text)
{
	size_t left = sizeof to->text - to->n;
	int n = snprintf(to->text + to->n, left, "%s", text);
	to->n += (size_t)n < left ? (size_t)n : left - 1;
}

/* %r the rank, or p and the process; %p the process; %h the host. */
static bool append_special(struct name *to, char what)
{
	char text[80];
	switch (what) {
	case 'r':
		if (our_rank >= 0)
			snprintf(text, sizeof text, "%d", our_rank);
		else
			snprintf(text, sizeof text, "p%d", (int)getpid());
		break;
	case 'p':
		snprintf(text, sizeof text, "%d", (int)getpid());
		break;
	case 'h':
		if (gethostname(text, sizeof text))
			return false;
		text[sizeof text - 1] = 0;
		break;
	default:
		return false;
	}
	append_text(to, text);
	to->personal |= what != 'h';
	return true;
}

static void expand_name(const char *pattern, struct name *to)
{
	to->n = 0;
	to->text[0] = 0;
	to->personal = false;
	for (const char *p = pattern; *p; p++) {
		char one[2] = {*p, 0};
		if (*p == '%' && p[1] == '%')
			p++;
		else if (*p == '%' && append_special(to, p[1])) {
			p++;
			continue;
		}
		append_text(to, one);
	}
}

static void make_name(char *out, size_t size)
{
	static struct name n;
	static char pattern[4096];
	struct stat st;
	const char *want = weft_setting_str(WEFT_SET_TRACE);
	bool folder = stat(want, &st) == 0 && S_ISDIR(st.st_mode);
	snprintf(pattern, sizeof pattern, "%s%s", want, folder ? "/weft-%r.trace" : "");
	expand_name(pattern, &n);
	if (!n.personal && our_size > 1) {
		append_text(&n, ".");
		(void)append_special(&n, 'r');
	}
	snprintf(out, size, "%.*s", (int)size - 1, n.text);
}

/* ---- the file ------------------------------------------------------------------------------ */

static bool warn_no_trace(const char *what)
{
	weft_error("no trace: %s: %s", path, what);
	return false;
}

/* What is there already is replaced if it is a trace, or empty. */
static bool make_room(void)
{
	struct stat st;
	uint64_t magic = 0;
	if (lstat(path, &st))
		return errno == ENOENT || warn_no_trace(strerror(errno));
	if (!S_ISREG(st.st_mode))
		return warn_no_trace("is there and is no file");
	if (st.st_size) {
		/* It may be a pipe by now. */
		int old = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
		ssize_t n = old < 0 ? -1 : pread(old, &magic, sizeof magic, 0);
		if (old >= 0)
			close(old);
		if (n != sizeof magic || magic != WEFT_TRACE_MAGIC)
			return warn_no_trace("is there and is no trace: not overwritten");
	}
	/* Not truncated: a process may have it mapped. */
	return unlink(path) == 0 || warn_no_trace(strerror(errno));
}

/* Room on the disk first: a store to mapped memory of a file without it kills the process. */
static void *map_part(off_t at, size_t bytes)
{
	int err = weft_file_fits((uint64_t)at + bytes) ? posix_fallocate(fd, at, (off_t)bytes)
						       : EFBIG;
	if (err) {
		errno = err;
		return NULL;
	}
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, at);
	return p == MAP_FAILED ? NULL : p;
}

static void read_line(const char *file, char *to, size_t size)
{
	int in = open(file, O_RDONLY | O_CLOEXEC);
	ssize_t n = in < 0 ? 0 : read(in, to, size - 1);
	if (in >= 0)
		close(in);
	to[n > 0 ? n : 0] = 0;
	to[strcspn(to, "\n")] = 0;
}

static void fill_head(struct weft_trace_head *h)
{
	static const char *const names[] = {
		"none",
#define WEFT_TRACE_EVENT(id, name, group, fields, help) name,
#include "base/trace_table.h"
#undef WEFT_TRACE_EVENT
	};
	struct timespec real;
	_Static_assert(WEFT_TRACE_KIND_COUNT <= WEFT_TRACE_KINDS, "names have room in the head");
	for (int i = 0; i < WEFT_TRACE_KIND_COUNT; i++)
		snprintf(h->kind[i], WEFT_TRACE_KIND_BYTES, "%s", names[i]);
	h->version = WEFT_TRACE_VERSION;
	h->head_bytes = WEFT_TRACE_PAGE;
	h->texts = WEFT_TRACE_TEXTS;
	h->text_bytes = WEFT_TRACE_TEXT_BYTES;
	h->records = (uint32_t)(weft_trace_file.mask + 1);
	h->record_bytes = WEFT_TRACE_WORDS * sizeof(uint64_t);
	h->ring_bytes = WEFT_TRACE_PAGE + (uint64_t)h->records * h->record_bytes;
	h->rings_at = HEAD_BYTES;
	h->pid = (int32_t)getpid();
	h->rank = our_rank;
	h->size = our_size;
	h->clock = weft_trace_file.by_cycles;
	h->from = weft_trace_pair_now();
	clock_gettime(CLOCK_REALTIME, &real);
	h->from_real_ns = (uint64_t)real.tv_sec * 1000000000u + (uint64_t)real.tv_nsec;
	(void)gethostname(h->host, sizeof h->host - 1);
	read_line("/proc/sys/kernel/random/boot_id", h->boot, sizeof h->boot);
	read_line("/proc/self/comm", h->program, sizeof h->program);
	h->magic = WEFT_TRACE_MAGIC;
}

/* The launcher has given our rank before it is asked for it. */
static void guess_rank(void)
{
	const char *rank = getenv("PMI_RANK"), *size = getenv("PMI_SIZE");
	if (our_rank < 0 && rank && size) {
		our_rank = atoi(rank);
		our_size = atoi(size);
	}
}

bool weft_trace_file_open(void)
{
	struct weft_trace_file *f = &weft_trace_file;
	if (!weft_setting_str(WEFT_SET_TRACE)[0])
		return false;
	guess_rank();
	uint64_t records = 1, want = (uint64_t)weft_setting_int(WEFT_SET_TRACE_EVENTS);
	while (records < want) /* ends: the setting is limited */
		records *= 2;
	f->mask = records - 1;
	f->by_cycles = cycles_are_a_clock();
	make_name(path, sizeof path);
	if (!make_room())
		return false;
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (fd < 0)
		return warn_no_trace(strerror(errno));
	f->head = map_part(0, HEAD_BYTES);
	if (!f->head) {
		(void)warn_no_trace(strerror(errno));
		(void)unlink(path);
		close(fd);
		return false;
	}
	fill_head(f->head);
	return true;
}

struct weft_trace_ring *weft_trace_file_ring(unsigned n)
{
	struct weft_trace_head *h = weft_trace_file.head;
	static bool said;
	uint64_t at = h->rings_at + n * h->ring_bytes;
	struct weft_trace_ring *r = map_part((off_t)at, h->ring_bytes);
	if (!r && !said) {
		said = true;
		weft_warn("%s: a thread is not traced: %s", path, strerror(errno));
	}
	if (r)
		/* Relaxed: its position says what is in it. */
		atomic_store_explicit(&h->x_rings, n + 1, memory_order_relaxed);
	return r;
}

void weft_trace_rank(int rank, int size)
{
	static char before[sizeof path];
	our_rank = rank;
	our_size = size;
	struct weft_trace_head *h = weft_trace_file.head;
	if (!h || !weft_trace_on())
		return;
	h->rank = rank;
	h->size = size;
	memcpy(before, path, sizeof before);
	make_name(path, sizeof path);
	if (strcmp(before, path) == 0)
		return;
	if (!make_room() || rename(before, path)) {
		weft_warn("the trace stays in %s", before);
		memcpy(path, before, sizeof path);
	}
}

void weft_trace_file_end(void)
{
	weft_trace_file.head->to = weft_trace_pair_now();
}
