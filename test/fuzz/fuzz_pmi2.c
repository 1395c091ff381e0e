/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_pmi2.c - PMI-2: what a launcher answers to a rank. */
#include "boot/pmi2.h"
#include "fuzz.h"

/* All answers lie there before they are asked for, and then the launcher hangs up.  Three of four inputs
 * get a greeting and a place in the job, so that what comes later is reached. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char start[] = "cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0\n"
				    "    50cmd=fullinit-response;rc=0;rank=0;size=2;appnum=0;"
				    "    38cmd=job-getid-response;rc=0;jobid=1.0;";
	struct fuzz_input in = {data, size};
	struct weft_pmi2 p = {0};
	const char *text;
	int fd[2];

	CHECK(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd));
	if (fuzz_byte(&in) % 4)
		CHECK(send(fd[1], start, sizeof start - 1, MSG_NOSIGNAL) == sizeof start - 1);
	if (in.left)
		(void)!send(fd[1], in.at, in.left, MSG_NOSIGNAL | MSG_DONTWAIT);
	shutdown(fd[1], SHUT_WR);
	weft_err err = weft_boot_pmi2_open(&p, fd[0]);
	if (!err) {
		(void)!weft_boot_pmi2_put(&p, "key", "value");
		(void)!weft_boot_pmi2_get(&p, "key", &text);
		(void)!weft_boot_pmi2_attribute(&p, "universeSize", &text);
		(void)!weft_boot_pmi2_fence(&p);
		weft_boot_pmi2_finalize(&p);
	} else if (err == WEFT_ERR_UNSUPPORTED) {
		close(fd[0]);
	}
	close(fd[1]);
	return 0;
}
