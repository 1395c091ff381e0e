# SPDX-License-Identifier: BSD-3-Clause
"""mpiexec on a terminal: Ctrl-C asks and then kills, input and prompts reach rank 0, a job in the
background leaves the terminal's input alone, a job ends with its terminal."""
import os
import pty
import select
import signal
import sys
import time

MPIEXEC = sys.argv[1]


def start(*args, background=False):
    """mpiexec as the leader of a foreground (or background) group of a new terminal session."""
    pid, fd = pty.fork()
    if pid == 0:
        if background:
            child = os.fork()
            if child == 0:
                os.setpgid(0, 0)
                os.execv(MPIEXEC, [MPIEXEC, *args])
            try:
                os.setpgid(child, child)
            except OSError:
                pass  # it has begun already, in its own group
            _, status = os.waitpid(child, 0)
            os._exit(os.waitstatus_to_exitcode(status) & 255)
        os.execv(MPIEXEC, [MPIEXEC, *args])
    return pid, fd


def read_until(fd, text, count=1, seconds=100):
    got, end = "", time.monotonic() + seconds
    while got.count(text) < count:
        left = end - time.monotonic()
        if left <= 0 or not select.select([fd], [], [], left)[0]:
            sys.exit(f"FAILED: no '{text}' within {seconds} s; got: {got!r}")
        try:
            more = os.read(fd, 4096)
        except OSError:
            more = b""
        if not more:
            sys.exit(f"FAILED: end without '{text}'; got: {got!r}")
        got += more.decode()
    return got


def wait(pid, fd, seconds=100):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            os.close(fd)
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
        while select.select([fd], [], [], 0)[0]:  # unread output would keep it waiting
            try:
                if not os.read(fd, 4096):
                    break
            except OSError:
                break
    os.kill(pid, signal.SIGKILL)
    sys.exit(f"FAILED: mpiexec still runs after {seconds} s")


def want(what, got, wanted):
    if got != wanted:
        sys.exit(f"FAILED: {what}: {got!r} instead of {wanted!r}")


# Prompt and input: rank 0 has the terminal's lines, the prompt shows at once.
pid, fd = start("-n", "2", "sh", "-c",
                '[ $PMI_RANK = 1 ] || { printf "name? "; read a; echo "hello $a"; }')
read_until(fd, "name? ")
os.write(fd, b"you\n")
read_until(fd, "hello you")
want("prompt", wait(pid, fd), 0)

# End of input by Ctrl-D.
pid, fd = start("-n", "2", "sh", "-c", "cat; echo end")
read_until(fd, "end")
os.write(fd, b"\x04")
read_until(fd, "end")
want("Ctrl-D", wait(pid, fd), 0)

# Ctrl-C once: the ranks end in their own way.
pid, fd = start("-n", "2", "sh", "-c", 'trap "echo bye; exit 0" INT; echo up; while :; do sleep 0.05; done')
read_until(fd, "up", 2)
os.write(fd, b"\x03")
read_until(fd, "bye", 2)
want("Ctrl-C once", wait(pid, fd), 130)

# Ctrl-C twice: they are killed.
pid, fd = start("-n", "2", "sh", "-c", 'trap "" INT TERM; echo up; while :; do sleep 0.05; done')
read_until(fd, "up", 2)
os.write(fd, b"\x03")
read_until(fd, "once more: at once")
os.write(fd, b"\x03")
want("Ctrl-C twice", wait(pid, fd), 130)

# A job in the background may run while the user types.
pid, fd = start("-n", "1", "sh", "-c", "read a; echo got=$a", background=True)
read_until(fd, "got=")
want("background", wait(pid, fd), 0)

# The terminal goes away: the job ends.
pid, fd = start("-n", "2", "sh", "-c", "echo up; exec sleep 1000")
read_until(fd, "up", 2)
os.close(fd)
end = time.monotonic() + 100
while not os.waitpid(pid, os.WNOHANG)[0]:
    if time.monotonic() > end:
        os.kill(pid, signal.SIGKILL)
        sys.exit("FAILED: mpiexec outlives its terminal")
    time.sleep(0.02)
