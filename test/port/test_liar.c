/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_liar.c - a peer that sends what it likes to the one-sided part of weft/comm.h reaches nothing but the
 * regions, and breaks nothing.
 *
 *	test_liar [SEED [MESSAGES]]
 *
 * The process is both: the liar by active messages that do not come from put.c.  Around the region lie pages
 * without access, elsewhere lies memory that must stay as it is; between the lies, honest accesses go on.
 */
#include <string.h>
#include <sys/mman.h>
#include "check.h"
#include "port/am.h"
#include "port/region.h"

enum { BYTES = 8192, PAGE = 4096 };

/* As put.c has it on the wire. */
struct lie {
	uint64_t key, offset, bytes;
	uint64_t value, compare;
	uint32_t tag, kind, note, with_data;
	char data[1100];
};
#define HEAD offsetof(struct lie, data)

static uint64_t state, key;
static long answered, refused;
static char *memory;             /* between pages without access */
static char elsewhere[4 * PAGE]; /* must stay as it is */

static uint64_t draw(uint64_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (state * 0x2545f4914f6cdd1du >> 16) % below;
}

/* An offset that is often wrong, and often nearly right. */
static uint64_t offset(void)
{
	switch (draw(6)) {
	case 0:
		return draw(UINT64_MAX);
	case 1: /* what does not belong to the region */
		return (uintptr_t)elsewhere + draw(sizeof elsewhere) - (uintptr_t)memory;
	case 2:
		return BYTES - draw(64);
	case 3:
		return 0 - draw(64);
	default:
		return draw(BYTES);
	}
}

static uint64_t length(void)
{
	switch (draw(6)) {
	case 0:
		return draw(UINT64_MAX);
	case 1:
		return UINT64_MAX - draw(BYTES);
	case 2:
		return draw(2) ? 4 : 8;
	default:
		return draw(draw(4) ? 64 : 2 * BYTES);
	}
}

static size_t make(struct lie *l)
{
	*l = (struct lie){.key = draw(4)   ? key
				 : draw(8) ? key + draw(4)
					   : draw(UINT64_MAX),
			  .offset = offset(),
			  .bytes = length(),
			  .value = draw(UINT64_MAX),
			  .compare = draw(2) ? 0 : draw(UINT64_MAX),
			  .tag = 0x40000000u + (uint32_t)draw(0x10000000),
			  .kind = (uint32_t)draw(draw(8) ? 5 : UINT32_MAX),
			  .note = (uint32_t)draw(draw(2) ? 70 : UINT32_MAX),
			  .with_data = (uint32_t)draw(4)};
	/* Data of their own would be waited for, or would lie unexpected. */
	if (l->kind == 0 && l->with_data == 0)
		l->with_data = 1;
	size_t data = l->kind == 0 && l->bytes <= sizeof l->data ? l->bytes : 0;
	memset(l->data, (int)draw(256), data);
	size_t len = HEAD + data;
	return draw(16) ? len : draw(len + 1);
}

/* The liar takes what is answered. */
static void take_answers(void)
{
	static char room[2 * BYTES];
	static const enum weft_port_ctx from[] = {WEFT_PORT_ACK, WEFT_PORT_DATA};
	for (int i = 0; i < 2; i++) {
		struct weft_status st;
		/* Ends when nothing is there. */
		while (weft_comm_core_iprobe(weft_port_ctx[from[i]], 0, WEFT_ANY_TAG, &st)) {
			struct weft_req r;
			struct weft_buf b = weft_data_buf_flat(room, sizeof room);
			struct weft_completion *c = &r.done;
			weft_comm_req_init(&r, NULL, NULL);
			CHECK(!weft_comm_core_irecv(&r, weft_port_ctx[from[i]], 0, st.tag, &b));
			CHECK(!weft_task_engine_wait_all(&c, 1, WEFT_FOREVER));
			answered += from[i] == WEFT_PORT_ACK;
			int32_t verdict;
			memcpy(&verdict, room, sizeof verdict);
			refused += from[i] == WEFT_PORT_ACK && verdict == WEFT_ERR_ARG;
		}
	}
}

static void honest(size_t at)
{
	uint64_t value = draw(1000), got = 0, old = 7;
	weft_comm_request r;
	CHECK(!weft_comm_put(NULL, 0, key, at, &value, sizeof value));
	CHECK(!weft_comm_flush(0));
	CHECK(!weft_comm_fetch_add(&r, 0, key, at, 8, 5, &old));
	CHECK(!weft_comm_wait(&r, NULL));
	CHECK_EQ(old, value);
	CHECK(!weft_comm_get(&r, 0, key, at, &got, sizeof got));
	CHECK(!weft_comm_wait(&r, NULL));
	CHECK_EQ(got, value + 5);
}

int main(int argc, char **argv)
{
	static struct lie l;
	long n = argc > 2 ? atol(argv[2]) : 100000;
	state = test_seed(argc, argv) * 2 + 1;
	setenv("WEFT_LOG", "error", 1); /* each lie is said */
	memset(elsewhere, 0x77, sizeof elsewhere);
	char *m = mmap(NULL, BYTES + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memory = m + PAGE;
	CHECK(m != MAP_FAILED && mprotect(memory, BYTES, PROT_READ | PROT_WRITE) == 0);
	CHECK(!weft_comm_open());
	CHECK(!weft_comm_expose(memory, BYTES, &key));
	for (long i = 0; i < n; i++) {
		size_t len = make(&l);
		CHECK(!weft_port_am_send(0, WEFT_PORT_AM_ACCESS, &l, len));
		if (i % 50 == 49) {
			take_answers();
			honest(draw(BYTES / 8) * 8);
		}
	}
	take_answers();
	for (size_t i = 0; i < sizeof elsewhere; i++)
		CHECK_EQ(elsewhere[i], 0x77);
	/* Nonsense has no answer; of the others some were right, as ought to be. */
	printf("%ld lies, %ld answered, %ld of them refused\n", n, answered, refused);
	CHECK(answered > n / 2 && refused > n / 4 && answered - refused > n / 20);
	CHECK(!weft_comm_close());
	return 0;
}
