/* SPDX-License-Identifier: BSD-3-Clause */
/* sign.c - compares the signatures of a message and of its receive. */
#include "comm/sign.h"
#include "comm/request.h"

bool weft_comm_signing;
_Thread_local struct weft_comm_sign_next weft_comm_sign_next;
void (*weft_comm_sign_differs)(const struct weft_req *recv, const char *comm, int peer, int tag,
			       uint64_t bytes, uint32_t theirs, uint32_t ours);

void weft_comm_sign_compare(const struct weft_req *recv, int peer, int tag, uint64_t bytes,
			    uint32_t theirs)
{
	const struct weft_core_req_recv *v = (const void *)recv->core_private;
	uint32_t ours = (uint32_t)v->sign;
	bool whole = bytes == recv->buf.bytes;
	bool mixed = theirs >> 24 == WEFT_SIGN_MIXED || ours >> 24 == WEFT_SIGN_MIXED;

	if (!ours || theirs == ours || !bytes)
		return;
	/* A message may be the beginning of what a receive has room for: then only elements that are
	 * all the same can be compared. */
	if (mixed ? !whole : theirs >> 24 == ours >> 24)
		return;
	if (weft_comm_sign_differs) {
		char name[WEFT_COMM_NAME];
		weft_comm_ctx_name(v->entry.node.ctx, name, sizeof name);
		weft_comm_sign_differs(recv, name, peer, tag, bytes, theirs, ours);
	}
}
