/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmix.c - PMIx: libpmix.so.2, loaded when a PMIx launcher has started this process.
 *
 * Lazy     a rank puts its values and commits them; a get of another rank's value waits until it is
 *          there, so no rank waits for all others.  The server asks the other host's server.
 * Events   an end of a rank that the launcher reports is passed on as a death report (boot.h).  When the
 *          launcher itself is gone, nothing would end this process any more: it ends, with one line.
 * Threads  callbacks come from the library's own thread, which must never be made to wait.
 */
#include "boot/flush.h"
#include "boot/pmix_get.h"
#include "boot/psets.h"
#include "boot/service.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/assert.h"
#include "base/log.h"
#include "base/settings.h"

#define LIBRARY "libpmix.so.2"
#define RETRY_MS_MIN 1
#define RETRY_MS_MAX 50
#define RANKS_MOST (1 << 24)

static struct weft_pmix_lib pmix;
static struct weft_pmix_proc me;
static int job_size;
static _Atomic bool x_parted; /* from the launcher: left in order, or lost */
static int *local;            /* the ranks of this node, ascending; NULL: unknown */
static int n_local;

/* --- the library --- */

static weft_err load_library(void)
{
	static const struct {
		const char *name;
		size_t at;
	} wanted[] = {
#define WANT(f) {#f, offsetof(struct weft_pmix_lib, f)}
		WANT(PMIx_Init),         WANT(PMIx_Finalize),   WANT(PMIx_Abort),
		WANT(PMIx_Put),          WANT(PMIx_Commit),     WANT(PMIx_Fence_nb),
		WANT(PMIx_Get_nb),       WANT(PMIx_Query_info), WANT(PMIx_Register_event_handler),
		WANT(PMIx_Error_string),
#undef WANT
	};
	/* Its thread outlives weft_boot_close(): the library is never unloaded. */
	void *lib = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	if (!lib) {
		weft_error("a PMIx launcher (Open MPI, PRRTE, srun --mpi=pmix) has started this "
			   "process, but %s does not load (%s); install it (Debian: libpmix2) or "
			   "name its folder in LD_LIBRARY_PATH",
			   LIBRARY, dlerror());
		return WEFT_ERR_UNSUPPORTED;
	}
	for (size_t i = 0; i < weft_countof(wanted); i++) {
		void *f = dlsym(lib, wanted[i].name);
		if (!f) {
			weft_error("%s has no %s; weft needs version 3 or later", LIBRARY,
				   wanted[i].name);
			return WEFT_ERR_UNSUPPORTED;
		}
		memcpy((char *)&pmix + wanted[i].at, &f, sizeof f);
	}
	return WEFT_OK;
}

static weft_err log_failure(const char *what, int status)
{
	weft_error("PMIx: %s: %s", what, pmix.PMIx_Error_string(status));
	return WEFT_ERR_PEER;
}

static struct weft_pmix_proc proc_of(uint32_t rank)
{
	struct weft_pmix_proc p = me;
	p.rank = rank;
	return p;
}

static void no_answer(const char *what, const char *why)
{
	weft_error(
		"no answer from the PMIx launcher to %s within %lld s (setting init_timeout): %s",
		what, (long long)weft_setting_int(WEFT_SET_INIT_TIMEOUT), why);
}

/* --- values --- */

static weft_err pmix_put(const char *key, const char *text)
{
	struct weft_pmix_value v = {.type = WEFT_PMIX_STRING};
	v.data.string = (char *)(uintptr_t)text; /* copied by the library */
	int status = pmix.PMIx_Put(WEFT_PMIX_GLOBAL, key, &v);
	return status ? log_failure("put", status) : WEFT_OK;
}

static weft_err pmix_commit(void)
{
	int status = pmix.PMIx_Commit();
	return status ? log_failure("commit", status) : WEFT_OK;
}

static weft_err pmix_fence(void)
{
	struct weft_pmix_request *r = weft_boot_pmix_fence_begin();
	weft_err err = WEFT_OK;
	if (!r)
		return WEFT_ERR_NOMEM;
	if (!weft_boot_pmix_wait(r, weft_boot_pmix_deadline())) {
		no_answer("fence", "is a rank missing or stopped?");
		err = WEFT_ERR_TIMEOUT;
	} else if (weft_boot_pmix_status(r) != WEFT_PMIX_SUCCESS) {
		err = log_failure("fence", weft_boot_pmix_status(r));
	}
	weft_boot_pmix_drop(r);
	return err;
}

/* --- what the launcher knows about the job --- */

/* The answer to a question about the job or this rank; NULL: there is none. */
static struct weft_pmix_request *job_fact(uint32_t rank, const char *key)
{
	struct weft_pmix_proc about = proc_of(rank);
	struct weft_pmix_request *r = weft_boot_pmix_ask(&about, key, WEFT_PMIX_KNOWN);
	if (!r)
		return NULL;
	if (!weft_boot_pmix_wait(r, weft_boot_pmix_deadline()))
		no_answer(key, "is its server stopped?");
	else if (weft_boot_pmix_status(r) == WEFT_PMIX_SUCCESS)
		return r;
	weft_boot_pmix_drop(r);
	return NULL;
}

static weft_err job_number(uint32_t rank, const char *key, int lo, int hi, int *out_p)
{
	uint32_t n = 0;
	struct weft_pmix_request *r = job_fact(rank, key);
	if (!r)
		return WEFT_ERR_NOENT;
	bool good = weft_boot_pmix_number(r, &n) && n >= (uint32_t)lo && n <= (uint32_t)hi;
	weft_boot_pmix_drop(r);
	if (!good)
		return WEFT_ERR_PROTO;
	*out_p = (int)n;
	return WEFT_OK;
}

/* "0,1,5": the ranks of this node, ascending.  Anything else counts as unknown. */
static weft_err read_locals(const char *text)
{
	size_t most = 1;
	for (const char *c = text; *c; c++)
		most += *c == ',';
	int *ranks = malloc(most * sizeof *ranks);
	if (!ranks)
		return WEFT_ERR_NOMEM;
	int n = 0;
	bool good = true, mine = false;
	while (good && *text) { /* ends: each turn moves on or finds fault */
		char *end;
		errno = 0;
		long r = strtol(text, &end, 10);
		good = end != text && !errno && (!*end || *end == ',') && r < job_size &&
		       r >= (n ? ranks[n - 1] + 1 : 0);
		if (!good)
			break;
		ranks[n++] = (int)r;
		mine = mine || r == (long)me.rank;
		text = end + (*end == ',');
	}
	if (!good || !mine) {
		free(ranks);
		return WEFT_ERR_PROTO;
	}
	local = ranks;
	n_local = n;
	return WEFT_OK;
}

static void learn_locals(void)
{
	struct weft_pmix_request *r = job_fact(WEFT_PMIX_RANK_WILDCARD, "pmix.lpeers");
	if (!r)
		return;
	if (!weft_boot_pmix_text(r) || read_locals(weft_boot_pmix_text(r)))
		weft_info("PMIx: the list of this node's ranks makes no sense");
	weft_boot_pmix_drop(r);
}

static int local_ranks(const int **ranks_p)
{
	*ranks_p = local;
	return n_local;
}

/* --- death reports --- */

static const struct weft_pmix_proc *affected_process(const struct weft_pmix_proc *source,
						     const struct weft_pmix_info *info, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(info[i].key, "pmix.evproc") == 0 && info[i].value.type == WEFT_PMIX_PROC)
			return info[i].value.data.proc;
	return source;
}

static bool is_of_this_job(const struct weft_pmix_proc *p)
{
	return strncmp(p->nspace, me.nspace, sizeof me.nspace) == 0 && p->rank < (uint32_t)job_size;
}

/* Killed, or its host: the line for that is ours, since no process is left to ask for the end. */
static void end_without_launcher(void)
{
	/* Relaxed: one of the two, leaving in order and this, is first; which one does not matter. */
	if (atomic_exchange_explicit(&x_parted, true, memory_order_relaxed))
		return;
	weft_boot_flush(stdout);
	weft_error("the PMIx launcher is gone without having ended this rank: it ends");
	weft_boot_flush(stderr);
	_exit(1);
}

static void on_event(size_t ref, int status, const struct weft_pmix_proc *source,
		     struct weft_pmix_info *info, size_t n, struct weft_pmix_info *results,
		     size_t n_results, weft_pmix_handled_fn handled, void *chain)
{
	const struct weft_pmix_proc *p = affected_process(source, info, n);
	char why[128];
	if (status == WEFT_PMIX_ERR_LOST_CONNECTION ||
	    status == WEFT_PMIX_ERR_LOST_CONNECTION_TO_SERVER) {
		/* A server may pass on that it has lost another rank, which is none of these ends. */
		if (source && !is_of_this_job(source))
			end_without_launcher();
	} else if (p && is_of_this_job(p) && p->rank != me.rank) {
		snprintf(why, sizeof why, "the launcher reports its end: %s",
			 pmix.PMIx_Error_string(status));
		weft_boot_died((int)p->rank, why);
	}
	if (handled)
		handled(WEFT_PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, chain);
}

static void on_registered(int status, size_t ref, void *arg)
{
	if (status != WEFT_PMIX_SUCCESS)
		weft_info("PMIx: this launcher reports no deaths: %s",
			  pmix.PMIx_Error_string(status));
}

static void listen_for_ends(void)
{
	static int codes[] = {
		WEFT_PMIX_ERR_PROC_ABORTED,       WEFT_PMIX_ERR_PROC_TERM_WO_SYNC,
		WEFT_PMIX_ERR_PROC_KILLED_BY_CMD, WEFT_PMIX_ERR_PROC_ABORTED_BY_SIG,
		WEFT_PMIX_ERR_LOST_CONNECTION,    WEFT_PMIX_ERR_LOST_CONNECTION_TO_SERVER};
	pmix.PMIx_Register_event_handler(codes, weft_countof(codes), NULL, 0, on_event,
					 on_registered, NULL);
}

/* --- process sets --- */

static int compare_ints(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;
	return (x > y) - (x < y);
}

/* Sets with members of other jobs are not ours to name. */
static void add_members(const char *name, const struct weft_pmix_array *array)
{
	if (array->type != WEFT_PMIX_PROC || !array->size || array->size > (size_t)job_size)
		return;
	const struct weft_pmix_proc *proc = array->array;
	int *ranks = malloc(array->size * sizeof *ranks);
	bool ours = ranks != NULL;
	for (size_t i = 0; i < array->size && ours; i++) {
		ours = strncmp(proc[i].nspace, me.nspace, sizeof me.nspace) == 0 &&
		       proc[i].rank < (uint32_t)job_size;
		ranks[i] = (int)proc[i].rank;
	}
	if (ours) {
		qsort(ranks, array->size, sizeof *ranks, compare_ints);
		if (weft_boot_psets_add(name, ranks, (int)array->size))
			weft_info("PMIx: process set %.100s is left out", name);
	}
	free(ranks);
}

static void results_free(struct weft_pmix_info *results, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct weft_pmix_value *v = &results[i].value;
		if (v->type == WEFT_PMIX_STRING) {
			free(v->data.string);
		} else if (v->type == WEFT_PMIX_DATA_ARRAY && v->data.array) {
			if (v->data.array->type == WEFT_PMIX_PROC)
				free(v->data.array->array);
			free(v->data.array);
		}
	}
	free(results);
}

struct query {
	char key[32], name[WEFT_PSET_NAME_MAX]; /* name: of a set, or empty */
	struct weft_pmix_info *results;
	size_t n;
};

static int make_query(void *arg)
{
	struct query *q = arg;
	char *keys[] = {q->key, NULL};
	struct weft_pmix_info which = {.key = "pmix.pset.nm", .value.type = WEFT_PMIX_STRING};
	struct weft_pmix_query query = {
		.keys = keys, .qualifiers = q->name[0] ? &which : NULL, .nqual = q->name[0] != 0};
	which.value.data.string = q->name;
	return pmix.PMIx_Query_info(&query, 1, &q->results, &q->n);
}

static void ask_members(const char *name)
{
	struct query q = {.key = "pmix.qry.pmems"};
	snprintf(q.name, sizeof q.name, "%s", name);
	if (weft_boot_pmix_call(make_query, &q, sizeof q) != WEFT_PMIX_SUCCESS)
		return;
	for (size_t i = 0; i < q.n; i++) {
		const struct weft_pmix_value *v = &q.results[i].value;
		if (v->type == WEFT_PMIX_DATA_ARRAY && v->data.array)
			add_members(name, v->data.array);
	}
	results_free(q.results, q.n);
}

static void each_name(const char *text)
{
	char name[WEFT_PSET_NAME_MAX];
	while (*text) { /* ends: each turn moves on */
		size_t n = strcspn(text, ",");
		if (n && n < sizeof name) {
			memcpy(name, text, n);
			name[n] = 0;
			ask_members(name);
		}
		text += n + (text[n] == ',');
	}
}

/* Launchers without process sets answer with an error: then there are none. */
static weft_err read_psets(void)
{
	struct query q = {.key = "pmix.qry.psets"};
	int status = weft_boot_pmix_call(make_query, &q, sizeof q);
	if (status != WEFT_PMIX_SUCCESS) {
		weft_info("PMIx: this launcher names no process sets: %s",
			  pmix.PMIx_Error_string(status));
		return WEFT_OK;
	}
	for (size_t i = 0; i < q.n; i++)
		if (q.results[i].value.type == WEFT_PMIX_STRING && q.results[i].value.data.string)
			each_name(q.results[i].value.data.string);
	results_free(q.results, q.n);
	return WEFT_OK;
}

/* --- life --- */

static const char *launcher_name(void)
{
	if (getenv("SLURM_PROCID") && getenv("SLURM_STEP_ID") && !getenv("OMPI_COMM_WORLD_SIZE"))
		return "slurm, by PMIx";
	return getenv("OMPI_COMM_WORLD_SIZE") ? "Open MPI or PRRTE, by PMIx" : "PMIx";
}

static int init_on_thread(void *proc)
{
	return pmix.PMIx_Init(proc, NULL, 0);
}

static weft_err open_pmix(const struct weft_boot_env *env, struct weft_boot_info *info)
{
	info->launcher = launcher_name();
	info->protection = "went through the PMIx servers: between hosts as plain text, as well "
			   "protected as the launcher's own connections";
	weft_err err = load_library();
	if (err)
		return err;
	/* Relaxed: no event can come yet. */
	atomic_store_explicit(&x_parted, false, memory_order_relaxed);
	weft_boot_pmix_requests_open(&pmix);
	int status = weft_boot_pmix_call(init_on_thread, &me, sizeof me);
	if (status == WEFT_PMIX_ERR_TIMEOUT) {
		no_answer("the greeting", "is its server stopped?");
		return WEFT_ERR_TIMEOUT;
	}
	if (status) {
		weft_error(
			"the PMIx launcher does not answer (%s): its server is gone, or the "
			"PMIX_ variables belong to another job; start the program anew, or unset "
			"PMIX_NAMESPACE to run it alone",
			pmix.PMIx_Error_string(status));
		return WEFT_ERR_PEER;
	}
	if (job_number(WEFT_PMIX_RANK_WILDCARD, "pmix.job.size", 1, RANKS_MOST, &job_size) ||
	    me.rank >= (uint32_t)job_size) {
		weft_error("PMIx: the launcher does not say how many ranks the job has");
		pmix.PMIx_Finalize(NULL, 0);
		return WEFT_ERR_PROTO;
	}
	info->rank = (int)me.rank;
	info->size = job_size;
	if (job_number(me.rank, "pmix.appnum", 0, INT32_MAX, &info->appnum))
		info->appnum = 0;
	if (job_number(WEFT_PMIX_RANK_WILDCARD, "pmix.univ.size", 0, INT32_MAX, &info->universe))
		info->universe = 0;
	weft_boot_pmix_gets_open(&pmix, &me);
	learn_locals();
	listen_for_ends();
	return WEFT_OK;
}

static void close_pmix(void)
{
	/* Relaxed: see end_without_launcher(). */
	atomic_store_explicit(&x_parted, true, memory_order_relaxed);
	int status = pmix.PMIx_Finalize(NULL, 0);
	if (status)
		weft_debug("no orderly end with the PMIx launcher: %s",
			   pmix.PMIx_Error_string(status));
	weft_boot_pmix_gets_close();
	free(local);
	local = NULL;
	n_local = 0;
}

struct end {
	int code;
	char why[512];
};

static void *tell_end(void *arg)
{
	struct end *e = arg;
	pmix.PMIx_Abort(e->code, e->why, NULL, 0);
	return NULL;
}

/* The library waits for its server, and the caller may be the library's own thread. */
static bool abort_pmix(int code, bool bereft, const char *why)
{
	static struct end e;
	pthread_t thread;
	/* Relaxed: this thread has set it, or there is a launcher to ask. */
	if (bereft || atomic_load_explicit(&x_parted, memory_order_relaxed))
		return false;
	e.code = code;
	snprintf(e.why, sizeof e.why, "%s", why ? why : "");
	return pthread_create(&thread, NULL, tell_end, &e) == 0;
}

static size_t no_limit(void)
{
	return SIZE_MAX;
}

const struct weft_boot_service weft_boot_pmix = {
	.open = open_pmix,
	.close = close_pmix,
	.value_max = no_limit,
	.fence = pmix_fence,
	.lazy = &(const struct weft_boot_lazy){.put = pmix_put,
					       .commit = pmix_commit,
					       .get = weft_boot_pmix_get,
					       .try_get = weft_boot_pmix_try_get,
					       .locals = local_ranks},
	.psets = read_psets,
	.abort = abort_pmix,
};
