/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_sample.c - the file of measured switch points: what it may hold, that a mistake makes it
 * count as none, values for pairs of hosts, and that it stands between the defaults and what is
 * set.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/sample.h"
#include "check.h"

static struct weft_sample got;
static char why[160];

static weft_err parse(const char *text)
{
	why[0] = 0;
	return weft_sample_parse(text, strlen(text), &got, why, sizeof why);
}

static void takes(void)
{
	CHECK_EQ(parse("weft-sample 1\n# hello\n\n eager_shm\t4096 # why\nshare_copy 0\n"),
		 WEFT_OK);
	CHECK_EQ(got.value[0], 4096);
	CHECK_EQ(got.value[1], -1);
	CHECK_EQ(got.value[2], 0);
	CHECK_EQ(parse("weft-sample 1"), WEFT_OK);
	CHECK_EQ(got.value[0], -1);
	CHECK_EQ(parse("weft-sample 1\neager_tcp 16777216"), WEFT_OK);
	CHECK_EQ(got.value[1], 16777216);
}

static void refuses(void)
{
	static const char *const wrong[] = {
		"",
		"\n",
		"weft-sample 3\n",
		"weft-sample 1 \n",
		"eager_shm 4096\n",
		"weft-sample 1\neager_shm\n",
		"weft-sample 1\neager_shm 4k\n",
		"weft-sample 1\neager_shm -1\n",
		"weft-sample 1\neager_shm 1048577\n",
		"weft-sample 1\neager_shm 99999999999999999999\n",
		"weft-sample 1\neager_shm 1 2\n",
		"weft-sample 1\neager_shm 1\neager_shm 1\n",
		"weft-sample 1\neager_credit 1\n",
		"weft-sample 1\neager_tcp 1\nrubbish\n",
	};
	for (size_t i = 0; i < weft_countof(wrong); i++) {
		CHECK_EQ(parse(wrong[i]), WEFT_ERR_ARG);
		CHECK(why[0] && !strchr(why, '\n'));
		for (int k = 0; k < WEFT_SAMPLE_COUNT; k++)
			CHECK_EQ(got.value[k], -1);
	}
	CHECK_EQ(weft_sample_parse("weft-sample 1\nea\0er", 19, &got, why, sizeof why),
		 WEFT_ERR_ARG);
	char line[200] = "weft-sample 1\n";
	memset(line + 14, ' ', sizeof line - 15);
	CHECK_EQ(parse(line), WEFT_ERR_ARG);
}

/* Hosts stand in files of version 2; what is written is read again. */
static void hosts(void)
{
	char text[WEFT_SAMPLE_MAX];
	CHECK_EQ(parse("weft-sample 2\nhost a eager_tcp 5\neager_tcp 7\nhost b.c-d eager_tcp 0\n"),
		 WEFT_OK);
	CHECK_EQ(got.n_hosts, 2);
	CHECK(strcmp(got.host[1].name, "b.c-d") == 0);
	CHECK_EQ(got.host[0].eager_tcp, 5);
	CHECK_EQ(got.value[1], 7);
	CHECK(weft_sample_set_host(&got, "a", 9) && weft_sample_set_host(&got, "x", 11));
	CHECK(!weft_sample_set_host(&got, "a b", 9) && !weft_sample_set_host(&got, "", 9));
	CHECK_EQ(weft_sample_print(&got, text, sizeof text), WEFT_OK);
	CHECK_EQ(weft_sample_print(&got, text, 40), WEFT_ERR_LIMIT);
	CHECK_EQ(weft_sample_print(&got, text, sizeof text), WEFT_OK);
	CHECK_EQ(parse(text), WEFT_OK);
	CHECK_EQ(got.n_hosts, 3);
	CHECK_EQ(got.host[0].eager_tcp, 9);
	CHECK_EQ(got.host[2].eager_tcp, 11);
	CHECK_EQ(got.value[1], 7);
	char name[WEFT_SAMPLE_NAME];
	for (int i = 0; i < WEFT_SAMPLE_HOSTS; i++) {
		snprintf(name, sizeof name, "h%063d", i);
		CHECK(weft_sample_set_host(&got, name, 1) == (i < WEFT_SAMPLE_HOSTS - 3));
	}
	CHECK_EQ(weft_sample_print(&got, text, sizeof text), WEFT_OK); /* the longest */

	static const char *const wrong[] = {
		"weft-sample 1\nhost a eager_tcp 5\n",
		"weft-sample 2\nhost a\n",
		"weft-sample 2\nhost a eager_shm 5\n",
		"weft-sample 2\nhost a/b eager_tcp 5\n",
		"weft-sample 2\nhost a eager_tcp -5\n",
		"weft-sample 2\nhost a eager_tcp 5 6\n",
		"weft-sample 2\nhost a eager_tcp 5\nhost a eager_tcp 6\n",
	};
	for (size_t i = 0; i < weft_countof(wrong); i++) {
		CHECK_EQ(parse(wrong[i]), WEFT_ERR_ARG);
		CHECK(why[0] && !got.n_hosts);
	}
}

static void put(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");
	CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

static void settings_win(const char *path)
{
	setenv("WEFT_SAMPLE_FILE", path, 1);
	put(path, "weft-sample 2\nhost a eager_tcp 3000\n");
	CHECK_EQ(weft_settings_load(), WEFT_OK);
	CHECK_EQ(weft_setting_for_host(WEFT_SET_EAGER_TCP, "a"), 3000);
	CHECK_EQ(weft_setting_for_host(WEFT_SET_EAGER_TCP, "b"), 65536);
	CHECK_EQ(weft_setting_for_host(WEFT_SET_EAGER_SHM, "a"), 8192);
	put(path, "weft-sample 1\neager_shm 2048\nshare_copy 65536\n");
	setenv("WEFT_SHARE_COPY", "128k", 1);
	CHECK_EQ(weft_settings_load(), WEFT_OK);
	CHECK_EQ(weft_setting_int(WEFT_SET_EAGER_SHM), 2048); /* from the file */
	CHECK(weft_setting_measured(WEFT_SET_EAGER_SHM));
	CHECK(!weft_setting_given(WEFT_SET_EAGER_SHM));
	CHECK_EQ(weft_setting_int(WEFT_SET_EAGER_TCP), 65536); /* guessed */
	CHECK(!weft_setting_measured(WEFT_SET_EAGER_TCP));
	CHECK_EQ(weft_setting_int(WEFT_SET_SHARE_COPY), 131072); /* set */
	CHECK(!weft_setting_measured(WEFT_SET_SHARE_COPY));
	CHECK(weft_setting_given(WEFT_SET_SHARE_COPY));

	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	weft_settings_print(out);
	fclose(out);
	CHECK(strstr(text, "2048  (from the file)"));
	CHECK(strstr(text, "64k  (guessed)"));
	CHECK(strstr(text, "128k  (set)"));
	free(text);
}

static void guesses_stand(const char *path)
{
	put(path, "weft-sample 1\neager_shm 2048\neager_tcp x\n");
	CHECK_EQ(weft_settings_load(), WEFT_OK);
	CHECK_EQ(weft_setting_int(WEFT_SET_EAGER_SHM), 8192);
	CHECK(!weft_setting_measured(WEFT_SET_EAGER_SHM));
	unlink(path);
	CHECK_EQ(weft_settings_load(), WEFT_OK);
	CHECK_EQ(weft_setting_int(WEFT_SET_EAGER_SHM), 8192);
	CHECK_EQ(weft_sample_read(path, &got, why, sizeof why), WEFT_ERR_NOENT);
	CHECK_EQ(mkfifo(path, 0600), 0);
	CHECK_EQ(weft_sample_read(path, &got, why, sizeof why), WEFT_ERR_ARG);
	unlink(path);
}

/* A call sets, whatever the file says. */
static void calls_win(const char *path)
{
	CHECK_EQ(weft_setting_set(WEFT_SET_EAGER_TCP, "1k"), WEFT_OK);
	put(path, "weft-sample 1\neager_tcp 4096\n");
	CHECK_EQ(weft_settings_load(), WEFT_OK);
	CHECK_EQ(weft_setting_int(WEFT_SET_EAGER_TCP), 1024);
	CHECK(!weft_setting_measured(WEFT_SET_EAGER_TCP));
	put(path, "weft-sample 2\nhost a eager_tcp 4096\n");
	CHECK_EQ(weft_settings_load(), WEFT_OK);
	CHECK_EQ(weft_setting_for_host(WEFT_SET_EAGER_TCP, "a"), 1024);
}

static void finds_its_place(void)
{
	char path[4096];
	CHECK_EQ(weft_setting_set(WEFT_SET_SAMPLE_FILE, "none"), WEFT_OK);
	CHECK(!weft_sample_path(path, sizeof path));
	CHECK_EQ(weft_setting_set(WEFT_SET_SAMPLE_FILE, ""), WEFT_OK);
	setenv("HOME", "/h", 1);
	setenv("XDG_CACHE_HOME", "/c", 1);
	CHECK(weft_sample_path(path, sizeof path) && !strncmp(path, "/c/weft/sample-", 15));
	setenv("XDG_CACHE_HOME", "relative", 1);
	CHECK(weft_sample_path(path, sizeof path) && !strncmp(path, "/h/.cache/weft/sample-", 22));
	unsetenv("HOME");
	CHECK(!weft_sample_path(path, sizeof path));
	setenv("HOME", "/h", 1);
	CHECK(!weft_sample_path(path, 5));
}

int main(void)
{
	char path[] = "/tmp/weft-sample-XXXXXX";
	int fd = mkstemp(path);
	CHECK(fd >= 0);
	close(fd);
	takes();
	refuses();
	hosts();
	settings_win(path);
	guesses_stand(path);
	calls_win(path);
	unlink(path);
	finds_its_place();
	return 0;
}
