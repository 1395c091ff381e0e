/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz_ofi.c - messages of a peer over libfabric that has the token and lies: frames, announced
 * memory, order, epochs, ends, while packets and writes of ours are under way and windows are open.
 *
 * What lib_open would load is a network of our own here, in which nothing is over before the input
 * says so.
 */
#include "boot/boot.h"
#include "net/ofi/ofi_int.h"
#include "fuzz.h"

#if __has_include(<rdma/fabric.h>)

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <stdlib.h>

enum { OPS = 1024, KEPT = 64, DATA = 20000, SINK = 4096 };

enum op_kind { OP_SEND, OP_READ, OP_WRITE };

struct op {
	enum op_kind kind;
	void *buf, *context;
	size_t len;
};

static struct {
	struct weft_ofi *o;
	struct op op[OPS]; /* that the network has not ended */
	unsigned n_ops;
	struct op rx[WEFT_OFI_N_RX]; /* memory that it may receive into */
	unsigned n_rx;
	struct fi_cq_msg_entry done[OPS]; /* not yet taken */
	unsigned n_done;
	void *failed; /* the context of one that failed; not yet taken */
	unsigned registered;
	bool full, local, by_address;
} net;

static struct {
	void *kept[KEPT]; /* payloads of ours; freed when sent() says so */
	struct weft_net_region region[KEPT];
	void *region_memory[KEPT]; /* NULL: not open */
	void *placing;             /* where a payload goes */
	bool down;
	unsigned char sum;
} us;

/* ---- the network ---------------------------------------------------------------------------- */

static ssize_t put_op(enum op_kind kind, const void *buf, size_t len, void *context)
{
	if (net.full || net.n_ops == OPS)
		return -FI_EAGAIN;
	net.op[net.n_ops++] = (struct op){kind, (void *)(uintptr_t)buf, context, len};
	return 0;
}

static ssize_t f_recv(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t from,
		      void *context)
{
	CHECK(net.n_rx < weft_countof(net.rx));
	net.rx[net.n_rx++] = (struct op){OP_READ, buf, context, len};
	return 0;
}

static ssize_t f_send(struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t to,
		      void *context)
{
	return put_op(OP_SEND, buf, len, context);
}

static ssize_t f_read(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t from,
		      uint64_t addr, uint64_t key, void *context)
{
	CHECK(len);
	return key == 13 ? -FI_EINVAL : put_op(OP_READ, buf, len, context);
}

static ssize_t f_write(struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t to,
		       uint64_t addr, uint64_t key, void *context)
{
	return put_op(OP_WRITE, buf, len, context);
}

static ssize_t f_fetch_atomic(struct fid_ep *ep, const void *buf, size_t count, void *desc,
			      void *result, void *result_desc, fi_addr_t to, uint64_t addr,
			      uint64_t key, enum fi_datatype type, enum fi_op op, void *context)
{
	return put_op(OP_READ, result, sizeof(uint64_t), context);
}

static ssize_t f_compare_atomic(struct fid_ep *ep, const void *buf, size_t count, void *desc,
				const void *compare, void *compare_desc, void *result,
				void *result_desc, fi_addr_t to, uint64_t addr, uint64_t key,
				enum fi_datatype type, enum fi_op op, void *context)
{
	return put_op(OP_READ, result, sizeof(uint64_t), context);
}

static int f_atomic_valid(struct fid_ep *ep, enum fi_datatype type, enum fi_op op, size_t *count)
{
	*count = 1;
	return 0;
}

static ssize_t f_cq_read(struct fid_cq *cq, void *buf, size_t count)
{
	size_t n = net.n_done < count ? net.n_done : count;
	if (net.failed)
		return -FI_EAVAIL;
	if (!n)
		return -FI_EAGAIN;
	memcpy(buf, net.done, n * sizeof net.done[0]);
	net.n_done -= (unsigned)n;
	memmove(net.done, net.done + n, net.n_done * sizeof net.done[0]);
	return (ssize_t)n;
}

static ssize_t f_cq_readerr(struct fid_cq *cq, struct fi_cq_err_entry *e, uint64_t flags)
{
	e->op_context = net.failed;
	e->err = FI_EIO;
	net.failed = NULL;
	return 1;
}

static int f_close(struct fid *fid)
{
	CHECK(net.registered);
	net.registered--;
	free(fid);
	return 0;
}

static int f_mr_reg(struct fid *fid, const void *buf, size_t len, uint64_t access, uint64_t offset,
		    uint64_t key, uint64_t flags, struct fid_mr **mr_p, void *context)
{
	static struct fi_ops ops = {.size = sizeof ops, .close = f_close};
	if (!len || (net.full && key % 3 == 0))
		return -FI_ENOMEM;
	*mr_p = calloc(1, sizeof **mr_p);
	CHECK(*mr_p);
	(*mr_p)->fid.ops = &ops;
	(*mr_p)->key = key;
	net.registered++;
	return 0;
}

static int f_av_insert(struct fid_av *av, const void *addr, size_t count, fi_addr_t *to,
		       uint64_t flags, void *context)
{
	*to = 0;
	return 1;
}

weft_err weft_net_ofi_lib_open(struct weft_ofi *o)
{
	static struct fi_ops_msg msg = {.size = sizeof msg, .recv = f_recv, .send = f_send};
	static struct fi_ops_rma rma = {.size = sizeof rma, .read = f_read, .write = f_write};
	static struct fi_ops_cq queue = {
		.size = sizeof queue, .read = f_cq_read, .readerr = f_cq_readerr};
	static struct fi_ops_mr memory = {.size = sizeof memory, .reg = f_mr_reg};
	static struct fi_ops_av addresses = {.size = sizeof addresses, .insert = f_av_insert};
	static struct fi_ops_atomic atomic = {.size = sizeof atomic,
					      .readwrite = f_fetch_atomic,
					      .compwrite = f_compare_atomic,
					      .readwritevalid = f_atomic_valid,
					      .compwritevalid = f_atomic_valid};
	static struct fid_ep ep = {.msg = &msg, .rma = &rma, .atomic = &atomic};
	static struct fid_cq cq = {.ops = &queue};
	static struct fid_domain domain = {.mr = &memory};
	static struct fid_av av = {.ops = &addresses};
	static struct fi_domain_attr domain_attr;
	static struct fi_ep_attr ep_attr;
	static struct fi_info info = {.domain_attr = &domain_attr, .ep_attr = &ep_attr};
	domain_attr.mr_mode =
		(net.local ? FI_MR_LOCAL : 0) | (net.by_address ? FI_MR_VIRT_ADDR : 0);
	ep_attr.max_msg_size = WEFT_OFI_MAX_LARGE;
	o->info = &info;
	o->ep = &ep;
	o->cq = &cq;
	o->domain = &domain;
	o->av = &av;
	o->rma = o->put = o->atomics = !o->job.revivable;
	strcpy(o->provider, "fuzz");
	net.o = o;
	return WEFT_OK;
}

void weft_net_ofi_lib_close(struct weft_ofi *o)
{
	CHECK(!net.registered);
	o->info = NULL;
}

const char *weft_net_ofi_lib_error(int code)
{
	return "it failed";
}

void weft_net_ofi_describe(char *buf, size_t size)
{
	buf[0] = 0;
}

/* One of its operations is over. */
static void op_ends(unsigned which, bool good)
{
	if (!net.n_ops || net.failed || net.n_done == OPS)
		return;
	struct op op = net.op[which %= net.n_ops];
	net.op[which] = net.op[--net.n_ops];
	unsigned char *at = op.buf;
	if (op.kind == OP_READ)
		memset(at, 7, good ? op.len : op.len / 2);
	else
		us.sum ^= at[op.len - 1] ^ at[0];
	if (good)
		net.done[net.n_done++] = (struct fi_cq_msg_entry){op.context, 0, op.len};
	else
		net.failed = op.context;
}

/* ---- what the driver calls ------------------------------------------------------------------ */

static void on_packet(void *arg, int peer, const void *head, const void *payload, size_t len)
{
	CHECK_EQ(peer, 1);
	for (size_t i = 0; i < len; i++)
		us.sum ^= ((const unsigned char *)payload)[i];
}

static void on_place(void *arg, int peer, const void *head, size_t len, struct weft_net_sink *sink)
{
	static struct iovec iov[16];
	const unsigned char *h = head;
	CHECK(!us.placing);
	us.placing = malloc(SINK * weft_countof(iov));
	CHECK(us.placing);
	*sink = (struct weft_net_sink){.cookie = us.placing};
	size_t bytes = 0;
	for (unsigned i = 0; i < h[0] % 17u; i++) { /* none: no receiver wants it */
		iov[i] = (struct iovec){(char *)us.placing + (size_t)i * SINK, 1 + h[1] * 16u};
		bytes += iov[i].iov_len;
		sink->n++;
	}
	sink->iov = iov;
	sink->room = bytes < len ? bytes : len;
}

static void on_placed(void *arg, int peer, void *cookie, weft_err err)
{
	CHECK(cookie == us.placing && cookie);
	free(us.placing);
	us.placing = NULL;
}

static void on_sent(void *arg, int peer, void *cookie, weft_err err)
{
	unsigned i = (unsigned)(uintptr_t)cookie - 1;
	CHECK(i < KEPT && us.kept[i]);
	free(us.kept[i]);
	us.kept[i] = NULL;
}

static void on_ready(void *arg, int peer)
{
}

static void on_down(void *arg, int peer, weft_err err, const char *why)
{
	CHECK(!us.down && !us.placing);
	us.down = true;
	for (unsigned i = 0; i < KEPT; i++) /* all were told */
		CHECK(!us.kept[i]);
}

static const struct weft_net_events events = {.packet = on_packet,
					      .place = on_place,
					      .placed = on_placed,
					      .sent = on_sent,
					      .ready = on_ready,
					      .down = on_down};

/* ---- what the input asks for ---------------------------------------------------------------- */

/* A frame, half honest. */
static struct weft_ofi_frame frame(struct fuzz_input *in, uint32_t len)
{
	const struct weft_ofi_peer *p = &net.o->peer[1];
	struct weft_ofi_frame f;
	unsigned mend = fuzz_byte(in);
	fuzz_take(in, &f.sequence, 2);
	f.sequence = (uint32_t)(int16_t)f.sequence;
	f.token = p->token_in ^ (mend & 1);
	f.rank = mend & 2 ? fuzz_byte(in) : 1;
	if (!(mend & 4))
		f.sequence = p->in_sequence + f.sequence % 4;
	f.len = mend & 8 ? fuzz_byte(in) * 300u : len;
	f.kind = fuzz_byte(in);
	if (!(mend & 16))
		f.kind = 1 + f.kind % 7;
	f.kind |= (mend & 32 ? fuzz_byte(in) % 4 : p->epoch) << WEFT_OFI_EPOCH_SHIFT;
	fuzz_take(in, f.head, sizeof f.head);
	return f;
}

/* Memory that the peer says it has, half honest; returns the bytes. */
static size_t announce(struct fuzz_input *in, uint8_t *to)
{
	struct weft_ofi_announce a;
	unsigned mend = fuzz_byte(in);
	memset(&a, 0, sizeof a);
	a.n = fuzz_byte(in) % (WEFT_OFI_PIECES + 2);
	for (unsigned i = 0; i < a.n && i < WEFT_OFI_PIECES; i++) {
		a.piece[i].addr = 0x1000 * i;
		a.piece[i].key = fuzz_byte(in);
		a.piece[i].len = fuzz_byte(in) * 100u;
		if (mend & 1)
			fuzz_take(in, &a.piece[i].len, sizeof a.piece[i].len);
		a.len += a.piece[i].len;
	}
	if (mend & 2)
		fuzz_take(in, &a.len, sizeof a.len);
	size_t bytes = offsetof(struct weft_ofi_announce, piece) + a.n * sizeof a.piece[0];
	if (bytes > sizeof a)
		bytes = sizeof a;
	memcpy(to, &a, bytes);
	return mend & 4 ? bytes - fuzz_byte(in) % bytes : bytes;
}

static void message(struct fuzz_input *in, bool large)
{
	uint8_t payload[512];
	if (!net.n_rx || net.n_done == OPS)
		return;
	size_t len = large ? announce(in, payload) : fuzz_byte(in);
	if (!large)
		fuzz_take(in, payload, len);
	struct weft_ofi_frame f = frame(in, (uint32_t)len);
	if (large && f.kind % 8 == WEFT_OFI_PACKET)
		f.kind += WEFT_OFI_LARGE - WEFT_OFI_PACKET;
	struct op to = net.rx[--net.n_rx];
	CHECK(to.len >= sizeof f + len);
	memcpy(to.buf, &f, sizeof f);
	memcpy((char *)to.buf + sizeof f, payload, len);
	size_t bytes = sizeof f + len;
	if (f.len % 16 == 15) /* cut short */
		bytes = f.len % sizeof f;
	net.done[net.n_done++] = (struct fi_cq_msg_entry){to.context, 0, bytes};
}

/* A place for something of ours; KEPT: none is free. */
static unsigned free_place(void **places)
{
	unsigned i = 0;
	while (i < KEPT && places[i])
		i++;
	return i;
}

static void post(struct fuzz_input *in, bool write)
{
	struct weft_net *n = &net.o->net;
	unsigned i = free_place(us.kept);
	if (us.down || i == KEPT)
		return;
	size_t len = 1 + fuzz_byte(in) * 78u;
	uint8_t head[WEFT_NET_HEAD] = {0};
	us.kept[i] = calloc(1, DATA);
	CHECK(us.kept[i] && len <= DATA);
	struct iovec iov = {us.kept[i], len};
	uint64_t addr = fuzz_byte(in);
	struct weft_net_ticket where = {addr, len, fuzz_byte(in)};
	const struct weft_net_span span = {0, len};
	void *cookie = (void *)(uintptr_t)(i + 1);
	const struct weft_net_transfer t = {.write = true,
					    .there = &where,
					    .span = &span,
					    .n_spans = 1,
					    .piece = &iov,
					    .n_pieces = 1,
					    .cookie = cookie};
	enum weft_post p = write ? n->driver->transfer(n, 1, &t)
				 : n->driver->post(n, 1, head, &iov, 1, len, cookie);
	if (p != WEFT_POST_ACCEPTED) {
		free(us.kept[i]);
		us.kept[i] = NULL;
	}
}

/* Many pieces on both sides, atomics, flushes. */
static void reach_over(struct fuzz_input *in)
{
	struct weft_net *n = &net.o->net;
	unsigned i = free_place(us.kept), what = fuzz_byte(in);
	if (us.down || i == KEPT)
		return;
	us.kept[i] = calloc(1, DATA);
	CHECK(us.kept[i]);
	struct iovec piece[5];
	struct weft_net_span span[7];
	const struct weft_net_ticket where = {what & 8, DATA, what};
	unsigned step = 1 + fuzz_byte(in) * 15u;
	for (unsigned k = 0; k < 5; k++)
		piece[k] = (struct iovec){(char *)us.kept[i] + k * step, 7u * (step / 7)};
	for (unsigned k = 0; k < 7; k++)
		span[k] = (struct weft_net_span){k * step, 5u * (step / 7) + (what >> 7)};
	void *cookie = (void *)(uintptr_t)(i + 1);
	const struct weft_net_transfer t = {.write = what & 16,
					    .there = &where,
					    .span = span,
					    .n_spans = 7,
					    .piece = piece,
					    .n_pieces = 5,
					    .cookie = cookie};
	const struct weft_net_atomic a = {.op = (enum weft_net_atomic_op)(what % 3),
					  .bytes = 1u << what / 4 % 4,
					  .there = &where,
					  .at = step,
					  .result = us.kept[i],
					  .cookie = cookie};
	enum weft_post p = what >> 5 & 1   ? n->driver->atomic(n, 1, &a)
			   : what >> 6 & 1 ? n->driver->flush(n, 1, cookie)
					   : n->driver->transfer(n, 1, &t);
	if (p != WEFT_POST_ACCEPTED) {
		free(us.kept[i]);
		us.kept[i] = NULL;
	}
}

static void region(unsigned which)
{
	struct weft_net *n = &net.o->net;
	unsigned i = which % KEPT;
	if (us.region_memory[i]) {
		n->driver->region_close(n, &us.region[i]);
		free(us.region_memory[i]);
		us.region_memory[i] = NULL;
		return;
	}
	us.region_memory[i] = malloc(DATA);
	CHECK(us.region_memory[i]);
	if (n->driver->region_open(n, i % 2 ? WEFT_NET_ANY_PEER : 1, us.region_memory[i], DATA,
				   WEFT_NET_WRITE, &us.region[i])) {
		free(us.region_memory[i]);
		us.region_memory[i] = NULL;
	}
}

static void again(unsigned what)
{
	struct weft_net *n = &net.o->net;
	if (!net.o->job.revivable)
		return;
	if (what & 8)
		n->driver->drop(n, 1, "we say so");
	else if (us.down) {
		us.down = false;
		n->driver->revive(n, 1);
	}
}

static void act(struct fuzz_input *in)
{
	unsigned what = fuzz_byte(in);
	switch (what % 8) {
	case 0:
		post(in, what & 8);
		break;
	case 1:
		op_ends(what >> 4, !(what & 8));
		break;
	case 2:
		region(what >> 3);
		break;
	case 3:
		net.full = what & 8;
		break;
	case 4:
		if (what & 16 && !net.o->job.revivable)
			reach_over(in);
		else
			again(what);
		break;
	default:
		message(in, what & 8);
		if (what & 16) /* several at once */
			return;
	}
	net.o->net.driver->poll(&net.o->net);
}

static void end(struct weft_net *n)
{
	net.full = false;
	for (unsigned i = 0; i < 2 * OPS && (net.n_ops || net.n_done || net.failed); i++) {
		op_ends(0, true);
		n->driver->poll(n);
	}
	for (unsigned i = 0; i < KEPT; i++)
		if (us.region_memory[i])
			region(i);
	n->driver->close(n);
	for (unsigned i = 0; i < KEPT; i++)
		free(us.kept[i]);
	free(us.placing);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t secret[WEFT_SECRET_BYTES];
	struct fuzz_input in = {data, size};
	struct weft_net_job job = {
		.size = 2, .jobid = "fuzz", .secret = secret, .revivable = size & 1};
	struct weft_net *n;
	memset(&net, 0, sizeof net);
	memset(&us, 0, sizeof us);
	net.local = size & 2;
	net.by_address = size & 4;
	CHECK(!weft_net_driver_ofi.open(&job, &events, &n));
	CHECK(!n->driver->reach(n, 1, "ofi2 fuzz elsewhere 1 00"));
	while (in.left) /* ends: each takes a byte */
		act(&in);
	end(n);
	return 0;
}

#else

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return 0;
}

#endif
