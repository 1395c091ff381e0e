#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""weft bench - asks one question of weft and, beside it, of other MPIs.

Each bench is one C program in share/weft/bench, compiled for each MPI and run several times; the
runs of all MPIs are interleaved, so that whatever the machine does meanwhile hits all of them.
A program prints rows "case,metric,unit,value", or with what it measured in front "impl,case,..."; minimum, median and maximum over the runs are made
here.  Progress goes to stderr, the table to stdout.
"""

import argparse
import csv
import functools
import hashlib
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True  # the folder may be the system's
from bench_nas import main as nas
from bench_page import page
from bench_papers import benches_of, figures_of
from bench_places import Places, alone
from bench_rails import main as rails
from bench_run import run_command
from bench_svg import below_each_other, charts, number, title_of
from bench_table import BENCHES, LINKS, PEERS

HERE = os.path.dirname(os.path.realpath(__file__))
PREFIX = os.path.dirname(os.path.dirname(HERE))
BIN = os.path.join(PREFIX, "bin")
COLUMNS = "bench,impl,link,case,metric,unit,min,median,max,n".split(",")
IN_PARTS = COLUMNS + ["part"]  # the papers' CSV, which may be measured part by part
WHOLE = "all"

class Parser(argparse.ArgumentParser):
    """A wrong argument is answered in one line."""

    def error(self, message):
        self.exit(2, "%s: %s; --help tells more\n" % (self.prog, message))



def say(text):
    print(text, file=sys.stderr, flush=True)


def die(text, code=2):
    say("weft bench: " + text)
    sys.exit(code)


# ---- programs ---------------------------------------------------------------------------------


class Programs:
    """Compiles what is asked for; keeps it in the user's cache, keyed by sources and compiler."""

    def __init__(self):
        self.sources = os.path.join(PREFIX, "share", "weft", "bench")
        if not os.path.isdir(os.path.join(self.sources, "lib")):
            die("no bench sources in " + self.sources + "; is weft installed completely?", 1)
        digest = hashlib.sha256()
        examples = os.path.join(self.sources, "..", "examples", "ult")
        for folder, folders, files in (*os.walk(self.sources, followlinks=True), *os.walk(examples)):
            folders.sort()
            for name in sorted(n for n in files if n.endswith((".c", ".h"))):
                with open(os.path.join(folder, name), "rb") as f:
                    digest.update(name.encode() + b"\0" + f.read())
        self.digest = digest
        cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        self.scratch = None
        self.folder = os.path.join(cache, "weft-bench")
        try:
            os.makedirs(self.folder, exist_ok=True)
            if not os.access(self.folder, os.W_OK):
                raise OSError
        except OSError:
            self.scratch = tempfile.TemporaryDirectory(prefix="weft-bench-")
            self.folder = self.scratch.name

    def get(self, source, compiler, flags=()):
        """Path of the program made from source by compiler."""
        path = shutil.which(compiler)
        digest = self.digest.copy()
        stat = os.stat(path)
        digest.update(f"{os.path.realpath(path)} {stat.st_mtime_ns}".encode())
        # weft's own header and library change without its wrapper changing.
        digest.update(" ".join((PREFIX, *flags)).encode())
        name = os.path.basename(source)
        out = os.path.join(self.folder, f"{name}-{digest.hexdigest()[:16]}")
        if not os.path.exists(out):
            temp = f"{out}.{os.getpid()}"
            done = subprocess.run(
                [path, "-O2", "-w", "-pthread", "-I" + os.path.join(self.sources, "lib"), "-o", temp,
                 os.path.join(self.sources, source + ".c"), "-lm", *flags],
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            if done.returncode:
                die(f"{compiler} does not compile {source}.c:\n{done.stdout.rstrip()}", 1)
            os.rename(temp, out)
        return out


# ---- how each MPI is started ------------------------------------------------------------------

TWO_HOSTS = os.path.join(HERE, "two-hosts")


@functools.lru_cache(maxsize=None)
def version_of(mpiexec):
    """What a launcher says of itself."""
    return subprocess.run([mpiexec, "--version"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False).stdout


def start_weft(mpiexec, program, args, ranks, link, off=False):
    env = {"WEFT_DRIVERS": "shm,self" if link == "shm" else "tcp,self"}
    if off:
        env["WEFT_PROGRESS"] = "off"
    if link != "1g":
        return [mpiexec, "-n", str(ranks), program, *args], env
    command = [mpiexec]
    half = ranks // 2
    for host in ("a", "b"):
        command += ["-n", str(half), "ip", "netns", "exec", host, program, *args, ":"]
    return command[:-1], env


def on_host_a(command):
    """A launcher that shall run on host a, under that name."""
    return ["ip", "netns", "exec", "a", "unshare", "-u", "sh", "-c", 'hostname a; exec "$@"', "sh",
            *command]


def start_mpich(mpiexec, program, args, ranks, link):
    if link == "shm":
        return [mpiexec, "-n", str(ranks), program, *args], {}
    # Made with ucx or with libfabric: each reads its own.
    env = {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "lo", "FI_PROVIDER": "tcp", "MPIR_CVAR_NOLOCAL": "1"}
    if link == "tcp":
        return [mpiexec, "-n", str(ranks), program, *args], env
    env["UCX_NET_DEVICES"] = "veth0"
    return on_host_a([mpiexec, "-launcher", "ssh", "-launcher-exec", TWO_HOSTS + "-agent",
                      "-hosts", f"a:{ranks // 2},b:{ranks // 2}", "-iface", "veth0", "-n",
                      str(ranks), program, *args]), env


def start_openmpi(mpiexec, program, args, ranks, link, tuned=None):
    env = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    options = ["--bind-to", "none", "--oversubscribe", "--mca", "pml", "ob1", "--mca", "btl",
               "vader,self" if link == "shm" else "tcp,self"]
    if tuned:
        options += ["--mca", *tuned]
    if link == "tcp":
        options += ["--mca", "btl_tcp_if_include", "lo"]
    if link == "1g":
        agent = TWO_HOSTS + "-agent"
        if "OpenRTE" in version_of(mpiexec):
            options += ["--mca", "plm", "rsh", "--mca", "plm_rsh_agent", agent, "--mca", "oob_tcp_if_include", "veth0"]
        else:  # from release 5 on PRRTE starts the ranks
            options += ["--prtemca", "plm", "ssh", "--prtemca", "plm_ssh_agent", agent,
                        "--prtemca", "prte_if_include", "veth0"]
        options += ["--host", f"a:{ranks // 2},b:{ranks // 2}", "--mca", "btl_tcp_if_include", "veth0"]
    command = [mpiexec, *options, "-n", str(ranks), program, *args]
    return (on_host_a(command) if link == "1g" else command), env


def start_other(mpiexec, program, args, ranks, link):
    return [mpiexec, "-n", str(ranks), program, *args], {}


def start_limit(program, args, link):
    if link != "1g":
        return [program, *args], {}
    quick = [a for a in args if a.startswith("--")]
    words = " ".join(a for a in args if not a.startswith("--"))
    tail = " ".join(quick)
    return ["sh", "-c",
            f"ip netns exec a {program} {words} listen 10.99.0.1 {tail} & "
            f"ip netns exec b {program} {words} connect 10.99.0.1 {tail} && wait"], {}


def argobots():
    """Its flags by pkg-config; None where it is not installed."""
    if not shutil.which("pkg-config"):
        return None
    done = subprocess.run(["pkg-config", "--cflags", "--libs", "argobots"], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True, check=False)
    flags = done.stdout.split()
    return flags + ["-Wl,-rpath," + f[2:] for f in flags if f.startswith("-L")] if done.returncode == 0 else None


class Mpi:
    """An MPI: its compiler and its launcher, and the launcher's kind, which says how it is told a link."""

    START = {"weft": start_weft, "mpich": start_mpich, "openmpi": start_openmpi, "other": start_other}
    SAYS = (("weft mpiexec", "weft"), ("HYDRA", "mpich"), ("Open MPI", "openmpi"), ("OpenRTE", "openmpi"),
            ("PRRTE", "openmpi"))

    def __init__(self, kind, compiler, mpiexec, packages="", tuned=False):
        self.kind, self.compiler, self.mpiexec, self.packages, self.tuned = kind, compiler, mpiexec, packages, tuned

    @classmethod
    def at(cls, name, prefix):
        """The MPI that is installed at prefix."""
        compiler, mpiexec = (os.path.join(os.path.abspath(prefix), "bin", command) for command in ("mpicc", "mpiexec"))
        for path in (compiler, mpiexec):
            if not os.access(path, os.X_OK):
                die(f"--against {name}={prefix}: no {path}")
        return cls(next((kind for word, kind in cls.SAYS if word in version_of(mpiexec)), "other"), compiler, mpiexec)

    def start(self, *args, **more):
        return self.START[self.kind](self.mpiexec, *args, **more)


OPENMPI = ("openmpi", "mpicc.openmpi", "mpirun.openmpi", "openmpi-bin libopenmpi-dev")
MPIS = {"weft": Mpi("weft", os.path.join(BIN, "mpicc"), os.path.join(BIN, "mpiexec")),
        "mpich": Mpi("mpich", "mpicc.mpich", "mpirun.mpich", "mpich libmpich-dev"),
        "openmpi": Mpi(*OPENMPI), "openmpi-tuned": Mpi(*OPENMPI, tuned=True)}


class Row:
    """One series of runs: an implementation in one mode."""

    def __init__(self, impl, bench, options, programs, off=False, label=None, more=(), flags=()):
        self.impl, self.off, self.failed = impl, off, set()
        self.label, self.more = label or impl, list(more)
        self.bench, self.options = bench, options
        source = {"limit": "p2p/limit", "argobots": bench.argobots}.get(impl, bench.source)
        # An example is a program for each part, named by the part's first word.
        names = {part[0] for part in bench.parts} if bench.examples else {""}
        self.mpi = MPIS.get(impl)
        self.programs = {n: programs.get(source + n, self.mpi.compiler if self.mpi else "cc", flags) for n in names}

    @property
    def name(self):
        return self.label + (" progress off" if self.off else "")

    def command(self, part, ranks):
        o = self.options
        if self.bench.examples:
            return self.mpi.start(self.programs[part[0]], [*part[1:], *self.more, "--rows"], ranks, o.link)
        args = list(part) + self.more + (["--quick"] if o.quick else [])
        if self.impl == "limit":
            args = self.bench.limit[o.link] + (["--quick"] if o.quick else [])
            return start_limit(self.programs[""], args, o.link)
        if self.bench.alone:
            return [self.programs[""], *args], {}
        if self.bench.starts:
            command, env = self.mpi.start(self.programs[""], ["rank"], ranks, o.link)
            return [self.programs[""], *args, "--", *command], env
        more = {"off": True} if self.off else {"tuned": self.bench.tuned[o.link]} if self.mpi.tuned else {}
        return self.mpi.start(self.programs[""], args, ranks, o.link, **more)


def run_once(row, part, ranks, patience):
    """Rows that one run printed, and what went wrong with it (or None)."""
    printed, said, wrong = run_command(*row.command(part, ranks), patience)
    results = []
    for line in printed:
        fields = line.strip().split(",")
        impl = fields.pop(0) if len(fields) == 5 and row.bench.names_rows else row.label
        if len(fields) > 4:
            wrong = wrong or "exit: a comma in " + line.strip()
        if len(fields) == 4 and re.fullmatch(r"-?[0-9.]+(e[-+]?[0-9]+)?", fields[3]):
            results.append((impl, *fields[:3], float(fields[3])))
    if not wrong and not results:
        wrong = "printed no result"
    if wrong and not wrong.startswith("no answer"):
        wrong += ": " + said
    return results, wrong


def parts_of(bench, quick):
    return bench.quick_parts if quick else bench.parts


def many_ranks(ranks, options):
    return f"{ranks} ranks" if len(options.ranks) > 1 else ""


def part_name(many, part):
    """As progress and --part name it: 16 ranks allreduce."""
    return " ".join(word for word in (many, *part) if word)


def chosen_parts(bench, options):
    """[(ranks, part)]: all of them, or the one that --part names."""
    parts = parts_of(bench, options.quick)
    if options.part is not None:  # one of those that --quick leaves out, too
        parts = (*parts, *(part for part in bench.parts if part not in parts))
    cells = [(ranks, part) for ranks in options.ranks for part in parts]
    if options.part is None:
        return cells
    names = [part_name(many_ranks(ranks, options), part) for ranks, part in cells]
    if options.part not in names:
        die(f"--part '{options.part}': {options.bench} has " + ", ".join(f"'{name}'" for name in names))
    return [cells[names.index(options.part)]]


def patience_with(row, ours, bench):
    """Seconds after which a run is ended.  Peers whose threads spin give no answer in hours where weft takes a
    second: ten times weft's own time, and 30 s at least, is answer enough."""
    if not row.mpi or row.impl == "weft" or ours is None:
        return bench.seconds
    return min(bench.seconds, max(30, 10 * ours))


def run_all(bench, rows, options):
    """Rounds over all rows, interleaved.  Returns [((impl, case, metric, unit), values)]."""
    values, ours = {}, {}
    chosen = chosen_parts(bench, options)
    first = parts_of(bench, options.quick)[0]
    cells = [(ranks, part, row) for ranks, part in chosen for row in rows
             # The limit knows two processes and no parts.
             if row.impl != "limit" or (part == first and ranks == 2)]
    for turn in range(options.runs):
        for ranks, part, row in cells:
            # Peers that gave no answer once would only cost the same time again.
            if (ranks, part) in row.failed:
                continue
            many = many_ranks(ranks, options)
            what = " ".join(word for word in (row.name, many, *part) if word)
            say(f"round {turn + 1} of {options.runs}: {what}")
            begun = time.monotonic()
            results, wrong = run_once(row, part, ranks, patience_with(row, ours.get((ranks, part)), bench))
            if row.name == "weft" and not wrong:
                ours[ranks, part] = time.monotonic() - begun
            if wrong:
                say(f"  {what}: {wrong}")
                row.failed.add((ranks, part))
            for impl, case, metric, unit, value in results:
                if row.off:
                    case += " progress off"
                if many:
                    case = f"{many}: {case}"
                values.setdefault((impl, case, metric, unit), []).append(value)
    return list(values.items())


# ---- output -----------------------------------------------------------------------------------


def write_csv(path, name, options, results):
    out = sys.stdout if path == "-" else open(path, "w", newline="", encoding="utf-8")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for (impl, case, metric, unit), values in results:
        writer.writerow([name, impl, options.link, case, metric, unit, number(min(values)),
                         number(statistics.median(values)), number(max(values)), len(values)])
    if out is not sys.stdout:
        out.close()


def table(results):
    """{metric: (unit, cases in order, impls in order, {(case, impl): values})}"""
    metrics = {}
    for (impl, case, metric, unit), values in results:
        _, cases, impls, cells = metrics.setdefault(metric, (unit, [], [], {}))
        if case.endswith(" progress off"):
            case, impl = case[:-len(" progress off")], impl + " progress off"
        if case not in cases:
            cases.append(case)
        if impl not in impls:
            impls.append(impl)
        cells[case, impl] = values
    return metrics


def print_table(name, bench, options, results):
    for metric, (unit, cases, impls, cells) in table(results).items():
        print(f"\n{title_of(name, options.link, bench)}: {metric}, {unit} (median of {options.runs})")
        widths = [max(len(impl), 9) for impl in impls]
        first = max(len(case) for case in cases)
        print(" " * first + "".join(f"  {i:>{w}}" for i, w in zip(impls, widths)))
        for case in cases:
            row = []
            for impl, width in zip(impls, widths):
                values = cells.get((case, impl))
                row.append(f"  {number(statistics.median(values)) if values else '-':>{width}}")
            print(f"{case:<{first}}" + "".join(row))


def write_svg(path, name, bench, options, results):
    """A chart for each metric, one below the other."""
    metrics = {metric: (unit, cases, impls, {key: (min(v), statistics.median(v), max(v)) for key, v in cells.items()})
               for metric, (unit, cases, impls, cells) in table(results).items()}
    all_impls = list(dict.fromkeys(impl for _, _, impls, _ in metrics.values() for impl in impls))
    drawn = charts(title_of(name, options.link, bench), bench, metrics, all_impls)
    with open(path, "w", encoding="utf-8") as f:
        f.write(below_each_other([chart for _, mine in drawn for chart in mine]))


# ---- all of them, on one page -----------------------------------------------------------------


def parse_paper(argv):
    parser = Parser(
        prog="weft bench paper", description="Runs every bench and writes one HTML page: each figure of "
        "the papers, what they found, and what was measured here.")
    parser.add_argument("--html", default="weft-paper.html", metavar="FILE", help="(weft-paper.html)")
    parser.add_argument("--csv", metavar="FILE", help="all rows as well; --from reads them again")
    parser.add_argument("--from", dest="given", metavar="FILE,...",
                        help="measure nothing: make the page of these CSVs; later rows replace earlier ones")
    parser.add_argument("--into", metavar="FILE",
                        help="in parts: what is measured now replaces its rows in this CSV, and the page shows all")
    parser.add_argument("--missing", action="store_true", help="with --into: only what is not in it yet")
    parser.add_argument("--seconds", type=float, metavar="S", help="begin no bench later than this")
    parser.add_argument("--only", default="", metavar="BENCH,...",
                        help="these benches, or those of a paper or section: 2016, 4.4 (all)")
    parser.add_argument("--link", default="shm,tcp", metavar="LINK,...",
                        help="of " + ",".join(LINKS) + " (shm,tcp)")
    parser.add_argument("--against", metavar="MPI,...",
                        help="also measure these (those of " + ", ".join(PEERS) + " that are here)")
    parser.add_argument("--runs", type=int, metavar="K", help="how often each is run (5; quick: 3)")
    parser.add_argument("--quick", action="store_true", help="fewer cases, shorter")
    o = parser.parse_args(argv)
    given = [name for name in o.only.split(",") if name] or list(BENCHES)
    papers = {name: [] if name in BENCHES else [b for b in benches_of(name) if b in BENCHES] for name in given}
    o.only = list(dict.fromkeys(b for name in given for b in papers[name] or [name]))
    for name in o.only:
        if name not in BENCHES:
            die(f"--only: no bench '{name}'; there are {', '.join(BENCHES)}")
    o.link = [link for link in o.link.split(",") if link]
    for link in o.link:
        if link not in LINKS:
            die(f"--link: no '{link}'; there are {', '.join(LINKS)}")
    for path in (o.html, o.csv, o.into):
        check_path(path)
    if o.missing and not o.into:
        die("--missing: what is missing where? give --into FILE")
    if o.into and (o.given or o.csv):
        die("--into FILE is read and written; --from and --csv do not go with it")
    if o.against is None:
        o.against = ",".join(name for name in PEERS if shutil.which(MPIS[name].compiler))
    return o


def measure_for_paper(o, name, link, part, folder):
    """Rows of one part of a bench over one link, in a process of its own: what goes wrong there, stays there."""
    path = os.path.join(folder, "rows.csv")
    if os.path.exists(path):
        os.unlink(path)
    what = f"{name} over {link}" + (f", {part}" if part else "")
    asked = BENCHES[name].peers
    peers = [p for p in o.against.split(",") if p in asked or ("=" in p and asked)]
    command = [sys.executable, __file__, name, "--csv", path, "--link", link, "--part", part]
    command += ["--against", ",".join(peers)] if peers else []
    command += ["--quick"] if o.quick else []
    command += ["--runs", str(o.runs)] if o.runs else []
    begun = time.monotonic()
    say(f"== {what}")
    code = subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode
    say(f"== {what}: {time.monotonic() - begun:.0f} s" +
        (f", exit code {code}" if code else ""))
    rows = read_csv(path) if os.path.exists(path) else []
    return [dict(row, part=part) for row in rows], code


def read_csv(path):
    try:
        with open(path, newline="", encoding="utf-8") as f:
            reader = csv.DictReader(f)
            if reader.fieldnames not in (COLUMNS, IN_PARTS):
                die(f"{path}: its columns are not {','.join(COLUMNS)}")
            return list(reader)
    except OSError as e:
        die(f"{path}: {e.strerror}")


def write_rows(path, rows):
    with open(path + ".part", "w", newline="", encoding="utf-8") as f:
        writer = csv.DictWriter(f, IN_PARTS, WHOLE, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    os.replace(path + ".part", path)


def place(row):
    """Where a row was measured."""
    return row["bench"], row["link"], row.get("part", WHOLE)


def replaced(rows, more):
    """rows, without those that more has anew (a bench that was measured whole goes with its first part), and more."""
    fresh = {place(row) for row in more}
    benches = {p[:2] for p in fresh}
    return [row for row in rows if place(row) not in fresh and
            not (place(row)[:2] in benches and (place(row)[2] == WHOLE or (*place(row)[:2], WHOLE) in fresh))] + more


def in_order(rows):
    """As the table of benches has them, whatever was measured first."""
    names, parts = list(BENCHES), {}
    for name in {row["bench"] for row in rows} & set(names):
        bench = BENCHES[name]
        for many in [""] + [f"{ranks} ranks" for ranks in bench.at]:
            for part in bench.parts:
                parts.setdefault((name, part_name(many, part)), len(parts))

    def key(row):
        name, link, part = place(row)
        return (names.index(name) if name in names else len(names), LINKS.index(link) if link in LINKS else 0,
                parts.get((name, part), -1))

    return sorted(rows, key=key)


def parts_for_paper(o, name):
    """The names of what can be measured apart."""
    bench = BENCHES[name]
    at = bench.quick_at if o.quick else bench.at
    return [part_name(f"{ranks} ranks" if len(at) > 1 else "", part) for ranks in at
            for part in parts_of(bench, o.quick)]


def measure_parts(o, rows):
    """What is asked for, as far as the time goes.  All rows, what failed, what is left."""
    began, failed, left = time.monotonic(), [], []
    there = {place(row) for row in rows}
    wanted = [(name, link, part) for name in o.only for link in o.link if link in BENCHES[name].links
              for part in parts_for_paper(o, name)
              if not (o.missing and there & {(name, link, part), (name, link, WHOLE)})]
    with tempfile.TemporaryDirectory(prefix="weft-paper-") as folder:
        for name, link, part in wanted:
            what = f"{name} over {link}" + (f", {part}" if part else "")
            if o.seconds and time.monotonic() - began > o.seconds:
                left.append(what)
                continue
            more, code = measure_for_paper(o, name, link, part, folder)
            rows = in_order(replaced(rows, more))
            if o.into:
                write_rows(o.into, rows)
            if code:
                failed.append(what)
    return rows, failed, left


def paper(argv):
    o = parse_paper(argv)
    rows, failed, left = [], [], []
    for path in (o.given.split(",") if o.given else [o.into] if o.into and os.path.exists(o.into) else []):
        rows = replaced(rows, read_csv(path))
    if not o.given:
        rows, failed, left = measure_parts(o, rows)
    if o.csv:
        write_rows(o.csv, rows)
    with open(o.html, "w", encoding="utf-8") as f:
        f.write(page(rows, BENCHES, " ".join(["weft bench paper", *argv])))
    print(f"{o.html}: {len(rows)} rows of {len({row['bench'] for row in rows})} benches")
    for what in failed:
        say(f"weft bench paper: {what} failed")
    if left:
        say(f"weft bench paper: no time left for {len(left)} parts, the first {left[0]}")
    return 1 if failed or not rows else 0


# ---- the command ------------------------------------------------------------------------------


def parse(argv):
    parser = Parser(
        prog="weft bench", description="Measures weft, and other MPIs beside it in the same run.",
        epilog="`weft bench list` says what each bench asks; `weft bench paper --help`: all on a page.")
    parser.add_argument("bench", metavar="BENCH", help="list, paper, rails, nas, " + ", ".join(BENCHES))
    parser.add_argument("--ranks", metavar="N,...", help="ranks, even numbers (coll: 2,4,8,16; else 2)")
    parser.add_argument("--link", choices=LINKS, default="shm",
                        help="shared memory, tcp on this machine, or two network namespaces joined "
                             "by 1 Gbit/s (shm)")
    parser.add_argument("--against", default="", metavar="MPI,...",
                        help="also measure these: " + ", ".join(PEERS) + ", or NAME=PREFIX: the MPI whose mpicc and mpiexec "
                             "are in PREFIX/bin")
    parser.add_argument("--runs", type=int, metavar="K", help="how often each is run (5; quick: 3)")
    parser.add_argument("--part", metavar="PART", help="one part alone, as progress names it: '16', '8 ranks barrier'")
    parser.add_argument("--ult", action="store_true",
                        help="also with user-level threads (waiters)")
    parser.add_argument("--folders", metavar="NAME=DIR,...", default="",
                        help="io: on these, not on file systems made for it (tmpfs, ext4 on a loop device, FUSE with latency)")
    parser.add_argument("--quick", action="store_true", help="fewer cases, shorter")
    parser.add_argument("--csv", metavar="FILE", help="write " + ",".join(COLUMNS) + "; - is stdout")
    parser.add_argument("--svg", metavar="FILE", help="draw it")
    o = parser.parse_args(argv)
    o.against = [name for name in o.against.split(",") if name]
    if o.runs is None:
        o.runs = 3 if o.quick else 5
    return o


def check_path(path):
    folder = os.path.dirname(path or "") or "."
    if path and path != "-" and (os.path.isdir(path) or not os.access(folder, os.W_OK)):
        die(f"cannot write {path}")


def check_ranks(o, bench):
    """Turns --ranks into a list."""
    if o.ranks is None:
        o.ranks = list(bench.quick_at if o.quick else bench.at)
        return
    if not bench.ranks:
        die(f"--ranks {o.ranks}: {o.bench} has two ranks")
    words = o.ranks.split(",")
    for word in words:
        if not word.isdigit() or int(word) < 2 or int(word) % 2:
            die(f"--ranks {o.ranks}: even numbers of ranks, 2 or more")
    o.ranks = sorted({int(word) for word in words})


def peer(text, o, bench):
    """The name of what --against asks for, which MPIS has from now on."""
    name, is_prefix, prefix = text.partition("=")
    if is_prefix:
        if not re.fullmatch(r"[\w.+-]+", name) or name in MPIS or name in ("limit", "argobots"):
            die(f"--against {text}: choose another name")
        MPIS[name] = Mpi.at(name, prefix)
        if MPIS[name].kind == "other" and o.link != "shm":
            die(f"--against {text}: its mpiexec is none that could be told to use {o.link}")
        asked = MPIS[name].kind if MPIS[name].kind in PEERS else "mpich"
    else:
        asked = name
        if name not in PEERS:
            die(f"--against: no '{name}'; there are {', '.join(PEERS)} and NAME=PREFIX")
        if not shutil.which(MPIS[name].compiler):
            die(f"--against {name}: {MPIS[name].compiler} is not here; install: {MPIS[name].packages}")
    if asked not in bench.peers:
        die(f"--against {name}: {o.bench} cannot be asked of it")
    return name


def check(o):
    if o.bench not in BENCHES:
        die(f"no bench '{o.bench}'; there are list, paper, rails, nas, {', '.join(BENCHES)}")
    bench = BENCHES[o.bench]
    if o.ult and not bench.ult:
        die(f"--ult: {o.bench} cannot be asked of user-level threads")
    o.against = [peer(name, o, bench) for name in o.against]
    if o.link not in bench.links:
        die(f"--link {o.link}: {o.bench} runs over {', '.join(bench.links)}")
    check_ranks(o, bench)
    o.folders = [tuple(item.split("=", 1)) for item in o.folders.split(",") if item]
    if o.folders and not bench.places:
        die(f"--folders: {o.bench} needs none")
    for item in o.folders:
        if len(item) != 2 or not os.path.isdir(item[1]) or not os.access(item[1], os.W_OK):
            die(f"--folders {'='.join(item)}: NAME=DIR, a folder to write to")
    if o.runs < 1:
        die(f"--runs {o.runs}: 1 or more")
    for path in (o.csv, o.svg):
        check_path(path)
    return bench


def main(argv):
    if argv[:1] == ["paper"]:
        return paper(argv[1:])
    if argv[:1] == ["rails"]:
        return rails(argv[1:], Programs, MPIS["weft"].mpiexec, MPIS["weft"].compiler, TWO_HOSTS)
    if argv[:1] == ["nas"]:
        return nas(argv[1:], Parser, MPIS, peer, say, die)
    options = parse(argv)
    if options.bench == "list":
        for name, bench in BENCHES.items():
            print(f"{name:<10} {bench.asks}\n{'':<10} {bench.unit}; over {', '.join(bench.links)}\n"
                  f"{'':<10} papers: {figures_of(name)}")
        print("\nrails: two links to one peer, and a cut; see weft bench rails --help"
              f"\nnas: the NAS Parallel Benchmarks that you have built; papers: {figures_of('nas')}; see weft bench nas --help")
        return 0
    bench = check(options)
    programs = Programs()
    if options.link == "1g" and not os.environ.get("BENCH_HOSTS_ARE_UP"):
        # Everything once more, with the two hosts around it.
        env = dict(os.environ, BENCH_HOSTS_ARE_UP="1")
        return subprocess.run([TWO_HOSTS, "--rate", "1gbit", sys.executable, __file__, *argv],
                              env=env, check=False).returncode

    if not bench.places:
        return measure(bench, options, programs, [])
    if not options.folders:
        alone([sys.executable, __file__, *argv])
    with Places(programs, say, options.folders) as places:
        if not places.folders:
            die("no file system to measure on; give --folders", 1)
        return measure(bench, options, programs, places.arguments())


def measure(bench, options, programs, more):
    """The rows of one bench, with these arguments for each program: the exit code."""
    rows = [Row("weft", bench, options, programs, more=more)]
    if bench.also_off:
        rows.append(Row("weft", bench, options, programs, off=True, more=more))
    also = bench.also + ((("weft, user-level threads", bench.ult),) if options.ult else ())
    rows += [Row("weft", bench, options, programs, label=n, more=a) for n, a in also]
    flags = argobots() if bench.argobots else None
    if flags:
        rows.append(Row("argobots", bench, options, programs, flags=flags))
    elif bench.argobots:
        say("argobots: pkg-config does not know it (PKG_CONFIG_PATH=PREFIX/lib/pkgconfig); left out")
    for name in options.against:
        if name == "openmpi-tuned" and options.link not in bench.tuned:
            say(f"openmpi-tuned: nothing to tune for {options.bench} over {options.link}; left out")
            continue
        rows.append(Row(name, bench, options, programs, more=more))
    if options.link in bench.limit and 2 in options.ranks:
        rows.append(Row("limit", bench, options, programs))

    results = run_all(bench, rows, options)
    if options.csv != "-" and results:
        print_table(options.bench, bench, options, results)
    if options.csv:
        write_csv(options.csv, options.bench, options, results)
    if options.svg and results:
        write_svg(options.svg, options.bench, bench, options, results)
    return 1 if any(row.impl == "weft" and row.failed and not row.label.endswith("pthreads") for row in rows) or not results else 0


def ended(number, _frame):
    """Unwinds, so that what was started ends, too."""
    sys.exit(128 + number)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, ended)
    signal.signal(signal.SIGHUP, ended)
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        sys.exit(1)
    except OSError as e:
        die(f"{e.filename or 'what was measured could not be written'}: {e.strerror}", 1)
