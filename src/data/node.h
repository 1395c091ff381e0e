/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * node.h - the normalised form of a layout: a small tree over which packing runs.
 *
 *   RUN      size bytes at disp
 *   LOOP     n times child, at disp, disp + stride, ...
 *   BLOCKS   n runs; block i holds data bytes [off[i], off[i+1]) at disp + at[i]
 *   LIST     n nodes; node i holds data bytes from node[i].off on, at disp + node[i].disp
 *
 * The makers merge what touches: neighbouring runs become one, equal runs at equal distances a
 * LOOP, loops over loops without a gap one loop.  So contiguous data is one RUN however it was
 * made.
 *
 * Callers   makers: any thread.  A node is immutable once made; arrays behind it are shared by
 *           reference count.
 */
#ifndef WEFT_DATA_NODE_H
#define WEFT_DATA_NODE_H

#include "base/base.h"

enum weft_node_kind { WEFT_NODE_RUN, WEFT_NODE_LOOP, WEFT_NODE_BLOCKS, WEFT_NODE_LIST };

struct weft_block {
	ptrdiff_t at;
	size_t off;
};

struct weft_node {
	uint8_t kind;
	ptrdiff_t disp;
	size_t size;      /* data bytes below this node */
	size_t off;       /* data bytes before it in the list it stands in */
	size_t n;         /* LOOP, BLOCKS, LIST */
	ptrdiff_t stride; /* LOOP */
	union {
		const struct weft_node *child;   /* LOOP: one, LIST: n */
		const struct weft_block *blocks; /* BLOCKS: n + 1 */
	};
	struct weft_node_box *box; /* the owner of child or blocks; NULL: static or on a stack */
};

/* Memory shared by nodes. */
struct weft_node_box {
	_Atomic unsigned x_refs;
	size_t children; /* how many weft_node follow; 0: blocks follow */
	alignas(16) char mem[];
};

static inline struct weft_node weft_data_node_run(ptrdiff_t disp, size_t size)
{
	return (struct weft_node){.kind = WEFT_NODE_RUN, .disp = disp, .size = size};
}

/* One more owner of what n refers to / one less. */
void weft_data_node_ref(const struct weft_node *n);
void weft_data_node_unref(const struct weft_node *n);

/* n times child at distances of stride; takes a reference of its own. */
weft_err weft_data_node_loop(size_t n, ptrdiff_t stride, const struct weft_node *child,
			     struct weft_node *out_p) weft_must_use;

/* Collects nodes in the order of the data. */
struct weft_node_builder {
	struct weft_block *blocks; /* while all are runs; at[], off[] as in BLOCKS */
	struct weft_node *nodes;   /* once one is not */
	size_t n, cap;
	size_t size;
};

weft_err weft_data_node_builder_init(struct weft_node_builder *b, size_t expected) weft_must_use;
/* Adds node shifted by disp; takes a reference of its own. */
weft_err weft_data_node_builder_add(struct weft_node_builder *b, ptrdiff_t disp,
				    const struct weft_node *node) weft_must_use;
/* Makes the node; ends the builder in every case. */
weft_err weft_data_node_builder_end(struct weft_node_builder *b,
				    struct weft_node *out_p) weft_must_use;
/* Ends it without a result. */
void weft_data_node_builder_drop(struct weft_node_builder *b);

#endif
