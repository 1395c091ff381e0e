/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * complete.c - one and some of several requests: indices count from 1.
 *
 * What these return is stored although an operation may have failed: the C functions set it then too.
 */
#include "mpi/fortran/fort.h"

/* The variables that the functions of this file have in common. */
struct some {
	struct weft_f_temp temp;
	MPI_Request *requests;
	int *indices;
	int count;
};

static void some_open(struct some *s, const I *n, const I *requests, bool indices)
{
	weft_f_temp_open(&s->temp);
	s->count = weft_f_int(*n);
	s->requests = weft_f_temp_get(&s->temp, *n, sizeof(MPI_Request));
	IN_HANDLES(Request, s->requests, requests, s->count);
	s->indices = indices ? weft_f_temp_get(&s->temp, *n, sizeof(int)) : NULL;
}

/* `requests` is NULL where the call leaves them as they are. */
static void some_close(struct some *s, I *requests)
{
	if (requests && !s->temp.failed)
		OUT_HANDLES(Request, requests, s->requests, s->count);
	weft_f_temp_close(&s->temp);
}

static I from_one(int index)
{
	return index == MPI_UNDEFINED ? index : index + 1;
}

static void some_out(const struct some *s, int n, I *outcount, I *indices)
{
	*outcount = n;
	for (int k = 0; n != MPI_UNDEFINED && k < n; k++)
		indices[k] = from_one(s->indices[k]);
}

void ENTRY(waitany)(const I *count, I *array_of_requests, I *index, I *status, I *ierror)
{
	WIDE(waitany, ((void *)count, (void *)array_of_requests, (void *)index, (void *)status,
		       (void *)ierror));
	struct some s;
	int at = MPI_UNDEFINED;
	some_open(&s, count, array_of_requests, false);
	STATUS_OUT(status);
	int code = s.temp.failed ? weft_f_no_memory()
				 : CALL(Waitany)(s.count, s.requests, &at, status_c);
	STATUS_STORE(status);
	*index = from_one(at);
	some_close(&s, array_of_requests);
	ERROR_OUT(ierror, code);
}

void ENTRY(testany)(const I *count, I *array_of_requests, I *index, I *flag, I *status, I *ierror)
{
	WIDE(testany, ((void *)count, (void *)array_of_requests, (void *)index, (void *)flag,
		       (void *)status, (void *)ierror));
	struct some s;
	int at = MPI_UNDEFINED, done = 0;
	some_open(&s, count, array_of_requests, false);
	STATUS_OUT(status);
	int code = s.temp.failed ? weft_f_no_memory()
				 : CALL(Testany)(s.count, s.requests, &at, &done, status_c);
	STATUS_STORE(status);
	*index = from_one(at);
	*flag = weft_f_logical(done);
	some_close(&s, array_of_requests);
	ERROR_OUT(ierror, code);
}

void ENTRY(waitsome)(const I *incount, I *array_of_requests, I *outcount, I *array_of_indices,
		     I *array_of_statuses, I *ierror)
{
	WIDE(waitsome, ((void *)incount, (void *)array_of_requests, (void *)outcount,
			(void *)array_of_indices, (void *)array_of_statuses, (void *)ierror));
	struct some s;
	int n = 0;
	some_open(&s, incount, array_of_requests, true);
	MPI_Status *st = weft_f_statuses(&s.temp, array_of_statuses, s.count, false);
	int code = s.temp.failed ? weft_f_no_memory()
				 : CALL(Waitsome)(s.count, s.requests, &n, s.indices, st);
	some_out(&s, n, outcount, array_of_indices);
	OUT_STATUSES(array_of_statuses, st, n);
	some_close(&s, array_of_requests);
	ERROR_OUT(ierror, code);
}

void ENTRY(testsome)(const I *incount, I *array_of_requests, I *outcount, I *array_of_indices,
		     I *array_of_statuses, I *ierror)
{
	WIDE(testsome, ((void *)incount, (void *)array_of_requests, (void *)outcount,
			(void *)array_of_indices, (void *)array_of_statuses, (void *)ierror));
	struct some s;
	int n = 0;
	some_open(&s, incount, array_of_requests, true);
	MPI_Status *st = weft_f_statuses(&s.temp, array_of_statuses, s.count, false);
	int code = s.temp.failed ? weft_f_no_memory()
				 : CALL(Testsome)(s.count, s.requests, &n, s.indices, st);
	some_out(&s, n, outcount, array_of_indices);
	OUT_STATUSES(array_of_statuses, st, n);
	some_close(&s, array_of_requests);
	ERROR_OUT(ierror, code);
}

void ENTRY(request_get_status_any)(const I *count, const I *array_of_requests, I *index, I *flag,
				   I *status, I *ierror)
{
	WIDE(request_get_status_any, ((void *)count, (void *)array_of_requests, (void *)index,
				      (void *)flag, (void *)status, (void *)ierror));
	struct some s;
	int at = MPI_UNDEFINED, done = 0;
	some_open(&s, count, array_of_requests, false);
	STATUS_OUT(status);
	int code = s.temp.failed ? weft_f_no_memory()
				 : CALL(Request_get_status_any)(s.count, s.requests, &at, &done,
								status_c);
	STATUS_STORE(status);
	*index = from_one(at);
	*flag = weft_f_logical(done);
	some_close(&s, NULL);
	ERROR_OUT(ierror, code);
}

void ENTRY(request_get_status_some)(const I *incount, const I *array_of_requests, I *outcount,
				    I *array_of_indices, I *array_of_statuses, I *ierror)
{
	WIDE(request_get_status_some,
	     ((void *)incount, (void *)array_of_requests, (void *)outcount,
	      (void *)array_of_indices, (void *)array_of_statuses, (void *)ierror));
	struct some s;
	int n = 0;
	some_open(&s, incount, array_of_requests, true);
	MPI_Status *st = weft_f_statuses(&s.temp, array_of_statuses, s.count, false);
	int code = s.temp.failed
			   ? weft_f_no_memory()
			   : CALL(Request_get_status_some)(s.count, s.requests, &n, s.indices, st);
	some_out(&s, n, outcount, array_of_indices);
	OUT_STATUSES(array_of_statuses, st, n);
	some_close(&s, NULL);
	ERROR_OUT(ierror, code);
}
