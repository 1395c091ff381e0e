/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * port.c - ports and lines over the tcp driver.
 *
 * Peer 0 listens; each caller gets a number above, its seat, when it connects.  A message goes as packets of a head and at most CHUNK
 * bytes.  A caller's first packet is a KNOCK, which accept answers with a WELCOME, and the caller with HERE: a caller that has given up
 * meanwhile, of which the network has not told yet, does not become a line.
 *
 * Locking   `lock` covers all that the poller and the callers share; no driver call is made under it.
 */
#include "comm/meet/port.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "base/assert.h"
#include "base/cancel.h"
#include "base/log.h"
#include "base/private_page.h"
#include "base/settings.h"
#include "boot/boot.h"
#include "net/driver.h"
#include "task/task.h"

#define SEATS 64
#define CHUNK 4096u /* never ACCEPTED, always DONE or FULL */
#define PREFIX "weft2:"
#define JOB_BYTES 8
#define BYE_NS 5000000000u /* for a caller to close, to take what was sent, to answer */
#define RETRY_NS 2000000u  /* after an attempt that found no seat */
#define SECOND_NS 1000000000u

enum kind { KNOCK = 1, WELCOME, DATA, HERE };

/* Fills the head of a packet. */
struct head {
	uint32_t kind, bytes; /* of this packet */
	uint64_t at, total;   /* of the message */
};
_Static_assert(sizeof(struct head) == WEFT_NET_HEAD, "a head is a driver's head");

struct message {
	struct message *next;
	size_t len;
	uint8_t data[];
};

enum seat { EMPTY, KNOCKED, TAKEN, LEFT };

struct weft_comm_line {
	struct weft_comm_port *port;
	int peer;
	enum seat seat;
	bool welcome;                 /* a caller: the owner has accepted */
	bool here;                    /* the owner: the caller has seen that */
	bool down;                    /* the connection has ended */
	bool refused;                 /* no process listens there */
	bool drop;                    /* for the poller: end the connection */
	weft_err err;                 /* of that end */
	struct message *first, *last; /* whole ones */
	struct message *part;         /* that is coming in */
	size_t part_have;
	struct weft_comm_line *waiting; /* KNOCKED: the next in the queue */
};

struct waiter {
	struct weft_completion done;
	struct waiter *next;
};

struct weft_comm_port {
	struct weft_net_events events;
	struct weft_net_job job;
	struct weft_net *net;
	struct weft_source source;
	uint8_t secret[WEFT_SECRET_BYTES];
	char jobid[2 * JOB_BYTES + 1];
	char name[WEFT_PORT_NAME];
	pthread_mutex_t lock;
	bool cancelled;
	int to_revive; /* seats in LEFT, and lines to drop */
	struct waiter *waiters;
	struct weft_comm_line *first, *last;   /* KNOCKED */
	struct weft_comm_line line[1 + SEATS]; /* by peer */
};

static const struct weft_driver *const driver = &weft_net_driver_tcp;

/* ---- waiting ------------------------------------------------------------------------------ */

/* Each waiter looks again. */
static void wake_locked(struct weft_comm_port *p)
{
	weft_assert_held(weft_mutex, &p->lock);
	struct waiter *w = p->waiters;
	p->waiters = NULL;
	while (w) {
		struct waiter *next = w->next;
		weft_wait_completion_signal(&w->done); /* w is its owner's from here on */
		w = next;
	}
}

static void forget_waiter_locked(struct weft_comm_port *p, struct waiter *w)
{
	weft_assert_held(weft_mutex, &p->lock);
	for (struct waiter **link = &p->waiters; *link; link = &(*link)->next)
		if (*link == w) {
			*link = w->next;
			return;
		}
}

/* Gives up the lock until something happens; false: `until` has passed. */
static bool sleep_locked(struct weft_comm_port *p, uint64_t until)
{
	weft_assert_held(weft_mutex, &p->lock);
	uint64_t now = weft_clock_ns();
	if (until != WEFT_FOREVER && now >= until)
		return false;
	struct waiter w = {.next = p->waiters};
	weft_wait_completion_init(&w.done);
	p->waiters = &w;
	pthread_mutex_unlock(&p->lock);
	struct weft_completion *c = &w.done;
	(void)weft_task_engine_wait_any(&c, 1, until == WEFT_FOREVER ? until : until - now);
	pthread_mutex_lock(&p->lock);
	forget_waiter_locked(p, &w);
	return true;
}

static uint64_t end_of(uint64_t timeout_ns)
{
	return timeout_ns == WEFT_FOREVER ? WEFT_FOREVER : weft_clock_ns() + timeout_ns;
}

/* ---- what the driver says ----------------------------------------------------------------- */

static void part_drop(struct weft_comm_line *l)
{
	free(l->part);
	l->part = NULL;
	l->part_have = 0;
}

static void bad_locked(struct weft_comm_line *l)
{
	weft_assert_held(weft_mutex, &l->port->lock);
	part_drop(l);
	l->err = WEFT_ERR_PROTO;
	l->drop = true;
	l->port->to_revive++;
}

static void data_locked(struct weft_comm_line *l, const struct head *h, const void *payload)
{
	weft_assert_held(weft_mutex, &l->port->lock);
	if (!l->part) {
		if (h->at || h->total > WEFT_LINE_BYTES_MAX ||
		    !(l->part = malloc(sizeof *l->part + h->total))) {
			bad_locked(l);
			return;
		}
		*l->part = (struct message){.len = h->total};
	}
	if (h->at != l->part_have || h->total != l->part->len ||
	    h->bytes > l->part->len - l->part_have) {
		bad_locked(l);
		return;
	}
	memcpy(l->part->data + h->at, payload, h->bytes);
	l->part_have += h->bytes;
	if (l->part_have < l->part->len)
		return;
	if (l->first)
		l->last->next = l->part;
	else
		l->first = l->part;
	l->last = l->part;
	l->part = NULL;
	l->part_have = 0;
}

static void knock_locked(struct weft_comm_port *p, struct weft_comm_line *l)
{
	weft_assert_held(weft_mutex, &p->lock);
	if (l->seat != EMPTY) {
		bad_locked(l);
		return;
	}
	l->seat = KNOCKED;
	l->waiting = NULL;
	if (p->first)
		p->last->waiting = l;
	else
		p->first = l;
	p->last = l;
}

static void on_packet(void *arg, int peer, const void *head, const void *payload, size_t len)
{
	struct weft_comm_port *p = arg;
	struct weft_comm_line *l = &p->line[peer];
	struct head h;
	memcpy(&h, head, sizeof h);
	pthread_mutex_lock(&p->lock);
	if (l->drop) {
		/* Its end is near. */
	} else if (h.bytes != len || len > CHUNK) {
		bad_locked(l);
	} else if (h.kind == KNOCK && p->job.rank == 0) {
		knock_locked(p, l);
	} else if (h.kind == WELCOME && p->job.rank) {
		l->welcome = true;
	} else if (h.kind == HERE && l->seat == TAKEN) {
		l->here = true;
	} else if (h.kind == DATA && (p->job.rank || l->seat == TAKEN)) {
		data_locked(l, &h, payload);
	} else {
		bad_locked(l);
	}
	wake_locked(p);
	pthread_mutex_unlock(&p->lock);
}

/* Packets are short enough to come whole: a long one is no packet of ours. */
static void on_place(void *arg, int peer, const void *head, size_t len, struct weft_net_sink *sink)
{
	struct weft_comm_port *p = arg;
	(void)head;
	(void)len;
	*sink = (struct weft_net_sink){.n = 0};
	pthread_mutex_lock(&p->lock);
	bad_locked(&p->line[peer]);
	pthread_mutex_unlock(&p->lock);
}

static void on_placed(void *arg, int peer, void *cookie, weft_err err)
{
	(void)arg;
	(void)peer;
	(void)cookie;
	(void)err;
}

static void on_sent(void *arg, int peer, void *cookie, weft_err err)
{
	on_placed(arg, peer, cookie, err);
}

static void on_ready(void *arg, int peer)
{
	struct weft_comm_port *p = arg;
	(void)peer;
	pthread_mutex_lock(&p->lock);
	wake_locked(p);
	pthread_mutex_unlock(&p->lock);
}

static void unqueue_locked(struct weft_comm_port *p, struct weft_comm_line *l)
{
	weft_assert_held(weft_mutex, &p->lock);
	struct weft_comm_line *before = NULL;
	for (struct weft_comm_line *q = p->first; q != l; q = q->waiting)
		before = q; /* ends at l: it is in the queue */
	if (before)
		before->waiting = l->waiting;
	else
		p->first = l->waiting;
	if (p->last == l)
		p->last = before;
}

static void on_down(void *arg, int peer, weft_err err, const char *why)
{
	struct weft_comm_port *p = arg;
	struct weft_comm_line *l = &p->line[peer];
	pthread_mutex_lock(&p->lock);
	weft_debug("port: %s", why);
	l->down = true;
	if (!l->err)
		l->err = err ? err : WEFT_ERR_PEER;
	l->refused = driver->ended && driver->ended(p->net, peer);
	if (l->seat == KNOCKED)
		unqueue_locked(p, l);
	/* A seat without an owner is free again; the owner of a line gives it back. */
	if (p->job.rank == 0 && l->seat != TAKEN && l->seat != LEFT) {
		l->seat = LEFT;
		p->to_revive++;
	}
	wake_locked(p);
	pthread_mutex_unlock(&p->lock);
}

/* ---- the engine's side -------------------------------------------------------------------- */

static void line_clear(struct weft_comm_line *l)
{
	/* Ends: each round frees one. */
	for (struct message *m; (m = l->first);) {
		l->first = m->next;
		free(m);
	}
	part_drop(l);
	*l = (struct weft_comm_line){.port = l->port, .peer = l->peer};
}

/* Connections to end, seats to free: not within an upcall. */
static void free_seats(struct weft_comm_port *p)
{
	for (int i = 0; i <= SEATS; i++) {
		struct weft_comm_line *l = &p->line[i];
		pthread_mutex_lock(&p->lock);
		bool drop = l->drop && !l->down;
		if (l->drop)
			p->to_revive--;
		l->drop = false;
		pthread_mutex_unlock(&p->lock);
		if (drop)
			driver->drop(p->net, i, "it is not wanted any more");
		pthread_mutex_lock(&p->lock);
		bool revive = l->seat == LEFT && l->down;
		if (revive) {
			p->to_revive--;
			line_clear(l);
		}
		pthread_mutex_unlock(&p->lock);
		if (revive)
			driver->revive(p->net, i);
	}
}

static int source_poll(void *arg)
{
	struct weft_comm_port *p = arg;
	int n = driver->poll(p->net);
	pthread_mutex_lock(&p->lock);
	bool due = p->to_revive > 0;
	pthread_mutex_unlock(&p->lock);
	if (due)
		free_seats(p);
	return n;
}

static weft_err source_arm(void *arg, enum weft_arm_level level)
{
	struct weft_comm_port *p = arg;
	weft_err err = driver->arm(p->net, level);
	if (level == WEFT_ARM_OFF || err)
		return err;
	/* The engine sleeps for edges: what is there already must be polled first. */
	struct pollfd fd = {.fd = p->source.fd, .events = POLLIN};
	int was = weft_cancel_off();
	int n = poll(&fd, 1, 0);
	weft_cancel_back(was);
	if (n <= 0)
		return WEFT_OK;
	(void)driver->arm(p->net, WEFT_ARM_OFF);
	return WEFT_AGAIN;
}

/* ---- a port's life ------------------------------------------------------------------------ */

static void port_free(struct weft_comm_port *p)
{
	if (p->net)
		driver->close(p->net);
	for (int i = 0; i <= SEATS; i++)
		line_clear(&p->line[i]);
	pthread_mutex_destroy(&p->lock);
	weft_private_page_free(p, sizeof *p);
}

/* rank 0 listens, another calls.  secret and jobid are set. */
static weft_err port_start(struct weft_comm_port *p, int rank)
{
	int fd[WEFT_NET_FDS];
	p->job = (struct weft_net_job){.rank = rank,
				       .size = rank ? 2 : 1 + SEATS,
				       .jobid = p->jobid,
				       .secret = p->secret,
				       .callers = !rank};
	p->events = (struct weft_net_events){.arg = p,
					     .packet = on_packet,
					     .place = on_place,
					     .placed = on_placed,
					     .sent = on_sent,
					     .ready = on_ready,
					     .down = on_down};
	return driver->open(&p->job, &p->events, &p->net) ? WEFT_ERR_UNSUPPORTED
	       : driver->fds(p->net, fd) != 1             ? WEFT_ERR_INTERNAL
							  : (p->source.fd = fd[0], WEFT_OK);
}

static weft_err source_start(struct weft_comm_port *p)
{
	p->source.name = "port";
	p->source.poll = source_poll;
	p->source.arm = source_arm;
	p->source.arms_levels = driver->arms_levels;
	p->source.arg = p;
	return weft_task_source_add(&p->source);
}

static struct weft_comm_port *port_new(void)
{
	struct weft_comm_port *p = weft_private_page_alloc(sizeof *p); /* for its secret */
	if (!p)
		return NULL;
	pthread_mutex_init(&p->lock, NULL);
	for (int i = 0; i <= SEATS; i++) {
		p->line[i].port = p;
		p->line[i].peer = i;
	}
	return p;
}

/* The driver's address has spaces; a name is one word. */
static void swap_chars(char *text, char from, char to)
{
	for (; *text; text++)
		if (*text == from)
			*text = to;
}

static weft_err name_print(struct weft_comm_port *p)
{
	char hex[2 * WEFT_SECRET_BYTES + 1];
	sodium_bin2hex(hex, sizeof hex, p->secret, sizeof p->secret);
	int n = snprintf(p->name, sizeof p->name, PREFIX "%s:%s@", hex, p->jobid);
	sodium_memzero(hex, sizeof hex);
	weft_err err = driver->address(p->net, p->name + n, sizeof p->name - (size_t)n);
	if (!err)
		swap_chars(p->name + n, ' ', ',');
	return err;
}

weft_err weft_comm_port_open(struct weft_comm_port **port_p)
{
	uint8_t job[JOB_BYTES];
	if (sodium_init() < 0)
		return WEFT_ERR_SYS;
	struct weft_comm_port *p = port_new();
	if (!p)
		return WEFT_ERR_NOMEM;
	randombytes_buf(p->secret, sizeof p->secret);
	randombytes_buf(job, sizeof job);
	sodium_bin2hex(p->jobid, sizeof p->jobid, job, sizeof job);
	weft_err err = port_start(p, 0);
	if (!err)
		err = name_print(p);
	if (!err)
		err = source_start(p);
	if (err) {
		port_free(p);
		return err;
	}
	*port_p = p;
	return WEFT_OK;
}

const char *weft_comm_port_name(const struct weft_comm_port *p)
{
	return p->name;
}

void weft_comm_port_cancel(struct weft_comm_port *p)
{
	pthread_mutex_lock(&p->lock);
	p->cancelled = true;
	wake_locked(p);
	pthread_mutex_unlock(&p->lock);
}

/* Leaves in order: what was sent arrives. */
void weft_comm_port_close(struct weft_comm_port *p)
{
	uint64_t until = weft_clock_ns() + BYE_NS;
	weft_task_source_remove(&p->source);
	/* Ends: the peers have taken all, or do not. */
	while (driver->drain(p->net) == WEFT_AGAIN && weft_clock_ns() < until) {
		if (driver->poll(p->net))
			continue;
		struct timespec nap = {.tv_nsec = 50000};
		sched_yield();
		int was = weft_cancel_off();
		nanosleep(&nap, NULL);
		weft_cancel_back(was);
	}
	port_free(p);
}

/* ---- sending and receiving ---------------------------------------------------------------- */

static weft_err line_post(struct weft_comm_line *l, const struct head *h, const void *data)
{
	struct weft_comm_port *p = l->port;
	struct iovec iov = {.iov_base = (void *)(uintptr_t)data, .iov_len = h->bytes};
	for (;;) { /* ends: it is out, or the line is down */
		pthread_mutex_lock(&p->lock);
		weft_err err = l->down || l->drop ? l->err : WEFT_OK;
		/* A wake-up between the post and the sleep must be seen: watch first. */
		struct waiter w = {.next = p->waiters};
		weft_wait_completion_init(&w.done);
		if (!err)
			p->waiters = &w;
		pthread_mutex_unlock(&p->lock);
		if (err)
			return err;
		enum weft_post answer =
			driver->post(p->net, l->peer, h, &iov, h->bytes ? 1 : 0, h->bytes, NULL);
		if (answer == WEFT_POST_FULL)
			weft_task_engine_wait(&w.done);
		pthread_mutex_lock(&p->lock);
		forget_waiter_locked(p, &w);
		pthread_mutex_unlock(&p->lock);
		if (answer == WEFT_POST_DONE)
			return WEFT_OK;
		if (answer != WEFT_POST_FULL)
			return WEFT_ERR_PEER;
	}
}

weft_err weft_comm_line_send(struct weft_comm_line *l, const void *data, size_t len)
{
	struct head h = {.kind = DATA, .total = len};
	if (len > WEFT_LINE_BYTES_MAX)
		return WEFT_ERR_LIMIT;
	do {
		size_t n = len - h.at < CHUNK ? len - h.at : CHUNK;
		h.bytes = (uint32_t)n;
		weft_err err = line_post(l, &h, (const uint8_t *)data + h.at);
		if (err)
			return err;
		h.at += n;
	} while (h.at < len);
	return WEFT_OK;
}

weft_err weft_comm_line_recv(struct weft_comm_line *l, void **data_p, size_t *len_p)
{
	struct weft_comm_port *p = l->port;
	pthread_mutex_lock(&p->lock);
	while (!l->first && !l->down && !l->drop)
		(void)sleep_locked(p, WEFT_FOREVER);
	struct message *m = l->first;
	weft_err err = m ? WEFT_OK : l->err;
	if (m)
		l->first = m->next;
	pthread_mutex_unlock(&p->lock);
	if (!m)
		return err;
	*len_p = m->len;
	memmove(m, m->data, m->len); /* the caller frees what it gets */
	*data_p = m;
	return WEFT_OK;
}

weft_err weft_comm_line_swap(struct weft_comm_line *l, const void *out, size_t out_len, void **in_p,
			     size_t *in_len_p)
{
	/* A message that fills the connection is taken in by the other side's poller, so both may
	 * send first. */
	weft_err err = weft_comm_line_send(l, out, out_len);
	return err ? err : weft_comm_line_recv(l, in_p, in_len_p);
}

const uint8_t *weft_comm_line_secret(const struct weft_comm_line *l)
{
	return l->port->secret;
}

/* ---- accept and call ---------------------------------------------------------------------- */

/* The owner wants that line no more. */
static void leave_locked(struct weft_comm_line *l)
{
	struct weft_comm_port *p = l->port;
	weft_assert_held(weft_mutex, &p->lock);
	l->seat = LEFT;
	p->to_revive++;
	if (!l->down && !l->drop) {
		l->drop = true;
		p->to_revive++;
	}
}

/* Is the caller still there?  Else its line is given back; it calls again, if it is alive. */
static bool caller_is_there(struct weft_comm_line *l, uint64_t latest)
{
	struct weft_comm_port *p = l->port;
	uint64_t patience = weft_clock_ns() + BYE_NS, until = latest < patience ? latest : patience;
	bool gone = line_post(l, &(struct head){.kind = WELCOME}, NULL) != WEFT_OK;
	pthread_mutex_lock(&p->lock);
	while (!gone && !l->here)
		gone = l->down || l->drop || !sleep_locked(p, until);
	if (gone)
		leave_locked(l);
	pthread_mutex_unlock(&p->lock);
	return !gone;
}

weft_err weft_comm_port_accept(struct weft_comm_port *p, uint64_t timeout_ns,
			       struct weft_comm_line **line_p)
{
	uint64_t until = end_of(timeout_ns);
	for (;;) { /* ends: a caller is there, or the caller of this gives up */
		weft_err err = WEFT_OK;
		pthread_mutex_lock(&p->lock);
		while (!err && !p->first) {
			if (p->cancelled)
				err = WEFT_ERR_CANCELLED;
			else if (!sleep_locked(p, until))
				err = WEFT_ERR_TIMEOUT;
		}
		struct weft_comm_line *l = p->first;
		if (!err) {
			unqueue_locked(p, l);
			l->seat = TAKEN;
		}
		pthread_mutex_unlock(&p->lock);
		if (err)
			return err;
		if (caller_is_there(l, until)) {
			*line_p = l;
			return WEFT_OK;
		}
	}
}

/* Reads a name; address: WEFT_PORT_NAME bytes. */
static bool name_parse(const char *name, struct weft_comm_port *p, char *address)
{
	size_t key = 2 * WEFT_SECRET_BYTES, job = 2 * JOB_BYTES, n;
	if (strncmp(name, PREFIX, sizeof PREFIX - 1) != 0)
		return false;
	name += sizeof PREFIX - 1;
	if (strnlen(name, WEFT_PORT_NAME) >= WEFT_PORT_NAME || strlen(name) < key + job + 2 ||
	    name[key] != ':' || name[key + 1 + job] != '@' ||
	    sodium_hex2bin(p->secret, sizeof p->secret, name, key, NULL, &n, NULL) ||
	    n != sizeof p->secret)
		return false;
	memcpy(p->jobid, name + key + 1, job);
	snprintf(address, WEFT_PORT_NAME, "%s", name + key + 1 + job + 1);
	swap_chars(address, ',', ' ');
	return true;
}

/* One attempt.  WEFT_AGAIN: no seat was free. */
static weft_err call_once(const char *name, uint64_t until, struct weft_comm_line **line_p)
{
	char address[WEFT_PORT_NAME], mine[WEFT_PORT_NAME];
	struct weft_comm_port *p = port_new();
	if (!p)
		return WEFT_ERR_NOMEM;
	struct weft_comm_line *l = &p->line[0];
	weft_err err = name_parse(name, p, address) ? port_start(p, 1) : WEFT_ERR_NOENT;
	/* The driver learns its own interfaces by this. */
	if (!err)
		err = driver->address(p->net, mine, sizeof mine);
	if (!err && driver->reach(p->net, 0, address))
		err = WEFT_ERR_NOENT;
	if (!err)
		err = source_start(p);
	if (err) {
		port_free(p);
		return err;
	}
	l->seat = TAKEN;
	err = line_post(l, &(struct head){.kind = KNOCK}, NULL);
	pthread_mutex_lock(&p->lock);
	while (!err && !l->welcome) {
		if (l->down || l->drop)
			err = l->err;
		else if (!sleep_locked(p, until))
			err = WEFT_ERR_TIMEOUT;
	}
	pthread_mutex_unlock(&p->lock);
	if (!err)
		err = line_post(l, &(struct head){.kind = HERE}, NULL);
	pthread_mutex_lock(&p->lock);
	/* All seats were taken, or the owner has closed the port: the next attempt tells. */
	if (err == WEFT_ERR_PEER)
		err = l->refused ? WEFT_ERR_NOENT : WEFT_AGAIN;
	pthread_mutex_unlock(&p->lock);
	if (err) {
		weft_comm_port_close(p);
		return err;
	}
	*line_p = l;
	return WEFT_OK;
}

weft_err weft_comm_port_call(const char *name, uint64_t timeout_ns, struct weft_comm_line **line_p)
{
	uint64_t until = end_of(timeout_ns);
	uint64_t patience =
		end_of((uint64_t)weft_setting_int(WEFT_SET_CONNECT_TIMEOUT) * SECOND_NS);
	weft_err err;
	if (sodium_init() < 0)
		return WEFT_ERR_SYS;
	/* Ends: by another answer, or when patience is over. */
	while ((err = call_once(name, until, line_p)) == WEFT_AGAIN) {
		if (weft_clock_ns() >= until)
			return WEFT_ERR_TIMEOUT;
		if (weft_clock_ns() >= patience)
			return WEFT_ERR_NOENT;
		struct timespec nap = {.tv_nsec = RETRY_NS};
		int was = weft_cancel_off();
		nanosleep(&nap, NULL);
		weft_cancel_back(was);
	}
	return err;
}

void weft_comm_line_close(struct weft_comm_line *l)
{
	struct weft_comm_port *p = l->port;
	if (p->job.rank) {
		weft_comm_port_close(p);
		return;
	}
	uint64_t until = weft_clock_ns() + BYE_NS;
	pthread_mutex_lock(&p->lock);
	while (!l->down && sleep_locked(p, until))
		continue; /* ends: the caller is gone, or too slow */
	leave_locked(l);
	pthread_mutex_unlock(&p->lock);
}
