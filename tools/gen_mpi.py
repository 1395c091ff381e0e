#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes mpi.h and the MPI entry points from the tables in tools/abi/.

usage: gen_mpi.py SOURCES OUT

SOURCES  the folder with the implementation (src/mpi): a function weft_mpi_X defined there at the
         start of a line implements MPI_X, and weft_mpi_X_args the three forms of the collective X;
         all others answer MPI_ERR_UNSUPPORTED_OPERATION.
OUT      gets include/mpi.h and gen/*; a file is written only if it changes.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "abi"))

import abi_entry  # noqa: E402
import abi_header  # noqa: E402
import abi_table  # noqa: E402

PARTS = 4


def put(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    try:
        with open(path) as f:
            if f.read() == text:
                return
    except OSError:
        pass
    with open(path, "w") as f:
        f.write(text)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__.strip())
    sources, out = sys.argv[1:]
    functions = abi_table.load_functions()
    implemented = abi_table.scan_implemented(sources)
    collectives = {n[:-len("_args")] for n in implemented if n.endswith("_args")}
    implemented.update(form for name in collectives for form in abi_table.coll_forms(name))
    known = {f.impl[len("weft_mpi_"):] for f in functions.values()}
    put(os.path.join(out, "include", "mpi.h"),
        abi_header.write_header(functions, abi_table.load_constants(), abi_table.load_types()))
    put(os.path.join(out, "gen", "mpi_impl.h"), abi_entry.write_impl_header(functions, collectives))
    put(os.path.join(out, "gen", "mpi_coll.c"), abi_entry.write_collectives(functions, collectives))
    put(os.path.join(out, "gen", "mpi_functions.c"), abi_entry.write_list(functions, implemented & known))
    for i, text in enumerate(abi_entry.write_entries(functions, implemented, PARTS)):
        put(os.path.join(out, "gen", f"mpi_entry_{i}.c"), text)


if __name__ == "__main__":
    main()
