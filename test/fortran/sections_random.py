#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes a program in Fortran that tries random array sections as buffers of mpi_f08.

usage: sections_random.py SEED SHAPES PROGRAM.f90
       mpiexec -n RANKS PROGRAM [SEED [ROUNDS]]

SHAPES arrays are declared as SEED says: rank, element, and whether allocatable, a pointer to a section, of assumed shape or
size; elements may be parts (a component, a real part, a substring).  When it runs, each round draws an array, a section of it
for each buffer (any stride, of either sign, perhaps of no element), a datatype and a routine.  What the routine does with the
sections is compared with what it does with copies of them without gaps; nothing else in the array may change, and for messages
MPI_Pack and MPI_Unpack on those copies must say the same.  More ranks than two draw collectives only.
"""
import random
import sys

# element: declaration, MPI's basic datatype, elements of that in one, class
ELEMENTS = {
    "i1": ("integer(1)", "MPI_INTEGER1", 1, "integer"),
    "i2": ("integer(2)", "MPI_INTEGER2", 1, "integer"),
    "i4": ("integer(4)", "MPI_INTEGER4", 1, "integer"),
    "i8": ("integer(8)", "MPI_INTEGER8", 1, "integer"),
    "l1": ("logical(1)", "MPI_LOGICAL1", 1, "logical"),
    "l4": ("logical(4)", "MPI_LOGICAL4", 1, "logical"),
    "l8": ("logical(8)", "MPI_LOGICAL8", 1, "logical"),
    "r4": ("real(4)", "MPI_REAL4", 1, "real"),
    "r8": ("real(8)", "MPI_REAL8", 1, "real"),
    "c4": ("complex(4)", "MPI_COMPLEX8", 1, "complex"),
    "c8": ("complex(8)", "MPI_COMPLEX16", 1, "complex"),
    "c8parts": ("complex(8)", "MPI_REAL8", 2, "complex"),
    "s5": ("character(len=5)", "MPI_CHARACTER", 5, "text"),
    "s1": ("character(len=1)", "MPI_CHARACTER", 1, "text"),
    "body": ("type(body)", "body_type", 1, "body"),
}
# A part of an element: (the whole's element, how it is written, the part's element)
PARTS = {
    "body_x": ("body", "%x", "r8"),
    "body_tag": ("body", "%tag", "i1"),
    "real_part": ("c4", "%re", "r4"),
    "substring": ("s5", "(2:4)", "s3"),
}
ELEMENTS["s3"] = ("character(len=3)", "MPI_CHARACTER", 3, "text")
KINDS = ("plain", "allocatable", "pointer", "shape", "size")
EDGE = {1: 40, 2: 9, 3: 6, 4: 4, 5: 3, 6: 3, 7: 2}


# Collectives and their arguments: blocking, non-blocking and persistent.
COLLECTIVES = {
    "Bcast": "y, c%n, c%t, c%root",
    "Gather": "x, share, c%t, y, share, c%t, c%root",
    "Gatherv": "x, counts(me), c%t, y, counts, displs, c%t, c%root",
    "Scatter": "x, share, c%t, y, share, c%t, c%root",
    "Scatterv": "x, counts, displs, c%t, y, counts(me), c%t, c%root",
    "Allgather": "x, share, c%t, y, share, c%t",
    "Allgatherv": "x, counts(me), c%t, y, counts, displs, c%t",
    "Alltoall": "x, share, c%t, y, share, c%t",
    "Alltoallv": "x, own, places, c%t, y, own, places, c%t",
    "Alltoallw": "x, own, bytes, types, y, own, bytes, types",
    "Neighbor_alltoall": "x, half, c%t, y, half, c%t",
    "Neighbor_alltoallw": "x, both, far, types, y, both, far, types",
    "Reduce": "x, y, c%n, c%t, c%op, c%root",
    "Allreduce": "x, y, c%n, c%t, c%op",
    "Reduce_scatter": "x, y, counts, c%t, c%op",
    "Reduce_scatter_block": "x, y, share, c%t, c%op",
    "Scan": "x, y, c%n, c%t, c%op",
    "Exscan": "x, y, c%n, c%t, c%op",
}


def collective():
    out = """  subroutine collective(c, x, y)
    type(choice), intent(in) :: c
    type(*), dimension(..), asynchronous :: x, y
    integer, asynchronous :: share, half, both(0:1)
    integer, dimension(0:ranks - 1), asynchronous :: counts, displs, own, places, bytes
    integer(MPI_ADDRESS_KIND), asynchronous :: far(0:1)
    type(MPI_Datatype), asynchronous :: types(0:ranks - 1)
    type(MPI_Request) :: r
    integer :: rest
    share = c%n / ranks
    half = c%n / 2
    rest = c%n - share * ranks
    counts = share
    counts(ranks - 1) = share + rest
    call behind(counts, displs)
    own = share
    own(modulo(1 - me, ranks)) = share + rest ! what one sends, the other expects
    call behind(own, places)
    both = [half, half]
    bytes = int(places * c%extent)
    far = [0_MPI_ADDRESS_KIND, half * c%extent]
    types = c%t
    r = MPI_REQUEST_NULL
    select case (10 * c%routine + c%form)""".split("\n")
    for name, arguments in COLLECTIVES.items():
        comm = "ring" if name.startswith("Neighbor") else "MPI_COMM_WORLD"
        k = FIRST_COLLECTIVE + list(COLLECTIVES).index(name)
        out += [
            f"    case ({10 * k + 1})",
            f"      call MPI_{name}({arguments}, {comm})",
            f"    case ({10 * k + 2})",
            f"      call MPI_I{name.lower()}({arguments}, {comm}, r)",
            f"    case ({10 * k + 3})",
            f"      call MPI_{name}_init({arguments}, {comm}, MPI_INFO_NULL, r)",
            "      call MPI_Start(r)",
        ]
    return "\n".join(out + [
        "    end select",
        "    if (r /= MPI_REQUEST_NULL) call MPI_Wait(r, MPI_STATUS_IGNORE)",
        "    if (c%form == 3) call MPI_Request_free(r)",
        "  end subroutine",
    ])


FIRST_COLLECTIVE = 17


def head(seed, shapes):
    text = open(__file__.replace(".py", ".inc")).read()
    return text.replace("@SHAPES@", str(shapes)).replace("@SEED@", str(seed)).replace("@COLLECTIVE@", collective())


def dims(texts):
    return ", ".join(texts)


def differ(element, a, b):
    cls = element[3]
    if cls == "logical":
        return f"logical(any({a} .neqv. {b}))"
    if cls == "body":
        return f"any({a}%tag /= {b}%tag .or. {a}%x /= {b}%x .or. {a}%n /= {b}%n)"
    return f"any({a} /= {b})"


def wrap(line):
    """Lines of at most 132 characters, as the standard has it."""
    out = []
    while len(line) > 125:
        cut = line.rindex(", ", 0, 125) + 2
        out.append(line[:cut] + "&")
        line = "        " + line[cut:]
    return "\n".join(out + [line])


class Shape:
    def __init__(self, number, rng):
        self.number = number
        self.rank = rng.choice((1, 1, 2, 2, 3, 3, 4, 4, 5, 6, 7))
        self.kind = rng.choice(KINDS)
        self.part = ""
        whole = rng.choice(sorted(set(ELEMENTS) - {"s3"}) + sorted(PARTS))
        element = whole
        if whole in PARTS:
            whole, self.part, element = PARTS[whole]
        self.whole = ELEMENTS[whole]
        self.element = ELEMENTS[element]
        self.lower = [rng.choice((1, 1, 0, -3)) for _ in range(self.rank)]
        self.edge = [max(2, EDGE[self.rank] - rng.randrange(2)) for _ in range(self.rank)]

    def section(self, array, which):
        return f"{array}({dims(f'{which}(1, {d}):{which}(2, {d}):{which}(3, {d})' for d in range(1, self.rank + 1))}){self.part}"

    def bounds(self):
        return dims(f"{lo}:{lo + n - 1}" for lo, n in zip(self.lower, self.edge))

    def body(self):
        """A round on arrays x and y that the caller has declared; w is like y."""
        n = self.number
        colons = dims([":"] * self.rank)
        basic, each, cls = self.element[1:]
        lines = [
            f"    integer :: f(3, {self.rank}), g(3, {self.rank}), m, routine",
            f"    {self.element[0]}, allocatable :: fx(:), fy(:), px(:), py(:), now(:)",
            f"    {self.whole[0]}, allocatable :: w({colons})",
            "    type(choice) :: c",
            f"    call draw_section([{dims(map(str, self.low()))}], [{dims(map(str, self.edge))}], f)",
            f"    call draw_section([{dims(map(str, self.low()))}], [{dims(map(str, self.edge))}], g)",
            f"    fx = [{self.section('x', 'f')}]",
            f"    fy = [{self.section('y', 'g')}]",
            "    px = fx",
            "    py = fy",
            "    m = min(size(fx), size(fy))",
            f"    c = draw_choice(m * {each}, {basic}, storage_size(fx) / 8 / {each}, class_{cls}, {self.rank}, {each})",
            f"    allocate(w({self.like()}), source=y)",
            f"    call route(c, {self.section('x', 'f')}, {self.section('y', 'g')})",
            "    call route(c, fx, fy)",
            f"    {self.section('w', 'g')} = reshape(fy, shape({self.section('w', 'g')}))",
            f"    call judge(.not. {differ(self.whole, 'y', 'w')}, c, {n}, 'what was received', f, g)",
            f"    now = [{self.section('x', 'f')}]",
            f"    call judge(.not. {differ(self.element, 'px', 'now')}, c, {n}, 'what was sent has changed', f, g)",
            "    if (c%message) then",
            "      call by_hand(c, px, py)",
            f"      call judge(.not. {differ(self.element, 'py', 'fy')}, c, {n}, 'not as packed', f, g)",
            "    end if",
            "    call choice_end(c)",
        ]
        return lines

    def low(self):
        """Lower bounds as the code that draws sections sees them."""
        return [1] * self.rank if self.kind in ("shape",) else self.lower

    def like(self):
        return dims(f"{lo}:{lo + n - 1}" for lo, n in zip(self.low(), self.edge))

    def fill(self, array, base):
        """Assignments that give each element of `array` a value of its own."""
        cls = self.whole[3]
        loops, ends = [], []
        pad = "    "
        for d in range(self.rank, 0, -1):
            loops.append(f"{pad}do i{d} = lbound({array}, {d}), lbound({array}, {d}) + {self.edge[d - 1] - 1}")
            ends.insert(0, f"{pad}end do")
            pad += "  "
        at = f"{array}({dims(f'i{d}' for d in range(1, self.rank + 1))})"
        v = f"value({base})"
        kind = self.whole[0][self.whole[0].find("(") + 1:-1]
        value = {
            "integer": f"int({v}, {kind})" if kind != "1" else f"int(mod({v}, 128), 1)",
            "logical": f"logical(mod({v}, 2) == 0, {kind})",
            "real": f"real({v}, {kind})",
            "complex": f"cmplx({v}, {v}, {kind})",
            "text": f"text_of({v})",
            "body": f"body(int(mod({v}, 128), 1), real({v}, 8), int({v}, 2))",
        }[cls]
        if cls == "integer" and kind == "2":
            value = f"int(mod({v}, 32768), 2)"
        return loops + [f"{pad}{at} = {value}"] + ends

    def source(self):
        n, rank = self.number, self.rank
        index = "    integer :: " + dims(f"i{d}" for d in range(1, rank + 1))
        ty, colons = self.whole[0], dims([":"] * rank)
        out = [f"  subroutine shape_{n}()"]
        if self.kind == "plain":
            out += [f"    {ty}, asynchronous :: x({self.bounds()}), y({self.bounds()})"]
        elif self.kind == "allocatable":
            out += [f"    {ty}, allocatable, asynchronous :: x({colons}), y({colons})"]
        else:
            double = dims(f"{2 * e}" for e in self.edge)
            out += [f"    {ty}, target, asynchronous, save :: xx({double}), yy({double})"]
            if self.kind == "pointer":
                out += [f"    {ty}, pointer, asynchronous :: x({colons}), y({colons})"]
        every = dims(f"1:{2 * e}:2" for e in self.edge)
        lows = dims(f"{lo}:" for lo in self.lower)
        first = {
            "allocatable": [f"    allocate(x({self.bounds()}), y({self.bounds()}))"],
            "pointer": [f"    x({lows}) => xx({every})", f"    y({lows}) => yy({every})"],
        }.get(self.kind, [])
        fills = self.fill("x", "me") + self.fill("y", "2")
        if self.kind in ("plain", "allocatable", "pointer"):
            return out + [index] + self.body()[:4] + first + fills + self.body()[4:] + [f"  end subroutine shape_{n}"]
        if self.kind == "shape":
            out += [f"    call shape_{n}_of(xx({every}), yy({every}))", f"  end subroutine shape_{n}",
                    f"  subroutine shape_{n}_of(x, y)", f"    {ty}, asynchronous :: x({colons}), y({colons})"]
        else:
            decl = dims([f"{lo}:{lo + e - 1}" for lo, e in zip(self.lower[:-1], self.edge[:-1])] + [f"{self.lower[-1]}:*"])
            out += [f"    call shape_{n}_of(xx, yy)", f"  end subroutine shape_{n}",
                    f"  subroutine shape_{n}_of(x, y)", f"    {ty}, asynchronous :: x({decl}), y({decl})"]
        body = self.body()
        if self.kind == "size":
            whole = dims([":"] * (rank - 1) + [f"{self.lower[-1]}:{self.lower[-1] + self.edge[-1] - 1}"])
            body = [line.replace("source=y)", f"source=y({whole}))").replace(differ(self.whole, "y", "w"), differ(self.whole, f"y({whole})", "w")) for line in body]
        return out + [index] + body[:4] + fills + body[4:] + [f"  end subroutine shape_{n}_of"]


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__.strip())
    rng = random.Random(int(sys.argv[1]))
    shapes = [Shape(k, rng) for k in range(1, int(sys.argv[2]) + 1)]
    out = [head(int(sys.argv[1]), len(shapes)), "contains", "  subroutine any_shape(number)",
           "    integer, intent(in) :: number", "    select case (number)"]
    for s in shapes:
        out += [f"    case ({s.number})", f"      call shape_{s.number}()"]
    out += ["    end select", "  end subroutine"]
    for s in shapes:
        out += [f"  ! {s.kind}, {s.rank} dimensions, {s.whole[0]}{s.part}"] + [wrap(line) for line in s.source()]
    with open(sys.argv[3], "w", encoding="ascii") as f:
        f.write("\n".join(out + ["end program"]) + "\n")


main()
