/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 0 1 3
 *
 * Children are spawned, with arguments, a working directory, several programs and soft numbers; both
 * sides talk over the intercommunicator and over what is merged, split and duplicated from it; what
 * cannot be started is MPI_ERR_SPAWN with a code per process. */
#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "mpitest.h"

/* A sum over all of both sides, by the merged communicator and what comes from it. */
static void talk(MPI_Comm inter, int high)
{
	MPI_Comm all, half, copy;
	int me, n, sum, want = 0, remote;
	MPI_Comm_remote_size(inter, &remote);
	MPI_Barrier(inter);
	MPI_Intercomm_merge(inter, high, &all);
	MPI_Comm_rank(all, &me);
	MPI_Comm_size(all, &n);
	CHECK_EQ(n, size + remote);
	for (int i = 0; i < n; i++)
		want += i;
	for (int round = 0; round < 20; round++) { /* long enough for shared memory to be taken */
		MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, all);
		CHECK_EQ(sum, want);
	}
	MPI_Comm_split(all, me % 2, 0, &half);
	MPI_Comm_dup(half, &copy);
	sum = 0;
	MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, copy);
	want = 0;
	for (int i = me % 2; i < n; i += 2)
		want += i;
	CHECK_EQ(sum, want);
	MPI_Comm_free(&copy);
	MPI_Comm_free(&half);

	/* A ring of something long, past every copy's edge. */
	static int out[100000], in[100000];
	for (int i = 0; i < 100000; i++)
		out[i] = me * 7 + i;
	int left = (me + n - 1) % n;
	MPI_Sendrecv(out, 100000, MPI_INT, (me + 1) % n, 5, in, 100000, MPI_INT, left, 5, all,
		     MPI_STATUS_IGNORE);
	for (int i = 0; i < 100000; i++)
		CHECK_EQ(in[i], left * 7 + i);

	/* Groups of two domains: those of our world are the same processes. */
	MPI_Group ga, gw, both, mine;
	int result, there, zero = 0;
	MPI_Comm_group(all, &ga);
	MPI_Comm_group(MPI_COMM_WORLD, &gw);
	MPI_Group_intersection(ga, gw, &both);
	MPI_Group_compare(both, gw, &result);
	CHECK(result == MPI_IDENT);
	MPI_Group_translate_ranks(gw, 1, &zero, ga, &there);
	CHECK_EQ(there, high ? remote : 0);
	MPI_Comm_create(all, gw, &half);
	CHECK(half != MPI_COMM_NULL);
	MPI_Comm_group(half, &mine);
	MPI_Group_compare(mine, gw, &result);
	CHECK(result == MPI_IDENT);
	MPI_Comm_free(&half);
	MPI_Group_free(&ga);
	MPI_Group_free(&gw);
	MPI_Group_free(&both);
	MPI_Group_free(&mine);
	MPI_Comm_free(&all);
}

static const char *const handler_name[] = {"mpi_errors_are_fatal", "mpi_errors_abort",
					   "mpi_errors_return"};

/* child: MPI_COMM_WORLD's handler is that one, and MPI_COMM_SELF's. */
static void handler_is(const char *name)
{
	const MPI_Errhandler known[] = {MPI_ERRORS_ARE_FATAL, MPI_ERRORS_ABORT, MPI_ERRORS_RETURN};
	MPI_Errhandler world, own;
	MPI_Comm_get_errhandler(MPI_COMM_WORLD, &world);
	MPI_Comm_get_errhandler(MPI_COMM_SELF, &own);
	for (int i = 0; i < 3; i++)
		CHECK((world == known[i]) == (strcmp(name, handler_name[i]) == 0));
	CHECK(own == world);
}

/* Info key mpi_initial_errhandler, per program; the parent's own start says nothing about its children. */
static void handlers(char *self)
{
	char *commands[] = {self, self, self, self}, *args[4][3], **argvs[4];
	int maxprocs[] = {1, 1, 1, 1};
	MPI_Info infos[4] = {MPI_INFO_NULL, MPI_INFO_NULL, MPI_INFO_NULL, MPI_INFO_NULL};
	MPI_Comm inter;

	CHECK(setenv("WEFT_INITIAL_ERRHANDLER", "mpi_errors_return", 1) == 0);
	for (int i = 0; i < 4; i++) {
		args[i][0] = "handler";
		args[i][1] = (char *)(uintptr_t)handler_name[i % 3];
		args[i][2] = NULL;
		argvs[i] = args[i];
		if (i == 0)
			continue;
		MPI_Info_create(&infos[i]);
		MPI_Info_set(infos[i], "mpi_initial_errhandler", handler_name[i % 3]);
	}
	MPI_Comm_spawn_multiple(4, commands, argvs, maxprocs, infos, 0, MPI_COMM_WORLD, &inter,
				MPI_ERRCODES_IGNORE);
	talk(inter, 0);
	MPI_Comm_disconnect(&inter);
	for (int i = 1; i < 4; i++)
		MPI_Info_free(&infos[i]);
	CHECK(unsetenv("WEFT_INITIAL_ERRHANDLER") == 0);
}

static void child(int argc, char **argv, MPI_Comm parent)
{
	char name[MPI_MAX_OBJECT_NAME];
	int len, *appnum, flag;
	MPI_Comm_get_name(parent, name, &len);
	CHECK(strcmp(name, "MPI_COMM_PARENT") == 0);
	if (argc > 1 && strcmp(argv[1], "in-root-folder") == 0) {
		char wd[64];
		CHECK(getcwd(wd, sizeof wd) && strcmp(wd, "/") == 0);
		CHECK_EQ(argc, 4);
		CHECK(strcmp(argv[2], "two words") == 0);
		CHECK(strcmp(argv[3], "") == 0);
	}
	if (argc > 1 && strncmp(argv[1], "app", 3) == 0) {
		MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &appnum, &flag);
		CHECK(flag && *appnum == argv[1][3] - '0');
	}
	if (argc > 2 && strcmp(argv[1], "handler") == 0)
		handler_is(argv[2]);
	CHECK(!getenv("WEFT_SPAWN_PORT"));
	talk(parent, 1);
	MPI_Comm_disconnect(&parent);
	MPI_Comm_get_parent(&parent);
	CHECK(parent == MPI_COMM_NULL);
}

static void fails(const char *command, MPI_Info info)
{
	MPI_Comm inter = MPI_COMM_SELF;
	int codes[2] = {-1, -1}, class;
	int err = MPI_Comm_spawn(command, MPI_ARGV_NULL, 2, info, 0, MPI_COMM_WORLD, &inter, codes);
	MPI_Error_class(err, &class);
	CHECK_EQ(class, MPI_ERR_SPAWN);
	CHECK_EQ(codes[0], MPI_ERR_SPAWN);
	CHECK_EQ(codes[1], MPI_ERR_SPAWN);
	CHECK(inter == MPI_COMM_NULL);
}

static void parent_side(char *self)
{
	MPI_Comm inter, got;
	MPI_Info info;
	int codes[8], n;
	char *args[] = {"in-root-folder", "two words", "", NULL};

	MPI_Comm_get_parent(&inter);
	CHECK(inter == MPI_COMM_NULL);
	MPI_Info_create(&info);
	MPI_Info_set(info, "wd", "/");
	MPI_Info_set(info, "host", "localhost");
	MPI_Comm_spawn(self, args, 2, info, size - 1, MPI_COMM_WORLD, &inter, codes);
	CHECK(codes[0] == MPI_SUCCESS && codes[1] == MPI_SUCCESS);
	talk(inter, 0);
	MPI_Comm_disconnect(&inter);
	CHECK(inter == MPI_COMM_NULL);
	MPI_Info_free(&info);

	/* Two programs, and numbers that soft allows. */
	char *commands[] = {self, self}, *first[] = {"app0", NULL}, *second[] = {"app1", NULL};
	char **argvs[] = {first, second};
	int maxprocs[] = {1, 4};
	MPI_Info infos[2] = {MPI_INFO_NULL, MPI_INFO_NULL};
	MPI_Info_create(&infos[1]);
	MPI_Info_set(infos[1], "soft", "1:2,7:9:2");
	MPI_Comm_spawn_multiple(2, commands, argvs, maxprocs, infos, 0, MPI_COMM_WORLD, &inter,
				codes);
	MPI_Comm_remote_size(inter, &n);
	CHECK_EQ(n, 3);
	for (int i = 0; i < 5; i++)
		CHECK_EQ(codes[i], i < 3 ? MPI_SUCCESS : MPI_ERR_SPAWN);
	talk(inter, 0);
	MPI_Comm_disconnect(&inter);

	/* Each rank for itself, at the same time. */
	MPI_Comm_spawn(self, MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &got,
		       MPI_ERRCODES_IGNORE);
	int world = size;
	size = 1;
	MPI_Barrier(got);
	size = world;
	MPI_Comm all;
	MPI_Intercomm_merge(got, 0, &all);
	MPI_Comm_size(all, &n);
	CHECK_EQ(n, 2);
	MPI_Comm_free(&all);
	MPI_Comm_free(&got); /* the child leaves its own to MPI_Finalize */

	handlers(self);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	fails("/no/such/program", MPI_INFO_NULL);
	fails("/", MPI_INFO_NULL);
	fails("/bin/false", MPI_INFO_NULL);
	MPI_Info_set(infos[1], "soft", "9");
	fails(self, infos[1]);
	MPI_Info_set(infos[1], "soft", "1");
	MPI_Info_set(infos[1], "arch", "pdp11");
	fails(self, infos[1]);
	MPI_Info_delete(infos[1], "arch");
	MPI_Info_delete(infos[1], "soft");
	MPI_Info_set(infos[1], "mpi_initial_errhandler", "mpi_errors_are_loud");
	fails(self, infos[1]);
	MPI_Info_delete(infos[1], "mpi_initial_errhandler");
	MPI_Info_set(infos[1], "wdir", "/no/such/folder");
	fails(self, infos[1]);
	MPI_Info_set(infos[1], "file", "/no/such/file");
	fails(self, infos[1]);
	MPI_Info_free(&infos[1]);
}

int main(int argc, char **argv)
{
	MPI_Comm parent;
	char self[4096];
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	CHECK(n > 0);
	self[n] = 0;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Comm_get_parent(&parent);
	if (parent == MPI_COMM_NULL) {
		parent_side(self);
	} else if (argc == 1) {
		MPI_Comm all;
		MPI_Barrier(parent);
		MPI_Intercomm_merge(parent, 1, &all);
	} else {
		child(argc, argv, parent);
	}
	MPI_Finalize();
	return 0;
}
