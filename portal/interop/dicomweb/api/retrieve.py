"""``/api/v1/dicomweb/``: WADO-RS, metadata and whole objects."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from itertools import chain
from typing import Any

from django.http import HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.exceptions import NotAcceptable
from rest_framework.request import Request
from rest_framework.response import Response

from ml.imaging.dicom.patient import add_all
from ml.imaging.dicom.writing import bulk_value
from ml.types import JsonObject
from portal.core.errors import InvalidInputError, NotFoundError
from portal.core.http.audit_rules import HOUR_S, MINUTE_S, AuditRule, audited
from portal.core.http.files import bytes_response
from portal.interop.dicomweb.api.addresses import address_of
from portal.interop.dicomweb.api.search import CANVAS, CASE, FOUND
from portal.interop.dicomweb.formats.json_model import data_json
from portal.interop.dicomweb.formats.media_types import (
    DICOM,
    JSON,
    AnswerPart,
    boundary,
    file_kind,
    in_parts,
    parse_accept,
    parts_type,
    takes_json,
)
from portal.interop.dicomweb.selectors.objects import SlideObject, object_uid
from portal.interop.dicomweb.selectors.studies import Series, dicom_object, dicom_slide, dicom_study
from portal.interop.http import CACHE_CONTROL, StandardApi
from portal.labs.requests import user_of

INSTANCE = OpenApiParameter(
    "instance_id",
    str,
    OpenApiParameter.PATH,
    description="UID of the instance, as a search returns it",
)
IDS = [CASE, CANVAS, INSTANCE]
"""Path parameters of an instance."""
Objects = list[tuple[Series, SlideObject]]
MAX_CODED_FRAMES = 4096
"""Largest number of frames encoded for one response: some ten seconds of a processor."""
_FILES = {(200, "multipart/related"): OpenApiTypes.BINARY, (200, DICOM): OpenApiTypes.BINARY}


def accepts(request: Request) -> str:
    """``Accept`` of a request: the query parameter, as PS3.18 allows, or the header."""
    return str(request.query_params.get("accept") or request.headers.get("Accept", ""))


class _ObjectsApi(StandardApi):
    """Objects of a study, a series or an instance."""

    def _objects(
        self,
        request: Request,
        case_id: uuid.UUID,
        canvas_id: uuid.UUID | None = None,
        instance_id: uuid.UUID | None = None,
    ) -> Objects:
        user = user_of(request)
        if canvas_id is None:
            all_series = dicom_study(user, case_id)
        elif instance_id is None:
            all_series = [dicom_slide(user, case_id, canvas_id)]
        else:
            return [dicom_object(user, case_id, canvas_id, instance_id)]
        objects = [(series, instance) for series in all_series for instance in series.objects()]
        if not objects:
            raise NotFoundError("It has no instances.")
        return objects

    def _metadata(self, request: Request, *ids: uuid.UUID) -> Response:
        objects = self._objects(request, *ids)
        if not takes_json(parse_accept(accepts(request))):
            raise NotAcceptable(f"Metadata are returned as {JSON}.")
        return Response([_metadata(request, *pair) for pair in objects], content_type=JSON)

    def _files(self, request: Request, *ids: uuid.UUID) -> HttpResponseBase:
        objects = self._objects(request, *ids)
        kinds = parse_accept(accepts(request))
        for _, instance in objects:
            if file_kind(kinds, instance.syntax) is None:
                raise NotAcceptable(f"Objects are returned as they are stored: {instance.syntax}.")
        _require_cheap(instance for _, instance in objects)
        series, instance = objects[0]
        kind = file_kind(kinds, instance.syntax)
        is_plain = kind is not None and kind.media_type == DICOM and not kind.in_parts
        if is_plain and len(objects) == 1:
            return StreamingHttpResponse(
                instance.file(_data(series, instance)),
                content_type=f"{DICOM}; transfer-syntax={instance.syntax}",
            )
        files = [(pair, pair[1].file(_data(*pair))) for pair in objects]
        line = boundary(request.path)
        parts = (
            AnswerPart(
                f"{DICOM}; transfer-syntax={instance.syntax}",
                _address(request, series, instance),
                pieces,
            )
            for (series, instance), pieces in files
        )
        return StreamingHttpResponse(in_parts(parts, line), content_type=parts_type(DICOM, line))


@audited(GET=AuditRule("case.viewed", "case", "case_id", every_s=MINUTE_S))
class StudyMetadataApi(_ObjectsApi):
    """Metadata of a case."""

    @extend_schema(
        operation_id="dicom_study_metadata",
        summary="DICOMweb: metadata of a study",
        parameters=[CASE],
        responses=FOUND,
    )
    def get(self, request: Request, case_id: uuid.UUID) -> Response:
        """Data sets of all instances, without pixel data."""
        return self._metadata(request, case_id)


@audited(GET=AuditRule("canvas.opened", "canvas", "canvas_id", every_s=MINUTE_S))
class SeriesMetadataApi(_ObjectsApi):
    """Metadata of a slide."""

    @extend_schema(
        operation_id="dicom_series_metadata",
        summary="DICOMweb: metadata of a series",
        parameters=[CASE, CANVAS],
        responses=FOUND,
    )
    def get(self, request: Request, case_id: uuid.UUID, canvas_id: uuid.UUID) -> Response:
        """Data sets of the levels of a slide, without pixel data."""
        return self._metadata(request, case_id, canvas_id)


@audited(GET=AuditRule("canvas.opened", "canvas", "canvas_id", every_s=MINUTE_S))
class InstanceMetadataApi(_ObjectsApi):
    """Metadata of a level."""

    @extend_schema(
        operation_id="dicom_instance_metadata",
        summary="DICOMweb: metadata of an instance",
        parameters=IDS,
        responses=FOUND,
    )
    def get(
        self, request: Request, case_id: uuid.UUID, canvas_id: uuid.UUID, instance_id: uuid.UUID
    ) -> Response:
        """The data set of an instance, without pixel data.

        Frames are not listed if they form a complete grid, or if there are more than 10,000; the
        file contains their positions.
        """
        return self._metadata(request, case_id, canvas_id, instance_id)


@audited(GET=AuditRule("canvas.exported", "case", "case_id"))
class DicomStudyApi(_ObjectsApi):
    """A case."""

    @extend_schema(
        operation_id="dicom_study",
        summary="DICOMweb: retrieve a study",
        parameters=[CASE],
        responses=_FILES,
    )
    def get(self, request: Request, case_id: uuid.UUID) -> HttpResponseBase:
        """All instances of a study as a multipart response with one file in each part."""
        return self._files(request, case_id)


@audited(GET=AuditRule("canvas.exported", "canvas", "canvas_id"))
class SeriesApi(_ObjectsApi):
    """A slide."""

    @extend_schema(
        operation_id="dicom_one_series",
        summary="DICOMweb: retrieve a series",
        parameters=[CASE, CANVAS],
        responses=_FILES,
    )
    def get(self, request: Request, case_id: uuid.UUID, canvas_id: uuid.UUID) -> HttpResponseBase:
        """All instances of a series as a multipart response with one file in each part."""
        return self._files(request, case_id, canvas_id)


@audited(GET=AuditRule("canvas.exported", "canvas", "canvas_id"))
class InstanceApi(_ObjectsApi):
    """A level."""

    @extend_schema(
        operation_id="dicom_instance",
        summary="DICOMweb: retrieve an instance",
        parameters=IDS,
        responses=_FILES,
    )
    def get(
        self, request: Request, case_id: uuid.UUID, canvas_id: uuid.UUID, instance_id: uuid.UUID
    ) -> HttpResponseBase:
        """An instance as a multipart response or, for `Accept: application/dicom`, as a single
        file.

        Stored frames are not recompressed. 400 `too-costly` if more than 4,096 frames would be
        encoded.
        """
        return self._files(request, case_id, canvas_id, instance_id)


@audited(GET=AuditRule("canvas.read", "canvas", "canvas_id", every_s=HOUR_S))
class BulkApi(_ObjectsApi):
    """A long value of a data set."""

    @extend_schema(
        operation_id="dicom_bulk_data",
        summary="DICOMweb: retrieve bulk data",
        parameters=[
            *IDS,
            OpenApiParameter(
                "digest",
                str,
                OpenApiParameter.PATH,
                description="The path that the metadata give for it",
            ),
        ],
        responses={(200, "multipart/related"): OpenApiTypes.BINARY},
    )
    def get(
        self,
        request: Request,
        case_id: uuid.UUID,
        canvas_id: uuid.UUID,
        instance_id: uuid.UUID,
        digest: str,
    ) -> HttpResponse:
        """A bulk value that the metadata refer to, such as a colour profile."""
        ((series, instance),) = self._objects(request, case_id, canvas_id, instance_id)
        parts = chain([instance.data()], instance.groups())
        value = next(filter(None, (bulk_value(data, digest) for data in parts)), None)
        if value is None:
            raise NotFoundError("This instance has no such value.")
        line = boundary(digest)
        address = _bulk_address(request, series, instance, digest)
        part = AnswerPart("application/octet-stream", address, [value])
        is_whole = "multipart" not in accepts(request) and "octet-stream" in accepts(request)
        return bytes_response(
            request._request,
            value if is_whole else b"".join(in_parts([part], line)),
            etag=f'"b-{digest}-{int(is_whole)}"',
            media_type=part.media_type if is_whole else parts_type(part.media_type, line),
            cache=CACHE_CONTROL,
        )


def _require_cheap(objects: Iterable[SlideObject]) -> None:
    count = sum(instance.coded_count for instance in objects)
    if count > MAX_CODED_FRAMES:
        raise InvalidInputError(
            f"{count:,} frames of this would have to be encoded first; at most "
            f"{MAX_CODED_FRAMES:,} are allowed. Retrieve frames, or single coarser levels.",
            code="too-costly",
        )


def _data(series: Series, instance: SlideObject) -> Any:
    data = instance.data()
    add_all(data, series.attributes, object_uid(series.canvas, instance))
    return data


def _metadata(request: Request, series: Series, instance: SlideObject) -> JsonObject:
    return data_json(
        _data(series, instance),
        syntax=instance.syntax,
        bulk=lambda digest: _bulk_address(request, series, instance, digest),
        groups=instance.groups(),
    )


def _address(request: Request, series: Series, instance: SlideObject) -> str:
    uid = object_uid(series.canvas, instance)
    return address_of(request, series.attributes.study_uid, series.attributes.series_uid, uid)


def _bulk_address(request: Request, series: Series, instance: SlideObject, digest: str) -> str:
    return f"{_address(request, series, instance)}/bulkdata/{digest}"


def frames_address(request: Request, series: Series, instance: SlideObject, number: int) -> str:
    """URL of one frame."""
    return f"{_address(request, series, instance)}/frames/{number}"
