/* SPDX-License-Identifier: BSD-3-Clause */
/* text.c - texts whose room the program says: a length counts characters, where C counts the null character too. */
#include "mpi/fortran/fort.h"

/* Room for what fits into the CHARACTER; a C string's length includes its end. */
static int room_for(I said, size_t len)
{
	int n = weft_f_int(said);

	return n < 0 ? n : (size_t)n < len ? n : (int)len;
}

void ENTRY(info_get)(const I *info, const char *key, const I *valuelen, char *value, I *flag,
		     I *ierror, size_t key_len, size_t value_len)
{
	WIDE(info_get, ((void *)info, (void *)key, (void *)valuelen, (void *)value, (void *)flag,
			(void *)ierror, key_len, value_len));
	struct weft_f_temp temp;
	int have = 0, room = room_for(*valuelen, value_len);
	weft_f_temp_open(&temp);
	char *name = weft_f_string(&temp, key, key_len, true);
	char *text = weft_f_text(&temp, (size_t)(room > 0 ? room : 0) + 1);
	int code = temp.failed ? weft_f_no_memory()
			       : CALL(Info_get)(IN_HANDLE(Info, *info), name, room, text, &have);
	if (!code) {
		*flag = weft_f_logical(have);
		if (have)
			weft_f_text_out(value, value_len, text);
	}
	weft_f_temp_close(&temp);
	ERROR_OUT(ierror, code);
}

void ENTRY(info_get_string)(const I *info, const char *key, I *buflen, char *value, I *flag,
			    I *ierror, size_t key_len, size_t value_len)
{
	WIDE(info_get_string, ((void *)info, (void *)key, (void *)buflen, (void *)value,
			       (void *)flag, (void *)ierror, key_len, value_len));
	struct weft_f_temp temp;
	int have = 0, room = room_for(*buflen, value_len), size = room > 0 ? room + 1 : room;
	weft_f_temp_open(&temp);
	char *name = weft_f_string(&temp, key, key_len, true);
	char *text = weft_f_text(&temp, (size_t)(room > 0 ? room : 0) + 1);
	int code = temp.failed ? weft_f_no_memory()
			       : CALL(Info_get_string)(IN_HANDLE(Info, *info), name, &size, text,
						       &have);
	if (!code) {
		*flag = weft_f_logical(have);
		if (have) {
			*buflen = size - 1;
			if (room > 0)
				weft_f_text_out(value, value_len, text);
		}
	}
	weft_f_temp_close(&temp);
	ERROR_OUT(ierror, code);
}

void ENTRY(session_get_nth_pset)(const I *session, const I *info, const I *n, I *pset_len,
				 char *pset_name, I *ierror, size_t pset_name_len)
{
	WIDE(session_get_nth_pset, ((void *)session, (void *)info, (void *)n, (void *)pset_len,
				    (void *)pset_name, (void *)ierror, pset_name_len));
	struct weft_f_temp temp;
	int room = room_for(*pset_len, pset_name_len), size = room > 0 ? room + 1 : room;
	weft_f_temp_open(&temp);
	char *text = weft_f_text(&temp, (size_t)(room > 0 ? room : 0) + 1);
	int code = temp.failed ? weft_f_no_memory()
			       : CALL(Session_get_nth_pset)(IN_HANDLE(Session, *session),
							    IN_HANDLE(Info, *info), weft_f_int(*n),
							    &size, text);
	if (!code) {
		*pset_len = size - 1;
		if (room > 0)
			weft_f_text_out(pset_name, pset_name_len, text);
	}
	weft_f_temp_close(&temp);
	ERROR_OUT(ierror, code);
}
