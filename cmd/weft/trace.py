#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""weft trace: tables and timelines of the files that WEFT_TRACE had written (doc/trace.md).

Exit codes: 0; 1 it did not work; 2 it was not understood."""

import argparse
import gc
import os
import sys

sys.dont_write_bytecode = True

from trace_life import Trace  # noqa: E402
from trace_read import Bad, File, paths_of  # noqa: E402
import trace_summary  # noqa: E402


def arguments(argv):
    p = argparse.ArgumentParser(prog="weft trace", description="What happened when, from files that were "
                                "written with WEFT_TRACE=FILE, folders of them, or numbers of processes that write one.")
    p.add_argument("file", nargs="+")
    p.add_argument("--summary", action="store_true", help="tables, beside other output (alone: the default)")
    p.add_argument("--threads", type=int, default=20, metavar="N", help="user-level threads per process that are listed")
    return p.parse_args(argv)


def main(argv):
    args = arguments(argv)
    gc.disable()  # many small objects that all stay
    try:
        files = [File(p) for p in paths_of(args.file)]
        trace = Trace(files)
        trace_summary.show(trace, args.threads)
        sys.stdout.flush()
    except Bad as e:
        print(f"weft: {e}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 1
    except OSError as e:
        print(f"weft: {e.filename or 'output'}: {e.strerror}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
