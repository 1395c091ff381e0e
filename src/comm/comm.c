/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * comm.c - the process's cores, that of its job and those of the jobs that it has met: their start
 * and end, their place in the engine, and what the layers above ask of them.
 */
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "base/cancel.h"
#include "base/log.h"
#include "base/private_page.h"
#include "base/settings.h"
#include "boot/boot.h"
#include "comm/comm.h"
#include "comm/describe.h"
#include "comm/reach.h"
#include "task/task.h"

/* A core's place in the process; on pages of its own, for the secret. */
struct weft_comm_end {
	struct weft_core *core;
	struct weft_source source[WEFT_RAILS_MAX];
	bool added[WEFT_RAILS_MAX];
	struct weft_reach reach;
	struct weft_comm_end *next; /* all_lock */
	const char *name;           /* of the core, and its secret: below, or boot's */
	const uint8_t *secret;
	char own_name[WEFT_JOBID_MAX];
	uint8_t own_secret[WEFT_SECRET_BYTES];
};

static struct weft_comm_end *home;
static struct weft_comm_end *all; /* all_lock */
static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static void (*down_hook)(struct weft_core *core, int peer, weft_err err, const char *why);
static bool (*awaits_hook)(struct weft_core *core, int peer);

/* ---- the engine's side -------------------------------------------------------------------- */

static int rail_poll(void *arg)
{
	return weft_comm_rail_poll(arg);
}

static __attribute__((noinline)) int rail_spin_after_send(struct weft_rail *r, unsigned turns)
{
	weft_comm_rail_polled(r);
	return r->driver->spin(r->net, turns);
}

static int rail_spin(void *arg, unsigned turns)
{
	struct weft_rail *r = arg;
	if (weft_unlikely(weft_comm_urge_open(&r->core->urge)))
		return rail_spin_after_send(r, turns);
	return r->driver->spin(r->net, turns);
}

/* The engine sleeps for edges: what made the descriptor readable before must be polled first. */
static bool rail_rings(struct weft_rail *r)
{
	struct pollfd p[WEFT_NET_FDS];
	for (unsigned i = 0; i < r->n_fds; i++)
		p[i] = (struct pollfd){.fd = r->fd[i], .events = POLLIN};
	int was = weft_cancel_off();
	int n = poll(p, r->n_fds, 0);
	weft_cancel_back(was);
	return n > 0;
}

static weft_err rail_arm(void *arg, enum weft_arm_level level)
{
	struct weft_rail *r = arg;
	bool packs = weft_unlikely(r->packs) && level != WEFT_ARM_OFF;
	bool held = packs && !weft_comm_rail_packs_arm(r);
	weft_err err = r->driver->arm(r->net, held ? WEFT_ARM_OFF : level);
	if (held)
		return WEFT_AGAIN;
	/* An unchecked level may overlook something; the descriptor stays readable for the check. */
	if (level != WEFT_ARM_OFF && !err && !weft_arm_is_unchecked(level) && rail_rings(r)) {
		(void)r->driver->arm(r->net, WEFT_ARM_OFF);
		err = WEFT_AGAIN;
	}
	if (weft_unlikely(r->packs) && (err || level == WEFT_ARM_OFF))
		weft_comm_rail_packs_disarm(r);
	return err;
}

static int engine_poll(void *arg)
{
	(void)arg;
	return weft_engine_poll();
}

static void engine_wait(void *arg, struct weft_completion *c)
{
	(void)arg;
	weft_task_engine_wait(c);
}

static weft_err sources_add(struct weft_comm_end *end)
{
	struct weft_core *core = end->core;
	for (int i = 0; i < core->nrails; i++) {
		struct weft_rail *r = &core->rail[i];
		r->n_fds = r->driver->arm ? r->driver->fds(r->net, r->fd) : 0;
		end->source[i] = (struct weft_source){.name = r->driver->name,
						      .poll = rail_poll,
						      .spin = r->driver->spin ? rail_spin : NULL,
						      .arm = r->driver->arm ? rail_arm : NULL,
						      .arms_levels = r->driver->arms_levels,
						      .fd = r->n_fds ? r->fd[0] : -1,
						      .more_fd = r->fd + 1,
						      .n_more = r->n_fds ? r->n_fds - 1 : 0,
						      .arg = r};
		weft_err err = weft_task_source_add(&end->source[i]);
		if (err)
			return err;
		end->added[i] = true;
	}
	core->background = true;
	return WEFT_OK;
}

static void sources_remove(struct weft_comm_end *end)
{
	for (int i = 0; i < WEFT_RAILS_MAX; i++) {
		if (end->added[i])
			weft_task_source_remove(&end->source[i]);
		end->added[i] = false;
	}
	end->core->background = false;
}

/* ---- life --------------------------------------------------------------------------------- */

static void end_list(struct weft_comm_end *end)
{
	pthread_mutex_lock(&all_lock);
	end->next = all;
	all = end;
	/* A tool may have begun to listen while it was made. */
	weft_comm_core_trace(end->core);
	pthread_mutex_unlock(&all_lock);
}

static void end_unlist(struct weft_comm_end *end)
{
	pthread_mutex_lock(&all_lock);
	struct weft_comm_end **p = &all;
	while (*p && *p != end)
		p = &(*p)->next;
	if (*p)
		*p = end->next;
	pthread_mutex_unlock(&all_lock);
}

void weft_comm_trace_changed(void)
{
	pthread_mutex_lock(&all_lock);
	for (struct weft_comm_end *e = all; e; e = e->next)
		weft_comm_core_trace(e->core);
	pthread_mutex_unlock(&all_lock);
}

static void end_free(struct weft_comm_end *end)
{
	end_unlist(end);
	if (end->core)
		weft_comm_core_destroy(end->core);
	weft_comm_reach_end(&end->reach);
	weft_private_page_free(end, sizeof *end);
}

static void on_down(struct weft_core *core, int peer, weft_err err, const char *why)
{
	if (err)
		weft_info("rank %d is lost: %s", peer, why ? why : weft_strerror(err));
	if (down_hook)
		down_hook(core, peer, err, why);
}

static weft_err choose_strategy(struct weft_core *core)
{
	core->strategy = weft_comm_strategy_find(weft_setting_str(WEFT_SET_STRATEGY));
	if (core->strategy)
		return WEFT_OK;
	char names[256];
	weft_comm_strategy_names(names, sizeof names);
	weft_error("WEFT_STRATEGY=%s: there are %s", weft_setting_str(WEFT_SET_STRATEGY), names);
	return WEFT_ERR_ARG;
}

/* As the settings and the engine want it. */
static void core_tune(struct weft_core *core)
{
	core->down_hook = on_down;
	core->awaits_hook = awaits_hook;
	core->credit = (uint64_t)weft_setting_int(WEFT_SET_EAGER_CREDIT);
	core->rtr = weft_setting_bool(WEFT_SET_RTR);
	core->poll = engine_poll;
	core->wait = engine_wait;
	core->hold = weft_task_engine_hold;
	core->later = weft_task_engine_check_later;
	core->spare = weft_setting_bool(WEFT_SET_OFFLOAD) ? weft_task_engine_spare : NULL;
	core->wish = weft_task_engine_spare_wish;
}

/* The job's own are boot's, which stay, and come with the first fence; those of a meeting are copied. */
static void end_secret_set(struct weft_comm_end *end, const struct weft_comm_meeting *meeting)
{
	end->name = meeting->jobid;
	end->secret = meeting->secret;
	if (meeting->stays)
		return;
	snprintf(end->own_name, sizeof end->own_name, "%s", meeting->jobid);
	memcpy(end->own_secret, meeting->secret, sizeof end->own_secret);
	end->name = end->own_name;
	end->secret = end->own_secret;
}

static weft_err end_make(const struct weft_comm_meeting *meeting, struct weft_comm_end **end_p)
{
	struct weft_comm_end *end = weft_private_page_alloc(sizeof *end);
	if (!end)
		return WEFT_ERR_NOMEM;
	weft_err err = weft_comm_core_create(meeting->rank, meeting->size, &end->core);
	if (err) {
		weft_error("no memory to talk to %d ranks", meeting->size);
		weft_private_page_free(end, sizeof *end);
		return err;
	}
	struct weft_core *core = end->core;
	struct weft_comm_meeting own = *meeting;
	core->end = end;
	end_secret_set(end, meeting);
	own.jobid = end->name;
	own.secret = end->secret;
	err = choose_strategy(core);
	if (!err) {
		core_tune(core);
		err = weft_comm_reach_all(&end->reach, core, &own);
	}
	/* With more ranks than cores another rank needs the core on which the sender waits. */
	core->share_min = end->reach.crowded ? 0 : (size_t)weft_setting_int(WEFT_SET_SHARE_COPY);
	if (!err)
		err = sources_add(end);
	if (err) {
		sources_remove(end);
		end_free(end);
		return err;
	}
	end_list(end);
	*end_p = end;
	return WEFT_OK;
}

static weft_err boot_put(void *arg, const char *key, const char *text)
{
	(void)arg;
	return weft_boot_put(key, text);
}

static weft_err boot_fence(void *arg)
{
	(void)arg;
	return weft_boot_publish();
}

static weft_err boot_get(void *arg, int rank, const char *key, char *buf, size_t size)
{
	(void)arg;
	return weft_boot_get(rank, key, buf, size);
}

static weft_err boot_try_get(void *arg, int rank, const char *key, char *buf, size_t size)
{
	(void)arg;
	return weft_boot_try_get(rank, key, buf, size);
}

static int boot_locals(void *arg, const int **ranks_p)
{
	(void)arg;
	return weft_boot_locals(ranks_p);
}

/* A thread of the launcher's library; home stays until the hook is gone. */
static void on_death(int rank, const char *why)
{
	struct weft_gate *g = &home->core->gate[rank];
	weft_info("rank %d: %s", rank, why);
	if (g->driver && g->driver->died)
		g->driver->died(g->net, rank);
}

weft_err weft_comm_start(const struct weft_boot_info *boot)
{
	struct weft_comm_meeting meeting = {.rank = boot->rank,
					    .size = boot->size,
					    .jobid = boot->jobid,
					    .secret = boot->secret,
					    .stays = true,
					    .spread = boot->spread,
					    .put = boot_put,
					    .fence = boot_fence,
					    .get = boot_get,
					    .try_get = boot_try_get,
					    .locals = weft_boot_is_lazy() ? boot_locals : NULL};
	weft_err err = end_make(&meeting, &home);
	if (!err)
		weft_boot_on_death(on_death);
	return err;
}

weft_err weft_comm_join(const struct weft_comm_meeting *meeting, struct weft_core **core_p)
{
	struct weft_comm_end *end;
	weft_err err = end_make(meeting, &end);
	if (!err)
		*core_p = end->core;
	return err;
}

/* Between polls while leaving: nothing is urgent any more, another process may need the core. */
static void yield_and_nap(void)
{
	struct timespec ts = {.tv_nsec = 50000};
	sched_yield();
	int was = weft_cancel_off();
	nanosleep(&ts, NULL);
	weft_cancel_back(was);
}

void weft_comm_leave(struct weft_core *core)
{
	uint64_t patience = (uint64_t)weft_setting_int(WEFT_SET_PEER_TIMEOUT) * 1000000000u;
	uint64_t until = weft_clock_ns() + patience;

	/* Ends when nothing is owed any more; a peer that takes nothing for so long is left.  Asked once a turn: a background
	 * poll may begin to answer a peer right after that, which is no sign of one that takes nothing. */
	bool idle;
	while (!(idle = weft_comm_core_idle(core)) && weft_clock_ns() < until) {
		if (weft_task_engine_poll())
			until = weft_clock_ns() + patience;
		else
			yield_and_nap();
	}
	if (!idle)
		weft_warn("leaving although a peer has not taken all that was sent to it");
	sources_remove(core->end);
	until = weft_clock_ns() + patience;
	while (!weft_comm_core_drain(core) && weft_clock_ns() < until) {
		if (weft_comm_core_poll(core))
			until = weft_clock_ns() + patience;
		else
			yield_and_nap();
	}
	end_free(core->end);
}

void weft_comm_stop(void)
{
	struct weft_comm_end *end = home;
	if (!end)
		return;
	weft_boot_on_death(NULL);
	weft_comm_leave(end->core);
	home = NULL;
}

struct weft_core *weft_comm_home(void)
{
	return home ? home->core : NULL;
}

int weft_comm_rank(void)
{
	return home ? home->core->rank : 0;
}

int weft_comm_size(void)
{
	return home ? home->core->size : 1;
}

int weft_comm_core_rank(const struct weft_core *core)
{
	return core->rank;
}

int weft_comm_core_size(const struct weft_core *core)
{
	return core->size;
}

const uint8_t *weft_comm_secret(const struct weft_core *core)
{
	return core->end->secret;
}

bool weft_comm_same_host(const struct weft_core *core, int peer)
{
	return peer == core->rank || weft_comm_reach_same_host(&core->end->reach, core->rank, peer);
}

void weft_comm_peer_cpus(const struct weft_core *core, int peer, cpu_set_t *set_p)
{
	CPU_ZERO(set_p);
	if (peer == core->rank)
		(void)sched_getaffinity(0, sizeof *set_p, set_p);
	else if (weft_comm_same_host(core, peer))
		weft_comm_cpus_add(core->end->reach.card[peer].cpus, set_p);
}

const char *weft_comm_host(const struct weft_core *core, int peer)
{
	return core->end->reach.card[peer].name;
}

int weft_comm_local_ranks(void)
{
	int n = 0;
	for (int p = 0; home && p < home->core->size; p++)
		n += weft_comm_same_host(home->core, p);
	return home ? n : 1;
}

void *weft_comm_board(struct weft_core *core, int peer)
{
	void *board = NULL;
	for (int i = 0; i < core->nrails && !board; i++) {
		struct weft_rail *r = &core->rail[i];
		if (r->driver->board)
			board = r->driver->board(r->net, peer);
	}
	return board;
}

bool weft_comm_can_read(struct weft_core *core, int peer)
{
	struct weft_gate *g = core->offer ? NULL : &core->gate[peer];
	/* Relaxed: a hint; a read in vain returns an error. */
	return g && weft_comm_gate_can_get(g) &&
	       !atomic_load_explicit(&g->x_get_failed, memory_order_relaxed);
}

weft_err weft_comm_read(struct weft_core *core, int peer, uint64_t from, void *to, size_t len)
{
	struct weft_gate *g = &core->gate[peer];
	struct iovec piece = {.iov_base = to, .iov_len = len};
	return weft_comm_gate_can_get(g) ? weft_comm_gate_copy(g, false, from, &piece, 1, len)
					 : WEFT_ERR_UNSUPPORTED;
}

bool weft_comm_lost(struct weft_core *core, int peer)
{
	return weft_comm_gate_down(&core->gate[peer]);
}

bool weft_comm_crowded(const struct weft_core *core)
{
	return core->end->reach.crowded;
}

bool weft_comm_apart(const struct weft_core *core)
{
	return core->end->reach.apart;
}

void weft_comm_set_down_hook(void (*hook)(struct weft_core *core, int peer, weft_err err,
					  const char *why))
{
	down_hook = hook;
}

void weft_comm_set_awaits_hook(bool (*hook)(struct weft_core *core, int peer))
{
	awaits_hook = hook;
}

weft_err weft_comm_ctx_open(struct weft_core *core, uint32_t id, struct weft_ctx **ctx_p)
{
	return core ? weft_comm_core_ctx_open(core, id, ctx_p) : WEFT_ERR_STATE;
}

struct weft_core *weft_comm_ctx_core(const struct weft_ctx *ctx)
{
	return ctx->core;
}

void weft_comm_describe(char *buf, size_t size)
{
	if (size)
		buf[0] = 0;
	if (home)
		weft_comm_core_describe(home->core, buf, size);
}
