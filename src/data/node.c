/* SPDX-License-Identifier: BSD-3-Clause */
/* node.c - makes normalised layout trees; see node.h for the forms. */
#include "data/node.h"

#include <stdlib.h>
#include <string.h>

/* A list of runs is copied into the list it becomes part of up to this many blocks; beyond that it
 * stays a node of its own.  Trades memory for one less level of recursion. */
#define FLATTEN_MAX 32

static struct weft_node_box *box_alloc(size_t children, size_t bytes)
{
	struct weft_node_box *box = malloc(sizeof *box + bytes);
	if (!box)
		return NULL;
	atomic_init(&box->x_refs, 1);
	box->children = children;
	return box;
}

void weft_data_node_ref(const struct weft_node *n)
{
	/* Relaxed: the caller holds a reference, so the box cannot go away meanwhile. */
	if (n->box)
		atomic_fetch_add_explicit(&n->box->x_refs, 1, memory_order_relaxed);
}

void weft_data_node_unref(const struct weft_node *n)
{
	struct weft_node_box *box = n->box;
	if (!box)
		return;
	/* LAST -> itself.  Carries: every owner's reads of the box.
	 * Without it, the last owner could free it under another one's reads. */
	if (atomic_fetch_sub_explicit(&box->x_refs, 1, memory_order_acq_rel) != 1)
		return;
	const struct weft_node *child = (const struct weft_node *)box->mem;
	for (size_t i = 0; i < box->children; i++)
		weft_data_node_unref(&child[i]);
	free(box);
}

/* A loop whose child is already a copy that the caller owns. */
static weft_err loop_of(size_t n, ptrdiff_t stride, ptrdiff_t disp, struct weft_node child,
			struct weft_node *out_p)
{
	struct weft_node_box *box = box_alloc(1, sizeof child);
	if (!box)
		return WEFT_ERR_NOMEM;
	child.off = 0;
	memcpy(box->mem, &child, sizeof child);
	*out_p = (struct weft_node){
		.kind = WEFT_NODE_LOOP,
		.disp = disp,
		.size = n * child.size,
		.n = n,
		.stride = stride,
		.child = (const struct weft_node *)box->mem,
		.box = box,
	};
	return WEFT_OK;
}

weft_err weft_data_node_loop(size_t n, ptrdiff_t stride, const struct weft_node *child,
			     struct weft_node *out_p)
{
	size_t total;
	if (__builtin_mul_overflow(n, child->size, &total) || total > PTRDIFF_MAX)
		return WEFT_ERR_LIMIT;
	if (!total) {
		*out_p = weft_data_node_run(0, 0);
		return WEFT_OK;
	}
	if (n == 1) {
		*out_p = *child;
		weft_data_node_ref(child);
		return WEFT_OK;
	}
	if (child->kind == WEFT_NODE_RUN && (size_t)stride == child->size && stride > 0) {
		*out_p = weft_data_node_run(child->disp, total);
		return WEFT_OK;
	}
	if (child->kind == WEFT_NODE_LOOP && stride == (ptrdiff_t)child->n * child->stride) {
		*out_p = *child;
		out_p->n = n * child->n;
		out_p->size = total;
		weft_data_node_ref(child);
		return WEFT_OK;
	}
	struct weft_node c = *child;
	ptrdiff_t disp = c.disp;
	c.disp = 0;
	weft_data_node_ref(child);
	weft_err err = loop_of(n, stride, disp, c, out_p);
	if (err)
		weft_data_node_unref(child);
	return err;
}

weft_err weft_data_node_builder_init(struct weft_node_builder *b, size_t expected)
{
	*b = (struct weft_node_builder){.cap = expected < 8 ? 8 : expected + 1};
	if (b->cap > SIZE_MAX / 2 / sizeof *b->blocks)
		return WEFT_ERR_LIMIT;
	b->blocks = malloc(b->cap * sizeof *b->blocks);
	return b->blocks ? WEFT_OK : WEFT_ERR_NOMEM;
}

void weft_data_node_builder_drop(struct weft_node_builder *b)
{
	for (size_t i = 0; b->nodes && i < b->n; i++)
		weft_data_node_unref(&b->nodes[i]);
	free(b->nodes);
	free(b->blocks);
	*b = (struct weft_node_builder){0};
}

/* Makes room for one more entry and the end mark. */
static weft_err builder_grow(struct weft_node_builder *b)
{
	if (b->n + 2 <= b->cap)
		return WEFT_OK;
	size_t cap = 2 * b->cap;
	size_t each = b->nodes ? sizeof *b->nodes : sizeof *b->blocks;
	if (cap > PTRDIFF_MAX / each)
		return WEFT_ERR_LIMIT;
	void *mem = realloc(b->nodes ? (void *)b->nodes : (void *)b->blocks, cap * each);
	if (!mem)
		return WEFT_ERR_NOMEM;
	if (b->nodes)
		b->nodes = mem;
	else
		b->blocks = mem;
	b->cap = cap;
	return WEFT_OK;
}

static weft_err builder_add_run(struct weft_node_builder *b, ptrdiff_t at, size_t len)
{
	if (b->n) {
		/* Does it continue the run before it? */
		if (!b->nodes) {
			struct weft_block *last = &b->blocks[b->n - 1];
			if (last->at + (ptrdiff_t)(b->size - last->off) == at)
				goto merged;
		} else {
			struct weft_node *last = &b->nodes[b->n - 1];
			if (last->kind == WEFT_NODE_RUN &&
			    last->disp + (ptrdiff_t)last->size == at) {
				last->size += len;
				goto merged;
			}
		}
	}
	weft_err err = builder_grow(b);
	if (err)
		return err;
	if (!b->nodes) {
		b->blocks[b->n++] = (struct weft_block){.at = at, .off = b->size};
	} else {
		b->nodes[b->n] = weft_data_node_run(at, len);
		b->nodes[b->n++].off = b->size;
	}
merged:
	b->size += len;
	return WEFT_OK;
}

/* From a list of runs to a list of nodes. */
static weft_err builder_widen(struct weft_node_builder *b)
{
	struct weft_node *nodes = calloc(b->cap, sizeof *nodes);
	if (!nodes)
		return WEFT_ERR_NOMEM;
	for (size_t i = 0; i < b->n; i++) {
		size_t end = i + 1 < b->n ? b->blocks[i + 1].off : b->size;
		nodes[i] = weft_data_node_run(b->blocks[i].at, end - b->blocks[i].off);
		nodes[i].off = b->blocks[i].off;
	}
	free(b->blocks);
	b->blocks = NULL;
	b->nodes = nodes;
	return WEFT_OK;
}

weft_err weft_data_node_builder_add(struct weft_node_builder *b, ptrdiff_t disp,
				    const struct weft_node *node)
{
	size_t total;
	ptrdiff_t at;
	if (!node->size)
		return WEFT_OK;
	if (__builtin_add_overflow(b->size, node->size, &total) || total > PTRDIFF_MAX ||
	    __builtin_add_overflow(disp, node->disp, &at))
		return WEFT_ERR_LIMIT;
	if (node->kind == WEFT_NODE_RUN)
		return builder_add_run(b, at, node->size);
	if (node->kind == WEFT_NODE_BLOCKS && node->n <= FLATTEN_MAX) {
		for (size_t i = 0; i < node->n; i++) {
			const struct weft_block *k = &node->blocks[i];
			weft_err err = builder_add_run(b, at + k->at, k[1].off - k->off);
			if (err)
				return err;
		}
		return WEFT_OK;
	}
	if (!b->nodes) {
		weft_err err = builder_widen(b);
		if (err)
			return err;
	}
	weft_err err = builder_grow(b);
	if (err)
		return err;
	weft_data_node_ref(node);
	b->nodes[b->n] = *node;
	b->nodes[b->n].disp = at;
	b->nodes[b->n++].off = b->size;
	b->size = total;
	return WEFT_OK;
}

/* Are all blocks equally long and equally far apart? */
static bool blocks_regular(const struct weft_node_builder *b)
{
	size_t len = b->blocks[1].off - b->blocks[0].off;
	ptrdiff_t stride = b->blocks[1].at - b->blocks[0].at;
	for (size_t i = 1; i < b->n; i++) {
		size_t end = i + 1 < b->n ? b->blocks[i + 1].off : b->size;
		if (end - b->blocks[i].off != len ||
		    b->blocks[i].at - b->blocks[i - 1].at != stride)
			return false;
	}
	return true;
}

static weft_err end_blocks(struct weft_node_builder *b, struct weft_node *out_p)
{
	if (b->n <= 1) {
		*out_p = weft_data_node_run(b->n ? b->blocks[0].at : 0, b->size);
		return WEFT_OK;
	}
	if (blocks_regular(b))
		return loop_of(b->n, b->blocks[1].at - b->blocks[0].at, b->blocks[0].at,
			       weft_data_node_run(0, b->blocks[1].off), out_p);
	size_t bytes = (b->n + 1) * sizeof *b->blocks;
	struct weft_node_box *box = box_alloc(0, bytes);
	if (!box)
		return WEFT_ERR_NOMEM;
	b->blocks[b->n] = (struct weft_block){.off = b->size};
	memcpy(box->mem, b->blocks, bytes);
	*out_p = (struct weft_node){.kind = WEFT_NODE_BLOCKS,
				    .size = b->size,
				    .n = b->n,
				    .blocks = (const struct weft_block *)box->mem,
				    .box = box};
	return WEFT_OK;
}

/* Are all nodes the same, equally far apart? */
static bool nodes_regular(const struct weft_node_builder *b)
{
	const struct weft_node *f = &b->nodes[0];
	ptrdiff_t stride = b->nodes[1].disp - f->disp;
	for (size_t i = 1; i < b->n; i++) {
		const struct weft_node *k = &b->nodes[i];
		if (k->kind != f->kind || k->size != f->size || k->n != f->n ||
		    k->stride != f->stride || k->child != f->child ||
		    k->disp - b->nodes[i - 1].disp != stride)
			return false;
	}
	return true;
}

static weft_err end_nodes(struct weft_node_builder *b, struct weft_node *out_p)
{
	if (b->n == 1) {
		*out_p = b->nodes[0];
		out_p->off = 0;
		weft_data_node_ref(out_p);
		return WEFT_OK;
	}
	if (nodes_regular(b)) {
		struct weft_node c = b->nodes[0];
		c.disp = 0;
		weft_err err =
			weft_data_node_loop(b->n, b->nodes[1].disp - b->nodes[0].disp, &c, out_p);
		if (!err)
			out_p->disp += b->nodes[0].disp;
		return err;
	}
	struct weft_node_box *box = box_alloc(b->n, b->n * sizeof *b->nodes);
	if (!box)
		return WEFT_ERR_NOMEM;
	memcpy(box->mem, b->nodes, b->n * sizeof *b->nodes);
	/* The box takes over the builder's references. */
	*out_p = (struct weft_node){.kind = WEFT_NODE_LIST,
				    .size = b->size,
				    .n = b->n,
				    .child = (const struct weft_node *)box->mem,
				    .box = box};
	b->n = 0;
	return WEFT_OK;
}

weft_err weft_data_node_builder_end(struct weft_node_builder *b, struct weft_node *out_p)
{
	weft_err err = b->nodes ? end_nodes(b, out_p) : end_blocks(b, out_p);
	weft_data_node_builder_drop(b);
	return err;
}
