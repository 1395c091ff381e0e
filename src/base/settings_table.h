/* SPDX-License-Identifier: BSD-3-Clause */
/* settings_table.h - WEFT_SETTING(ID, name, kind, default, lowest, highest, choices, help); no
 * include guard. */
/* clang-format off */
/* name in the environment: WEFT_ and the name in upper case */

WEFT_SETTING(LOG, "log", ENUM, "warn", 0, 0, "error|warn|info|debug", "what is written to stderr")
WEFT_SETTING(WITHOUT, "without", STR, "", 0, 0, NULL, "for measurements: mechanisms to leave out, a comma list (`weft info --mechanisms`); the same on all ranks")
WEFT_SETTING(CHECK, "check", ENUM, "0", 0, 0, "0|1|abort", "mistakes that MPI leaves undefined are found and named, a line each (doc/debugging.md): 1; abort: the first one ends the job")
WEFT_SETTING(INITIAL_ERRHANDLER, "initial_errhandler", ENUM, "mpi_errors_are_fatal", 0, 0, "mpi_errors_are_fatal|mpi_errors_abort|mpi_errors_return", "error handler of MPI_COMM_WORLD and MPI_COMM_SELF until the program sets another; mpiexec -initial-errhandler")
WEFT_SETTING(MEMORY_ALLOC_KINDS, "memory_alloc_kinds", STR, "", 0, 0, NULL, "kinds of memory that the program asks for, as system,mpi:alloc_mem; mpiexec -memory-alloc-kinds")
WEFT_SETTING(DEADLOCK, "deadlock", ENUM, "wait", 0, 0, "wait|abort", "abort: mpiexec ends a job on this host whose ranks all wait for each other, and names the cycle; see weft doctor")
WEFT_SETTING(TRACE, "trace", STR, "", 0, 0, NULL, "file or folder for what happens when, for `weft trace`; %r is the rank, %p the process, %h the host (doc/trace.md); empty: none")
WEFT_SETTING(TRACE_EVENTS, "trace_events", INT, "64k", 512, 16777216, NULL, "events of each kernel thread that the trace keeps, the last ones")

/* boot */
WEFT_SETTING(INIT_TIMEOUT, "init_timeout", INT, "60", 1, 86400, NULL, "seconds that MPI_Init waits for the launcher's answers; a rank that comes later than that is named in a line, and over PMIx MPI_Init then ends")

/* mpiexec, on other hosts */
WEFT_SETTING(RSH, "rsh", STR, "ssh", 0, 0, NULL, "command by which mpiexec starts an agent on a host, where no other launcher does")
WEFT_SETTING(RSH_FANOUT, "rsh_fanout", INT, "32", 1, 1024, NULL, "agents that mpiexec, and each agent, starts itself")
WEFT_SETTING(AGENT_SILENCE, "agent_silence", INT, "60", 2, 86400, NULL, "seconds without a word after which an agent, or mpiexec, counts as lost")

/* net */
WEFT_SETTING(DRIVERS, "drivers", STR, "self,shm,tcp", 0, 0, NULL, "networks that may be used, best first")
WEFT_SETTING(RAILS, "rails", STR, "", 0, 0, NULL, "networks to use at the same time to each peer, like tcp:eth0,tcp:eth1 or shm,tcp; empty: one, the best of drivers")
WEFT_SETTING(RAIL_CUT, "rail_cut", STR, "", 0, 0, NULL, "for tests, RAIL:AT:FOR - a rail (0, 1, ...) breaks so many ms after the first came up, and stays so for so many ms")
WEFT_SETTING(TCP_INTERFACE, "tcp_interface", STR, "", 0, 0, NULL, "bind tcp to this interface or address; empty: every one that the other host can reach")
WEFT_SETTING(TCP_CONGESTION, "tcp_congestion", STR, "auto", 0, 0, NULL, "congestion control of tcp, like cubic or bbr; auto: reno within this host, where nothing is gained by pacing, the system's to others; empty: the system's")
WEFT_SETTING(OFI_PROVIDER, "ofi_provider", STR, "", 0, 0, NULL, "libfabric's provider for the driver ofi; empty: the best that is there")
WEFT_SETTING(OFI_RMA, "ofi_rma", BOOL, "on", 0, 0, NULL, "large messages over ofi are read out of the sender's memory, where the provider can")
WEFT_SETTING(OFI_PUT, "ofi_put", ENUM, "auto", 0, 0, "auto|on|off", "large messages over ofi that had to ask are written into the receiver's memory, where the provider can; auto: not over shm, where that is slower; needs ofi_rma")
WEFT_SETTING(HANDSHAKE_TIMEOUT, "handshake_timeout", INT, "5", 1, 3600, NULL, "seconds that a new connection has to prove itself")
WEFT_SETTING(CONNECT_TIMEOUT, "connect_timeout", INT, "20", 1, 3600, NULL, "seconds after which a peer that cannot be connected to counts as lost")
WEFT_SETTING(TCP_SILENCE, "tcp_silence", INT, "30", 2, 86400, NULL, "seconds without any acknowledgement after which another host counts as lost")

/* task */
WEFT_SETTING(PROGRESS, "progress", BOOL, "on", 0, 0, NULL, "communication advances in the background; off: only inside MPI calls")
WEFT_SETTING(FLAVOUR, "flavour", ENUM, "threads", 0, 0, "threads|explicit|hooks|server", "what progresses while the program computes: threads that sleep; nothing (only calls do); the program's own runtime through weft/hooks.h; one thread that spins on server_cpu")
WEFT_SETTING(SERVER_CPU, "server_cpu", INT, "-1", -1, 65535, NULL, "core of the flavour server; -1: the last one that this process may use")
WEFT_SETTING(PROGRESS_CPUS, "progress_cpus", STR, "", 0, 0, NULL, "cores that the engine's threads may use, as 0,2-3; empty: all that the process may")
WEFT_SETTING(PROGRESS_BUDGET, "progress_budget", INT, "100", 0, 100000, NULL, "percent of one core that background progress may use over time; 0: no limit")
WEFT_SETTING(SPIN_US, "spin_us", INT, "-1", -1, 1000000, NULL, "microseconds that a waiter polls before it sleeps; -1: learned, 0 when cores are oversubscribed")
WEFT_SETTING(YIELD_MAX, "yield_max", INT, "64", 0, 1000000, NULL, "with more ranks than cores a waiter hands its core over between looks, until so many times in a row no thread took it; 0: it sleeps at once")
WEFT_SETTING(IDLE_WORKERS, "idle_workers", INT, "-1", -1, 4096, NULL, "threads that keep idle cores awake; -1: one per place of idle_level, at most one core less than this process's share")
WEFT_SETTING(IDLE_LEVEL, "idle_level", STR, "package", 0, 0, NULL, "level of the tree over whose places they are spread, as machine, package, L3, core (weft info shows the tree)")
WEFT_SETTING(IDLE_PERIOD_US, "idle_period_us", INT, "-1", -1, 1000000, NULL, "idle workers look every so often, 0: as often as they can, yielding between; -1: only after an event, for about as long as waking a core takes")
WEFT_SETTING(TIMER_POLL_MS, "timer_poll_ms", INT, "0", 0, 10000, NULL, "the watcher also polls everything with this period, armed or not; 0: it need not")
WEFT_SETTING(SLOW_TASK_MS, "slow_task_ms", INT, "100", 0, 3600000, NULL, "milliseconds after which a repeat task, which keeps its queue from others meanwhile, is reported; ten times as long: any task, while it runs; 0: never")
WEFT_SETTING(TIMER_MS, "timer_ms", INT, "10", 1, 10000, NULL, "period of the safety net for sources that cannot be armed")
WEFT_SETTING(IO_URING, "io_uring", BOOL, "on", 0, 0, NULL, "file events go through io_uring where the system has it; off: through threads")

/* ult */
WEFT_SETTING(ULT_WORKERS, "ult_workers", INT, "0", 0, 256, NULL, "kernel threads that run user-level threads; 0: one per core of this process's share")
WEFT_SETTING(ULT_BIND, "ult_bind", BOOL, "on", 0, 0, NULL, "each worker of user-level threads stays on its core, when there are no more of them than cores")
WEFT_SETTING(ULT_GUARDS, "ult_guards", INT, "-1", -1, 1048576, NULL, "stacks that get a guard by mprotect, the others a canary; -1: light guards for all where the kernel has them")
WEFT_SETTING(ULT_KEEP, "ult_keep", INT, "64", 0, 1048576, NULL, "MiB of dead threads' stacks that each worker keeps; the memory of more is the system's to take back when it runs short")
WEFT_SETTING(ULT_STEAL, "ult_steal", BOOL, "on", 0, 0, NULL, "workers take ready user-level threads from each other")

/* comm */
WEFT_SETTING(EAGER_SHM, "eager_shm", INT, "8k", 0, 1048576, NULL, "largest message in bytes that shm sends without asking first")
WEFT_SETTING(EAGER_TCP, "eager_tcp", INT, "64k", 0, 16777216, NULL, "largest message in bytes that tcp sends without asking first")
WEFT_SETTING(RTR, "rtr", BOOL, "on", 0, 0, NULL, "receives of large messages that are posted early tell their sender, which then need not ask (where memory cannot be read)")
WEFT_SETTING(SHARE_COPY, "share_copy", INT, "32k", 0, 1099511627776, NULL, "shm: from this many bytes on a sender that waits copies a part of its message, or any that is not eager as a whole where that is sooner; 0: the receiver copies alone")
WEFT_SETTING(SAMPLE_FILE, "sample_file", STR, "", 0, 0, NULL, "the switch points that weft sample measured, used where none is set; empty: sample-HOST in the cache folder of weft; none: no file")
WEFT_SETTING(OFFLOAD, "offload", BOOL, "on", 0, 0, NULL, "small sends that cost their sender more than a word to an idle core are left to that core, where one is awake")
WEFT_SETTING(STRATEGY, "strategy", STR, "auto", 0, 0, NULL, "what goes first to a peer, and what travels together: fifo, aggregate, priority, reorder, shortest, auto or one's own (doc/strategies.md)")
WEFT_SETTING(EAGER_CREDIT, "eager_credit", INT, "16m", 0, 1099511627776, NULL, "bytes of small messages that each peer may have lying here unreceived; what goes beyond asks first")
WEFT_SETTING(CROWDED, "crowded", ENUM, "auto", 0, 0, "auto|yes|no", "do algorithms count on more ranks than cores? auto: where a host has more; the same on all ranks")
WEFT_SETTING(PEER_TIMEOUT, "peer_timeout", INT, "5", 1, 86400, NULL, "seconds after which operations with a dead peer have failed")

/* coll; the same on all ranks */
WEFT_SETTING(COLL_SHARE, "coll_share", INT, "16k", 1, 1099511627776, NULL, "reductions from this many bytes on are shared out among the ranks")
WEFT_SETTING(COLL_SHARE_NET, "coll_share_net", INT, "64k", 1, 1099511627776, NULL, "the same where shared memory does not connect all ranks")
WEFT_SETTING(COLL_SHARE_CROWDED, "coll_share_crowded", INT, "256k", 1, 1099511627776, NULL, "the same with more ranks than cores")
WEFT_SETTING(COLL_SPLIT, "coll_split", INT, "256k", 1, 1099511627776, NULL, "broadcasts from this many bytes on are scattered, then collected")
WEFT_SETTING(COLL_FLAT, "coll_flat", INT, "256k", 0, 1099511627776, NULL, "with more ranks than cores, one rank combines up to this many bytes of all others")
WEFT_SETTING(COLL_SHM, "coll_shm", ENUM, "auto", 0, 0, "auto|on|off", "blocking collectives of ranks on one host go through shared memory; auto: where ranks outnumber cores, small gather, allgather, alltoall, reduce of two ranks, allreduce of four, all barriers, and allreduce of 16 to 512 KiB")

/* rma */
WEFT_SETTING(RMA_PATH, "rma_path", ENUM, "auto", 0, 0, "auto|copy|owed", "how windows reach ranks of the same host; auto: memory that is mapped, else the kernel's copy, else messages that the target's engine serves; copy: the kernel's copy at best; owed: messages alone (MPI_Win_allocate_shared maps all the same); a window says which: info key weft_paths")

/* file */
WEFT_SETTING(FILE_LOCKS, "file_locks", ENUM, "auto", 0, 0, "auto|on|off", "record locks of the file system around accesses in atomic mode and in MPI_File_sync; auto: where the file system is not coherent between the hosts of a file's group; a file's info key weft_file_locks goes first")
WEFT_SETTING(FILE_STRATEGY, "file_strategy", ENUM, "auto", 0, 0, "auto|straight|two_phase", "how collective file accesses move their data; auto: by costs, each access anew; straight: each rank its own part; two_phase: aggregators move whole stretches")

/* processes that come and go */
WEFT_SETTING(SPAWN_MPIEXEC, "spawn_mpiexec", STR, "", 0, 0, NULL, "weft's mpiexec, which starts the processes of MPI_Comm_spawn; empty: the one beside the library")
WEFT_SETTING(ACCEPT_TIMEOUT, "accept_timeout", INT, "60", 0, 1000000, NULL, "seconds that MPI_Comm_connect waits for an accept, unless its info key timeout says otherwise; 0: for ever")
WEFT_SETTING(NAME_DIR, "name_dir", STR, "", 0, 0, NULL, "folder in which MPI_Publish_name keeps names; empty: one of the user in /tmp, so that jobs on this host see them")
/* clang-format on */
