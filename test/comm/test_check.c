/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_check.c - the checks of a core's structures accept a core at work, and each break of a
 * promise, made by hand in a child process, ends that process by an assert.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "check.h"
#include "comm/core_check.h"
#include "comm/fake_net.h"
#include "comm/match/bucket.h"
#include "comm/recv/msg.h"
#include "comm/request.h"

#ifdef WEFT_CHECKED

#define RECVS 9

static struct weft_core *core[2];
static struct weft_ctx *ctx[2];
static struct weft_req recv_req[RECVS], send_req[4];
static char in[RECVS][64], out[8000];

/* Posted receives of one key and of several, wildcards, unexpected messages in lists and not, a
 * rendezvous under way, credit spent. */
static void setup(void)
{
	fake_init(1);
	fake_cores(core, 2);
	for (int r = 0; r < 2; r++)
		CHECK(!weft_comm_core_ctx_open(core[r], 7, &ctx[r]));
	for (int i = 0; i < RECVS; i++) {
		struct weft_buf b = weft_data_buf_flat(in[i], sizeof in[i]);
		int peer = i < 7 ? 0 : WEFT_ANY_PEER, tag = i < 3 ? 1 : 100 + i;
		weft_comm_req_init(&recv_req[i], NULL, NULL);
		CHECK(!weft_comm_core_irecv(&recv_req[i], ctx[1], peer, tag, &b));
	}
	for (int i = 0; i < 4; i++) {
		struct weft_buf b = weft_data_buf_flat(out, i < 3 ? 40 : sizeof out);
		weft_comm_req_init(&send_req[i], NULL, NULL);
		CHECK(!weft_comm_core_isend(&send_req[i], ctx[0], 1, 50 + i / 2, &b,
					    WEFT_SEND_STANDARD));
	}
	fake_poll_all(core, 2, 50);
}

static struct weft_bucket *bucket_of(int tag)
{
	return weft_comm_bucket_of(ctx[1], 0, tag);
}

static struct weft_msg *first_unexpected(void)
{
	CHECK(ctx[1]->all_head);
	return ctx[1]->all_head;
}

/* ---- broken promises ------------------------------------------------------------------------- */

static void queue_end(void)
{
	struct weft_keyed *first = bucket_of(1)->slot[0].first;
	first->prev = first; /* three nodes: the last is another */
}

static void node_unlisted(void)
{
	atomic_store(&bucket_of(1)->slot[0].first->next->x_listed, false);
}

static void wrong_bucket(void)
{
	bucket_of(1)->slot[0].first->next->tag = 2;
}

static void page_unmarked(void)
{
	memset((void *)core[1]->match.x_used, 0, sizeof core[1]->match.x_used);
	core[1]->match.x_used[0] = 1; /* what is marked is checked; lists lead to the rest */
	memset((void *)ctx[1]->x_page, 0, sizeof ctx[1]->x_page);
	ctx[1]->x_rows = 0;
	size_t page = (size_t)(bucket_of(1) - core[1]->match.bucket) / WEFT_BUCKET_GROUP;
	core[1]->match.x_used[page / 64] |= (uint64_t)1 << (page % 64);
}

static void bucket_left_locked(void)
{
	bucket_of(1)->lock.x_held = 1;
}

static void wildcard_uncounted(void)
{
	atomic_fetch_sub(&ctx[1]->x_wild, 1);
}

static void wildcard_ages(void)
{
	ctx[1]->wild_tail->stamp = 0;
}

static void list_tail(void)
{
	ctx[1]->all_tail = NULL;
}

static void message_off_list(void)
{
	first_unexpected()->lists = 0;
}

static void hint_of_probes(void)
{
	atomic_fetch_add(&ctx[1]->x_unexpected, 1);
}

static void queue_tail(void)
{
	core[0]->gate[1].out_tail = NULL;
}

static void mask_left(void)
{
	atomic_store(&core[0]->gate[1].x_mask, WEFT_GATE_HELD);
}

static void packet_left(void)
{
	static struct weft_out o;
	core[0]->gate[1].x_in = &o;
}

static void credit_from_nothing(void)
{
	atomic_fetch_add(&core[0]->gate[1].x_credit_got, 1 << 20);
}

static void credit_back_twice(void)
{
	atomic_fetch_add(&core[1]->gate[0].x_returned, 1 << 20);
}

static void id_lost(void)
{
	CHECK(core[0]->ids.free_head);
	core[0]->ids.free_head = 0;
}

static void id_given_twice(void)
{
	atomic_fetch_add(&core[0]->ids.x_live, 1);
}

static void answer_lost(void)
{
	core[0]->answers.free = core[0]->answers.free->next;
}

static void peers_gone(void)
{
	atomic_fetch_add(&core[0]->x_gone, 1);
}

static const struct {
	const char *name;
	void (*fn)(void);
} breaks[] = {{"queue_end", queue_end},
	      {"node_unlisted", node_unlisted},
	      {"wrong_bucket", wrong_bucket},
	      {"page_unmarked", page_unmarked},
	      {"bucket_left_locked", bucket_left_locked},
	      {"wildcard_uncounted", wildcard_uncounted},
	      {"wildcard_ages", wildcard_ages},
	      {"list_tail", list_tail},
	      {"message_off_list", message_off_list},
	      {"hint_of_probes", hint_of_probes},
	      {"queue_tail", queue_tail},
	      {"mask_left", mask_left},
	      {"packet_left", packet_left},
	      {"credit_from_nothing", credit_from_nothing},
	      {"credit_back_twice", credit_back_twice},
	      {"id_lost", id_lost},
	      {"id_given_twice", id_given_twice},
	      {"answer_lost", answer_lost},
	      {"peers_gone", peers_gone}};

static bool child_asserts(void (*fn)(void))
{
	fflush(stdout);
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		struct rlimit none = {0, 0};
		setrlimit(RLIMIT_CORE, &none);
		CHECK(freopen("/dev/null", "w", stderr));
		fn();
		for (int r = 0; r < 2; r++)
			weft_comm_core_check(core[r]);
		_exit(0);
	}
	int status;
	CHECK(waitpid(pid, &status, 0) == pid);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void nothing(void)
{
}

int main(void)
{
	setup();
	for (int r = 0; r < 2; r++)
		weft_comm_core_check(core[r]);
	CHECK(!child_asserts(nothing));
	for (size_t i = 0; i < weft_countof(breaks); i++) {
		if (child_asserts(breaks[i].fn))
			continue;
		printf("%s: no check has found it\n", breaks[i].name);
		return 1;
	}
	/* What is still posted ends with its contexts. */
	for (int r = 0; r < 2; r++)
		weft_comm_ctx_close(ctx[r]);
	fake_poll_all(core, 2, 50);
	fake_end(core, 2);
	return 0;
}

#else
int main(void)
{
	printf("skipped: a build without asserts\n");
	return 77;
}
#endif
