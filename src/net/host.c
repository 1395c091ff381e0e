/* SPDX-License-Identifier: BSD-3-Clause */
/* host.c - names the host by boot id, namespaces and user. */
#include "net/host.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/log.h"

#define BOOT_ID_LEN 36

static weft_err read_boot_id(char out[BOOT_ID_LEN + 1])
{
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return WEFT_ERR_UNSUPPORTED;
	ssize_t n = read(fd, out, BOOT_ID_LEN);
	close(fd);
	if (n != BOOT_ID_LEN)
		return WEFT_ERR_UNSUPPORTED;
	out[BOOT_ID_LEN] = 0;
	return WEFT_OK;
}

static weft_err read_namespace(const char *name, unsigned long long *inode_p)
{
	char path[64];
	struct stat st;
	snprintf(path, sizeof path, "/proc/self/ns/%s", name);
	if (stat(path, &st) != 0)
		return WEFT_ERR_UNSUPPORTED;
	*inode_p = (unsigned long long)st.st_ino;
	return WEFT_OK;
}

weft_err weft_net_host_key(char *buf, size_t size)
{
	char boot[BOOT_ID_LEN + 1];
	unsigned long long net, pid, user;
	if (read_boot_id(boot) || read_namespace("net", &net) || read_namespace("pid", &pid) ||
	    read_namespace("user", &user)) {
		weft_debug("shm: /proc does not tell the boot id and the namespaces");
		return WEFT_ERR_UNSUPPORTED;
	}
	int n = snprintf(buf, size, "%s:%llu:%llu:%llu:%u", boot, net, pid, user,
			 (unsigned)geteuid());
	return n > 0 && (size_t)n < size ? WEFT_OK : WEFT_ERR_LIMIT;
}

weft_err weft_net_network_key(char *buf, size_t size)
{
	char boot[BOOT_ID_LEN + 1];
	unsigned long long net;
	if (read_boot_id(boot) || read_namespace("net", &net))
		return WEFT_ERR_UNSUPPORTED;
	int n = snprintf(buf, size, "%s:%llu", boot, net);
	return n > 0 && (size_t)n < size ? WEFT_OK : WEFT_ERR_LIMIT;
}

bool weft_net_shm_same_host(const char *address, const char *key)
{
	if (!address || strncmp(address, "shm1 ", 5) != 0)
		return false;
	size_t n = strlen(key);
	return strncmp(address + 5, key, n) == 0 && (address[5 + n] == ' ' || !address[5 + n]);
}
