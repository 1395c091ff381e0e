/* SPDX-License-Identifier: BSD-3-Clause */
/* The client of PMI-1 gets along with slow, stingy and broken servers: right values, or one line
 * that names the key, never a crash or a hang. */
#include "fake_server.h"

#include <signal.h>
#include "boot/secret.h"

static char err[8192];
static const struct weft_boot_info *info;

/* Opens, and publishes for the first time: only then is the job's secret there. */
static int client_open(void)
{
	weft_err e = weft_boot_open(&info);
	if (!e)
		e = weft_boot_publish();
	return e ? 100 - (int)e : 0;
}

/* Puts awkward values, fences, reads them back: as rank 0 alone in a job of one. */
static int client_exchange(void)
{
	static char big[30001], got[30001];
	if (client_open())
		return 1;
	for (size_t i = 0; i < sizeof big - 1; i++)
		big[i] = (char)(1 + i % 255);
	for (int round = 0; round < 3; round++) {
		big[0] = (char)('a' + round);
		if (weft_boot_put("a key;with=all sorts\n", big) ||
		    weft_boot_put("", "empty key") || weft_boot_fence())
			return 2;
	}
	if (weft_boot_get(0, "a key;with=all sorts\n", got, sizeof got) || strcmp(got, big) != 0)
		return 3;
	if (weft_boot_get(0, "", got, sizeof got) || strcmp(got, "empty key") != 0)
		return 4;
	if (weft_boot_get(0, "no such", got, sizeof got) != WEFT_ERR_NOENT)
		return 5;
	if (weft_boot_get(0, "", got, 9) != WEFT_ERR_TRUNC ||
	    weft_boot_get(1, "", got, 9) != WEFT_ERR_ARG)
		return 6;
	weft_boot_close();
	return 0;
}

/* Rank 1 of 2: rank 0's values are in the server's table. */
static int client_reads_0(void)
{
	static char got[64];
	int rc = client_open();
	if (rc)
		return rc;
	if (weft_boot_fence())
		return 1;
	weft_err e = weft_boot_get(0, "k", got, sizeof got);
	return e ? 100 - (int)e : strcmp(got, "v") ? 2 : 0;
}

static void plain_servers(void)
{
	const struct fake servers[] = {
		{.vallen = 1024},           {.vallen = 32}, {.vallen = 30000},
		{.vallen = 64, .chunk = 1}, {.chunk = 7},
	};
	for (size_t i = 0; i < weft_countof(servers); i++) {
		int rc = fake_run(&servers[i], 0, 1, client_exchange, err, sizeof err);
		if (rc)
			fprintf(stderr, "server %zu: %s", i, err);
		CHECK_EQ(rc, 0);
		fake_forget();
	}
}

#define SECRET "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

/* What rank 0 may have put as its first batch (the secret) and its second. */
static int reads(const char *first, const char *second, const struct fake *f)
{
	fake_forget();
	if (first)
		fake_put("w0.0.0", first);
	if (second)
		fake_put("w1.0.0", second);
	return fake_run(f, 1, 2, client_reads_0, err, sizeof err);
}

static void damaged_values(void)
{
	static const char *const bad_first[] = {
		NULL,
		"",
		"1",
		"1.",
		"garbage",
		"0.x,y,",
		"-1.x,y,",
		"99999999999999999999.x,y,",
		"1.weft.job," SECRET ".id",
		"1.weft.job," SECRET "id,",
		"1.weft.job," SECRET ".,",
		"1.weft.job,zz112233445566778899aabbccddeeff00112233445566778899aabbccddeeff.id,",
		"1.weft.job," SECRET ".a%20b,",
		"1.weft.job," SECRET ".%,",
		"1.weft.job,%00,",
		"1.,",
		"2.weft.job," SECRET ".id,",
		"1.a b,c,",
	};
	struct fake f = {0};
	for (size_t i = 0; i < weft_countof(bad_first); i++) {
		int rc = reads(bad_first[i], NULL, &f);
		if (rc <= 100 || rc >= 1000 || count_lines(err) != 1 ||
		    (!strstr(err, "weft.job") && !strstr(err, "w0.0.")))
			fprintf(stderr, "case %zu (%s): rc %d: %s\n", i, bad_first[i], rc, err);
		CHECK(rc > 100 && rc < 1000);
		CHECK(strstr(err, "weft.job") || strstr(err, "w0.0."));
	}
	CHECK_EQ(reads("1.weft.job," SECRET ".id,", "1.k,v,", &f), 0);
	CHECK_EQ(reads("1.weft.job," SECRET ".id,", NULL, &f), 100 - WEFT_ERR_NOENT);
	CHECK_EQ(reads("1.weft.job," SECRET ".id,", "1.k,v", &f), 100 - WEFT_ERR_PROTO);
	CHECK(strstr(err, "w1.0.0"));
	CHECK_EQ(reads("1.weft.job," SECRET ".id,", "3.k,v,", &f), 100 - WEFT_ERR_PROTO);
	CHECK(strstr(err, "w1.0.1"));
	/* a value without end, and one of a mebibyte */
	char *huge = malloc(1 << 20);
	memset(huge, 'x', (1 << 20) - 1);
	huge[(1 << 20) - 1] = 0;
	memcpy(huge, "1.k,", 4);
	f.chunk = 4096;
	CHECK_EQ(reads("1.weft.job," SECRET ".id,", huge, &f), 100 - WEFT_ERR_PROTO);
	CHECK(strstr(err, "w1.0.0"));
	free(huge);
	fake_forget();
}

/* --- answers of the wrong kind --- */

static const char *odd_to, *odd_with;
static size_t odd_len;

static bool odd_answer(int fd, const char *line)
{
	if (strncmp(line, odd_to, strlen(odd_to)) != 0)
		return false;
	(void)!write(fd, odd_with, odd_len);
	return true;
}

static void wrong_answers(void)
{
	static const char *const requests[] = {"cmd=init",
					       "cmd=get_maxes",
					       "cmd=get_my_kvsname",
					       "cmd=get_appnum",
					       "cmd=get_universe_size",
					       "cmd=put",
					       "cmd=barrier_in",
					       "cmd=get "};
	static const struct {
		const char *text;
		size_t len;
	} answers[] = {
#define LINE(s) {s, sizeof s - 1}
		LINE("\n"),
		LINE("cmd=\n"),
		LINE("garbage\n"),
		LINE("cmd=get_result rc=99999999999999999999 value=x\n"),
		LINE("cmd=get_result\n"),
		LINE("cmd=get_result rc=0\n"),
		LINE("cmd=maxes kvsname_max=x keylen_max=64 vallen_max=64\n"),
		LINE("cmd=maxes kvsname_max=64 keylen_max=1 vallen_max=64\n"),
		LINE("cmd=maxes kvsname_max=64 keylen_max=64 vallen_max=-5\n"),
		LINE("cmd=maxes kvsname_max=64 keylen_max=64 vallen_max=1\n"),
		LINE("cmd=my_kvsname kvsname=\n"),
		LINE("cmd=my_kvsname\n"),
		LINE("cmd=appnum appnum=\n"),
		LINE("cmd=appnum appnum=1x\n"),
		LINE("cmd=put_result rc=-1\n"),
		LINE("cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0\n"),
		LINE("cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=-1\n"),
		LINE("cmd=\0barrier_out\n"),
		LINE("\0\0\0\0\xff\xfe\n"),
#undef LINE
	};
	const struct fake f = {.odd = odd_answer};
	for (size_t i = 0; i < weft_countof(requests); i++) {
		for (size_t k = 0; k < weft_countof(answers); k++) {
			odd_to = requests[i];
			odd_with = answers[k].text;
			odd_len = answers[k].len;
			/* Offered version 2, the client speaks it, and this server never answers. */
			if (strstr(odd_with, "pmi_version=2"))
				setenv("WEFT_INIT_TIMEOUT", "1", 1);
			int rc = fake_run(&f, strcmp(odd_to, "cmd=get ") == 0, 2, client_open, err,
					  sizeof err);
			unsetenv("WEFT_INIT_TIMEOUT");
			fake_forget();
			/* NOENT for a get is an answer: the secret is then missing. */
			if (rc <= 100 || rc >= 1000 || count_lines(err) != 1)
				fprintf(stderr, "%s -> %s: rc %d: %s\n", odd_to, odd_with, rc, err);
			CHECK(rc > 100 && rc < 1000);
			CHECK_EQ(count_lines(err), 1);
		}
	}
}

static void servers_that_leave(void)
{
	/* init, get_maxes, get_my_kvsname, get_appnum, get_universe_size, put, barrier_in */
	for (int n = 1; n < 7; n++) {
		struct fake f = {.close_after = n};
		int rc = fake_run(&f, 0, 2, client_open, err, sizeof err);
		CHECK(rc > 100 && rc < 1000);
		CHECK_EQ(count_lines(err), 1);
		fake_forget();
	}
}

static bool silent(int fd, const char *line)
{
	(void)fd;
	return strncmp(line, "cmd=get_appnum", 14) == 0;
}

/* Another rank comes to MPI_Init later than the setting init_timeout. */
static bool late_barrier(int fd, const char *line)
{
	(void)fd;
	if (strncmp(line, "cmd=barrier_in", 14) == 0)
		usleep(1300000);
	return false;
}

static bool lost_in_barrier(int fd, const char *line)
{
	if (strncmp(line, "cmd=barrier_in", 14) != 0)
		return false;
	usleep(1300000);
	shutdown(fd, SHUT_RDWR);
	return true;
}

static void servers_that_are_silent(void)
{
	struct fake f = {.odd = silent};
	setenv("WEFT_INIT_TIMEOUT", "1", 1);
	CHECK_EQ(fake_run(&f, 0, 2, client_open, err, sizeof err), 100 - WEFT_ERR_TIMEOUT);
	CHECK(strstr(err, "get_appnum") && strstr(err, "init_timeout"));
	CHECK_EQ(count_lines(err), 1);
	fake_forget();
	/* Ranks that are late are waited for, as long as the launcher is there; after that time with one line. */
	f.odd = late_barrier;
	setenv("WEFT_INIT_TIMEOUT", "20", 1);
	CHECK_EQ(fake_run(&f, 0, 2, client_open, err, sizeof err), 0);
	CHECK_EQ(count_lines(err), 0);
	fake_forget();
	setenv("WEFT_INIT_TIMEOUT", "1", 1);
	CHECK_EQ(fake_run(&f, 0, 2, client_open, err, sizeof err), 0);
	CHECK(strstr(err, "have not called MPI_Init for 1 s"));
	CHECK_EQ(count_lines(err), 1);
	fake_forget();
	f.odd = lost_in_barrier;
	CHECK(fake_run(&f, 0, 2, client_open, err, sizeof err) > 100);
	CHECK(strstr(err, "closed its channel"));
	unsetenv("WEFT_INIT_TIMEOUT");
	fake_forget();
}

/* --- weft's own launcher: the secret over a socket, many values in one answer --- */

static struct weft_boot_handover good = {.magic = "weftjob", .secret = {1, 2, 3}, .jobid = "id-1"};

static int client_wefts(void)
{
	char got[16];
	int rc = client_open();
	if (rc)
		return rc;
	if (strcmp(info->jobid, "id-1") != 0 || info->secret[2] != 3 || info->secret_by_kvs ||
	    strcmp(info->launcher, "weft") != 0)
		return 1;
	if (weft_boot_fence())
		return 2;
	weft_err e = weft_boot_get(0, "k", got, sizeof got);
	weft_boot_close();
	return e ? 100 - (int)e : strcmp(got, "v") ? 3 : 0;
}

static void hands_over(void)
{
	struct fake f = {.handover = &good, .handover_len = sizeof good};
	good.magic[7] = '1';
	fake_put("w1.0.0", "1.k,v,");
	/* This server does not know weft_batch: each value is asked for by itself. */
	odd_to = "cmd=weft_batch";
	odd_with = "cmd=weft_batch_result rc=-1 msg=unknown_command\n";
	odd_len = strlen(odd_with);
	f.odd = odd_answer;
	CHECK_EQ(fake_run(&f, 1, 2, client_wefts, err, sizeof err), 0);
	for (size_t n = 0; n < sizeof good; n += 13) { /* cut short */
		f.handover_len = n;
		CHECK_EQ(fake_run(&f, 1, 2, client_wefts, err, sizeof err), 100 - WEFT_ERR_PROTO);
		CHECK(strstr(err, "WEFT_BOOT_FD") && count_lines(err) == 1);
	}
	f.handover_len = sizeof good;
	for (int i = 0; i < 3; i++) { /* other magic, name with a slash, name without end */
		struct weft_boot_handover bad = good;
		f.handover = &bad;
		if (i == 0)
			bad.magic[0] = 'W';
		else if (i == 1)
			memcpy(bad.jobid, "../x", 5);
		else
			memset(bad.jobid, 'a', sizeof bad.jobid);
		CHECK_EQ(fake_run(&f, 1, 2, client_wefts, err, sizeof err), 100 - WEFT_ERR_PROTO);
	}
	fake_forget();
}

static void batches(void)
{
	static const struct {
		const char *answer;
		int rc;
	} cases[] = {
		{"rc=0 next=2 value=1.k,v,;;", 0},
		{"rc=0 next=1 value=1.k,v,;", 0},
		{"rc=0 next=99 value=1.k,v,;1.k,w,;", 0},
		{"rc=0 next=2 value=;;", 100 - WEFT_ERR_NOENT},
		{"rc=0 next=2 value=1.k,v,;", 100 - WEFT_ERR_PROTO},
		{"rc=0 next=2 value=1.k,v;;", 100 - WEFT_ERR_PROTO},
		{"rc=0 next=2 value=x;;", 100 - WEFT_ERR_PROTO},
		{"rc=0 next=2 value=", 100 - WEFT_ERR_PROTO},
		{"rc=0 next=0 value=1.k,v,;", 100 - WEFT_ERR_PROTO},
		{"rc=0 next=-1 value=1.k,v,;", 100 - WEFT_ERR_PROTO},
		{"rc=0 value=1.k,v,;", 100 - WEFT_ERR_PROTO},
		{"rc=x", 100 - WEFT_ERR_PROTO},
		{"rc=0 next=2 value=2.k,v,;;", 100 - WEFT_ERR_PROTO},
	};
	struct fake f = {.handover = &good, .handover_len = sizeof good, .odd = odd_answer};
	for (size_t i = 0; i < weft_countof(cases); i++) {
		char text[128];
		snprintf(text, sizeof text, "cmd=weft_batch_result %s\n", cases[i].answer);
		odd_to = "cmd=weft_batch";
		odd_with = text;
		odd_len = strlen(text);
		int rc = fake_run(&f, 1, 2, client_wefts, err, sizeof err);
		if (rc != cases[i].rc)
			fprintf(stderr, "%s: %s", cases[i].answer, err);
		CHECK_EQ(rc, cases[i].rc);
		CHECK_EQ(count_lines(err), rc != 0 && rc != 100 - WEFT_ERR_NOENT);
	}
}

/* Random bytes as answers, many times: no crash. */
static unsigned long long seed;
static bool random_answer(int fd, const char *line)
{
	static const char *const words[] = {
		"cmd=",  "rc=0",        "value=", " ", "\n", "get_result",  "barrier_out",
		"maxes", "vallen_max=", "1.",     ",", "%",  "99999999999", "response_to_init",
		"=",     "kvsname="};
	static uint64_t state;
	char text[512];
	size_t n = 0;
	if (!state)
		state = seed;
	(void)line;
	while (n < sizeof text - 40) {
		uint64_t r = weft_rand_next(&state);
		if (r % 4 == 0) {
			text[n++] = (char)(r >> 8);
		} else {
			const char *w = words[(r >> 8) % weft_countof(words)];
			memcpy(text + n, w, strlen(w));
			n += strlen(w);
		}
	}
	text[n++] = '\n';
	(void)!write(fd, text, n);
	return weft_rand_next(&state) % 8 != 0;
}

static void random_answers(void)
{
	struct fake f = {.odd = random_answer, .handover_len = sizeof good};
	setenv("WEFT_INIT_TIMEOUT", "1", 1);
	for (int i = 0; i < 150; i++) {
		f.handover = i % 4 < 2 ? &good : NULL;
		int rc = fake_run(&f, i % 2, 2, f.handover ? client_wefts : client_open, err,
				  sizeof err);
		CHECK(rc < 1000);
		fake_forget();
	}
	unsetenv("WEFT_INIT_TIMEOUT");
}

int main(int argc, char **argv)
{
	signal(SIGPIPE, SIG_IGN);
	seed = test_seed(argc, argv);
	plain_servers();
	damaged_values();
	wrong_answers();
	servers_that_leave();
	servers_that_are_silent();
	hands_over();
	batches();
	random_answers();
	return 0;
}
