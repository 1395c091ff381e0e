/* SPDX-License-Identifier: BSD-3-Clause */
/* launch.c - forks the command that starts an agent, and keeps three pipes to it. */
#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "plan.h"
#include "say.h"

#define WORDS_MAX 64

bool launch_is_here(const char *name)
{
	char own[65] = "";
	(void)gethostname(own, sizeof own - 1);
	size_t len = strcspn(own, ".");
	return strcmp(name, "localhost") == 0 || strcmp(name, "127.0.0.1") == 0 ||
	       strcmp(name, own) == 0 ||
	       (len && strlen(name) == len && strncmp(name, own, len) == 0);
}

/* For the shell on the other host. */
static char *quoted_command(const char *program)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	if (!out)
		return NULL;
	fputs("exec '", out);
	for (const char *p = program; *p; p++) {
		if (*p == '\'')
			fputs("'\\''", out);
		else
			putc(*p, out);
	}
	fputs("' --weft-agent", out);
	return fclose(out) ? NULL : text;
}

/* The command's words, the host, what to run there.  ssh gets options that keep it from idling for ever. */
static char **command_words(const struct launch *l, const char *host)
{
	static const char *const options[] = {"-x", "-o", "ServerAliveInterval=15"};
	char **argv = calloc(WORDS_MAX + 8, sizeof *argv);
	char *copy = plan_copy(l->command, strlen(l->command)), *rest = NULL;
	int n = 0;
	if (!argv)
		return NULL;
	for (char *w = strtok_r(copy, " \t", &rest); w && n < WORDS_MAX;
	     w = strtok_r(NULL, " \t", &rest))
		argv[n++] = w;
	if (!n)
		return NULL;
	const char *slash = strrchr(argv[0], '/');
	if (strcmp(slash ? slash + 1 : argv[0], "ssh") == 0)
		for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
			argv[n++] = plan_copy(options[i], strlen(options[i]));
	size_t len = strlen(host);
	bool brackets = len > 2 && host[0] == '[' && host[len - 1] == ']'; /* an IPv6 address */
	argv[n++] = brackets ? plan_copy(host + 1, len - 2) : plan_copy(host, len);
	argv[n++] = quoted_command(l->program);
	return argv;
}

/* Ctrl-C at the terminal is for mpiexec to answer: ssh leaves signals ignored that it finds ignored. */
_Noreturn static void become_command(char **argv, const int *in, const int *out, const int *err)
{
	static const int ignored[] = {SIGINT, SIGQUIT, SIGHUP, SIGTSTP};
	sigset_t none;
	for (size_t i = 0; i < sizeof ignored / sizeof ignored[0]; i++)
		signal(ignored[i], SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (dup2(in[0], STDIN_FILENO) < 0 || dup2(out[1], STDOUT_FILENO) < 0 ||
	    (err && dup2(err[1], STDERR_FILENO) < 0))
		_exit(126);
	execvp(argv[0], argv);
	dprintf(STDERR_FILENO, "mpiexec: cannot start '%s': %s\n", argv[0], strerror(errno));
	_exit(127);
}

static void close_pair(const int *pair)
{
	for (int i = 0; i < 2; i++)
		if (pair[i] >= 0)
			close(pair[i]);
}

static bool start_part(const struct launch *l, bool pipes, struct part *p)
{
	int in[2] = {-1, -1}, out[2] = {-1, -1}, err[2] = {-1, -1};
	char flag[] = "--weft-agent", *direct[] = {(char *)l->program, flag, NULL};
	char **argv =
		l->here_direct && launch_is_here(p->name) ? direct : command_words(l, p->name);
	if (!argv || pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC) ||
	    (pipes && pipe2(err, O_CLOEXEC)))
		goto failed;
	p->pid = fork();
	if (p->pid == 0)
		become_command(argv, in, out, pipes ? err : NULL);
	if (p->pid < 0)
		goto failed;
	close(in[0]);
	close(out[1]);
	if (pipes)
		close(err[1]);
	p->errors = err[0];
	p->link.greet = l->greet;
	p->link.frame = l->frame;
	p->link.lost = l->lost;
	if (link_open(&p->link, out[0], in[1], true))
		return true;
	say("cannot start an agent on %s: %s", p->name, strerror(errno));
	return false;
failed:
	say("cannot start an agent on %s: %s", p->name, strerror(errno));
	close_pair(in);
	close_pair(out);
	close_pair(err);
	p->link.in = p->link.out = -1;
	return false;
}

bool launch_parts(const struct launch *l, bool pipes, struct part **parts_p, int *count_p)
{
	int n = l->count < l->fanout ? l->count : l->fanout;
	*count_p = 0;
	*parts_p = calloc((size_t)n + 1, sizeof **parts_p);
	if (!*parts_p) {
		say("no memory");
		return false;
	}
	for (int i = 0; i < n; i++) {
		struct part *p = &(*parts_p)[i];
		int from = (int)((long)l->count * i / n), to = (int)((long)l->count * (i + 1) / n);
		*p = (struct part){.first = l->first + from,
				   .count = to - from,
				   .name = l->names[from],
				   .errors = -1};
		*count_p = i + 1;
		if (!start_part(l, pipes, p))
			return false;
	}
	return true;
}

struct part *launch_part_of(struct part *parts, int count, int host)
{
	for (int i = 0; i < count; i++)
		if (host >= parts[i].first && host < parts[i].first + parts[i].count)
			return &parts[i];
	return NULL;
}

/* The command's status; -1: it goes on. */
static int reap_command(struct part *p)
{
	for (int i = 0; i < 40 && p->pid > 0; i++) { /* its pipes are closed: mostly it has ended */
		int status;
		struct timespec pause = {.tv_nsec = 5000000};
		pid_t pid = waitpid(p->pid, &status, WNOHANG);
		if (pid == p->pid) {
			p->pid = 0;
			return status;
		}
		if (pid < 0 && errno != EINTR)
			return -1;
		nanosleep(&pause, NULL);
	}
	return -1;
}

void launch_part_with(struct part *p)
{
	if (p->link.in >= 0)
		link_part(&p->link);
	if (!p->link.greeted && p->pid > 0)
		(void)kill(p->pid, SIGTERM); /* it may still be trying to connect */
	(void)reap_command(p);
}

const char *launch_why(struct part *p, const struct launch *l, const char *why)
{
	static char text[512];
	if (why)
		return why;
	int status = reap_command(p);
	bool early = !p->link.greeted;
	const char *hint = "";
	if (early && status >= 0 && WIFEXITED(status) &&
	    (WEXITSTATUS(status) == 127 || WEXITSTATUS(status) == 126))
		hint = "; weft has to be there under the same path";
	if (status >= 0 && WIFEXITED(status) && (early || WEXITSTATUS(status)))
		snprintf(text, sizeof text, "'%.60s' ended with exit code %d%s%.200s", l->command,
			 WEXITSTATUS(status), hint,
			 hint[0] ? ""
			 : early ? " before an agent answered"
				 : "");
	else if (status >= 0 && WIFSIGNALED(status))
		snprintf(text, sizeof text, "'%.60s' was killed by SIG%s", l->command,
			 sigabbrev_np(WTERMSIG(status)));
	else
		snprintf(text, sizeof text, "its connection was closed");
	return text;
}
