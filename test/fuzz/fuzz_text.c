/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz_text.c - texts from the environment and from the launcher's key-value space: settings, the
 * job's secret, packed pairs, addresses of tcp and shm.
 */
#include "base/settings.h"
#include "boot/blob.h"
#include "boot/secret.h"
#include "fuzz.h"
#include "net/tcp/tcp_int.h"

static void settings(const char *text, unsigned which)
{
	if (which % WEFT_SETTING_COUNT == WEFT_SET_LOG)
		return;
	(void)!weft_setting_set((enum weft_setting_id)(which % WEFT_SETTING_COUNT), text);
}

static void pairs(const char *text)
{
	char buf[64], one[1];
	(void)!weft_boot_blob_find(text, "k", buf, sizeof buf);
	(void)!weft_boot_blob_find(text, "", one, sizeof one);
	/* What add makes, find takes. */
	struct weft_boot_blob b = {0};
	if (!weft_boot_blob_add(&b, text, "value")) {
		CHECK(weft_boot_blob_valid(b.text));
		CHECK(!weft_boot_blob_find(b.text, text, buf, sizeof buf));
		CHECK(!strcmp(buf, "value"));
	}
	weft_boot_blob_fini(&b);
}

static void secret(const char *text)
{
	struct weft_boot_info info = {0};
	char back[WEFT_BOOT_SECRET_TEXT];
	if (weft_boot_secret_parse(text, &info))
		return;
	weft_boot_secret_print(&info, back);
	CHECK(!strcasecmp(back, text));
}

static void addresses(const char *text)
{
	static const uint8_t none[32];
	static struct weft_net *net[2];
	static const struct weft_driver *const driver[2] = {&weft_net_driver_tcp,
							    &weft_net_driver_shm};
	static struct weft_net_job job = {.rank = 0, .size = 2, .jobid = "fuzz", .secret = none};
	static struct weft_net_events events;
	for (int i = 0; i < 2; i++) {
		if (!net[i] && driver[i]->open(&job, &events, &net[i]))
			continue;
		(void)!driver[i]->reach(net[i], 1, text);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};
	unsigned what = fuzz_byte(&in), which = fuzz_byte(&in);
	char *text = malloc(in.left + 1);

	CHECK(text);
	memcpy(text, in.at, in.left);
	text[in.left] = 0;
	switch (what % 4) {
	case 0:
		settings(text, which);
		break;
	case 1:
		pairs(text);
		break;
	case 2:
		secret(text);
		break;
	default:
		addresses(text);
	}
	free(text);
	return 0;
}
