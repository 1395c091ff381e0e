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
SMALL = os.path.join(BUILD, "test", "mpi", "mpi_p2p_persist")
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
    own = sorted((m.source, m.target, m.tag, m.bytes) for m in job.messages if m.how == "self")
    if own != [(r, r, t, n) for r in (0, 1) for t, n in ((7000, 1), (7001, 100000))]:
        fail(f"messages of ranks to themselves: {own}")
    large = sum(m.bytes == 100000 and m.how != "self" for m in job.messages)
    if large != 20 or sum(m.bytes == 4 for m in job.messages) < 980 or not {"eager", "rendezvous"} <= kinds:
        fail(f"{len(job.messages)} messages, {large} of them large, of kinds {kinds}")


def receives_are_posted(job):
    """Each of the program's calls, with what it asked for."""
    for process in job.processes:
        posts = {(peer, tag, size) for _, _, peer, tag, size in process.posts}
        other = 1 - process.rank
        for want in [(other, i, 4 if i % 50 else 100000) for i in range(500)] + [
                (process.rank, 7000, 1), (None, None, 100000)]:
            if want not in posts:
                fail(f"rank {process.rank} has posted no receive for {want}")


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
    receives_are_posted(job)
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


KEYS = {"X": {"pid", "tid", "name", "ts", "dur"}, "M": {"pid", "tid", "name", "args"},
        "s": {"pid", "tid", "name", "ts", "id", "cat"}, "f": {"pid", "tid", "name", "ts", "id", "cat", "bp"},
        "i": {"pid", "tid", "name", "ts", "s"}, "C": {"pid", "name", "ts", "args"}}
MAY = {"X": {"cname", "args"}, "i": {"args"}, "C": {"tid"}}
COLOURS = {"thread_state_running", "thread_state_runnable", "thread_state_sleeping", "thread_state_iowait", "grey",
           "good"}
LABELS = {"process_name": "name", "thread_name": "name", "process_sort_index": "sort_index",
          "thread_sort_index": "sort_index"}


def judge_event(e):
    """One event by the Trace Event Format."""
    ph = e.get("ph")
    if ph not in KEYS or not KEYS[ph] <= set(e) - {"ph"} <= KEYS[ph] | MAY.get(ph, set()):
        return "its phase, or what it has"
    if not isinstance(e["pid"], int) or not 0 <= e.get("tid", 0) < 1 << 32 or not isinstance(e["name"], str):
        return "whose it is"
    for key in {"ts", "dur"} & set(e):
        if not isinstance(e[key], (int, float)) or e[key] < 0:
            return key
    if ph == "M" and (e["name"] not in LABELS or list(e["args"]) != [LABELS[e["name"]]]):
        return "what it labels"
    if ph == "C" and (not e["args"] or not all(isinstance(v, (int, float)) for v in e["args"].values())):
        return "a counter's values"
    if ph == "i" and e["s"] not in ("g", "p", "t") or ph == "f" and e["bp"] != "e":
        return "its scope"
    if e.get("cname", "good") not in COLOURS:
        return "a colour that viewers do not know"
    return None


def judge(events):
    """All of them: tracks have names, flows have two ends in pieces of their tracks, counters only grow."""
    named, pieces, flows, counters = set(), collections.defaultdict(list), {}, {}
    for e in events:
        wrong = judge_event(e)
        if wrong:
            fail(f"{wrong} is wrong in {e}")
        if e["ph"] == "M":
            named.add((e["name"], e["pid"], e["tid"]))
        elif e["ph"] == "X":
            pieces[e["pid"], e["tid"]].append((e["ts"], e["ts"] + e["dur"]))
        elif e["ph"] in "sf":
            if flows.setdefault((e["cat"], e["id"], e["ph"]), e) is not e:
                fail(f"a second end of a flow: {e}")
        elif e["ph"] == "C":
            key = e["pid"], e["name"]
            if counters.get(key, (0, 0)) > (e["ts"], e["args"]["bytes sent"]):
                fail(f"a counter goes back: {e}")
            counters[key] = e["ts"], e["args"]["bytes sent"]
    for pid, tid in pieces:
        if ("thread_name", pid, tid) not in named or ("process_name", pid, 0) not in named:
            fail(f"a track without a name: {pid}, {tid}")
    begins = {key: {t for t, _ in p} for key, p in pieces.items()}
    for (cat, number, ph), e in flows.items():
        if e["ts"] not in begins.get((e["pid"], e["tid"]), ()):
            fail(f"an end of a flow in no piece: {e}")
        other = flows.get((cat, number, "f" if ph == "s" else "s"))
        if not other or (ph == "s" and other["ts"] < e["ts"]):
            fail(f"a flow that goes nowhere, or back: {e}")


def rails():
    """Two rails: both come up, what they carry is counted, and no record says that one broke."""
    folder, made = os.path.join(WORK, "rails"), os.path.join(WORK, "rails.json")
    os.mkdir(folder)
    env = dict(os.environ, WEFT_TRACE=folder, WEFT_RAILS="tcp:127.0.0.1,tcp:127.0.0.1")
    subprocess.run([MPIEXEC, "-n", "2", "--timeout", "200", SMALL], env=env, check=True, timeout=240)
    job = Trace([File(os.path.join(folder, n)) for n in sorted(os.listdir(folder))])
    for process in job.processes:
        if not any(r[1] == "used" and r[5] for r in process.rails):
            fail("rails that carry nothing")
        if not any(r[1] == "is up" for r in process.rails):
            fail("no rail has come up")
    if "rank 0 to 1, rail 0" not in weft(folder, "-o", made, "--summary"):
        fail("a summary without rails")
    with open(made, encoding="utf-8") as f:
        events = json.load(f)["traceEvents"]
    judge(events)
    phases = collections.Counter(e["ph"] for e in events)
    if not phases["C"] or not phases["i"]:
        fail(f"a timeline without rails: {phases}")


def timelines(folder):
    """JSON that is JSON, with an arrow per message and names as they were given; a picture that is XML."""
    made, picture = os.path.join(WORK, "o.json"), os.path.join(WORK, "o.svg")
    weft(folder, "-o", made, "--svg", picture, "--from", "1us", "--to", "900ms")
    with open(made, encoding="utf-8") as f:
        whole = json.load(f)
    if set(whole) != {"traceEvents", "displayTimeUnit"} or whole["displayTimeUnit"] not in ("ms", "ns"):
        fail(f"the timeline's head: {set(whole)}")
    events = whole["traceEvents"]
    judge(events)
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
    rails()
    bad_files(good)


main()
