"""A real S3 server on this machine, and a door in front of it that can break what comes through.

``TESSERA_TEST_S3=http://key:secret@127.0.0.1:9000`` names another server than the one started here.
"""

from __future__ import annotations

import hashlib
import os
import uuid
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import SplitResult, parse_qs, urlsplit

import pytest

from portal.archive.storage.folder_store import FolderStore
from portal.archive.storage.s3_store import S3Settings, S3Store, bucket_make
from portal.archive.storage.store import Store

HOST = "127.0.0.1"
PART = "partNumber"  # in the address of each part of an upload
Fault = Callable[[bytes], bytes]
"""Changes the bytes of a response; fewer than announced end the connection."""


class Door(ThreadingHTTPServer):
    """Passes every request on. ``faults``: for the next downloads, one each; counts them all.

    ``parts``: the numbers of all parts that were sent, or copied, in the order in which they came.
    """

    daemon_threads = True

    def __init__(self, behind: SplitResult) -> None:
        super().__init__((HOST, 0), _Passing)
        self.behind = behind
        self.parts: list[int] = []
        self.faults: list[Fault] = []
        self.downloads: list[str] = []
        Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self) -> str:
        """Address of the server."""
        return f"http://{HOST}:{self.server_address[1]}"

    def handle_error(self, *_: Any) -> None:
        """A client that went away is no news."""


class _Passing(BaseHTTPRequestHandler):
    server: Door
    protocol_version = "HTTP/1.1"  # answers "Expect: 100-continue"

    def _pass(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        where = self.server.behind
        behind = HTTPConnection(where.hostname or HOST, where.port, timeout=20)
        self.server.parts += [int(n) for n in parse_qs(urlsplit(self.path).query).get(PART, ())]
        behind.request(self.command, self.path, body, dict(self.headers))
        answer = behind.getresponse()
        data, length = answer.read(), answer.headers["Content-Length"]
        is_download = self.command == "GET" and "?" not in self.path and answer.status < 300
        if is_download:
            self.server.downloads.append(self.headers.get("Range", ""))
            if self.server.faults:
                data = self.server.faults.pop(0)(data)
        self.send_response_only(answer.status)
        for name, value in answer.headers.items():
            if name.lower() not in ("transfer-encoding", "connection", "content-length"):
                self.send_header(name, value)
        self.send_header("Content-Length", length or str(len(data)))
        self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)
        self.close_connection = True

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _pass

    def log_message(self, *_: object) -> None:
        """Quiet."""


@pytest.fixture(scope="session")
def _server() -> Iterator[SplitResult]:
    pytest.importorskip("boto3")
    if named := os.environ.get("TESSERA_TEST_S3"):
        yield urlsplit(named)
        return
    moto = pytest.importorskip("moto.server")
    server = moto.ThreadedMotoServer(HOST, 0, verbose=False)
    server.start()
    _, port = server.get_host_and_port()
    yield urlsplit(f"http://key:secret@{HOST}:{port}")
    server.stop()


@pytest.fixture
def door(_server: SplitResult) -> Iterator[Door]:
    """In front of the server, for one test."""
    door = Door(_server)
    yield door
    door.shutdown()
    door.server_close()


@pytest.fixture
def bucket(door: Door, _server: SplitResult) -> S3Settings:
    """A bucket of this test's own."""
    settings = S3Settings(
        bucket=f"b-{uuid.uuid4()}",
        endpoint=door.url,
        region="us-east-1",
        access_key=_server.username or "",
        secret_key=_server.password or "",
        wait_s=5,
        attempts=1,
    )
    assert bucket_make(settings)
    return settings


@pytest.fixture
def s3(bucket: S3Settings, tmp_path: Path) -> S3Store:
    """A store in it, with copies below ``fetched``."""
    return S3Store(bucket, tmp_path / "fetched")


@pytest.fixture(params=["folder", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """Each kind."""
    if request.param == "folder":
        return FolderStore(tmp_path / "originals")
    s3: Store = request.getfixturevalue("s3")
    return s3


@pytest.fixture
def received(tmp_path: Path) -> Callable[[bytes], tuple[Path, str]]:
    """``received(bytes)``: a file as a transfer leaves it, and its name in a store."""

    def one(data: bytes) -> tuple[Path, str]:
        path = tmp_path / f"received-{uuid.uuid4()}"
        path.write_bytes(data)
        sha256 = hashlib.sha256(data).hexdigest()
        return path, f"assets/{uuid.UUID(int=1)}/{sha256[:2]}/{sha256}"

    return one
