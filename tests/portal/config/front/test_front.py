"""The front over real sockets: limits of time, size and number, and nothing lost on the way."""

from __future__ import annotations

import contextlib
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from portal.config.front import connection
from tests.portal.config.front.running import OK, QUICK, read_all, read_one

POST = b"POST /a HTTP/1.1\r\nHost: t\r\nContent-Length: %d\r\n\r\n"


def test_a_request_reaches_the_api_with_the_address_of_its_client(run: Any) -> None:
    running = run()
    got = running.get()
    assert got.startswith(b"HTTP/1.1 200 OK") and got.endswith(b"ok")
    assert b"x-tessera-peer: 127.0.0.1" in running.api.requests[0]


def test_a_client_cannot_name_its_own_address(run: Any) -> None:
    running = run()
    running.ask(
        b"GET /a HTTP/1.1\r\nHost: t\r\nX-Tessera-Peer: 10.0.0.1\r\nX_Tessera_Peer: 10.0.0.1\r\n"
        b"Connection: close\r\n\r\n"
    )
    assert running.api.requests[0].count(b"10.0.0.1") == 0


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\nHost: t\r\n",
        b"POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 1000\r\n\r\na=",
        b"",
    ],
)
def test_two_hundred_idle_connections_hold_up_nobody(run: Any, sent: bytes) -> None:
    running = run()
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(running.connect()) for _ in range(200)]
        for client in clients:
            client.sendall(sent)
        began = time.monotonic()
        assert running.get().endswith(b"ok")
        assert time.monotonic() - began < 1.0
        assert running.api.most_open == 1
        for client in clients:  # and they are ended in time
            got = read_all(client)
            assert got == b"" or got.startswith(b"HTTP/1.1 408 ")


def test_a_body_that_only_trickles_is_given_up(run: Any) -> None:
    running = run()
    with running.connect() as client:
        client.sendall(POST % 1000)
        began = time.monotonic()
        with contextlib.suppress(ConnectionError):
            while time.monotonic() - began < 8:
                client.sendall(b"a")
                time.sleep(0.2)
        assert time.monotonic() - began < 7
    assert not running.api.requests


def test_more_connections_of_one_address_than_allowed_are_refused(run: Any) -> None:
    running = run(limits=replace(QUICK, per_address=3))
    with running.connect(), running.connect(), running.connect():
        time.sleep(0.2)
        assert running.get().startswith(b"HTTP/1.1 503 ")
    time.sleep(0.2)
    assert running.get().startswith(b"HTTP/1.1 200 ")


def test_headers_beyond_measure_are_refused(run: Any) -> None:
    sent = b"GET /a HTTP/1.1\r\nHost: t\r\nX: " + b"a" * 40_000
    assert run().ask(sent).startswith(b"HTTP/1.1 431 ")


@pytest.mark.parametrize(
    "sent",
    [
        b"nonsense\r\n\r\n",
        b"GET http://other/ HTTP/1.1\r\nHost: t\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: t\r\nHost: u\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
        b"POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: xchunked\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: t\r\nContent-Length: -1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: t\r\nX : a\r\n\r\n",
    ],
)
def test_what_two_servers_might_read_differently_is_refused(run: Any, sent: bytes) -> None:
    running = run()
    assert running.ask(sent).startswith(b"HTTP/1.1 400 ")
    assert not running.api.requests


def test_an_offer_of_another_protocol_loses_no_body(run: Any) -> None:
    running = run()
    offer = b"Host: t\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n"
    sent = b"POST /a HTTP/1.1\r\n" + offer + b"Content-Length: 3\r\n\r\nabc"
    got = running.ask(sent)
    assert got.startswith(b"HTTP/1.1 400 ") and b"Upgrade" in got
    assert not running.api.requests
    assert running.ask(b"GET /a HTTP/1.1\r\n" + offer + b"\r\n").endswith(b"ok")


def test_a_second_request_in_the_same_packet_is_not_mixed_with_the_first(run: Any) -> None:
    running = run(wait_s=0.2)
    got = running.ask(b"GET /one HTTP/1.1\r\nHost: t\r\n\r\nGET /two HTTP/1.1\r\nHost: t\r\n\r\n")
    assert got.count(b"HTTP/1.1 200 OK") == 1
    assert len(running.api.requests) == 1


def test_a_connection_is_kept_for_the_next_request(run: Any) -> None:
    running = run()
    with running.connect() as client:
        for number in range(3):
            client.sendall(b"GET /%d HTTP/1.1\r\nHost: t\r\n\r\n" % number)
            assert read_one(client).endswith(b"ok")


def test_a_small_body_is_complete_before_the_call_begins(run: Any) -> None:
    running = run()
    with running.connect() as client:
        client.sendall(POST % 6 + b"abc")
        time.sleep(0.3)
        assert running.api.most_open == 0
        client.sendall(b"def")
        assert read_one(client).endswith(b"ok")
    assert running.api.requests[0].endswith(b"\r\n\r\nabcdef")


@pytest.mark.parametrize("is_chunked", [False, True])
def test_a_large_body_is_streamed_whole(run: Any, is_chunked: bool) -> None:
    running = run()
    data = bytes(range(256)) * 20_000
    with running.connect() as client:
        if is_chunked:
            client.sendall(b"POST /a HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n")
            client.sendall(b"%x\r\n%s\r\n0\r\n\r\n" % (len(data), data))
        else:
            client.sendall(POST % len(data) + data)
        assert read_one(client).endswith(b"ok")
    got = running.api.requests[0].partition(b"\r\n\r\n")[2]
    assert _dechunked(got) == data if is_chunked else got == data


def _dechunked(got: bytes) -> bytes:
    found = b""
    while got:
        size, _, got = got.partition(b"\r\n")
        found, got = found + got[: int(size, 16)], got[int(size, 16) + 2 :]
    return found


def test_streamed_bodies_leave_turns_for_others(run: Any) -> None:
    running = run(limits=replace(QUICK, calls=2, bulk=1, gap_s=5))
    with contextlib.ExitStack() as stack:
        for _ in range(4):
            client = stack.enter_context(running.connect())
            client.sendall(POST % 2**22 + b"a" * (2**20 + 4096))
        time.sleep(0.4)
        assert running.api.most_open == 1
        assert running.get().endswith(b"ok")


def test_an_early_answer_to_a_large_body_reaches_the_client(run: Any) -> None:
    refusal = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno"
    running = run(answer=refusal, early=True)
    with running.connect() as client:
        client.sendall(POST % 2**24)
        with contextlib.suppress(ConnectionError):
            client.sendall(b"a" * 2**21)
        assert read_all(client).startswith(b"HTTP/1.1 401 ")


def test_calls_beyond_the_turns_wait_and_are_then_told(run: Any) -> None:
    running = run(limits=replace(QUICK, calls=1, bulk=1, queue_s=0.5), wait_s=1.5)
    with running.connect() as client:
        client.sendall(b"GET /slow HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n")
        time.sleep(0.2)
        busy = running.get()
        assert busy.startswith(b"HTTP/1.1 503 ") and b"Retry-After" in busy
        assert read_all(client).endswith(b"ok")
    assert running.api.most_open == 1


def test_tiles_are_answered_while_every_turn_of_the_api_is_taken(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    tile = ("200 OK", [("Content-Length", "4")], b"tile")
    threads: list[str] = []

    def answer(asked: Any) -> Any:
        threads.append(threading.current_thread().name)
        return tile

    monkeypatch.setattr(connection.TILES, "answer", answer)
    running = run(limits=replace(QUICK, calls=1, bulk=1, queue=1), wait_s=1.5)
    with running.connect() as working, running.connect() as waiting:
        for client in (working, waiting):
            client.sendall(b"GET /slow HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n")
        while not running.front.turns.waiting:
            time.sleep(0.01)
        got = running.ask(b"GET /tiles/a HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n")
        assert got.endswith(b"tile")
        assert (running.api.open, running.front.turns.waiting) == (1, 1)
    assert not any(b"/tiles/" in request for request in running.api.requests)
    assert threads[0].startswith("tile")  # a file that is slow to read holds up no other client


def test_an_answer_that_breaks_off_is_seen_to_break_off(run: Any) -> None:
    got = run(answer=b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf").get()
    assert not got.endswith(b"\r\n\r\n") and len(got.partition(b"\r\n\r\n")[2]) < 100


def test_an_api_that_is_not_there_is_said(run: Any) -> None:
    running = run()
    running.front.api += ".gone"
    assert running.get().startswith(b"HTTP/1.1 502 ")


def test_chunked_answers_and_those_that_end_with_the_connection_are_passed_on(run: Any) -> None:
    chunked = (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
    )
    assert _dechunked(run(answer=chunked).get().partition(b"\r\n\r\n")[2]) == b"abcde"
    closing = b"HTTP/1.1 200 OK\r\n\r\nabcde"
    assert _dechunked(run(answer=closing).get().partition(b"\r\n\r\n")[2]) == b"abcde"
    old = run(answer=closing).ask(b"GET /a HTTP/1.0\r\nHost: t\r\n\r\n")
    assert old.partition(b"\r\n\r\n")[2] == b"abcde"


@pytest.mark.parametrize("status", [b"204 No Content", b"304 Not Modified"])
def test_answers_without_a_body_keep_the_connection(run: Any, status: bytes) -> None:
    running = run(answer=b"HTTP/1.1 %s\r\nConnection: close\r\n\r\n" % status)
    with running.connect() as client:
        for _ in range(2):
            client.sendall(b"GET / HTTP/1.1\r\nHost: t\r\n\r\n")
            assert status in client.recv(65536)


def test_the_answer_to_head_has_no_body(run: Any) -> None:
    running = run(answer=b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")
    assert running.ask(b"HEAD / HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n").endswith(
        b"\r\n\r\n"
    )


def test_a_reader_who_stops_reading_holds_no_turn_for_ever(run: Any) -> None:
    size = 2**25
    running = run(
        limits=replace(QUICK, calls=1, bulk=1),
        answer=b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size + b"a" * size,
    )
    with running.connect() as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: t\r\n\r\n")
        time.sleep(3.5)
        running.api.answer = OK
        assert running.get().endswith(b"ok")


def test_a_file_is_sent_by_the_front_while_the_api_is_free(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "a film.mp4"
    path.write_bytes(bytes(range(256)) * 200_000)
    head = "HTTP/1.1 206 Partial Content\r\nContent-Length: %d\r\nX-Tessera-File: 10-%d %s\r\n\r\n"
    size = path.stat().st_size - 10
    answer = head % (size, size + 10, str(path).replace(" ", "%20"))
    running = run(limits=replace(QUICK, calls=1, bulk=1, write_s=5), answer=answer.encode())
    with running.connect() as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n")
        time.sleep(0.5)
        running.api.answer = OK
        assert running.get().endswith(b"ok")  # while the reader of the film has not read a byte
        head_sent, _, body = read_all(client).partition(b"\r\n\r\n")
    assert b"X-Tessera-File" not in head_sent
    assert body == path.read_bytes()[10:]


def test_the_log_names_no_query_and_no_header(run: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="portal.config.front.shared")
    running = run()
    running.ask(
        b"GET /a?token=secret HTTP/1.1\r\nHost: t\r\nCookie: sessionid=secret\r\n"
        b"Connection: close\r\n\r\n"
    )
    assert "127.0.0.1 GET /a 200" in caplog.text
    assert "secret" not in caplog.text
