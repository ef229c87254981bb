"""Killed processes of a worker, and damaged or incomplete messages."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from queue import Empty
from typing import Any

import pytest
from kombu import Connection

from portal.config.celery import app
from portal.core.environment import transport_options
from portal.jobs.worker.workarounds import remove_damaged_tables


@pytest.mark.slow
def test_a_pool_works_on_after_its_processes_were_killed() -> None:
    command = [sys.executable, "-m", "tests.portal.jobs.worker.killed_pool"]
    with subprocess.Popen(command, start_new_session=True) as process:
        try:
            assert process.wait(timeout=60) == 0
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


@pytest.fixture
def channel(tmp_path: Path) -> Iterator[Any]:
    app.finalize()
    options = transport_options("filesystem://", folder=tmp_path)
    with Connection("filesystem://", transport_options=options) as connection:
        yield connection.default_channel


def test_each_message_is_read_once(channel: Any) -> None:
    for number in range(3):
        channel._put("default", {"number": number})
    channel._put("gpu", {"number": 9})
    assert [channel._get("default")["number"] for _ in range(3)] == [0, 1, 2]
    with pytest.raises(Empty):
        channel._get("default")
    assert channel._size("gpu") == 1


@pytest.mark.parametrize("content", [b"", b'{"body": "W1', b"\xff\xfe"])
def test_a_damaged_message_is_dropped_and_the_next_is_read(
    channel: Any, tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "queue" / "000_damaged.default.msg").write_bytes(content)
    channel._put("default", {"number": 1})
    assert channel._get("default") == {"number": 1}
    assert list((tmp_path / "queue").iterdir()) == []


def test_a_full_disk_leaves_no_incomplete_message(
    channel: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Path, text: str) -> None:
        self.write_bytes(text.encode()[:5])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(channel.connection.channel_errors):
        channel._put("default", {"number": 1})
    assert list((tmp_path / "queue").iterdir()) == []


def test_readers_see_only_complete_messages(channel: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rename, seen = Path.rename, []

    def look_first(self: Path, target: Path) -> Path:
        seen.append(channel._size("default"))
        with pytest.raises(Empty):
            channel._get("default")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", look_first)
    channel._put("default", {"number": 1})
    assert seen == [0] and channel._get("default") == {"number": 1}


@pytest.mark.parametrize("content", [b"", b'[["default", "'])
def test_a_damaged_table_of_queues_is_written_again(
    channel: Any, tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "control" / "default.exchange").write_bytes(content)
    remove_damaged_tables(tmp_path / "control")
    channel._queue_bind("default", "default", "", "default")
    assert [row.queue for row in channel.get_table("default")] == ["default"]
