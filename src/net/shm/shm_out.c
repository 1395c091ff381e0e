/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shm_out.c - the way out: a packet into the peer's ring, and its bell if it sleeps.  Where there
 * is no room, or no link yet, the poller is told, which says ready() when there is.
 */
#include "base/mechanism.h"
#include "net/shm/shm_int.h"

#define OWED_US                                                                                    \
	50 /* of polling: what a wake-up costs both sides; a peer that is back sooner saves it */

/* A poster needs the poller: wake it if it sleeps. */
static void ring_poller(struct weft_shm *s)
{
	/* The caller's flag was stored seq_cst before. */
	if (weft_net_bell_urgent(&s->inbox->bell))
		weft_net_bell_ring(&s->inbox->bell, s->hub.wake_fd);
}

static void set_blocked(struct weft_shm *s, struct weft_shm_link *k)
{
	/* BLOCK -> READY (weft_net_shm_link_ready; has_news in shm_poll.c): seq_cst, so that our second
	 * look comes after it. */
	if (!atomic_exchange_explicit(&k->x_blocked, true, memory_order_seq_cst))
		atomic_fetch_add_explicit(&s->x_blocked, 1, memory_order_seq_cst);
}

void weft_net_shm_died(struct weft_net *net, int peer)
{
	struct weft_shm *s = (struct weft_shm *)net;
	if (weft_net_lobby_died(&s->lobby, peer))
		ring_poller(s);
}

void weft_net_shm_expect(struct weft_net *net, int peer)
{
	struct weft_shm *s = (struct weft_shm *)net;
	if (s->link[peer].reachable && weft_net_lobby_expect(&s->lobby, peer))
		ring_poller(s);
}

/* The link is not up: asks for it.  True: it has come up meanwhile. */
static bool post_early(struct weft_shm *s, struct weft_shm_link *k, enum weft_post *answer_p)
{
	*answer_p = WEFT_POST_DOWN;
	if (!k->reachable)
		return false;
	set_blocked(s, k);
	int state = atomic_load_explicit(&k->x_state, memory_order_seq_cst);
	if (state == WEFT_SHM_UP)
		return true;
	if (state == WEFT_SHM_DOWN)
		return false;
	if (weft_net_lobby_want(&s->lobby, k->peer))
		ring_poller(s);
	*answer_p = WEFT_POST_FULL;
	return false;
}

/* No room as far as we know.  True: there is. */
static bool post_full(struct weft_shm *s, struct weft_shm_link *k, uint32_t len)
{
	/* A word that makes no sense leaves us without room; the peer harms itself only. */
	(void)weft_net_ring_refresh(&k->tx);
	if (weft_net_ring_room(&k->tx, len))
		return true;
	/* Relaxed: x_blocked publishes it. */
	atomic_store_explicit(&k->x_blocked_word, weft_net_ring_known(&k->tx),
			      memory_order_relaxed);
	set_blocked(s, k);
	/* The packets that fill it may not have rung. */
	if (weft_net_bell_urgent(k->bell))
		weft_net_bell_ring(k->bell, k->bell_fd);
	ring_poller(s);
	return false;
}

enum weft_post weft_net_shm_post(struct weft_net *net, int peer, const void *head,
				 const struct iovec *iov, unsigned n, size_t len, void *cookie)
{
	struct weft_shm *s = (struct weft_shm *)net;
	struct weft_shm_link *k = &s->link[peer];
	weft_assert(peer >= 0 && peer < s->job.size && peer != s->job.rank);
	weft_assert(len <= WEFT_SHM_MAX_PAYLOAD);
	/* USE <- UP (link_up).  Carries: tx, bell, plain. */
	int state = atomic_load_explicit(&k->x_state, memory_order_acquire);
	enum weft_post answer;

	if (weft_unlikely(state != WEFT_SHM_UP) && !post_early(s, k, &answer))
		return answer;
	if (weft_unlikely(!weft_net_ring_room(&k->tx, (uint32_t)len)) &&
	    !post_full(s, k, (uint32_t)len))
		return WEFT_POST_FULL;
	weft_net_ring_publish(&k->tx, head, iov, n, (uint32_t)len, k->plain);
	if (weft_unlikely(weft_net_bell_armed(k->bell, k->plain)))
		weft_net_bell_ring(k->bell, k->bell_fd);
	return WEFT_POST_DONE;
}

bool weft_net_shm_urge(struct weft_net *net, int peer, bool late)
{
	struct weft_shm *s = (struct weft_shm *)net;
	struct weft_shm_link *k = &s->link[peer];
	/* USE <- UP (link_up). */
	if (atomic_load_explicit(&k->x_state, memory_order_acquire) != WEFT_SHM_UP)
		return false;
	uint32_t word = weft_net_bell_urgent(k->bell);
	if (weft_likely(!word))
		return false;
	/* The peer is likely to be back in a moment: if it is not, our next polls ring, or the
	 * thread that arms here.  If this process computes, too, the packet lies until the peer's
	 * check, or, if it is late, until ours.  Armed for a wait, no thread of ours would come to ring
	 * later. */
	enum weft_arm_level level = weft_net_bell_level_of(word);
	if ((level == WEFT_ARM_SOON || (late && weft_arm_is_for_replies(level))) &&
	    weft_net_bell_level(&s->inbox->bell) < WEFT_ARM_ALL_UNCHECKED &&
	    weft_mechanism_on(WEFT_MECH_DELAYED_RING)) {
		/* Relaxed, both: a hint; seen as 0 the poller says it. */
		if (!atomic_load_explicit(&s->x_owed_due, memory_order_relaxed))
			atomic_store_explicit(&s->x_owed_due, weft_net_shm_owed_until(),
					      memory_order_relaxed);
		weft_net_delayed_ring_owe(&s->owed, &k->owed, word);
		return level != WEFT_ARM_SOON;
	}
	weft_net_bell_ring(k->bell, k->bell_fd);
	return false;
}

uint64_t weft_net_shm_owed_until(void)
{
	return weft_cycles() + OWED_US * weft_cycles_per_us();
}

void weft_net_shm_ring_owed(struct weft_shm *s)
{
	atomic_store_explicit(&s->x_owed_due, 0, memory_order_relaxed);
	if (!weft_net_delayed_ring_take_all(&s->owed))
		return;
	for (int i = 0; i < s->n_scan; i++) {
		struct weft_shm_link *k = &s->link[s->scan[i]];
		uint32_t word = weft_net_delayed_ring_take(&k->owed);
		if (word)
			weft_net_bell_ring_still(k->bell, word, k->bell_fd);
	}
}

/* post() with a head of three numbers. */
static __attribute__((noinline)) enum weft_post
post_words(struct weft_net *net, int peer, uint64_t w0, uint64_t w1, const void *data, size_t len)
{
	uint64_t head[3] = {w0, w1, len};
	struct iovec iov = {(void *)(uintptr_t)data, len};
	_Static_assert(sizeof head == WEFT_NET_HEAD, "a head is three numbers");
	return weft_net_shm_post(net, peer, head, &iov, len != 0, len, NULL);
}

static __attribute__((noinline)) enum weft_post post_rings(struct weft_shm_link *k)
{
	weft_net_bell_ring(k->bell, k->bell_fd);
	return WEFT_POST_DONE;
}

/* Into a slot of its own, or, what has not eight bytes, into the last one. */
static __attribute__((noinline)) enum weft_post
post_slot(struct weft_net *net, int peer, uint64_t w0, uint64_t w1, const void *data, size_t len)
{
	struct weft_shm_link *k = &((struct weft_shm *)net)->link[peer];
	/* USE <- UP (link_up).  Carries: tx, bell, plain. */
	int state = atomic_load_explicit(&k->x_state, memory_order_acquire);

	if (weft_unlikely(state != WEFT_SHM_UP || !k->plain))
		return post_words(net, peer, w0, w1, data, len);
	if (!weft_net_ring_add_inline(&k->tx, w0, w1, data, len)) {
		if (weft_unlikely(!weft_net_ring_room(&k->tx, (uint32_t)len)))
			return post_words(net, peer, w0, w1, data, len);
		weft_net_ring_publish_words(&k->tx, w0, w1, data, (uint32_t)len);
	}
	return weft_unlikely(weft_net_bell_armed(k->bell, true)) ? post_rings(k) : WEFT_POST_DONE;
}

enum weft_post weft_net_shm_post_plain(struct weft_net *net, int peer, uint64_t w0, uint64_t w1,
				       const void *data, size_t len)
{
	struct weft_shm_link *k = &((struct weft_shm *)net)->link[peer];
	/* USE <- UP (link_up).  Carries: tx, bell, plain. */
	int state = atomic_load_explicit(&k->x_state, memory_order_acquire);

	if (state != WEFT_SHM_UP || weft_unlikely(!k->plain) || len != WEFT_RING_CELL ||
	    !weft_net_ring_add_inline(&k->tx, w0, w1, data, WEFT_RING_CELL))
		return post_slot(net, peer, w0, w1, data, len);
	return weft_unlikely(weft_net_bell_armed(k->bell, true)) ? post_rings(k) : WEFT_POST_DONE;
}
