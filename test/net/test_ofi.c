/* SPDX-License-Identifier: BSD-3-Clause */
/* The ofi driver keeps the contract, over libfabric's tcp;ofi_rxm; argument "shm": over its shm. */
#include "driver_suite.c"
#include "base/counters.h"
#include "net/ofi/ofi_int.h"

#if defined(__SANITIZE_ADDRESS__)
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libfabric"; /* what it keeps until the process ends */
}
#endif

/* Where no pidfd tells of a peer's end and no descriptor of arrivals, pings and a timer do. */
static void run_blind(void)
{
	suite_fewer = 20;
	weft_net_ofi_lacks = (struct weft_ofi_lacks){.pidfd = true, .wait_fd = true};
	run_case(&weft_net_driver_ofi, "sleep, blind", 2, case_sleep);
	if (getenv("WEFT_LONG"))
		run_case(&weft_net_driver_ofi, "killed, blind", 2, case_killed_asleep);
}

/* Each has sent the other a packet, and has it. */
static int meet_one(struct node *n)
{
	int peer = next_of(n);
	send_packet(n, peer, 8);
	while (n->got_n[peer] < 1)
		poll_once(n);
	meet_polling(n);
	return peer;
}

/* One side gives a working link up: the other hears of it, and both take it up again. */
static void case_dropped(struct node *n)
{
	int peer = meet_one(n);
	for (int round = 0; round < 4; round++) {
		if (n->rank == round % 2)
			n->driver->drop(n->net, peer, "dropped");
		while (!n->down[peer]) /* ends, or alarm() ends it: no rank sends */
			sleep_once(n);
		CHECK_EQ(n->down_err[peer], WEFT_ERR_PEER);
		meet_polling(n);
		n->down[peer] = 0;
		n->driver->revive(n->net, peer);
		uint64_t want = n->got_n[peer] + 20;
		for (int i = 0; i < 20; i++)
			send_packet(n, peer, (size_t)i * 700);
		while (n->got_n[peer] < want)
			poll_once(n);
		meet_polling(n);
	}
}

/* What the one side sends while the other has given the link up brings an answer. */
static void case_sends_into_the_void(struct node *n)
{
	int peer = meet_one(n);
	if (n->rank == 0)
		n->driver->drop(n->net, peer, "dropped");
	while (!n->down[peer]) {
		enum weft_post p = n->rank ? try_send(n, peer, 100) : WEFT_POST_DOWN;
		CHECK(p == WEFT_POST_DONE || p == WEFT_POST_FULL || p == WEFT_POST_DOWN);
		n->driver->poll(n->net);
	}
	CHECK_EQ(n->down_err[peer], WEFT_ERR_PEER);
}

#if __has_include(<rdma/fabric.h>)
/* Rank 1 has lied: rank 0 closes it. */
static void end_lie(struct node *n, int peer)
{
	while (!n->down[peer]) /* ends, or alarm() ends it */
		n->driver->poll(n->net);
	CHECK_EQ(n->down_err[peer], n->rank == 1 ? WEFT_ERR_PEER : WEFT_ERR_PROTO);
}

/* A packet that comes twice before its turn is a lie: the peer is closed, nothing waits behind it.
 */
static void case_says_twice(struct node *n)
{
	int peer = meet_one(n);
	if (n->rank == 1) {
		struct weft_ofi_peer *p = &((struct weft_ofi *)n->net)->peer[peer];
		p->out_sequence++;
		send_packet(n, peer, 8);
		p->out_sequence--;
		send_packet(n, peer, 8);
	}
	end_lie(n, peer);
}

/* So is one that is further ahead than a peer may be: else it would keep all the buffers that
 * others need. */
static void case_far_ahead(struct node *n)
{
	int peer = meet_one(n);
	if (n->rank == 1) {
		struct weft_ofi_peer *p = &((struct weft_ofi *)n->net)->peer[peer];
		p->out_sequence += WEFT_OFI_SHARE;
		p->x_out_base += WEFT_OFI_SHARE;
		send_packet(n, peer, 8);
	}
	end_lie(n, peer);
}

/* A large packet whose memory is elsewhere than it says, or not as long: nothing comes of it but
 * the end of that peer. */
static void say_large(struct node *n, int peer, struct weft_ofi_announce *a)
{
	struct weft_ofi *o = (struct weft_ofi *)n->net;
	struct head h = {.number = n->sent_n[peer], .len = (uint32_t)a->len, .sender = 1};
	struct iovec say = {a,
			    offsetof(struct weft_ofi_announce, piece) + a->n * sizeof a->piece[0]};
	h.check = h.number ^ 0x5a5a5a5a5a5a5a5aull ^ a->len;
	while (!weft_net_ofi_send(o, peer, WEFT_OFI_LARGE, &h, &say, 1, say.iov_len))
		n->driver->poll(n->net);
}

/* Ranks 1 to 3 lie to rank 0 about the key, the length and the address. */
static void case_lies_of_memory(struct node *n)
{
	struct weft_ofi *o = (struct weft_ofi *)n->net;
	static char mine[4096];
	struct fid_mr *mr = NULL;
	for (int p = 0; p < n->size; p++)
		if ((p == 0) != (n->rank == 0))
			send_packet(n, p, 8);
	while (n->got_n[0] < (n->rank != 0) ||
	       (n->rank == 0 && n->got_n[1] + n->got_n[2] + n->got_n[3] < 3))
		poll_once(n);
	meet_polling(n);
	if (n->rank && o->rma) {
		CHECK_EQ(fi_mr_reg(o->domain, mine, sizeof mine, FI_REMOTE_READ, 0, 4711, 0, &mr,
				   NULL),
			 0);
		struct weft_ofi_announce a = {.len = n->rank == 2 ? 1 << 20 : sizeof mine, .n = 1};
		bool by_address = o->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR;
		a.piece[0].len = a.len;
		a.piece[0].key = fi_mr_key(mr) + (n->rank == 1);
		a.piece[0].addr = (by_address ? (uint64_t)(uintptr_t)mine : 0) +
				  (n->rank == 3 ? 1ull << 45 : 0);
		say_large(n, 0, &a);
	}
	/* Ends, or alarm() ends it. */
	for (int p = n->rank ? 0 : 1; o->rma && p < (n->rank ? 1 : n->size); p++)
		while (!n->down[p])
			n->driver->poll(n->net);
	for (int p = 0; p < n->size; p++)
		CHECK(n->got_n[p] <= 1);
	if (mr)
		fi_close(&mr->fid);
}

/* A poster with one packet under way may not send others around it without end. */
static void case_window(struct node *n)
{
	int peer = meet_one(n);
	if (n->rank == 1) {
		struct weft_ofi_peer *p = &((struct weft_ofi *)n->net)->peer[peer];
		while (p->x_out_base != p->out_sequence)
			n->driver->poll(n->net);
		/* As if this one were still under way. */
		p->x_out_base--;
		p->out_over = 0;
		for (unsigned sent = 0; sent < WEFT_OFI_SHARE - 1;) {
			sent += try_send(n, peer, 8) == WEFT_POST_DONE;
			n->driver->poll(n->net);
		}
		int before = n->ready[peer];
		CHECK_EQ(try_send(n, peer, 8), WEFT_POST_FULL);
		while (p->out_over != ~1ull)
			n->driver->poll(n->net);
		n->driver->poll(n->net);
		CHECK_EQ(n->ready[peer], before);
		p->out_over = 0; /* now it is over */
		p->x_out_base = p->out_sequence;
		while (n->ready[peer] == before)
			n->driver->poll(n->net);
		send_packet(n, peer, 8);
	}
	while (n->rank == 0 && n->got_n[peer] < 1 + WEFT_OFI_SHARE)
		poll_once(n);
	meet_polling(n);
}

/* Large packets are read, one read for each pair of pieces at most. */
static void case_read(struct node *n)
{
	bool rma = ((struct weft_ofi *)n->net)->rma;
	uint64_t before = weft_counter_sum(WEFT_CNT_OFI_READS);
	case_large(n);
	while (n->outstanding)
		poll_once(n);
	uint64_t reads = weft_counter_sum(WEFT_CNT_OFI_READS) - before;
	uint64_t packets = n->got_n[next_of(n)];
	/* Pieces end at 1/4 and 1/2, and at 1/3 and 1/2. */
	CHECK(rma ? reads >= packets && reads <= 5 * packets : !reads);
}

/* The peer dies while its memory is being read: its packet and it are over, once. */
static void case_killed_reading(struct node *n)
{
	struct weft_ofi_peer *p = &((struct weft_ofi *)n->net)->peer[next_of(n)];
	atomic_store(&n->board->x_pid[n->rank], getpid());
	send_packet(n, next_of(n), 8);
	while (n->got_n[next_of(n)] < 1)
		poll_once(n);
	meet_polling(n);
	if (n->rank == 0) {
		CHECK(try_send(n, 1, max_len(n, 1)) != WEFT_POST_DOWN);
		for (;;)
			pause();
	}
	/* Some providers do not need the peer awake. */
	while (!weft_net_ofi_reads(p) && n->got_n[0] < 2)
		poll_once(n);
	CHECK(kill(atomic_load(&n->board->x_pid[0]), SIGKILL) == 0);
	while (!n->down[0])
		sleep_once(n);
	CHECK(n->down_err[0] != WEFT_OK);
	CHECK(!weft_net_ofi_reads(p));
	n->driver->close(n->net);
	exit(0);
}
/* Rank 0 opens memory to rank 1; then one of them dies while rank 1 writes there. */
static void killed_writing(struct node *n, int victim)
{
	static unsigned char memory[8000000];
	struct weft_net_region region;
	int peer = next_of(n);
	atomic_store(&n->board->x_pid[n->rank], getpid());
	meet_neighbours(n);
	if (n->rank == 0)
		CHECK_EQ(n->driver->region_open(n->net, peer, memory, sizeof memory, WEFT_NET_WRITE,
						&region),
			 WEFT_OK);
	if (n->rank == 0)
		n->board->ticket[0] = region.ticket;
	meet_polling(n);
	if (n->rank == 1) {
		memset(memory, 1, sizeof memory);
		CHECK(region_plain(n, 0, &n->board->ticket[0], true, 0, memory, sizeof memory) ==
		      WEFT_POST_ACCEPTED);
	}
	if (n->rank == victim) {
		for (;;)
			pause();
	}
	/* Some providers do not need the peer awake. */
	for (int i = 0; i < 100; i++)
		poll_once(n);
	CHECK(kill(atomic_load(&n->board->x_pid[victim]), SIGKILL) == 0);
	while (!n->down[peer])
		sleep_once(n);
	CHECK(n->down_err[peer] != WEFT_OK);
	CHECK_EQ(n->outstanding, 0); /* down() is the last that is heard of a peer */
	if (n->rank == 0) {
		n->driver->region_close(n->net, &region);
		memset(memory, 2, sizeof memory);
		for (int i = 0; i < 1000; i++)
			n->driver->poll(n->net);
		for (size_t i = 0; i < sizeof memory; i++)
			CHECK_EQ(memory[i], 2);
	}
	n->driver->close(n->net);
	exit(0);
}

static void case_killed_writing(struct node *n)
{
	killed_writing(n, 1);
}

static void case_killed_written(struct node *n)
{
	killed_writing(n, 0);
}

/* Where nothing is open any more nothing is written. */
static void case_closed(struct node *n)
{
	static unsigned char memory[100000];
	struct weft_net_region region;
	int peer = next_of(n);
	meet_neighbours(n);
	if (n->rank == 0) {
		CHECK_EQ(n->driver->region_open(n->net, peer, memory, sizeof memory, WEFT_NET_WRITE,
						&region),
			 WEFT_OK);
		n->board->ticket[0] = region.ticket;
		n->driver->region_close(n->net, &region);
	}
	meet_polling(n);
	if (n->rank == 1) {
		memset(memory, 1, sizeof memory);
		CHECK(region_plain(n, 0, &n->board->ticket[0], true, 0, memory, sizeof memory) ==
		      WEFT_POST_ACCEPTED);
	}
	while (n->outstanding)
		poll_once(n);
	meet_polling(n);
	for (int i = 0; i < 1000; i++)
		n->driver->poll(n->net);
	for (size_t i = 0; n->rank == 0 && i < sizeof memory; i++)
		CHECK_EQ(memory[i], 0);
	n->driver->close(n->net);
	exit(0);
}
#else
#define case_killed_writing case_lengths
#define case_killed_written case_lengths
#define case_closed case_lengths
#define case_says_twice case_lengths
#define case_far_ahead case_lengths
#define case_window case_lengths
#define case_lies_of_memory case_lengths
#define case_read case_lengths
#define case_killed_reading case_lengths
#endif

int main(int argc, char **argv)
{
	if (argc > 1)
		setenv("WEFT_OFI_PROVIDER", argv[1], 1);
	/* Asking the others whether they are there takes most of a second. */
	setenv("FI_PROVIDER", argc > 1 ? argv[1] : "tcp,ofi_rxm", 1);
	suite_fewer = 4;
	const struct weft_driver *d = &weft_net_driver_ofi;
	run_case(d, "lengths", 2, case_lengths);
	run_case(d, "flood", 2, case_flood);
	run_case(d, "large", 2, case_read);
	run_case(d, "all to all", 4, case_all_to_all);
	run_case(d, "sleep", 2, case_sleep);
	run_case(d, "sleep full", 2, case_sleep_full);
	run_case(d, "stay armed", 2, case_stay_armed);
	run_case(d, "stay armed, full", 2, case_stay_armed_full);
	run_case(d, "threads", 2, case_threads);
	run_case(d, "regions", 2, case_regions);
	run_case(d, "regions of 3", 3, case_regions);
	run_case(d, "flush", 2, case_flush);
	run_case(d, "bounds", 2, case_bounds);
	run_case(d, "regions full", 2, case_regions_full);
	run_case(d, "atomics of 4", 4, case_atomics);
	run_case(d, "leave", 2, case_leave);
	run_case(d, "dropped", 2, case_dropped);
	run_case(d, "dropped, sending", 2, case_sends_into_the_void);
	run_case(d, "says twice", 2, case_says_twice);
	run_case(d, "far ahead", 2, case_far_ahead);
	run_case(d, "window", 2, case_window);
	if (argc == 1) /* shm reads whatever memory the peer names, which is the peer's */
		run_case(d, "lies of memory", 4, case_lies_of_memory);
	run_case(d, "killed, asleep", 2, case_killed_asleep);
	run_case(d, "killed, full", 2, case_killed_full);
	run_case(d, "killed, reading", 2, case_killed_reading);
	if (argc > 1) {
		setenv("WEFT_OFI_PUT", "on", 1);
		CHECK_EQ(weft_settings_load(), WEFT_OK);
		run_case(d, "regions, asked for", 2, case_regions);
		run_case(d, "flush, asked for", 2, case_flush);
		run_case(d, "atomics, asked for", 3, case_atomics);
		return 0;
	}
	run_case(d, "killed, writing", 2, case_killed_writing);
	run_case(d, "killed, written", 2, case_killed_written);
	run_case(d, "closed", 2, case_closed);
	run_case(d, "killed owner", 2, case_killed_owner);
	run_blind();
	setenv("WEFT_OFI_RMA", "off", 1);
	CHECK_EQ(weft_settings_load(), WEFT_OK);
	run_case(d, "large, no reads", 2, case_read);
	return 0;
}
