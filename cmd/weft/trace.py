#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""weft trace: tables and timelines of the files that WEFT_TRACE had written (doc/trace.md).

Exit codes: 0; 1 it did not work; 2 it was not understood."""

import argparse
import gc
import os
import re
import sys

sys.dont_write_bytecode = True

from trace_life import Trace  # noqa: E402
from trace_read import Bad, File, paths_of  # noqa: E402
import trace_json  # noqa: E402
import trace_summary  # noqa: E402
import trace_svg  # noqa: E402

UNITS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}


def moment(text):
    """10ms, 2.5s; a number alone is in ms."""
    m = re.fullmatch(r"(\d+(?:\.\d*)?)(ns|us|ms|s)?", text)
    if not m:
        raise argparse.ArgumentTypeError(f"'{text}' is no time like 2.5ms")
    return float(m.group(1)) * UNITS[m.group(2) or "ms"]


def arguments(argv):
    p = argparse.ArgumentParser(prog="weft trace", description="What happened when, from files that were "
                                "written with WEFT_TRACE=FILE, folders of them, or numbers of processes that write one.")
    p.add_argument("file", nargs="+")
    p.add_argument("--summary", action="store_true", help="tables, beside other output (alone: the default)")
    p.add_argument("-o", "--json", metavar="FILE", help="a timeline for ui.perfetto.dev or chrome://tracing")
    p.add_argument("--svg", metavar="FILE", help="a timeline as a picture")
    p.add_argument("--from", dest="begin", type=moment, default=0, metavar="TIME", help="the picture begins there, like 2.5ms")
    p.add_argument("--to", dest="end", type=moment, metavar="TIME", help="and ends there")
    p.add_argument("--threads", type=int, default=20, metavar="N", help="user-level threads per process that are listed")
    return p.parse_args(argv)


def save(path, write):
    """A file that is there is replaced when the new one is whole."""
    part = f"{path}.{os.getpid()}.part"
    try:
        if path == "-" or (os.path.exists(path) and not os.path.isfile(path)):
            with open(1 if path == "-" else path, "w", encoding="utf-8", closefd=path != "-") as out:
                write(out)
            return
        with open(part, "w", encoding="utf-8") as out:
            write(out)
        os.replace(part, path)
    except OSError as e:
        if os.path.exists(part):
            os.unlink(part)
        e.filename = path
        raise


def main(argv):
    args = arguments(argv)
    gc.disable()  # many small objects that all stay
    try:
        files = [File(p) for p in paths_of(args.file)]
        trace = Trace(files)
        if args.json:
            save(args.json, lambda out: trace_json.write(trace, out))
        if args.svg:
            end = trace.end if args.end is None else args.end
            save(args.svg, lambda out: trace_svg.write(trace, out, args.begin, end, args.threads))
        if args.summary or not (args.json or args.svg):
            trace_summary.show(trace, args.threads)
        sys.stdout.flush()
    except Bad as e:
        print("weft: " + trace_summary.printable(str(e)), file=sys.stderr)
        return 1
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 1
    except OSError as e:
        print("weft: " + trace_summary.printable(f"{e.filename or 'output'}: {e.strerror}"), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
