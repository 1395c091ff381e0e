# SPDX-License-Identifier: BSD-3-Clause
"""Writes Fortran: mpif.h and the source of the mpi module."""
from abi_fortran import FACTS, FACT_SUM, SENTINELS, sentinel_common

KINDS = {"c_intptr_t": "8", "c_int64_t": "8"}
# Not constants of Fortran, or recognized by address.
SKIPPED = {name for name, _, _ in SENTINELS} | {"MPI_SUBARRAYS_SUPPORTED", "MPI_ASYNC_PROTECTS_NONBLOCKING"}
# Predefined callbacks and functions that return a value.
EXTERNALS = ["MPI_COMM_NULL_COPY_FN", "MPI_COMM_NULL_DELETE_FN", "MPI_COMM_DUP_FN", "MPI_TYPE_NULL_COPY_FN",
             "MPI_TYPE_NULL_DELETE_FN", "MPI_TYPE_DUP_FN", "MPI_WIN_NULL_COPY_FN", "MPI_WIN_NULL_DELETE_FN", "MPI_WIN_DUP_FN",
             "MPI_NULL_COPY_FN", "MPI_NULL_DELETE_FN", "MPI_DUP_FN", "MPI_CONVERSION_FN_NULL"]


def integers(constants):
    """(name, value) of each named constant that is an INTEGER."""
    return [(c.name, KINDS.get(c.value, c.value)) for c in constants if c.f90 == "INTEGER" and c.name not in SKIPPED and c.value]


def write_constants(constants):
    out = []
    for name, value in integers(constants):
        out += [f"      INTEGER {name}", f"      PARAMETER ({name}={value})"]
    for name in ("MPI_SUBARRAYS_SUPPORTED", "MPI_ASYNC_PROTECTS_NONBLOCKING"):
        out += [f"      LOGICAL {name}", f"      PARAMETER ({name}=.FALSE.)"]
    return out


def write_commons():
    """Sentinels, and the facts that the library learns of the compiler."""
    out = []
    for name, kind, shape in SENTINELS:
        common = sentinel_common(name)
        out += [f"      {kind} {name}{shape}", f"      COMMON /{common}/ {name}", f"      SAVE /{common}/"]
    for name, expression in FACTS:
        for letter, size in (("F", expression), ("G", f"{FACT_SUM}-({expression})")):
            var = f"WEFT_{letter}_{name}"
            out += [f"      CHARACTER {var}({size})", f"      COMMON /{var}_IS/ {var}", f"      SAVE /{var}_IS/"]
    return out


def write_mpif(procedures, constants):
    out = ["!     SPDX-License-Identifier: BSD-3-Clause", "!     mpif.h - MPI 5.0 for Fortran, fixed and free form.  Generated.", "!"]
    out += write_constants(constants) + write_commons()
    for prefix in ("", "P"):
        # Not DOUBLE PRECISION, which options of compilers make longer.
        for kind, names in (("REAL(KIND=SELECTED_REAL_KIND(15))", ("WTIME", "WTICK")),
                            ("INTEGER(KIND=MPI_ADDRESS_KIND)", ("AINT_ADD", "AINT_DIFF"))):
            out += [f"      {kind} {prefix}MPI_{name}" for name in names]
            out += [f"      EXTERNAL {prefix}MPI_{name}" for name in names]
    out += [f"      EXTERNAL {name}" for name in EXTERNALS]
    return "\n".join(out) + "\n"
