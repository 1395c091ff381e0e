# SPDX-License-Identifier: BSD-3-Clause
"""weft bench nas - the NAS Parallel Benchmarks with weft and, beside it, with other MPIs.

They are not weft's: build the MPI version of NPB 3.4 once with each MPI's compilers. --path DIR has a folder for each, DIR/weft,
DIR/mpich, DIR/openmpi, with programs as ep.A.x in it or in its bin/. Every run has to verify its own result.
"""

import csv
import os
import re
import statistics
import sys
import time

from bench_run import run_command
from bench_svg import number
from bench_table import YIELD

KERNELS = ("ep", "is", "cg", "mg", "ft", "lu", "bt", "sp")
SQUARE = ("bt", "sp")  # compute on a square number of ranks
COLUMNS = "bench,impl,link,case,metric,unit,min,median,max,n".split(",")
VERIFIED = re.compile(r"^\s*Verification\s*=\s*SUCCESSFUL\s*$", re.M)
SECONDS = re.compile(r"^\s*Time in seconds\s*=\s*([0-9.]+)\s*$", re.M)
PERIODS_US = (0, 1, 10, 100, 1000, 10000)  # of idle polling, figure 4
AT_MOST_S = 600


class Asked:
    """What --against is checked against."""
    peers = ("mpich", "openmpi", "openmpi-tuned")


class Row:
    """One series of runs: an MPI, and the settings that it gets."""

    def __init__(self, name, mpi, folder, label=None, settings=None):
        self.label, self.mpi, self.folder, self.settings = label or name, mpi, folder, settings or {}
        self.name, self.slow = name, {}

    def command(self, case, ranks, link):
        more = {"tuned": YIELD[link]} if self.mpi.tuned else {}
        command, env = self.mpi.start(os.path.join(self.folder, case + ".x"), [], ranks, link, **more)
        return command, {**env, **self.settings}


def parse(argv, parser_class):
    parser = parser_class(prog="weft bench nas", description=__doc__.split(" - ", 1)[1])
    parser.add_argument("--path", required=True, metavar="DIR", help="what you have built")
    parser.add_argument("--programs", default=",".join(KERNELS), metavar="NAME,...", help="(%(default)s)")
    parser.add_argument("--class", dest="size", default="A", metavar="C", help="of the problems (A)")
    parser.add_argument("--ranks", default="", metavar="N,...", help="(2,8; with --idle: 1,2); bt and sp run where N is a "
                        "square, and with 9 ranks for 8")
    parser.add_argument("--link", choices=("shm", "tcp"), default="shm", help="(shm)")
    parser.add_argument("--against", default="", metavar="MPI,...", help="as for the other benches")
    parser.add_argument("--idle", action="store_true", help="ep alone, while idle threads poll every 0 to 10,000 us")
    parser.add_argument("--runs", type=int, default=3, metavar="K", help="how often each is run (3)")
    parser.add_argument("--csv", metavar="FILE", help="write " + ",".join(COLUMNS))
    o = parser.parse_args(argv)
    o.bench = "nas"
    o.programs = ["ep"] if o.idle else [name for name in o.programs.split(",") if name]
    o.against = [name for name in o.against.split(",") if name]
    try:
        o.ranks = [int(word) for word in (o.ranks or ("1,2" if o.idle else "2,8")).split(",")]
    except ValueError:
        parser.error(f"--ranks {o.ranks}: numbers of ranks")
    for name in o.programs:
        if name not in KERNELS:
            parser.error(f"--programs: no '{name}'; there are {', '.join(KERNELS)}")
    if o.runs < 1 or min(o.ranks) < 1:
        parser.error("--runs and --ranks: 1 or more")
    return o


def folder_of(o, name, die):
    """Where the programs built with an MPI lie."""
    for folder in (os.path.join(o.path, name, "bin"), os.path.join(o.path, name)):
        if any(os.access(os.path.join(folder, f"{program}.{o.size}.x"), os.X_OK) for program in o.programs):
            return folder
    die(f"--path {o.path}: no {o.programs[0]}.{o.size}.x in {name}/bin or {name}/; build it there with that MPI's compilers")
    return None


def cells_of(o, rows, say):
    """[(ranks, case)] that can be run."""
    cells = []
    for ranks in o.ranks:
        for program in o.programs:
            case, many = f"{program}.{o.size}", ranks
            if program in SQUARE:
                many = 9 if ranks == 8 else ranks
                if round(many ** 0.5) ** 2 != many:
                    say(f"{case}: not on {ranks} ranks, which is no square")
                    continue
            missing = [row.name for row in rows if not os.access(os.path.join(row.folder, case + ".x"), os.X_OK)]
            if missing:
                say(f"{case}: not built for {', '.join(dict.fromkeys(missing))}")
                continue
            cells.append((many, case))
    return cells


def run_once(row, case, ranks, link, patience):
    """Seconds of the benchmark's own clock and None, or None and what went wrong."""
    printed, said, wrong = run_command(*row.command(case, ranks, link), patience)
    text = "".join(printed)
    took = SECONDS.search(text)
    if not wrong and not VERIFIED.search(text):
        wrong = "its result is not verified"
    if not wrong and took:
        return float(took[1]), None
    return None, wrong if (wrong or "").startswith("no answer") else f"{wrong or 'printed no time'}: {said}"


def run_all(o, rows, cells, say):
    """{(ranks, case): {label: seconds}}, interleaved."""
    values = {cell: {} for cell in cells}
    for turn in range(o.runs):
        for ranks, case in cells:
            ours = AT_MOST_S
            for row in rows:
                if (ranks, case) in row.slow:
                    continue
                say(f"round {turn + 1} of {o.runs}: {row.label}, {case} on {ranks} ranks")
                # A peer whose waiting ranks spin may take hours where weft takes a second: ten times is answer enough.
                patience = min(AT_MOST_S, max(20, 10 * ours)) if row.name != "weft" else AT_MOST_S
                begun = time.monotonic()
                seconds, wrong = run_once(row, case, ranks, o.link, patience)
                if wrong:
                    say(f"  {row.label}: {wrong}")
                    row.slow[ranks, case] = patience if wrong.startswith("no answer") else None
                    continue
                if row.name == "weft":
                    ours = time.monotonic() - begun
                values[ranks, case].setdefault(row.label, []).append(seconds)
    return values


def cell(row, where, values):
    if row.label in values:
        return number(statistics.median(values[row.label]))
    return f"> {row.slow[where]:.0f}" if row.slow.get(where) else "-"


def print_table(o, rows, values):
    print(f"nas over {o.link}: time, s (median of {o.runs})")
    heads = [row.label for row in rows]
    widths = [max(len(head), 9) for head in heads]
    first = max(len(f"{ranks} ranks: {case}") for ranks, case in values)
    others = [row for row in rows if row.name != "weft"]
    print(" " * first + "".join(f"  {h:>{w}}" for h, w in zip(heads, widths)) + ("  weft / best other" if others else ""))
    for (ranks, case), found in values.items():
        line = f"{f'{ranks} ranks: {case}':<{first}}" + "".join(
            f"  {cell(row, (ranks, case), found):>{w}}" for row, w in zip(rows, widths))
        best = [statistics.median(found[row.label]) for row in others if row.label in found]
        if best and "weft" in found and min(best):
            line += f"  {statistics.median(found['weft']) / min(best):.3f}"
        print(line)


def write_csv(o, values):
    with open(o.csv, "w", newline="", encoding="utf-8") as f:
        writer = csv.writer(f, lineterminator="\n")
        writer.writerow(COLUMNS)
        for (ranks, case), found in values.items():
            for label, v in found.items():
                off = label.endswith(" progress off")
                writer.writerow(["nas", label[:-13] if off else label, o.link, f"{ranks} ranks: {case}" + " progress off" * off,
                                 "time", "s", number(min(v)), number(statistics.median(v)), number(max(v)), len(v)])


def main(argv, parser_class, mpis, peer, say, die):
    o = parse(argv, parser_class)
    o.against = [peer(name, o, Asked) for name in o.against]
    strict = {"NPB_NPROCS_STRICT": "on"}
    ours = folder_of(o, "weft", die)
    rows = [Row("weft", mpis["weft"], ours, settings=strict)]
    if o.idle:
        rows += [Row("weft", mpis["weft"], ours, f"weft idle {us} us", {**strict, "WEFT_IDLE_PERIOD_US": str(us)})
                 for us in PERIODS_US]
    else:
        rows.append(Row("weft", mpis["weft"], ours, "weft progress off", {**strict, "WEFT_PROGRESS": "off"}))
    rows += [Row(name, mpis[name], folder_of(o, name.replace("-tuned", ""), die), settings=strict) for name in o.against]
    cells = cells_of(o, rows, say)
    if not cells:
        die(f"--path {o.path}: nothing of class {o.size} that could be run", 1)
    values = run_all(o, rows, cells, say)
    print_table(o, rows, values)
    if o.csv:
        write_csv(o, values)
    sys.stdout.flush()
    return 0 if all("weft" in found for found in values.values()) else 1
