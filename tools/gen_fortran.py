#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes the Fortran bindings from the tables in tools/abi/: C entry points, mpif.h, sources of modules.

usage: gen_fortran.py SOURCES OUT

SOURCES  the folder with what is written by hand (src/mpi/fortran): an ENTRY(x) there implements MPI_X.
OUT      gets include/mpif.h, gen/fort_* and share/weft/fortran/*; a file is written only if it changes.
"""
import hashlib
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "abi"))

import abi_fortran  # noqa: E402
import abi_fortran_entry  # noqa: E402
import abi_fortran_f08  # noqa: E402
import abi_fortran_text  # noqa: E402
from gen_mpi import put  # noqa: E402


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__.strip())
    sources, out = sys.argv[1:]
    procedures = abi_fortran.load_procedures()
    constants = abi_fortran.load_constants()
    by_hand = abi_fortran_entry.scan_by_hand(sources)
    entries, missing = abi_fortran_entry.write_entries(procedures, by_hand)
    if missing:
        sys.exit("gen_fortran.py: no rule and nothing by hand for " + " ".join(missing))
    put(os.path.join(out, "gen", "fort_proto.h"), abi_fortran_entry.write_prototypes(procedures))
    put(os.path.join(out, "gen", "fort_entries.c"), entries)
    mpif = abi_fortran_text.write_mpif(procedures, constants)
    put(os.path.join(out, "include", "mpif.h"), mpif)
    f08, skipped = abi_fortran_f08.write_entries(procedures)
    if skipped:
        sys.exit("gen_fortran.py: no rule for " + " ".join(skipped))
    put(os.path.join(out, "gen", "fort_f08.c"), f08)
    modules = {
        "weft_mpi_types": abi_fortran_text.write_types(),
        "mpi": abi_fortran_text.write_module(procedures, constants),
        "mpi_f08": abi_fortran_f08.write_f08(procedures, constants),
    }
    folder = os.path.join(out, "share", "weft", "fortran")
    for name, text in modules.items():
        put(os.path.join(folder, name + ".F90"), text)
    put(os.path.join(folder, "order"), "".join(name + "\n" for name in modules))
    # What tells a cache of compiled modules that they are old.
    put(os.path.join(folder, "version"), hashlib.sha256((mpif + "".join(modules.values())).encode()).hexdigest() + "\n")


if __name__ == "__main__":
    main()
