/* SPDX-License-Identifier: BSD-3-Clause */
/* start.c - what starts MPI tells it first what the Fortran compiler is like; MPI_Pcontrol. */
#include "mpi/fortran/fort.h"

void ENTRY(init)(I *ierror)
{
	WIDE(init, ((void *)ierror));
	weft_f_facts_tell();
	ERROR_OUT(ierror, CALL(Init)(NULL, NULL));
}

void ENTRY(init_thread)(const I *required, I *provided, I *ierror)
{
	WIDE(init_thread, ((void *)required, (void *)provided, (void *)ierror));
	INT_OUT(provided);
	weft_f_facts_tell();
	int code = CALL(Init_thread)(NULL, NULL, weft_f_int(*required), INT_P(provided));
	if (!code)
		INT_STORE(provided);
	ERROR_OUT(ierror, code);
}

void ENTRY(session_init)(const I *info, const I *errhandler, I *session, I *ierror)
{
	WIDE(session_init, ((void *)info, (void *)errhandler, (void *)session, (void *)ierror));
	MPI_Session session_c = MPI_SESSION_NULL;
	weft_f_facts_tell();
	int code = CALL(Session_init)(IN_HANDLE(Info, *info), IN_HANDLE(Errhandler, *errhandler),
				      &session_c);
	if (!code)
		*session = OUT_HANDLE(Session, session_c);
	ERROR_OUT(ierror, code);
}

void ENTRY(pcontrol)(const I *level)
{
	WIDE(pcontrol, ((void *)level));
	CALL(Pcontrol)(weft_f_int(*level));
}

/* The library knows the program's arguments. */
void ENTRY(info_create_env)(I *info, I *ierror)
{
	WIDE(info_create_env, ((void *)info, (void *)ierror));
	MPI_Info made = MPI_INFO_NULL;
	int code = CALL(Info_create_env)(0, NULL, &made);
	if (!code)
		*info = OUT_HANDLE(Info, made);
	ERROR_OUT(ierror, code);
}
