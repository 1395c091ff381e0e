/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * file_model.h - random views of a file and a model of it in memory, for file_random.c.
 *
 * A view is built twice from the same numbers: as datatypes, and as a list of the pieces of one filetype, which
 * is worked out here without MPI.  Ranks that draw a tiling share its places, so their views are disjoint.
 */
#ifndef WEFT_FILE_MODEL_H
#define WEFT_FILE_MODEL_H

#include "mpitest.h"

/* ---- numbers that all ranks draw alike --------------------------------------------------- */

struct rng {
	unsigned long long state;
	int external; /* draw other data representations too */
};

static inline void rng_seed(struct rng *g, unsigned long long seed)
{
	g->state = seed * 2 + 1;
}

static inline unsigned long long rng_next(struct rng *g)
{
	unsigned long long z = g->state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static inline long rng_below(struct rng *g, long n)
{
	return (long)(rng_next(g) % (unsigned long long)(n > 0 ? n : 1));
}

/* ---- views ------------------------------------------------------------------------------- */

enum tile_kind {
	TILE_FLAT,
	TILE_VECTOR,
	TILE_SLOTS,
	TILE_GRID,
	TILE_CYCLIC,
	TILE_NESTED,
	TILE_KINDS
};

#define SLOTS_MAX 48
#define DIMS_MAX 4

/* How the ranks share a stretch of the file. */
struct tiling {
	enum tile_kind kind;
	int es, rep, ranks; /* bytes of an etype; 2: external32 */
	long disp;
	int block, count;     /* vector, cyclic */
	int slots;            /* etypes of a tile */
	int owner[SLOTS_MAX]; /* of each, -1: none */
	int variant, repeat;  /* which constructor; nested: how often */
	int dims, fortran;    /* grid */
	int sizes[DIMS_MAX], split[DIMS_MAX];
};

struct piece {
	long at, bytes;
};

struct view {
	enum tile_kind kind;
	int es, rep;
	long disp, extent, bytes; /* bytes: of data in one filetype */
	long shift;               /* of disp: so much stands in the filetype instead */
	int pieces;
	struct piece *piece;
	struct tiling t;
	int rank;
	int subsizes[DIMS_MAX], starts[DIMS_MAX];
};

static inline void grid_draw(struct rng *g, struct tiling *t)
{
	int left = t->ranks;

	t->dims = 1 + (int)rng_below(g, DIMS_MAX);
	t->fortran = (int)rng_below(g, 2);
	for (int d = 0; d < t->dims; d++)
		t->split[d] = 1;
	for (int f = 2; left > 1; f++) /* ends: left is divided by all its factors */
		while (left % f == 0) {
			t->split[rng_below(g, t->dims)] *= f;
			left /= f;
		}
	for (int d = 0; d < t->dims; d++)
		t->sizes[d] = t->split[d] + (int)rng_below(g, 6);
}

static inline void tiling_draw(struct rng *g, struct tiling *t, int ranks)
{
	static const int sizes[] = {1, 2, 4, 8};

	memset(t, 0, sizeof *t);
	t->kind = (enum tile_kind)rng_below(g, TILE_KINDS);
	t->es = sizes[rng_below(g, 4)];
	t->rep = g->external ? (int)rng_below(g, 3) : 0;
	t->ranks = ranks;
	t->disp = rng_below(g, 3000);
	t->block = 1 + (int)rng_below(g, rng_below(g, 2) ? 8 : 700);
	if (t->block == MPI_DISTRIBUTE_DFLT_DARG) /* a small number in the standard's ABI */
		t->block++;
	t->count = 1 + (int)rng_below(g, 9);
	t->variant = (int)rng_below(g, 4);
	t->repeat = 1 + (int)rng_below(g, 3);
	t->slots = ranks + (int)rng_below(g, SLOTS_MAX - ranks + 1);
	for (int i = 0; i < t->slots; i++)
		t->owner[i] = i < ranks ? i : (int)rng_below(g, ranks + 1) - 1;
	for (int i = 0; i < t->slots; i++) {
		int k = (int)rng_below(g, t->slots), was = t->owner[i];
		t->owner[i] = t->owner[k];
		t->owner[k] = was;
	}
	grid_draw(g, t);
}

/* Appends, joined to the piece before where they touch. */
static inline void view_add(struct view *v, long at, long bytes)
{
	struct piece *last = v->pieces ? &v->piece[v->pieces - 1] : NULL;

	v->bytes += bytes;
	if (last && last->at + last->bytes == at) {
		last->bytes += bytes;
		return;
	}
	v->piece = realloc(v->piece, sizeof *v->piece * (size_t)(v->pieces + 1));
	CHECK(v->piece);
	v->piece[v->pieces++] = (struct piece){at, bytes};
}

static inline void view_grid(struct view *v)
{
	const struct tiling *t = &v->t;
	int coord[DIMS_MAX], at[DIMS_MAX] = {0}, r = v->rank;
	long total = 1;

	for (int d = 0; d < t->dims; d++) {
		coord[d] = r % t->split[d];
		r /= t->split[d];
		v->starts[d] = coord[d] * t->sizes[d] / t->split[d];
		v->subsizes[d] = (coord[d] + 1) * t->sizes[d] / t->split[d] - v->starts[d];
		total *= t->sizes[d];
	}
	v->extent = total * v->es;
	for (;;) { /* ends: after the block's last element */
		long place = 0;
		int d;
		for (d = 0; d < t->dims; d++) {
			int k = t->fortran ? t->dims - 1 - d : d;
			place = place * t->sizes[k] + v->starts[k] + at[k];
		}
		view_add(v, place * v->es, v->es);
		for (d = t->dims - 1; d >= 0; d--) { /* the next, the fastest dimension first */
			int k = t->fortran ? t->dims - 1 - d : d;
			if (++at[k] < v->subsizes[k])
				break;
			at[k] = 0;
		}
		if (d < 0)
			return;
	}
}

/* Rank r's view in the tiling; apart: one of its own that may lie across the others'. */
static inline void view_draw(struct rng *g, struct view *v, const struct tiling *t, int r,
			     int apart)
{
	struct tiling own;

	if (apart) {
		tiling_draw(g, &own, 1);
		own.es = t->es; /* these are the same on all ranks */
		own.rep = t->rep;
		t = &own;
		r = 0;
	}
	memset(v, 0, sizeof *v);
	v->t = *t;
	v->kind = t->kind;
	v->es = t->es;
	v->rep = t->rep;
	v->disp = t->disp;
	if (!v->rep && rng_below(g, 2))
		v->shift = rng_below(g, v->disp / v->es + 1) * v->es;
	v->rank = r;
	if (t->kind == TILE_FLAT) {
		view_add(v, 0, v->es);
		v->extent = v->es;
	} else if (t->kind == TILE_VECTOR) {
		v->disp += (long)r * t->block * v->es;
		for (int i = 0; i < t->count; i++)
			view_add(v, (long)i * t->block * t->ranks * v->es, (long)t->block * v->es);
		v->extent = (long)t->count * t->block * t->ranks * v->es;
	} else if (t->kind == TILE_GRID) {
		view_grid(v);
	} else if (t->kind == TILE_CYCLIC) {
		long n = (long)t->block * t->ranks * t->count;
		for (long i = (long)r * t->block; i < n; i += (long)t->block * t->ranks)
			view_add(v, i * v->es, (long)t->block * v->es);
		v->extent = n * v->es;
	} else {
		int repeat = t->kind == TILE_NESTED ? t->repeat : 1;
		for (int k = 0; k < repeat; k++)
			for (int i = 0; i < t->slots; i++)
				if (t->owner[i] == r)
					view_add(v, ((long)k * t->slots + i) * v->es, v->es);
		v->extent = (long)repeat * t->slots * v->es;
	}
}

static inline void view_free(struct view *v)
{
	free(v->piece);
	v->piece = NULL;
}

/* How many etypes of the view lie below `limit`, at least. */
static inline long view_fit(const struct view *v, long limit)
{
	long left = limit - v->disp;

	return left > 0 ? left / v->extent * (v->bytes / v->es) : 0;
}

static inline void type_resize(MPI_Datatype *type_p, long extent)
{
	MPI_Datatype was = *type_p;

	OK(MPI_Type_create_resized(was, 0, extent, type_p));
	OK(MPI_Type_free(&was));
}

static inline void view_type_slots(const struct view *v, MPI_Datatype etype, MPI_Datatype *type_p)
{
	const struct tiling *t = &v->t;
	int n = 0, displs[SLOTS_MAX], lengths[SLOTS_MAX];
	MPI_Aint bytes[SLOTS_MAX];
	MPI_Datatype types[SLOTS_MAX];

	for (int i = 0; i < t->slots; i++) {
		if (t->owner[i] != v->rank)
			continue;
		if (t->variant != 3 && n && displs[n - 1] + lengths[n - 1] == i) {
			lengths[n - 1]++;
			continue;
		}
		displs[n] = i;
		bytes[n] = (MPI_Aint)i * v->es;
		types[n] = etype;
		lengths[n++] = 1;
	}
	if (t->variant == 0)
		OK(MPI_Type_indexed(n, lengths, displs, etype, type_p));
	else if (t->variant == 1)
		OK(MPI_Type_create_hindexed(n, lengths, bytes, etype, type_p));
	else if (t->variant == 2)
		OK(MPI_Type_create_struct(n, lengths, bytes, types, type_p));
	else
		OK(MPI_Type_create_indexed_block(n, 1, displs, etype, type_p));
	type_resize(type_p, (long)t->slots * v->es);
}

/* The view's filetype, committed; etype itself where it is flat. */
static inline void view_type(const struct view *v, MPI_Datatype etype, MPI_Datatype *type_p)
{
	const struct tiling *t = &v->t;
	int distrib = MPI_DISTRIBUTE_CYCLIC, n = t->block * t->ranks * t->count;

	if (v->kind == TILE_FLAT) {
		*type_p = etype;
		return;
	}
	if (v->kind == TILE_VECTOR) {
		OK(MPI_Type_vector(t->count, t->block, t->block * t->ranks, etype, type_p));
		type_resize(type_p, v->extent);
	} else if (v->kind == TILE_GRID) {
		OK(MPI_Type_create_subarray(t->dims, t->sizes, v->subsizes, v->starts,
					    t->fortran ? MPI_ORDER_FORTRAN : MPI_ORDER_C, etype,
					    type_p));
	} else if (v->kind == TILE_CYCLIC) {
		OK(MPI_Type_create_darray(t->ranks, v->rank, 1, &n, &distrib, &t->block, &t->ranks,
					  MPI_ORDER_C, etype, type_p));
	} else {
		view_type_slots(v, etype, type_p);
	}
	if (v->kind == TILE_NESTED) {
		MPI_Datatype was = *type_p;
		OK(MPI_Type_contiguous(t->repeat, was, type_p));
		OK(MPI_Type_free(&was));
	}
	OK(MPI_Type_commit(type_p));
}

/* Moves the filetype by the view's shift: its lower bound is far from zero then. */
static inline void view_shift(const struct view *v, MPI_Datatype *type_p)
{
	MPI_Datatype was = *type_p;
	const MPI_Aint at = v->shift;
	const int one = 1;

	OK(MPI_Type_create_hindexed(1, &one, &at, was, type_p));
	OK(MPI_Type_free(&was));
	OK(MPI_Type_commit(type_p));
}

/* ---- the model --------------------------------------------------------------------------- */

struct model {
	long size, room;
	unsigned char *byte;
};

static inline void model_start(struct model *m, long room)
{
	m->size = 0;
	m->room = room;
	m->byte = calloc(1, (size_t)room);
	CHECK(m->byte);
}

/* Where byte n of the view's data lies. */
static inline long view_place(const struct view *v, long n)
{
	long in = n % v->bytes, at = v->disp + n / v->bytes * v->extent;

	for (int i = 0;; i++) { /* ends: in is less than the sum of the pieces */
		if (in < v->piece[i].bytes)
			return at + v->piece[i].at + in;
		in -= v->piece[i].bytes;
	}
}

/* Of byte n of an access at `offset`: its place, in the order of bytes of the representation. */
static inline long model_place(const struct view *v, long offset, long n)
{
	long in = n % v->es;

	if (v->rep == 2)
		n += v->es - 1 - 2 * in;
	return view_place(v, offset * v->es + n);
}

static inline void model_set(struct model *m, long at, unsigned char value)
{
	CHECK(at < m->room);
	m->byte[at] = value;
	if (at >= m->size)
		m->size = at + 1;
}

static inline void model_put(struct model *m, const struct view *v, long offset, long n,
			     unsigned char value)
{
	model_set(m, model_place(v, offset, n), value);
}

static inline int model_get(const struct model *m, const struct view *v, long offset, long n)
{
	return m->byte[model_place(v, offset, n)];
}

static inline void model_resize(struct model *m, long bytes)
{
	if (bytes < m->size)
		memset(m->byte + bytes, 0, (size_t)(m->size - bytes));
	m->size = bytes;
}

/* How many of `bytes` of an access at offset lie before the end of the file. */
static inline long model_within(const struct model *m, const struct view *v, long offset,
				long bytes)
{
	long n = 0;

	while (n < bytes && view_place(v, offset * v->es + n) < m->size)
		n++;
	return n;
}

#endif
