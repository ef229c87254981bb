"""An object storage that fails in every way a network has: nothing acknowledged is lost."""

from __future__ import annotations

import logging
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult

import pytest

from portal.archive.models import Case, Slide
from portal.archive.storage import files as volume
from portal.archive.storage import s3_store
from portal.archive.storage.s3_store import S3Settings, S3Store
from portal.archive.storage.store import DamagedError, StoreAwayError
from portal.backups.repository import BackupRepository
from portal.backups.services.backup import backup_create, backup_verify
from portal.erasure.services.erasures import erasure_begin, erasure_run
from portal.labs.models import User
from tests.portal.archive.support import picture

pytestmark = pytest.mark.slow

HOST = "127.0.0.1"
DATA = bytes(range(256)) * 4096 * 3  # 3 MiB
LARGE = DATA * 6  # in parts
Received = Callable[[bytes], tuple[Path, str]]


class Proxy(ThreadingHTTPServer):
    """Passes requests on; ``fault`` says what becomes of the next ones, and of how many."""

    daemon_threads = True

    def __init__(self, behind: SplitResult) -> None:
        super().__init__((HOST, 0), _Handler)
        self.behind, self.fault, self.method, self.count = behind, "", "", 0
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.server_address[1]}"

    def fail(self, fault: str, *, method: str = "", count: int = 10**6) -> None:
        self.fault, self.method, self.count = fault, method, count

    def due(self, method: str) -> str:
        if not self.count or (self.method and method != self.method):
            return ""
        self.count -= 1
        return self.fault

    def handle_error(self, *_: Any) -> None:
        """A client that went away is no news."""


class _Handler(BaseHTTPRequestHandler):
    server: Proxy
    protocol_version = "HTTP/1.1"

    def _pass(self) -> None:
        fault = self.server.due(self.command)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if fault == "cut request":
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
            return
        if fault.isdigit() or fault.startswith("403"):
            status, _, code = fault.partition(" ")
            error = f"<Error><Code>{code or 'InternalError'}</Code><Message>x</Message></Error>"
            self._answer(int(status), {"Content-Type": "application/xml"}, error.encode())
            return
        if fault == "silent":
            select.select([self.connection], [], [])  # until the client gives up
            self.close_connection = True
            return
        where = self.server.behind
        behind = HTTPConnection(where.hostname or HOST, where.port, timeout=20)
        behind.request(self.command, self.path, body, dict(self.headers))
        answer = behind.getresponse()
        data, headers = answer.read(), dict(answer.headers.items())
        length = answer.headers["Content-Length"] or str(len(data))
        if fault == "cut body":
            data = data[: len(data) // 2]
        elif fault == "wrong length":
            length = str(int(length) // 2)
            data = data[: int(length)]
        elif fault == "other bytes":
            data = bytes(len(data))
        self._answer(answer.status, headers, data, length=length)

    def _answer(
        self, status: int, headers: dict[str, str], data: bytes, *, length: str = ""
    ) -> None:
        self.send_response_only(status)
        for name, value in headers.items():
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


@pytest.fixture
def proxy(_server: SplitResult, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    monkeypatch.setattr(s3_store, "WAIT_S", 0.0)
    proxy = Proxy(_server)
    yield proxy
    proxy.shutdown()
    proxy.server_close()


@pytest.fixture
def behind(proxy: Proxy, bucket: S3Settings) -> S3Settings:
    """The bucket as reached through the proxy, with a short patience."""
    return replace(bucket, endpoint=proxy.url, wait_s=1.0, attempts=2)


@pytest.fixture
def store(behind: S3Settings, tmp_path: Path) -> S3Store:
    return S3Store(behind, tmp_path / "fetched")


FAULTS = ["500", "503", "silent", "cut request", "403 AccessDenied", "403 RequestTimeTooSkewed"]


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("data", [DATA, LARGE], ids=["at once", "in parts"])
def test_an_upload_is_stored_completely_or_remains_local(
    store: S3Store, proxy: Proxy, received: Received, fault: str, data: bytes
) -> None:
    path, name = received(data)
    proxy.fail(fault)
    began = time.monotonic()
    with pytest.raises(StoreAwayError):
        store.put(path, name)
    assert time.monotonic() - began < 40
    assert path.read_bytes() == data
    proxy.fail("", count=0)
    assert store.stat(name) is None
    store.put(path, name)
    assert store.is_intact(name)


@pytest.mark.parametrize("fault", [*FAULTS, "cut body", "wrong length", "other bytes"])
def test_a_download_is_intact_or_refused(
    store: S3Store, proxy: Proxy, received: Received, fault: str, tmp_path: Path
) -> None:
    path, name = received(DATA)
    store.send(path, name)
    proxy.fail(fault, method="GET")
    with pytest.raises(StoreAwayError):
        store.local(name)
    left = [item for item in (tmp_path / "fetched").rglob("*") if item.is_file()]
    assert [row.name for row in left if row.name != ".room"] == []
    proxy.fail("", count=0)
    assert store.local(name).read_bytes() == DATA


@pytest.mark.parametrize("fault", ["500", "503", "silent", "cut body", "cut request"])
def test_a_single_fault_is_retried(
    store: S3Store, proxy: Proxy, received: Received, fault: str
) -> None:
    path, name = received(DATA)
    if fault != "cut body":
        proxy.fail(fault, method="PUT", count=1)
    store.send(path, name)
    proxy.fail(fault, method="GET", count=1)
    assert store.local(name).read_bytes() == DATA


@pytest.mark.parametrize(
    ("code", "advice"),
    [("RequestTimeTooSkewed", "clock"), ("ExpiredToken", "renew"), ("AccessDenied", "ACCESS_KEY")],
)
def test_a_refusal_is_logged_with_advice(
    store: S3Store, proxy: Proxy, caplog: pytest.LogCaptureFixture, code: str, advice: str
) -> None:
    proxy.fail(f"403 {code}")
    with caplog.at_level(logging.ERROR), pytest.raises(StoreAwayError, match="refuses"):
        store.read("identity.json")
    assert code in caplog.text and advice in caplog.text


def test_a_changed_object_is_distinguished_from_an_unreachable_one(
    store: S3Store, proxy: Proxy, received: Received
) -> None:
    path, name = received(DATA)
    store.send(path, name)
    assert store.is_intact(name)
    store.write(name, bytes(len(DATA)))
    assert not store.is_intact(name)
    with pytest.raises(DamagedError):
        store.local(name)
    proxy.fail("503")
    with pytest.raises(StoreAwayError):
        store.is_intact(name)


# --- the portal ---------------------------------------------------------------------------------


@pytest.fixture
def in_bucket(behind: S3Settings, settings: Any) -> None:
    settings.TESSERA_S3 = asdict(behind)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("fault", ["503", "cut body", "403 ExpiredToken"])
def test_a_backup_under_faults_writes_no_generation_and_succeeds_later(
    in_bucket: None, still: Slide, proxy: Proxy, tmp_path: Path, storage: Path, fault: str
) -> None:
    from django.db import connection
    from django.db.migrations.recorder import MigrationRecorder

    MigrationRecorder(connection).ensure_schema()
    volume.folder_drop(storage / "fetched")
    proxy.fail(fault, method="GET")
    with pytest.raises(StoreAwayError):
        backup_create(destination=tmp_path / "backups")
    repository = BackupRepository(tmp_path / "backups")
    assert repository.names() == []
    assert [path for path in repository.objects.rglob("*") if path.is_file()] == []
    proxy.fail("", count=0)
    assert backup_create(destination=tmp_path / "backups").manifest.missing == []
    assert backup_verify(destination=tmp_path / "backups").files > 0


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("method", ["DELETE", "HEAD", "GET"])
def test_an_erasure_under_faults_is_not_called_done_and_continues(
    in_bucket: None, still: Slide, case: Case, manager: User, proxy: Proxy, method: str
) -> None:
    erasure = erasure_begin(lab=case.lab, cases=[case], user=manager, reason="")
    proxy.fail("503", method=method)
    with pytest.raises(StoreAwayError):
        erasure_run(erasure)
    erasure.refresh_from_db()
    assert erasure.state == "pending"
    proxy.fail("", count=0)
    done = erasure_run(erasure)
    assert done.state == "done" and done.certificate["verified"]["is_gone"]
    assert [*volume.the_store().files("assets"), *volume.the_store().files("orphans")] == []
    assert [original["size_bytes"] for original in done.certificate["originals"]] == [
        len(picture())
    ]
