# SPDX-License-Identifier: BSD-3-Clause
"""A nonsensical environment: one line and a non-zero exit, or a warning and the default; never a hang or a crash."""

from lib import *

CRASHES = (139, 134, 135, 136, 132, -11, -6, -7, "HANG")
alone = [program("traffic"), "plain", "2"]
job = ranks(2, "traffic", "plain", 2)


def tolerable(what, result, most):
    """Works, perhaps with a warning, or fails with a line."""
    if result.rc in CRASHES:
        fail("%s: crash or hang" % what, result.text())
    elif result.rc == 0 and len(result.lines) > most:
        fail("%s: works, but says %d lines" % (what, len(result.lines)), result.text())
    elif result.rc != 0 and not 1 <= len(result.lines) <= most:
        fail("%s: fails with %d lines" % (what, len(result.lines)), result.text())


def refused(what, result, most, name):
    tolerable(what, result, most)
    if name not in result.err:
        fail("%s: stderr does not name %s" % (what, name), result.text())


# Wrong values of settings: the line names the variable.
for name, value in (("WEFT_DRIVERS", "carrier-pigeon"), ("WEFT_DRIVERS", "x" * 100000), ("WEFT_IDLE_WORKERS", "1000000000"),
                    ("WEFT_IDLE_WORKERS", "-7"), ("WEFT_SPIN_US", "fast"), ("WEFT_SPIN_US", "99999999999999999999"),
                    ("WEFT_PROGRESS", "maybe"), ("WEFT_LOG", "loud"), ("WEFT_EAGER_SHM", "-1"),
                    ("WEFT_EAGER_SHM", "8q"), ("WEFT_EAGER_CREDIT", "9223372036854775807g"),
                    ("WEFT_TIMER_MS", "0"), ("WEFT_PEER_TIMEOUT", ""), ("WEFT_INIT_TIMEOUT", "0x10"),
                    ("WEFT_TCP_SILENCE", "1")):
    # Each rank may say it, and the launcher how they ended.
    refused("%s=%.20s" % (name, value), run(alone, {name: value}), 2, name)
    refused("%s=%.20s, two ranks" % (name, value), run(job, {name: value}), 5, name)
refused("WEFT_NONSENSE=1", run(alone, {"WEFT_NONSENSE": "1"}), 1, "WEFT_NONSENSE")
for value in ("", ",,,"):
    tolerable("WEFT_DRIVERS=%s" % value, run(alone, {"WEFT_DRIVERS": value}), 2)
    refused("WEFT_DRIVERS=%s, two ranks" % value, run(job, {"WEFT_DRIVERS": value}), 5, "WEFT_DRIVERS")
# Many mistakes, a long one, letters that a terminal would obey: a line that can be read.
for name, value in (("WEFT_DRIVERS", "1," * 30000), ("WEFT_DRIVERS", "\x1b[31m"), ("WEFT_LOG", "x" * 100000),
                    ("WEFT_SPIN_US", "\x1b[31m\n\n")):
    result = run([os.path.join(BIN, "weft"), "info"], {name: value})
    if len(result.lines) != 1 or len(result.lines[0]) > 300 or "\x1b" in result.err or name not in result.err:
        fail("%s=%.20r in weft info: %d lines" % (name, value, len(result.lines)), result.text())
refused("an interface that is not there", run(job, {"WEFT_DRIVERS": "tcp,self", "WEFT_TCP_INTERFACE": "nowhere0"}), 3,
        "WEFT_TCP_INTERFACE=nowhere0")
refused("a rail over an interface that is not there", run(job, {"WEFT_RAILS": "tcp:lo,tcp:nowhere0"}), 3,
        "WEFT_RAILS names nowhere0")
refused("self alone, two ranks", run(job, {"WEFT_DRIVERS": "self"}), 5, "WEFT_DRIVERS")

# What a launcher would set.
for env in ({"PMI_RANK": "-1"}, {"PMI_SIZE": "2147483648"}, {"PMI_RANK": "0", "PMI_SIZE": "2"},
            {"PMI_FD": "999", "PMI_RANK": "0", "PMI_SIZE": "2"}, {"PMI_FD": "-1"}, {"PMI_FD": "two"},
            {"PMI_FD": "0", "PMI_RANK": "0", "PMI_SIZE": "2"}, {"PMI_FD": "1", "PMI_RANK": "5", "PMI_SIZE": "2"},
            {"PMI_FD": "2147483648", "PMI_RANK": "x", "PMI_SIZE": ""}, {"WEFT_BOOT_FD": "999"},
            {"WEFT_BOOT_FD": "nonsense"}, {"PMI_PORT": "nowhere:1"}):
    tolerable(str(env), run(alone, env), 2)

# Variables that others own.
for env in ({"HOME": ""}, {"PATH": "/nowhere"}, {"TMPDIR": "/nowhere"}, {"LC_ALL": "xx_YY"}, {"TMPDIR": "x" * 5000},
            {"OMP_NUM_THREADS": "-1"}):
    result = run(job, env)
    if expect(str(env), result, 0) and result.lines:
        fail("%s: says something" % env, result.text())
finish()
