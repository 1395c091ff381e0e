# SPDX-License-Identifier: BSD-3-Clause
"""gdb -x weft-gdb.py: user-level threads of weft, in a live process or a core file.

weft-ults            every thread: worker.number, state, name, what it waits for
weft-ults bt         the same with backtraces
weft-ult W.N         one of them, with its backtrace

Needs the library's debug information.  See src/ult/ult_int.h and sched/ctx.c: what is read here.
"""

import gdb
import gdb.unwinder

PARKED, WAITS_TOKEN, ALIVE, CHUNK = 2, 4, 4, 4096


class SavedRegisters(gdb.unwinder.Unwinder):
    """While it has a thread's registers, that thread is the caller of the innermost frame."""

    def __init__(self):
        super().__init__("weft-ult")
        self.registers = None

    def __call__(self, frame):
        if not self.registers or frame.level() != 0:
            return None
        sp, pc = ("rsp", "rip") if "rip" in self.registers else ("sp", "pc")

        class Here:
            pass

        # Below the thread's frames: gdb does not believe in callers that lie deeper.
        Here.sp = gdb.Value(int(self.registers[sp]) - 64).cast(self.registers[sp].type)
        Here.pc = frame.read_register(pc)
        info = frame.create_unwind_info(Here)
        for name, value in self.registers.items():
            info.add_saved_register(name, value)
        return info


UNWINDER = SavedRegisters()
gdb.unwinder.register_unwinder(None, UNWINDER, True)


def registers_at(sp):
    """What weft_ult_ctx_switch has stored there."""
    word = gdb.lookup_type("unsigned long").pointer()
    code = gdb.lookup_type("void").pointer()
    frame = gdb.Value(sp).cast(word)
    if gdb.selected_frame().architecture().name().startswith("aarch64"):
        got = {"x%d" % (19 + i): frame[i] for i in range(12)}
        got.update(sp=gdb.Value(sp + 176).cast(code), pc=frame[11].cast(code))
        return got
    names = ("r15", "r14", "r13", "r12", "rbx", "rbp")
    got = {name: frame[1 + i] for i, name in enumerate(names)}
    got.update(rsp=gdb.Value(sp + 64).cast(code), rip=frame[7].cast(code))
    return got


class Ult:
    def __init__(self, value, current):
        self.value = value
        self.home, self.slot = int(value["home"]["id"]), int(value["slot"])
        self.name = value["name"].string()
        self.runs = int(value.address) in current
        self.carrier = current.get(int(value.address))
        word = int(value["parker"]["x_word"])
        self.parked, self.token = bool(word & (PARKED | WAITS_TOKEN)), bool(word & WAITS_TOKEN)

    def line(self):
        if self.runs:
            state = "runs on worker %d" % self.carrier
        else:
            state = "waits" if self.parked else "is ready"
        what = int(self.value["x_waits_for"])
        if self.parked and not self.runs and not what:
            state += " for weft_ult_unpark" if self.token else " for a message, a task or another event"
        elif what and self.parked:
            text = gdb.Value(what).cast(gdb.lookup_type("char").pointer()).string()
            on = int(self.value["x_waits_on"])
            state += " for " + text + (" 0x%x" % on if on else "")
        return "%d.%d %s%s" % (self.home, self.slot, self.name + " " if self.name else "", state)

    def backtrace(self):
        if self.runs:
            return "    see `thread apply all bt`\n"
        try:
            gdb.newest_frame().select()
            UNWINDER.registers = registers_at(int(self.value["sp"]))
            gdb.invalidate_cached_frames()
            text = gdb.execute("backtrace", to_string=True)
        except gdb.error as e:
            text = "#0 -\n#1 %s\n" % e
        finally:
            UNWINDER.registers = None
            gdb.invalidate_cached_frames()
        lines = text.splitlines()
        # Number 0 is where gdb's own thread is.
        first = next((i for i, s in enumerate(lines) if s.startswith("#1")), len(lines))
        return "".join("    %s\n" % s for s in lines[first:])


def workers():
    try:
        table = gdb.parse_and_eval("weft_ult_all")["worker"]
    except gdb.error:
        raise gdb.GdbError("no user-level threads, or no debug information of weft")
    for i in range(table.type.range()[1] + 1):
        if not int(table[i]):
            return
        yield table[i].dereference()


def ults():
    current, pointer = {}, gdb.lookup_type("struct weft_ult").pointer()
    all_workers = list(workers())
    for w in all_workers:
        if int(w["current"]):
            current[int(w["current"])] = int(w["id"])
    for w in all_workers:
        for slot in range(int(w["slots"])):
            chunk = gdb.Value(int(w["x_threads"][slot // CHUNK])).cast(pointer)
            t = (chunk + slot % CHUNK).dereference()
            if int(t["x_flags"]) & ALIVE:
                yield Ult(t, current)


class Ults(gdb.Command):
    """weft-ults [bt]: lists weft's user-level threads, with backtraces if asked."""

    def __init__(self):
        super().__init__("weft-ults", gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        if argument not in ("", "bt"):
            raise gdb.GdbError("weft-ults [bt]")
        count = 0
        for t in ults():
            count += 1
            gdb.write(t.line() + "\n")
            if argument:
                gdb.write(t.backtrace())
        gdb.write("%d user-level threads\n" % count)


class One(gdb.Command):
    """weft-ult W.N: one of weft's user-level threads, with its backtrace."""

    def __init__(self):
        super().__init__("weft-ult", gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        for t in ults():
            if argument == "%d.%d" % (t.home, t.slot):
                gdb.write(t.line() + "\n" + t.backtrace())
                return
        raise gdb.GdbError("weft-ult W.N: no thread %s; weft-ults lists them" % argument)


Ults()
One()
