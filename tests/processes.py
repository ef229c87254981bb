"""Waits for processes that tests start: their end, and the first answer of a server."""

from __future__ import annotations

import os
import select
import subprocess
import time
import urllib.request
from collections.abc import Mapping

_ATTEMPT_S = 0.1  # between attempts to connect; nothing reports that a port is listened on


def has_exited(pid: int, *, within_s: float) -> bool:
    """Wait for the end of a process, of whichever parent. A zombie has ended."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([handle], [], [], within_s)[0])
    finally:
        os.close(handle)


def wait_until_served(
    process: subprocess.Popen[bytes],
    url: str,
    *,
    within_s: float = 60,
    headers: Mapping[str, str] | None = None,
) -> None:
    """Wait until a server answers 200 at an address.

    Raises:
        RuntimeError: The process ended, or its time is over.
    """
    request = urllib.request.Request(url, headers=dict(headers or {}))
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        try:
            urllib.request.urlopen(request, timeout=5).close()
        except OSError as error:
            problem = error
        else:
            return
        try:
            status = process.wait(_ATTEMPT_S)
        except subprocess.TimeoutExpired:
            continue
        raise RuntimeError(f"the server at {url} ended with status {status}: {problem}")
    raise RuntimeError(f"the server at {url} does not answer after {within_s} s: {problem}")
