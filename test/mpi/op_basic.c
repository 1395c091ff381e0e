/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 0 2 */
/* Every predefined operation on every datatype that MPI allows, against plain C; refusals
 * elsewhere. */
#include <complex.h>
#include <stdint.h>
#include <wchar.h>

#include "mpitest.h"

#define N 9

enum { SUM, PROD, MIN, MAX, BAND, BOR, BXOR, LAND, LOR, LXOR, OPS };

static const MPI_Op ops[OPS] = {MPI_SUM, MPI_PROD, MPI_MIN,  MPI_MAX, MPI_BAND,
				MPI_BOR, MPI_BXOR, MPI_LAND, MPI_LOR, MPI_LXOR};

static int done;

/* The op must work on that type / must be refused. */
static void call(MPI_Op op, MPI_Datatype t, const void *a, const void *b, void *r, size_t bytes,
		 int allowed)
{
	memcpy(r, b, bytes);
	if (!allowed) {
		FAILS(MPI_Reduce_local(a, r, N, t, op), MPI_ERR_OP);
		return;
	}
	OK(MPI_Reduce_local(a, r, N, t, op));
	done++;
}

#define ARITH(o, x, y) ((o) == SUM ? (x) + (y) : (o) == PROD ? (x) * (y) : (x))
#define ORDER(o, x, y)                                                                             \
	((o) == MIN ? ((x) < (y) ? (x) : (y)) : (o) == MAX ? ((x) > (y) ? (x) : (y)) : (x))
#define BITS(o, x, y)                                                                              \
	((o) == BAND ? (x) & (y) : (o) == BOR ? (x) | (y) : (o) == BXOR ? (x) ^ (y) : (x))
#define LOGIC(o, x, y)                                                                             \
	((o) == LAND ? (x) && (y) : (o) == LOR ? (x) || (y) : (o) == LXOR ? !(x) != !(y) : 0)

#define INT_TYPE(mpi, c)                                                                           \
	do {                                                                                       \
		c a[N], b[N], r[N];                                                                \
		for (int i = 0; i < N; i++) {                                                      \
			a[i] = (c)(i % 3 ? 3 * i - 4 : 0);                                         \
			b[i] = (c)(i % 2 ? 7 - i : 0);                                             \
		}                                                                                  \
		for (int o = 0; o < OPS; o++) {                                                    \
			call(ops[o], mpi, a, b, r, sizeof a, 1);                                   \
			for (int i = 0; i < N; i++) {                                              \
				c w = (c)(o <= PROD   ? ARITH(o, a[i], b[i])                       \
					  : o <= MAX  ? ORDER(o, a[i], b[i])                       \
					  : o <= BXOR ? BITS(o, a[i], b[i])                        \
						      : LOGIC(o, a[i], b[i]));                     \
				CHECK(r[i] == w);                                                  \
			}                                                                          \
		}                                                                                  \
	} while (0)

#define FLOAT_TYPE(mpi, c)                                                                         \
	do {                                                                                       \
		c a[N], b[N], r[N];                                                                \
		for (int i = 0; i < N; i++) {                                                      \
			a[i] = (c)1.5 * (c)(i - 4);                                                \
			b[i] = (c)0.25 * (c)(7 - i * i);                                           \
		}                                                                                  \
		for (int o = 0; o < OPS; o++) {                                                    \
			call(ops[o], mpi, a, b, r, sizeof a, o <= MAX);                            \
			for (int i = 0; i < N && o <= MAX; i++)                                    \
				CHECK(r[i] ==                                                      \
				      (o <= PROD ? ARITH(o, a[i], b[i]) : ORDER(o, a[i], b[i])));  \
		}                                                                                  \
	} while (0)

#define COMPLEX_TYPE(mpi, c)                                                                       \
	do {                                                                                       \
		c a[N], b[N], r[N];                                                                \
		for (int i = 0; i < N; i++) {                                                      \
			a[i] = (c)(i - 4 + 2 * I);                                                 \
			b[i] = (c)(0.5 - i * I);                                                   \
		}                                                                                  \
		for (int o = 0; o < OPS; o++) {                                                    \
			call(ops[o], mpi, a, b, r, sizeof a, o <= PROD);                           \
			for (int i = 0; i < N && o <= PROD; i++)                                   \
				CHECK(r[i] == ARITH(o, a[i], b[i]));                               \
		}                                                                                  \
	} while (0)

#define BOOL_TYPE(mpi, c)                                                                          \
	do {                                                                                       \
		c a[N], b[N], r[N];                                                                \
		for (int i = 0; i < N; i++) {                                                      \
			a[i] = (c)(i % 2);                                                         \
			b[i] = (c)(i / 2 % 2);                                                     \
		}                                                                                  \
		for (int o = 0; o < OPS; o++) {                                                    \
			call(ops[o], mpi, a, b, r, sizeof a, o >= LAND);                           \
			for (int i = 0; i < N && o >= LAND; i++)                                   \
				CHECK(r[i] == (c)LOGIC(o, a[i], b[i]));                            \
		}                                                                                  \
	} while (0)

#define PAIR_TYPE(mpi, v, x)                                                                       \
	do {                                                                                       \
		struct {                                                                           \
			v value;                                                                   \
			x index;                                                                   \
		} a[N], b[N], r[N];                                                                \
		memset(a, 0, sizeof a);                                                            \
		memset(b, 0, sizeof b);                                                            \
		for (int i = 0; i < N; i++) {                                                      \
			a[i].value = (v)(i % 3);                                                   \
			b[i].value = (v)(i % 4);                                                   \
			a[i].index = (x)(10 - i);                                                  \
			b[i].index = (x)i;                                                         \
		}                                                                                  \
		for (int o = 0; o < 2; o++) {                                                      \
			call(o ? MPI_MAXLOC : MPI_MINLOC, mpi, a, b, r, sizeof a, 1);              \
			for (int i = 0; i < N; i++) {                                              \
				int first = o ? a[i].value > b[i].value : a[i].value < b[i].value; \
				int same = a[i].value == b[i].value;                               \
				x want = first  ? a[i].index                                       \
					 : same ? (a[i].index < b[i].index ? a[i].index            \
									   : b[i].index)           \
						: b[i].index;                                      \
				CHECK(r[i].index == want);                                         \
				CHECK(r[i].value == (first ? a[i].value : b[i].value));            \
			}                                                                          \
		}                                                                                  \
		call(MPI_SUM, mpi, a, b, r, sizeof a, 0);                                          \
	} while (0)

static void test_integers(void)
{
	INT_TYPE(MPI_CHAR, char); /* what programs do, beyond the standard */
	INT_TYPE(MPI_SIGNED_CHAR, signed char);
	INT_TYPE(MPI_UNSIGNED_CHAR, unsigned char);
	INT_TYPE(MPI_SHORT, short);
	INT_TYPE(MPI_UNSIGNED_SHORT, unsigned short);
	INT_TYPE(MPI_INT, int);
	INT_TYPE(MPI_UNSIGNED, unsigned);
	INT_TYPE(MPI_LONG, long);
	INT_TYPE(MPI_UNSIGNED_LONG, unsigned long);
	INT_TYPE(MPI_LONG_LONG, long long);
	INT_TYPE(MPI_UNSIGNED_LONG_LONG, unsigned long long);
	INT_TYPE(MPI_INT8_T, int8_t);
	INT_TYPE(MPI_UINT8_T, uint8_t);
	INT_TYPE(MPI_INT16_T, int16_t);
	INT_TYPE(MPI_UINT16_T, uint16_t);
	INT_TYPE(MPI_INT32_T, int32_t);
	INT_TYPE(MPI_UINT32_T, uint32_t);
	INT_TYPE(MPI_INT64_T, int64_t);
	INT_TYPE(MPI_UINT64_T, uint64_t);
	INT_TYPE(MPI_AINT, MPI_Aint);
	INT_TYPE(MPI_COUNT, MPI_Count);
	INT_TYPE(MPI_OFFSET, MPI_Offset);
	INT_TYPE(MPI_INTEGER, int);
	INT_TYPE(MPI_INTEGER1, int8_t);
	INT_TYPE(MPI_INTEGER2, int16_t);
	INT_TYPE(MPI_INTEGER4, int32_t);
	INT_TYPE(MPI_INTEGER8, int64_t);
}

static void test_others(void)
{
	FLOAT_TYPE(MPI_FLOAT, float);
	FLOAT_TYPE(MPI_DOUBLE, double);
	FLOAT_TYPE(MPI_LONG_DOUBLE, long double);
	FLOAT_TYPE(MPI_REAL, float);
	FLOAT_TYPE(MPI_DOUBLE_PRECISION, double);
	FLOAT_TYPE(MPI_REAL4, float);
	FLOAT_TYPE(MPI_REAL8, double);
	COMPLEX_TYPE(MPI_C_FLOAT_COMPLEX, float complex);
	COMPLEX_TYPE(MPI_C_DOUBLE_COMPLEX, double complex);
	COMPLEX_TYPE(MPI_C_LONG_DOUBLE_COMPLEX, long double complex);
	COMPLEX_TYPE(MPI_COMPLEX, float complex);
	COMPLEX_TYPE(MPI_DOUBLE_COMPLEX, double complex);
	BOOL_TYPE(MPI_C_BOOL, _Bool);
	BOOL_TYPE(MPI_CXX_BOOL, _Bool);
	BOOL_TYPE(MPI_LOGICAL, int);
	BOOL_TYPE(MPI_LOGICAL1, int8_t);
	BOOL_TYPE(MPI_LOGICAL8, int64_t);
	PAIR_TYPE(MPI_FLOAT_INT, float, int);
	PAIR_TYPE(MPI_DOUBLE_INT, double, int);
	PAIR_TYPE(MPI_LONG_INT, long, int);
	PAIR_TYPE(MPI_2INT, int, int);
	PAIR_TYPE(MPI_SHORT_INT, short, int);
	PAIR_TYPE(MPI_LONG_DOUBLE_INT, long double, int);
	PAIR_TYPE(MPI_2REAL, float, float);
	PAIR_TYPE(MPI_2DOUBLE_PRECISION, double, double);
	PAIR_TYPE(MPI_2INTEGER, int, int);
	/* Bytes have bits, packed data and wide characters nothing. */
	unsigned char a[N], b[N], r[N];
	memset(a, 0x3c, sizeof a);
	memset(b, 0x66, sizeof b);
	for (int o = 0; o < OPS; o++)
		call(ops[o], MPI_BYTE, a, b, r, sizeof a, o >= BAND && o <= BXOR);
	call(MPI_BXOR, MPI_BYTE, a, b, r, sizeof a, 1);
	CHECK_EQ(r[N - 1], 0x5a);
	for (int o = 0; o < OPS; o++)
		call(ops[o], MPI_PACKED, a, b, r, sizeof a, 0);
	wchar_t w[N] = {0}, wr[N];
	call(MPI_MAX, MPI_WCHAR, w, w, wr, sizeof w, 0);
}

/* A type with the properties of Fortran's selected kinds takes the same operations. */
static void test_f90(void)
{
	MPI_Datatype real, again;
	double a[1] = {1.5}, b[1] = {2};
	OK(MPI_Type_create_f90_real(15, 300, &real));
	OK(MPI_Type_create_f90_real(15, 300, &again));
	CHECK(real == again);
	OK(MPI_Reduce_local(a, b, 1, real, MPI_SUM));
	CHECK(b[0] == 3.5);
	FAILS(MPI_Type_free(&real), MPI_ERR_TYPE);
}

/* The index of the largest value of all ranks, and a long double through the network. */
static void test_network(void)
{
	struct {
		double value;
		int index;
	} in = {rank == size - 1 ? 2 : 1, rank}, out;
	OK(MPI_Allreduce(&in, &out, 1, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD));
	CHECK(out.index == size - 1);
	long double v = 1.0L / (rank + 3), s = 0, want = 0;
	for (int r = size - 1; r >= 0; r--)
		want = 1.0L / (r + 3) + want;
	OK(MPI_Allreduce(&v, &s, 1, MPI_LONG_DOUBLE, MPI_SUM, MPI_COMM_WORLD));
	CHECK(s - want < 1e-18L && want - s < 1e-18L);
}

/* Ranks 0 and 1 name the best value; of equal ones the lower index wins, above 32 bits, too. */
#define PAIR(vtype, ctype, itype, idx)                                                             \
	do {                                                                                       \
		struct {                                                                           \
			ctype value;                                                               \
			idx index;                                                                 \
		} in[2] = {{(ctype)(rank < 2 ? 7 : 5), (idx)(top + rank)},                         \
			   {(ctype)(rank ? 9 : 3), (idx)(top - rank)}},                            \
		  out[2];                                                                          \
		MPI_Datatype t = of_pair(vtype, itype, sizeof(ctype) + sizeof(idx), sizeof in[0]); \
		OK(MPI_Allreduce(in, out, 2, t, MPI_MAXLOC, MPI_COMM_WORLD));                      \
		CHECK(out[0].value == 7 && out[0].index == (idx)top);                              \
		CHECK(out[1].value == (size > 1 ? 9 : 3) &&                                        \
		      out[1].index == (idx)(top - (size - 1)));                                    \
		OK(MPI_Allreduce(in, out, 2, t, MPI_MINLOC, MPI_COMM_WORLD));                      \
		CHECK(out[1].value == 3 && out[1].index == (idx)top);                              \
		memset(out, 0, sizeof out);                                                        \
		OK(MPI_Sendrecv(in, 2, t, 0, 0, out, 2, t, 0, 0, MPI_COMM_SELF,                    \
				MPI_STATUS_IGNORE));                                               \
		CHECK(out[1].value == in[1].value && out[1].index == in[1].index);                 \
		OK(MPI_Win_fence(0, win));                                                         \
		memcpy(base, rank ? &in[1] : &in[0], sizeof in[0]);                                \
		OK(MPI_Win_fence(0, win));                                                         \
		OK(MPI_Accumulate(&in[1], 1, t, 0, 0, 1, t, MPI_MAXLOC, win));                     \
		OK(MPI_Win_fence(0, win));                                                         \
		memcpy(out, base, sizeof in[0]);                                                   \
		CHECK(rank || (out[0].value == (size > 1 ? 9 : 7) &&                               \
			       out[0].index == (idx)(size > 1 ? top - (size - 1) : top)));         \
	} while (0)

static MPI_Datatype of_pair(MPI_Datatype value, MPI_Datatype index, size_t bytes, size_t extent)
{
	MPI_Datatype t, again, of[2];
	MPI_Aint lb, ub;
	int n, ints, addresses, types, combiner;
	OK(MPI_Type_get_value_index(value, index, &t));
	OK(MPI_Type_get_value_index(value, index, &again));
	CHECK(t != MPI_DATATYPE_NULL && t == again);
	OK(MPI_Type_size(t, &n));
	CHECK((size_t)n == bytes);
	OK(MPI_Type_get_extent(t, &lb, &ub));
	CHECK(lb == 0 && (size_t)ub == extent);
	OK(MPI_Type_get_envelope(t, &ints, &addresses, &types, &combiner));
	CHECK(combiner == MPI_COMBINER_VALUE_INDEX && !ints && !addresses && types == 2);
	OK(MPI_Type_get_contents(t, 0, 0, 2, NULL, NULL, of));
	CHECK(of[0] == value && of[1] == index);
	FAILS(MPI_Type_free(&again), MPI_ERR_TYPE);
	return t;
}

static void test_pairs(void)
{
	int64_t top = (int64_t)5 << 40;
	MPI_Datatype t;
	MPI_Win win;
	char *base;
	OK(MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
	PAIR(MPI_DOUBLE, double, MPI_INT64_T, int64_t);
	PAIR(MPI_FLOAT, float, MPI_COUNT, MPI_Count);
	PAIR(MPI_LONG_DOUBLE, long double, MPI_AINT, MPI_Aint);
	PAIR(MPI_INT, int, MPI_LONG_LONG, long long);
	PAIR(MPI_INT16_T, int16_t, MPI_INT64_T, int64_t);
	PAIR(MPI_COUNT, MPI_Count, MPI_COUNT, MPI_Count);
	top = 1 << 20;
	PAIR(MPI_INT64_T, int64_t, MPI_INT, int);
	PAIR(MPI_INT32_T, int32_t, MPI_INT32_T, int32_t);
	OK(MPI_Win_free(&win));
	/* Named ones come by their names; what makes no pair is no mistake. */
	OK(MPI_Type_get_value_index(MPI_FLOAT, MPI_INT, &t));
	CHECK(t == MPI_FLOAT_INT);
	OK(MPI_Type_get_value_index(MPI_REAL, MPI_REAL, &t));
	CHECK(t == MPI_2REAL);
	OK(MPI_Type_get_value_index(MPI_C_BOOL, MPI_INT, &t));
	CHECK(t == MPI_DATATYPE_NULL);
	OK(MPI_Type_get_value_index(MPI_DOUBLE, MPI_FLOAT, &t));
	CHECK(t == MPI_DATATYPE_NULL);
	OK(MPI_Type_get_value_index(MPI_DOUBLE_INT, MPI_INT, &t));
	CHECK(t == MPI_DATATYPE_NULL);
	FAILS(MPI_Type_get_value_index(MPI_DATATYPE_NULL, MPI_INT, &t), MPI_ERR_TYPE);
}

int main(int argc, char **argv)
{
	test_start(&argc, &argv, MPI_THREAD_SINGLE);
	OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
	test_integers();
	test_others();
	test_f90();
	test_network();
	test_pairs();
	CHECK(done > 300);
	return test_end();
}
