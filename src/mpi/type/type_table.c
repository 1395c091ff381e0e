/* SPDX-License-Identifier: BSD-3-Clause */
/* type_table.c - predefined datatypes, datatype objects and their life. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "mpi/aid/check.h"
#include "mpi/type/type_contents.h"

/* MPI gives MPI_CHAR no operations; programs reduce it all the same, as the C type's numbers, and
 * other MPIs let them. */
#if CHAR_MIN < 0
#define WEFT_B_PLAIN_CHAR WEFT_B_I8
#else
#define WEFT_B_PLAIN_CHAR WEFT_B_U8
#endif

/* name, element; NONE: an optional datatype that this machine's compilers do not offer us */
#define PREDEFINED(X)                                                                              \
	X(MPI_AINT, I64)                                                                           \
	X(MPI_COUNT, I64)                                                                          \
	X(MPI_OFFSET, I64)                                                                         \
	X(MPI_PACKED, CHAR)                                                                        \
	X(MPI_SHORT, I16)                                                                          \
	X(MPI_INT, I32)                                                                            \
	X(MPI_LONG, LONG)                                                                          \
	X(MPI_LONG_LONG, I64)                                                                      \
	X(MPI_UNSIGNED_SHORT, U16)                                                                 \
	X(MPI_UNSIGNED, U32)                                                                       \
	X(MPI_UNSIGNED_LONG, ULONG)                                                                \
	X(MPI_UNSIGNED_LONG_LONG, U64)                                                             \
	X(MPI_FLOAT, F32)                                                                          \
	X(MPI_C_COMPLEX, C32)                                                                      \
	X(MPI_CXX_FLOAT_COMPLEX, C32)                                                              \
	X(MPI_DOUBLE, F64)                                                                         \
	X(MPI_C_DOUBLE_COMPLEX, C64)                                                               \
	X(MPI_CXX_DOUBLE_COMPLEX, C64)                                                             \
	X(MPI_LOGICAL, L32)                                                                        \
	X(MPI_INTEGER, I32)                                                                        \
	X(MPI_REAL, F32)                                                                           \
	X(MPI_COMPLEX, C32)                                                                        \
	X(MPI_DOUBLE_PRECISION, F64)                                                               \
	X(MPI_DOUBLE_COMPLEX, C64)                                                                 \
	X(MPI_CHARACTER, CHAR)                                                                     \
	X(MPI_LONG_DOUBLE, F80)                                                                    \
	X(MPI_C_LONG_DOUBLE_COMPLEX, C80)                                                          \
	X(MPI_CXX_LONG_DOUBLE_COMPLEX, C80)                                                        \
	X(MPI_FLOAT_INT, F32_I32)                                                                  \
	X(MPI_DOUBLE_INT, F64_I32)                                                                 \
	X(MPI_LONG_INT, I64_I32)                                                                   \
	X(MPI_2INT, I32_I32)                                                                       \
	X(MPI_SHORT_INT, I16_I32)                                                                  \
	X(MPI_LONG_DOUBLE_INT, F80_I32)                                                            \
	X(MPI_2REAL, F32_F32)                                                                      \
	X(MPI_2DOUBLE_PRECISION, F64_F64)                                                          \
	X(MPI_2INTEGER, I32_I32)                                                                   \
	X(MPI_C_BOOL, BOOL)                                                                        \
	X(MPI_CXX_BOOL, BOOL)                                                                      \
	X(MPI_WCHAR, WCHAR)                                                                        \
	X(MPI_INT8_T, I8)                                                                          \
	X(MPI_UINT8_T, U8)                                                                         \
	X(MPI_CHAR, PLAIN_CHAR)                                                                    \
	X(MPI_SIGNED_CHAR, I8)                                                                     \
	X(MPI_UNSIGNED_CHAR, U8)                                                                   \
	X(MPI_BYTE, BYTE)                                                                          \
	X(MPI_INT16_T, I16)                                                                        \
	X(MPI_UINT16_T, U16)                                                                       \
	X(MPI_INT32_T, I32)                                                                        \
	X(MPI_UINT32_T, U32)                                                                       \
	X(MPI_INT64_T, I64)                                                                        \
	X(MPI_UINT64_T, U64)                                                                       \
	X(MPI_LOGICAL1, L8)                                                                        \
	X(MPI_INTEGER1, I8)                                                                        \
	X(MPI_LOGICAL2, L16)                                                                       \
	X(MPI_INTEGER2, I16)                                                                       \
	X(MPI_REAL2, NONE)                                                                         \
	X(MPI_LOGICAL4, L32)                                                                       \
	X(MPI_INTEGER4, I32)                                                                       \
	X(MPI_REAL4, F32)                                                                          \
	X(MPI_COMPLEX4, NONE)                                                                      \
	X(MPI_LOGICAL8, L64)                                                                       \
	X(MPI_INTEGER8, I64)                                                                       \
	X(MPI_REAL8, F64)                                                                          \
	X(MPI_COMPLEX8, C32)                                                                       \
	X(MPI_LOGICAL16, NONE)                                                                     \
	X(MPI_INTEGER16, NONE)                                                                     \
	X(MPI_REAL16, NONE)                                                                        \
	X(MPI_COMPLEX16, C64)                                                                      \
	X(MPI_COMPLEX32, NONE)

struct row {
	MPI_Datatype handle;
	unsigned elem;
	const char *name;
};

static const struct row rows[] = {
#define X(name, elem) {name, WEFT_B_##elem, #name},
	PREDEFINED(X)
#undef X
};

static unsigned elem_now[weft_countof(rows)]; /* + 1; 0: as in its row */
static struct weft_mpi_type predefined[weft_countof(rows)];
uint8_t weft_mpi_type_bytes[WEFT_MPI_PREDEFINED_END];

/* Gives the i-th its layout. */
static void lay_out(size_t i)
{
	struct weft_mpi_type *t = &predefined[i];
	unsigned elem = elem_now[i] ? elem_now[i] - 1 : rows[i].elem;
	bool has = elem != WEFT_B_NONE;

	t->layout = has ? &weft_data_type_elem[elem] : NULL;
	t->committed = has;
	weft_mpi_type_bytes[(uintptr_t)rows[i].handle] =
		(uint8_t)(has && t->layout->flat && !weft_mpi_checking ? t->layout->size : 0);
}

int weft_mpi_types_init(void)
{
	for (size_t i = 0; i < weft_countof(rows); i++) {
		struct weft_mpi_type *t = &predefined[i];
		lay_out(i);
		t->predefined = true;
		t->combiner = MPI_COMBINER_NAMED;
		t->std_name = rows[i].name;
		weft_mpi_object_predefine(&t->head, WEFT_MPI_TYPE, rows[i].handle);
	}
	return MPI_SUCCESS;
}

/* The row of a datatype that is in the table. */
static size_t row_of(MPI_Datatype type)
{
	size_t i = 0;

	while (rows[i].handle != type)
		i++;
	weft_assert(i < weft_countof(rows));
	return i;
}

unsigned weft_mpi_type_usual(MPI_Datatype type)
{
	return rows[row_of(type)].elem;
}

MPI_Datatype weft_mpi_type_of_basic(enum weft_basic b)
{
	static const MPI_Datatype handle[WEFT_BASIC_COUNT] = {[WEFT_B_BYTE] = MPI_BYTE,
							      [WEFT_B_CHAR] = MPI_CHAR,
							      [WEFT_B_WCHAR] = MPI_WCHAR,
							      [WEFT_B_I8] = MPI_INT8_T,
							      [WEFT_B_I16] = MPI_SHORT,
							      [WEFT_B_I32] = MPI_INT,
							      [WEFT_B_I64] = MPI_INT64_T,
							      [WEFT_B_LONG] = MPI_LONG,
							      [WEFT_B_U8] = MPI_UNSIGNED_CHAR,
							      [WEFT_B_U16] = MPI_UNSIGNED_SHORT,
							      [WEFT_B_U32] = MPI_UNSIGNED,
							      [WEFT_B_U64] = MPI_UINT64_T,
							      [WEFT_B_ULONG] = MPI_UNSIGNED_LONG,
							      [WEFT_B_F32] = MPI_FLOAT,
							      [WEFT_B_F64] = MPI_DOUBLE,
							      [WEFT_B_F80] = MPI_LONG_DOUBLE,
							      [WEFT_B_C32] = MPI_C_FLOAT_COMPLEX,
							      [WEFT_B_C64] = MPI_C_DOUBLE_COMPLEX,
							      [WEFT_B_C80] =
								      MPI_C_LONG_DOUBLE_COMPLEX,
							      [WEFT_B_BOOL] = MPI_C_BOOL,
							      [WEFT_B_L8] = MPI_INT8_T,
							      [WEFT_B_L16] = MPI_SHORT,
							      [WEFT_B_L32] = MPI_INT,
							      [WEFT_B_L64] = MPI_INT64_T};
	return handle[b];
}

void weft_mpi_type_redefine(MPI_Datatype type, unsigned elem)
{
	size_t i = row_of(type);

	elem_now[i] = elem + 1;
	if (predefined[i].predefined) /* else MPI_Init does it */
		lay_out(i);
}

void weft_mpi_types_fini(void)
{
	for (size_t i = 0; i < weft_countof(rows); i++) {
		free(predefined[i].name);
		predefined[i].name = NULL;
	}
}

void weft_mpi_type_unref_last(struct weft_mpi_type *t)
{
	weft_data_type_unref(t->layout);
	weft_mpi_contents_unref(t->contents);
	free(t->name);
	free(t);
}

int weft_mpi_type_new(const struct weft_type *layout, int combiner,
		      struct weft_mpi_type_contents *contents, MPI_Datatype *type_p)
{
	struct weft_mpi_type *t = calloc(1, sizeof *t);
	if (!t || !contents || contents->failed)
		goto undo;
	t->layout = layout;
	t->combiner = combiner;
	t->contents = contents;
	atomic_init(&t->head.x_refs, 1);
	if (weft_mpi_object_new(&t->head, WEFT_MPI_TYPE))
		goto undo;
	*type_p = (MPI_Datatype)(uintptr_t)t->head.handle;
	return MPI_SUCCESS;
undo:
	free(t);
	weft_data_type_unref(layout);
	weft_mpi_contents_unref(contents);
	return weft_mpi_err(MPI_ERR_NO_MEM, "no memory for a datatype");
}

int weft_mpi_type_again(struct weft_mpi_type *t, MPI_Datatype *type_p)
{
	if (t->predefined) {
		*type_p = (MPI_Datatype)(uintptr_t)t->head.handle;
		return MPI_SUCCESS;
	}
	weft_data_type_ref(t->layout);
	weft_mpi_contents_ref(t->contents);
	int err = weft_mpi_type_new(t->layout, t->combiner, t->contents, type_p);
	if (!err)
		weft_mpi_type_of(*type_p)->committed = t->committed;
	return err;
}

weft_err weft_mpi_buf_slow(const void *base, MPI_Count count, MPI_Datatype type,
			   struct weft_buf *buf_p)
{
	const struct weft_mpi_type *t = weft_mpi_type_of(type);
	if (!t) { /* MPI_DATATYPE_NULL, to or from MPI_PROC_NULL */
		*buf_p = weft_data_buf_flat(NULL, 0);
		return WEFT_OK;
	}
	if (!t->committed) {
		weft_mpi_err(MPI_ERR_TYPE,
			     t->layout ? "the datatype is not committed: call MPI_Type_commit first"
				       : "%s is not supported on this machine",
			     t->std_name);
		return WEFT_ERR_ARG;
	}
	size_t bytes;
	ptrdiff_t span;
	if (__builtin_mul_overflow((size_t)count, t->layout->size, &bytes) || bytes > PTRDIFF_MAX ||
	    __builtin_mul_overflow((ptrdiff_t)count, weft_data_type_extent(t->layout), &span)) {
		weft_mpi_err(MPI_ERR_COUNT, "%lld elements of %zu bytes do not fit in memory",
			     (long long)count, t->layout->size);
		return WEFT_ERR_LIMIT;
	}
	*buf_p = weft_data_buf_typed(base, (size_t)count, t->layout);
	return WEFT_OK;
}

int weft_mpi_Type_commit(MPI_Datatype *datatype)
{
	struct weft_mpi_type *t = weft_mpi_type_of(*datatype);
	if (!t)
		return weft_mpi_err(MPI_ERR_TYPE, "invalid datatype");
	if (t->layout)
		t->committed = true;
	return MPI_SUCCESS;
}

int weft_mpi_Type_free(MPI_Datatype *datatype)
{
	struct weft_mpi_type *t = weft_mpi_type_of(*datatype);
	if (!t)
		return weft_mpi_err(MPI_ERR_TYPE, "invalid datatype");
	if (t->predefined)
		return weft_mpi_err(MPI_ERR_TYPE, "%s is predefined and cannot be freed",
				    t->std_name ? t->std_name : "the datatype");
	int err = weft_mpi_attrs_free(&t->head);
	if (err)
		return err;
	weft_mpi_object_retire(&t->head);
	weft_mpi_type_unref(t);
	*datatype = MPI_DATATYPE_NULL;
	return MPI_SUCCESS;
}

int weft_mpi_Type_dup(MPI_Datatype oldtype, MPI_Datatype *newtype)
{
	struct weft_mpi_type *old = weft_mpi_type_of(oldtype);
	*newtype = MPI_DATATYPE_NULL; /* what a failure leaves */
	if (!old->layout)
		return weft_mpi_err(MPI_ERR_TYPE, "%s is not supported on this machine",
				    old->std_name);
	struct weft_mpi_type_contents *c = weft_mpi_contents_new();
	weft_mpi_contents_add_type(c, old);
	MPI_Datatype made;
	int err = weft_mpi_type_new(weft_data_type_ref(old->layout), MPI_COMBINER_DUP, c, &made);
	if (err)
		return err;
	struct weft_mpi_type *t = weft_mpi_type_of(made);
	t->committed = old->committed;
	err = weft_mpi_attrs_copy(&old->head, &t->head);
	if (err) {
		weft_mpi_object_retire(&t->head);
		weft_mpi_type_unref(t);
		return err;
	}
	*newtype = made;
	return MPI_SUCCESS;
}

MPI_Datatype weft_mpi_Type_fromint(int datatype)
{
	return weft_mpi_handle_fromint(datatype);
}

int weft_mpi_Type_toint(MPI_Datatype datatype)
{
	return weft_mpi_handle_toint(datatype);
}
