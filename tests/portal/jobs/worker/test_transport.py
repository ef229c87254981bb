"""The filesystem broker: whole files only, each message to one reader, no file that kills."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from queue import Empty
from typing import Any

import pytest
from kombu import Connection

from portal.config.celery import app
from portal.config.environment import transport_options

ROOT = Path(__file__).resolve().parents[4]


@pytest.fixture
def channel(tmp_path: Path) -> Iterator[Any]:
    app.finalize()  # the transport is ours once the application is there
    options = transport_options("filesystem://", folder=tmp_path)
    with Connection("filesystem://", transport_options=options) as connection:
        yield connection.default_channel


def _names(folder: Path) -> list[str]:
    return [file.name for file in (folder / "queue").iterdir()]


def test_a_message_goes_in_and_comes_out_once(channel: Any, tmp_path: Path) -> None:
    for number in range(3):
        channel._put("default", {"number": number})
    channel._put("gpu", {"number": 9})
    assert [channel._get("default")["number"] for _ in range(3)] == [0, 1, 2]
    with pytest.raises(Empty):
        channel._get("default")
    assert channel._size("gpu") == 1
    assert len(_names(tmp_path)) == 1, "taken messages leave nothing behind"


@pytest.mark.parametrize("content", [b"", b'{"body": "W1', b"\xff\xfe"])
def test_a_damaged_message_is_dropped_and_the_next_is_read(
    channel: Any, tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "queue" / "000_damaged.default.msg").write_bytes(content)
    channel._put("default", {"number": 1})
    assert channel._get("default") == {"number": 1}
    assert _names(tmp_path) == []


@pytest.mark.parametrize("content", [b"", b'[["default", "'])
def test_a_damaged_exchange_table_is_written_anew(
    channel: Any, tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "control" / "default.exchange").write_bytes(content)
    assert channel.get_table("default") == []
    channel._queue_bind("default", "default", "", "default")
    channel._queue_bind("default", "gpu", "", "gpu")
    assert {row.queue for row in channel.get_table("default")} == {"default", "gpu"}
    channel._delete("gpu", "default", "gpu", "")
    assert [row.queue for row in channel.get_table("default")] == ["default"]


def test_a_full_disk_leaves_no_half_message(
    channel: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Path, text: str) -> None:
        self.write_bytes(text.encode()[:5])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(channel.connection.channel_errors):
        channel._put("default", {"number": 1})
    assert _names(tmp_path) == []


def test_what_killed_processes_left_is_swept(channel: Any, tmp_path: Path) -> None:
    old, new = tmp_path / "queue" / ".old.part", tmp_path / "queue" / ".new.part"
    for file in (old, new):
        file.write_text("half")
    os.utime(old, (0, 0))
    channel.connection.create_channel(channel.connection)
    assert new.exists() and not old.exists()


_WRITER = """
import sys; from tests.portal.jobs.worker.test_transport import hammer
hammer(sys.argv[1], sys.argv[2], int(sys.argv[3]))
"""


def hammer(role: str, folder: str, count: int) -> None:
    """Write ``count`` messages, or read until nothing comes for three seconds, and print."""
    import time

    app.finalize()
    options = transport_options("filesystem://", folder=Path(folder))
    with Connection("filesystem://", transport_options=options) as connection:
        channel: Any = connection.default_channel
        if role == "write":
            for number in range(count):
                channel._queue_bind("default", f"{number % 7}", "", "default")
                channel._put("default", {"from": os.getpid(), "number": number, "pad": "x" * 20000})
            return
        silent_since = time.monotonic()
        while time.monotonic() - silent_since < 3:
            channel.get_table("default")
            try:
                print(channel._get("default")["number"], flush=True)
                silent_since = time.monotonic()
            except Empty:
                continue


def test_readers_and_writers_at_once_lose_double_and_tear_nothing(tmp_path: Path) -> None:
    def start(role: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", _WRITER, role, str(tmp_path), "150"]
        return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)

    processes = [start(role) for role in ("read", "read", "write", "write")]
    said = [process.communicate(timeout=120)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0, 0]
    numbers = sorted(int(line) for text in said for line in text.split())
    assert numbers == sorted([*range(150), *range(150)])
