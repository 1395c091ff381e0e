/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * comm_int.h - how communicators come to be: ids, agreement, building.  For the files that make
 * communicators (comm.c, comm_make.c, intercomm.c, comm_idup.c).
 */
#ifndef WEFT_MPI_COMM_INT_H
#define WEFT_MPI_COMM_INT_H

#include "mpi/comm/domain.h"
#include "mpi/mpi_int.h"

/* ---- ids (comm_id.c) ---------------------------------------------------------------------- */

/*
 * Each process hands out ids from a space of its own, so that members need no agreement but to
 * hear the id from one of them.  One process, the keeper, uses it again when all have closed it.
 */
struct weft_core;
int weft_mpi_ids_make(struct weft_core *core, struct weft_mpi_ids **ids_p);
void weft_mpi_ids_free(struct weft_mpi_ids *s);
/* May wait for messages that are on their way. */
int weft_mpi_id_take(struct weft_mpi_ids *s, uint32_t *id_p);
/* We (process `me`) have closed both contexts, or never open them; keeper: of the id, -1: none,
 * it stays out of use; others: how many members there are besides us.  Never waits. */
void weft_mpi_id_closed(struct weft_mpi_ids *s, uint32_t id, int keeper, int me, int others);

/* The same on all members; no process hands them out. */
enum {
	WEFT_MPI_ID_WORLD = 0, /* in the job's domain */
	WEFT_MPI_ID_SELF = 1,
	WEFT_MPI_ID_INTER = 0, /* in the domain of two groups that have met */
	WEFT_MPI_ID_LOW = 1,   /* the first group inside */
	WEFT_MPI_ID_TOLD = 2,
	WEFT_MPI_ID_HIGH = 3, /* the second group inside */
	WEFT_MPI_ID_FIRST = 4,
};

/* Ids have 30 bits.  Contexts are 2 id and 2 id + 1, and with this bit those of partitioned messages. */
#define WEFT_MPI_CTX_PART 0x80000000u

/* ---- talk among members (agree.c) --------------------------------------------------------- */

/* The members that talk: rank r is process world[r]; messages in ctx with that tag. */
struct weft_mpi_talk {
	struct weft_ctx *ctx;
	int rank, size;
	const int *world;
	int tag;
};

/* Collective over the talk.  MPI error codes: each ends on every living member, whichever die. */
int weft_mpi_talk_bcast(const struct weft_mpi_talk *t, int root, void *buf, size_t len);
/* failed: root's error so far.  If it is one, the others get its class instead of data. */
int weft_mpi_talk_bcast_unless(const struct weft_mpi_talk *t, int root, int failed, void *buf,
			       size_t len);
/* When it returns on root without an error, every member has called it. */
int weft_mpi_talk_ack(const struct weft_mpi_talk *t, int root);
/* When it returns without an error, every member has called it. */
int weft_mpi_talk_barrier(const struct weft_mpi_talk *t);
/* all: size * len bytes. */
int weft_mpi_talk_allgather(const struct weft_mpi_talk *t, const void *mine, void *all, size_t len);
/* Between two processes, each sends and receives. */
int weft_mpi_talk_swap(struct weft_ctx *ctx, int world, int tag, const void *out, size_t out_len,
		       void *in, size_t in_len);
int weft_mpi_talk_send(struct weft_ctx *ctx, int world, int tag, const void *buf, size_t len);
int weft_mpi_talk_recv(struct weft_ctx *ctx, int world, int tag, void *buf, size_t len);

/* All members of intracommunicator c, with its next collective tag. */
struct weft_mpi_talk weft_mpi_talk_all(struct weft_mpi_comm *c);

/* ---- building (comm.c) -------------------------------------------------------------------- */

struct weft_mpi_comm_plan {
	uint32_t id;
	int keeper;                    /* a process; -1: none */
	struct weft_mpi_group *group;  /* a reference is taken; its domain is the communicator's */
	struct weft_mpi_group *remote; /* NULL: intracommunicator; a reference is taken */
	struct weft_mpi_comm *local;   /* inter: the reference is handed over */
	struct weft_mpi_comm *parent;  /* whose error handler is inherited; NULL: fatal */
};

/* Of all of parent's members, which then go on with steps of their own: where rank 0 has failed, all fail. */
int weft_mpi_comm_make_all(struct weft_mpi_comm *parent, struct weft_mpi_comm **comm_p);
/* weft_mpi_comm_make, meeting in ctx; parent: whose error handler is inherited, or NULL. */
int weft_mpi_comm_make_in(struct weft_ctx *ctx, struct weft_mpi_comm *parent,
			  struct weft_mpi_group *members, int tag, struct weft_mpi_comm **comm_p);

/* Local: opens the contexts.  No handle yet. */
int weft_mpi_comm_build(const struct weft_mpi_comm_plan *plan, struct weft_mpi_comm **comm_p);

/* Copies the topology to a new communicator without a handle; on an error that one is gone. */
int weft_mpi_comm_dup_topo(struct weft_mpi_comm *from, struct weft_mpi_comm *to);
/* Attaches an info object, taking it over, and follows its hints. */
void weft_mpi_comm_info_use(struct weft_mpi_comm *c, struct weft_mpi_info *info);

/*
 * Makes an intercommunicator: collective over `local` (the intracommunicator of our side) and the
 * other side's.  The leaders meet in ctx `bridge` with `tag`; remote_leader (a process) matters
 * on the leader only.
 */
int weft_mpi_inter_make(struct weft_mpi_comm *local, int leader, struct weft_ctx *bridge,
			int remote_leader, int tag, struct weft_mpi_comm *parent,
			struct weft_mpi_comm **comm_p);

/* The intercommunicator cases of create and split; *newcomm stays as it is without a result. */
int weft_mpi_inter_create(struct weft_mpi_comm *c, struct weft_mpi_group *g, MPI_Comm *newcomm);
int weft_mpi_inter_split(struct weft_mpi_comm *c, int color, int key, MPI_Comm *newcomm);

/* ---- the predefined ones (comm.c) --------------------------------------------------------- */
int weft_mpi_comms_init(int rank, int size);
void weft_mpi_comms_fini(void);
/* Their handles are good only between MPI_Init and MPI_Finalize. */
void weft_mpi_comms_show(bool on);

#endif
