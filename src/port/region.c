/* SPDX-License-Identifier: BSD-3-Clause */
/* region.c - regions by key, as bytes that travel, and their notifications. */
#include "port/region.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "port/sleep.h"

struct region {
	struct region *next;
	uint64_t key;
	char *base;
	size_t bytes;
	uint64_t note[WEFT_COMM_NOTES];
};

static pthread_mutex_t regions_lock = PTHREAD_MUTEX_INITIALIZER;
static struct region *regions;
static uint64_t last_key;

/* Under regions_lock. */
static struct region *region_of(uint64_t key)
{
	struct region *r = regions;
	while (r && r->key != key)
		r = r->next;
	return r;
}

weft_err weft_comm_expose(void *base, size_t bytes, uint64_t *key_p)
{
	if (!weft_port_is_open())
		return WEFT_ERR_STATE;
	if ((bytes && !base) || !key_p)
		return WEFT_ERR_ARG;
	struct region *r = malloc(sizeof *r);
	if (!r)
		return WEFT_ERR_NOMEM;
	pthread_mutex_lock(&regions_lock);
	*r = (struct region){.next = regions, .key = ++last_key, .base = base, .bytes = bytes};
	regions = r;
	*key_p = r->key;
	pthread_mutex_unlock(&regions_lock);
	return WEFT_OK;
}

weft_err weft_comm_hide(uint64_t key)
{
	pthread_mutex_lock(&regions_lock);
	struct region **link = &regions;
	while (*link && (*link)->key != key)
		link = &(*link)->next;
	struct region *r = *link;
	if (r)
		*link = r->next;
	pthread_mutex_unlock(&regions_lock);
	free(r);
	weft_port_changed();
	return r ? WEFT_OK : WEFT_ERR_NOENT;
}

bool weft_port_region_at(uint64_t key, uint64_t offset, uint64_t bytes, char **at_p)
{
	pthread_mutex_lock(&regions_lock);
	struct region *r = region_of(key);
	bool inside = r && offset <= r->bytes && bytes <= r->bytes - offset;
	*at_p = inside ? r->base + offset : NULL;
	pthread_mutex_unlock(&regions_lock);
	return inside;
}

void weft_port_regions_end(void)
{
	while (regions) {
		struct region *r = regions;
		regions = r->next;
		free(r);
	}
}

/* ---- handles ------------------------------------------------------------------------------ */

/* Little-endian words: magic and version, peer, key, bytes, a sum over the others. */
#define MAGIC 0x0001656c646e6148u
enum { WORDS = WEFT_COMM_HANDLE_BYTES / 8 };

static uint64_t sum_of(const uint64_t *word)
{
	uint64_t sum = 0xcbf29ce484222325u;
	for (int i = 0; i < WORDS - 1; i++)
		for (int bit = 0; bit < 64; bit += 8)
			sum = (sum ^ (word[i] >> bit & 0xff)) * 0x100000001b3u;
	return sum;
}

weft_err weft_comm_handle_export(uint64_t key, weft_comm_handle *handle)
{
	if (!weft_port_is_open())
		return WEFT_ERR_STATE;
	pthread_mutex_lock(&regions_lock);
	struct region *r = region_of(key);
	uint64_t word[WORDS] = {MAGIC, (uint64_t)weft_comm_rank(), key, r ? r->bytes : 0};
	pthread_mutex_unlock(&regions_lock);
	if (!r)
		return WEFT_ERR_NOENT;
	word[WORDS - 1] = sum_of(word);
	for (int i = 0; i < WEFT_COMM_HANDLE_BYTES; i++)
		handle->bytes[i] = (unsigned char)(word[i / 8] >> i % 8 * 8);
	return WEFT_OK;
}

weft_err weft_comm_handle_import(const weft_comm_handle *handle, int *peer_p, uint64_t *key_p,
				 size_t *bytes_p)
{
	uint64_t word[WORDS] = {0};
	if (!weft_port_is_open())
		return WEFT_ERR_STATE;
	for (int i = 0; i < WEFT_COMM_HANDLE_BYTES; i++)
		word[i / 8] |= (uint64_t)handle->bytes[i] << i % 8 * 8;
	if (word[0] != MAGIC || word[WORDS - 1] != sum_of(word) ||
	    word[1] >= (uint64_t)weft_comm_size())
		return WEFT_ERR_ARG;
	*peer_p = (int)word[1];
	*key_p = word[2];
	if (bytes_p)
		*bytes_p = (size_t)word[3];
	return WEFT_OK;
}

/* ---- notifications ------------------------------------------------------------------------ */

void weft_port_region_note(uint64_t key, unsigned note)
{
	pthread_mutex_lock(&regions_lock);
	struct region *r = region_of(key);
	if (r)
		r->note[note]++; /* note: checked by the caller */
	pthread_mutex_unlock(&regions_lock);
	weft_port_changed();
}

struct wanted {
	uint64_t key, n;
	unsigned note;
	struct watch *from; /* NULL: no peer is looked at */
	weft_err err;
};

/* A receive of what no peer sends: the death of its peer ends it. */
struct watch {
	struct weft_req req;
	_Atomic bool x_over;
};

static void watch_over(struct weft_req *req, void *arg)
{
	struct watch *w = arg;
	(void)req;
	/* OVER -> take, is_over.  The last use of w. */
	atomic_store_explicit(&w->x_over, true, memory_order_seq_cst);
	weft_port_changed();
}

static bool is_over(void *arg)
{
	struct watch *w = arg;
	return atomic_load_explicit(&w->x_over, memory_order_seq_cst); /* <- OVER */
}

static weft_err watch_begin(struct watch *w, int peer)
{
	struct weft_buf none = weft_data_buf_flat(NULL, 0);
	/* Relaxed: no other thread knows it. */
	atomic_store_explicit(&w->x_over, false, memory_order_relaxed);
	weft_comm_req_init(&w->req, watch_over, w);
	return weft_comm_core_irecv(&w->req, weft_port_ctx[WEFT_PORT_SYNC], peer,
				    WEFT_PORT_LOST_TAG, &none);
}

static void watch_end(struct watch *w)
{
	if (!is_over(w))
		(void)weft_comm_recv_cancel(&w->req);
	weft_port_sleep_until(is_over, w);
}

/* Takes n off, or says why not. */
static bool take_notes(void *arg)
{
	struct wanted *w = arg;
	pthread_mutex_lock(&regions_lock);
	struct region *r = region_of(w->key);
	w->err = !r ? WEFT_ERR_NOENT : r->note[w->note] < w->n ? WEFT_AGAIN : WEFT_OK;
	if (!w->err)
		r->note[w->note] -= w->n;
	pthread_mutex_unlock(&regions_lock);
	if (w->err == WEFT_AGAIN && w->from && is_over(w->from))
		w->err = WEFT_ERR_PEER;
	return w->err != WEFT_AGAIN;
}

weft_err weft_comm_notify_test(uint64_t key, unsigned note, uint64_t n)
{
	struct wanted w = {.key = key, .n = n, .note = note};
	if (!weft_port_is_open())
		return WEFT_ERR_STATE;
	if (note >= WEFT_COMM_NOTES)
		return WEFT_ERR_ARG;
	if (!take_notes(&w) && !weft_port_in_handler() && weft_task_engine_poll())
		(void)take_notes(&w);
	return w.err;
}

weft_err weft_comm_notify_wait(uint64_t key, unsigned note, uint64_t n, int from)
{
	struct watch watch;
	struct wanted w = {.key = key, .n = n, .note = note};
	if (!weft_port_is_open())
		return WEFT_ERR_STATE;
	if (note >= WEFT_COMM_NOTES || from < WEFT_COMM_ANY_PEER || from >= weft_comm_size())
		return WEFT_ERR_ARG;
	if (take_notes(&w))
		return w.err;
	if (weft_port_in_handler())
		return WEFT_ERR_DEADLOCK;
	if (from >= 0) {
		weft_err err = watch_begin(&watch, from);
		if (err)
			return err;
		w.from = &watch;
	}
	weft_port_sleep_until(take_notes, &w);
	if (w.from)
		watch_end(&watch);
	return w.err;
}
