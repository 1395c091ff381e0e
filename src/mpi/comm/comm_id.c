/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * comm_id.c - ids for communicators.
 *
 * An id is (process that made it, counter): processes hand out ids without asking each other, from
 * any thread, and no two are the same.  One process keeps the id of a communicator (`keeper`): a
 * member, or a process that handed it to a group that it is not in.  It hands it out again when every other
 * member has told it that the contexts are closed there: a member that is late with its own free,
 * however late, does not meet the id's successor, whose messages it would drop.  Members tell it
 * for many ids at once, whenever they have closed that many, in a context that is there for
 * nothing else.
 *
 * A freed id also rests until REST younger ones were freed, so that what was sent and never
 * received has arrived.
 */
#include "base/assert.h"
#include "mpi/comm/comm_int.h"

#include <stdlib.h>
#include <string.h>

#include "task/task.h"

#define ID_BITS 30 /* comm_int.h says which contexts an id stands for */
#define REST 4096
#define TOLD_MAX 64 /* ids in a message */
#define LOOKS 8     /* at resting ids, before a new one is taken */
#define BLOCK 1024  /* ids */

/* What we know about an id that we keep. */
struct kept {
	struct kept *younger; /* it rests: the next one */
	uint32_t id;
	int others; /* it rests: members besides us */
	int told;   /* of them: have closed it */
};

/* Ids that we closed and whose keeper does not know yet. */
struct untold {
	uint32_t *id;
	uint32_t n, room;
};

/* Of one domain. */
struct weft_mpi_ids {
	pthread_mutex_t lock;
	uint32_t base;       /* our process in the upper bits */
	uint32_t limit;      /* of the counter */
	uint32_t next;       /* under lock: the first counter never used */
	struct kept **block; /* under lock: by the counter; NULL: none of its ids was closed */
	uint32_t blocks;     /* under lock: how many there is room for */
	struct kept *oldest, *newest; /* under lock: closed here, in this order */
	uint32_t rest_count;          /* under lock: how many these are */
	int processes;                /* of the domain */
	uint32_t told_many;           /* ids in a message */
	struct untold *untold;        /* under lock: one for each process; NULL: none yet */
	struct weft_ctx *told_ctx;
};

int weft_mpi_ids_make(struct weft_core *core, struct weft_mpi_ids **ids_p)
{
	struct weft_mpi_ids *s = calloc(1, sizeof(*s));
	int bits = 0;

	if (!s)
		return MPI_ERR_NO_MEM;
	pthread_mutex_init(&s->lock, NULL);
	s->processes = weft_comm_core_size(core);
	while (bits < ID_BITS - 8 && (1L << bits) < s->processes)
		bits++;
	s->base = (uint32_t)weft_comm_core_rank(core) << (ID_BITS - bits);
	s->limit = 1u << (ID_BITS - bits);
	/* The first of process 0 are the predefined communicators; others skip them as well. */
	s->next = WEFT_MPI_ID_FIRST;
	/* Few where ids are scarce: what is not told cannot be used. */
	s->told_many = s->limit / 64 < TOLD_MAX ? s->limit / 64 : TOLD_MAX;
	weft_err err = weft_comm_ctx_open(core, 2 * WEFT_MPI_ID_TOLD, &s->told_ctx);
	if (err) {
		weft_mpi_ids_free(s);
		return weft_mpi_err_of(err);
	}
	*ids_p = s;
	return MPI_SUCCESS;
}

void weft_mpi_ids_free(struct weft_mpi_ids *s)
{
	if (!s)
		return;
	if (s->told_ctx)
		weft_comm_ctx_close(s->told_ctx);
	for (uint32_t b = 0; b < s->blocks; b++)
		free(s->block[b]);
	free(s->block);
	for (int p = 0; s->untold && p < s->processes; p++)
		free(s->untold[p].id);
	free(s->untold);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

/* ---- what we keep ------------------------------------------------------------------------- */

/* Makes room for a block; false: no memory. */
static bool block_room_locked(struct weft_mpi_ids *s, uint32_t b)
{
	weft_assert_held(weft_mutex, &s->lock);
	if (b < s->blocks)
		return true;
	uint32_t room = 2 * b + 4;
	struct kept **more = realloc(s->block, room * sizeof(*more));
	if (!more)
		return false;
	memset(more + s->blocks, 0, (room - s->blocks) * sizeof(*more));
	s->block = more;
	s->blocks = room;
	return true;
}

/* NULL: no memory, or an id that we have never handed out.  It is not used again, nothing else is lost. */
static struct kept *kept_locked(struct weft_mpi_ids *s, uint32_t id)
{
	weft_assert_held(weft_mutex, &s->lock);
	uint32_t n = id - s->base, b = n / BLOCK;

	if (n >= s->next || !block_room_locked(s, b) ||
	    (!s->block[b] && !(s->block[b] = calloc(BLOCK, sizeof(**s->block)))))
		return NULL;
	struct kept *k = &s->block[b][n % BLOCK];
	k->id = id;
	return k;
}

static void rest_locked(struct weft_mpi_ids *s, struct kept *k)
{
	weft_assert_held(weft_mutex, &s->lock);
	k->younger = NULL;
	*(s->oldest ? &s->newest->younger : &s->oldest) = k;
	s->newest = k;
	s->rest_count++;
}

/* An id that rested long enough and that no member has open any more; false: there is none. */
static bool rested_locked(struct weft_mpi_ids *s, uint32_t *id_p)
{
	weft_assert_held(weft_mutex, &s->lock);
	bool scarce = s->next == s->limit;

	if (s->rest_count <= REST && !scarce)
		return false;
	for (uint32_t looks = scarce ? s->rest_count : LOOKS; looks; looks--) {
		struct kept *k = s->oldest;
		s->oldest = k->younger;
		s->rest_count--;
		if (k->told == k->others) {
			*id_p = k->id;
			k->told = 0;
			return true;
		}
		rest_locked(s, k);
	}
	return false;
}

/* Takes in what members have told. */
static void hear_of_ids(struct weft_mpi_ids *s)
{
	uint32_t id[TOLD_MAX];
	struct weft_status st;
	struct weft_msg *msg;
	struct weft_req req;

	/* Ends with the messages that are there: members send one for many communicators. */
	while (weft_comm_core_improbe(s->told_ctx, WEFT_ANY_PEER, WEFT_ANY_TAG, &msg, &st)) {
		struct weft_buf buf = weft_data_buf_flat(id, sizeof(id));
		weft_comm_req_init(&req, NULL, NULL);
		if (weft_comm_core_imrecv(&req, msg, &buf))
			return;
		weft_task_engine_wait(&req.done);
		uint32_t n = req.status.err ? 0 : (uint32_t)(req.status.bytes / sizeof(id[0]));
		pthread_mutex_lock(&s->lock);
		for (uint32_t i = 0; i < n; i++) {
			struct kept *k = kept_locked(s, id[i]);
			if (k)
				k->told++;
		}
		pthread_mutex_unlock(&s->lock);
	}
}

int weft_mpi_id_take(struct weft_mpi_ids *s, uint32_t *id_p)
{
	int err = MPI_SUCCESS;

	pthread_mutex_lock(&s->lock);
	bool wanted = s->rest_count > REST || s->next == s->limit;
	pthread_mutex_unlock(&s->lock);
	if (wanted)
		hear_of_ids(s);
	pthread_mutex_lock(&s->lock);
	if (!rested_locked(s, id_p)) {
		if (s->next < s->limit)
			*id_p = s->base + s->next++;
		else
			err = weft_mpi_err(MPI_ERR_OTHER,
					   "out of communicator ids: %u communicators are alive",
					   s->limit);
	}
	pthread_mutex_unlock(&s->lock);
	return err;
}

/* ---- what others keep --------------------------------------------------------------------- */

/* False: no memory; that id is not used again. */
static bool note_locked(struct weft_mpi_ids *s, int keeper, const uint32_t *id, uint32_t n)
{
	weft_assert_held(weft_mutex, &s->lock);
	if (!s->untold && !(s->untold = calloc((size_t)s->processes, sizeof(*s->untold))))
		return false;
	struct untold *u = &s->untold[keeper];
	if (u->n + n > u->room) {
		uint32_t room = 2 * (u->room + TOLD_MAX);
		uint32_t *more = realloc(u->id, room * sizeof(*more));
		if (!more)
			return false;
		u->id = more;
		u->room = room;
	}
	memcpy(u->id + u->n, id, n * sizeof(*id));
	u->n += n;
	return true;
}

static void tell_of_id(struct weft_mpi_ids *s, uint32_t id, int keeper)
{
	uint32_t out[TOLD_MAX], n = 0;

	if (!s->told_ctx)
		return;
	pthread_mutex_lock(&s->lock);
	if (note_locked(s, keeper, &id, 1) && s->untold[keeper].n >= s->told_many) {
		struct untold *u = &s->untold[keeper];
		n = s->told_many;
		u->n -= n;
		memcpy(out, u->id + u->n, n * sizeof(out[0]));
	}
	pthread_mutex_unlock(&s->lock);
	if (!n)
		return;
	struct weft_buf buf = weft_data_buf_flat(out, n * sizeof(out[0]));
	if (weft_comm_send_now(s->told_ctx, keeper, 0, &buf) != WEFT_AGAIN)
		return; /* or the keeper is gone */
	/* No room just now: with the next one that we close. */
	pthread_mutex_lock(&s->lock);
	(void)note_locked(s, keeper, out, n);
	pthread_mutex_unlock(&s->lock);
}

void weft_mpi_id_closed(struct weft_mpi_ids *s, uint32_t id, int keeper, int me, int others)
{
	if (keeper != me) {
		if (keeper >= 0)
			tell_of_id(s, id, keeper);
		return;
	}
	pthread_mutex_lock(&s->lock);
	struct kept *k = kept_locked(s, id);
	if (k) {
		k->others = others;
		rest_locked(s, k);
	}
	pthread_mutex_unlock(&s->lock);
}
