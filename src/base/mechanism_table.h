/* SPDX-License-Identifier: BSD-3-Clause */
/* mechanism_table.h - WEFT_MECHANISM(ID, name, what it is for); no include guard. */
/* clang-format off */

/* net */
WEFT_MECHANISM(LINE_RUNS, "line_runs", "shm: messages that differ in their number alone share a cache line")
WEFT_MECHANISM(NARROW_RING, "narrow_ring", "shm: payloads go round in 16 KiB while that has room")
WEFT_MECHANISM(RING_AGAIN, "ring_again", "shm: a sender begins at the first slot when the receiver has everything")
WEFT_MECHANISM(DELAYED_RING, "delayed_ring", "shm: a peer that is likely to poll soon is rung late")
WEFT_MECHANISM(TCP_RUNS, "tcp_runs", "tcp: packets that differ in their number alone share a frame")

/* task */
WEFT_MECHANISM(OWNER_BIAS, "owner_bias", "a lock that one thread uses alone is entered by plain stores")
WEFT_MECHANISM(GAP_PREDICT, "gap_predict", "each place that waits learns whether its thread is back before a wake-up pays")
WEFT_MECHANISM(KICK_TIMER, "kick_timer", "the watcher is kicked 50 us after a wait, not at once")
WEFT_MECHANISM(BATCH_HOLD, "batch_hold", "small packets that follow each other are held together for a moment")
WEFT_MECHANISM(RELAY, "relay", "an idle worker that is awake hears of tasks without a system call")
WEFT_MECHANISM(TURNS, "turns", "among strangers a waiter sleeps after 1 ms of polling, with a short slice")
WEFT_MECHANISM(POLL_PAUSE, "poll_pause", "a thread that polls in vain where cores are short yields, then sleeps for a moment")
WEFT_MECHANISM(LONG_TICKS, "long_ticks", "the watcher looks less often while each look finds that waiters poll")

/* comm */
WEFT_MECHANISM(PATH_COST, "path_cost", "a large message is fetched or sent, whichever was quicker lately")
WEFT_MECHANISM(PACK_JOIN, "pack_join", "a small packet joins one that waits already, before the gate's list")

/* coll */
WEFT_MECHANISM(COLL_RING, "coll_ring", "small collectives of ranks on a host that is crowded, and small gather, allgather, alltoall, reduce of two, allreduce of four and barrier of others, meet in shared memory")
WEFT_MECHANISM(COLL_STAGE, "coll_stage", "middling data goes piece by piece through shared memory; with a core for each rank that of allreduce")
WEFT_MECHANISM(COLL_READ, "coll_read", "large data is read from each other's memory")

/* file */
WEFT_MECHANISM(FILE_SMALL, "file_small", "small non-blocking accesses to the cache of a local file system are made by the call that starts them")
WEFT_MECHANISM(FILE_MAP, "file_map", "short ranges of a file on a local file system are loads and stores of its mapped pages")
/* clang-format on */
