/* SPDX-License-Identifier: BSD-3-Clause */
/* The submission queue in every order: nothing lost or twice, contents visible, order per producer.
 */
#include "model/explore.h"
#include "queue/mpsc.h"

struct item {
	struct weft_mpsc_node node;
	int cargo;
};

static struct weft_mpsc queue;
static struct item item[4];
static int got[4], taken;

static void setup(void)
{
	weft_mpsc_init(&queue);
	memset((void *)item, 0, sizeof item);
	memset(got, 0, sizeof got);
	taken = 0;
}

static void push(int i)
{
	model_write(&item[i].cargo, 10 + i);
	weft_mpsc_push(&queue, &item[i].node);
}

static void producer_one(void)
{
	push(0);
	push(1);
}

static void producer_two(void)
{
	push(2);
}

static void pop_one(void)
{
	struct weft_mpsc_node *n = weft_mpsc_pop(&queue);
	if (!n)
		return;
	int i = (int)((struct item *)n - item);
	MODEL_CHECK(model_read(&item[i].cargo) == 10 + i);
	MODEL_CHECK(!got[i]);
	MODEL_CHECK(i != 1 || got[0]); /* first in, first out, per producer */
	got[i] = 1;
	taken++;
}

static void consumer(void)
{
	for (int k = 0; k < 4; k++)
		pop_one();
}

static void all_there(void)
{
	MODEL_CHECK(weft_mpsc_empty(&queue) == (taken == 3));
	while (!weft_mpsc_empty(&queue)) {
		struct weft_mpsc_node *n = weft_mpsc_pop(&queue);
		MODEL_CHECK(n != NULL);
		got[(struct item *)n - item]++;
		taken++;
	}
	MODEL_CHECK(taken == 3);
	MODEL_CHECK(got[0] == 1 && got[1] == 1 && got[2] == 1);
}

int main(void)
{
	static const struct model models[] = {
		{"mpsc, two producers",
		 setup,
		 {producer_one, producer_two, consumer},
		 all_there,
		 3,
		 .must = {"weft_mpsc_push s", "weft_mpsc_pop l"}},
	};
	return explore_all(models, weft_countof(models));
}
