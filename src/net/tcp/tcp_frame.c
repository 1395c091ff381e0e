/* SPDX-License-Identifier: BSD-3-Clause */
/* tcp_frame.c - the first words of a frame: its length, and a check over that and the head. */
#include <endian.h>
#include <string.h>
#include "net/tcp/tcp_int.h"

static uint32_t frame_check(uint32_t len, const uint8_t head[WEFT_NET_HEAD])
{
	/* Against broken middle boxes and software, not against forgers. */
	uint64_t h = 0x9e3779b97f4a7c15u ^ len;
	for (unsigned i = 0; i < WEFT_NET_HEAD; i += 8) {
		uint64_t w;
		memcpy(&w, head + i, sizeof w);
		h = (h ^ w) * 0xbf58476d1ce4e5b9u;
		h ^= h >> 29;
	}
	return (uint32_t)(h ^ h >> 32);
}

void weft_net_tcp_frame_stamp(uint8_t frame[WEFT_TCP_FRAME], uint32_t len)
{
	uint32_t word[2] = {htole32(len), htole32(frame_check(len, frame + 8))};
	memcpy(frame, word, sizeof word);
}

void weft_net_tcp_frame_write(uint8_t frame[WEFT_TCP_FRAME], uint32_t len, const void *head)
{
	memcpy(frame + 8, head, WEFT_NET_HEAD);
	weft_net_tcp_frame_stamp(frame, len);
}

/* How many packets, of which length; BYE, REST: as the length of one.  False: this is not a frame. */
bool weft_net_tcp_frame_read(const uint8_t *frame, uint32_t *n_p, uint32_t *len_p)
{
	uint32_t word[2];
	memcpy(word, frame, sizeof word);
	*len_p = le32toh(word[0]);
	*n_p = 1;
	return le32toh(word[1]) == frame_check(*len_p, frame + 8) &&
	       (*len_p <= WEFT_TCP_MAX_PAYLOAD || *len_p == WEFT_TCP_BYE ||
		*len_p == WEFT_TCP_REST || weft_net_tcp_run_read(*len_p, n_p, len_p));
}
