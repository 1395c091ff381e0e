/* SPDX-License-Identifier: BSD-3-Clause */
/* lobby_int.h - what the two files of the lobby share. */
#ifndef WEFT_LOBBY_INT_H
#define WEFT_LOBBY_INT_H

#include "net/lobby.h"

/* Ends our own attempt to reach peer, if there is one, and sets its state. */
void weft_net_lobby_hang_up(struct weft_lobby *l, int peer, enum weft_lobby_state state);
void weft_net_lobby_dial_event(struct weft_lobby *l, int peer);
void weft_net_lobby_take_wishes(struct weft_lobby *l);
void weft_net_lobby_dial_timers(struct weft_lobby *l, uint64_t now);

#endif
