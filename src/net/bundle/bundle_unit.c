/* SPDX-License-Identifier: BSD-3-Clause */
/* bundle_unit.c - the memory of units: each peer's own, by length. */
#include <stdlib.h>
#include "net/bundle/bundle_int.h"

#define SPARE_BYTES (1u << 20) /* of units that are over, kept for the next ones to one peer */

static size_t room_of(unsigned order)
{
	return WEFT_NET_HEAD + ((size_t)WEFT_BUNDLE_UNIT_MIN << order);
}

struct weft_bundle_unit *weft_net_bundle_unit_new(struct weft_bundle_peer *p, size_t bytes)
{
	static_assert(WEFT_BUNDLE_UNIT_MIN << (WEFT_BUNDLE_CLASSES - 1) == WEFT_BUNDLE_WHOLE_MAX,
		      "there is one for each");
	unsigned order = 0;
	while (room_of(order) < bytes) /* bound: the classes */
		order++;
	weft_assert_held(weft_net_bundle, p);
	weft_assert(order < WEFT_BUNDLE_CLASSES);
	struct weft_bundle_unit *u = (struct weft_bundle_unit *)p->spare[order];
	if (u) {
		p->spare[order] = u->link.next;
		weft_assert(p->spare_bytes >= room_of(order));
		p->spare_bytes -= room_of(order);
	} else {
		u = malloc(sizeof *u + room_of(order));
	}
	if (u)
		*u = (struct weft_bundle_unit){.head.number = p->number, .order = (uint8_t)order};
	return u;
}

void weft_net_bundle_unit_free(struct weft_bundle_peer *p, struct weft_bundle_unit *u)
{
	weft_assert_held(weft_net_bundle, p);
	weft_assert(!u->held && u->order < WEFT_BUNDLE_CLASSES);
	/* From malloc each time, their memory would go back to the kernel again and again. */
	if (p->spare_bytes >= SPARE_BYTES) {
		free(u);
		return;
	}
	u->link.next = p->spare[u->order];
	p->spare[u->order] = &u->link;
	p->spare_bytes += room_of(u->order);
}

void weft_net_bundle_spares_free(struct weft_bundle_peer *p)
{
	for (unsigned i = 0; i < WEFT_BUNDLE_CLASSES; i++)
		while (p->spare[i]) {
			struct weft_bundle_link *l = p->spare[i];
			p->spare[i] = l->next;
			free(l); /* the unit's first member */
		}
	p->spare_bytes = 0;
}
