# SPDX-License-Identifier: BSD-3-Clause
"""weft bench rails - two links to one peer: how much do they carry together, and what does a cut cost?

Two network namespaces, joined by two links of the same rate.  Rows: each link alone, both, both with
one of them broken for a while, and both with one of them carrying a fifth for a while; the program
looks at every byte.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import threading
import time

HOSTS = (("a", 1), ("b", 2))
SLOWER = 5  # times, for a while
MILLI = {"bit": "bit", "kbit": "bit", "mbit": "kbit", "gbit": "mbit"}


def shape(host, verb, rate):
    subprocess.run(("ip", "netns", "exec", host, "tc", "qdisc", verb, "dev", "veth1", "root", "tbf",
                    "rate", rate, "burst", "256kb", "latency", "50ms"), check=True)


def slow_down(o):
    """The second link carries a fifth for a while, in the direction of the data."""
    number, unit = re.fullmatch(r"([0-9.]+)([a-z]*)", o.rate).groups()
    for verb_at, rate in ((o.cut[0], f"{float(number) * 1000 / SLOWER:.0f}{MILLI[unit]}"),
                          (o.cut[0] + o.cut[1], o.rate)):
        threading.Timer(verb_at / 1e3, shape, ("a", "change", rate)).start()


def second_link(rate):
    """The other link beside the one that two-hosts made."""
    run = lambda *words: subprocess.run(words, check=True)
    run("ip", "link", "add", "veth1", "netns", "a", "type", "veth", "peer", "name", "veth1", "netns",
        "b")
    for host, n in HOSTS:
        run("ip", "-n", host, "addr", "add", f"10.99.1.{n}/24", "dev", "veth1")
        run("ip", "-n", host, "link", "set", "veth1", "up")
        shape(host, "add", rate)
    time.sleep(2.5)  # just after a link came up the kernel loses and delays packets


def run_once(mpiexec, program, seconds, rails, cut, begins):
    """({metric: value}, [(seconds, MB/s)]), or an error as text.  begins() is called with the first message."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PMI", "WEFT_BOOT_"))}
    env.update(WEFT_RAILS=rails, WEFT_RAIL_CUT=cut, WEFT_LOG="warn")
    command = [mpiexec]
    for host, _ in HOSTS:
        command += ["-n", "1", "ip", "netns", "exec", host, program, str(seconds), ":"]
    sums, curve = {}, []
    with tempfile.TemporaryFile("w+") as err:
        process = subprocess.Popen(command[:-1], env=env, stdin=subprocess.DEVNULL, stderr=err, text=True,
                                   stdout=subprocess.PIPE)
        late = threading.Timer(seconds + 30, process.kill)
        late.start()
        lines = []
        for line in process.stdout:
            lines.append(line)
            if ",begins," in line:
                begins()
        code = process.wait()
        late.cancel()
        err.seek(0)
        if code:
            return (err.read().strip().splitlines() or [f"exit code {code}"])[0], []
    for line in lines:
        case, metric, _, value = line.strip().split(",")
        if metric == "over time":
            curve.append((float(case.split()[0]), float(value)))
        else:
            sums[metric] = float(value)
    return sums, curve


def write_svg(path, curves, cut, about):
    """curves: [(name, {metric: value}, [(s, MB/s)])]"""
    width, height, left, top = 880, 440, 60, 60
    last = max(t for _, _, c in curves for t, _ in c)
    most = 1.15 * max(v for _, _, c in curves for _, v in c)
    right = width - 200
    x = lambda t: left + min(t / last, 1) * (right - left)
    y = lambda v: height - 40 - v / most * (height - 40 - top)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
           'font-family="sans-serif" font-size="12">',
           f'<rect width="{width}" height="{height}" fill="white"/>',
           f'<text x="{left}" y="22" font-size="14">weft bench rails: throughput over time</text>',
           f'<text x="{left}" y="40" fill="#555">{about}</text>']
    at, back = cut[0] / 1e3, (cut[0] + cut[1]) / 1e3
    if at < last:
        out.append(f'<rect x="{x(at):.1f}" y="{top}" width="{x(back) - x(at):.1f}" '
                   f'height="{height - 40 - top}" fill="#fbecec"/>')
    step = 10 ** (len(str(int(most))) - 1) / (2 if most < 3 * 10 ** (len(str(int(most))) - 1) else 1)
    v = 0
    while v <= most:
        out.append(f'<line x1="{left}" y1="{y(v):.1f}" x2="{x(last):.1f}" y2="{y(v):.1f}" '
                   'stroke="#ddd"/>'
                   f'<text x="{left - 6}" y="{y(v) + 4:.1f}" text-anchor="end">{v:g}</text>')
        v += step
    for s in range(int(last) + 1):
        out.append(f'<text x="{x(s):.1f}" y="{height - 22}" text-anchor="middle">{s} s</text>')
    out.append(f'<text x="14" y="{height // 2}" transform="rotate(-90 14 {height // 2})">MB/s</text>')
    for t, text in ((at, "second link cut, or slower"), (back, "it may come back")):
        if t > last:
            continue
        out.append(f'<line x1="{x(t):.1f}" y1="{top}" x2="{x(t):.1f}" y2="{height - 40}" '
                   'stroke="black" stroke-dasharray="4 3"/>'
                   f'<text x="{x(t) + 4:.1f}" y="{top + 10}">{text}</text>')
    for i, (name, sums, curve) in enumerate(curves):
        colour = ("#999999", "#1f77b4", "#d62728", "#2ca02c")[i % 4]
        points = " ".join(f"{x(t):.1f},{y(v):.1f}" for t, v in curve)
        out.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>'
                   f'<text x="{right + 12}" y="{top + 20 + 56 * i}" font-size="13" fill="{colour}">{name}</text>')
        for k, text in enumerate((f"{sums['throughput']:.0f} MB/s in all",
                                  f"bytes lost {sums['lost']:.0f}, doubled {sums['doubled']:.0f}")):
            out.append(f'<text x="{right + 12}" y="{top + 37 + 56 * i + 15 * k}" fill="#555">{text}</text>')
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n".join(out) + "\n</svg>\n")


def parse(argv):
    parser = argparse.ArgumentParser(prog="weft bench rails", description=__doc__.splitlines()[0])
    parser.add_argument("--rate", default="1gbit", help="of each link (1gbit)")
    parser.add_argument("--seconds", type=float, default=3, help="of each run (3)")
    parser.add_argument("--cut", default="1000:1000", metavar="AT:FOR",
                        help="milliseconds; the second link breaks, or carries a fifth (1000:1000)")
    parser.add_argument("--quick", action="store_true", help="as --seconds 1 --cut 300:300")
    parser.add_argument("--csv", metavar="FILE", help="write case,seconds,MB/s")
    parser.add_argument("--svg", metavar="FILE", help="draw throughput over time, the cut marked")
    o = parser.parse_args(argv)
    if o.quick:
        o.seconds, o.cut = 1, "300:300"
    try:
        o.cut = tuple(int(w) for w in o.cut.split(":"))
        if len(o.cut) != 2 or min(o.cut) < 0 or not 0 < o.seconds <= 50:
            raise ValueError
    except ValueError:
        parser.error("--cut is AT:FOR in milliseconds, --seconds at most 50")
    if not re.fullmatch(r"[0-9.]+(" + "|".join(MILLI) + ")", o.rate):
        parser.error("--rate is a number and bit, kbit, mbit or gbit")
    return o


def main(argv, programs, mpiexec, mpicc, two_hosts):
    o = parse(argv)
    if not os.environ.get("BENCH_HOSTS_ARE_UP"):
        env = dict(os.environ, BENCH_HOSTS_ARE_UP="1")
        return subprocess.run([two_hosts, "--rate", o.rate, sys.executable,
                               os.path.join(os.path.dirname(__file__), "bench.py"), "rails", *argv],
                              env=env, check=False).returncode
    program = programs().get("p2p/rails", mpicc)
    second_link(o.rate)
    cut = f"1:{o.cut[0]}:{o.cut[1]}"
    two, nothing = "tcp:veth0,tcp:veth1", lambda: None
    rows = (("first link", "tcp:veth0", "", nothing), ("second link", "tcp:veth1", "", nothing),
            ("both", two, "", nothing), ("both, one cut", two, cut, nothing),
            ("both, one slower", two, "", lambda: slow_down(o)))
    curves, found = [], {}
    about = (f"two links of {o.rate}, messages of 1 MiB, {o.seconds:g} s each; cut after "
             f"{o.cut[0]} ms for {o.cut[1]} ms")
    print(f"rails, {about}\n{'':<16} {'MB/s':>8} {'lost':>6} {'doubled':>8}")
    for name, rails, cut, begins in rows:
        sums, curve = run_once(mpiexec, program, o.seconds, rails, cut, begins)
        if isinstance(sums, str):
            print(f"{name:<16} {sums}")
            return 1
        found[name] = sums
        print(f"{name:<16} {sums['throughput']:8.1f} {sums['lost']:6.0f} {sums['doubled']:8.0f}")
        if name != "second link":
            curves.append((name, sums, curve))
    one = max(found["first link"]["throughput"], found["second link"]["throughput"])
    slow = [v for name, _, curve in curves if name == "both, one slower" for t, v in curve
            if o.cut[0] / 1e3 + 0.3 <= t < (o.cut[0] + o.cut[1]) / 1e3 - 0.1]
    if slow:
        print(f"while one carries a fifth: {sum(slow) / len(slow):.1f} MB/s, "
              f"{sum(slow) / len(slow) / (one * (1 + 1 / SLOWER)):.2f} x what the links carry")
    print(f"both are {found['both']['throughput'] / one:.2f} x the better one")
    if o.csv:
        with open(o.csv, "w", encoding="utf-8") as f:
            f.write("case,seconds,MB/s\n")
            f.writelines(f"{name},{t},{v}\n" for name, _, curve in curves for t, v in curve)
    if o.svg:
        write_svg(o.svg, curves, o.cut, about)
    return 1 if any(s["lost"] or s["doubled"] for s in found.values()) else 0
