"""The portal behind its server: bodies, turns and streams over real sockets."""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import threading
from collections.abc import Iterator

import pytest

from portal.operations.web.bodies import PER_LAB, PER_PERSON, TooManyTransfersError, TransferTurns
from portal.operations.web.handler import _parts_in_thread
from tests.portal.archive.server import Server, serving
from tests.portal.operations.web.running import connect, exchange, until
from tests.ports import HOST
from tests.threads import run_async

PREPARE = """
from portal.archive.services.cases import case_create
from portal.labs.models import Lab, Membership, TokenScope, User
from portal.labs.services.tokens import token_create
from datetime import timedelta
import json
found = {}
for lab_name in ("one", "two"):
    lab = Lab.objects.create(name=lab_name, slug=lab_name)
    user = User.objects.create_user(f"{lab_name}@t.example", "correct horse battery")
    Membership.objects.create(lab=lab, user=user, role="manager")
    case = case_create(lab=lab, user=user, accession=f"A-{lab_name}")
    for scope in (TokenScope.READ, TokenScope.WRITE):
        token = token_create(user, name=str(scope), scope=scope, expires_in=timedelta(days=1))
        found[f"{lab_name}-{scope}"] = token[1]
    found[lab_name] = str(case.pk)
print(json.dumps(found))
"""
SIZE = 3 * 2**20


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("web"), TESSERA_WEB_THREADS="2") as running:
        yield running


@pytest.fixture(scope="module")
def known(server: Server) -> dict[str, str]:
    data: dict[str, str] = json.loads(server.python(PREPARE))
    return data


def _call(
    server: Server, method: str, path: str, token: str, body: bytes = b"", **headers: str
) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection(HOST, server.port, timeout=60)
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    sent = {"Authorization": f"Bearer {token}"} | given
    connection.request(method, path, body or None, sent)
    answer = connection.getresponse()
    response = answer.status, {k.lower(): v for k, v in answer.headers.items()}, answer.read()
    connection.close()
    return response


def _announce(server: Server, known: dict[str, str], lab: str) -> str:
    case = base64.b64encode(known[lab].encode()).decode()
    name = base64.b64encode(b"a.png").decode()
    status, headers, body = _call(
        server,
        "POST",
        "/api/v1/uploads/",
        known[f"{lab}-write"],
        Tus_Resumable="1.0.0",
        Upload_Length=str(SIZE),
        Upload_Metadata=f"case {case},filename {name}",
    )
    assert status == 201, body
    return headers["location"]


def _piece_head(path: str, token: str) -> bytes:
    return (
        f"PATCH {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"
        "Tus-Resumable: 1.0.0\r\nUpload-Offset: 0\r\n"
        f"Content-Type: application/offset+octet-stream\r\nContent-Length: {SIZE}\r\n\r\n"
    ).encode()


def _offset(server: Server, path: str, token: str) -> int:
    _, headers, _ = _call(server, "HEAD", path, token, Tus_Resumable="1.0.0")
    return int(headers["upload-offset"])


@pytest.mark.slow
def test_slow_uploads_of_one_person_hold_up_neither_pages_nor_another_lab(
    server: Server, known: dict[str, str]
) -> None:
    token = known["one-write"]
    with contextlib.ExitStack() as stack:
        clients = []
        for _ in range(PER_PERSON + 3):
            path = _announce(server, known, "one")
            client = stack.enter_context(connect(server.port))
            client.sendall(_piece_head(path, token) + b"a" * (SIZE - 1000))
            clients.append(client)
        refused: list[bytes] = []

        def some_are_refused() -> bool:
            for client in clients:
                client.setblocking(False)
                with contextlib.suppress(BlockingIOError):
                    refused.append(client.recv(65536))
            return sum(map(bool, refused)) == 3

        until(some_are_refused)
        assert all(
            b" 429 " in upload and b"too-many-transfers" in upload for upload in refused if upload
        )
        assert _call(server, "GET", "/api/v1/cases/", token)[0] == 200
        other = _announce(server, known, "two")
        data = _piece_head(other, known["two-write"]) + b"b" * SIZE
        assert read_all_of(server, data).startswith(b"HTTP/1.1 204 ")
    path = _announce(server, known, "one")  # turns are given back

    def is_free() -> bool:
        return read_all_of(server, _piece_head(path, token) + b"a" * SIZE).startswith(
            b"HTTP/1.1 204 "
        )

    until(is_free)


def read_all_of(server: Server, sent: bytes) -> bytes:
    """The head of an answer."""
    with connect(server.port) as client:
        with contextlib.suppress(ConnectionError):
            client.sendall(sent)
        return client.recv(65536)


def test_an_interrupted_large_piece_is_stored_up_to_its_interruption(
    server: Server, known: dict[str, str]
) -> None:
    token, path = known["one-write"], _announce(server, known, "one")
    with connect(server.port) as client:
        client.sendall(_piece_head(path, token) + b"a" * (2 * 2**20 + 17))
        until(lambda: _written(server, path) >= 2**20)
    until(lambda: _offset(server, path, token) == 2 * 2**20 + 17)


def _written(server: Server, path: str) -> int:
    file = server.storage / "incoming" / path.split("/")[-2]
    return file.stat().st_size


def test_a_large_anonymous_body_is_refused_before_it_is_read(
    server: Server, known: dict[str, str]
) -> None:
    path = _announce(server, known, "one")
    head = _piece_head(path, "tess_invented")
    got = exchange(server.port, head + b"a" * (2**20 + 4096))
    assert got.startswith(b"HTTP/1.1 401 ")


@pytest.mark.parametrize("path", ["/api/v1/search/", "/api/v1/cases/"])
def test_json_is_bounded_before_it_is_parsed(
    server: Server, known: dict[str, str], path: str
) -> None:
    body = b'{"a": "' + b"x" * 2 * 2**20 + b'"}'
    token = known["one-read"] if "search" in path else known["one-write"]
    status, headers, text = _call(
        server, "POST", path, token, body, Content_Type="application/json"
    )
    assert (status, headers["content-type"]) == (413, "application/problem+json")
    assert json.loads(text)["limit_bytes"] == 2**20


def test_a_body_in_chunks_is_read_where_it_is_small_and_refused_where_it_is_large(
    server: Server, known: dict[str, str]
) -> None:
    head = (
        "POST /api/v1/cases/ HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n"
        f"Authorization: Bearer {known['one-write']}\r\nContent-Type: application/json\r\n\r\n"
    ).encode()
    small = b"%x\r\n%s\r\n0\r\n\r\n" % (2, b"{}")
    with connect(server.port) as client:
        client.sendall(head + small)
        assert client.recv(65536).startswith(b"HTTP/1.1 400 ")  # fields are missing
    large = b"%x\r\n%s\r\n0\r\n\r\n" % (2**21, b"a" * 2**21)
    assert read_all_of(server, head + large).startswith(b"HTTP/1.1 411 ")


def test_static_files_and_pages_are_served_and_head_has_no_body(server: Server) -> None:
    head = b"HEAD /accounts/login/ HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
    got = exchange(server.port, head)
    assert got.startswith(b"HTTP/1.1 200 ") and got.endswith(b"\r\n\r\n")
    bad = b"GET /tiles/x HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
    assert exchange(server.port, bad).startswith(b"HTTP/1.1 403 ")


def test_an_answer_made_while_it_is_sent_stays_in_one_thread_and_ends_when_it_is_left() -> None:
    seen: list[str] = []

    def parts() -> Iterator[bytes]:
        try:
            for _ in range(100):
                seen.append(threading.current_thread().name)
                yield b"part"
        finally:
            seen.append("ended")

    async def leave_early() -> None:
        received = _parts_in_thread(parts())
        assert [await anext(received) for _ in range(3)] == [b"part"] * 3
        await received.aclose()

    run_async(leave_early())
    until(lambda: seen[-1] == "ended")
    assert len(set(seen[:-1])) == 1 and len(seen) == 4


def test_a_lab_and_a_person_have_a_limit_each_and_get_their_turns_back() -> None:
    turns = TransferTurns()
    item = {"person": PER_PERSON, "lab": PER_LAB}
    for _ in range(PER_PERSON):
        turns.take(item)
    with pytest.raises(TooManyTransfersError):
        turns.take(item)
    for number in range(PER_LAB - PER_PERSON):
        turns.take({number: PER_PERSON, "lab": PER_LAB})
    with pytest.raises(TooManyTransfersError):
        turns.take({"another": PER_PERSON, "lab": PER_LAB})
    turns.take({"another": PER_PERSON, "other lab": PER_LAB})
    turns.give_back(item)
    turns.take(item)
