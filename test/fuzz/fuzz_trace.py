# SPDX-License-Identifier: BSD-3-Clause
"""fuzz_trace.py - files of a trace in which any number may lie, read by `weft trace`.

  fuzz_trace.py CORPUS ROUNDS [SEED]      files of CORPUS as they are, then so many inputs made up
  fuzz_trace.py CORPUS --seconds N [SEED] inputs for so long

Each must give tables, JSON, and a picture, or one line; never a traceback, a character that a terminal obeys, output
that is not what it says it is, or more memory than the file is worth.  An input that fails is kept in FAILED.*.
"""

import contextlib
import gc
import io
import json
import os
import random
import resource
import struct
import sys
import tempfile
import time
import traceback
import xml.etree.ElementTree

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "cmd", "weft"))

import trace  # noqa: E402
import trace_life  # noqa: E402
from trace_read import HEAD, KIND_BYTES, KINDS, MAGIC, VERSION  # noqa: E402

NAMES = ["none", "sync", "thread", "call", "return"] + [n for n in sorted(trace_life.HANDLERS) if n not in ("call", "return")]
TEXTS, TEXT_BYTES, RECORDS = 8, 16, 32
RINGS_AT = HEAD.size + KINDS * KIND_BYTES + TEXTS * TEXT_BYTES
RING_BYTES = 4096 + RECORDS * 32
ODD = [0, 1, 2, 7, 0x7f, 0xff, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff, 1 << 40, (1 << 60) - 1, 1 << 60, 1 << 63, (1 << 64) - 1]


def records(dice, t):
    """Of one thread, as they could have been written: few numbers, so that they meet."""
    out = []
    for _ in range(dice.randrange(RECORDS + 1)):
        t += dice.choice([0, 1, 100, 10000])
        kind = dice.randrange(len(NAMES))
        who = dice.choice([0, 1, 2, 1 << 24, 0xffffffff])
        a = t * 2 if NAMES[kind] == "sync" else dice.choice([0, 1, 2, t, dice.randrange(4) | 5 << 32])
        out.append(struct.pack("<QQQQ", t, kind | dice.randrange(TEXTS) << 16 | who << 32, a, dice.choice([0, 8, 1 << 20])))
    return out


def make(dice):
    """A file that makes sense."""
    rings, ended = dice.randrange(4), dice.randrange(2)
    raw = bytearray(HEAD.pack(MAGIC, VERSION, HEAD.size + KINDS * KIND_BYTES, TEXTS, TEXT_BYTES, RECORDS, 32, RING_BYTES,
                              RINGS_AT, dice.randrange(3), dice.randrange(-1, 3), 3, dice.randrange(2), 1000, 2000,
                              90000 * ended, 180000 * ended, dice.choice([0, 10 ** 18]), rings, TEXTS - 1, 0,
                              dice.choice([b"here", b"there"]), b"boot", b"program"))
    for name in NAMES + [""] * (KINDS - len(NAMES)):
        raw += name.encode().ljust(KIND_BYTES, b"\0")
    for i in range(TEXTS):
        raw += (b"text<%d>\x1b&" % i).ljust(TEXT_BYTES, b"\0")
    for i in range(rings):
        lines = records(dice, 1000)
        end = len(lines) + dice.choice([0, 0, RECORDS])
        raw += struct.pack("<QQ16s", end, i, b"thread \x9b").ljust(4096, b"\0")
        raw += b"".join(lines).ljust(RECORDS * 32, b"\0")
    return raw


def spoil(dice, raw):
    """Some numbers lie, a piece is missing, or comes twice."""
    for _ in range(dice.choice([0, 1, 1, 2, 4, 16])):
        size = dice.choice([1, 2, 4, 8])
        if len(raw) < size:
            break
        # The head and the records more often than the zeros between.
        span = dice.choice([HEAD.size, RINGS_AT + 32, len(raw)])
        at = min(dice.randrange(span), len(raw) - size) // size * size
        value = dice.choice(ODD + [dice.getrandbits(64)])
        raw[at:at + size] = (value & (1 << 8 * size) - 1).to_bytes(size, "little")
    if dice.randrange(8) == 0:
        del raw[dice.randrange(len(raw)):]
    if dice.randrange(16) == 0 and raw:
        at = dice.randrange(len(raw))
        raw[at:at] = raw[at:at + dice.choice([1, 8, 32, 4096])]
    return raw


def fail(what, files, said):
    for path in files:
        with open(path, "rb") as f:
            data = f.read(1 << 24)
        with open("FAILED." + os.path.basename(path), "wb") as f:
            f.write(data)
    print(f"FAILED: {what}: {said}", file=sys.stderr)
    sys.exit(1)


def no_terminal_obeys(text):
    return all(c.isprintable() or c == "\n" for c in text)


def one(files, folder, picture):
    """What `weft trace` does with these files."""
    made, drawn = os.path.join(folder, "o.json"), os.path.join(folder, "o.svg")
    out, err = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            rc = trace.main(files + ["--summary"] + (["-o", made, "--svg", drawn] if picture else []))
    except BaseException:  # whatever it is, it would have been a traceback
        fail("a traceback", files, traceback.format_exc())
    said = err.getvalue()
    if rc not in (0, 1) or (rc == 1) != (said.count("\n") == 1) or not no_terminal_obeys(out.getvalue() + said):
        fail(f"exit code {rc}", files, repr(said) + repr(out.getvalue()[:2000]))
    if rc == 0 and picture:
        with open(made, encoding="utf-8") as f:
            json.load(f)
        xml.etree.ElementTree.parse(drawn)
    return rc == 0


def huge(folder):
    """Four thousand rings of half a GiB in a file that has hardly any data."""
    path = os.path.join(folder, "huge")
    records, rings = 1 << 24, 4096
    raw = make(random.Random(1))
    head = list(HEAD.unpack_from(raw))
    head[5], head[7], head[18] = records, 4096 + records * 32, rings
    with open(path, "wb") as f:
        f.write(HEAD.pack(*head) + raw[HEAD.size:RINGS_AT])
        f.write(struct.pack("<Q", 1 << 40))
        f.truncate(RINGS_AT + rings * head[7])
    if not one([path], folder, False):
        fail("a file with holes is refused", [], "")


def main():
    corpus, rounds = sys.argv[1], sys.argv[2]
    words = sys.argv[3:]
    until = time.monotonic() + int(words.pop(0)) if rounds == "--seconds" else None
    seed = int(words[0]) if words else 20261123
    print("seed", seed)
    resource.setrlimit(resource.RLIMIT_AS, (1 << 29, 1 << 29))
    done = taken = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in sorted(os.listdir(corpus)):
            one([os.path.join(corpus, name)], folder, True)
        huge(folder)
        while time.monotonic() < until if until else done < int(rounds):
            dice = random.Random(seed + done)
            files = [os.path.join(folder, f"{seed + done}.{i}") for i in range(dice.choice([1, 1, 2, 3]))]
            for path in files:
                with open(path, "wb") as f:
                    f.write(spoil(dice, make(dice)))
            taken += one(files, folder, dice.randrange(2))
            for path in files:
                os.unlink(path)
            done += 1
            if done % 256 == 0:
                gc.collect()  # else the cycles of many inputs fill the memory that one may have
    print(f"{done} inputs, {taken} of them shown")
    if done > 100 and taken * 10 < done:
        fail("hardly any input gets through", [], taken)


main()
