/* SPDX-License-Identifier: BSD-3-Clause */
/* hints.c - info of files: the reserved hints, kept and returned with the values in use. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/file/mpi_file.h"

/* Hints of chapter 14, and weft's own, with what holds where the program says nothing; NULL: then there is none. */
static const struct {
	const char *key, *value;
} hints[] = {
	{"access_style", NULL},
	{"collective_buffering", "true"},
	{"cb_block_size", "4194304"},
	{"cb_buffer_size", "16777216"},
	{"cb_nodes", NULL},
	{"chunked", NULL},
	{"chunked_item", NULL},
	{"chunked_size", NULL},
	{"file_perm", NULL},
	{"io_node_list", NULL},
	{"nb_proc", NULL},
	{"num_io_nodes", NULL},
	{"striping_factor", NULL},
	{"striping_unit", NULL},
	{"weft_file_locks", NULL}, /* as the setting file_locks */
};

int weft_mpi_file_hints_take(struct weft_mpi_file *f, MPI_Info info)
{
	struct weft_mpi_info *given = weft_mpi_info_of(info);
	char value[MPI_MAX_INFO_VAL + 1];
	int err = MPI_SUCCESS;
	if (!given)
		return MPI_SUCCESS;
	pthread_mutex_lock(&f->lock);
	for (size_t i = 0; !err && i < weft_countof(hints); i++)
		if (weft_mpi_info_look(given, hints[i].key, value, sizeof value))
			err = weft_mpi_info_put(f->info, hints[i].key, value);
	pthread_mutex_unlock(&f->lock);
	return err;
}

int64_t weft_mpi_file_hint(struct weft_mpi_file *f, const char *key, int64_t otherwise)
{
	char value[MPI_MAX_INFO_VAL + 1], *end = value;
	long long n = otherwise;
	pthread_mutex_lock(&f->lock);
	bool given = weft_mpi_info_look(f->info, key, value, sizeof value);
	pthread_mutex_unlock(&f->lock);
	if (given)
		n = strtoll(value, &end, 10);
	return given && end != value ? n : otherwise;
}

/* What the program did not say, where the file knows it. */
static const char *hint_in_use(const struct weft_mpi_file *f, const char *key, char *buf,
			       size_t size)
{
	if (!strcmp(key, "nb_proc"))
		snprintf(buf, size, "%d", f->comm->size);
	else if (!strcmp(key, "striping_unit"))
		snprintf(buf, size, "%llu", (unsigned long long)f->file->fs.block);
	else if (!strcmp(key, "cb_nodes"))
		snprintf(buf, size, "%d", f->team.size ? f->team.aggregators : 1);
	else if (!strcmp(key, "num_io_nodes") || !strcmp(key, "striping_factor"))
		snprintf(buf, size, "1");
	else if (!strcmp(key, "weft_file_locks"))
		snprintf(buf, size, "%s", f->locks ? "on" : "off");
	else
		return NULL;
	return buf;
}

int weft_mpi_File_get_info(MPI_File fh, MPI_Info *info_used)
{
	struct weft_mpi_file *f = weft_mpi_file(fh);
	struct weft_mpi_info *i = weft_mpi_info_make();
	char value[MPI_MAX_INFO_VAL + 1], own[32];
	if (!i)
		return weft_mpi_err(MPI_ERR_NO_MEM, "out of memory");
	int err = weft_mpi_info_put(i, "filename", f->name);
	if (!err)
		err = weft_mpi_info_put_memory_kinds(i);
	pthread_mutex_lock(&f->lock);
	for (size_t k = 0; !err && k < weft_countof(hints); k++) {
		const char *v = hints[k].value ? hints[k].value
					       : hint_in_use(f, hints[k].key, own, sizeof own);
		if (weft_mpi_info_look(f->info, hints[k].key, value, sizeof value))
			v = value;
		if (v)
			err = weft_mpi_info_put(i, hints[k].key, v);
	}
	pthread_mutex_unlock(&f->lock);
	if (err) {
		weft_mpi_info_free(i);
		return err;
	}
	return weft_mpi_info_name(i, info_used);
}

int weft_mpi_File_set_info(MPI_File fh, MPI_Info info)
{
	struct weft_mpi_file *f = weft_mpi_file(fh);
	return weft_mpi_file_agree(f, weft_mpi_file_hints_take(f, info));
}
