/* SPDX-License-Identifier: BSD-3-Clause */
/* The client of PMIx waits for a rank that is slow, names one that is too late, asks again where a server fails for
 * a while, and gives up at once, with one line, where it is gone: over a library that does each (fake_pmix.c). */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "boot/boot.h"
#include "boot/psets.h"

#if defined(__SANITIZE_ADDRESS__)
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:request_create"; /* its callback may come as long as the process lives */
}

__attribute__((visibility("default"))) const char *__lsan_default_options(void);
const char *__lsan_default_options(void)
{
	return "print_suppressions=0"; /* the lines of a rank are counted */
}
#endif

/* --- rank 1 of 2 --- */

static int code(weft_err e)
{
	return e ? 100 - (int)e : 0;
}

/* Joins, which gets the secret of rank 0. */
static int joins(void)
{
	const struct weft_boot_info *info;
	int rc = code(weft_boot_open(&info));
	if (!rc && (info->rank != 1 || info->size != 2 || strcmp(info->jobid, "fake") != 0))
		return 1;
	return rc;
}

static weft_err try_until(char *buf, size_t size, uint64_t patience_ns)
{
	uint64_t end = weft_clock_ns() + patience_ns;
	weft_err e;
	while ((e = weft_boot_try_get(0, "comm.tcp", buf, size)) == WEFT_AGAIN &&
	       weft_clock_ns() < end) {
		struct timespec pause = {.tv_nsec = 1000000};
		nanosleep(&pause, NULL);
	}
	return e;
}

static int client(const char *what)
{
	char got[64];
	int rc = joins();
	alarm(200);
	if (rc)
		return rc;
	setenv("FAKE_STATUS", getenv("THEN_STATUS") ? getenv("THEN_STATUS") : "", 1);
	setenv("FAKE_LATE", getenv("THEN_LATE") ? getenv("THEN_LATE") : "0", 1);
	setenv("FAKE_MUTE", getenv("THEN_MUTE") ? getenv("THEN_MUTE") : "", 1);
	if (strcmp(what, "try") == 0) {
		weft_err e = try_until(got, sizeof got, 5000000000u);
		if (e) /* for good: the same again, and not a second line */
			return weft_boot_try_get(0, "comm.tcp", got, sizeof got) == e ? code(e) : 2;
		if (strcmp(got, "comm.tcp of 0") != 0)
			return 3;
	} else if (strcmp(what, "sets") == 0) {
		rc = code(weft_boot_psets_refresh());
	} else if (strcmp(what, "fence") == 0) {
		rc = code(weft_boot_fence());
	}
	weft_boot_close();
	return rc;
}

/* --- the launcher --- */

static char err[4096];

struct rank {
	pid_t pid;
	int errors; /* its stderr */
};

static struct rank start(const char *what, const char *env)
{
	int errors[2];
	CHECK(pipe(errors) == 0);
	fflush(NULL);
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		char text[512], *word, *rest = text;
		dup2(errors[1], STDERR_FILENO);
		close(errors[0]);
		close(errors[1]);
		setenv("LD_LIBRARY_PATH", FAKE_PMIX, 1);
		setenv("PMIX_NAMESPACE", "fake", 1);
		setenv("PMIX_RANK", "1", 1);
		unsetenv("PMI_FD");
		snprintf(text, sizeof text, "%s", env);
		while ((word = strsep(&rest, ";")))
			if (strchr(word, '='))
				putenv(strdup(word));
		execl("/proc/self/exe", "test_pmix_client", what, (char *)NULL);
		_exit(127);
	}
	close(errors[1]);
	return (struct rank){pid, errors[0]};
}

/* Its exit code; 1000 + N: killed by signal N.  What it said is in err. */
static int end_of(struct rank r)
{
	int status;
	size_t have = 0;
	for (ssize_t n;
	     have < sizeof err - 1 && (n = read(r.errors, err + have, sizeof err - 1 - have)) > 0;)
		have += (size_t)n;
	err[have] = 0;
	close(r.errors);
	CHECK(waitpid(r.pid, &status, 0) == r.pid);
	return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int lines(const char *text)
{
	int n = 0;
	for (; *text; text++)
		n += *text == '\n';
	return n;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *what, *env;
		weft_err err;
		const char *says; /* a part of its one line; NULL: it says nothing */
	} cases[] = {
		/* Rank 0 is slow to come, within what the user allows: in MPI_Init, and at first contact. */
		{"open", "", WEFT_OK, NULL},
		{"open", "FAKE_LATE=1200;WEFT_INIT_TIMEOUT=20", WEFT_OK, NULL},
		{"try", "THEN_LATE=1200;WEFT_INIT_TIMEOUT=20", WEFT_OK, NULL},
		/* Slower than that: MPI_Init ends, and says which rank and which setting; a message waits. */
		{"open", "FAKE_LATE=60000;WEFT_INIT_TIMEOUT=1", WEFT_ERR_TIMEOUT,
		 "rank 0 has not published key weft.job within 1 s"},
		{"open", "FAKE_STATUS=-46 ...;WEFT_INIT_TIMEOUT=1", WEFT_ERR_TIMEOUT,
		 "WEFT_INIT_TIMEOUT=SECONDS"},
		{"try", "THEN_LATE=1700;WEFT_INIT_TIMEOUT=1", WEFT_OK,
		 "still waiting for rank 0, which has not called MPI_Init for 1 s"},
		/* A server that fails for a while, or does not know the key yet. */
		{"open", "FAKE_STATUS=-1 -46 -24 -1", WEFT_OK, NULL},
		{"try", "THEN_STATUS=-1 -1 -46 -24 -1", WEFT_OK, NULL},
		{"open", "FAKE_STATUS=-1 ...;WEFT_INIT_TIMEOUT=1", WEFT_ERR_TIMEOUT,
		 "has answered status-1"},
		{"try", "THEN_STATUS=-1 ...;WEFT_INIT_TIMEOUT=1", WEFT_ERR_PEER, "status-1"},
		/* A server that is gone. */
		{"open", "FAKE_STATUS=-25", WEFT_ERR_PEER, "status-25"},
		{"try", "THEN_STATUS=-25 ...", WEFT_ERR_PEER, "status-25"},
		{"try", "THEN_STATUS=-1 -61", WEFT_ERR_PEER, "status-61"},
		/* A server that is stopped. */
		{"open", "FAKE_MUTE=init;WEFT_INIT_TIMEOUT=1", WEFT_ERR_TIMEOUT, "the greeting"},
		{"sets", "THEN_MUTE=query;WEFT_INIT_TIMEOUT=1", WEFT_OK, NULL},
		{"fence", "THEN_MUTE=fence;WEFT_INIT_TIMEOUT=1", WEFT_ERR_TIMEOUT, "fence"},
		{"fence", "", WEFT_OK, NULL},
	};
	if (argc > 1)
		return client(argv[1]);
	/* All at once: they wait most of the time. */
	struct rank sizeless = start("open", "FAKE_MUTE=job;WEFT_INIT_TIMEOUT=1");
	struct rank ranks[weft_countof(cases)];
	for (size_t i = 0; i < weft_countof(cases); i++)
		ranks[i] = start(cases[i].what, cases[i].env);
	for (size_t i = 0; i < weft_countof(cases); i++) {
		int rc = end_of(ranks[i]);
		bool good = rc == code(cases[i].err) && lines(err) == (cases[i].says != NULL) &&
			    (!cases[i].says || strstr(err, cases[i].says));
		if (!good)
			fprintf(stderr, "%s, %s: exit code %d: %s\n", cases[i].what, cases[i].env,
				rc, err);
		CHECK(good);
	}
	/* The size of the job is not to be had: two lines, the cause and what is missing. */
	CHECK_EQ(end_of(sizeless), code(WEFT_ERR_PROTO));
	CHECK(strstr(err, "pmix.job.size") && lines(err) == 2);
	return 0;
}
