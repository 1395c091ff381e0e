/* SPDX-License-Identifier: BSD-3-Clause */
/* mechanism.c - which mechanisms are left out, and the list of all. */
#include "base/mechanism.h"

#include <assert.h>
#include <string.h>
#include "base/log.h"
#include "base/settings.h"

static const struct {
	const char *name, *what;
} table[] = {
#define WEFT_MECHANISM(id, name, what) [WEFT_MECH_##id] = {name, what},
#include "base/mechanism_table.h"
#undef WEFT_MECHANISM
};
static_assert(WEFT_MECH_COUNT <= 64, "weft_mechanisms_off has a bit for each");

uint64_t weft_mechanisms_off;

/* WEFT_MECH_COUNT: there is none of that name. */
static int mechanism_of(const char *name, size_t len)
{
	int m = 0;
	while (m < WEFT_MECH_COUNT &&
	       (strncmp(table[m].name, name, len) != 0 || table[m].name[len]))
		m++;
	return m;
}

static weft_err refuse_name(const char *name, size_t len)
{
	char all[1024];
	size_t n = 0;
	for (int m = 0; m < WEFT_MECH_COUNT && n < sizeof all; m++)
		n += (size_t)snprintf(all + n, sizeof all - n, "%s%s", m ? ", " : "",
				      table[m].name);
	weft_error("WEFT_WITHOUT names \"%.*s\", which is no mechanism; there are %s", (int)len,
		   name, all);
	return WEFT_ERR_ARG;
}

weft_err weft_mechanisms_init(void)
{
	uint64_t off = 0;
	for (const char *s = weft_setting_str(WEFT_SET_WITHOUT); *s;) { /* ends: s moves on */
		size_t len = strcspn(s, ",");
		int m = mechanism_of(s, len);
		if (m == WEFT_MECH_COUNT)
			return refuse_name(s, len);
		off |= UINT64_C(1) << m;
		s += len + (s[len] == ',');
	}
	weft_mechanisms_off = off;
	return WEFT_OK;
}

void weft_mechanisms_print(FILE *out)
{
	for (int m = 0; m < WEFT_MECH_COUNT; m++)
		fprintf(out, "%-14s %-3s  %s\n", table[m].name,
			weft_mechanism_on((enum weft_mechanism)m) ? "on" : "off", table[m].what);
}
