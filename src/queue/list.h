/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * list.h - doubly linked list of links embedded in the caller's structures.
 *
 * Callers   one at a time: the list has no lock of its own.
 * Owner     the caller owns the memory of every link; linking keeps only its address.
 */
#ifndef WEFT_LIST_H
#define WEFT_LIST_H

#include "base/base.h"

struct weft_link {
	struct weft_link *next, *prev;
};

/* A list is a ring through its head. */
struct weft_list {
	struct weft_link head;
};

static inline void weft_list_init(struct weft_list *l)
{
	l->head.next = l->head.prev = &l->head;
}

static inline bool weft_list_empty(const struct weft_list *l)
{
	return l->head.next == &l->head;
}

static inline void weft_list_insert_before(struct weft_link *at, struct weft_link *e)
{
	e->prev = at->prev;
	e->next = at;
	at->prev->next = e;
	at->prev = e;
}

static inline void weft_list_push_back(struct weft_list *l, struct weft_link *e)
{
	weft_list_insert_before(&l->head, e);
}

/* Unlinks e from whatever list it is in; e may be linked again at once. */
static inline void weft_list_remove(struct weft_link *e)
{
	e->prev->next = e->next;
	e->next->prev = e->prev;
	e->next = e->prev = e;
}

/* The first link, unlinked, or NULL. */
static inline struct weft_link *weft_list_pop_front(struct weft_list *l)
{
	struct weft_link *e = l->head.next;
	if (e == &l->head)
		return NULL;
	weft_list_remove(e);
	return e;
}

/* Walks; e may be removed (not freed) inside because the next one is read before. */
#define weft_list_for_each(l, e, after)                                                            \
	for ((e) = (l)->head.next, (after) = (e)->next; (e) != &(l)->head;                         \
	     (e) = (after), (after) = (e)->next)

#endif
