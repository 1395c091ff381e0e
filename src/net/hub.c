/* SPDX-License-Identifier: BSD-3-Clause */
/* hub.c - an epoll set with an eventfd and a timerfd in it. */
#include "base/cancel.h"
#include "net/hub.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include "base/log.h"

#define BUSY_US 30
#define CALM_US 500

weft_err weft_net_hub_open(struct weft_hub *hub)
{
	hub->tick_ms = 0;
	hub->countdown = 0;
	hub->next_cycle = 0;
	hub->every_busy = BUSY_US * weft_cycles_per_us();
	hub->every_calm = CALM_US * weft_cycles_per_us();
	hub->timer_fd = hub->wake_fd = -1;
	hub->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (hub->epfd < 0)
		goto failed;
	hub->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (hub->wake_fd < 0)
		goto failed;
	hub->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (hub->timer_fd < 0)
		goto failed;
	if (weft_net_hub_add(hub, hub->wake_fd, EPOLLIN, weft_net_hub_data(WEFT_HUB_WAKE, 0)) ||
	    weft_net_hub_add(hub, hub->timer_fd, EPOLLIN, weft_net_hub_data(WEFT_HUB_TIMER, 0))) {
		weft_net_hub_close(hub);
		return WEFT_ERR_SYS;
	}
	return WEFT_OK;
failed:
	weft_error("net: cannot open epoll, eventfd or timerfd: %s%s", strerror(errno),
		   errno == EMFILE ? " (raise ulimit -n)" : "");
	weft_net_hub_close(hub);
	return errno == EMFILE || errno == ENFILE ? WEFT_ERR_LIMIT : WEFT_ERR_SYS;
}

void weft_net_hub_close(struct weft_hub *hub)
{
	int *fds[] = {&hub->timer_fd, &hub->wake_fd, &hub->epfd};
	for (size_t i = 0; i < weft_countof(fds); i++) {
		if (*fds[i] >= 0)
			close(*fds[i]);
		*fds[i] = -1;
	}
}

weft_err weft_net_hub_add(struct weft_hub *hub, int fd, uint32_t events, uint64_t data)
{
	weft_assert(hub->epfd >= 0 && fd >= 0 && weft_net_hub_kind(data) != 0);
	struct epoll_event ev = {.events = events, .data.u64 = data};
	if (epoll_ctl(hub->epfd, EPOLL_CTL_ADD, fd, &ev) == 0)
		return WEFT_OK;
	weft_error("net: cannot watch a descriptor: %s", strerror(errno));
	return WEFT_ERR_SYS;
}

void weft_net_hub_change(struct weft_hub *hub, int fd, uint32_t events, uint64_t data)
{
	weft_assert(hub->epfd >= 0 && fd >= 0 && weft_net_hub_kind(data) != 0);
	struct epoll_event ev = {.events = events, .data.u64 = data};
	if (epoll_ctl(hub->epfd, EPOLL_CTL_MOD, fd, &ev) != 0)
		weft_error("net: cannot change what is watched: %s", strerror(errno));
}

void weft_net_hub_remove(struct weft_hub *hub, int fd)
{
	weft_assert(hub->epfd >= 0 && fd >= 0);
	epoll_ctl(hub->epfd, EPOLL_CTL_DEL, fd, NULL);
}

int weft_net_hub_look(struct weft_hub *hub, struct epoll_event *ev, int max)
{
	weft_assert(hub->epfd >= 0 && max > 0);
	int was = weft_cancel_off();
	int n = epoll_wait(hub->epfd, ev, max, 0);
	weft_cancel_back(was);
	return n < 0 ? 0 : n; /* EINTR: the next round looks again */
}

void weft_net_hub_ring(struct weft_hub *hub)
{
	uint64_t one = 1;
	weft_assert(hub->wake_fd >= 0);
	int was = weft_cancel_off();
	/* EAGAIN: the count is full, so it is readable already. */
	while (write(hub->wake_fd, &one, sizeof one) < 0 && errno == EINTR)
		;
	weft_cancel_back(was);
}

void weft_net_hub_quiet(struct weft_hub *hub)
{
	uint64_t count;
	int was = weft_cancel_off();
	while (read(hub->wake_fd, &count, sizeof count) < 0 && errno == EINTR)
		;
	weft_cancel_back(was);
}

void weft_net_hub_tick(struct weft_hub *hub, unsigned ms)
{
	if (ms == hub->tick_ms)
		return;
	struct timespec every = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
	struct itimerspec its = {.it_value = every, .it_interval = every};
	if (timerfd_settime(hub->timer_fd, 0, &its, NULL) == 0)
		hub->tick_ms = ms;
}

void weft_net_hub_ticked(struct weft_hub *hub)
{
	uint64_t count;
	int was = weft_cancel_off();
	while (read(hub->timer_fd, &count, sizeof count) < 0 && errno == EINTR)
		;
	weft_cancel_back(was);
}
