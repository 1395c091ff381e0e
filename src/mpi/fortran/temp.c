/* SPDX-License-Identifier: BSD-3-Clause */
/* temp.c - memory for one call, and texts. */
#include "mpi/fortran/temp.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

struct weft_f_block {
	struct weft_f_block *next;
	alignas(16) char data[];
};

void *weft_f_temp_get(struct weft_f_temp *temp, int64_t n, size_t size)
{
	size_t bytes = n > 0 ? ((size_t)n * size + 15) & ~(size_t)15 : 16;

	if (bytes <= sizeof(temp->small) - temp->used) {
		void *p = temp->small + temp->used;
		temp->used += bytes;
		return p;
	}
	struct weft_f_block *b = malloc(sizeof(*b) + bytes);
	if (!b) {
		temp->failed = true;
		return NULL;
	}
	b->next = temp->blocks;
	temp->blocks = b;
	return b->data;
}

void weft_f_temp_free(struct weft_f_temp *temp)
{
	while (temp->blocks) {
		struct weft_f_block *b = temp->blocks;
		temp->blocks = b->next;
		free(b);
	}
}

char *weft_f_string(struct weft_f_temp *temp, const char *text, size_t len, bool both)
{
	while (len > 0 && text[len - 1] == ' ')
		len--;
	while (both && len > 0 && *text == ' ') {
		text++;
		len--;
	}
	char *to = weft_f_temp_get(temp, (int64_t)len + 1, 1);
	if (to) {
		memcpy(to, text, len);
		to[len] = '\0';
	}
	return to;
}

char *weft_f_text(struct weft_f_temp *temp, size_t size)
{
	char *to = weft_f_temp_get(temp, (int64_t)size, 1);

	if (to)
		*to = '\0';
	return to;
}

void weft_f_text_out(char *to, size_t len, const char *text)
{
	size_t n = strnlen(text, len);

	memcpy(to, text, n);
	memset(to + n, ' ', len - n);
}

int weft_f_no_memory(void)
{
	PMPI_Comm_call_errhandler(MPI_COMM_SELF, MPI_ERR_NO_MEM);
	return MPI_ERR_NO_MEM;
}
