# SPDX-License-Identifier: BSD-3-Clause
"""The Fortran tables as objects: procedures with what each argument is in Fortran and in C, and constants."""
import collections
import re

import abi_table

HANDLES = {
    "COMMUNICATOR": "Comm", "GROUP": "Group", "DATATYPE": "Type", "OPERATION": "Op", "INFO": "Info", "ERRHANDLER": "Errhandler",
    "REQUEST": "Request", "WINDOW": "Win", "FILE": "File", "SESSION": "Session", "MESSAGE": "Message",
}
C_HANDLES = {h: "MPI_Datatype" if h == "Type" else "MPI_" + h for h in HANDLES.values()}
BUFFERS = {"BUFFER", "C_BUFFER", "C_BUFFER2"}
EIGHT_BYTES = {"MPI_Aint": "MPI_ADDRESS_KIND", "MPI_Offset": "MPI_OFFSET_KIND", "MPI_Count": "MPI_COUNT_KIND"}


class Arg:
    """An argument of a procedure, as mpif.h and the mpi module know it."""

    def __init__(self, row, param, large):
        self.name = row["parameter"]
        self.kind = row["kind"]
        self.direction = row["direction"]
        self.length = row["length"]
        self.callback = row["callback"]
        self.optional = row["optional"] == "y"
        self.asynchronous = row["asynchronous"] == "y"
        self.param = param  # in C
        self.large = large  # in C's large-count form, where there is one
        self.what = self.classify()

    @property
    def array(self):
        return self.param is not None and self.param.is_array or self.kind == "STATUS" and bool(self.length)

    @property
    def c_base(self):
        return self.param.base.rstrip("* ").strip()

    @property
    def poly(self):
        """Has it a wider type in the large-count form than INTEGER?"""
        return self.what == "int" and self.large is not None and self.large.type != self.param.type

    @property
    def input(self):
        return self.direction != "out"

    @property
    def output(self):
        return self.direction in ("out", "inout")

    def classify(self):
        k = self.kind
        if k in HANDLES:
            return "handle"
        if k in BUFFERS or k == "LOGICAL_VOID":
            return "buffer"
        if k in ("LOGICAL", "STATUS", "STRING", "STRING_ARRAY", "STRING_2DARRAY"):
            return k.lower()
        if k in ("FUNCTION", "POLYFUNCTION"):
            return "function"
        if k in ("EXTRA_STATE", "ATTRIBUTE_VAL"):
            return "address"
        if k in ("EXTRA_STATE2", "ATTRIBUTE_VAL_10"):
            return "int"
        if k in ("F08_STATUS", "F90_STATUS"):
            return "status"
        if self.param is not None and self.c_base in EIGHT_BYTES:
            return "wide"
        return "int"

    @property
    def integer_kind(self):
        """The KIND of an INTEGER that is not the default one."""
        if self.what == "wide":
            return EIGHT_BYTES[self.c_base]
        return "MPI_ADDRESS_KIND" if self.what == "address" else None


class Procedure:
    def __init__(self, rows, functions):
        first = rows[0]
        self.name = first["procedure"]
        self.flags = first["flags"].split()
        self.returns = first["returns"]
        self.c = functions.get(self.name)
        self.c_large = functions.get(self.name + "_c")
        self.has_ierror = False
        self.args = []
        params = list(self.c.params) if self.c else []
        large = list(self.c_large.params) if self.c_large and len(self.c_large.params) == len(params) else [None] * len(params)
        for r in rows:
            if r["large_only"] or not r["parameter"]:
                continue
            if r["parameter"] in ("ierror", "ierr") and "c_parameter" in r["suppress"]:
                self.has_ierror = True
                continue
            param, wide = (params.pop(0), large.pop(0)) if params else (None, None)
            if "f90_parameter" in r["suppress"] or r["kind"] == "VARARGS":
                continue
            self.args.append(Arg(r, param, wide))

    @property
    def short(self):
        return self.name[len("MPI_"):]

    @property
    def lower(self):
        return self.short.lower()

    @property
    def callback(self):
        return "callback" in self.flags

    @property
    def predefined(self):
        """The interface of a predefined callback: MPI_COMM_DUP_FN and others."""
        return next((f.split("=")[1] for f in self.flags if f.startswith("predefined=")), None)

    @property
    def has_cptr_form(self):
        return any(f.startswith("index_overload") for f in self.flags)

    def within(self, module):
        return module in self.flags

    def arg(self, name):
        return next((a for a in self.args if a.name == name), None)


def load_procedures(functions=None):
    functions = functions or abi_table.load_functions()
    grouped = collections.OrderedDict()
    for r in abi_table.rows("fortran.tsv"):
        grouped.setdefault(r["procedure"], []).append(r)
    return [Procedure(rows, functions) for rows in grouped.values()]


# Displacements in files; the table has them as INTEGERs.
OFFSETS = {"MPI_DISPLACEMENT_CURRENT"}


class Constant:
    def __init__(self, row):
        self.name = row["name"]
        self.category = row["category"]
        self.value = row["value"]
        self.c = row["c"]  # the handle's type: the table's column for mpi_f08 is mistaken in a few rows
        self.f90 = row["f90"]
        self.f08 = row["f08"]
        if self.name in OFFSETS:
            self.f90 = self.f08 = "INTEGER(KIND=MPI_OFFSET_KIND)"


def load_constants():
    return [Constant(r) for r in abi_table.rows("fortran-constants.tsv")]


# Recognized by address: name, what the library compares, shape.
SENTINELS = [
    ("MPI_BOTTOM", "INTEGER", ""), ("MPI_IN_PLACE", "INTEGER", ""), ("MPI_BUFFER_AUTOMATIC", "INTEGER", ""),
    ("MPI_STATUS_IGNORE", "INTEGER", "(8)"), ("MPI_STATUSES_IGNORE", "INTEGER", "(8,1)"),
    ("MPI_ERRCODES_IGNORE", "INTEGER", "(1)"), ("MPI_UNWEIGHTED", "INTEGER", "(1)"), ("MPI_WEIGHTS_EMPTY", "INTEGER", "(1)"),
    ("MPI_ARGV_NULL", "CHARACTER", "(1)"), ("MPI_ARGVS_NULL", "CHARACTER", "(1,1)"),
]


def sentinel_common(name):
    return "WEFT_F_" + re.sub(r"^MPI_", "", name)


# Facts about the compiler that the library reads from the sizes of these common blocks.  A second block whose size
# shrinks as the first one's grows shows parts of a program that were compiled differently: the linker keeps the larger.
FACTS = [("INT", "KIND(0)"), ("REAL", "KIND(0.0)"), ("DBLE", "KIND(0D0)"), ("TRUE", "2+TRANSFER(.TRUE.,0)")]
FACT_SUM = 40
