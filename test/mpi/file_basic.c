/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 2 3 */
/*
 * file_basic.c - files: every kind of access, views, pointers, requests, errors by their class.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "mpitest.h"

#define N 1000

static char name[256];

static MPI_File open_new(int amode)
{
	MPI_File f;
	OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | MPI_MODE_CREATE | amode,
			 MPI_INFO_NULL, &f));
	OK(MPI_File_set_size(f, 0));
	return f;
}

static int count_of(const MPI_Status *st, MPI_Datatype type)
{
	int n = -1;
	OK(MPI_Get_count(st, type, &n));
	return n;
}

/* Each rank its block, by each kind of call; read back by the next rank. */
static void test_blocks(void)
{
	MPI_File f = open_new(0);
	MPI_Status st;
	MPI_Request req;
	int out[N], in[N], next = (rank + 1) % size;
	MPI_Offset size_now;
	for (int way = 0; way < 6; way++) {
		for (int i = 0; i < N; i++)
			out[i] = way * 1000000 + rank * N + i;
		MPI_Offset mine = (MPI_Offset)rank * sizeof out,
			   other = (MPI_Offset)next * sizeof out;
		MPI_Offset back = 0;
		if (way == 0) {
			OK(MPI_File_write_at(f, mine, out, N, MPI_INT, &st));
		} else if (way == 1) {
			OK(MPI_File_write_at_all(f, mine, out, N, MPI_INT, &st));
		} else if (way == 2) {
			OK(MPI_File_iwrite_at(f, mine, out, N, MPI_INT, &req));
			OK(MPI_Wait(&req, &st));
		} else if (way == 3) {
			OK(MPI_File_seek(f, mine, MPI_SEEK_SET));
			OK(MPI_File_write(f, out, N, MPI_INT, &st));
			OK(MPI_File_get_position(f, &back));
			CHECK_EQ(back, mine + (MPI_Offset)sizeof out);
		} else if (way == 4) {
			OK(MPI_File_seek(f, mine, MPI_SEEK_SET));
			OK(MPI_File_write_all_begin(f, out, N, MPI_INT));
			OK(MPI_File_write_all_end(f, out, &st));
		} else {
			OK(MPI_File_iwrite_at_all(f, mine, out, N, MPI_INT, &req));
			OK(MPI_Wait(&req, &st));
		}
		CHECK_EQ(count_of(&st, MPI_INT), N);
		OK(MPI_File_sync(f));
		test_barrier();
		memset(in, -1, sizeof in);
		if (way == 0) {
			OK(MPI_File_read_at(f, other, in, N, MPI_INT, &st));
		} else if (way == 1) {
			OK(MPI_File_read_at_all(f, other, in, N, MPI_INT, &st));
		} else if (way == 2) {
			OK(MPI_File_iread_at(f, other, in, N, MPI_INT, &req));
			OK(MPI_Wait(&req, &st));
		} else if (way == 3) {
			OK(MPI_File_seek(f, other - back, MPI_SEEK_CUR));
			OK(MPI_File_iread(f, in, N, MPI_INT, &req));
			OK(MPI_Wait(&req, &st));
		} else if (way == 4) {
			OK(MPI_File_read_at_all_begin(f, other, in, N, MPI_INT));
			OK(MPI_File_read_at_all_end(f, in, &st));
		} else {
			OK(MPI_File_iread_at_all(f, other, in, N, MPI_INT, &req));
			OK(MPI_Wait(&req, &st));
		}
		CHECK_EQ(count_of(&st, MPI_INT), N);
		for (int i = 0; i < N; i++)
			CHECK_EQ(in[i], way * 1000000 + next * N + i);
		OK(MPI_File_get_size(f, &size_now));
		CHECK_EQ(size_now, (MPI_Offset)(size * sizeof out));
		test_barrier();
	}
	/* Behind the end there is nothing. */
	OK(MPI_File_read_at(f, (MPI_Offset)(size * sizeof out) - 8, in, N, MPI_INT, &st));
	CHECK_EQ(count_of(&st, MPI_INT), 2);
	OK(MPI_File_close(&f));
	CHECK(f == MPI_FILE_NULL);
}

/* Elements of the ranks interleave; data in memory has holes, too. */
static void test_views(void)
{
	MPI_File f = open_new(0);
	MPI_Datatype ftype, mtype, e, t;
	MPI_Status st;
	MPI_Offset disp, at;
	MPI_Request req;
	char rep[MPI_MAX_DATAREP_STRING];
	int out[2 * N], in[2 * N], all[3 * N];
	OK(MPI_Type_vector(N / 10, 1, size, MPI_INT, &e));
	OK(MPI_Type_create_resized(e, 0, (MPI_Aint)(N / 10 * size * sizeof(int)), &ftype));
	OK(MPI_Type_free(&e));
	OK(MPI_Type_commit(&ftype));
	OK(MPI_Type_vector(N, 1, 2, MPI_INT, &mtype));
	OK(MPI_Type_commit(&mtype));
	for (int way = 0; way < 4; way++) {
		for (int i = 0; i < 2 * N; i++)
			out[i] = i % 2 ? -7 : way * 100000 + (i / 2) * size + rank;
		OK(MPI_File_set_view(f, 100 + (MPI_Offset)(rank * sizeof(int)), MPI_INT, ftype,
				     "native", MPI_INFO_NULL));
		if (way % 2)
			OK(MPI_File_write_all(f, out, 1, mtype, &st));
		else
			OK(MPI_File_iwrite(f, out, 1, mtype, &req));
		if (!(way % 2))
			OK(MPI_Wait(&req, &st));
		CHECK_EQ(count_of(&st, MPI_INT), N);
		OK(MPI_File_get_position(f, &at));
		CHECK_EQ(at, N);
		OK(MPI_File_get_byte_offset(f, 13, &at));
		CHECK_EQ(at, 100 + (MPI_Offset)(sizeof(int) * (size_t)(13 * size + rank)));
		OK(MPI_File_sync(f));
		test_barrier();
		memset(in, 0, sizeof in);
		if (way < 2)
			OK(MPI_File_read_at(f, 0, in, 1, mtype, &st));
		else
			OK(MPI_File_iread_at(f, 0, in, 1, mtype, &req));
		if (way >= 2)
			OK(MPI_Wait(&req, &st));
		CHECK_EQ(count_of(&st, mtype), 1);
		for (int i = 0; i < 2 * N; i++)
			CHECK_EQ(in[i], i % 2 ? 0 : out[i]);
		OK(MPI_File_get_view(f, &disp, &e, &t, rep));
		CHECK_EQ(disp, 100 + (MPI_Offset)(rank * sizeof(int)));
		CHECK(e == MPI_INT && strcmp(rep, "native") == 0);
		OK(MPI_Type_free(&t));
		OK(MPI_File_seek(f, 0, MPI_SEEK_END));
		OK(MPI_File_get_position(f, &at));
		CHECK_EQ(at, N);
		OK(MPI_File_set_view(f, 0, MPI_BYTE, MPI_BYTE, "internal", MPI_INFO_NULL));
		OK(MPI_File_read_at(f, 100, all, size * N, MPI_INT, &st));
		for (int i = 0; i < size * N; i++)
			CHECK_EQ(all[i], way * 100000 + i);
		test_barrier();
	}
	OK(MPI_Type_free(&ftype));
	OK(MPI_Type_free(&mtype));
	OK(MPI_File_close(&f));
}

static void test_external32(void)
{
	MPI_File f = open_new(0);
	MPI_Status st;
	MPI_Aint extent;
	unsigned char bytes[24];
	long out[2] = {0x01020304, -2}, in[2] = {0, 0};
	OK(MPI_File_set_view(f, 0, MPI_LONG, MPI_LONG, "external32", MPI_INFO_NULL));
	OK(MPI_File_get_type_extent(f, MPI_LONG, &extent));
	if (!rank)
		OK(MPI_File_write_at(f, 0, out, 2, MPI_LONG, &st));
	OK(MPI_File_sync(f));
	test_barrier();
	OK(MPI_File_read_at(f, 0, in, 2, MPI_LONG, &st));
	CHECK_EQ(count_of(&st, MPI_LONG), 2);
	CHECK(in[0] == out[0] && in[1] == out[1]);
	OK(MPI_File_set_view(f, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
	OK(MPI_File_read_at(f, 0, bytes, 24, MPI_BYTE, &st));
	CHECK_EQ(count_of(&st, MPI_BYTE), (int)(2 * extent));
	CHECK(bytes[extent - 4] == 1 && bytes[extent - 1] == 4 && bytes[2 * extent - 1] == 0xfe);
	OK(MPI_File_close(&f));
}

/* A representation in which each int takes 8 bytes, negated. */
static int file_extent(MPI_Datatype type, MPI_Aint *extent, void *extra)
{
	(void)extra;
	*extent = 8;
	return type == MPI_INT ? MPI_SUCCESS : MPI_ERR_TYPE;
}

static int from_file(void *user, MPI_Datatype type, int count, void *file, MPI_Offset at,
		     void *extra)
{
	(void)type;
	(void)extra;
	for (int i = 0; i < count; i++) {
		long long v;
		memcpy(&v, (char *)file + 8 * i, 8);
		((int *)user)[at + i] = (int)-v;
	}
	return MPI_SUCCESS;
}

static int to_file(void *user, MPI_Datatype type, int count, void *file, MPI_Offset at, void *extra)
{
	(void)type;
	(void)extra;
	for (int i = 0; i < count; i++) {
		long long v = -(long long)((int *)user)[at + i];
		memcpy((char *)file + 8 * i, &v, 8);
	}
	return MPI_SUCCESS;
}

static void test_datarep(void)
{
	MPI_File f = open_new(0);
	MPI_Status st;
	MPI_Request req;
	MPI_Offset bytes;
	int out[10], in[10];
	OK(MPI_Register_datarep("wide", from_file, to_file, file_extent, NULL));
	FAILS(MPI_Register_datarep("wide", from_file, to_file, file_extent, NULL),
	      MPI_ERR_DUP_DATAREP);
	OK(MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "wide", MPI_INFO_NULL));
	for (int i = 0; i < 10; i++)
		out[i] = 100 * rank + i;
	OK(MPI_File_write_at(f, 10 * rank, out, 10, MPI_INT, &st));
	CHECK_EQ(count_of(&st, MPI_INT), 10);
	OK(MPI_File_sync(f));
	test_barrier();
	OK(MPI_File_get_size(f, &bytes));
	CHECK_EQ(bytes, 80 * size);
	OK(MPI_File_iread_at(f, 10 * ((rank + 1) % size), in, 10, MPI_INT, &req));
	OK(MPI_Wait(&req, &st));
	CHECK_EQ(count_of(&st, MPI_INT), 10);
	for (int i = 0; i < 10; i++)
		CHECK_EQ(in[i], 100 * ((rank + 1) % size) + i);
	FAILS(MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "unheard", MPI_INFO_NULL),
	      MPI_ERR_UNSUPPORTED_DATAREP);
	OK(MPI_File_close(&f));
}

/* Records of the ranks, each once; ordered ones by rank. */
static void test_shared(void)
{
	MPI_File f = open_new(0);
	MPI_Status st;
	MPI_Request req;
	MPI_Offset at;
	int out[4], all[3 * 20 * 4], seen[3 * 20] = {0};
	OK(MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
	for (int i = 0; i < 20; i++) {
		for (int k = 0; k < 4; k++)
			out[k] = rank * 20 + i;
		if (i % 2) {
			OK(MPI_File_write_shared(f, out, 4, MPI_INT, &st));
		} else {
			OK(MPI_File_iwrite_shared(f, out, 4, MPI_INT, &req));
			OK(MPI_Wait(&req, &st));
		}
		CHECK_EQ(count_of(&st, MPI_INT), 4);
	}
	test_barrier();
	OK(MPI_File_get_position_shared(f, &at));
	CHECK_EQ(at, size * 80);
	OK(MPI_File_read_at_all(f, 0, all, size * 80, MPI_INT, &st));
	for (int i = 0; i < size * 20; i++) {
		for (int k = 1; k < 4; k++)
			CHECK_EQ(all[4 * i + k], all[4 * i]);
		CHECK_EQ(seen[all[4 * i]]++, 0);
	}
	OK(MPI_File_seek_shared(f, 8, MPI_SEEK_SET));
	OK(MPI_File_write_ordered(f, &rank, 1, MPI_INT, &st));
	OK(MPI_File_write_ordered_begin(f, &rank, 1, MPI_INT));
	OK(MPI_File_write_ordered_end(f, &rank, &st));
	OK(MPI_File_seek_shared(f, 8, MPI_SEEK_SET));
	OK(MPI_File_read_ordered(f, out, 2, MPI_INT, &st));
	CHECK_EQ(out[0], 2 * rank % size);
	CHECK_EQ(out[1], (2 * rank + 1) % size);
	OK(MPI_File_close(&f));
	OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_WRONLY | MPI_MODE_APPEND, MPI_INFO_NULL,
			 &f));
	OK(MPI_File_get_position(f, &at));
	CHECK_EQ(at, (MPI_Offset)(size * 80 * sizeof(int)));
	OK(MPI_File_get_position_shared(f, &at));
	CHECK_EQ(at, (MPI_Offset)(size * 80 * sizeof(int)));
	FAILS(MPI_File_read(f, out, 1, MPI_INT, &st), MPI_ERR_ACCESS);
	OK(MPI_File_close(&f));
}

static void test_atomic(void)
{
	MPI_File f = open_new(0);
	static int out[50000], in[50000];
	MPI_Status st;
	int flag;
	OK(MPI_File_set_atomicity(f, 1));
	OK(MPI_File_get_atomicity(f, &flag));
	CHECK_EQ(flag, 1);
	for (int turn = 0; turn < 10; turn++) {
		for (int i = 0; i < 50000; i++)
			out[i] = turn * 100 + rank;
		OK(MPI_File_write_at(f, 0, out, 50000, MPI_INT, &st));
		OK(MPI_File_read_at(f, 0, in, 50000, MPI_INT, &st));
		for (int i = 1; i < 50000; i++)
			CHECK_EQ(in[i], in[0]);
	}
	OK(MPI_File_set_atomicity(f, 0));
	OK(MPI_File_close(&f));
}

/* The view changes, and datatypes are freed, while accesses are under way: these go by what was. */
static void test_changed(void)
{
	enum { PARTS = 6, LEN = 20000 };
	MPI_File f = open_new(0);
	MPI_Request req[PARTS];
	MPI_Datatype ftype, mtype;
	MPI_Status st;
	int *out = malloc(2 * PARTS * LEN * sizeof *out),
	    *in = malloc(PARTS * LEN * size * sizeof *in);
	for (int i = 0; i < 2 * PARTS * LEN; i++)
		out[i] = i % 2 ? -1 : rank * 1000000 + i / 2;
	for (int p = 0; p < PARTS; p++) {
		OK(MPI_Type_create_resized(MPI_INT, 0, (MPI_Aint)(size * sizeof(int)), &ftype));
		OK(MPI_Type_commit(&ftype));
		OK(MPI_Type_vector(LEN, 1, 2, MPI_INT, &mtype));
		OK(MPI_Type_commit(&mtype));
		OK(MPI_File_set_view(f,
				     (MPI_Offset)sizeof(int) * ((MPI_Offset)p * LEN * size + rank),
				     MPI_INT, ftype, "native", MPI_INFO_NULL));
		if (p % 2)
			OK(MPI_File_iwrite_all(f, out + 2 * p * LEN, 1, mtype, &req[p]));
		else
			OK(MPI_File_iwrite(f, out + 2 * p * LEN, 1, mtype, &req[p]));
		OK(MPI_Type_free(&ftype));
		OK(MPI_Type_free(&mtype));
	}
	OK(MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
	OK(MPI_Waitall(PARTS, req, MPI_STATUSES_IGNORE));
	OK(MPI_File_sync(f));
	test_barrier();
	OK(MPI_File_read_at(f, 0, in, PARTS * LEN * size, MPI_INT, &st));
	CHECK_EQ(count_of(&st, MPI_INT), PARTS * LEN * size);
	for (int i = 0; i < PARTS * LEN * size; i++)
		CHECK_EQ(in[i], i % size * 1000000 + i / size);
	OK(MPI_File_close(&f));
	free(out);
	free(in);
}

/* A member's refused part of a collective access waits behind another access, while its view and file type go. */
static void test_refused(void)
{
	enum { LEN = 20000 };
	MPI_File f = open_new(0);
	MPI_Request req[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
	MPI_Datatype ftype;
	int *out = malloc(LEN * sizeof *out), *in = malloc(LEN * size * sizeof *in);
	for (int i = 0; i < LEN; i++)
		out[i] = rank * 1000000 + i;
	OK(MPI_Type_create_resized(MPI_INT, 0, (MPI_Aint)(size * sizeof(int)), &ftype));
	OK(MPI_Type_commit(&ftype));
	OK(MPI_File_set_view(f, (MPI_Offset)sizeof(int) * rank, MPI_INT, ftype, "native",
			     MPI_INFO_NULL));
	OK(MPI_Type_free(&ftype));
	OK(MPI_File_iwrite_all(f, out, LEN, MPI_INT, &req[0]));
	if (rank)
		OK(MPI_File_iwrite_all(f, out, 0, MPI_INT, &req[1]));
	else
		FAILS(MPI_File_iwrite_all(f, out, 1, MPI_BYTE, &req[1]), MPI_ERR_TYPE);
	OK(MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
	OK(MPI_Wait(&req[0], MPI_STATUS_IGNORE));
	if (rank)
		CHECK(MPI_Wait(&req[1], MPI_STATUS_IGNORE) != MPI_SUCCESS);
	OK(MPI_File_sync(f));
	test_barrier();
	OK(MPI_File_read_at(f, 0, in, LEN * size, MPI_INT, MPI_STATUS_IGNORE));
	for (int i = 0; i < LEN * size; i++)
		CHECK_EQ(in[i], i % size * 1000000 + i / size);
	OK(MPI_File_close(&f));
	free(out);
	free(in);
}

/* A read that is refused on one member, where each member moves its own part: the others have theirs, and it waits for none. */
static void test_refused_read(void)
{
	MPI_File f = open_new(0);
	int in[8] = {0}, out[8];
	for (int i = 0; i < 8; i++)
		out[i] = rank * 8 + i;
	OK(MPI_File_write_at_all(f, (MPI_Offset)sizeof out * rank, out, 8, MPI_INT,
				 MPI_STATUS_IGNORE));
	for (int turn = 0; turn < 3; turn++) {
		if (!rank) {
			FAILS(MPI_File_read_at_all(f, -1, in, 8, MPI_INT, MPI_STATUS_IGNORE),
			      MPI_ERR_ARG);
			continue;
		}
		OK(MPI_File_read_at_all(f, (MPI_Offset)sizeof out * rank, in, 8, MPI_INT,
					MPI_STATUS_IGNORE));
		CHECK(!memcmp(in, out, sizeof out));
	}
	OK(MPI_File_close(&f));
}

/* Members that are in different collective calls on a file: each call ends, and later accesses that match are right. */
static void test_crossed(void)
{
	MPI_File f = open_new(0);
	MPI_Request req;
	int out = rank, in = -1;
	MPI_Offset at = (MPI_Offset)sizeof out * rank;
	if (rank) {
		FAILS(MPI_File_sync(f), MPI_ERR_TRUNCATE);
		FAILS(MPI_File_sync(f), MPI_ERR_TRUNCATE);
	} else {
		FAILS(MPI_File_write_at_all(f, at, &out, 1, MPI_INT, MPI_STATUS_IGNORE),
		      MPI_ERR_TRUNCATE);
		OK(MPI_File_iwrite_at_all(f, at, &out, 1, MPI_INT, &req));
		FAILS(MPI_Wait(&req, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE);
	}
	OK(MPI_File_write_at_all(f, at, &out, 1, MPI_INT, MPI_STATUS_IGNORE));
	OK(MPI_File_read_at_all(f, at, &in, 1, MPI_INT, MPI_STATUS_IGNORE));
	CHECK_EQ(in, rank);
	int err = MPI_File_close(&f); /* its agreement may go a way that knows of the lost ones */
	if (err)
		FAILS(err, MPI_ERR_TRUNCATE);
}

/* Requests that are freed while they are under way: close waits for them. */
static void test_freed(void)
{
	MPI_File f = open_new(0);
	MPI_Request req;
	enum { BIG = 1 << 20 };
	char *out = malloc(BIG), *in = malloc(BIG);
	memset(out, 'a' + rank, BIG);
	for (int i = 0; i < 4; i++) {
		OK(MPI_File_iwrite_at(f, (MPI_Offset)(4 * rank + i) * BIG, out, BIG, MPI_BYTE,
				      &req));
		OK(MPI_Request_free(&req));
	}
	OK(MPI_File_close(&f));
	OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &f));
	for (int i = 0; i < 4; i++) {
		OK(MPI_File_read_at(f, (MPI_Offset)(4 * rank + i) * BIG, in, BIG, MPI_BYTE,
				    MPI_STATUS_IGNORE));
		CHECK(!memcmp(in, out, BIG));
	}
	OK(MPI_File_close(&f));
	free(out);
	free(in);
}

static int heard, heard_code;
static MPI_File heard_file;

static void hear(MPI_File *f, int *code, ...)
{
	heard++;
	heard_file = *f;
	heard_code = *code;
}

static void test_errors(void)
{
	MPI_File f;
	MPI_Errhandler e, was;
	int v = 0;
	MPI_Request req;
	char bad[300];
	snprintf(bad, sizeof bad, "%s.none/x", name);
	FAILS(MPI_File_open(MPI_COMM_WORLD, bad, MPI_MODE_RDONLY, MPI_INFO_NULL, &f),
	      MPI_ERR_NO_SUCH_FILE);
	CHECK(f == MPI_FILE_NULL);
	FAILS(MPI_File_open(MPI_COMM_WORLD, "/tmp", MPI_MODE_RDWR, MPI_INFO_NULL, &f),
	      MPI_ERR_BAD_FILE);
	FAILS(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | MPI_MODE_RDONLY, MPI_INFO_NULL,
			    &f),
	      MPI_ERR_AMODE);
	FAILS(MPI_File_delete(bad, MPI_INFO_NULL), MPI_ERR_NO_SUCH_FILE);
	f = open_new(0);
	OK(MPI_File_get_errhandler(f, &was));
	CHECK(was == MPI_ERRORS_RETURN);
	MPI_File g;
	FAILS(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_EXCL,
			    MPI_INFO_NULL, &g),
	      MPI_ERR_FILE_EXISTS);
	OK(MPI_File_create_errhandler(hear, &e));
	OK(MPI_File_set_errhandler(f, e));
	FAILS(MPI_File_write_at(f, -1, &v, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_ARG);
	CHECK_EQ(heard, 1);
	CHECK(heard_file == f && heard_code == MPI_ERR_ARG);
	OK(MPI_File_close(&f));
	OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &f));
	OK(MPI_File_set_errhandler(f, e));
	FAILS(MPI_File_iwrite(f, &v, 1, MPI_INT, &req), MPI_ERR_READ_ONLY);
	CHECK_EQ(heard, 2);
	FAILS(MPI_File_read_all_end(f, &v, MPI_STATUS_IGNORE), MPI_ERR_IO);
	FAILS(MPI_File_seek(f, -5, MPI_SEEK_SET), MPI_ERR_ARG);
	OK(MPI_Errhandler_free(&e));
	OK(MPI_File_close(&f));
	FAILS(MPI_File_close(&f), MPI_ERR_FILE);
	FAILS(MPI_File_read(MPI_FILE_NULL, &v, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_FILE);
}

static void test_info(void)
{
	MPI_File f;
	MPI_Info info, used;
	char value[MPI_MAX_INFO_VAL + 1];
	int flag;
	MPI_Group g;
	OK(MPI_Info_create(&info));
	OK(MPI_Info_set(info, "cb_nodes", "1"));
	OK(MPI_Info_set(info, "access_style", "write_once,read_once"));
	OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, info, &f));
	OK(MPI_File_get_info(f, &used));
	OK(MPI_Info_get(used, "access_style", MPI_MAX_INFO_VAL, value, &flag));
	CHECK(flag && strcmp(value, "write_once,read_once") == 0);
	OK(MPI_Info_get(used, "filename", MPI_MAX_INFO_VAL, value, &flag));
	CHECK(flag && strcmp(value, name) == 0);
	OK(MPI_Info_free(&used));
	OK(MPI_Info_free(&info));
	OK(MPI_File_get_group(f, &g));
	int n;
	OK(MPI_Group_size(g, &n));
	CHECK_EQ(n, size);
	OK(MPI_Group_free(&g));
	OK(MPI_File_get_amode(f, &n));
	CHECK_EQ(n, MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE);
	OK(MPI_File_preallocate(f, 1 << 20));
	MPI_Offset at;
	OK(MPI_File_get_size(f, &at));
	CHECK_EQ(at, 1 << 20);
	OK(MPI_File_close(&f));
	CHECK(access(name, F_OK) != 0);
}

int main(int argc, char **argv)
{
	test_start(&argc, &argv, MPI_THREAD_SINGLE);
	const char *dir = getenv("WEFT_TEST_DIR");
	snprintf(name, sizeof name, "%s/test-file-basic-%d", dir ? dir : "/tmp", (int)getpid());
	OK(MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD));
	test_blocks();
	test_views();
	test_external32();
	test_datarep();
	test_shared();
	test_atomic();
	test_freed();
	test_changed();
	test_refused();
	test_refused_read();
	if (size == 2)
		test_crossed();
	test_errors();
	test_info();
	return test_end();
}
