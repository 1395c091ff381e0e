/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_kill.c - one of three processes is killed at a random moment of a random traffic over the
 * real drivers: the others' operations with it end with WEFT_ERR_PEER within five seconds, they go
 * on with each other, and leave in order.
 *
 * The key-value space of boot/ is replaced by memory shared with the parent.
 */
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/log.h"
#include "base/settings.h"
#include "boot/boot.h"
#include "check.h"
#include "comm/comm.h"
#include "task/task.h"

#define RANKS 3
#define VICTIM 1
#define KEYS 4

static struct shared {
	struct {
		char key[32], value[2048];
	} put[RANKS][KEYS];
	_Atomic int x_arrived;
	_Atomic bool x_running;
} * shared;

static struct weft_boot_info job = {.size = RANKS, .jobid = "kill", .launcher = "test"};
static int fences;

weft_err weft_boot_put(const char *key, const char *value)
{
	for (int k = 0; k < KEYS; k++) {
		if (shared->put[job.rank][k].key[0])
			continue;
		snprintf(shared->put[job.rank][k].key, 32, "%s", key);
		snprintf(shared->put[job.rank][k].value, 2048, "%s", value);
		return WEFT_OK;
	}
	return WEFT_ERR_LIMIT;
}

weft_err weft_boot_publish(void)
{
	fences++;
	atomic_fetch_add(&shared->x_arrived, 1);
	while (atomic_load(&shared->x_arrived) < fences * RANKS)
		usleep(100);
	return WEFT_OK;
}

weft_err weft_boot_get(int rank, const char *key, char *buf, size_t size)
{
	for (int k = 0; k < KEYS; k++) {
		if (strcmp(shared->put[rank][k].key, key) != 0)
			continue;
		snprintf(buf, size, "%s", shared->put[rank][k].value);
		return WEFT_OK;
	}
	return WEFT_ERR_NOENT;
}

/* All ranks exchange everything, as under PMI-1. */
bool weft_boot_is_lazy(void)
{
	return false;
}

weft_err weft_boot_try_get(int rank, const char *key, char *buf, size_t size)
{
	return weft_boot_get(rank, key, buf, size);
}

int weft_boot_locals(const int **ranks_p)
{
	*ranks_p = NULL;
	return 0;
}

void weft_boot_on_death(void (*hook)(int rank, const char *why))
{
	(void)hook;
}

/* ---- a rank ------------------------------------------------------------------------------- */

static struct weft_ctx *ctx;
static uint64_t rnd;
static _Atomic int x_lost;

static void on_down(struct weft_core *core, int peer, weft_err err, const char *why)
{
	(void)core;
	/* The survivors leave each other in order. */
	CHECK(peer == VICTIM ? err != WEFT_OK : err == WEFT_OK);
	CHECK(why);
	atomic_fetch_add(&x_lost, peer == VICTIM);
}

static size_t pick_bytes(void)
{
	static const size_t sizes[] = {0, 8, 500, 9000, 70000, 400000};
	return sizes[weft_rand_next(&rnd) % weft_countof(sizes)];
}

/* True: the operation ended well; false: the victim is gone.  Anything else fails. */
static bool finish(struct weft_req *r, weft_err started, int peer)
{
	struct weft_completion *c = &r->done;
	weft_err err = started;
	if (!err) {
		CHECK_EQ(weft_task_engine_wait_any(&c, 1, 60000000000u), WEFT_OK);
		err = r->status.err;
	}
	CHECK(!err || (err == WEFT_ERR_PEER && peer == VICTIM));
	return !err;
}

/* Both sides draw the same sizes, so that they agree. */
static bool exchange(int me, int peer, unsigned round)
{
	static char in[1 << 20], out[1 << 20];
	struct weft_req s, r;

	rnd = round * 77 + (unsigned)(me + peer);
	size_t n = pick_bytes(), m = pick_bytes();
	struct weft_buf to = weft_data_buf_flat(out, me < peer ? n : m);
	struct weft_buf from = weft_data_buf_flat(in, me < peer ? m : n);
	weft_comm_req_init(&s, NULL, NULL);
	weft_comm_req_init(&r, NULL, NULL);
	weft_err er = weft_comm_core_irecv(&r, ctx, peer, round % 3 ? 1 : WEFT_ANY_TAG, &from);
	weft_err es = weft_comm_core_isend(&s, ctx, peer, 1, &to,
					   round % 2 ? WEFT_SEND_STANDARD : WEFT_SEND_SYNC);
	bool good = finish(&r, er, peer);
	return finish(&s, es, peer) && good;
}

static int rank_main(int rank, const char *drivers)
{
	job.rank = rank;
	weft_log_set_rank(rank);
	CHECK(!setenv("WEFT_DRIVERS", drivers, 1));
	CHECK_EQ(weft_settings_load(), WEFT_OK);
	CHECK_EQ(weft_engine_start(), WEFT_OK);
	weft_comm_set_down_hook(on_down);
	CHECK_EQ(weft_comm_start(&job), WEFT_OK);
	CHECK_EQ(weft_comm_ctx_open(weft_comm_home(), 1, &ctx), WEFT_OK);

	unsigned round = 0;
	/* Ends when the parent kills the victim. */
	if (rank == VICTIM) {
		for (;; round++) {
			(void)exchange(rank, 0, round);
			atomic_store(&shared->x_running, true);
			(void)exchange(rank, 2, round);
		}
	}
	while (exchange(rank, VICTIM, round))
		round++;
	struct weft_req late;
	struct weft_buf none = weft_data_buf_flat(NULL, 0);
	weft_comm_req_init(&late, NULL, NULL);
	CHECK_EQ(weft_comm_core_isend(&late, ctx, VICTIM, 1, &none, WEFT_SEND_STANDARD),
		 WEFT_ERR_PEER);
	/* The hook speaks last, perhaps from another thread. */
	for (int i = 0; i < 60000 && !atomic_load(&x_lost); i++)
		usleep(1000);
	CHECK_EQ(atomic_load(&x_lost), 1);
	for (unsigned i = 0; i < 10; i++)
		CHECK(exchange(rank, 2 - rank, i));
	weft_comm_stop();
	weft_engine_stop();
	return 0;
}

static void one(const char *drivers, uint64_t seed)
{
	pid_t pid[RANKS];

	memset(shared, 0, sizeof *shared);
	snprintf(job.jobid, sizeof job.jobid, "kill-%d-%llu", (int)getpid(),
		 (unsigned long long)seed);
	fflush(NULL);
	for (int r = 0; r < RANKS; r++) {
		pid[r] = fork();
		CHECK(pid[r] >= 0);
		if (!pid[r])
			_exit(rank_main(r, drivers));
	}
	while (!atomic_load(&shared->x_running))
		usleep(100);
	usleep((useconds_t)(weft_rand_next(&seed) % 20000));
	CHECK(!kill(pid[VICTIM], SIGKILL));
	for (int r = 0; r < RANKS; r++) {
		int status;
		CHECK(waitpid(pid[r], &status, 0) == pid[r]);
		if (r != VICTIM)
			CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	}
}

int main(int argc, char **argv)
{
	unsigned long long seed = test_seed(argc, argv);
	unsigned rounds = argc > 2 ? (unsigned)atoi(argv[2]) : 8;

	alarm(230);
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	CHECK(shared != MAP_FAILED);
	for (unsigned i = 0; i < rounds; i++) {
		one("self,shm", seed + i);
		one("self,tcp", seed + i);
	}
	return 0;
}
