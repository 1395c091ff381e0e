/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 0 2 */
/*
 * Datatypes as MPI defines them: sizes, bounds, contents, names, packing in both representations,
 * elements, errors; and data of derived types through the network.
 */
#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

#include "mpitest.h"

static void size_is(MPI_Datatype t, int want)
{
	int s = -1;
	OK(MPI_Type_size(t, &s));
	CHECK_EQ(s, want);
}

static void bounds_are(MPI_Datatype t, MPI_Aint lb, MPI_Aint extent)
{
	MPI_Aint l, e;
	OK(MPI_Type_get_extent(t, &l, &e));
	CHECK_EQ(l, lb);
	CHECK_EQ(e, extent);
}

static void true_bounds_are(MPI_Datatype t, MPI_Aint lb, MPI_Aint extent)
{
	MPI_Aint l, e;
	OK(MPI_Type_get_true_extent(t, &l, &e));
	CHECK_EQ(l, lb);
	CHECK_EQ(e, extent);
}

static void test_predefined(void)
{
	struct di {
		double a;
		int b;
	};
	struct si {
		short a;
		int b;
	};
	struct ldi {
		long double a;
		int b;
	};
	char name[MPI_MAX_OBJECT_NAME];
	int len;
	size_is(MPI_INT, sizeof(int));
	size_is(MPI_WCHAR, sizeof(wchar_t));
	size_is(MPI_LONG_DOUBLE, sizeof(long double));
	size_is(MPI_DOUBLE_INT, 12);
	bounds_are(MPI_DOUBLE_INT, 0, sizeof(struct di));
	size_is(MPI_SHORT_INT, 6);
	bounds_are(MPI_SHORT_INT, 0, sizeof(struct si));
	bounds_are(MPI_LONG_DOUBLE_INT, 0, sizeof(struct ldi));
	size_is(MPI_REAL16, MPI_UNDEFINED);
	size_is(MPI_INTEGER8, 8);
	OK(MPI_Type_get_name(MPI_DOUBLE, name, &len));
	CHECK(!strcmp(name, "MPI_DOUBLE") && len == 10);
	int ni, na, nd, comb;
	OK(MPI_Type_get_envelope(MPI_DOUBLE, &ni, &na, &nd, &comb));
	CHECK(ni == 0 && na == 0 && nd == 0 && comb == MPI_COMBINER_NAMED);
	MPI_Datatype t = MPI_INT;
	FAILS(MPI_Type_free(&t), MPI_ERR_TYPE);
	FAILS(MPI_Type_size(MPI_DATATYPE_NULL, &ni), MPI_ERR_TYPE);
	FAILS(MPI_Type_contiguous(2, MPI_REAL16, &t), MPI_ERR_TYPE);
	OK(MPI_Type_match_size(MPI_TYPECLASS_REAL, 8, &t));
	size_is(t, 8);
	FAILS(MPI_Type_match_size(MPI_TYPECLASS_REAL, 3, &t), MPI_ERR_ARG);
}

static void test_bounds(void)
{
	MPI_Datatype v, s, r, u;
	OK(MPI_Type_vector(3, 2, 5, MPI_INT, &v));
	size_is(v, 24);
	bounds_are(v, 0, 48);
	OK(MPI_Type_create_resized(v, -4, 60, &r));
	bounds_are(r, -4, 60);
	true_bounds_are(r, 0, 48);
	/* Explicit bounds stick; other members beyond them do not move them. */
	int bl[2] = {1, 1};
	MPI_Aint at[2] = {0, 100};
	MPI_Datatype types[2] = {r, MPI_INT};
	OK(MPI_Type_create_struct(2, bl, at, types, &s));
	bounds_are(s, -4, 60);
	true_bounds_are(s, 0, 104);
	/* Rounded up to the alignment. */
	MPI_Datatype mixed[2] = {MPI_DOUBLE, MPI_CHAR};
	at[1] = 8;
	OK(MPI_Type_create_struct(2, bl, at, mixed, &u));
	size_is(u, 9);
	bounds_are(u, 0, 16);
	MPI_Type_free(&u);
	/* Negative strides. */
	OK(MPI_Type_create_hvector(3, 1, -8, MPI_INT, &u));
	bounds_are(u, -16, 20);
	MPI_Type_free(&u);
	OK(MPI_Type_contiguous(0, MPI_INT, &u));
	size_is(u, 0);
	bounds_are(u, 0, 0);
	MPI_Type_free(&u);
	MPI_Type_free(&s);
	MPI_Type_free(&r);
	MPI_Type_free(&v);
	CHECK(v == MPI_DATATYPE_NULL);
	/* Sizes that do not fit in an int. */
	MPI_Count big;
	int small;
	OK(MPI_Type_contiguous_c(1ll << 33, MPI_INT, &u));
	OK(MPI_Type_size_c(u, &big));
	CHECK_EQ(big, 1ll << 35);
	OK(MPI_Type_size(u, &small));
	CHECK_EQ(small, MPI_UNDEFINED);
	MPI_Count ni, na, nl, nd, counts[1];
	int comb;
	OK(MPI_Type_get_envelope_c(u, &ni, &na, &nl, &nd, &comb));
	CHECK(ni == 0 && na == 0 && nl == 1 && nd == 1 && comb == MPI_COMBINER_CONTIGUOUS);
	MPI_Datatype inner;
	OK(MPI_Type_get_contents_c(u, 0, 0, 1, 1, NULL, NULL, counts, &inner));
	CHECK(counts[0] == 1ll << 33 && inner == MPI_INT);
	MPI_Type_free(&u);
}

static void test_contents(void)
{
	MPI_Datatype in, t, dup, got[4];
	int ni, na, nd, comb, ints[32];
	MPI_Aint addrs[8];
	OK(MPI_Type_contiguous(3, MPI_SHORT, &in));
	int bl[2] = {2, 3};
	MPI_Aint at[2] = {0, 64};
	MPI_Datatype types[2] = {in, MPI_DOUBLE};
	OK(MPI_Type_create_struct(2, bl, at, types, &t));
	OK(MPI_Type_free(&in));
	OK(MPI_Type_get_envelope(t, &ni, &na, &nd, &comb));
	CHECK(ni == 3 && na == 2 && nd == 2 && comb == MPI_COMBINER_STRUCT);
	OK(MPI_Type_get_contents(t, 3, 2, 2, ints, addrs, got));
	CHECK(ints[0] == 2 && ints[1] == 2 && ints[2] == 3 && addrs[1] == 64);
	CHECK(got[1] == MPI_DOUBLE);
	size_is(got[0], 6);
	OK(MPI_Type_get_envelope(got[0], &ni, &na, &nd, &comb));
	CHECK_EQ(comb, MPI_COMBINER_CONTIGUOUS);
	OK(MPI_Type_free(&got[0]));
	FAILS(MPI_Type_get_contents(t, 2, 2, 2, ints, addrs, got), MPI_ERR_ARG);
	OK(MPI_Type_dup(t, &dup));
	OK(MPI_Type_get_envelope(dup, &ni, &na, &nd, &comb));
	CHECK(ni == 0 && na == 0 && nd == 1 && comb == MPI_COMBINER_DUP);
	OK(MPI_Type_free(&t));
	OK(MPI_Type_get_contents(dup, 0, 0, 1, ints, addrs, got));
	OK(MPI_Type_get_envelope(got[0], &ni, &na, &nd, &comb));
	CHECK_EQ(comb, MPI_COMBINER_STRUCT);
	OK(MPI_Type_free(&got[0]));
	OK(MPI_Type_set_name(dup, "pairs"));
	char name[MPI_MAX_OBJECT_NAME];
	OK(MPI_Type_get_name(dup, name, &ni));
	CHECK(!strcmp(name, "pairs"));
	OK(MPI_Type_free(&dup));
	int sizes[2] = {6, 5}, sub[2] = {2, 3}, from[2] = {1, 2};
	OK(MPI_Type_create_subarray(2, sizes, sub, from, MPI_ORDER_FORTRAN, MPI_INT, &t));
	OK(MPI_Type_get_envelope(t, &ni, &na, &nd, &comb));
	CHECK(ni == 8 && na == 0 && nd == 1 && comb == MPI_COMBINER_SUBARRAY);
	OK(MPI_Type_get_contents(t, 8, 0, 1, ints, addrs, got));
	CHECK(ints[0] == 2 && ints[1] == 6 && ints[4] == 3 && ints[6] == 2 &&
	      ints[7] == MPI_ORDER_FORTRAN);
	OK(MPI_Type_free(&t));
	int g[2] = {10, 4}, d[2] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC},
	    a[2] = {MPI_DISTRIBUTE_DFLT_DARG, 1}, p[2] = {2, 2};
	OK(MPI_Type_create_darray(4, 1, 2, g, d, a, p, MPI_ORDER_C, MPI_INT, &t));
	OK(MPI_Type_get_envelope(t, &ni, &na, &nd, &comb));
	CHECK(ni == 12 && na == 0 && nd == 1 && comb == MPI_COMBINER_DARRAY);
	size_is(t, 5 * 2 * 4);
	bounds_are(t, 0, 160);
	OK(MPI_Type_free(&t));
}

static void test_pack(void)
{
	struct {
		char c;
		double d[3];
		int i;
	} from[4], to[4];
	MPI_Datatype t, r;
	int bl[3] = {1, 2, 1}, pos = 0, need = 0;
	MPI_Aint at[3] = {offsetof(__typeof__(from[0]), c), offsetof(__typeof__(from[0]), d),
			  offsetof(__typeof__(from[0]), i)};
	MPI_Datatype types[3] = {MPI_CHAR, MPI_DOUBLE, MPI_INT};
	char buf[512];
	OK(MPI_Type_create_struct(3, bl, at, types, &t));
	OK(MPI_Type_create_resized(t, 0, sizeof from[0], &r));
	FAILS(MPI_Pack(from, 4, r, buf, sizeof buf, &pos, MPI_COMM_WORLD), MPI_ERR_TYPE);
	OK(MPI_Type_commit(&r));
	for (int k = 0; k < 4; k++) {
		from[k].c = (char)('a' + k);
		from[k].d[0] = k * 1.5;
		from[k].d[1] = -k;
		from[k].d[2] = 99;
		from[k].i = 1000 - k;
	}
	memset(to, 0, sizeof to);
	OK(MPI_Pack_size(4, r, MPI_COMM_WORLD, &need));
	CHECK(need >= 4 * 21);
	OK(MPI_Pack(from, 4, r, buf, sizeof buf, &pos, MPI_COMM_WORLD));
	CHECK(pos <= need);
	int end = pos;
	pos = 0;
	OK(MPI_Unpack(buf, end, &pos, to, 4, r, MPI_COMM_WORLD));
	CHECK_EQ(pos, end);
	for (int k = 0; k < 4; k++)
		CHECK(to[k].c == from[k].c && to[k].d[0] == from[k].d[0] &&
		      to[k].d[1] == from[k].d[1] && to[k].d[2] == 0 && to[k].i == from[k].i);
	pos = end;
	FAILS(MPI_Unpack(buf, end, &pos, to, 1, r, MPI_COMM_WORLD), MPI_ERR_TRUNCATE);
	/* external32: big-endian, no holes. */
	MPI_Aint epos = 0, esize;
	OK(MPI_Pack_external_size("external32", 4, r, &esize));
	CHECK_EQ(esize, 4 * 21);
	OK(MPI_Pack_external("external32", from, 4, r, buf, sizeof buf, &epos));
	CHECK_EQ(epos, 84);
	CHECK(buf[21] == 'b' && (unsigned char)buf[22] == 0x3f && (unsigned char)buf[23] == 0xf8);
	CHECK((unsigned char)buf[21 + 17] == 0 && (unsigned char)buf[21 + 19] == 3 &&
	      (unsigned char)buf[21 + 20] == 0xe7);
	memset(to, 0, sizeof to);
	epos = 0;
	OK(MPI_Unpack_external("external32", buf, 84, &epos, to, 4, r));
	for (int k = 0; k < 4; k++)
		CHECK(to[k].c == from[k].c && to[k].d[1] == from[k].d[1] && to[k].i == from[k].i);
	FAILS(MPI_Pack_external_size("native", 4, r, &esize), MPI_ERR_ARG);
	long l[2] = {-5, 123456789}, lb[2] = {0, 0};
	long double q[2] = {-1.0L / 3, 0x1p-16400L}, qb[2] = {0, 0};
	wchar_t w[2] = {L'x', 0x20ac}, wb[2] = {0, 0};
	epos = 0;
	OK(MPI_Pack_external("external32", l, 2, MPI_LONG, buf, sizeof buf, &epos));
	CHECK_EQ(epos, 8);
	OK(MPI_Pack_external("external32", q, 2, MPI_LONG_DOUBLE, buf, sizeof buf, &epos));
	CHECK_EQ(epos, 40);
	OK(MPI_Pack_external("external32", w, 2, MPI_WCHAR, buf, sizeof buf, &epos));
	CHECK_EQ(epos, 44);
	/* sign, exponent 16383 - 2, fraction 0101.. of -1/3 */
	CHECK((unsigned char)buf[8] == 0xbf && (unsigned char)buf[9] == 0xfd &&
	      (unsigned char)buf[10] == 0x55);
	epos = 0;
	OK(MPI_Unpack_external("external32", buf, 44, &epos, lb, 2, MPI_LONG));
	OK(MPI_Unpack_external("external32", buf, 44, &epos, qb, 2, MPI_LONG_DOUBLE));
	OK(MPI_Unpack_external("external32", buf, 44, &epos, wb, 2, MPI_WCHAR));
	CHECK(lb[0] == l[0] && lb[1] == l[1] && qb[0] == q[0] && qb[1] == q[1] && wb[0] == w[0] &&
	      wb[1] == w[1]);
	OK(MPI_Type_free(&t));
	OK(MPI_Type_free(&r));
}

static void test_errors(void)
{
	MPI_Datatype t = MPI_DATATYPE_NULL;
	int bl[2] = {1, -1}, at[2] = {0, 3}, size1[1] = {4}, sub[1] = {3}, from[1] = {2};
	MPI_Aint huge[2] = {0, 8};
	FAILS(MPI_Type_contiguous(-1, MPI_INT, &t), MPI_ERR_COUNT);
	FAILS(MPI_Type_vector(2, -1, 1, MPI_INT, &t), MPI_ERR_ARG);
	FAILS(MPI_Type_indexed(2, bl, at, MPI_INT, &t), MPI_ERR_ARG);
	FAILS(MPI_Type_create_hindexed(2, bl, huge, MPI_INT, &t), MPI_ERR_ARG);
	FAILS(MPI_Type_create_subarray(1, size1, sub, from, MPI_ORDER_C, MPI_INT, &t), MPI_ERR_ARG);
	from[0] = 1;
	FAILS(MPI_Type_create_subarray(1, size1, sub, from, 7, MPI_INT, &t), MPI_ERR_ARG);
	FAILS(MPI_Type_contiguous_c(INT64_MAX, MPI_INT, &t), MPI_ERR_COUNT);
	FAILS(MPI_Type_contiguous(1, MPI_DATATYPE_NULL, &t), MPI_ERR_TYPE);
	FAILS(MPI_Type_indexed(2, NULL, at, MPI_INT, &t), MPI_ERR_ARG);
	FAILS(MPI_Type_create_struct(2, at, huge, NULL, &t), MPI_ERR_ARG);
	FAILS(MPI_Type_create_subarray(1, NULL, sub, from, MPI_ORDER_C, MPI_INT, &t), MPI_ERR_ARG);
	CHECK(t == MPI_DATATYPE_NULL);
	int x = 0;
	OK(MPI_Type_vector(2, 1, 2, MPI_INT, &t));
	FAILS(MPI_Bcast(&x, 1, t, 0, MPI_COMM_WORLD), MPI_ERR_TYPE);
	MPI_Datatype old = t;
	OK(MPI_Type_free(&t));
	FAILS(MPI_Type_size(old, &x), MPI_ERR_TYPE);
}

/* A matrix's column and a transposed matrix through the network; elements of a short message. */
static void test_network(void)
{
	enum { N = 60 };
	static double m[N][N], r[N][N];
	MPI_Datatype col, sized, all;
	if (size < 2 || rank > 1)
		return;
	OK(MPI_Type_vector(N, 1, N, MPI_DOUBLE, &col));
	OK(MPI_Type_create_resized(col, 0, sizeof(double), &sized));
	OK(MPI_Type_contiguous(N, sized, &all));
	OK(MPI_Type_commit(&all));
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++)
			m[i][j] = 1000 * i + j;
	MPI_Status st;
	OK(MPI_Sendrecv(m, 1, all, 1 - rank, 1, r, N * N, MPI_DOUBLE, 1 - rank, 1, MPI_COMM_WORLD,
			&st));
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++)
			CHECK(r[i][j] == m[j][i]);
	int n;
	OK(MPI_Get_count(&st, all, &n));
	CHECK_EQ(n, 1);
	memset(r, 0, sizeof r);
	OK(MPI_Sendrecv(m, N * N, MPI_DOUBLE, 1 - rank, 2, r, 1, all, 1 - rank, 2, MPI_COMM_WORLD,
			&st));
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++)
			CHECK(r[i][j] == m[j][i]);
	/* Part of one element. */
	OK(MPI_Sendrecv(m, 7, MPI_DOUBLE, 1 - rank, 3, r, 1, all, 1 - rank, 3, MPI_COMM_WORLD,
			&st));
	OK(MPI_Get_count(&st, all, &n));
	CHECK_EQ(n, MPI_UNDEFINED);
	OK(MPI_Get_elements(&st, all, &n));
	CHECK_EQ(n, 7);
	struct {
		int a;
		double b;
	} s[4] = {{1, 2}, {3, 4}, {5, 6}, {7, 8}}, got[4];
	int bl[2] = {1, 1};
	MPI_Aint at[2] = {0, 8};
	MPI_Datatype types[2] = {MPI_INT, MPI_DOUBLE}, pair;
	OK(MPI_Type_create_struct(2, bl, at, types, &pair));
	OK(MPI_Type_commit(&pair));
	OK(MPI_Sendrecv(s, 3, pair, 1 - rank, 4, got, 4, pair, 1 - rank, 4, MPI_COMM_WORLD, &st));
	OK(MPI_Get_elements(&st, pair, &n));
	CHECK_EQ(n, 6);
	CHECK(got[2].a == 5 && got[2].b == 6);
	OK(MPI_Type_free(&pair));
	OK(MPI_Type_free(&col));
	OK(MPI_Type_free(&sized));
	OK(MPI_Type_free(&all));
}

int main(int argc, char **argv)
{
	test_start(&argc, &argv, MPI_THREAD_SINGLE);
	OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
	OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
	test_predefined();
	test_bounds();
	test_contents();
	test_pack();
	test_errors();
	test_network();
	return test_end();
}
