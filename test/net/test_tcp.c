/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tcp driver keeps the contract, over the loopback.  A connection within this host has the
 * congestion control that it was given, the system's where there is no such one.  A lone packet
 * goes at once; behind many bursts the first of the next one waits for the others, or for a poll,
 * and behind twice as many after each time that none came.  A host is silent when it owes an
 * answer; one with a full window is asked ever more seldom, and owes none in between.
 */
#include <netinet/tcp.h>
#include "driver_suite.c"
#include "base/settings.h"
#include "net/tcp/tcp_int.h"

static void get_control(int fd, char name[32])
{
	socklen_t len = 31;
	memset(name, 0, 32);
	CHECK_EQ(getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &len), 0);
}

/* What a connection made under this setting has. */
static void check_control(struct node *n, const char *setting, const char *expect)
{
	struct weft_tcp *t = (struct weft_tcp *)n->net;
	char name[32];
	CHECK_EQ(weft_setting_set(WEFT_SET_TCP_CONGESTION, setting), WEFT_OK);
	send_packet(n, 1 - n->rank, 8);
	while (!n->got_n[1 - n->rank])
		poll_once(n);
	get_control(t->conn[1 - n->rank].fd, name);
	CHECK(!strcmp(name, expect));
}

static void case_control_auto(struct node *n)
{
	check_control(n, "auto", "reno");
}

static void check_system(struct node *n, const char *setting)
{
	char name[32];
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	CHECK(fd >= 0);
	get_control(fd, name);
	close(fd);
	check_control(n, setting, name);
}

static void case_control_system(struct node *n)
{
	check_system(n, "");
}

static void case_control_unknown(struct node *n)
{
	weft_log_level = WEFT_LOG_ERROR; /* it warns, as it should */
	check_system(n, "there-is-none");
}

static bool waits(struct node *n)
{
	return !weft_net_tcp_out_empty(&((struct weft_tcp *)n->net)->conn[1 - n->rank].out);
}

static void send_lone(struct node *n, bool expect_wait)
{
	send_packet(n, 1 - n->rank, 8);
	CHECK(waits(n) == expect_wait);
	while (waits(n)) /* ends: a poll sends it */
		poll_once(n);
}

static void bursts(struct node *n)
{
	for (int burst = 0; burst < 12; burst++) {
		poll_once(n);
		for (int i = 0; i < 20; i++)
			send_packet(n, 1 - n->rank, 8);
		CHECK(waits(n));
		while (waits(n)) /* ends: a poll sends it */
			poll_once(n);
	}
}

static void case_streak(struct node *n)
{
	uint64_t expect = 4 * 12 * 20 + 7;
	send_lone(n, false); /* the connection is up now */
	bursts(n);
	send_lone(n, true);
	poll_once(n);
	send_lone(n, false);
	poll_once(n);
	send_lone(n, false);
	bursts(n); /* of which it asks for eight now */
	n->lone = true;
	send_lone(n, false);
	n->lone = false;
	poll_once(n);
	bursts(n);
	send_lone(n, true);
	poll_once(n);
	bursts(n); /* sixteen */
	send_lone(n, false);
	while (n->got_n[1 - n->rank] < expect)
		poll_once(n);
}

static void case_runs_together(struct node *n)
{
	case_runs(n);
	if (n->rank % 2) /* the ranks that have run() */
		CHECK(n->runs);
}

static enum weft_post join(struct node *n, uint64_t number, size_t len)
{
	struct head h = head_of(n, number, len, n->rank);
	unsigned char data[8];
	uint64_t w[2];
	payload_fill(data, len, number);
	memcpy(w, &h, sizeof w);
	return n->driver->join_plain(n->net, 1 - n->rank, w[0], w[1], data, len);
}

/* Joins what waits, and nothing else. */
static void case_join(struct node *n)
{
	int peer = 1 - n->rank;
	n->steps = true;
	send_packet(n, peer, 8);
	while (n->got_n[peer] < 1)
		poll_once(n);
	CHECK_EQ(join(n, 1, 8), WEFT_POST_FULL); /* nothing waits */
	for (int i = 0; i < 3; i++)              /* the first goes at once */
		CHECK_EQ(try_send(n, peer, 8), WEFT_POST_DONE);
	CHECK_EQ(join(n, 4, 8), WEFT_POST_DONE);
	CHECK_EQ(join(n, 6, 8), WEFT_POST_FULL); /* not the next one */
	CHECK_EQ(join(n, 5, 7), WEFT_POST_FULL);
	n->sent_n[peer]++;
	poll_once(n);
	CHECK_EQ(join(n, 5, 8), WEFT_POST_FULL); /* nothing waits any more */
	while (n->got_n[peer] < 5)
		poll_once(n);
}

static void check_silence(unsigned unacked, unsigned probes, unsigned expect_ms)
{
	struct tcp_info info = {.tcpi_unacked = unacked,
				.tcpi_probes = (uint8_t)probes,
				.tcpi_last_ack_recv = 90000};
	CHECK_EQ(weft_net_tcp_silent_ms(&info), expect_ms);
}

static void silence(void)
{
	check_silence(1, 0, 90000); /* sent and not answered */
	check_silence(0, 0, 0);     /* its window is full, the last question was answered */
	check_silence(0, 1, 0);     /* or is under way */
	check_silence(0, 2, 90000);
}

/* Rank 0 writes to the others; only a rank that dials asks for an address,
 * until it is told. */
static void case_late(struct node *n)
{
	CHECK_EQ(suite_asked, 0);
	if (n->rank == 0) {
		for (int p = 1; p < n->size; p++)
			for (int i = 0; i < 3; i++)
				while (try_send(n, p, 8) == WEFT_POST_FULL)
					poll_once(n);
		CHECK_EQ(suite_asked, 2 * (n->size - 1));
	} else {
		while (n->got_n[0] < 3)
			poll_once(n);
		CHECK_EQ(suite_asked, 0);
	}
}

int main(void)
{
	silence();
	run_suite_together(&weft_net_driver_tcp);
	run_case(&weft_net_driver_tcp, "control auto", 2, case_control_auto);
	run_case(&weft_net_driver_tcp, "control system", 2, case_control_system);
	run_case(&weft_net_driver_tcp, "control unknown", 2, case_control_unknown);
	run_case(&weft_net_driver_tcp, "streak", 2, case_streak);
	run_case(&weft_net_driver_tcp, "runs together", 2, case_runs_together);
	run_case(&weft_net_driver_tcp, "join", 2, case_join);
	suite_late = true;
	run_case(&weft_net_driver_tcp, "late", 4, case_late);
	run_case(&weft_net_driver_tcp, "runs together, late", 2, case_runs_together);
	return 0;
}
