# SPDX-License-Identifier: BSD-3-Clause
"""Writes the part of mpi.h that the ABI leaves out and today's programs use: MPI_Fint, c2f and f2c, and
names that MPI-3.0 deleted.  All of it is inline over functions of the ABI: nothing is exported for it."""

HEAD = """
/*
 * Beside the ABI, for programs that use them: MPI_Fint and the conversions of handles, and names that
 * MPI-3.0 deleted.  Nothing here is in the library.  #define WEFT_MPI_H_ABI_ONLY leaves it out.
 */
#ifndef WEFT_MPI_H_ABI_ONLY

#if defined(__cplusplus) || (defined(__STDC_VERSION__) && __STDC_VERSION__ >= 199901L)
#define WEFT_MPI_INLINE static inline
#else
#define WEFT_MPI_INLINE static __inline__
#endif
#if defined(__GNUC__)
#define WEFT_MPI_DELETED(instead) \\
\t__attribute__((unused, deprecated("deleted in MPI-3.0: use " instead))) WEFT_MPI_INLINE
#else
#define WEFT_MPI_DELETED(instead) WEFT_MPI_INLINE
#endif

typedef int MPI_Fint;
#define MPI_F_STATUS_SIZE 8
#define MPI_F_SOURCE 0
#define MPI_F_TAG 1
#define MPI_F_ERROR 2
"""

STATUS = """
/* mpi_f08's TYPE(MPI_Status): the INTEGERs of mpif.h's, with names. */
typedef struct {
\tMPI_Fint MPI_SOURCE, MPI_TAG, MPI_ERROR, MPI_internal[5];
} MPI_F08_status;
#if defined(__GNUC__)
/* Known by their address; a program without Fortran has none: NULL. */
extern long weft_f_status_ignore_[] __attribute__((weak));
extern long weft_f_statuses_ignore_[] __attribute__((weak));
#define MPI_F_STATUS_IGNORE ((MPI_Fint *)weft_f_status_ignore_)
#define MPI_F_STATUSES_IGNORE ((MPI_Fint *)weft_f_statuses_ignore_)
#define MPI_F08_STATUS_IGNORE ((MPI_F08_status *)weft_f_status_ignore_)
#define MPI_F08_STATUSES_IGNORE ((MPI_F08_status *)weft_f_statuses_ignore_)
#endif
"""

STATUS_COPY = """
WEFT_MPI_INLINE int {p}Status_{x}2{y}(const {x_type} *{x}_status, {y_type} *{y}_status)
{{
\tint i;
\t{y}_status{y_source} = {x}_status{x_source};
\t{y}_status{y_tag} = {x}_status{x_tag};
\t{y}_status{y_error} = {x}_status{x_error};
\tfor (i = 0; i < 5; i++)
\t\t{y}_status{y_rest} = {x}_status{x_rest};
\treturn MPI_SUCCESS;
}}
"""
NAMED = {"source": "->MPI_SOURCE", "tag": "->MPI_TAG", "error": "->MPI_ERROR", "rest": "->MPI_internal[i]"}
# The forms of a status: its type, and how its parts are reached.
STATUSES = {"c": dict(NAMED, type="MPI_Status"), "f08": dict(NAMED, type="MPI_F08_status"),
            "f": {"type": "MPI_Fint", "source": "[MPI_F_SOURCE]", "tag": "[MPI_F_TAG]", "error": "[MPI_F_ERROR]", "rest": "[3 + i]"}}

# What MPI-3.0 deleted and has a successor that does the same: (name, parameters, successor, arguments).
DELETED = [
    ("Address", "const void *location, MPI_Aint *address", "Get_address", "location, address"),
    ("Type_hvector", "int count, int blocklength, MPI_Aint stride, MPI_Datatype oldtype, MPI_Datatype *newtype",
     "Type_create_hvector", "count, blocklength, stride, oldtype, newtype"),
    ("Type_hindexed",
     "int count, const int *lengths, const MPI_Aint *displacements, MPI_Datatype oldtype, MPI_Datatype *newtype",
     "Type_create_hindexed", "count, lengths, displacements, oldtype, newtype"),
    ("Type_struct",
     "int count, const int *lengths, const MPI_Aint *displacements, const MPI_Datatype *types, MPI_Datatype *newtype",
     "Type_create_struct", "count, lengths, displacements, types, newtype"),
    ("Errhandler_create", "MPI_Comm_errhandler_function *function, MPI_Errhandler *errhandler",
     "Comm_create_errhandler", "function, errhandler"),
    ("Errhandler_set", "MPI_Comm comm, MPI_Errhandler errhandler", "Comm_set_errhandler", "comm, errhandler"),
    ("Errhandler_get", "MPI_Comm comm, MPI_Errhandler *errhandler", "Comm_get_errhandler", "comm, errhandler"),
]

# These take one part of what MPI_Type_get_extent gives.
EXTENTS = [("Type_extent", "extent", "extent"), ("Type_lb", "displacement", "lb"),
           ("Type_ub", "displacement", "lb + extent")]

TAIL = """
typedef MPI_Comm_errhandler_function MPI_Handler_function;
/* Marks in a datatype cannot be had from their successors: the error names what to do. */
#define MPI_LB MPI_LB_was_deleted_in_MPI_3_0_use_MPI_Type_create_resized
#define MPI_UB MPI_UB_was_deleted_in_MPI_3_0_use_MPI_Type_create_resized

#endif /* WEFT_MPI_H_ABI_ONLY */"""


def conversions(functions):
    """A pair per handle that the ABI converts, for users and for tools."""
    out = []
    for f in functions.values():
        if not f.short.endswith("_toint"):
            continue
        what = f.short[:-len("_toint")]
        handle = "MPI_Datatype" if what == "Type" else f"MPI_{what}"
        for p in ("MPI_", "PMPI_"):
            out.append(f"WEFT_MPI_INLINE MPI_Fint {p}{what}_c2f({handle} handle)\n{{\n\treturn {p}{what}_toint(handle);\n}}\n")
            out.append(f"WEFT_MPI_INLINE {handle} {p}{what}_f2c(MPI_Fint handle)\n{{\n\treturn {p}{what}_fromint(handle);\n}}\n")
    return out


def statuses():
    out = [STATUS]
    for p in ("MPI_", "PMPI_"):
        for x, y in (("c", "f"), ("f", "c"), ("c", "f08"), ("f08", "c"), ("f", "f08"), ("f08", "f")):
            parts = {f"{letter}_{part}": text for letter, form in (("x", x), ("y", y)) for part, text in STATUSES[form].items()}
            out.append(STATUS_COPY.format(p=p, x=x, y=y, **parts))
    return out


def deleted():
    out = []
    for name, parameters, successor, arguments in DELETED:
        out.append(f'WEFT_MPI_DELETED("MPI_{successor}")\nint MPI_{name}({parameters})\n{{\n'
                   f"\treturn MPI_{successor}({arguments});\n}}\n")
    for name, result, value in EXTENTS:
        out.append(f'WEFT_MPI_DELETED("MPI_Type_get_extent")\nint MPI_{name}(MPI_Datatype datatype, MPI_Aint *{result}_p)\n'
                   f"{{\n\tMPI_Aint lb, extent;\n\tint err = MPI_Type_get_extent(datatype, &lb, {result}_p ? &extent : 0);\n"
                   f"\tif (!err)\n\t\t*{result}_p = {value};\n\treturn err;\n}}\n")
    return out


def write_compat(functions):
    return "\n".join([HEAD] + conversions(functions) + statuses() + deleted() + [TAIL])
