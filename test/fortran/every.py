#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""every.py TABLES MPIFORT INTERFACE [FLAG...] - every procedure and every constant of an interface compiles and links.

INTERFACE  mpif.h, mpi or mpi_f08.  A program is written that calls each procedure with keywords as MPI's text names the arguments
           (mpif.h knows none), as MPI_ and as PMPI_, mpi_f08's with ierror and without and with large counts; and that compares each
           constant with the table.  It is compiled and linked in a folder of its own; run, it looks at the constants only."""
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, sys.argv[1])
import abi_fortran  # noqa: E402
from abi_fortran_f08 import has_large  # noqa: E402
from abi_fortran_text import HANDLE_TYPES  # noqa: E402

INTERFACE, FLAGS = sys.argv[3], sys.argv[4:]
F08 = INTERFACE == "mpi_f08"
WIDE = any(f in ("-fdefault-integer-8", "-i8") for f in FLAGS)
USES = {"mpif.h": "implicit none\ninclude 'mpif.h'", "mpi": "use mpi\nimplicit none", "mpi_f08": "use mpi_f08\nimplicit none"}
FUNCTIONS = {"WALL_TIME": "r8", "TICK_RESOLUTION": "r8", "LOCATION_SMALL": "a", "DISPLACEMENT": "a"}
KINDS = {"MPI_ADDRESS_KIND": "a", "MPI_OFFSET_KIND": "o", "MPI_COUNT_KIND": "c"}
VARIABLES = """integer :: i, iv(9), iv2(9,9), st(8), st2(8,9), err
integer(KIND=MPI_ADDRESS_KIND) :: a, av(9)
integer(KIND=MPI_OFFSET_KIND) :: o, ov(9)
integer(KIND=MPI_COUNT_KIND) :: c, cv(9)
logical :: l, lv(9)
character(len=8) :: t, tv(9), tv2(9,9)
double precision :: r8
real :: buf(9)"""


def variable(a, large):
    """What is handed over for an argument."""
    if a.what == "function":
        return f"p_{a.callback.lower()}" if F08 else "MPI_COMM_DUP_FN"
    if a.kind.startswith("C_BUFFER"):
        return "cp" if F08 else "a"
    if a.what == "buffer":
        return "buf"
    array = a.param is not None and a.param.is_array
    if a.what == "handle":
        if F08:
            name = abi_fortran.HANDLES[a.kind]
            return "h_" + ("datatype" if name == "Type" else name.lower()) + ("v" if array else "")
        return "iv" if array else "i"
    if a.kind == "F90_STATUS":
        return "st"
    if a.kind == "F08_STATUS" or a.what == "status" and F08:
        return "sv" if a.array else "s"
    if a.what == "status":
        return "st2" if a.array else "st"
    if a.what.startswith("string"):
        return {"string": "t", "string_array": "tv", "string_2darray": "tv2"}[a.what]
    if a.what == "logical":
        return "lv" if array else "l"
    kind = "c" if large and a.poly else KINDS.get(a.integer_kind, "i")
    if a.length == "n,3":
        return "iv2(1:3,:)"
    return kind + "v" if array else kind


def calls(p):
    out = []
    for prefix in ("", "P"):
        for large in (False, True) if F08 and has_large(p) and not WIDE else (False,):
            words = [(a.name, variable(a, large)) for a in p.args]
            endings = [[("ierror", "err")]] + ([[]] if F08 and not prefix else []) if p.has_ierror else [[]]
            for ending in endings:
                listed = ", ".join(v if INTERFACE == "mpif.h" else f"{n}={v}" for n, v in words + ending)
                call = f"{prefix}{p.name}({listed})"
                out.append(f"{FUNCTIONS[p.returns]} = {call}" if p.returns in FUNCTIONS else f"call {call}")
    return out


# Large forms that stand apart from the tables' ordinary ones.
APART = """call {p}MPI_Op_create_c(user_fn=p_large, commute=l, op=h_op, ierror=err)
call {p}MPI_Op_create_c(p_large, l, h_op)
call {p}MPI_Register_datarep_c(datarep=t, read_conversion_fn=p_convert, write_conversion_fn=MPI_CONVERSION_FN_NULL_C, &
dtype_file_extent_fn=p_mpi_datarep_extent_function, extra_state=a, ierror=err)
"""
APART_NARROW = """call {p}MPI_Type_get_envelope(datatype=h_datatype, num_integers=c, num_addresses=c, num_large_counts=c, num_datatypes=c, &
combiner=i, ierror=err)
call {p}MPI_Type_get_contents(datatype=h_datatype, max_integers=c, max_addresses=c, max_large_counts=c, max_datatypes=c, &
array_of_integers=iv, array_of_addresses=av, array_of_large_counts=cv, array_of_datatypes=h_datatypev, ierror=err)
"""


def wrap(line):
    out = []
    while len(line) > 110:
        cut = line.rindex(",", 0, 110) + 1
        out.append(line[:cut] + " &")
        line = line[cut:]
    return "\n".join(out + [line])


def constants():
    """(name, how it is compared) of each constant."""
    sentinels = {name for name, _, _ in abi_fortran.SENTINELS}
    for c in abi_fortran.load_constants():
        declared = c.f08 if F08 else c.f90
        if not declared or c.name in sentinels or c.category == "functions" or not declared.startswith(("INTEGER", "MPI_")):
            continue
        value = {"c_intptr_t": "8", "c_int64_t": "8"}.get(c.value, c.value)
        if not value:
            continue
        # The handle's type is that of C.
        handle = F08 and c.c[4:] in HANDLE_TYPES and c.f90 == "INTEGER"
        yield c.name, f"{c.name}{'%MPI_VAL' if handle else ''} /= {value}"


def program(procedures):
    used = [p for p in procedures if p.within("f08" if F08 else "f90") and not p.callback and not p.predefined and p.name != "MPI_Sizeof"]
    text = ["program every", "if (command_argument_count() < 0) call procedures", "call constants", "end program"]
    text += ["subroutine procedures", ("use, intrinsic :: iso_c_binding, only : c_ptr\n" if F08 else "") + USES[INTERFACE], VARIABLES]
    if F08:
        text += ["type(c_ptr) :: cp", "type(MPI_Status) :: s, sv(9)"]
        text += [f"type(MPI_{h}) :: h_{h.lower()}, h_{h.lower()}v(9)" for h in HANDLE_TYPES]
        for name in sorted({a.callback for p in used for a in p.args if a.what == "function"}):
            text.append(f"procedure({name}), pointer :: p_{name.lower()}")
        text += ["procedure(MPI_User_function_c), pointer :: p_large", "procedure(MPI_Datarep_conversion_function_c), pointer :: p_convert"]
    elif INTERFACE == "mpi":
        text.append("type(MPI_Status) :: s, sv(9)")
    else:
        text.append("integer :: s(8), sv(8,9)")
    for p in used:
        text += [wrap(line) for line in calls(p)]
    if F08:
        text += [(APART + ("" if WIDE else APART_NARROW)).format(p=prefix) for prefix in ("", "P")]
    text += [f"call {p}MPI_Sizeof({x}, i, err)" for p in ("", "P") for x in ("buf", "i", "r8", "t", "lv", "iv2")] if INTERFACE != "mpif.h" else []
    text += ["end subroutine", "subroutine constants", USES[INTERFACE]]
    count = 0
    for name, wrong in constants():
        text += [f"if ({wrong}) then", f"print *, '{name}'", "stop 1", "end if"]
        count += 1
    text += ["end subroutine"]
    return "\n".join(text) + "\n", len(used), count


def main():
    text, n_procedures, n_constants = program(abi_fortran.load_procedures())
    with tempfile.TemporaryDirectory() as folder:
        source, exe = os.path.join(folder, "every.f90"), os.path.join(folder, "every")
        with open(source, "w") as f:
            f.write(text)
        command = [os.path.abspath(sys.argv[2]), *FLAGS, source, "-o", exe]
        done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            sys.exit("\n".join(done.stdout.splitlines()[:40]))
        if subprocess.run([exe]).returncode:
            sys.exit("a constant has another value")
    if "-v" in os.environ.get("EVERY", ""):
        print(f"{INTERFACE}: {n_procedures} procedures, {n_constants} constants")
    return 0 if n_procedures > 400 and n_constants > 290 else 1


sys.exit(main())
