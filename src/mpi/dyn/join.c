/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * join.c - MPI_Comm_join: two processes with a socket between them.
 *
 * The socket carries one word each way, which says which side opens a port, and that port's name;
 * the rest is accept and connect.  It is left as it was: nothing in it, its flags untouched.
 */
#include <errno.h>
#include <poll.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cancel.h"
#include "comm/meet/port.h"
#include "mpi/dyn/dyn.h"

#define JOIN_MAGIC "weftjoi1"

struct word {
	char magic[8];
	uint8_t nonce[16];
};

static int socket_error(const char *what)
{
	return weft_mpi_err(MPI_ERR_OTHER, "the socket of MPI_Comm_join: %s", what);
}

static bool wait_for(int fd, short events)
{
	struct pollfd p = {.fd = fd, .events = events};
	int was = weft_cancel_off(), n;

	do
		n = poll(&p, 1, -1);
	while (n < 0 && errno == EINTR);
	weft_cancel_back(was);
	return n > 0;
}

static int put_all(int fd, const void *data, size_t len)
{
	size_t at = 0;

	while (at < len) { /* ends: each turn writes, or fails */
		ssize_t n = send(fd, (const char *)data + at, len - at, MSG_NOSIGNAL);
		if (n < 0 && errno == ENOTSOCK)
			return socket_error("it is no socket");
		if (n > 0)
			at += (size_t)n;
		else if (n < 0 && errno != EINTR && (errno != EAGAIN || !wait_for(fd, POLLOUT)))
			return socket_error(strerror(errno));
	}
	return MPI_SUCCESS;
}

static int get_all(int fd, void *data, size_t len)
{
	size_t at = 0;

	while (at < len) { /* ends: each turn reads, or fails */
		if (!wait_for(fd, POLLIN))
			return socket_error(strerror(errno));
		ssize_t n = recv(fd, (char *)data + at, len - at, 0);
		if (n == 0)
			return socket_error("the other side has closed it");
		if (n > 0)
			at += (size_t)n;
		else if (errno != EINTR && errno != EAGAIN)
			return socket_error(strerror(errno));
	}
	return MPI_SUCCESS;
}

static int join_as_server(int fd, struct weft_comm_port **port_p, struct weft_comm_line **line_p)
{
	char name[WEFT_PORT_NAME] = "";
	weft_err err = weft_comm_port_open(port_p);

	/* Without a port the name is empty, and the other side hears it. */
	if (!err)
		strcpy(name, weft_comm_port_name(*port_p));
	else
		*port_p = NULL;
	int told = put_all(fd, name, sizeof(name));
	sodium_memzero(name, sizeof(name));
	if (!told && !err)
		err = weft_comm_port_accept(*port_p, WEFT_FOREVER, line_p);
	return told ? told : err ? socket_error(weft_strerror(err)) : MPI_SUCCESS;
}

static int join_as_caller(int fd, struct weft_comm_line **line_p)
{
	char name[WEFT_PORT_NAME];
	int err = get_all(fd, name, sizeof(name));

	if (err)
		return err;
	name[sizeof(name) - 1] = 0;
	weft_err got =
		name[0] ? weft_comm_port_call(name, WEFT_FOREVER, line_p) : WEFT_ERR_UNSUPPORTED;
	sodium_memzero(name, sizeof(name));
	return got ? socket_error(weft_strerror(got)) : MPI_SUCCESS;
}

int weft_mpi_Comm_join(int fd, MPI_Comm *intercomm)
{
	struct word mine = {.nonce = {0}}, theirs;
	struct weft_mpi_comm *self = weft_mpi_comm_of(MPI_COMM_SELF), *inter = NULL;
	struct weft_comm_line *line = NULL;
	struct weft_comm_port *port = NULL;

	*intercomm = MPI_COMM_NULL;
	memcpy(mine.magic, JOIN_MAGIC, sizeof(mine.magic));
	randombytes_buf(mine.nonce, sizeof(mine.nonce));
	int err = put_all(fd, &mine, sizeof(mine));
	if (!err)
		err = get_all(fd, &theirs, sizeof(theirs));
	if (!err && memcmp(theirs.magic, mine.magic, sizeof(mine.magic)) != 0)
		err = socket_error("what came through it is not from weft");
	if (!err)
		err = memcmp(mine.nonce, theirs.nonce, sizeof(mine.nonce)) < 0
			      ? join_as_server(fd, &port, &line)
			      : join_as_caller(fd, &line);
	err = weft_mpi_meet_by_line(self, 0, line, err, NULL, &inter);
	if (port)
		weft_comm_port_close(port);
	return err ? err : weft_mpi_comm_name(inter, intercomm);
}
