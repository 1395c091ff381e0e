/* SPDX-License-Identifier: BSD-3-Clause */
/* hwloc_lib.c - finds libhwloc's functions by name. */
#include "topo/hwloc_lib.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include "base/base.h"
#include "base/cancel.h"
#include "base/log.h"

/* The name carries the ABI that hwloc.h is of; the second is where the build has found it. */
static const char *const files[] = {"libhwloc.so.15", WEFT_HWLOC_FOLDER "/libhwloc.so.15"};

static const struct {
	const char *name;
	size_t at; /* in struct weft_hwloc */
} functions[] = {
#define ROW(name) {"hwloc_" #name, offsetof(struct weft_hwloc, name)},
	WEFT_HWLOC_FUNCTIONS(ROW)
#undef ROW
};

static struct weft_hwloc table;
static bool complete;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void load_table(void)
{
	void *lib = NULL;
	int was = weft_cancel_off();
	for (size_t i = 0; !lib && i < weft_countof(files); i++)
		lib = dlopen(files[i], RTLD_NOW | RTLD_LOCAL);
	if (!lib)
		weft_debug("topology: %s", dlerror());
	complete = lib;
	for (size_t i = 0; complete && i < weft_countof(functions); i++) {
		void *f = dlsym(lib, functions[i].name);
		*(void **)((char *)&table + functions[i].at) = f;
		complete = f;
	}
	weft_cancel_back(was);
}

const struct weft_hwloc *weft_hwloc(void)
{
	pthread_once(&once, load_table);
	return complete ? &table : NULL;
}
