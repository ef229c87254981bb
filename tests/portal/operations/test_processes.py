"""The command lines of a portal's processes, and the port they listen on."""

from __future__ import annotations

import re
import socket
from itertools import pairwise
from pathlib import Path

import pytest

from portal.operations import processes
from portal.operations.processes import free_port


def test_web_processes_share_a_port_and_workers_are_niced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TESSERA_WEB_WORKERS", "3")
    process = processes.web("127.0.0.1", 8000, reload=False)
    assert len({row.name for row in process}) == 3
    assert {dict(pairwise(item.command))["--port"] for item in process} == {"8000"}
    monkeypatch.delenv("TESSERA_WORKER_NICE", raising=False)
    assert processes.worker().command[:3] == ["nice", "-n", "15"]
    monkeypatch.setenv("TESSERA_WORKER_NICE", "0")
    assert processes.worker().command[:3] == ["nice", "-n", "0"]


def test_workers_of_the_image_have_the_same_niceness() -> None:
    script = (Path(__file__).parents[3] / "docker/entrypoint.sh").read_text()
    levels = re.findall(r"TESSERA_WORKER_NICE:-(\d+)", script)
    assert levels == [str(processes.WORKER_NICE)]


def test_a_taken_port_gives_the_next_free_one() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert port < free_port("127.0.0.1", port) < port + 100
