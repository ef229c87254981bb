"""A full disk: nothing half done stays, records go on, and all is well once there is room."""

from __future__ import annotations

import errno
import io
import os
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from portal.archive.models import Asset, Case, Upload
from portal.archive.services.transfers.arriving import upload_append, upload_begin
from portal.archive.services.uploads import upload_receive
from portal.core.errors import StorageFullError
from portal.jobs.models import Job
from portal.labs.models import User
from tests.portal.archive.server import Server, files_below, serving
from tests.portal.archive.support import picture, run_job

FULL = OSError(errno.ENOSPC, "No space left on device")
MIB = 2**20


def _fail(*_: Any, **__: Any) -> Any:
    raise FULL


@pytest.mark.django_db
@pytest.mark.parametrize(
    "site",
    [
        "portal.archive.storage.files.Path.mkdir",
        "portal.archive.storage.files.Path.open",
        "portal.archive.storage.files.write_whole",
        "portal.archive.storage.files.os.fsync",
        "portal.archive.storage.files.Path.replace",
        "portal.archive.storage.folder_store.sync_folder",
    ],
)
def test_no_write_of_an_upload_leaves_anything_behind(
    case: Case, annotator: User, storage: Path, monkeypatch: pytest.MonkeyPatch, site: str
) -> None:
    monkeypatch.setattr(site, _fail)
    with pytest.raises(StorageFullError):
        upload_receive(case=case, file=io.BytesIO(picture()), filename="a.png", user=annotator)
    monkeypatch.undo()
    assert [path for path in storage.rglob("*") if path.is_file()] == []
    assert not Asset.objects.exists()
    assert not Upload.objects.exists()


@pytest.mark.django_db
def test_a_transfer_in_pieces_gives_its_room_back(
    case: Case, annotator: User, storage: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload = upload_begin(case=case, filename="a", size_bytes=6, user=annotator)
    upload_append(upload=upload, offset=0, chunks=[b"abc"], user=annotator)
    monkeypatch.setattr("portal.archive.storage.files.write_whole", _fail)
    with pytest.raises(StorageFullError):
        upload_append(upload=upload, offset=3, chunks=[b"def"], user=annotator)
    assert [path for path in storage.rglob("*") if path.is_file()] == []
    assert not Upload.objects.exists()


@pytest.mark.django_db
def test_a_job_without_disk_space_waits_and_then_reports_the_reason(
    case: Case, receive: Any, settings: Any, storage: Path
) -> None:
    job = receive(case, picture(), "a.png").job
    settings.TESSERA_STORAGE_FLOOR_BYTES = 2**60
    job = run_job(job)
    assert (job.state, job.attempts) == ("queued", 1)
    Job.objects.filter(pk=job.pk).update(attempts=job.max_attempts - 1, not_before=None)
    job = run_job(job)
    assert (job.state, job.error_code) == ("failed", "storage-full")
    assert "disk is full" in job.error_message


# --- A real volume of 96 MiB ------------------------------------------------------------------


@pytest.fixture(scope="module")
def volume(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("volume")
    mount = ["mount", "-t", "tmpfs", "-o", "size=96m", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no volume of its own can be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.fixture(scope="module")
def server(volume: Path) -> Iterator[Server]:
    """Database, storage and all on the small volume."""
    floor, reserve = str(40 * MIB), str(16 * MIB)
    with serving(
        volume, TESSERA_STORAGE_FLOOR_BYTES=floor, TESSERA_RESERVE_BYTES=reserve
    ) as running:
        yield running


SCENE = """
from portal.archive.models import Canvas
from portal.archive.services.cases import case_create
from portal.core.disk import reserve_keep
from portal.labs.models import *
from portal.labs.services.tokens import token_create
from datetime import timedelta
lab = Lab.objects.create(name="North", slug="north")
user = User.objects.create_user("a@north.example", "correct horse battery")
Membership.objects.create(user=user, lab=lab, role="annotator")
token, secret = token_create(user, name="t", scope="write", expires_in=timedelta(days=1))
case = case_create(lab=lab, user=user, accession="1")
canvas = Canvas.objects.create(lab=lab, case=case, kind="still", name="c", width_px=500,
    height_px=500, levels=[], pixels_path="x", content_hash="x")
assert reserve_keep()
print(secret, case.pk, canvas.pk)
"""


BOUNDARY = "no-random-bytes-hold-this-line"


class _Caller:
    def __init__(self, server: Server) -> None:
        self.server = server
        self.secret, self.case, self.canvas = server.python(SCENE).split()

    def send(
        self,
        path: str,
        kind: str,
        body: bytes,
        *,
        announced: int = 0,
        between: Callable[[], None] = lambda: None,
    ) -> tuple[int, str]:
        head = (
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {self.secret}\r\n"
            f"Content-Type: {kind}\r\nContent-Length: {announced or len(body)}\r\n\r\n"
        )
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=20) as client:
            with suppress(ConnectionError):  # refused, and closed, before all was sent
                client.sendall(head.encode() + body[: len(body) // 2])
                between()
                client.sendall(body[len(body) // 2 :])
            return _answer(client)

    def upload(self, content: bytes, **how: Any) -> tuple[int, str]:
        body = (
            f"--{BOUNDARY}\r\nContent-Disposition: form-data; name=case\r\n\r\n{self.case}\r\n"
            f"--{BOUNDARY}\r\n"
            "Content-Disposition: form-data; name=file; filename=a.png\r\n\r\n"
        ).encode() + content
        kind = f"multipart/form-data; boundary={BOUNDARY}"
        return self.send("/api/v1/slides/", kind, body + f"\r\n--{BOUNDARY}--\r\n".encode(), **how)

    def draw(self) -> tuple[int, str]:
        ring = "[[10,10],[90,10],[90,80],[10,10]]"
        body = (
            f'{{"canvas": "{self.canvas}",'
            f' "geometry": {{"type": "Polygon", "coordinates": [{ring}]}}}}'
        )
        return self.send("/api/v1/rois/", "application/json", body.encode())


def _answer(client: socket.socket) -> tuple[int, str]:
    """Status and all that comes, up to the length the head announces."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += client.recv(65536)
    head, _, body = data.partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0] or 0)
    while len(body) < length:
        body += client.recv(65536)
    return int(head.split()[1]), body.decode()


@pytest.mark.slow
@pytest.mark.endurance
def test_a_full_volume_heals(server: Server, volume: Path) -> None:
    caller = _Caller(server)
    reserve = volume / "tessera.reserve"
    assert reserve.exists()

    # Too much by its announced length: refused at the first byte of the file.
    status, text = caller.upload(b"x", announced=60 * MIB)
    assert (status, "storage-full" in text) == (507, True), text

    # There was room when it began, and then others fill the volume under the transfer's feet.
    wall = volume / "others"
    status, text = caller.upload(os.urandom(8 * MIB), between=lambda: _fill(wall, leave=0))
    assert (status, "storage-full" in text) == (507, True), text
    assert files_below(server.storage) == []
    wall.unlink()

    # Other programs fill it to the last byte: nothing is uploaded, regions are drawn all the same.
    _fill(wall, leave=0)
    status, text = caller.upload(picture())
    assert (status, "storage-full" in text) == (507, True), text
    drawn = [caller.draw() for _ in range(30)]
    assert [status for status, _ in drawn] == [201] * 30, drawn[0]
    assert not reserve.exists()
    assert files_below(server.storage) == []

    # Room again: it goes on by itself, and the reserve comes back.
    wall.unlink()
    status, text = caller.upload(picture())
    assert status == 202, text
    assert (
        server.python("from portal.core.disk import reserve_keep; print(reserve_keep())") == "True"
    )
    assert files_below(server.storage / "incoming") == []
    count = server.python("from portal.annotations.models import Roi; print(Roi.objects.count())")
    assert count == "30"


def _fill(path: Path, *, leave: int) -> None:
    """Write until only ``leave`` bytes are left on the volume."""
    with path.open("ab") as file:
        while True:
            usage = os.statvfs(path)
            left = usage.f_bavail * usage.f_frsize - leave
            if left <= 0:
                return
            try:
                file.write(b"x" * min(left, MIB))
                file.flush()
            except OSError:
                return
