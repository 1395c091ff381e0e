/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1
 *
 * Info key host: processes start on the hosts of their parent's job, whichever it names; other hosts are refused, unless
 * info key add-host names them.
 *
 *   spawn_host            a job of one host
 *   spawn_host added      the same, and what WEFT_RSH names starts agents on hosts c and d
 *   spawn_host away       two ranks, of which rank 0 is on host a and rank 1 on host b (mpiexec/test_spawn_hosts) */
#include <mpi.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "mpitest.h"

#define NAME 64

static char *self;

/* What mpiexec calls the host of this process. */
static void name_host(char name[NAME])
{
	const char *host = getenv("WEFT_JOB_HOST");

	memset(name, 0, NAME);
	strncpy(name, host ? host : "none", NAME - 1);
}

static MPI_Info on(const char *host)
{
	MPI_Info info = MPI_INFO_NULL;

	if (!host)
		return info;
	OK(MPI_Info_create(&info));
	OK(MPI_Info_set(info, "host", host));
	return info;
}

/* The children are on those hosts, "a b", in this order. */
static void expect(MPI_Comm *inter, const char *hosts)
{
	char all[512] = "", name[NAME];
	int n;

	OK(MPI_Comm_remote_size(*inter, &n));
	for (int i = 0; i < n; i++) {
		OK(MPI_Recv(name, NAME, MPI_CHAR, i, 0, *inter, MPI_STATUS_IGNORE));
		strcat(strcat(all, i ? " " : ""), name);
	}
	if (strcmp(all, hosts) != 0)
		fprintf(stderr, "children on %s, wanted on %s\n", all, hosts);
	CHECK(strcmp(all, hosts) == 0);
	OK(MPI_Comm_disconnect(inter));
}

static void one_program(const char *host, int n, const char *hosts, const char *then)
{
	char *args[] = {"child", (char *)(uintptr_t)then, NULL};
	MPI_Info info = on(host);
	MPI_Comm inter;

	OK(MPI_Comm_spawn(self, args, n, info, 0, MPI_COMM_SELF, &inter, MPI_ERRCODES_IGNORE));
	expect(&inter, hosts);
	if (info != MPI_INFO_NULL)
		OK(MPI_Info_free(&info));
}

static void two_programs(const char *first, const char *second, const char *hosts)
{
	char *args[] = {"child", NULL}, **argvs[] = {args, args}, *commands[] = {self, self};
	MPI_Info infos[] = {on(first), on(second)};
	int counts[] = {1, 2};
	MPI_Comm inter;

	OK(MPI_Comm_spawn_multiple(2, commands, argvs, counts, infos, 0, MPI_COMM_SELF, &inter,
				   MPI_ERRCODES_IGNORE));
	expect(&inter, hosts);
	for (int i = 0; i < 2; i++)
		if (infos[i] != MPI_INFO_NULL)
			OK(MPI_Info_free(&infos[i]));
}

/* By key add-host, with key host or without. */
static void added(const char *more, const char *host, int n, const char *hosts)
{
	char *args[] = {"child", NULL};
	MPI_Info info = on(host);
	MPI_Comm inter;

	if (!host)
		OK(MPI_Info_create(&info));
	OK(MPI_Info_set(info, "add-host", more));
	OK(MPI_Comm_spawn(self, args, n, info, 0, MPI_COMM_SELF, &inter, MPI_ERRCODES_IGNORE));
	expect(&inter, hosts);
	OK(MPI_Info_free(&info));
}

static void refused(const char *host)
{
	MPI_Info info = on(host);
	MPI_Comm inter;
	int code = -1;

	FAILS(MPI_Comm_spawn(self, MPI_ARGV_NULL, 1, info, 0, MPI_COMM_SELF, &inter, &code),
	      MPI_ERR_SPAWN);
	CHECK(inter == MPI_COMM_NULL);
	CHECK_EQ(code, MPI_ERR_SPAWN);
	OK(MPI_Info_free(&info));
}

static void from_a(void)
{
	one_program("b", 2, "b b", NULL);
	one_program("a,b", 2, "a b", NULL);
	one_program("a:2,b:1", 3, "a a b", NULL);
	one_program("localhost,b", 2, "a b", NULL);
	one_program("a", 1, "a", NULL);
	one_program(NULL, 1, "a", NULL);
	two_programs("b", "a", "b a a");
	two_programs(NULL, "b", "a b b");
	/* A child on the other host starts one on this host. */
	one_program("b", 1, "b", "a");
	refused("c");
	refused("a,c");
	added("c", "b,c", 2, "b c");
}

static void child(MPI_Comm parent, const char *then)
{
	char name[NAME];

	if (then)
		one_program(then, 1, then, NULL);
	name_host(name);
	OK(MPI_Send(name, NAME, MPI_CHAR, 0, 0, parent));
	OK(MPI_Comm_disconnect(&parent));
}

int main(int argc, char **argv)
{
	MPI_Comm parent;

	self = argv[0];
	test_start(&argc, &argv, MPI_THREAD_SINGLE);
	OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
	OK(MPI_Comm_get_parent(&parent));
	if (parent != MPI_COMM_NULL)
		child(parent, argc > 2 ? argv[2] : NULL);
	else if (argc == 1)
		refused("elsewhere.invalid");
	else if (strcmp(argv[1], "added") == 0) {
		added("c,d", NULL, 2, "c d");
		added("c,d", "d:2", 2, "d d");
		added("c", "localhost,c", 2, "localhost c");
		refused("c");
	} else if (rank == 0)
		from_a();
	else
		one_program("a", 1, "a", NULL);
	return test_end();
}
