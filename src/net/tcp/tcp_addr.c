/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp_addr.c - where to listen, what to tell peers, and in which order to try what they told.
 *
 * Line      tcp1 NETWORK-KEY ADDRESS/PREFIX/PORT ...
 * Order     same network namespace: loopback, then the rest; else: addresses in a subnet of ours,
 *           then those of a family that we have.  Never a loopback of another host, nor an address
 *           that is our own there (bridges have the same one on every host).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/log.h"
#include "base/settings.h"
#include "net/tcp/tcp_int.h"

static socklen_t name_len(const union weft_tcp_sockaddr *a)
{
	return a->sa.sa_family == AF_INET ? sizeof a->in : sizeof a->in6;
}

/* The address bytes, in network order. */
static const uint8_t *name_bytes(const union weft_tcp_sockaddr *a, unsigned *n_p)
{
	*n_p = a->sa.sa_family == AF_INET ? 4 : 16;
	return a->sa.sa_family == AF_INET ? (const uint8_t *)&a->in.sin_addr
					  : (const uint8_t *)&a->in6.sin6_addr;
}

static in_port_t *name_port(union weft_tcp_sockaddr *a)
{
	return a->sa.sa_family == AF_INET ? &a->in.sin_port : &a->in6.sin6_port;
}

static void print_name(const union weft_tcp_sockaddr *a, char *buf, size_t size)
{
	unsigned n;
	const uint8_t *bytes = name_bytes(a, &n);
	if (!inet_ntop(a->sa.sa_family, bytes, buf, (socklen_t)size))
		snprintf(buf, size, "?");
}

static unsigned mask_bits(const struct sockaddr *mask)
{
	unsigned n, bits = 0;
	union weft_tcp_sockaddr m;
	if (!mask)
		return 0;
	memset(&m, 0, sizeof m);
	memcpy(&m, mask,
	       mask->sa_family == AF_INET ? sizeof(struct sockaddr_in)
					  : sizeof(struct sockaddr_in6));
	const uint8_t *b = name_bytes(&m, &n);
	while (bits < n * 8 && (b[bits / 8] >> (7 - bits % 8) & 1))
		bits++;
	return bits;
}

static bool same_subnet(const struct weft_tcp_address *a, const union weft_tcp_sockaddr *b,
			unsigned bits)
{
	unsigned n;
	if (a->name.sa.sa_family != b->sa.sa_family)
		return false;
	const uint8_t *x = name_bytes(&a->name, &n), *y = name_bytes(b, &n);
	for (unsigned i = 0; i < n && bits; i++) {
		unsigned part = bits < 8 ? bits : 8;
		uint8_t mask = (uint8_t)(0xff << (8 - part));
		if ((x[i] ^ y[i]) & mask)
			return false;
		bits -= part;
	}
	return true;
}

/* Is this one of the interfaces that the user lets us use? */
static bool is_chosen(const struct ifaddrs *i, const union weft_tcp_sockaddr *name,
		      const char *wish)
{
	char text[INET6_ADDRSTRLEN];
	if (!*wish)
		return true;
	if (strcmp(wish, i->ifa_name) == 0)
		return true;
	print_name(name, text, sizeof text);
	return strcmp(wish, text) == 0;
}

/* Every address 127.x.y.z is the loopback's, though it lists one. */
static bool is_loopback(const char *wish, const struct ifaddrs *i, struct in_addr *addr)
{
	return (i->ifa_flags & IFF_LOOPBACK) && i->ifa_addr->sa_family == AF_INET &&
	       inet_pton(AF_INET, wish, addr) == 1 && ntohl(addr->s_addr) >> 24 == 127;
}

static const char *wish_of(const struct weft_tcp *t)
{
	return t->job.interface ? t->job.interface : weft_setting_str(WEFT_SET_TCP_INTERFACE);
}

static bool is_usable(const struct ifaddrs *i, struct weft_tcp_address *a, const char *wish)
{
	if (!i->ifa_addr || !(i->ifa_flags & IFF_UP))
		return false;
	memset(a, 0, sizeof *a);
	if (i->ifa_addr->sa_family == AF_INET) {
		memcpy(&a->name.in, i->ifa_addr, sizeof a->name.in);
	} else if (i->ifa_addr->sa_family == AF_INET6) {
		memcpy(&a->name.in6, i->ifa_addr, sizeof a->name.in6);
		/* Means nothing without the other side's interface number. */
		if (IN6_IS_ADDR_LINKLOCAL(&a->name.in6.sin6_addr))
			return false;
	} else {
		return false;
	}
	a->prefix = mask_bits(i->ifa_netmask);
	a->loopback = (i->ifa_flags & IFF_LOOPBACK) != 0;
	struct in_addr own;
	if (is_loopback(wish, i, &own)) {
		a->name.in.sin_addr = own;
		return true;
	}
	return is_chosen(i, &a->name, wish);
}

static int listen_on(struct weft_tcp_address *a)
{
	int one = 1;
	socklen_t len = name_len(&a->name);
	int fd = socket(a->name.sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -1;
	*name_port(&a->name) = 0;
	if (a->name.sa.sa_family == AF_INET6)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one);
	if (bind(fd, &a->name.sa, len) == 0 && listen(fd, 1024) == 0 &&
	    getsockname(fd, &a->name.sa, &len) == 0)
		return fd;
	int error = errno;
	close(fd);
	errno = error;
	return -1;
}

/* Listens on each usable address of the interfaces that are, or are not, running. */
static void listen_on_all(struct weft_tcp *t, const struct ifaddrs *all, bool running, int *error_p)
{
	for (const struct ifaddrs *i = all; i && t->n_mine < WEFT_TCP_ADDRESSES; i = i->ifa_next) {
		struct weft_tcp_address a;
		if (((i->ifa_flags & IFF_RUNNING) != 0) != running || !is_usable(i, &a, wish_of(t)))
			continue;
		int fd = listen_on(&a);
		if (fd < 0) {
			/* For instance an IPv6 address that is still being checked for doubles. */
			*error_p = errno;
			weft_debug("tcp: cannot listen on %s: %s", i->ifa_name, strerror(errno));
			continue;
		}
		if (weft_net_lobby_listen(&t->lobby, fd)) {
			close(fd);
			continue;
		}
		t->mine[t->n_mine++] = a;
	}
}

weft_err weft_net_tcp_addr_listen(struct weft_tcp *t)
{
	struct ifaddrs *all;
	const char *wish = wish_of(t);
	int error = 0;
	if (getifaddrs(&all) != 0) {
		weft_error("tcp: cannot list the network interfaces: %s", strerror(errno));
		return WEFT_ERR_SYS;
	}
	t->n_mine = 0;
	listen_on_all(t, all, true, &error);
	/* A cable that is out now may be in by the time that a peer connects. */
	listen_on_all(t, all, false, &error);
	freeifaddrs(all);
	if (t->n_mine)
		return WEFT_OK;
	if (error)
		weft_error("tcp: cannot listen anywhere: %s%s", strerror(error),
			   error == EMFILE ? " (raise ulimit -n)" : "");
	else if (*wish)
		weft_error("tcp: %s%s: no interface or address of that name is up here (see: ip "
			   "address)",
			   t->job.interface ? "WEFT_RAILS names " : "WEFT_TCP_INTERFACE=", wish);
	else
		weft_error("tcp: no network interface with an address is up here");
	if (*wish && !error)
		return WEFT_ERR_ARG;
	return error == EMFILE ? WEFT_ERR_LIMIT : WEFT_ERR_UNSUPPORTED;
}

weft_err weft_net_tcp_addr_print(const struct weft_tcp *t, char *buf, size_t size)
{
	int at = snprintf(buf, size, "tcp1 %s", t->network_key);
	for (unsigned i = 0; i < t->n_mine && at > 0 && (size_t)at < size; i++) {
		char text[INET6_ADDRSTRLEN];
		union weft_tcp_sockaddr name = t->mine[i].name;
		print_name(&name, text, sizeof text);
		at += snprintf(buf + at, size - (size_t)at, " %s/%u/%u", text, t->mine[i].prefix,
			       ntohs(*name_port(&name)));
	}
	return at > 0 && (size_t)at < size ? WEFT_OK : WEFT_ERR_LIMIT;
}

/* One word ADDRESS/PREFIX/PORT. */
static bool parse_word(const char *word, struct weft_tcp_address *a)
{
	char text[INET6_ADDRSTRLEN];
	unsigned prefix, port;
	int used = 0;
	const char *slash = strchr(word, '/');
	memset(a, 0, sizeof *a);
	if (!slash || (size_t)(slash - word) >= sizeof text ||
	    sscanf(slash, "/%u/%u%n", &prefix, &port, &used) != 2 || slash[used] || prefix > 128 ||
	    port == 0 || port > 65535)
		return false;
	memcpy(text, word, (size_t)(slash - word));
	text[slash - word] = 0;
	if (inet_pton(AF_INET, text, &a->name.in.sin_addr) == 1) {
		a->name.sa.sa_family = AF_INET;
		a->loopback = (ntohl(a->name.in.sin_addr.s_addr) >> 24) == 127;
	} else if (inet_pton(AF_INET6, text, &a->name.in6.sin6_addr) == 1) {
		a->name.sa.sa_family = AF_INET6;
		a->loopback = IN6_IS_ADDR_LOOPBACK(&a->name.in6.sin6_addr);
	} else {
		return false;
	}
	a->prefix = prefix;
	*name_port(&a->name) = htons((uint16_t)port);
	return true;
}

/* How good is this address of a peer?  0: of no use. */
static int address_score(const struct weft_tcp *t, const struct weft_tcp_address *a,
			 bool same_network)
{
	int best = 0;
	for (unsigned i = 0; i < t->n_mine; i++) {
		const struct weft_tcp_address *m = &t->mine[i];
		unsigned all = a->name.sa.sa_family == AF_INET ? 32 : 128;
		if (m->name.sa.sa_family != a->name.sa.sa_family)
			continue;
		if (same_network) {
			int s = a->loopback ? 4 : 3;
			best = s > best && m->loopback == a->loopback ? s : best;
			continue;
		}
		if (same_subnet(m, &a->name, all))
			return 0;
		if (a->loopback || m->loopback)
			continue;
		int s = same_subnet(m, &a->name, m->prefix) && m->prefix ? 2 : 1;
		best = s > best ? s : best;
	}
	return best;
}

static void candidate_insert(struct weft_tcp_conn *c, const struct weft_tcp_address *a, int *scores,
			     int s)
{
	unsigned at = c->n_candidates;
	while (at > 0 && scores[at - 1] < s) {
		c->candidate[at] = c->candidate[at - 1];
		scores[at] = scores[at - 1];
		at--;
	}
	c->candidate[at] = *a;
	scores[at] = s;
	c->n_candidates++;
}

/* When no host outside this network can hold a peer, no host outside needs to see a port. */
static void close_outer_listeners(struct weft_tcp *t)
{
	bool has_loopback = false;
	for (unsigned i = 0; i < t->n_mine; i++)
		has_loopback |= t->mine[i].loopback;
	if (!has_loopback)
		return;
	for (unsigned i = 0; i < t->n_mine; i++)
		if (!t->mine[i].loopback)
			weft_net_lobby_unlisten(&t->lobby, i);
}

weft_err weft_net_tcp_addr_learn(struct weft_tcp *t, int peer, const char *line)
{
	struct weft_tcp_conn *c = &t->conn[peer];
	int scores[WEFT_TCP_ADDRESSES];
	size_t key = strlen(t->network_key);
	if (strncmp(line, "tcp1 ", 5) != 0)
		return WEFT_ERR_UNSUPPORTED;
	bool same = strncmp(line + 5, t->network_key, key) == 0 && line[5 + key] == ' ';
	const char *at = strchr(line + 5, ' ');

	c->n_candidates = 0;
	/* Ends with the line's last word. */
	while (at && c->n_candidates < WEFT_TCP_ADDRESSES) {
		char word[96];
		struct weft_tcp_address a;
		const char *next = strchr(at + 1, ' ');
		size_t n = next ? (size_t)(next - at - 1) : strlen(at + 1);
		if (n >= sizeof word)
			break;
		memcpy(word, at + 1, n);
		word[n] = 0;
		if (!parse_word(word, &a)) {
			weft_error("tcp: rank %d published an address that makes no sense: %s",
				   peer, word);
			return WEFT_ERR_PROTO;
		}
		int s = address_score(t, &a, same);
		if (s)
			candidate_insert(c, &a, scores, s);
		at = next;
	}
	if (!c->n_candidates) {
		weft_warn("tcp: none of rank %d's addresses can be reached from here: %s", peer,
			  strchr(line + 5, ' ') ? strchr(line + 5, ' ') + 1 : "(it has none)");
		return WEFT_ERR_UNSUPPORTED;
	}
	t->n_reached++;
	t->n_same_network += same;
	if (t->n_reached == (unsigned)t->job.size - 1 && t->n_same_network == t->n_reached)
		close_outer_listeners(t);
	return WEFT_OK;
}

/* With WEFT_TCP_INTERFACE, connections leave through that interface, too. */
static void bind_chosen(const struct weft_tcp *t, int fd, int family)
{
	if (!*wish_of(t))
		return;
	for (unsigned i = 0; i < t->n_mine; i++) {
		union weft_tcp_sockaddr a = t->mine[i].name;
		if (a.sa.sa_family != family)
			continue;
		*name_port(&a) = 0;
		if (bind(fd, &a.sa, name_len(&a)) == 0)
			return;
	}
}

/* First contact: the launcher is asked for the peer's addresses.  Failures have been logged. */
static weft_err find_candidates(struct weft_tcp *t, int peer)
{
	char line[1024];
	weft_err err = t->job.find(t->job.find_arg, peer, line, sizeof line);
	return err ? err : weft_net_tcp_addr_learn(t, peer, line);
}

int weft_net_tcp_addr_dial(void *arg, int peer, unsigned n, char *where, size_t size)
{
	struct weft_tcp *t = arg;
	struct weft_tcp_conn *c = &t->conn[peer];
	weft_err err = c->n_candidates ? WEFT_OK : find_candidates(t, peer);
	if (err) {
		snprintf(where, size, "(address unknown)");
		errno = err == WEFT_AGAIN ? EINPROGRESS : EHOSTUNREACH;
		return -1;
	}
	union weft_tcp_sockaddr name = c->candidate[n % c->n_candidates].name;
	char text[INET6_ADDRSTRLEN];

	print_name(&name, text, sizeof text);
	snprintf(where, size, name.sa.sa_family == AF_INET ? "%s:%u" : "[%s]:%u", text,
		 ntohs(*name_port(&name)));
	int fd = socket(name.sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0) {
		int error = errno;
		if (error == EMFILE)
			weft_net_tcp_rest_make_room(t, NULL);
		errno = error;
		return -1;
	}
	bind_chosen(t, fd, name.sa.sa_family);
	weft_net_tcp_conn_dialing(fd);
	/* EINTR: a non-blocking connect goes on all the same. */
	if (connect(fd, &name.sa, name_len(&name)) == 0 || errno == EINPROGRESS || errno == EINTR)
		return fd;
	int error = errno;
	close(fd);
	errno = error;
	return -1;
}
