/* SPDX-License-Identifier: BSD-3-Clause */
/* launcher.c - reads from the environment which launcher has started this process. */
#include "boot/launcher.h"
#include "boot/service.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "base/log.h"

#define SIZE_MAX_RANKS (1 << 24)

/* A decimal number from lo to hi and nothing else. */
static weft_err parse_env(const char *name, const char *text, long lo, long hi, int *out_p)
{
	char *end;
	errno = 0;
	long v = strtol(text, &end, 10);
	if (end == text || *end || errno || v < lo || v > hi) {
		weft_error("%s=%.40s is not a number from %ld to %ld; start the program with "
			   "mpiexec, or unset it",
			   name, text, lo, hi);
		return WEFT_ERR_ARG;
	}
	*out_p = (int)v;
	return WEFT_OK;
}

static weft_err check_fd(const char *name, int fd)
{
	if (fcntl(fd, F_GETFD) >= 0)
		return WEFT_OK;
	weft_error("%s=%d names a descriptor that is not open: the launcher's channel did not "
		   "reach this process; start it with mpiexec, or unset PMI_FD to run it alone",
		   name, fd);
	return WEFT_ERR_STATE;
}

/* Does this variable of a scheduler name more than one process? */
static bool says_many(const char *name)
{
	const char *v = getenv(name);
	return v && strtol(v, NULL, 10) > 1;
}

/* Launchers that we recognise and cannot talk to, and what the user can do. */
static weft_err refuse_foreign(void)
{
	if (getenv("PMI_PORT")) {
		weft_error(
			"PMI_PORT is set: this launcher offers PMI over TCP only, which weft does "
			"not speak; use weft's mpiexec or Hydra on this machine");
	} else if (getenv("PMI_RANK") && !getenv("PMI_FD")) {
		weft_error(
			"PMI_RANK is set but PMI_FD is not: this launcher's protocol is unknown; "
			"use weft's mpiexec or mpiexec.hydra, or unset PMI_RANK to run alone");
	} else if (getenv("PMIX_NAMESPACE") || getenv("PMIX_RANK") ||
		   getenv("OMPI_COMM_WORLD_SIZE")) {
		weft_error(
			"signs of Open MPI, PRRTE or another PMIx launcher, but PMIX_NAMESPACE and "
			"PMIX_RANK are not both set: the launcher does not serve this process; "
			"start it with mpirun, prterun or weft's mpiexec");
	} else if (getenv("SLURM_PROCID") &&
		   (says_many("SLURM_STEP_NUM_TASKS") ||
		    (!getenv("SLURM_STEP_NUM_TASKS") && says_many("SLURM_NTASKS")))) {
		weft_error("started by srun without a process manager: use srun --mpi=pmix or "
			   "--mpi=pmi2, or weft's mpiexec inside the allocation");
	} else {
		return WEFT_OK;
	}
	return WEFT_ERR_UNSUPPORTED;
}

/* A hint that saves a round of addresses (boot.h). */
static bool slurm_has_many_hosts(void)
{
	return getenv("SLURM_PROCID") &&
	       (says_many("SLURM_STEP_NUM_NODES") ||
		(!getenv("SLURM_STEP_NUM_NODES") && says_many("SLURM_NNODES")));
}

static bool pmix_serves_us(void)
{
	return getenv("PMIX_NAMESPACE") && getenv("PMIX_RANK");
}

/* Does PMI_FD lead to the mpiexec that set WEFT_BOOT_FD?  Under another launcher started by a rank,
 * the variable is only inherited: the socket's inode number tells. */
static bool is_wefts_channel(int pmi_fd)
{
	const char *want = getenv("WEFT_BOOT_PMI");
	struct stat st;
	return want && fstat(pmi_fd, &st) == 0 &&
	       strtoull(want, NULL, 10) == (unsigned long long)st.st_ino;
}

static weft_err read_pmi(struct weft_boot_env *e)
{
	const char *rank = getenv("PMI_RANK"), *size = getenv("PMI_SIZE");
	if (!rank || !size) {
		weft_error("PMI_FD is set but %s is not; start the program with mpiexec",
			   rank ? "PMI_SIZE" : "PMI_RANK");
		return WEFT_ERR_ARG;
	}
	weft_err err = parse_env("PMI_FD", getenv("PMI_FD"), 0, INT_MAX, &e->pmi_fd);
	if (!err)
		err = parse_env("PMI_SIZE", size, 1, SIZE_MAX_RANKS, &e->size);
	if (!err)
		err = parse_env("PMI_RANK", rank, 0, e->size - 1, &e->rank);
	if (!err)
		err = check_fd("PMI_FD", e->pmi_fd);
	const char *secret = getenv("WEFT_BOOT_FD");
	if (!err && secret && is_wefts_channel(e->pmi_fd)) {
		err = parse_env("WEFT_BOOT_FD", secret, 0, INT_MAX, &e->secret_fd);
		if (!err)
			err = check_fd("WEFT_BOOT_FD", e->secret_fd);
	}
	return err;
}

/* Slurm answers both versions, but knows the whole of the second only. */
static void order_ways(struct weft_boot_env *e)
{
	int n = 0;
	bool slurm = getenv("PMI_JOBID") || getenv("SLURM_PROCID");
	if (e->pmi_fd >= 0) {
		bool second = slurm && e->secret_fd < 0;
		e->service[n++] = second ? &weft_boot_pmi2 : &weft_boot_pmi1;
		if (e->secret_fd < 0)
			e->service[n++] = second ? &weft_boot_pmi1 : &weft_boot_pmi2;
	}
	if (pmix_serves_us() && e->secret_fd < 0)
		e->service[n++] = &weft_boot_pmix;
	if (!n)
		e->service[n++] = &weft_boot_alone;
}

/* A PMI_FD that is inherited but closed is no sign of a launcher where PMIx is. */
static bool pmi_is_closed(void)
{
	const char *text = getenv("PMI_FD");
	char *end;
	long fd = text ? strtol(text, &end, 10) : -1;
	return text && end != text && !*end && fcntl((int)fd, F_GETFD) < 0;
}

weft_err weft_boot_env_read(struct weft_boot_env *env_p)
{
	struct weft_boot_env e = {.size = 1, .pmi_fd = -1, .secret_fd = -1};
	weft_err err = WEFT_OK;
	if (getenv("PMI_FD") && !(pmix_serves_us() && pmi_is_closed()))
		err = read_pmi(&e);
	else if (!pmix_serves_us())
		err = refuse_foreign();
	if (err)
		return err;
	order_ways(&e);
	e.spread = e.secret_fd < 0 && slurm_has_many_hosts();
	*env_p = e;
	return WEFT_OK;
}
