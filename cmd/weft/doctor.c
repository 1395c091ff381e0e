/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doctor.c - weft doctor [JOB]: what each thread of each rank waits for, and a cycle of ranks.
 *
 * Reads the memory of this host's ranks (wait/note.h, base/live.h); they take no part, and may be stopped.  Two looks
 * tell a wait that lasts from one that passes.
 */
#include <ctype.h>
#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "base/live.h"
#include "command.h"
#include "doctor.h"

#define JOBS_MAX 64
#define THREADS_MAX 100000
#define MEMBERS_MAX (1 << 20)
#define BETWEEN_MS 400 /* two looks */

/* ---- one rank --------------------------------------------------------------------------------- */

/* A lock that no member holds alone, or whose word cannot be read, may become free: no wait for any rank. */
static void see_holder(const struct weft_doctor_rank *r, struct weft_doctor_wait *w)
{
	uint64_t word = 0;
	w->holder = -1;
	if (w->note.form != WEFT_WAIT_LOCK)
		return;
	w->note.process = -1;
	if (!weft_cmd_fetch(r->pid, (uint64_t)(uintptr_t)w->note.holder, &word, sizeof word) ||
	    word >> 32 < 1 || word >> 32 > (uint64_t)w->note.size) {
		w->note.form = WEFT_WAIT_OTHER;
		return;
	}
	w->holder = (int)(word >> 32) - 1;
	w->note.process = weft_doctor_member(w, w->holder);
}

static void add_wait(struct weft_doctor_rank *r, const struct weft_wait_note *at,
		     const char *thread)
{
	struct weft_doctor_wait w = {.note_at = (uint64_t)(uintptr_t)at}, *more;
	if (!at || r->waits == THREADS_MAX ||
	    !weft_cmd_fetch(r->pid, w.note_at, &w.note, sizeof w.note))
		return;
	snprintf(w.thread, sizeof w.thread, "%s", thread);
	if (!weft_cmd_fetch(r->pid, (uint64_t)(uintptr_t)w.note.call, &w.what, sizeof w.what))
		return;
	weft_cmd_fetch_text(r->pid, (uint64_t)(uintptr_t)w.what.name, w.call, sizeof w.call);
	if (strncmp(w.call, "MPI_", 4) != 0)
		return;         /* it has just ended */
	if (!w.note.since_ns) { /* not asleep yet */
		w.note.form = WEFT_WAIT_OTHER;
		w.note.name = NULL;
		w.note.size = 0;
		w.note.others = 0;
	}
	if (w.note.name)
		weft_cmd_fetch_text(r->pid, (uint64_t)(uintptr_t)w.note.name, w.comm,
				    sizeof w.comm);
	if (w.note.size < 0 || w.note.size > MEMBERS_MAX)
		w.note.size = 0;
	size_t bytes = (size_t)w.note.size * sizeof *w.member;
	if (w.note.member && bytes) {
		w.member = malloc(bytes);
		if (!w.member ||
		    !weft_cmd_fetch(r->pid, (uint64_t)(uintptr_t)w.note.member, w.member, bytes))
			w.note.size = 0;
	}
	see_holder(r, &w);
	more = realloc(r->wait, (size_t)(r->waits + 1) * sizeof *r->wait);
	if (!more) {
		free(w.member);
		return;
	}
	r->wait = more;
	r->wait[r->waits++] = w;
}

static void see_ult(void *arg, int worker, uint32_t slot, const char *name,
		    const struct weft_wait_note *note)
{
	char text[WEFT_DOCTOR_TEXT];
	snprintf(text, sizeof text, "user-level thread %d.%u%s%.32s", worker, slot,
		 name[0] ? " " : "", name);
	add_wait(arg, note, text);
}

static void see_threads(struct weft_doctor_rank *r, const struct weft_wait_live *live)
{
	struct weft_thread_parker t;
	uint64_t at =
		(uint64_t)(uintptr_t)atomic_load_explicit(&live->x_threads, memory_order_relaxed);
	/* Bound: so many threads. */
	for (int i = 0; at && i < THREADS_MAX && weft_cmd_fetch(r->pid, at, &t, sizeof t); i++) {
		int tid = atomic_load_explicit(&t.x_tid, memory_order_relaxed);
		char text[WEFT_DOCTOR_TEXT];
		snprintf(text, sizeof text, tid == r->pid ? "main thread" : "thread %d", tid);
		if (tid)
			add_wait(r, t.parker.note, text);
		at = (uint64_t)(uintptr_t)t.next;
	}
}

/* State and processor time. */
static void see_process(struct weft_doctor_rank *r)
{
	char path[64], line[1024];
	unsigned long long user = 0, system = 0;
	char state = 0;
	snprintf(path, sizeof path, "/proc/%d/stat", r->pid);
	FILE *f = fopen(path, "r");
	if (f && fgets(line, sizeof line, f)) {
		const char *after = strrchr(line, ')');
		if (after)
			(void)sscanf(after + 1,
				     " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu %llu",
				     &state, &user, &system);
	}
	if (f)
		fclose(f);
	r->stopped = state == 'T' || state == 't';
	r->ticks = user + system;
}

/* ---- jobs ------------------------------------------------------------------------------------- */

static int parent_of(int pid)
{
	char path[64], line[1024];
	int parent = 0;
	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	FILE *f = fopen(path, "r");
	if (f && fgets(line, sizeof line, f) && strrchr(line, ')'))
		(void)sscanf(strrchr(line, ')') + 1, " %*c %d", &parent);
	if (f)
		fclose(f);
	return parent;
}

static bool descends(int pid, int from)
{
	for (int i = 0; i < 64 && pid > 1; i++, pid = parent_of(pid))
		if (pid == from)
			return true;
	return false;
}

static void drop(struct weft_doctor_job *jobs, int n)
{
	for (int i = 0; i < n; i++) {
		for (int k = 0; k < jobs[i].ranks; k++) {
			for (int w = 0; w < jobs[i].rank[k].waits; w++)
				free(jobs[i].rank[k].wait[w].member);
			free(jobs[i].rank[k].wait);
		}
		free(jobs[i].rank);
	}
}

static struct weft_doctor_job *job_of(struct weft_doctor_job *jobs, int *n,
				      const struct weft_wait_live *live)
{
	for (int i = 0; i < *n; i++)
		if (strcmp(jobs[i].name, live->job) == 0)
			return &jobs[i];
	if (*n == JOBS_MAX)
		return NULL;
	struct weft_doctor_job *j = &jobs[(*n)++];
	*j = (struct weft_doctor_job){.size = live->size};
	memcpy(j->name, live->job, sizeof j->name);
	return j;
}

/* False: it is no rank of ours. */
static void see(struct weft_doctor_job *jobs, int *n, int pid)
{
	struct weft_wait_live live;
	bool known;
	const struct weft_live_head *h = weft_cmd_live_map(pid);
	if (!h)
		return;
	uint64_t at = weft_cmd_live_part(h, WEFT_WAIT_LIVE, WEFT_WAIT_LAYOUT, &known);
	if (at && known && weft_cmd_fetch(pid, at, &live, sizeof live) && live.rank >= 0) {
		live.job[sizeof live.job - 1] = 0;
		struct weft_doctor_job *j = job_of(jobs, n, &live);
		struct weft_doctor_rank *more =
			j ? realloc(j->rank, (size_t)(j->ranks + 1) * sizeof *more) : NULL;
		if (more) {
			j->rank = more;
			struct weft_doctor_rank *r = &more[j->ranks++];
			*r = (struct weft_doctor_rank){.pid = pid, .rank = live.rank};
			see_process(r);
			see_threads(r, &live);
			(void)weft_cmd_live_each_ult(pid, h, see_ult, r);
		}
	}
	weft_cmd_live_unmap(h);
}

static int by_rank(const void *a, const void *b)
{
	return ((const struct weft_doctor_rank *)a)->rank -
	       ((const struct weft_doctor_rank *)b)->rank;
}

/* All jobs of this host whose memory we may read; their number. */
static int see_all(struct weft_doctor_job *jobs)
{
	int n = 0;
	DIR *d = opendir("/proc");
	for (struct dirent *e; d && (e = readdir(d));)
		if (isdigit((unsigned char)e->d_name[0]))
			see(jobs, &n, atoi(e->d_name));
	if (d)
		closedir(d);
	for (int i = 0; i < n; i++)
		qsort(jobs[i].rank, (size_t)jobs[i].ranks, sizeof *jobs[i].rank, by_rank);
	return n;
}

/* The one that `word` names: a job, or a process of it; NULL: the only one. */
static struct weft_doctor_job *choose(struct weft_doctor_job *jobs, int n, const char *word)
{
	if (!word)
		return n == 1 ? jobs : NULL;
	for (int i = 0; i < n; i++)
		if (strcmp(jobs[i].name, word) == 0)
			return &jobs[i];
	int pid = atoi(word);
	for (int i = 0; pid > 0 && i < n; i++)
		for (int k = 0; k < jobs[i].ranks; k++)
			if (descends(jobs[i].rank[k].pid, pid))
				return &jobs[i];
	return NULL;
}

/* ---- printing --------------------------------------------------------------------------------- */

static void print_for(const struct weft_doctor_wait *w)
{
	const struct weft_wait_note *n = &w->note;
	if (n->form == WEFT_WAIT_RECV || n->form == WEFT_WAIT_SEND) {
		printf(n->form == WEFT_WAIT_RECV ? " for a message from" : " to send to");
		if (n->rank < 0)
			printf(" any rank");
		else
			printf(" rank %d", n->rank);
		if (n->tag >= 0)
			printf(", tag %d", n->tag);
		else
			printf(", any tag");
	} else if (n->form == WEFT_WAIT_ALL) {
		printf(" for the other members");
		if (n->rank >= 0 && n->rank < n->size)
			printf(", root %d", n->rank);
	} else if (n->form == WEFT_WAIT_LOCK) {
		printf(" at rank %d, held by rank %d", n->rank, w->holder);
	} else if (n->process >= 0) {
		printf(" at rank %d", n->rank);
	}
	if (w->what.any && n->others > 0)
		printf(", or for one of %d other request%s", n->others, n->others > 1 ? "s" : "");
	if (n->name)
		printf(w->comm[0] ? ", on %s" : ", on an unnamed communicator", w->comm);
	if (n->name && !w->comm[0])
		printf(" (%u) of %d ranks", n->id, n->size);
	/* Ranks of a communicator and of the job may differ. */
	if (n->process >= 0 && n->process != (n->form == WEFT_WAIT_LOCK ? w->holder : n->rank))
		printf(", which is rank %d of the job", n->process);
}

static void print_wait(const struct weft_doctor_wait *w, uint64_t now)
{
	printf("  %s waits in %s", w->thread, w->call);
	print_for(w);
	if (w->note.since_ns)
		printf(", since %.1f s",
		       now > w->note.since_ns ? (double)(now - w->note.since_ns) * 1e-9 : 0.0);
	putchar('\n');
}

static void print_job(const struct weft_doctor_job *j)
{
	uint64_t now = weft_clock_ns();
	printf("job %s: %d of %d ranks on this host\n", j->name, j->ranks, j->size);
	for (int i = 0; i < j->ranks; i++) {
		const struct weft_doctor_rank *r = &j->rank[i];
		printf("rank %d, process %d%s%s\n", r->rank, r->pid, r->stopped ? ", stopped" : "",
		       r->waits ? "" : ": no thread waits in MPI");
		for (int k = 0; k < r->waits; k++)
			print_wait(&r->wait[k], now);
	}
}

/* From the first stuck rank on, until one comes again. */
static void print_cycle(struct weft_doctor_job *j, int stuck)
{
	int path[256], n = 0, from = -1;
	for (int i = 0; from < 0 && i < j->ranks; i++)
		if (j->rank[i].stuck)
			from = j->rank[i].rank;
	int begin = -1;
	while (begin < 0 && n < 256) { /* ends: a rank comes again, or the path is full */
		const struct weft_doctor_wait *w;
		for (int i = 0; i < n; i++)
			if (path[i] == from)
				begin = i;
		if (begin >= 0)
			break;
		path[n++] = from;
		from = weft_doctor_waits_for(j, weft_doctor_find(j, from), &w);
	}
	printf("deadlock%s:", stuck == j->size ? " of all ranks" : "");
	for (int i = begin < 0 ? 0 : begin; i < n; i++) {
		const struct weft_doctor_wait *w = NULL;
		int to = weft_doctor_waits_for(j, weft_doctor_find(j, path[i]), &w);
		printf("%s rank %d waits for rank %d (%s", i > begin ? "," : "", path[i], to,
		       w->call);
		if ((w->note.form == WEFT_WAIT_RECV || w->note.form == WEFT_WAIT_SEND) &&
		    w->note.tag >= 0 && !w->note.others)
			printf(", tag %d", w->note.tag);
		printf(w->comm[0] ? ", on %s)" : ")", w->comm);
	}
	putchar('\n');
	fflush(stdout);
}

/* ---- the command ------------------------------------------------------------------------------ */

static void nap(int ms)
{
	struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
	nanosleep(&t, NULL);
}

/* Two looks at one job: its stuck ranks; -1: it is not there, which is said unless `any` job may be meant. */
static int examine(const char *word, bool quiet, bool any)
{
	struct weft_doctor_job before[JOBS_MAX], now[JOBS_MAX];
	int n = see_all(before);
	struct weft_doctor_job *was = choose(before, n, word), *is = NULL;
	int m = 0, stuck = -1;
	if (was) {
		nap(BETWEEN_MS);
		m = see_all(now);
		is = choose(now, m, was->name);
	}
	if (is) {
		weft_doctor_compare(was, is);
		stuck = weft_doctor_deadlock(is);
		if (!quiet)
			print_job(is);
		if (stuck && (!quiet || stuck == is->size))
			print_cycle(is, stuck);
		if (quiet && stuck != is->size)
			stuck = 0;
	} else if (any) {
		/* A job of other programs. */
	} else if (!quiet && !word && n > 1) {
		fprintf(stderr, "weft: several jobs run here:");
		for (int i = 0; i < n; i++)
			fprintf(stderr, " %s", before[i].name);
		fprintf(stderr, "; say which one\n");
	} else if (!quiet) {
		fprintf(stderr, "weft: no job%s%s of yours runs here\n", word ? " " : "",
			word ? word : "");
	}
	drop(before, n);
	drop(now, m);
	return stuck;
}

/* Until the job has ended: ends it if all its ranks wait for each other. */
static int guard(const char *word)
{
	int pid = atoi(word), fd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd end = {.fd = fd, .events = POLLIN};
	/* Ends with mpiexec: its descriptor is then readable. */
	while (fd >= 0 && poll(&end, 1, BETWEEN_MS) == 0) {
		if (examine(word, true, false) <= 0)
			continue;
		fprintf(stderr, "weft: the job is ended (WEFT_DEADLOCK=abort)\n");
		(void)syscall(SYS_pidfd_send_signal, fd, SIGTERM, NULL, 0);
		break;
	}
	return 0;
}

int weft_cmd_doctor(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[0], "--guard") == 0 && atoi(argv[1]) > 0)
		return guard(argv[1]);
	/* For mpiexec, which ends its job. */
	if (argc == 2 && strcmp(argv[0], "--last") == 0 && atoi(argv[1]) > 0)
		return examine(argv[1], false, true) < 0;
	if (argc > 1 || (argc == 1 && argv[0][0] == '-'))
		return weft_cmd_misuse("doctor: wants one job, not", argv[argc - 1]);
	int stuck = examine(argc ? argv[0] : NULL, false, false);
	return stuck < 0 ? 1 : stuck > 0 ? 3 : 0;
}
