/* SPDX-License-Identifier: BSD-3-Clause */
/* The client of PMI-2 gets along with slow, stingy and broken servers: right values, or one line, never a
 * crash or a hang; and of two versions the one that is answered is spoken. */
#include "fake_server.h"

#include <signal.h>

static char err[8192];
static const struct weft_boot_info *info;

/* What the server answers to a command instead of the plain answer; NULL: nothing odd. */
static const char *odd_to, *odd_with;
static size_t odd_len;
static bool speaks_1, speaks_2; /* which greetings it takes */
static size_t chunk;
static unsigned late_ms; /* how much later another rank comes to its fence */
static bool leaves;      /* the launcher dies between a put and its fence's end */

static void send_text(int fd, const char *text, size_t len)
{
	size_t n = chunk ? chunk : len;
	for (size_t at = 0; at < len; at += n)
		if (write(fd, text + at, len - at < n ? len - at : n) < 0)
			return;
}

static void answer(int fd, const char *fmt, const char *a)
{
	static char body[80000], text[80016];
	snprintf(body, sizeof body, fmt, a);
	int n = snprintf(text, sizeof text, "%6zu%s", strlen(body), body);
	send_text(fd, text, (size_t)n);
}

static bool take(int fd, char *to, size_t n)
{
	for (ssize_t got; n; n -= (size_t)got, to += got)
		if ((got = read(fd, to, n)) <= 0)
			return false;
	return true;
}

static const char *slots = "16"; /* what the launcher says there are; NULL: nothing */
static const char *there;        /* the field that says whether there is a value */

static void answer_value(int fd, const char *cmd, const char *value)
{
	static char body[80000];
	snprintf(body, sizeof body, "cmd=%s-response;%s=%s;%s%s%src=0;", cmd, there,
		 value ? "TRUE" : "FALSE", value ? "value=" : "", value ? value : "",
		 value ? ";" : "");
	answer(fd, "%s", body);
}

static void serve_message(int fd, char *m)
{
	char key[128], value[2048];
	if (strcmp(m, "cmd=kvs-fence;") == 0)
		usleep(late_ms * 1000);
	/* No empty value: MPICH 4.2's Hydra ends the job then. */
	if (strstr(m, "=;") || (leaves && strcmp(m, "cmd=kvs-fence;") == 0)) {
		shutdown(fd, SHUT_RDWR);
		return;
	}
	if (odd_to && strncmp(m, odd_to, strlen(odd_to)) == 0)
		send_text(fd, odd_with, odd_len);
	else if (strncmp(m, "cmd=fullinit;", 13) == 0)
		answer(fd,
		       "cmd=fullinit-response;rc=0;pmi-version=2;pmi-subversion=0;rank=%s;size=2;"
		       "appnum=3;debugged=FALSE;pmiverbose=FALSE;",
		       getenv("PMI_RANK"));
	else if (strcmp(m, "cmd=job-getid;") == 0)
		answer(fd, "cmd=job-getid-response;jobid=%s;rc=0;", "7.0");
	else if (strcmp(m, "cmd=info-getjobattr;key=universeSize;") == 0)
		answer_value(fd, "info-getjobattr", slots);
	else if (strcmp(m, "cmd=kvs-fence;") == 0)
		answer(fd, "cmd=kvs-fence-response;rc=%s;", "0");
	else if (strcmp(m, "cmd=finalize;") == 0)
		answer(fd, "cmd=finalize-response;rc=%s;", "0");
	else if (sscanf(m, "cmd=kvs-put;key=%127[^;];value=%2047[^;];", key, value) == 2) {
		CHECK(strlen(key) < 64 && strlen(value) < 1024);
		fake_put(key, value);
		answer(fd, "cmd=kvs-put-response;rc=%s;", "0");
	} else if (sscanf(m, "cmd=kvs-get;jobid=7.0;srcid=-1;key=%127[^;];", key) == 1)
		answer_value(fd, "kvs-get", fake_get(key));
}

/* Serves one client: greetings as lines, then messages, until it leaves. */
static void serve(int fd)
{
	static char m[100000];
	for (;;) {
		size_t n = 0;
		do {
			if (!take(fd, m + n, 1))
				return;
		} while (m[n++] != '\n');
		m[n] = 0;
		bool second = strstr(m, "pmi_version=2");
		if (odd_to && strcmp(odd_to, "init") == 0) {
			send_text(fd, odd_with, odd_len);
			return;
		}
		if (second && speaks_2) {
			static const char yes[] =
				"cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0\n";
			send_text(fd, yes, sizeof yes - 1);
			break;
		}
		if (!second && speaks_1) {
			const struct fake plain = {0};
			m[n - 1] = 0;
			fake_answer(&plain, fd, m);
			fake_serve(&plain, fd);
			return;
		}
		static const char no[] =
			"cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=-1\n";
		send_text(fd, no, sizeof no - 1);
	}
	for (char head[7] = ""; take(fd, head, 6);) {
		size_t n = (size_t)atoi(head);
		CHECK(n > 0 && n < sizeof m && take(fd, m, n));
		m[n] = 0;
		serve_message(fd, m);
	}
}

/* Runs client() as `rank` of 2 under the server; its stderr lands in err. */
static int run(int rank, int (*client)(void))
{
	int pair[2], errors[2], status;
	char text[32];
	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0 && pipe(errors) == 0);
	snprintf(text, sizeof text, "%d", rank);
	setenv("PMI_RANK", text, 1);
	setenv("PMI_SIZE", "2", 1);
	fflush(NULL);
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		close(pair[0]);
		close(errors[0]);
		dup2(errors[1], STDERR_FILENO);
		snprintf(text, sizeof text, "%d", pair[1]);
		setenv("PMI_FD", text, 1);
		alarm(200);
		exit(client());
	}
	close(pair[1]);
	close(errors[1]);
	serve(pair[0]);
	close(pair[0]);
	size_t have = 0;
	for (ssize_t n;
	     have < sizeof err - 1 && (n = read(errors[0], err + have, sizeof err - 1 - have)) > 0;)
		have += (size_t)n;
	err[have] = 0;
	close(errors[0]);
	CHECK(waitpid(pid, &status, 0) == pid);
	return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Opens, and publishes for the first time: only then is the job's secret there. */
static int client_open(void)
{
	weft_err e = weft_boot_open(&info);
	if (!e)
		e = weft_boot_publish();
	return e ? 100 - (int)e : 0;
}

/* Values of every byte, longer than one of the server's, read back by the same rank. */
static int client_exchange(void)
{
	static char big[30001], got[30001];
	int rc = client_open();
	if (rc)
		return rc;
	if (info->rank != 0 || info->size != 2 || info->appnum != 3 || info->universe != 16 ||
	    !info->secret_by_kvs)
		return 1;
	for (size_t i = 0; i < sizeof big - 1; i++)
		big[i] = (char)(1 + i % 255);
	if (weft_boot_put("a key;with=all sorts\n", big) || weft_boot_publish())
		return 2;
	if (weft_boot_get(0, "a key;with=all sorts\n", got, sizeof got) || strcmp(got, big) != 0)
		return 3;
	if (weft_boot_get(1, "a key", got, sizeof got) != WEFT_ERR_NOENT)
		return 4;
	weft_boot_close();
	return 0;
}

/* Rank 1 reads what rank 0 has put: the secret, and long values in parts. */
static int client_reads(void)
{
	static char got[30001];
	int rc = client_open();
	if (rc)
		return rc;
	if (weft_boot_publish())
		return 1;
	weft_err e = weft_boot_get(0, "a key;with=all sorts\n", got, sizeof got);
	weft_boot_close();
	return e ? 100 - (int)e : strlen(got) == 30000 && got[300] == (char)46 ? 0 : 2;
}

/* Under Slurm the job's name is known, and gets are sent together. */
static void slurm_says(bool so)
{
	if (so) {
		setenv("SLURM_PROCID", "0", 1);
		setenv("PMI_JOBID", "7.0", 1);
	} else {
		unsetenv("SLURM_PROCID");
		unsetenv("PMI_JOBID");
	}
}

static void plain_servers(void)
{
	static const size_t chunks[] = {0, 1, 7};
	for (size_t i = 0; i < 4 * weft_countof(chunks); i++) {
		chunk = chunks[i / 4];
		there = i % 2 ? "flag" : "found";
		slurm_says(i % 4 >= 2);
		int rc = run(0, client_exchange);
		if (rc)
			fprintf(stderr, "chunks of %zu: %s", chunk, err);
		CHECK_EQ(rc, 0);
		CHECK_EQ(run(1, client_reads), 0);
		fake_forget();
	}
	chunk = 0;
	slurm_says(false);
}

static int client_universe(void)
{
	int rc = client_open();
	return rc ? rc : info->universe;
}

/* As many slots as the job has ranks, or fewer, say nothing about how many children there may be. */
static void universe_above_the_job(void)
{
	static const struct {
		const char *slots;
		int universe;
	} row[] = {{"16", 16}, {"3", 3}, {"2", 0}, {"1", 0}, {"0", 0}, {"-1", 0}, {NULL, 0}};
	for (size_t i = 0; i < weft_countof(row); i++) {
		slots = row[i].slots;
		CHECK_EQ(run(0, client_universe), row[i].universe);
		fake_forget();
	}
	slots = "16";
}

static int client_which(void)
{
	int rc = client_open();
	return rc ? rc : strstr(info->launcher, "PMI-2") ? 2 : 1;
}

static void speaks_what_is_answered(void)
{
	static const struct {
		bool one, two, slurm;
		int version;
	} cases[] = {{true, true, false, 1}, {true, true, true, 2},  {false, true, false, 2},
		     {true, false, true, 1}, {false, true, true, 2}, {true, false, false, 1}};
	for (size_t i = 0; i < weft_countof(cases); i++) {
		speaks_1 = cases[i].one;
		speaks_2 = cases[i].two;
		if (cases[i].slurm)
			setenv("PMI_JOBID", "7.0", 1);
		CHECK_EQ(run(0, client_which), cases[i].version);
		CHECK_EQ(count_lines(err), 0);
		unsetenv("PMI_JOBID");
		fake_forget();
	}
	speaks_1 = speaks_2 = false; /* neither: one line, no singleton */
	CHECK_EQ(run(0, client_which), 100 - WEFT_ERR_UNSUPPORTED);
	CHECK_EQ(count_lines(err), 1);
	CHECK(strstr(err, "PMI version 2"));
	speaks_2 = true;
}

static void wrong_answers(void)
{
	static const char *const requests[] = {"init",          "cmd=fullinit",
					       "cmd=job-getid", "cmd=info-getjobattr",
					       "cmd=kvs-put",   "cmd=kvs-fence"};
	static const struct {
		const char *text;
		size_t len;
	} answers[] = {
#define LINE(s) {s, sizeof s - 1}
		LINE("\n"),
		LINE("      "),
		LINE("     0"),
		LINE("    -1"),
		LINE("999999"),
		LINE("1 2 3 cmd=x;"),
		LINE("garbage\n"),
		LINE("    25cmd=kvs-get-response;rc=0"),
		LINE("    28cmd=fullinit-response;rc=99;"),
		LINE("    28cmd=fullinit-response;rc=0x;"),
		LINE("    45cmd=fullinit-response;rc=0;rank=2;size=2;abcd;"),
		LINE("    44cmd=fullinit-response;rc=0;rank=-1;size=2;a=;"),
		LINE("    29cmd=job-getid-response;rc=0;;;"),
		LINE("    34cmd=job-getid-response;rc=0;jobid=;"),
		LINE("    27cmd=kvs-put-response;rc=14;;"),
		LINE("     7cmd\0=x;"),
		LINE("     3;;;"),
#undef LINE
	};
	for (size_t i = 0; i < weft_countof(requests); i++) {
		for (size_t k = 0; k < weft_countof(answers); k++) {
			odd_to = requests[i];
			odd_with = answers[k].text;
			odd_len = answers[k].len;
			setenv("WEFT_INIT_TIMEOUT", "1", 1); /* where the answer seems to go on */
			int rc = run(0, client_open);
			unsetenv("WEFT_INIT_TIMEOUT");
			fake_forget();
			if (rc <= 100 || rc >= 1000 || count_lines(err) != 1)
				fprintf(stderr, "%s -> %s: rc %d: %s\n", odd_to, odd_with, rc, err);
			CHECK(rc > 100 && rc < 1000);
			CHECK_EQ(count_lines(err), 1);
		}
	}
	odd_to = NULL;
}

/* A rank that is late is waited for: without a word within init_timeout, with one line after it. */
static void late_ranks(void)
{
	late_ms = 200;
	CHECK_EQ(run(0, client_exchange), 0);
	CHECK_EQ(count_lines(err), 0);
	fake_forget();
	late_ms = 1300;
	setenv("WEFT_INIT_TIMEOUT", "1", 1);
	int rc = run(1, client_open);
	unsetenv("WEFT_INIT_TIMEOUT");
	CHECK_EQ(rc, 100 - WEFT_ERR_NOENT); /* the other one has not put the secret */
	CHECK(strstr(err, "have not called MPI_Init for 1 s"));
	fake_forget();
	leaves = true;
	late_ms = 1200;
	setenv("WEFT_INIT_TIMEOUT", "1", 1);
	rc = run(0, client_open);
	unsetenv("WEFT_INIT_TIMEOUT");
	CHECK_EQ(
		rc,
		100 - WEFT_ERR_PEER); /* one line that ranks are late, one that the launcher is gone */
	CHECK(strstr(err, "closed its channel instead of answering kvs-fence"));
	CHECK_EQ(count_lines(err), 2);
	late_ms = 0;
	leaves = false;
	fake_forget();
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	speaks_2 = true;
	plain_servers();
	universe_above_the_job();
	speaks_what_is_answered();
	wrong_answers();
	late_ranks();
	return 0;
}
