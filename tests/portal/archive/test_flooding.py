"""Somebody without an account sends a gigabyte to every address, over real sockets."""

from __future__ import annotations

import socket
import uuid
from collections.abc import Iterator
from http.client import HTTPResponse

import pytest

from tests.portal.access.endpoints import endpoints, filled
from tests.portal.archive.server import Server, files_below, serving

BOUNDARY = "gigabyte"
GIGABYTE = 2**30
PART = (
    f"--{BOUNDARY}\r\nContent-Disposition: form-data; name=case\r\n\r\n{uuid.uuid4()}\r\n"
    f"--{BOUNDARY}\r\nContent-Disposition: form-data; name=file; filename=a.tif\r\n"
    "Content-Type: application/octet-stream\r\n\r\n"
).encode()
# With this cookie anybody gets as far as the comparison of tokens, for which Django reads the form.
COOKIE = f"Cookie: csrftoken={'a' * 32}\r\n"
SCENE = """
from datetime import timedelta
from portal.archive.services.cases import case_create
from portal.labs.models import *
from portal.labs.services.tokens import token_create
lab = Lab.objects.create(name="North", slug="north")
user = User.objects.create_user("a@north.example", "correct horse battery")
Membership.objects.create(user=user, lab=lab, role="annotator")
_, secret = token_create(user, name="t", scope="write", expires_in=timedelta(days=1))
print(secret, case_create(lab=lab, user=user, accession="1").pk)
"""
METHODS = ("POST", "PUT", "PATCH", "DELETE")


class Nobodys(dict[str, str]):
    """Ids of objects that nobody has, by kind."""

    def __missing__(self, kind: str) -> str:
        return "1" if kind == "passkeys" else str(uuid.uuid4())


def addresses() -> list[str]:
    paths = {filled(name, parameters, Nobodys()) for name, parameters in endpoints()}
    return sorted(paths | {"/", "/nothing/here/", "/api/v1/nothing/", "/static/x.js"})


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("flood")) as running:
        yield running


def send(
    server: Server, method: str, path: str, *, headers: str = "", first: bytes = b"x" * 2**18
) -> tuple[int, bytes]:
    """Announce a gigabyte, send the first 256 KiB of a file, and wait for the answer."""
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: application/json\r\n"
        f"Content-Type: multipart/form-data; boundary={BOUNDARY}\r\n{COOKIE}{headers}"
        + ("" if "chunked" in headers else f"Content-Length: {GIGABYTE}\r\n")
        + "\r\n"
    )
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as client:
        client.sendall(head.encode() + first)
        answer = HTTPResponse(client, method=method)
        answer.begin()
        return answer.status, answer.headers.as_bytes() + answer.read()


@pytest.mark.slow
@pytest.mark.endurance
def test_a_gigabyte_of_a_stranger_is_answered_early_everywhere(server: Server) -> None:
    before_mb = server.peak_mb()
    wrong = {}
    for path in addresses():
        for method in METHODS:
            status, _ = send(server, method, path, first=PART + b"x" * 2**18)
            if not 300 <= status < 500:
                wrong[f"{method} {path}"] = status
    assert wrong == {}
    assert files_below(server.storage) == []
    assert files_below(server.storage.parent / "tmp") == []
    assert server.peak_mb() - before_mb < 60


@pytest.mark.slow
@pytest.mark.endurance
@pytest.mark.parametrize(
    ("path", "status"), [("/accounts/login/", 413), ("/api/v1/slides/", 401), ("/cases/new/", 413)]
)
def test_the_answer_contains_the_reason(server: Server, path: str, status: int) -> None:
    status_sent, answer = send(server, "POST", path)
    assert status_sent == status
    assert b"application/problem+json" in answer


@pytest.mark.slow
@pytest.mark.endurance
def test_a_large_body_without_a_length_is_refused(server: Server) -> None:
    status, answer = send(
        server,
        "POST",
        "/accounts/login/",
        headers="Transfer-Encoding: chunked\r\n",
        first=b"200000\r\n" + b"x" * 2**21 + b"\r\n",
    )
    assert (status, b"length-required" in answer) == (411, True)


@pytest.mark.slow
@pytest.mark.endurance
def test_bytes_after_the_answer_are_not_read(server: Server) -> None:
    """The connection ends long before the gigabyte does."""
    head = (
        "POST /accounts/login/ HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        f"Content-Type: multipart/form-data; boundary={BOUNDARY}\r\n{COOKIE}"
        f"Content-Length: {GIGABYTE}\r\n\r\n"
    ).encode()
    sent = 0
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as client:
        client.sendall(head + PART)
        try:
            while sent < GIGABYTE:
                sent += client.send(b"x" * 2**20)
        except OSError:
            pass
    assert sent < 64 * 2**20
    assert files_below(server.storage) == []


def test_the_sweep_over_addresses_is_not_empty() -> None:
    assert {"/accounts/login/", "/api/v1/slides/", "/api/v1/rois/"} <= set(addresses())


@pytest.mark.slow
@pytest.mark.endurance
def test_memory_is_flat_while_a_file_is_received(server: Server) -> None:
    """128 MB of nothing: refused for its content, after all of it was received and hashed."""
    secret, case = server.python(SCENE).split()
    head = (
        f"--{BOUNDARY}\r\nContent-Disposition: form-data; name=case\r\n\r\n{case}\r\n"
        f"--{BOUNDARY}\r\nContent-Disposition: form-data; name=file; filename=a.tif\r\n\r\n"
    ).encode()
    tail = f"\r\n--{BOUNDARY}--\r\n".encode()
    length = len(head) + len(tail) + 128 * 2**20
    before_mb = server.peak_mb()
    with socket.create_connection(("127.0.0.1", server.port), timeout=120) as client:
        client.sendall(
            "POST /api/v1/slides/ HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            f"Authorization: Bearer {secret}\r\n"
            f"Content-Type: multipart/form-data; boundary={BOUNDARY}\r\n"
            f"Content-Length: {length}\r\n\r\n".encode()
            + head
        )
        for _ in range(128):
            client.sendall(b"\1" * 2**20)
        client.sendall(tail)
        status = int(client.recv(65536).split()[1])
    assert status == 400
    assert server.peak_mb() - before_mb < 60
    assert files_below(server.storage) == []
