/* SPDX-License-Identifier: BSD-3-Clause */
/* The scale of arming: each unchecked level has its checked one above it, which rings for the same. */
#include "base/arm_level.h"
#include "check.h"

int main(void)
{
	for (int i = WEFT_ARM_OFF; i <= WEFT_ARM_ALL; i++) {
		enum weft_arm_level level = (enum weft_arm_level)i,
				    checked = weft_arm_checked(level);
		CHECK(!weft_arm_is_unchecked(checked));
		CHECK_EQ(weft_arm_is_unchecked(level), checked > level);
		CHECK_EQ(weft_arm_is_for_replies(level), weft_arm_is_for_replies(checked));
		CHECK_EQ(checked == WEFT_ARM_OFF, level == WEFT_ARM_OFF);
		CHECK_EQ(checked == WEFT_ARM_ALL, level >= WEFT_ARM_ALL_UNCHECKED);
	}
	return 0;
}
