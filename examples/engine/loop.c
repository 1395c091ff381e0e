/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * loop.c - weft inside a foreign event loop: poll(2) sleeps on weft's descriptor and others.
 *
 * Ten timers of weft beside a pipe of ours; with WEFT_PROGRESS=off this loop is all that drives
 * them.
 */
#include <poll.h>
#include <stdio.h>
#include <unistd.h>
#include <weft/pollable.h>
#include <weft/source.h>

int main(void)
{
	enum { N = 10 };
	struct weft_event timer[N];
	struct weft_events *timers;
	struct weft_waitset *set;
	int p[2], left = N, wakeups = 0;
	if (weft_engine_start() || weft_events_open_timers(&timers) || weft_waitset_create(&set) ||
	    pipe(p) || write(p[1], "x", 1) != 1)
		return 1;
	for (int i = 0; i < N; i++) {
		weft_event_init(&timer[i], NULL, NULL);
		weft_event_post_after(timers, &timer[i], (uint64_t)(N - i) * 5000000);
		weft_waitset_add_event(set, &timer[i], &timer[i]);
	}
	struct pollfd fd[2] = {{.fd = weft_waitset_fd(set), .events = POLLIN},
			       {.fd = p[0], .events = POLLIN}};
	while (left) {
		void *key;
		if (weft_waitset_arm(set) == WEFT_OK) {
			poll(fd, 2, -1);
			wakeups++;
		}
		if (fd[1].revents & POLLIN) {
			printf("the pipe spoke\n");
			fd[1].fd = -1;
		}
		fd[1].revents = 0;
		while (weft_waitset_take(set, &key, 1)) {
			int i = (int)((struct weft_event *)key - timer);
			printf("timer %d: %lld us late\n", i,
			       (long long)weft_event_result(&timer[i]) / 1000);
			left--;
		}
	}
	printf("%d wake-ups for %d events\n", wakeups, N + 1);
	weft_waitset_destroy(set);
	weft_events_close(timers);
	weft_engine_stop();
	return 0;
}
