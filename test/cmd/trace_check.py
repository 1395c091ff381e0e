# SPDX-License-Identifier: BSD-3-Clause
"""The checks of test_trace.sh: trace_check.py BUILD FOLDER."""

import collections
import contextlib
import io
import json
import os
import struct
import subprocess
import sys
import xml.etree.ElementTree

BUILD, WORK = sys.argv[1:3]
WEFT = os.path.join(BUILD, "bin", "weft")
MPIEXEC = os.path.join(BUILD, "bin", "mpiexec")
PROGRAM = os.path.join(BUILD, "test", "mpi", "mpi_ult_trace")
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(BUILD, "libexec", "weft"))

import trace  # noqa: E402
from trace_life import Trace  # noqa: E402
from trace_read import File  # noqa: E402


def fail(why):
    print(f"FAILED: {why}", file=sys.stderr)
    sys.exit(1)


def weft(*words, rc=0):
    """What `weft trace` does, within this process: starting python takes longer than the rest."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            got = trace.main(list(words))
        except SystemExit as e:
            got = e.code
    if got != rc:
        fail(f"exit code {got} instead of {rc} of {words}: {err.getvalue()}")
    if rc == 1 and err.getvalue().count("\n") != 1:
        fail(f"not one line about {words}: {err.getvalue()}")
    return out.getvalue() + err.getvalue()


def command():
    """The command itself: found, its words passed on, its exit code passed back."""
    got = subprocess.run([WEFT, "trace", "/dev/null"], capture_output=True, text=True, timeout=120)
    if got.returncode != 1 or got.stderr != "weft: /dev/null: is no trace\n":
        fail(f"weft trace /dev/null: {got.returncode} {got.stderr}")
    got = subprocess.run([WEFT, "trace"], capture_output=True, text=True, timeout=120)
    if got.returncode != 2 or got.stderr.count("\n") != 1:
        fail(f"weft trace: {got.returncode} {got.stderr}")


def lives_are_whole(process):
    """Made, run, blocked, woken, ended, in an order that makes sense."""
    whole = 0
    after = {"ready": {"run"}, "run": {"ready", "wait", "call"}, "wait": {"ready"}, "call": {"ready"}}
    for life in process.lives:
        if life.created is None or life.ended is None:
            fail(f"{life.label()} was not seen from its beginning to its end")
        states = [p[0] for p in life.parts]
        if states[0] != "ready" or states[-1] != "run":
            fail(f"{life.label()} begins {states[0]} and ends {states[-1]}")
        for a, b in zip(states, states[1:]):
            if b not in after[a]:
                fail(f"{life.label()} goes from {a} to {b}")
        for p in life.parts:
            if p[2] < p[1] or (p[0] == "wait" and (not p[4] or p[6] is None)):
                fail(f"{life.label()} has a part {p}")
        whole += 1
    return whole


def messages_are_matched(job):
    """Each send has its receive, later and of the same size; those that are fetched have an end."""
    kinds = set()
    for m in job.messages:
        if m.sent is None or m.arrived is None or m.arrived < m.sent:
            fail(f"a message {m.source} -> {m.target}, tag {m.tag}: sent {m.sent}, arrived {m.arrived}")
        if m.how == "rendezvous" and m.bytes and (m.over is None or m.over < m.arrived):
            fail(f"a message {m.source} -> {m.target}, tag {m.tag} was not fetched: {m.over}")
        kinds.add(m.how)
    large = sum(m.bytes == 100000 for m in job.messages)
    if large != 20 or sum(m.bytes == 4 for m in job.messages) < 980 or not {"eager", "rendezvous"} <= kinds:
        fail(f"{len(job.messages)} messages, {large} of them large, of kinds {kinds}")


def ranks():
    folder = os.path.join(WORK, "job")
    os.mkdir(folder)
    env = dict(os.environ, WEFT_TRACE=folder)
    subprocess.run([MPIEXEC, "-n", "2", "--timeout", "200", PROGRAM], env=env, check=True, timeout=240)
    names = sorted(os.listdir(folder))
    if names != ["weft-0.trace", "weft-1.trace"]:
        fail(f"files {names}")
    files = [File(os.path.join(folder, n)) for n in names]
    job = Trace(files)
    if not any(v.name == '"odd\\ \ufffd\n<n>' for v in job.processes[0].lives):
        fail("a thread's name is not what it was given")
    if job.lost() or not all(f.ended for f in files):
        fail("events are lost, or the files do not say that their processes ended")
    for process in job.processes:
        if lives_are_whole(process) < 1000:
            fail("too few threads")
    messages_are_matched(job)
    said = weft(folder)
    if "rank 1: mpi_ult_trace" not in said or "waits of user-level threads" not in said:
        fail(f"a summary without what it should have:\n{said[:2000]}")
    return files[0].path


def two_hosts(folder):
    """As if rank 1 were on another host, whose clock is wrong by 5 ms: messages put it right."""
    other = os.path.join(WORK, "other")
    with open(os.path.join(folder, "weft-1.trace"), "rb") as f:
        raw = bytearray(f.read())
    real, host = struct.calcsize("<QIIIIIIQQiiiIQQQQ"), struct.calcsize("<QIIIIIIQQiiiIQQQQQIIQ")
    raw[real:real + 8] = struct.pack("<Q", struct.unpack_from("<Q", raw, real)[0] + 5000000)
    raw[host:host + 6] = b"other\0"
    with open(other, "wb") as f:
        f.write(raw)
    job = Trace([File(os.path.join(folder, "weft-0.trace")), File(other)])
    if job.hosts != 2:
        fail("another host is not seen")
    messages_are_matched(job)


def timelines(folder):
    """JSON that is JSON, with an arrow per message and names as they were given; a picture that is XML."""
    made, picture = os.path.join(WORK, "o.json"), os.path.join(WORK, "o.svg")
    weft(folder, "-o", made, "--svg", picture, "--from", "1us", "--to", "900ms")
    with open(made, encoding="utf-8") as f:
        events = json.load(f)["traceEvents"]
    phases = collections.Counter(e["ph"] for e in events)
    if phases["s"] < 1000 or phases["s"] != phases["f"]:
        fail(f"arrows in the timeline: {phases}")
    if not any(e["name"].endswith('"odd\\ \ufffd\n<n>') for e in events):
        fail("a name did not come through the timeline")
    open_pieces = collections.defaultdict(list)
    for e in sorted((e for e in events if e["ph"] == "X"), key=lambda e: (e["ts"], -e["dur"])):
        stack = open_pieces[e["pid"], e["tid"]]
        while stack and stack[-1] <= e["ts"] + 1e-6:
            stack.pop()
        if stack and e["ts"] + e["dur"] > stack[-1] + 0.0005:
            fail(f"a piece of a track reaches out of the one around it: {e}")
        stack.append(e["ts"] + e["dur"])
    rows = xml.etree.ElementTree.parse(picture).getroot()
    if len(rows.findall("{*}rect")) < 50 or len(rows.findall("{*}path")) < 100:
        fail("a picture without rows or lines")
    weft(folder, "-o", "/dev/full", rc=1)
    weft(folder, "--svg", os.path.join(WORK, "no folder", "x.svg"), rc=1)
    weft(folder, "--from", "soon", rc=2)


def bad_files(good):
    raw = open(good, "rb").read()
    cases = {"empty": b"", "short": raw[:7], "head": raw[:300], "letter": b"dear sir or madam, " * 300,
             "version": raw[:8] + struct.pack("<I", 99) + raw[12:8192],
             "records": raw[:24] + struct.pack("<I", 0) + raw[28:8192]}
    for name, data in cases.items():
        path = os.path.join(WORK, name)
        with open(path, "wb") as f:
            f.write(data)
        if name not in weft(path, rc=1):
            fail(f"{name}: its line does not name the file")
    weft(os.path.join(WORK, "nothing there"), rc=1)
    os.mkdir(os.path.join(WORK, "void"))
    weft(os.path.join(WORK, "void"), rc=1)
    weft("1", rc=1)
    weft("--foo", good, rc=2)
    # Cut off in its rings: what is whole is shown.
    path = os.path.join(WORK, "cut")
    with open(path, "wb") as f:
        f.write(raw[:len(raw) // 2])
    if "cut off" not in weft(path):
        fail("a file that is cut off is not said to be")


def main():
    command()
    good = ranks()
    timelines(os.path.dirname(good))
    two_hosts(os.path.dirname(good))
    bad_files(good)


main()
