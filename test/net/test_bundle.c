/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The bundle driver keeps the contract over two tcp rails, shm and tcp, tcp and libfabric; and
 * loses and doubles nothing when rails are cut in mid-message and come back.
 */
#include "driver_suite.c"
#include "net/bundle/bundle_int.h"

static void plan(const char *text)
{
	struct weft_bundle_rail rails[WEFT_BUNDLE_RAILS];
	unsigned n;
	CHECK_EQ(weft_net_bundle_parse(text, rails, &n), WEFT_OK);
	weft_net_bundle_plan(rails, n);
}

/* All rails are up, on both sides. */
static void all_up(struct node *n)
{
	struct weft_bundle_stats s[WEFT_BUNDLE_RAILS];
	for (bool all = false; !all;) {
		unsigned rails = weft_net_bundle_stats(n->net, s, WEFT_BUNDLE_RAILS);
		all = true;
		for (unsigned r = 0; r < rails; r++)
			all = all && s[r].up == 1;
		poll_once(n);
	}
}

/* Packets of all lengths flow both ways; each side cuts rails at moments that a seed says. */
static void cut_rails(struct node *n, unsigned cuts, int only)
{
	uint64_t seed = 11 + (uint64_t)n->rank;
	const uint64_t count = 800;
	struct weft_bundle_stats s[WEFT_BUNDLE_RAILS];
	int peer = next_of(n);
	send_packet(n, peer, 8);
	all_up(n);
	meet_polling(n);
	for (uint64_t i = 1; i < count; i++) {
		uint64_t r = weft_rand_next(&seed), step = count / (cuts + 1);
		send_packet(n, peer, r % 8 ? (r >> 8) % 100 : (r >> 8) % 200000);
		if (cuts && i % step == 0)
			weft_net_bundle_cut(
				n->net, only >= 0 ? (unsigned)only : (unsigned)(i / step % 2), 20);
	}
	while (n->got_n[prev_of(n)] < count || n->outstanding)
		poll_once(n);
	CHECK_EQ(n->got_n[prev_of(n)], count);
	CHECK(!n->down[peer]);
	meet_polling(n);
	/* Every rail comes back. */
	all_up(n);
	weft_net_bundle_stats(n->net, s, WEFT_BUNDLE_RAILS);
	uint64_t lost = 0;
	for (unsigned r = 0; r < 2; r++)
		lost += s[r].lost;
	CHECK(lost > 0);
}

static void case_cut_both(struct node *n)
{
	cut_rails(n, 6, -1);
}

static void case_cut_one_side(struct node *n)
{
	cut_rails(n, n->rank == 0 ? 5 : 0, 1);
}

/* Both sides give up a different rail at the same time, again and again. */
static void case_cut_crosswise(struct node *n)
{
	cut_rails(n, 6, n->rank);
}

/* A large message uses both rails. */
static void case_both_used(struct node *n)
{
	struct weft_bundle_stats s[2];
	send_packet(n, next_of(n), 8);
	all_up(n);
	meet_polling(n);
	for (int i = 0; i < 50; i++)
		send_packet(n, next_of(n), 300000);
	while (n->outstanding)
		poll_once(n);
	weft_net_bundle_stats(n->net, s, 2);
	CHECK(s[0].bytes > 1000000 && s[1].bytes > 1000000);
	meet_polling(n);
	CHECK(n->got_n[prev_of(n)] >= 50);
}

/* No descriptor that a bundle hands up is a set of its rails' sets: the kernel stacks no more sets
 * above it than above that of a single driver. */
static void case_flat(struct node *n)
{
	int fd[WEFT_NET_FDS], set = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event ev = {.events = EPOLLIN};
	unsigned above = 0, n_fds = n->driver->fds(n->net, fd);
	CHECK(set >= 0 && n_fds == 3);
	while (above < 16 && weft_net_hub_nests(set, above + 1))
		above++;
	CHECK(above >= 1 && above < 16);
	for (unsigned i = 0; i < n_fds; i++)
		CHECK(weft_net_hub_nests(fd[i], above));
	CHECK(epoll_ctl(set, EPOLL_CTL_ADD, fd[0], &ev) == 0);
	CHECK(!weft_net_hub_nests(set, above)); /* one more is seen */
	close(set);
}

/* Memory is reached over shm, once that is up. */
static void all_rails_up(struct node *n)
{
	send_packet(n, next_of(n), 8);
	all_up(n);
	while (n->got_n[prev_of(n)] < 1)
		poll_once(n);
	meet_polling(n);
}

static void case_copy_up(struct node *n)
{
	all_rails_up(n);
	case_copy(n);
}

static void case_regions_up(struct node *n)
{
	all_rails_up(n);
	case_regions(n);
}

/* All rails break while the other side does not poll: its host takes the connections that are to
 * replace them, and that is known.  When it polls again all goes on. */
static void case_away(struct node *n)
{
	struct weft_bundle *b = (struct weft_bundle *)n->net;
	int peer = next_of(n);
	send_packet(n, peer, 8);
	all_up(n);
	meet_polling(n);
	meet(n);
	for (unsigned r = 0; n->rank == 0 && r < b->n_rails; r++)
		weft_net_bundle_cut(n->net, r, 1);
	for (unsigned taken = 0; n->rank == 0 && taken < b->n_rails;) {
		poll_once(n);
		taken = 0;
		for (unsigned r = 0; b->peer[peer].dying_ns && r < b->n_rails; r++)
			taken += b->rail[r].driver->lives(b->rail[r].net, peer);
	}
	meet(n);
	send_packet(n, peer, 100);
	all_up(n);
	while (n->got_n[prev_of(n)] < 2)
		poll_once(n);
	CHECK(!n->down[peer]);
	meet_polling(n);
}

/* One side gives the other up while all rails work: the other hears of it over each of them. */
static void case_given_up(struct node *n)
{
	int peer = next_of(n);
	send_packet(n, peer, 8);
	all_up(n);
	meet_polling(n);
	if (n->rank == 0)
		weft_net_bundle_peer_down((struct weft_bundle *)n->net, peer, WEFT_ERR_PEER,
					  "test");
	while (!n->down[peer])
		sleep_once(n);
	CHECK_EQ(n->down_err[peer], WEFT_ERR_PEER);
}

/* Where there is libfabric. */
static void with_ofi(void)
{
	const struct weft_driver *d = &weft_net_driver_bundle;
	plan("tcp:127.0.0.2,ofi");
	/* Asking all providers whether they are there takes most of a second. */
	setenv("FI_PROVIDER", "tcp,ofi_rxm", 1);
	run_case(d, "killed, full", 2, case_killed_full);
	run_case(d, "cut from both sides", 2, case_cut_both);
	run_case(d, "cut crosswise", 2, case_cut_crosswise);
	CHECK_EQ(weft_setting_set(WEFT_SET_PEER_TIMEOUT, "1"), WEFT_OK);
	run_case(d, "given up", 2, case_given_up);
}

static void contract(void)
{
	const struct weft_driver *d = &weft_net_driver_bundle;
	run_case(d, "lengths", 2, case_lengths);
	run_case(d, "flood", 2, case_flood);
	run_case(d, "large", 2, case_large);
	run_case(d, "all to all", 3, case_all_to_all);
	run_case(d, "sleep", 2, case_sleep);
	run_case(d, "stay armed", 2, case_stay_armed);
	run_case(d, "stay armed, full", 2, case_stay_armed_full);
	run_case(d, "sleep full", 2, case_sleep_full);
	run_case(d, "threads", 2, case_threads);
	run_case(d, "burst", 2, case_burst);
	run_case(d, "leave", 2, case_leave);
	/* These take the two seconds in which a peer might come back. */
	run_case(d, "killed, full", 2, case_killed_full);
}

static void cuts(void)
{
	const struct weft_driver *d = &weft_net_driver_bundle;
	run_case(d, "both used", 2, case_both_used);
	run_case(d, "cut from both sides", 2, case_cut_both);
	run_case(d, "cut from one side", 2, case_cut_one_side);
	run_case(d, "cut crosswise", 2, case_cut_crosswise);
	run_case(d, "away", 2, case_away);
}

int main(int argc, char **argv)
{
	suite_fewer = 8;
	/* A loaded machine shall not make a peer look dead that only waits for its turn. */
	setenv("WEFT_PEER_TIMEOUT", "60", 1);
	if (argc > 1 && !strcmp(argv[1], "ofi")) {
		with_ofi();
		return 0;
	}
	if (argc > 1) {
		plan(argv[1]);
		if (argc == 2)
			contract();
		cuts();
		return 0;
	}
	plan("tcp:127.0.0.2,tcp:127.0.0.3");
	contract();
	cuts();
	plan("shm,tcp:127.0.0.1");
	const struct weft_driver *d = &weft_net_driver_bundle;
	run_case(d, "flood", 2, case_flood);
	run_case(d, "sleep full", 2, case_sleep_full);
	run_case(d, "threads", 2, case_threads);
	run_case(d, "flat", 2, case_flat);
	run_case(d, "copy", 2, case_copy_up);
	run_case(d, "regions", 2, case_regions_up);
	run_case(d, "cut from both sides", 2, case_cut_both);
	with_ofi();
	return 0;
}
