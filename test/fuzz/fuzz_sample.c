/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_sample.c - the file of measured switch points: what is taken lies within the settings'
 * ranges. */
#include "base/sample.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct weft_sample out;
	char why[64] = "";
	/* Exactly as long as it is: a read behind it is seen. */
	char *text = malloc(size ? size : 1);

	CHECK(text);
	if (size)
		memcpy(text, data, size);
	weft_err err = weft_sample_parse(text, size, &out, why, sizeof why);
	free(text);
	CHECK(!err == !why[0]);
	for (int i = 0; i < WEFT_SAMPLE_COUNT; i++) {
		const struct weft_setting *s = weft_setting_info(weft_sample_id[i]);
		CHECK(out.value[i] == -1 ||
		      (!err && out.value[i] >= s->lo && out.value[i] <= s->hi));
	}
	return 0;
}
