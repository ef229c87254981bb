"""Server of one web process."""

from __future__ import annotations

import gc
import resource
import socket
import sys
import time
from typing import Any

import uvicorn

from portal.operations.web.protocol import ClientLimits, LimitedProtocol

STOP_WAIT_S = 5  # for running requests; below the 8 s after which the supervisor kills
BACKLOG = 2048
TICKS_A_SECOND = 10  # of uvicorn's main loop
SWITCH_S = 0.001
"""Time after which a computing thread lets the event loop run; Python's 5 ms delay tiles."""


class Server(uvicorn.Server):
    """uvicorn's server, which also disconnects slow clients."""

    async def on_tick(self, counter: int) -> bool:
        """Check every connection once a second."""
        if counter % TICKS_A_SECOND == 0:
            now = time.monotonic()
            for connection in list(self.server_state.connections):
                if isinstance(connection, LimitedProtocol):
                    connection.check(now)
        return await super().on_tick(counter)


def server_of(application: Any, limits: ClientLimits) -> Server:
    """Server of an ASGI application."""
    protocol = type("Protocol", (LimitedProtocol,), {"limits": limits})
    config = uvicorn.Config(
        application,
        http=protocol,
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=False,  # it would hold queries; see ``WebApplication``
        proxy_headers=False,  # portal.core.http.clients counts trusted proxies
        server_header=False,
        backlog=BACKLOG,
        timeout_keep_alive=int(limits.idle_s),
        timeout_graceful_shutdown=STOP_WAIT_S,
    )
    return Server(config)


def run(application: Any, *, host: str, port: int, limits: ClientLimits) -> None:
    """Serve until SIGTERM or SIGINT. Several processes may listen on one port."""
    _, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    soft_limit = 65_536 if hard_limit == resource.RLIM_INFINITY else min(hard_limit, 65_536)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft_limit, hard_limit))
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listening.bind((host, port))
        sys.setswitchinterval(SWITCH_S)
        gc.freeze()  # imported objects are permanent: collections then scan only those of requests
        server_of(application, limits).run([listening])
