/* SPDX-License-Identifier: BSD-3-Clause */
/* alone.c - no launcher: a job of one process, whose own values never leave it. */
#include "boot/service.h"

static weft_err open_alone(const struct weft_boot_env *env, struct weft_boot_info *info)
{
	info->launcher = "none";
	return WEFT_OK;
}

static void close_alone(void)
{
}

static size_t alone_value_max(void)
{
	return SIZE_MAX;
}

static weft_err put_alone(const char *key, const char *value)
{
	return WEFT_OK; /* boot.c keeps what this rank has put */
}

static weft_err get_alone(const char *key, const char **value_p)
{
	return WEFT_ERR_NOENT;
}

static weft_err fence_alone(void)
{
	return WEFT_OK;
}

static bool abort_alone(int code, bool bereft, const char *why)
{
	return false;
}

const struct weft_boot_service weft_boot_alone = {
	.open = open_alone,
	.close = close_alone,
	.value_max = alone_value_max,
	.put = put_alone,
	.get = get_alone,
	.fence = fence_alone,
	.abort = abort_alone,
};
