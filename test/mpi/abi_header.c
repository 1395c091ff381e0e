/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 0 */
/* mpi.h: a function with data and an int count has a large-count form, and partitioned calls, which
 * count in MPI_Count from the start, have none. */
#include <stdbool.h>
#include <stdlib.h>

#include "mpitest.h"

#define HAS_TYPE(function, type) _Generic(&(function), type : true, default : false)

typedef int psend_init(const void *buf, int partitions, MPI_Count count, MPI_Datatype datatype,
		       int dest, int tag, MPI_Comm comm, MPI_Info info, MPI_Request *request);
typedef int precv_init(void *buf, int partitions, MPI_Count count, MPI_Datatype datatype, int dest,
		       int tag, MPI_Comm comm, MPI_Info info, MPI_Request *request);

_Static_assert(HAS_TYPE(MPI_Psend_init, psend_init *), "");
_Static_assert(HAS_TYPE(PMPI_Psend_init, psend_init *), "");
_Static_assert(HAS_TYPE(MPI_Precv_init, precv_init *), "");
_Static_assert(HAS_TYPE(PMPI_Precv_init, precv_init *), "");

static char *header;

static void read_header(void)
{
	FILE *f = fopen(WEFT_MPI_H, "r");
	long bytes;

	CHECK(f != NULL);
	CHECK_EQ(fseek(f, 0, SEEK_END), 0);
	bytes = ftell(f);
	rewind(f);
	CHECK(bytes > 0);
	header = calloc((size_t)bytes + 1, 1);
	CHECK(header != NULL);
	CHECK_EQ(fread(header, 1, (size_t)bytes, f), (size_t)bytes);
	fclose(f);
}

static bool declared(const char *name, const char *suffix)
{
	char text[128];

	snprintf(text, sizeof(text), "int %s%s(", name, suffix);
	return strstr(header, text) != NULL;
}

/* A line of the header that declares a function that moves `int count` elements of a datatype. */
static bool counts_in_int(const char *line, char name[64])
{
	return sscanf(line, "int %63[A-Za-z_](", name) == 1 && strstr(line, "(") &&
	       strstr(line, "MPI_Datatype datatype") && strstr(line, " int count,");
}

int main(void)
{
	int counted = 0;
	char *text, name[64], *rest = NULL;

	read_header();
	text = strdup(header);
	CHECK(text != NULL);
	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		if (!counts_in_int(line, name))
			continue;
		counted++;
		if (!declared(name, "_c")) {
			fprintf(stderr, "%s counts in int and has no large-count form\n", name);
			exit(1);
		}
	}
	CHECK(counted > 40);
	CHECK(declared("MPI_Psend_init", "") && !declared("MPI_Psend_init", "_c"));
	CHECK(declared("MPI_Precv_init", "") && !declared("MPI_Precv_init", "_c"));
	free(text);
	free(header);
	return 0;
}
