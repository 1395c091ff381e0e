/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The trace: off it writes nothing; on, a reader beside many writers gets whole records in order,
 * the oldest are overwritten, texts are there, the child of a fork writes nothing, and what is
 * there already and is no trace stays.
 */
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/settings.h"
#include "base/trace.h"
#include "base/trace_ring.h"
#include "check.h"

#define RECORDS 512u
#define WRITERS 4
#define EACH 20000u

static char folder[] = "/tmp/weft-trace-XXXXXX";
static char path[64];
static _Atomic int x_writing;

struct ring {
	struct weft_trace_ring *r;
	_Atomic uint64_t *x_words;
};

static size_t mapped; /* by the last map_file: the file may have grown since */

static struct weft_trace_head *map_file(void)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	CHECK(fd >= 0);
	struct stat st;
	CHECK(fstat(fd, &st) == 0);
	void *p = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(p != MAP_FAILED);
	mapped = (size_t)st.st_size;
	close(fd);
	return p;
}

static struct ring ring_of(struct weft_trace_head *h, unsigned n)
{
	char *at = (char *)h + h->rings_at + n * h->ring_bytes;
	return (struct ring){(void *)at, (void *)(at + WEFT_TRACE_PAGE)};
}

static unsigned kind_of(const uint64_t *record)
{
	return record[1] & 0xffff;
}

/* The ring's records, whole and in order; those of STEAL count up in a, and b is a's complement. */
static uint64_t look(struct ring g, uint64_t *last_a)
{
	static _Thread_local uint64_t out[RECORDS * WEFT_TRACE_WORDS];
	uint64_t first, time = 0, a = 0;
	uint64_t n = weft_trace_ring_copy(g.r, g.x_words, RECORDS - 1, out, &first);
	for (uint64_t i = 0; i < n; i++) {
		const uint64_t *w = &out[i * WEFT_TRACE_WORDS];
		CHECK(w[0] >= time);
		time = w[0];
		CHECK(kind_of(w) > 0 && kind_of(w) < WEFT_TRACE_KIND_COUNT);
		if (kind_of(w) != WEFT_TRACE_ULT_STEAL)
			continue;
		CHECK(w[3] == ~w[2]);
		CHECK(!a || w[2] == a + 1 || w[2] == 1); /* 1: a later thread's */
		a = w[2];
	}
	*last_a = a;
	return n;
}

static void *writer(void *arg)
{
	(void)arg;
	for (uint64_t i = 1; i <= EACH; i++)
		weft_trace(WEFT_TRACE_ULT_STEAL, 7, 9, i, ~i);
	/* Release: not needed by the rings; ends the reader's loop. */
	atomic_fetch_sub_explicit(&x_writing, 1, memory_order_release);
	return NULL;
}

static void off_writes_nothing(void)
{
	CHECK(!weft_trace_on());
	weft_trace(WEFT_TRACE_IDLE, 0, 0, 0, 0);
	CHECK(weft_setting_set(WEFT_SET_TRACE, "") == WEFT_OK);
	CHECK(access(path, F_OK) != 0);
}

/* In a process of its own, as each process starts its trace once.  True: it began. */
static bool starts(const char *file)
{
	pid_t child = fork();
	CHECK(child >= 0);
	if (!child) {
		CHECK(weft_setting_set(WEFT_SET_TRACE, file) == WEFT_OK);
		CHECK(weft_setting_set(WEFT_SET_TRACE_EVENTS, "512") == WEFT_OK);
		weft_trace_start();
		_exit(weft_trace_on() ? 0 : 3);
	}
	int status;
	CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
	return WEXITSTATUS(status) == 0;
}

static void what_is_there_stays(void)
{
	FILE *f = fopen(path, "w");
	CHECK(f && fputs("a letter to a friend", f) >= 0 && fclose(f) == 0);
	CHECK(!starts(path));
	struct stat st;
	CHECK(stat(path, &st) == 0 && st.st_size == 20);
	CHECK(unlink(path) == 0 && symlink("/dev/null", path) == 0);
	CHECK(!starts(path));
	CHECK(unlink(path) == 0);
	CHECK(!starts("/tmp/weft-trace-no-such-folder/file"));
	CHECK(!starts("/dev/null"));
	CHECK(starts(path) && starts(path)); /* a trace is replaced */
}

static void many_write_one_reads(void)
{
	pthread_t thread[WRITERS];
	struct weft_trace_head *h = map_file();
	CHECK_EQ(h->records, RECORDS);
	munmap(h, mapped);
	atomic_store_explicit(&x_writing, WRITERS, memory_order_relaxed);
	for (int i = 0; i < WRITERS; i++)
		CHECK(pthread_create(&thread[i], NULL, writer, NULL) == 0);
	uint64_t a;
	while (atomic_load_explicit(&x_writing, memory_order_acquire)) { /* ends: they end */
		h = map_file();
		unsigned n = atomic_load_explicit(&h->x_rings, memory_order_relaxed);
		for (unsigned i = 0; i < n && h->rings_at + (i + 1) * h->ring_bytes <= mapped; i++)
			(void)look(ring_of(h, i), &a);
		munmap(h, mapped);
	}
	for (int i = 0; i < WRITERS; i++)
		CHECK(pthread_join(thread[i], NULL) == 0);
	h = map_file();
	unsigned full = 0, n = atomic_load_explicit(&h->x_rings, memory_order_relaxed);
	CHECK(n >= 1 && n <= WRITERS + 1);
	for (unsigned i = 0; i < n; i++) {
		struct ring g = ring_of(h, i);
		uint64_t got = look(g, &a);
		if (a != EACH)
			continue;
		full++;
		CHECK_EQ(got, RECORDS - 1); /* wrapped: one less, see trace_ring.h */
		CHECK(atomic_load_explicit(&g.r->x_pos, memory_order_relaxed) > EACH);
	}
	CHECK(full >= 1); /* a ring may have been taken over by a later thread */
	CHECK_EQ(h->x_lost, 0);
}

static void texts_are_kept(void)
{
	char mine[] = "a name";
	unsigned first = weft_trace_text(mine), fixed = weft_trace_static("fixed");
	mine[0] = 'b';
	unsigned second = weft_trace_text(mine);
	CHECK(first && second && first != second && fixed);
	CHECK_EQ(weft_trace_text("a name"), first);
	CHECK(!weft_trace_code_known((void *)(uintptr_t)look));
	unsigned code = weft_trace_code((void *)(uintptr_t)look);
	CHECK(code && weft_trace_code_known((void *)(uintptr_t)look));
	CHECK(weft_trace_text(NULL) == 0);
	struct weft_trace_head *h = map_file();
	const char *texts = (char *)h + h->head_bytes;
	CHECK(strcmp(texts + first * h->text_bytes, "a name") == 0);
	CHECK(strcmp(texts + second * h->text_bytes, "b name") == 0);
	CHECK(strlen(texts + code * h->text_bytes) > 0);
	/* Full: 0, and nothing is overwritten. */
	char text[32];
	unsigned got = 1;
	for (unsigned i = 0; i < 2 * WEFT_TRACE_TEXTS; i++) {
		snprintf(text, sizeof text, "text %u", i);
		got = weft_trace_text(text);
		CHECK(got < WEFT_TRACE_TEXTS);
	}
	CHECK_EQ(got, 0);
	CHECK(strcmp(texts + first * h->text_bytes, "a name") == 0);
}

static void the_child_writes_nothing(void)
{
	weft_trace(WEFT_TRACE_IDLE, 0, 1, 0, 0);
	struct weft_trace_head *h = map_file();
	unsigned n = atomic_load_explicit(&h->x_rings, memory_order_relaxed);
	uint64_t sum = 0, after = 0;
	for (unsigned i = 0; i < n; i++)
		sum += atomic_load_explicit(&ring_of(h, i).r->x_pos, memory_order_relaxed);
	pid_t child = fork();
	CHECK(child >= 0);
	if (!child) {
		CHECK(!weft_trace_on());
		weft_trace(WEFT_TRACE_BUSY, 0, 1, 0, 0);
		weft_trace_stop();
		_exit(0);
	}
	int status;
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	for (unsigned i = 0; i < n; i++)
		after += atomic_load_explicit(&ring_of(h, i).r->x_pos, memory_order_relaxed);
	CHECK_EQ(sum, after);
	CHECK_EQ(h->to.ns, 0);
	weft_trace_stop();
	CHECK(h->to.ns > h->from.ns);
}

static void the_name_follows_the_rank(void)
{
	char now[80];
	weft_trace_rank(3, 4);
	snprintf(now, sizeof now, "%s/weft-3.trace", folder);
	CHECK(access(now, F_OK) == 0 && access(path, F_OK) != 0);
	CHECK(unlink(now) == 0);
}

int main(void)
{
	unsetenv("PMI_RANK");
	CHECK(mkdtemp(folder) != NULL);
	snprintf(path, sizeof path, "%s/weft-p%d.trace", folder, (int)getpid());
	off_writes_nothing();
	what_is_there_stays();
	CHECK(weft_setting_set(WEFT_SET_TRACE, folder) == WEFT_OK);
	CHECK(weft_setting_set(WEFT_SET_TRACE_EVENTS, "512") == WEFT_OK);
	weft_trace_start();
	CHECK(weft_trace_on());
	many_write_one_reads();
	texts_are_kept();
	the_child_writes_nothing();
	the_name_follows_the_rank();
	CHECK(rmdir(folder) == 0);
	return 0;
}
