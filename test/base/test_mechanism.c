/* SPDX-License-Identifier: BSD-3-Clause */
/* The setting `without` turns off what it names, and nothing else; an unknown name is an error. */
#include "base/mechanism.h"
#include "base/settings.h"
#include "check.h"

static void all_are_on(void)
{
	CHECK_EQ(weft_mechanisms_init(), WEFT_OK);
	for (int m = 0; m < WEFT_MECH_COUNT; m++)
		CHECK(weft_mechanism_on((enum weft_mechanism)m));
}

static void named_are_off(void)
{
	CHECK_EQ(weft_setting_set(WEFT_SET_WITHOUT, "turns,line_runs"), WEFT_OK);
	CHECK_EQ(weft_mechanisms_init(), WEFT_OK);
	for (int m = 0; m < WEFT_MECH_COUNT; m++)
		CHECK_EQ(weft_mechanism_on((enum weft_mechanism)m),
			 m != WEFT_MECH_TURNS && m != WEFT_MECH_LINE_RUNS);
}

static void unknown_is_refused(void)
{
	CHECK_EQ(weft_setting_set(WEFT_SET_WITHOUT, "turn"), WEFT_OK);
	CHECK_EQ(weft_mechanisms_init(), WEFT_ERR_ARG);
	CHECK_EQ(weft_setting_set(WEFT_SET_WITHOUT, "turns,"), WEFT_OK);
	CHECK_EQ(weft_mechanisms_init(), WEFT_OK);
	CHECK(!weft_mechanism_on(WEFT_MECH_TURNS));
}

int main(void)
{
	all_are_on();
	named_are_off();
	unknown_is_refused();
	return 0;
}
