# SPDX-License-Identifier: BSD-3-Clause
"""Folders on file systems of different kinds, for the benches that ask about files: memory, ext4 on a loop device, and a FUSE file
system with latency (share/weft/bench/io/faultfs.c).  What cannot be had here is said and left out.  Root mounts in a name space
of its own, so nothing stays mounted, however the bench ends."""

import os
import shlex
import shutil
import subprocess
import tempfile
import time

FUSE_KEYS = "latency_us=300,mb_s=500"


def alone(argv):
    """Goes on as argv in a mount name space of its own; returns where that is impossible, or done already."""
    if os.environ.get("BENCH_MOUNTS_ARE_OWN") or os.geteuid() != 0 or not shutil.which("unshare"):
        return
    unshare = ["unshare", "--mount", "--propagation", "private"]
    if subprocess.run([*unshare, "true"], stderr=subprocess.DEVNULL, check=False).returncode:
        return
    os.environ["BENCH_MOUNTS_ARE_OWN"] = "1"
    os.execvp(unshare[0], [*unshare, *argv])


class Places:
    """A context: the folders, as arguments of the program."""

    def __init__(self, programs, say, given):
        self.programs, self.say, self.given = programs, say, given
        self.folders, self.mounted, self.server, self.work = [], [], None, None

    def __enter__(self):
        if self.given:
            self.folders = self.given
            return self
        memory = os.access("/dev/shm", os.W_OK)
        self.work = tempfile.mkdtemp(prefix="bench-io-", dir="/dev/shm" if memory else None)
        try:
            if memory:
                self.folders.append(("tmpfs", self.folder("tmpfs")))
            else:
                self.say("tmpfs: no /dev/shm to write to; left out")
            self.ext4()
            self.fuse()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for folder in self.mounted:
            for command in (["umount", "-l", folder], ["fusermount3", "-u", "-z", folder]):
                if shutil.which(command[0]) and not subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode:
                    break
        if self.server:
            self.server.terminate()
            self.server.wait()
        if self.work:
            shutil.rmtree(self.work, ignore_errors=True)

    def folder(self, name):
        path = os.path.join(self.work, name)
        os.mkdir(path)
        return path

    def quiet(self, *command):
        """Did it work?"""
        return shutil.which(command[0]) and not subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode

    def ext4(self):
        image, folder = os.path.join(self.work, "image"), self.folder("ext4")
        with open(image, "wb") as f:
            f.truncate(256 << 20)
        if os.geteuid() != 0 or not self.quiet("mkfs.ext4", "-q", "-F", image) or not self.quiet("mount", "-o", "loop", image, folder):
            self.say("ext4: no image can be mounted (needs root, mkfs.ext4 and a loop device); left out")
            return
        self.mounted.append(folder)
        self.folders.append(("ext4", folder))

    def fuse(self):
        flags = subprocess.run(["pkg-config", "--cflags", "--libs", "fuse3"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                               text=True, check=False) if shutil.which("pkg-config") else None
        if not flags or flags.returncode or not os.access("/dev/fuse", os.W_OK) or not shutil.which("cc"):
            self.say("fuse: no /dev/fuse to write to, or no headers of libfuse3; left out")
            return
        program = self.programs.get("io/faultfs", "cc", ["-D_GNU_SOURCE", "-D_FILE_OFFSET_BITS=64", *shlex.split(flags.stdout)])
        behind, folder = self.folder("behind"), self.folder("fuse")
        # A server elsewhere has cores of its own: it goes before what computes here.
        first = ["chrt", "--fifo", "1"] if self.quiet("chrt", "--fifo", "1", "true") else []
        self.server = subprocess.Popen([*first, program, behind, folder, FUSE_KEYS], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL)
        for _ in range(500):
            if self.server.poll() is not None:
                self.say("fuse: cannot be mounted here; left out")
                return
            if os.path.ismount(folder):
                self.mounted.append(folder)
                self.folders.append(("fuse", folder))
                return
            time.sleep(0.01)
        self.say("fuse: is not mounted within 5 s; left out")

    def arguments(self):
        return [word for name, folder in self.folders for word in ("--folder", f"{name}={folder}")]
