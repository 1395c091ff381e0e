# SPDX-License-Identifier: BSD-3-Clause
"""names.py LIBRARY TABLES - every procedure of mpif.h and `use mpi` is exported, under both names."""
import ctypes
import sys

sys.path.insert(0, sys.argv[2])
import abi_fortran  # noqa: E402
import abi_fortran_text  # noqa: E402

library = ctypes.CDLL(sys.argv[1])
wanted = [f"{p}mpi_{x.lower}_" for x in abi_fortran.load_procedures() if x.within("f90") and not x.callback and not x.predefined
          and x.name != "MPI_Sizeof" for p in ("", "p")]
wanted += [name.lower() + "_" for name in abi_fortran_text.EXTERNALS]
missing = [name for name in wanted if not hasattr(library, name)]
sys.exit("not exported: " + " ".join(missing) if missing else 0)
