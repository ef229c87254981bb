"""Multipart uploads: permission is checked before a file is read, and each file is written once.

``files_receive`` reads a multipart body part by part. Fields before the first file (the CSRF token
of a plain form, the case of a REST upload) are passed to ``admit``; a file's first byte is read
only if that raises nothing. A file is written directly to the storage volume in pieces of 64 KiB,
hashed at the same time, and deleted at once if anything fails.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.core.exceptions import SuspiciousOperation
from django.core.files.uploadedfile import UploadedFile
from django.core.files.uploadhandler import FileUploadHandler, StopUpload
from django.http import HttpRequest, QueryDict
from django.http.multipartparser import (  # type: ignore[attr-defined]
    MAX_TOTAL_HEADER_SIZE,
    MultiPartParser,
    MultiPartParserError,
)
from django.utils.datastructures import MultiValueDict

from portal.archive.storage.files import Incoming, limit_bytes
from portal.core.disk import require_room
from portal.core.errors import InvalidInputError, PortalError
from portal.core.http.bodies import body_length, require_acceptable

FORM_OVERHEAD_BYTES = 2**20
"""Largest size of a multipart body without its file."""

Files = MultiValueDict[str, UploadedFile]  # type: ignore[type-arg] # it takes none at run time


class FormParser(MultiPartParser):
    """Multipart parser that renames files with an unusable name, such as ``.``.

    Django does not skip such a part and parses its bytes as the headers of the next one.
    """

    def sanitize_file_name(self, file_name: str) -> str:
        """The last part of the path, or ``unnamed``."""
        return super().sanitize_file_name(file_name) or "unnamed"


class ReceivedFile(UploadedFile):  # type: ignore[type-arg] # it takes none at run time
    """An uploaded file that is already on the storage volume.

    Deleted with the request unless an upload took it.
    """

    def __init__(self, incoming: Incoming, **meta: Any) -> None:
        self.incoming = incoming
        super().__init__(incoming.path.open("rb"), **meta)

    def close(self) -> None:
        """Close the file, and delete it unless an upload took it."""
        super().close()
        self.incoming.discard()


def files_receive(
    request: HttpRequest, *, admit: Callable[[QueryDict], None]
) -> tuple[QueryDict, Files]:
    """Read a form with files. Afterwards ``request.POST`` and ``request.FILES`` hold it as well.

    Args:
        admit: called once, with the fields sent before the first file (all, where there is none);
            raises to refuse. No byte of a file has been read by then.
    Raises:
        PortalError: what ``admit`` raised, or a file was too large or found no room. Nothing of
            the body is kept.
        InvalidInputError: the body is not a multipart form, or a broken one.
    """
    if request.content_type != "multipart/form-data":
        raise InvalidInputError("Send the file as multipart/form-data.")
    require_acceptable(request, limit_bytes=body_limit_bytes())
    require_room(announced_bytes(request))
    handler = AssetUploadHandler(request)
    parser = FormParser(request.META, request, [handler], request.encoding or "utf-8")
    handler.admit = lambda: admit(_fields(parser))
    try:
        fields, files = parser.parse()
        if handler.refused is None and not handler.is_admitted:
            admit(fields)
    except (MultiPartParserError, SuspiciousOperation) as error:
        handler.upload_interrupted()
        raise InvalidInputError(
            f"The form cannot be read: {str(error).rstrip('.')}. Send one file in a form of "
            "multipart/form-data, with few and short fields; its name and the other headers of its "
            f"part have room in {MAX_TOTAL_HEADER_SIZE:,} bytes.",
            code="invalid-form",
        ) from error
    except BaseException:
        handler.upload_interrupted()
        raise
    request._post, request._files = fields, files  # type: ignore[attr-defined] # closed at its end
    if handler.refused is not None:
        raise handler.refused
    return fields, files


def admitted(fields: QueryDict) -> None:
    """The ``admit`` of a request about which all was known from its head."""


def body_limit_bytes() -> int:
    """Most bytes of a body with files."""
    return limit_bytes() + FORM_OVERHEAD_BYTES


def announced_bytes(request: HttpRequest) -> int:
    """About how many bytes of files a body announces."""
    return max(0, body_length(request) - 4096)  # boundaries and fields


class AssetUploadHandler(FileUploadHandler):
    """Stream files to ``incoming/``. Stops reading at the first refusal, stored in ``refused``."""

    def __init__(self, request: HttpRequest | None = None) -> None:
        super().__init__(request)
        self.admit: Callable[[], None] = _nobody
        self.is_admitted = False
        self.refused: PortalError | None = None
        self.incoming: Incoming | None = None

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        """A file part begins."""
        super().new_file(*args, **kwargs)
        try:
            if not self.is_admitted:
                self.admit()
                self.is_admitted = True
            self.incoming = Incoming()
        except PortalError as error:
            self._refuse(error)

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        """Write and hash the bytes; returns None, so that no other handler gets them."""
        if self.incoming is None:
            return
        try:
            self.incoming.write(raw_data)
        except PortalError as error:
            self._refuse(error)

    def file_complete(self, file_size: int) -> ReceivedFile | None:
        """Hand the sealed file to the form."""
        incoming = self.incoming
        if incoming is None:
            return None
        try:
            incoming.seal()
        except PortalError as error:
            self._refuse(error)
        self.incoming = None
        return ReceivedFile(
            incoming,
            name=self.file_name,
            content_type=self.content_type,
            size=file_size,
            charset=self.charset,
            content_type_extra=self.content_type_extra,
        )

    def upload_interrupted(self) -> None:
        """Delete the received part after the client disconnected or the file was refused."""
        if self.incoming is not None:
            self.incoming.discard()
            self.incoming = None

    def _refuse(self, error: PortalError) -> None:
        self.refused = error
        self.upload_interrupted()
        raise StopUpload(connection_reset=True) from error


def _fields(parser: MultiPartParser) -> QueryDict:
    """The fields read so far; the parser keeps them until it hands them over."""
    fields = parser._post  # type: ignore[attr-defined]
    return fields if isinstance(fields, QueryDict) else QueryDict()


def _nobody() -> None:
    raise NotImplementedError("files_receive sets who admits")
