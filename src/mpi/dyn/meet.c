/* SPDX-License-Identifier: BSD-3-Clause */
/* meet.c - two groups become one domain: agreement, addresses, the communicators. */
#include "mpi/dyn/meet.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "boot/blob.h"
#include "boot/boot.h"
#include "net/auth.h"

#define MEET_VERSION 1
#define TEXT_MAX (64u << 20) /* of one member */

/* What the roots tell each other first. */
struct hello {
	uint32_t version;
	int32_t size, root;
	uint8_t nonce[16];
};

/* What the root tells its side; the names of all members follow. */
struct agreement {
	int32_t err;
	int32_t note[2]; /* the caller's */
	int32_t their_size, their_root;
	int32_t first; /* our members come first in the domain */
	uint8_t secret[WEFT_SECRET_BYTES];
	char name[33];
};

struct meeting {
	struct weft_mpi_comm *local;
	struct weft_mpi_talk talk;
	int root;
	const struct weft_mpi_wire *wire; /* on the root */
	struct agreement with;
	int size;                         /* of both sides */
	struct weft_mpi_process *process; /* their names, in the domain's order */
	struct weft_boot_blob mine;       /* put, and not yet fenced */
	char **text;                      /* by member: of the last fence */
	void *all;                        /* where the texts lie */
	bool broken;                      /* a fence said so: the others know */
};

static int offset_of_ours(const struct meeting *m)
{
	return m->with.first ? 0 : m->with.their_size;
}

static int offset_of_theirs(const struct meeting *m)
{
	return m->with.first ? m->local->size : 0;
}

/* ---- from the root to its side ------------------------------------------------------------ */

#define FIRST_BYTES 3064 /* a dozen members' texts: mostly all of it, and eager with every driver */

struct first {
	uint64_t len; /* of the whole */
	char data[FIRST_BYTES];
};

/* The rest goes by a second message, where there is one. */
static int tell_rest(struct meeting *m, char *data, size_t len)
{
	return len <= FIRST_BYTES ? MPI_SUCCESS
				  : weft_mpi_talk_bcast(&m->talk, m->root, data + FIRST_BYTES,
							len - FIRST_BYTES);
}

/* failed: the root's error so far; then the others get its class. */
static int meeting_tell(struct meeting *m, int failed, char *data, size_t len)
{
	struct first f = {.len = len};

	if (!failed)
		memcpy(f.data, data, len < FIRST_BYTES ? len : FIRST_BYTES);
	int err = weft_mpi_talk_bcast_unless(&m->talk, m->root, failed, &f, sizeof(f));
	sodium_memzero(&f, sizeof(f));
	return err ? err : tell_rest(m, data, len);
}

/* What the root tells; *data_p is the caller's (free). */
static int meeting_hear(struct meeting *m, char **data_p, size_t *len_p)
{
	struct first f;
	int err = weft_mpi_talk_bcast(&m->talk, m->root, &f, sizeof(f));

	if (err)
		return err;
	size_t len = f.len;
	char *data = malloc(len + 1);
	if (data)
		memcpy(data, f.data, len < FIRST_BYTES ? len : FIRST_BYTES);
	sodium_memzero(&f, sizeof(f));
	err = data ? tell_rest(m, data, len) : weft_mpi_err(MPI_ERR_NO_MEM, "out of memory");
	if (err) {
		free(data);
		return err;
	}
	*data_p = data;
	*len_p = len;
	return MPI_SUCCESS;
}

/* ---- agreement ---------------------------------------------------------------------------- */

/* The smaller nonce comes first; the secret depends on both. */
static void derive_secret(struct meeting *m, const struct hello *mine, const struct hello *theirs)
{
	uint8_t both[2 * sizeof(mine->nonce)], name[16];
	size_t n = sizeof(mine->nonce);

	m->with.first = memcmp(mine->nonce, theirs->nonce, n) < 0;
	m->with.their_size = theirs->size;
	m->with.their_root = theirs->root;
	memcpy(both, m->with.first ? mine->nonce : theirs->nonce, n);
	memcpy(both + n, m->with.first ? theirs->nonce : mine->nonce, n);
	weft_net_auth_derive(m->wire->secret, "meet", both, sizeof(both), m->with.secret,
			     sizeof(m->with.secret));
	weft_net_auth_derive(m->with.secret, "name", NULL, 0, name, sizeof(name));
	sodium_bin2hex(m->with.name, sizeof(m->with.name), name, sizeof(name));
}

static int exchange_hello(struct meeting *m)
{
	struct hello mine = {.version = MEET_VERSION, .size = m->local->size, .root = m->root},
		     theirs;
	void *in = NULL;
	size_t len = 0;

	randombytes_buf(mine.nonce, sizeof(mine.nonce));
	int err = m->wire->swap(m->wire->arg, &mine, sizeof(mine), &in, &len);
	if (err)
		return err;
	if (len != sizeof(theirs)) {
		free(in);
		return weft_mpi_err(MPI_ERR_OTHER, "the other side speaks another language");
	}
	memcpy(&theirs, in, sizeof(theirs));
	free(in);
	if (theirs.version != MEET_VERSION)
		return weft_mpi_err(MPI_ERR_OTHER,
				    "the other side is another version of weft (it meets by rules "
				    "%u, this process by rules %u)",
				    theirs.version, MEET_VERSION);
	if (theirs.size < 1 || theirs.size > (1 << 24) || theirs.root < 0 ||
	    theirs.root >= theirs.size)
		return weft_mpi_err(MPI_ERR_OTHER, "the other side says that it has %d processes",
				    theirs.size);
	derive_secret(m, &mine, &theirs);
	return MPI_SUCCESS;
}

/* The names of all processes, in the domain's order. */
static int exchange_names(struct meeting *m)
{
	struct weft_mpi_group *g = m->local->group;
	size_t bytes = (size_t)m->with.their_size * sizeof(*m->process), len = 0;
	void *in = NULL;

	m->size = g->size + m->with.their_size;
	m->process = calloc((size_t)m->size, sizeof(*m->process));
	if (!m->process)
		return weft_mpi_err(MPI_ERR_NO_MEM, "out of memory");
	struct weft_mpi_process *ours = m->process + offset_of_ours(m);
	for (int r = 0; r < g->size; r++)
		ours[r] = g->domain->process[g->world[r]];
	int err = m->wire->swap(m->wire->arg, ours, (size_t)g->size * sizeof(*ours), &in, &len);
	if (!err && len != bytes)
		err = weft_mpi_err(MPI_ERR_OTHER, "the other side's list is damaged");
	if (!err)
		memcpy(m->process + offset_of_theirs(m), in, bytes);
	free(in);
	return err;
}

/* On the root: with the other side's; then for all of ours. */
static int agree_as_root(struct meeting *m, int failed, const int note[2])
{
	m->with.err = m->wire ? exchange_hello(m) : failed;
	if (!m->with.err)
		m->with.err = exchange_names(m);
	memcpy(m->with.note, note, sizeof(m->with.note));
	size_t bytes = m->with.err ? 0 : (size_t)m->size * sizeof(*m->process);
	size_t len = sizeof(m->with) + bytes;
	char *text = malloc(len);
	if (text)
		memcpy(text, &m->with, sizeof(m->with));
	if (text && bytes)
		memcpy(text + sizeof(m->with), m->process, bytes);
	int err = meeting_tell(
		m, text ? MPI_SUCCESS : weft_mpi_err(MPI_ERR_NO_MEM, "out of memory"), text, len);
	if (text)
		sodium_memzero(text, len);
	free(text);
	return m->with.err ? m->with.err : err;
}

static int agree_on_peer(struct meeting *m, int failed, int note[2])
{
	char *text;
	size_t len;

	if (m->local->rank == m->root)
		return agree_as_root(m, failed, note);
	int err = meeting_hear(m, &text, &len);
	if (err)
		return err;
	memcpy(&m->with, text, sizeof(m->with));
	memcpy(note, m->with.note, sizeof(m->with.note));
	if (!m->with.err) {
		m->size = m->local->size + m->with.their_size;
		size_t bytes = (size_t)m->size * sizeof(*m->process);
		weft_assert(len == sizeof(m->with) + bytes);
		m->process = malloc(bytes);
		if (m->process)
			memcpy(m->process, text + sizeof(m->with), bytes);
		else
			err = weft_mpi_err(MPI_ERR_NO_MEM, "out of memory");
	}
	sodium_memzero(text, len);
	free(text);
	return err ? err : m->with.err;
}

/* ---- texts of all members ----------------------------------------------------------------- */

/* Takes the text of each member of our side, one after the other, NUL-terminated; NULL text: that
 * member has failed, as an empty line says. */
static int gather_texts(struct meeting *m, const char *mine, char **out_p, size_t *len_p)
{
	char *out = NULL;
	size_t len = 0;
	int err = MPI_SUCCESS;

	for (int r = 0; r < m->local->size && !err; r++) {
		uint64_t n = strlen(mine) + 1;
		const char *from = mine;
		char *more;
		if (r != m->root) {
			err = weft_mpi_talk_recv(m->local->coll, m->local->group->world[r],
						 m->talk.tag, &n, sizeof(n));
			if (!err && (!n || n > TEXT_MAX))
				err = weft_mpi_err(MPI_ERR_INTERN, "a text without end");
			from = NULL;
		}
		if (err)
			break;
		more = realloc(out, len + n);
		if (!more) {
			err = weft_mpi_err(MPI_ERR_NO_MEM, "out of memory");
			break;
		}
		out = more;
		if (from)
			memcpy(out + len, from, n);
		else
			err = weft_mpi_talk_recv(m->local->coll, m->local->group->world[r],
						 m->talk.tag, out + len, n);
		len += n;
	}
	*out_p = out;
	*len_p = len;
	return err;
}

static int offer_text(struct meeting *m, const char *mine)
{
	uint64_t n = strlen(mine) + 1;
	int to = m->local->group->world[m->root];
	int err = weft_mpi_talk_send(m->local->coll, to, m->talk.tag, &n, sizeof(n));

	return err ? err : weft_mpi_talk_send(m->local->coll, to, m->talk.tag, mine, n);
}

/* Are these n texts, each with its end?  Fills text[0..n). */
static bool split_texts(char *all, size_t len, int n, char **text)
{
	size_t at = 0;

	for (int i = 0; i < n; i++) {
		size_t k = strnlen(all + at, len - at);
		if (at + k >= len)
			return false;
		text[i] = all + at;
		at += k + 1;
	}
	return at == len;
}

/* On the root: our texts go over, theirs come; *all_p holds both, in the domain's order. */
static int swap_texts(struct meeting *m, const char *ours, size_t ours_len, char **all_p,
		      size_t *len_p)
{
	void *theirs = NULL;
	size_t theirs_len = 0;
	int err = m->wire->swap(m->wire->arg, ours, ours_len, &theirs, &theirs_len);

	if (err)
		return err;
	*len_p = ours_len + theirs_len;
	*all_p = malloc(*len_p + 1);
	if (*all_p) {
		size_t at = m->with.first ? 0 : theirs_len;
		memcpy(*all_p + at, ours, ours_len);
		memcpy(*all_p + (m->with.first ? ours_len : 0), theirs, theirs_len);
	}
	free(theirs);
	return *all_p ? MPI_SUCCESS : weft_mpi_err(MPI_ERR_NO_MEM, "out of memory");
}

/* Every member says `mine` and hears what each of both sides has said. */
static int share_texts(struct meeting *m, const char *mine)
{
	char *ours = NULL, *all = NULL;
	size_t ours_len = 0, len = 0;
	int err;

	if (m->local->rank == m->root) {
		err = gather_texts(m, mine, &ours, &ours_len);
		if (!err)
			err = swap_texts(m, ours, ours_len, &all, &len);
		free(ours);
		int told = meeting_tell(m, err, all, len);
		err = err ? err : told;
	} else {
		err = offer_text(m, mine);
		int heard = meeting_hear(m, &all, &len);
		err = err ? err : heard;
	}
	free(m->all);
	m->all = all;
	if (err)
		return err;
	if (!split_texts(all, len, m->size, m->text))
		return weft_mpi_err(MPI_ERR_OTHER, "the other side could not be heard");
	return MPI_SUCCESS;
}

static weft_err space_put(void *arg, const char *key, const char *text)
{
	struct meeting *m = arg;

	return weft_boot_blob_add(&m->mine, key, text);
}

/* An empty text says that its member has failed. */
static weft_err fence_as(struct meeting *m, bool failed)
{
	int err = share_texts(m, failed ? "" : m->mine.text ? m->mine.text : "-");

	weft_boot_blob_fini(&m->mine);
	m->mine = (struct weft_boot_blob){0};
	for (int i = 0; i < m->size && !err; i++)
		if (!m->text[i][0])
			err = weft_mpi_err(MPI_ERR_OTHER,
					   "a process of the two groups cannot reach the others "
					   "(its own line says why)");
	m->broken = m->broken || err;
	return err ? WEFT_ERR_PEER : WEFT_OK;
}

static weft_err space_fence(void *arg)
{
	return fence_as(arg, false);
}

static weft_err space_get(void *arg, int rank, const char *key, char *buf, size_t size)
{
	struct meeting *m = arg;

	return weft_boot_blob_find(m->text[rank], key, buf, size);
}

/* ---- the domain --------------------------------------------------------------------------- */

static int join_core(struct meeting *m, struct weft_core **core_p)
{
	struct weft_comm_meeting how = {.rank = offset_of_ours(m) + m->local->rank,
					.size = m->size,
					.jobid = m->with.name,
					.secret = m->with.secret,
					.arg = m,
					.put = space_put,
					.fence = space_fence,
					.get = space_get};
	*core_p = NULL;
	weft_err err = weft_comm_join(&how, core_p);
	/* Those that go on hear of it at their next fence; the last one is here. */
	if (!m->broken && fence_as(m, err != WEFT_OK) && !err)
		err = WEFT_ERR_PEER;
	if (err && *core_p) {
		weft_comm_leave(*core_p);
		*core_p = NULL;
	}
	return err ? weft_mpi_err(MPI_ERR_OTHER, "the two groups cannot be connected: %s",
				  weft_strerror(err))
		   : MPI_SUCCESS;
}

static struct weft_mpi_group *side_group(struct weft_mpi_domain *d, int from, int n)
{
	int *world = malloc((size_t)n * sizeof(*world));

	for (int i = 0; world && i < n; i++)
		world[i] = from + i;
	struct weft_mpi_group *g = world ? weft_mpi_group_make_in(d, n, world) : NULL;
	free(world);
	return g;
}

/* Else parting would need connections of the new domain among the members of each side.  The tag is the
 * meeting's own: members may part in any order from groups that one communicator has met. */
static void remember_side(struct meeting *m, struct weft_mpi_comm *inter)
{
	weft_mpi_comm_ref(m->local);
	inter->before = m->local;
	inter->parting_tag = WEFT_MPI_TAG_PARTING | (m->talk.tag & (WEFT_MPI_TAG_COLL_END - 1));
}

static int build_intercomm(struct meeting *m, struct weft_mpi_domain *d,
			   struct weft_mpi_comm *parent, struct weft_mpi_comm **inter_p)
{
	struct weft_mpi_group *ours = side_group(d, offset_of_ours(m), m->local->size);
	struct weft_mpi_group *theirs = side_group(d, offset_of_theirs(m), m->with.their_size);
	struct weft_mpi_comm *inner = NULL;
	struct weft_mpi_comm_plan plan = {.id = m->with.first ? WEFT_MPI_ID_LOW : WEFT_MPI_ID_HIGH,
					  .keeper = -1,
					  .group = ours,
					  .parent = m->local};
	int err = ours && theirs ? weft_mpi_comm_build(&plan, &inner)
				 : weft_mpi_err(MPI_ERR_NO_MEM, "out of memory");
	if (!err) {
		plan.id = WEFT_MPI_ID_INTER;
		plan.remote = theirs;
		plan.local = inner;
		plan.parent = parent;
		err = weft_mpi_comm_build(&plan, inter_p);
		if (err)
			weft_mpi_comm_unref(inner);
		else
			remember_side(m, *inter_p);
	}
	weft_mpi_group_unref(ours);
	weft_mpi_group_unref(theirs);
	return err;
}

/* The first message: from here on each side notices the other's end, and both have all they need. */
static int shake_hands(struct meeting *m, struct weft_mpi_comm *inter)
{
	char out = 0, in;
	int err = MPI_SUCCESS;

	if (m->local->rank == m->root)
		err = weft_mpi_talk_swap(inter->coll, weft_mpi_comm_peer(inter, m->with.their_root),
					 WEFT_MPI_TAG_TALK, &out, 1, &in, 1);
	int told = weft_mpi_talk_bcast(&m->talk, m->root, &err, sizeof(err));
	return told ? told : err;
}

static int become_one(struct meeting *m, struct weft_mpi_comm *parent,
		      struct weft_mpi_comm **inter_p)
{
	struct weft_core *core = NULL;
	struct weft_mpi_domain *d = NULL;

	m->text = calloc((size_t)m->size, sizeof(*m->text));
	int err = m->text ? join_core(m, &core) : weft_mpi_err(MPI_ERR_NO_MEM, "out of memory");
	if (!err && !(d = weft_mpi_domain_make(core, m->size, m->process))) {
		weft_comm_leave(core);
		err = weft_mpi_err(MPI_ERR_NO_MEM, "out of memory");
	}
	if (!err) {
		err = build_intercomm(m, d, parent, inter_p);
		if (!err && (err = shake_hands(m, *inter_p))) {
			weft_mpi_comm_unref(*inter_p);
			*inter_p = NULL;
		}
		weft_mpi_domain_unuse(d);
	}
	free(m->text);
	free(m->all);
	return err;
}

int weft_mpi_meet(struct weft_mpi_comm *local, int root, const struct weft_mpi_wire *wire,
		  int failed, int note[2], struct weft_mpi_comm *parent,
		  struct weft_mpi_comm **inter_p)
{
	int none[2] = {0};
	struct meeting m = {
		.local = local, .talk = weft_mpi_talk_all(local), .root = root, .wire = wire};

	weft_mpi_domains_sweep();
	int err = agree_on_peer(&m, failed, note ? note : none);
	if (!err)
		err = become_one(&m, parent, inter_p);
	free(m.process);
	sodium_memzero(&m.with, sizeof(m.with));
	return err;
}
