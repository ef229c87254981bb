# Written by unasync.py from aio/uploads.py: change that one.
"""Uploads in pieces, by tus: what has arrived is never sent again, whichever side is killed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tessera_client import asking, files
from tessera_client.files import (
    LocalFile,
    Progress,
    Sent,
    bar,
    checksum,
    metadata,
    transfer_key,
)
from tessera_client.problems import InvalidError, JobError, NotFoundError, TesseraError
from tessera_client.sync.requests import Requests
from tessera_client.things import Case, Slide, Upload, Video, id_of
from tessera_client.waiting import call, sleep


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
                says why.
            JobError: the file could not be prepared.
            OSError: the file cannot be read.
        """
        file = call(LocalFile.of, path)
        key = transfer_key(self.url, id_of(case), file)
        said = {"case": id_of(case), "name": name, "sha256": file.sha256}
        address = self._sent(key, file, said, progress)
        item = self._stored(address)
        self._transfers.put(key, None)
        return item

    def _sent(
        self, key: str, file: Sent, said: Mapping[str, str], progress: Progress | bool
    ) -> str:
        """Send what has not arrived yet; returns the address of the transfer."""
        shown = bar(file.path.name) if progress is True else progress or None
        address, offset = self._transfer(key, file, said)
        self._send(address, file, offset, shown)
        return address

    def _transfer(self, key: str, file: Sent, said: Mapping[str, str]) -> tuple[str, int]:
        """The address of a transfer, resumed or new, and the bytes that have arrived."""
        known = self._transfers.get(key)
        if known:
            try:
                return known, self._offset(known)
            except NotFoundError:
                self._transfers.put(key, None)  # it stood still for too long
        sent = metadata(filename=file.path.name, **said)
        headers = {**asking.TUS, "Upload-Length": str(file.size), "Upload-Metadata": sent}
        answer = self.ask("POST", "uploads/", headers=headers)
        address = answer.headers["Location"].partition("/api/v1/")[2]
        self._transfers.put(key, address)
        return address, int(answer.headers["Upload-Offset"])

    def _offset(self, address: str) -> int:
        answer = self.ask("HEAD", address, headers=asking.TUS)
        return int(answer.headers["Upload-Offset"])

    def _send(self, address: str, file: Sent, offset: int, progress: Progress | None) -> None:
        failed = 0
        while offset < file.size:
            if progress:
                progress(offset, file.size)
            piece = call(file.bytes_from, offset, files.PIECE_BYTES)
            headers = {
                **asking.TUS,
                "Content-Type": "application/offset+octet-stream",
                "Upload-Offset": str(offset),
                "Upload-Checksum": checksum(piece),
            }
            try:
                answer = self.ask("PATCH", address, content=piece, headers=headers)
                offset, failed = int(answer.headers["Upload-Offset"]), 0
            except TesseraError as error:
                failed += 1
                passes = not error.status or error.status in {400, 409, 423, 460} | asking.TRY_AGAIN
                if failed == asking.TRIES or not passes:
                    raise
                sleep(asking.pause_s(failed))
                offset = self._offset(address)
        if progress:
            progress(file.size, file.size)

    def _stored(self, address: str) -> Slide | Video:
        pause = asking.POLL_S
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
            pause = min(pause * asking.POLL_GROWTH, asking.SLOWEST_POLL_S)
