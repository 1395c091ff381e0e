/* SPDX-License-Identifier: BSD-3-Clause */
/* Settings are read from the environment, checked against their range, and changed one by one. */
#include "base/settings.h"
#include "check.h"

#include <string.h>

static void reads_environment(void)
{
	setenv("WEFT_EAGER_SHM", "4k", 1);
	setenv("WEFT_PROGRESS", "off", 1);
	CHECK_EQ(weft_settings_load(), WEFT_OK);
	CHECK_EQ(weft_setting_int(WEFT_SET_EAGER_SHM), 4096);
	CHECK(!weft_setting_bool(WEFT_SET_PROGRESS));
	CHECK(weft_setting_given(WEFT_SET_PROGRESS));
	CHECK(!weft_setting_given(WEFT_SET_DRIVERS));
}

static void refuses_nonsense(void)
{
	setenv("WEFT_EAGER_SHM", "-5", 1);
	CHECK_EQ(weft_settings_load(), WEFT_ERR_ARG);
	CHECK_EQ(weft_setting_int(WEFT_SET_EAGER_SHM), 8192);
	setenv("WEFT_EAGER_SHM", "99999999999999999999g", 1);
	CHECK_EQ(weft_settings_load(), WEFT_ERR_ARG);
	setenv("WEFT_EAGER_SHM", "12x", 1);
	CHECK_EQ(weft_settings_load(), WEFT_ERR_ARG);
	unsetenv("WEFT_EAGER_SHM");
	setenv("WEFT_LOG", "loud", 1);
	CHECK_EQ(weft_settings_load(), WEFT_ERR_ARG);
	unsetenv("WEFT_LOG");
}

static void changes_one(void)
{
	CHECK_EQ(weft_setting_set(WEFT_SET_LOG, "debug"), WEFT_OK);
	CHECK(strcmp(weft_setting_str(WEFT_SET_LOG), "debug") == 0);
	CHECK_EQ(weft_setting_set(WEFT_SET_LOG, "debu"), WEFT_ERR_ARG);
	CHECK_EQ(weft_setting_set(WEFT_SET_PROGRESS, "maybe"), WEFT_ERR_ARG);
}

int main(void)
{
	reads_environment();
	refuses_nonsense();
	changes_one();
	return 0;
}
