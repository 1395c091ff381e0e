/* SPDX-License-Identifier: BSD-3-Clause */
/* region.c - atomics by the CPU, on a region that is mapped here. */
#include "net/region.h"

/* seq_cst: the atomics of all origins on one target have one order, also those on two words. */
#define ORDER memory_order_seq_cst

#define ON_WORD(TYPE)                                                                              \
	static TYPE on_##TYPE(const struct weft_net_atomic *a, _Atomic TYPE *x)                    \
	{                                                                                          \
		TYPE found = (TYPE)a->compare, operand = (TYPE)a->operand;                         \
		if (a->op == WEFT_NET_FETCH_ADD)                                                   \
			return atomic_fetch_add_explicit(x, operand, ORDER);                       \
		if (a->op == WEFT_NET_SWAP)                                                        \
			return atomic_exchange_explicit(x, operand, ORDER);                        \
		(void)atomic_compare_exchange_strong_explicit(x, &found, operand, ORDER, ORDER);   \
		return found;                                                                      \
	}

ON_WORD(uint8_t)
ON_WORD(uint16_t)
ON_WORD(uint32_t)
ON_WORD(uint64_t)

void weft_net_atomic_mapped(const struct weft_net_atomic *a, void *word)
{
	weft_assert((uintptr_t)word % a->bytes == 0 && a->op <= WEFT_NET_COMPARE_SWAP);
	uint64_t before; /* little-endian, as the wire: its first bytes are the value */
	if (a->bytes == 1)
		before = on_uint8_t(a, word);
	else if (a->bytes == 2)
		before = on_uint16_t(a, word);
	else if (a->bytes == 4)
		before = on_uint32_t(a, word);
	else
		before = on_uint64_t(a, word);
	memcpy(a->result, &before, a->bytes);
}
