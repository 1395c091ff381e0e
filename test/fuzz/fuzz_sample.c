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
	CHECK(out.n_hosts <= (err ? 0 : WEFT_SAMPLE_HOSTS));
	if (!err) { /* what is written reads the same */
		static struct weft_sample again;
		char made[WEFT_SAMPLE_MAX];
		CHECK_EQ(weft_sample_print(&out, made, sizeof made), WEFT_OK);
		CHECK_EQ(weft_sample_parse(made, strlen(made), &again, why, sizeof why), WEFT_OK);
		CHECK_EQ(again.n_hosts, out.n_hosts);
		for (unsigned i = 0; i < out.n_hosts; i++) {
			CHECK(strcmp(again.host[i].name, out.host[i].name) == 0);
			CHECK_EQ(again.host[i].eager_tcp, out.host[i].eager_tcp);
		}
	}
	return 0;
}
