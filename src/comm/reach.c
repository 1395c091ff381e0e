/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reach.c - each driver that is needed is opened, and the addresses change hands.
 *
 * Each driver that needs no network is opened and its address published, with a key of this host.
 * From all keys every rank computes the same answer to: is there a pair that shm does not connect?
 * Only then does tcp listen, and a second round publishes its addresses.  Where the launcher has said that
 * there are several hosts, tcp listens at once and its addresses go with the keys: one round.
 *
 * Lazily, where the launcher's space allows it and has told that ranks run elsewhere: tcp listens at
 * once, the keys of this node's ranks are fetched, and tcp asks for an address when it dials.
 */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include "base/log.h"
#include "base/settings.h"
#include "comm/core.h"
#include "comm/reach.h"
#include "net/bundle/bundle.h"

/* ---- drivers ------------------------------------------------------------------------------ */

static const struct {
	const char *name;
	const struct weft_driver *driver; /* NULL: sends to oneself, which need none */
} known[] = {{"self", NULL},
	     {"shm", &weft_net_driver_shm},
	     {"tcp", &weft_net_driver_tcp},
	     {"ofi", &weft_net_driver_ofi}};

static bool word_is(const char *word, size_t n, const char *name)
{
	return strlen(name) == n && !strncmp(word, name, n);
}

/* Is the driver in the setting's list?  Checks the list's words on the way. */
static bool driver_wanted(const char *name, weft_err *err_p)
{
	bool found = false;
	const char *w = weft_setting_str(WEFT_SET_DRIVERS);
	while (*w) {
		size_t n = strcspn(w, ", ");
		bool good = !n;
		for (size_t i = 0; i < weft_countof(known); i++)
			good = good || word_is(w, n, known[i].name);
		if (!good && !*err_p) { /* one line, however many */
			weft_error("WEFT_DRIVERS: there is no driver '%.*s'; there are self, shm, "
				   "tcp and ofi",
				   n < 100 ? (int)n : 100, w);
			*err_p = WEFT_ERR_ARG;
		}
		found = found || word_is(w, n, name);
		w += n + strspn(w + n, ", ");
	}
	return found;
}

/* A driver dials a peer whose address has not been fetched. */
static weft_err find_address(void *arg, int peer, char *buf, size_t size)
{
	struct weft_reach *reach = arg;
	return reach->try_get(reach->space, peer, "comm.tcp", buf, size);
}

/* Opens a driver; a driver that does not work on this machine is left out.  *rail_p: -1 then. */
static weft_err rail_open(struct weft_reach *reach, const struct weft_driver *driver,
			  const struct weft_comm_meeting *job, int *rail_p)
{
	struct weft_net_job net = {.rank = job->rank,
				   .size = job->size,
				   .jobid = job->jobid,
				   .secret = job->secret,
				   .find = job->locals ? find_address : NULL,
				   .find_arg = reach};
	*rail_p = -1;
	weft_err err = weft_comm_core_rail_add(reach->core, driver, &net);
	if (err == WEFT_ERR_UNSUPPORTED) {
		weft_info("driver %s does not work on this machine", driver->name);
		return WEFT_OK;
	}
	if (err) {
		weft_error("driver %s cannot start: %s", driver->name, weft_strerror(err));
		return err;
	}
	*rail_p = reach->core->nrails - 1;
	return WEFT_OK;
}

static weft_err rail_address(struct weft_reach *reach, int rail, char *buf, size_t size)
{
	buf[0] = 0;
	if (rail < 0)
		return WEFT_OK;
	struct weft_rail *r = &reach->core->rail[rail];
	weft_err err = r->driver->address(r->net, buf, size);
	/* ARG: the user named what is not there, and the driver has said so. */
	if (err && err != WEFT_ERR_ARG)
		weft_error("driver %s has no address: %s", r->driver->name, weft_strerror(err));
	return err;
}

/* ---- addresses ---------------------------------------------------------------------------- */

#define CARD_TEXT (WEFT_REACH_TEXT + WEFT_HOST_KEY_MAX + WEFT_CPUS_TEXT + WEFT_SAMPLE_NAME + 26)

/* Three lines: the host; credit, cores and the host's name; shm's address. */
static bool card_read(struct weft_reach_card *c, char *text)
{
	int end = 0;
	char *rest = strchr(text, '\n'), *shm = rest ? strchr(rest + 1, '\n') : NULL;
	if (!shm || rest - text >= WEFT_HOST_KEY_MAX || strlen(shm + 1) >= WEFT_REACH_TEXT)
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

/* Fills this rank's card and publishes it with what has been put before. */
static weft_err publish_card(struct weft_reach *reach, const struct weft_comm_meeting *job, int shm)
{
	char text[CARD_TEXT];
	struct weft_reach_card *mine = &reach->card[job->rank];
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	if (sched_getaffinity(0, sizeof cpus, &cpus))
		CPU_SET(0, &cpus);
	weft_comm_cpus_print(&cpus, mine->cpus);

	if (weft_net_host_key(mine->host, sizeof mine->host))
		mine->host[0] = 0;
	weft_err err = rail_address(reach, shm, mine->shm, sizeof mine->shm);
	if (err)
		return err;
	if (!weft_sample_own_name(mine->name))
		strcpy(mine->name, "-");
	snprintf(text, sizeof text, "%s\n%llu %s %s\n%s", mine->host,
		 (unsigned long long)reach->core->credit, mine->cpus, mine->name, mine->shm);
	err = job->put(job->arg, "comm.card", text);
	return err ? err : job->fence(job->arg);
}

static weft_err fetch_card(struct weft_reach *reach, const struct weft_comm_meeting *job, int p)
{
	char text[CARD_TEXT];
	weft_err err = job->get(job->arg, p, "comm.card", text, sizeof text);
	if (!err && card_read(&reach->card[p], text))
		return WEFT_OK;
	weft_error("rank %d has published no address", p);
	return err ? err : WEFT_ERR_PROTO;
}

/* First round: each rank publishes its host.  Fills the cards. */
static weft_err exchange_cards(struct weft_reach *reach, const struct weft_comm_meeting *job,
			       int shm)
{
	weft_err err = publish_card(reach, job, shm);
	for (int p = 0; p < job->size && !err; p++)
		err = fetch_card(reach, job, p);
	return err;
}

/* Does rank p's host have more ranks than these may use cores?  Asked of its first rank. */
static bool host_crowded(const struct weft_reach *reach, const struct weft_comm_meeting *job, int p)
{
	cpu_set_t cpus;
	int ranks = 0;

	CPU_ZERO(&cpus);
	if (!reach->card[p].cpus[0])
		return false; /* not fetched */
	for (int q = 0; q < job->size; q++) {
		if (q != p && (!reach->card[p].host[0] ||
			       strcmp(reach->card[p].host, reach->card[q].host) != 0))
			continue;
		if (q < p)
			return false; /* it has been asked */
		ranks++;
		weft_comm_cpus_add(reach->card[q].cpus, &cpus);
	}
	return ranks > CPU_COUNT(&cpus);
}

/*
 * Algorithms depend on it, so every rank must find the same, whatever it is bound to itself and
 * wherever it runs: all look at what all have published.
 */
static void find_crowds(struct weft_reach *reach, const struct weft_comm_meeting *job)
{
	const char *how = weft_setting_str(WEFT_SET_CROWDED); /* auto, yes, no */
	reach->crowded = how[0] == 'y';
	for (int p = 0; p < job->size && how[0] == 'a' && !reach->crowded; p++)
		reach->crowded = host_crowded(reach, job, p);
}

/* The same answer in every rank: is there a pair that shm does not connect? */
static bool shm_is_not_enough(const struct weft_reach *reach, int size)
{
	for (int p = 0; p < size; p++)
		if (!reach->card[p].shm[0] || !reach->card[p].host[0] ||
		    strcmp(reach->card[p].host, reach->card[0].host) != 0)
			return true;
	return false;
}

/* From what was measured with the peer's host. */
static void set_eager_max(struct weft_reach *reach, int peer)
{
	struct weft_gate *g = &reach->core->gate[peer];
	if (g->driver->card(g->net, peer)->streams)
		weft_comm_gate_eager_set(g, (size_t)weft_setting_for_host(WEFT_SET_EAGER_TCP,
									  reach->card[peer].name));
}

static void reach_by(struct weft_reach *reach, int rail, int peer, const char *address)
{
	if (rail < 0 || !address[0] || reach->core->gate[peer].driver)
		return;
	struct weft_rail *r = &reach->core->rail[rail];
	weft_err err = r->driver->reach(r->net, peer, address);
	if (!err) {
		weft_comm_core_gate_set(reach->core, peer, rail);
		reach->core->gate[peer].credit = reach->card[peer].credit;
		set_eager_max(reach, peer);
	} else if (err != WEFT_ERR_UNSUPPORTED) {
		weft_warn("driver %s cannot use the address of rank %d: %s", r->driver->name, peer,
			  weft_strerror(err));
	}
}

/* A network of this core, and whether its address has been put. */
struct network {
	const struct weft_driver *driver;
	char key[32];
	int rail; /* -1: it does not work here */
	bool put;
};

/* Opens the network and puts its address, once. */
static weft_err network_put(struct weft_reach *reach, const struct weft_comm_meeting *job,
			    struct network *net)
{
	char text[WEFT_REACH_TEXT];
	if (net->put)
		return WEFT_OK;
	snprintf(net->key, sizeof net->key, "comm.%s", net->driver->name);
	weft_err err = rail_open(reach, net->driver, job, &net->rail);
	if (!err)
		err = rail_address(reach, net->rail, text, sizeof text);
	if (!err)
		err = job->put(job->arg, net->key, text);
	net->put = !err;
	return err;
}

/* Have all members put theirs before the last fence?  All ask the same, so all find the same. */
static weft_err network_told(const struct weft_comm_meeting *job, const struct network *net,
			     bool *all_p)
{
	char text[WEFT_REACH_TEXT];
	weft_err err = WEFT_OK;
	for (int p = 0; p < job->size && !err; p++)
		err = job->get(job->arg, p, net->key, text, sizeof text);
	*all_p = !err;
	return err == WEFT_ERR_NOENT ? WEFT_OK : err;
}

/* A further round for each network that is needed, best first, unless all have told their addresses. */
static weft_err exchange_network(struct weft_reach *reach, const struct weft_comm_meeting *job,
				 struct network *net)
{
	char text[WEFT_REACH_TEXT];
	bool told = false;
	weft_err err = net->put ? network_told(job, net, &told) : network_put(reach, job, net);
	if (!err && !told)
		err = job->fence(job->arg);
	if (err)
		return err;
	for (int p = 0; p < job->size; p++) {
		if (p == job->rank || reach->core->gate[p].driver)
			continue;
		err = job->get(job->arg, p, net->key, text, sizeof text);
		if (err)
			return err;
		reach_by(reach, net->rail, p, text);
	}
	return WEFT_OK;
}

/* The networks that the setting allows, best first; *n_p: how many. */
static weft_err networks_wanted(struct network net[2], int *n_p)
{
	weft_err err = WEFT_OK;
	const char *list = weft_setting_str(WEFT_SET_DRIVERS);
	bool tcp = driver_wanted("tcp", &err), ofi = driver_wanted("ofi", &err);
	bool ofi_first = ofi && (!tcp || strstr(list, "ofi") < strstr(list, "tcp"));
	*n_p = tcp + ofi;
	net[0] =
		(struct network){.driver = ofi_first ? &weft_net_driver_ofi : &weft_net_driver_tcp};
	net[1] =
		(struct network){.driver = ofi_first ? &weft_net_driver_tcp : &weft_net_driver_ofi};
	return err;
}

/* Several networks at once to each peer, if the setting says so. */
static weft_err exchange_rails(struct weft_reach *reach, const struct weft_comm_meeting *job,
			       bool *done_p)
{
	struct weft_bundle_rail rails[WEFT_BUNDLE_RAILS];
	unsigned n;
	weft_err err = weft_net_bundle_parse(weft_setting_str(WEFT_SET_RAILS), rails, &n);
	*done_p = !err && n;
	if (!*done_p)
		return err;
	weft_net_bundle_plan(rails, n);
	return exchange_network(reach, job, &(struct network){.driver = &weft_net_driver_bundle});
}

/* ---- lazily ------------------------------------------------------------------------------- */

/* May addresses be fetched at first contact?  The launcher has told that ranks run elsewhere, and tcp is
 * the first network to use. */
static bool may_be_lazy(const struct weft_comm_meeting *job, const int **local_p, int *n_p)
{
	weft_err err = WEFT_OK;
	const char *list = weft_setting_str(WEFT_SET_DRIVERS), *ofi = strstr(list, "ofi");
	if (!job->locals || *weft_setting_str(WEFT_SET_RAILS))
		return false;
	*n_p = job->locals(job->arg, local_p);
	return *n_p && *n_p < job->size && driver_wanted("tcp", &err) &&
	       !(ofi && ofi < strstr(list, "tcp"));
}

/* What rank 0 finds of its node holds for all, since every rank must find the same. */
static weft_err agree_on_crowd(struct weft_reach *reach, const struct weft_comm_meeting *job,
			       const int *local, int n)
{
	char text[4];
	weft_err err = WEFT_OK;
	reach->crowded = false;
	if (job->rank == 0) {
		for (int i = 0; i < n && !reach->crowded; i++)
			reach->crowded = host_crowded(reach, job, local[i]);
		err = job->put(job->arg, "comm.crowded", reach->crowded ? "1" : "0");
		return err ? err : job->fence(job->arg);
	}
	err = job->get(job->arg, 0, "comm.crowded", text, sizeof text);
	reach->crowded = !err && text[0] == '1';
	return err;
}

static weft_err reach_lazily(struct weft_reach *reach, const struct weft_comm_meeting *job, int shm,
			     const int *local, int n)
{
	char text[WEFT_REACH_TEXT];
	int tcp;
	reach->space = job->arg;
	reach->try_get = job->try_get;
	reach->apart = true;
	weft_err err = rail_open(reach, &weft_net_driver_tcp, job, &tcp);
	if (!err && tcp < 0)
		err = WEFT_ERR_UNSUPPORTED;
	if (!err)
		err = rail_address(reach, tcp, text, sizeof text);
	if (!err)
		err = job->put(job->arg, "comm.tcp", text);
	if (!err)
		err = publish_card(reach, job, shm);
	for (int i = 0; i < n && !err; i++)
		err = fetch_card(reach, job, local[i]);
	if (!err)
		err = agree_on_crowd(reach, job, local, n);
	if (err)
		return err;
	for (int p = 0; p < job->size; p++) {
		if (p == job->rank)
			continue;
		reach_by(reach, shm, p, reach->card[p].shm);
		reach->card[p].credit =
			reach->card[p].credit ? reach->card[p].credit : reach->core->credit;
		reach_by(reach, tcp, p, WEFT_NET_LATER);
	}
	return WEFT_OK;
}

/* No driver reaches peer: the driver that would. */
static const char *what_is_missing(const struct weft_reach *reach, int peer, weft_err *err_p)
{
	if (driver_wanted("tcp", err_p))
		return "";
	bool here = *reach->card[peer].host &&
		    !strcmp(reach->card[peer].host, reach->card[reach->core->rank].host);
	return here ? "; on this host it takes shm or tcp" : "; another host needs tcp or ofi";
}

static weft_err reach_all(struct weft_reach *reach, const struct weft_comm_meeting *job)
{
	weft_err err = WEFT_OK;
	bool want_shm = driver_wanted("shm", &err), rails = *weft_setting_str(WEFT_SET_RAILS);
	int shm = -1, n_local, n_nets;
	const int *local;
	struct network net[2];

	if (err || job->size == 1 || (err = networks_wanted(net, &n_nets)))
		return err;
	want_shm = want_shm && !rails;
	if (want_shm)
		err = rail_open(reach, &weft_net_driver_shm, job, &shm);
	if (err)
		return err;
	if (may_be_lazy(job, &local, &n_local))
		return reach_lazily(reach, job, shm, local, n_local);
	if (job->spread && !rails && n_nets)
		err = network_put(reach, job, &net[0]);
	if (err || (err = exchange_cards(reach, job, shm)))
		return err;
	find_crowds(reach, job);
	if ((err = exchange_rails(reach, job, &rails)))
		return err;
	for (int p = 0; p < job->size; p++)
		if (p != job->rank)
			reach_by(reach, shm, p, reach->card[p].shm);
	reach->apart = rails || shm_is_not_enough(reach, job->size);
	for (int i = 0; i < n_nets && !rails && reach->apart; i++)
		if ((err = exchange_network(reach, job, &net[i])))
			return err;
	for (int p = 0; p < job->size; p++) {
		if (p == job->rank || reach->core->gate[p].driver)
			continue;
		if (rails) {
			weft_error("rank %d cannot be reached by any of WEFT_RAILS=%s", p,
				   weft_setting_str(WEFT_SET_RAILS));
			return WEFT_ERR_UNSUPPORTED;
		}
		weft_error("rank %d cannot be reached by the drivers in WEFT_DRIVERS=%s%s", p,
			   weft_setting_str(WEFT_SET_DRIVERS), what_is_missing(reach, p, &err));
		return WEFT_ERR_UNSUPPORTED;
	}
	return WEFT_OK;
}

/* ---- the calls ---------------------------------------------------------------------------- */

weft_err weft_comm_reach_all(struct weft_reach *reach, struct weft_core *core,
			     const struct weft_comm_meeting *job)
{
	reach->core = core;
	reach->card = calloc((size_t)job->size, sizeof *reach->card);
	return reach->card ? reach_all(reach, job) : WEFT_ERR_NOMEM;
}

void weft_comm_reach_end(struct weft_reach *reach)
{
	free(reach->card);
	reach->card = NULL;
}

bool weft_comm_reach_same_host(const struct weft_reach *reach, int p, int q)
{
	return reach->card[p].host[0] && !strcmp(reach->card[p].host, reach->card[q].host);
}
