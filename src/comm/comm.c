/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * comm.c - the process's one core: its drivers, who is reached by which, its place in the engine.
 *
 * Start.  Each driver that needs no network is opened and its address published, with a key of
 * this host.  From all keys every rank computes the same answer to: is there a pair that shm does
 * not connect?  Only then does tcp listen, and a second round publishes its addresses.
 */
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>
#include "base/cancel.h"
#include "base/sample.h"
#include "base/settings.h"
#include "boot/boot.h"
#include "comm/comm_int.h"
#include "comm/pack.h"
#include "comm/cpus.h"
#include "net/bundle.h"
#include "net/host.h"
#include "task/task.h"

#define CARD_BYTES 1024 /* an address, or a host key */

struct card {
	uint64_t credit; /* what it lets us have under way to it */
	char host[WEFT_HOST_KEY_MAX];
	char shm[CARD_BYTES]; /* empty: none */
	char cpus[WEFT_CPUS_TEXT];
	char name[WEFT_SAMPLE_NAME]; /* its host's; empty: none */
};

static struct {
	struct weft_core *core;
	struct weft_source source[WEFT_RAILS_MAX];
	bool added[WEFT_RAILS_MAX];
	struct card *card; /* one per rank */
	bool crowded;      /* some host has more ranks than cores for them */
	bool apart;        /* some pair of ranks is not connected by shm */
	void (*down_hook)(int peer, weft_err err, const char *why);
} self;

/* ---- drivers ------------------------------------------------------------------------------ */

static const struct {
	const char *name;
	const struct weft_driver *driver; /* NULL: sends to oneself, which need none */
} known[] = {{"self", NULL},
	     {"shm", &weft_driver_shm},
	     {"tcp", &weft_driver_tcp},
	     {"ofi", &weft_driver_ofi}};

static bool word_is(const char *word, size_t n, const char *name)
{
	return strlen(name) == n && !strncmp(word, name, n);
}

/* Is the driver in the setting's list?  Checks the list's words on the way. */
static bool wanted(const char *name, weft_err *err_p)
{
	bool found = false;
	const char *w = weft_setting_str(WEFT_SET_DRIVERS);
	while (*w) {
		size_t n = strcspn(w, ", ");
		bool good = !n;
		for (size_t i = 0; i < weft_countof(known); i++)
			good = good || word_is(w, n, known[i].name);
		if (!good) {
			weft_error("WEFT_DRIVERS: there is no driver '%.*s'; there are self, shm, "
				   "tcp and ofi",
				   (int)n, w);
			*err_p = WEFT_ERR_ARG;
		}
		found = found || word_is(w, n, name);
		w += n + strspn(w + n, ", ");
	}
	return found;
}

/* Opens a driver; what does not work on this machine is left out.  *rail_p: -1 then. */
static weft_err rail_open(const struct weft_driver *driver, const struct weft_boot_info *boot,
			  int *rail_p)
{
	struct weft_net_job job = {.rank = boot->rank,
				   .size = boot->size,
				   .jobid = boot->jobid,
				   .secret = boot->secret};
	*rail_p = -1;
	weft_err err = weft_core_rail_add(self.core, driver, &job);
	if (err == WEFT_ERR_UNSUPPORTED) {
		weft_info("driver %s does not work on this machine", driver->name);
		return WEFT_OK;
	}
	if (err) {
		weft_error("driver %s cannot start: %s", driver->name, weft_strerror(err));
		return err;
	}
	*rail_p = self.core->nrails - 1;
	return WEFT_OK;
}

static weft_err rail_address(int rail, char *buf, size_t size)
{
	buf[0] = 0;
	if (rail < 0)
		return WEFT_OK;
	struct weft_rail *r = &self.core->rail[rail];
	weft_err err = r->driver->address(r->net, buf, size);
	/* ARG: the user named what is not there, and the driver has said so. */
	if (err && err != WEFT_ERR_ARG)
		weft_error("driver %s has no address: %s", r->driver->name, weft_strerror(err));
	return err;
}

/* ---- addresses ---------------------------------------------------------------------------- */

/* A line for the host, one for credit, cores and the host's name, one for shm's address. */
static bool card_read(struct card *c, char *text)
{
	int end = 0;
	char *rest = strchr(text, '\n'), *shm = rest ? strchr(rest + 1, '\n') : NULL;
	if (!shm || rest - text >= WEFT_HOST_KEY_MAX || strlen(shm + 1) >= CARD_BYTES)
		return false;
	*rest++ = 0;
	*shm++ = 0;
	unsigned long long credit;
	char cpus[WEFT_CPUS_TEXT], name[WEFT_SAMPLE_NAME];
	if (sscanf(rest, "%llu %256s %64s%n", &credit, cpus, name, &end) != 3 || rest[end])
		return false;
	c->credit = credit;
	memcpy(c->cpus, cpus, sizeof cpus);
	memcpy(c->name, name, sizeof name);
	if (strcmp(name, "-") == 0)
		c->name[0] = 0;
	memcpy(c->host, text, strlen(text) + 1);
	memcpy(c->shm, shm, strlen(shm) + 1);
	return true;
}
_Static_assert(WEFT_CPUS_TEXT == 257 && WEFT_SAMPLE_NAME == 65, "card_read's format says so");

/* First round: who is where.  Fills self.card. */
static weft_err exchange_cards(const struct weft_boot_info *boot, int shm)
{
	char text[CARD_BYTES + WEFT_HOST_KEY_MAX + WEFT_CPUS_TEXT + WEFT_SAMPLE_NAME + 26];
	struct card *mine = &self.card[boot->rank];
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	if (sched_getaffinity(0, sizeof cpus, &cpus))
		CPU_SET(0, &cpus);
	weft_cpus_print(&cpus, mine->cpus);

	if (weft_net_host_key(mine->host, sizeof mine->host))
		mine->host[0] = 0;
	weft_err err = rail_address(shm, mine->shm, sizeof mine->shm);
	if (err)
		return err;
	if (!weft_sample_own_name(mine->name))
		strcpy(mine->name, "-");
	snprintf(text, sizeof text, "%s\n%llu %s %s\n%s", mine->host,
		 (unsigned long long)self.core->credit, mine->cpus, mine->name, mine->shm);
	if ((err = weft_boot_put("comm.card", text)) || (err = weft_boot_fence()))
		return err;
	for (int p = 0; p < boot->size; p++) {
		err = weft_boot_get(p, "comm.card", text, sizeof text);
		if (err || !card_read(&self.card[p], text)) {
			weft_error("rank %d has published no address", p);
			return err ? err : WEFT_ERR_PROTO;
		}
	}
	return WEFT_OK;
}

/* Does rank p's host have more ranks than these may use cores?  Asked of its first rank. */
static bool host_crowded(const struct weft_boot_info *boot, int p)
{
	cpu_set_t cpus;
	int ranks = 0;

	CPU_ZERO(&cpus);
	for (int q = 0; q < boot->size; q++) {
		if (q != p &&
		    (!self.card[p].host[0] || strcmp(self.card[p].host, self.card[q].host) != 0))
			continue;
		if (q < p)
			return false; /* it has been asked */
		ranks++;
		weft_cpus_add(self.card[q].cpus, &cpus);
	}
	return ranks > CPU_COUNT(&cpus);
}

/*
 * Algorithms depend on it, so every rank must find the same, whatever it is bound to itself and
 * wherever it runs: all look at what all have published.
 */
static void find_crowds(const struct weft_boot_info *boot)
{
	self.crowded = false;
	for (int p = 0; p < boot->size && !self.crowded; p++)
		self.crowded = host_crowded(boot, p);
}

/* The same answer in every rank: is there a pair that shm does not connect? */
static bool shm_is_not_enough(int size)
{
	for (int p = 0; p < size; p++)
		if (!self.card[p].shm[0] || !self.card[p].host[0] ||
		    strcmp(self.card[p].host, self.card[0].host) != 0)
			return true;
	return false;
}

/* What was measured with the peer's host stands at the start; peers of one host share what is
 * learned of it. */
static void learn_with_host(int peer)
{
	struct weft_gate *g = &self.core->gate[peer];
	const struct weft_gate *like = NULL;
	if (g->driver->card(g->net, peer)->streams)
		weft_gate_eager_set(
			g, (size_t)weft_setting_for_host(WEFT_SET_EAGER_TCP, self.card[peer].name));
	if (!weft_setting_bool(WEFT_SET_SWITCH_LEARN) || weft_setting_given(WEFT_SET_EAGER_TCP))
		return;
	for (int q = 0; q < peer && !like; q++)
		if (self.core->gate[q].learn && self.card[peer].host[0] &&
		    !strcmp(self.card[q].host, self.card[peer].host))
			like = &self.core->gate[q];
	weft_gate_learn(g, like);
}

static void reach_by(int rail, int peer, const char *address)
{
	if (rail < 0 || !address[0] || self.core->gate[peer].driver)
		return;
	struct weft_rail *r = &self.core->rail[rail];
	weft_err err = r->driver->reach(r->net, peer, address);
	if (!err) {
		weft_core_gate_set(self.core, peer, rail);
		self.core->gate[peer].credit = self.card[peer].credit;
		learn_with_host(peer);
	} else if (err != WEFT_ERR_UNSUPPORTED) {
		weft_warn("driver %s cannot use the address of rank %d: %s", r->driver->name, peer,
			  weft_strerror(err));
	}
}

/* A further round for each network that is needed, best first. */
static weft_err exchange_network(const struct weft_boot_info *boot,
				 const struct weft_driver *driver)
{
	char text[CARD_BYTES], key[32];
	int rail;
	snprintf(key, sizeof key, "comm.%s", driver->name);
	weft_err err = rail_open(driver, boot, &rail);
	if (!err)
		err = rail_address(rail, text, sizeof text);
	if (err || (err = weft_boot_put(key, text)) || (err = weft_boot_fence()))
		return err;
	for (int p = 0; p < boot->size; p++) {
		if (p == boot->rank || self.core->gate[p].driver)
			continue;
		err = weft_boot_get(p, key, text, sizeof text);
		if (err)
			return err;
		reach_by(rail, p, text);
	}
	return WEFT_OK;
}

static weft_err exchange_networks(const struct weft_boot_info *boot)
{
	const struct weft_driver *first = &weft_driver_tcp, *second = &weft_driver_ofi;
	weft_err err = WEFT_OK;
	const char *list = weft_setting_str(WEFT_SET_DRIVERS);
	bool tcp = wanted("tcp", &err), ofi = wanted("ofi", &err);
	if (ofi && (!tcp || strstr(list, "ofi") < strstr(list, "tcp"))) {
		first = &weft_driver_ofi;
		second = &weft_driver_tcp;
	}
	if (tcp || ofi)
		err = exchange_network(boot, first);
	if (!err && tcp && ofi)
		err = exchange_network(boot, second);
	return err;
}

/* Several networks at once to each peer, if the setting says so. */
static weft_err exchange_rails(const struct weft_boot_info *boot, bool *done_p)
{
	struct weft_bundle_rail rails[WEFT_BUNDLE_RAILS];
	unsigned n;
	weft_err err = weft_bundle_parse(weft_setting_str(WEFT_SET_RAILS), rails, &n);
	*done_p = !err && n;
	if (!*done_p)
		return err;
	weft_bundle_plan(rails, n);
	return exchange_network(boot, &weft_driver_bundle);
}

/* For whom no driver serves: which one would. */
static const char *what_is_missing(int peer, weft_err *err_p)
{
	if (wanted("tcp", err_p))
		return "";
	bool here = *self.card[peer].host &&
		    !strcmp(self.card[peer].host, self.card[self.core->rank].host);
	return here ? "; on this host it takes shm or tcp" : "; another host needs tcp or ofi";
}

static weft_err reach_everybody(const struct weft_boot_info *boot)
{
	weft_err err = WEFT_OK;
	bool want_shm = wanted("shm", &err), rails = false;
	int shm = -1;

	if (err || boot->size == 1)
		return err;
	want_shm = want_shm && !*weft_setting_str(WEFT_SET_RAILS);
	if (want_shm)
		err = rail_open(&weft_driver_shm, boot, &shm);
	if (err || (err = exchange_cards(boot, shm)))
		return err;
	find_crowds(boot);
	if ((err = exchange_rails(boot, &rails)))
		return err;
	for (int p = 0; p < boot->size; p++)
		if (p != boot->rank)
			reach_by(shm, p, self.card[p].shm);
	self.apart = rails || shm_is_not_enough(boot->size);
	if (!rails && self.apart && (err = exchange_networks(boot)))
		return err;
	for (int p = 0; p < boot->size; p++) {
		if (p == boot->rank || self.core->gate[p].driver)
			continue;
		if (rails) {
			weft_error("rank %d cannot be reached by any of WEFT_RAILS=%s", p,
				   weft_setting_str(WEFT_SET_RAILS));
			return WEFT_ERR_UNSUPPORTED;
		}
		weft_error("rank %d cannot be reached by the drivers in WEFT_DRIVERS=%s%s", p,
			   weft_setting_str(WEFT_SET_DRIVERS), what_is_missing(p, &err));
		return WEFT_ERR_UNSUPPORTED;
	}
	return WEFT_OK;
}

/* ---- the engine's side -------------------------------------------------------------------- */

static int rail_poll(void *arg)
{
	return weft_rail_poll(arg);
}

static int rail_spin(void *arg, unsigned turns)
{
	struct weft_rail *r = arg;
	return r->driver->spin(r->net, turns);
}

/* The engine sleeps for edges: what made the descriptor readable before must be polled first. */
static bool rail_rings(struct weft_rail *r)
{
	struct pollfd p = {.fd = r->driver->fd(r->net), .events = POLLIN};
	int was = weft_cancel_off();
	int n = poll(&p, 1, 0);
	weft_cancel_back(was);
	return n > 0;
}

static weft_err rail_arm(void *arg)
{
	struct weft_rail *r = arg;
	if (weft_unlikely(r->packs) && !weft_pack_arm(r))
		return WEFT_AGAIN;
	weft_err err = r->driver->arm(r->net);
	if (!err && rail_rings(r)) {
		r->driver->disarm(r->net);
		err = WEFT_AGAIN;
	}
	if (err && r->packs)
		weft_pack_disarm(r);
	return err;
}

static void rail_disarm(void *arg)
{
	struct weft_rail *r = arg;
	r->driver->disarm(r->net);
	if (weft_unlikely(r->packs))
		weft_pack_disarm(r);
}

static int engine_poll(void *arg)
{
	(void)arg;
	return weft_engine_poll();
}

static void engine_wait(void *arg, struct weft_completion *c)
{
	(void)arg;
	weft_engine_wait(c);
}

static weft_err sources_add(void)
{
	struct weft_core *core = self.core;
	for (int i = 0; i < core->nrails; i++) {
		struct weft_rail *r = &core->rail[i];
		self.source[i] =
			(struct weft_source){.name = r->driver->name,
					     .poll = rail_poll,
					     .spin = r->driver->spin ? rail_spin : NULL,
					     .arm = r->driver->arm ? rail_arm : NULL,
					     .disarm = rail_disarm,
					     .fd = r->driver->arm ? r->driver->fd(r->net) : -1,
					     .arg = r};
		weft_err err = weft_source_add(&self.source[i]);
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
			weft_source_remove(&self.source[i]);
		self.added[i] = false;
	}
	self.core->background = false;
}

/* ---- life --------------------------------------------------------------------------------- */

static void forget(void)
{
	weft_core_destroy(self.core);
	self.core = NULL;
	free(self.card);
	self.card = NULL;
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
	weft_err err = weft_core_create(boot->rank, boot->size, &self.core);
	if (err) {
		weft_error("no memory to talk to %d ranks", boot->size);
		return err;
	}
	self.core->strategy = weft_strategy_find(weft_setting_str(WEFT_SET_STRATEGY));
	if (!self.core->strategy) {
		char names[256];
		weft_strategy_names(names, sizeof names);
		weft_error("WEFT_STRATEGY=%s: there are %s", weft_setting_str(WEFT_SET_STRATEGY),
			   names);
		weft_core_destroy(self.core);
		self.core = NULL;
		return WEFT_ERR_ARG;
	}
	self.core->down_hook = on_down;
	self.core->credit = (uint64_t)weft_setting_int(WEFT_SET_EAGER_CREDIT);
	self.core->rtr = weft_setting_bool(WEFT_SET_RTR);
	self.core->poll = engine_poll;
	self.core->wait = engine_wait;
	self.core->hold = weft_engine_hold;
	self.core->spare = weft_setting_bool(WEFT_SET_OFFLOAD) ? weft_engine_spare : NULL;
	self.core->wish = weft_engine_spare_wish;
	self.card = calloc((size_t)boot->size, sizeof *self.card);
	err = self.card ? reach_everybody(boot) : WEFT_ERR_NOMEM;
	/* With more ranks than cores somebody else needs the core on which the sender waits. */
	self.core->share_min = self.crowded ? 0 : (size_t)weft_setting_int(WEFT_SET_SHARE_COPY);
	if (!err)
		err = sources_add();
	if (err) {
		sources_remove();
		forget();
	}
	return err;
}

/* Between looks while leaving: nothing is urgent any more, others may need the core. */
static void rest(void)
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
	while (!weft_core_idle(core) && weft_clock_ns() < until) {
		if (weft_engine_poll())
			until = weft_clock_ns() + patience;
		else
			rest();
	}
	if (!weft_core_idle(core))
		weft_warn("leaving although a peer has not taken all that was sent to it");
	sources_remove();
	until = weft_clock_ns() + patience;
	while (!weft_core_drain(core) && weft_clock_ns() < until) {
		if (weft_core_poll(core))
			until = weft_clock_ns() + patience;
		else
			rest();
	}
	forget();
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
	const char *mine = self.card[self.core->rank].host;
	return mine[0] && !strcmp(mine, self.card[peer].host);
}

const char *weft_comm_host(int peer)
{
	return self.card ? self.card[peer].name : "";
}

int weft_comm_local_ranks(void)
{
	int n = 0;
	for (int p = 0; p < weft_comm_size(); p++)
		n += weft_comm_same_host(p);
	return n;
}

_Static_assert(WEFT_COMM_BOARD_BYTES == WEFT_NET_BOARD_BYTES, "the drivers' board is ours");

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

bool weft_comm_lost(int peer)
{
	return self.core && weft_gate_down(&self.core->gate[peer]);
}

bool weft_comm_crowded(void)
{
	return self.crowded;
}

bool weft_comm_apart(void)
{
	return self.apart;
}

void weft_comm_set_down_hook(void (*hook)(int peer, weft_err err, const char *why))
{
	self.down_hook = hook;
}

weft_err weft_ctx_open(uint32_t id, struct weft_ctx **ctx_p)
{
	return self.core ? weft_core_ctx_open(self.core, id, ctx_p) : WEFT_ERR_STATE;
}

/* What the networks under a bundle did so far. */
static size_t describe_rails(struct weft_rail *r, char *buf, size_t size)
{
	struct weft_bundle_stats s[WEFT_BUNDLE_RAILS];
	size_t at = 0;
	if (r->driver != &weft_driver_bundle)
		return 0;
	unsigned n = weft_bundle_stats(r->net, s, WEFT_BUNDLE_RAILS);
	for (unsigned i = 0; i < n && at < size; i++) {
		int k = snprintf(
			buf + at, size - at,
			"rail %u (%s) up to %u peers, %llu MB, %.0f MB/s, lost %llu times, "
			"back %llu times, %llu packets sent again\n",
			i, s[i].driver, s[i].up, (unsigned long long)(s[i].bytes >> 20),
			s[i].bandwidth_mbs, (unsigned long long)s[i].lost,
			(unsigned long long)s[i].revived, (unsigned long long)s[i].again);
		at += k > 0 ? (size_t)k : 0;
	}
	return at < size ? at : size;
}

/* One line per host whose switch point is measured. */
static size_t describe_learned(char *buf, size_t size)
{
	size_t at = 0;
	for (int p = 0; p < self.core->size && at < size; p++) {
		struct weft_learn *l = self.core->gate[p].learn;
		bool told = !l;
		for (int q = 0; q < p && !told; q++)
			told = self.core->gate[q].learn == l;
		if (told)
			continue;
		struct weft_learn_state s = weft_learn_read(l);
		int k = snprintf(buf + at, size - at,
				 "%-5s host of rank %d: eager to %zu bytes, moved %u times; asking "
				 "takes %.1f us, a copy %.1f us per 64 KiB\n",
				 self.core->gate[p].driver->name, p, s.point, s.moves,
				 (double)s.ask_ns / 1e3, (double)s.copy_ps * 65536 / 1e6);
		at += k > 0 ? (size_t)k : 0;
	}
	return at < size ? at : size;
}

void weft_comm_describe(char *buf, size_t size)
{
	size_t at = 0;
	if (size)
		buf[0] = 0;
	for (int i = 0; self.core && i < self.core->nrails && at < size; i++) {
		struct weft_rail *r = &self.core->rail[i];
		const struct weft_net_card *c = r->driver->card(r->net, -1);
		int n = snprintf(buf + at, size - at,
				 "%-5s %d peers, eager to %zu bytes, packets to %zu bytes\n",
				 r->driver->name, r->peers, c->eager_max, c->max_payload);
		at += n > 0 ? (size_t)n : 0;
	}
	for (int i = 0; self.core && i < self.core->nrails && at < size; i++)
		at += describe_rails(&self.core->rail[i], buf + at, size - at);
	if (self.core && at < size)
		at += describe_learned(buf + at, size - at);
	if (self.core && at < size)
		snprintf(buf + at, size - at, "self  rank %d of %d\n", self.core->rank,
			 self.core->size);
}
