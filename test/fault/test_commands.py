# SPDX-License-Identifier: BSD-3-Clause
"""Wrong arguments of every command: a line that names the mistake, and an exit code."""

from lib import *

prog = program("traffic")


def bad(command, rc, *words, lines=2):
    result = run([os.path.join(BIN, command[0])] + command[1:])
    if expect(" ".join(command)[:100], result, rc, lines) and not any(w in result.err for w in words):
        fail("%s: stderr names none of %s" % (" ".join(command)[:100], words), result.text())


bad(["mpiexec"], 2, "program")
bad(["mpiexec", "-n"], 2, "-n")
for n in ("0", "-1", "two", "2x", "99999999999", "", " "):
    bad(["mpiexec", "-n", n, "true"], 2, "-n")
bad(["mpiexec", "--no-such-option", "true"], 2, "no-such-option")
bad(["mpiexec", "-n", "2"], 2, "program")
bad(["mpiexec", "-n", "2", "/nowhere/at/all"], 127, "/nowhere/at/all")
bad(["mpiexec", "-n", "2", "no-such-program-anywhere"], 127, "no-such-program-anywhere")
bad(["mpiexec", "-n", "2", "/etc/passwd"], 126, "/etc/passwd")
bad(["mpiexec", "-n", "2", "/"], 126, "/")
bad(["mpiexec", "-n", "1", "true", ":"], 2, ":", "program")
bad(["mpiexec", ":", "true"], 2, ":", "program")
bad(["mpiexec", "--timeout", "soon", "true"], 2, "timeout")
bad(["mpiexec", "--timeout", "-1", "true"], 2, "timeout")
bad(["mpiexec", "--timeout", "nan", "true"], 2, "timeout")
bad(["mpiexec", "--bind-to", "moon", "true"], 2, "moon")
bad(["mpiexec", "-wdir", "/nowhere", "true"], (1, 2, 126, 127), "/nowhere")
bad(["mpiexec", "-env", "A=B", "C", "true"], 2, "A=B")
bad(["mpiexec", "-n", "1", "-n", "x" * 100000, "true"], 2, "-n")

bad(["weft"], 2, "weft info", lines=20)  # the usage
bad(["weft", "no-such-command"], (1, 2), "no-such-command")
bad(["weft", "info", "--no-such-option"], (1, 2), "no-such-option")
bad(["weft", "bench", "no-such-bench"], (1, 2), "no-such-bench")
bad(["weft", "bench", "latency", "--ranks", "many"], (1, 2), "many", lines=4)
bad(["weft", "bench", "latency", "--link", "string"], (1, 2), "string", lines=4)
bad(["weft", "bench", "latency", "--against", "nobody"], (1, 2), "nobody")
bad(["weft", "bench", "latency", "--csv", "/nowhere/x.csv"], (1, 2), "/nowhere")

for wrapper in ("mpicc", "mpicxx"):
    path = os.path.join(BIN, wrapper)
    if not os.path.exists(path):
        continue
    for arguments in (["/nowhere.c"], ["--no-such-option-at-all"], []):
        result = run([path] + arguments)
        if result.rc in (0, "HANG") or not result.lines:
            fail("%s %s" % (wrapper, arguments), result.text())
    result = run([path, "/nowhere.c"], {"WEFT_CC": "no-such-compiler", "WEFT_CXX": "no-such-compiler"})
    expect(wrapper + " without its compiler", result, (127,), 1, "no-such-compiler")
finish()
