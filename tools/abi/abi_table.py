# SPDX-License-Identifier: BSD-3-Clause
"""The ABI's tables as objects: functions with parsed parameters, constants, types, tiers."""
import csv
import glob
import os
import re

HERE = os.path.dirname(os.path.abspath(__file__))


class Param:
    """One parameter: `const int recvcounts[]` has type `const int`, name, suffix `[]`."""

    def __init__(self, text):
        self.text = text
        self.kind = None  # the standard's word for what the argument is, where it has one
        self.direction = None
        if text == "...":
            self.type, self.name, self.suffix = "...", "...", ""
            return
        m = re.match(r"^(.*?)(\w+)((?:\[\d*\])*)$", text)
        self.type = m.group(1).strip()
        self.name = m.group(2)
        self.suffix = m.group(3)

    @property
    def declared(self):
        """In a prototype.  MPI_UNWEIGHTED and MPI_WEIGHTS_EMPTY lie nowhere: gcc warns of a program that gives them for an array."""
        if self.is_array and self.name.endswith("weights"):
            return f"{self.type} *{self.name}"
        return self.text

    @property
    def is_const(self):
        return self.type.startswith("const ")

    @property
    def base(self):
        """The type without const and with arrays as they are."""
        return self.type.replace("const ", "", 1)

    @property
    def is_array(self):
        return self.suffix != ""


class Function:
    def __init__(self, row, tier):
        self.name = row["name"]
        self.returns = row["returns"]
        self.note = row["note"]
        self.tier = tier
        self.standard = not row["note"].startswith("not in MPI")  # else only exported
        text = row["parameters"]
        self.params = [] if text == "void" else [Param(p) for p in text.split(", ")]
        self.partner = None  # the large-count form, if this is the int form
        self.impl = None  # whose weft_mpi_ name implements it
        self.impl_params = None

    @property
    def short(self):
        return self.name[len("MPI_"):]

    @property
    def tool(self):
        return self.name.startswith("MPI_T_")

    def prototype(self, name=None):
        args = ", ".join(p.declared for p in self.params) or "void"
        star = "" if self.returns.endswith("*") else " "
        return f"{self.returns}{star}{name or self.name}({args})"

    def has(self, name):
        return any(p.name == name for p in self.params)

    def param(self, name):
        return next((p for p in self.params if p.name == name), None)

    def inputs(self, *kinds):
        """The parameters of those kinds that the caller gives one value for."""
        return [p for p in self.params if p.kind in kinds and p.direction == "in" and not p.is_array]


# Both forms take a callback of another type: each has an implementation of its own.
OWN_C_FORM = {"MPI_Op_create", "MPI_Register_datarep"}


def rows(name):
    with open(os.path.join(HERE, name), newline="") as f:
        return list(csv.DictReader(f, delimiter="\t"))


# Parameters whose names differ between the two tables, where their kinds matter.
NAMED_OTHERWISE = {("MPI_Precv_init", "dest"): "source"}


def add_kinds(table):
    """Both forms of a function share the kinds of its parameters."""
    kinds = {(r["procedure"], r["parameter"]): r for r in rows("fortran.tsv")}
    for f in table.values():
        procedure = f.name if (f.name, f.params[0].name if f.params else "") in kinds else re.sub(r"_c$", "", f.name)
        for p in f.params:
            row = kinds.get((procedure, NAMED_OTHERWISE.get((procedure, p.name), p.name)))
            if row:
                p.kind, p.direction = row["kind"], row["direction"]


def load_functions():
    tiers = {r["name"]: r["tier"] for r in rows("usage.tsv")}
    table = {}
    for r in rows("functions.tsv"):
        base = re.sub(r"_[cx]$", "", r["name"])
        table[r["name"]] = Function(r, tiers.get(r["name"], tiers.get(base, "T3")))
    add_kinds(table)
    for f in table.values():
        base, large = f, None
        if re.search(r"_[cx]$", f.name) and f.name[:-2] in table and f.name[:-2] not in OWN_C_FORM:
            base = table[f.name[:-2]]
        if base.name not in OWN_C_FORM:
            large = table.get(base.name + "_c")
        f.impl = "weft_mpi_" + base.short
        f.impl_params = (large or base).params
        f.large = large or base
    return table


def load_constants():
    return [(r["name"], r["type"], r["value"]) for r in rows("constants.tsv")]


def load_types():
    return [(r["base"], r["declarator"]) for r in rows("types.tsv")]


def coll_forms(name):
    """The blocking, nonblocking and persistent form of a collective: Scan, Iscan, Scan_init."""
    return [name, "I" + name[0].lower() + name[1:], name + "_init"]


def scan_implemented(folder):
    """Names X of the functions weft_mpi_X defined at column 0 in the C files of folder and its subfolders."""
    found = set()
    pattern = re.compile(r"^(?:int|double|MPI_\w+)\s\**weft_mpi_(\w+)\(", re.M)
    for path in sorted(glob.glob(os.path.join(folder, "**", "*.c"), recursive=True)):
        with open(path) as f:
            text = f.read()
        for m in pattern.finditer(text):
            # A definition, not a prototype: its parameter list is followed by a brace.
            depth, i = 1, m.end()
            while depth and i < len(text):
                depth += {"(": 1, ")": -1}.get(text[i], 0)
                i += 1
            if text[i:].lstrip().startswith("{"):
                found.add(m.group(1))
    return found
