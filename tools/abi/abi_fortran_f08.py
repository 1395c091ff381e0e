# SPDX-License-Identifier: BSD-3-Clause
"""Writes what mpi_f08 adds: entry points that take descriptors, large-count forms, and the module's source.

A procedure without a buffer has the same symbol as in mpif.h (mpi_comm_rank_): a handle of a derived type is passed as its
INTEGER is.  One with buffers is mpi_x_f08ts_, which takes descriptors and calls mpi_x_.  The large-count form is mpi_x_c_.
"""
import re

from abi_fortran import HANDLES, SENTINELS, sentinel_common
from abi_fortran_entry import COUNTS_FROM_ONE, Body, c_type, result
from abi_fortran_text import CHOICE, HANDLE_TYPES, KINDS, RESULTS, TOP, shape, wrap, write_commons, write_sizeof

# Whose buffers go with a count and a datatype; (buffer, count, datatype).
TRIPLES = [("buf", "count", "datatype"), ("sendbuf", "sendcount", "sendtype"), ("recvbuf", "recvcount", "recvtype"),
           ("origin_addr", "origin_count", "origin_datatype"), ("result_addr", "result_count", "result_datatype")]
PACK = {"MPI_Pack": ("inbuf", "incount", "datatype"), "MPI_Unpack": ("outbuf", "outcount", "datatype"),
        "MPI_Pack_external": ("inbuf", "incount", "datatype"), "MPI_Unpack_external": ("outbuf", "outcount", "datatype")}
TYPED = re.compile(r"^MPI_(I?[BSR]?send|I?recv|Send_init|[BSR]send_init|Recv_init|I?mrecv|I?sendrecv(_replace)?|R?put|R?get|"
                   r"R?(get_)?accumulate|Psend_init|Precv_init|File_\w+)$", re.I)
SPACED = {"MPI_Psend_init", "MPI_Precv_init"}
# Only where the buffer begins counts.
ADDRESS = re.compile(r"^MPI_(Get_address|Free_mem|Win_create|Win_attach|Win_detach|\w*_?attach_buffer|Buffer_attach|Fetch_and_op|"
                     r"Compare_and_swap|File_\w+_end|Abi_\w+|F_sync_reg)$")
REQUEST = re.compile(r"^MPI_(I|\w+_init$)")
# By hand, in entry/f08.c: a buffer comes back as a TYPE(C_PTR).
DETACH = re.compile(r"^MPI_(Buffer_detach|\w+_detach_buffer)$")
# The forms for large counts of these differ by more than types.
NO_LARGE = {"MPI_Op_create", "MPI_Register_datarep", "MPI_Type_get_envelope", "MPI_Type_get_contents"}


NO_DESCRIPTORS = """! Compilers that cannot hand over a descriptor (flang before 19), or fail at it (gfortran before 12), give addresses, as with the
! mpi module: a section is a copy that lives as long as the call.
#if (defined(__flang_major__) && __flang_major__ < 19) || (defined(__GFORTRAN__) && __GNUC__ < 12)
#define WEFT_F_NO_DESCRIPTORS
#endif
"""


def within(p):
    return p.within("f08") and not p.callback and not p.predefined and p.name != "MPI_Sizeof"


def has_buffers(p):
    return any(a.what == "buffer" and a.kind in ("BUFFER", "LOGICAL_VOID") for a in p.args)


def has_large(p):
    return bool(p.c_large) and p.name not in NO_LARGE and not DETACH.match(p.name) and any(a.poly for a in p.args)


# ---- large counts -------------------------------------------------------------------------------

class LargeBody(Body):
    """The entry point mpi_x_c_: counts are INTEGER(KIND=MPI_COUNT_KIND); all others are INTEGERs of 4 bytes."""

    def add_int(self, a):
        if not a.poly:
            super().add_int(a)
        elif a.param.is_array or a.output:
            self.put(f"(void *)(uintptr_t){a.name}")
        else:
            self.put("*" + a.name)

    def text(self):
        p = self.p
        for a in p.args:
            self.add(a)
        self.decls.sort(key=lambda d: " = IN_HANDLE(" not in d)
        if COUNTS_FROM_ONE.match(p.name) or len(self.args) != len(p.c_large.params) or result(p) != "void":
            raise NotImplementedError(p.name)
        out = [f"void WEFT_F_NAMED({p.lower}_c)({large_signature(p)})", "{"]
        if self.temp:
            out.append("\tstruct weft_f_temp temp;\n\n\tweft_f_temp_open(&temp);")
        call = f"CALL({p.short}_c)({', '.join(self.args)})"
        if self.temp:
            call = f"temp.failed ? weft_f_no_memory() : {call}"
        out += self.decls + [f"\tint code = {call};"]
        if self.stores:
            out += ["\tif (!code) {"] + self.stores + ["\t}"]
        if self.temp:
            out.append("\tweft_f_temp_close(&temp);")
        return out + ["\tERROR_OUT(ierror, code);", "}"]


def large_type(a):
    if not a.poly:
        return c_type(a)
    return ("" if a.output else "const ") + "MPI_Count *"


def large_signature(p):
    parts = [large_type(a) + a.name for a in p.args] + ["I *ierror"]
    return ", ".join(parts + [f"size_t {a.name}_len" for a in p.args if a.what.startswith("string")])


# ---- descriptors --------------------------------------------------------------------------------

def triples(p):
    """{buffer: (count, datatype)} of the arguments that become typed."""
    if p.name in PACK:
        buf, count, datatype = PACK[p.name]
        return {buf: (count, datatype)}
    if not TYPED.match(p.name):
        return {}
    return {b: (c, d) for b, c, d in TRIPLES if p.arg(b) and p.arg(c) and p.arg(d)}


def raised_on(p):
    """Arguments for what raises an error of the binding's own: the kind of object, its handle, the routine."""
    kinds = {"COMMUNICATOR": "COMM", "WINDOW": "WIN", "FILE": "FILE"}
    for a in p.args:
        if a.kind in kinds and a.input and not a.array:
            return f'WEFT_LANG_{kinds[a.kind]}, {a.name}, "{p.name}"'
    return f'WEFT_LANG_NOTHING, NULL, "{p.name}"'


def descriptor_call(p, name, replaced, ierror):
    args = [replaced.get(a.name, f"{a.name}->base" if a.what in ("buffer", "string") and a.kind != "C_BUFFER" else a.name) for a in p.args]
    args += [ierror] if p.has_ierror else []
    args += [f"{a.name}->elem" for a in p.args if a.what == "string"]
    return f"WEFT_F_NAMED({name})({', '.join(args)});"


def descriptor_body(p, large):
    """What is contiguous goes on as addresses, in the same call; the rest is slower."""
    name = p.lower + ("_c" if large else "")
    typed = triples(p)
    buffers = [a for a in p.args if a.kind in ("BUFFER", "LOGICAL_VOID")]
    parts = [("const weft_f_section *" if a in buffers or a.what == "string" else "void *") + a.name for a in p.args]
    out = [f"void WEFT_F_NAMED({name}_f08ts)({', '.join(parts + (['void *ierror'] if p.has_ierror else []))})", "{"]
    fast = descriptor_call(p, name, {}, "ierror")
    if ADDRESS.match(p.name):
        return out + ["\t" + fast, "}"]
    out += [f"\tif ({' && '.join(f'weft_f_contiguous({a.name})' for a in buffers)}) {{", "\t\t" + fast, "\t\treturn;", "\t}",
            "\tint64_t code = 0;"]
    replaced, closes, copied = {}, [], [a for a in buffers if a.name not in typed]
    if typed:
        out.append("\tint bad = 0;")
    for b in typed:
        count, datatype = typed[b]
        wide = "true" if large and p.arg(count).poly or p.arg(count).what == "wide" else "false"
        spaced = "true" if p.name in SPACED else "false"
        out += [f"\tstruct weft_f_typed {b}_t = {{.made = MPI_DATATYPE_NULL}};", "\tif (!bad)",
                f"\t\tbad = weft_f_typed_open(&{b}_t, {b}, {count}, {datatype}, {wide}, {spaced});"]
        closes.append(f"\tweft_f_typed_close(&{b}_t);")
        replaced.update({b: f"{b}_t.buf", count: f"(void *)(uintptr_t){b}_t.count", datatype: f"(void *)(uintptr_t){b}_t.datatype"})
    if copied:
        out.append("\tstruct weft_f_copies copies = {NULL, NULL, 0};")
        out += [f"\tvoid *{a.name}_c = weft_f_copy(&copies, {a.name}, {'true' if a.output else 'false'});" for a in copied]
        replaced.update({a.name: a.name + "_c" for a in copied})
        out += ["\tif (copies.error) {", f"\t\tweft_f_error_out(ierror, weft_f_copies_fail(&copies, {raised_on(p)}));", "\t\treturn;", "\t}"]
    call = descriptor_call(p, name, replaced, "(void *)&code")
    if typed:
        out += ["\tif (bad)", f"\t\tcode = weft_f_raise(bad, {raised_on(p)});", "\telse", "\t\t" + call]
    else:
        out.append("\t" + call)
    out += closes
    if copied:
        keeps = "request" if REQUEST.match(p.name) and p.arg("request") else "NULL"
        out.append(f"\tweft_f_copies_end(&copies, {keeps}, code);")
    return out + (["\tweft_f_error_out(ierror, code);"] if p.has_ierror else []) + ["}"]


def write_entries(procedures):
    """Compiled as MPI_ and PMPI_, with INTEGERs of 4 bytes: what they call looks for those of 8."""
    out = ["/* Generated by tools/gen_fortran.py: entry points of mpi_f08. */", '#include "mpi/fortran/fort.h"',
           '#include "mpi/fortran/section.h"', ""]
    proto, bodies, skipped = [], [], []
    for p in procedures:
        if not within(p):
            continue
        if has_large(p):
            try:
                bodies += LargeBody(p).text() + [""]
            except NotImplementedError:
                skipped.append(p.name + "_c")
        if has_buffers(p):
            for large in (False, True) if has_large(p) else (False,):
                body = descriptor_body(p, large)
                proto.append(body[0] + ";")
                bodies += body + [""]
    large_proto = [line + ";" for line in bodies if line.startswith("void ") and "_f08ts" not in line]
    return "\n".join(out + ["#pragma GCC visibility push(default)"] + proto + large_proto + ["#pragma GCC visibility pop", ""] +
                     bodies), skipped


# ---- the module ---------------------------------------------------------------------------------

def kind_of(a, large):
    if large and a.poly:
        return "(KIND=MPI_COUNT_KIND)"
    return f"(KIND={a.integer_kind})" if a.integer_kind else ""


def intent(a):
    # Constants known by their address may be given for the rest.
    if a.what in ("buffer", "status") or a.kind in ("WEIGHT",) or a.name == "array_of_errcodes":
        return ", intent(in)" if a.direction == "in" and a.what == "buffer" else ""
    if a.kind.startswith("STRING_") or a.array and a.direction != "in":
        return ""
    return f", intent({a.direction})"


def declare(a, large=False, callback=False, address=False):
    n, dim = a.name, shape(a)
    if a.what == "buffer" and address and a.kind in ("BUFFER", "LOGICAL_VOID"):
        return CHOICE.format(name=n)
    if a.what == "function":
        return f"procedure({a.callback}) :: {n}"
    if a.kind in ("C_BUFFER", "C_BUFFER2"):
        return f"type(C_PTR), intent(out) :: {n}"
    if a.kind in ("C_BUFFER3", "C_BUFFER4"):
        return f"type(C_PTR), value :: {n}"
    if a.what == "buffer":
        asynchronous = ", asynchronous" if a.asynchronous else ""
        return f"type(*), dimension(..){intent(a)}{asynchronous} :: {n}"
    how = "" if callback else intent(a)
    if a.what == "handle":
        return f"type(MPI_{'Datatype' if HANDLES[a.kind] == 'Type' else HANDLES[a.kind]}){how} :: {n}{dim}"
    if a.kind == "F90_STATUS":
        return f"integer :: {n}(MPI_STATUS_SIZE)"
    if a.what == "status":
        return f"type(MPI_Status) :: {n}{'(*)' if a.array else ''}"
    if a.what.startswith("string"):
        return f"character(len=*){how} :: {n}{dim}"
    if a.what == "logical":
        return f"logical{how} :: {n}{dim}"
    if callback and a.kind in ("OFFSET", "DISPOFFSET_SMALL"):
        return f"integer(KIND={'MPI_OFFSET_KIND' if a.kind == 'OFFSET' else 'MPI_ADDRESS_KIND'}) :: {n}"
    return f"integer{kind_of(a, large)}{how} :: {n}{dim}"


def interface_body(p, name, large=False, bind=None):
    names = [a.name for a in p.args] + (["ierror"] if p.has_ierror else [])
    word = "function" if p.returns in RESULTS else "subroutine"
    tail = f' bind(C, name="{bind}")' if bind else ""
    # A CHARACTER comes as a descriptor, too; not every compiler lets a bind(C) interface say CHARACTER(*).
    body = ["import"] + [f"type(*), dimension(..), intent(in) :: {a.name}" if bind and a.what == "string"
                         else declare(a, large, address=not bind) for a in p.args]
    if p.has_ierror:
        body.append("integer, optional, intent(out) :: ierror")
    if word == "function":
        body.append(f"{RESULTS[p.returns]} :: {name}")
    head = wrap(f"{word} {name}({', '.join(names)})")
    if tail:
        head = head[:-1] + [head[-1] + " &", "  " + tail.strip()]
    return head + body + [f"end {word}"]


# Large forms by hand, in entry/large.c.  Two have names of their own, since procedures whose arguments are functions of two kinds cannot
# be told apart; the others have more arguments than the ordinary forms, which is not enough where all of them are of one kind.
LARGE_CALLBACKS = """subroutine MPI_User_function_c(invec, inoutvec, len, datatype)
import
type(C_PTR), value :: invec, inoutvec
integer(KIND=MPI_COUNT_KIND) :: len
type(MPI_Datatype) :: datatype
end subroutine
subroutine MPI_Datarep_conversion_function_c(userbuf, datatype, count, filebuf, position, extra_state, ierror)
import
type(C_PTR), value :: userbuf, filebuf
type(MPI_Datatype) :: datatype
integer(KIND=MPI_COUNT_KIND) :: count
integer(KIND=MPI_OFFSET_KIND) :: position
integer(KIND=MPI_ADDRESS_KIND) :: extra_state
integer :: ierror
end subroutine"""
LARGE_NAMED = """interface
subroutine {p}MPI_Op_create_c(user_fn, commute, op, ierror)
import
procedure(MPI_User_function_c) :: user_fn
logical, intent(in) :: commute
type(MPI_Op), intent(out) :: op
integer, optional, intent(out) :: ierror
end subroutine
subroutine {p}MPI_Register_datarep_c(datarep, read_conversion_fn, write_conversion_fn, dtype_file_extent_fn, &
  extra_state, ierror)
import
character(len=*), intent(in) :: datarep
procedure(MPI_Datarep_conversion_function_c) :: read_conversion_fn, write_conversion_fn
procedure(MPI_Datarep_extent_function) :: dtype_file_extent_fn
integer(KIND=MPI_ADDRESS_KIND), intent(in) :: extra_state
integer, optional, intent(out) :: ierror
end subroutine
end interface
#ifdef WEFT_F_INTEGER8
interface
#else
interface {p}MPI_Type_get_envelope
#endif
subroutine {p}MPI_Type_get_envelope_c(datatype, num_integers, num_addresses, num_large_counts, num_datatypes, combiner, &
  ierror)
import
type(MPI_Datatype), intent(in) :: datatype
integer(KIND=MPI_COUNT_KIND), intent(out) :: num_integers, num_addresses, num_large_counts, num_datatypes
integer, intent(out) :: combiner
integer, optional, intent(out) :: ierror
end subroutine
end interface
#ifdef WEFT_F_INTEGER8
interface
#else
interface {p}MPI_Type_get_contents
#endif
subroutine {p}MPI_Type_get_contents_c(datatype, max_integers, max_addresses, max_large_counts, max_datatypes, &
  array_of_integers, array_of_addresses, array_of_large_counts, array_of_datatypes, ierror)
import
type(MPI_Datatype), intent(in) :: datatype
integer(KIND=MPI_COUNT_KIND), intent(in) :: max_integers, max_addresses, max_large_counts, max_datatypes
integer, intent(out) :: array_of_integers(max_integers)
integer(KIND=MPI_ADDRESS_KIND), intent(out) :: array_of_addresses(max_addresses)
integer(KIND=MPI_COUNT_KIND), intent(out) :: array_of_large_counts(max_large_counts)
type(MPI_Datatype), intent(out) :: array_of_datatypes(max_datatypes)
integer, optional, intent(out) :: ierror
end subroutine
end interface"""


def callback_interfaces(procedures):
    out = ["abstract interface"] + LARGE_CALLBACKS.split("\n")
    for p in procedures:
        if not p.callback or not p.within("f08"):
            continue
        names = [a.name for a in p.args] + (["ierror"] if p.has_ierror else [])
        out += wrap(f"subroutine {p.name}({', '.join(names)})") + ["import"]
        out += [declare(a, callback=True) for a in p.args] + (["integer :: ierror"] if p.has_ierror else []) + ["end subroutine"]
    return out + ["end interface"]


def constants_text(constants):
    out, last, names = [], [], {name for name, _, _ in SENTINELS}
    for c in constants:
        if c.name in names or not c.value or not c.f08:
            continue
        value = KINDS.get(c.value, c.value)
        if c.c[4:] in HANDLE_TYPES and c.f90 == "INTEGER":
            out.append(f"type({c.c}), parameter :: {c.name} = {c.c}({value})")
        elif c.f90.startswith("INTEGER(KIND"):
            last.append(f"{c.f90}, parameter :: {c.name} = {value}")
        elif c.f08 == "INTEGER":
            out.append(f"integer, parameter :: {c.name} = {value}")
    out += last + ["integer, parameter :: MPI_INTEGER_KIND = kind(0)"]
    for old, value in (("#ifdef WEFT_F_NO_DESCRIPTORS", ".false."), ("#else", ".true.")):
        out.append(old)
        out += [f"logical, parameter :: {name} = {value}"
                for name in ("MPI_SUBARRAYS_SUPPORTED", "MPI_ASYNC_PROTECTS_NONBLOCKING")]
    return out + ["#endif"]


def commons_text():
    """As in mpif.h, with the types that mpi_f08 has."""
    out = []
    for line in write_commons():
        line = line.strip()
        line = re.sub(r"^INTEGER MPI_STATUS_IGNORE\(8\)", "type(MPI_Status) :: MPI_STATUS_IGNORE", line)
        line = re.sub(r"^INTEGER MPI_STATUSES_IGNORE\(8,1\)", "type(MPI_Status) :: MPI_STATUSES_IGNORE(1)", line)
        out.append(line)
    return out


def operators():
    out = []
    for op, c in (("==", "eq"), ("/=", "ne")):
        out.append(f"interface operator({op})")
        for t in HANDLE_TYPES:
            name = f"weft_f_{c}_{t.lower()}"
            out += [f"pure function {name}(a, b)", "import", f"type(MPI_{t}), intent(in) :: a, b", f"logical :: {name}",
                    "end function"]
        out.append("end interface")
    return out


def write_f08(procedures, constants):
    out = [TOP.format(what="mpi_f08 - the module of `use mpi_f08`."), NO_DESCRIPTORS, "module mpi_f08",
           "use, intrinsic :: iso_c_binding, only : C_PTR", "use weft_mpi_types", "implicit none"]
    out += constants_text(constants) + commons_text() + callback_interfaces(procedures) + operators()
    for p in procedures:
        if p.predefined and p.within("f08"):
            out.append(f"procedure({p.predefined}) :: {p.name}")
    out.append("procedure(MPI_Datarep_conversion_function_c) :: MPI_CONVERSION_FN_NULL_C")
    for prefix in ("", "P"):
        for p in procedures:
            if not within(p):
                continue
            name, low = prefix + p.name, (prefix + p.name).lower()
            large = has_large(p)
            if has_buffers(p):
                out += ["#ifdef WEFT_F_NO_DESCRIPTORS", f"interface {name}"] + interface_body(p, name)
                if large:
                    out += ["#ifndef WEFT_F_INTEGER8"] + interface_body(p, name + "_c", True) + ["#endif"]
                out += ["#else", f"interface {name}"]
                out += interface_body(p, name + "_f08ts", bind=low + "_f08ts_")
                if large:
                    out += ["#ifndef WEFT_F_INTEGER8"] + interface_body(p, name + "_c_f08ts", True, low + "_c_f08ts_") + ["#endif"]
                out.append("#endif")
            elif DETACH.match(p.name):
                out += [f"interface {name}"] + interface_body(p, name + "_f08")
            else:
                out += [f"interface {name}"] + interface_body(p, name)
                if large:
                    out += ["#ifndef WEFT_F_INTEGER8"] + interface_body(p, name + "_c", True) + ["#endif"]
            out.append("end interface")
        out += write_sizeof(prefix) + LARGE_NAMED.format(p=prefix).split("\n")
    return "\n".join(out + ["private :: C_PTR", "end module"]) + "\n"
