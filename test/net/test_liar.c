/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A peer over shm that proves itself, greets as it should, talks for a while, and then writes what
 * it likes into the memory that both share: lengths that no ring has room for, payload in the
 * narrow ring that cannot be there, a beginning at the wrong time, counts that make no sense.  It
 * is lost with one line, or what it says means something else; the victim does not crash or hang.
 */
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include "base/log.h"
#include "base/settings.h"
#include "net/shm/shm_int.h"
#include "net/victim.h"

#define PEER 2
#define NARROW 16384u

/* As shm_link.c has it. */
struct greeting {
	uint32_t magic, flags, slots, data, max_payload, inbox_bytes, narrow, none;
	uint64_t nonce_addr;
	uint8_t nonce[16];
};

/* The liar: what it shows, and the victim's ring, which it writes. */
static struct victim v;
static struct weft_ring_tx tx;
static struct weft_ring_shape shape;
static void *ring, *ours, *inbox;
static int sock;

/* A greeting with three descriptors, as a message of the socket. */
struct parcel {
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(3 * sizeof(int))];
	struct iovec iov;
	struct msghdr msg;
};

static void parcel_init(struct parcel *p, struct greeting *g)
{
	memset(p, 0, sizeof *p);
	p->iov = (struct iovec){g, sizeof *g};
	p->msg = (struct msghdr){.msg_iov = &p->iov,
				 .msg_iovlen = 1,
				 .msg_control = p->control,
				 .msg_controllen = sizeof p->control};
}

static void send_greeting(int bell)
{
	struct greeting g = {.magic = 0x77736d33u,
			     .slots = 256,
			     .data = 8 * WEFT_SHM_MAX_PAYLOAD,
			     .max_payload = WEFT_SHM_MAX_PAYLOAD,
			     .inbox_bytes = sizeof(struct weft_shm_inbox),
			     .narrow = NARROW};
	struct parcel p;
	parcel_init(&p, &g);
	struct cmsghdr *c = CMSG_FIRSTHDR(&p.msg);
	int fd[3] = {-1, -1, bell};
	shape = (struct weft_ring_shape){.slots = g.slots, .data = g.data, .narrow = g.narrow};
	CHECK_EQ(weft_net_shm_memory_create(weft_net_ring_bytes(shape), &fd[0], &ours), WEFT_OK);
	CHECK_EQ(weft_net_shm_memory_create(sizeof(struct weft_shm_inbox), &fd[1], &inbox),
		 WEFT_OK);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof fd);
	memcpy(CMSG_DATA(c), fd, sizeof fd);
	CHECK(sendmsg(sock, &p.msg, MSG_NOSIGNAL) == (ssize_t)sizeof g);
	close(fd[0]);
	close(fd[1]);
}

/* Maps the ring that the victim offers. */
static void take_greeting(void)
{
	struct greeting g;
	struct parcel p;
	parcel_init(&p, &g);
	int fd[3];
	POLL_UNTIL(&v, recvmsg(sock, &p.msg, MSG_DONTWAIT) == (ssize_t)sizeof g);
	struct cmsghdr *c = CMSG_FIRSTHDR(&p.msg);
	CHECK(c && c->cmsg_len == CMSG_LEN(sizeof fd));
	memcpy(fd, CMSG_DATA(c), sizeof fd);
	CHECK_EQ(g.narrow, NARROW);
	shape = (struct weft_ring_shape){.slots = g.slots, .data = g.data, .narrow = g.narrow};
	CHECK_EQ(weft_net_shm_memory_map(fd[0], weft_net_ring_bytes(shape), &ring), WEFT_OK);
	weft_net_ring_tx_attach(&tx, ring, shape, NULL);
	for (int i = 0; i < 3; i++)
		close(fd[i]);
}

static void publish(uint32_t len)
{
	static uint8_t data[WEFT_SHM_MAX_PAYLOAD];
	uint8_t head[WEFT_NET_HEAD] = {0};
	struct iovec iov = {data, len};
	(void)weft_net_ring_refresh(&tx);
	CHECK(weft_net_ring_room(&tx, len));
	weft_net_ring_publish(&tx, head, &iov, 1, len, false);
}

/* A connection that is up, and has been used. */
static void meet(void)
{
	open_rank(&v, &weft_net_driver_shm, 0);
	sock = dial(&v);
	CHECK_EQ(knock(&v, sock, PEER, secret), WEFT_OK);
	int bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	CHECK(bell >= 0);
	send_greeting(bell);
	take_greeting();
	close(bell);
	publish(20);
	publish(1000);
	publish(WEFT_SHM_MAX_PAYLOAD); /* beside the narrow ring: it has no room for that */
	POLL_UNTIL(&v, v.packets == 3);
	CHECK_EQ(v.downs, 0);
}

static void part(void)
{
	v.driver->close(v.net);
	if (sock >= 0)
		close(sock);
	weft_net_shm_memory_unmap(ring, weft_net_ring_bytes(shape));
	weft_net_shm_memory_unmap(ours, weft_net_ring_bytes(shape));
	weft_net_shm_memory_unmap(inbox, sizeof(struct weft_shm_inbox));
}

/* The next packet's word. */
static void say(uint32_t len, uint32_t more, uint64_t bits)
{
	struct weft_ring_slot *s = &tx.slot[(tx.put - tx.base) & tx.slot_mask];
	atomic_store(&s->x_word, weft_net_ring_make_word(++tx.put, len, more) | bits);
}

static void is_lost(void)
{
	POLL_UNTIL(&v, v.downs);
	CHECK_EQ(v.downs, 1);
	CHECK_EQ(v.packets, 3);
	CHECK_EQ(v.down_err, WEFT_ERR_PROTO);
	CHECK(strstr(v.why, "rank 2"));
	part();
}

static void lies_of_lengths(void)
{
	meet();
	say(NARROW + 1, 0, 0);
	is_lost();
	meet();
	say(WEFT_SHM_MAX_PAYLOAD + 1, 0, WEFT_RING_IN_WIDE);
	is_lost();
	meet();
	say(WEFT_RING_BYE - 1, 3, WEFT_RING_AGAIN | WEFT_RING_IN_WIDE);
	is_lost();
}

/* A slot that grew with packets of a few bytes, and then with one that is long. */
static void lies_in_a_slot(void)
{
	meet();
	say(8, 0, 0);
	POLL_UNTIL(&v, v.packets == 4);
	v.packets--;
	tx.put--;
	say(NARROW, 1, 0);
	is_lost();
}

static uint64_t dice_next(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	return *x ^= *x << 17;
}

/* Payload in the narrow ring that was never written, round and round, beginning again whenever:
 * bytes of the ring, no more.  In all slots, so that it is found wherever the victim looks. */
static void lies_of_places(uint64_t seed)
{
	meet();
	for (int i = 0; i < 1000; i++) {
		uint64_t dice = dice_next(&seed);
		uint64_t bits = (dice & 1 ? WEFT_RING_AGAIN : 0) |
				(dice & 2 ? WEFT_RING_IN_WIDE : 0) |
				(dice >> 8 & WEFT_RING_AT_MASK) << WEFT_RING_AT;
		/* A slot that holds little may grow: there one may lie no further. */
		uint32_t len =
			WEFT_RING_CELL + 1 + (uint32_t)(dice >> 40) % (NARROW - WEFT_RING_CELL);
		uint64_t word =
			weft_net_ring_make_word(++tx.put, len, (uint32_t)(dice >> 60) & 7) | bits;
		for (uint32_t k = 0; k <= tx.slot_mask; k++)
			atomic_store(&tx.slot[k].x_word, word);
		POLL_UNTIL(&v, v.packets == 4 + i);
	}
	CHECK_EQ(v.downs, 0);
	shutdown(sock, SHUT_RDWR);
	POLL_UNTIL(&v, v.downs);
	CHECK_EQ(v.downs, 1);
	part();
}

/* It says that it has received what was never sent. */
static void lies_of_receiving(void)
{
	static const uint64_t seen[] = {UINT64_MAX, 1, 1ull << 20, 1ull << 40, 1ull << 63};
	uint8_t head[WEFT_NET_HEAD] = {0};
	static uint8_t data[2000];
	for (size_t i = 0; i < weft_countof(seen); i++) {
		meet();
		struct weft_ring_control *control = ours;
		int n = 0;
		enum weft_post posted;
		do {
			struct iovec iov = {data, sizeof data};
			atomic_store(&control->x_seen, seen[i] * (uint64_t)(n + 1));
			posted = v.driver->post(v.net, PEER, head, &iov, 1, sizeof data, NULL);
		} while (posted == WEFT_POST_DONE && n++ < 10000); /* ends: no room, or 10,000 */
		publish(20);
		POLL_UNTIL(&v, v.packets == 4 || v.downs);
		shutdown(sock, SHUT_RDWR);
		POLL_UNTIL(&v, v.downs);
		part();
	}
}

static void one_more(void)
{
	CHECK(v.packets < 10000);
	publish(8);
}

/* It is gone, as its socket says, and writes for ever: each packet that is taken brings another.
 * What the ring held at the end is taken, no more. */
static void is_never_empty(void)
{
	meet();
	close(sock);
	sock = -1;
	publish(8);
	v.each = one_more;
	POLL_UNTIL(&v, v.downs);
	CHECK_EQ(v.downs, 1);
	CHECK_EQ(v.down_err, WEFT_ERR_PEER);
	part();
}

int main(int argc, char **argv)
{
	uint64_t seed = test_seed(argc, argv);
	alarm(300);
	weft_log_level = -1; /* the lines are meant to come; a user would see them */
	lies_of_lengths();
	lies_in_a_slot();
	lies_of_places(seed | 1);
	lies_of_receiving();
	is_never_empty();
	return 0;
}
