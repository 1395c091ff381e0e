/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz_wire.c - packets of a peer that has proven itself and lies: kinds, lengths, ids, credit,
 * order, as whole packets, as streams and within packs, while sends and receives of all kinds are
 * open, and regions into which it writes.  Requests that the lies have not ended end with the
 * connection.
 */
#include <string.h>
#include "comm/core.h"
#include "fuzz.h"

#define OPS 64

static struct {
	const struct weft_net_events *ev;
	uint32_t ids[16]; /* that we have told the peer */
	unsigned n_ids;
	bool down, full, rdma;
	struct weft_net_region *open; /* to the peer */
	void *writing[OPS];           /* cookies of our writes that are under way */
	unsigned n_writing;
} net;

/* A buffer of ours that the peer may write into; in driver_private. */
struct open_region {
	struct weft_net_region *next;
	uint8_t *base;
} __attribute__((may_alias));

static struct open_region *open_of(struct weft_net_region *r)
{
	return (struct open_region *)(void *)r->driver_private;
}

static enum weft_post f_post(struct weft_net *n, int peer, const void *head,
			     const struct iovec *iov, unsigned k, size_t len, void *cookie)
{
	struct weft_wire h;
	memcpy(&h, head, sizeof h);
	if (net.down)
		return WEFT_POST_DOWN;
	if (net.full)
		return WEFT_POST_FULL;
	uint32_t id = 0;
	if (h.kind == WEFT_WIRE_RTS)
		memcpy(&id, iov[0].iov_base, sizeof id);
	else if (h.kind == WEFT_WIRE_CTS)
		id = h.sequence;
	else if (h.kind == WEFT_WIRE_EAGER && h.flags & WEFT_WIRE_SYNC)
		id = (uint32_t)(h.length >> 32);
	if (id)
		net.ids[net.n_ids++ % weft_countof(net.ids)] = id;
	return WEFT_POST_DONE;
}

static enum weft_post f_copy(const struct weft_net_transfer *t)
{
	if (t->there->addr & 1)
		return WEFT_POST_REFUSED;
	for (unsigned i = 0; i < t->n_pieces && !t->write; i++)
		memset(t->piece[i].iov_base, 7, t->piece[i].iov_len);
	return WEFT_POST_DONE;
}

static weft_err f_region_open(struct weft_net *n, int peer, void *base, size_t len, unsigned access,
			      struct weft_net_region *region)
{
	CHECK(len && access == WEFT_NET_WRITE);
	region->ticket = (struct weft_net_ticket){(uintptr_t)base, len, 1};
	*open_of(region) = (struct open_region){net.open, base};
	net.open = region;
	return WEFT_OK;
}

static void f_region_close(struct weft_net *n, struct weft_net_region *region)
{
	struct weft_net_region **at = &net.open;
	while (*at != region) /* ends: it is open, and no more than once */
		at = &open_of(*at)->next;
	*at = open_of(region)->next;
}

/* The peer writes into what we have opened, whatever it says of it. */
static void peer_writes(uint8_t byte)
{
	for (struct weft_net_region *r = net.open; r; r = open_of(r)->next)
		open_of(r)->base[byte % r->ticket.len] = byte;
}

static enum weft_post f_transfer(struct weft_net *n, int peer, const struct weft_net_transfer *t)
{
	static uint8_t there[4096];
	size_t bytes;
	CHECK(weft_net_transfer_fits(t, &bytes));
	if (!net.rdma)
		return f_copy(t);
	if (net.down)
		return WEFT_POST_DOWN;
	if (net.full || net.n_writing == OPS)
		return WEFT_POST_FULL;
	CHECK(t->write && t->n_pieces == 1 && bytes <= sizeof there);
	memcpy(there, t->piece->iov_base, bytes);
	net.writing[net.n_writing++] = t->cookie;
	return WEFT_POST_ACCEPTED;
}

static void writes_end(weft_err err)
{
	while (net.n_writing)
		net.ev->sent(net.ev->arg, 1, net.writing[--net.n_writing], err);
}

static const struct weft_net_card *f_card(struct weft_net *n, int peer)
{
	static struct weft_net_card card;
	card = (struct weft_net_card){.max_payload = 4096,
				      .inline_max = net.rdma ? 64 : 4096,
				      .eager_max = 256,
				      .access = net.rdma ? WEFT_NET_WRITE
							 : WEFT_NET_READ | WEFT_NET_WRITE,
				      .copies = !net.rdma,
				      .streams = true};
	return &card;
}

static int f_poll(struct weft_net *n)
{
	return 0;
}

static void f_close(struct weft_net *n)
{
}

static weft_err f_open(const struct weft_net_job *job, const struct weft_net_events *ev,
		       struct weft_net **net_p);

static const struct weft_driver driver = {.name = "fuzz",
					  .open = f_open,
					  .close = f_close,
					  .post = f_post,
					  .poll = f_poll,
					  .region_open = f_region_open,
					  .region_close = f_region_close,
					  .transfer = f_transfer,
					  .card = f_card};

static weft_err f_open(const struct weft_net_job *job, const struct weft_net_events *ev,
		       struct weft_net **net_p)
{
	static struct weft_net base = {&driver};
	net.ev = ev;
	*net_p = &base;
	return WEFT_OK;
}

/* A head, half honest: the right sequence, an id that exists, a length that fits. */
static struct weft_wire head(struct fuzz_input *in, const struct weft_gate *g, size_t len)
{
	struct weft_wire h;
	unsigned mend = fuzz_byte(in);
	fuzz_take(in, &h, sizeof h);
	if (mend & 1)
		h.kind = (uint8_t)(1 + h.kind % 8);
	if (mend & 2)
		h.sequence = g->x_recv_seq;
	if (mend & 4)
		h.context = net.ids[h.context % weft_countof(net.ids)];
	if (mend & 8)
		h.context = 1;
	if (mend & 16)
		h.length = len;
	if (mend & 32)
		h.credit = 0;
	if (mend & 64)
		h.tag &= 3;
	return h;
}

/* Several heads, half honest each, with what belongs to them or not; returns the bytes. */
static size_t fill_pack(struct fuzz_input *in, const struct weft_gate *g, uint8_t *to, size_t size)
{
	size_t at = 0;
	for (unsigned n = fuzz_byte(in) % 6; n; n--) {
		size_t len = fuzz_byte(in) % 80,
		       used = weft_align_up(sizeof(struct weft_wire) + len, 8);
		if (at + used > size)
			break;
		struct weft_wire h = head(in, g, len);
		memcpy(to + at, &h, sizeof h);
		fuzz_take(in, to + at + sizeof h, used - sizeof h);
		at += used;
	}
	/* The last one may be cut. */
	return at - at % 8 - (at ? fuzz_byte(in) % 4 / 3 * 8u : 0);
}

static void deliver(struct fuzz_input *in, struct weft_core *core, bool stream)
{
	uint8_t payload[600];
	size_t len = fuzz_byte(in) * 2u;
	if (len == 32) /* the size of a request to send */
		len = sizeof(struct weft_wire_rts);
	struct weft_wire h = head(in, &core->gate[1], len);
	if (h.kind == WEFT_WIRE_PACK && h.tag & 1)
		len = fill_pack(in, &core->gate[1], payload, sizeof payload);
	else
		fuzz_take(in, payload, len);
	if (!stream || !len) {
		net.ev->packet(net.ev->arg, 1, &h, payload, len);
		return;
	}
	struct weft_net_sink sink = {0};
	net.ev->place(net.ev->arg, 1, &h, len, &sink);
	size_t off = 0;
	CHECK(sink.room <= len || !sink.n);
	for (unsigned i = 0; i < sink.n && off < sink.room; i++) {
		size_t k = sink.iov[i].iov_len < len - off ? sink.iov[i].iov_len : len - off;
		memcpy(sink.iov[i].iov_base, payload + off, k);
		off += k;
	}
	net.ev->placed(net.ev->arg, 1, sink.cookie, fuzz_byte(in) & 1 ? WEFT_ERR_PEER : WEFT_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct weft_req req[OPS];
	static char out[OPS][1024], to[OPS][1024];
	struct fuzz_input in = {data, size};
	struct weft_net_job job = {.size = 2, .jobid = "fuzz"};
	struct weft_core *core;
	struct weft_ctx *ctx;
	unsigned n = 0;

	memset(&net, 0, sizeof net);
	CHECK(!weft_comm_core_create(0, 2, &core));
	core->credit = 2000;
	/* Not by a byte of the input: those found before keep their meaning. */
	core->offer = size & 1;
	core->rtr = size & 2;
	core->share_min = size & 4 ? 1 : 0;
	net.rdma = size & 8;
	CHECK(!weft_comm_core_rail_add(core, &driver, &job));
	weft_comm_core_gate_set(core, 1, 0);
	CHECK(!weft_comm_core_ctx_open(core, 1, &ctx));
	/* Ends with the input. */
	while (in.left) {
		unsigned what = fuzz_byte(&in), tag = what >> 6;
		struct weft_buf b;
		struct weft_status st;
		switch (what % 8) {
		case 0:
			if (n == OPS)
				break;
			b = weft_data_buf_flat(to[n], fuzz_byte(&in) * 4u);
			weft_comm_req_init(&req[n], NULL, NULL);
			n += !weft_comm_core_irecv(&req[n], ctx, what & 8 ? WEFT_ANY_PEER : 1,
						   what & 16 ? WEFT_ANY_TAG : (int)tag, &b);
			break;
		case 1:
			if (n == OPS)
				break;
			b = weft_data_buf_flat(out[n], fuzz_byte(&in) * 4u);
			weft_comm_req_init(&req[n], NULL, NULL);
			n += !weft_comm_core_isend(&req[n], ctx, 1, (int)tag, &b,
						   what & 8 ? WEFT_SEND_SYNC : WEFT_SEND_STANDARD);
			break;
		case 2:
			(void)weft_comm_core_iprobe(ctx, WEFT_ANY_PEER, WEFT_ANY_TAG, &st);
			break;
		case 3:
			net.full = !net.full;
			if (!net.full)
				net.ev->ready(net.ev->arg, 1);
			peer_writes((uint8_t)what);
			writes_end(what & 64 ? WEFT_ERR_PEER : WEFT_OK);
			break;
		default:
			deliver(&in, core, what & 8);
		}
	}
	net.down = true;
	writes_end(WEFT_ERR_PEER);
	net.ev->down(net.ev->arg, 1, WEFT_ERR_PEER, "the input ends");
	for (unsigned i = 0; i < n; i++)
		CHECK(weft_comm_req_done(&req[i]));
	CHECK(!net.open);
	weft_comm_core_destroy(core);
	return 0;
}
