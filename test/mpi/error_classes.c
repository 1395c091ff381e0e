/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 2 */
/*
 * error_classes.c - error classes that no other test provokes, and those that nothing provokes: each class and MPI_T code is
 * its own class, with a text that begins with its name.
 */
#include <stdint.h>
#include <unistd.h>
#include "mpitest.h"

static void windows(void)
{
	MPI_Win win;
	int x, *base;

	FAILS(MPI_Win_create(NULL, 8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win), MPI_ERR_BASE);
	FAILS(MPI_Win_create(&x, -4, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win), MPI_ERR_SIZE);
	FAILS(MPI_Win_allocate(-4, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win), MPI_ERR_SIZE);
	FAILS(MPI_Win_fence(0, MPI_WIN_NULL), MPI_ERR_WIN);
	OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
	OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
	FAILS(MPI_Win_attach(win, &x, -1), MPI_ERR_SIZE);
	FAILS(MPI_Win_attach(win, NULL, 4), MPI_ERR_BASE);
	OK(MPI_Win_free(&win));
	FAILS(MPI_Win_free(&win), MPI_ERR_WIN);
}

static void sessions(void)
{
	MPI_Session none = MPI_SESSION_NULL;
	MPI_Info info;
	int n;

	FAILS(MPI_Session_finalize(&none), MPI_ERR_SESSION);
	FAILS(MPI_Session_get_info(none, &info), MPI_ERR_SESSION);
	FAILS(MPI_Session_get_num_psets(none, MPI_INFO_NULL, &n), MPI_ERR_SESSION);
}

static int extent(MPI_Datatype type, MPI_Aint *bytes, void *extra)
{
	(void)type, (void)extra;
	*bytes = 4;
	return MPI_SUCCESS;
}

static int fails(void *user, MPI_Datatype type, int n, void *file, MPI_Offset at, void *extra)
{
	(void)user, (void)type, (void)n, (void)file, (void)at, (void)extra;
	return MPI_ERR_OTHER;
}

static void files(void)
{
	char own[4096], name[64];
	MPI_File f;
	int x = 1;
	ssize_t n = readlink("/proc/self/exe", own, sizeof own - 1);

	CHECK(n > 0);
	own[n] = 0;
	/* A program that runs is not to be written. */
	FAILS(MPI_File_open(MPI_COMM_SELF, own, MPI_MODE_WRONLY, MPI_INFO_NULL, &f),
	      MPI_ERR_FILE_IN_USE);
	int pid = (int)getpid();
	OK(MPI_Bcast(&pid, 1, MPI_INT, 0, MPI_COMM_WORLD));
	snprintf(name, sizeof name, "/tmp/test-error-classes.%d", pid);
	FAILS(MPI_File_open(MPI_COMM_WORLD, name,
			    rank ? MPI_MODE_RDWR | MPI_MODE_CREATE
				 : MPI_MODE_WRONLY | MPI_MODE_CREATE,
			    MPI_INFO_NULL, &f),
	      MPI_ERR_NOT_SAME);
	OK(MPI_Register_datarep("broken", fails, fails, extent, NULL));
	OK(MPI_File_open(MPI_COMM_WORLD, name,
			 MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
			 &f));
	OK(MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "broken", MPI_INFO_NULL));
	FAILS(MPI_File_write_at(f, rank, &x, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_CONVERSION);
	OK(MPI_File_close(&f));
}

static void nothing(MPI_T_event_instance e, MPI_T_event_registration r, MPI_T_cb_safety s, void *d)
{
	(void)e, (void)r, (void)s, (void)d;
}

static void tools(void)
{
	enum { MOST = 16 };
	MPI_T_event_registration r[MOST + 1];
	MPI_T_pvar_session s, gone;
	MPI_T_pvar_handle h;
	int level, index, count, n;
	long long value;

	CHECK_EQ(MPI_T_cvar_get_num(&n), MPI_T_ERR_NOT_INITIALIZED);
	CHECK_EQ(MPI_T_init_thread(MPI_THREAD_SINGLE, &level), MPI_SUCCESS);
	CHECK_EQ(MPI_T_pvar_session_create(&s), MPI_SUCCESS);
	CHECK_EQ(MPI_T_pvar_handle_alloc(s, 0, NULL, &h, &count), MPI_SUCCESS);
	CHECK_EQ(MPI_T_pvar_readreset(s, h, &value), MPI_T_ERR_PVAR_NO_ATOMIC);
	CHECK_EQ(MPI_T_pvar_write(s, h, &value), MPI_T_ERR_PVAR_NO_WRITE);
	gone = s;
	CHECK_EQ(MPI_T_pvar_session_free(&s), MPI_SUCCESS);
	CHECK_EQ(MPI_T_pvar_handle_alloc(gone, 0, NULL, &h, &count), MPI_T_ERR_INVALID_SESSION);
	CHECK_EQ(MPI_T_event_get_index("weft_send", &index), MPI_SUCCESS);
	for (int i = 0; i <= MOST; i++)
		CHECK_EQ(MPI_T_event_handle_alloc(index, NULL, MPI_INFO_NULL, &r[i]),
			 i < MOST ? MPI_SUCCESS : MPI_T_ERR_OUT_OF_HANDLES);
	CHECK_EQ(MPI_T_event_register_callback(r[0], MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL, NULL,
					       nothing),
		 MPI_SUCCESS);
	for (int i = 0; i < MOST; i++)
		CHECK_EQ(MPI_T_event_handle_free(r[i], NULL, NULL), MPI_SUCCESS);
	CHECK_EQ(MPI_T_finalize(), MPI_SUCCESS);
}

static void texts(void)
{
#define NAMED(class)                                                                               \
	{                                                                                          \
		class, #class                                                                      \
	}
	static const struct {
		int class;
		const char *name;
	} all[] = {
		NAMED(MPI_ERR_BUFFER),
		NAMED(MPI_ERR_COUNT),
		NAMED(MPI_ERR_TYPE),
		NAMED(MPI_ERR_TAG),
		NAMED(MPI_ERR_COMM),
		NAMED(MPI_ERR_RANK),
		NAMED(MPI_ERR_REQUEST),
		NAMED(MPI_ERR_ROOT),
		NAMED(MPI_ERR_GROUP),
		NAMED(MPI_ERR_OP),
		NAMED(MPI_ERR_TOPOLOGY),
		NAMED(MPI_ERR_DIMS),
		NAMED(MPI_ERR_ARG),
		NAMED(MPI_ERR_UNKNOWN),
		NAMED(MPI_ERR_TRUNCATE),
		NAMED(MPI_ERR_OTHER),
		NAMED(MPI_ERR_INTERN),
		NAMED(MPI_ERR_PENDING),
		NAMED(MPI_ERR_IN_STATUS),
		NAMED(MPI_ERR_ACCESS),
		NAMED(MPI_ERR_AMODE),
		NAMED(MPI_ERR_ASSERT),
		NAMED(MPI_ERR_BAD_FILE),
		NAMED(MPI_ERR_BASE),
		NAMED(MPI_ERR_CONVERSION),
		NAMED(MPI_ERR_DISP),
		NAMED(MPI_ERR_DUP_DATAREP),
		NAMED(MPI_ERR_FILE_EXISTS),
		NAMED(MPI_ERR_FILE_IN_USE),
		NAMED(MPI_ERR_FILE),
		NAMED(MPI_ERR_INFO_KEY),
		NAMED(MPI_ERR_INFO_NOKEY),
		NAMED(MPI_ERR_INFO_VALUE),
		NAMED(MPI_ERR_INFO),
		NAMED(MPI_ERR_IO),
		NAMED(MPI_ERR_KEYVAL),
		NAMED(MPI_ERR_LOCKTYPE),
		NAMED(MPI_ERR_NAME),
		NAMED(MPI_ERR_NO_MEM),
		NAMED(MPI_ERR_NOT_SAME),
		NAMED(MPI_ERR_NO_SPACE),
		NAMED(MPI_ERR_NO_SUCH_FILE),
		NAMED(MPI_ERR_PORT),
		NAMED(MPI_ERR_PROC_ABORTED),
		NAMED(MPI_ERR_QUOTA),
		NAMED(MPI_ERR_READ_ONLY),
		NAMED(MPI_ERR_RMA_ATTACH),
		NAMED(MPI_ERR_RMA_CONFLICT),
		NAMED(MPI_ERR_RMA_RANGE),
		NAMED(MPI_ERR_RMA_SHARED),
		NAMED(MPI_ERR_RMA_SYNC),
		NAMED(MPI_ERR_RMA_FLAVOR),
		NAMED(MPI_ERR_SERVICE),
		NAMED(MPI_ERR_SESSION),
		NAMED(MPI_ERR_SIZE),
		NAMED(MPI_ERR_SPAWN),
		NAMED(MPI_ERR_UNSUPPORTED_DATAREP),
		NAMED(MPI_ERR_UNSUPPORTED_OPERATION),
		NAMED(MPI_ERR_VALUE_TOO_LARGE),
		NAMED(MPI_ERR_WIN),
		NAMED(MPI_ERR_ERRHANDLER),
		NAMED(MPI_ERR_ABI),
		NAMED(MPI_T_ERR_CANNOT_INIT),
		NAMED(MPI_T_ERR_MEMORY),
		NAMED(MPI_T_ERR_NOT_ACCESSIBLE),
		NAMED(MPI_T_ERR_NOT_SUPPORTED),
		NAMED(MPI_T_ERR_OUT_OF_SESSIONS),
		NAMED(MPI_T_ERR_PVAR_NO_ATOMIC),
	};
	char text[MPI_MAX_ERROR_STRING];
	int n, class;

	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
		OK(MPI_Error_class(all[i].class, &class));
		CHECK_EQ(class, all[i].class);
		OK(MPI_Error_string(all[i].class, text, &n));
		CHECK(strncmp(text, all[i].name, strlen(all[i].name)) == 0 &&
		      n > (int)strlen(all[i].name));
		CHECK(all[i].class <= MPI_ERR_LASTCODE);
	}
}

int main(int argc, char **argv)
{
	test_start(&argc, &argv, MPI_THREAD_SINGLE);
	OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
	OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
	if (argc > 1) { /* "apart": the ranks share no memory */
		MPI_Win win;
		int *base;
		FAILS(MPI_Win_allocate_shared(8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win),
		      MPI_ERR_RMA_SHARED);
		return test_end();
	}
	windows();
	sessions();
	files();
	tools();
	texts();
	return test_end();
}
