/* SPDX-License-Identifier: BSD-3-Clause */
/* bsend.c - attached buffers and the messages in them. */
#include "base/assert.h"
#include "mpi/p2p/bsend.h"

#include <stdlib.h>

#include "mpi/entry.h"
#include "mpi/error.h"
#include "mpi/p2p/p2p.h"
#include "mpi/session/session.h"
#include "task/task.h"

/* A message that is on its way. */
struct segment {
	struct segment *next;
	struct weft_req req;
	struct weft_mpi_comm *comm; /* referenced: its context must stay */
	size_t room; /* what it takes of the buffer: the data alone, our own part lies elsewhere */
	uint64_t number; /* in order of sending */
	int watchers;    /* flush requests that sleep on it; under the lock */
	bool gone;       /* unlinked while watched: the last watcher frees it */
	char data[];
};

struct weft_mpi_bsend {
	pthread_mutex_t lock;
	void *memory; /* the user's, or MPI_BUFFER_AUTOMATIC */
	MPI_Count size;
	size_t used;
	uint64_t sent;                /* segments ever made */
	struct segment *first, *last; /* oldest first */
	int refs;                     /* owner and flush requests; under lock */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct weft_mpi_bsend *process_buffer; /* under lock */

/* ---- segments ----------------------------------------------------------------------------- */

static void segment_free(struct segment *s)
{
	weft_mpi_comm_unref(s->comm);
	free(s);
}

/* Takes the finished ones off the list; they are freed without the lock, by the caller. */
static struct segment *reap_locked(struct weft_mpi_bsend *b)
{
	weft_assert_held(weft_mutex, &b->lock);
	struct segment **link = &b->first, *dead = NULL;

	b->last = NULL;
	while (*link) {
		struct segment *s = *link;
		if (!weft_wait_completion_done(&s->req.done)) {
			b->last = s;
			link = &s->next;
			continue;
		}
		*link = s->next;
		b->used -= s->room;
		if (s->watchers) {
			s->gone = true;
		} else {
			s->next = dead;
			dead = s;
		}
	}
	return dead;
}

static void segments_free(struct segment *dead)
{
	while (dead) {
		struct segment *s = dead;
		dead = s->next;
		segment_free(s);
	}
}

static void reap_segments(struct weft_mpi_bsend *b)
{
	pthread_mutex_lock(&b->lock);
	struct segment *dead = reap_locked(b);
	pthread_mutex_unlock(&b->lock);
	segments_free(dead);
}

/* The oldest unfinished segment up to `number`, watched; NULL: none. */
static struct segment *watch_segment(struct weft_mpi_bsend *b, uint64_t number)
{
	pthread_mutex_lock(&b->lock);
	struct segment *dead = reap_locked(b), *s = b->first;
	if (s && s->number > number)
		s = NULL;
	if (s)
		s->watchers++;
	pthread_mutex_unlock(&b->lock);
	segments_free(dead);
	return s;
}

static void unwatch_segment(struct weft_mpi_bsend *b, struct segment *s)
{
	pthread_mutex_lock(&b->lock);
	bool last = --s->watchers == 0 && s->gone;
	pthread_mutex_unlock(&b->lock);
	if (last)
		segment_free(s);
}

/* Waits until everything sent so far is out. */
static void flush_buffer(struct weft_mpi_bsend *b)
{
	pthread_mutex_lock(&b->lock);
	uint64_t number = b->sent;
	pthread_mutex_unlock(&b->lock);
	struct segment *s;
	while ((s = watch_segment(b, number))) {
		weft_task_engine_wait(&s->req.done);
		unwatch_segment(b, s);
	}
}

static void bsend_unref(struct weft_mpi_bsend *b)
{
	pthread_mutex_lock(&b->lock);
	bool last = --b->refs == 0;
	pthread_mutex_unlock(&b->lock);
	if (last) {
		pthread_mutex_destroy(&b->lock);
		free(b);
	}
}

void weft_mpi_bsend_release(struct weft_mpi_bsend *b)
{
	if (!b)
		return;
	flush_buffer(b);
	bsend_unref(b);
}

void weft_mpi_bsend_fini(void)
{
	weft_mpi_bsend_release(process_buffer);
	process_buffer = NULL;
}

/* ---- sending ------------------------------------------------------------------------------ */

/* The buffer for c, referenced: its own, else the process's. */
static struct weft_mpi_bsend *buffer_for(struct weft_mpi_comm *c)
{
	pthread_mutex_lock(&lock);
	struct weft_mpi_bsend *b = c && c->bsend                          ? c->bsend
				   : c && c->session && c->session->bsend ? c->session->bsend
									  : process_buffer;
	if (b) {
		pthread_mutex_lock(&b->lock);
		b->refs++;
		pthread_mutex_unlock(&b->lock);
	}
	pthread_mutex_unlock(&lock);
	return b;
}

/* Room for a message, linked in order; its completion is still to come. */
static int segment_make(struct weft_mpi_bsend *b, struct weft_mpi_comm *c,
			const struct weft_buf *buf, struct segment **s_p)
{
	struct segment *s = malloc(sizeof(*s) + buf->bytes);

	if (!s)
		return weft_mpi_err(MPI_ERR_NO_MEM, "out of memory");
	*s = (struct segment){.comm = c, .room = weft_align_up(buf->bytes, 8)};
	weft_comm_req_init(&s->req, NULL, NULL);
	weft_data_pack(buf, 0, s->data, buf->bytes);
	reap_segments(b);
	pthread_mutex_lock(&b->lock);
	bool fits = b->memory == MPI_BUFFER_AUTOMATIC || b->used + s->room <= (size_t)b->size;
	if (fits) {
		weft_mpi_comm_ref(c);
		s->number = ++b->sent;
		b->used += s->room;
		if (b->last)
			b->last->next = s;
		else
			b->first = s;
		b->last = s;
	}
	pthread_mutex_unlock(&b->lock);
	if (fits) {
		*s_p = s;
		return MPI_SUCCESS;
	}
	free(s);
	return weft_mpi_err(MPI_ERR_BUFFER,
			    "the attached buffer has no room for %zu bytes: attach a larger one",
			    buf->bytes);
}

int weft_mpi_bsend(struct weft_mpi_comm *c, const struct weft_buf *buf, int dest, int tag)
{
	int peer = weft_mpi_comm_peer(c, dest);
	struct weft_mpi_bsend *b = buffer_for(c);
	struct segment *s = NULL;

	if (!b)
		return weft_mpi_err(MPI_ERR_BUFFER,
				    "no buffer is attached: call MPI_Buffer_attach first");
	weft_err now = weft_comm_send_now(c->p2p, peer, tag, buf);
	int err = !now                ? MPI_SUCCESS
		  : now != WEFT_AGAIN ? weft_mpi_err_peer(now, peer)
				      : segment_make(b, c, buf, &s);
	if (s) {
		struct weft_buf flat = weft_data_buf_flat(s->data, buf->bytes);
		weft_err core =
			weft_comm_core_isend(&s->req, c->p2p, peer, tag, &flat, WEFT_SEND_STANDARD);
		if (core) {
			weft_wait_completion_signal(&s->req.done);
			err = weft_mpi_err_peer(core, peer);
		}
	}
	bsend_unref(b);
	return err;
}

/* ---- attaching ---------------------------------------------------------------------------- */

static struct weft_mpi_session *session_of(MPI_Session session)
{
	return weft_mpi_session_of(session);
}

static int attach_buffer(struct weft_mpi_bsend **slot, void *buffer, MPI_Count size)
{
	if (size < 0)
		return weft_mpi_err(MPI_ERR_ARG, "the size is negative (%lld)", (long long)size);
	struct weft_mpi_bsend *b = calloc(1, sizeof(*b));
	if (!b)
		return weft_mpi_err(MPI_ERR_NO_MEM, "out of memory");
	pthread_mutex_init(&b->lock, NULL);
	b->memory = buffer;
	b->size = size;
	b->refs = 1;
	pthread_mutex_lock(&lock);
	bool taken = *slot != NULL;
	if (!taken)
		*slot = b;
	pthread_mutex_unlock(&lock);
	if (!taken)
		return MPI_SUCCESS;
	free(b);
	return weft_mpi_err(MPI_ERR_BUFFER, "a buffer is attached already: detach it first");
}

static int detach_buffer(struct weft_mpi_bsend **slot, void *buffer_addr, MPI_Count *size)
{
	pthread_mutex_lock(&lock);
	struct weft_mpi_bsend *b = *slot;
	*slot = NULL;
	pthread_mutex_unlock(&lock);
	if (!b)
		return weft_mpi_err(MPI_ERR_BUFFER, "no buffer is attached");
	*(void **)buffer_addr = b->memory;
	*size = b->memory == MPI_BUFFER_AUTOMATIC ? 0 : b->size;
	weft_mpi_bsend_release(b);
	return MPI_SUCCESS;
}

int weft_mpi_Buffer_attach(void *buffer, MPI_Count size)
{
	return attach_buffer(&process_buffer, buffer, size);
}

int weft_mpi_Buffer_detach(void *buffer_addr, MPI_Count *size)
{
	return detach_buffer(&process_buffer, buffer_addr, size);
}

int weft_mpi_Comm_attach_buffer(MPI_Comm comm, void *buffer, MPI_Count size)
{
	return attach_buffer(&weft_mpi_comm_of(comm)->bsend, buffer, size);
}

int weft_mpi_Comm_detach_buffer(MPI_Comm comm, void *buffer_addr, MPI_Count *size)
{
	return detach_buffer(&weft_mpi_comm_of(comm)->bsend, buffer_addr, size);
}

int weft_mpi_Session_attach_buffer(MPI_Session session, void *buffer, MPI_Count size)
{
	return attach_buffer(&session_of(session)->bsend, buffer, size);
}

int weft_mpi_Session_detach_buffer(MPI_Session session, void *buffer_addr, MPI_Count *size)
{
	return detach_buffer(&session_of(session)->bsend, buffer_addr, size);
}

/* ---- flushing ----------------------------------------------------------------------------- */

/* Exactly that buffer, referenced; no fallback. */
static struct weft_mpi_bsend *buffer_at(struct weft_mpi_bsend **slot)
{
	pthread_mutex_lock(&lock);
	struct weft_mpi_bsend *b = *slot;
	if (b) {
		pthread_mutex_lock(&b->lock);
		b->refs++;
		pthread_mutex_unlock(&b->lock);
	}
	pthread_mutex_unlock(&lock);
	return b;
}

static int flush_now(struct weft_mpi_bsend **slot)
{
	struct weft_mpi_bsend *b = buffer_at(slot);

	if (!b)
		return weft_mpi_err(MPI_ERR_BUFFER, "no buffer is attached");
	flush_buffer(b);
	bsend_unref(b);
	return MPI_SUCCESS;
}

int weft_mpi_Buffer_flush(void)
{
	return flush_now(&process_buffer);
}

int weft_mpi_Comm_flush_buffer(MPI_Comm comm)
{
	return flush_now(&weft_mpi_comm_of(comm)->bsend);
}

struct flusher {
	struct weft_mpi_bsend *b; /* referenced */
	uint64_t number;          /* up to which segment */
	struct segment *watched;  /* NULL: none */
};

static struct weft_completion *flusher_wait_on(struct weft_mpi_request *r)
{
	struct flusher *f = r->impl;

	return f->watched ? &f->watched->req.done : NULL;
}

static bool flusher_advance(struct weft_mpi_request *r)
{
	struct flusher *f = r->impl;

	if (f->watched && !weft_wait_completion_done(&f->watched->req.done))
		return false;
	if (f->watched)
		unwatch_segment(f->b, f->watched);
	f->watched = watch_segment(f->b, f->number);
	return !f->watched;
}

static int flusher_finish(struct weft_mpi_request *r, MPI_Status *st)
{
	(void)r;
	weft_mpi_status_empty(st);
	return MPI_SUCCESS;
}

static void flusher_free(struct weft_mpi_request *r)
{
	struct flusher *f = r->impl;

	if (f->watched)
		unwatch_segment(f->b, f->watched);
	bsend_unref(f->b);
	free(f);
}

static const struct weft_mpi_request_ops flusher_ops = {
	.name = "buffer flush",
	.wait_on = flusher_wait_on,
	.advance = flusher_advance,
	.finish = flusher_finish,
	.free = flusher_free,
};

static int flush_later(struct weft_mpi_bsend **slot, struct weft_mpi_comm *c, MPI_Request *request)
{
	struct weft_mpi_bsend *b = buffer_at(slot);

	if (!b)
		return weft_mpi_err(MPI_ERR_BUFFER, "no buffer is attached");
	struct flusher *f = calloc(1, sizeof(*f));
	struct weft_mpi_request *r = f ? weft_mpi_request_new(&flusher_ops, c, f, false) : NULL;
	if (!r) {
		free(f);
		bsend_unref(b);
		return weft_mpi_err(MPI_ERR_NO_MEM, "out of memory");
	}
	f->b = b;
	pthread_mutex_lock(&b->lock);
	f->number = b->sent;
	pthread_mutex_unlock(&b->lock);
	*request = weft_mpi_request_handle(r);
	return MPI_SUCCESS;
}

int weft_mpi_Buffer_iflush(MPI_Request *request)
{
	return flush_later(&process_buffer, NULL, request);
}

int weft_mpi_Comm_iflush_buffer(MPI_Comm comm, MPI_Request *request)
{
	struct weft_mpi_comm *c = weft_mpi_comm_of(comm);

	return flush_later(&c->bsend, c, request);
}

int weft_mpi_Session_flush_buffer(MPI_Session session)
{
	return flush_now(&session_of(session)->bsend);
}

int weft_mpi_Session_iflush_buffer(MPI_Session session, MPI_Request *request)
{
	return flush_later(&session_of(session)->bsend, NULL, request);
}
