"""An export as an answer, by byte ranges: a download that broke off can be resumed."""

from __future__ import annotations

import io
import uuid
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from django.http import HttpRequest, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.text import slugify

from portal.core.errors import NotFoundError
from portal.core.events import events_emit
from portal.core.http.downloads import attachment
from portal.core.http.files import range_response
from portal.interop.rocrate.formats.writer import CHUNK_BYTES
from portal.interop.rocrate.selectors.exports import case_to_export, export_path, exports_written
from portal.jobs.models import Job
from portal.labs.models import User


def export_response(request: HttpRequest, *, user: User, case_id: uuid.UUID) -> HttpResponseBase:
    """The person's newest export of a case, or ``NotFoundError``."""
    case = case_to_export(user=user, case_id=case_id)
    path = export_path(case.pk, user)
    try:
        status = path.stat()
    except FileNotFoundError as error:
        raise NotFoundError("There is no export of this case. Request one first.") from error
    etag = f'"x-{status.st_mtime_ns:x}-{status.st_size:x}"'
    response = range_response(request, path, etag=etag, media_type="application/zip")
    name = attachment(f"case {case.accession}", ".zip", fallback="case")
    response["Content-Disposition"] = name
    return response


def exports_response(*, user: User, job: Job) -> StreamingHttpResponse:
    """A zip of the exports that a job has written, one zip for each case.

    Emits ``case.downloaded`` for each. Raises ``NotFoundError`` if none is kept.
    """
    written = [
        export for export in exports_written(user=user, job=job) if export.size_bytes is not None
    ]
    if not written:
        raise NotFoundError("No export of these cases is kept. Request them again.")
    payloads = [{"case_id": str(export.case.pk), "user_id": str(user.pk)} for export in written]
    events_emit("case.downloaded", lab_id=job.lab_id, payloads=payloads)
    files = [
        (f"{slugify(export.case.accession) or 'case'}-{str(export.case.pk)[:8]}.zip", export.path)
        for export in written
    ]
    response = StreamingHttpResponse(_zip_files(files), content_type="application/zip")
    response["Content-Disposition"] = attachment(
        f"cases {job.created_at:%Y-%m-%d}", ".zip", fallback="cases"
    )
    response["Cache-Control"] = "private, no-store"
    return response


class _Sink(io.RawIOBase):
    """Buffer of written bytes that are not sent yet."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._parts.append(bytes(data))
        return len(data)

    def take(self) -> bytes:
        """Bytes since the last call."""
        parts, self._parts = self._parts, []
        return b"".join(parts)


def _zip_files(files: Sequence[tuple[str, Path]]) -> Iterator[bytes]:
    """A zip of files that are compressed already, piece by piece."""
    sink = _Sink()
    with zipfile.ZipFile(sink, "w") as archive:
        for name, path in files:
            with path.open("rb") as source, archive.open(name, "w", force_zip64=True) as target:
                while chunk := source.read(CHUNK_BYTES):
                    target.write(chunk)
                    yield sink.take()
    yield sink.take()
