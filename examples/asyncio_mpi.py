#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""asyncio_mpi.py - MPI messages as awaitables, with ctypes alone: no thread, no polling.

   mpiexec -n 3 python3 examples/asyncio_mpi.py [PATH OF libmpi_abi.so.1]

Without a path: the library that was installed with mpiexec.

The event loop sleeps on the descriptor of a pollset (mpi-ext.h) beside its own timers.  The numbers
below are the MPI 5.0 standard ABI's; any library of that ABI would do, but for the pollset."""
import asyncio
import ctypes
import os
import shutil
import sys

COMM_WORLD, INT, STATUS_IGNORE = (ctypes.c_void_p(n) for n in (0x101, 0x209, 0))
EACH = 50


def library():
    """Beside mpiexec's folder, else where the dynamic linker finds it."""
    path = os.path.join(os.path.dirname(os.path.realpath(shutil.which("mpiexec") or "/")), "../lib/libmpi_abi.so.1")
    return path if os.path.exists(path) else "libmpi_abi.so.1"


mpi = ctypes.CDLL(sys.argv[1] if sys.argv[1:] else library(), mode=ctypes.RTLD_GLOBAL)


def call(name, *args):
    """A library that returns an error has ended the job, unless an error handler says otherwise."""
    code = getattr(mpi, name)(*args)
    if code:
        raise RuntimeError(f"{name}: error {code}")


class Requests:
    """Requests that the running event loop waits for."""

    def __init__(self):
        self.loop = asyncio.get_running_loop()
        self.set = ctypes.c_void_p()
        self.waiting = {}  # key: (request, future)
        self.last = 0
        fd = ctypes.c_int()
        call("MPIX_Pollset_create", ctypes.byref(self.set))
        call("MPIX_Pollset_fd", self.set, ctypes.byref(fd))
        self.fd = fd.value
        self.loop.add_reader(self.fd, self.take)

    def close(self):
        self.loop.remove_reader(self.fd)
        call("MPIX_Pollset_free", ctypes.byref(self.set))

    def take(self):
        """Hands out what is complete, then arms: from there on an arrival makes the descriptor readable."""
        key, n, flag = ctypes.c_void_p(), ctypes.c_int(1), ctypes.c_int()
        while True:
            call("MPIX_Pollset_take", self.set, 1, ctypes.byref(key), ctypes.byref(n))
            if n.value:
                request, future = self.waiting.pop(key.value)
                call("MPI_Test", ctypes.byref(request), ctypes.byref(flag), STATUS_IGNORE)
                if not future.done():
                    future.set_result(None)
                continue
            call("MPIX_Pollset_arm", self.set, ctypes.byref(n))
            if not n.value:
                return

    def wait(self, request):
        """A future of an active request."""
        self.last += 1
        future = self.loop.create_future()
        self.waiting[self.last] = request, future
        call("MPIX_Pollset_add", self.set, request, ctypes.c_void_p(self.last))
        self.loop.call_soon(self.take)
        return future

    async def recv(self, source, tag):
        number, request = ctypes.c_int(), ctypes.c_void_p()
        call("MPI_Irecv", ctypes.byref(number), 1, INT, source, tag, COMM_WORLD, ctypes.byref(request))
        await self.wait(request)
        return number.value

    async def send(self, value, dest, tag):
        number, request = ctypes.c_int(value), ctypes.c_void_p()
        call("MPI_Isend", ctypes.byref(number), 1, INT, dest, tag, COMM_WORLD, ctypes.byref(request))
        await self.wait(request)


async def main(rank, size):
    requests = Requests()
    ticks = 0

    async def tick():
        nonlocal ticks
        while True:
            await asyncio.sleep(0.002)
            ticks += 1

    async def from_rank(peer):
        return sum([await requests.recv(peer, 0) for _ in range(EACH)])

    if rank == 0:
        ticker = asyncio.create_task(tick())
        total = sum(await asyncio.gather(*(from_rank(peer) for peer in range(1, size))))
        ticker.cancel()
        print(f"sum {total}, {ticks} ticks of the timer meanwhile", flush=True)
        if total != (size - 1) * EACH * (EACH + 1) // 2:
            raise RuntimeError("a message is missing")
    else:
        for number in range(1, EACH + 1):
            await requests.send(number, 0, 0)
            await asyncio.sleep(0.001)
    requests.close()


call("MPI_Init", None, None)
here, all_ranks = ctypes.c_int(), ctypes.c_int()
call("MPI_Comm_rank", COMM_WORLD, ctypes.byref(here))
call("MPI_Comm_size", COMM_WORLD, ctypes.byref(all_ranks))
asyncio.run(main(here.value, all_ranks.value))
call("MPI_Finalize")
