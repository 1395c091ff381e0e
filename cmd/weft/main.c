/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * main.c - the command `weft`: finds out what is asked for and hands it on.
 *
 * Exit codes: 0; 1 it did not work; 2 it was not understood.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "command.h"

static const char usage[] =
	"usage: weft COMMAND [ARGUMENT...]\n"
	"\n"
	"  weft info              version, drivers, settings, topology with queues\n"
	"  weft info --mpi        which MPI functions work and which do not\n"
	"  weft info --settings   the settings alone\n"
	"  weft info --mechanisms what weft adapts by itself, each with a switch (WEFT_WITHOUT)\n"
	"  weft info --live PID   what a running process counts, what its engine's threads cost,\n"
	"                         and its user-level threads: --threads N of them one by one\n"
	"  weft doctor [JOB]      which thread of which rank waits for what, and a deadlock; JOB: "
	"its\n"
	"                         name, or the PID of mpiexec or of a rank\n"
	"  weft sample            measures this host's switch points; later starts use them;\n"
	"                         --hosts A,B: those between two\n"
	"  weft trace FILE...     what happened when, from files written with WEFT_TRACE=FILE, or "
	"a\n"
	"                         folder of them, or a process that writes one: a summary; -o\n"
	"                         FILE.json for Perfetto; --svg FILE.svg a timeline\n"
	"  weft bench list        what can be measured\n"
	"  weft bench BENCH ...   measures; see weft bench --help\n"
	"  weft --version\n"
	"\n"
	"Programs are compiled by mpicc and mpicxx, and started by mpiexec.\n";

int weft_cmd_misuse(const char *text, const char *word)
{
	fprintf(stderr, "weft: %s%s%s%s; see weft --help\n", text, word ? " '" : "",
		word ? word : "", word ? "'" : "");
	return 2;
}

bool weft_cmd_prefix(char *buf, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", buf, size - 1);
	if (n <= 0)
		return false;
	buf[n] = 0;
	/* PREFIX/bin/weft: two names less. */
	for (int i = 0; i < 2; i++) {
		char *slash = strrchr(buf, '/');
		if (!slash)
			return false;
		*slash = 0;
	}
	return true;
}

/* Becomes the script libexec/weft/NAME.py; argv[-1] is NAME. */
static int become(const char *name, char **argv)
{
	char prefix[4096], script[4200];
	if (!weft_cmd_prefix(prefix, sizeof(prefix))) {
		fprintf(stderr, "weft: cannot find out where this program lies (no /proc?)\n");
		return 1;
	}
	snprintf(script, sizeof(script), "%s/%s/weft/%s.py", prefix, WEFT_LIBEXECDIR, name);
	argv[-1] = script;
	execv(script, argv - 1);
	fprintf(stderr, "weft: %s: %s\n", script,
		errno == ENOENT ? "not there, or no python3" : strerror(errno));
	return 1;
}

static int bench(int argc, char **argv)
{
	if (argc < 1)
		return weft_cmd_misuse("bench: which one? `weft bench list` names them", NULL);
	return become("bench", argv);
}

static int trace(int argc, char **argv)
{
	if (argc < 1)
		return weft_cmd_misuse("trace: of which files? see weft trace --help", NULL);
	return become("trace", argv);
}

static bool asks_help(const char *word)
{
	return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		fputs(usage, stderr);
		return 2;
	}
	const char *word = argv[1];
	/* `weft bench` and `weft trace` have a help of their own. */
	if (asks_help(word) || strcmp(word, "help") == 0 ||
	    (argc == 3 && asks_help(argv[2]) && strcmp(word, "bench") != 0 &&
	     strcmp(word, "trace") != 0)) {
		fputs(usage, stdout);
		return 0;
	}
	if (strcmp(word, "--version") == 0 || strcmp(word, "version") == 0) {
		printf("weft %s, MPI 5.0 standard ABI\n", WEFT_VERSION);
		return 0;
	}
	if (strcmp(word, "info") == 0)
		return weft_cmd_info(argc - 2, argv + 2);
	if (strcmp(word, "doctor") == 0)
		return weft_cmd_doctor(argc - 2, argv + 2);
	if (strcmp(word, "sample") == 0)
		return weft_cmd_sample(argc - 2, argv + 2);
	if (strcmp(word, "bench") == 0)
		return bench(argc - 2, argv + 2);
	if (strcmp(word, "trace") == 0)
		return trace(argc - 2, argv + 2);
	return weft_cmd_misuse("no command", word);
}
