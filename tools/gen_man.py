#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes the manual pages of the MPI functions from the tables in tools/abi/: a page per group.

usage: gen_man.py SOURCES OUT

SOURCES  the folder with the implementation (src/mpi): functions without one are marked as unsupported.
         include/mpi-ext.h, two folders up, has the page of what is beside MPI.
OUT      gets weft_mpi_GROUP.3, and for each function a page that leads there: `man MPI_Send` works.
"""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "abi"))

import abi_table  # noqa: E402

# (page, title, names without MPI_ that belong there), the first that fits.
GROUPS = [
    ("tool", "the tool interface", r"T_|Pcontrol"),
    ("file", "files", r"File_|Register_datarep"),
    ("win", "one-sided communication", r"Win_|Put|Get(_c)?$|Get_accumulate|Accumulate|Rput|Rget|Raccumulate|"
                                       r"Fetch_and_op|Compare_and_swap|Alloc_mem|Free_mem"),
    ("part", "partitioned communication", r"P(send|recv)_init|Pready|Parrived"),
    ("topo", "process topologies", r"Cart|Graph|Dist_graph|Topo_test|Dims_create|Neighbor|Ineighbor"),
    ("coll", "collective communication", r"(?i:I?(Barrier|Bcast|Gather|Scatter|Allgather|Alltoall|Reduce|Allreduce|Scan|"
                                         r"Exscan))|Op_"),
    ("spawn", "processes that come and go", r"Comm_(spawn|accept|connect|disconnect|get_parent|join)|Open_port|Close_port|"
                                            r"Publish|Unpublish|Lookup"),
    ("attr", "attributes and error handlers", r"(Comm|Type|Win)_(create_keyval|free_keyval|set_attr|get_attr|delete_attr)|Attr_|"
                                              r"Keyval|.*rrhandler|Error_|Add_error|Remove_error|Comm_call"),
    ("comm", "communicators and groups", r"Comm_|Group_|Intercomm"),
    ("type", "datatypes", r"Type_|Pack|Unpack|Get_address|Get_count|Get_elements|Status_|Aint_|Address|Sizeof"),
    ("request", "requests", r"Wait|Test|Request_|Cancel|Start|Grequest"),
    ("p2p", "point-to-point communication", r"I?[bsr]?(send|Send)|Bsend|Ssend|Rsend|Isend|Ibsend|Issend|Irsend|Recv|Irecv|Sendrecv|"
                                            r"Isendrecv|Probe|Iprobe|Mprobe|Improbe|Mrecv|Imrecv|Message_|Buffer_|.*_buffer"),
    ("env", "start, end, sessions, info and inquiry", r".*"),
]


def group_of(short):
    return next(name for name, _, pattern in GROUPS if re.match(pattern, short))


def escape(text):
    return text.replace("\\", "\\e").replace("-", "\\-")


def page(name, title, functions, implemented):
    out = ['.\\" SPDX-License-Identifier: BSD-3-Clause', f".TH WEFT_MPI_{name.upper()} 3 \"\" weft weft", ".SH NAME",
           f"weft_mpi_{name} \\- MPI: {title}", ".SH SYNOPSIS", ".B #include <mpi.h>", ".nf"]
    missing = []
    for f in functions:
        out.append(escape(f.prototype("MPI_" + f.short) + ";"))
        if f.impl[len("weft_mpi_"):] not in implemented:
            missing.append("MPI_" + f.short)
    out += [".fi", ".SH DESCRIPTION",
            "What each function does is the MPI standard's to say; these are its names and parameters in the standard ABI. A name that ends in",
            ".B _c",
            "counts in MPI_Count. Each exists with PMPI_ as well. Results are MPI_SUCCESS or an error code, whose class MPI_Error_class gives."]
    old = [f"MPI_{f.short} ({f.note})" for f in functions if f.note]
    if old:
        out += [".SH NOTES", escape(", ".join(old)) + "."]
    if missing:
        out += [".SH UNSUPPORTED", "Answered by the class MPI_ERR_UNSUPPORTED_OPERATION: " + escape(", ".join(missing)) + "."]
    out += [".SH SEE ALSO", ".BR weft (1),", ".BR mpiexec (1),", ".BR mpicc (1)"]
    return "\n".join(out) + "\n"


def extension_page(header):
    """The page of mpi-ext.h: its prototypes and its opening comment; and the names on it."""
    with open(header) as f:
        text = f.read()
    found = re.findall(r"WEFT_MPIX_API (int (MPIX_\w+)\([^;]*\));", text)
    said = re.search(r"\* mpi-ext\.h - (.*?)\n \*/", text, re.S).group(1)
    out = ['.\\" SPDX-License-Identifier: BSD-3-Clause', '.TH WEFT_MPI_EXT 3 "" weft weft', ".SH NAME",
           "weft_mpi_ext \\- beside MPI: continuations, puts that notify and other names of mpi-ext.h", ".SH SYNOPSIS",
           ".B #include <mpi-ext.h>", ".nf"]
    out += [escape(re.sub(r"\s+", " ", prototype) + ";") for prototype, _ in found]
    out += [".fi", ".SH DESCRIPTION", ".nf"]
    out += [escape(re.sub(r"^ \* ?", "", line)) for line in said.split("\n")]
    out += [".fi", "Each exists with PMPIX_ as well. The comments of the header say what each does, its flags and info keys.",
            ".SH SEE ALSO", ".BR weft (1),", ".BR mpicc (1)"]
    return "\n".join(out) + "\n", [name for _, name in found]


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__.strip())
    sources, out = sys.argv[1:]
    functions = [f for f in abi_table.load_functions().values() if f.standard]
    implemented = abi_table.scan_implemented(sources)
    implemented.update(form for n in list(implemented) if n.endswith("_args")
                       for form in abi_table.coll_forms(n[:-len("_args")]))
    os.makedirs(out, exist_ok=True)
    for name, title, _ in GROUPS:
        members = [f for f in functions if group_of(f.short) == name]
        with open(os.path.join(out, f"weft_mpi_{name}.3"), "w") as f:
            f.write(page(name, title, members, implemented))
        for m in members:
            with open(os.path.join(out, f"MPI_{m.short}.3"), "w") as f:
                f.write(f".so man3/weft_mpi_{name}.3\n")
    text, names = extension_page(os.path.join(sources, "..", "..", "include", "mpi-ext.h"))
    with open(os.path.join(out, "weft_mpi_ext.3"), "w") as f:
        f.write(text)
    for name in names:
        with open(os.path.join(out, f"{name}.3"), "w") as f:
            f.write(".so man3/weft_mpi_ext.3\n")


if __name__ == "__main__":
    main()
