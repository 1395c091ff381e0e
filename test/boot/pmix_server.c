/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmix_server.c - ranks of weft under a PMIx server, made with libpmix's server interface: place in the
 * job, values that are there before and after they are asked for, the secret, process sets, a death that
 * the launcher reports, an abort.  And the binary interface in boot/pmix_abi.h is that of the headers.
 *
 * Run without arguments it is the launcher; "client WHAT" is a rank.
 */
#include <pmix.h>
#include <pmix_server.h>

#include <pthread.h>
#include <semaphore.h>
#include <sys/wait.h>
#include <unistd.h>
#include "boot/boot.h"
#include "boot/pmix_abi.h"
#include "boot/psets.h"
#include "check.h"

#define RANKS 3
#define SPACE "weft.test"

/* --- the binary interface --- */

#define SAME_FIELD(ours, theirs, field)                                                            \
	_Static_assert(offsetof(struct ours, field) == offsetof(theirs, field), #ours " " #field)
SAME_FIELD(weft_pmix_proc, pmix_proc_t, nspace);
SAME_FIELD(weft_pmix_proc, pmix_proc_t, rank);
SAME_FIELD(weft_pmix_value, pmix_value_t, data);
SAME_FIELD(weft_pmix_info, pmix_info_t, flags);
SAME_FIELD(weft_pmix_info, pmix_info_t, value);
SAME_FIELD(weft_pmix_array, pmix_data_array_t, size);
SAME_FIELD(weft_pmix_array, pmix_data_array_t, array);
SAME_FIELD(weft_pmix_query, pmix_query_t, qualifiers);
SAME_FIELD(weft_pmix_query, pmix_query_t, nqual);
_Static_assert(sizeof(struct weft_pmix_proc) == sizeof(pmix_proc_t), "proc");
_Static_assert(sizeof(struct weft_pmix_value) == sizeof(pmix_value_t), "value");
_Static_assert(sizeof(struct weft_pmix_info) == sizeof(pmix_info_t), "info");
_Static_assert(sizeof(struct weft_pmix_query) == sizeof(pmix_query_t), "query");
_Static_assert(WEFT_PMIX_SUCCESS == PMIX_SUCCESS &&
		       WEFT_PMIX_ERR_PROC_ABORTED == PMIX_ERR_PROC_ABORTED &&
		       WEFT_PMIX_ERR_NOT_FOUND == PMIX_ERR_NOT_FOUND &&
		       WEFT_PMIX_ERR_TIMEOUT == PMIX_ERR_TIMEOUT &&
		       WEFT_PMIX_ERR_UNREACH == PMIX_ERR_UNREACH &&
		       WEFT_PMIX_ERR_BAD_PARAM == PMIX_ERR_BAD_PARAM &&
		       WEFT_PMIX_ERR_INIT == PMIX_ERR_INIT &&
		       WEFT_PMIX_ERR_NOMEM == PMIX_ERR_NOMEM &&
		       WEFT_PMIX_ERR_NOT_SUPPORTED == PMIX_ERR_NOT_SUPPORTED &&
		       WEFT_PMIX_ERR_LOST_CONNECTION == PMIX_ERR_LOST_CONNECTION &&
		       WEFT_PMIX_ERR_LOST_CONNECTION_TO_SERVER ==
			       PMIX_ERR_LOST_CONNECTION_TO_SERVER &&
		       WEFT_PMIX_OPERATION_SUCCEEDED == PMIX_OPERATION_SUCCEEDED &&
		       WEFT_PMIX_ERR_PROC_TERM_WO_SYNC == PMIX_ERR_PROC_TERM_WO_SYNC &&
		       WEFT_PMIX_EVENT_ACTION_COMPLETE == PMIX_EVENT_ACTION_COMPLETE &&
		       WEFT_PMIX_ERR_PROC_KILLED_BY_CMD == PMIX_ERR_PROC_KILLED_BY_CMD &&
		       WEFT_PMIX_ERR_PROC_ABORTED_BY_SIG == PMIX_ERR_PROC_ABORTED_BY_SIG,
	       "status");
_Static_assert(WEFT_PMIX_BOOL == PMIX_BOOL && WEFT_PMIX_STRING == PMIX_STRING &&
		       WEFT_PMIX_UINT32 == PMIX_UINT32 && WEFT_PMIX_PROC == PMIX_PROC &&
		       WEFT_PMIX_DATA_ARRAY == PMIX_DATA_ARRAY && WEFT_PMIX_GLOBAL == PMIX_GLOBAL,
	       "kinds");

/* --- a rank --- */

static const struct weft_boot_info *info;
static sem_t died;
static int dead_rank;

static void values(void)
{
	static char big[60001], got[60001];
	const int *ranks;
	char key[32];
	CHECK(weft_boot_is_lazy());
	CHECK_EQ(info->size, RANKS);
	CHECK_EQ(info->universe, 8);
	CHECK(strstr(info->launcher, "PMIx") && info->secret_by_kvs && info->protection);
	CHECK_EQ(weft_boot_locals(&ranks), RANKS);
	CHECK_EQ(ranks[2], 2);
	/* The higher rank puts after it has read what the lower one has put: each get but the first
	 * may come before its value. */
	for (int r = 0; r < RANKS; r++) {
		for (size_t i = 0; i < sizeof big - 1; i++)
			big[i] = (char)(1 + (i + (size_t)r) % 255);
		snprintf(key, sizeof key, "a key;with=all %d", r);
		if (r == info->rank) {
			CHECK_EQ(weft_boot_put(key, big), WEFT_OK);
			CHECK_EQ(weft_boot_publish(), WEFT_OK);
		}
		CHECK_EQ(weft_boot_get(r, key, got, sizeof got), WEFT_OK);
		CHECK(strcmp(got, big) == 0);
		CHECK_EQ(weft_boot_get(r, key, got, 9), WEFT_ERR_TRUNC);
		weft_err err;
		got[0] = 0;
		while ((err = weft_boot_try_get(r, key, got, sizeof got)) == WEFT_AGAIN)
			sched_yield();
		CHECK_EQ(err, WEFT_OK);
		CHECK(strcmp(got, big) == 0);
	}
	CHECK_EQ(weft_boot_fence(), WEFT_OK);
	weft_boot_close();
}

static void sets(void)
{
	struct weft_boot_pset s;
	CHECK_EQ(weft_boot_psets_refresh(), WEFT_OK);
	CHECK_EQ(weft_boot_psets_find("ocean", &s), WEFT_OK);
	CHECK(s.size == 2 && weft_boot_pset_rank(&s, 0) == 0 && weft_boot_pset_rank(&s, 1) == 2);
	CHECK_EQ(weft_boot_psets_refresh(), WEFT_OK);
	CHECK_EQ(weft_boot_psets_count(), 3);
	CHECK_EQ(weft_boot_fence(), WEFT_OK);
	weft_boot_close();
}

static void on_death(int rank, const char *why)
{
	dead_rank = rank;
	CHECK(strstr(why, "launcher") != NULL);
	sem_post(&died);
}

static void death(void)
{
	sem_init(&died, 0, 0);
	weft_boot_on_death(on_death);
	CHECK_EQ(weft_boot_fence(), WEFT_OK);
	if (info->rank == 1)
		_exit(9);
	while (sem_wait(&died))
		continue;
	CHECK_EQ(dead_rank, 1);
	exit(42);
}

static void missing(void)
{
	char got[16];
	CHECK_EQ(weft_boot_try_get(0, "never put", got, sizeof got), WEFT_AGAIN);
	CHECK_EQ(weft_boot_get(0, "never put", got, sizeof got), WEFT_ERR_TIMEOUT);
	CHECK_EQ(weft_boot_try_get(0, "never put", got, sizeof got), WEFT_AGAIN);
	weft_boot_close();
}

static int client(const char *what)
{
	alarm(200);
	weft_err err = weft_boot_open(&info);
	CHECK_EQ(err, WEFT_OK);
	if (strcmp(what, "values") == 0)
		values();
	else if (strcmp(what, "sets") == 0)
		sets();
	else if (strcmp(what, "death") == 0)
		death();
	else if (strcmp(what, "missing") == 0)
		missing();
	else if (info->rank == 1)
		weft_boot_abort(7, "abort on purpose");
	else
		for (;;) /* ends: the launcher kills it */
			pause();
	return 0;
}

/* --- the launcher --- */

static pid_t pids[RANKS];
static _Atomic int x_abort_code;

static void let_go(pmix_op_cbfunc_t fn, void *arg)
{
	if (fn)
		fn(PMIX_SUCCESS, arg);
}

static pmix_status_t connected(const pmix_proc_t *proc, void *object, pmix_op_cbfunc_t fn,
			       void *arg)
{
	let_go(fn, arg);
	return PMIX_SUCCESS;
}

static pmix_status_t aborted(const pmix_proc_t *proc, void *object, int status, const char msg[],
			     pmix_proc_t procs[], size_t n, pmix_op_cbfunc_t fn, void *arg)
{
	atomic_store(&x_abort_code, status);
	for (int r = 0; r < RANKS; r++)
		kill(pids[r], SIGKILL);
	let_go(fn, arg);
	return PMIX_SUCCESS;
}

static pmix_status_t fence(const pmix_proc_t procs[], size_t n, const pmix_info_t list[],
			   size_t n_list, char *data, size_t size, pmix_modex_cbfunc_t fn,
			   void *arg)
{
	fn(PMIX_SUCCESS, data, size, arg, free, data);
	return PMIX_SUCCESS;
}

static pmix_status_t registered(pmix_status_t *codes, size_t n, const pmix_info_t list[],
				size_t n_list, pmix_op_cbfunc_t fn, void *arg)
{
	let_go(fn, arg);
	return PMIX_SUCCESS;
}

/* Sets: "ocean" has ranks 2 and 0 of this job, "sky" one of another job, "empty" none. */
static pmix_status_t query(pmix_proc_t *asker, pmix_query_t *q, size_t n, pmix_info_cbfunc_t fn,
			   void *arg)
{
	static char names[] = "ocean,,sky,empty";
	static pmix_proc_t ocean[2], sky[1];
	pmix_data_array_t array = {.type = PMIX_PROC};
	static pmix_info_t answer;
	memset(&answer, 0, sizeof answer);
	if (strcmp(q[0].keys[0], PMIX_QUERY_PSET_NAMES) == 0) {
		PMIX_INFO_LOAD(&answer, PMIX_QUERY_PSET_NAMES, names, PMIX_STRING);
	} else {
		CHECK(strcmp(q[0].keys[0], PMIX_QUERY_PSET_MEMBERSHIP) == 0 && q[0].nqual == 1);
		const char *name = q[0].qualifiers[0].value.data.string;
		PMIX_LOAD_PROCID(&ocean[0], SPACE ".2", 2);
		PMIX_LOAD_PROCID(&ocean[1], SPACE ".2", 0);
		PMIX_LOAD_PROCID(&sky[0], "another", 0);
		array.array = strcmp(name, "ocean") ? sky : ocean;
		array.size = strcmp(name, "ocean") ? strcmp(name, "sky") == 0 : 2;
		PMIX_INFO_LOAD(&answer, PMIX_QUERY_PSET_MEMBERSHIP, &array, PMIX_DATA_ARRAY);
	}
	fn(PMIX_SUCCESS, &answer, 1, arg, NULL, NULL);
	return PMIX_SUCCESS;
}

static pmix_server_module_t module = {.client_connected = connected,
				      .client_finalized = connected,
				      .abort = aborted,
				      .register_events = registered,
				      .query = query,
				      .fence_nb = fence};

static sem_t done;

static void on_done(pmix_status_t status, void *arg)
{
	sem_post(&done);
}

static void wait_done(pmix_status_t status)
{
	CHECK(status == PMIX_SUCCESS || status == PMIX_OPERATION_SUCCEEDED);
	if (status == PMIX_SUCCESS)
		while (sem_wait(&done))
			continue;
}

static char **copy_of(char **from)
{
	size_t n = 0;
	while (from[n])
		n++;
	char **to = calloc(n + 1, sizeof *to);
	for (size_t i = 0; i < n; i++)
		to[i] = strdup(from[i]);
	return to;
}

static void start(const char *self, const char *space, const char *what)
{
	uint32_t size = RANKS, slots = 8;
	char *nodes, *ranks, host[64];
	pmix_info_t list[4];
	gethostname(host, sizeof host);
	CHECK(PMIx_generate_regex(host, &nodes) == PMIX_SUCCESS);
	CHECK(PMIx_generate_ppn("0,1,2", &ranks) == PMIX_SUCCESS);
	PMIX_INFO_LOAD(&list[0], PMIX_JOB_SIZE, &size, PMIX_UINT32);
	PMIX_INFO_LOAD(&list[1], PMIX_UNIV_SIZE, &slots, PMIX_UINT32);
	PMIX_INFO_LOAD(&list[2], PMIX_NODE_MAP, nodes, PMIX_REGEX);
	PMIX_INFO_LOAD(&list[3], PMIX_PROC_MAP, ranks, PMIX_REGEX);
	wait_done(PMIx_server_register_nspace(space, RANKS, list, 4, on_done, NULL));
	for (uint32_t r = 0; r < RANKS; r++) {
		pmix_proc_t proc;
		char **env = copy_of(environ);
		PMIX_LOAD_PROCID(&proc, space, r);
		wait_done(PMIx_server_register_client(&proc, geteuid(), getegid(), NULL, on_done,
						      NULL));
		CHECK(PMIx_server_setup_fork(&proc, &env) == PMIX_SUCCESS);
		fflush(NULL);
		pids[r] = fork();
		CHECK(pids[r] >= 0);
		if (pids[r] == 0) {
			execle(self, self, "client", what, (char *)NULL, env);
			_exit(127);
		}
	}
}

static int wait_for(pid_t pid)
{
	int status;
	CHECK(waitpid(pid, &status, 0) == pid);
	return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void all_pass(const char *self, const char *space, const char *what)
{
	start(self, space, what);
	for (int r = 0; r < RANKS; r++)
		CHECK_EQ(wait_for(pids[r]), 0);
}

static void tell_death(const char *space, uint32_t rank)
{
	pmix_proc_t proc;
	pmix_info_t about;
	PMIX_LOAD_PROCID(&proc, space, rank);
	PMIX_INFO_LOAD(&about, PMIX_EVENT_AFFECTED_PROC, &proc, PMIX_PROC);
	wait_done(PMIx_Notify_event(PMIX_ERR_PROC_ABORTED, &proc, PMIX_RANGE_LOCAL, &about, 1,
				    on_done, NULL));
}

int main(int argc, char **argv)
{
	if (argc > 2)
		return client(argv[2]);
	char self[4096];
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	CHECK(n > 0);
	self[n] = 0;
	alarm(220);
	sem_init(&done, 0, 0);
	unsetenv("PMI_FD");
	CHECK(PMIx_server_init(&module, NULL, 0) == PMIX_SUCCESS);
	all_pass(self, SPACE ".1", "values");
	all_pass(self, SPACE ".2", "sets");

	start(self, SPACE ".3", "death");
	CHECK_EQ(wait_for(pids[1]), 9);
	tell_death(SPACE ".3", 1);
	CHECK_EQ(wait_for(pids[0]), 42);
	CHECK_EQ(wait_for(pids[2]), 42);

	setenv("WEFT_INIT_TIMEOUT", "2", 1);
	all_pass(self, SPACE ".4", "missing");
	unsetenv("WEFT_INIT_TIMEOUT");

	start(self, SPACE ".5", "abort");
	for (int r = 0; r < RANKS; r++)
		CHECK(wait_for(pids[r]) != 0);
	CHECK_EQ(atomic_load(&x_abort_code), 7);
	PMIx_server_finalize();
	return 0;
}
