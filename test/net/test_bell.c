/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The doorbell loses no wake-up: two processes, one publishes without a fence per message, the
 * other arms with membarrier, looks again and sleeps; if it sleeps although something was
 * published, poll runs into its time limit.  Once with membarrier, once with exchanges, each for a
 * second or so many rounds (argument 2).
 */
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "check.h"
#include "net/shm/bell.h"

#define OVER UINT64_MAX

struct shared {
	struct weft_bell bell;
	alignas(64) _Atomic uint64_t x_published;
	alignas(64) _Atomic uint64_t x_seen;
	alignas(64) _Atomic uint64_t x_ready;
};

/* A wake-up that has not come by then is lost, on a machine that is busy with others too. */
#define LOST_MS 120000

#define SPINS 2000 /* looks before the core is given to the other side, perhaps on the same one */

static void wait_for(_Atomic uint64_t *x, uint64_t value)
{
	for (unsigned i = 0; atomic_load_explicit(x, memory_order_acquire) != value; i++) {
		if (i < SPINS)
			weft_cpu_relax();
		else
			sched_yield();
	}
}

static void publish(struct shared *s, int fd, uint64_t what, bool plain)
{
	if (plain)
		atomic_store_explicit(&s->x_published, what, memory_order_release);
	else
		(void)atomic_exchange_explicit(&s->x_published, what, memory_order_seq_cst);
	if (weft_net_bell_armed(&s->bell, plain))
		weft_net_bell_ring(&s->bell, fd);
}

static void sender(struct shared *s, int fd, uint64_t rounds, bool plain, uint64_t seed)
{
	uint64_t end = rounds ? UINT64_MAX : weft_clock_ns() + 1000000000u;
	if (plain)
		CHECK(weft_net_bell_register());
	atomic_store(&s->x_ready, 1);
	for (uint64_t i = 1; rounds ? i <= rounds : weft_clock_ns() < end; i++) {
		publish(s, fd, i, plain);
		/* Wait until it is seen, so that the receiver wants to sleep again. */
		wait_for(&s->x_seen, i);
		for (uint64_t spin = weft_rand_next(&seed) % 64; spin; spin--)
			weft_cpu_relax();
	}
	publish(s, fd, OVER, plain);
}

/* Returns the rounds seen. */
static uint64_t receiver(struct shared *s, int fd, bool plain, uint64_t *slept_p)
{
	uint64_t seen = 0, slept = 0;
	wait_for(&s->x_ready, 1);
	for (;;) { /* ends: the sender says so */
		uint64_t now = atomic_load_explicit(&s->x_published, memory_order_acquire);
		if (now == OVER)
			break;
		if (now != seen) {
			CHECK_EQ(now, seen + 1);
			seen = now;
			atomic_store_explicit(&s->x_seen, seen, memory_order_release);
			continue;
		}
		weft_net_bell_arm(&s->bell, WEFT_ARM_ALL, plain);
		weft_net_bell_check(&s->bell);
		if (atomic_load_explicit(&s->x_published, memory_order_acquire) == seen) {
			struct pollfd p = {.fd = fd, .events = POLLIN};
			CHECK(poll(&p, 1, LOST_MS) == 1);
			slept++;
		}
		weft_net_bell_disarm(&s->bell);
		weft_net_bell_check(&s->bell);
		uint64_t count;
		(void)!read(fd, &count, sizeof count);
	}
	*slept_p = slept;
	return seen;
}

static void run(uint64_t rounds, bool plain, uint64_t seed)
{
	struct shared *s =
		mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	uint64_t slept;
	CHECK(s != MAP_FAILED && fd >= 0);
	uint64_t t0 = weft_clock_ns();
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		alarm(600);
		sender(s, fd, rounds, plain, seed);
		exit(0);
	}
	uint64_t seen = receiver(s, fd, plain, &slept);
	int status;
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK_EQ(status, 0);
	printf("%s: %llu rounds, %llu sleeps, none lost, %.1f s\n",
	       plain ? "membarrier" : "exchange", (unsigned long long)seen,
	       (unsigned long long)slept, (double)(weft_clock_ns() - t0) / 1e9);
	close(fd);
	munmap(s, sizeof *s);
}

int main(int argc, char **argv)
{
	uint64_t seed = test_seed(argc, argv);
	uint64_t rounds = argc > 2 ? strtoull(argv[2], NULL, 0) : 0;
	if (!weft_net_bell_register())
		SKIP("membarrier is not there");
	run(rounds, true, seed);
	run(rounds, false, seed);
	return 0;
}
