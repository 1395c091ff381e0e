/* SPDX-License-Identifier: BSD-3-Clause */
/* section_types_c.c - a tool: packs what MPI_Pack_external is given by the contents of its datatype, and compares. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#define MOST 64

static int compared, as_bytes;

/* The basic elements of a datatype in their order. */
struct map {
	int n;
	struct {
		MPI_Aint at;
		int size;
	} part[MOST];
};

void c_seen(int *compared_p, int *bytes_p);

void c_seen(int *compared_p, int *bytes_p)
{
	*compared_p = compared;
	*bytes_p = as_bytes;
}

static void walk(struct map *m, MPI_Datatype type, MPI_Aint at);

static void walk_block(struct map *m, MPI_Datatype type, MPI_Aint at, MPI_Count n)
{
	MPI_Aint lb, extent;
	PMPI_Type_get_extent(type, &lb, &extent);
	for (MPI_Count i = 0; i < n; i++)
		walk(m, type, at + i * extent);
}

static void walk_named(struct map *m, MPI_Datatype type, MPI_Aint at)
{
	if (m->n == MOST)
		abort();
	as_bytes += type == MPI_BYTE;
	m->part[m->n].at = at;
	PMPI_Type_size(type, &m->part[m->n++].size);
}

/* Gives back what MPI_Type_get_contents made. */
static void done_with(MPI_Datatype *types, MPI_Count n)
{
	for (MPI_Count i = 0; i < n; i++) {
		MPI_Count a, b, c, d;
		int combiner;
		PMPI_Type_get_envelope_c(types[i], &a, &b, &c, &d, &combiner);
		if (combiner != MPI_COMBINER_NAMED)
			PMPI_Type_free(&types[i]);
	}
}

/* The numbers that a datatype was made of, in the order of its maker's arguments, but for the datatypes. */
static int contents_of(MPI_Datatype type, MPI_Count *number, MPI_Datatype *types, MPI_Count *nt)
{
	MPI_Count ni, na, nl;
	int combiner, ints[MOST];
	MPI_Aint addrs[MOST];
	PMPI_Type_get_envelope_c(type, &ni, &na, &nl, nt, &combiner);
	if (ni + na + nl > MOST || *nt > MOST)
		abort();
	if (combiner == MPI_COMBINER_NAMED)
		return combiner;
	PMPI_Type_get_contents_c(type, ni, na, nl, *nt, ints, addrs, number + ni + na, types);
	for (MPI_Count i = 0; i < ni; i++)
		number[i] = ints[i];
	for (MPI_Count i = 0; i < na; i++)
		number[ni + i] = addrs[i];
	return combiner;
}

static void walk(struct map *m, MPI_Datatype type, MPI_Aint at)
{
	MPI_Count number[MOST], nt;
	MPI_Datatype types[MOST];
	int combiner = contents_of(type, number, types, &nt);
	const MPI_Count *length = number + 1, *place = number + 1 + number[0];
	switch (combiner) {
	case MPI_COMBINER_NAMED:
		walk_named(m, type, at);
		return;
	case MPI_COMBINER_RESIZED:
		walk(m, types[0], at);
		break;
	case MPI_COMBINER_CONTIGUOUS:
		walk_block(m, types[0], at, number[0]);
		break;
	case MPI_COMBINER_HVECTOR:
		for (MPI_Count i = 0; i < number[0]; i++)
			walk_block(m, types[0], at + i * number[2], number[1]);
		break;
	case MPI_COMBINER_HINDEXED:
		for (MPI_Count i = 0; i < number[0]; i++)
			walk_block(m, types[0], at + place[i], length[i]);
		break;
	case MPI_COMBINER_STRUCT:
		for (MPI_Count i = 0; i < number[0]; i++)
			walk_block(m, types[i], at + place[i], length[i]);
		break;
	default:
		abort();
	}
	done_with(types, nt);
}

/* Is packed[0..bytes) what m says of data at `from`, most significant bytes first? */
static void compare(const struct map *m, const char *from, const char *packed, MPI_Aint bytes)
{
	MPI_Aint at = 0;
	for (int i = 0; i < m->n; i++)
		for (int k = m->part[i].size; k--; at++)
			if (packed[at] != from[m->part[i].at + k])
				abort();
	if (at != bytes)
		abort();
	compared++;
}

int MPI_Pack_external(const char datarep[], const void *inbuf, int incount, MPI_Datatype datatype,
		      void *outbuf, MPI_Aint outsize, MPI_Aint *position)
{
	struct map m = {.n = 0};
	MPI_Aint at = *position;
	int err = PMPI_Pack_external(datarep, inbuf, incount, datatype, outbuf, outsize, position);
	walk_block(&m, datatype, 0, incount);
	compare(&m, inbuf, (char *)outbuf + at, *position - at);
	return err;
}

/* What INTEGERs of 8 bytes come to. */
int MPI_Pack_external_c(const char datarep[], const void *inbuf, MPI_Count incount,
			MPI_Datatype datatype, void *outbuf, MPI_Count outsize, MPI_Count *position)
{
	struct map m = {.n = 0};
	MPI_Count at = *position;
	int err =
		PMPI_Pack_external_c(datarep, inbuf, incount, datatype, outbuf, outsize, position);
	walk_block(&m, datatype, 0, incount);
	compare(&m, inbuf, (char *)outbuf + at, *position - at);
	return err;
}
