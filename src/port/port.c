/* SPDX-License-Identifier: BSD-3-Clause */
/* port.c - weft/comm.h: opening and closing, sends and receives, the barrier. */
#include <assert.h>
#include "port/am.h"
#include "port/port.h"
#include "port/put.h"
#include "rt/rt.h"

static_assert(sizeof(struct weft_req) <= sizeof(weft_comm_request), "grow weft_comm_request");
static_assert(alignof(struct weft_req) <= alignof(weft_comm_request), "align weft_comm_request");
static_assert(WEFT_COMM_ANY_PEER == WEFT_ANY_PEER && WEFT_COMM_ANY_TAG == WEFT_ANY_TAG,
	      "the same wildcards");

static bool started_here; /* weft_comm_open has started the layers, close stops them */

/* ---- life --------------------------------------------------------------------------------- */

weft_err weft_comm_open(void)
{
	const struct weft_boot_info *job;

	if (weft_port_is_open())
		return WEFT_ERR_STATE;
	started_here = !weft_rt_running();
	weft_err err = started_here ? weft_rt_start(&job) : WEFT_OK;
	if (err)
		return err;
	err = weft_port_contexts_open();
	if (!err)
		err = weft_port_put_start();
	if (!err)
		err = weft_port_am_start();
	if (!err)
		err = weft_comm_barrier();
	if (err) {
		weft_port_am_stop();
		weft_port_put_stop();
		weft_port_contexts_close();
		if (started_here)
			weft_rt_stop();
	}
	return err;
}

weft_err weft_comm_close(void)
{
	if (!weft_port_is_open())
		return WEFT_ERR_STATE;
	if (weft_port_in_handler())
		return WEFT_ERR_DEADLOCK;
	/* Each rank has sent what it had to send. */
	weft_err err = weft_comm_barrier();
	weft_port_am_stop();
	weft_port_put_stop();
	weft_port_contexts_close();
	if (started_here)
		weft_rt_stop();
	return err;
}

/* ---- messages ----------------------------------------------------------------------------- */

static weft_err result_of(const struct weft_req *r, weft_comm_result *result)
{
	weft_err err = r->status.cancelled ? WEFT_ERR_CANCELLED : r->status.err;
	if (result)
		*result = (weft_comm_result){.err = err,
					     .peer = r->status.peer,
					     .tag = r->status.tag,
					     .bytes = r->status.bytes};
	return err;
}

static bool tag_wrong(int tag)
{
	return tag < 0;
}

weft_err weft_comm_isend(weft_comm_request *req, int peer, int tag, const void *buf, size_t bytes)
{
	struct weft_buf b = weft_data_buf_flat(buf, bytes);
	if (!weft_port_is_open())
		return WEFT_ERR_STATE;
	if (tag_wrong(tag) || (bytes && !buf))
		return WEFT_ERR_ARG;
	weft_comm_req_init(weft_port_req(req), NULL, NULL);
	weft_err err = weft_comm_core_isend(weft_port_req(req), weft_port_ctx[WEFT_PORT_P2P], peer,
					    tag, &b, WEFT_SEND_AWAY);
	if (!err && !weft_comm_req_done(weft_port_req(req)))
		weft_task_engine_pending();
	return err;
}

weft_err weft_comm_irecv(weft_comm_request *req, int peer, int tag, void *buf, size_t bytes)
{
	struct weft_buf b = weft_data_buf_flat(buf, bytes);
	if (!weft_port_is_open())
		return WEFT_ERR_STATE;
	if ((tag_wrong(tag) && tag != WEFT_ANY_TAG) || (bytes && !buf))
		return WEFT_ERR_ARG;
	weft_comm_req_init(weft_port_req(req), NULL, NULL);
	weft_err err = weft_comm_core_irecv(weft_port_req(req), weft_port_ctx[WEFT_PORT_P2P], peer,
					    tag, &b);
	if (!err && !weft_comm_req_done(weft_port_req(req)))
		weft_task_engine_pending();
	return err;
}

bool weft_comm_test(weft_comm_request *req, weft_comm_result *result)
{
	struct weft_req *r = weft_port_req(req);
	struct weft_completion *c = &r->done;
	bool pause = false;
	if (!weft_comm_req_done(r) && !weft_port_in_handler())
		(void)weft_task_poll(&pause);
	if (weft_unlikely(pause) && !weft_comm_req_done(r))
		(void)weft_task_poll_pause(&c, 1);
	if (!weft_comm_req_done(r))
		return false;
	(void)result_of(r, result);
	return true;
}

weft_err weft_comm_wait(weft_comm_request *req, weft_comm_result *result)
{
	struct weft_completion *c = &weft_port_req(req)->done;
	if (weft_port_depth && !weft_wait_completion_done(c))
		return WEFT_ERR_DEADLOCK;
	weft_err err = weft_task_engine_wait_all(&c, 1, WEFT_FOREVER);
	return err ? err : result_of(weft_port_req(req), result);
}

weft_err weft_comm_wait_all(weft_comm_request *const *req, size_t n)
{
	weft_err first = WEFT_OK;
	for (size_t i = 0; i < n; i++) {
		weft_err err = weft_comm_wait(req[i], NULL);
		if (err == WEFT_ERR_DEADLOCK)
			return err;
		first = first ? first : err;
	}
	return first;
}

bool weft_comm_cancel(weft_comm_request *req)
{
	return !weft_comm_req_done(weft_port_req(req)) && weft_comm_recv_cancel(weft_port_req(req));
}

weft_err weft_comm_send(int peer, int tag, const void *buf, size_t bytes)
{
	struct weft_buf b = weft_data_buf_flat(buf, bytes);
	weft_comm_request req;

	if (!weft_port_is_open())
		return WEFT_ERR_STATE;
	if (tag_wrong(tag) || (bytes && !buf))
		return WEFT_ERR_ARG;
	weft_err err = weft_comm_send_now(weft_port_ctx[WEFT_PORT_P2P], peer, tag, &b);
	if (err != WEFT_AGAIN)
		return err;
	if (weft_port_in_handler())
		return WEFT_ERR_DEADLOCK;
	err = weft_comm_isend(&req, peer, tag, buf, bytes);
	return err ? err : weft_comm_wait(&req, NULL);
}

weft_err weft_comm_recv(int peer, int tag, void *buf, size_t bytes, weft_comm_result *result)
{
	weft_comm_request req;
	if (weft_port_in_handler())
		return WEFT_ERR_DEADLOCK;
	weft_err err = weft_comm_irecv(&req, peer, tag, buf, bytes);
	return err ? err : weft_comm_wait(&req, result);
}

bool weft_comm_probe(int peer, int tag, weft_comm_result *result)
{
	struct weft_status st;
	if (!weft_port_is_open() || peer < WEFT_ANY_PEER || peer >= weft_comm_size() ||
	    (tag_wrong(tag) && tag != WEFT_ANY_TAG) ||
	    !weft_comm_core_iprobe(weft_port_ctx[WEFT_PORT_P2P], peer, tag, &st) || st.err)
		return false;
	if (result)
		*result = (weft_comm_result){.peer = st.peer, .tag = st.tag, .bytes = st.bytes};
	return true;
}

bool weft_comm_poll(void)
{
	return weft_port_is_open() && !weft_port_in_handler() && weft_engine_poll();
}

/* In round k each rank sends to the rank 2^k further, and waits for the rank 2^k before. */
weft_err weft_comm_barrier(void)
{
	int me = weft_comm_rank(), size = weft_comm_size();
	weft_err err = WEFT_OK;

	if (!weft_port_is_open())
		return WEFT_ERR_STATE;
	if (weft_port_in_handler())
		return WEFT_ERR_DEADLOCK;
	for (int k = 0; (int64_t)1 << k < size && !err; k++) {
		int step = 1 << k;
		struct weft_req in, out;
		struct weft_buf none = weft_data_buf_flat(NULL, 0);
		struct weft_completion *both[] = {&in.done, &out.done};
		weft_comm_req_init(&in, NULL, NULL);
		weft_comm_req_init(&out, NULL, NULL);
		struct weft_ctx *ctx = weft_port_ctx[WEFT_PORT_SYNC];
		err = weft_comm_core_irecv(&in, ctx, (me - step + size) % size, k, &none);
		if (err)
			break;
		err = weft_comm_core_isend(&out, ctx, (me + step) % size, k, &none,
					   WEFT_SEND_STANDARD);
		if (err && weft_comm_recv_cancel(&in))
			break;
		weft_err waited = weft_task_engine_wait_all(both, err ? 1 : 2, WEFT_FOREVER);
		if (!err)
			err = waited ? waited : in.status.err ? in.status.err : out.status.err;
	}
	return err;
}
