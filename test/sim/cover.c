/* SPDX-License-Identifier: BSD-3-Clause */
/* cover.c - counts which states of the protocols a run has met. */
#include "sim.h"

#define SIM_GROUP(id, text)
#define SIM_STATE(id, text) text,
static const char *const texts[SIM_STATES] = {
#include "sim_states.h"
};
#undef SIM_STATE
#undef SIM_GROUP

/* By their first state. */
#define SIM_GROUP(id, text) [SIM_GROUP_##id] = (text),
#define SIM_STATE(id, text)
static const char *const groups[SIM_STATES] = {
#include "sim_states.h"
};
#undef SIM_STATE
#undef SIM_GROUP

uint64_t *sim_covered;

static enum sim_state posted(const struct weft_wire *h)
{
	switch (h->kind) {
	case WEFT_WIRE_EAGER:
		return h->flags & WEFT_WIRE_SYNC ? SIM_POST_SYNC : SIM_POST_EAGER;
	case WEFT_WIRE_RTS:
		return SIM_POST_RTS;
	case WEFT_WIRE_CTS:
		return h->flags & WEFT_WIRE_OFFER    ? SIM_POST_OFFER
		       : h->flags & WEFT_WIRE_REGION ? SIM_POST_REGION
		       : h->flags & WEFT_WIRE_REST   ? SIM_POST_REST_OFFER
		       : h->flags & WEFT_WIRE_SHARE  ? SIM_POST_SHARE
						     : SIM_POST_CTS;
	case WEFT_WIRE_DATA:
		return h->flags & WEFT_WIRE_SHARE    ? SIM_POST_REPORT
		       : h->flags & WEFT_WIRE_PLACED ? SIM_POST_PLACED
		       : h->flags & WEFT_WIRE_REST   ? SIM_POST_REST
						     : SIM_POST_DATA;
	case WEFT_WIRE_FIN:
		return SIM_POST_FIN;
	case WEFT_WIRE_RTR:
		return SIM_POST_RTR;
	case WEFT_WIRE_PACK:
		return SIM_POST_PACK;
	default:
		return SIM_POST_CREDIT;
	}
}

/* The state of that kind in a row of six: eager, RTS, CTS, data, FIN, credit. */
static void cover_row(const struct weft_wire *h, enum sim_state first)
{
	if (h->kind >= WEFT_WIRE_EAGER && h->kind <= WEFT_WIRE_CREDIT)
		sim_cover(first + (enum sim_state)(h->kind - WEFT_WIRE_EAGER));
}

void sim_cover_post(const struct weft_wire *h, enum weft_post p)
{
	if (sim.rma && h->context == SIM_RMA_CTX && h->kind == WEFT_WIRE_EAGER)
		sim_cover(SIM_GROUP_ONE_SIDED + (enum sim_state)(h->tag - 1));
	switch (p) {
	case WEFT_POST_FULL:
		if (h->kind == WEFT_WIRE_PACK)
			sim_cover(SIM_FULL_PACK);
		cover_row(h, SIM_FULL_EAGER);
		return;
	case WEFT_POST_REFUSED: /* posts are not */
	case WEFT_POST_DOWN:
		if (h->kind <= WEFT_WIRE_RTS)
			cover_row(h, SIM_DOWN_EAGER);
		return;
	case WEFT_POST_ACCEPTED:
		if (h->kind == WEFT_WIRE_EAGER)
			sim_cover(SIM_KEPT_EAGER);
		else if (h->kind == WEFT_WIRE_DATA)
			sim_cover(SIM_KEPT_DATA);
		break;
	case WEFT_POST_DONE:
		break;
	}
	sim_cover(posted(h));
	if (h->credit && h->kind != WEFT_WIRE_CREDIT)
		sim_cover(SIM_WITH_CREDIT);
}

void sim_cover_lost(const struct weft_wire *h)
{
	if (h->kind == WEFT_WIRE_PACK)
		sim_cover(SIM_LOST_PACK);
	else if (h->kind <= WEFT_WIRE_FIN)
		cover_row(h, SIM_LOST_EAGER);
}

unsigned sim_cover_print(FILE *out, bool all)
{
	unsigned missing = 0;
	for (int i = 0; i < SIM_STATES; i++) {
		if (sim.rma != (i >= SIM_GROUP_ONE_SIDED))
			continue;
		if (all && groups[i])
			fprintf(out, "%s\n", groups[i]);
		if (all || !sim_covered[i])
			fprintf(out, "%12llu  %s\n", (unsigned long long)sim_covered[i], texts[i]);
		missing += !sim_covered[i];
	}
	return missing;
}
