"""Ports for servers that tests start."""

from __future__ import annotations

import socket

HOST = "127.0.0.1"


def free_port() -> int:
    """A port that nobody listens on now.

    The kernel chooses it: two processes that each look for the next free one may find the same.
    """
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])
