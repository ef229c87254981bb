"""Hostile and slow clients over real sockets, directly and behind Caddy and HAProxy."""

from __future__ import annotations

import contextlib
import select
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.portal.operations.web.running import (
    QUICK,
    Recorder,
    Running,
    answer,
    exchange,
    read_all,
    read_one,
    until,
)
from tests.ports import free_port

SECOND = (
    b"GET /second HTTP/1.1\r\nHost: t\r\nAuthorization: Bearer stolen\r\nConnection: close\r\n\r\n"
)
POST = b"POST /first HTTP/1.1\r\nHost: t\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n"

AMBIGUOUS = {
    "no HTTP": b"nonsense\r\n\r\n",
    "a target of another host": b"GET http://other/first HTTP/1.1\r\nHost: t\r\n\r\n",
    "no path": b"GET first HTTP/1.1\r\nHost: t\r\n\r\n",
    "a target that is not ASCII": b"GET /\xc3\xa9 HTTP/1.1\r\nHost: t\r\n\r\n",
    "two hosts": b"GET /first HTTP/1.1\r\nHost: t\r\nHost: u\r\n\r\n",
    "two lengths": POST + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
    "the same length twice": POST + b"Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
    "a list of lengths": POST + b"Content-Length: 3, 3\r\n\r\nabc",
    "a signed length": POST + b"Content-Length: +3\r\n\r\nabc",
    "a negative length": POST + b"Content-Length: -1\r\n\r\n",
    "a length beside chunks": CHUNKED + b"Content-Length: 3\r\n\r\n0\r\n\r\n" + SECOND,
    "an unknown coding": POST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "a compressed coding": POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "chunked twice": CHUNKED + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks in HTTP/1.0": CHUNKED.replace(b"1.1", b"1.0") + b"\r\n0\r\n\r\n",
    "a space before the colon": b"GET /first HTTP/1.1\r\nHost: t\r\nX : a\r\n\r\n",
    "a bare line feed": b"GET /first HTTP/1.1\nHost: t\nX: a\n\n",
    "a NUL in a header": b"GET /first HTTP/1.1\r\nHost: t\r\nX: a\x00b\r\n\r\n",
    "a chunk of no number": CHUNKED + b"\r\n0x3\r\nabc\r\n0\r\n\r\n",
    "a chunk that is longer than it says": CHUNKED + b"\r\n1\r\nabc\r\n0\r\n\r\n",
    "a GET with a body": b"GET /first HTTP/1.1\r\nHost: t\r\nContent-Length: 9\r\n\r\n" + SECOND,
    "a GET with chunks": CHUNKED.replace(b"POST", b"GET") + b"\r\n0\r\n\r\n" + SECOND,
    "a body beside an upgrade": POST
    + b"Connection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: %d\r\n\r\n" % len(SECOND)
    + SECOND,
}
TRAILERS = CHUNKED + (
    b"\r\n3\r\nabc\r\n0\r\nX-Forwarded-For: 6.6.6.6\r\nAuthorization: Bearer stolen\r\n\r\n"
)


@pytest.mark.parametrize("sent", AMBIGUOUS.values(), ids=AMBIGUOUS)
def test_ambiguous_requests_are_refused(run: Any, sent: bytes) -> None:
    recorder = Recorder()
    got = run(recorder).exchange(sent)
    assert got.startswith(b"HTTP/1.1 400 ") and got.count(b"HTTP/1.1 ") == 1
    assert not [message for message in recorder.received if message.headers]


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_trailers_are_no_headers(run: Any, size: int) -> None:
    recorder = Recorder()
    with run(recorder).connect() as client:
        for at in range(0, len(TRAILERS), size):
            client.sendall(TRAILERS[at : at + size])
        assert read_one(client).endswith(b"ok")
    (requested,) = recorder.received
    assert requested.body == b"abc"
    assert {name for name, _ in requested.headers} == {b"host", b"transfer-encoding"}


def test_a_second_request_in_the_same_packet_does_not_change_the_first(run: Any) -> None:
    recorder = Recorder()
    got = run(recorder).exchange(POST + b"Content-Length: 3\r\n\r\nabc" + SECOND)
    assert got.count(b"HTTP/1.1 200 ") == 1
    (requested,) = recorder.received
    assert (requested.path, requested.body) == ("/first", b"abc")
    assert b"authorization" not in dict(requested.headers)


def test_requests_on_one_connection_are_answered_one_after_the_other(run: Any) -> None:
    recorder = Recorder()
    with run(recorder).connect() as client:
        for number in range(3):
            client.sendall(b"GET /%d HTTP/1.1\r\nHost: t\r\n\r\n" % number)
            assert read_one(client).endswith(b"ok")
    assert [message.path for message in recorder.received] == ["/0", "/1", "/2"]


def test_an_offer_of_another_protocol_is_answered_in_this_one(run: Any) -> None:
    sent = b"GET /a HTTP/1.1\r\nHost: t\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    with run(Recorder()).connect() as client:
        client.sendall(sent)
        assert read_one(client).endswith(b"ok")


def test_names_that_cgi_reads_as_another_are_dropped(run: Any) -> None:
    recorder = Recorder()
    run(recorder).exchange(
        b"GET /a HTTP/1.1\r\nHost: t\r\nX_Forwarded_For: 6.6.6.6\r\nConnection: close\r\n\r\n"
    )
    assert {name for name, _ in recorder.received[0].headers} == {b"host", b"connection"}


@pytest.mark.parametrize(
    "sent",
    [
        b"GET /" + b"a" * 40_000,
        b"GET /a HTTP/1.1\r\nHost: t\r\nX: " + b"a" * 40_000,
        b"GET /a HTTP/1.1\r\nHost: t\r\n" + b"X: a\r\n" * 8_000,
        CHUNKED + b"\r\n3\r\nabc\r\n0\r\nX: " + b"a" * 400_000,
        CHUNKED + b"\r\n3;" + b"a" * 400_000,
    ],
    ids=["target", "header", "headers", "trailer", "chunk"],
)
def test_heads_and_trailers_without_end_are_refused(run: Any, sent: bytes) -> None:
    recorder = Recorder()
    running = run(recorder)
    assert running.exchange(sent).startswith(b"HTTP/1.1 431 ")
    until(lambda: running.connections == 0)
    assert not recorder.received


def test_chunks_of_single_bytes_are_refused(run: Any) -> None:
    got = run(Recorder()).exchange(CHUNKED + b"\r\n" + b"1\r\na\r\n" * 5_000)
    assert got.startswith(b"HTTP/1.1 413 ")


@pytest.mark.slow
@pytest.mark.parametrize(
    "sent",
    [b"GET / HTTP/1.1\r\nHost: t\r\n", POST + b"Content-Length: 1000\r\n\r\na=", b"", b"\r\n"],
    ids=["half a head", "half a body", "nothing", "an empty line"],
)
def test_two_hundred_silent_connections_block_no_client_and_are_closed(
    run: Any, sent: bytes
) -> None:
    running = run(Recorder())
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(running.connect()) for _ in range(200)]
        for client in clients:
            client.sendall(sent)
        assert running.get().endswith(b"ok")
        for client in clients:
            got = read_all(client)
            assert got == b"" or got.startswith(b"HTTP/1.1 408 ")
    until(lambda: running.connections == 0)


@pytest.mark.slow
def test_an_empty_line_after_an_answer_does_not_prolong_a_connection(run: Any) -> None:
    with run(Recorder()).connect() as client:
        client.sendall(b"GET /a HTTP/1.1\r\nHost: t\r\n\r\n")
        assert read_one(client).endswith(b"ok")
        client.sendall(b"\r\n")
        assert not read_all(client).startswith(b"HTTP/1.1 200")


@pytest.mark.slow
def test_a_body_that_trickles_is_given_up(run: Any) -> None:
    recorder = Recorder()
    with run(recorder).connect() as client:
        client.sendall(POST + b"Content-Length: 100000\r\n\r\n")
        began = time.monotonic()
        with contextlib.suppress(ConnectionError):
            while not select.select([client], [], [], 0.1)[0] and time.monotonic() - began < 15:
                client.sendall(b"a" * 100)
        assert time.monotonic() - began < 15
        until(lambda: not recorder.received)  # the application hears of it a little later


@pytest.mark.slow
def test_a_client_that_does_not_read_is_disconnected(run: Any) -> None:
    async def large(scope: Any, receive: Any, send: Any) -> None:
        await answer(send, b"a" * 2**24)

    running = run(large)
    with running.connect() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.sendall(b"GET /a HTTP/1.1\r\nHost: t\r\n\r\n")
        until(lambda: running.connections == 1)
        until(lambda: running.connections == 0)


@pytest.mark.slow
def test_an_early_answer_reaches_the_client_and_the_rest_of_the_body_is_not_waited_for(
    run: Any,
) -> None:
    running = run(Recorder(reads=False))
    with running.connect() as client:
        client.sendall(POST + b"Content-Length: 16777216\r\n\r\n")
        with contextlib.suppress(ConnectionError):
            client.sendall(b"a" * 2**21)
        assert b"HTTP/1.1 200 " in read_all(client)
        until(lambda: running.connections == 0)


def test_more_connections_of_one_address_than_allowed_are_refused(run: Any) -> None:
    running = run(Recorder(), replace(QUICK, per_address=3))
    with running.connect(), running.connect(), running.connect():
        until(lambda: running.connections == 3)
        assert running.get().startswith(b"HTTP/1.1 503 ")
    until(lambda: running.connections == 0)
    assert running.get().startswith(b"HTTP/1.1 200 ")


def test_a_stopping_server_finishes_its_answers(run: Any) -> None:
    async def slow(scope: Any, receive: Any, send: Any) -> None:
        running.server.should_exit = True
        until_stopped.append(scope["path"])
        await answer(send, b"ok")

    until_stopped: list[str] = []
    running = run(slow)
    assert running.get().endswith(b"ok") and until_stopped == ["/a"]
    running.join()
    with pytest.raises(ConnectionRefusedError):
        running.connect()


# --- behind a proxy ------------------------------------------------------------------------------
CADDY = """{{
  admin off
  auto_https off
}}
http://:{port} {{
  bind 127.0.0.1
  reverse_proxy 127.0.0.1:{backend}
}}
"""
HAPROXY = """defaults
  mode http
  timeout connect 5s
  timeout client 20s
  timeout server 20s
  option forwardfor
frontend in
  bind 127.0.0.1:{port}
  default_backend out
backend out
  http-reuse always
  server one 127.0.0.1:{backend}
"""


@contextlib.contextmanager
def proxy(name: str, backend: int, folder: Path) -> Iterator[int]:
    """Caddy or HAProxy before a server."""
    if shutil.which(name) is None and not Path(f"/usr/sbin/{name}").exists():
        pytest.skip(f"{name} is not installed")
    program = shutil.which(name) or f"/usr/sbin/{name}"
    port, config = free_port(), folder / "config"
    text = (CADDY if name == "caddy" else HAPROXY).format(port=port, backend=backend)
    config.write_text(text)
    command = [program, "run", "--adapter", "caddyfile", "--config", str(config)]
    if name == "haproxy":
        command = [program, "-db", "-f", str(config)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until(lambda: _listens(port), 60)
        yield port
    finally:
        process.terminate()
        process.wait(20)


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


@pytest.mark.parametrize("name", ["caddy", "haproxy"])
def test_behind_a_proxy_no_request_is_smuggled(name: str, tmp_path: Path) -> None:
    recorder = Recorder()
    with Running(recorder) as running, proxy(name, running.port, tmp_path) as port:
        for sent in (*AMBIGUOUS.values(), TRAILERS, POST + b"Content-Length: 3\r\n\r\nabc"):
            with socket.create_connection(("127.0.0.1", port), 20) as client:
                with contextlib.suppress(ConnectionError):
                    client.sendall(sent)
                client.shutdown(socket.SHUT_WR)
                read_all(client)
        plain = b"GET /last HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n"
        assert exchange(port, plain).endswith(b"ok")
    for requested in recorder.received:
        fields = dict(requested.headers)
        assert b"6.6.6.6" not in fields.get(b"x-forwarded-for", b"")
        assert (b"authorization" in fields) == (requested.path == "/second")
    assert recorder.received[-1].path == "/last"
