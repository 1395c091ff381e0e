# SPDX-License-Identifier: BSD-3-Clause
"""A rank is killed at some step of what it does with a window: the others hear of it or go on, no lock stays with it.

  test_rma.py [SEED [ROUNDS]]
"""

import os
import random
import signal
import sys

from lib import *

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 20261126
rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 20 if os.environ.get("WEFT_LONG") else 1
print("seed", seed)
PATHS = {"shm": {"WEFT_DRIVERS": "shm,self"}, "owed": {"WEFT_DRIVERS": "shm,self", "WEFT_RMA_PATH": "owed"},
         "tcp": {"WEFT_DRIVERS": "tcp,self", "WEFT_RMA_PATH": "owed"}}


def victim(where, memory, path, number):
    """The launcher would end the job: stopped, it leaves the survivors to what they notice themselves."""
    what = "%s, %s, %s, seed %d" % (where, memory, path, number)
    place = os.path.join(scratch, "%s-%s-%s-%d" % (where, memory, path, number))
    os.mkdir(place)
    job = Job(ranks(3, "rma_victim", where, memory, number, place), dict(PATHS[path], WEFT_LOG="error"))
    if not wait_for(os.path.join(place, "ready")):
        fail("%s does not start" % what)
    stopped = job.launchers()
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    open(os.path.join(place, "go"), "w").close()
    for rank in (0, 2):
        if not wait_for(os.path.join(place, "ok.%d" % rank), 60):
            fail("%s: rank %d does not go on" % (what, rank))
            stacks()
    for pid in stopped:
        os.kill(pid, signal.SIGCONT)
    result = job.wait()
    expect(what, result, 137, 4, ["rank 1 on", "SIGKILL"])
    if "failed:" in result.err or " want " in result.err:
        fail(what, result.text())
    nobody_left(what, job.mark)


dice = random.Random(seed)
beside([(victim, where, memory, path, dice.randrange(1 << 30)) for _ in range(rounds)
        for where in ("exclusive", "shared", "accumulate", "fence", "pscw", "notify") for path in PATHS
        for memory in (("created", "allocated") if path == "shm" else ("created",))])
finish()
