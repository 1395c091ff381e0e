/* SPDX-License-Identifier: BSD-3-Clause */
/* agent.c - finds weft's mpiexec and starts it with the children's command line. */
#include "mpi/dyn/agent.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/settings.h"
#include "mpi/mpi_int.h"

extern char **environ;

/* Of the launcher that has started us, or of the job that we are in: not the children's.  Their first error handler is what
 * the spawn's info says. */
static const char *const not_theirs[] = {
	"PMI_",  "PMIX_",  "PRTE_",      "OMPI_COMM_",  "OMPI_MCA_ess",
	"HYDI_", "HYDRA_", "WEFT_BOOT_", "WEFT_SPAWN_", "WEFT_INITIAL_ERRHANDLER"};

static bool is_theirs(const char *var)
{
	for (size_t i = 0; i < weft_countof(not_theirs); i++)
		if (strncmp(var, not_theirs[i], strlen(not_theirs[i])) == 0)
			return false;
	return true;
}

/* The environment with the two variables; to be freed, as are its first two entries. */
static char **agent_environment(int fd, const char *port)
{
	size_t n = 0, at = 2;

	while (environ[n])
		n++; /* ends with the list */
	char **env = calloc(n + 3, sizeof(*env));
	if (!env)
		return NULL;
	if (asprintf(&env[0], "WEFT_SPAWN_FD=%d", fd) < 0)
		env[0] = NULL;
	if (asprintf(&env[1], "WEFT_SPAWN_PORT=%s", port) < 0)
		env[1] = NULL;
	for (size_t i = 0; i < n; i++)
		if (is_theirs(environ[i]))
			env[at++] = environ[i];
	if (env[0] && env[1])
		return env;
	free(env[0]);
	free(env[1]);
	free(env);
	return NULL;
}

static void environment_free(char **env)
{
	explicit_bzero(env[1], strlen(env[1]));
	free(env[0]);
	free(env[1]);
	free(env);
}

/* ../bin/mpiexec, seen from the library. */
static bool find_mpiexec(char path[PATH_MAX])
{
	const char *given = weft_setting_str(WEFT_SET_SPAWN_MPIEXEC);
	Dl_info here;
	char real[PATH_MAX];

	if (*given) {
		snprintf(path, PATH_MAX, "%s", given);
		return access(path, X_OK) == 0;
	}
	if (!dladdr((void *)(uintptr_t)find_mpiexec, &here) || !realpath(here.dli_fname, real))
		return false;
	/* lib/libmpi_abi.so, or lib/x86_64-linux-gnu/libmpi_abi.so */
	for (int up = 0; up < 3; up++) {
		char *slash = strrchr(real, '/');
		if (!slash)
			return false;
		*slash = 0;
		if (snprintf(path, PATH_MAX, "%s/bin/mpiexec", real) < PATH_MAX && up > 0 &&
		    access(path, X_OK) == 0)
			return true;
	}
	return false;
}

static int spawn_agent(const char *path, char **argv, char **env, int fd, pid_t *pid_p)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	sigset_t none, all;

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&files);
	posix_spawnattr_init(&attr);
	/* To itself: it stays open over exec. */
	posix_spawn_file_actions_adddup2(&files, fd, fd);
	posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &all);
	int err = posix_spawn(pid_p, path, &files, &attr, argv, env);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&files);
	return err;
}

/* mpiexec goes on in a child of its own, so that the program's wait() never meets it. */
static void reap_starter(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		continue; /* ends: it leaves at once, or the program has reaped it */
}

int weft_mpi_agent_start(char **argv, const char *port, struct weft_mpi_agent *agent)
{
	char path[PATH_MAX];
	int pair[2];
	pid_t pid;

	if (!find_mpiexec(path))
		return weft_mpi_err(MPI_ERR_SPAWN, "weft's mpiexec is not beside the library: set "
						   "WEFT_SPAWN_MPIEXEC to its path");
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return weft_mpi_err(MPI_ERR_SPAWN, "socketpair: %s", strerror(errno));
	char **env = agent_environment(pair[1], port);
	argv[0] = path;
	int err = env ? spawn_agent(path, argv, env, pair[1], &pid) : ENOMEM;
	if (env)
		environment_free(env);
	close(pair[1]);
	if (err) {
		close(pair[0]);
		return weft_mpi_err(MPI_ERR_SPAWN, "%s: %s", path, strerror(err));
	}
	reap_starter(pid);
	agent->fd = pair[0];
	return MPI_SUCCESS;
}

bool weft_mpi_agent_word(struct weft_mpi_agent *agent, struct weft_mpi_agent_word *word)
{
	ssize_t n = recv(agent->fd, word, sizeof(*word), MSG_DONTWAIT);

	return n == (ssize_t)sizeof(*word);
}

void weft_mpi_agent_release(struct weft_mpi_agent *agent)
{
	char released = 'r';

	(void)!send(agent->fd, &released, 1, MSG_NOSIGNAL);
	close(agent->fd);
}

void weft_mpi_agent_end(struct weft_mpi_agent *agent)
{
	close(agent->fd);
}
