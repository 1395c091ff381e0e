# SPDX-License-Identifier: BSD-3-Clause
"""Files of a trace (src/base/trace_ring.h): read, checked, put in order, on one clock."""

import errno
import os
import struct

MAGIC = 0x3165636172746677
VERSION = 1
NOBODY = 0xffffffff
HEAD = struct.Struct("<QIIIIIIQQiiiIQQQQQIIQ64s40s64s")
KINDS, KIND_BYTES = 64, 16
RECORDS_MAX = 1 << 24
RINGS_MAX = 4096
PIECE = 1 << 15  # records that are read at once


class Bad(Exception):
    """A file that is none, with the reason."""


def text_of(raw):
    return raw.split(b"\0", 1)[0].decode("utf-8", "replace")


class Ring:
    """A kernel thread's records, oldest first: (time, kind, small, id, a, b)."""

    def __init__(self, records, lost, tid, name):
        self.records, self.lost = records, lost
        self.tid, self.name = tid, name  # of the last of its threads


class File:
    def __init__(self, path):
        self.path = path
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError as e:
            raise Bad(f"{path}: {e.strerror}") from None
        try:
            self.read(fd)
        except OSError as e:
            raise Bad(f"{path}: {e.strerror}") from None
        finally:
            os.close(fd)

    def bad(self, why):
        return Bad(f"{self.path}: {why}")

    def read(self, fd):
        size = os.fstat(fd).st_size
        raw = os.pread(fd, HEAD.size + KINDS * KIND_BYTES, 0)
        if len(raw) < 8 or struct.unpack_from("<Q", raw)[0] != MAGIC:
            raise self.bad("is no trace")
        if len(raw) < HEAD.size + KINDS * KIND_BYTES:
            raise self.bad("is cut off in its head")
        (_, version, head_bytes, texts, text_bytes, records, record_bytes, ring_bytes, rings_at, self.pid,
         self.rank, self.size, clock, c0, n0, c1, n1, self.real_ns, rings, made, self.lost, host, boot,
         program) = HEAD.unpack_from(raw)
        if version != VERSION:
            raise self.bad(f"is of version {version}, this program knows {VERSION}")
        if (record_bytes != 32 or not 0 < records <= RECORDS_MAX or ring_bytes < 4096 + records * 32 or
                not 8 <= text_bytes <= 4096 or not 0 < texts <= 65536 or head_bytes < HEAD.size or
                rings_at < head_bytes + texts * text_bytes or rings > RINGS_MAX or ring_bytes > 1 << 32):
            raise self.bad("makes no sense")
        self.host, self.boot, self.program = text_of(host), text_of(boot), text_of(program)
        self.by_cycles = clock == 1
        self.ended = n1 != 0
        self.pairs = [(c0, n0)] + ([(c1, n1)] if n1 else [])
        self.kinds = [text_of(raw[HEAD.size + i * KIND_BYTES:HEAD.size + (i + 1) * KIND_BYTES])
                      for i in range(KINDS)]
        raw = os.pread(fd, texts * text_bytes, head_bytes)
        self.texts = [text_of(raw[i * text_bytes:(i + 1) * text_bytes]) for i in range(min(made + 1, texts))]
        self.rings = []
        self.cut = False
        for i in range(rings):
            at = rings_at + i * ring_bytes
            if at + ring_bytes > size:
                self.cut = True
                break
            self.rings.append(self.read_ring(fd, at, records))
        self.find_pairs()

    def read_ring(self, fd, at, records):
        """The rule is that of weft_trace_ring_copy: what may have been overwritten meanwhile is dropped."""
        end = struct.unpack("<Q", os.pread(fd, 8, at))[0]
        if end >= 1 << 60:
            raise self.bad("has a ring that makes no sense")
        first = max(0, end - records)
        parts = [(first, end)]
        if first // records != (end - 1) // records:  # round the ring's end
            parts = [(first, end // records * records), (end // records * records, end)]
        words = [w for a, b in parts for w in self.read_records(fd, at + 4096, a, b, records)]
        now = struct.unpack("<Q", os.pread(fd, 8, at))[0]
        if now < end:
            raise self.bad("has a ring that makes no sense")
        if now != end or not self.ended:
            first = min(end, max(first, now - records + 1))
        out = []
        for number, (time, what, a, b) in words:
            kind = what & 0xffff
            if number >= first and 0 < kind < KINDS:
                out.append((time, self.kinds[kind], what >> 16 & 0xffff, what >> 32, a, b))
        tid, name = struct.unpack("<Q16s", os.pread(fd, 24, at + 8))
        return Ring(out, first, tid, text_of(name))

    def read_records(self, fd, at, first, end, records):
        """Those from `first` to before `end`, which follow each other in the ring, with their numbers; where the file
        has no data there are none, however long it says that it is."""
        while first < end:  # ends: it grows
            place = at + first % records * 32
            try:
                data = os.lseek(fd, place, os.SEEK_DATA)
            except OSError as e:
                if e.errno == errno.ENXIO:  # no more in the file
                    return
                data = place
            first += (data - place) // 32
            n = min(end - first, PIECE)
            if n <= 0:
                return
            raw = os.pread(fd, n * 32, at + first % records * 32)
            yield from zip(range(first, end), struct.iter_unpack("<QQQQ", raw[:len(raw) // 32 * 32]))
            if len(raw) < n * 32:
                raise self.bad("has a ring that makes no sense")
            first += n

    def find_pairs(self):
        for ring in self.rings:
            self.pairs += [(r[0], r[4]) for r in ring.records if r[1] == "sync"]
        self.pairs = [p for p in self.pairs if p[0] and p[1]]

    def text(self, number):
        return self.texts[number] if 0 < number < len(self.texts) else ""


def clock_of(files):
    """From times of records to ns, for files of one host: by the first and the last moment of all."""
    pairs = sorted(p for f in files for p in f.pairs)
    if not all(f.by_cycles for f in files) or not pairs:
        return lambda t: t
    (c0, n0), (c1, n1) = pairs[0], pairs[-1]
    rate = (n1 - n0) / (c1 - c0) if c1 > c0 and n1 > n0 else 1.0
    return lambda t: n0 + round((t - c0) * rate)


def of_process(pid):
    """The files that a process writes: mapped to be written, and traces by their first word."""
    found = []
    try:
        with open(f"/proc/{pid}/maps", encoding="utf-8", errors="surrogateescape") as maps:
            for line in maps:
                part = line.rstrip("\n").split(None, 5)
                if len(part) == 6 and part[1] == "rw-s" and part[5][0] == "/" and part[5] not in found:
                    found.append(part[5])
    except FileNotFoundError:
        raise Bad(f"process {pid} is not there") from None
    except PermissionError:
        raise Bad(f"process {pid} belongs to somebody else") from None
    found = [p for p in found if is_trace(p)]
    if not found:
        raise Bad(f"process {pid} writes no trace: WEFT_TRACE=FILE has to be set when it starts")
    return found


def is_trace(path):
    try:
        if not os.path.isfile(path):
            return False
        with open(path, "rb") as f:
            return f.read(8) == struct.pack("<Q", MAGIC)
    except OSError:
        return False


def paths_of(words):
    """Files as they are named, those in folders, those of processes."""
    out = []
    for word in words:
        if os.path.isdir(word):
            inside = [os.path.join(word, n) for n in sorted(os.listdir(word))]
            inside = [p for p in inside if is_trace(p)]
            if not inside:
                raise Bad(f"{word}: no trace in this folder")
            out += inside
        elif word.isdigit() and not os.path.exists(word):
            out += of_process(int(word))
        else:
            out.append(word)
    return list(dict.fromkeys(out))
