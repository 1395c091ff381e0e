/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pack.c - walks a layout from any data byte on: packs, unpacks, or lists the pieces.
 *
 * One walker, compiled three times: `op` is a constant in each.  Loops over runs and over short
 * lists of runs, which is where the bytes are, run without recursion.
 */
#include <string.h>

#include "data/type.h"

enum walk_op { WALK_PACK, WALK_UNPACK, WALK_IOV };

struct walk {
	char *flat; /* pack, unpack: the contiguous side */
	struct iovec *iov;
	unsigned n, max;
};

#define WALK_INLINE static inline __attribute__((always_inline))

/* One run.  False: no room in the list of pieces. */
WALK_INLINE bool walk_run(struct walk *w, char *at, size_t len, enum walk_op op)
{
	if (op == WALK_PACK) {
		memcpy(w->flat, at, len);
		w->flat += len;
		return true;
	}
	if (op == WALK_UNPACK) {
		memcpy(at, w->flat, len);
		w->flat += len;
		return true;
	}
	if (w->n && (char *)w->iov[w->n - 1].iov_base + w->iov[w->n - 1].iov_len == at) {
		w->iov[w->n - 1].iov_len += len;
		return true;
	}
	if (w->n == w->max)
		return false;
	w->iov[w->n++] = (struct iovec){.iov_base = at, .iov_len = len};
	return true;
}

/* n runs of len bytes, stride apart, with len a constant after inlining. */
WALK_INLINE void strided(char *flat, char *at, size_t n, ptrdiff_t stride, size_t len,
			 enum walk_op op)
{
	for (size_t i = 0; i < n; i++) {
		if (op == WALK_PACK)
			memcpy(flat, at, len);
		else
			memcpy(at, flat, len);
		flat += len;
		at += stride;
	}
}

/* n whole runs; returns how many it did. */
WALK_INLINE size_t walk_runs(struct walk *w, char *at, size_t n, ptrdiff_t stride, size_t len,
			     enum walk_op op)
{
	if (op == WALK_IOV) {
		for (size_t i = 0; i < n; i++, at += stride)
			if (!walk_run(w, at, len, op))
				return i;
		return n;
	}
	switch (len) {
	case 1:
		strided(w->flat, at, n, stride, 1, op);
		break;
	case 2:
		strided(w->flat, at, n, stride, 2, op);
		break;
	case 4:
		strided(w->flat, at, n, stride, 4, op);
		break;
	case 8:
		strided(w->flat, at, n, stride, 8, op);
		break;
	case 12:
		strided(w->flat, at, n, stride, 12, op);
		break;
	case 16:
		strided(w->flat, at, n, stride, 16, op);
		break;
	case 24:
		strided(w->flat, at, n, stride, 24, op);
		break;
	case 32:
		strided(w->flat, at, n, stride, 32, op);
		break;
	default:
		strided(w->flat, at, n, stride, len, op);
		break;
	}
	w->flat += n * len;
	return n;
}

/* The entry that holds data byte `skip`: the last one that begins at or before it. */
static size_t find_block(const struct weft_node *node, size_t skip)
{
	size_t lo = 0, hi = node->n;
	while (hi - lo > 1) {
		size_t mid = lo + (hi - lo) / 2;
		if (node->blocks[mid].off <= skip)
			lo = mid;
		else
			hi = mid;
	}
	return lo;
}

static size_t find_child(const struct weft_node *node, size_t skip)
{
	size_t lo = 0, hi = node->n;
	while (hi - lo > 1) {
		size_t mid = lo + (hi - lo) / 2;
		if (node->child[mid].off <= skip)
			lo = mid;
		else
			hi = mid;
	}
	return lo;
}

static inline size_t min_size(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Bytes [skip, skip+len) of a BLOCKS node at base; returns how many it did. */
WALK_INLINE size_t walk_blocks(struct walk *w, const struct weft_node *node, char *base,
			       size_t skip, size_t len, enum walk_op op)
{
	size_t i = skip ? find_block(node, skip) : 0, left = len;
	const struct weft_block *b = &node->blocks[i];
	char *origin = base + node->disp;
	skip -= b->off;
	/* Ends: left shrinks by at least one byte each time. */
	while (left) {
		size_t piece = min_size(b[1].off - b->off - skip, left);
		if (!walk_run(w, origin + b->at + skip, piece, op))
			break;
		left -= piece;
		skip = 0;
		b++;
	}
	return len - left;
}

typedef size_t walk_fn(struct walk *w, const struct weft_node *node, char *base, size_t skip,
		       size_t len);

/* Bytes [skip, skip+len) of a LOOP. */
WALK_INLINE size_t walk_loop(struct walk *w, const struct weft_node *node, char *base, size_t skip,
			     size_t len, enum walk_op op, walk_fn *self)
{
	const struct weft_node *c = node->child;
	size_t i = skip / c->size, left = len, done;
	char *at = base + node->disp + (ptrdiff_t)i * node->stride;
	skip -= i * c->size;
	if (c->kind == WEFT_NODE_RUN) {
		at += c->disp;
		if (skip) {
			size_t piece = min_size(c->size - skip, left);
			if (!walk_run(w, at + skip, piece, op))
				return 0;
			left -= piece;
			at += node->stride;
		}
		size_t whole = left / c->size;
		done = walk_runs(w, at, whole, node->stride, c->size, op);
		left -= done * c->size;
		if (done == whole && left &&
		    walk_run(w, at + (ptrdiff_t)whole * node->stride, left, op))
			left = 0;
		return len - left;
	}
	for (; left; at += node->stride, skip = 0) {
		size_t piece = min_size(c->size - skip, left);
		if (c->kind == WEFT_NODE_BLOCKS)
			done = walk_blocks(w, c, at, skip, piece, op);
		else
			done = self(w, c, at, skip, piece);
		left -= done;
		if (done < piece)
			break;
	}
	return len - left;
}

WALK_INLINE size_t walk_list(struct walk *w, const struct weft_node *node, char *base, size_t skip,
			     size_t len, walk_fn *self)
{
	size_t i = skip ? find_child(node, skip) : 0, left = len;
	char *origin = base + node->disp;
	skip -= node->child[i].off;
	for (; left; i++, skip = 0) {
		size_t piece = min_size(node->child[i].size - skip, left);
		size_t done = self(w, &node->child[i], origin, skip, piece);
		left -= done;
		if (done < piece)
			break;
	}
	return len - left;
}

WALK_INLINE size_t walk_any(struct walk *w, const struct weft_node *node, char *base, size_t skip,
			    size_t len, enum walk_op op, walk_fn *self)
{
	switch (node->kind) {
	case WEFT_NODE_RUN:
		return walk_run(w, base + node->disp + skip, len, op) ? len : 0;
	case WEFT_NODE_LOOP:
		return walk_loop(w, node, base, skip, len, op, self);
	case WEFT_NODE_BLOCKS:
		return walk_blocks(w, node, base, skip, len, op);
	default:
		return walk_list(w, node, base, skip, len, self);
	}
}

static size_t walk_pack(struct walk *w, const struct weft_node *node, char *base, size_t skip,
			size_t len)
{
	return walk_any(w, node, base, skip, len, WALK_PACK, walk_pack);
}

static size_t walk_unpack(struct walk *w, const struct weft_node *node, char *base, size_t skip,
			  size_t len)
{
	return walk_any(w, node, base, skip, len, WALK_UNPACK, walk_unpack);
}

static size_t walk_iov(struct walk *w, const struct weft_node *node, char *base, size_t skip,
		       size_t len)
{
	return walk_any(w, node, base, skip, len, WALK_IOV, walk_iov);
}

/* The whole buffer as one node: its elements are a loop of their own. */
static struct weft_node top_node(const struct weft_buf *buf)
{
	const struct weft_type *t = buf->type;
	if (buf->count == 1)
		return t->node;
	return (struct weft_node){.kind = WEFT_NODE_LOOP,
				  .size = buf->bytes,
				  .n = buf->count,
				  .stride = weft_data_type_extent(t),
				  .child = &t->node};
}

void weft_data_pack(const struct weft_buf *buf, size_t offset, void *out, size_t len)
{
	if (!len)
		return;
	if (weft_likely(!buf->type)) {
		memcpy(out, (const char *)buf->base + offset, len);
		return;
	}
	struct weft_node top = top_node(buf);
	struct walk w = {.flat = out};
	walk_pack(&w, &top, buf->base, offset, len);
}

void weft_data_unpack(const struct weft_buf *buf, size_t offset, const void *in, size_t len)
{
	if (!len)
		return;
	if (weft_likely(!buf->type)) {
		memcpy((char *)buf->base + offset, in, len);
		return;
	}
	struct weft_node top = top_node(buf);
	/* The walker only reads here; it has one pointer for both directions. */
	struct walk w = {.flat = (char *)(uintptr_t)in};
	walk_unpack(&w, &top, buf->base, offset, len);
}

size_t weft_data_iov(const struct weft_buf *buf, size_t offset, struct iovec *iov, unsigned *n_p)
{
	if (offset >= buf->bytes || !*n_p) {
		*n_p = 0;
		return 0;
	}
	if (weft_likely(!buf->type)) {
		iov[0].iov_base = (char *)buf->base + offset;
		iov[0].iov_len = buf->bytes - offset;
		*n_p = 1;
		return buf->bytes - offset;
	}
	struct weft_node top = top_node(buf);
	struct walk w = {.iov = iov, .max = *n_p};
	size_t done = walk_iov(&w, &top, buf->base, offset, buf->bytes - offset);
	*n_p = w.n;
	return done;
}

/* Copies pass through this many bytes on the stack when both sides have holes. */
#define COPY_PIECES 16

void weft_data_copy(const struct weft_buf *to, const struct weft_buf *from)
{
	size_t len = min_size(to->bytes, from->bytes);
	if (!len)
		return;
	if (!from->type) {
		weft_data_unpack(to, 0, from->base, len);
		return;
	}
	if (!to->type) {
		weft_data_pack(from, 0, to->base, len);
		return;
	}
	/* Both have holes: list some pieces of the source, unpack each into the destination. */
	struct iovec iov[COPY_PIECES];
	for (size_t done = 0; done < len;) {
		unsigned n = COPY_PIECES;
		weft_data_iov(from, done, iov, &n);
		for (unsigned i = 0; i < n && done < len; i++) {
			size_t piece = min_size(iov[i].iov_len, len - done);
			weft_data_unpack(to, done, iov[i].iov_base, piece);
			done += piece;
		}
	}
}
