/* SPDX-License-Identifier: BSD-3-Clause */
/* outfile.c - names and opens the files, each once. */
#include "outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "say.h"

static struct file {
	char *name;
	int fd;
} * files;
static int file_count;

static char *expand_pattern(const char *pattern, int rank, const char *host)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	if (!out)
		return NULL;
	for (const char *p = pattern; *p; p++) {
		if (*p != '%')
			putc(*p, out);
		else if (*++p == 'r')
			fprintf(out, "%d", rank);
		else if (*p == 'h')
			fputs(host, out);
		else
			putc('%', out);
	}
	return fclose(out) ? NULL : text;
}

/* DIR/1/rank.03/stdout: the number of the job and digits as Open MPI's users find them. */
static char *below_folder(const struct plan *plan, int rank, enum outfile_end end)
{
	char *text;
	int digits = snprintf(NULL, 0, "%d", plan->size - 1);
	int n = asprintf(&text, "%s/1/rank.%0*d/%s", plan->out_folder, digits, rank,
			 end == OUTFILE_OUT ? "stdout" : "stderr");
	return n < 0 ? NULL : text;
}

static void make_folders(char *name)
{
	for (char *p = strchr(name + 1, '/'); p; p = strchr(p + 1, '/')) {
		*p = 0;
		(void)mkdir(name, 0777); /* what is wrong, open says */
		*p = '/';
	}
}

static int open_once(char *name, bool folders)
{
	for (int i = 0; i < file_count; i++)
		if (strcmp(files[i].name, name) == 0)
			return files[i].fd;
	if (folders)
		make_folders(name);
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0666);
	if (fd < 0) {
		say("cannot write to %s: %s", name, strerror(errno));
		return -2;
	}
	files = plan_grow(files, file_count, sizeof *files);
	files[file_count++] = (struct file){plan_copy(name, strlen(name)), fd};
	return fd;
}

int outfile_open(const struct plan *plan, int rank, const char *host, enum outfile_end end)
{
	const char *pattern = end == OUTFILE_OUT ? plan->out_pattern : plan->err_pattern;
	if (!pattern && !plan->out_folder)
		return -1;
	char *name = pattern ? expand_pattern(pattern, rank, host) : below_folder(plan, rank, end);
	if (!name) {
		say("no memory");
		return -2;
	}
	int fd = open_once(name, !pattern);
	free(name);
	return fd;
}

bool outfile_copies(const struct plan *plan, enum outfile_end end)
{
	const char *pattern = end == OUTFILE_OUT ? plan->out_pattern : plan->err_pattern;
	return !pattern && !plan->out_folder_only;
}

bool outfile_wanted(const struct plan *plan)
{
	return plan->out_pattern || plan->err_pattern || plan->out_folder;
}
