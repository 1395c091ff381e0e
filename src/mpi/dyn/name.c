/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * name.c - services under names: MPI_Publish_name and its kin.
 *
 * A name is a file in a folder that only this user can read, so the jobs of a user on a host find
 * each other; with WEFT_NAME_DIR on a file system that hosts share, on all of them.  The file is
 * there with its whole contents or not at all, says which process has made it, and counts for
 * nothing once that process is gone.
 */
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/settings.h"
#include "comm/meet/port.h"
#include "mpi/dyn/dyn.h"
#include "net/host.h"

#define PATH_ROOM 600
#define TEXT_ROOM (WEFT_PORT_NAME + 4096)

/* What a file says: three lines, then the service. */
struct entry {
	char owner[WEFT_HOST_KEY_MAX + 64]; /* host, process, the time of its start */
	char port[WEFT_PORT_NAME];
	char service[2048];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct mine {
	struct mine *next;
	char path[PATH_ROOM];
} * published; /* under lock: files of this process */

/* ---- the folder --------------------------------------------------------------------------- */

static int name_folder(char dir[PATH_ROOM])
{
	const char *given = weft_setting_str(WEFT_SET_NAME_DIR);
	struct stat st;

	if (*given)
		snprintf(dir, PATH_ROOM, "%s", given);
	else
		snprintf(dir, PATH_ROOM, "/tmp/weft-names-%u", (unsigned)geteuid());
	if (mkdir(dir, 0700) && errno != EEXIST)
		return weft_mpi_err(MPI_ERR_OTHER, "%s: %s", dir, strerror(errno));
	/* Another user could have made it, to see what connects where. */
	if (lstat(dir, &st) || !S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077))
		return weft_mpi_err(MPI_ERR_OTHER,
				    "%s is not a folder of this user alone: names cannot be kept "
				    "there (WEFT_NAME_DIR)",
				    dir);
	return MPI_SUCCESS;
}

static int path_of(const char *service, char path[PATH_ROOM])
{
	uint8_t hash[16];
	char hex[2 * sizeof(hash) + 1], dir[PATH_ROOM];
	int err = name_folder(dir);

	if (err)
		return err;
	crypto_generichash(hash, sizeof(hash), (const uint8_t *)service, strlen(service), NULL, 0);
	sodium_bin2hex(hex, sizeof(hex), hash, sizeof(hash));
	if (snprintf(path, PATH_ROOM, "%s/%s", dir, hex) >= PATH_ROOM)
		return weft_mpi_err(MPI_ERR_OTHER, "WEFT_NAME_DIR is too long");
	return MPI_SUCCESS;
}

/* ---- owners ------------------------------------------------------------------------------- */

/* When that process has started, in ticks since boot; 0: there is none. */
static unsigned long long start_of(long pid)
{
	char path[48], text[1024];
	unsigned long long start = 0;

	snprintf(path, sizeof(path), "/proc/%ld/stat", pid);
	FILE *f = fopen(path, "re");
	if (!f)
		return 0;
	size_t n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = 0;
	const char *p = strrchr(text, ')');
	if (!p || sscanf(p + 1,
			 " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d "
			 "%*d %*d %llu",
			 &start) != 1)
		return 0;
	return start;
}

static void owner_print(char *buf, size_t size)
{
	char host[WEFT_HOST_KEY_MAX] = "-";

	(void)!weft_net_host_key(host, sizeof(host));
	snprintf(buf, size, "%s %ld %llu", host, (long)getpid(), start_of(getpid()));
}

/* False: it was a process of this host that has ended.  Of other hosts nothing is known. */
static bool owner_lives(const char *owner)
{
	char host[WEFT_HOST_KEY_MAX] = "-";
	unsigned long long start;
	long pid;

	(void)!weft_net_host_key(host, sizeof(host));
	size_t n = strlen(host);
	if (strncmp(owner, host, n) != 0 || sscanf(owner + n, " %ld %llu", &pid, &start) != 2)
		return true;
	return start_of(pid) == start;
}

/* ---- files -------------------------------------------------------------------------------- */

static bool line_take(char **at_p, char *buf, size_t size)
{
	char *end = strchr(*at_p, '\n');

	if (!end || (size_t)(end - *at_p) >= size)
		return false;
	*end = 0;
	strcpy(buf, *at_p);
	*at_p = end + 1;
	return true;
}

/* False: no such name, or its owner is gone. */
static bool entry_read(const char *path, const char *service, struct entry *e)
{
	char text[TEXT_ROOM], *at = text;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0)
		return false;
	ssize_t n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return false;
	text[n] = 0;
	return line_take(&at, e->owner, sizeof(e->owner)) &&
	       line_take(&at, e->port, sizeof(e->port)) && strcmp(at, service) == 0 &&
	       owner_lives(e->owner);
}

/* Links a whole file to path.  EEXIST: there is one. */
static int file_make(const char *path, const char *service, const char *port)
{
	char text[TEXT_ROOM], owner[WEFT_HOST_KEY_MAX + 64], temp[PATH_ROOM + 8];

	owner_print(owner, sizeof(owner));
	int n = snprintf(text, sizeof(text), "%s\n%s\n%s", owner, port, service);
	if (n >= (int)sizeof(text))
		return ENAMETOOLONG;
	snprintf(temp, sizeof(temp), "%s.XXXXXX", path);
	int fd = mkostemp(temp, O_CLOEXEC);
	if (fd < 0)
		return errno;
	int err = write(fd, text, (size_t)n) == n ? 0 : errno ? errno : ENOSPC;
	close(fd);
	if (!err && link(temp, path))
		err = errno;
	unlink(temp);
	return err;
}

static bool note_mine(const char *path)
{
	struct mine *m = malloc(sizeof(*m));

	if (!m)
		return false;
	strcpy(m->path, path);
	pthread_mutex_lock(&lock);
	m->next = published;
	published = m;
	pthread_mutex_unlock(&lock);
	return true;
}

static bool forget_mine(const char *path)
{
	struct mine *found = NULL;

	pthread_mutex_lock(&lock);
	for (struct mine **link = &published; *link && !found; link = &(*link)->next)
		if (strcmp((*link)->path, path) == 0) {
			found = *link;
			*link = found->next;
			break;
		}
	pthread_mutex_unlock(&lock);
	free(found);
	return found != NULL;
}

void weft_mpi_names_fini(void)
{
	/* Ends: each round takes one. */
	for (struct mine *m; (m = published) != NULL;) {
		published = m->next;
		unlink(m->path);
		free(m);
	}
}

/* ---- the calls ---------------------------------------------------------------------------- */

int weft_mpi_Publish_name(const char *service_name, MPI_Info info, const char *port_name)
{
	char path[PATH_ROOM];
	struct entry e;
	int err = path_of(service_name, path);

	(void)info;
	if (err)
		return err;
	if (strlen(service_name) >= sizeof(e.service))
		return weft_mpi_err(MPI_ERR_SERVICE, "the service's name is too long");
	if (strlen(port_name) >= WEFT_PORT_NAME || strchr(port_name, '\n'))
		return weft_mpi_err(MPI_ERR_PORT, "that is no name of a port");
	int why = file_make(path, service_name, port_name);
	if (why == EEXIST && !entry_read(path, service_name, &e)) {
		unlink(path); /* its owner is gone */
		why = file_make(path, service_name, port_name);
	}
	if (why == EEXIST)
		return weft_mpi_err(MPI_ERR_SERVICE, "service %s is published already",
				    service_name);
	if (why || !note_mine(path))
		return weft_mpi_err(MPI_ERR_OTHER, "%s: %s", path, strerror(why ? why : ENOMEM));
	return MPI_SUCCESS;
}

int weft_mpi_Lookup_name(const char *service_name, MPI_Info info, char *port_name)
{
	char path[PATH_ROOM];
	struct entry e;
	int err = path_of(service_name, path);

	(void)info;
	if (err)
		return err;
	if (!entry_read(path, service_name, &e))
		return weft_mpi_err(MPI_ERR_NAME, "service %s is not published", service_name);
	strcpy(port_name, e.port);
	return MPI_SUCCESS;
}

int weft_mpi_Unpublish_name(const char *service_name, MPI_Info info, const char *port_name)
{
	char path[PATH_ROOM];
	struct entry e;
	int err = path_of(service_name, path);

	(void)info;
	if (err)
		return err;
	if (!entry_read(path, service_name, &e) || strcmp(e.port, port_name) != 0)
		return weft_mpi_err(MPI_ERR_SERVICE, "service %s is not published with that port",
				    service_name);
	if (!forget_mine(path))
		return weft_mpi_err(MPI_ERR_SERVICE, "another process has published service %s",
				    service_name);
	return unlink(path) ? weft_mpi_err(MPI_ERR_OTHER, "%s: %s", path, strerror(errno))
			    : MPI_SUCCESS;
}
