/* SPDX-License-Identifier: BSD-3-Clause */
/* board.h - how much memory a process shows to all processes of its host (board() in driver.h). */
#ifndef WEFT_NET_BOARD_H
#define WEFT_NET_BOARD_H

#define WEFT_NET_BOARD_BYTES 311424

#endif
