/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 0 */
/* Every function of the ABI's table is in the library, twice; a program that loaded the library
 * with RTLD_LOCAL, alone, can use it; so is what mpi-ext.h declares; nothing else than MPI_, PMPI_, MPIX_, PMPIX_ and weft_ is exported. */
#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>

#include "mpitest.h"

#define EXTENSIONS 10

static void *library;

static void all_there(void)
{
	char line[4096], name[4100];
	FILE *f = fopen(WEFT_ABI_TABLES "/functions.tsv", "r");
	int n = 0;

	CHECK(f != NULL);
	CHECK(fgets(line, sizeof(line), f) != NULL);
	while (fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\t")] = 0;
		snprintf(name, sizeof(name), "P%s", line);
		if (!dlsym(library, line) || !dlsym(library, name)) {
			fprintf(stderr, "missing: %s\n", line);
			exit(1);
		}
		n++;
	}
	fclose(f);
	CHECK_EQ(n, 664);
}

/* weft info --mpi names them, and each is there twice. */
static void extensions_there(void)
{
	const char *const *ext = dlsym(library, "weft_mpi_extensions");
	char name[100];
	int n = 0;

	CHECK(ext != NULL);
	for (; ext[n]; n++) {
		snprintf(name, sizeof(name), "P%s", ext[n]);
		CHECK(dlsym(library, ext[n]) != NULL);
		CHECK(dlsym(library, name) != NULL);
	}
	CHECK_EQ(n, EXTENSIONS);
}

static void usable(void)
{
	int (*init)(int *, char ***), (*fini)(void), (*comm_size)(MPI_Comm, int *), n = 0;

	*(void **)&init = dlsym(library, "MPI_Init");
	*(void **)&fini = dlsym(library, "MPI_Finalize");
	*(void **)&comm_size = dlsym(library, "MPI_Comm_size");
	OK(init(NULL, NULL));
	OK(comm_size(MPI_COMM_WORLD, &n));
	CHECK_EQ(n, 1);
	OK(fini());
}

/* Names in the dynamic symbol table that the library defines. */
static void nothing_else(void)
{
	struct link_map *map = NULL;
	const ElfW(Sym) *syms = NULL;
	const char *names = NULL;
	const uint32_t *gnu = NULL;

	CHECK_EQ(dlinfo(library, RTLD_DI_LINKMAP, &map), 0);
	for (const ElfW(Dyn) *d = map->l_ld; d->d_tag != DT_NULL; d++) {
		if (d->d_tag == DT_SYMTAB)
			syms = (const void *)d->d_un.d_ptr;
		if (d->d_tag == DT_STRTAB)
			names = (const void *)d->d_un.d_ptr;
		if (d->d_tag == DT_GNU_HASH)
			gnu = (const void *)d->d_un.d_ptr;
	}
	CHECK(syms && names && gnu);
	uint32_t buckets = gnu[0], first = gnu[1], words = gnu[2], last = 0;
	const uint32_t *bucket = gnu + 4 + words * (sizeof(ElfW(Addr)) / 4);
	const uint32_t *chain = bucket + buckets;
	for (uint32_t i = 0; i < buckets; i++)
		last = bucket[i] > last ? bucket[i] : last;
	while (last >= first && !(chain[last - first] & 1))
		last++;
	for (uint32_t i = first; i <= last; i++) {
		const char *name = names + syms[i].st_name;
		if (syms[i].st_shndx == SHN_ABS)
			continue;
		if (strncmp(name, "MPI_", 4) && strncmp(name, "PMPI_", 5) &&
		    strncmp(name, "MPIX_", 5) && strncmp(name, "PMPIX_", 6) &&
		    strncmp(name, "weft_", 5)) {
			fprintf(stderr, "exported as well: %s\n", name);
			exit(1);
		}
	}
}

int main(void)
{
	void *linked = dlopen("libmpi_abi.so.1", RTLD_NOW | RTLD_LOCAL);

	library = linked;
	CHECK(library != NULL);
	all_there();
	extensions_there();
	nothing_else();
	usable();
	CHECK_EQ(dlclose(library), 0);
	return 0;
}
