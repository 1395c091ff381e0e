# SPDX-License-Identifier: BSD-3-Clause
"""lib.py - what the drivers of this folder share: start a job, wait with a limit, see that nothing is left.

Limits tell a hang from an end: two minutes, for the machine may be busy with others.

Environment: BUILD is the build tree.  Exit 0 passed, 1 failed, 77 skipped.
"""

import concurrent.futures
import glob
import itertools
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

BUILD = os.environ.get("BUILD") or sys.exit("BUILD is not set: run this by ctest")
BIN = os.path.join(BUILD, "bin")
MPIEXEC = os.path.join(BIN, "mpiexec")
PROGRAMS = os.path.join(BUILD, "test", "fault")
FABRICS = ("self,shm", "tcp,self")

failures = []
scratch = tempfile.mkdtemp(prefix="weft-fault-")
mark = "%d-%s" % (os.getpid(), os.path.basename(scratch))
begun = itertools.count(1)


def program(name):
    return os.path.join(PROGRAMS, "fault_" + name)


def fail(what, text=""):
    failures.append(what)
    print("FAILED: %s" % what, file=sys.stderr)
    lines = text.splitlines()
    for line in lines if len(lines) <= 16 else lines[:8] + ["..."] + lines[-8:]: # the cause is said last
        print("    " + line, file=sys.stderr)
    sys.stderr.flush()


def skip(why):
    print("skipped: %s" % why, file=sys.stderr)
    shutil.rmtree(scratch, ignore_errors=True)
    sys.exit(77)


def environment(extra=None):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("WEFT_", "PMI"))}
    env["FAULT_MARK"] = mark
    env["LC_ALL"] = "C"
    env.update(extra or {})
    return env


def marked(of=mark):
    """Processes that carry our mark, or that of one job; zombies hold nothing."""
    found = []
    want = ("FAULT_MARK=" + of).encode()
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            with open("/proc/%s/environ" % name, "rb") as f:
                if not any(x == want or x.startswith(want + b"/") for x in f.read().split(b"\0")):
                    continue
            with open("/proc/%s/stat" % name) as f:
                if f.read().rsplit(")", 1)[1].split()[0] == "Z":
                    continue
        except OSError:
            continue
        found.append(int(name))
    return found


def command_of(pid):
    try:
        with open("/proc/%d/comm" % pid) as f:
            return f.read().strip()
    except OSError:
        return ""


def litter():
    """Names that a job could leave behind."""
    return set(os.listdir("/dev/shm")) | set(glob.glob("/tmp/*weft*")) if os.path.isdir("/dev/shm") else set()


def left_behind(before):
    """Of ours; folders with an end made up by chance are those of tests and benches beside us."""
    return [x for x in litter() - before if "weft" in x and not re.fullmatch(r"/tmp/weft-[a-z-]+-\w{6,8}", x)]


class Result:
    def __init__(self, rc, out, err, seconds):
        self.rc, self.out, self.err, self.seconds = rc, out, err, seconds
        self.lines = [x for x in err.splitlines() if x.strip()]

    def text(self):
        return "rc %s after %.1f s\n%s%s" % (self.rc, self.seconds, self.out[-1500:], self.err[-3000:])


def stacks():
    """For a hang: where each process is."""
    if not shutil.which("gdb"):
        return
    for pid in marked():
        if command_of(pid).startswith("fault_"):
            subprocess.run(["gdb", "-p", str(pid), "-batch", "-ex", "thread apply all bt 12"],
                           stdin=subprocess.DEVNULL, stdout=sys.stderr, stderr=subprocess.DEVNULL, timeout=60)


class Job:
    """A command that runs beside us; its output goes to files, so nothing blocks on us."""

    def __init__(self, command, env=None, prepare=None):
        self.began = time.monotonic()
        self.mark = "%s/%d" % (mark, next(begun))
        self.out = tempfile.TemporaryFile("w+", dir=scratch, errors="replace")
        self.err = tempfile.TemporaryFile("w+", dir=scratch, errors="replace")
        self.command = command
        self.process = subprocess.Popen(command, env=dict(environment(env), FAULT_MARK=self.mark), stdin=subprocess.DEVNULL, stdout=self.out,
                                        stderr=self.err, preexec_fn=prepare)

    def launchers(self):
        """mpiexec and its keeper."""
        return [p for p in marked(self.mark) if command_of(p) in ("mpiexec", "weft-keeper")]

    def wait(self, limit=120):
        try:
            rc = self.process.wait(limit)
        except subprocess.TimeoutExpired:
            stacks()
            for pid in marked(self.mark):
                try:
                    os.kill(pid, signal.SIGKILL)
                except OSError:
                    pass
            self.process.wait()
            rc = "HANG"
        seconds = time.monotonic() - self.began
        texts = []
        for f in (self.out, self.err):
            f.seek(0)
            texts.append(f.read())
            f.close()
        return Result(rc, texts[0], texts[1], seconds)


def run(command, env=None, limit=120, prepare=None):
    return Job(command, env, prepare).wait(limit)


def beside(calls, at_once=4):
    """Calls of (function, arguments...), some at once: most of a bad day is waiting."""
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        for done in [pool.submit(*call) for call in calls]:
            done.result()


def ranks(n, name, *args):
    return [MPIEXEC, "-n", str(n), program(name)] + [str(a) for a in args]


def wait_for(path, limit=120):
    end = time.monotonic() + limit
    while not os.path.exists(path):
        if time.monotonic() > end:
            return False
        time.sleep(0.005)
    return True


def nobody_left(what, of=mark, limit=60):
    end = time.monotonic() + limit
    while marked(of):
        if time.monotonic() > end:
            fail("%s: processes are left" % what, "\n".join("%d %s" % (p, command_of(p)) for p in marked(of)))
            for pid in marked(of):
                os.kill(pid, signal.SIGKILL)
            return
        time.sleep(0.02)


def expect(what, result, rc=None, lines=None, has=None):
    """rc: a code or a tuple of them.  lines: at most so many on stderr.  has: all of these are on stderr."""
    if rc is not None and result.rc not in (rc if isinstance(rc, tuple) else (rc,)):
        fail("%s: exit code %s, want %s" % (what, result.rc, rc), result.text())
        return False
    if lines is not None and not 1 <= len(result.lines) <= lines:
        fail("%s: %d lines on stderr, want 1 to %d" % (what, len(result.lines), lines), result.text())
        return False
    for text in [has] if isinstance(has, str) else has or []:
        if text not in result.err:
            fail("%s: stderr lacks '%s'" % (what, text), result.text())
            return False
    return True


def finish():
    nobody_left("at the end")
    shutil.rmtree(scratch, ignore_errors=True)
    if failures:
        print("%d failed" % len(failures), file=sys.stderr)
    sys.exit(1 if failures else 0)
