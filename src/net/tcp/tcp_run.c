/* SPDX-License-Identifier: BSD-3-Clause */
/* tcp_run.c - the frame that is open behind what waits: packets join it, then it is closed. */
#include "base/counters.h"
#include "net/shm/ring_tx.h"
#include "net/tcp/tcp_int.h"

bool weft_net_tcp_out_join(struct weft_tcp_out *o, const void *head, const struct iovec *iov,
			   unsigned n, size_t len)
{
	struct weft_tcp_run *r = &o->run;
	if (!weft_net_tcp_run_fits(r, head, len))
		return false;
	struct weft_tcp_item *it = o->last;
	size_t apart = weft_net_run_apart(len);
	size_t end = (size_t)(r->at - it->data) + WEFT_TCP_FRAME + (r->n + 1) * apart;
	if (end > WEFT_TCP_BLOCK)
		return false;
	/* Behind the last packet comes nothing yet. */
	weft_assert(it->is_block && it->end <= end - apart &&
		    end - apart <= it->end + WEFT_NET_RUN_BYTES);
	uint8_t *to = it->data + end - apart;
	if (weft_unlikely(apart != len)) { /* nothing of what lay there before goes out */
		memset(r->at + WEFT_TCP_FRAME + (r->n - 1) * apart + len, 0, apart - len);
		memset(to + len, 0, apart - len);
	}
	weft_net_ring_gather(to, iov, n, len);
	it->end = (uint32_t)end;
	r->n++;
	r->next_w0 += WEFT_NET_RUN_STEP;
	weft_count(WEFT_CNT_AGGREGATED, 1);
	return true;
}

void weft_net_tcp_out_close(struct weft_tcp_out *o)
{
	struct weft_tcp_run *r = &o->run;
	weft_assert(!r->at || (r->n <= WEFT_TCP_RUN_PACKETS && r->len <= WEFT_TCP_RUN_LEN));
	if (r->at && r->n > 1)
		weft_net_tcp_frame_stamp(r->at, weft_net_tcp_run_word(r->n, r->len));
	r->at = NULL;
}
