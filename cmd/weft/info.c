/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * info.c - weft info: what is here, how it is set, what works.
 *
 * Settings come from the one table; the list of MPI functions from the library itself, which is
 * opened as programs would open it.
 */
#include <ctype.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include "base/mechanism.h"
#include "base/settings.h"
#include "command.h"
#include "mpi/functions.h"
#include "rt/rt.h"

/* The library beside this program; NULL after a line about it. */
static void *open_library(void)
{
	char prefix[4096], path[4200];
	if (!weft_cmd_prefix(prefix, sizeof(prefix)))
		prefix[0] = 0;
	snprintf(path, sizeof(path), "%s/%s/libmpi_abi.so.1", prefix, WEFT_LIBDIR);
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		/* The build tree calls its folder lib, whatever the installation will. */
		snprintf(path, sizeof(path), "%s/lib/libmpi_abi.so.1", prefix);
		library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	}
	if (!library)
		fprintf(stderr, "weft: cannot open the library: %s\n", dlerror());
	return library;
}

/* Where mpifort keeps the modules that it compiles; it knows itself. */
static void info_fortran(void)
{
	char prefix[4096], command[4200], line[4096];
	if (!weft_cmd_prefix(prefix, sizeof(prefix)) || strchr(prefix, '\''))
		return;
	snprintf(command, sizeof(command), "'%s/bin/mpifort' -showme:cache 2>/dev/null", prefix);
	FILE *answer = popen(command, "r");
	if (!answer)
		return;
	if (fgets(line, sizeof(line), answer) && line[0] == '/')
		printf("mpifort's modules, one folder for each compiler: %s", line);
	pclose(answer);
}

/* Which functions answer MPI_ERR_UNSUPPORTED_OPERATION. */
static int info_mpi(void)
{
	void *library = open_library();
	if (!library)
		return 1;
	const struct weft_mpi_function *f = dlsym(library, "weft_mpi_functions");
	const int *count = dlsym(library, "weft_mpi_functions_count");
	if (!f || !count) {
		fprintf(stderr, "weft: the library has no list of functions: another version?\n");
		return 1;
	}
	int missing = 0;
	for (int i = 0; i < *count; i++)
		missing += !f[i].implemented;
	printf("MPI 5.0: %d functions, %d work, %d answer MPI_ERR_UNSUPPORTED_OPERATION", *count,
	       *count - missing, missing);
	printf(" (MPI_T: MPI_T_ERR_NOT_SUPPORTED):\n");
	static const char *const title[] = {"widely used", "less used", "hardly used"};
	/* By tier, T1 to T3: how much public programs use them. */
	for (char tier = '1'; tier <= '3'; tier++) {
		int column = 0;
		for (int i = 0; i < *count; i++) {
			if (f[i].implemented || f[i].tier[1] != tier)
				continue;
			if (!column)
				printf("\n%s:", title[tier - '1']);
			int width = (int)strlen(f[i].name) + 1;
			if (!column || column + width > 96) {
				printf("\n   ");
				column = 3;
			}
			column += printf(" %s", f[i].name);
		}
		if (column)
			putchar('\n');
	}
	const char *const *ext = dlsym(library, "weft_mpi_extensions");
	if (ext)
		printf("\nbeside MPI (mpi-ext.h):\n   ");
	for (int i = 0; ext && ext[i]; i++)
		printf(" %s", ext[i]);
	if (ext)
		putchar('\n');
	return 0;
}

static int info_settings(void)
{
	weft_err err = weft_settings_load();
	weft_settings_print(stdout);
	return err ? 1 : 0;
}

static int info_mechanisms(void)
{
	weft_err err = weft_settings_load();
	if (!err)
		err = weft_mechanisms_init();
	weft_mechanisms_print(stdout);
	return err ? 1 : 0;
}

/* The settings for the manual pages; doc/man holds what stands before them. */
static int info_roff(void)
{
	for (int i = 0; i < WEFT_SETTING_COUNT; i++) {
		const struct weft_setting *s = weft_setting_info((enum weft_setting_id)i);
		printf(".TP\n.B WEFT_");
		for (const char *c = s->name; *c; c++)
			putchar(toupper((unsigned char)*c));
		printf("\n%s", s->help);
		if (s->choices)
			printf("; one of %s", s->choices);
		printf(" (default: %s)\n", *s->dflt ? s->dflt : "empty");
	}
	return 0;
}

int weft_cmd_info(int argc, char **argv)
{
	bool mpi = false, settings = false, roff = false, mechanisms = false;
	if (argc >= 1 && strcmp(argv[0], "--live") == 0)
		return weft_cmd_live(argc - 1, argv + 1);
	for (int i = 0; i < argc; i++) {
		if (strcmp(argv[i], "--mpi") == 0)
			mpi = true;
		else if (strcmp(argv[i], "--mechanisms") == 0)
			mechanisms = true;
		else if (strcmp(argv[i], "--settings") == 0)
			settings = true;
		else if (strcmp(argv[i], "--roff") == 0)
			roff = true;
		else
			return weft_cmd_misuse("info: no option", argv[i]);
	}
	if (mpi)
		return info_mpi();
	if (roff)
		return info_roff();
	if (settings)
		return info_settings();
	if (mechanisms)
		return info_mechanisms();

	/* As a program of one process, or as a rank where mpiexec starts us: what it then uses. */
	const struct weft_boot_info *job;
	weft_err err = weft_rt_start(&job);
	printf("weft %s, MPI 5.0 standard ABI\n\n", WEFT_VERSION);
	weft_rt_describe(stdout);
	if (!err)
		weft_rt_stop();
	info_fortran();
	printf("\nsettings, each the environment variable WEFT_ and its name in upper case:\n\n");
	return info_settings() || err ? 1 : 0;
}
