/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 */
/* The envelope and the contents of every combiner, made by the int and by the large-count constructor:
 * what a type was made with comes back, and makes the same type again. */
#include <stdlib.h>

#include "mpitest.h"

#define MOST 32

struct contents {
	MPI_Count ni, na, nl, nd;
	int combiner;
	int i[MOST];
	MPI_Aint a[MOST];
	MPI_Count l[MOST];
	MPI_Datatype d[MOST];
};

static struct contents read_contents(MPI_Datatype t)
{
	struct contents c = {0};

	OK(MPI_Type_get_envelope_c(t, &c.ni, &c.na, &c.nl, &c.nd, &c.combiner));
	CHECK(c.ni <= MOST && c.na <= MOST && c.nl <= MOST && c.nd <= MOST);
	OK(MPI_Type_get_contents_c(t, c.ni, c.na, c.nl, c.nd, c.i, c.a, c.l, c.d));
	return c;
}

/* Number k of the counts and addresses of a type in their order: large ones or ints. */
static MPI_Count count_at(const struct contents *c, int k)
{
	return c->nl ? c->l[k] : c->i[k];
}

static void widths(const struct contents *c, int large, MPI_Count ints, MPI_Count counts,
		   MPI_Count addresses)
{
	CHECK_EQ(c->ni, ints + (large ? 0 : counts));
	CHECK_EQ(c->na, large ? 0 : addresses);
	CHECK_EQ(c->nl, large ? counts + addresses : 0);
}

static int n2[2] = {2, 3}, d2[2] = {4, 0};
static MPI_Count n2c[2] = {2, 3}, d2c[2] = {4, 0}, h2c[2] = {64, 0};
static MPI_Aint h2[2] = {64, 0};
static MPI_Datatype t2[2] = {MPI_INT, MPI_DOUBLE};
static int sizes[2] = {10, 20}, subsizes[2] = {4, 5}, starts[2] = {1, 2};
static MPI_Count sizes_c[2] = {10, 20}, subsizes_c[2] = {4, 5}, starts_c[2] = {1, 2};
static int distribs[2] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC};
static int dargs[2] = {MPI_DISTRIBUTE_DFLT_DARG, 3}, psizes[2] = {2, 2};

static MPI_Datatype make(int combiner, int large)
{
	MPI_Datatype t = MPI_DATATYPE_NULL;

#define EITHER(plain, wide) OK(large ? (wide) : (plain))
	switch (combiner) {
	case MPI_COMBINER_DUP:
		OK(MPI_Type_dup(MPI_INT, &t));
		break;
	case MPI_COMBINER_CONTIGUOUS:
		EITHER(MPI_Type_contiguous(7, MPI_INT, &t), MPI_Type_contiguous_c(7, MPI_INT, &t));
		break;
	case MPI_COMBINER_VECTOR:
		EITHER(MPI_Type_vector(3, 2, -5, MPI_INT, &t),
		       MPI_Type_vector_c(3, 2, -5, MPI_INT, &t));
		break;
	case MPI_COMBINER_HVECTOR:
		EITHER(MPI_Type_create_hvector(3, 2, -20, MPI_INT, &t),
		       MPI_Type_create_hvector_c(3, 2, -20, MPI_INT, &t));
		break;
	case MPI_COMBINER_INDEXED:
		EITHER(MPI_Type_indexed(2, n2, d2, MPI_INT, &t),
		       MPI_Type_indexed_c(2, n2c, d2c, MPI_INT, &t));
		break;
	case MPI_COMBINER_HINDEXED:
		EITHER(MPI_Type_create_hindexed(2, n2, h2, MPI_INT, &t),
		       MPI_Type_create_hindexed_c(2, n2c, h2c, MPI_INT, &t));
		break;
	case MPI_COMBINER_INDEXED_BLOCK:
		EITHER(MPI_Type_create_indexed_block(2, 3, d2, MPI_INT, &t),
		       MPI_Type_create_indexed_block_c(2, 3, d2c, MPI_INT, &t));
		break;
	case MPI_COMBINER_HINDEXED_BLOCK:
		EITHER(MPI_Type_create_hindexed_block(2, 3, h2, MPI_INT, &t),
		       MPI_Type_create_hindexed_block_c(2, 3, h2c, MPI_INT, &t));
		break;
	case MPI_COMBINER_STRUCT:
		EITHER(MPI_Type_create_struct(2, n2, h2, t2, &t),
		       MPI_Type_create_struct_c(2, n2c, h2c, t2, &t));
		break;
	case MPI_COMBINER_SUBARRAY:
		EITHER(MPI_Type_create_subarray(2, sizes, subsizes, starts, MPI_ORDER_FORTRAN,
						MPI_INT, &t),
		       MPI_Type_create_subarray_c(2, sizes_c, subsizes_c, starts_c,
						  MPI_ORDER_FORTRAN, MPI_INT, &t));
		break;
	case MPI_COMBINER_DARRAY:
		EITHER(MPI_Type_create_darray(4, 2, 2, sizes, distribs, dargs, psizes, MPI_ORDER_C,
					      MPI_INT, &t),
		       MPI_Type_create_darray_c(4, 2, 2, sizes_c, distribs, dargs, psizes,
						MPI_ORDER_C, MPI_INT, &t));
		break;
	case MPI_COMBINER_RESIZED:
		EITHER(MPI_Type_create_resized(MPI_INT, -4, 16, &t),
		       MPI_Type_create_resized_c(MPI_INT, -4, 16, &t));
		break;
	case MPI_COMBINER_F90_REAL:
		OK(MPI_Type_create_f90_real(10, MPI_UNDEFINED, &t));
		break;
	case MPI_COMBINER_F90_COMPLEX:
		OK(MPI_Type_create_f90_complex(5, 20, &t));
		break;
	case MPI_COMBINER_F90_INTEGER:
		OK(MPI_Type_create_f90_integer(8, &t));
		break;
	}
	return t;
}

/* How many ints, counts and addresses MPI's table gives each combiner, by MPI 5.0, 5.1.13. */
static const struct {
	int combiner, ints, counts, addresses, types, both_forms;
} rows[] = {
	{MPI_COMBINER_DUP, 0, 0, 0, 1, 0},           {MPI_COMBINER_CONTIGUOUS, 0, 1, 0, 1, 1},
	{MPI_COMBINER_VECTOR, 0, 3, 0, 1, 1},        {MPI_COMBINER_HVECTOR, 0, 2, 1, 1, 1},
	{MPI_COMBINER_INDEXED, 0, 5, 0, 1, 1},       {MPI_COMBINER_HINDEXED, 0, 3, 2, 1, 1},
	{MPI_COMBINER_INDEXED_BLOCK, 0, 4, 0, 1, 1}, {MPI_COMBINER_HINDEXED_BLOCK, 0, 2, 2, 1, 1},
	{MPI_COMBINER_STRUCT, 0, 3, 2, 2, 1},        {MPI_COMBINER_SUBARRAY, 2, 6, 0, 1, 1},
	{MPI_COMBINER_DARRAY, 10, 2, 0, 1, 1},       {MPI_COMBINER_RESIZED, 0, 0, 2, 1, 1},
	{MPI_COMBINER_F90_REAL, 2, 0, 0, 0, 0},      {MPI_COMBINER_F90_COMPLEX, 2, 0, 0, 0, 0},
	{MPI_COMBINER_F90_INTEGER, 1, 0, 0, 0, 0},
};

/* The values of those whose places differ between the forms. */
static void check_values(const struct contents *c, int large)
{
	switch (c->combiner) {
	case MPI_COMBINER_HVECTOR:
		CHECK(count_at(c, 0) == 3 && count_at(c, 1) == 2);
		CHECK_EQ(large ? c->l[2] : c->a[0], -20);
		break;
	case MPI_COMBINER_STRUCT:
	case MPI_COMBINER_HINDEXED:
		CHECK(count_at(c, 0) == 2 && count_at(c, 1) == 2 && count_at(c, 2) == 3);
		CHECK_EQ(large ? c->l[3] : c->a[0], 64);
		CHECK_EQ(large ? c->l[4] : c->a[1], 0);
		break;
	case MPI_COMBINER_SUBARRAY:
		CHECK_EQ(c->i[0], 2);
		CHECK_EQ(c->i[c->ni - 1], MPI_ORDER_FORTRAN);
		for (int k = 0; k < 2; k++) {
			CHECK_EQ(large ? c->l[k] : c->i[1 + k], sizes[k]);
			CHECK_EQ(large ? c->l[2 + k] : c->i[3 + k], subsizes[k]);
			CHECK_EQ(large ? c->l[4 + k] : c->i[5 + k], starts[k]);
		}
		break;
	case MPI_COMBINER_DARRAY:
		CHECK(c->i[0] == 4 && c->i[1] == 2 && c->i[2] == 2);
		CHECK_EQ(c->i[c->ni - 1], MPI_ORDER_C);
		for (int k = 0; k < 2; k++) {
			CHECK_EQ(large ? c->l[k] : c->i[3 + k], sizes[k]);
			CHECK_EQ(c->i[c->ni - 7 + k], distribs[k]);
			CHECK_EQ(c->i[c->ni - 5 + k], dargs[k]);
			CHECK_EQ(c->i[c->ni - 3 + k], psizes[k]);
		}
		break;
	case MPI_COMBINER_RESIZED:
		CHECK_EQ(large ? c->l[0] : c->a[0], -4);
		CHECK_EQ(large ? c->l[1] : c->a[1], 16);
		break;
	default:
		break;
	}
}

/* What only the int functions can ask, and refuse for large counts. */
static void int_form(MPI_Datatype t, const struct contents *c)
{
	int ni = -1, na = -1, nd = -1, combiner = -1, i[MOST];
	MPI_Aint a[MOST];
	MPI_Datatype d[MOST];

	if (c->nl) {
		FAILS(MPI_Type_get_envelope(t, &ni, &na, &nd, &combiner), MPI_ERR_TYPE);
		FAILS(MPI_Type_get_contents(t, MOST, MOST, MOST, i, a, d), MPI_ERR_TYPE);
		return;
	}
	OK(MPI_Type_get_envelope(t, &ni, &na, &nd, &combiner));
	CHECK(ni == c->ni && na == c->na && nd == c->nd && combiner == c->combiner);
	OK(MPI_Type_get_contents(t, ni, na, nd, i, a, d));
	CHECK(memcmp(i, c->i, (size_t)ni * sizeof(int)) == 0);
	CHECK(memcmp(a, c->a, (size_t)na * sizeof(MPI_Aint)) == 0);
}

/* A duplicate is made of the type, which keeps its form. */
static void duplicate(MPI_Datatype t, const struct contents *c)
{
	MPI_Datatype dup;

	OK(MPI_Type_dup(t, &dup));
	struct contents outer = read_contents(dup);
	CHECK(outer.combiner == MPI_COMBINER_DUP && outer.nd == 1 && !outer.ni && !outer.nl);
	if (c->combiner < MPI_COMBINER_F90_INTEGER || c->nd) {
		struct contents inner = read_contents(outer.d[0]);
		CHECK(inner.combiner == c->combiner && inner.nl == c->nl && inner.ni == c->ni);
		OK(MPI_Type_free(&outer.d[0]));
	}
	OK(MPI_Type_free(&dup));
}

int main(int argc, char **argv)
{
	test_start(&argc, &argv, MPI_THREAD_SINGLE);
	OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
	for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
		for (int large = 0; large <= rows[k].both_forms; large++) {
			MPI_Datatype t = make(rows[k].combiner, large);
			struct contents c = read_contents(t);
			CHECK_EQ(c.combiner, rows[k].combiner);
			CHECK_EQ(c.nd, rows[k].types);
			widths(&c, large, rows[k].ints, rows[k].counts, rows[k].addresses);
			check_values(&c, large);
			int_form(t, &c);
			if (c.nd) {
				CHECK(c.d[0] == MPI_INT);
				duplicate(t, &c);
				OK(MPI_Type_free(&t));
			}
		}
	}
	return test_end();
}
