/* SPDX-License-Identifier: BSD-3-Clause */
/* err.c - texts of the results. */
#include <weft/err.h>

const char *weft_strerror(weft_err err)
{
	switch (err) {
	case WEFT_OK:
		return "success";
	case WEFT_AGAIN:
		return "not now";
	case WEFT_ERR_NOMEM:
		return "no memory";
	case WEFT_ERR_ARG:
		return "invalid argument";
	case WEFT_ERR_TRUNC:
		return "message longer than the buffer";
	case WEFT_ERR_PEER:
		return "the peer is gone";
	case WEFT_ERR_PROTO:
		return "protocol violation";
	case WEFT_ERR_AUTH:
		return "not authenticated";
	case WEFT_ERR_SYS:
		return "system call failed";
	case WEFT_ERR_LIMIT:
		return "a limit is reached";
	case WEFT_ERR_UNSUPPORTED:
		return "not supported";
	case WEFT_ERR_CANCELLED:
		return "cancelled";
	case WEFT_ERR_TIMEOUT:
		return "timed out";
	case WEFT_ERR_DEADLOCK:
		return "it would wait for itself, or a handler would wait";
	case WEFT_ERR_STATE:
		return "not allowed in this state";
	case WEFT_ERR_NOENT:
		return "no such entry";
	case WEFT_ERR_INTERNAL:
		return "internal error";
	}
	return "unknown error";
}
