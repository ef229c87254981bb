"""The command lines of a portal's processes, and the port they listen on."""

from __future__ import annotations

import socket

from portal.config.processes import free_port


def test_a_taken_port_gives_the_next_free_one() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert port < free_port("127.0.0.1", port) < port + 100
