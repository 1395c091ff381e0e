/* SPDX-License-Identifier: BSD-3-Clause */
/* check.c - the setting WEFT_CHECK, the line of a report, and where in the program a call stands. */
#include "mpi/aid/check.h"

#include <dlfcn.h>
#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/log.h"
#include "base/settings.h"
#include "boot/boot.h"
#include "mpi/entry.h"
#include "mpi/type/type.h"
#include "wait/stack.h"

bool weft_mpi_checking;
_Atomic bool weft_mpi_x_hooked;
static bool ends_job;

void weft_mpi_check_init(void)
{
	const char *how = weft_setting_str(WEFT_SET_CHECK);
	weft_mpi_checking = strcmp(how, "0") != 0;
	ends_job = strcmp(how, "abort") == 0;
	if (weft_mpi_checking) /* the fast path asks this table first */
		memset(weft_mpi_type_bytes, 0, sizeof weft_mpi_type_bytes);
	weft_mpi_check_pair_init();
	weft_mpi_hook();
}

void weft_mpi_hook(void)
{
	/* Relaxed: MPI_Init is over before other threads call; what a tool begins to listen to
	 * later may miss a call that is about to begin. */
	atomic_store_explicit(&weft_mpi_x_hooked, weft_mpi_checking || weft_trace_on(),
			      memory_order_relaxed);
}

void weft_mpi_check_finalize(void)
{
	if (!weft_mpi_checking)
		return;
	weft_mpi_check_coll_fini();
	weft_mpi_check_lost("MPI_Finalize", MPI_COMM_SELF);
	weft_mpi_check_lost("MPI_Finalize", MPI_COMM_WORLD);
	weft_mpi_check_leaks();
}

void weft_mpi_check_report(const char *fmt, ...)
{
	char line[700];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	if (ends_job)
		weft_boot_abort(1, line);
	weft_error("check: %s", line);
}

/* ---- places ----------------------------------------------------------------------------------- */

struct place {
	char module[300];
	uint64_t offset;
	char *text;
	size_t size;
};

/* addr2line is asked when there is something to report, not before. */
static void ask_addr2line(void *arg)
{
	struct place *p = arg;
	char command[400], line[300];
	p->text[0] = 0;
	if (strchr(p->module, '\''))
		return;
	snprintf(command, sizeof command, "addr2line -e '%s' 0x%llx 2>/dev/null", p->module,
		 (unsigned long long)p->offset);
	FILE *f = popen(command, "r");
	if (!f)
		return;
	if (fgets(line, sizeof line, f) && line[0] != '?') {
		line[strcspn(line, "\n ")] = 0;
		const char *file = strrchr(line, '/');
		if (!strstr(line, ":?") && !strstr(line, ":0"))
			snprintf(p->text, p->size, " at %s", file ? file + 1 : line);
	}
	(void)pclose(f);
}

static void find_place(struct place *p)
{
	if (weft_wait_stack_is_small())
		weft_wait_deep_stack(ask_addr2line, p);
	else
		ask_addr2line(p);
}

/* The file that holds an address, and where in it; false: none, or this library itself. */
static bool locate_site(const void *site, struct place *p)
{
	Dl_info at, ours;
	if (!site || !dladdr(site, &at) || !at.dli_fname || !dladdr(&weft_mpi_checking, &ours) ||
	    at.dli_fbase == ours.dli_fbase)
		return false;
	const ElfW(Ehdr) *head = at.dli_fbase;
	/* The call itself, not what follows it. */
	p->offset = (uint64_t)(uintptr_t)site - 1;
	if (head->e_type == ET_DYN)
		p->offset -= (uint64_t)(uintptr_t)at.dli_fbase;
	snprintf(p->module, sizeof p->module, "%s", at.dli_fname);
	return true;
}

void weft_mpi_check_place(const void *site, char *text, size_t size)
{
	struct place p = {.text = text, .size = size};
	text[0] = 0;
	if (locate_site(site, &p))
		find_place(&p);
}

static const char *program_path(void)
{
	return "/proc/self/exe";
}

uint64_t weft_mpi_check_offset(const void *site)
{
	struct place p;
	char path[300];
	ssize_t n = readlink(program_path(), path, sizeof path - 1);
	if (n <= 0 || !locate_site(site, &p))
		return 0;
	path[n] = 0;
	const char *a = strrchr(path, '/'), *b = strrchr(p.module, '/');
	return strcmp(a ? a : path, b ? b : p.module) == 0 ? p.offset : 0;
}

void weft_mpi_check_place_of(uint64_t offset, char *text, size_t size)
{
	struct place p = {.offset = offset, .text = text, .size = size};
	char path[300];
	ssize_t n = offset ? readlink(program_path(), path, sizeof path - 1) : -1;
	text[0] = 0;
	if (n <= 0)
		return;
	path[n] = 0;
	memcpy(p.module, path, (size_t)n + 1);
	find_place(&p);
}

/* ---- names and signatures --------------------------------------------------------------------- */

const char *weft_mpi_check_comm(MPI_Comm comm)
{
	const struct weft_mpi_comm *c = weft_mpi_comm_of(comm);
	return c && c->name[0] ? c->name : "an unnamed communicator";
}

struct signing {
	uint64_t hash;
	size_t run;
	enum weft_basic basic;
};

static void sign_run(struct signing *s)
{
	s->hash = (s->hash ^ s->run ^ (uint64_t)s->basic << 56) * 0x9e3779b97f4a7c15u;
	s->hash ^= s->hash >> 29;
}

/* Equal elements of neighbouring parts are one run. */
static void sign_part(void *arg, enum weft_basic basic, size_t n)
{
	struct signing *s = arg;
	if (s->run && s->basic == basic) {
		s->run += n;
		return;
	}
	if (s->run)
		sign_run(s);
	s->basic = basic;
	s->run = n;
}

uint64_t weft_mpi_check_signature(MPI_Count count, MPI_Datatype type, uint64_t *bytes_p)
{
	const struct weft_mpi_type *t = weft_mpi_type_of(type);
	return weft_mpi_check_layout_signature(count, t ? t->layout : NULL, bytes_p);
}

uint64_t weft_mpi_check_layout_signature(MPI_Count count, const struct weft_type *t,
					 uint64_t *bytes_p)
{
	struct signing s = {.hash = 1};
	*bytes_p = 0;
	if (!t || count <= 0 || !t->size) /* no elements, whatever the datatype */
		return 0;
	*bytes_p = (uint64_t)count * t->size;
	if (t->sig->kind == WEFT_SIG_BASIC) {
		sign_part(&s, (enum weft_basic)t->sig->basic, t->sig->n * (size_t)count);
	} else {
		for (MPI_Count i = 0; i < count; i++)
			weft_data_sig_walk(t->sig, sign_part, &s);
	}
	sign_run(&s);
	return s.hash;
}
