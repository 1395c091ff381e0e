/* SPDX-License-Identifier: BSD-3-Clause */
/* membarrier.c - the system call. */
#include "base/membarrier.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/log.h"

static bool call_membarrier(int cmd)
{
	return syscall(SYS_membarrier, cmd, 0, 0) == 0;
}

static void must_work(int cmd)
{
	if (!call_membarrier(cmd))
		weft_panic("membarrier failed after it had worked: %s", strerror(errno));
}

/* While the process has one thread the kernel registers it at once; later it waits for a grace period of
 * RCU, 5 to 20 ms, which each start of a rank would take.  A failure is met again by those that ask. */
__attribute__((constructor)) static void register_early(void)
{
	int kept = errno;
	(void)call_membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
	(void)call_membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED);
	errno = kept;
}

bool weft_membarrier_private_register(void)
{
	return call_membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) &&
	       call_membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
}

void weft_membarrier_private(void)
{
	must_work(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
}

bool weft_membarrier_global_register(void)
{
	return call_membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED) &&
	       call_membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
}

void weft_membarrier_global(void)
{
	must_work(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
}
