"""Downloads and listening over a line that breaks, without a portal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2 as httpx
import pytest

from tessera_client import Client, errors, request_rules
from tessera_client.sync import events

EVENT = 'id: 7\ndata: {"type": "roi.saved", "timestamp": "2026-01-02T03:04:05Z", "data": {}}\n\n'
Answer = Callable[[int], httpx.Response]


def client(answer: Answer, requested: list[httpx.Request]) -> Client:
    """A client of a portal that gives ``answer`` to the first request, the second and so on."""

    def given(request: httpx.Request) -> httpx.Response:
        requested.append(request)
        return answer(len(requested))

    return Client("http://portal.example", "t", transport=httpx.MockTransport(given))


def refused(times: int) -> httpx.Response:
    raise httpx.ConnectError("connection refused")


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Pauses of a listener, in seconds."""
    slept: list[float] = []
    monkeypatch.setattr(request_rules, "FIRST_PAUSE_S", 0.0)
    monkeypatch.setattr(events, "sleep", slept.append)
    return slept


def test_an_unanswered_download_is_reported_and_leaves_no_file(
    tmp_path: Path, pauses: list[float]
) -> None:
    requests: list[httpx.Request] = []
    with (
        client(refused, requests) as tessera,
        pytest.raises(errors.UnreachableError, match="connection refused"),
    ):
        tessera.download_report("1", tmp_path / "report.pdf")
    assert len(requests) == request_rules.MAX_ATTEMPTS
    assert list(tmp_path.iterdir()) == []


def test_a_download_that_breaks_off_is_read_again_from_its_beginning(
    tmp_path: Path, pauses: list[float]
) -> None:
    def broken() -> Iterator[bytes]:
        yield b"the first half, and"
        raise httpx.ReadError("the connection was lost")

    def answer(time: int) -> httpx.Response:
        if time == 1:
            return httpx.Response(503, json={"code": "busy"}, headers={"Retry-After": "0"})
        return httpx.Response(200, content=broken() if time == 2 else b"all of it")

    requests: list[httpx.Request] = []
    with client(answer, requests) as tessera:
        written = tessera.download_report("1", tmp_path / "report.pdf")
    assert (written.read_bytes(), len(requests)) == (b"all of it", 3)
    assert list(tmp_path.iterdir()) == [written]


def test_a_refused_download_is_not_retried(tmp_path: Path) -> None:
    requests: list[httpx.Request] = []
    with (
        client(
            lambda _: httpx.Response(404, json={"detail": "No such report."}), requests
        ) as tessera,
        pytest.raises(errors.NotFoundError, match="No such"),
    ):
        tessera.download_report("1", tmp_path / "report.pdf")
    assert len(requests) == 1 and list(tmp_path.iterdir()) == []


def test_a_listener_resumes_when_the_portal_returns(
    pauses: list[float],
) -> None:
    away = 3 * request_rules.MAX_ATTEMPTS

    def answer(time: int) -> httpx.Response:
        if 1 < time <= 1 + away:
            return refused(time)
        return httpx.Response(200, text="id: 6\nretry: 0\n\n" if time == 1 else EVENT)

    requests: list[httpx.Request] = []
    with client(answer, requests) as tessera:
        assert next(iter(tessera.events("roi.saved"))).id == "7"
    assert pauses == [0.0, *[request_rules.LONGEST_PAUSE_S] * 3]
    assert requests[-1].headers["Last-Event-ID"] == "6"


@pytest.mark.parametrize("follow", [False, True])
def test_a_listener_without_any_answer_raises_an_error(follow: bool, pauses: list[float]) -> None:
    with client(refused, []) as tessera, pytest.raises(errors.UnreachableError):
        next(iter(tessera.events(follow=follow)))
    assert pauses == []


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("attachment; filename=\"file.csv\"; filename*=UTF-8''%D8%B4%D8%B1.csv", "شر.csv"),
        ('attachment; filename="a b.csv"', "a b.csv"),
        ("attachment; filename*=UTF-8''..%2F..%2Fetc%2Fpasswd", "passwd"),
        ("attachment; filename*=UTF-8''C%3A%5Cevil%E2%80%AEx.csv", "evilx.csv"),
        ("", "download"),
    ],
)
def test_a_download_into_a_folder_has_the_name_that_the_portal_gives(
    tmp_path: Path, header: str, name: str
) -> None:
    def answer(_request: httpx.Request) -> httpx.Response:
        headers = {"Content-Disposition": header} if header else {}
        return httpx.Response(200, content=b"x", headers=headers)

    with Client("http://portal.example", "t", transport=httpx.MockTransport(answer)) as tessera:
        assert tessera.export_rois("1", tmp_path) == tmp_path / name
    assert [path.name for path in tmp_path.iterdir()] == [name]
