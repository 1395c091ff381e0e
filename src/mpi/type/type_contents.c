/* SPDX-License-Identifier: BSD-3-Clause */
/* type_contents.c - how datatypes were made: the record, the envelope, the contents. */
#include "mpi/entry.h"
#include "mpi/type/type_contents.h"

#include <stdlib.h>

struct weft_mpi_type_contents *weft_mpi_contents_new(void)
{
	struct weft_mpi_type_contents *c = calloc(1, sizeof *c);
	if (c)
		atomic_init(&c->x_refs, 1);
	return c;
}

void weft_mpi_contents_ref(struct weft_mpi_type_contents *c)
{
	/* Relaxed: the caller holds a reference. */
	if (c)
		atomic_fetch_add_explicit(&c->x_refs, 1, memory_order_relaxed);
}

void weft_mpi_contents_unref(struct weft_mpi_type_contents *c)
{
	/* LAST -> itself.  Carries: every owner's reads; without it we could free under them. */
	if (!c || atomic_fetch_sub_explicit(&c->x_refs, 1, memory_order_acq_rel) != 1)
		return;
	for (size_t i = 0; i < c->types_n; i++)
		weft_mpi_type_unref(c->types[i]);
	free(c->types);
	free(c->item);
	free(c);
}

/* Room for one more entry of `size` bytes in *mem. */
static bool grow_list(void **mem, size_t n, size_t *cap, size_t size)
{
	if (n < *cap)
		return true;
	size_t now = *cap ? 2 * *cap : 8;
	void *p = realloc(*mem, now * size);
	if (!p)
		return false;
	*mem = p;
	*cap = now;
	return true;
}

void weft_mpi_contents_add(struct weft_mpi_type_contents *c, enum weft_mpi_item_kind kind,
			   int64_t value)
{
	if (!c || c->failed)
		return;
	void *mem = c->item;
	if (!grow_list(&mem, c->n, &c->cap, sizeof *c->item)) {
		c->failed = true;
		return;
	}
	c->item = mem;
	c->item[c->n++] = (struct weft_mpi_item){.kind = (uint8_t)kind, .value = value};
}

void weft_mpi_contents_add_all(struct weft_mpi_type_contents *c, enum weft_mpi_item_kind kind,
			       const MPI_Count *values, MPI_Count n)
{
	for (MPI_Count i = 0; i < n; i++)
		weft_mpi_contents_add(c, kind, values[i]);
}

void weft_mpi_contents_add_type(struct weft_mpi_type_contents *c, struct weft_mpi_type *t)
{
	if (!c || c->failed)
		return;
	void *mem = c->types;
	if (!grow_list(&mem, c->types_n, &c->types_cap, sizeof *c->types)) {
		c->failed = true;
		return;
	}
	c->types = mem;
	weft_mpi_type_ref(t);
	c->types[c->types_n++] = t;
}

void weft_mpi_type_made_large(MPI_Datatype made)
{
	weft_mpi_type_of(made)->contents->large = true;
}

/* Where an item goes in the form that c has. */
enum place { PLACE_INT, PLACE_ADDR, PLACE_LARGE };

static enum place place_of(const struct weft_mpi_type_contents *c, const struct weft_mpi_item *it)
{
	if (it->kind == WEFT_MPI_ITEM_INT)
		return PLACE_INT;
	if (c->large)
		return PLACE_LARGE;
	return it->kind == WEFT_MPI_ITEM_COUNT ? PLACE_INT : PLACE_ADDR;
}

static void count_items(const struct weft_mpi_type *t, MPI_Count n[3], MPI_Count *types)
{
	const struct weft_mpi_type_contents *c = t->contents;
	n[0] = n[1] = n[2] = *types = 0;
	if (!c)
		return;
	for (size_t i = 0; i < c->n; i++)
		n[place_of(c, &c->item[i])]++;
	*types = (MPI_Count)c->types_n;
}

int weft_mpi_Type_get_envelope(MPI_Datatype datatype, MPI_Count *num_integers,
			       MPI_Count *num_addresses, MPI_Count *num_large_counts,
			       MPI_Count *num_datatypes, int *combiner)
{
	const struct weft_mpi_type *t = weft_mpi_type_of(datatype);
	MPI_Count n[3];
	count_items(t, n, num_datatypes);
	*num_integers = n[PLACE_INT];
	*num_addresses = n[PLACE_ADDR];
	*num_large_counts = n[PLACE_LARGE];
	*combiner = t->combiner;
	return MPI_SUCCESS;
}

int weft_mpi_Type_get_contents(MPI_Datatype datatype, MPI_Count max_integers,
			       MPI_Count max_addresses, MPI_Count max_large_counts,
			       MPI_Count max_datatypes, int array_of_integers[],
			       MPI_Aint array_of_addresses[], MPI_Count array_of_large_counts[],
			       MPI_Datatype array_of_datatypes[])
{
	const struct weft_mpi_type *t = weft_mpi_type_of(datatype);
	const struct weft_mpi_type_contents *c = t->contents;
	MPI_Count n[3], types, at[3] = {0};
	if (!c)
		return weft_mpi_err(MPI_ERR_TYPE, "a predefined datatype has no contents");
	if (c->large && !array_of_large_counts && !max_large_counts)
		return weft_mpi_err(MPI_ERR_TYPE, "the datatype was made with large counts: use "
						  "MPI_Type_get_contents_c");
	count_items(t, n, &types);
	if (max_integers < n[PLACE_INT] || max_addresses < n[PLACE_ADDR] ||
	    max_large_counts < n[PLACE_LARGE] || max_datatypes < types)
		return weft_mpi_err(MPI_ERR_ARG,
				    "arrays too short: the datatype has %lld integers, %lld "
				    "addresses, %lld large counts, %lld datatypes",
				    (long long)n[0], (long long)n[1], (long long)n[2],
				    (long long)types);
	for (size_t i = 0; i < c->n; i++) {
		enum place p = place_of(c, &c->item[i]);
		if (p == PLACE_INT)
			array_of_integers[at[p]++] = (int)c->item[i].value;
		else if (p == PLACE_ADDR)
			array_of_addresses[at[p]++] = (MPI_Aint)c->item[i].value;
		else
			array_of_large_counts[at[p]++] = c->item[i].value;
	}
	for (size_t i = 0; i < c->types_n; i++) {
		int err = weft_mpi_type_again(c->types[i], &array_of_datatypes[i]);
		if (err)
			return err;
	}
	return MPI_SUCCESS;
}
