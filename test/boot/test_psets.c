/* SPDX-License-Identifier: BSD-3-Clause */
/* Process sets: WORLD and SELF are there at once; a set keeps its number and its first members. */
#include "boot/psets.h"
#include "check.h"

#include <stdio.h>
#include <string.h>

static void has_mpis_own(void)
{
	struct weft_boot_pset s;
	CHECK_EQ(weft_boot_psets_count(), 0);
	CHECK_EQ(weft_boot_psets_open(3, 10), WEFT_OK);
	CHECK_EQ(weft_boot_psets_count(), 2);
	CHECK_EQ(weft_boot_psets_at(0, &s), WEFT_OK);
	CHECK(strcmp(s.name, "mpi://WORLD") == 0 && s.size == 10);
	CHECK_EQ(weft_boot_pset_rank(&s, 9), 9);
	CHECK_EQ(weft_boot_psets_find("mpi://SELF", &s), WEFT_OK);
	CHECK_EQ(s.size, 1);
	CHECK_EQ(weft_boot_pset_rank(&s, 0), 3);
	CHECK_EQ(weft_boot_psets_at(2, &s), WEFT_ERR_NOENT);
	CHECK_EQ(weft_boot_psets_at(-1, &s), WEFT_ERR_NOENT);
	CHECK_EQ(weft_boot_psets_find("mpi://world", &s), WEFT_ERR_NOENT);
}

static void keeps_what_is_added(void)
{
	struct weft_boot_pset s;
	const int odd[] = {1, 3, 5}, run[] = {4, 5, 6}, back[] = {2, 1}, twice[] = {1, 1},
		  far[] = {9, 10}, low[] = {-1};
	char longest[WEFT_PSET_NAME_MAX + 1];
	CHECK_EQ(weft_boot_psets_add("odd", odd, 3), WEFT_OK);
	CHECK_EQ(weft_boot_psets_add("run", run, 3), WEFT_OK);
	CHECK_EQ(weft_boot_psets_add("odd", run, 3), WEFT_OK);
	CHECK_EQ(weft_boot_psets_count(), 4);
	CHECK_EQ(weft_boot_psets_at(2, &s), WEFT_OK);
	CHECK(strcmp(s.name, "odd") == 0 && s.size == 3 && weft_boot_pset_rank(&s, 2) == 5);
	CHECK_EQ(weft_boot_psets_find("run", &s), WEFT_OK);
	CHECK(!s.ranks && s.size == 3 && weft_boot_pset_rank(&s, 2) == 6);
	CHECK_EQ(weft_boot_psets_add("back", back, 2), WEFT_ERR_ARG);
	CHECK_EQ(weft_boot_psets_add("twice", twice, 2), WEFT_ERR_ARG);
	CHECK_EQ(weft_boot_psets_add("far", far, 2), WEFT_ERR_ARG);
	CHECK_EQ(weft_boot_psets_add("low", low, 1), WEFT_ERR_ARG);
	CHECK_EQ(weft_boot_psets_add("none", odd, 0), WEFT_ERR_ARG);
	CHECK_EQ(weft_boot_psets_add("", odd, 3), WEFT_ERR_ARG);
	memset(longest, 'n', sizeof longest);
	longest[WEFT_PSET_NAME_MAX] = 0;
	CHECK_EQ(weft_boot_psets_add(longest, odd, 3), WEFT_ERR_ARG);
	longest[WEFT_PSET_NAME_MAX - 1] = 0;
	CHECK_EQ(weft_boot_psets_add(longest, odd, 3), WEFT_OK);
	CHECK_EQ(weft_boot_psets_count(), 5);
}

static void keeps_numbers_and_memory_while_it_grows(void)
{
	struct weft_boot_pset first, s;
	const int one[] = {7};
	char name[32];
	CHECK_EQ(weft_boot_psets_find("odd", &first), WEFT_OK);
	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof name, "set %d", i);
		CHECK_EQ(weft_boot_psets_add(name, one, 1), WEFT_OK);
	}
	CHECK_EQ(weft_boot_psets_at(2, &s), WEFT_OK);
	CHECK(s.name == first.name && s.ranks == first.ranks);
	CHECK_EQ(weft_boot_psets_at(1004, &s), WEFT_OK);
	CHECK(strcmp(s.name, "set 999") == 0 && weft_boot_pset_rank(&s, 0) == 7);
	weft_boot_psets_close();
	CHECK_EQ(weft_boot_psets_count(), 0);
	CHECK_EQ(weft_boot_psets_find("odd", &s), WEFT_ERR_NOENT);
}

int main(void)
{
	has_mpis_own();
	keeps_what_is_added();
	keeps_numbers_and_memory_while_it_grows();
	return 0;
}
