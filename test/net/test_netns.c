/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two network namespaces are two hosts: shm refuses, tcp chooses the address of the link between
 * them and not the loopback that both have; also when the link knows IPv6 only, when a bridge has
 * the same address on both sides, and when WEFT_TCP_INTERFACE names the link.  A cut link is
 * noticed, a reset one too; one that loses packets loses nothing. Needs root or user namespaces,
 * and ip(8).
 */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include "driver_suite.c"
#include "net/host.h"

struct meeting {
	_Atomic int x_made[2], x_linked;
	struct board board;
};

static void shell(const char *command)
{
	if (system(command) != 0) {
		fprintf(stderr, "failed: %s\n", command);
		exit(1);
	}
}

static void write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	(void)!write(fd, text, strlen(text));
	close(fd);
}

/* A user namespace around it all, so that an ordinary user may do this. */
static void become_root(void)
{
	char text[64];
	unsigned uid = geteuid(), gid = getegid();
	if (uid == 0)
		return;
	if (unshare(CLONE_NEWUSER) != 0)
		SKIP("user namespaces are not allowed here");
	write_text("/proc/self/setgroups", "deny");
	snprintf(text, sizeof text, "0 %u 1", uid);
	write_text("/proc/self/uid_map", text);
	snprintf(text, sizeof text, "0 %u 1", gid);
	write_text("/proc/self/gid_map", text);
}

/* Shell commands in which %d is the side, 0 or 1; run in its namespace. */
struct scene {
	const char *name;
	const char *inside;
	const char *interface;
	void (*body)(struct node *);
};

static void wait_for(_Atomic int *x)
{
	while (!atomic_load(x))
		usleep(1000);
}

static void side(struct meeting *m, const struct scene *scene, int rank)
{
	char command[512];
	if (unshare(CLONE_NEWNET) != 0)
		exit(77);
	atomic_store(&m->x_made[rank], 1);
	wait_for(&m->x_linked);
	int r = rank + 1;
	snprintf(command, sizeof command, scene->inside, r, r, r, r);
	shell("ip link set lo up");
	shell(command);
	if (scene->interface)
		CHECK_EQ(weft_setting_set(WEFT_SET_TCP_INTERFACE, scene->interface), WEFT_OK);
	run_node(&weft_net_driver_tcp, &m->board, rank, 2, scene->body);
}

static void play(const struct scene *scene)
{
	struct meeting *m =
		mmap(NULL, sizeof *m, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid[2];
	char command[256];
	int status, skipped = 0;
	CHECK(m != MAP_FAILED);
	fflush(NULL);
	for (int r = 0; r < 2; r++) {
		pid[r] = fork();
		CHECK(pid[r] >= 0);
		if (pid[r] == 0)
			side(m, scene, r);
	}
	for (int r = 0; r < 2 && !skipped; r++)
		while (!atomic_load(&m->x_made[r])) {
			usleep(1000);
			if (waitpid(pid[r], &status, WNOHANG) == pid[r]) {
				CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 77);
				skipped = 1;
				break;
			}
		}
	if (skipped) {
		kill(pid[0], SIGKILL);
		kill(pid[1], SIGKILL);
		SKIP("network namespaces are not allowed here");
	}
	snprintf(command, sizeof command,
		 "ip link add v%d type veth peer name w%d && ip link set v%d netns %d name wire && "
		 "ip link set w%d netns %d name wire",
		 getpid(), getpid(), getpid(), pid[0], getpid(), pid[1]);
	shell(command);
	atomic_store(&m->x_linked, 1);
	for (int r = 0; r < 2; r++) {
		CHECK(waitpid(pid[r], &status, 0) == pid[r]);
		if (status != 0 && !(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)) {
			fprintf(stderr, "%s: rank %d ended with status 0x%x\n", scene->name, r,
				status);
			kill(pid[!r], SIGKILL);
			exit(1);
		}
	}
	printf("%s: ok\n", scene->name);
	munmap(m, sizeof *m);
}

static void flood_briefly(struct node *n)
{
	char key[WEFT_HOST_KEY_MAX], line[WEFT_HOST_KEY_MAX + 32];
	/* The other side's key, for all we can see, differs from ours. */
	CHECK_EQ(weft_net_network_key(key, sizeof key), WEFT_OK);
	snprintf(line, sizeof line, "tcp1 %s ", key);
	CHECK(strncmp(n->board->address[next_of(n)], line, strlen(line)) != 0);
	for (int i = 0; i < 500; i++)
		send_packet(n, next_of(n), (size_t)(i * 37 % 5000));
	send_packet(n, next_of(n), 200000);
	while (n->got_n[prev_of(n)] < 501)
		poll_once(n);
}

static void only_the_link(struct node *n)
{
	CHECK(!strstr(n->board->address[n->rank], " 127."));
	flood_briefly(n);
}

/* The interface goes while data is under way: no hang; it comes back: nothing is lost. */
static void flaps(struct node *n)
{
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 50; i++)
			send_packet(n, next_of(n), 3000);
		if (n->rank == 0) {
			shell("ip link set wire down");
			for (int i = 0; i < 1000; i++)
				n->driver->poll(n->net);
			shell("ip link set wire up");
		}
		while (n->got_n[prev_of(n)] < 50u * (unsigned)(round + 1))
			poll_once(n);
	}
}

/* The cable is out for good: noticed (a lost wake-up else), asleep or not. */
static void cut(struct node *n, bool busy)
{
	send_packet(n, next_of(n), 8);
	while (n->got_n[prev_of(n)] < 1)
		poll_once(n);
	meet_polling(n);
	if (n->rank == 0)
		shell("ip link set wire down");
	meet_polling(n);
	if (busy)
		CHECK(try_send(n, next_of(n), 100) == WEFT_POST_DONE);
	while (!n->down[next_of(n)])
		sleep_once(n);
	CHECK_EQ(n->down_err[next_of(n)], WEFT_ERR_PEER);
	n->driver->close(n->net);
	exit(0);
}

/* The cable is out for good when the other host has taken our connection, and its process has not
 * looked yet. */
static void cut_at_the_door(struct node *n)
{
	meet(n);
	if (n->rank == 0) {
		CHECK(try_send(n, 1, 8) == WEFT_POST_FULL);
		CHECK(!n->driver->lives(n->net, 1));
		while (!n->driver->lives(n->net, 1))
			poll_once(n);
		shell("ip link set wire down");
		while (n->driver->lives(n->net, 1))
			sleep_once(n);
	}
	meet(n);
	n->driver->close(n->net);
	exit(0);
}

/* Of twenty packets one is lost on the way, of the acknowledgements too: slower, no more. */
static void lossy(struct node *n)
{
	const uint64_t count = 60;
	for (uint64_t i = 1; i < count; i++)
		send_packet(n, next_of(n), (size_t)(i * 37 % 3000));
	send_packet(n, next_of(n), 60000);
	while (n->got_n[prev_of(n)] < count || n->outstanding)
		poll_once(n);
	meet_polling(n);
	CHECK(!n->down[next_of(n)]);
}

/* The connection is reset in mid-stream: both sides hear of it, and nothing comes twice. */
static void reset(struct node *n)
{
	char command[128];
	send_packet(n, next_of(n), 8);
	while (n->got_n[prev_of(n)] < 1)
		poll_once(n);
	meet_polling(n);
	snprintf(command, sizeof command, "ss -K dst 10.77.0.%d >/dev/null 2>&1", next_of(n) + 1);
	for (int i = 0; i < 200 && !n->down[next_of(n)]; i++) {
		if (n->rank == 0 && i == 50)
			shell(command);
		if (try_send(n, next_of(n), 3000) == WEFT_POST_DOWN)
			break;
		n->driver->poll(n->net);
	}
	while (!n->down[next_of(n)])
		sleep_once(n);
	CHECK_EQ(n->down_err[next_of(n)], WEFT_ERR_PEER);
	n->driver->close(n->net);
	exit(0);
}

static void cut_busy(struct node *n)
{
	cut(n, true);
}

static void cut_idle(struct node *n)
{
	cut(n, false);
}

static bool has(const char *command)
{
	char line[128];
	snprintf(line, sizeof line, "%s >/dev/null 2>&1", command);
	return system(line) == 0;
}

int main(void)
{
	static const struct scene scenes[] = {
		{"IPv4", "ip addr add 10.77.0.%d/24 dev wire && ip link set wire up", NULL,
		 flood_briefly},
		{"IPv6 only",
		 "ip link set wire up && ip -6 addr add fd77::%d/64 dev wire nodad && "
		 "ip addr del 127.0.0.1/8 dev lo",
		 NULL, flood_briefly},
		{"the same bridge on both sides",
		 "ip link add br0 type veth peer name br1 && ip link set br1 up && ip addr add "
		 "172.17.0.1/16 dev br0 && "
		 "ip link set br0 up && ip addr add 10.77.0.%d/24 dev wire && ip link set wire up",
		 NULL, flood_briefly},
		{"one interface", "ip addr add 10.77.0.%d/24 dev wire && ip link set wire up",
		 "wire", only_the_link},
		{"flapping", "ip addr add 10.77.0.%d/24 dev wire && ip link set wire up", NULL,
		 flaps},
		{"cut while busy", "ip addr add 10.77.0.%d/24 dev wire && ip link set wire up",
		 NULL, cut_busy},
		{"cut while idle", "ip addr add 10.77.0.%d/24 dev wire && ip link set wire up",
		 NULL, cut_idle},
		{"cut at the door", "ip addr add 10.77.0.%d/24 dev wire && ip link set wire up",
		 NULL, cut_at_the_door},
	};
	static const struct scene resets = {
		"reset", "ip addr add 10.77.0.%d/24 dev wire && ip link set wire up", NULL, reset};
	static const struct scene loses = {
		"loss",
		"ip addr add 10.77.0.%d/24 dev wire && ip link set wire up && nft add table ip t "
		"&& nft 'add chain ip t c { type filter hook input priority 0; }' && "
		"nft 'add rule ip t c numgen random mod 100 < 5 drop'",
		NULL, lossy};
	if (system("ip -V >/dev/null 2>&1") != 0)
		SKIP("there is no ip(8)");
	become_root();
	CHECK_EQ(weft_setting_set(WEFT_SET_TCP_SILENCE, "2"), WEFT_OK);
	/* In a namespace of its own, to leave nothing behind in ours. */
	if (unshare(CLONE_NEWNET) != 0)
		SKIP("network namespaces are not allowed here");
	for (size_t i = 0; i < weft_countof(scenes); i++)
		play(&scenes[i]);
	/* Several losses in a row are no silence. */
	CHECK_EQ(weft_setting_set(WEFT_SET_TCP_SILENCE, "120"), WEFT_OK);
	if (has("nft add table ip t"))
		play(&loses);
	else
		printf("loss: not tried, there is no nft(8) here\n");
	if (has("ss -K dst 10.99.0.1"))
		play(&resets);
	else
		printf("reset: not tried, ss(8) cannot end connections here\n");
	return 0;
}
