/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 2 4 */
/*
 * Random views and accesses of a file, by every kind of call, leave what a model in memory says: the bytes, what
 * is read, counts, pointers, sizes.
 *
 *	file_random [SEED [ROUNDS [FOLDER [OPTION...]]]]     options: external, noshared, nonb, nocount, nozero, verbose
 *
 * All ranks draw the same numbers, so each knows what all do in a round, and keeps a model of the whole file.
 * In a round that writes, the ranks' parts are disjoint.
 */
#include "mpitest.h"
#include "file_model.h"

#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#define LIMIT 400000 /* bytes of the file */
#define PIECES 3

enum kind { AT, AT_ALL, AT_SPLIT, IAT, IAT_ALL, OWN, OWN_ALL, OWN_SPLIT, IOWN, IOWN_ALL, KINDS };
static const char *const kind_name[KINDS] = {"at",  "at_all",  "at_all_begin", "iat", "iat_all",
					     "own", "own_all", "all_begin",    "i",   "i_all"};

static struct rng common;
static struct model model;
static MPI_File file;
static char path[PATH_MAX];
static int external, verbose, no_shared, no_nonblocking, no_count, no_zero, round_no;
static unsigned long long seed;

static const MPI_Datatype *basics(int es)
{
	static MPI_Datatype types[4];

	types[0] = MPI_BYTE;
	types[1] = MPI_SHORT;
	types[2] = MPI_INT;
	types[3] = MPI_DOUBLE;
	return &types[es == 1 ? 0 : es == 2 ? 1 : es == 4 ? 2 : 3];
}

/* The byte at place n of what rank r writes in this round: never 0. */
static unsigned char pattern(int r, long n)
{
	unsigned long long x = seed * 31 + (unsigned long long)round_no * 1000003 + (unsigned)r;

	x = (x + (unsigned long long)n * 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u;
	return (unsigned char)((x >> 57) + 1);
}

/* ---- memory: flat, or elements with holes between them ----------------------------------- */

struct memory {
	MPI_Datatype type;
	int count;          /* of type */
	long per, block;    /* bytes of data in one of type; without hole: per */
	long stride, bytes; /* of data */
	char *base;
	size_t room;
};

/* n elements of es bytes. */
static struct memory memory_make(long n, int es, int holes)
{
	struct memory m = {.bytes = n * es};
	int block = 1;

	if (!holes || n == 0) {
		m.type = *basics(es);
		m.count = (int)n;
		m.per = m.block = m.stride = es;
	} else {
		MPI_Datatype vector;

		block = n % 3 == 0 ? 3 : n % 2 == 0 ? 2 : 1;
		m.count = (int)(n / block);
		m.per = m.block = (long)block * es;
		m.stride = m.per + 5L * es;
		OK(MPI_Type_vector(1, block, block, *basics(es), &vector));
		OK(MPI_Type_create_resized(vector, 0, m.stride, &m.type));
		OK(MPI_Type_commit(&m.type));
		OK(MPI_Type_free(&vector));
	}
	m.room = (size_t)(m.count * m.stride + 16);
	m.base = malloc(m.room);
	CHECK(m.base);
	memset(m.base, 0, m.room);
	return m;
}

static char *memory_at(const struct memory *m, long n)
{
	return m->base + n / m->per * m->stride + n % m->per;
}

/* What lies between the elements is as it was. */
static void memory_check_holes(const struct memory *m)
{
	for (long i = 0; m->stride > m->per && i < m->count; i++)
		for (long k = m->per; k < m->stride; k++)
			CHECK_EQ(m->base[i * m->stride + k], 0);
}

static void memory_free(struct memory *m)
{
	int builtin = m->stride == m->per || m->count == 0;

	if (!builtin)
		OK(MPI_Type_free(&m->type));
	free(m->base);
}

/* ---- one rank's access in a round -------------------------------------------------------- */

struct access {
	struct view view;
	long offset, count; /* etypes of the view */
};

/* Each rank draws for all ranks: the numbers stay common. */
static void draw_views(struct access *all, int disjoint)
{
	struct tiling t;

	tiling_draw(&common, &t, size);
	for (int r = 0; r < size; r++) {
		view_draw(&common, &all[r].view, &t, r, !disjoint && rng_below(&common, 2));
		long fit = view_fit(&all[r].view, LIMIT), most = fit > 3000 ? 3000 : fit;
		all[r].offset = rng_below(&common, fit / 2 + 1);
		if (most > fit - all[r].offset)
			most = fit - all[r].offset;
		all[r].count = rng_below(&common, 8) ? rng_below(&common, most + 1) : 0;
		if (t.kind == TILE_FLAT &&
		    disjoint) { /* one view, the ranks one behind the other */
			long share = fit / size;
			all[r].offset = share * r + rng_below(&common, share / 2 + 1);
			most = share * (r + 1) - all[r].offset;
			all[r].count = rng_below(&common, most > 3000 ? 3001 : most + 1);
		}
	}
}

static void set_view(const struct view *v)
{
	MPI_Datatype filetype;
	static const char *const reps[] = {"native", "internal", "external32"};
	const char *rep = reps[v->rep];

	long disp = v->disp;
	view_type(v, *basics(v->es), &filetype);
	if (v->shift &&
	    filetype != *basics(v->es)) { /* the same places, from the type's own displacement */
		view_shift(v, &filetype);
		disp -= v->shift;
	}
	OK(MPI_File_set_view(file, disp, *basics(v->es), filetype, (char *)(size_t)rep,
			     MPI_INFO_NULL));
	if (filetype != *basics(v->es))
		OK(MPI_Type_free(&filetype));
}

/* The individual pointer, by one of three ways. */
static void seek_to(const struct access *a, int how)
{
	MPI_Offset at;

	if (how == 0) {
		OK(MPI_File_seek(file, a->offset, MPI_SEEK_SET));
	} else if (how == 1) {
		OK(MPI_File_seek(file, a->offset / 2, MPI_SEEK_SET));
		OK(MPI_File_seek(file, a->offset - a->offset / 2, MPI_SEEK_CUR));
	} else {
		OK(MPI_File_seek(file, 0, MPI_SEEK_END));
		OK(MPI_File_get_position(file, &at));
		OK(MPI_File_seek(file, a->offset - at, MPI_SEEK_END));
	}
	OK(MPI_File_get_position(file, &at));
	CHECK_EQ(at, a->offset);
}

static void write_once(enum kind k, MPI_Offset at, const void *buf, int n, MPI_Datatype type,
		       MPI_Status *st, MPI_Request *req)
{
	switch (k) {
	case AT:
		OK(MPI_File_write_at(file, at, buf, n, type, st));
		break;
	case AT_ALL:
		OK(MPI_File_write_at_all(file, at, buf, n, type, st));
		break;
	case AT_SPLIT:
		OK(MPI_File_write_at_all_begin(file, at, buf, n, type));
		OK(MPI_File_write_at_all_end(file, buf, st));
		break;
	case IAT:
		OK(MPI_File_iwrite_at(file, at, buf, n, type, req));
		break;
	case IAT_ALL:
		OK(MPI_File_iwrite_at_all(file, at, buf, n, type, req));
		break;
	case OWN:
		OK(MPI_File_write(file, buf, n, type, st));
		break;
	case OWN_ALL:
		OK(MPI_File_write_all(file, buf, n, type, st));
		break;
	case OWN_SPLIT:
		OK(MPI_File_write_all_begin(file, buf, n, type));
		OK(MPI_File_write_all_end(file, buf, st));
		break;
	case IOWN:
		OK(MPI_File_iwrite(file, buf, n, type, req));
		break;
	default:
		OK(MPI_File_iwrite_all(file, buf, n, type, req));
	}
}

static void read_once(enum kind k, MPI_Offset at, void *buf, int n, MPI_Datatype type,
		      MPI_Status *st, MPI_Request *req)
{
	switch (k) {
	case AT:
		OK(MPI_File_read_at(file, at, buf, n, type, st));
		break;
	case AT_ALL:
		OK(MPI_File_read_at_all(file, at, buf, n, type, st));
		break;
	case AT_SPLIT:
		OK(MPI_File_read_at_all_begin(file, at, buf, n, type));
		OK(MPI_File_read_at_all_end(file, buf, st));
		break;
	case IAT:
		OK(MPI_File_iread_at(file, at, buf, n, type, req));
		break;
	case IAT_ALL:
		OK(MPI_File_iread_at_all(file, at, buf, n, type, req));
		break;
	case OWN:
		OK(MPI_File_read(file, buf, n, type, st));
		break;
	case OWN_ALL:
		OK(MPI_File_read_all(file, buf, n, type, st));
		break;
	case OWN_SPLIT:
		OK(MPI_File_read_all_begin(file, buf, n, type));
		OK(MPI_File_read_all_end(file, buf, st));
		break;
	case IOWN:
		OK(MPI_File_iread(file, buf, n, type, req));
		break;
	default:
		OK(MPI_File_iread_all(file, buf, n, type, req));
	}
}

static int is_nonblocking(enum kind k)
{
	return k == IAT || k == IAT_ALL || k == IOWN || k == IOWN_ALL;
}

/* The whole access, in `pieces` calls; non-blocking ones are all under way at once. */
static void run_access(enum kind k, const struct access *a, struct memory *m, int pieces, int write,
		       long got_bytes)
{
	MPI_Request req[PIECES];
	MPI_Status st[PIECES];
	MPI_Count elements, sum = 0;
	long done = 0;
	int n[PIECES];

	for (int p = 0; p < pieces; p++) {
		long upto = p == pieces - 1 ? m->count : (long)m->count * (p + 1) / pieces;
		MPI_Offset at = a->offset + done * (m->per / a->view.es);
		n[p] = (int)(upto - done);
		req[p] = MPI_REQUEST_NULL;
		if (write)
			write_once(k, at, m->base + done * m->stride, n[p], m->type, &st[p],
				   &req[p]);
		else
			read_once(k, at, m->base + done * m->stride, n[p], m->type, &st[p],
				  &req[p]);
		done = upto;
	}
	if (is_nonblocking(k))
		for (int p = 0; p < pieces; p++)
			OK(MPI_Wait(&req[p], &st[p]));
	for (int p = 0; p < pieces; p++) {
		OK(MPI_Get_elements_x(&st[p], m->type, &elements));
		if (write)
			CHECK_EQ(elements, n[p] * (m->per / a->view.es));
		sum += elements;
	}
	if (!write && !no_count &&
	    got_bytes % a->view.es == 0) /* else the file ends within an element */
		CHECK_EQ(sum, got_bytes / a->view.es);
	if (k >= OWN) {
		MPI_Offset at;
		OK(MPI_File_get_position(file, &at));
		if (write || sum == a->count)
			CHECK_EQ(at, a->offset + a->count);
	}
}

static enum kind draw_kind(void)
{
	enum kind k = rng_below(&common, KINDS);

	return no_nonblocking && is_nonblocking(k) ? AT_ALL : k;
}

static void settle(void)
{
	OK(MPI_File_sync(file));
	test_barrier();
	OK(MPI_File_sync(file));
}

static void round_write(void)
{
	struct access all[64], *mine = &all[rank];
	enum kind k = draw_kind();
	int pieces = 1 + (int)rng_below(&common, PIECES), holes = (int)rng_below(&common, 2);
	int how = (int)rng_below(&common, 3);

	draw_views(all, 1);
	for (int r = 0; verbose && rank == 0 && r < size; r++)
		printf("%d write %s rank %d: offset %ld count %ld of %d B, disp %ld\n", round_no,
		       kind_name[k], r, all[r].offset, all[r].count, all[r].view.es,
		       all[r].view.disp);
	set_view(&mine->view);
	struct memory m = memory_make(mine->count, mine->view.es, holes);
	for (long i = 0; i < m.bytes; i++)
		*memory_at(&m, i) = (char)pattern(rank, i);
	if (k >= OWN)
		seek_to(mine, how);
	test_barrier(); /* the end of the file stays where it is while a rank seeks from there */
	run_access(k, mine, &m, pieces, 1, 0);
	memory_free(&m);
	for (int r = 0; r < size; r++) {
		long bytes = all[r].count * all[r].view.es;
		for (long i = 0; i < bytes; i++)
			model_put(&model, &all[r].view, all[r].offset, i, pattern(r, i));
	}
	settle();
	for (int r = 0; r < size; r++)
		view_free(&all[r].view);
}

static void round_read(void)
{
	struct access all[64], *mine = &all[rank];
	enum kind k = draw_kind();
	int pieces = 1 + (int)rng_below(&common, PIECES), holes = (int)rng_below(&common, 2);
	int how = (int)rng_below(&common, 3);

	draw_views(all, 0);
	for (int r = 0; verbose && rank == 0 && r < size; r++)
		printf("%d read %s rank %d: offset %ld count %ld of %d B, tiling %d, datarep %d, "
		       "size %ld\n",
		       round_no, kind_name[k], r, all[r].offset, all[r].count, all[r].view.es,
		       all[r].view.kind, all[r].view.rep, model.size);
	set_view(&mine->view);
	struct memory m = memory_make(mine->count, mine->view.es, holes);
	long got = model_within(&model, &mine->view, mine->offset, m.bytes), all_of = got;
	/* Where the file ends within the data, converted data comes in whole elements of the
	 * memory's type. */
	got -= got % (mine->view.rep == 2 ? m.per : mine->view.es);
	if (got != m.bytes && k >= OWN) /* a call that follows begins where that one ended */
		pieces = 1;
	/* Collective calls: as many on each rank. */
	OK(MPI_Allreduce(MPI_IN_PLACE, &pieces, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD));
	if (k >= OWN)
		seek_to(mine, how);
	run_access(k, mine, &m, pieces, 0, all_of % mine->view.es ? -1 : got);
	for (long i = 0; i < got; i++) {
		int want = model_get(&model, &mine->view, mine->offset, i);
		if ((unsigned char)*memory_at(&m, i) != want)
			fprintf(stderr,
				"round %d %s: byte %ld of %ld at rank %d, %ld within the file\n",
				round_no, kind_name[k], i, m.bytes, rank, all_of);
		CHECK_EQ((unsigned char)*memory_at(&m, i), want);
	}
	memory_check_holes(&m);
	memory_free(&m);
	test_barrier();
	for (int r = 0; r < size; r++)
		view_free(&all[r].view);
}

/* ---- shared pointer and ordered mode ----------------------------------------------------- */

enum shared { WRITE_SHARED, IWRITE_SHARED, WRITE_ORDERED, WRITE_ORDERED_SPLIT, SHARED_KINDS };

static void shared_write(enum shared k, const char *record, int bytes)
{
	MPI_Request req;
	MPI_Status st;
	int n;

	if (k == WRITE_SHARED) {
		OK(MPI_File_write_shared(file, record, bytes, MPI_BYTE, &st));
	} else if (k == IWRITE_SHARED) {
		OK(MPI_File_iwrite_shared(file, record, bytes, MPI_BYTE, &req));
		OK(MPI_Wait(&req, &st));
	} else if (k == WRITE_ORDERED) {
		OK(MPI_File_write_ordered(file, record, bytes, MPI_BYTE, &st));
	} else {
		OK(MPI_File_write_ordered_begin(file, record, bytes, MPI_BYTE));
		OK(MPI_File_write_ordered_end(file, record, &st));
	}
	OK(MPI_Get_count(&st, MPI_BYTE, &n));
	CHECK_EQ(n, bytes);
}

static void shared_read(enum shared k, char *record, int bytes)
{
	MPI_Request req;
	MPI_Status st;
	int n;

	if (k == WRITE_SHARED) {
		OK(MPI_File_read_shared(file, record, bytes, MPI_BYTE, &st));
	} else if (k == IWRITE_SHARED) {
		OK(MPI_File_iread_shared(file, record, bytes, MPI_BYTE, &req));
		OK(MPI_Wait(&req, &st));
	} else if (k == WRITE_ORDERED) {
		OK(MPI_File_read_ordered(file, record, bytes, MPI_BYTE, &st));
	} else {
		OK(MPI_File_read_ordered_begin(file, record, bytes, MPI_BYTE));
		OK(MPI_File_read_ordered_end(file, record, &st));
	}
	OK(MPI_Get_count(&st, MPI_BYTE, &n));
	CHECK_EQ(n, bytes);
}

/* A record's head says where it comes from; the rest is its pattern. */
static void record_fill(char *record, int bytes, int r, int n)
{
	record[0] = (char)(r + 1);
	record[1] = (char)n;
	for (int i = 2; i < bytes; i++)
		record[i] = (char)pattern(r * 100 + n, i);
}

/* Which record is this?  It is whole. */
static int record_id(const char *record, int bytes, int each)
{
	int r = record[0] - 1, n = record[1];

	CHECK(r >= 0 && r < size && n >= 0 && n < each);
	for (int i = 2; i < bytes; i++)
		CHECK_EQ((unsigned char)record[i], pattern(r * 100 + n, i));
	return r * each + n;
}

static void round_shared(void)
{
	enum shared k = rng_below(&common, SHARED_KINDS), back = rng_below(&common, SHARED_KINDS);
	int bytes = 16 + (int)rng_below(&common, 100), each = 1 + (int)rng_below(&common, 6);
	long start = rng_below(&common, 2000);
	struct tiling t;
	struct view v;
	char record[128];
	unsigned char seen[64 * 8], all[64 * 8];
	MPI_Offset at;

	tiling_draw(&common, &t, 1); /* the same view on every rank, holes and all */
	t.es = 1;
	t.rep = 0;
	view_draw(&common, &v, &t, 0, 0);
	set_view(&v);
	OK(MPI_File_seek_shared(file, start, MPI_SEEK_SET));
	for (int n = 0; n < each; n++) {
		record_fill(record, bytes, rank, n);
		shared_write(k, record, bytes);
	}
	settle();
	OK(MPI_File_get_position_shared(file, &at));
	CHECK_EQ(at, start + (long)size * each * bytes);
	test_barrier();
	char *whole = malloc((size_t)(size * each * bytes));
	CHECK(whole);
	OK(MPI_File_read_at(file, start, whole, size * each * bytes, MPI_BYTE, MPI_STATUS_IGNORE));
	memset(seen, 0, sizeof seen);
	for (int i = 0; i < size * each; i++) {
		int id = record_id(whole + (long)i * bytes, bytes, each);
		CHECK_EQ(seen[id]++, 0);
		if (k == WRITE_ORDERED || k == WRITE_ORDERED_SPLIT)
			CHECK_EQ(id, i % size * each + i / size);
	}
	for (long i = 0; i < (long)size * each * bytes; i++)
		model_put(&model, &v, start, i, (unsigned char)whole[i]);
	free(whole);
	test_barrier();

	OK(MPI_File_seek_shared(file, start, MPI_SEEK_SET));
	memset(seen, 0, sizeof seen);
	for (int n = 0; n < each; n++) {
		shared_read(back, record, bytes);
		seen[record_id(record, bytes, each)]++;
	}
	OK(MPI_Allreduce(seen, all, size * each, MPI_UNSIGNED_CHAR, MPI_SUM, MPI_COMM_WORLD));
	for (int i = 0; i < size * each; i++)
		CHECK_EQ(all[i], 1);
	view_free(&v);
}

/* ---- the file as a whole ----------------------------------------------------------------- */

static void round_size(void)
{
	long bytes = rng_below(&common, LIMIT / 8) * 8;
	MPI_Offset now;

	if (rng_below(&common, 2)) {
		OK(MPI_File_set_size(file, bytes));
		model_resize(&model, bytes);
	} else {
		OK(MPI_File_preallocate(file, bytes));
		if (bytes > model.size)
			model_resize(&model, bytes);
	}
	OK(MPI_File_get_size(file, &now));
	CHECK_EQ(now, model.size);
	test_barrier();
}

/* Two ranks write the same place: in atomic mode the bytes of one of them are there. */
static void round_atomic(void)
{
	long at = rng_below(&common, LIMIT / 2), bytes = 1 + rng_below(&common, 60000);
	char *buf = malloc((size_t)bytes);
	int on = 0;

	CHECK(buf);
	OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, (char *)(size_t) "native",
			     MPI_INFO_NULL));
	OK(MPI_File_set_atomicity(file, 1));
	OK(MPI_File_get_atomicity(file, &on));
	CHECK(on);
	memset(buf, rank + 1, (size_t)bytes);
	OK(MPI_File_write_at(file, at, buf, (int)bytes, MPI_BYTE, MPI_STATUS_IGNORE));
	test_barrier();
	OK(MPI_File_read_at(file, at, buf, (int)bytes, MPI_BYTE, MPI_STATUS_IGNORE));
	CHECK(buf[0] >= 1 && buf[0] <= size);
	for (long i = 1; i < bytes; i++)
		CHECK_EQ(buf[i], buf[0]);
	for (long i = 0; i < bytes; i++)
		model_set(&model, at + i, (unsigned char)buf[0]);
	OK(MPI_File_set_atomicity(file, 0));
	test_barrier();
	free(buf);
}

/* By the system's own calls: the bytes are those of the model, and no more. */
static void check_whole(void)
{
	MPI_Offset bytes;

	settle();
	OK(MPI_File_get_size(file, &bytes));
	CHECK_EQ(bytes, model.size);
	if (rank == 0) {
		unsigned char *buf = malloc((size_t)model.size + 1);
		int fd = open(path, O_RDONLY);
		CHECK(buf && fd >= 0);
		long got = 0, n;
		while ((n = pread(fd, buf + got, (size_t)(model.size + 1 - got), got)) > 0)
			got += n; /* ends: at the end of the file */
		CHECK_EQ(got, model.size);
		for (long i = 0; i < model.size; i++) {
			if (buf[i] != model.byte[i])
				fprintf(stderr, "round %d: byte %ld of the file\n", round_no, i);
			CHECK_EQ(buf[i], model.byte[i]);
		}
		close(fd);
		free(buf);
	}
	test_barrier();
}

static void open_file(int create)
{
	static const char *const buffers[] = {"4096", "65536", "1048576"};
	int mode = MPI_MODE_RDWR | (create ? MPI_MODE_CREATE | MPI_MODE_EXCL : 0);
	char nodes[16];
	MPI_Info info;

	OK(MPI_Info_create(&info));
	snprintf(nodes, sizeof nodes, "%d", 1 + (int)rng_below(&common, size));
	OK(MPI_Info_set(info, "cb_buffer_size", buffers[rng_below(&common, 3)]));
	OK(MPI_Info_set(info, "cb_nodes", nodes));
	OK(MPI_File_open(MPI_COMM_WORLD, path, mode, info, &file));
	OK(MPI_Info_free(&info));
	OK(MPI_File_set_errhandler(file, MPI_ERRORS_RETURN));
}

static void one_round(void)
{
	unsigned what = (unsigned)rng_below(&common, 20);

	if (what < 8)
		round_write();
	else if (what < 15)
		round_read();
	else if (what < 17 && !no_shared)
		round_shared();
	else if (what == 17 && !no_zero)
		round_size();
	else if (what == 18)
		round_atomic();
	else if (what == 19) {
		OK(MPI_File_close(&file));
		open_file(0);
	}
}

/* A view for reading may hold a place twice. */
static void check_overlaps(void)
{
	enum { OVERLAPS = 600, PIECE = 500, STEP = 200, ROOM = (OVERLAPS - 1) * STEP + PIECE };
	static int lengths[OVERLAPS], places[OVERLAPS], got[OVERLAPS * PIECE], data[ROOM];
	MPI_Datatype type;
	MPI_Status st;

	for (int i = 0; i < ROOM; i++)
		data[i] = i;
	for (int i = 0; i < OVERLAPS; i++) {
		lengths[i] = PIECE;
		places[i] = i * STEP;
	}
	OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR, MPI_INFO_NULL, &file));
	if (rank == 0)
		OK(MPI_File_write_at(file, 0, data, ROOM, MPI_INT, &st));
	OK(MPI_File_close(&file));
	test_barrier();
	OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
	OK(MPI_Type_indexed(OVERLAPS, lengths, places, MPI_INT, &type));
	OK(MPI_Type_commit(&type));
	OK(MPI_File_set_view(file, 0, MPI_INT, type, "native", MPI_INFO_NULL));
	OK(MPI_File_read_all(file, got, OVERLAPS * PIECE, MPI_INT, &st));
	for (int i = 0; i < OVERLAPS * PIECE; i++)
		CHECK_EQ(got[i], i / PIECE * STEP + i % PIECE);
	OK(MPI_Type_free(&type));
	OK(MPI_File_close(&file));
}

int main(int argc, char **argv)
{
	int rounds = argc > 2 ? atoi(argv[2]) : 120;
	const char *folder = argc > 3                        ? argv[3]
			     : access("/dev/shm", W_OK) == 0 ? "/dev/shm"
							     : "/tmp";

	test_start(&argc, &argv, MPI_THREAD_SINGLE);
	if (size > 8)
		SKIP("written for at most 8 ranks");
	seed = rank == 0 ? test_seed(argc, argv) : argc > 1 ? strtoull(argv[1], NULL, 0) : 20161121;
	for (int i = 4; i < argc; i++) {
		external |= strcmp(argv[i], "external") == 0;
		verbose |= strcmp(argv[i], "verbose") == 0;
		no_shared |= strcmp(argv[i], "noshared") == 0;
		no_count |=
			strcmp(argv[i], "nocount") == 0; /* MPICH counts what lies beyond the end */
		no_zero |= strcmp(argv[i], "nozero") == 0; /* and holes are not zero there */
		no_nonblocking |= strcmp(argv[i], "nonb") == 0;
	}
	if (rank == 0)
		snprintf(path, sizeof path, "%s/test-file-random-%ld-%d", folder, (long)getpid(),
			 size);
	OK(MPI_Bcast(path, sizeof path, MPI_CHAR, 0, MPI_COMM_WORLD));
	rng_seed(&common, seed);
	common.external = external;
	model_start(&model, LIMIT * 2);
	open_file(1);
	if (no_zero && rank == 0)
		OK(MPI_File_write_at(file, 0, model.byte, LIMIT * 2, MPI_BYTE, MPI_STATUS_IGNORE));
	model.size = no_zero ? LIMIT * 2 : 0;
	test_barrier();
	for (round_no = 1; round_no <= rounds; round_no++) {
		one_round();
		if (round_no % 5 == 0)
			check_whole();
	}
	check_whole();
	OK(MPI_File_close(&file));
	check_overlaps();
	if (rank == 0) {
		OK(MPI_File_delete(path, MPI_INFO_NULL));
		CHECK(access(path, F_OK) != 0);
	}
	free(model.byte);
	return test_end();
}
