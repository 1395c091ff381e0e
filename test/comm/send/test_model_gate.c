/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A gate's mask in every order: each packet is posted once, by a thread that is alone inside and
 * sees what its submitter wrote; none is left in the queue when all threads have gone.
 */
#include "model/explore.h"
/* The production source, compiled against the explorer's atomics. */
#include "comm/core.h"
#include "comm/send/gate.c"

#define PACKETS 3

static struct weft_core core;
static struct weft_gate gate;
static struct weft_out out[PACKETS];
static int payload[PACKETS]; /* plain: the submitter's until it is posted */
static int posted;           /* plain: under the mask */
static int over[PACKETS];

static void post(int i)
{
	MODEL_CHECK(model_read(&payload[i]) == 1);
	model_write(&payload[i], 2);
	model_write(&posted, model_read(&posted) + 1);
}

static enum weft_post model_post_locked(struct weft_gate *g, struct weft_out *o)
{
	MODEL_CHECK(g == &gate);
	post((int)(o - out));
	return WEFT_POST_DONE;
}

static void model_posted(struct weft_gate *g, struct weft_out *o)
{
	MODEL_CHECK(g == &gate);
	over[o - out]++;
}

static const struct weft_out_ops ops = {
	.post_locked = model_post_locked, .posted = model_posted, .failed = model_posted};

static void setup(void)
{
	core.size = 1;
	core.gate = &gate;
	for (int t = 0; t < WEFT_OUT_TYPES; t++)
		core.out_ops[t] = &ops;
	weft_comm_gate_init(&gate, &core, 0);
	memset(out, 0, sizeof out);
	memset(payload, 0, sizeof payload);
	memset(over, 0, sizeof over);
	posted = 0;
}

static void submit(int i)
{
	model_write(&payload[i], 1);
	weft_comm_gate_submit(&gate, &out[i]);
}

static void submits_first(void)
{
	submit(0);
}

static void submits_second(void)
{
	submit(1);
}

/* A send that finds the gate free posts at once; else it goes through the queue. */
static void sends(void)
{
	int i = PACKETS - 1;
	if (weft_comm_gate_try(&gate)) {
		bool clear = weft_comm_gate_clear_locked(&gate);
		if (clear) {
			model_write(&payload[i], 1);
			post(i);
		}
		weft_comm_gate_leave(&gate);
		if (clear) {
			over[i]++;
			return;
		}
	}
	submit(i);
}

/* Leaves its packet without the bit: the holder may have looked at the queue before. */
static void submits_without_kick(void)
{
	model_write(&payload[1], 1);
	weft_comm_gate_push(&gate, &out[1]);
	if (weft_comm_gate_try(&gate)) {
		struct finished a = {NULL, NULL};
		drain_locked(&gate, &a);
		leave_and_finish(&gate, &a);
	}
}

/* Asks before it pushes: the kick is over before the packet is there. */
static void kicks_before_push(void)
{
	model_write(&payload[1], 1);
	weft_comm_gate_kick(&gate);
	weft_comm_gate_push(&gate, &out[1]);
}

static void none_left(int n)
{
	MODEL_CHECK(posted == n);
	for (int i = 0; i < PACKETS; i++)
		MODEL_CHECK(over[i] <= 1);
	weft_comm_gate_check(&gate);
	MODEL_CHECK(!gate.out_head);
}

static void two_posted(void)
{
	none_left(2);
}

static void three_posted(void)
{
	none_left(3);
}

int main(void)
{
	static const struct model models[] = {
		{"gate, two submitters",
		 setup,
		 {submits_first, submits_second},
		 two_posted,
		 5,
		 .must = {"weft_comm_gate_push c", "gather_locked x", "weft_comm_gate_kick x",
			  "leave_and_finish x"}},
		{"gate, a sender and a submitter",
		 setup,
		 {submits_first, sends},
		 two_posted,
		 5,
		 .must = {"weft_comm_gate_try c", "weft_comm_gate_leave x"}},
		{"gate, three threads",
		 setup,
		 {submits_first, submits_second, sends},
		 three_posted,
		 2},
		{"gate, a packet without a kick",
		 setup,
		 {submits_first, submits_without_kick},
		 two_posted,
		 4,
		 .broken = true},
		{"gate, a kick before its packet",
		 setup,
		 {submits_first, kicks_before_push},
		 two_posted,
		 4,
		 .broken = true},
	};
	return explore_all(models, weft_countof(models));
}
