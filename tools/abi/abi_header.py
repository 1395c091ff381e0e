# SPDX-License-Identifier: BSD-3-Clause
"""Writes mpi.h from the tables."""
import re

import abi_compat

TOP = """/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpi.h - the MPI 5.0 standard ABI: types, constants, functions.  Generated from tools/abi/.
 *
 * A program built with this header runs with any library libmpi_abi.so.1 of the same ABI.  Inline functions at the
 * end give what the ABI leaves out.
 */
#ifndef MPI_H_ABI
#define MPI_H_ABI

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
"""

BOTTOM = """
#ifdef __cplusplus
}
#endif

#endif /* MPI_H_ABI */
"""


def typedef(base, declarator):
    if base.startswith("struct{"):
        members = "".join(f"\t{m.strip()};\n" for m in base[len("struct{"):-1].split(";") if m.strip())
        return f"typedef struct {declarator} {{\n{members}}} {declarator};"
    star = base.endswith("*")
    return f"typedef {base[:-1] + ' *' if star else base + ' '}{declarator};"


def enums(constants):
    """Types that are only known by their constants."""
    out = []
    for name in ("MPI_T_cb_safety", "MPI_T_source_order"):
        members = ",\n".join(f"\t{n} = {v}" for n, t, v in constants if t == name)
        out.append(f"typedef enum {name} {{\n{members}\n}} {name};")
    return out


def define(name, kind, value):
    if kind == "alias":
        text = value
    elif kind == "int":
        text = f"({value})" if value.startswith("-") else value
    else:
        spaced = re.sub(r"([*]+)$", r" \1", kind)
        text = f"(({spaced}){value})"
    return f"#define {name} {text}"


def write_header(functions, constants, types):
    out = [TOP]
    out += enums(constants)
    out.append("")
    out += [typedef(b, d) for b, d in types]
    out.append("")
    out += [define(*c) for c in constants if c[1] not in ("MPI_T_cb_safety", "MPI_T_source_order")]
    for prefix in ("MPI_", "PMPI_"):
        out.append("")
        out += [f.prototype(prefix + f.short) + ";" for f in functions.values() if f.standard]
    out.append(abi_compat.write_compat(functions))
    out.append(BOTTOM)
    return "\n".join(out)
