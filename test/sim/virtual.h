/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * virtual.h - included before the production sources of the bundle driver, which the simulator
 * compiles a second time: their clock is the simulator's, and so is what bounds their haste.
 */
#ifndef WEFT_TEST_SIM_VIRTUAL_H
#define WEFT_TEST_SIM_VIRTUAL_H

#include <stdlib.h>
#include "base/base.h"
#include "net/hub.h"

uint64_t sim_clock_ns(void);
bool sim_hub_due(void);
#define weft_clock_ns sim_clock_ns
#define weft_net_hub_due(hub, busy) sim_hub_due()

#endif
