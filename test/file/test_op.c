/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_op.c - operations on files against a model that lists every byte: random views and buffers, written and
 * read in the background and by the caller, from several threads on one file; the end of the file; errors.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include "base/settings.h"
#include "check.h"
#include "file/io.h"
#include "file/op.h"
#include "task/task.h"

enum { SPAN = 1 << 18, BLOCKS = 40 };

static char path[] = "/tmp/weft-test-op-XXXXXX";

static unsigned long long next(unsigned long long *s)
{
	*s = *s * 6364136223846793005u + 1442695040888963407u;
	return *s >> 33;
}

/* A layout as a list: block i is len[i] bytes at at[i]; repeats every extent bytes. */
struct shape {
	int n;
	int64_t at[BLOCKS], len[BLOCKS], extent, size;
	const struct weft_type *type;
};

static void shape_make(struct shape *s, unsigned long long *seed, int64_t longest)
{
	const struct weft_type *t;
	int64_t end = 0;
	s->size = 0;
	s->n = 1 + (int)(next(seed) % BLOCKS);
	for (int i = 0; i < s->n; i++) {
		s->at[i] = end + (int64_t)(next(seed) % (unsigned)longest);
		s->len[i] = 1 + (int64_t)(next(seed) % (unsigned)longest);
		end = s->at[i] + s->len[i];
		s->size += s->len[i];
	}
	s->extent = end + (int64_t)(next(seed) % (unsigned)longest);
	CHECK(!weft_data_type_indexed(s->n, s->len, 0, s->at, 1, &weft_data_type_elem[WEFT_B_BYTE],
				      &t));
	CHECK(!weft_data_type_resized(t, 0, s->extent, &s->type));
	weft_data_type_unref(t);
}

/* The same, moved away from zero, with the bounds of its data. */
static void shape_move(struct shape *s, int64_t by)
{
	weft_data_type_unref(s->type);
	for (int i = 0; i < s->n; i++)
		s->at[i] += by;
	s->extent = s->at[s->n - 1] + s->len[s->n - 1] - s->at[0];
	CHECK(!weft_data_type_indexed(s->n, s->len, 0, s->at, 1, &weft_data_type_elem[WEFT_B_BYTE],
				      &s->type));
}

/* Where data byte p lies. */
static int64_t shape_byte(const struct shape *s, int64_t p)
{
	int64_t tile = p / s->size, in = p % s->size;
	for (int i = 0;; i++) {
		if (in < s->len[i])
			return tile * s->extent + s->at[i] + in;
		in -= s->len[i];
	}
}

static void test_view(unsigned long long seed)
{
	for (int turn = 0; turn < 200; turn++) {
		struct shape s;
		shape_make(&s, &seed, 50);
		if (turn % 2)
			shape_move(&s, (int64_t)(next(&seed) % 3000));
		struct weft_file_view v = {.disp = next(&seed) % 1000, .type = s.type};
		for (int i = 0; i < 50; i++) {
			int64_t p = (int64_t)(next(&seed) % (unsigned)(10 * s.size));
			CHECK_EQ(weft_file_view_offset(&v, (uint64_t)p),
				 (int64_t)v.disp + shape_byte(&s, p));
			CHECK_EQ(weft_file_view_position(&v, v.disp + (uint64_t)shape_byte(&s, p)),
				 p);
		}
		/* Of an offset between data: the data behind it. */
		for (int i = 0, p = 0; i < 3 * s.extent + s.at[0]; i++) {
			while (shape_byte(&s, p) < i)
				p++;
			CHECK_EQ(weft_file_view_position(&v, v.disp + (uint64_t)i), p);
		}
		/* Very far out, and in ranges. */
		uint64_t far = (uint64_t)s.size * 1000000007u;
		CHECK_EQ(weft_file_view_offset(&v, far),
			 (int64_t)v.disp + shape_byte(&s, (int64_t)far));
		uint64_t pos = next(&seed) % 100, want = 1 + next(&seed) % 5000, got = 0;
		while (got < want) {
			struct weft_file_range r[5];
			unsigned n = 1 + (unsigned)(next(&seed) % 5);
			CHECK(weft_file_view_ranges(&v, pos + got, want - got, r, &n));
			for (unsigned i = 0; i < n; got += r[i++].len)
				for (uint64_t k = 0; k < r[i].len; k++)
					CHECK_EQ(r[i].at + k,
						 v.disp + (uint64_t)shape_byte(
								  &s, (int64_t)(pos + got + k)));
		}
		CHECK_EQ(got, want);
		weft_data_type_unref(s.type);
	}
}

/* Numbers of half the length in the file. */
static void test_scaled(void)
{
	const struct weft_type *t;
	CHECK(!weft_data_type_hvector(10, 2, 64, &weft_data_type_elem[WEFT_B_LONG], &t));
	struct weft_file_view v = {.disp = 5, .type = t, .num = 4, .den = 8};
	for (uint64_t p = 0; p < 80; p++)
		CHECK_EQ(weft_file_view_offset(&v, p), 5 + p / 8 * 32 + p % 8);
	weft_data_type_unref(t);
}

/* ---- operations --------------------------------------------------------------------------- */

static void run(struct weft_file_op *op, unsigned long long *seed)
{
	if (next(seed) % 2) {
		weft_file_op_run(op);
		return;
	}
	op->fn = NULL;
	CHECK_EQ(weft_file_op_start(op), 0);
	weft_task_engine_wait(&op->done);
}

/* One thread's part of the file, from base on. */
static void random_part(struct weft_file *f, uint64_t base, unsigned long long seed)
{
	unsigned char *model = calloc(1, SPAN), *in = malloc(SPAN), *out = malloc(SPAN);
	CHECK(model && in && out);
	int64_t size = 0;
	for (int turn = 0; turn < 16; turn++) {
		struct shape fs, ms;
		static const int64_t longest[] = {40, 300, 3000};
		shape_make(&fs, &seed, longest[next(&seed) % 3]);
		shape_make(&ms, &seed, longest[next(&seed) % 3]);
		struct weft_file_view v = {.disp = base, .type = next(&seed) % 4 ? fs.type : NULL};
		int64_t disp = (int64_t)(next(&seed) % 1000);
		v.disp += (uint64_t)disp;
		/* As much as fits on both sides. */
		int64_t count = SPAN / ms.extent, tiles = (SPAN - 1000) / fs.extent;
		int64_t most = v.type ? tiles * fs.size : SPAN - 1000;
		if (count * ms.size > most / 2)
			count = most / 2 / ms.size;
		int64_t bytes = count * ms.size;
		int64_t pos = most > bytes ? (int64_t)(next(&seed) % (unsigned)(most - bytes)) : 0;
		for (int i = 0; i < SPAN; i++)
			out[i] = (unsigned char)next(&seed);
		bool write = next(&seed) % 3;
		struct weft_file_op op = {
			.file = f,
			.view = &v,
			.buf = weft_data_buf_typed(write ? out : in, (size_t)count, ms.type),
			.pos = (uint64_t)pos,
			.write = write,
			.own_range = next(&seed) % 2};
		memset(in, 0xee, SPAN);
		run(&op, &seed);
		CHECK_EQ(op.err, 0);
		if (write)
			CHECK_EQ(op.bytes, bytes);
		int64_t there = 0;
		for (int64_t p = 0; p < bytes; p++) {
			int64_t at = disp + (v.type ? shape_byte(&fs, pos + p) : pos + p);
			int64_t m = shape_byte(&ms, p);
			if (write) {
				model[at] = out[m];
				size = at >= size ? at + 1 : size;
			} else if (base ||
				   at < size) { /* base: other threads' parts make the file long */
				CHECK_EQ(in[m], base && at >= size ? in[m] : model[at]);
				there++;
			} else {
				CHECK_EQ(in[m], 0xee);
			}
		}
		if (!write && !base)
			CHECK_EQ(op.bytes, there);
		weft_data_type_unref(fs.type);
		weft_data_type_unref(ms.type);
	}
	/* All of it, plainly. */
	CHECK(pread(f->fd, in, (size_t)size, (off_t)base) == size);
	CHECK(!memcmp(in, model, (size_t)size));
	free(model);
	free(in);
	free(out);
}

struct part {
	struct weft_file *file;
	uint64_t base;
	unsigned long long seed;
};

static void *part_thread(void *arg)
{
	struct part *p = arg;
	random_part(p->file, p->base, p->seed);
	return NULL;
}

static void test_threads(unsigned long long seed)
{
	struct weft_file *f;
	struct part p[3];
	pthread_t t[3];
	CHECK_EQ(weft_file_open(path, O_RDWR | O_TRUNC, 0, &f), 0);
	/* Alone first: the file ends where the model does. */
	random_part(f, 0, seed);
	CHECK_EQ(weft_file_resize(f, 3 * SPAN), 0);
	for (int i = 0; i < 3; i++) {
		p[i] = (struct part){f, (uint64_t)(3 + i) * SPAN, seed + 77 * (unsigned)i};
		CHECK(!pthread_create(&t[i], NULL, part_thread, &p[i]));
	}
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	CHECK_EQ(weft_file_close(f), 0);
}

/* Many at once, more than the source's depth; each is over once. */
static _Atomic int over;

static void count_over(struct weft_file_op *op)
{
	CHECK(op->bytes == 100 && !op->err);
	atomic_fetch_add(&over, 1);
}

static void test_many(void)
{
	enum { MANY = 500 };
	static struct weft_file_op op[MANY];
	static char mem[100];
	struct weft_file *f;
	struct weft_file_view v = {0};
	uint64_t size;
	CHECK_EQ(weft_file_open(path, O_RDWR | O_TRUNC, 0, &f), 0);
	for (int i = 0; i < MANY; i++) {
		op[i] = (struct weft_file_op){.file = f,
					      .view = &v,
					      .buf = weft_data_buf_flat(mem, 100),
					      .pos = 100u * (unsigned)i,
					      .write = true,
					      .fn = count_over};
		CHECK_EQ(weft_file_op_start(&op[i]), 0);
	}
	while (atomic_load(&over) < MANY)
		(void)weft_engine_poll();
	CHECK_EQ(weft_file_size(f, &size), 0);
	CHECK_EQ(size, 100 * MANY);
	CHECK_EQ(weft_file_close(f), 0);
}

/* The system refuses to write beyond a limit: what lies before it is there, and counted. */
static void test_limit(bool background, bool holes)
{
	static char mem[300000];
	struct rlimit was, now;
	struct weft_file *f;
	const struct weft_type *t, *e;
	uint64_t size;
	signal(SIGXFSZ, SIG_IGN);
	CHECK_EQ(weft_file_open(path, O_RDWR | O_TRUNC, 0, &f), 0);
	CHECK(!weft_data_type_contiguous(1000, &weft_data_type_elem[WEFT_B_BYTE], &e));
	CHECK(!weft_data_type_resized(e, 0, holes ? 30000 : 1000, &t));
	weft_data_type_unref(e);
	struct weft_file_view v = {.type = t};
	CHECK(!getrlimit(RLIMIT_FSIZE, &was));
	now = was;
	now.rlim_cur = 100500;
	CHECK(!setrlimit(RLIMIT_FSIZE, &now));
	struct weft_file_op op = {
		.file = f, .view = &v, .buf = weft_data_buf_flat(mem, sizeof mem), .write = true};
	if (background) {
		CHECK_EQ(weft_file_op_start(&op), 0);
		weft_task_engine_wait(&op.done);
	} else {
		weft_file_op_run(&op);
	}
	CHECK(!setrlimit(RLIMIT_FSIZE, &was));
	CHECK_EQ(op.err, EFBIG);
	CHECK_EQ(op.bytes, holes ? 4000 : 100500);
	CHECK_EQ(weft_file_size(f, &size), 0);
	CHECK_EQ(size, holes ? 91000 : 100500);
	weft_data_type_unref(t);
	CHECK_EQ(weft_file_close(f), 0);
}

static void test_errors(void)
{
	static char mem[100];
	struct weft_file *f;
	struct weft_file_view v = {0};
	CHECK_EQ(weft_file_open("/tmp/weft-none/x", O_RDWR, 0, &f), ENOENT);
	CHECK_EQ(weft_file_open("/tmp", O_RDONLY, 0, &f), EISDIR);
	CHECK_EQ(weft_file_open(path, O_RDWR | O_CREAT | O_EXCL, 0600, &f), EEXIST);
	CHECK_EQ(weft_file_delete("/tmp/weft-none"), ENOENT);
	CHECK_EQ(weft_file_open(path, O_RDONLY, 0, &f), 0);
	struct weft_file_op op = {
		.file = f, .view = &v, .buf = weft_data_buf_flat(mem, 100), .write = true};
	weft_file_op_run(&op);
	CHECK_EQ(op.err, EBADF);
	CHECK_EQ(weft_file_op_start(&op), 0);
	weft_task_engine_wait(&op.done);
	CHECK_EQ(op.err, EBADF);
	CHECK_EQ(op.bytes, 0);
	/* Nothing to do is done. */
	op.buf.bytes = 0;
	CHECK_EQ(weft_file_op_start(&op), 0);
	weft_task_engine_wait(&op.done);
	CHECK_EQ(op.err, 0);
	CHECK_EQ(weft_file_close(f), 0);
}

int main(int argc, char **argv)
{
	unsigned long long seed = test_seed(argc, argv);
	int fd = mkstemp(path);
	CHECK(fd >= 0);
	close(fd);
	CHECK(!setenv("WEFT_IO_URING", seed % 2 ? "off" : "on", 1));
	CHECK_EQ(weft_engine_start(), WEFT_OK);
	test_view(seed);
	test_scaled();
	test_threads(seed);
	test_many();
	for (int i = 0; i < 4; i++)
		test_limit(i % 2, i / 2);
	test_errors();
	weft_file_end();
	weft_engine_stop();
	CHECK(!unlink(path));
	return 0;
}
