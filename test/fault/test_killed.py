# SPDX-License-Identifier: BSD-3-Clause
"""Any process of a job is killed at any moment - while ranks start, meet in shared memory, repair a rail, leave - and
nothing hangs, no process stays, no name is left in /dev/shm or /tmp.

  test_killed.py [SEED [ROUNDS]]    a round: one job each over shm, tcp, and two rails of which one keeps breaking
"""

import os
import random
import signal
import sys
import time

from lib import *

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 20261123
rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 50 if os.environ.get("WEFT_LONG") else 1
print("seed", seed)
RAILS = {"WEFT_RAILS": "tcp:127.0.0.2,tcp:127.0.0.3", "WEFT_RAIL_CUT": "0:5:20", "WEFT_PEER_TIMEOUT": "50"}
KINDS = {"shm": {"WEFT_DRIVERS": "shm,self"}, "tcp": {"WEFT_DRIVERS": "tcp,self"}, "rails": RAILS}
COMMAND = ranks(3, "traffic", "plain", 5)
length = {}
met = {}


def kill_one(kind, number):
    dice = random.Random(number)
    what = "%s, seed %d" % (kind, number)
    job = Job(COMMAND, KINDS[kind])
    # The moment is what chance decides here: nothing waits for it.
    time.sleep(dice.random() * length[kind] * 1.1)
    there = marked(job.mark)
    victims = dice.sample(there, min(len(there), dice.choice([1, 1, 1, 2])))
    killed = []
    for pid in victims:
        name = command_of(pid)
        try:
            os.kill(pid, signal.SIGKILL)
            killed.append(name)
        except OSError:
            pass
    result = job.wait()
    nobody_left(what, job.mark)
    for name in killed or ["nobody"]:
        met[kind, name] = met.get((kind, name), 0) + 1
    # Killed itself, or what it says when others were; 0: they were done.
    if result.rc not in (-9, 137, 1, 0) or "mpiexec" not in killed and result.rc == -9:
        fail("%s: exit code %s with %s killed" % (what, result.rc, killed), result.text())
    if result.rc in (137, 1) and not 1 <= len(result.lines) <= 4:
        fail("%s: %d lines with %s killed" % (what, len(result.lines), killed), result.text())


def kill_nobody(kind):
    result = run(COMMAND, KINDS[kind])
    expect("%s, nobody killed" % kind, result, 0)
    length[kind] = result.seconds


before = litter()
beside([(kill_nobody, kind) for kind in KINDS])
beside([(kill_one, kind, seed * 1000 + i) for i in range(rounds) for kind in KINDS])
nobody_left("at the end")
left = left_behind(before)
if left:
    fail("left behind: %s" % left)
print("killed:", ", ".join("%s over %s %d" % (name, kind, n) for (kind, name), n in sorted(met.items())))
finish()
