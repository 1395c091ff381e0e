/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The doorbell loses no wake-up: two processes, one publishes without a fence per message, the
 * other arms with membarrier, looks again and sleeps; if it sleeps although something was
 * published, poll runs into its time limit.  Once with membarrier, once with exchanges.
 */
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "check.h"
#include "net/bell.h"

struct shared {
	struct weft_bell bell;
	alignas(64) _Atomic uint64_t x_published;
	alignas(64) _Atomic uint64_t x_seen;
	alignas(64) _Atomic int x_ready;
};

static void sender(struct shared *s, int fd, uint64_t rounds, bool plain, uint64_t seed)
{
	if (plain)
		CHECK(weft_bell_register());
	atomic_store(&s->x_ready, 1);
	for (uint64_t i = 1; i <= rounds; i++) {
		if (plain)
			atomic_store_explicit(&s->x_published, i, memory_order_release);
		else
			(void)atomic_exchange_explicit(&s->x_published, i, memory_order_seq_cst);
		if (weft_bell_armed(&s->bell, plain))
			weft_bell_ring(&s->bell, fd);
		/* Wait until it is seen, so that the receiver wants to sleep again. */
		while (atomic_load_explicit(&s->x_seen, memory_order_acquire) != i)
			weft_cpu_relax();
		for (uint64_t spin = weft_rand_next(&seed) % 64; spin; spin--)
			weft_cpu_relax();
	}
}

static void receiver(struct shared *s, int fd, uint64_t rounds, bool plain, uint64_t *slept_p)
{
	uint64_t seen = 0, slept = 0;
	while (!atomic_load(&s->x_ready))
		weft_cpu_relax();
	while (seen < rounds) {
		uint64_t now = atomic_load_explicit(&s->x_published, memory_order_acquire);
		if (now != seen) {
			CHECK_EQ(now, seen + 1);
			seen = now;
			atomic_store_explicit(&s->x_seen, seen, memory_order_release);
			continue;
		}
		weft_bell_arm(&s->bell, plain);
		if (atomic_load_explicit(&s->x_published, memory_order_acquire) == seen) {
			struct pollfd p = {.fd = fd, .events = POLLIN};
			CHECK(poll(&p, 1, 5000) == 1);
			slept++;
		}
		weft_bell_disarm(&s->bell);
		uint64_t count;
		(void)!read(fd, &count, sizeof count);
	}
	*slept_p = slept;
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
	receiver(s, fd, rounds, plain, &slept);
	int status;
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK_EQ(status, 0);
	printf("%s: %llu rounds, %llu sleeps, none lost, %.1f s\n",
	       plain ? "membarrier" : "exchange", (unsigned long long)rounds,
	       (unsigned long long)slept, (double)(weft_clock_ns() - t0) / 1e9);
	close(fd);
	munmap(s, sizeof *s);
}

int main(int argc, char **argv)
{
	uint64_t seed = test_seed(argc, argv);
	uint64_t rounds = argc > 2 ? strtoull(argv[2], NULL, 0) : 200000;
	if (!weft_bell_register())
		SKIP("membarrier is not there");
	run(rounds, true, seed);
	run(rounds, false, seed);
	return 0;
}
