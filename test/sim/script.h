/* SPDX-License-Identifier: BSD-3-Clause */
/* script.h - the bundle driver over two fake rails in virtual time: what the scripts share. */
#ifndef WEFT_TEST_SIM_SCRIPT_H
#define WEFT_TEST_SIM_SCRIPT_H

#include "net/fake_rail.h"
#include "base/log.h"
#include "sim/virtual.h"

#define S 1000000000ull

static uint64_t now_ns = S;

uint64_t sim_clock_ns(void)
{
	return now_ns;
}

bool sim_hub_due(void)
{
	return true;
}

static struct weft_net *net;

static inline void poll_for(uint64_t ns)
{
	for (uint64_t end = now_ns + ns; now_ns < end; now_ns += S / 20)
		(void)weft_net_driver_bundle.poll(net);
}

/* Both rails are up. */
static void begin(void)
{
	net = fake_begin();
	for (int r = 0; r < FAKE_RAILS; r++)
		fake_hello(r);
	CHECK_EQ(fake_rail[0].hellos + fake_rail[1].hellos, 2);
	(void)weft_net_driver_bundle.poll(net);
}

static void end(void)
{
	weft_net_driver_bundle.close(net);
}

/* A message of len bytes is posted. */
static inline enum weft_post post_len(size_t len)
{
	static uint8_t data[WEFT_BUNDLE_WHOLE_MAX];
	uint8_t head[WEFT_NET_HEAD] = {0};
	struct iovec iov = {data, len};
	return weft_net_driver_bundle.post(net, FAKE_PEER, head, &iov, 1, len, NULL);
}

#endif
