/* SPDX-License-Identifier: BSD-3-Clause */
/* rank.c - between fork and exec. */
#include "rank.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "spawned.h"

/* What an outer job may have left in our environment and must not reach the ranks. */
static const char *const foreign[] = {
	"PMI_FD",
	"PMI_RANK",
	"PMI_SIZE",
	"PMI_ID",
	"PMI_PORT",
	"PMI_SPAWNED",
	"PMI_CONTROL_FD",
	"PMI_CONTROL_PORT",
	"PMIX_NAMESPACE",
	"PMIX_RANK",
	"PMIX_SERVER_URI2",
	"PMIX_SERVER_URI3",
	"PMIX_ID",
	"WEFT_BOOT_FD",
	"WEFT_BOOT_PMI",
	"HYDI_CONTROL_FD",
	"OMPI_COMM_WORLD_SIZE",
	"MPI_LOCALRANKID",
	"MPI_LOCALNRANKS",
	"OMPI_COMM_WORLD_RANK",
};

static int local_of(const struct keeper_setup *s, int rank)
{
	return s->locals ? s->locals[rank] : rank;
}

static void set_number(const char *name, int value)
{
	char text[16];
	snprintf(text, sizeof text, "%d", value);
	setenv(name, text, 1);
}

/* Lets a rank tell our channel from one that another launcher put under the same number. */
static void set_inode(const char *name, int fd)
{
	char text[24];
	struct stat st;
	if (fstat(fd, &st))
		return;
	snprintf(text, sizeof text, "%llu", (unsigned long long)st.st_ino);
	setenv(name, text, 1);
}

/* Of mpiexec's environment PATH alone, by which the program is found, too, and what a spawn has to know. */
static void keep_path_only(void)
{
	static const char *const kept[] = {"PATH", JOB_HOSTS, JOB_HOST, JOB_RSH};
	char *value[sizeof kept / sizeof kept[0]];
	for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
		const char *now = getenv(kept[i]);
		value[i] = now ? strdup(now) : NULL;
	}
	clearenv();
	for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
		if (value[i])
			setenv(kept[i], value[i], 1);
		free(value[i]);
	}
}

static void set_vars(const struct plan_vars *vars)
{
	for (int i = 0; i < vars->count; i++)
		setenv(vars->items[i].name, vars->items[i].value, 1);
}

static void set_environment(const struct keeper_setup *s, const struct plan_program *prog, int rank,
			    const int fds[KEEPER_FDS])
{
	const struct plan *plan = s->plan;
	if ((prog->env ? prog->env : plan->env) == PLAN_ENV_NONE)
		keep_path_only();
	for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++)
		unsetenv(foreign[i]);
	set_vars(&plan->vars);
	set_vars(&prog->vars);
	set_number("PMI_RANK", rank);
	set_number("PMI_SIZE", plan->size);
	set_number("PMI_FD", fds[KEEPER_FD_PMI]);
	set_number("WEFT_BOOT_FD", fds[KEEPER_FD_BOOT]);
	set_inode("WEFT_BOOT_PMI", fds[KEEPER_FD_PMI]);
	set_number("MPI_LOCALNRANKS", s->local_count);
	set_number("MPI_LOCALRANKID", local_of(s, rank));
}

/* Descriptors 0, 1, 2 and the two that the boot layer reads; the rest closes itself at exec. */
static int place_descriptors(int rank, const int fds[KEEPER_FDS])
{
	if (rank != 0) {
		int null = open("/dev/null", O_RDONLY);
		if (null < 0 || dup2(null, STDIN_FILENO) < 0)
			return -1;
		if (null != STDIN_FILENO)
			close(null);
	}
	if (dup2(fds[KEEPER_FD_OUT], STDOUT_FILENO) < 0 ||
	    dup2(fds[KEEPER_FD_ERR], STDERR_FILENO) < 0 ||
	    fcntl(fds[KEEPER_FD_PMI], F_SETFD, 0) < 0 || fcntl(fds[KEEPER_FD_BOOT], F_SETFD, 0) < 0)
		return -1;
	return 0;
}

/* execvp says "permission denied" also when a folder of PATH cannot be searched and the program is
 * nowhere.  Is there such a file at all? */
static bool in_path(const char *name)
{
	const char *path = getenv("PATH");
	while (path && *path) { /* ends: path moves to the next folder */
		char file[4096];
		size_t len = strcspn(path, ":");
		snprintf(file, sizeof file, "%.*s/%s", (int)len, path, name);
		if (len && access(file, F_OK) == 0)
			return true;
		path += len + (path[len] == ':');
	}
	return false;
}

_Noreturn static void become_rank(const struct keeper_setup *s, int rank, const int fds[KEEPER_FDS],
				  int report_fd, pid_t keeper)
{
	const struct plan_program *prog = plan_program_of(s->plan, rank);
	struct rank_failure failure = {.step = KEEPER_STEP_SETUP};
	struct rlimit files;
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != keeper)
		_exit(1); /* it died before the line above took effect */
	if (s->binds)
		bind_apply(&s->binds[local_of(s, rank)]);
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = s->nofile;
		(void)setrlimit(RLIMIT_NOFILE, &files);
	}
	if (place_descriptors(rank, fds))
		goto failed;
	failure.step = KEEPER_STEP_WDIR;
	if (prog->wdir && chdir(prog->wdir))
		goto failed;
	set_environment(s, prog, rank, fds);
	/* mpiexec passes them on: a rank must not ignore them because a script's shell did. */
	signal(SIGINT, SIG_DFL);
	signal(SIGQUIT, SIG_DFL);
	sigprocmask(SIG_SETMASK, &s->mask, NULL);
	failure.step = KEEPER_STEP_EXEC;
	execvp(prog->argv[0], prog->argv);
	if (errno == EACCES && !strchr(prog->argv[0], '/'))
		errno = in_path(prog->argv[0]) ? EACCES : ENOENT;
failed:
	failure.error = errno;
	(void)!write(report_fd, &failure, sizeof failure);
	_exit(127);
}

/* The pipe closes itself at exec: end of file means that the program runs. */
static bool wait_exec(int fd, struct rank_failure *failure_p)
{
	ssize_t n;
	do
		n = read(fd, failure_p, sizeof *failure_p);
	while (n < 0 && errno == EINTR);
	return n != (ssize_t)sizeof *failure_p;
}

pid_t rank_spawn(const struct keeper_setup *setup, int rank, const int fds[KEEPER_FDS],
		 struct rank_failure *failure_p)
{
	int report[2];
	pid_t keeper = getpid();
	if (pipe2(report, O_CLOEXEC)) {
		*failure_p = (struct rank_failure){KEEPER_STEP_SETUP, errno};
		return -1;
	}
	pid_t pid = fork();
	if (pid == 0)
		become_rank(setup, rank, fds, report[1], keeper);
	*failure_p = (struct rank_failure){KEEPER_STEP_FORK, errno};
	close(report[1]);
	if (pid > 0) {
		setpgid(pid, pid); /* both sides: either may come first */
		if (!wait_exec(report[0], failure_p)) {
			int status;
			while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
				continue; /* ends: the child leaves right after its report */
			pid = -1;
		}
	}
	close(report[0]);
	return pid;
}
