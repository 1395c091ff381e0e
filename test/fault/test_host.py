# SPDX-License-Identifier: BSD-3-Clause
"""Hosts with one core, odd topologies, missing system calls, stopped peers: results are the same everywhere."""

import os
import signal
import shutil
import subprocess
import time

from lib import *

ROUNDS = 30
# Longer than a host may be silent, and than a peer may take nothing when others leave.
LONG = bool(os.environ.get("WEFT_LONG"))
STOPPED_S = 65 if LONG else 4
PATIENCE = {} if LONG else {"WEFT_TCP_SILENCE": "2", "WEFT_PEER_TIMEOUT": "1"}
calls = []


def checksum(what, result, lines=None):
    if not expect(what, result, 0):
        return ""
    if lines is not None and len(result.lines) > lines:
        fail("%s: %d lines on stderr" % (what, len(result.lines)), result.text())
    return result.out.strip()


def judge(what, result, lines=8):
    got = checksum(what, result, lines)
    if got and got != wanted:
        fail("%s: %s, want %s" % (what, got, wanted))


def same(what, command, env=None):
    calls.append((lambda: judge(what, run(command, env)),))


def without(fabric, names, error):
    what = "%s without %s (%s)" % (fabric, names, error)
    result = run([program("seccomp"), error, names] + traffic, {"WEFT_DRIVERS": fabric})
    # Without memfd shared memory alone cannot work: saying so is right too.
    if "memfd" in names and "shm" in fabric and result.rc != 0 and result.rc != "HANG":
        expect(what, result, lines=4)
    else:
        judge(what, result)


def stop_and_go(fabric):
    """Returns the job, its rank 1 stopped."""
    place = os.path.join(scratch, "stop-" + fabric.replace(",", "-"))
    os.mkdir(place)
    job = Job(ranks(3, "traffic", "halted", 300, place), dict(PATIENCE, WEFT_DRIVERS=fabric))
    if not wait_for(os.path.join(place, "pid.1")):
        fail("%s does not start" % job.command)
        return job, None
    with open(os.path.join(place, "pid.1")) as f:
        pid = int(f.read())
    os.kill(pid, signal.SIGSTOP)
    return job, pid


# The stopped ones sleep while all the others run.
stopped = [stop_and_go(f) for f in FABRICS]
since = time.monotonic()

traffic = ranks(2, "traffic", "plain", ROUNDS)
wanted = checksum("plain", run(traffic))
if run([program("seccomp"), "enosys", "membarrier", "true"]).rc == 77:
    skip("no seccomp")

for fabric in FABRICS:
    drivers = {"WEFT_DRIVERS": fabric}
    same("one core, " + fabric, ["taskset", "-c", "0"] + traffic, drivers)
    for names in ("membarrier", "process_vm_readv,process_vm_writev", "memfd_create", "sched_setattr",
                  "epoll_pwait2", "io_uring_setup", "pidfd_open", "sched_setaffinity",
                  "membarrier,process_vm_readv,process_vm_writev,memfd_create,sched_setattr,epoll_pwait2,io_uring_setup"):
        for error in ("enosys", "eperm"):
            calls.append((without, fabric, names, error))
for shape in ("pu:1", "pack:2 core:4 pu:2", "numa:4 pack:1 l3:2 core:8 pu:2", "core:1 pu:64", "garbage:x"):
    same("topology " + shape, traffic, {"HWLOC_SYNTHETIC": shape})
same("no hwloc component", traffic, {"HWLOC_COMPONENTS": "no_os,stop"})
for extra in ({"WEFT_SPIN_US": "0"}, {"WEFT_SPIN_US": "1000"}, {"WEFT_PROGRESS": "off"}, {"WEFT_IDLE_WORKERS": "4"},
              {"WEFT_PROGRESS": "off", "WEFT_DRIVERS": "tcp,self"}, {"WEFT_EAGER_CREDIT": "1k"},
              {"WEFT_EAGER_SHM": "0", "WEFT_EAGER_TCP": "0"}):
    same(str(extra), traffic, extra)
    same(str(extra) + " on one core", ["taskset", "-c", "0"] + traffic, extra)

# Another process, user or network namespace is another host; one rank in it, or each in its own.
if shutil.which("unshare"):
    for flags in (["--user", "--map-root-user"], ["--user", "--map-root-user", "--pid", "--fork", "--mount-proc"],
                  ["--user", "--map-root-user", "--ipc", "--uts"]):
        if subprocess.run(["unshare"] + flags + ["true"], stderr=subprocess.DEVNULL).returncode != 0:
            print("not tried here: unshare", *flags)
            continue
        word = "unshare " + " ".join(flags) + " --"
        for who in ("0 1", "1"):
            inside = 'for r in %s; do [ $PMI_RANK = $r ] && exec %s "$@"; done; exec "$@"' % (who, word)
            for drivers in ({}, {"WEFT_DRIVERS": "tcp,self"}):
                same("ranks %s in %s, %s" % (who, word, drivers),
                     [MPIEXEC, "-n", "2", "sh", "-c", inside, "sh"] + traffic[3:], drivers)
    # Nothing of ours lies in /dev/shm: it may be full.
    tiny = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c",
            'mount -t tmpfs -o size=4k none /dev/shm && { cat /dev/zero >/dev/shm/full 2>/dev/null; exec "$@"; }', "sh"]
    if subprocess.run(tiny + ["true"], stderr=subprocess.DEVNULL).returncode == 0:
        for fabric in FABRICS:
            same("a full /dev/shm, " + fabric, tiny + traffic, {"WEFT_DRIVERS": fabric})
    else:
        print("not tried here: a full /dev/shm")

beside(calls)
time.sleep(max(0, STOPPED_S - (time.monotonic() - since)))
sums = []
for job, pid in stopped:
    if pid:
        os.kill(pid, signal.SIGCONT)
    sums.append(checksum("stopped for %d s" % STOPPED_S, job.wait(), 0))
if len(set(sums)) != 1:
    fail("stopped peers: different results: %s" % sums)

for n in (8, 16):
    checksum("%d ranks" % n, run(ranks(n, "traffic", "plain", 20)), 0)
finish()
