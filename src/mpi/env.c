/* SPDX-License-Identifier: BSD-3-Clause */
/* env.c - versions, names, clocks, memory: inquiries that need no communication. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "mpi/info.h"

/* ---- versions ----------------------------------------------------------------------------- */

int weft_mpi_Get_version(int *version, int *subversion)
{
	*version = MPI_VERSION;
	*subversion = MPI_SUBVERSION;
	return MPI_SUCCESS;
}

int weft_mpi_Get_library_version(char *version, int *resultlen)
{
	*resultlen = snprintf(version, MPI_MAX_LIBRARY_VERSION_STRING, "weft %s, MPI %d.%d",
			      WEFT_VERSION, MPI_VERSION, MPI_SUBVERSION);
	return MPI_SUCCESS;
}

int weft_mpi_Abi_get_version(int *abi_major, int *abi_minor)
{
	*abi_major = MPI_ABI_VERSION;
	*abi_minor = MPI_ABI_SUBVERSION;
	return MPI_SUCCESS;
}

int weft_mpi_Abi_get_info(MPI_Info *info)
{
	struct weft_mpi_info *i = weft_mpi_info_make();
	char n[16];
	int err = MPI_SUCCESS;
	const struct {
		const char *key;
		size_t size;
	} sizes[] = {{"mpi_aint_size", sizeof(MPI_Aint)},
		     {"mpi_count_size", sizeof(MPI_Count)},
		     {"mpi_offset_size", sizeof(MPI_Offset)}};

	for (size_t k = 0; i && !err && k < weft_countof(sizes); k++) {
		snprintf(n, sizeof(n), "%zu", sizes[k].size);
		err = weft_mpi_info_put(i, sizes[k].key, n);
	}
	if (err) {
		weft_mpi_info_free(i);
		return err;
	}
	return weft_mpi_info_name(i, info);
}

/* ---- names and clocks --------------------------------------------------------------------- */

int weft_mpi_Get_processor_name(char *name, int *resultlen)
{
	struct utsname u;

	if (uname(&u) != 0)
		return weft_mpi_err(MPI_ERR_OTHER, "uname failed");
	*resultlen = snprintf(name, MPI_MAX_PROCESSOR_NAME, "%s", u.nodename);
	return MPI_SUCCESS;
}

double weft_mpi_Wtime(void)
{
	return (double)weft_clock_ns() * 1e-9;
}

double weft_mpi_Wtick(void)
{
	return 1e-9;
}

int weft_mpi_Pcontrol(const int level)
{
	(void)level; /* for profilers that put their own in front */
	return MPI_SUCCESS;
}

/* ---- memory and addresses ----------------------------------------------------------------- */

int weft_mpi_Alloc_mem(MPI_Aint size, MPI_Info info, void *baseptr)
{
	char text[32];
	size_t align = WEFT_CACHELINE;

	if (size < 0)
		return weft_mpi_err(MPI_ERR_ARG, "the size is negative (%lld)", (long long)size);
	if (!baseptr)
		return weft_mpi_err(MPI_ERR_ARG, "argument baseptr is a null pointer");
	if (info != MPI_INFO_NULL &&
	    weft_mpi_info_look(weft_mpi_info_of(info), "mpi_minimum_memory_alignment", text,
			       sizeof(text))) {
		unsigned long want = strtoul(text, NULL, 10);
		while (align < want && align < (1ul << 30))
			align *= 2;
	}
	if ((size_t)size > SIZE_MAX - 2 * align)
		return weft_mpi_err(MPI_ERR_NO_MEM, "out of memory (%lld bytes)", (long long)size);
	void *p = aligned_alloc(align, weft_align_up(size ? (size_t)size : 1, align));
	if (!p)
		return weft_mpi_err(MPI_ERR_NO_MEM, "out of memory (%lld bytes)", (long long)size);
	*(void **)baseptr = p;
	return MPI_SUCCESS;
}

int weft_mpi_Free_mem(void *base)
{
	free(base);
	return MPI_SUCCESS;
}

int weft_mpi_Get_address(const void *location, MPI_Aint *address)
{
	*address = (MPI_Aint)location;
	return MPI_SUCCESS;
}

MPI_Aint weft_mpi_Aint_add(MPI_Aint base, MPI_Aint disp)
{
	/* Addresses wrap like pointers, not like signed numbers. */
	return (MPI_Aint)((uintptr_t)base + (uintptr_t)disp);
}

MPI_Aint weft_mpi_Aint_diff(MPI_Aint addr1, MPI_Aint addr2)
{
	return (MPI_Aint)((uintptr_t)addr1 - (uintptr_t)addr2);
}
