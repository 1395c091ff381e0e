/* ranks: 1 2 */
/* SPDX-License-Identifier: BSD-3-Clause */
/* Every setting and counter is reachable as a tool variable, and stands in one category; what can be written while MPI runs
 * takes effect. */
#include <mpi.h>

#include <string.h>
#include "../check.h"

static int all_equal(const char *name)
{
	return strncmp(name, "weft_coll_", 10) == 0 || strcmp(name, "weft_rma_path") == 0 ||
	       strncmp(name, "weft_file_", 10) == 0;
}

static void names_lead_back(void)
{
	int n, back, len, scope, bind;
	char name[64], desc[64];
	MPI_Datatype type;
	MPI_T_enum e;

	CHECK_EQ(MPI_T_cvar_get_num(&n), MPI_SUCCESS);
	CHECK(n > 5);
	for (int i = 0; i < n; i++) {
		int dlen = sizeof desc, verb;
		len = sizeof name;
		CHECK_EQ(MPI_T_cvar_get_info(i, name, &len, &verb, &type, &e, desc, &dlen, &bind,
					     &scope),
			 MPI_SUCCESS);
		CHECK(strlen(desc) < sizeof desc);
		CHECK_EQ(len, strlen(name) + 1);
		CHECK_EQ(MPI_T_cvar_get_index(name, &back), MPI_SUCCESS);
		CHECK_EQ(back, i);
		CHECK(scope == MPI_T_SCOPE_READONLY ||
		      scope == (all_equal(name) ? MPI_T_SCOPE_ALL_EQ : MPI_T_SCOPE_LOCAL));
	}
	CHECK_EQ(MPI_T_cvar_get_index("progress", &back), MPI_T_ERR_INVALID_NAME);
	CHECK_EQ(MPI_T_cvar_get_info(n, name, &len, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
		 MPI_T_ERR_INVALID_INDEX);
}

static void write_int(const char *name, int value, int want)
{
	int index, count, got = -77;
	MPI_T_cvar_handle h;

	CHECK_EQ(MPI_T_cvar_get_index(name, &index), MPI_SUCCESS);
	CHECK_EQ(MPI_T_cvar_handle_alloc(index, NULL, &h, &count), MPI_SUCCESS);
	CHECK_EQ(count, 1);
	int scope = -1;
	CHECK_EQ(MPI_T_cvar_get_info(index, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, &scope),
		 MPI_SUCCESS);
	/* What it says is what a write finds. */
	int closed = want == MPI_T_ERR_CVAR_SET_NOT_NOW || want == MPI_T_ERR_CVAR_SET_NEVER;
	CHECK_EQ(scope, closed            ? MPI_T_SCOPE_READONLY
			: all_equal(name) ? MPI_T_SCOPE_ALL_EQ
					  : MPI_T_SCOPE_LOCAL);
	CHECK_EQ(MPI_T_cvar_write(h, &value), want);
	CHECK_EQ(MPI_T_cvar_read(h, &got), MPI_SUCCESS);
	if (want == MPI_SUCCESS)
		CHECK_EQ(got, value);
	CHECK_EQ(MPI_T_cvar_handle_free(&h), MPI_SUCCESS);
	CHECK(h == MPI_T_CVAR_HANDLE_NULL);
}

static unsigned long long counter(const char *name)
{
	int index, count;
	unsigned long long v = 0;
	MPI_T_pvar_session s;
	MPI_T_pvar_handle h;

	CHECK_EQ(MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index), MPI_SUCCESS);
	CHECK_EQ(MPI_T_pvar_session_create(&s), MPI_SUCCESS);
	CHECK_EQ(MPI_T_pvar_handle_alloc(s, index, NULL, &h, &count), MPI_SUCCESS);
	CHECK_EQ(MPI_T_pvar_read(s, h, &v), MPI_SUCCESS);
	CHECK_EQ(MPI_T_pvar_start(s, h), MPI_T_ERR_PVAR_NO_STARTSTOP);
	CHECK_EQ(MPI_T_pvar_reset(s, h), MPI_T_ERR_PVAR_NO_WRITE);
	CHECK_EQ(MPI_T_pvar_handle_free(s, &h), MPI_SUCCESS);
	CHECK_EQ(MPI_T_pvar_read(s, h, &v), MPI_T_ERR_INVALID_HANDLE);
	CHECK_EQ(MPI_T_pvar_session_free(&s), MPI_SUCCESS);
	return v;
}

/* Of an enumeration, by its name. */
static void write_word(const char *name, const char *word)
{
	int index, items, value = -1;
	char item[64];
	MPI_T_enum e;

	CHECK_EQ(MPI_T_cvar_get_index(name, &index), MPI_SUCCESS);
	CHECK_EQ(MPI_T_cvar_get_info(index, NULL, NULL, NULL, NULL, &e, NULL, NULL, NULL, NULL),
		 MPI_SUCCESS);
	CHECK_EQ(MPI_T_enum_get_info(e, &items, NULL, NULL), MPI_SUCCESS);
	for (int i = 0; i < items; i++) {
		int v, len = sizeof item;
		CHECK_EQ(MPI_T_enum_get_item(e, i, &v, item, &len), MPI_SUCCESS);
		if (strcmp(item, word) == 0)
			value = v;
	}
	CHECK(value >= 0);
	write_int(name, value, MPI_SUCCESS);
}

/* What windows and collectives of two ranks do, before and after a write of what they read each time. */
static void takes_effect(int size)
{
	static const char *const path[] = {"owed", "copy", "auto"};
	char text[3][64];

	for (int i = 0; i < 3; i++) {
		MPI_Win win;
		MPI_Info info;
		int *base, flag;
		write_word("weft_rma_path", path[i]);
		MPI_Win_allocate(sizeof *base, sizeof *base, MPI_INFO_NULL, MPI_COMM_WORLD, &base,
				 &win);
		MPI_Win_get_info(win, &info);
		MPI_Info_get(info, "weft_paths", sizeof text[i] - 1, text[i], &flag);
		CHECK(flag);
		MPI_Info_free(&info);
		MPI_Win_free(&win);
	}
	CHECK(size == 1 ||
	      (strcmp(text[0], text[1]) && strcmp(text[1], text[2]) && strcmp(text[0], text[2])));
	for (int on = 0; on < 2; on++) {
		MPI_Comm c;
		write_word("weft_coll_shm", on ? "on" : "off");
		MPI_Comm_dup(MPI_COMM_WORLD, &c);
		unsigned long long before = counter("weft_coll_meetings");
		for (int i = 0, x = 1, sum; i < 50; i++) {
			MPI_Allreduce(&x, &sum, 1, MPI_INT, MPI_SUM, c);
			CHECK_EQ(sum, size);
		}
		unsigned long long met = counter("weft_coll_meetings") - before;
		CHECK(size == 1 || (on ? met > 0 : met == 0));
		MPI_Comm_free(&c);
	}
	write_word("weft_coll_shm", "auto");
	write_int("weft_spin_us", 0, MPI_SUCCESS);
	unsigned long long parks = counter("weft_parks");
	for (int i = 0; i < 20; i++)
		MPI_Barrier(MPI_COMM_WORLD);
	CHECK(counter("weft_parks") >= parks);
	write_int("weft_spin_us", -1, MPI_SUCCESS);
	write_int("weft_yield_max", 8, MPI_SUCCESS);
	write_int("weft_progress_budget", 50, MPI_SUCCESS);
	write_int("weft_idle_period_us", 100, MPI_SUCCESS);
	write_int("weft_accept_timeout", 5, MPI_SUCCESS);
	write_int("weft_tcp_silence", 1, MPI_T_ERR_INVALID);
	write_int("weft_timer_ms", 20, MPI_T_ERR_CVAR_SET_NOT_NOW);
}

enum { MOST = 300 };

/* Marks what a category holds, and those below it; each may be there once. */
static void walk(int cat, int parents[], int cvar[], int pvar[], int depth)
{
	char name[64], back[64];
	int len = sizeof name, cvars, pvars, below, again, list[MOST];

	CHECK(depth < 10 && ++parents[cat] == 1);
	CHECK_EQ(MPI_T_category_get_info(cat, name, &len, NULL, NULL, &cvars, &pvars, &below),
		 MPI_SUCCESS);
	CHECK_EQ(MPI_T_category_get_index(name, &again), MPI_SUCCESS);
	CHECK_EQ(again, cat);
	len = 5; /* cut off, and said how long it is */
	CHECK_EQ(MPI_T_category_get_info(cat, back, &len, NULL, NULL, NULL, NULL, NULL),
		 MPI_SUCCESS);
	CHECK(len == (int)strlen(name) + 1 && strcmp(back, "weft") == 0);
	CHECK(cvars < MOST && pvars < MOST && below < MOST);
	CHECK_EQ(MPI_T_category_get_cvars(cat, cvars, list), MPI_SUCCESS);
	for (int i = 0; i < cvars; i++)
		CHECK(++cvar[list[i]] == 1);
	CHECK_EQ(MPI_T_category_get_pvars(cat, pvars, list), MPI_SUCCESS);
	for (int i = 0; i < pvars; i++)
		CHECK(++pvar[list[i]] == 1);
	/* Fewer than there are: no more is written. */
	list[0] = list[1] = -1;
	CHECK_EQ(MPI_T_category_get_categories(cat, 1, list), MPI_SUCCESS);
	CHECK(list[1] == -1 && (list[0] == -1) == !below);
	CHECK_EQ(MPI_T_category_get_categories(cat, below, list), MPI_SUCCESS);
	for (int i = 0; i < below; i++)
		walk(list[i], parents, cvar, pvar, depth + 1);
}

static int stamp(void)
{
	int n = -1;
	CHECK_EQ(MPI_T_category_changed(&n), MPI_SUCCESS);
	return n;
}

static void categories(void)
{
	int child[MOST] = {0}, parents[MOST] = {0}, cvar[MOST] = {0}, pvar[MOST] = {0};
	int cats, n, below, list[MOST], name_len = 0, first = stamp();

	CHECK_EQ(MPI_T_category_get_num(&cats), MPI_SUCCESS);
	for (int c = 0; c < cats; c++) {
		CHECK_EQ(MPI_T_category_get_info(c, NULL, NULL, NULL, NULL, NULL, NULL, &below),
			 MPI_SUCCESS);
		CHECK_EQ(MPI_T_category_get_categories(c, below, list), MPI_SUCCESS);
		for (int i = 0; i < below; i++)
			child[list[i]]++;
	}
	for (int c = 0; c < cats; c++)
		if (!child[c])
			walk(c, parents, cvar, pvar, 0);
	for (int c = 0; c < cats; c++)
		CHECK(parents[c] == 1 && child[c] <= 1);
	CHECK_EQ(MPI_T_cvar_get_num(&n), MPI_SUCCESS);
	for (int i = 0; i < n; i++)
		CHECK_EQ(cvar[i], 1);
	CHECK_EQ(MPI_T_pvar_get_num(&n), MPI_SUCCESS);
	for (int i = 0; i < n; i++)
		CHECK_EQ(pvar[i], 1);
	CHECK_EQ(MPI_T_category_get_info(cats, NULL, &name_len, NULL, NULL, &n, &n, &n),
		 MPI_T_ERR_INVALID_INDEX);
	CHECK_EQ(MPI_T_category_get_cvars(-1, 0, list), MPI_T_ERR_INVALID_INDEX);
	CHECK_EQ(MPI_T_category_get_index("weft_nothing", &n), MPI_T_ERR_INVALID_NAME);
	/* Nothing of this changes, before MPI_Init and after. */
	CHECK_EQ(stamp(), first);
}

int main(int argc, char **argv)
{
	int provided, rank, size, x = 5, n;

	CHECK_EQ(MPI_T_cvar_get_num(&n), MPI_T_ERR_NOT_INITIALIZED);
	CHECK_EQ(MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided), MPI_SUCCESS);
	names_lead_back();
	categories();
	int stamped = stamp();
	write_int("weft_eager_shm", 2048, MPI_SUCCESS);
	write_int("weft_eager_shm", -2, MPI_T_ERR_INVALID);

	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	write_int("weft_eager_shm", 4096, MPI_T_ERR_CVAR_SET_NOT_NOW);
	write_int("weft_progress", 0, MPI_SUCCESS);
	write_int("weft_progress", 1, MPI_SUCCESS);
	/* Read at each use: it takes effect while MPI runs, when all ranks write the same. */
	write_int("weft_coll_flat", 4096, MPI_SUCCESS);
	int one = 1, sum = 0;
	CHECK_EQ(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD), MPI_SUCCESS);
	CHECK(sum >= 1);
	write_int("weft_coll_flat", -1, MPI_T_ERR_INVALID);
	write_int("weft_connect_timeout", 30, MPI_SUCCESS);
	MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 0, &x, 1, MPI_INT,
		     (rank + size - 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	CHECK_EQ(x, (rank + size - 1) % size);
	CHECK(size == 1 || counter("weft_eager_sent") >= 1);
	takes_effect(size);
	names_lead_back();
	categories();
	CHECK_EQ(stamp(), stamped);
	MPI_Finalize();
	write_int("weft_progress", 0, MPI_T_ERR_CVAR_SET_NEVER);
	CHECK_EQ(MPI_T_finalize(), MPI_SUCCESS);
	CHECK_EQ(MPI_T_finalize(), MPI_T_ERR_NOT_INITIALIZED);
	return 0;
}
