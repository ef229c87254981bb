"""Byte ranges and unchanging content."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.http.response import HttpResponseBase
from django.test import RequestFactory

from portal.core.http.files import CHUNK_BYTES, bytes_response, range_response

CONTENT = bytes(range(256)) * 4
ETAG = '"v-1"'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "media"
    path.write_bytes(CONTENT)
    return path


def get_file(file: Path, method: str = "get", **headers: str) -> HttpResponseBase:
    request = getattr(RequestFactory(), method)("/", headers=headers)
    return range_response(request, file, etag=ETAG, media_type="video/mp4")


def body(response: HttpResponseBase) -> bytes:
    return b"".join(response) if response.streaming else response.content  # type: ignore


def test_without_a_range_the_complete_file_is_sent(file: Path) -> None:
    response = get_file(file)
    assert response.status_code == 200
    assert response.headers["Accept-Ranges"] == "bytes"
    assert response.headers["Content-Length"] == "1024"
    assert body(response) == CONTENT


@pytest.mark.parametrize(
    ("sent", "first", "last"),
    [
        ("bytes=0-0", 0, 0),
        ("bytes=10-19", 10, 19),
        ("bytes=1000-", 1000, 1023),
        ("bytes=1000-999999", 1000, 1023),
        ("bytes=-24", 1000, 1023),
        ("bytes=-5000", 0, 1023),
        ("bytes=0-", 0, 1023),
    ],
)
def test_a_range_is_answered_with_its_bytes(file: Path, sent: str, first: int, last: int) -> None:
    response = get_file(file, Range=sent)
    assert response.status_code == 206
    assert response.headers["Content-Range"] == f"bytes {first}-{last}/1024"
    assert body(response) == CONTENT[first : last + 1]
    assert response.headers["Content-Length"] == str(last - first + 1)


@pytest.mark.parametrize("sent", ["bytes=1024-", "bytes=5000-6000", "bytes=-0"])
def test_a_range_beyond_the_end_cannot_be_satisfied(file: Path, sent: str) -> None:
    response = get_file(file, Range=sent)
    assert response.status_code == 416
    assert response.headers["Content-Range"] == "bytes */1024"


@pytest.mark.parametrize(
    "sent",
    ["bytes=5-2", "bytes=-", "bytes=a-b", "lines=1-2", "bytes=0-1,5-6", "nonsense", "bytes=1",
     "bytes=" + "9" * 30 + "-"],
)  # fmt: skip
def test_an_unsupported_range_is_ignored(file: Path, sent: str) -> None:
    assert get_file(file, Range=sent).status_code == 200


def test_if_range_with_other_bytes_sends_the_complete_file(file: Path) -> None:
    assert get_file(file, Range="bytes=0-9", **{"If-Range": ETAG}).status_code == 206
    assert get_file(file, Range="bytes=0-9", **{"If-Range": '"old"'}).status_code == 200


def test_unchanged_media_is_not_sent_again(file: Path) -> None:
    assert get_file(file, **{"If-None-Match": ETAG}).status_code == 304


def test_head_sends_only_the_length(file: Path) -> None:
    response = get_file(file, "head", Range="bytes=0-9")
    assert (response.status_code, response.headers["Content-Length"]) == (206, "10")
    assert body(response) == b""


def test_a_large_file_is_read_in_pieces(tmp_path: Path) -> None:
    path = tmp_path / "large"
    path.write_bytes(b"x" * (2 * CHUNK_BYTES + 5))
    pieces = [len(piece) for piece in get_file(path)]
    assert pieces == [CHUNK_BYTES, CHUNK_BYTES, 5]


def test_an_empty_file_has_no_range(tmp_path: Path) -> None:
    path = tmp_path / "empty"
    path.touch()
    assert get_file(path).status_code == 200
    assert get_file(path, Range="bytes=0-").status_code == 416


def test_bytes_are_immutable_in_caches() -> None:
    request = RequestFactory().get("/", headers={"If-None-Match": f'W/{ETAG}, "x"'})
    response = bytes_response(request, b"data", etag=ETAG)
    assert response.status_code == 304
    assert response.headers["Cache-Control"].endswith("immutable")
