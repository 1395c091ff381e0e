/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * main.c - runs schedules of the simulator.
 *
 *	sim [--seed S] [--schedules N] [--seconds T] [--jobs J] [--rma] [--verbose] [--cover]
 *	    [--replay FILE]
 *
 * With --seconds no schedule is begun after T seconds; the last line says which seed is next.
 * Exit 0: no finding, and (from 5,000 schedules on) every state of sim_states.h was met.  A
 *finding prints its seed; `sim --seed S --schedules 1 --verbose` shows it again, step by step.
 */
#include <malloc.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "base/mechanism.h"
#include "co.h"
#include "sim.h"

#define JOBS_MAX 64
/* A schedule takes milliseconds; one of minutes hangs. */
#define STUCK_S 120
#define COVER_FROM 5000
#define REPLAY_MAX 1000

struct shared {
	_Atomic uint64_t x_next;
	uint64_t at[JOBS_MAX];
	uint64_t covered[JOBS_MAX][SIM_STATES];
};

static struct shared *shared;
static uint64_t first = 20161121, count = 2000, seconds;
static time_t began;

/*
 * A job stays on one core: the engine has queues for each, and which of them a poll looks at first
 * would not follow from the seed.
 */
static void stay(int job)
{
	cpu_set_t mine, one;
	int turn = sched_getcpu() + job;
	if (sched_getaffinity(0, sizeof mine, &mine) || turn < 0 || !CPU_COUNT(&mine))
		return;
	turn %= CPU_COUNT(&mine);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &mine) || turn-- > 0)
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		(void)sched_setaffinity(0, sizeof one, &one);
		return;
	}
}

static void work(int job)
{
	stay(job);
	sim_covered = shared->covered[job];
	CHECK(!weft_engine_start());
	sim_co_begin();
	weft_log_level = sim.verbose ? WEFT_LOG_DEBUG : -1; /* links break all the time */
	while (!seconds || (uint64_t)(time(NULL) - began) < seconds) {
		/* Relaxed: a number to draw. */
		uint64_t i = atomic_fetch_add_explicit(&shared->x_next, 1, memory_order_relaxed);
		if (i >= count)
			break;
		shared->at[job] = first + i;
		alarm(STUCK_S);
		sim_run(first + i);
	}
	weft_engine_stop();
}

static int run_jobs(int jobs)
{
	pid_t pid[JOBS_MAX];
	int bad = 0;

	fflush(NULL);
	if (!jobs) { /* for a debugger */
		work(0);
		return 0;
	}
	for (int j = 0; j < jobs; j++) {
		pid[j] = fork();
		CHECK(pid[j] >= 0);
		if (!pid[j]) {
			work(j);
			exit(0); /* not _exit: a leak checker has its say here */
		}
	}
	for (int j = 0; j < jobs; j++) {
		int status;
		CHECK(waitpid(pid[j], &status, 0) == pid[j]);
		if (WIFEXITED(status) && !WEXITSTATUS(status))
			continue;
		bad = 1;
		const char *how = "fails";
		if (WIFSIGNALED(status))
			how = WTERMSIG(status) == SIGALRM ? "does not end"
							  : strsignal(WTERMSIG(status));
		printf("seed %llu: %s; again: sim%s --seed %llu --schedules 1 --verbose\n",
		       (unsigned long long)shared->at[j], how, sim.rma ? " --rma" : "",
		       (unsigned long long)shared->at[j]);
	}
	return bad;
}

static int replay(const char *file)
{
	uint64_t seed[REPLAY_MAX];
	bool fifo[REPLAY_MAX], one_sided[REPLAY_MAX];
	char line[256];
	unsigned n = 0;
	FILE *f = fopen(file, "r");

	if (!f) {
		perror(file);
		return 1;
	}
	/* All of it first: a job that ends moves the place in a file that it shares with us. */
	while (n < REPLAY_MAX && fgets(line, sizeof line, f)) {
		char *end;
		seed[n] = strtoull(line, &end, 0);
		fifo[n] = strncmp(end, " fifo ", 6) == 0;
		one_sided[n] = strncmp(end, " rma ", 5) == 0;
		if (end != line) /* else a remark */
			n++;
	}
	fclose(f);
	count = 1;
	for (unsigned i = 0; i < n; i++) {
		first = seed[i];
		sim.fifo = fifo[i];
		sim.rma = one_sided[i];
		atomic_store_explicit(&shared->x_next, 0, memory_order_relaxed);
		if (run_jobs(1))
			return 1;
	}
	printf("%u schedules replayed\n", n);
	return 0;
}

static uint64_t number_of(const char *text)
{
	char *end;
	uint64_t n = text ? strtoull(text, &end, 0) : 0;
	if (!text || *end || end == text) {
		fprintf(stderr, "sim: a number is missing\n");
		exit(2);
	}
	return n;
}

int main(int argc, char **argv)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	int jobs = cpus < 1 ? 1 : cpus > JOBS_MAX ? JOBS_MAX : (int)cpus;
	const char *file = NULL;
	bool cover = false, explicit_count = false;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--seed")) {
			first = number_of(argv[++i]);
		} else if (!strcmp(argv[i], "--schedules")) {
			count = number_of(argv[++i]);
			explicit_count = true;
		} else if (!strcmp(argv[i], "--seconds")) {
			seconds = number_of(argv[++i]);
		} else if (!strcmp(argv[i], "--jobs")) {
			jobs = (int)number_of(argv[++i]);
		} else if (!strcmp(argv[i], "--replay")) {
			file = argv[++i];
		} else if (!strcmp(argv[i], "--rma")) {
			sim.rma = true;
		} else if (!strcmp(argv[i], "--verbose")) {
			sim.verbose = true;
		} else if (!strcmp(argv[i], "--cover")) {
			cover = true;
		} else {
			fprintf(stderr,
				"usage: sim [--seed S] [--schedules N] [--seconds T] [--jobs J] "
				"[--rma] [--verbose] [--cover] [--replay FILE]\n");
			return 2;
		}
	}
	if (jobs < 0 || jobs > JOBS_MAX)
		jobs = 1;
	if (getenv("WEFT_LONG") && !explicit_count && !file)
		count = 1000000;
	/* A schedule begins with what the one before gave back: without page faults a quarter less.
	 */
	mallopt(M_MMAP_THRESHOLD, 1 << 30);
	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	/* The schedule alone polls, and time is virtual: a poll in vain is no reason to sleep. */
	setenv("WEFT_FLAVOUR", "explicit", 1);
	setenv("WEFT_WITHOUT", "poll_pause", 0);
	CHECK(weft_mechanisms_init() == WEFT_OK);
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	CHECK(shared != MAP_FAILED);
	if (file)
		return replay(file);
	printf("seed %llu, %llu schedules\n", (unsigned long long)first, (unsigned long long)count);
	began = time(NULL);
	int bad = run_jobs(jobs);
	/* Relaxed: the jobs have ended. */
	uint64_t drawn = atomic_load_explicit(&shared->x_next, memory_order_relaxed);
	if (drawn < count)
		count = drawn;

	sim_covered = shared->covered[0];
	for (int j = 1; j < jobs; j++)
		for (int i = 0; i < SIM_STATES; i++)
			sim_covered[i] += shared->covered[j][i];
	unsigned missing = cover                 ? sim_cover_print(stdout, true)
			   : count >= COVER_FROM ? sim_cover_print(stdout, false)
						 : 0;
	if (missing)
		printf("%u of %d states were not met\n", missing, SIM_STATES);
	if (!bad)
		printf("no finding in %llu schedules, next seed %llu\n", (unsigned long long)count,
		       (unsigned long long)(first + count));
	return bad || (missing && count >= COVER_FROM);
}
