# SPDX-License-Identifier: BSD-3-Clause
"""Others on the host: another user's process that talks to the job's sockets changes nothing; the secret is nowhere to be read."""

import glob
import os
import re
import resource
import shutil
import signal
import struct
import subprocess

from lib import *


def start(fabric, level="warn", prepare=None):
    place = os.path.join(scratch, "o-%s-%s" % (fabric.replace(",", "-"), level))
    os.mkdir(place)
    job = Job(ranks(3, "traffic", "stopped", 500, place), {"WEFT_DRIVERS": fabric, "WEFT_LOG": level}, prepare)
    pids = []
    for r in range(3):
        name = os.path.join(place, "pid.%d" % r)
        if not wait_for(name):
            fail("%s does not start" % job.command)
            return job, []
        with open(name) as f:
            pids.append(int(f.read()))
    return job, pids


def listeners(pids):
    """Abstract sockets and tcp ports on which these processes listen."""
    inodes = set()
    for pid in pids:
        for fd in glob.glob("/proc/%d/fd/*" % pid):
            try:
                inodes.update(re.findall(r"socket:\[(\d+)\]", os.readlink(fd)))
            except OSError:
                pass
    found = []
    with open("/proc/net/unix") as f:
        for line in f:
            part = line.split()
            if len(part) == 8 and part[6] in inodes and part[7].startswith("@"):
                found.append(("unix", part[7][1:]))
    for version in ("tcp", "tcp6"):
        with open("/proc/net/" + version) as f:
            for line in f:
                part = line.split()
                if part[3] == "0A" and part[9] in inodes:
                    found.append((version, part[1]))
    return found


STRANGER = r"""
import socket, sys
kind, name = sys.argv[1:]
for text in (b"", b"GET / HTTP/1.1\r\n\r\n", b"\0" * 200, b"weft" * 50):
    if kind == "unix":
        s = socket.socket(socket.AF_UNIX)
        s.connect("\0" + name)
    else:
        port = int(name.rsplit(":", 1)[1], 16)
        s = socket.create_connection(("::1" if kind == "tcp6" else "127.0.0.1", port), 10)
    try:
        s.sendall(text)
        s.settimeout(30)
        # Nothing that helps: the other side closes, or waits for more until its deadline.
        if text and s.recv(4096):
            sys.exit("the stranger was answered")
    except OSError:
        pass
    s.close()
"""


def talk(kind, name):
    command = ["python3", "-c", STRANGER, kind, name]
    if os.geteuid() == 0 and shutil.which("setpriv"):
        command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] + command
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


THIEF = r"""
import os, sys
for pid in sys.argv[1:]:
    for name in ("mem", "environ", "maps"):
        try:
            open("/proc/%s/%s" % (pid, name), "rb").read(1)
            sys.exit("read: " + name)
        except OSError:
            pass
    for fd in range(256):
        try:
            os.open("/proc/%s/fd/%d" % (pid, fd), os.O_RDWR)
            sys.exit("opened: descriptor %d" % fd)
        except OSError:
            pass
"""


def steal(pids):
    """Another user opens what the ranks have in common: memory without a name is theirs alone."""
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        print("not tried: another user opens the shared memory (not root)")
        return
    p = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "python3", "-c", THIEF] +
                       [str(p) for p in pids], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if p.returncode:
        fail("another user has " + p.stderr)


def secret_page_of(pid, rank):
    """The page of boot.h's info: in no core dump, like the C library's state of random numbers, and it begins
    with the rank and the number of ranks."""
    with open("/proc/%d/smaps" % pid) as f:
        text = f.read()
    for m in re.finditer(r"^([0-9a-f]+)-([0-9a-f]+) rw.*\n(?:[A-Z].*\n)*?VmFlags:(.*)$", text, re.M):
        begin, end = int(m.group(1), 16), int(m.group(2), 16)
        if " dd" in m.group(3) and end - begin <= 65536: # the kernel may have joined it with its neighbours
            with open("/proc/%d/mem" % pid, "rb") as mem:
                mem.seek(begin)
                pages = mem.read(end - begin)
            for at in range(0, end - begin, 4096):
                if struct.unpack_from("ii", pages, at) == (rank, 3):
                    return pages[at:at + 4096]
    return b""


def secret_of(pid, rank):
    return secret_page_of(pid, rank)[16 + 64:16 + 64 + 32] # after four numbers and the job's name, boot.h


def spread(pids, secret):
    """Where else the secret can be read: command lines, environments, files, a core."""
    forms = [secret, secret.hex().encode(), secret.hex().upper().encode()]
    for pid in pids + marked():
        for what in ("cmdline", "environ"):
            try:
                with open("/proc/%d/%s" % (pid, what), "rb") as f:
                    text = f.read()
            except OSError:
                continue
            if any(x in text for x in forms):
                fail("the secret is in /proc/PID/%s of %s" % (what, command_of(pid)))
    for name in litter():
        path = name if name.startswith("/") else "/dev/shm/" + name
        if os.path.isfile(path) and os.path.getsize(path) < 1 << 26:
            with open(path, "rb") as f:
                if any(x in f.read() for x in forms):
                    fail("the secret is in " + path)
    if shutil.which("gdb"):
        core = os.path.join(scratch, "core")
        subprocess.run(["gdb", "-p", str(pids[1]), "-batch", "-ex", "generate-core-file " + core], timeout=100,
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if os.path.exists(core):
            with open(core, "rb") as f:
                if any(x in f.read() for x in forms):
                    fail("the secret is in a core dump")


def core_of(pid, place):
    """The kernel's own core of a rank that aborts, and the secret that it had; b"" if none is written here."""
    os.kill(pid, signal.SIGSTOP)
    secret = secret_of(pid, 1)
    os.kill(pid, signal.SIGABRT)
    os.kill(pid, signal.SIGCONT)
    job.wait()
    found = [x for x in glob.glob(os.path.join(place, "core*")) if os.path.getsize(x)]
    if not found:
        return b"", secret
    with open(found[0], "rb") as f:
        return f.read(), secret


def dumps_cores():
    most = resource.getrlimit(resource.RLIMIT_CORE)[1]
    resource.setrlimit(resource.RLIMIT_CORE, (most, most))
    os.chdir(scratch)


wanted = run(ranks(3, "traffic", "plain", 500))
expect("plain", wanted, 0)
for fabric in FABRICS:
    job, pids = start(fabric)
    doors = listeners(pids)
    if not doors:
        fail("nobody listens over " + fabric)
    if fabric.endswith("shm") and any(kind != "unix" for kind, _ in doors):
        fail("ranks on one host listen on tcp")
    steal(pids)
    strangers = [talk(kind, name) for kind, name in doors]
    result = job.wait(60)
    for s in strangers:
        said = s.communicate()[1].decode()
        if "was answered" in said:
            fail("%s: %s" % (fabric, said))
    if expect("strangers over " + fabric, result, 0) and result.out != wanted.out:
        fail("strangers over %s change the result" % fabric, result.text())

job, pids = start("self,shm", "debug")
secret = b""
if pids:
    os.kill(pids[1], signal.SIGSTOP)
    secret = secret_of(pids[1], 1)
    if len(secret) < 32 or not any(secret):
        fail("the page of the secret was not found")
    else:
        spread(pids, secret)
    os.kill(pids[1], signal.SIGCONT)
result = job.wait(60)
expect("a watched job", result, 0)
if secret and secret.hex() in (result.out + result.err).lower():
    fail("the secret is in the log")

with open("/proc/sys/kernel/core_pattern") as f:
    pattern = f.read().strip()
if os.geteuid() != 0 or "/" in pattern or "|" in pattern:
    print("not tried: a core of the kernel's (root, and core_pattern a name in the working directory, are needed)")
else:
    job, pids = start("self,shm", "error", dumps_cores)
    core, secret = core_of(pids[1], scratch) if pids else (b"", b"")
    if not core:
        print("not tried: no core was written")
    elif len(secret) < 32 or not any(secret):
        fail("the page of the secret was not found")
    elif job.mark.encode() not in core:
        fail("a core without the environment is no core")
    elif any(x in core for x in (secret, secret.hex().encode(), secret.hex().upper().encode())):
        fail("the secret is in a core of the kernel's")
finish()
