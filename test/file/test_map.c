/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_map.c - short ranges by mapped pages: the same bytes as by calls, beside each other and beside calls; a page that is not
 * to be had ends the use and not the process; a program's own handler of SIGBUS, or a mask, turns it off; the time of the
 * last change moves; records; a descriptor that only writes.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>
#include "base/counters.h"
#include "check.h"
#include "file/io.h"
#include "file/map.h"
#include "file/op.h"
#include "task/task.h"

enum { RUN = 48, STRIDE = 160, RUNS = 5000, PAGE = 4096 };

static char path[] = "/tmp/test-map-XXXXXX";
static const struct weft_type *type; /* a run in each stride */

static struct weft_file *open_file(int flags)
{
	struct weft_file *f;
	CHECK_EQ(weft_file_open(path, flags, 0, &f), 0);
	if (!f->maps)
		SKIP("no mapping on the file system of /tmp, or it is switched off");
	return f;
}

static struct weft_file_op op_of(struct weft_file *f, const struct weft_file_view *v, char *mem,
				 bool write)
{
	return (struct weft_file_op){
		.file = f, .view = v, .buf = weft_data_buf_flat(mem, RUN * RUNS), .write = write};
}

static void fill(char *mem, int what)
{
	for (int i = 0; i < RUN * RUNS; i++)
		mem[i] = (char)(i * 7 + what);
}

/* Does the file have it, by calls, at disp? */
static void check_file(const char *mem, off_t disp)
{
	char in[RUN];
	int fd = open(path, O_RDONLY);
	for (int k = 0; k < RUNS; k++) {
		CHECK_EQ(pread(fd, in, RUN, disp + (off_t)k * STRIDE), RUN);
		CHECK(!memcmp(in, mem + (size_t)k * RUN, RUN));
	}
	close(fd);
}

/* Three threads whose runs share pages; then by the background, beyond a window's end; then read back. */
struct part {
	struct weft_file *f;
	char *mem;
	int at;
};

static void *write_part(void *arg)
{
	struct part *p = arg;
	struct weft_file_view v = {.disp = (uint64_t)p->at * RUN, .type = type};
	struct weft_file_op op = op_of(p->f, &v, p->mem, true);
	for (int turn = 0; turn < 20; turn++) {
		fill(p->mem, p->at + turn);
		weft_file_op_run(&op);
		CHECK(!op.err && op.bytes == RUN * RUNS);
	}
	return NULL;
}

static void test_beside(void)
{
	struct weft_file *f = open_file(O_RDWR | O_TRUNC);
	pthread_t t[3];
	struct part p[3];
	for (int i = 0; i < 3; i++) {
		p[i] = (struct part){f, malloc(RUN * RUNS), i};
		CHECK(!pthread_create(&t[i], NULL, write_part, &p[i]));
	}
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	for (int i = 0; i < 3; i++)
		check_file(p[i].mem, i * RUN);
	/* A window ends in the midst; nothing was there. */
	struct weft_file_view v = {.disp = WEFT_FILE_WINDOW - 100 * STRIDE - 5, .type = type};
	struct weft_file_op op = op_of(f, &v, p[0].mem, true);
	for (int i = 0; i < 2; i++) {
		fill(p[0].mem, 100 + i);
		if (i)
			weft_file_op_run(&op);
		else
			CHECK_EQ(weft_file_op_start(&op), 0);
		if (!i)
			weft_task_engine_wait(&op.done);
		CHECK(!op.err && op.bytes == RUN * RUNS);
		check_file(p[0].mem, (off_t)v.disp);
	}
	op = op_of(f, &v, p[1].mem, false);
	weft_file_op_run(&op);
	CHECK(!op.err && op.bytes == RUN * RUNS && !memcmp(p[0].mem, p[1].mem, RUN * RUNS));
	/* The file ends within a run. */
	CHECK_EQ(weft_file_resize(f, v.disp + 100 * STRIDE + 10), 0);
	memset(p[1].mem, 1, RUN * RUNS);
	weft_file_op_run(&op);
	CHECK(!op.err && op.bytes == 100 * RUN + 10 && !memcmp(p[0].mem, p[1].mem, op.bytes));
	CHECK_EQ(p[1].mem[op.bytes], 1);
	for (int i = 0; i < 3; i++)
		free(p[i].mem);
	CHECK_EQ(weft_file_close(f), 0);
}

/* Pages beyond the end of the file, which is cut while it is used. */
static void test_broken(void)
{
	struct weft_file *f = open_file(O_RDWR | O_TRUNC);
	struct weft_file_window *w, *other;
	static char mem[RUN * RUNS];
	for (int turn = 0; turn < 40; turn++) { /* more often than a file may break */
		bool write = turn % 2;
		CHECK_EQ(weft_file_resize(f, 20 * PAGE), 0);
		char *at = weft_file_map_enter(f, write, PAGE, 10 * PAGE, false, &w);
		if (!at)
			break;
		CHECK(turn < 20);
		char *beside = weft_file_map_enter(f, true, 15 * PAGE, 10, false, &other);
		CHECK(beside && beside - at == 14 * PAGE);
		beside[0] = 3;
		CHECK_EQ(weft_file_resize(f, 3 * PAGE), 0);
		if (write)
			memset(at, 1, 10 * PAGE);
		else
			memcpy(mem, at, 10 * PAGE);
		CHECK(!weft_file_map_leave(f, w));
		/* Another use of the window cannot know where its bytes have gone. */
		CHECK(!weft_file_map_leave(f, other));
	}
	CHECK(!weft_file_map_may(f));
	/* All goes by calls. */
	struct weft_file_view v = {.type = type};
	struct weft_file_op op = op_of(f, &v, mem, true);
	fill(mem, 9);
	weft_file_op_run(&op);
	CHECK(!op.err && op.bytes == RUN * RUNS);
	check_file(mem, 0);
	CHECK_EQ(weft_file_close(f), 0);
}

/* An access whose pages go while it moves: it is made again by calls, which make the file longer. */
static void *cut_again(void *arg)
{
	const _Atomic bool *stop = arg;
	while (!*stop)
		CHECK(!truncate(path, 0));
	return NULL;
}

static void test_cut(void)
{
	static char mem[RUN * RUNS];
	_Atomic bool stop = false;
	pthread_t t;
	struct weft_file *f = open_file(O_RDWR | O_TRUNC);
	struct weft_file_view v = {.type = type};
	CHECK(!pthread_create(&t, NULL, cut_again, &stop));
	for (int turn = 0; turn < 200; turn++) {
		struct weft_file_op op = op_of(f, &v, mem, turn % 3);
		weft_file_op_run(&op);
		CHECK(!op.err && (!op.write || op.bytes == RUN * RUNS));
	}
	stop = true;
	pthread_join(t, NULL);
	CHECK_EQ(weft_file_close(f), 0);
}

/* An old time of change is new after stores, at the latest when the file is closed or synchronised. */
static time_t changed(void)
{
	struct stat st;
	CHECK(!stat(path, &st));
	return st.st_mtime;
}

static void set_old(void)
{
	const struct timeval old[2] = {{1000000, 0}, {1000000, 0}};
	CHECK(!utimes(path, old));
	CHECK_EQ(changed(), 1000000);
}

static void test_time(void)
{
	static char mem[RUN * RUNS];
	struct weft_file_view v = {.type = type};
	struct weft_file *f = open_file(O_RDWR);
	for (int turn = 0; turn < 3; turn++) {
		struct weft_file_op op = op_of(f, &v, mem, true);
		weft_file_op_run(&op); /* it is not stale then */
		set_old();
		weft_file_op_run(&op);
		CHECK(!op.err);
		CHECK_EQ(turn == 2 ? weft_file_close(f) : weft_file_sync(f), 0);
		CHECK(changed() > 1000000);
	}
	/* No store: it stays. */
	f = open_file(O_RDWR);
	struct weft_file_op op = op_of(f, &v, mem, false);
	set_old();
	weft_file_op_run(&op);
	CHECK_EQ(weft_file_close(f), 0);
	CHECK_EQ(changed(), 1000000);
}

/* Records, one after the other, where calls are believed to take long: over what is there, then beyond the file's end. */
static void test_records(void)
{
	enum { LEN = 100, MANY = 2000 };
	static char mem[LEN], in[LEN];
	struct weft_file_view v = {.disp = 7};
	struct weft_file *f = open_file(O_RDWR | O_TRUNC);
	uint64_t size;
	CHECK_EQ(weft_file_resize(f, 7 + LEN * MANY / 2 + 3), 0);
	set_old();
	for (int i = 0; i < MANY; i++) {
		struct weft_file_op op = {.file = f,
					  .view = &v,
					  .buf = weft_data_buf_flat(mem, LEN),
					  .pos = (uint64_t)i * LEN,
					  .write = true};
		memset(mem, i % 251 + 1, LEN);
		atomic_store(&f->x_small_ns, 1000000);
		if (i % 2) {
			weft_file_op_run(&op);
		} else {
			CHECK_EQ(weft_file_op_start(&op), 0);
			weft_task_engine_wait(&op.done);
		}
		CHECK(!op.err && op.bytes == LEN);
		CHECK_EQ(weft_file_size(f, &size), 0);
		CHECK_EQ(size, i < MANY / 2 ? 7 + LEN * MANY / 2 + 3 : 7 + LEN * (i + 1));
	}
	CHECK_EQ(weft_file_close(f), 0);
	CHECK(changed() > 1000000);
	int fd = open(path, O_RDONLY);
	for (int i = 0; i < MANY; i++) {
		memset(mem, i % 251 + 1, LEN);
		CHECK_EQ(pread(fd, in, LEN, 7 + (off_t)i * LEN), LEN);
		CHECK(!memcmp(in, mem, LEN));
	}
	close(fd);
}

static void test_write_only(void)
{
	static char mem[RUN * RUNS];
	struct weft_file *f = open_file(O_WRONLY);
	struct weft_file_view v = {.type = type};
	struct weft_file_op op = op_of(f, &v, mem, true);
	fill(mem, 33);
	weft_file_op_run(&op);
	CHECK(!op.err && op.bytes == RUN * RUNS);
	check_file(mem, 0);
	CHECK_EQ(weft_file_close(f), 0);
	f = open_file(O_RDONLY);
	weft_file_op_run(&(struct weft_file_op){
		.file = f, .view = &v, .buf = weft_data_buf_flat(mem, RUN * RUNS), .write = true});
	struct weft_file_window *w;
	CHECK(!weft_file_map_enter(f, true, 0, RUN, false, &w));
	CHECK(weft_file_map_enter(f, false, 0, RUN, false, &w));
	CHECK(weft_file_map_leave(f, w));
	CHECK_EQ(weft_file_close(f), 0);
}

static void own_handler(int sig)
{
	(void)sig;
}

/* A program that handles SIGBUS itself, or blocks it, would not come to the library's handler. */
static void test_off(void)
{
	static char mem[RUN * RUNS];
	struct weft_file *f = open_file(O_RDWR | O_TRUNC);
	struct weft_file_view v = {.type = type};
	struct weft_file_op op = op_of(f, &v, mem, true);
	struct weft_file_window *w;
	struct sigaction was, own = {.sa_handler = own_handler};
	sigset_t set;
	fill(mem, 50);
	weft_file_op_run(&op);
	sigemptyset(&set);
	sigaddset(&set, SIGBUS);
	CHECK(!pthread_sigmask(SIG_BLOCK, &set, NULL));
	CHECK(!weft_file_map_enter(f, true, 0, RUN, false, &w));
	CHECK(!pthread_sigmask(SIG_UNBLOCK, &set, NULL));
	CHECK(weft_file_map_enter(f, true, 0, RUN, false, &w));
	CHECK(weft_file_map_leave(f, w));
	CHECK(!sigaction(SIGBUS, &own, &was));
	CHECK(!weft_file_map_enter(f, true, 0, RUN, false, &w));
	fill(mem, 51);
	weft_file_op_run(&op);
	CHECK(!op.err && op.bytes == RUN * RUNS);
	check_file(mem, 0);
	CHECK(!sigaction(SIGBUS, &was, NULL));
	CHECK_EQ(weft_file_close(f), 0);
}

int main(void)
{
	const struct weft_type *run;
	int fd = mkstemp(path);
	CHECK(fd >= 0);
	close(fd);
	CHECK_EQ(weft_engine_start(), WEFT_OK);
	CHECK(!weft_data_type_contiguous(RUN, &weft_data_type_elem[WEFT_B_BYTE], &run));
	CHECK(!weft_data_type_resized(run, 0, STRIDE, &type));
	weft_data_type_unref(run);
	test_beside();
	test_broken();
	test_cut();
	test_time();
	test_records();
	test_write_only();
	test_off();
	weft_data_type_unref(type);
	weft_file_end();
	weft_engine_stop();
	CHECK(!unlink(path));
	return 0;
}
