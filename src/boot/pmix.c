/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmix.c - PMIx: libpmix.so.2, loaded when a PMIx launcher has started this process.
 *
 * Lazy     a rank puts its values and commits them; a get of another rank's value waits until it is
 *          there, so no rank waits for all others.  The server asks the other host's server.
 * Events   an end of a rank that the launcher reports is passed on as a death report (boot.h).
 * Threads  callbacks come from the library's own thread, which must never be made to wait.
 */
#include "boot/pmix_abi.h"
#include "boot/psets.h"
#include "boot/service.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
static int *local; /* the ranks of this node, ascending; NULL: unknown */
static int n_local;

/* --- the library --- */

static weft_err load(void)
{
	static const struct {
		const char *name;
		size_t at;
	} wanted[] = {
#define WANT(f) {#f, offsetof(struct weft_pmix_lib, f)}
		WANT(PMIx_Init),         WANT(PMIx_Finalize),
		WANT(PMIx_Abort),        WANT(PMIx_Put),
		WANT(PMIx_Commit),       WANT(PMIx_Fence_nb),
		WANT(PMIx_Get),          WANT(PMIx_Get_nb),
		WANT(PMIx_Query_info),   WANT(PMIx_Register_event_handler),
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

static weft_err failed(const char *what, int status)
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

static void value_free(struct weft_pmix_value *v)
{
	if (v->type == WEFT_PMIX_STRING)
		free(v->data.string);
	free(v);
}

/* --- waiting for a callback, no longer than the setting init_timeout --- */

struct answer {
	pthread_mutex_t lock;
	pthread_cond_t came;
	int users; /* the waiter and the callback; the last one frees it */
	bool there;
	int status;
	char *text; /* of a get */
	/* What the request points to lives as long as the callback may come. */
	struct weft_pmix_proc proc;
	struct weft_pmix_info info[2];
	char key[WEFT_PMIX_KEY_BYTES];
};

static struct answer *answer_create(void)
{
	struct answer *a = calloc(1, sizeof *a);
	pthread_condattr_t attr;
	if (!a)
		return NULL;
	a->users = 2;
	pthread_mutex_init(&a->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&a->came, &attr);
	pthread_condattr_destroy(&attr);
	return a;
}

static void answer_drop(struct answer *a)
{
	pthread_mutex_lock(&a->lock);
	int users = --a->users;
	pthread_mutex_unlock(&a->lock);
	if (users)
		return;
	if (a->text)
		explicit_bzero(a->text, strlen(a->text));
	free(a->text);
	pthread_cond_destroy(&a->came);
	pthread_mutex_destroy(&a->lock);
	free(a);
}

static void answer_came(struct answer *a, int status, const char *text)
{
	pthread_mutex_lock(&a->lock);
	a->status = status;
	a->text = text ? strdup(text) : NULL;
	a->there = true;
	pthread_cond_signal(&a->came);
	pthread_mutex_unlock(&a->lock);
	answer_drop(a);
}

static void on_done(int status, void *arg)
{
	answer_came(arg, status, NULL);
}

static void on_value(int status, struct weft_pmix_value *value, void *arg)
{
	bool text = status == WEFT_PMIX_SUCCESS && value && value->type == WEFT_PMIX_STRING &&
		    value->data.string;
	answer_came(arg, status, text ? value->data.string : NULL);
}

static struct timespec deadline(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_sec += weft_setting_int(WEFT_SET_INIT_TIMEOUT);
	return t;
}

static bool answer_wait(struct answer *a, const struct timespec *until)
{
	int rc = 0;
	pthread_mutex_lock(&a->lock);
	while (!a->there && rc != ETIMEDOUT) /* ends: the callback, or the deadline */
		rc = pthread_cond_timedwait(&a->came, &a->lock, until);
	bool there = a->there;
	pthread_mutex_unlock(&a->lock);
	return there;
}

static weft_err timed_out(const char *what)
{
	weft_error(
		"no answer from the PMIx launcher to %s within %lld s (setting init_timeout): is "
		"a rank missing or stopped?",
		what, (long long)weft_setting_int(WEFT_SET_INIT_TIMEOUT));
	return WEFT_ERR_TIMEOUT;
}

/* --- values --- */

static weft_err put(const char *key, const char *text)
{
	struct weft_pmix_value v = {.type = WEFT_PMIX_STRING};
	v.data.string = (char *)(uintptr_t)text; /* copied by the library */
	int status = pmix.PMIx_Put(WEFT_PMIX_GLOBAL, key, &v);
	return status ? failed("put", status) : WEFT_OK;
}

static weft_err commit(void)
{
	int status = pmix.PMIx_Commit();
	return status ? failed("commit", status) : WEFT_OK;
}

/* A get that has been asked; NULL: no memory. */
static struct answer *get_begin(int rank, const char *key, bool refresh)
{
	struct answer *a = answer_create();
	if (!a)
		return NULL;
	a->proc = proc_of((uint32_t)rank);
	snprintf(a->key, sizeof a->key, "%s", key);
	strcpy(a->info[0].key, "pmix.req.key");
	a->info[0].value.type = WEFT_PMIX_STRING;
	a->info[0].value.data.string = a->key;
	strcpy(a->info[1].key, "pmix.get.refresh");
	a->info[1].value.type = WEFT_PMIX_BOOL;
	a->info[1].value.data.flag = true;
	int status = pmix.PMIx_Get_nb(&a->proc, a->key, a->info, refresh ? 2 : 1, on_value, a);
	if (status != WEFT_PMIX_SUCCESS)
		answer_came(a, status, NULL); /* there will be no callback */
	return a;
}

/* Takes what has come and drops the request.  NOENT: the launcher has been told of this rank's values, and
 * the key is not among them (yet), or the
 * server's own patience has ended. */
static weft_err get_end(struct answer *a, char *buf, size_t size)
{
	weft_err err = WEFT_OK;
	if (a->status == WEFT_PMIX_ERR_NOT_FOUND || a->status == WEFT_PMIX_ERR_TIMEOUT)
		err = WEFT_ERR_NOENT;
	else if (a->status != WEFT_PMIX_SUCCESS)
		err = failed(a->key, a->status);
	else if (!a->text)
		err = WEFT_ERR_PROTO;
	else if (strlen(a->text) >= size)
		err = WEFT_ERR_TRUNC;
	else
		memcpy(buf, a->text, strlen(a->text) + 1);
	if (err == WEFT_ERR_PROTO)
		weft_error("PMIx: key %s of rank %u is no text", a->key, (unsigned)a->proc.rank);
	answer_drop(a);
	return err;
}

static weft_err get_once(int rank, const char *key, bool refresh, const struct timespec *until,
			 char *buf, size_t size)
{
	struct answer *a = get_begin(rank, key, refresh);
	if (!a)
		return WEFT_ERR_NOMEM;
	if (answer_wait(a, until))
		return get_end(a, buf, size);
	answer_drop(a);
	return WEFT_ERR_TIMEOUT;
}

/* --- gets that no thread waits for --- */

struct pending {
	struct pending *next;
	struct answer *answer; /* NULL: to be asked */
	int rank;
	bool refresh; /* how it is asked next */
	char key[64];
};
static struct pending *all_pending;
static pthread_mutex_t pending_lock = PTHREAD_MUTEX_INITIALIZER;

static struct pending **find_pending_locked(int rank, const char *key)
{
	struct pending **p = &all_pending;
	weft_assert_held(weft_mutex, &pending_lock);
	while (*p && ((*p)->rank != rank || strcmp((*p)->key, key) != 0))
		p = &(*p)->next;
	return p;
}

static bool has_come(struct answer *a)
{
	pthread_mutex_lock(&a->lock);
	bool there = a->there;
	pthread_mutex_unlock(&a->lock);
	return there;
}

static weft_err try_locked(struct pending **link, char *buf, size_t size)
{
	struct pending *p = *link;
	weft_assert_held(weft_mutex, &pending_lock);
	if (!p->answer)
		p->answer = get_begin(p->rank, p->key, p->refresh);
	if (!p->answer)
		return WEFT_ERR_NOMEM;
	if (!has_come(p->answer))
		return WEFT_AGAIN;
	weft_err err = get_end(p->answer, buf, size);
	p->answer = NULL;
	p->refresh = !p->refresh;
	if (err == WEFT_ERR_NOENT)
		return WEFT_AGAIN;
	*link = p->next;
	free(p);
	return err;
}

static weft_err try_get(int rank, const char *key, char *buf, size_t size)
{
	pthread_mutex_lock(&pending_lock);
	struct pending **link = find_pending_locked(rank, key);
	weft_err err = WEFT_ERR_NOMEM;
	if (!*link && (*link = calloc(1, sizeof **link))) {
		(*link)->rank = rank;
		snprintf((*link)->key, sizeof(*link)->key, "%s", key);
	}
	if (*link)
		err = try_locked(link, buf, size);
	pthread_mutex_unlock(&pending_lock);
	return err;
}

static void pending_free(void)
{
	pthread_mutex_lock(&pending_lock);
	for (struct pending *p = all_pending, *next; p; p = next) {
		next = p->next;
		if (p->answer)
			answer_drop(p->answer);
		free(p);
	}
	all_pending = NULL;
	pthread_mutex_unlock(&pending_lock);
}

/* --- gets that wait --- */

static bool is_over(const struct timespec *until)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec > until->tv_sec ||
	       (now.tv_sec == until->tv_sec && now.tv_nsec >= until->tv_nsec);
}

/* Some servers answer NOT_FOUND where the rank has committed other keys already: asks again, with and
 * without a refresh in turn.  Those of 4 keep what they have been told earlier unless asked to refresh; that
 * of 5.0 takes a refresh of a rank of its own node for done, and answers without the value. */
static weft_err get(int rank, const char *key, char *buf, size_t size)
{
	struct timespec until = deadline();
	weft_err err = get_once(rank, key, false, &until, buf, size);
	bool refresh = false;
	for (long ms = RETRY_MS_MIN; err == WEFT_ERR_NOENT && !is_over(&until);
	     ms = ms < RETRY_MS_MAX / 2 ? 2 * ms
					: RETRY_MS_MAX) { /* ends: found, or the deadline */
		struct timespec pause = {.tv_nsec = ms * 1000000};
		nanosleep(&pause, NULL);
		refresh = !refresh;
		err = get_once(rank, key, refresh, &until, buf, size);
	}
	if (err == WEFT_ERR_TIMEOUT || err == WEFT_ERR_NOENT) {
		char what[96];
		snprintf(what, sizeof what, "get of key %s of rank %d", key, rank);
		return timed_out(what);
	}
	return err;
}

static weft_err fence(void)
{
	struct answer *a = answer_create();
	if (!a)
		return WEFT_ERR_NOMEM;
	struct timespec until = deadline();
	weft_err err = WEFT_OK;
	int status = pmix.PMIx_Fence_nb(NULL, 0, NULL, 0, on_done, a);
	if (status != WEFT_PMIX_SUCCESS)
		answer_drop(a);
	else if (!answer_wait(a, &until))
		err = timed_out("fence");
	else
		status = a->status;
	if (!err && status != WEFT_PMIX_SUCCESS && status != WEFT_PMIX_OPERATION_SUCCEEDED)
		err = failed("fence", status);
	answer_drop(a);
	return err;
}

/* --- what the launcher knows about the job --- */

static weft_err job_number(uint32_t rank, const char *key, int lo, int hi, int *out_p)
{
	struct weft_pmix_value *v;
	struct weft_pmix_proc whose = proc_of(rank);
	if (pmix.PMIx_Get(&whose, key, NULL, 0, &v) != WEFT_PMIX_SUCCESS)
		return WEFT_ERR_NOENT;
	uint32_t n = v->data.uint32;
	bool good = v->type == WEFT_PMIX_UINT32 && n >= (uint32_t)lo && n <= (uint32_t)hi;
	value_free(v);
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
	struct weft_pmix_value *v;
	struct weft_pmix_proc job = proc_of(WEFT_PMIX_RANK_WILDCARD);
	if (pmix.PMIx_Get(&job, "pmix.lpeers", NULL, 0, &v) != WEFT_PMIX_SUCCESS)
		return;
	if (v->type != WEFT_PMIX_STRING || !v->data.string || read_locals(v->data.string))
		weft_info("PMIx: the list of this node's ranks makes no sense");
	value_free(v);
}

static int locals(const int **ranks_p)
{
	*ranks_p = local;
	return n_local;
}

/* --- death reports --- */

static const struct weft_pmix_proc *affected(const struct weft_pmix_proc *source,
					     const struct weft_pmix_info *info, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(info[i].key, "pmix.evproc") == 0 && info[i].value.type == WEFT_PMIX_PROC)
			return info[i].value.data.proc;
	return source;
}

static void on_event(size_t ref, int status, const struct weft_pmix_proc *source,
		     struct weft_pmix_info *info, size_t n, struct weft_pmix_info *results,
		     size_t n_results, weft_pmix_handled_fn handled, void *chain)
{
	const struct weft_pmix_proc *p = affected(source, info, n);
	char why[128];
	if (p && strncmp(p->nspace, me.nspace, sizeof me.nspace) == 0 &&
	    p->rank < (uint32_t)job_size && p->rank != me.rank) {
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

static void listen_for_deaths(void)
{
	static int codes[] = {WEFT_PMIX_ERR_PROC_ABORTED, WEFT_PMIX_ERR_PROC_TERM_WO_SYNC,
			      WEFT_PMIX_ERR_PROC_KILLED_BY_CMD, WEFT_PMIX_ERR_PROC_ABORTED_BY_SIG};
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

static void ask_members(const char *name)
{
	char *keys[] = {(char *)(uintptr_t) "pmix.qry.pmems", NULL};
	struct weft_pmix_info which = {.key = "pmix.pset.nm", .value.type = WEFT_PMIX_STRING};
	struct weft_pmix_query q = {.keys = keys, .qualifiers = &which, .nqual = 1};
	struct weft_pmix_info *results = NULL;
	size_t n = 0;
	which.value.data.string = (char *)(uintptr_t)name;
	if (pmix.PMIx_Query_info(&q, 1, &results, &n) != WEFT_PMIX_SUCCESS)
		return;
	for (size_t i = 0; i < n; i++)
		if (results[i].value.type == WEFT_PMIX_DATA_ARRAY && results[i].value.data.array)
			add_members(name, results[i].value.data.array);
	results_free(results, n);
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
static weft_err psets(void)
{
	char *keys[] = {(char *)(uintptr_t) "pmix.qry.psets", NULL};
	struct weft_pmix_query q = {.keys = keys};
	struct weft_pmix_info *results = NULL;
	size_t n = 0;
	int status = pmix.PMIx_Query_info(&q, 1, &results, &n);
	if (status != WEFT_PMIX_SUCCESS) {
		weft_info("PMIx: this launcher names no process sets: %s",
			  pmix.PMIx_Error_string(status));
		return WEFT_OK;
	}
	for (size_t i = 0; i < n; i++)
		if (results[i].value.type == WEFT_PMIX_STRING && results[i].value.data.string)
			each_name(results[i].value.data.string);
	results_free(results, n);
	return WEFT_OK;
}

/* --- life --- */

static const char *launcher_name(void)
{
	if (getenv("SLURM_PROCID") && getenv("SLURM_STEP_ID") && !getenv("OMPI_COMM_WORLD_SIZE"))
		return "slurm, by PMIx";
	return getenv("OMPI_COMM_WORLD_SIZE") ? "Open MPI or PRRTE, by PMIx" : "PMIx";
}

static weft_err open_pmix(const struct weft_boot_env *env, struct weft_boot_info *info)
{
	info->launcher = launcher_name();
	info->protection = "went through the PMIx servers: between hosts as plain text, as well "
			   "protected as the launcher's own connections";
	weft_err err = load();
	if (err)
		return err;
	int status = pmix.PMIx_Init(&me, NULL, 0);
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
	learn_locals();
	listen_for_deaths();
	return WEFT_OK;
}

static void close_pmix(void)
{
	int status = pmix.PMIx_Finalize(NULL, 0);
	if (status)
		weft_debug("no orderly end with the PMIx launcher: %s",
			   pmix.PMIx_Error_string(status));
	pending_free();
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
	if (bereft)
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
	.fence = fence,
	.lazy = &(const struct weft_boot_lazy){.put = put,
					       .commit = commit,
					       .get = get,
					       .try_get = try_get,
					       .locals = locals},
	.psets = psets,
	.abort = abort_pmix,
};
