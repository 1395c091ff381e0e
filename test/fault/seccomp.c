/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * seccomp.c - runs a command in whose system the named calls do not exist, or are forbidden.
 *
 *	seccomp enosys|eperm CALL[,CALL...] COMMAND [ARGUMENTS]
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MOST 16

static const struct {
	const char *name;
	unsigned number;
} calls[] = {
	{"membarrier", SYS_membarrier},
	{"process_vm_readv", SYS_process_vm_readv},
	{"process_vm_writev", SYS_process_vm_writev},
	{"memfd_create", SYS_memfd_create},
	{"sched_setattr", SYS_sched_setattr},
	{"sched_setaffinity", SYS_sched_setaffinity},
	{"epoll_pwait2", 441},
	{"io_uring_setup", 425},
	{"pidfd_open", 434},
	{"eventfd2", SYS_eventfd2},
	{"clone3", 435},
};

static int number_of(const char *name, size_t len, unsigned *number_p)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (strlen(calls[i].name) == len && !strncmp(calls[i].name, name, len)) {
			*number_p = calls[i].number;
			return 1;
		}
	return 0;
}

int main(int argc, char **argv)
{
	struct sock_filter code[2 * MOST + 2];
	struct sock_fprog prog = {0, code};
	unsigned n = 0, number, error;
	const char *p;

	if (argc < 4)
		return 2;
	error = strcmp(argv[1], "eperm") ? ENOSYS : EPERM;
	code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						 offsetof(struct seccomp_data, nr));
	for (p = argv[2]; *p; p += strcspn(p, ","), p += *p == ',') {
		if (n > 2 * MOST - 1 || !number_of(p, strcspn(p, ","), &number)) {
			fprintf(stderr, "seccomp: no such call: %s\n", p);
			return 2;
		}
		code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1);
		code[n++] =
			(struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error);
	}
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	prog.len = (unsigned short)n;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog)) {
		fprintf(stderr, "skipped: no seccomp here: %s\n", strerror(errno));
		return 77;
	}
	execvp(argv[3], argv + 3);
	fprintf(stderr, "seccomp: %s: %s\n", argv[3], strerror(errno));
	return 127;
}
