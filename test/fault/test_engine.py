# SPDX-License-Identifier: BSD-3-Clause
"""The engine alone on a machine that lacks things: system calls, /proc, /sys, a writable /, HOME, cores; machines of
thousands of them.  Tasks, urgent and strict ones included, run as elsewhere."""

import os
import shutil

from lib import *

ENGINE = os.path.join(BUILD, "task_test_task")
if not os.path.exists(ENGINE):
    skip("no task_test_task in this build")


calls = []


def runs(what, command, env=None):
    calls.append((lambda: expect(what, run(command, env), 0),))


CALLS = ("membarrier", "memfd_create", "sched_setattr", "epoll_pwait2", "io_uring_setup", "pidfd_open",
         "sched_setaffinity", "clone3")
if run([program("seccomp"), "enosys", "membarrier", "true"]).rc == 77:
    skip("no seccomp")
for names in CALLS + (",".join(CALLS),):
    runs("without " + names, [program("seccomp"), "enosys", names, ENGINE])
# A thread that cannot be made at all is another matter.
runs("all forbidden", [program("seccomp"), "eperm", ",".join(CALLS[:-1]), ENGINE])

for shape in ("pu:1", "core:512 pu:1", "pack:8 l3:8 core:32 pu:2", "numa:4 pack:1 l3:2 core:8 pu:2"):
    runs("topology " + shape, [ENGINE], {"HWLOC_SYNTHETIC": shape})
runs("no hwloc component", [ENGINE], {"HWLOC_COMPONENTS": "no_os,stop"})
if shutil.which("lstopo"):
    xml = os.path.join(scratch, "machine.xml")
    if run(["lstopo", "-i", "pack:2 l3:4 core:32 pu:2", "--of", "xml", xml]).rc == 0:
        runs("a machine of 512 from XML", [ENGINE], {"HWLOC_XMLFILE": xml})
if len(os.sched_getaffinity(0)) > 1:
    runs("one core", ["taskset", "-c", str(min(os.sched_getaffinity(0))), ENGINE])
runs("an empty environment", ["env", "-i", ENGINE])

# In a namespace of mounts of its own; not every user may make one.
INSIDE = ["unshare", "-m", "sh", "-c"]
if run(INSIDE + ["mount -t tmpfs none /sys"]).rc == 0:
    for what, command in (("no /sys", "mount -t tmpfs none /sys"), ("no /proc", "mount -t tmpfs none /proc"),
                          ("neither", "mount -t tmpfs none /sys && mount -t tmpfs none /proc"),
                          ("a read-only /", "mount -o remount,ro,bind /")):
        runs(what, INSIDE + [command + ' && exec "$0"', ENGINE])
beside(calls)
finish()
