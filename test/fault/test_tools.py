# SPDX-License-Identifier: BSD-3-Clause
"""Plain MPI programs stay clean under valgrind, AddressSanitizer and gdb."""

import shutil

from lib import *

plain = [program("traffic"), "plain", "3"]
sanitized = "fsanitize" in open(os.path.join(BUILD, "build.ninja")).read()
if sanitized:
    skip("the library itself is sanitized")
tested = 0
if shutil.which("valgrind"):
    tested += 1
    for fabric in FABRICS:
        result = run([MPIEXEC, "-n", "2", "valgrind", "-q", "--error-exitcode=9", "--fair-sched=yes"] + plain,
                     {"WEFT_DRIVERS": fabric})
        if expect("valgrind over " + fabric, result, 0) and "==" in result.err:
            fail("valgrind over %s says something" % fabric, result.text())
if shutil.which("gdb"):
    tested += 1
    result = run([MPIEXEC, "-n", "2", "gdb", "-q", "-batch", "-ex", "run", "--args"] + plain)
    expect("gdb", result, 0)
    if result.out.count("exited normally") != 2 or "checksum" not in result.out:
        fail("gdb: a rank does not run to its end", result.text())
source = os.path.join(os.environ.get("SOURCE", "."), "test", "fault", "traffic.c")
made = os.path.join(scratch, "sanitized")
compiled = run([os.path.join(BIN, "mpicc"), "-g", "-D_GNU_SOURCE", "-I" + os.path.dirname(os.path.dirname(source)),
                "-fsanitize=address,undefined", "-o", made, source])
if compiled.rc == 0:
    tested += 1
    for fabric in FABRICS:
        result = run([MPIEXEC, "-n", "2", made, "plain", "10"],
                     {"WEFT_DRIVERS": fabric, "LD_LIBRARY_PATH": os.path.join(BUILD, "lib")})
        if expect("AddressSanitizer over " + fabric, result, 0) and result.lines:
            fail("AddressSanitizer over %s says something" % fabric, result.text())
elif "sanitize" in compiled.err or "asan" in compiled.err:
    print("no AddressSanitizer here")
else:
    fail("mpicc does not compile", compiled.text())
if not tested:
    skip("neither valgrind nor gdb nor AddressSanitizer")
finish()
