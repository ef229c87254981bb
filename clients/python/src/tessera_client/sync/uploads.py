# Written by unasync.py from aio/uploads.py: change that one.
"""Uploads in pieces, by tus: received bytes are never sent again, even after a crash."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tessera_client import files, request_rules
from tessera_client.concurrency import call, sleep
from tessera_client.errors import InvalidError, JobError, NotFoundError, TesseraError
from tessera_client.files import (
    LocalFile,
    Progress,
    UploadSource,
    bar,
    checksum,
    metadata,
    transfer_key,
)
from tessera_client.models import Case, Slide, Upload, Video, id_of
from tessera_client.sync.requests import Requests


class Uploads(Requests):
    """Uploads of slides, still images and videos."""

    def upload(
        self,
        case: Case | str,
        path: str | Path,
        *,
        name: str = "",
        progress: Progress | bool = False,
    ) -> Slide | Video:
        """Send a file in pieces, and wait until it is ready to be viewed.

        A lost connection or a restart of the portal costs one piece. If this process ends before
        it is done, the same call continues where it stopped. A file that the lab already has is
        not sent again.

        Args:
            path: of a file. For a slide of several files: its ``.mrxs``, ``.vms`` or ``.vmu``, or
                the folder of one of these, a DICOM series or an OME-Zarr; sent as one archive.
            name: title; by default the file's name.
            progress: called with the bytes sent and the bytes in all; True draws a tqdm bar.
        Raises:
            InvalidError: the portal refused the file, or files of the slide are missing; ``code``
                gives the reason.
            JobError: the file could not be prepared.
            OSError: the file cannot be read.
        """
        file = call(LocalFile.of, path)
        key = transfer_key(self.url, id_of(case), file)
        fields = {"case": id_of(case), "name": name, "sha256": file.sha256}
        address = self._send_file(key, file, fields, progress)
        item = self._wait_until_ready(address)
        self._transfers.put(key, None)
        return item

    def _send_file(
        self, key: str, file: UploadSource, fields: Mapping[str, str], progress: Progress | bool
    ) -> str:
        """Send the remaining bytes; returns the address of the transfer."""
        progress_bar = bar(file.path.name) if progress is True else progress or None
        address, offset = self._transfer(key, file, fields)
        self._send_pieces(address, file, offset, progress_bar)
        return address

    def _transfer(self, key: str, file: UploadSource, fields: Mapping[str, str]) -> tuple[str, int]:
        """Resume or start a transfer; returns its address and the number of received bytes."""
        known = self._transfers.get(key)
        if known:
            try:
                return known, self._offset(known)
            except NotFoundError:
                self._transfers.put(key, None)  # it was idle for too long
        sent = metadata(filename=file.path.name, **fields)
        headers = {**request_rules.TUS, "Upload-Length": str(file.size), "Upload-Metadata": sent}
        answer = self.request("POST", "uploads/", headers=headers)
        address = answer.headers["Location"].partition("/api/v1/")[2]
        self._transfers.put(key, address)
        return address, int(answer.headers["Upload-Offset"])

    def _offset(self, address: str) -> int:
        answer = self.request("HEAD", address, headers=request_rules.TUS)
        return int(answer.headers["Upload-Offset"])

    def _send_pieces(
        self, address: str, file: UploadSource, offset: int, progress: Progress | None
    ) -> None:
        failure_count = 0
        while offset < file.size:
            if progress:
                progress(offset, file.size)
            piece = call(file.bytes_from, offset, files.PIECE_BYTES)
            headers = {
                **request_rules.TUS,
                "Content-Type": "application/offset+octet-stream",
                "Upload-Offset": str(offset),
                "Upload-Checksum": checksum(piece),
            }
            try:
                answer = self.request("PATCH", address, content=piece, headers=headers)
                offset, failure_count = int(answer.headers["Upload-Offset"]), 0
            except TesseraError as error:
                failure_count += 1
                passes = (
                    not error.status
                    or error.status in {400, 409, 423, 460} | request_rules.RETRY_STATUSES
                )
                if failure_count == request_rules.MAX_ATTEMPTS or not passes:
                    raise
                sleep(request_rules.pause_s(failure_count))
                offset = self._offset(address)
        if progress:
            progress(file.size, file.size)

    def _wait_until_ready(self, address: str) -> Slide | Video:
        pause = request_rules.POLL_S
        while True:
            upload = self._one(Upload, address)
            if upload.state in {"refused", "quarantined"}:
                error = upload.error
                raise InvalidError(
                    error.message if error else upload.state, code=error.code if error else ""
                )
            if upload.item is not None:
                kind: type[Slide | Video] = Slide if upload.item.kind == "slide" else Video
                item = self._one(kind, f"{upload.item.kind}s/{upload.item.id}/")
                if item.state == "ready":
                    return item
                if item.state == "failed":
                    raise JobError(
                        item.error.message if item.error else "The file could not be prepared.",
                        code=item.error.code if item.error else "",
                    )
            sleep(pause)
            pause = min(pause * request_rules.POLL_GROWTH, request_rules.SLOWEST_POLL_S)
