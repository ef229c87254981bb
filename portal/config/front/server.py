"""Runs one front process until it is told to stop."""

from __future__ import annotations

import asyncio
import gc
import resource
import signal
import time

import uvloop

from portal.config.front.connection import Connection
from portal.config.front.limits import FrontLimits
from portal.config.front.shared import Front

STOP_WAIT_S = 5.0  # for answers under way; below the 8 s after which the supervisor kills


async def serve(front: Front, host: str, port: int) -> None:
    """Until SIGTERM or SIGINT. Several processes may listen on one port."""
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    server = await loop.create_server(
        lambda: Connection(front), host, port, reuse_port=True, backlog=2048
    )
    sweeper = loop.create_task(front.sweep_forever())
    gc.freeze()  # what was imported stays: collections look at requests alone
    await stop.wait()
    front.is_stopping = True
    server.close()
    ends = time.monotonic() + STOP_WAIT_S
    for connection in list(front.connections):
        connection.stop()
    while front.connections and time.monotonic() < ends:
        await asyncio.sleep(0.05)
    sweeper.cancel()
    front.threads.shutdown(wait=False, cancel_futures=True)
    front.landings.shutdown(wait=False, cancel_futures=True)


def run(*, host: str, port: int, api: str, limits: FrontLimits, access_log: bool) -> None:
    """Serve until told to stop."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 65_536 if most == resource.RLIM_INFINITY else min(most, 65_536)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))
    front = Front(api=api, limits=limits, access_log=access_log)
    uvloop.run(serve(front, host, port))
