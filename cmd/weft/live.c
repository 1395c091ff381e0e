/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * live.c - weft info --live PID: what a running process counts, and what its engine's threads cost.
 *
 * The pollers, how late an event was noticed, what it cost and what was refused are shown also where that
 * is nothing; of the other counters those that have counted.
 *
 * The counters are read from its memory (base/live.h), the threads' times from /proc: the process
 * itself takes no part and notices nothing.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "base/live.h"
#include "command.h"

#define COUNTERS_MAX 512
#define THREADS_MAX 64
#define ULTS_SHOWN 16

struct thread_use {
	int tid;
	char name[20];
	unsigned long long run_ns, wakeups;
};

struct look {
	uint64_t ns;
	uint64_t value[COUNTERS_MAX];
	struct thread_use thread[THREADS_MAX];
	int threads;
};

static int say(int pid, const char *what)
{
	fprintf(stderr, "weft: process %d %s\n", pid, what);
	return -1;
}

/* The descriptor; -1: errno says why, 0: the process has no such memory. */
static int find_counters(int pid)
{
	char path[64], target[256];
	snprintf(path, sizeof path, "/proc/%d/fd", pid);
	DIR *d = opendir(path);
	int fd = -1;
	if (!d)
		return -1;
	for (struct dirent *e; fd < 0 && (e = readdir(d));) {
		char link[330];
		snprintf(link, sizeof link, "%s/%s", path, e->d_name);
		ssize_t n = readlink(link, target, sizeof target - 1);
		target[n > 0 ? n : 0] = 0;
		if (strncmp(target, "/memfd:" WEFT_LIVE_NAME, strlen("/memfd:" WEFT_LIVE_NAME)) ==
		    0)
			fd = open(link, O_RDONLY | O_CLOEXEC);
	}
	closedir(d);
	errno = 0;
	return fd;
}

static int open_counters(int pid)
{
	int fd = find_counters(pid);
	if (fd >= 0)
		return fd;
	return say(pid, errno == EACCES ? "belongs to another user"
			: errno         ? "is not there"
					: "does not use weft, or has not begun to");
}

/* What is in it was written by another process: checked before use. */
static bool sound(const struct weft_live_head *h)
{
	return h->magic == WEFT_LIVE_MAGIC && h->counters <= COUNTERS_MAX &&
	       h->block_bytes >= h->values_at + h->counters * sizeof(uint64_t) &&
	       h->block_bytes < 65536 && h->values_at % sizeof(uint64_t) == 0;
}

const struct weft_live_head *weft_cmd_live_map(int pid)
{
	int fd = find_counters(pid);
	if (fd < 0)
		return NULL;
	const struct weft_live_head *h = mmap(NULL, WEFT_LIVE_BYTES, PROT_READ, MAP_SHARED, fd, 0);
	off_t bytes = lseek(fd, 0, SEEK_END);
	close(fd);
	if (h == MAP_FAILED)
		return NULL;
	if (bytes >= (off_t)WEFT_LIVE_BYTES && sound(h))
		return h;
	weft_cmd_live_unmap(h);
	return NULL;
}

void weft_cmd_live_unmap(const struct weft_live_head *h)
{
	munmap((void *)(uintptr_t)h, WEFT_LIVE_BYTES);
}

static void read_counters(const struct weft_live_head *h, uint32_t counters, struct look *l)
{
	size_t most = (WEFT_LIVE_BYTES - WEFT_LIVE_BLOCKS_AT) / h->block_bytes;
	uint32_t blocks = atomic_load_explicit(&h->x_blocks, memory_order_relaxed);
	memset(l->value, 0, sizeof l->value);
	for (size_t b = 0; b < blocks && b < most; b++) {
		const char *at =
			(const char *)h + WEFT_LIVE_BLOCKS_AT + b * h->block_bytes + h->values_at;
		for (uint32_t i = 0; i < counters; i++)
			l->value[i] += atomic_load_explicit((const _Atomic uint64_t *)at + i,
							    memory_order_relaxed);
	}
}

static unsigned long long number_after(const char *path, const char *key)
{
	char line[256];
	unsigned long long v = 0;
	FILE *f = fopen(path, "r");
	while (f && fgets(line, sizeof line, f)) {
		if (!*key)
			v = strtoull(line, NULL, 10);
		else if (strncmp(line, key, strlen(key)) == 0)
			v = strtoull(line + strlen(key), NULL, 10);
	}
	if (f)
		fclose(f);
	return v;
}

/* Threads whose names begin with "weft-". */
static void read_threads(int pid, struct look *l)
{
	char path[330];
	snprintf(path, sizeof path, "/proc/%d/task", pid);
	DIR *d = opendir(path);
	l->threads = 0;
	for (struct dirent *e; d && l->threads < THREADS_MAX && (e = readdir(d));) {
		struct thread_use *t = &l->thread[l->threads];
		t->tid = atoi(e->d_name);
		snprintf(path, sizeof path, "/proc/%d/task/%d/comm", pid, t->tid);
		FILE *f = t->tid ? fopen(path, "r") : NULL;
		bool ours =
			f && fgets(t->name, sizeof t->name, f) && strncmp(t->name, "weft-", 5) == 0;
		if (f)
			fclose(f);
		if (!ours)
			continue;
		t->name[strcspn(t->name, "\n")] = 0;
		snprintf(path, sizeof path, "/proc/%d/task/%d/schedstat", pid, t->tid);
		t->run_ns = number_after(path, "");
		snprintf(path, sizeof path, "/proc/%d/task/%d/status", pid, t->tid);
		t->wakeups = number_after(path, "voluntary_ctxt_switches:");
		l->threads++;
	}
	if (d)
		closedir(d);
}

static void take_look(int pid, const struct weft_live_head *h, uint32_t counters, struct look *l)
{
	l->ns = weft_clock_ns();
	read_counters(h, counters, l);
	read_threads(pid, l);
}

/* What the progress contract is checked by. */
static bool always_shown(const char *name)
{
	static const char *const prefix[] = {"poll_", "late_"};
	static const char *const whole[] = {"watcher_wakeups", "idle_wakeups", "budget_pauses",
					    "mask_skips"};
	for (size_t i = 0; i < sizeof prefix / sizeof prefix[0]; i++)
		if (strncmp(name, prefix[i], strlen(prefix[i])) == 0)
			return true;
	for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++)
		if (strcmp(name, whole[i]) == 0)
			return true;
	return false;
}

static void print(int pid, const struct weft_live_head *h, uint32_t counters, const struct look *a,
		  const struct look *b)
{
	double seconds = (double)(b->ns - a->ns) * 1e-9, cpu = 0, wakeups = 0;
	printf("process %d, within %.2f s\n\n  %-16s %12s %14s\n", pid, seconds, "engine's thread",
	       "% of a core", "wake-ups per s");
	for (int i = 0; i < b->threads; i++) {
		const struct thread_use *t = &b->thread[i], *was = NULL;
		for (int k = 0; k < a->threads; k++)
			if (a->thread[k].tid == t->tid)
				was = &a->thread[k];
		double c = (double)(t->run_ns - (was ? was->run_ns : 0)) * 1e-7 / seconds;
		double w = (double)(t->wakeups - (was ? was->wakeups : 0)) / seconds;
		printf("  %-16s %12.2f %14.1f\n", t->name, c, w);
		cpu += c;
		wakeups += w;
	}
	printf("  %-16s %12.2f %14.1f\n\n  %-18s %16s %14s\n", "together", cpu, wakeups, "counter",
	       "total", "per s");
	const char *name = (const char *)(h + 1), *end = (const char *)h + WEFT_LIVE_BLOCKS_AT;
	for (uint32_t i = 0; i < counters; i++) {
		size_t n = strnlen(name, (size_t)(end - name));
		if (name + n >= end)
			break;
		if (b->value[i] || always_shown(name))
			printf("  %-18.40s %16llu %14.1f\n", name, (unsigned long long)b->value[i],
			       (double)(b->value[i] - a->value[i]) / seconds);
		name += n + 1;
	}
}

static int show(int pid, unsigned ms, int most)
{
	static struct look before, after;
	int fd = open_counters(pid);
	if (fd < 0)
		return 1;
	const struct weft_live_head *h = mmap(NULL, WEFT_LIVE_BYTES, PROT_READ, MAP_SHARED, fd, 0);
	off_t bytes = lseek(fd, 0, SEEK_END);
	close(fd);
	if (h == MAP_FAILED || bytes < (off_t)WEFT_LIVE_BYTES || !sound(h)) {
		say(pid, "counts in a way that this version does not know");
		return 1;
	}
	uint32_t counters = h->counters;
	struct timespec nap = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
	take_look(pid, h, counters, &before);
	nanosleep(&nap, NULL);
	take_look(pid, h, counters, &after);
	print(pid, h, counters, &before, &after);
	weft_cmd_live_ults(pid, h, most);
	munmap((void *)(uintptr_t)h, WEFT_LIVE_BYTES);
	if (kill(pid, 0) && errno == ESRCH) {
		say(pid, "has ended meanwhile");
		return 1;
	}
	return 0;
}

int weft_cmd_live(int argc, char **argv)
{
	int most = ULTS_SHOWN;
	if (argc > 2 && strcmp(argv[argc - 2], "--threads") == 0) {
		if (!isdigit((unsigned char)argv[argc - 1][0]))
			return weft_cmd_misuse("info --live: not a number:", argv[argc - 1]);
		most = atoi(argv[argc - 1]);
		argc -= 2;
	}
	if (argc < 1 || argc > 2)
		return weft_cmd_misuse("info --live: wants a process and perhaps milliseconds, not",
				       argc ? argv[2] : "nothing");
	for (int i = 0; i < argc; i++)
		if (!isdigit((unsigned char)argv[i][0]) || atoi(argv[i]) <= 0)
			return weft_cmd_misuse("info --live: not a number:", argv[i]);
	return show(atoi(argv[0]), argc > 1 ? (unsigned)atoi(argv[1]) : 1000, most);
}
