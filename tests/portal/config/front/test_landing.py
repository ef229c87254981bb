"""Large pieces of uploads over real sockets: asked for, written past the API, told of."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from portal.archive.services.transfers.held import Allowed, Held, Landed
from portal.config.front import landing
from tests.portal.config.front.running import OK, QUICK, read_all, read_one

NAME = "0b54f4f0-6f0c-4c0e-9a7e-3f2d1c5b7a90"
CONTENT = random.Random(1).randbytes(3 * 2**20 + 12_345)
NO = b"HTTP/1.1 409 Conflict\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"


@dataclass
class Allowing:
    """Stands for the API: allows stretches of so many bytes, and keeps what it was told."""

    stretch: int = len(CONTENT)
    algorithm: str = ""
    held: list[Held] = field(default_factory=list)
    before: Callable[[], None] = lambda: None

    def __call__(self, got: bytes) -> bytes:
        line = next(one for one in got.split(b"\r\n") if one.startswith(b"x-tessera-piece: "))
        assert b"content-length: 0\r\n" in got and got.endswith(b"\r\n\r\n")
        self.held.append(held := Held.of(line.partition(b": ")[2].decode()))
        if held.landed and held.landed.failed:
            return NO
        if not held.rest:
            return OK
        self.before()
        begin = held.landed.end if held.landed else 0
        said = Allowed(begin, begin + min(held.rest, self.stretch), self.algorithm).line()
        return (
            b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-Tessera-Piece: %s\r\n\r\n" % said.encode()
        )

    @property
    def landed(self) -> list[Landed]:
        return [held.landed for held in self.held if held.landed]


@pytest.fixture
def file(settings: Any, tmp_path: Path) -> Path:
    settings.TESSERA_STORAGE, settings.TESSERA_STORAGE_FLOOR_BYTES = tmp_path, 1
    path: Path = tmp_path / "incoming" / NAME
    path.parent.mkdir()
    path.touch()
    return path


def _head(length: int = len(CONTENT), name: str = NAME, more: bytes = b"") -> bytes:
    return (
        b"PATCH /api/v1/uploads/%s/ HTTP/1.1\r\nHost: t\r\nContent-Length: %d\r\n"
        b"Content-Type: application/offset+octet-stream\r\n%s\r\n" % (name.encode(), length, more)
    )


@pytest.mark.parametrize("stretch", [len(CONTENT), 2**20 + 1])
def test_a_piece_is_written_past_the_api(run: Any, file: Path, stretch: int) -> None:
    api = Allowing(stretch)
    running = run(answer=api)
    with running.connect() as client:
        client.sendall(_head() + CONTENT)
        got = read_one(client)
        assert got.startswith(b"HTTP/1.1 200 ") and b"x-tessera" not in got.lower()
        assert file.read_bytes() == CONTENT
        running.api.answer = OK
        client.sendall(_head(3, more=b"X-Again: 1\r\n") + b"abc")  # the connection goes on
        assert read_one(client).endswith(b"ok")
    assert running.api.requests[-1].endswith(b"\r\n\r\nabc")  # a small one goes the usual way
    ends = [landed.end for landed in api.landed]
    assert ends == [*range(stretch, len(CONTENT), stretch), len(CONTENT)]
    assert [held.rest for held in api.held] == [len(CONTENT) - at for at in (0, *ends)]
    assert api.landed[-1].mtime_ns == file.stat().st_mtime_ns


def test_without_splice_it_lands_as_well(
    run: Any, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some file systems take none: what is in the pipe already is not lost."""
    splice = os.splice

    def refused(source: int, into: int, count: int, **place: Any) -> int:
        if place:
            raise OSError(errno.EINVAL, "no")
        return splice(source, into, count)

    monkeypatch.setattr(landing.os, "splice", refused)
    with run(answer=Allowing()).connect() as client:
        client.sendall(_head() + CONTENT)
        assert read_one(client).endswith(b"ok")
    assert file.read_bytes() == CONTENT


@pytest.mark.parametrize("algorithm", ["sha1", "sha256", "md5"])
def test_what_is_to_be_hashed_is(run: Any, file: Path, algorithm: str) -> None:
    api = Allowing(algorithm=algorithm)
    with run(answer=api).connect() as client:
        client.sendall(_head() + CONTENT)
        assert read_one(client).endswith(b"ok")
    assert file.read_bytes() == CONTENT
    assert api.landed[0].digest == hashlib.new(algorithm, CONTENT).hexdigest()


def test_nothing_is_written_before_the_api_allows_it(run: Any, file: Path) -> None:
    running = run(answer=NO)
    with running.connect() as client:
        client.sendall(_head())
        with contextlib.suppress(ConnectionError):
            client.sendall(CONTENT)
        assert read_all(client).startswith(b"HTTP/1.1 409 ")
    assert len(running.api.requests) == 1 and file.read_bytes() == b""


def test_a_client_cannot_speak_as_the_front(run: Any, file: Path) -> None:
    api = Allowing()
    running = run(answer=api)
    lie = b"X-Tessera-Piece: %s\r\n" % Held(0, Landed(0, 10**9)).line().encode()
    with running.connect() as client:
        client.sendall(_head(more=lie) + CONTENT)
        assert read_one(client).endswith(b"ok")
    assert api.held[0] == Held(len(CONTENT))


@pytest.mark.parametrize("name", ["../../../../../../../../../etc/x1234", "-" * 36, NAME[:-1]])
def test_only_a_transfer_is_written_to(run: Any, file: Path, name: str) -> None:
    running = run()
    with running.connect() as client:
        client.sendall(_head(name=name) + CONTENT)
        assert read_one(client).endswith(b"ok")
    assert running.api.requests[0].endswith(CONTENT)  # the API's to answer, as any other


def test_of_a_piece_that_breaks_off_the_api_is_told_how_far_it_came(run: Any, file: Path) -> None:
    api = Allowing()
    running = run(answer=api)
    with running.connect() as client:
        client.sendall(_head() + CONTENT[: 2 * 2**20])
    _until(lambda: len(api.held) == 2)
    landed = api.landed[0]
    assert (landed.end, landed.failed) == (2 * 2**20, "broken")
    assert file.read_bytes() == CONTENT[: 2 * 2**20]


@pytest.mark.parametrize("every_s", [0.1, 30])
def test_a_client_that_sends_too_slowly_is_given_up(run: Any, file: Path, every_s: float) -> None:
    api = Allowing()
    running = run(answer=api, limits=replace(QUICK, rate_bytes_s=2**22))
    with running.connect() as client:
        client.sendall(_head() + CONTENT[: 2**20 + 1])
        began = time.monotonic()
        with contextlib.suppress(ConnectionError):
            while not api.landed and time.monotonic() - began < 8:
                client.sendall(b"a" if every_s < 1 else b"")
                time.sleep(min(every_s, 0.1))
        assert api.landed[0].failed == "broken"
        assert read_all(client).startswith(b"HTTP/1.1 409 ")


def test_two_do_not_write_at_once(run: Any, file: Path) -> None:
    api = Allowing()
    with file.open("r+b") as other, run(answer=api).connect() as client:
        fcntl.flock(other, fcntl.LOCK_EX)
        client.sendall(_head() + CONTENT)
        assert read_all(client).startswith(b"HTTP/1.1 409 ")
    assert api.landed[0].failed == "busy" and file.read_bytes() == b""


def test_what_somebody_else_wrote_after_it_was_allowed_stays(run: Any, file: Path) -> None:
    api = Allowing(before=lambda: file.write_bytes(b"another"))
    with run(answer=api).connect() as client:
        client.sendall(_head() + CONTENT)
        assert read_all(client).startswith(b"HTTP/1.1 409 ")
    assert api.landed[0].failed == "busy" and file.read_bytes() == b"another"


def test_a_file_that_is_gone_is_not_made_anew(run: Any, file: Path) -> None:
    api = Allowing(before=file.unlink)
    with run(answer=api).connect() as client:
        client.sendall(_head() + CONTENT)
        assert read_all(client).startswith(b"HTTP/1.1 409 ")
    assert api.landed[0].failed == "busy" and not file.exists()


@pytest.mark.parametrize("is_floor", [True, False])
def test_a_full_disk_is_told(
    run: Any, file: Path, settings: Any, monkeypatch: pytest.MonkeyPatch, is_floor: bool
) -> None:
    if is_floor:
        settings.TESSERA_STORAGE_FLOOR_BYTES = 2**60
    else:

        def full(*_: Any) -> int:
            raise OSError(errno.ENOSPC, "no space left on device")

        monkeypatch.setattr(landing.os, "pwrite", full)
    api = Allowing()
    with run(answer=api).connect() as client:
        client.sendall(_head() + CONTENT)
        assert read_all(client).startswith(b"HTTP/1.1 409 ")
    assert api.landed[0].failed == "full"


def test_a_portal_that_stops_tells_what_came(run: Any, file: Path) -> None:
    api = Allowing()
    running = run(answer=api, limits=replace(QUICK, gap_s=30))
    with running.connect() as client:
        client.sendall(_head() + CONTENT[: 2 * 2**20])
        _until(lambda: file.stat().st_size == 2 * 2**20)
        running.front.is_stopping = True
        assert read_all(client).startswith(b"HTTP/1.1 409 ")
    assert api.landed[0].end == 2 * 2**20


def test_pieces_under_way_take_no_turn_of_the_api(run: Any, file: Path) -> None:
    running = run(answer=Allowing(), limits=replace(QUICK, calls=1, bulk=1, gap_s=5))
    with contextlib.ExitStack() as stack:
        for _ in range(4):
            client = stack.enter_context(running.connect())
            client.sendall(_head() + CONTENT[: 2 * 2**20])
        _until(lambda: file.stat().st_size == 2 * 2**20)
        running.api.answer = OK
        assert running.get().endswith(b"ok")


def test_no_file_and_no_socket_is_left_open(run: Any, file: Path) -> None:
    running = run(answer=Allowing())
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(3):
        file.write_bytes(b"")
        with running.connect() as client:
            client.sendall(_head() + CONTENT)
            assert read_one(client).endswith(b"ok")
    _until(lambda: len(list(Path("/proc/self/fd").iterdir())) <= before)


def _until(holds: Callable[[], bool]) -> None:
    ends = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < ends
        time.sleep(0.02)
