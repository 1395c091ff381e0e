/* SPDX-License-Identifier: BSD-3-Clause */
/* ends.c - makes and closes the ends of a rank. */
#include "ends.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

void ends_close(const int *fds)
{
	for (int i = 0; i < KEEPER_FDS; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

bool ends_make(struct ends *e)
{
	for (int i = 0; i < KEEPER_FDS; i++)
		e->ours[i] = e->theirs[i] = -1;
	for (int i = 0; i < KEEPER_FDS; i++) {
		int pair[2];
		bool is_pipe = i == KEEPER_FD_OUT || i == KEEPER_FD_ERR;
		if (is_pipe ? pipe2(pair, O_CLOEXEC)
			    : socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
			return false;
		e->ours[i] = pair[0];
		e->theirs[i] = pair[1];
	}
	return true;
}
