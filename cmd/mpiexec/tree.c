/* SPDX-License-Identifier: BSD-3-Clause */
/* tree.c - reads /proc, marks the descendants, signals them. */
#include "tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

struct node {
	pid_t pid, ppid, pgid;
	char state;
	bool ours;
	unsigned long long start; /* ticks since boot: pid and start name one process */
};

static bool read_stat(pid_t pid, struct node *node)
{
	char path[32], text[1024];
	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	ssize_t n = read(fd, text, sizeof text - 1);
	close(fd);
	if (n <= 0)
		return false;
	text[n] = 0;
	/* The name in brackets may contain anything, brackets included. */
	const char *p = strrchr(text, ')');
	int ppid, pgid;
	if (!p ||
	    sscanf(p + 1,
		   " %c %d %d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d "
		   "%llu",
		   &node->state, &ppid, &pgid, &node->start) != 4)
		return false;
	node->pid = pid;
	node->ppid = ppid;
	node->pgid = pgid;
	node->ours = false;
	return true;
}

static int by_pid(const void *a, const void *b)
{
	const struct node *x = a, *y = b;
	return (x->pid > y->pid) - (x->pid < y->pid);
}

/* A descendant has its place below a child of ours (tree.h): without a child there is none. */
static bool is_childless(void)
{
	siginfo_t info;
	return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) && errno == ECHILD;
}

static struct node *list_processes(int *count_p)
{
	struct node *nodes = NULL;
	int count = 0, cap = 0;
	DIR *dir = is_childless() ? NULL : opendir("/proc");
	if (!dir)
		return NULL;
	for (struct dirent *e; (e = readdir(dir));) {
		pid_t pid = (pid_t)strtol(e->d_name, NULL, 10);
		if (pid <= 0)
			continue;
		if (count == cap) {
			cap = cap ? cap * 2 : 256;
			struct node *more = realloc(nodes, (size_t)cap * sizeof *nodes);
			if (!more)
				break; /* signal those we have; the caller tries again */
			nodes = more;
		}
		if (read_stat(pid, &nodes[count]))
			count++;
	}
	closedir(dir);
	if (nodes)
		qsort(nodes, (size_t)count, sizeof *nodes, by_pid);
	*count_p = count;
	return nodes;
}

static void mark_descendants(struct node *nodes, int count)
{
	pid_t self = getpid();
	for (bool changed = true; changed;) { /* ends: each turn marks one more at least */
		changed = false;
		for (int i = 0; i < count; i++) {
			if (nodes[i].ours)
				continue;
			struct node key = {.pid = nodes[i].ppid};
			struct node *parent =
				bsearch(&key, nodes, (size_t)count, sizeof key, by_pid);
			if (nodes[i].ppid == self || (parent && parent->ours)) {
				nodes[i].ours = true;
				changed = true;
			}
		}
	}
}

static void signal_checked(const struct node *node, int sig)
{
	int fd = (int)syscall(SYS_pidfd_open, node->pid, 0);
	struct node again;
	/* Still the same process after the descriptor was opened: then it names that one for good.
	 */
	if (read_stat(node->pid, &again) && again.start == node->start) {
		if (fd >= 0)
			(void)syscall(SYS_pidfd_send_signal, fd, sig, NULL, 0);
		else
			(void)kill(node->pid, sig); /* before Linux 5.3 */
	}
	if (fd >= 0)
		close(fd);
}

int tree_signal(int sig, pid_t spare, bool (*skip_group)(pid_t pgid, void *arg), void *arg)
{
	int count = 0, seen = 0;
	struct node *nodes = list_processes(&count);
	mark_descendants(nodes, count);
	for (int i = 0; i < count; i++) {
		if (!nodes[i].ours || nodes[i].state == 'Z' || nodes[i].pid == spare)
			continue;
		seen++;
		if (!skip_group || !skip_group(nodes[i].pgid, arg))
			signal_checked(&nodes[i], sig);
	}
	free(nodes);
	return seen;
}

static bool has_name(pid_t pid, const char *name)
{
	char path[32], text[32] = "";
	snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	ssize_t n = read(fd, text, sizeof text - 1);
	close(fd);
	return n > 1 && (size_t)n - 1 == strlen(name) && strncmp(text, name, (size_t)n - 1) == 0;
}

bool tree_has(const char *name)
{
	int count = 0;
	bool found = false;
	struct node *nodes = list_processes(&count);
	mark_descendants(nodes, count);
	for (int i = 0; i < count && !found; i++)
		found = nodes[i].ours && nodes[i].state != 'Z' && has_name(nodes[i].pid, name);
	free(nodes);
	return found;
}
