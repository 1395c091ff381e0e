/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uts.c - counts the nodes of a tree whose shape is not known before (UTS, the unbalanced tree search).
 *
 * A node's children follow from its 20 bytes by SHA-1, so the trees are the same everywhere, and
 * the sizes that the benchmark publishes prove the count.  Many threads explore; what they have too
 * much lies in a bag.  Where a bag is empty, thieves ask: one thread per other rank, blocked in
 * MPI_Recv until that rank's giver, which keeps the question until it has something, answers.
 * The end: rank 0 counts the ranks that may still have nodes.  A giver reports one more, and waits for the
 * receipt, before it gives; a rank that has run dry gives back what was counted for it.
 *
 *   mpicc -O2 uts.c -lm -o uts && mpiexec -n 2 ./uts --tree 1 [--threads 100] [--pthreads]
 *
 * Trees: 1 (T1, geometric), 3 (T3, binomial), 101 (T1L), 9 (a small one of our own).
 */
#include <math.h>
#include <stdatomic.h>
#include <stdint.h>
#include "either.h"

enum {
	TAG_COUNT = 1, /* to rank 0: so many more may have nodes */
	TAG_OVER,
	TAG_ASK,
	TAG_WORK,
	TAG_RECEIPT = 100, /* + the rank that it is given to */
	PIECE = 16,        /* nodes that a thread takes at once */
	MANY = 512,        /* and a message carries at most */
	TURN = 256,        /* nodes between two looks at the questions of thieves */
	CHILDREN_MAX = 100,
};

struct node {
	uint8_t state[20];
	int32_t depth;
};

static const struct tree {
	const char *name;
	long number;
	bool binomial;
	uint32_t seed;
	double branches; /* geometric: mean number of children; binomial: of the root */
	int depth_max;   /* geometric */
	double chance;   /* binomial: to have 8 children, and not none */
	long nodes, leaves;
	int depth;
} trees[] =
	{
		{"T1", 1, false, 19, 4, 10, 0, 4130071, 3305118, 10},
		{"T1L", 101, false, 29, 4, 13, 0, 102181082, 81746377, 13},
		{"T3", 3, true, 42, 2000, 0, 0.124875, 4112897, 3599034, 1572},
		{"small", 9, false, 19, 4, 6, 0, 16000, 12839, 6},
},
  *tree;

static long number = 9, threads = 100;

/* ---- the tree -------------------------------------------------------------------------------- */

static uint32_t turned(uint32_t x, int by)
{
	return x << by | x >> (32 - by);
}

static void put_be(uint8_t *to, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		to[i] = (uint8_t)(v >> (24 - 8 * i));
}

static uint32_t get_be(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* SHA-1 (FIPS 180-4) of a message that fits into one block: at most 55 bytes. */
static void sha1(uint8_t out[20], const uint8_t *in, size_t bytes)
{
	static const uint32_t k[4] = {0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6};
	uint32_t h[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
	uint32_t w[80], a = h[0], b = h[1], c = h[2], d = h[3], e = h[4];
	uint8_t block[64] = {0};

	memcpy(block, in, bytes);
	block[bytes] = 0x80;
	put_be(block + 60, (uint32_t)bytes * 8);
	for (int i = 0; i < 16; i++)
		w[i] = get_be(block + 4 * i);
	for (int i = 16; i < 80; i++)
		w[i] = turned(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
	for (int i = 0; i < 80; i++) {
		uint32_t f = i < 20   ? d ^ (b & (c ^ d))
			     : i < 40 ? b ^ c ^ d
			     : i < 60 ? (b & c) | (d & (b | c))
				      : b ^ c ^ d;
		uint32_t t = turned(a, 5) + f + e + k[i / 20] + w[i];
		e = d;
		d = c;
		c = turned(b, 30);
		b = a;
		a = t;
	}
	put_be(out, h[0] + a);
	put_be(out + 4, h[1] + b);
	put_be(out + 8, h[2] + c);
	put_be(out + 12, h[3] + d);
	put_be(out + 16, h[4] + e);
}

static void root(struct node *n)
{
	uint8_t seed[20] = {0};
	put_be(seed + 16, tree->seed);
	sha1(n->state, seed, sizeof(seed));
	n->depth = 0;
}

static void child(struct node *n, const struct node *of, int which)
{
	uint8_t in[24];
	memcpy(in, of->state, 20);
	put_be(in + 20, (uint32_t)which);
	sha1(n->state, in, sizeof(in));
	n->depth = of->depth + 1;
}

static int children(const struct node *n)
{
	double u = (get_be(n->state + 16) & 0x7fffffff) / 2147483648.0;
	if (tree->binomial)
		return n->depth == 0 ? (int)tree->branches : u < tree->chance ? 8 : 0;
	if (n->depth >= tree->depth_max)
		return 0;
	int count = (int)floor(log(1 - u) / log(1 - 1 / (1 + tree->branches)));
	return count > CHILDREN_MAX ? CHILDREN_MAX : count;
}

/* ---- the bag of a rank ----------------------------------------------------------------------- */

struct pile {
	struct node *node;
	long count, room;
};

static struct lock lock = LOCK_INIT;
static struct event nodes_came = EVENT_INIT;  /* explorers wait for it */
static struct event nodes_spare = EVENT_INIT; /* givers do */
static struct event nodes_lack = EVENT_INIT;  /* thieves do */
static struct pile bag;                       /* lock */
static long busy;                             /* lock: threads that have nodes in hand */
static long hungry;                           /* lock: explorers that wait */
static long asked;                            /* lock: givers that wait: they come first */
static int counted;                           /* lock: what rank 0 has counted for us */
static bool over;                             /* lock */
static _Atomic long x_wanted; /* explorers and givers that wait; changed under lock */
static long nodes, leaves;    /* lock */
static int deepest;           /* lock */

static void pile_room(struct pile *p, long more)
{
	if (p->count + more <= p->room)
		return;
	p->room = 2 * (p->count + more);
	p->node = realloc(p->node, (size_t)p->room * sizeof(*p->node));
	if (!p->node)
		fail("no memory");
}

/* From the beginning of one, where the largest subtrees are, to the end of the other. */
static void pile_move(struct pile *to, struct pile *from, long n)
{
	pile_room(to, n);
	memcpy(to->node + to->count, from->node, (size_t)n * sizeof(*to->node));
	to->count += n;
	from->count -= n;
	memmove(from->node, from->node + n, (size_t)from->count * sizeof(*from->node));
}

/* Lock held, the bag or its waiters have changed: wakes one waiter for what is in
 * it, which wakes the next; or the thieves, if there is nothing. */
static void offers(void)
{
	if (asked > 0 && bag.count > 1)
		event_tell_one(&nodes_spare);
	else if (hungry > 0 && bag.count > 0)
		event_tell_one(&nodes_came);
	else if (hungry > 0)
		event_tell_all(&nodes_lack);
}

/* Lock held: the caller has no nodes in hand any more. */
static void runs_dry(void)
{
	int back[2] = {-counted, 0};
	if (--busy > 0 || bag.count > 0 || counted == 0)
		return;
	counted = 0;
	lock_give(&lock);
	MPI_Send(back, 2, MPI_INT, 0, TAG_COUNT, MPI_COMM_WORLD);
	lock_take(&lock);
}

/* ---- exploring ------------------------------------------------------------------------------- */

/* Visits up to TURN nodes, depth first. */
static void visit(struct pile *mine, long *seen_p, long *leaves_p, int *deepest_p)
{
	for (int turn = 0; turn < TURN && mine->count > 0; turn++) {
		struct node n = mine->node[--mine->count];
		int count = children(&n);
		++*seen_p;
		*leaves_p += count == 0;
		if (n.depth > *deepest_p)
			*deepest_p = n.depth;
		pile_room(mine, count);
		for (int i = 0; i < count; i++)
			child(&mine->node[mine->count++], &n, i);
	}
}

static void *explores(void *arg)
{
	struct pile mine = {NULL, 0, 0};
	long seen = 0, bare = 0;
	int depth = 0;

	(void)arg;
	lock_take(&lock);
	for (;;) { /* ends: it is over everywhere */
		while (!over && (bag.count == 0 || (asked > 0 && bag.count > 1))) {
			hungry++;
			x_wanted++;
			offers();
			event_wait(&nodes_came, &lock);
			hungry--;
			x_wanted--;
		}
		if (bag.count == 0)
			break;
		pile_move(&mine, &bag, bag.count < PIECE ? bag.count : PIECE);
		busy++;
		offers();
		lock_give(&lock);
		while (mine.count > 0) {
			visit(&mine, &seen, &bare, &depth);
			if (mine.count > 1 && x_wanted > 0) {
				lock_take(&lock);
				pile_move(&bag, &mine, mine.count / 2);
				offers();
				lock_give(&lock);
			}
			/* Or no other thread would run, and none would ask for nodes. */
			thread_yield();
		}
		lock_take(&lock);
		runs_dry();
	}
	nodes += seen;
	leaves += bare;
	if (depth > deepest)
		deepest = depth;
	lock_give(&lock);
	free(mine.node);
	return NULL;
}

/* ---- between ranks --------------------------------------------------------------------------- */

static void *steals(void *arg)
{
	int from = (int)(long)arg, ask = 1, bytes;
	struct pile got = {memory(MANY * sizeof(struct node)), 0, MANY};
	MPI_Status st;

	while (ask) { /* ends: it is over, and the last word was that we do not ask again */
		lock_take(&lock);
		while (!over && !(hungry > 0 && bag.count == 0))
			event_wait(&nodes_lack, &lock);
		ask = !over;
		lock_give(&lock);
		MPI_Send(&ask, 1, MPI_INT, from, TAG_ASK, MPI_COMM_WORLD);
		if (!ask)
			break;
		MPI_Recv(got.node, (int)(MANY * sizeof(struct node)), MPI_BYTE, from, TAG_WORK,
			 MPI_COMM_WORLD, &st);
		MPI_Get_count(&st, MPI_BYTE, &bytes);
		got.count = bytes / (int)sizeof(struct node);
		lock_take(&lock);
		counted += got.count > 0;
		pile_move(&bag, &got, got.count);
		offers();
		lock_give(&lock);
	}
	free(got.node);
	return NULL;
}

static void *gives(void *arg)
{
	int to = (int)(long)arg, ask, one[2] = {1, to};
	struct pile some = {memory(MANY * sizeof(struct node)), 0, MANY};

	for (;;) { /* ends: the other does not ask any more */
		MPI_Recv(&ask, 1, MPI_INT, to, TAG_ASK, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (!ask)
			break;
		lock_take(&lock);
		x_wanted++;
		asked++;
		while (bag.count < 2 && !over)
			event_wait(&nodes_spare, &lock);
		x_wanted--;
		asked--;
		pile_move(&some, &bag, bag.count / 2 < MANY ? bag.count / 2 : MANY);
		busy++;
		offers();
		lock_give(&lock);
		if (some.count > 0) {
			MPI_Send(one, 2, MPI_INT, 0, TAG_COUNT, MPI_COMM_WORLD);
			MPI_Recv(NULL, 0, MPI_INT, 0, TAG_RECEIPT + to, MPI_COMM_WORLD,
				 MPI_STATUS_IGNORE);
		}
		MPI_Send(some.node, (int)(some.count * (long)sizeof(struct node)), MPI_BYTE, to,
			 TAG_WORK, MPI_COMM_WORLD);
		some.count = 0;
		lock_take(&lock);
		runs_dry();
		lock_give(&lock);
	}
	free(some.node);
	return NULL;
}

/* Rank 0: how many may still have nodes? */
static void *counts(void *arg)
{
	int may_have = 1, change[2];
	MPI_Status st;

	(void)arg;
	while (may_have > 0) {
		MPI_Recv(change, 2, MPI_INT, MPI_ANY_SOURCE, TAG_COUNT, MPI_COMM_WORLD, &st);
		may_have += change[0];
		if (change[0] > 0)
			MPI_Send(NULL, 0, MPI_INT, st.MPI_SOURCE, TAG_RECEIPT + change[1],
				 MPI_COMM_WORLD);
	}
	for (int r = 0; r < ranks; r++)
		MPI_Send(NULL, 0, MPI_INT, r, TAG_OVER, MPI_COMM_WORLD);
	return NULL;
}

static void search(void)
{
	struct thread *t = memory((size_t)(threads + 2 * ranks + 1) * sizeof(*t));
	long n = 0;

	if (rank == 0) {
		pile_room(&bag, 1);
		root(&bag.node[bag.count++]);
		counted = 1;
		thread_start(&t[n++], counts, NULL);
	}
	for (long r = 0; r < ranks; r++) {
		if (r == rank)
			continue;
		thread_start(&t[n++], gives, (void *)r);
		thread_start(&t[n++], steals, (void *)r);
	}
	for (long i = 0; i < threads; i++)
		thread_start(&t[n++], explores, NULL);
	MPI_Recv(NULL, 0, MPI_INT, 0, TAG_OVER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	lock_take(&lock);
	over = true;
	event_tell_all(&nodes_came);
	event_tell_all(&nodes_spare);
	event_tell_all(&nodes_lack);
	lock_give(&lock);
	while (n > 0)
		thread_end(&t[--n]);
	free(t);
	free(bag.node);
}

int main(int argc, char **argv)
{
	const struct option options[] = {
		{"--tree", &number}, {"--threads", &threads}, {NULL, NULL}};
	long mine[2], all[2];
	int depth;
	char what[80];

	start(&argc, argv, options);
	for (size_t i = 0; i < sizeof(trees) / sizeof(trees[0]); i++)
		if (trees[i].number == number)
			tree = &trees[i];
	if (!tree)
		fail("no such tree: there are 1, 3, 101 and 9");
	MPI_Barrier(MPI_COMM_WORLD);
	double t = MPI_Wtime();
	search();
	MPI_Barrier(MPI_COMM_WORLD);
	t = MPI_Wtime() - t;
	mine[0] = nodes;
	mine[1] = leaves;
	MPI_Allreduce(mine, all, 2, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
	MPI_Allreduce(&deepest, &depth, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
	if (!rows && rank == 0)
		printf("%s: %ld nodes, %ld leaves, depth %d; rank 0 visited %ld\n", tree->name,
		       all[0], all[1], depth, nodes);
	if (all[0] != tree->nodes || all[1] != tree->leaves || depth != tree->depth)
		fail("this is not the size of that tree");
	snprintf(what, sizeof(what), "tree search %s with %ld threads", tree->name, threads);
	result(what, "time", "ms", t * 1e3);
	return finish();
}
