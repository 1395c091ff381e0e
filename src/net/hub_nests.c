/* SPDX-License-Identifier: BSD-3-Clause */
/* hub_nests.c - how deep epoll sets may nest above a descriptor.  Apart from hub.c, which the
 * simulator replaces. */
#include <sys/epoll.h>
#include <unistd.h>
#include "net/hub.h"

bool weft_net_hub_nests(int fd, unsigned above)
{
	struct epoll_event ev = {.events = EPOLLIN};
	int set = epoll_create1(EPOLL_CLOEXEC);
	bool fits = set >= 0 && epoll_ctl(set, EPOLL_CTL_ADD, fd, &ev) == 0 &&
		    (above <= 1 || weft_net_hub_nests(set, above - 1)); /* ends: with `above` */
	if (set >= 0)
		close(set);
	return fits;
}
