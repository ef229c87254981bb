"""Django's upload handler that writes a form's file once, to the storage volume, hashing it."""

from __future__ import annotations

from typing import IO, Any

from django.core.files.uploadedfile import UploadedFile
from django.core.files.uploadhandler import FileUploadHandler, StopUpload
from django.http import HttpRequest, QueryDict
from django.utils.datastructures import MultiValueDict

from portal.archive.storage import Incoming, require_size
from portal.core.errors import TooLargeInputError

FORM_OVERHEAD_BYTES = 2**20
"""What a multipart body may hold beside its file."""


class ReceivedFile(UploadedFile):  # type: ignore[type-arg] # it takes none at run time
    """A file of a form that lies on the storage volume already. Deleted with the request unless
    an upload kept it.
    """

    def __init__(self, incoming: Incoming, **meta: Any) -> None:
        self.incoming = incoming
        super().__init__(incoming.path.open("rb"), **meta)

    def close(self) -> None:
        """Close, and delete what nobody kept."""
        super().close()
        self.incoming.discard()


class AssetUploadHandler(FileUploadHandler):
    """Streams to ``incoming/``. Beyond the limit it stops reading: the view then finds
    ``upload_refused`` on the request (see ``require_received``).
    """

    incoming: Incoming | None = None

    def handle_raw_input(
        self,
        input_data: IO[bytes],
        META: dict[str, str],  # noqa: N803 - Django's name
        content_length: int,
        boundary: Any,
        encoding: str | None = None,
    ) -> tuple[QueryDict, MultiValueDict[str, UploadedFile[bytes]]] | None:
        """A body whose length exceeds the limit is not read at all: an empty form is handed on."""
        try:
            require_size(content_length - FORM_OVERHEAD_BYTES)
        except TooLargeInputError as error:
            self._note(error)
            return QueryDict(), MultiValueDict()
        return None

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        """A file part begins."""
        super().new_file(*args, **kwargs)
        self.incoming = Incoming()

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        """Write and hash; nothing is left for other handlers."""
        if self.incoming is None:
            return
        try:
            self.incoming.write(raw_data)
        except TooLargeInputError as error:
            self._note(error)
            self.upload_interrupted()
            raise StopUpload(connection_reset=True) from error

    def file_complete(self, file_size: int) -> ReceivedFile | None:
        """Hand the sealed file to the form."""
        incoming, self.incoming = self.incoming, None
        if incoming is None:
            return None
        incoming.seal()
        return ReceivedFile(
            incoming,
            name=self.file_name,
            content_type=self.content_type,
            size=file_size,
            charset=self.charset,
            content_type_extra=self.content_type_extra,
        )

    def upload_interrupted(self) -> None:
        """The client went away, or the limit was passed."""
        if self.incoming is not None:
            self.incoming.discard()
            self.incoming = None

    def _note(self, error: TooLargeInputError) -> None:
        if self.request is not None:
            self.request.upload_refused = error  # type: ignore[attr-defined]


def require_received(request: HttpRequest) -> None:
    """Raise what the handler refused while the body was read. Call after touching the files."""
    refused = getattr(request, "upload_refused", None)
    if refused is not None:
        raise refused
