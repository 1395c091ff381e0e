/* SPDX-License-Identifier: BSD-3-Clause */
/* counters_table.h - WEFT_COUNTER(ID, name, help); no include guard. */
/* clang-format off */
WEFT_COUNTER(POLL_EXPLICIT, "poll_explicit", "rounds polled by waiting threads")
WEFT_COUNTER(POLL_IDLE, "poll_idle", "rounds polled by idle workers")
WEFT_COUNTER(POLL_WATCHER, "poll_watcher", "rounds polled by the watcher after a wake-up")
WEFT_COUNTER(POLL_TIMER, "poll_timer", "rounds polled by the timer")
WEFT_COUNTER(WATCHER_WAKEUPS, "watcher_wakeups", "times the watcher woke, ticks included")
WEFT_COUNTER(ARMS, "arms", "times all sources were armed before a sleep")
WEFT_COUNTER(PARKS, "parks", "times a waiting thread went to sleep")
WEFT_COUNTER(BATON_HANDOVERS, "baton_handovers", "times the poller handed message and baton over")
WEFT_COUNTER(MASK_SKIPS, "mask_skips", "queues skipped because somebody else was polling them")
WEFT_COUNTER(TASKS_RUN, "tasks_run", "task executions")
WEFT_COUNTER(DOORBELLS, "doorbells", "doorbells rung at sleeping peers")
WEFT_COUNTER(EAGER_SENT, "eager_sent", "messages sent eagerly")
WEFT_COUNTER(RNDV_SENT, "rndv_sent", "messages sent by rendezvous")
WEFT_COUNTER(RNDV_FETCHED, "rndv_fetched", "large messages that the receiver copied from the sender's memory")
WEFT_COUNTER(RNDV_PUSHED, "rndv_pushed", "large messages that the sender copied into the receiver's memory")
WEFT_COUNTER(UNEXPECTED, "unexpected", "messages that came before their receive")
WEFT_COUNTER(COPIES, "copies", "payload copies that a direct delivery would have avoided")
WEFT_COUNTER(AGGREGATED, "aggregated", "messages that travelled in a packet with others")
WEFT_COUNTER(AUTH_REFUSED, "auth_refused", "connections refused: bad proof, bad hello, too slow")
/* clang-format on */
