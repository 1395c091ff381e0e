/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_liar.c - a member that sends what it likes reaches nothing but the window, and breaks nothing.
 *
 *	test_liar [SEED [MESSAGES]]
 *
 * The process is member 0 of a window of two, and the liar is member 1: itself, by messages that do not come
 * from rma/.  Around the window's memory lie pages without access, elsewhere lies memory that must stay as it
 * is; between the lies, honest accesses of rank 1 must go on.
 */
#include <string.h>
#include <sys/mman.h>
#include "base/log.h"
#include "check.h"
#include "comm/comm.h"
#include "rma/rma.h"
#include "rma/wire.h"
#include "rma/win_int.h"
#include "rt/rt.h"
#include "task/task.h"

enum { BYTES = 8192, PAGE = 4096 };

static uint64_t state;
static struct weft_rma_win *win;
static char *memory;             /* between pages without access */
static char elsewhere[4 * PAGE]; /* must stay as it is */

static uint64_t draw(uint64_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (state * 0x2545f4914f6cdd1du >> 16) % below;
}

static void mirror(const struct weft_rma_offer *mine, struct weft_rma_offer *all)
{
	all[0] = all[1] = *mine;
}

static void window_make(struct weft_ctx *am, struct weft_ctx *data, enum weft_rma_flavor flavor)
{
	static const int peer[2] = {0, 0};
	struct weft_rma_conf conf = {
		.am = am, .data = data, .size = 2, .peer = peer, .flavor = flavor};
	struct weft_rma_offer mine, all[2];
	struct weft_rma_ticket ticket, tickets[2];
	conf.unit = 1;
	if (flavor != WEFT_RMA_DYNAMIC) {
		conf.base = memory;
		conf.len = BYTES;
	}
	CHECK(!weft_rma_win_new(&conf, &win, &mine));
	mirror(&mine, all);
	weft_rma_win_share(win, all, &ticket);
	tickets[0] = tickets[1] = ticket;
	int32_t reaches = weft_rma_win_map(win, tickets), mapped[2] = {reaches, reaches};
	CHECK(!weft_rma_win_ready(win, mapped));
	if (flavor == WEFT_RMA_DYNAMIC)
		CHECK(!weft_rma_attach(win, memory, BYTES));
}

/* An offset that is often wrong, and often nearly right. */
static uint64_t offset(void)
{
	uint64_t base = win->flavor == WEFT_RMA_DYNAMIC ? (uintptr_t)memory : 0;
	switch (draw(6)) {
	case 0:
		return draw(UINT64_MAX);
	case 1: /* what does not belong to the window */
		return (uintptr_t)elsewhere + draw(sizeof elsewhere) - (uintptr_t)memory + base;
	case 2:
		return base + BYTES - draw(64);
	case 3:
		return base - draw(64);
	default:
		return base + draw(BYTES);
	}
}

static uint64_t length(void)
{
	switch (draw(6)) {
	case 0:
		return draw(UINT64_MAX);
	case 1:
		return UINT64_MAX - draw(BYTES);
	default:
		return draw(draw(4) ? 64 : 2 * BYTES);
	}
}

/* A message in `h`, as wrong as chance will have it; its length. */
static size_t lie(struct weft_rma_head *h, uint32_t seq)
{
	uint64_t bytes = 0;
	*h = (struct weft_rma_head){.kind = (uint8_t)draw(draw(8) ? WEFT_RMA_KINDS : 256),
				    .op = (uint8_t)draw(draw(4) ? WEFT_OP_COUNT : 256),
				    .elem = (uint8_t)draw(draw(4) ? WEFT_ELEM_COUNT : 256),
				    .flags = (uint8_t)draw(4),
				    .seq = seq,
				    .id = (uint32_t)draw(draw(2) ? 64 : UINT32_MAX),
				    .err = (int32_t)draw(draw(2) ? 1 : UINT32_MAX)};
	/* Data that never comes would be waited for. */
	if (h->kind == WEFT_RMA_PUT_LARGE)
		h->id &= 0x3fffffff;
	h->n_spans = (uint32_t)draw(draw(4) ? 3 : WEFT_RMA_SPANS_MAX + 2);
	for (unsigned i = 0; i < h->n_spans; i++) {
		weft_rma_spans(h)[i] = (struct weft_rma_span){offset(), length()};
		bytes += weft_rma_spans(h)[i].len;
	}
	h->bytes = (uint32_t)(draw(4) ? bytes : draw(200));
	if (h->bytes > weft_rma_room(h->n_spans))
		h->bytes = (uint32_t)draw(100);
	size_t len = weft_rma_message_bytes(h);
	memset(weft_rma_data(h), (int)draw(256), h->bytes);
	if (!draw(16))
		h->bytes = (uint32_t)draw(UINT32_MAX);
	if (!draw(16))
		h->n_spans = (uint32_t)draw(UINT32_MAX);
	return draw(16) ? len : draw(len + 1);
}

/* Is the message one that its receiver counts? */
static bool counts(const struct weft_rma_head *h, size_t len)
{
	return len >= sizeof *h && h->kind < WEFT_RMA_LOCK && h->n_spans <= WEFT_RMA_SPANS_MAX &&
	       h->bytes <= WEFT_RMA_MESSAGE_MAX && weft_rma_message_bytes(h) == len;
}

static void tell_lies(int n)
{
	static union {
		struct weft_rma_head h;
		char bytes[2 * WEFT_RMA_MESSAGE_MAX];
	} m;
	for (int i = 0; i < n; i++) {
		_Atomic uint32_t *seq = &win->target[1].x_seq;
		size_t len = lie(&m.h, atomic_load(seq));
		struct weft_buf b = weft_data_buf_flat(&m, len);
		if (m.h.kind == WEFT_RMA_GET_LARGE && draw(64))
			continue; /* its answer waits for a receive */
		if (!draw(32))    /* once more, or much too early */
			m.h.seq -= (uint32_t)(1 + draw(9));
		else if (counts(&m.h, len))
			atomic_fetch_add(seq, 1);
		weft_err err;
		while ((err = weft_comm_send_now(win->am, 0, m.h.kind, &b)) == WEFT_AGAIN)
			(void)weft_engine_poll();
		CHECK(!err);
	}
}

/* Rank 1 is this process by messages. */
static void honest(int64_t at)
{
	long value = (long)draw(1000), got = -1;
	struct weft_buf from = weft_data_buf_flat(&value, sizeof value);
	struct weft_buf to = weft_data_buf_flat(&got, sizeof got);
	struct weft_rma_there there = {
		.rank = 1, .at = at, .count = sizeof value, .bytes = sizeof value};
	if (win->flavor == WEFT_RMA_DYNAMIC)
		there.at += (intptr_t)memory;
	CHECK(!weft_rma_put(win, &from, &there, NULL));
	weft_err lied = weft_rma_flush(win, 1);
	CHECK(lied != WEFT_ERR_PEER);
	CHECK(!weft_rma_put(win, &from, &there, NULL));
	CHECK(!weft_rma_get(win, &to, &there, NULL));
	CHECK(!weft_rma_flush(win, 1));
	CHECK_EQ(got, value);
}

/* A large put whose data does not come; the window is freed all the same. */
static void announce(void)
{
	struct weft_rma_head *h = weft_rma_message(WEFT_RMA_PUT_LARGE, 1, 0);
	CHECK(h);
	h->id = (uint32_t)weft_rma_tag(false, 1);
	*weft_rma_spans(h) = (struct weft_rma_span){
		win->flavor == WEFT_RMA_DYNAMIC ? (uintptr_t)memory : 0, BYTES};
	CHECK(!weft_rma_send(win, 1, h));
	for (int i = 0; i < 100; i++)
		(void)weft_engine_poll();
	CHECK_EQ(win->target[1].coming, 1);
}

static void attack(struct weft_ctx *am, struct weft_ctx *data, enum weft_rma_flavor flavor, int n)
{
	window_make(am, data, flavor);
	CHECK_EQ(weft_rma_path(win, 1), WEFT_RMA_OWED);
	for (int i = 0; i < n; i += 100) {
		tell_lies(100);
		honest((int64_t)draw(BYTES / 8) * 8);
	}
	for (size_t i = 0; i < sizeof elsewhere; i++)
		CHECK_EQ(elsewhere[i], 0x77);
	announce();
	weft_rma_win_free(win);
}

int main(int argc, char **argv)
{
	const struct weft_boot_info *job;
	struct weft_ctx *am, *data;
	int n = argc > 2 ? atoi(argv[2]) : 100000;
	state = test_seed(argc, argv) * 2 + 1;
	setenv("WEFT_LOG", "error", 1); /* each lie is said */
	setenv("WEFT_RMA_PATH", "owed", 1);
	CHECK(!weft_rt_start(&job));
	memset(elsewhere, 0x77, sizeof elsewhere);
	char *m = mmap(NULL, BYTES + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memory = m + PAGE;
	CHECK(m != MAP_FAILED && mprotect(memory, BYTES, PROT_READ | PROT_WRITE) == 0);
	CHECK(!weft_comm_ctx_open(weft_comm_home(), 4711, &am));
	CHECK(!weft_comm_ctx_open(weft_comm_home(), 4712 | WEFT_CTX_COUNTED, &data));
	attack(am, data, WEFT_RMA_CREATE, n);
	attack(am, data, WEFT_RMA_DYNAMIC, n);
	weft_comm_ctx_close(am);
	weft_comm_ctx_close(data);
	weft_rt_stop();
	return 0;
}
