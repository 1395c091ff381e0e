/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * limit.c - what the machine itself gives, without any MPI: the rows `limit` of `weft bench`.
 *
 * limit latency shm          a slot of one cache line with its own sequence number, there and back;
 *                            above 56 bytes: copied in and out through shared memory up to
 *                            4 KiB, fetched by process_vm_readv (one copy) from there on
 * limit latency|rate|bandwidth|overlap|hidden socket [listen ADDRESS | connect ADDRESS]
 *                            a TCP socket: polling send and recv; windows of 64 small messages in
 *                            one send each, packed without any head, and an answer; one long
 *                            stream; and a helper thread that sends or receives while the main
 *                            thread computes (hidden: 1 MiB, one way and both)
 * limit waiters futex        N threads on one core hand a token around, see threads/relay.h
 * limit rate shm             windows of 64 through the lines of weft's ring, see limit_rate.h
 * limit load shm             1 MiB in turn beside N computing threads, see overlap/load_limit.h
 *
 * Without listen or connect the two sides are two processes on this machine.
 * Options: --quick.
 */
#include "bench.h"
#include "../overlap/exchange.h"
#include "../overlap/load_limit.h"
#include "../threads/relay.h"
#include "limit_rate.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>

#define PORT 17017

static int sender, quick;

static void die(const char *what)
{
	fprintf(stderr, "limit: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* ---- shared memory ------------------------------------------------------------------------ */

#define LINE_BYTES 56
#define COPY_BYTES 4096

struct line {
	_Alignas(64) _Atomic uint64_t x_seq;
	char bytes[LINE_BYTES];
};

/* One direction: a line, room for a copy, and where the sender's own buffer is. */
struct lane {
	struct line line;
	uint64_t address;
	_Alignas(64) char room[COPY_BYTES];
};

struct shared {
	struct lane lane[2];
	_Atomic int x_pid[2];
	struct load_shared load;
	struct rate_shared rate;
};

static struct shared *shared;

static void lane_put(struct lane *lane, uint64_t seq, const char *buf, size_t bytes)
{
	if (bytes <= LINE_BYTES)
		memcpy(lane->line.bytes, buf, bytes);
	else if (bytes <= COPY_BYTES)
		memcpy(lane->room, buf, bytes);
	else
		lane->address = (uint64_t)(uintptr_t)buf;
	/* PUB -> SEE (lane_get).  Carries: the message, or its address.  Without it the other side
	 * could read what the lane held before. */
	atomic_store_explicit(&lane->line.x_seq, seq, memory_order_release);
}

static void lane_get(struct lane *lane, uint64_t seq, char *buf, size_t bytes, pid_t peer)
{
	/* SEE: partner PUB in lane_put.  Ends when the peer's put has come. */
	while (atomic_load_explicit(&lane->line.x_seq, memory_order_acquire) != seq)
		;
	if (bytes <= LINE_BYTES) {
		memcpy(buf, lane->line.bytes, bytes);
	} else if (bytes <= COPY_BYTES) {
		memcpy(buf, lane->room, bytes);
	} else {
		struct iovec to = {buf, bytes}, from = {(void *)(uintptr_t)lane->address, bytes};
		if (process_vm_readv(peer, &to, 1, &from, 1, 0) != (ssize_t)bytes)
			die("process_vm_readv");
	}
}

static double shm_latency(char *out, char *in, size_t bytes, uint64_t *seq, int n)
{
	struct lane *mine = &shared->lane[!sender], *other = &shared->lane[sender];
	pid_t peer = atomic_load_explicit(&shared->x_pid[sender], memory_order_relaxed);
	double t = bench_now_us();
	for (int i = 0; i < n; i++) {
		uint64_t s = ++*seq;
		if (sender)
			lane_put(mine, s, out, bytes);
		lane_get(other, s, in, bytes, peer);
		if (!sender)
			lane_put(mine, s, out, bytes);
	}
	return (bench_now_us() - t) / n / 2;
}

static void run_shm_latency(void)
{
	static const int full[] = {8, 64, 1024, 4096, 65536, 1 << 20, 4 << 20, 0};
	static const int few[] = {8, 65536, 0};
	char *out = bench_alloc(4 << 20), *in = bench_alloc(4 << 20), text[32];
	double block[BENCH_BLOCKS_MAX];
	uint64_t seq = 0;

	atomic_store_explicit(&shared->x_pid[!sender], getpid(), memory_order_relaxed);
	while (!atomic_load_explicit(&shared->x_pid[sender], memory_order_relaxed))
		;
	for (const int *size = quick ? few : full; *size; size++) {
		/* No agreement needed: both sides count alike. */
		int n = *size <= 4096 ? 3000 : *size <= 65536 ? 300 : 20, blocks = quick ? 11 : 21;
		shm_latency(out, in, (size_t)*size, &seq, n);
		for (int i = 0; i < blocks; i++)
			block[i] = shm_latency(out, in, (size_t)*size, &seq, n);
		if (sender)
			bench_row(bench_size((size_t)*size, text, sizeof(text)), "latency", "us",
				  bench_median(block, blocks));
	}
	free(out);
	free(in);
}

static void run_shm_load(void)
{
	load_run(&shared->load, !sender, quick);
}

static void run_shm_rate(void)
{
	rate_run(&shared->rate, sender, quick);
}

/* ---- a socket ----------------------------------------------------------------------------- */

static int sock = -1;

static void write_all(const void *buf, size_t bytes)
{
	for (size_t at = 0; at < bytes;) {
		ssize_t n = send(sock, (const char *)buf + at, bytes - at, MSG_NOSIGNAL);
		if (n < 0 && errno != EINTR)
			die("send");
		at += n > 0 ? (size_t)n : 0;
	}
}

/* flags MSG_DONTWAIT polls, 0 sleeps. */
static void read_all(void *buf, size_t bytes, int flags)
{
	for (size_t at = 0; at < bytes;) {
		ssize_t n = recv(sock, (char *)buf + at, bytes - at, flags);
		if (n == 0) {
			errno = ECONNRESET;
			die("recv");
		}
		if (n < 0 && errno != EINTR && errno != EAGAIN)
			die("recv");
		at += n > 0 ? (size_t)n : 0;
	}
}

/* bytes out and bytes in, whichever the socket takes or has; sleeps in between. */
static void exchange_all(const char *out, char *in, size_t bytes)
{
	for (size_t sent = 0, got = 0; sent < bytes || got < bytes;) {
		struct pollfd at = {sock, 0, 0};
		if (sent < bytes)
			at.events |= POLLOUT;
		if (got < bytes)
			at.events |= POLLIN;
		if (poll(&at, 1, -1) < 0 && errno != EINTR)
			die("poll");
		ssize_t n = at.revents & POLLOUT ? send(sock, out + sent, bytes - sent,
							MSG_NOSIGNAL | MSG_DONTWAIT)
						 : 0;
		if (n < 0 && errno != EINTR && errno != EAGAIN)
			die("send");
		sent += n > 0 ? (size_t)n : 0;
		n = at.revents & POLLIN ? recv(sock, in + got, bytes - got, MSG_DONTWAIT) : 1;
		if (n == 0)
			errno = ECONNRESET;
		if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
			die("recv");
		got += at.revents & POLLIN && n > 0 ? (size_t)n : 0;
	}
}

static void connect_socket(const char *address, int listening)
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons(PORT)};
	int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || inet_pton(AF_INET, address, &sa.sin_addr) != 1)
		die(address);
	if (listening) {
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
		if (bind(fd, (struct sockaddr *)&sa, sizeof(sa)) != 0 || listen(fd, 1) != 0)
			die("listen");
		sock = accept(fd, NULL, NULL);
		close(fd);
	} else {
		/* The other side may not listen yet: up to 5 s. */
		for (int i = 0; i < 500; i++) {
			if (connect(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0) {
				sock = fd;
				break;
			}
			close(fd);
			usleep(10000);
			fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		}
	}
	if (sock < 0)
		die("connect");
	setsockopt(sock, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	/* Within a host the system's congestion control may pace, which is no limit of the machine.
	 */
	if (sa.sin_addr.s_addr == htonl(INADDR_LOOPBACK))
		setsockopt(sock, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
}

static void run_socket_latency(void)
{
	static const int full[] = {8, 64, 1024, 4096, 65536, 1 << 20, 4 << 20, 0};
	static const int few[] = {8, 65536, 0};
	char *buf = bench_alloc(4 << 20), text[32];
	double block[BENCH_BLOCKS_MAX];

	for (const int *size = quick ? few : full; *size; size++) {
		int n = *size <= 4096 ? 300 : *size <= 65536 ? 50 : 3, blocks = quick ? 11 : 15;
		for (int b = -1; b < blocks; b++) {
			double t = bench_now_us();
			for (int i = 0; i < n; i++) {
				if (sender)
					write_all(buf, (size_t)*size);
				read_all(buf, (size_t)*size, MSG_DONTWAIT);
				if (!sender)
					write_all(buf, (size_t)*size);
			}
			if (b >= 0)
				block[b] = (bench_now_us() - t) / n / 2;
		}
		if (sender)
			bench_row(bench_size((size_t)*size, text, sizeof(text)), "latency", "us",
				  bench_median(block, blocks));
	}
	free(buf);
}

/* As rate.c, each window one send(), so no library's rate can be higher unless it answers for
 * several windows at once. */
static void run_socket_rate(void)
{
	static const int full[] = {8, 64, 1024, 0};
	static const int few[] = {8, 0};
	enum { window = 64, answer = 4 };
	char *buf = bench_alloc(window * 1024), text[32];
	double block[BENCH_BLOCKS_MAX];

	for (const int *size = quick ? few : full; *size; size++) {
		int n = 200, blocks = quick ? 7 : 15;
		for (int b = -1; b < blocks; b++) {
			double t = bench_now_us();
			for (int i = 0; i < n; i++) {
				if (sender) {
					write_all(buf, (size_t)*size * window);
					read_all(buf, answer, MSG_DONTWAIT);
				} else {
					read_all(buf, (size_t)*size * window, MSG_DONTWAIT);
					write_all(buf, answer);
				}
			}
			if (b >= 0)
				block[b] = (double)n * window / (bench_now_us() - t);
		}
		if (sender)
			bench_row(bench_size((size_t)*size, text, sizeof(text)), "rate", "M/s",
				  bench_median(block, blocks));
	}
	free(buf);
}

/* Two seconds, or half of one, of a stream in pieces of a size. */
static void run_socket_bandwidth(void)
{
	static const int full[] = {65536, 1 << 20, 4 << 20, 0};
	static const int few[] = {65536, 1 << 20, 0};
	char *buf = bench_alloc(4 << 20), text[32], byte = 0;

	for (const int *size = quick ? few : full; *size; size++) {
		double block[BENCH_BLOCKS_MAX];
		int blocks = 5, n = (4 << 20) / *size * 4;
		for (int b = -1; b < blocks; b++) {
			double t = bench_now_us();
			for (int i = 0; i < n; i++) {
				if (sender)
					write_all(buf, (size_t)*size);
				else
					read_all(buf, (size_t)*size, MSG_DONTWAIT);
			}
			if (sender)
				read_all(&byte, 1, MSG_DONTWAIT);
			else
				write_all(&byte, 1);
			if (b >= 0)
				block[b] = (double)n * *size / (bench_now_us() - t);
		}
		if (sender)
			bench_row(bench_size((size_t)*size, text, sizeof(text)), "bandwidth",
				  "MB/s", bench_median(block, blocks));
	}
	free(buf);
}

/* The helper thread: does the transfer it is given, sleeps otherwise. */
static struct helper {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	char *buf;
	int bytes;     /* >0: to do.  0: done.  -1: end. */
	int both_ways; /* each side sends and receives; buf holds both */
} helper = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, NULL, 0, 0};

static void *helper_main(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&helper.lock);
	while (helper.bytes >= 0) {
		if (helper.bytes > 0) {
			int bytes = helper.bytes;
			pthread_mutex_unlock(&helper.lock);
			if (helper.both_ways)
				exchange_all(helper.buf, helper.buf + bytes, (size_t)bytes);
			else if (sender)
				write_all(helper.buf, (size_t)bytes);
			else
				read_all(helper.buf, (size_t)bytes, 0);
			pthread_mutex_lock(&helper.lock);
			helper.bytes = 0;
			pthread_cond_broadcast(&helper.wake);
		} else {
			pthread_cond_wait(&helper.wake, &helper.lock);
		}
	}
	pthread_mutex_unlock(&helper.lock);
	return NULL;
}

static void helper_give(char *buf, int bytes)
{
	pthread_mutex_lock(&helper.lock);
	helper.buf = buf;
	helper.bytes = bytes;
	pthread_cond_broadcast(&helper.wake);
	pthread_mutex_unlock(&helper.lock);
}

static void helper_wait(void)
{
	pthread_mutex_lock(&helper.lock);
	while (helper.bytes > 0)
		pthread_cond_wait(&helper.wake, &helper.lock);
	pthread_mutex_unlock(&helper.lock);
}

static void answer(void)
{
	char byte = 0;
	if (sender)
		read_all(&byte, 1, 0);
	else
		write_all(&byte, 1);
}

static void sync_both(void)
{
	char byte = 0;
	if (sender) {
		write_all(&byte, 1);
		read_all(&byte, 1, 0);
	} else {
		read_all(&byte, 1, 0);
		write_all(&byte, 1);
	}
}

static long tell(long value)
{
	if (sender)
		write_all(&value, sizeof(value));
	else
		read_all(&value, sizeof(value), 0);
	return value;
}

static double slower(double us)
{
	double other;
	write_all(&us, sizeof(us));
	read_all(&other, sizeof(other), 0);
	return us > other ? us : other;
}

static const struct exchange_ops by_helper = {sync_both, helper_give, helper_wait,
					      answer,    tell,        slower};

static void run_socket_overlap(void)
{
	pthread_t thread;
	if (pthread_create(&thread, NULL, helper_main, NULL) != 0)
		die("pthread_create");
	exchange_run(&by_helper, sender, quick);
	helper_give(NULL, -1);
	pthread_join(thread, NULL);
}

/* What a collective of two ranks can hide: each gives the other 1 MiB, or one gives it. */
static void run_socket_hidden(void)
{
	enum { BYTES = 1 << 20 };
	char *buf = bench_alloc(2 * BYTES);
	pthread_t thread;
	if (pthread_create(&thread, NULL, helper_main, NULL) != 0)
		die("pthread_create");
	for (helper.both_ways = 0; helper.both_ways < 2; helper.both_ways++) {
		exchange_what = helper.both_ways ? "both ways" : "one way";
		exchange_measure(&by_helper, buf, BYTES, EXCHANGE_BOTH, sender, quick ? 11 : 25);
	}
	helper_give(NULL, -1);
	pthread_join(thread, NULL);
	free(buf);
}

int main(int argc, char **argv)
{
	static const char usage[] =
		"latency|rate|bandwidth|overlap|hidden shm|socket [listen|connect ADDRESS] "
		"[--quick] | waiters futex [--quick] | load shm [--quick]";
	void (*run)(void) = NULL;
	pid_t child = -1;
	int status = 0;

	if (argc > 1 && strcmp(argv[argc - 1], "--quick") == 0) {
		quick = 1;
		argv[--argc] = NULL;
	}
	if (argc < 3 || argc == 4 || argc > 5)
		bench_usage("limit", argc > 1 ? argv[argc - 1] : "", usage);
	int shm = strcmp(argv[2], "shm") == 0;
	if (strcmp(argv[1], "waiters") == 0 && strcmp(argv[2], "futex") == 0 && argc == 3) {
		relay_run(quick);
		return 0;
	}
	if (strcmp(argv[1], "latency") == 0)
		run = shm ? run_shm_latency : run_socket_latency;
	else if (strcmp(argv[1], "load") == 0 && shm && argc == 3)
		run = run_shm_load;
	else if (strcmp(argv[1], "rate") == 0 && (!shm || argc == 3))
		run = shm ? run_shm_rate : run_socket_rate;
	else if (strcmp(argv[1], "bandwidth") == 0 && !shm)
		run = run_socket_bandwidth;
	else if (strcmp(argv[1], "overlap") == 0 && !shm)
		run = run_socket_overlap;
	else if (strcmp(argv[1], "hidden") == 0 && !shm)
		run = run_socket_hidden;
	else
		bench_usage("limit", argv[1], usage);
	if (argc == 5) {
		sender = strcmp(argv[3], "connect") == 0;
	} else {
		shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		if (shared == MAP_FAILED)
			die("mmap");
		child = fork();
		if (child < 0)
			die("fork");
		sender = child != 0;
	}
	bench_pin(!sender);
	if (!shm)
		connect_socket(argc == 5 ? argv[4] : "127.0.0.1", !sender);
	run();
	if (child > 0 && waitpid(child, &status, 0) == child && status != 0)
		return 1;
	return 0;
}
