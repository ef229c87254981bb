"""REST: resumable uploads by the protocol tus 1.0.0 (https://tus.io/protocols/resumable-upload).

Core, creation, expiration, checksum, termination and concatenation. Each upload can also be read
as JSON: its state, and its slide or video.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.http import HttpRequest, UnreadablePostError
from django.urls import Resolver404, resolve, reverse
from django.utils.http import http_date
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import (
    OpenApiParameter,
    OpenApiResponse,
    extend_schema,
    extend_schema_field,
)
from rest_framework import serializers
from rest_framework import status as http_status
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.response import Response

from portal.archive.api.tus import base64_of, checksum_of, id_of, metadata_of, whole_of
from portal.archive.models import Upload, UploadState
from portal.archive.selectors.cases import case_get
from portal.archive.selectors.uploads import UploadSeen, upload_get, upload_list, uploads_seen
from portal.archive.services.transfers.arriving import (
    require_send,
    upload_append,
    upload_begin,
    upload_discard,
    upload_expires,
    upload_join,
)
from portal.archive.services.transfers.crates import crate_begin
from portal.archive.services.transfers.writing import CHECKSUMS
from portal.archive.storage import files as storage
from portal.core.api.views import ApiViewSet
from portal.core.errors import InvalidInputError, PortalError
from portal.core.http.acting import set_audited_id
from portal.core.http.audit_rules import HOUR_S, AuditRule, audited
from portal.core.http.bodies import body_length
from portal.jobs.serializers import JobSerializer
from portal.labs.models import TokenArea
from portal.labs.requests import user_of
from portal.labs.selectors import lab_named

VERSION = "1.0.0"
EXTENSIONS = "creation,expiration,checksum,termination,concatenation"
PIECE_TYPE = "application/offset+octet-stream"
READ_BYTES = 2**18  # larger blocks are newly mapped and zeroed each time


class ProtocolError(PortalError):
    """Another version of tus than the one spoken here."""

    status, code, title = 412, "tus-version", "Another version of the protocol"


class WrongTypeError(PortalError):
    """A piece needs a separate content type, so that no parser reads it."""

    status, code, title = 415, "unsupported-media-type", "Unsupported media type"


class PieceParser(BaseParser):
    """Leaves a piece unread: the view streams it to the disk."""

    media_type = PIECE_TYPE

    def parse(self, stream: Any, media_type: Any = None, parser_context: Any = None) -> Any:
        """The stream itself."""
        return stream


class UploadErrorSerializer(serializers.Serializer[Any]):
    """Reason why a file was not stored."""

    code = serializers.CharField()
    message = serializers.CharField()


class UploadItemSerializer(serializers.Serializer[Any]):
    """The slide or video that was made of a file."""

    id = serializers.UUIDField()
    kind = serializers.ChoiceField(choices=("slide", "video"))
    name = serializers.CharField()


class UploadSerializer(serializers.Serializer[Any]):
    """A transfer: how far it is, and what became of it."""

    id = serializers.UUIDField(source="upload.pk")
    case = serializers.UUIDField(
        source="upload.case_id", allow_null=True, help_text="null for a crate that was not imported"
    )
    filename = serializers.CharField(source="upload.filename")
    state = serializers.ChoiceField(choices=UploadState.choices, source="upload.state")
    offset = serializers.IntegerField(source="upload.received_bytes")
    size_bytes = serializers.IntegerField(source="upload.size_bytes")
    sha256 = serializers.CharField(
        source="upload.sha256", help_text="As announced; later as measured"
    )
    error = serializers.SerializerMethodField()
    item = serializers.SerializerMethodField()
    job = JobSerializer(allow_null=True, help_text="The job that checks the file")
    expires_at = serializers.SerializerMethodField()
    created_at = serializers.DateTimeField(source="upload.created_at")

    @extend_schema_field(UploadErrorSerializer(allow_null=True))
    def get_error(self, state: UploadSeen) -> dict[str, str] | None:
        """Null unless the state is *refused* or *quarantined*."""
        if state.upload.state not in (UploadState.REFUSED, UploadState.QUARANTINED):
            return None
        return {"code": state.upload.error_code, "message": state.upload.error_message}

    @extend_schema_field(UploadItemSerializer(allow_null=True))
    def get_item(self, state: UploadSeen) -> dict[str, str] | None:
        """Null until the file is stored."""
        if state.item is None:
            return None
        kind = str(state.item._meta.model_name)
        return {"id": str(state.item.pk), "kind": kind, "name": state.item.name}

    def get_expires_at(self, state: UploadSeen) -> datetime | None:
        """Time of deletion if nothing more arrives; null once it has arrived."""
        is_open = state.upload.state == UploadState.RECEIVING
        return upload_expires(state.upload) if is_open else None


def _tus(*extra: OpenApiParameter) -> list[OpenApiParameter | type[serializers.Serializer[Any]]]:
    version = OpenApiParameter(
        "Tus-Resumable", str, OpenApiParameter.HEADER, required=True, enum=[VERSION]
    )
    return [version, *extra]


def _header(name: str, kind: Any, text: str, *, required: bool = False) -> OpenApiParameter:
    return OpenApiParameter(
        name, kind, OpenApiParameter.HEADER, required=required, description=text
    )


@audited(
    list=AuditRule("upload.listed"),
    create=AuditRule("upload.begun", "upload"),
    retrieve=AuditRule("upload.listed", "upload", "pk", every_s=HOUR_S),
    destroy=AuditRule("upload.discarded", "upload", "pk"),
    append=AuditRule("upload.sent", "upload", "pk", every_s=HOUR_S),
)
class UploadViewSet(ApiViewSet[Any]):
    """Files in pieces. A transfer that was cut off continues where it stopped."""

    area = TokenArea.CASES
    takes_no_key = "A transfer that is not continued costs nothing and expires."
    receives_files = True  # authenticates before the body is read as a stream
    serializer_class = UploadSerializer
    parser_classes = (PieceParser,)
    queryset = Upload.objects.none()
    filter_backends = ()

    def finalize_response(self, *args: Any, **kwargs: Any) -> Response:
        """Add the version of tus to each response."""
        response = super().finalize_response(*args, **kwargs)
        response["Tus-Resumable"] = VERSION
        if response.status_code == http_status.HTTP_412_PRECONDITION_FAILED:
            response["Tus-Version"] = VERSION
        return response

    def get_queryset(self) -> Any:
        """Uploads of the user's labs."""
        return upload_list(user=user_of(self.request))

    @extend_schema(exclude=True)
    def discover(self, request: Request, pk: uuid.UUID | None = None) -> Response:
        """Supported version and extensions of tus (OPTIONS)."""
        response = Response(status=http_status.HTTP_204_NO_CONTENT)
        response["Tus-Version"] = VERSION
        response["Tus-Extension"] = EXTENSIONS
        response["Tus-Max-Size"] = str(storage.limit_bytes())
        response["Tus-Checksum-Algorithm"] = ",".join(CHECKSUMS)
        return response

    def list(self, request: Request) -> Response:
        """List uploads, newest first."""
        rows = self.paginate_queryset(self.get_queryset())
        uploads = uploads_seen(rows or [])
        return self.get_paginated_response(UploadSerializer(uploads, many=True).data)

    def retrieve(self, request: Request, pk: uuid.UUID) -> Response:
        """State and result of an upload."""
        uploads = uploads_seen([self._upload(pk)])
        return Response(UploadSerializer(uploads[0]).data)

    @extend_schema(
        parameters=_tus(
            _header("Upload-Length", int, "Bytes of the file; left out of a final upload"),
            _header(
                "Upload-Metadata",
                str,
                "`filename` and `case` (its id), and optionally `name` and the `sha256` of the "
                "file; for a crate, which holds a whole case, `filename` and `lab` (its id): keys "
                "with base64 values, separated by commas",
                required=True,
            ),
            _header("Upload-Concat", str, "`partial`, or `final;` and the URLs of the parts"),
        ),
        request=None,
        responses={201: OpenApiResponse(description="Send the pieces to `Location`")},
    )
    def create(self, request: Request) -> Response:
        """Create an upload.

        If the lab already has a file of this `sha256`, nothing needs to be sent.
        """
        http = request._request
        _require_version(http)
        metadata = metadata_of(http.headers.get("Upload-Metadata", ""))
        filename, name = metadata.get("filename", "unnamed"), metadata.get("name", "")
        concat = http.headers.get("Upload-Concat", "")
        if concat.startswith("final"):
            upload = upload_join(
                parts=self._parts(concat),
                filename=filename,
                name=name,
                sha256=metadata.get("sha256", ""),
                user=user_of(request),
            )
        elif concat not in ("", "partial"):
            raise InvalidInputError("Upload-Concat: expected partial, or final; and URLs.")
        elif "lab" in metadata and "case" not in metadata:
            upload = self._crate(metadata, filename, is_part=bool(concat))
        else:
            upload = upload_begin(
                case=case_get(user=user_of(request), case_id=id_of(metadata, "case")),
                filename=filename,
                name=name,
                size_bytes=whole_of(http, "Upload-Length"),
                sha256=metadata.get("sha256", ""),
                is_part=concat == "partial",
                user=user_of(request),
            )
        set_audited_id(request, upload.pk)
        response = self._standing(upload, http_status.HTTP_201_CREATED)
        response["Location"] = reverse("api:upload-detail", args=[upload.pk])
        return response

    @extend_schema(exclude=True)
    def offset(self, request: Request, pk: uuid.UUID) -> Response:
        """Number of bytes received so far (HEAD)."""
        upload = self._upload(pk)
        _require_version(request._request)
        response = self._standing(upload, http_status.HTTP_200_OK)
        response["Cache-Control"] = "no-store"  # tus demands it: an earlier offset is wrong
        response["Upload-Length"] = str(upload.size_bytes)
        response["Upload-Metadata"] = f"filename {base64_of(upload.filename)}"
        if upload.is_part:
            response["Upload-Concat"] = "partial"
        return response

    @extend_schema(
        parameters=_tus(
            _header("Upload-Offset", int, "The offset at which the piece begins", required=True),
            _header("Upload-Checksum", str, "`sha1`, `sha256` or `md5`, and the digest in base64"),
        ),
        request={PIECE_TYPE: OpenApiTypes.BINARY},
        responses={
            204: OpenApiResponse(description="`Upload-Offset` is where the next piece begins")
        },
    )
    def append(self, request: Request, pk: uuid.UUID) -> Response:
        """Append bytes at an offset. After the last ones a job checks the file."""
        http, upload = request._request, self._upload(pk)
        require_send(user_of(request), upload)
        _require_version(http)
        if http.content_type != PIECE_TYPE:
            raise WrongTypeError(f"Send the piece with the content type {PIECE_TYPE}.")
        offset = whole_of(http, "Upload-Offset")
        checksum = checksum_of(http.headers.get("Upload-Checksum", ""))
        user = user_of(request)
        upload_append(
            upload=upload, offset=offset, chunks=_chunks(http), checksum=checksum, user=user
        )
        return self._standing(upload, http_status.HTTP_204_NO_CONTENT)

    @extend_schema(parameters=_tus(), responses={204: None})
    def destroy(self, request: Request, pk: uuid.UUID) -> Response:
        """Cancel an upload. 409 after the file has been received."""
        upload = self._upload(pk)
        _require_version(request._request)
        upload_discard(upload=upload, user=user_of(request))
        return Response(status=http_status.HTTP_204_NO_CONTENT)

    def _upload(self, pk: uuid.UUID) -> Upload:
        return upload_get(user=user_of(self.request), upload_id=pk)

    def _crate(self, metadata: Mapping[str, str], filename: str, *, is_part: bool) -> Upload:
        if is_part:
            raise InvalidInputError("Upload-Concat: a crate comes in one transfer, without parts.")
        return crate_begin(
            lab=lab_named(user_of(self.request), id_of(metadata, "lab")),
            filename=filename,
            size_bytes=whole_of(self.request._request, "Upload-Length"),
            user=user_of(self.request),
        )

    def _parts(self, concat: str) -> Sequence[Upload]:
        """The parts that a final upload names by their addresses, whole or path only."""
        parts = []
        for address in concat.partition(";")[2].split():
            path = "/" + address.split("://", 1)[-1].partition("/")[2]
            try:
                match = resolve(path)
            except Resolver404:
                match = None
            if match is None or match.view_name != "api:upload-detail":
                raise InvalidInputError(f"Upload-Concat: {address[:200]} is not an upload.")
            parts.append(self._upload(match.kwargs["pk"]))
        return parts

    @staticmethod
    def _standing(upload: Upload, status: int) -> Response:
        response = Response(status=status)
        response["Upload-Offset"] = str(upload.received_bytes)
        if upload.state == UploadState.RECEIVING:
            response["Upload-Expires"] = http_date(upload_expires(upload).timestamp())
        return response


def _require_version(request: HttpRequest) -> None:
    if request.headers.get("Tus-Resumable") != VERSION:
        raise ProtocolError(f"Send Tus-Resumable: {VERSION}.")


def _chunks(request: HttpRequest) -> Iterator[bytes]:
    """Chunks of the body; an interrupted one ends before its announced length."""
    bytes_left = body_length(request)
    try:
        while bytes_left and (chunk := request.read(min(READ_BYTES, bytes_left))):
            bytes_left -= len(chunk)
            yield chunk
    except UnreadablePostError:
        pass  # the client went away
    if bytes_left:
        raise InvalidInputError("The piece broke off.", code="body-incomplete")
