#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""loop.py - weft inside asyncio: its descriptor is one reader among others; nothing is polled.

   loop.py LIBRARY      (libweft-task.so.0, or libmpi_abi.so.1)
"""

import asyncio
import ctypes
import sys

AGAIN = -1


class Event(ctypes.Structure):
    """struct weft_event of weft/source.h"""
    _fields_ = [("user", ctypes.c_void_p), ("fn", ctypes.c_void_p), ("priority", ctypes.c_int),
                ("private", ctypes.c_uint64 * 20)]


class Weft:
    """Timers of weft as futures of asyncio."""

    def __init__(self, library, loop):
        self.c, self.loop, self.waiting = ctypes.CDLL(library), loop, {}
        self.c.weft_event_done.restype = ctypes.c_bool
        self.c.weft_event_result.restype = ctypes.c_int64
        if self.c.weft_engine_start():
            raise OSError("weft does not start")
        self.timers = ctypes.c_void_p()
        if self.c.weft_events_open_timers(ctypes.byref(self.timers)):
            raise OSError("no timers")
        loop.add_reader(self.c.weft_engine_fd(), self.look)

    def after(self, ns):
        event, future = Event(), self.loop.create_future()
        self.c.weft_event_post_after(self.timers, ctypes.byref(event), ctypes.c_uint64(ns))
        self.waiting[future] = event
        self.look()
        return future

    def look(self):
        """Polls, hands out what is done, and arms; once more as long as there is something."""
        while True:
            self.c.weft_engine_poll()
            armed = self.c.weft_engine_fd_arm() != AGAIN
            for future, event in list(self.waiting.items()):
                if self.c.weft_event_done(ctypes.byref(event)):
                    del self.waiting[future]
                    future.set_result(self.c.weft_event_result(ctypes.byref(event)))
            if armed:
                return

    def close(self):
        self.loop.remove_reader(self.c.weft_engine_fd())
        self.c.weft_events_close(self.timers)
        self.c.weft_engine_stop()


async def main(library):
    weft = Weft(library, asyncio.get_running_loop())

    async def one(number):
        late = await weft.after(number * 5_000_000)
        print(f"timer {number}: {late // 1000} us late")

    await asyncio.gather(*(one(n) for n in range(10, 0, -1)), asyncio.sleep(0.02))
    weft.close()
    print("done")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: loop.py LIBRARY (libweft-task.so.0)")
    try:
        asyncio.run(main(sys.argv[1]))
    except OSError as e:
        sys.exit("loop.py: %s" % e)
