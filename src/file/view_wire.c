/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * view_wire.c - the tree of a layout, root first, in numbers of 64 bits.
 *
 *	view     disp  num | den << 32  typed (0, 1)  [ lb ub true_lb true_ub node ]
 *	node     kind  disp  size  n  stride, then what it holds: BLOCKS n + 1 pairs (at, off); LOOP one node;
 *	         LIST n nodes
 */
#include "file/view_wire.h"

#include <string.h>

#include "base/assert.h"

#define DEPTH_MAX 64 /* of a tree from outside */

/* ---- out ---------------------------------------------------------------------------------- */

struct writer {
	char *out; /* NULL: counts alone */
	size_t bytes;
};

static void wire_put(struct writer *w, uint64_t v)
{
	if (w->out)
		memcpy(w->out + w->bytes, &v, sizeof v);
	w->bytes += sizeof v;
}

static void put_node(struct writer *w, const struct weft_node *n)
{
	wire_put(w, n->kind);
	wire_put(w, (uint64_t)n->disp);
	wire_put(w, n->size);
	wire_put(w, n->kind == WEFT_NODE_RUN ? 0 : n->n);
	wire_put(w, n->kind == WEFT_NODE_LOOP ? (uint64_t)n->stride : 0);
	if (n->kind == WEFT_NODE_BLOCKS) {
		for (size_t i = 0; i <= n->n; i++) {
			wire_put(w, (uint64_t)n->blocks[i].at);
			wire_put(w, n->blocks[i].off);
		}
	} else if (n->kind == WEFT_NODE_LOOP) {
		put_node(w, n->child);
	} else if (n->kind == WEFT_NODE_LIST) {
		for (size_t i = 0; i < n->n; i++)
			put_node(w, &n->child[i]);
	}
}

size_t weft_file_view_encode(const struct weft_file_view *v, char *out)
{
	struct writer w = {.out = out};
	wire_put(&w, v->disp);
	wire_put(&w, v->num | (uint64_t)v->den << 32);
	wire_put(&w, v->type != NULL);
	if (v->type) {
		wire_put(&w, (uint64_t)v->type->lb);
		wire_put(&w, (uint64_t)v->type->ub);
		wire_put(&w, (uint64_t)v->type->true_lb);
		wire_put(&w, (uint64_t)v->type->true_ub);
		put_node(&w, &v->type->node);
	}
	return w.bytes;
}

/* ---- in ----------------------------------------------------------------------------------- */

struct reader {
	const char *in;
	size_t left;
	bool bad; /* ended early */
};

static uint64_t wire_get(struct reader *r)
{
	uint64_t v = 0;
	if (r->left < sizeof v) {
		r->bad = true;
		return 0;
	}
	memcpy(&v, r->in, sizeof v);
	r->in += sizeof v;
	r->left -= sizeof v;
	return v;
}

static weft_err get_node(struct reader *r, int depth, struct weft_node *node_p);

/* n nodes, or n runs given as blocks, one after the other. */
static weft_err get_list(struct reader *r, int depth, uint64_t n, bool blocks,
			 struct weft_node *node_p)
{
	struct weft_node_builder b;
	uint64_t at = 0, off = 0;
	/* Each takes 16 bytes at least. */
	if (n > r->left / 16)
		return WEFT_ERR_PROTO;
	weft_err err = weft_data_node_builder_init(&b, n);
	if (err)
		return err;
	if (blocks) {
		at = wire_get(r);
		off = wire_get(r);
	}
	for (uint64_t i = 0; !err && i < n; i++) {
		struct weft_node one;
		if (blocks) {
			uint64_t next = wire_get(r), end = wire_get(r);
			if (end <= off)
				err = WEFT_ERR_PROTO;
			one = weft_data_node_run((ptrdiff_t)at, (size_t)(end - off));
			at = next;
			off = end;
		} else {
			err = get_node(r, depth + 1, &one);
		}
		if (err)
			break;
		err = weft_data_node_builder_add(&b, 0, &one);
		weft_data_node_unref(&one);
	}
	if (!err)
		return weft_data_node_builder_end(&b, node_p);
	weft_data_node_builder_drop(&b);
	return err;
}

static weft_err get_node(struct reader *r, int depth, struct weft_node *node_p)
{
	uint64_t kind = wire_get(r), disp = wire_get(r), size = wire_get(r), n = wire_get(r),
		 stride = wire_get(r);
	struct weft_node node;
	weft_err err = WEFT_OK;
	if (r->bad || depth > DEPTH_MAX)
		return WEFT_ERR_PROTO;
	if (kind == WEFT_NODE_RUN) {
		*node_p = weft_data_node_run((ptrdiff_t)disp, size);
		return WEFT_OK;
	}
	if (kind == WEFT_NODE_LOOP) {
		struct weft_node child;
		err = get_node(r, depth + 1, &child);
		if (err)
			return err;
		err = weft_data_node_loop(n, (ptrdiff_t)stride, &child, &node);
		weft_data_node_unref(&child);
	} else {
		err = get_list(r, depth, n, kind == WEFT_NODE_BLOCKS, &node);
	}
	if (err)
		return err;
	/* The makers normalise: what they made holds as much, and begins where disp says. */
	node.disp += (ptrdiff_t)disp;
	if (r->bad || node.size != size) {
		weft_data_node_unref(&node);
		return WEFT_ERR_PROTO;
	}
	*node_p = node;
	return WEFT_OK;
}

weft_err weft_file_view_decode(const char *in, size_t bytes, struct weft_file_view_copy *v)
{
	struct reader r = {.in = in, .left = bytes};
	*v = (struct weft_file_view_copy){.view.disp = wire_get(&r)};
	uint64_t factor = wire_get(&r), typed = wire_get(&r);
	v->view.num = (uint32_t)factor;
	v->view.den = (uint32_t)(factor >> 32);
	if (r.bad || (v->view.num && !v->view.den))
		return WEFT_ERR_PROTO;
	if (!typed)
		return WEFT_OK;
	v->type.lb = (ptrdiff_t)wire_get(&r);
	v->type.ub = (ptrdiff_t)wire_get(&r);
	v->type.true_lb = (ptrdiff_t)wire_get(&r);
	v->type.true_ub = (ptrdiff_t)wire_get(&r);
	v->type.is_static = true;
	weft_err err = get_node(&r, 0, &v->type.node);
	if (err)
		return err;
	v->type.size = v->type.node.size;
	v->view.type = &v->type;
	if (v->type.size && !r.left)
		return WEFT_OK;
	weft_data_node_unref(&v->type.node);
	return WEFT_ERR_PROTO;
}

void weft_file_view_copy_drop(struct weft_file_view_copy *v)
{
	if (v->view.type)
		weft_data_node_unref(&v->type.node);
	*v = (struct weft_file_view_copy){.view.disp = 0};
}
