/* SPDX-License-Identifier: BSD-3-Clause */
/* Heads of packets are those of the wire's version 5, value by value: a change of one needs a new version. */
#include "check.h"
#include "comm/wire.h"
#include "net/auth.h"

#define OF_VERSION_5(cond)                                                                         \
	_Static_assert(cond, "a change of the wire: raise WEFT_AUTH_VERSION, then this list")

OF_VERSION_5(WEFT_AUTH_VERSION == 5);
OF_VERSION_5(WEFT_WIRE_EAGER == 1 && WEFT_WIRE_RTS == 2 && WEFT_WIRE_CTS == 3 &&
	     WEFT_WIRE_DATA == 4);
OF_VERSION_5(WEFT_WIRE_FIN == 5 && WEFT_WIRE_CREDIT == 6 && WEFT_WIRE_PACK == 7 &&
	     WEFT_WIRE_RTR == 8);
OF_VERSION_5(WEFT_WIRE_CANCEL == 9);
OF_VERSION_5(WEFT_WIRE_SYNC == 1 && WEFT_WIRE_OFFER == 1 && WEFT_WIRE_CANCELLED == 1 &&
	     WEFT_WIRE_PLACED == 1);
OF_VERSION_5(WEFT_WIRE_SHARE == 2 && WEFT_WIRE_REST == 4 && WEFT_WIRE_REGION == 8 &&
	     WEFT_WIRE_QUIET == 16);
OF_VERSION_5(WEFT_CONTROL_MAX == 24 && sizeof(struct weft_wire) == 24);
OF_VERSION_5(offsetof(struct weft_wire, kind) == 0 && offsetof(struct weft_wire, flags) == 1);
OF_VERSION_5(offsetof(struct weft_wire, credit) == 2 && offsetof(struct weft_wire, sequence) == 4);
OF_VERSION_5(offsetof(struct weft_wire, context) == 8 && offsetof(struct weft_wire, tag) == 12);
OF_VERSION_5(offsetof(struct weft_wire, length) == 16);
OF_VERSION_5(offsetof(struct weft_wire_rts, id) == 0 && offsetof(struct weft_wire_rts, addr) == 8);
OF_VERSION_5(offsetof(struct weft_wire_place, addr) == 0 &&
	     offsetof(struct weft_wire_place, key) == 8);

int main(void)
{
	uint32_t id;
	struct weft_wire h = {
		.kind = WEFT_WIRE_EAGER, .flags = WEFT_WIRE_SYNC, .length = 0x700000005};
	CHECK_EQ(weft_comm_wire_eager_length(&h, &id), 5);
	CHECK_EQ(id, 7);
	return 0;
}
