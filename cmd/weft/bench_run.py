# SPDX-License-Identifier: BSD-3-Clause
"""Runs one command of a bench, and ends all that it has started."""

import os
import re
import signal
import subprocess
import tempfile


def end_group(process):
    """Ends what we started: first asked, then made to.  Quick enough for a caller that gives us two seconds to end."""
    for sig, seconds in ((signal.SIGTERM, 1), (signal.SIGKILL, 5)):
        try:
            os.killpg(process.pid, sig)
        except ProcessLookupError:
            return
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            continue
    # The leader is gone; what it left behind goes too.
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def run_command(command, extra, patience):
    """The lines it printed, the first one that it said on stderr, and what went wrong (or None).
    extra: settings on top of the user's."""
    # The user's settings stay; what a launcher left, if we run under one, does not.
    env = {k: v for k, v in os.environ.items()
           if not re.match(r"(PMIX?|OMPI_COMM|PRTE|HYDI|MPIEXEC|WEFT_BOOT)_", k)}
    env.update(extra)
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=env,
                                   start_new_session=True)
        wrong = None
        try:
            if process.wait(patience):
                wrong = f"exit code {process.returncode}"
        except subprocess.TimeoutExpired:
            wrong = f"no answer within {patience:.0f} s"
        finally:
            end_group(process)
        out.seek(0)
        err.seek(0)
        lines = [line.strip() for line in err if line.strip().strip("-")]
        return list(out), lines[0][:200] if lines else "it says nothing", wrong
