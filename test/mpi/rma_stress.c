/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 2 3 4 */
/*
 * rma_stress.c - random windows, epochs, layouts and operations against a model in each rank's memory.
 *
 *	rma_stress [SEED [ROUNDS]]      RMA_STRESS=single: one thread, which lets windows do more
 *
 * All ranks draw the same plan.  A window is cut into regions; in an epoch a region is put to by one
 * rank, read by any, accumulated by all with one operation that commutes, or changed by one rank by any
 * accumulates in their order.  So the contents at the end are certain, and what reads and most fetches give.
 */
#include <pthread.h>
#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include "mpitest.h"

enum { RANKS_MOST = 4, BYTES_MOST = 65536, ACTS_MOST = 256, REGIONS_MOST = 12, THREADS = 3 };

/* ---- chance: the same in all ranks -------------------------------------------------------- */

static uint64_t state;

static unsigned draw(unsigned below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (unsigned)(state * 0x2545f4914f6cdd1du >> 33) % below;
}

/* ---- elements ----------------------------------------------------------------------------- */

enum { I8, I16, I32, I64, U32, F32, F64, C64, ELEMS };
static const int size_of[ELEMS] = {1, 2, 4, 8, 4, 4, 8, 16};
static MPI_Datatype type_of[ELEMS];
enum { SUM, MAX, MIN, PROD, BAND, BOR, BXOR, REPLACE, NO_OP, OPS };
static MPI_Op op_of[OPS];

static void tables(void)
{
	MPI_Datatype t[] = {MPI_INT8_T,   MPI_INT16_T, MPI_INT32_T, MPI_INT64_T,
			    MPI_UINT32_T, MPI_FLOAT,   MPI_DOUBLE,  MPI_C_DOUBLE_COMPLEX};
	MPI_Op o[] = {MPI_SUM, MPI_MAX,  MPI_MIN,     MPI_PROD, MPI_BAND,
		      MPI_BOR, MPI_BXOR, MPI_REPLACE, MPI_NO_OP};

	memcpy(type_of, t, sizeof t);
	memcpy(op_of, o, sizeof o);
}

/* Small numbers, so that sums of floats are exact in any order. */
static void element_draw(int elem, void *to)
{
	unsigned v = draw(8);

	if (elem == F32)
		*(float *)to = (float)v;
	else if (elem == F64)
		*(double *)to = v;
	else if (elem == C64)
		((double *)to)[0] = v, ((double *)to)[1] = 7 - v;
	else
		for (int i = 0; i < size_of[elem]; i++)
			((unsigned char *)to)[i] = (unsigned char)draw(256);
}

#define WHOLE(T)                                                                                   \
	do {                                                                                       \
		T a, b;                                                                            \
		memcpy(&a, in, sizeof a);                                                          \
		memcpy(&b, inout, sizeof b);                                                       \
		switch (op) {                                                                      \
		case SUM:                                                                          \
			b = (T)((uint64_t)a + (uint64_t)b);                                        \
			break;                                                                     \
		case PROD:                                                                         \
			b = (T)((uint64_t)a * (uint64_t)b);                                        \
			break;                                                                     \
		case MAX:                                                                          \
			b = a > b ? a : b;                                                         \
			break;                                                                     \
		case MIN:                                                                          \
			b = a < b ? a : b;                                                         \
			break;                                                                     \
		case BAND:                                                                         \
			b = (T)(a & b);                                                            \
			break;                                                                     \
		case BOR:                                                                          \
			b = (T)(a | b);                                                            \
			break;                                                                     \
		default:                                                                           \
			b = (T)(a ^ b);                                                            \
		}                                                                                  \
		memcpy(inout, &b, sizeof b);                                                       \
	} while (0)
#define FLOATS(T, n)                                                                               \
	do {                                                                                       \
		T a[n], b[n];                                                                      \
		memcpy(a, in, sizeof a);                                                           \
		memcpy(b, inout, sizeof b);                                                        \
		for (int i = 0; i < n; i++)                                                        \
			b[i] = op == SUM   ? a[i] + b[i]                                           \
			       : op == MAX ? (a[i] > b[i] ? a[i] : b[i])                           \
					   : (a[i] < b[i] ? a[i] : b[i]);                          \
		memcpy(inout, b, sizeof b);                                                        \
	} while (0)

static void model_op(int op, int elem, const void *in, void *inout)
{
	if (op == REPLACE)
		memcpy(inout, in, (size_t)size_of[elem]);
	if (op == REPLACE || op == NO_OP)
		return;
	switch (elem) {
	case I8:
		WHOLE(int8_t);
		break;
	case I16:
		WHOLE(int16_t);
		break;
	case I32:
		WHOLE(int32_t);
		break;
	case I64:
		WHOLE(int64_t);
		break;
	case U32:
		WHOLE(uint32_t);
		break;
	case F32:
		FLOATS(float, 1);
		break;
	case F64:
		FLOATS(double, 1);
		break;
	default:
		FLOATS(double, 2);
	}
}

static int draw_op(int elem, int commutes)
{
	int op = (int)draw(commutes ? REPLACE : OPS);

	if (elem == C64 && (op == MAX || op == MIN))
		return SUM;
	return elem >= F32 && op >= PROD && op < REPLACE ? SUM : op;
}

/* ---- the plan ----------------------------------------------------------------------------- */

enum kind { PUT, GET, ACC, GET_ACC, FETCH, SWAP };

struct act {
	enum kind kind;
	int origin, target, elem, op, n, region;
	int *at;               /* byte offsets of the elements in the window */
	int here_step;         /* of the elements in the own buffers, in elements */
	char *in, *out, *want; /* packed operands, what is read, what must be read (NULL: any) */
	char compare[16];
	/* the origin's alone */
	char *in_here, *out_here;
	MPI_Datatype there_type, here_type;
	int there_count, here_count;
	MPI_Aint disp;
};

static struct act act[ACTS_MOST];
static int n_acts, bytes, unit[RANKS_MOST];
static char *model[RANKS_MOST], *memory;
static MPI_Aint where[RANKS_MOST]; /* dynamic: addresses; else 0 */
static MPI_Win win;
static int threads;

/* Picks elements of [from, from + len) that no earlier pick of this act's `taken` has. */
static void pick(struct act *a, int from, int len)
{
	int es = size_of[a->elem], most = len / es, step = draw(2) ? 1 : 1 + (int)draw(3);
	int n = 1 + (int)draw((unsigned)((most + step - 1) / step)), first;

	if (!draw(3))
		n = (most + step - 1) / step;
	if (a->kind == FETCH || a->kind == SWAP)
		n = 1;
	first = (int)draw((unsigned)(most - (n - 1) * step));
	a->n = n;
	a->at = malloc((size_t)n * sizeof *a->at);
	for (int i = 0; i < n; i++)
		a->at[i] = from + (first + i * step) * es;
	if (draw(2) && n < 500) /* in any order */
		for (int i = n - 1; i > 0; i--) {
			int j = (int)draw((unsigned)i + 1), t = a->at[i];
			a->at[i] = a->at[j];
			a->at[j] = t;
		}
}

static void run_in_model(struct act *a, int certain)
{
	size_t es = (size_t)size_of[a->elem];

	a->in = malloc((size_t)a->n * es);
	a->out = malloc((size_t)a->n * es);
	a->want = malloc((size_t)a->n * es);
	for (int i = 0; i < a->n; i++) {
		char *there = model[a->target] + a->at[i], *in = a->in + (size_t)i * es;
		alignas(16) char v[16];
		element_draw(a->elem, v);
		memcpy(in, v, es);
		memcpy(a->want + (size_t)i * es, there, es);
		if (a->kind == PUT)
			memcpy(there, in, es);
		else if (a->kind == SWAP && memcmp(a->compare, there, es) == 0)
			memcpy(there, in, es);
		else if (a->kind == ACC || a->kind == GET_ACC || a->kind == FETCH)
			model_op(a->op, a->elem, in, there);
	}
	if (!certain) {
		free(a->want);
		a->want = NULL;
	}
}

static struct act *act_new(enum kind kind, int origin, int target, int elem, int region)
{
	struct act *a = &act[n_acts++];

	*a = (struct act){.kind = kind, .origin = origin, .target = target, .elem = elem};
	a->region = region;
	a->here_step = draw(3) ? 1 : 2;
	return a;
}

/* One rank, any operations, in their order. */
static void plan_ordered(int target, int elem, int region, int from, int len)
{
	int origin = (int)draw((unsigned)size), n = 1 + (int)draw(4);

	for (int i = 0; i < n; i++) {
		enum kind kind = ACC + draw(4);
		if (kind == SWAP && (elem >= F32 || unit[target] > size_of[elem]))
			kind = FETCH;
		struct act *a = act_new(kind, origin, target, elem, region);
		a->op = draw_op(elem, 0);
		if (kind == ACC && a->op == NO_OP)
			a->op = REPLACE;
		pick(a, from, len);
		if (kind == SWAP && draw(2))
			memcpy(a->compare, model[target] + a->at[0], (size_t)size_of[elem]);
		run_in_model(a, 1);
	}
}

static void plan_region(int target, int region, int from, int len)
{
	int elem = (int)draw(ELEMS), mode = (int)draw(4), op = draw_op(elem, 1);

	from = (from + 15) / 16 * 16;
	len = len / 16 * 16 - 16;
	if (len < 16)
		return;
	for (int at = from; at < from + len; at += size_of[elem]) {
		alignas(16) char v[16];
		element_draw(elem, v);
		memcpy(model[target] + at, v, (size_t)size_of[elem]);
	}
	if (rank == target)
		memcpy(memory + from, model[target] + from, (size_t)len);
	if (mode == 0) {
		struct act *a = act_new(PUT, (int)draw((unsigned)size), target, elem, region);
		pick(a, from, len);
		run_in_model(a, 0);
	} else if (mode == 1) {
		for (int o = 0; o < size; o++)
			if (draw(2)) {
				struct act *a = act_new(GET, o, target, elem, region);
				pick(a, from, len);
				run_in_model(a, 1);
			}
	} else if (mode == 2) {
		plan_ordered(target, elem, region, from, len);
	} else {
		for (int o = 0; o < size; o++)
			for (int i = (int)draw(3); i > 0; i--) {
				struct act *a = act_new(ACC + draw(3), o, target, elem, region);
				a->op = op;
				pick(a, from, len);
				run_in_model(a, 0);
			}
	}
}

static void plan(void)
{
	n_acts = 0;
	for (int t = 0; t < size; t++) {
		int regions = 1 + (int)draw(REGIONS_MOST), from = 0;
		if (regions > ACTS_MOST / (RANKS_MOST * 8))
			regions = ACTS_MOST / (RANKS_MOST * 8);
		for (int r = 0; r < regions; r++) {
			int len = r == regions - 1 ? bytes - from
						   : 32 + (int)draw((unsigned)(bytes / regions));
			if (len > bytes - from)
				len = bytes - from;
			if (len >= 32)
				plan_region(t, r, from, len);
			from += len;
		}
	}
}

static void plan_free(void)
{
	for (int i = 0; i < n_acts; i++) {
		free(act[i].at);
		free(act[i].in);
		free(act[i].out);
		free(act[i].want);
	}
}

/* ---- running it --------------------------------------------------------------------------- */

/* A layout of elements at these bytes behind *base_p, in one of several ways. */
static MPI_Datatype layout(int elem, int n, const int *at, int base, int *count_p)
{
	MPI_Datatype t, u;
	int es = size_of[elem], step = n > 1 ? at[1] - at[0] : es, regular = 1;
	MPI_Aint *disp = malloc((size_t)n * sizeof *disp), first = at[0] - base;
	int one = 1;

	for (int i = 0; i < n; i++) {
		disp[i] = at[i] - base;
		regular &= i == 0 || at[i] - at[i - 1] == step;
	}
	*count_p = 1;
	if (regular && step == es && first == 0) {
		*count_p = n;
		MPI_Type_contiguous(1, type_of[elem], &t);
	} else if (regular && step > 0 && first == 0) {
		*count_p = n;
		MPI_Type_create_resized(type_of[elem], 0, step, &t);
	} else if (regular) {
		MPI_Type_create_hvector(n, 1, step, type_of[elem], &u);
		MPI_Type_create_struct(1, &one, &first, &u, &t);
		MPI_Type_free(&u);
	} else {
		MPI_Type_create_hindexed_block(n, 1, disp, type_of[elem], &t);
	}
	OK(MPI_Type_commit(&t));
	free(disp);
	return t;
}

static char *spread(const struct act *a, const char *packed)
{
	size_t es = (size_t)size_of[a->elem], step = es * (size_t)a->here_step;
	char *here = malloc((size_t)a->n * step);

	memset(here, 0x5a, (size_t)a->n * step);
	for (int i = 0; packed && i < a->n; i++)
		memcpy(here + (size_t)i * step, packed + (size_t)i * es, es);
	return here;
}

static void prepare(struct act *a)
{
	int *here_at = malloc((size_t)a->n * sizeof *here_at), u = unit[a->target];
	int lead = where[a->target] ? a->at[0] : a->at[0] / u * u;

	for (int i = 0; i < a->n; i++)
		here_at[i] = i * a->here_step * size_of[a->elem];
	a->here_type = layout(a->elem, a->n, here_at, 0, &a->here_count);
	a->there_type = layout(a->elem, a->n, a->at, lead, &a->there_count);
	a->disp = where[a->target] ? MPI_Aint_add(where[a->target], lead) : lead / u;
	a->in_here = spread(a, a->in);
	a->out_here = spread(a, NULL);
	free(here_at);
}

/* What has been read, and what lies between. */
static void verify(struct act *a)
{
	size_t es = (size_t)size_of[a->elem], step = es * (size_t)a->here_step;

	for (int i = 0; i < a->n; i++) {
		if (a->kind != PUT && a->kind != ACC && a->want)
			CHECK(memcmp(a->out_here + (size_t)i * step, a->want + (size_t)i * es,
				     es) == 0);
		for (size_t k = es; k < step; k++)
			CHECK(a->out_here[(size_t)i * step + k] == 0x5a);
	}
	MPI_Type_free(&a->here_type);
	MPI_Type_free(&a->there_type);
	free(a->in_here);
	free(a->out_here);
}

static MPI_Request start(struct act *a, int by_request)
{
	MPI_Request r = MPI_REQUEST_NULL;
	MPI_Datatype e = type_of[a->elem];
	const void *in = a->op == NO_OP && a->kind != PUT && a->kind != SWAP ? NULL : a->in_here;
	int c = a->here_count, t = a->target, tc = a->there_count, ic = in ? c : 0;
	MPI_Datatype ht = a->here_type, tt = a->there_type;
	MPI_Op op = op_of[a->op];

	switch (a->kind) {
	case PUT:
		OK(by_request ? MPI_Rput(in, c, ht, t, a->disp, tc, tt, win, &r)
			      : MPI_Put(in, c, ht, t, a->disp, tc, tt, win));
		break;
	case GET:
		OK(by_request ? MPI_Rget(a->out_here, c, ht, t, a->disp, tc, tt, win, &r)
			      : MPI_Get(a->out_here, c, ht, t, a->disp, tc, tt, win));
		break;
	case ACC:
		OK(by_request ? MPI_Raccumulate(in, c, ht, t, a->disp, tc, tt, op, win, &r)
			      : MPI_Accumulate(in, c, ht, t, a->disp, tc, tt, op, win));
		break;
	case GET_ACC:
		OK(by_request ? MPI_Rget_accumulate(in, ic, ht, a->out_here, c, ht, t, a->disp, tc,
						    tt, op, win, &r)
			      : MPI_Get_accumulate(in, ic, ht, a->out_here, c, ht, t, a->disp, tc,
						   tt, op, win));
		break;
	default: { /* one element, at an offset that the unit must divide; else the long form */
		MPI_Aint disp = where[t] ? MPI_Aint_add(where[t], a->at[0]) : a->at[0] / unit[t];
		if (!where[t] && a->at[0] % unit[t]) {
			CHECK(a->kind == FETCH);
			OK(MPI_Get_accumulate(in, ic, ht, a->out_here, c, ht, t, a->disp, tc, tt,
					      op, win));
		} else if (a->kind == FETCH) {
			OK(MPI_Fetch_and_op(in, a->out_here, e, t, disp, op, win));
		} else {
			OK(MPI_Compare_and_swap(a->in_here, a->compare, a->out_here, e, t, disp,
						win));
		}
	}
	}
	return r;
}

/* Accesses of this rank to `target` (-1: all), of regions that thread `of` of `threads` has. */
static void accesses(int target, int by_request, int of, int threads)
{
	MPI_Request r[ACTS_MOST];
	int n = 0;

	for (int i = 0; i < n_acts; i++)
		if (act[i].origin == rank && (target < 0 || act[i].target == target) &&
		    act[i].region % threads == of) {
			r[n++] = start(&act[i], by_request);
			/* Later ones of its region need it over, or may follow. */
			if (by_request && i % 3 == 0)
				OK(MPI_Wait(&r[n - 1], MPI_STATUS_IGNORE));
			if (by_request && i % 5 == 0)
				OK(MPI_Win_flush(act[i].target, win));
		}
	OK(MPI_Waitall(n, r, MPI_STATUSES_IGNORE));
}

static void *thread_main(void *arg)
{
	accesses(-1, (int)(intptr_t)arg & 1, (int)(intptr_t)arg, THREADS);
	return NULL;
}

static void by_threads(void)
{
	pthread_t t[THREADS];

	for (intptr_t i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, thread_main, (void *)i), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
}

/* All ranks draw the same; what each does alone is drawn from its own part. */
static void epoch(void)
{
	int way = (int)draw(5), by_request = (int)draw(2);
	MPI_Group all;

	if (way == 0) {
		OK(MPI_Win_fence(MPI_MODE_NOPRECEDE, win));
		accesses(-1, 0, 0, 1);
		OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
		return;
	}
	if (way == 1) {
		OK(MPI_Win_get_group(win, &all));
		OK(MPI_Win_post(all, 0, win));
		OK(MPI_Win_start(all, 0, win));
		accesses(-1, 0, 0, 1);
		OK(MPI_Win_complete(win));
		OK(MPI_Win_wait(win));
		OK(MPI_Group_free(&all));
		return;
	}
	OK(MPI_Win_sync(win));
	test_barrier();
	if (way == 2) {
		for (int i = 0; i < size; i++) {
			int t = (rank + i) % size;
			OK(MPI_Win_lock((rank + i) % 2 ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, t, 0,
					win));
			accesses(t, by_request, 0, 1);
			OK(MPI_Win_unlock(t, win));
		}
	} else {
		OK(MPI_Win_lock_all(0, win));
		if (way == 3 || !threads)
			accesses(-1, by_request, 0, 1);
		else
			by_threads();
		OK(MPI_Win_unlock_all(win));
	}
	test_barrier();
	OK(MPI_Win_sync(win));
}

/* Byte `at` of the own memory is not what it must be: what has been done around it. */
static void differs(int at)
{
	fprintf(stderr, "rank %d of %d, byte %d of %d: %02x, want %02x\n", rank, size, at, bytes,
		memory[at] & 0xff, model[rank][at] & 0xff);
	for (int i = 0; i < n_acts; i++)
		for (int k = 0; act[i].target == rank && k < act[i].n; k++)
			if (act[i].at[k] <= at && at < act[i].at[k] + size_of[act[i].elem])
				fprintf(stderr,
					"  by rank %d: kind %d, op %d, elem %d, number %d of %d, "
					"at %d\n",
					act[i].origin, act[i].kind, act[i].op, act[i].elem, k,
					act[i].n, act[i].at[k]);
	exit(1);
}

static void epoch_checked(void)
{
	plan();
	for (int i = 0; i < n_acts; i++)
		if (act[i].origin == rank)
			prepare(&act[i]);
	epoch();
	for (int i = 0; i < bytes; i++)
		if (memory[i] != model[rank][i])
			differs(i);
	for (int i = 0; i < n_acts; i++)
		if (act[i].origin == rank)
			verify(&act[i]);
	plan_free();
	/* Before the next stores to the own memory. */
	test_barrier();
}

static void window(int epochs)
{
	int flavor = (int)draw(5);
	MPI_Info info;
	char *base = NULL;

	bytes = draw(3) ? 64 + (int)draw(2000) / 16 * 16 : BYTES_MOST;
	for (int r = 0; r < size; r++) {
		unit[r] = flavor == 4 ? 1 : 1 << draw(4);
		where[r] = 0;
		memset(model[r], 0, (size_t)bytes);
	}
	OK(MPI_Info_create(&info));
	if (flavor == 3)
		OK(MPI_Info_set(info, "alloc_shared_noncontig", "true"));
	if (flavor == 0) {
		base = aligned_alloc(64, (size_t)(bytes + 63) / 64 * 64);
		OK(MPI_Win_create(base, bytes, unit[rank], info, MPI_COMM_WORLD, &win));
	} else if (flavor == 1) {
		OK(MPI_Win_allocate(bytes, unit[rank], info, MPI_COMM_WORLD, &memory, &win));
	} else if (flavor == 4) {
		int half = bytes / 2 / 16 * 16;
		base = aligned_alloc(64, (size_t)(bytes + 63) / 64 * 64);
		OK(MPI_Win_create_dynamic(info, MPI_COMM_WORLD, &win));
		OK(MPI_Win_attach(win, base + half, bytes - half));
		OK(MPI_Win_attach(win, base, half));
		OK(MPI_Get_address(base, &where[rank]));
		MPI_Aint mine = where[rank];
		OK(MPI_Allgather(&mine, 1, MPI_AINT, where, 1, MPI_AINT, MPI_COMM_WORLD));
	} else if (MPI_Win_allocate_shared(bytes, unit[rank], info, MPI_COMM_WORLD, &memory,
					   &win)) {
		OK(MPI_Win_allocate(bytes, unit[rank], info, MPI_COMM_WORLD, &memory, &win));
	}
	OK(MPI_Info_free(&info));
	memory = base ? base : memory;
	memset(memory, 0, (size_t)bytes);
	test_barrier();
	while (epochs-- > 0)
		epoch_checked();
	if (flavor == 4 && draw(2))
		OK(MPI_Win_detach(win, base));
	OK(MPI_Win_free(&win));
	free(base);
}

int main(int argc, char **argv)
{
	uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 20261126;
	int rounds = argc > 2 ? atoi(argv[2]) : 40;

	threads = !getenv("RMA_STRESS");
	test_start(&argc, &argv, threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE);
	CHECK(size <= RANKS_MOST);
	OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
	tables();
	if (rank == 0)
		printf("seed %llu, %d windows\n", (unsigned long long)seed, rounds);
	for (int r = 0; r < size; r++)
		model[r] = aligned_alloc(64, BYTES_MOST);
	for (int i = 0; i < rounds; i++) {
		state = (seed + (uint64_t)i) * 0x9e3779b97f4a7c15u | 1;
		for (int k = 0; k < 8; k++)
			draw(2);
		window(1 + (int)draw(5));
	}
	for (int r = 0; r < size; r++)
		free(model[r]);
	return test_end();
}
