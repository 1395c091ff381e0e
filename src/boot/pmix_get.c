/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmix_get.c - a get is a series of requests, until one brings the value.
 *
 * Some servers answer NOT_FOUND where the rank has committed other keys already; that of Slurm answers ERROR
 * while the other node's is not up yet.  So a request that failed is made again, with and without a refresh in
 * turn: servers of 4 keep what they have been told earlier unless asked to refresh; that of 5.0 takes a refresh
 * of a rank of its own node for done, and answers without the value.
 */
#include "boot/pmix_get.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/assert.h"
#include "base/log.h"
#include "base/settings.h"

#define RETRY_NS_MIN 1000000u
#define RETRY_NS_MAX 50000000u

static const struct weft_pmix_lib *pmix;
static struct weft_pmix_proc job; /* the rank to ask about is filled in */

struct get {
	struct get *next;                  /* pending_lock */
	struct weft_pmix_request *request; /* NULL: to be made at next_ns */
	int rank;
	bool refresh;      /* how it is asked next */
	bool warned;       /* that the rank is late */
	weft_err failed;   /* for good; logged */
	int status;        /* of the last request that failed; 0: none has */
	uint64_t since_ns; /* of the first request; of the last one */
	uint64_t asked_ns;
	uint64_t next_ns, pause_ns;
	char key[WEFT_PMIX_KEY_BYTES];
};

static void get_init(struct get *g, int rank, const char *key)
{
	*g = (struct get){.rank = rank, .since_ns = weft_clock_ns(), .pause_ns = RETRY_NS_MIN};
	snprintf(g->key, sizeof g->key, "%s", key);
}

/* Statuses after which no other request will fare better: the server is gone, or does not know the request. */
static bool is_final(int status)
{
	return status == WEFT_PMIX_ERR_UNREACH || status == WEFT_PMIX_ERR_LOST_CONNECTION ||
	       status == WEFT_PMIX_ERR_INIT || status == WEFT_PMIX_ERR_BAD_PARAM ||
	       status == WEFT_PMIX_ERR_NOT_SUPPORTED;
}

static bool is_absence(int status)
{
	return status == WEFT_PMIX_ERR_NOT_FOUND || status == WEFT_PMIX_ERR_TIMEOUT;
}

static weft_err get_failed(struct get *g, weft_err err, const char *what)
{
	weft_error("PMIx: get of key %s of rank %d: %s", g->key, g->rank, what);
	g->failed = err;
	return err;
}

/* Takes what has come and drops the request.  AGAIN: another one shall be made, at next_ns. */
static weft_err take_answer(struct get *g, char *buf, size_t size)
{
	int status = weft_boot_pmix_status(g->request);
	const char *text = weft_boot_pmix_text(g->request);
	weft_err err = WEFT_OK;
	if (status != WEFT_PMIX_SUCCESS)
		err = is_final(status)
			      ? get_failed(g, WEFT_ERR_PEER, pmix->PMIx_Error_string(status))
			      : WEFT_AGAIN;
	else if (!text)
		err = get_failed(g, WEFT_ERR_PROTO, "it is no text");
	else if (strlen(text) >= size)
		err = WEFT_ERR_TRUNC;
	else
		memcpy(buf, text, strlen(text) + 1);
	weft_boot_pmix_drop(g->request);
	g->request = NULL;
	if (err == WEFT_AGAIN) {
		weft_debug("PMIx: get of key %s of rank %d: %s; asked again", g->key, g->rank,
			   pmix->PMIx_Error_string(status));
		g->status = status;
		g->refresh = !g->refresh;
		g->next_ns = weft_clock_ns() + g->pause_ns;
		g->pause_ns = g->pause_ns < RETRY_NS_MAX / 2 ? 2 * g->pause_ns : RETRY_NS_MAX;
	}
	return err;
}

/* Waits until that time, 0: not at all.  AGAIN: the value has not come. */
static weft_err step_get(struct get *g, uint64_t until_ns, char *buf, size_t size)
{
	if (!g->request) {
		struct weft_pmix_proc proc = job;
		proc.rank = (uint32_t)g->rank;
		g->request = weft_boot_pmix_ask(
			&proc, g->key, g->refresh ? WEFT_PMIX_REFRESH : WEFT_PMIX_REQUIRED);
		if (!g->request)
			return WEFT_ERR_NOMEM;
		g->asked_ns = weft_clock_ns();
	}
	return weft_boot_pmix_wait(g->request, until_ns) ? take_answer(g, buf, size) : WEFT_AGAIN;
}

/* --- gets that wait --- */

static weft_err too_late(struct get *g)
{
	weft_error(
		"PMIx: rank %d has not published key %s within %lld s%s%s: it is missing, stopped, "
		"or comes later to MPI_Init (WEFT_INIT_TIMEOUT=SECONDS waits longer)",
		g->rank, g->key, (long long)weft_setting_int(WEFT_SET_INIT_TIMEOUT),
		g->status ? ", and the launcher has answered " : "",
		g->status ? pmix->PMIx_Error_string(g->status) : "");
	return WEFT_ERR_TIMEOUT;
}

weft_err weft_boot_pmix_get(int rank, const char *key, char *buf, size_t size)
{
	struct get g;
	get_init(&g, rank, key);
	uint64_t until = weft_boot_pmix_deadline(), now;
	weft_err err;
	while ((err = step_get(&g, until, buf, size)) == WEFT_AGAIN &&
	       (now = weft_clock_ns()) < until) { /* ends: found, failed, or the deadline */
		struct timespec pause = {.tv_nsec = g.next_ns > now ? (long)(g.next_ns - now) : 0};
		nanosleep(&pause, NULL);
	}
	if (err == WEFT_AGAIN)
		err = too_late(&g);
	if (g.request)
		weft_boot_pmix_drop(g.request);
	return err;
}

/* --- gets that no thread waits for --- */

static struct get *pending; /* pending_lock */
static pthread_mutex_t pending_lock = PTHREAD_MUTEX_INITIALIZER;

static struct get **find_pending_locked(int rank, const char *key)
{
	struct get **p = &pending;
	weft_assert_held(weft_mutex, &pending_lock);
	while (*p && ((*p)->rank != rank || strcmp((*p)->key, key) != 0))
		p = &(*p)->next;
	return p;
}

/* A peer that is late is waited for, and named once; a server that fails so long has failed. */
static weft_err still_pending(struct get *g)
{
	uint64_t patience = (uint64_t)weft_setting_int(WEFT_SET_INIT_TIMEOUT) * 1000000000u;
	if (weft_clock_ns() - (g->request ? g->asked_ns : g->since_ns) < patience)
		return WEFT_AGAIN;
	if (!g->request && !is_absence(g->status))
		return get_failed(g, WEFT_ERR_PEER, pmix->PMIx_Error_string(g->status));
	if (!g->warned)
		weft_warn("still waiting for rank %d, which has not called MPI_Init for %lld s",
			  g->rank, (long long)weft_setting_int(WEFT_SET_INIT_TIMEOUT));
	g->warned = true;
	return WEFT_AGAIN;
}

static weft_err try_locked(struct get **link, char *buf, size_t size)
{
	struct get *g = *link;
	weft_assert_held(weft_mutex, &pending_lock);
	if (g->failed)
		return g->failed;
	if (!g->request && weft_clock_ns() < g->next_ns)
		return WEFT_AGAIN;
	weft_err err = step_get(g, 0, buf, size);
	if (err == WEFT_AGAIN)
		return still_pending(g);
	if (g->failed || err == WEFT_ERR_NOMEM)
		return err;
	*link = g->next;
	free(g);
	return err;
}

weft_err weft_boot_pmix_try_get(int rank, const char *key, char *buf, size_t size)
{
	pthread_mutex_lock(&pending_lock);
	struct get **link = find_pending_locked(rank, key);
	weft_err err = WEFT_ERR_NOMEM;
	if (!*link && (*link = calloc(1, sizeof **link)))
		get_init(*link, rank, key);
	if (*link)
		err = try_locked(link, buf, size);
	pthread_mutex_unlock(&pending_lock);
	return err;
}

/* --- life --- */

void weft_boot_pmix_gets_open(const struct weft_pmix_lib *lib, const struct weft_pmix_proc *me)
{
	pmix = lib;
	job = *me;
	weft_boot_pmix_requests_open(lib);
}

void weft_boot_pmix_gets_close(void)
{
	pthread_mutex_lock(&pending_lock);
	for (struct get *g = pending, *next; g; g = next) {
		next = g->next;
		if (g->request)
			weft_boot_pmix_drop(g->request);
		free(g);
	}
	pending = NULL;
	pthread_mutex_unlock(&pending_lock);
}
