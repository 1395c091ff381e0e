/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * comm.c - the process's one core: its start and end, its place in the engine, and what the layers
 * above ask of it.
 */
#include <poll.h>
#include <sched.h>
#include <time.h>
#include "base/cancel.h"
#include "base/log.h"
#include "base/settings.h"
#include "boot/boot.h"
#include "comm/comm.h"
#include "comm/describe.h"
#include "comm/reach.h"
#include "task/task.h"

static struct {
	struct weft_core *core;
	struct weft_source source[WEFT_RAILS_MAX];
	bool added[WEFT_RAILS_MAX];
	struct weft_reach reach;
	void (*down_hook)(int peer, weft_err err, const char *why);
} self;

/* ---- the engine's side -------------------------------------------------------------------- */

static int rail_poll(void *arg)
{
	return weft_comm_rail_poll(arg);
}

static int rail_spin(void *arg, unsigned turns)
{
	struct weft_rail *r = arg;
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
	if (level != WEFT_ARM_OFF && !err && rail_rings(r)) {
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

static weft_err sources_add(void)
{
	struct weft_core *core = self.core;
	for (int i = 0; i < core->nrails; i++) {
		struct weft_rail *r = &core->rail[i];
		r->n_fds = r->driver->arm ? r->driver->fds(r->net, r->fd) : 0;
		self.source[i] = (struct weft_source){.name = r->driver->name,
						      .poll = rail_poll,
						      .spin = r->driver->spin ? rail_spin : NULL,
						      .arm = r->driver->arm ? rail_arm : NULL,
						      .arms_levels = r->driver->arms_levels,
						      .fd = r->n_fds ? r->fd[0] : -1,
						      .more_fd = r->fd + 1,
						      .n_more = r->n_fds ? r->n_fds - 1 : 0,
						      .arg = r};
		weft_err err = weft_task_source_add(&self.source[i]);
		if (err)
			return err;
		self.added[i] = true;
	}
	core->background = true;
	return WEFT_OK;
}

static void sources_remove(void)
{
	for (int i = 0; i < WEFT_RAILS_MAX; i++) {
		if (self.added[i])
			weft_task_source_remove(&self.source[i]);
		self.added[i] = false;
	}
	self.core->background = false;
}

/* ---- life --------------------------------------------------------------------------------- */

static void core_end(void)
{
	weft_comm_core_destroy(self.core);
	self.core = NULL;
	weft_comm_reach_end(&self.reach);
}

static void on_down(int peer, weft_err err, const char *why)
{
	if (err)
		weft_info("rank %d is lost: %s", peer, why ? why : weft_strerror(err));
	if (self.down_hook)
		self.down_hook(peer, err, why);
}

weft_err weft_comm_start(const struct weft_boot_info *boot)
{
	weft_err err = weft_comm_core_create(boot->rank, boot->size, &self.core);
	if (err) {
		weft_error("no memory to talk to %d ranks", boot->size);
		return err;
	}
	self.core->strategy = weft_comm_strategy_find(weft_setting_str(WEFT_SET_STRATEGY));
	if (!self.core->strategy) {
		char names[256];
		weft_comm_strategy_names(names, sizeof names);
		weft_error("WEFT_STRATEGY=%s: there are %s", weft_setting_str(WEFT_SET_STRATEGY),
			   names);
		weft_comm_core_destroy(self.core);
		self.core = NULL;
		return WEFT_ERR_ARG;
	}
	self.core->down_hook = on_down;
	self.core->credit = (uint64_t)weft_setting_int(WEFT_SET_EAGER_CREDIT);
	self.core->rtr = weft_setting_bool(WEFT_SET_RTR);
	self.core->poll = engine_poll;
	self.core->wait = engine_wait;
	self.core->hold = weft_task_engine_hold;
	self.core->spare = weft_setting_bool(WEFT_SET_OFFLOAD) ? weft_task_engine_spare : NULL;
	self.core->wish = weft_task_engine_spare_wish;
	err = weft_comm_reach_all(&self.reach, self.core, boot);
	/* With more ranks than cores another rank needs the core on which the sender waits. */
	self.core->share_min =
		self.reach.crowded ? 0 : (size_t)weft_setting_int(WEFT_SET_SHARE_COPY);
	if (!err)
		err = sources_add();
	if (err) {
		sources_remove();
		core_end();
	}
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

void weft_comm_stop(void)
{
	struct weft_core *core = self.core;
	if (!core)
		return;
	uint64_t patience = (uint64_t)weft_setting_int(WEFT_SET_PEER_TIMEOUT) * 1000000000u;
	uint64_t until = weft_clock_ns() + patience;

	/* Ends when nothing is owed any more; a peer that takes nothing for so long is left. */
	while (!weft_comm_core_idle(core) && weft_clock_ns() < until) {
		if (weft_engine_poll())
			until = weft_clock_ns() + patience;
		else
			yield_and_nap();
	}
	if (!weft_comm_core_idle(core))
		weft_warn("leaving although a peer has not taken all that was sent to it");
	sources_remove();
	until = weft_clock_ns() + patience;
	while (!weft_comm_core_drain(core) && weft_clock_ns() < until) {
		if (weft_comm_core_poll(core))
			until = weft_clock_ns() + patience;
		else
			yield_and_nap();
	}
	core_end();
}

int weft_comm_rank(void)
{
	return self.core ? self.core->rank : 0;
}

int weft_comm_size(void)
{
	return self.core ? self.core->size : 1;
}

bool weft_comm_same_host(int peer)
{
	if (!self.core || peer == self.core->rank)
		return true;
	return weft_comm_reach_same_host(&self.reach, self.core->rank, peer);
}

const char *weft_comm_host(int peer)
{
	return self.reach.card ? self.reach.card[peer].name : "";
}

int weft_comm_local_ranks(void)
{
	int n = 0;
	for (int p = 0; p < weft_comm_size(); p++)
		n += weft_comm_same_host(p);
	return n;
}

void *weft_comm_board(int peer)
{
	void *board = NULL;
	for (int i = 0; self.core && i < self.core->nrails && !board; i++) {
		struct weft_rail *r = &self.core->rail[i];
		if (r->driver->board)
			board = r->driver->board(r->net, peer);
	}
	return board;
}

bool weft_comm_can_read(int peer)
{
	struct weft_gate *g = self.core && !self.core->offer ? &self.core->gate[peer] : NULL;
	/* Relaxed: a hint; a read in vain returns an error. */
	return g && weft_comm_gate_can_get(g) &&
	       !atomic_load_explicit(&g->x_get_failed, memory_order_relaxed);
}

weft_err weft_comm_read(int peer, uint64_t from, void *to, size_t len)
{
	struct weft_gate *g = &self.core->gate[peer];
	struct iovec piece = {.iov_base = to, .iov_len = len};
	return weft_comm_gate_can_get(g) ? weft_comm_gate_copy(g, false, from, &piece, 1, len)
					 : WEFT_ERR_UNSUPPORTED;
}

bool weft_comm_lost(int peer)
{
	return self.core && weft_comm_gate_down(&self.core->gate[peer]);
}

bool weft_comm_crowded(void)
{
	return self.reach.crowded;
}

bool weft_comm_apart(void)
{
	return self.reach.apart;
}

void weft_comm_set_down_hook(void (*hook)(int peer, weft_err err, const char *why))
{
	self.down_hook = hook;
}

weft_err weft_comm_ctx_open(uint32_t id, struct weft_ctx **ctx_p)
{
	return self.core ? weft_comm_core_ctx_open(self.core, id, ctx_p) : WEFT_ERR_STATE;
}

void weft_comm_describe(char *buf, size_t size)
{
	if (size)
		buf[0] = 0;
	if (self.core)
		weft_comm_core_describe(self.core, buf, size);
}
