/* SPDX-License-Identifier: BSD-3-Clause */
/* describe.c - a core as text: its drivers, the networks under a bundle, and thresholds. */
#include <stdio.h>
#include "comm/describe.h"
#include "net/bundle/bundle.h"

/* What the networks under a bundle did so far. */
static size_t describe_rails(const struct weft_rail *r, char *buf, size_t size)
{
	struct weft_bundle_stats s[WEFT_BUNDLE_RAILS];
	size_t at = 0;
	if (r->driver != &weft_net_driver_bundle)
		return 0;
	unsigned n = weft_net_bundle_stats(r->net, s, WEFT_BUNDLE_RAILS);
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

/* A line per peer whose eager threshold is its host's own. */
static size_t describe_thresholds(const struct weft_core *core, char *buf, size_t size)
{
	size_t at = 0;
	for (int p = 0; p < core->size && at < size; p++) {
		const struct weft_gate *g = &core->gate[p];
		if (!g->driver || g->eager_max == g->driver->card(g->net, p)->eager_max)
			continue;
		int k = snprintf(buf + at, size - at, "%-5s rank %d: eager to %zu bytes\n",
				 g->driver->name, p, g->eager_max);
		at += k > 0 ? (size_t)k : 0;
	}
	return at < size ? at : size;
}

void weft_comm_core_describe(const struct weft_core *core, char *buf, size_t size)
{
	size_t at = 0;
	for (int i = 0; i < core->nrails && at < size; i++) {
		const struct weft_rail *r = &core->rail[i];
		const struct weft_net_card *c = r->driver->card(r->net, -1);
		int n = snprintf(buf + at, size - at,
				 "%-5s %d peers, eager to %zu bytes, packets to %zu bytes\n",
				 r->driver->name, r->peers, c->eager_max, c->max_payload);
		at += n > 0 ? (size_t)n : 0;
	}
	for (int i = 0; i < core->nrails && at < size; i++)
		at += describe_rails(&core->rail[i], buf + at, size - at);
	if (at < size)
		at += describe_thresholds(core, buf + at, size - at);
	if (at < size)
		snprintf(buf + at, size - at, "self  rank %d of %d\n", core->rank, core->size);
}
